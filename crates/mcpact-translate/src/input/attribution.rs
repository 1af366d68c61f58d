//! Attribution of a legacy server's question to a call.

use alloc::format;
use alloc::string::String;

use mcpact_engine::refusal::WireError;
use mcpact_spec::{ErrorCode, Method, Revision};

use crate::wire_error::wire_error;

/// Stream on which a server's request arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuestionSource<C> {
    /// On the response stream of one call.
    StreamOf(C, Method),
    /// On something that all calls share: a pipe, or a stream of the session.
    Shared,
}

/// The call or task that a server's request belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attribution<'t, C> {
    /// A call of a client that can be asked.
    Call(C),
    /// A task.
    Task(&'t str),
    /// Unknown yet: a queued call could be meant, so the question may be held for a moment.
    Hold,
    /// No client can be asked.
    None(AttributionFailure),
}

/// Reason why no client can be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttributionFailure {
    /// No call is open that could have caused it.
    NoCall,
    /// Several calls could have caused it, and asking the wrong one tells a secret.
    SeveralCalls,
    /// The call that caused it is of a method that cannot ask its client.
    CannotAsk(Method),
}

impl AttributionFailure {
    /// Error for the server.
    #[must_use]
    pub fn answer(self, upstream: Revision) -> WireError {
        let text: String = match self {
            Self::NoCall => "No request of the client is open that this could belong to".into(),
            Self::SeveralCalls => {
                "Several requests of the client are open that this could belong to".into()
            }
            Self::CannotAsk(method) => format!("The client cannot be asked during `{method}`"),
        };
        wire_error(ErrorCode::InvalidParams, text, upstream)
    }
}

/// Finds the call or task that a server's request belongs to.
///
/// `in_flight` are the open calls of the same session, `queued` is how many calls wait for their
/// turn on it.
pub fn attribute<'t, C: Copy>(
    arrival: QuestionSource<C>,
    related_task: Option<&'t str>,
    in_flight: impl IntoIterator<Item = (C, Method)>,
    queued: usize,
) -> Attribution<'t, C> {
    let task = related_task.map(Attribution::Task);
    match arrival {
        QuestionSource::StreamOf(call, method) if method.may_ask_for_input() => {
            Attribution::Call(call)
        }
        QuestionSource::StreamOf(_, method) => {
            task.unwrap_or(Attribution::None(AttributionFailure::CannotAsk(method)))
        }
        QuestionSource::Shared => task.unwrap_or_else(|| only_one(in_flight, queued)),
    }
}

fn only_one<'t, C: Copy>(
    in_flight: impl IntoIterator<Item = (C, Method)>,
    queued: usize,
) -> Attribution<'t, C> {
    let mut others = None;
    let mut candidates = in_flight.into_iter().filter_map(|(call, method)| {
        others = others.or((!method.may_ask_for_input()).then_some(method));
        method.may_ask_for_input().then_some(call)
    });
    match (candidates.next(), candidates.next()) {
        (Some(call), None) => Attribution::Call(call),
        (Some(_), Some(_)) => Attribution::None(AttributionFailure::SeveralCalls),
        (None, _) if queued > 0 => Attribution::Hold,
        (None, _) => Attribution::None(
            others.map_or(AttributionFailure::NoCall, AttributionFailure::CannotAsk),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Attribution::{Call, Hold, Task};

    const CALL: Method = Method::ToolsCall;
    const LIST: Method = Method::ToolsList;
    const RESULT: Method = Method::TasksResult;

    /// BB-13, BB-30: a question belongs to the one call that can have caused it, or to none.
    #[test]
    fn questions_find_their_call_or_none() {
        let stream = |call, method| QuestionSource::StreamOf(call, method);
        let none: &[(u8, Method)] = &[];
        let cells = [
            (
                "its stream",
                stream(1, CALL),
                None,
                &[(1, CALL), (2, CALL)][..],
                0,
                Call(1),
            ),
            (
                "its stream, a task too",
                stream(1, CALL),
                Some("t"),
                none,
                0,
                Call(1),
            ),
            (
                "the stream of a task",
                stream(1, RESULT),
                Some("t"),
                none,
                0,
                Task("t"),
            ),
            (
                "a list",
                stream(1, LIST),
                None,
                none,
                3,
                Attribution::None(AttributionFailure::CannotAsk(LIST)),
            ),
            (
                "a task",
                QuestionSource::Shared,
                Some("t"),
                &[(1, CALL)],
                0,
                Task("t"),
            ),
            (
                "the only call",
                QuestionSource::Shared,
                None,
                &[(1, LIST), (2, CALL)],
                0,
                Call(2),
            ),
            (
                "two calls",
                QuestionSource::Shared,
                None,
                &[(1, CALL), (2, CALL)],
                0,
                Attribution::None(AttributionFailure::SeveralCalls),
            ),
            (
                "only a list",
                QuestionSource::Shared,
                None,
                &[(1, LIST)],
                0,
                Attribution::None(AttributionFailure::CannotAsk(LIST)),
            ),
            (
                "a call to come",
                QuestionSource::Shared,
                None,
                &[(1, LIST)],
                1,
                Hold,
            ),
            (
                "nothing",
                QuestionSource::Shared,
                None,
                none,
                0,
                Attribution::None(AttributionFailure::NoCall),
            ),
        ];
        for (name, arrival, task, in_flight, queued, expected) in cells {
            let found = attribute(arrival, task, in_flight.iter().copied(), queued);
            assert_eq!(found, expected, "{name}");
        }
        for orphan in [
            AttributionFailure::NoCall,
            AttributionFailure::SeveralCalls,
            AttributionFailure::CannotAsk(LIST),
        ] {
            assert_eq!(orphan.answer(Revision::V2025_06_18).code, -32602);
        }
    }
}
