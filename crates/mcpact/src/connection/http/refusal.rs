//! Refusals that concern the session or the negotiated revision rather than the call.

use bytestring::ByteString;
use mcpact_spec::{Era, ErrorCode};
use mcpact_transport::http::client::{ClientResponse, ClientResponseBody};
use mcpact_wire::envelope::Envelope;
use mcpact_wire::model::error::ErrorBody;

use crate::connection::inbox::{AmbiguousRefusal, Incoming, ServerResponse, parse};

/// Returns the raw error of a response.
pub(super) fn raw_error(answer: &ClientResponse) -> Option<ByteString> {
    let ClientResponseBody::Json(bytes) = &answer.body else {
        return None;
    };
    match parse(bytes, None) {
        Incoming::Response(_, ServerResponse::Error(raw)) => Some(raw),
        Incoming::Response(_, ServerResponse::Result(_))
        | Incoming::Notification(_)
        | Incoming::Request(_)
        | Incoming::Handled
        | Incoming::Invalid(_) => None,
    }
}

fn error_of<T>(answer: &ClientResponse, read: impl FnOnce(&ErrorBody<'_>) -> T) -> Option<T> {
    ErrorBody::parse(&raw_error(answer)?).as_ref().map(read)
}

/// Returns true if the server does not know the session, so it did not process the request.
///
/// `2025-11-25 basic/transports#session-management` requires 404. Servers modelled on the official TypeScript SDK answer
/// 400 with a custom error that names the session.
pub(super) fn session_unknown(answer: &ClientResponse) -> bool {
    let names_it = |error: &ErrorBody<'_>| error.code == -32000 && names(error, "session");
    match answer.status {
        404 => true,
        400 => error_of(answer, names_it).unwrap_or_default(),
        _ => false,
    }
}

/// Returns true if the server rejects the negotiated revision, so it did not process the request. It was replaced by
/// another server.
///
/// The official TypeScript SDK reports the unsupported version in the message only.
pub(super) fn rejects_revision(answer: &ClientResponse) -> bool {
    let refuses = |error: &ErrorBody<'_>| {
        let says_so = error.code == -32000 && names(error, "unsupported protocol version");
        error.code == ErrorCode::UnsupportedVersion.code() || (answer.status == 400 && says_so)
    };
    match answer.status {
        200..300 => false,
        _ => error_of(answer, refuses).unwrap_or_default(),
    }
}

/// Returns a refusal that may mean the same. A legacy server answers a modern request with a bare status, or demands a
/// session or `initialize`; a modern server may do so because of the call.
///
/// `2026-07-28 basic/transports/streamable-http#backward-compatibility`
pub(super) fn may_reject_revision(era: Era, answer: &ClientResponse) -> Option<AmbiguousRefusal> {
    let is_bare = match &answer.body {
        ClientResponseBody::Json(bytes) => Envelope::parse(bytes).is_err(),
        ClientResponseBody::Empty | ClientResponseBody::Other(_) => true,
        ClientResponseBody::Events(_) => false,
    };
    let status = answer.status;
    match (era, status) {
        (Era::Modern, 404 | 405) if is_bare => Some(AmbiguousRefusal {
            status,
            error: None,
        }),
        (Era::Modern, 400 | 404) if error_of(answer, wants_session) == Some(true) => {
            Some(AmbiguousRefusal {
                status,
                error: raw_error(answer),
            })
        }
        _ => None,
    }
}

/// Returns true if an error demands a session or `initialize`, with a code that legacy servers can send.
fn wants_session(error: &ErrorBody<'_>) -> bool {
    let is_modern = ErrorCode::parse(error.code).is_some_and(ErrorCode::proves_modern);
    !is_modern && (names(error, "session") || names(error, "initializ"))
}

fn names(error: &ErrorBody<'_>, word: &str) -> bool {
    error.message.to_ascii_lowercase().contains(word)
}

#[cfg(test)]
mod tests {
    use http::HeaderMap;

    use super::*;

    /// Meaning of a refusal.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Meaning {
        Rejected,
        Ambiguous,
        Unrelated,
    }

    /// Refusals of several SDKs. An ambiguous refusal keeps the error of the server.
    #[test]
    fn replaced_server_is_recognised_by_its_refusal() {
        use Meaning::{Ambiguous, Rejected, Unrelated};
        let (legacy, modern) = (Era::Legacy, Era::Modern);
        let version = ErrorCode::UnsupportedVersion.code();
        let header = ErrorCode::HeaderMismatch.code();
        let in_message =
            "Bad Request: Unsupported protocol version (supported versions: 2025-11-25)";
        let no_session = "Bad Request: No valid session ID provided";
        let not_ready = "Bad Request: Server not initialized";
        for (era, status, code, message, expected) in [
            (modern, 400, -32000, no_session, Ambiguous),
            (modern, 400, -32600, "Missing session ID", Ambiguous),
            (modern, 400, -32000, not_ready, Ambiguous),
            (modern, 404, -32001, "Session not found", Ambiguous),
            (modern, 404, -32601, "Method not found", Unrelated),
            (modern, 400, -32602, "Invalid params", Unrelated),
            (modern, 200, -32000, "no session", Unrelated),
            (modern, 400, header, "no session in it", Unrelated),
            (legacy, 400, -32000, in_message, Rejected),
            (modern, 400, -32000, in_message, Rejected),
            (legacy, 400, version, "Unsupported", Rejected),
            (modern, 400, version, "no session", Rejected),
            (legacy, 400, -32000, no_session, Unrelated),
        ] {
            let error = format!(r#"{{"code":{code},"message":"{message}"}}"#);
            let body = format!(r#"{{"jsonrpc":"2.0","id":null,"error":{error}}}"#);
            let answer = ClientResponse {
                status,
                headers: HeaderMap::new(),
                body: ClientResponseBody::Json(body.into()),
            };
            let refusal = may_reject_revision(era, &answer);
            let meaning = match (rejects_revision(&answer), &refusal) {
                (true, _) => Rejected,
                (false, Some(_)) => Ambiguous,
                (false, None) => Unrelated,
            };
            assert_eq!(meaning, expected, "{era:?} {status} {message}");
            let kept = refusal.and_then(|refusal| refusal.error);
            assert!(kept.is_none_or(|kept| kept == error), "{message}");
        }
    }
}
