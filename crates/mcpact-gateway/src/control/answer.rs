//! What a gateway answers.

use serde::{Deserialize, Serialize};

use super::bundle::Bundle;
use super::status::Status;
use crate::chronicle::{Entry, EntryKind};

/// One line of an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// How everything is.
    Status(Box<Status>),
    /// Something that happened.
    Line(LogLine),
    /// What became of the config.
    Reload(ReloadReport),
    /// What was agreed to.
    Agreed(Vec<AgreedTools>),
    /// Everything that helps to find out what is wrong.
    Bundle(Box<Bundle>),
    /// The request cannot be answered.
    Fault(Fault),
}

/// Why a request cannot be answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Fault {
    /// It is not understood.
    Unread {
        /// Why.
        why: String,
    },
    /// There is no such server.
    NoServer {
        /// What was asked for.
        name: String,
        /// What there is.
        servers: Vec<String>,
        /// What there is besides, of which nothing is told alone.
        #[serde(default)]
        filters: Vec<String>,
    },
    /// Others ask too much already.
    Busy,
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogLine {
    /// When, in ISO 8601.
    pub time: String,
    /// To which server; none means the gateway itself.
    pub server: Option<String>,
    /// To which of its instances.
    pub instance: Option<u64>,
    /// What became of it; none for a line of its own log.
    pub event: Option<String>,
    /// In words.
    pub text: String,
}

impl From<Entry> for LogLine {
    fn from(entry: Entry) -> Self {
        Self {
            time: entry.time,
            server: entry.server.map(|server| server.to_string()),
            instance: entry.instance,
            event: match entry.kind {
                EntryKind::Log => None,
                EntryKind::Event(event) => Some(event.to_owned()),
            },
            text: entry.text,
        }
    }
}

/// The tools of a server that are not what they were, and what somebody agreed to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgreedTools {
    /// The server.
    pub server: String,
    /// Its tools.
    pub tools: Vec<String>,
}

/// What became of a config that was read anew.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReloadReport {
    /// When, in ISO 8601.
    pub time: String,
    /// What wanted it: `file`, `command` or `signal`.
    pub cause: String,
    /// The file.
    pub config: Option<String>,
    /// Whether it is in effect; if not, everything is as before.
    pub applied: bool,
    /// Servers that are new.
    pub started: Vec<String>,
    /// Servers that are gone.
    pub stopped: Vec<String>,
    /// Servers that are started in another way: what ran was ended.
    pub restarted: Vec<String>,
    /// Servers that go on with other settings.
    pub adjusted: Vec<String>,
    /// Servers that go on as before.
    pub unchanged: Vec<String>,
    /// Servers that are wrong, and left out.
    #[serde(default)]
    pub wrong: Vec<String>,
    /// Keys of `[gateway]` that differ and are in effect.
    pub gateway: Vec<String>,
    /// Keys of `[gateway]`, and `filters`, that differ and take effect when the gateway is started the next
    /// time.
    pub at_next_start: Vec<String>,
    /// What is wrong with the file, or should be known about it.
    pub problems: Vec<Notice>,
}

/// Something about a config.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notice {
    /// `error` or `warning`.
    pub severity: String,
    /// Where it stands, from 1; none if it is about the whole.
    pub line: Option<usize>,
    /// Where in the line, from 1.
    pub column: Option<usize>,
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub remedy: Option<String>,
}

impl Answer {
    /// Reads a line of an answer.
    ///
    /// # Errors
    /// It is none; the text says why.
    pub fn parse(line: &[u8]) -> Result<Self, String> {
        serde_json::from_slice(line).map_err(|error| error.to_string())
    }

    /// The answer as one line.
    #[must_use]
    pub fn encode(&self) -> String {
        // Only texts and numbers: there is nothing that could not be written.
        serde_json::to_string(self).unwrap_or_default()
    }
}

impl ReloadReport {
    /// In one sentence.
    #[must_use]
    pub fn in_words(&self) -> String {
        if !self.applied {
            let errors = self.problems.iter().filter(|p| p.severity == "error");
            let errors: Vec<String> = errors.map(|p| p.in_words(self.config.as_deref())).collect();
            return format!(
                "rejected, the previous config stays in effect: {}",
                errors.join("; ")
            );
        }
        let counts = [
            (self.started.len(), "started"),
            (self.stopped.len(), "stopped"),
            (self.restarted.len(), "restarted"),
            (self.adjusted.len(), "adjusted"),
            (self.unchanged.len(), "unchanged"),
            (self.wrong.len(), "wrong"),
        ];
        let said = counts.iter().filter(|(count, _)| *count > 0);
        let said: Vec<String> = said
            .map(|(count, what)| format!("{count} {what}"))
            .collect();
        let said = match said.as_slice() {
            [] => String::from("applied: no servers"),
            said => format!("applied: {}", said.join(", ")),
        };
        match self.at_next_start.as_slice() {
            [] => said,
            keys => format!("{said}; needs a gateway restart: {}", quoted(keys)),
        }
    }
}

fn quoted(keys: &[String]) -> String {
    let keys: Vec<String> = keys.iter().map(|key| format!("`{key}`")).collect();
    keys.join(", ")
}

impl Notice {
    /// In one line: file, place, what is wrong and what to do.
    #[must_use]
    pub fn in_words(&self, file: Option<&str>) -> String {
        let mut text = String::new();
        if let Some(file) = file {
            text.push_str(file);
            if let (Some(line), Some(column)) = (self.line, self.column) {
                text.push_str(&format!(":{line}:{column}"));
            }
            text.push_str(": ");
        }
        text.push_str(&self.message);
        if let Some(remedy) = &self.remedy {
            text.push_str("; ");
            text.push_str(remedy);
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read_as_they_are_written() {
        let line = LogLine {
            time: String::from("2026-07-28T00:00:00.000Z"),
            server: Some(String::from("files")),
            instance: Some(1),
            event: None,
            text: String::from("a \"line\"\n"),
        };
        let fault = Fault::NoServer {
            name: String::from("fiels"),
            servers: vec![String::from("files")],
            filters: vec![String::from("audit")],
        };
        for answer in [
            Answer::Line(line),
            Answer::Fault(fault),
            Answer::Fault(Fault::Busy),
            Answer::Reload(ReloadReport::default()),
        ] {
            let line = answer.encode();
            assert!(!line.contains('\n'));
            assert_eq!(Answer::parse(line.as_bytes()), Ok(answer));
        }
    }

    #[test]
    fn a_reload_is_told_in_a_sentence() {
        let applied = ReloadReport {
            applied: true,
            started: vec![String::from("a")],
            unchanged: vec![String::from("b"), String::from("c")],
            ..ReloadReport::default()
        };
        assert_eq!(applied.in_words(), "applied: 1 started, 2 unchanged");
        let waiting = ReloadReport {
            applied: true,
            at_next_start: vec![String::from("token"), String::from("filters")],
            ..ReloadReport::default()
        };
        assert_eq!(
            waiting.in_words(),
            "applied: no servers; needs a gateway restart: `token`, `filters`"
        );
        let refused = ReloadReport {
            config: Some(String::from("mcpact.toml")),
            problems: vec![Notice {
                severity: String::from("error"),
                line: Some(2),
                column: Some(1),
                message: String::from("unknown key `commnad`"),
                remedy: Some(String::from("did you mean `command`?")),
            }],
            ..ReloadReport::default()
        };
        assert_eq!(
            refused.in_words(),
            "rejected, the previous config stays in effect: mcpact.toml:2:1: unknown key `commnad`; did you mean `command`?"
        );
    }
}
