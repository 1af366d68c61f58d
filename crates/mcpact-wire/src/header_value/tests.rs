use alloc::{
    borrow::Cow,
    format,
    string::{String, ToString as _},
};

use proptest::prelude::*;

use super::{HeaderValueError, decode, encode, safe_integer, same_number};

/// `2026-07-28 basic/transports/streamable-http#value-encoding`, the table of examples first.
#[test]
fn values_and_their_encodings() {
    let sheet = [
        ("us-west1", "us-west1"),
        ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
        (" padded ", "=?base64?IHBhZGRlZCA=?="),
        ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
        ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
        ("us west 1", "us west 1"),
        ("~!\"#", "~!\"#"),
        ("naïve", "=?base64?bmHDr3Zl?="),
        ("a\tb", "=?base64?YQli?="),
        ("\ta", "=?base64?CWE=?="),
        ("a\r\nb", "=?base64?YQ0KYg==?="),
        ("\0", "=?base64?AA==?="),
        ("\x7F", "=?base64?fw==?="),
        ("", "=?base64??="),
        ("=?base64?=", "=?base64?PT9iYXNlNjQ/PQ==?="),
        ("=?base64?abc", "=?base64?abc"),
        ("abc?=", "abc?="),
        ("=?BASE64?YQ==?=", "=?BASE64?YQ==?="),
    ];
    for (value, encoded) in sheet {
        assert_eq!(encode(value), encoded, "encoding {value:?}");
        assert_eq!(
            decode(encoded).as_deref(),
            Ok(value),
            "decoding {encoded:?}"
        );
    }
}

#[test]
fn what_only_others_send() {
    let sheet = [
        ("  plain\t", "plain"),
        (" =?base64?YQ==?= ", "a"),
        ("a\tb", "a\tb"),
        ("", ""),
        ("=?base64?dXMtd2VzdDE=?=", "us-west1"),
    ];
    for (header, value) in sheet {
        assert_eq!(decode(header).as_deref(), Ok(value));
    }
}

#[test]
fn what_is_refused() {
    let sheet = [
        ("naïve", HeaderValueError::InvalidCharacter),
        ("a\nb", HeaderValueError::InvalidCharacter),
        ("a\r", HeaderValueError::InvalidCharacter),
        ("\0", HeaderValueError::InvalidCharacter),
        ("a\x7F", HeaderValueError::InvalidCharacter),
        ("=?base64?YQ?=", HeaderValueError::InvalidBase64),
        ("=?base64?YQ=?=", HeaderValueError::InvalidBase64),
        ("=?base64?YR==?=", HeaderValueError::InvalidBase64),
        ("=?base64?%%%%?=", HeaderValueError::InvalidBase64),
        ("=?base64?_-_-?=", HeaderValueError::InvalidBase64),
        ("=?base64?YW Jj?=", HeaderValueError::InvalidBase64),
        ("=?base64?=", HeaderValueError::InvalidBase64),
    ];
    for (header, error) in sheet {
        assert_eq!(decode(header), Err(error), "{header:?}");
    }
    let not_text = decode("=?base64?//79?=");
    assert!(matches!(not_text, Err(HeaderValueError::InvalidUtf8(_))));
}

#[test]
fn plain_values_are_not_copied() {
    assert!(matches!(encode("us-west1"), Cow::Borrowed(_)));
    assert!(matches!(
        decode(" us-west1 "),
        Ok(Cow::Borrowed("us-west1"))
    ));
}

/// `2026-07-28 basic/transports/streamable-http#server-validation`
#[test]
fn equal_numbers() {
    let sheet = [
        ("42", "42"),
        ("42.0", "42"),
        ("42", "42.000"),
        ("4.2e1", "42"),
        ("420E-1", "42"),
        ("0.042e+3", "42"),
        ("-7", "-7.0"),
        ("0", "-0"),
        ("0e99", "0.000"),
        ("0.001", "1e-3"),
        ("100", "1e2"),
        ("9007199254740993", "9007199254740993.0"),
        ("1e2147483647", "10e2147483646"),
    ];
    for (left, right) in sheet {
        assert!(same_number(left, right), "{left} = {right}");
        assert!(same_number(right, left), "{right} = {left}");
    }
}

