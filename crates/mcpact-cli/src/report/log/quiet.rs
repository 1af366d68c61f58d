//! Log for people: one line per server and state change, with its cause and a hint. Repeats are counted.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::time::{Duration, Instant};

use mcpact::log::{CHILD, MESSAGES, NEGOTIATION, event, field};
use std::sync::{Mutex, PoisonError};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

use super::super::layout::in_one_line;
use super::super::style::{Tone, for_stream};
use super::super::{eprint, hint_line};

/// Maximum number of servers and messages to remember.
const MAX_SUBJECTS: usize = 256;

/// Maximum number of causes to remember per server or message.
const MAX_CAUSES: usize = 8;

/// Time after which a repeat is printed again, if the server works meanwhile.
const FORGET: Duration = Duration::from_secs(60);

/// Maximum length of a cause in characters.
const MAX_CAUSE: usize = 400;

/// Fields that are no cause.
const IGNORED_FIELDS: [&str; 8] = [
    "event",
    "server",
    "instance",
    "state",
    "duration_ms",
    "trace_id",
    "peer",
    "advice",
];

/// Layer that prints what changes.
#[derive(Debug)]
pub(super) struct QuietLayer {
    log: Mutex<QuietLog>,
    start: Instant,
}

impl QuietLayer {
    pub(super) fn new() -> Self {
        Self {
            log: Mutex::default(),
            start: Instant::now(),
        }
    }
}

impl<S: Subscriber> Layer<S> for QuietLayer {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let record = Record::of(event);
        let now = self.start.elapsed();
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(text) = log.line(&record, now) {
            eprint(&for_stream(text, &std::io::stderr()));
        }
    }
}

/// A log event.
#[derive(Debug)]
struct Record {
    level: Level,
    target: &'static str,
    fields: Vec<(&'static str, String)>,
}

impl Visit for Record {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.fields.push((field.name(), value.to_owned()));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.fields.push((field.name(), format!("{value:?}")));
    }
}

impl Record {
    fn of(event: &Event<'_>) -> Self {
        let metadata = event.metadata();
        let mut record = Self {
            level: *metadata.level(),
            target: metadata.target(),
            fields: Vec::new(),
        };
        event.record(&mut record);
        record
    }

    fn field(&self, name: &str) -> Option<&str> {
        let mut fields = self.fields.iter();
        let (_, text) = fields.find(|(field, _)| *field == name)?;
        (!text.is_empty()).then_some(text)
    }

    /// Returns true for details that another event or `mcpact logs` reports.
    fn is_detail(&self) -> bool {
        let is = |name, text| self.field(name) == Some(text);
        let is_refused = is(field::SIDE, "client") && is(field::OUTCOME, "refused");
        (is_refused && self.target == NEGOTIATION) || [CHILD, MESSAGES].contains(&self.target)
    }

    /// Returns the cause, or else the remaining fields.
    fn cause(&self) -> String {
        let known = ["error", "why", field::IGNORED, "outcome"];
        if let Some(text) = known.iter().find_map(|name| self.field(name)) {
            return text.split("; hint: ").next().unwrap_or(text).to_owned();
        }
        let others = self.fields.iter();
        let others =
            others.filter(|(name, _)| *name != "message" && !IGNORED_FIELDS.contains(name));
        let others: Vec<String> = others
            .map(|(name, text)| format!("{name}={text}"))
            .collect();
        others.join(", ")
    }

    fn advice(&self) -> Option<&str> {
        let hint = || Some(self.field("error")?.split_once("; hint: ")?.1);
        self.field("advice").or_else(hint)
    }
}

/// Reported failures of a server, or repeats of a message.
#[derive(Debug, Default)]
struct Subject {
    /// Causes that were printed, the latest last.
    causes: Vec<String>,
    /// Number of failures since then.
    count: usize,
    last: Duration,
    /// The server has failed and was not started since.
    is_down: bool,
    /// The last failure was printed, and so is the next start.
    is_announced: bool,
}

