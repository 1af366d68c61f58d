//! Keys of `[gateway]` that expose the gateway to more callers than the defaults.

use std::net::SocketAddr;

use super::secret::ExpandedText;
use super::source::Span;
use super::tree::{Node, Table, Value};

/// A key that exposes the gateway to more callers. It needs approval unless the config is named explicitly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExposingKey {
    /// Name of the key.
    pub key: &'static str,
    /// Source position.
    pub span: Span,
    /// Its values.
    pub values: Vec<ExpandedText>,
    /// Consequence, for messages.
    pub effect: &'static str,
}

pub(super) const LISTEN: &str = "listen";

/// Keys that can expose the gateway, and their effect. `token` is not listed: any token reduces the set of callers.
const ROWS: [(&str, &str); 4] = [
    (LISTEN, "lets other machines connect"),
    (
        "allow_remote",
        "lets other machines connect without a token",
    ),
    (
        "allow_hosts",
        "lets the owner of the name make browsers call the gateway",
    ),
    (
        "allow_origins",
        "lets web pages of this origin call the gateway",
    ),
];

/// Values that expose the gateway: an address beyond loopback, `true`, or every item of a list.
fn exposing_values(value: &Value) -> Vec<ExpandedText> {
    match value {
        Value::Text(text) => {
            // Invalid addresses are reported elsewhere.
            let address = text.value().parse::<SocketAddr>();
            let is_open = address.is_ok_and(|address| !address.ip().is_loopback());
            is_open.then(|| text.clone()).into_iter().collect()
        }
        Value::Flag(true) => vec![ExpandedText::from("true")],
        Value::List(items) => {
            let texts = items.iter().filter_map(Node::text);
            texts.cloned().collect()
        }
        _ => Vec::new(),
    }
}

/// Keys of `[gateway]` that expose it to more callers than their defaults.
pub(super) fn exposing_keys(gateway: &Table) -> Vec<ExposingKey> {
    let found = ROWS.into_iter().filter_map(|(key, effect)| {
        let node = &gateway.member(key)?.node;
        let values = exposing_values(&node.value);
        (!values.is_empty()).then_some(ExposingKey {
            key,
            span: node.span,
            values,
            effect,
        })
    });
    found.collect()
}

impl ExposingKey {
    /// Note shown by `mcpact check`.
    pub(super) fn note(&self) -> String {
        format!(
            "`{}` {}; needs `mcpact approve`, unless the config is passed with `--config`",
            self.key, self.effect
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::GATEWAY;
    use crate::read::tests::{found_in, taken_from};

    /// Keys that never expose the gateway to more callers.
    const NOT_EXPOSING: [&str; 21] = [
        "token",
        "tls_cert",
        "tls_key",
        "sse",
        "websocket",
        "control",
        "names",
        "separator",
        "watch",
        "drain_seconds",
        "list_seconds",
        "revisions",
        "profile",
        "strict",
        "lenient",
        "undeclared",
        "announce_extras",
        "require",
        "missing_variables",
        "answers",
        "commands",
    ];

    /// Every key of `[gateway]` is classified.
    #[test]
    fn every_key_is_classified() {
        for key in GATEWAY {
            let opens = ROWS.iter().any(|(name, _)| *name == key.name);
            assert_ne!(opens, NOT_EXPOSING.contains(&key.name), "{}", key.name);
        }
        assert_eq!(GATEWAY.len(), ROWS.len() + NOT_EXPOSING.len());
    }

    /// Only values that expose the gateway need approval.
    #[test]
    fn only_exposing_values_need_approval() {
        const TOKEN: &str = "token = \"0123456789abcdef\"\n";
        for (text, expected) in [
            ("", &[][..]),
            ("listen = \"127.0.0.1:1\"", &[]),
            ("listen = \"[::1]:0\"", &[]),
            (
                "allow_remote = false\nallow_hosts = []\nallow_origins = []",
                &[],
            ),
            (TOKEN, &[]),
            ("websocket = true\nsse = true", &[]),
            (&format!("{TOKEN}listen = \"0.0.0.0:1\""), &["listen"]),
            (&format!("{TOKEN}listen = \"[::]:1\""), &["listen"]),
            (
                "listen = \"192.0.2.1:1\"\nallow_remote = true",
                &["listen", "allow_remote"],
            ),
            ("allow_remote = true", &["allow_remote"]),
            ("allow_hosts = [\"a.example\"]", &["allow_hosts"]),
            (
                "allow_origins = [\"https://a.example\"]",
                &["allow_origins"],
            ),
        ] {
            let text = format!("[gateway]\n{text}\n");
            let catalog = taken_from("mcpact.toml", &text);
            let keys: Vec<&str> = catalog
                .gateway
                .exposing_keys
                .iter()
                .map(|o| o.key)
                .collect();
            assert_eq!(keys, expected, "{text}");
            let notes = found_in("mcpact.toml", &text);
            let noted = notes.iter().filter(|note| note.contains("mcpact approve"));
            assert_eq!(noted.count(), expected.len(), "{notes:?}");
        }
    }

    /// An overridden listen address needs no approval.
    #[test]
    fn overridden_listen_address_needs_no_approval() {
        let text = "[gateway]\nlisten = \"0.0.0.0:1\"\nallow_remote = true\n";
        let mut gateway = taken_from("mcpact.toml", text).gateway;
        gateway.override_listen("127.0.0.1:0".parse().unwrap());
        let keys: Vec<&str> = gateway.exposing_keys.iter().map(|o| o.key).collect();
        assert_eq!(keys, ["allow_remote"]);
    }
}