#[test]
fn different_numbers() {
    let sheet = [
        ("42", "43"),
        ("42", "-42"),
        ("42", "4.2"),
        ("42", "420"),
        ("0", "1"),
        ("9007199254740992", "9007199254740993"),
        ("1", "1.0000000000000000000000001"),
        ("1e1", "1e-1"),
    ];
    for (left, right) in sheet {
        assert!(!same_number(left, right), "{left} != {right}");
        assert!(!same_number(right, left), "{right} != {left}");
    }
}

#[test]
fn no_numbers() {
    let sheet = [
        "",
        "-",
        "+1",
        "01",
        "-01",
        ".5",
        "1.",
        "1e",
        "1e+",
        "1e1.5",
        "0x10",
        "1 ",
        " 1",
        "1_000",
        "NaN",
        "Infinity",
        "true",
        "٤٢",
        "1.2.3",
        "1e1e1",
        "1e+-1",
        "1e99999999999",
    ];
    for text in sheet {
        assert!(!same_number(text, text), "{text:?}");
        assert_eq!(safe_integer(text), None, "{text:?}");
    }
}

/// `2026-07-28 basic/transports/streamable-http#schema-extension`
#[test]
fn safe_integers() {
    let sheet = [
        ("42", Some(42)),
        ("-7", Some(-7)),
        ("42.0", Some(42)),
        ("4.2e1", Some(42)),
        ("0", Some(0)),
        ("-0.0", Some(0)),
        ("0e2147483647", Some(0)),
        ("10e-1", Some(1)),
        ("9007199254740991", Some(9_007_199_254_740_991)),
        ("-9007199254740991", Some(-9_007_199_254_740_991)),
        ("9007199254740992", None),
        ("-9007199254740992", None),
        ("18446744073709551616", None),
        ("99999999999999999999", None),
        ("1e2147483647", None),
        ("1e-2147483647", None),
        ("4.2", None),
        ("0.1", None),
    ];
    for (text, expected) in sheet {
        assert_eq!(safe_integer(text), expected, "{text}");
    }
}

proptest! {
    /// H12: every text has a header value that is plain, and decodes to it.
    #[test]
    fn every_text_comes_back(value in any::<String>()) {
        let encoded = encode(&value);
        prop_assert!(encoded.bytes().all(|byte| matches!(byte, b' '..=b'~')));
        prop_assert_eq!(encoded.trim(), encoded.as_ref());
        prop_assert_eq!(decode(&encoded), Ok(Cow::Borrowed(value.as_str())));
    }

    /// H12: a text that looks encoded comes back as that text.
    #[test]
    fn every_sentinel_look_alike_comes_back(inner in "[ -~]{0,12}") {
        let value = format!("=?base64?{inner}?=");
        let encoded = encode(&value);
        prop_assert_eq!(decode(&encoded), Ok(Cow::Borrowed(value.as_str())));
    }

    #[test]
    fn nothing_panics(header in any::<String>(), inner in "[A-Za-z0-9+/=?_-]{0,12}", number in "[-+0-9.eE]{0,12}") {
        let _ = decode(&header);
        let _ = decode(&format!("=?base64?{inner}?="));
        let _ = safe_integer(&number);
        let _ = same_number(&number, &header);
    }

    #[test]
    fn integers_agree_with_their_text(number in any::<i64>(), zeros in 0_usize..5) {
        let safe = (number.unsigned_abs() < 1 << 53).then_some(number);
        prop_assert_eq!(safe_integer(&number.to_string()), safe);
        let zeros = "0".repeat(zeros);
        let padded = format!("{number}.0{zeros}");
        prop_assert!(same_number(&padded, &number.to_string()));
        let shifted = format!("{number}{zeros}e-{}", zeros.len());
        prop_assert_eq!(same_number(&shifted, &number.to_string()), number != 0 || zeros.is_empty());
    }

    #[test]
    fn fractions_agree_with_integers(left in -999_i32..999, right in -999_i32..999, scale in 0_u32..4) {
        let scaled = format!("{left}e-{scale}");
        let equal = left * 10_i32.pow(3 - scale) == right * 10;
        prop_assert_eq!(same_number(&scaled, &format!("{right}e-2")), equal);
    }
}
