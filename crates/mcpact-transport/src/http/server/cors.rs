//! What a browser must be told before a page of another origin may call and read.
//!
//! The guard has judged the origin already. Credentials of the browser, such as cookies, are never
//! asked for: a token goes in a header that the page itself sets.

use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS,
    ACCESS_CONTROL_REQUEST_METHOD, ORIGIN, VARY,
};
use http::{HeaderMap, HeaderValue, Method};

const VERBS: HeaderValue = HeaderValue::from_static("POST, GET, DELETE");

/// Headers that a page may send; the mirrored parameters come on top. Those of W3C Trace Context and W3C Baggage are added by
/// whatever traces the page, without asking it.
const SENT: [&str; 12] = [
    "accept",
    "authorization",
    "baggage",
    "content-type",
    "last-event-id",
    "mcp-method",
    "mcp-name",
    "mcp-protocol-version",
    "mcp-session-id",
    "mcpact-key",
    "traceparent",
    "tracestate",
];

const PARAMETER: &str = "mcp-param-";

/// Headers that a page may read.
const READ: HeaderValue = HeaderValue::from_static("Mcp-Session-Id, WWW-Authenticate");

/// How many seconds a browser may remember the answer.
const REMEMBERED: HeaderValue = HeaderValue::from_static("600");

/// Whether a browser asks whether it may ask.
pub(super) fn is_preflight(verb: &Method, headers: &HeaderMap) -> bool {
    verb == Method::OPTIONS
        && headers.contains_key(ORIGIN)
        && headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD)
}

/// What goes with every answer to a page of an origin that was let in.
pub(super) fn grant(origin: HeaderValue, answer: &mut HeaderMap) {
    answer.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    answer.insert(ACCESS_CONTROL_EXPOSE_HEADERS, READ);
    answer.append(VARY, HeaderValue::from_static("Origin"));
}

/// What the answer to a preflight says besides; `more` are headers that the server has of its own.
pub(super) fn permit(request: &HeaderMap, more: &[String], answer: &mut HeaderMap) {
    answer.insert(ACCESS_CONTROL_ALLOW_METHODS, VERBS);
    answer.insert(ACCESS_CONTROL_MAX_AGE, REMEMBERED);
    let wanted = request
        .get(ACCESS_CONTROL_REQUEST_HEADERS)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    let mut sent = SENT.join(", ");
    for name in more {
        sent.push_str(", ");
        sent.push_str(name);
    }
    // There is no pattern for them, so those that are asked for are named.
    for name in wanted.split(',').map(str::trim) {
        let lower = name.to_ascii_lowercase();
        let is_token =
            |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        if lower.starts_with(PARAMETER) && lower.bytes().all(is_token) {
            sent.push_str(", ");
            sent.push_str(&lower);
        }
    }
    if let Ok(value) = HeaderValue::try_from(sent) {
        answer.insert(ACCESS_CONTROL_ALLOW_HEADERS, value);
    }
}
