//! A modern server's task that is followed here, for a client that waits for its call.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::String;
use core::time::Duration;

use mcpact_spec::ErrorCode;
use mcpact_wire::raw::{Object, ObjectWriter};

use super::{SHORTEST, Status};
use crate::input::Outcome;
use crate::wire_error::modern_error;

/// Default polling interval.
const POLL: Duration = Duration::from_secs(1);

/// The longest pause that is made because a server says so.
const LONGEST: Duration = Duration::from_secs(60);

/// In how many looks in a row a question stands that was answered before it counts as asked again: what a
/// server tells may be a moment old.
const LOOKS: u32 = 3;

/// A task that a call has become.
///
/// ```text
/// Poll --> Poll | Ask | End
///           ^      |
///           +------+ what was asked is answered by `tasks/update`
/// ```
#[derive(Clone, Debug)]
pub struct FollowedTask {
    id: Box<str>,
    /// Every key that was asked, and in how many looks it has stood since: it means one question for as long as
    /// the task lives, which stands until the server has an answer that it takes.
    asked: BTreeMap<Box<str>, u32>,
    most: usize,
    interval: Duration,
}

/// Next step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Ask the server for the task after this pause.
    Poll(Duration),
    /// The server asks, in the words of a result that asks: answer with `tasks/update`, and go on.
    Ask(String),
    /// The same, and some of it was answered before: the server did not take the answer.
    AskAgain(String),
    /// The task is over, with this in the words of its server.
    End(Outcome),
}

impl FollowedTask {
    /// The task in a server's result; it may ask at most so many questions.
    #[must_use]
    pub fn new(result: &str, most: usize) -> Option<Self> {
        let seed = Object::parse(result).ok()?;
        let mut task = Self {
            id: Box::from(seed.get_str("taskId")?.as_ref()),
            asked: BTreeMap::new(),
            most,
            interval: POLL,
        };
        task.follow(&seed);
        Some(task)
    }

    /// The server's name for it.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Pause before the next poll.
    #[must_use]
    pub const fn pause(&self) -> Duration {
        self.interval
    }

    fn follow(&mut self, seen: &Object<'_>) {
        let interval = seen.get("pollIntervalMs").and_then(|raw| raw.parse().ok());
        if let Some(interval) = interval.map(Duration::from_millis) {
            self.interval = interval.clamp(SHORTEST, LONGEST);
        }
    }

    /// The server said where its task stands.
    pub fn status(&mut self, detailed: &str) -> Step {
        let seen = Object::parse(detailed).unwrap_or_default();
        self.follow(&seen);
        let status = seen.get_str("status").and_then(|word| Status::parse(&word));
        match status {
            Some(Status::Working) => {
                self.gone(&Object::default());
                Step::Poll(self.interval)
            }
            Some(Status::InputRequired) => self.ask(seen.get("inputRequests").unwrap_or("{}")),
            Some(Status::Completed) => match seen.get("result") {
                Some(result) => Step::End(Outcome::Result(String::from(result))),
                None => failed("the server completed the task without a result"),
            },
            Some(Status::Failed) => match seen.get("error") {
                Some(error) => Step::End(Outcome::Error(String::from(error))),
                None => failed("the task failed"),
            },
            Some(Status::Cancelled) => failed("the task was cancelled"),
            None => failed("the server's task has no status"),
        }
    }

    /// Marks questions that are gone as answered; they are new if they come back.
    fn gone(&mut self, standing: &Object<'_>) {
        for (key, looks) in &mut self.asked {
            if standing.get(key).is_none() {
                *looks = LOOKS;
            }
        }
    }

    fn ask(&mut self, requests: &str) -> Step {
        let requests = Object::parse(requests).unwrap_or_default();
        self.gone(&requests);
        let mut due = ObjectWriter::new();
        let (mut is_new, mut is_again) = (false, false);
        for (key, raw) in requests.iter() {
            match self.asked.get_mut(key) {
                Some(looks) if *looks + 1 < LOOKS => {
                    *looks += 1;
                    continue;
                }
                Some(looks) => {
                    *looks = 0;
                    is_again = true;
                }
                None => {
                    self.asked.insert(Box::from(key), 0);
                    is_new = true;
                }
            }
            due = due.raw(key, raw);
        }
        if self.asked.len() > self.most {
            return failed("the task asks too many questions");
        }
        if !is_new && !is_again {
            return Step::Poll(self.interval);
        }
        let round = ObjectWriter::new()
            .text("resultType", Status::InputRequired.as_str())
            .raw("inputRequests", &due.finish())
            .finish();
        match is_again {
            true => Step::AskAgain(round),
            false => Step::Ask(round),
        }
    }
}

fn failed(why: &str) -> Step {
    let error = modern_error(ErrorCode::InternalError, why);
    Step::End(Outcome::Error(error.encode()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEED: &str =
        r#"{"resultType":"task","taskId":"t","status":"working","pollIntervalMs":1}"#;

    #[test]
    fn a_task_is_followed_to_its_end() {
        let ask =
            r#"{"resultType":"input_required","inputRequests":{"b":{"method":"roots/list"}}}"#;
        let cells = [
            (
                "the interval has a minimum",
                r#"{"status":"working"}"#,
                Step::Poll(SHORTEST),
            ),
            (
                "nor too seldom",
                r#"{"status":"working","pollIntervalMs":900000}"#,
                Step::Poll(LONGEST),
            ),
            (
                "a question",
                r#"{"status":"input_required","inputRequests":{"b":{"method":"roots/list"}}}"#,
                Step::Ask(String::from(ask)),
            ),
            (
                "the same question",
                r#"{"status":"input_required","inputRequests":{"b":{"method":"roots/list"}}}"#,
                Step::Poll(LONGEST),
            ),
            (
                "which may be a moment old",
                r#"{"status":"input_required","inputRequests":{"b":{"method":"roots/list"}}}"#,
                Step::Poll(LONGEST),
            ),
            (
                "and stands again",
                r#"{"status":"input_required","inputRequests":{"b":{"method":"roots/list"}}}"#,
                Step::AskAgain(String::from(ask)),
            ),
            (
                "an answer that is taken",
                r#"{"status":"working"}"#,
                Step::Poll(LONGEST),
            ),
            (
                "a question that comes back",
                r#"{"status":"input_required","inputRequests":{"b":{"method":"roots/list"}}}"#,
                Step::AskAgain(String::from(ask)),
            ),
            (
                "the end",
                r#"{"status":"completed","result":{"content":[]}}"#,
                Step::End(Outcome::Result(String::from(r#"{"content":[]}"#))),
            ),
            (
                "a bad end",
                r#"{"status":"failed","error":{"code":-1,"message":"m"}}"#,
                Step::End(Outcome::Error(String::from(r#"{"code":-1,"message":"m"}"#))),
            ),
        ];
        let mut task = FollowedTask::new(SEED, 1).unwrap();
        assert_eq!((task.id(), task.pause()), ("t", SHORTEST));
        for (name, detailed, expected) in cells {
            assert_eq!(task.status(detailed), expected, "{name}");
        }
        let more = r#"{"status":"input_required","inputRequests":{"c":{}}}"#;
        for odd in [
            more,
            "{}",
            r#"{"status":"completed"}"#,
            r#"{"status":"cancelled"}"#,
        ] {
            let step = task.status(odd);
            assert!(matches!(step, Step::End(Outcome::Error(_))), "{odd}");
        }
        assert!(FollowedTask::new(r#"{"content":[]}"#, 1).is_none());
    }
}
