//! Values of the headers `Mcp-Name` and `Mcp-Param-*`.
//!
//! `2026-07-28 basic/transports/streamable-http#value-encoding`: a value that is not safe as plain
//! ASCII travels as `=?base64?…?=`. Parameters are turned into text first: a string is its own text,
//! a boolean is the JSON token `true` or `false`, an integer is the decimal form of
//! [`safe_integer`].

mod decimal;
#[cfg(test)]
mod tests;

use alloc::{borrow::Cow, string::String};

use base64::{Engine as _, engine::general_purpose::STANDARD};

use self::decimal::Decimal;

const PREFIX: &str = "=?base64?";
const SUFFIX: &str = "?=";

/// The largest integer that JavaScript represents exactly, 2^53 - 1.
const MAX_SAFE_INTEGER: u64 = (1 << 53) - 1;

/// Reason why a header value is invalid; on the wire this is a header mismatch.
///
/// `2026-07-28 basic/transports/streamable-http#server-validation`
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeaderValueError {
    /// A byte that is neither visible ASCII nor space nor tab.
    #[error("header value contains a character that is not visible ASCII")]
    InvalidCharacter,
    /// The sentinel is there, but what it wraps is not canonical standard Base64.
    #[error("header value is not valid Base64 between its markers")]
    InvalidBase64,
    /// The sentinel wraps bytes that are not text.
    #[error("header value does not decode to UTF-8")]
    InvalidUtf8(#[source] core::str::Utf8Error),
}

/// The form of a text that is safe in a header and that [`decode`] turns back.
#[must_use]
pub fn encode(value: &str) -> Cow<'_, str> {
    if is_plain(value) {
        return Cow::Borrowed(value);
    }
    let mut encoded = String::from(PREFIX);
    STANDARD.encode_string(value, &mut encoded);
    encoded.push_str(SUFFIX);
    Cow::Owned(encoded)
}

/// The text that a header value stands for.
///
/// Whitespace around the value is not part of it. The markers are case-sensitive; a value that lacks
/// one of them is literal.
///
/// # Errors
///
/// Bytes that a header must not carry, and a sentinel around anything but Base64 of UTF-8.
pub fn decode(value: &str) -> Result<Cow<'_, str>, HeaderValueError> {
    let is_fit = |byte| matches!(byte, b'\t' | b' '..=b'~');
    // Values are short: looking at all of it at once is less work than stopping early.
    if !value.bytes().fold(true, |all, byte| all & is_fit(byte)) {
        return Err(HeaderValueError::InvalidCharacter);
    }
    // Of what is left, these two are what ASCII calls white space.
    let value = value.trim_ascii();
    if !is_sentinel(value) {
        return Ok(Cow::Borrowed(value));
    }
    // `=?base64?=` has both markers but they overlap: there is nothing to decode.
    let payload = value
        .strip_prefix(PREFIX)
        .and_then(|rest| rest.strip_suffix(SUFFIX))
        .ok_or(HeaderValueError::InvalidBase64)?;
    let bytes = STANDARD
        .decode(payload)
        .map_err(|_| HeaderValueError::InvalidBase64)?;
    String::from_utf8(bytes)
        .map(Cow::Owned)
        .map_err(|error| HeaderValueError::InvalidUtf8(error.utf8_error()))
}

/// Returns whether two JSON numbers have the same value, so that `42` equals `42.0`.
///
/// `2026-07-28 basic/transports/streamable-http#server-validation`. Nothing is rounded; a text that
/// is not a JSON number, or has an exponent of more than 32 bits, equals nothing.
#[must_use]
pub fn same_number(header: &str, body: &str) -> bool {
    match (Decimal::parse(header), Decimal::parse(body)) {
        (Some(header), Some(body)) => header == body,
        (Some(_), None) | (None, _) => false,
    }
}

/// The integer that a JSON number stands for, if a header may carry it.
///
/// `2026-07-28 basic/transports/streamable-http#schema-extension` allows -2^53+1 to 2^53-1. Its
/// decimal form is the text of the header: `4.2e1` and `42.0` are both `42`.
#[must_use]
pub fn safe_integer(number: &str) -> Option<i64> {
    let number = Decimal::parse(number)?;
    let magnitude = number
        .magnitude()
        .filter(|&magnitude| magnitude <= MAX_SAFE_INTEGER)?;
    let magnitude = i64::try_from(magnitude).ok()?;
    Some(if number.is_negative() {
        -magnitude
    } else {
        magnitude
    })
}

/// Returns whether a value survives as it is.
///
/// The empty value does not: some intermediaries drop empty headers. A tab does not either: it is
/// allowed inside a header value, but it is a control character, which the page wants encoded.
fn is_plain(value: &str) -> bool {
    let visible = value.bytes().all(|byte| matches!(byte, b' '..=b'~'));
    let padded = value.starts_with(' ') || value.ends_with(' ');
    visible && !padded && !value.is_empty() && !is_sentinel(value)
}

fn is_sentinel(value: &str) -> bool {
    value.starts_with(PREFIX) && value.ends_with(SUFFIX)
}
