//! Sealed state: a client carries it, but cannot read, change or reuse it elsewhere.
//!
//! `2026-07-28 basic/patterns/mrtr#request-state`: returned state is untrusted until verified.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chacha20poly1305::aead::{Aead, KeyInit};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::error::Error;

const NONCE: usize = 24;

/// Keys for sealed state. The first key seals; all of them open, so that keys can be rotated while old state is in
/// use.
#[derive(Clone)]
pub struct SealKeys {
    first: [u8; 32],
    previous: Vec<[u8; 32]>,
}

impl SealKeys {
    /// Uses this key, which must come from a secret store: it allows forging state.
    #[must_use]
    pub const fn new(key: [u8; 32]) -> Self {
        Self {
            first: key,
            previous: Vec::new(),
        }
    }

    /// Also opens state sealed with this key.
    #[must_use]
    pub fn with_previous(mut self, key: [u8; 32]) -> Self {
        self.previous.push(key);
        self
    }

    /// Creates a random key.
    ///
    /// # Errors
    /// The operating system returned no random numbers.
    pub fn random() -> Result<Self, Error> {
        let mut key = [0; 32];
        getrandom::fill(&mut key).map_err(|_| Error::Randomness)?;
        Ok(Self::new(key))
    }
}

impl std::fmt::Debug for SealKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SealKeys(..)")
    }
}

/// Seals with the first key and opens with all of them.
#[derive(Clone)]
pub struct Sealer {
    first: XChaCha20Poly1305,
    previous: Vec<XChaCha20Poly1305>,
}

impl std::fmt::Debug for Sealer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Sealer(..)")
    }
}

/// Request that a sealed state is valid for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Binding<'a> {
    pub(super) principal: &'a str,
    pub(super) method: &'a str,
    pub(super) digest: [u8; 32],
}

/// Sealed content.
#[derive(Debug, Serialize, Deserialize)]
struct Claims {
    principal: String,
    method: String,
    digest: [u8; 32],
    expires: u64,
    round: u32,
    answers: Map<String, Value>,
}

/// Content of a verified state.
#[derive(Debug, Default)]
pub(super) struct OpenedState {
    pub(super) round: u32,
    pub(super) answers: Map<String, Value>,
}

impl Sealer {
    /// Creates a sealer with these keys.
    #[must_use]
    pub fn new(keys: &SealKeys) -> Self {
        let cipher = |key: &[u8; 32]| XChaCha20Poly1305::new(&(*key).into());
        Self {
            first: cipher(&keys.first),
            previous: keys.previous.iter().map(cipher).collect(),
        }
    }

    /// Encrypts and authenticates a text; `None` without random numbers. The content must state its own purpose.
    #[must_use]
    pub fn seal(&self, plain: &[u8]) -> Option<String> {
        let mut nonce = [0; NONCE];
        getrandom::fill(&mut nonce).ok()?;
        let sealed = self.first.encrypt(&XNonce::from(nonce), plain).ok()?;
        let mut bytes = nonce.to_vec();
        bytes.extend_from_slice(&sealed);
        Some(URL_SAFE_NO_PAD.encode(bytes))
    }

    /// Decrypts a sealed text; `None` if it was changed or sealed with another key.
    #[must_use]
    pub fn open(&self, text: &str) -> Option<Vec<u8>> {
        let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
        let (nonce, sealed) = bytes.split_first_chunk::<NONCE>()?;
        let nonce = XNonce::from(*nonce);
        std::iter::once(&self.first)
            .chain(&self.previous)
            .find_map(|key| key.decrypt(&nonce, sealed).ok())
    }

    /// Seals the state of a call, valid for this binding until `expires`.
    pub(super) fn seal_state(
        &self,
        binding: Binding<'_>,
        round: u32,
        answers: Map<String, Value>,
        expires: u64,
    ) -> Option<String> {
        let claims = Claims {
            principal: binding.principal.to_owned(),
            method: binding.method.to_owned(),
            digest: binding.digest,
            expires,
            round,
            answers,
        };
        self.seal(&serde_json::to_vec(&claims).ok()?)
    }

    /// Opens the state of a call; `None` if it is forged, expired, or bound to another request.
    pub(super) fn open_state(
        &self,
        text: &str,
        binding: Binding<'_>,
        now: u64,
    ) -> Option<OpenedState> {
        let claims: Claims = serde_json::from_slice(&self.open(text)?).ok()?;
        let is_bound = claims.principal == binding.principal
            && claims.method == binding.method
            && claims.digest == binding.digest
            && claims.expires > now;
        is_bound.then_some(OpenedState {
            round: claims.round,
            answers: claims.answers,
        })
    }
}

