use std::sync::LazyLock;

use mcpact::server::SealKeys;
use mcpact::server::backend::Sealer;
use mcpact_translate::input::{BoundState, Claims, Ticket};

static SEALER: LazyLock<Sealer> = LazyLock::new(|| Sealer::new(&SealKeys::new([7; 32])));

/// Sealed state opens only unchanged, and opened bytes are at most one kind of state.
///
/// The first byte chooses a change, the next two its position, and the rest is a text that a client returns, and the
/// content of a valid state.
///
/// # Panics
/// An invariant is broken.
pub fn sealed_state(data: &[u8]) {
    let Some((&[change, high, low], content)) = data.split_first_chunk::<3>() else {
        return;
    };
    // Nothing is sealed with this key: the fuzzer remembers texts that it has seen in comparisons.
    let unused = Sealer::new(&SealKeys::new([8; 32]));
    assert_eq!(unused.open(&String::from_utf8_lossy(content)), None);
    typed(content);
    let Some(sealed) = SEALER.seal(content) else {
        return;
    };
    assert_eq!(SEALER.open(&sealed).as_deref(), Some(content));
    let position = usize::from(u16::from_be_bytes([high, low]));
    for changed in changed(&sealed, change, position) {
        if changed != sealed {
            assert_eq!(SEALER.open(&changed), None, "{changed} of {sealed}");
        }
    }
    assert_eq!(unused.open(&sealed), None, "another key");
}

/// Every state that can be read is written alike, and no bytes are two kinds of state.
fn typed(plain: &[u8]) {
    let claims = Claims::parse(plain).map(|claims| claims.encode());
    let ticket = Ticket::parse(plain).map(|ticket| ticket.encode());
    let bound = BoundState::parse(plain).map(|bound| bound.encode());
    let all: Vec<_> = [claims, ticket, bound].into_iter().flatten().collect();
    assert!(all.len() <= 1, "two kinds of state");
    for written in all {
        assert_eq!(written, plain);
    }
}

/// Returns changed forms of a sealed text.
fn changed(sealed: &str, change: u8, position: usize) -> Vec<String> {
    let at = position % sealed.len();
    let (start, end) = sealed.split_at(at);
    let mut bytes = sealed.as_bytes().to_vec();
    if let Some(byte) = bytes.get_mut(at) {
        *byte ^= 1 << (change % 7);
    }
    let flipped = String::from_utf8_lossy(&bytes).into_owned();
    let inserted = char::from(change);
    vec![
        flipped,
        start.to_owned(),
        end.to_owned(),
        format!("{start}{inserted}{end}"),
        format!("{sealed}{inserted}"),
        format!("{sealed}="),
        format!("{end}{start}"),
    ]
}
