use alloc::format;
use alloc::string::ToString;

use proptest::prelude::*;

use super::*;

fn fault(text: &str) -> ScanFault {
    check(text).unwrap_err().fault
}

#[test]
fn well_formed_values_pass() {
    for text in [
        "{}",
        "[]",
        "0",
        "-0.5e+10",
        "\"\"",
        "true",
        "false",
        "null",
        " [1 , {\"a\":[]}]\n",
        r#""\u00e9\ud83d\ude00\n\\\/""#,
        "1e400",
        "123456789012345678901234567890",
    ] {
        assert_eq!(check(text), Ok(()), "{text}");
    }
}

#[test]
fn malformed_values_name_their_fault() {
    for (text, expected) in [
        ("", ScanFault::End),
        ("{", ScanFault::End),
        ("[1,]", ScanFault::Byte),
        ("{\"a\":1,}", ScanFault::Byte),
        ("{a:1}", ScanFault::Byte),
        ("[1}", ScanFault::Byte),
        ("tru", ScanFault::Byte),
        ("01", ScanFault::Number),
        ("1.", ScanFault::Number),
        ("-", ScanFault::Number),
        ("1e", ScanFault::Number),
        ("\"a", ScanFault::End),
        ("\"\\x\"", ScanFault::Text),
        ("\"\\u12g4\"", ScanFault::Text),
        ("\"a\nb\"", ScanFault::Text),
        ("1 2", ScanFault::Trailing),
        ("NaN", ScanFault::Byte),
    ] {
        assert_eq!(fault(text), expected, "{text}");
    }
}

#[test]
fn depth_is_limited_to_128() {
    let nested = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n));
    assert_eq!(check(&nested(128)), Ok(()));
    assert_eq!(fault(&nested(129)), ScanFault::Depth);
    assert_eq!(fault(&"[".repeat(100_000)), ScanFault::Depth);
}

#[test]
fn a_long_string_stops_at_the_right_byte() {
    for length in 0..100 {
        let plain = "x".repeat(length);
        assert_eq!(check(&format!("\"{plain}\"")), Ok(()));
        let error = check(&format!("\"{plain}\u{1}{plain}\"")).unwrap_err();
        assert_eq!((error.at, error.fault), (length + 1, ScanFault::Text));
    }
}

#[test]
fn lone_surrogates_become_replacement_characters() {
    assert_eq!(unquote(r#""a\ud800b""#), "a\u{fffd}b");
    assert_eq!(unquote(r#""\u0061""#), "a");
    assert_eq!(unquote(r#""\ud800\n""#), "\u{fffd}\n");
    assert_eq!(unquote(r#""\\ud800\ud800""#), "\\ud800\u{fffd}");
    assert_eq!(unquote(r#""\ud83d\ude00\ud800x""#), "\u{1f600}\u{fffd}x");
}

proptest! {
    #[test]
    fn agrees_with_serde_json_on_arbitrary_text(text in any::<std::string::String>()) {
        agree(&text)?;
    }

    #[test]
    fn agrees_with_serde_json_on_json_like_text(
        text in r#"[\[\]{}:,"a\\u0-9eE.+ -]{0,24}|\{"a": ?[\[\]0-9tru"e]{0,8}\}"#
    ) {
        agree(&text)?;
    }

    #[test]
    fn quoting_round_trips(text in any::<std::string::String>()) {
        let quoted = quote(&text);
        prop_assert_eq!(check(&quoted), Ok(()));
        prop_assert_eq!(unquote(&quoted), text);
    }
}

/// serde_json is the reference, but for two things: it refuses lone surrogates, which JSON can
/// write, and numbers too large for a float.
fn agree(text: &str) -> Result<(), TestCaseError> {
    let theirs = serde_json::from_str::<serde_json::Value>(text);
    let ours = check(text);
    let excused = theirs.as_ref().is_err_and(|e| {
        let e = e.to_string();
        e.contains("surrogate") || e.contains("out of range") || e.contains("hex escape")
    });
    if !excused {
        prop_assert_eq!(
            ours.is_ok(),
            theirs.is_ok(),
            "{:?} {:?} {:?}",
            text,
            ours,
            theirs
        );
    }
    Ok(())
}
