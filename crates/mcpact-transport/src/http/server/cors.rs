//! CORS headers for browsers.
//!
//! The guard has already checked the origin. Browser credentials such as cookies are not allowed: a page sends a token
//! in a header.

use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS,
    ACCESS_CONTROL_REQUEST_METHOD, ORIGIN, VARY,
};
use http::{HeaderMap, HeaderValue, Method};

const VERBS: HeaderValue = HeaderValue::from_static("POST, GET, DELETE");

/// Headers that a page may send, besides mirrored parameters. Tracing libraries add the headers of W3C Trace Context
/// and W3C Baggage.
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

/// Seconds for which a browser may cache a preflight response.
const REMEMBERED: HeaderValue = HeaderValue::from_static("600");

/// Returns whether a request is a CORS preflight.
pub(super) fn is_preflight(verb: &Method, headers: &HeaderMap) -> bool {
    verb == Method::OPTIONS
        && headers.contains_key(ORIGIN)
        && headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD)
}

/// Adds the headers for every response to an allowed origin.
pub(super) fn grant(origin: HeaderValue, response: &mut HeaderMap) {
    response.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    response.insert(ACCESS_CONTROL_EXPOSE_HEADERS, READ);
    response.append(VARY, HeaderValue::from_static("Origin"));
}

/// Adds the headers for a preflight response; `more` are additional headers of this server.
pub(super) fn permit(request: &HeaderMap, more: &[String], response: &mut HeaderMap) {
    response.insert(ACCESS_CONTROL_ALLOW_METHODS, VERBS);
    response.insert(ACCESS_CONTROL_MAX_AGE, REMEMBERED);
    let wanted = request
        .get(ACCESS_CONTROL_REQUEST_HEADERS)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    let mut sent = SENT.join(", ");
    for name in more {
        sent.push_str(", ");
        sent.push_str(name);
    }
    // Patterns are not possible, so requested parameter headers are listed by name.
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
        response.insert(ACCESS_CONTROL_ALLOW_HEADERS, value);
    }
}