/// What was printed.
#[derive(Debug, Default)]
struct QuietLog {
    subjects: BTreeMap<String, Subject>,
}

impl QuietLog {
    /// Returns what to print for an event, if anything.
    fn line(&mut self, record: &Record, now: Duration) -> Option<String> {
        let server = record.field("server").map(|name| name.trim_matches('`'));
        let kind = record.field("event");
        if record.level > Level::WARN {
            let has_started = matches!(kind, Some(event::START_SUCCESS | "reached"));
            return self.started(server.filter(|_| has_started)?);
        }
        if record.is_detail() {
            return None;
        }
        let message = record.field("message").unwrap_or_default();
        let key = server.unwrap_or(message);
        if self.subjects.len() >= MAX_SUBJECTS && !self.subjects.contains_key(key) {
            self.subjects.clear();
        }
        let subject = self.subjects.entry(key.to_owned()).or_default();
        if subject.is_down && kind == Some(event::ROUTE_ERROR) {
            // A consequence of the failure.
            return None;
        }
        if !subject.is_down && now.saturating_sub(subject.last) > FORGET {
            *subject = Subject::default();
        }
        subject.last = now;
        subject.is_down |= matches!(
            kind,
            Some(event::START_FAILURE | event::INITIALIZE_FAILURE | event::STOP_FAILURE)
        );
        subject.count += 1;
        let cause = record.cause();
        let what = match server {
            None => message.to_owned(),
            Some(server) => match message.strip_prefix("server ") {
                Some(rest) => format!("`{server}` {rest}"),
                None => format!("`{server}`: {message}"),
            },
        };
        if subject.causes.contains(&cause) {
            let count = subject.count;
            let logs = match server {
                Some(server) => format!("mcpact logs {server}"),
                None => String::from("mcpact logs"),
            };
            let text = format!("{what}, {count} times so far; `{logs}` shows each");
            return is_power_of_ten(count).then(|| warning(&text, None));
        }
        if subject.causes.len() >= MAX_CAUSES {
            subject.causes.remove(0);
        }
        let text = match cause.as_str() {
            "" => what,
            cause => format!("{what}: {}", shortened(cause)),
        };
        subject.causes.push(cause);
        subject.is_announced = subject.is_down;
        Some(warning(&text, record.advice()))
    }

    fn started(&mut self, server: &str) -> Option<String> {
        let subject = self.subjects.get_mut(server)?;
        subject.is_down = false;
        let is_announced = std::mem::take(&mut subject.is_announced);
        is_announced.then(|| {
            format!(
                "{}\n",
                Tone::Good.paint(&format!("`{server}` is ready again"))
            )
        })
    }
}

const fn is_power_of_ten(mut number: usize) -> bool {
    while number >= 10 && number.is_multiple_of(10) {
        number /= 10;
    }
    number == 1
}

/// Cuts a long cause at its end, where the stderr is oldest.
fn shortened(cause: &str) -> String {
    let cause = in_one_line(cause);
    match cause.char_indices().nth(MAX_CAUSE) {
        None => cause,
        Some((end, _)) => format!("{}…", &cause[..end]),
    }
}

