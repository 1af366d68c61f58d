use mcpact_wire::scan::{self, MAX_DEPTH, ScanFault};
use serde::de::IgnoredAny;

/// The scanner accepts exactly the JSON texts that `serde_json` accepts, up to its depth limit.
///
/// # Panics
/// An invariant is broken.
pub fn scanner(data: &[u8]) {
    let text = match (scan::utf8(data), core::str::from_utf8(data)) {
        (Ok(text), Ok(_)) => text,
        (Err(ours), Err(theirs)) => {
            assert_eq!(ours.fault, ScanFault::Utf8);
            assert_eq!(ours.at, theirs.valid_up_to());
            return;
        }
        (ours, theirs) => panic!("{ours:?} {theirs:?}"),
    };
    grammar(text);
    quoting(text);
}

/// Ignoring is the reference, because a tree cannot hold everything that JSON can write: neither
/// lone surrogates nor numbers beyond a float. But what fits into a tree must pass.
fn grammar(text: &str) {
    let ours = scan::check(text);
    match serde_json::from_str::<IgnoredAny>(text) {
        Ok(_) if depth(text) > MAX_DEPTH => {
            assert_eq!(ours.map_err(|e| e.fault), Err(ScanFault::Depth), "{text:?}");
        }
        Ok(_) => assert_eq!(ours, Ok(()), "{text:?}"),
        Err(theirs) => assert!(ours.is_err(), "{text:?}: {theirs}"),
    }
    if let Err(error) = ours {
        assert!(error.at <= text.len(), "{text:?}: {error}");
        let tree = serde_json::from_str::<serde_json::Value>(text);
        assert!(tree.is_err(), "{text:?}: {error}");
    }
}

/// Nesting depth of a well-formed text.
fn depth(text: &str) -> u32 {
    let (mut depth, mut deepest) = (0_u32, 0);
    let (mut in_string, mut escaped) = (false, false);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'{' | b'[' if !in_string => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b']' if !in_string => depth -= 1,
            _ => {}
        }
    }
    deepest
}

/// Any text survives being quoted, and a token that is a string is read as `serde_json` reads it.
fn quoting(text: &str) {
    let quoted = scan::quote(text);
    assert_eq!(scan::check(&quoted), Ok(()), "{quoted:?}");
    assert_eq!(scan::unquote(&quoted), text);
    assert_eq!(
        serde_json::from_str::<String>(&quoted).ok().as_deref(),
        Some(text)
    );
    let token = text.trim_matches([' ', '\n', '\r', '\t']);
    if token.starts_with('"') && scan::check(token).is_ok() {
        let ours = scan::unquote(token);
        match serde_json::from_str::<String>(token) {
            Ok(theirs) => assert_eq!(ours, theirs),
            Err(_) => assert!(ours.contains(char::REPLACEMENT_CHARACTER), "{token:?}"),
        }
    }
}
