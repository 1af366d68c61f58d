//! What a status and an error say about the conversation, not about the call.

use mcpact_spec::{Era, ErrorCode};
use mcpact_transport::http::client::{Answer, AnswerBody};
use mcpact_wire::envelope::Envelope;
use mcpact_wire::model::error::ErrorBody;

use crate::upstream::mail::{Reply, Sorted, sort};

/// The error that an answer is, if it is one.
fn error_of<T>(answer: &Answer, read: impl FnOnce(&ErrorBody<'_>) -> T) -> Option<T> {
    let AnswerBody::Json(bytes) = &answer.body else {
        return None;
    };
    match sort(bytes) {
        Sorted::Reply(_, Reply::Error(raw)) => ErrorBody::parse(&raw).as_ref().map(read),
        Sorted::Reply(_, Reply::Result(_))
        | Sorted::Note(_)
        | Sorted::Ask(_)
        | Sorted::Nothing(_) => None,
    }
}

/// Whether the server says that it does not know the session: it has not looked at the request then.
///
/// `2025-11-25 basic/transports#session-management` wants 404. Servers after the example of the official
/// TypeScript SDK answer 400 with an error of their own that names the session.
pub(super) fn forgot_session(answer: &Answer) -> bool {
    let names_it = |error: &ErrorBody<'_>| error.code == -32000 && names(error, "session");
    match answer.status {
        404 => true,
        400 => error_of(answer, names_it).unwrap_or_default(),
        _ => false,
    }
}

/// Whether the server speaks another revision than was agreed, because another one has taken its place: it has
/// not looked at the request then.
///
/// `2026-07-28 basic/transports/streamable-http#backward-compatibility`: one that knows no requests without a
/// session wants one, or a handshake. Servers on the official TypeScript SDK say in words that they do not support
/// the version.
pub(super) fn disagrees(era: Era, answer: &Answer) -> bool {
    let refuses = |error: &ErrorBody<'_>| {
        let says_so = error.code == -32000 && names(error, "unsupported protocol version");
        let wants_session = || names(error, "session") || names(error, "initializ");
        match (answer.status, era) {
            _ if error.code == ErrorCode::UnsupportedVersion.code() => true,
            (400, _) if says_so => true,
            (400 | 404, Era::Modern) => wants_session(),
            _ => false,
        }
    };
    match answer.status {
        200..300 => false,
        _ => error_of(answer, refuses).unwrap_or_default(),
    }
}

/// Whether it may be so: a legacy server does not know the address or the method of a modern request, and says so
/// with a status alone. A modern one may say the same of what was called.
pub(super) fn may_disagree(era: Era, answer: &Answer) -> bool {
    let is_wordless = match &answer.body {
        AnswerBody::Json(bytes) => Envelope::parse(bytes).is_err(),
        AnswerBody::Empty | AnswerBody::Other(_) => true,
        AnswerBody::Events(_) => false,
    };
    era == Era::Modern && matches!(answer.status, 404 | 405) && is_wordless
}

fn names(error: &ErrorBody<'_>, word: &str) -> bool {
    error.message.to_ascii_lowercase().contains(word)
}

#[cfg(test)]
mod tests {
    use http::HeaderMap;

    use super::*;

    /// G9: a server that another revision has taken the place of is known by its refusal, in the words of every SDK;
    /// what is said about the call is not taken for it.
    #[test]
    fn another_server_is_known_by_its_refusal() {
        let (legacy, modern) = (Era::Legacy, Era::Modern);
        for (era, status, code, message, expected) in [
            (
                modern,
                400,
                -32000,
                "Bad Request: No valid session ID provided",
                true,
            ),
            (modern, 400, -32600, "Bad Request: Missing session ID", true),
            (
                modern,
                400,
                -32000,
                "Bad Request: Server not initialized",
                true,
            ),
            (modern, 404, -32001, "Session not found", true),
            (modern, 404, -32601, "Method not found", false),
            (modern, 400, -32602, "Invalid params", false),
            (modern, 200, -32000, "no session", false),
            (
                legacy,
                400,
                -32000,
                "Bad Request: Unsupported protocol version: 2025-11-25",
                true,
            ),
            (
                modern,
                400,
                -32000,
                "Bad Request: Unsupported protocol version (supported versions: 2025-11-25)",
                true,
            ),
            (
                legacy,
                400,
                ErrorCode::UnsupportedVersion.code(),
                "Unsupported",
                true,
            ),
            (legacy, 400, -32000, "Bad Request: no session", false),
        ] {
            let error = format!(r#"{{"code":{code},"message":"{message}"}}"#);
            let body = format!(r#"{{"jsonrpc":"2.0","id":null,"error":{error}}}"#);
            let answer = Answer {
                status,
                headers: HeaderMap::new(),
                body: AnswerBody::Json(body.into()),
            };
            assert_eq!(
                disagrees(era, &answer),
                expected,
                "{era:?} {status} {message}"
            );
        }
    }
}