fn warning(text: &str, hint: Option<&str>) -> String {
    let warning = Tone::Name.paint("warning:");
    let hint = hint.map(|hint| hint_line(&in_one_line(hint)));
    format!(
        "{warning} {}\n{}",
        in_one_line(text),
        hint.unwrap_or_default()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(level: Level, fields: &[(&'static str, &str)]) -> Record {
        let fields = fields.iter();
        Record {
            level,
            target: "mcpact_gateway::supervisor::events",
            fields: fields
                .map(|(name, text)| (*name, (*text).to_owned()))
                .collect(),
        }
    }

    fn failure(cause: &str) -> Record {
        record(
            Level::WARN,
            &[
                ("message", "server failed to start"),
                ("event", "start_failure"),
                ("server", "crash"),
                ("instance", "1"),
                ("error", cause),
                ("advice", "set the key"),
            ],
        )
    }

    fn unavailable() -> Record {
        record(
            Level::WARN,
            &[
                ("message", "server unavailable"),
                ("event", "route_error"),
                ("server", "`crash`"),
                ("error", "it exited; hint: set the key"),
            ],
        )
    }

    fn start() -> Record {
        record(
            Level::INFO,
            &[
                ("message", "server started"),
                ("event", "start_success"),
                ("server", "crash"),
            ],
        )
    }

    fn printed(log: &mut QuietLog, record: &Record, seconds: u64) -> Option<String> {
        let text = log.line(record, Duration::from_secs(seconds))?;
        Some(for_stream(text, &Vec::new()))
    }

    const FAILED: &str = "warning: `crash` failed to start: it exited\n  hint: set the key\n";

    #[test]
    fn repeats_and_consequences_are_counted_but_not_printed() {
        let mut log = QuietLog::default();
        assert_eq!(printed(&mut log, &failure("it exited"), 0).unwrap(), FAILED);
        assert_eq!(printed(&mut log, &unavailable(), 0), None);
        let lines = (2..=99).filter_map(|second| printed(&mut log, &failure("it exited"), second));
        let lines: Vec<String> = lines.collect();
        assert_eq!(
            lines,
            ["warning: `crash` failed to start, 10 times so far; `mcpact logs crash` shows each\n"]
        );
        let other = printed(&mut log, &failure("no\nkey"), 100).unwrap();
        assert!(other.contains("failed to start: no | key\n"), "{other}");
    }

    #[test]
    fn start_after_a_printed_failure_is_printed() {
        let mut log = QuietLog::default();
        assert_eq!(printed(&mut log, &start(), 0), None, "first start");
        assert!(printed(&mut log, &failure("it exited"), 1).is_some());
        let ready = printed(&mut log, &start(), 2);
        assert_eq!(ready.as_deref(), Some("`crash` is ready again\n"));
        // A server that starts and fails in turn.
        for second in 3..8 {
            assert_eq!(printed(&mut log, &failure("it exited"), second), None);
            assert_eq!(printed(&mut log, &start(), second), None);
        }
        let late = printed(&mut log, &failure("it exited"), 100);
        assert_eq!(late.as_deref(), Some(FAILED));
    }

    #[test]
    fn refusal_of_a_working_server_is_printed_once() {
        let mut log = QuietLog::default();
        let line = printed(&mut log, &unavailable(), 0).unwrap();
        assert_eq!(
            line,
            "warning: `crash` unavailable: it exited\n  hint: set the key\n"
        );
        assert_eq!(printed(&mut log, &unavailable(), 1), None);
    }

    #[test]
    fn message_of_the_gateway_shows_its_fields() {
        let mut log = QuietLog::default();
        let fields = [
            ("message", "config needs a restart"),
            ("keys", "listen\u{7}"),
        ];
        let line = printed(&mut log, &record(Level::WARN, &fields), 0).unwrap();
        assert_eq!(line, "warning: config needs a restart: keys=listen\\u{7}\n");
        let mut noise = record(Level::ERROR, &fields);
        noise.target = MESSAGES;
        assert_eq!(printed(&mut log, &noise, 0), None);
        assert!(printed(&mut log, &record(Level::INFO, &fields), 0).is_none());
    }

    #[test]
    fn memory_is_bounded() {
        let mut log = QuietLog::default();
        for number in 0..3 * MAX_SUBJECTS {
            let text = number.to_string();
            let _ = printed(&mut log, &failure(&text), 0);
            let _ = printed(&mut log, &record(Level::WARN, &[("message", &text)]), 0);
        }
        assert!(log.subjects.len() <= MAX_SUBJECTS);
        assert!(
            log.subjects
                .values()
                .all(|one| one.causes.len() <= MAX_CAUSES)
        );
    }
}
