//! What a status and an error say about the conversation, not about the call.

use bytestring::ByteString;
use mcpact_spec::{Era, ErrorCode};
use mcpact_transport::http::client::{Answer, AnswerBody};
use mcpact_wire::envelope::Envelope;
use mcpact_wire::model::error::ErrorBody;

use crate::upstream::mail::{Doubt, Reply, Sorted, sort};

/// The raw error that an answer is, if it is one.
fn raw_error(answer: &Answer) -> Option<ByteString> {
    let AnswerBody::Json(bytes) = &answer.body else {
        return None;
    };
    match sort(bytes) {
        Sorted::Reply(_, Reply::Error(raw)) => Some(raw),
        Sorted::Reply(_, Reply::Result(_))
        | Sorted::Note(_)
        | Sorted::Ask(_)
        | Sorted::Nothing(_) => None,
    }
}

fn error_of<T>(answer: &Answer, read: impl FnOnce(&ErrorBody<'_>) -> T) -> Option<T> {
    ErrorBody::parse(&raw_error(answer)?).as_ref().map(read)
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
/// Servers on the official TypeScript SDK say in words that they do not support the version.
pub(super) fn disagrees(answer: &Answer) -> bool {
    let refuses = |error: &ErrorBody<'_>| {
        let says_so = error.code == -32000 && names(error, "unsupported protocol version");
        error.code == ErrorCode::UnsupportedVersion.code() || (answer.status == 400 && says_so)
    };
    match answer.status {
        200..300 => false,
        _ => error_of(answer, refuses).unwrap_or_default(),
    }
}

/// Whether it may be so, and what was said then: a legacy server does not know the address or the method of a modern
/// request, and says so with a status alone, or wants a session or a handshake. A modern one may say the same of what
/// was called.
///
/// `2026-07-28 basic/transports/streamable-http#backward-compatibility`
pub(super) fn may_disagree(era: Era, answer: &Answer) -> Option<Doubt> {
    let is_wordless = match &answer.body {
        AnswerBody::Json(bytes) => Envelope::parse(bytes).is_err(),
        AnswerBody::Empty | AnswerBody::Other(_) => true,
        AnswerBody::Events(_) => false,
    };
    let status = answer.status;
    match (era, status) {
        (Era::Modern, 404 | 405) if is_wordless => Some(Doubt {
            status,
            error: None,
        }),
        (Era::Modern, 400 | 404) if error_of(answer, wants_session) == Some(true) => Some(Doubt {
            status,
            error: raw_error(answer),
        }),
        _ => None,
    }
}

/// Whether an error names what only legacy servers have, in a code that they can send.
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

    /// What is made of a refusal.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Made {
        Certainty,
        Doubt,
        Nothing,
    }

    /// A server that another revision has taken the place of is known by its refusal, in the words of every SDK;
    /// where a server may say the same of a call, it is in doubt, and what was said is kept.
    #[test]
    fn another_server_is_known_by_its_refusal() {
        let (legacy, modern) = (Era::Legacy, Era::Modern);
        let version = ErrorCode::UnsupportedVersion.code();
        let header = ErrorCode::HeaderMismatch.code();
        let by_words = "Bad Request: Unsupported protocol version (supported versions: 2025-11-25)";
        let no_session = "Bad Request: No valid session ID provided";
        let not_ready = "Bad Request: Server not initialized";
        for (era, status, code, message, expected) in [
            (modern, 400, -32000, no_session, Made::Doubt),
            (modern, 400, -32600, "Missing session ID", Made::Doubt),
            (modern, 400, -32000, not_ready, Made::Doubt),
            (modern, 404, -32001, "Session not found", Made::Doubt),
            (modern, 404, -32601, "Method not found", Made::Nothing),
            (modern, 400, -32602, "Invalid params", Made::Nothing),
            (modern, 200, -32000, "no session", Made::Nothing),
            (modern, 400, header, "no session in it", Made::Nothing),
            (legacy, 400, -32000, by_words, Made::Certainty),
            (modern, 400, -32000, by_words, Made::Certainty),
            (legacy, 400, version, "Unsupported", Made::Certainty),
            (modern, 400, version, "no session", Made::Certainty),
            (legacy, 400, -32000, no_session, Made::Nothing),
        ] {
            let error = format!(r#"{{"code":{code},"message":"{message}"}}"#);
            let body = format!(r#"{{"jsonrpc":"2.0","id":null,"error":{error}}}"#);
            let answer = Answer {
                status,
                headers: HeaderMap::new(),
                body: AnswerBody::Json(body.into()),
            };
            let doubt = may_disagree(era, &answer);
            let made = match (disagrees(&answer), &doubt) {
                (true, _) => Made::Certainty,
                (false, Some(_)) => Made::Doubt,
                (false, None) => Made::Nothing,
            };
            assert_eq!(made, expected, "{era:?} {status} {message}");
            let kept = doubt.and_then(|doubt| doubt.error);
            assert!(kept.is_none_or(|kept| kept == error), "{message}");
        }
    }
}