/// Returns the digest of the parameters without the members that change between rounds. The order of members does not
/// matter: clients may change it between rounds.
pub(super) fn digest(params: &Map<String, Value>) -> [u8; 32] {
    let mut hash = Sha256::new();
    let all: BTreeMap<_, _> = params.iter().collect();
    for (key, value) in all {
        if matches!(key.as_str(), "inputResponses" | "requestState" | "_meta") {
            continue;
        }
        hash.update(serde_json::json!([key, ordered(value)]).to_string());
    }
    hash.finalize().into()
}

fn ordered(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let all: BTreeMap<_, _> = members.iter().collect();
            let all = all.into_iter();
            all.map(|(key, value)| (key.clone(), ordered(value)))
                .collect()
        }
        Value::Array(items) => items.iter().map(ordered).collect(),
        other => other.clone(),
    }
}

/// Returns seconds since 1970.
pub(super) fn unix_now() -> u64 {
    std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn binding(principal: &str) -> Binding<'_> {
        Binding {
            principal,
            method: "tools/call",
            digest: [7; 32],
        }
    }

    /// F16: the digest ignores the order of members.
    #[test]
    fn digest_ignores_member_order() {
        let digest = |text: &str| digest(&serde_json::from_str(text).unwrap());
        let one = r#"{"name":"a","arguments":{"b":[{"c":1,"d":2}],"e":null},"_meta":{"x":1}}"#;
        let same = r#"{"requestState":"s","arguments":{"e":null,"b":[{"d":2,"c":1}]},"name":"a"}"#;
        let other = r#"{"name":"a","arguments":{"b":[{"c":1,"d":3}],"e":null}}"#;
        assert_eq!(digest(one), digest(same));
        assert_ne!(digest(one), digest(other));
    }

    /// F16: a state opens only for the same caller, method and parameters, unexpired and unchanged.
    #[test]
    fn state_opens_only_for_its_binding() {
        let sealer = Sealer::new(&SealKeys::random().unwrap());
        let answers = Map::from_iter([("k".to_owned(), Value::from(1))]);
        let sealed = sealer.seal_state(binding("a"), 2, answers, 100).unwrap();
        let opened = sealer.open_state(&sealed, binding("a"), 99).unwrap();
        assert_eq!((opened.round, opened.answers["k"].as_i64()), (2, Some(1)));
        assert!(
            sealer.open_state(&sealed, binding("b"), 99).is_none(),
            "another caller"
        );
        assert!(
            sealer.open_state(&sealed, binding("a"), 100).is_none(),
            "too late"
        );
        let other = Binding {
            method: "prompts/get",
            ..binding("a")
        };
        assert!(
            sealer.open_state(&sealed, other, 99).is_none(),
            "another method"
        );
        let other = Binding {
            digest: [8; 32],
            ..binding("a")
        };
        assert!(
            sealer.open_state(&sealed, other, 99).is_none(),
            "other parameters"
        );
        for broken in [
            format!("{sealed}-TAMPERED"),
            sealed[1..].to_owned(),
            String::new(),
            "é".into(),
        ] {
            assert!(
                sealer.open_state(&broken, binding("a"), 99).is_none(),
                "{broken}"
            );
        }
        assert!(
            Sealer::new(&SealKeys::random().unwrap())
                .open_state(&sealed, binding("a"), 99)
                .is_none(),
            "another key"
        );
        let again = sealer.seal_state(binding("a"), 2, Map::new(), 100).unwrap();
        assert_ne!(
            again,
            sealer.seal_state(binding("a"), 2, Map::new(), 100).unwrap(),
            "the nonce is random"
        );
    }

    /// P11: after a key rotation, the old key still opens until it is removed.
    #[test]
    fn keys_can_be_rotated() {
        let (old, new, unknown) = (SealKeys::new([1; 32]), [2; 32], SealKeys::new([3; 32]));
        let seal = |keys: &SealKeys| {
            let sealer = Sealer::new(keys);
            sealer.seal_state(binding("a"), 1, Map::new(), 100).unwrap()
        };
        let rotated = SealKeys::new(new).with_previous([1; 32]);
        let opens = |keys: &SealKeys, sealed: &str| {
            let sealer = Sealer::new(keys);
            sealer.open_state(sealed, binding("a"), 99).is_some()
        };
        assert!(opens(&rotated, &seal(&old)), "the old key opens");
        assert!(opens(&SealKeys::new(new), &seal(&rotated)), "the new seals");
        assert!(!opens(&rotated, &seal(&unknown)), "an unknown key");
        assert!(!opens(&SealKeys::new(new), &seal(&old)), "taken away");
        assert_eq!(format!("{rotated:?}"), "SealKeys(..)", "keys are not shown");
    }
}
