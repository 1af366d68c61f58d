//! What a status and an error say about the conversation, not about the call.

use mcpact_spec::{Era, ErrorCode};
use mcpact_transport::http::client::{Answer, AnswerBody};
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
/// session wants one, or a handshake, or does not know the address at all.
pub(super) fn disagrees(era: Era, answer: &Answer) -> bool {
    let refuses = |error: &ErrorBody<'_>| {
        let wants_session = || names(error, "session") || names(error, "initializ");
        error.code == ErrorCode::UnsupportedVersion.code()
            || (era == Era::Modern && answer.status == 400 && wants_session())
    };
    match (answer.status, era) {
        (200..300, _) => false,
        (404 | 405, Era::Modern) if !matches!(answer.body, AnswerBody::Json(_)) => true,
        (_, _) => error_of(answer, refuses).unwrap_or_default(),
    }
}

fn names(error: &ErrorBody<'_>, word: &str) -> bool {
    error.message.to_ascii_lowercase().contains(word)
}
