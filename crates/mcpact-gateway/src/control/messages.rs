//! Requests to a gateway and its replies. One message is one line of JSON.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::event_history::{LogEntry, LogEntryKind};

/// Maximum number of log lines per request.
pub const MAX_LOG_LINES: usize = 100_000;

/// Request to a gateway.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case", deny_unknown_fields)]
pub enum ControlRequest {
    /// Status of the gateway and its servers.
    Status {
        /// Only this server.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        server: Option<String>,
    },
    /// Recent events and log lines.
    Logs {
        /// Only of this server.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        server: Option<String>,
        /// Number of past entries.
        lines: usize,
        /// Send new entries until the client disconnects.
        follow: bool,
    },
    /// Reload of the config.
    Reload {},
    /// Approval of the current tools.
    #[serde(rename = "agree_to_tools")]
    ApproveTools {
        /// Only of these servers; empty means all.
        servers: Vec<String>,
    },
    /// Diagnostic bundle.
    Bundle {},
}

/// One line of a reply.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ControlReply {
    /// Status of the gateway and its servers.
    Status(Box<Status>),
    /// Event or log line.
    Line(LogLine),
    /// Result of a reload.
    Reload(ReloadReport),
    /// Approved tools.
    Agreed(Vec<ApprovedTools>),
    /// Diagnostic bundle.
    Bundle(Box<Bundle>),
    /// The request failed.
    Fault(ControlFault),
}

/// Failure of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ControlFault {
    /// The request is invalid.
    Unread {
        /// Cause.
        why: String,
    },
    /// The server is unknown.
    NoServer {
        /// Requested name.
        name: String,
        /// Known servers.
        servers: Vec<String>,
        /// Configured filters, which have no status of their own.
        #[serde(default)]
        filters: Vec<String>,
    },
    /// The gateway serves too many control clients.
    Busy,
}

/// Event or log line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogLine {
    /// Time in ISO 8601.
    pub time: String,
    /// Server; none for the gateway itself.
    pub server: Option<String>,
    /// Instance of the server.
    pub instance: Option<u64>,
    /// Event; none for a line that the server logged.
    pub event: Option<String>,
    /// Text.
    pub text: String,
}

impl From<LogEntry> for LogLine {
    fn from(entry: LogEntry) -> Self {
        Self {
            time: entry.time,
            server: entry.server.map(|server| server.to_string()),
            instance: entry.instance,
            event: match entry.kind {
                LogEntryKind::Log => None,
                LogEntryKind::Event(event) => Some(event.to_owned()),
            },
            text: entry.text,
        }
    }
}

/// Changed tools of a server that a user approved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovedTools {
    /// Server.
    pub server: String,
    /// Names of the tools.
    pub tools: Vec<String>,
}

/// Result of a reload.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReloadReport {
    /// Time in ISO 8601.
    pub time: String,
    /// Cause: `file`, `command` or `signal`.
    pub cause: String,
    /// Config file.
    pub config: Option<String>,
    /// True if the config is in effect; otherwise nothing changed.
    pub applied: bool,
    /// Added servers.
    pub started: Vec<String>,
    /// Removed servers.
    pub stopped: Vec<String>,
    /// Servers with another command or URL; their instances were replaced.
    pub restarted: Vec<String>,
    /// Servers with other settings; their instances continue.
    pub adjusted: Vec<String>,
    /// Unchanged servers.
    pub unchanged: Vec<String>,
    /// Servers that are skipped because their config is invalid.
    #[serde(default)]
    pub wrong: Vec<String>,
    /// Changed keys of `[gateway]` that are in effect.
    pub gateway: Vec<String>,
    /// Changed keys of `[gateway]`, and `filters`, that need a restart of the gateway.
    pub at_next_start: Vec<String>,
    /// Errors and warnings of the file.
    pub problems: Vec<Notice>,
}

/// Error or warning about a config.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notice {
    /// `error` or `warning`.
    pub severity: String,
    /// Line, from 1; none if it concerns the whole file.
    pub line: Option<usize>,
    /// Column, from 1.
    pub column: Option<usize>,
    /// Message.
    pub message: String,
    /// Remedy.
    pub remedy: Option<String>,
}

/// Status of the gateway and its servers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// Gateway.
    pub gateway: GatewayStatus,
    /// Servers by name.
    pub servers: Vec<ServerLine>,
}

/// Status of the gateway.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GatewayStatus {
    /// `serving` or `draining`.
    pub state: String,
    /// URL of the endpoint; none on stdio.
    pub url: Option<String>,
    /// Config file; none means the built-in servers.
    pub config: Option<String>,
    /// True if the config is reloaded when its file changes.
    pub watching: bool,
    /// Process id.
    pub pid: u32,
    /// Version of mcpact.
    pub version: String,
    /// Time since the start.
    pub uptime_seconds: u64,
    /// Time in the current state.
    #[serde(default)]
    pub state_seconds: u64,
    /// Number of client sessions. Modern clients have none.
    pub sessions: usize,
    /// Number of in-flight requests.
    pub in_flight: usize,
    /// Result of the last reload.
    pub last_reload: Option<ReloadReport>,
    /// Latest clients with wrongly typed capabilities, which count as absent.
    #[serde(default)]
    pub ignored_capabilities: Vec<String>,
}

/// Status of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerLine {
    /// Configured name.
    pub name: String,
    /// `asleep`, `starting`, `ready`, `busy`, `pausing`, `suspended`, `failed`, `draining`, or `wrong` for an invalid
    /// config.
    pub state: String,
    /// Time until the next attempt after failures.
    pub retry_seconds: Option<u64>,
    /// Last negotiated revision.
    pub revision: Option<String>,
    /// Era of the revision: `legacy` or `modern`.
    pub era: Option<String>,
    /// Name and version that the server reports.
    pub calls_itself: Option<String>,
    /// Transport.
    pub transport: Transport,
    /// Sandbox and what the kernel enforces, such as `standard (landlock 7)`; none without one.
    #[serde(default)]
    pub sandbox: Option<String>,
    /// Running instances, and the last ended ones.
    pub instances: Vec<InstanceLine>,
    /// Number of in-flight calls.
    pub in_flight: usize,
    /// Number of queued calls.
    pub queued: usize,
    /// Number of started instances.
    pub starts: u64,
    /// Recent failures that count towards suspension, plus consecutive undelivered calls.
    pub failures: usize,
    /// Number of client sessions at its own endpoint.
    pub sessions: usize,
    /// Number of listed items.
    pub lists: ListCounts,
    /// Missing parts of its lists, with the cause.
    pub lacking: Vec<String>,
    /// Changed tools that are hidden until a user approves them.
    #[serde(default)]
    pub hidden_tools: Vec<String>,
    /// Wrongly typed capabilities of the server, which count as absent.
    #[serde(default)]
    pub ignored_capabilities: Vec<String>,
    /// Cause of unavailability.
    pub missing: Option<String>,
    /// Duration of unavailability; none for an invalid config.
    #[serde(default)]
    pub missing_seconds: Option<u64>,
    /// Last failure.
    pub last_error: Option<LastError>,
    /// Remedy of the current problem, or of the last failure.
    #[serde(default)]
    pub remedy: Option<String>,
    /// Capabilities that the server declares.
    #[serde(default)]
    pub capabilities: Vec<String>,
    /// Clients that use the server.
    #[serde(default)]
    pub clients: Vec<ClientLine>,
    /// Number of lines on stdout that are not JSON; `mcpact logs` shows them.
    #[serde(default)]
    pub stdout_noise: u64,
}

/// Client of a server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientLine {
    /// Name that the client reports.
    pub name: String,
    /// Version that the client reports.
    pub version: String,
    /// Negotiated revision.
    pub revision: String,
}

/// Transport of a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Transport {
    /// Child process on stdio.
    Stdio,
    /// HTTP.
    Http,
    /// Built-in server.
    Builtin,
    /// The config of the server is invalid.
    #[default]
    Unknown,
}

impl Transport {
    /// Returns the name of the transport.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Stdio => "stdio",
            Self::Http => "http",
            Self::Builtin => "builtin",
            Self::Unknown => "unknown",
        }
    }
}

/// Number of items of a server by list; none for a list that is not known yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListCounts {
    /// Tools.
    pub tools: Option<usize>,
    /// Tools that the filters of the config leave.
    #[serde(default)]
    pub served_tools: Option<usize>,
    /// Prompts.
    pub prompts: Option<usize>,
    /// Resources.
    pub resources: Option<usize>,
    /// Resource templates.
    pub templates: Option<usize>,
}

/// Status of an instance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstanceLine {
    /// Number of the instance.
    pub id: u64,
    /// Process id of the server; of its guard until the server runs.
    pub pid: Option<u32>,
    /// State.
    pub state: String,
    /// Time in the current state.
    pub state_seconds: u64,
    /// Time since the start.
    pub uptime_seconds: u64,
    /// Cause of the start.
    pub cause: String,
    /// Negotiated revision.
    pub revision: Option<String>,
    /// Number of in-flight calls.
    pub in_flight: usize,
    /// Cause of the stop or failure.
    pub why: Option<String>,
}

/// Last failure of a server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastError {
    /// Cause.
    pub why: String,
    /// Age.
    pub seconds_ago: u64,
}

/// Diagnostic bundle of `mcpact status --bundle`. Secrets of the config are masked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bundle {
    /// Version of mcpact.
    pub version: String,
    /// Operating system and architecture.
    pub system: String,
    /// Time in ISO 8601.
    pub time: String,
    /// Status of the gateway and its servers.
    pub status: Status,
    /// Config without secrets.
    pub config: Value,
    /// Recent starts of all servers.
    pub attempts: Vec<Attempt>,
    /// Recent events and log lines.
    pub log: Vec<LogLine>,
}

/// Start of an instance with its events.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    /// Server.
    pub server: String,
    /// Number of the instance.
    pub instance: u64,
    /// Current state; none if the instance is no longer listed.
    pub state: Option<String>,
    /// Time in the current state.
    pub state_seconds: Option<u64>,
    /// Events in order.
    pub steps: Vec<Step>,
}

/// Event of a start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// Time in ISO 8601.
    pub time: String,
    /// Event such as `start_attempt`.
    pub event: String,
    /// Text.
    pub text: String,
}

/// Parses a message.
pub(super) fn decode<T: DeserializeOwned>(line: &[u8]) -> Result<T, String> {
    serde_json::from_slice(line).map_err(|error| error.to_string())
}

/// Returns a message as one line.
pub(super) fn encode(message: &impl Serialize) -> String {
    // Messages have only string keys, so serialization cannot fail.
    serde_json::to_string(message).unwrap_or_default()
}

impl ReloadReport {
    /// Returns the result in one sentence.
    #[must_use]
    pub fn summary(&self) -> String {
        if !self.applied {
            let errors = self.problems.iter().filter(|p| p.severity == "error");
            let errors: Vec<String> = errors.map(|p| p.to_line(self.config.as_deref())).collect();
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
        let counts = counts.iter().filter(|(count, _)| *count > 0);
        let counts: Vec<String> = counts
            .map(|(count, what)| format!("{count} {what}"))
            .collect();
        let summary = match counts.as_slice() {
            [] => String::from("applied: no servers"),
            counts => format!("applied: {}", counts.join(", ")),
        };
        if self.at_next_start.is_empty() {
            return summary;
        }
        let keys: Vec<String> = self
            .at_next_start
            .iter()
            .map(|key| format!("`{key}`"))
            .collect();
        format!("{summary}; needs a gateway restart: {}", keys.join(", "))
    }
}

impl Notice {
    /// Returns file, position, message and remedy in one line.
    #[must_use]
    pub fn to_line(&self, file: Option<&str>) -> String {
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
    fn replies_round_trip() {
        let line = LogLine {
            time: String::from("2026-07-28T00:00:00.000Z"),
            server: Some(String::from("files")),
            instance: Some(1),
            event: None,
            text: String::from("a \"line\"\n"),
        };
        let fault = ControlFault::NoServer {
            name: String::from("fiels"),
            servers: vec![String::from("files")],
            filters: vec![String::from("audit")],
        };
        for reply in [
            ControlReply::Line(line),
            ControlReply::Fault(fault),
            ControlReply::Fault(ControlFault::Busy),
            ControlReply::Reload(ReloadReport::default()),
        ] {
            let line = encode(&reply);
            assert!(!line.contains('\n'));
            assert_eq!(decode(line.as_bytes()), Ok(reply));
        }
    }

    #[test]
    fn reload_summaries() {
        let applied = ReloadReport {
            applied: true,
            started: vec![String::from("a")],
            unchanged: vec![String::from("b"), String::from("c")],
            ..ReloadReport::default()
        };
        assert_eq!(applied.summary(), "applied: 1 started, 2 unchanged");
        let waiting = ReloadReport {
            applied: true,
            at_next_start: vec![String::from("token"), String::from("filters")],
            ..ReloadReport::default()
        };
        assert_eq!(
            waiting.summary(),
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
            refused.summary(),
            "rejected, the previous config stays in effect: mcpact.toml:2:1: unknown key `commnad`; did you mean `command`?"
        );
    }

    #[test]
    fn requests_round_trip() {
        let server = Some(String::from("files"));
        for request in [
            ControlRequest::Status { server: None },
            ControlRequest::Status {
                server: server.clone(),
            },
            ControlRequest::Logs {
                server,
                lines: 3,
                follow: true,
            },
            ControlRequest::Reload {},
            ControlRequest::ApproveTools {
                servers: vec![String::from("files")],
            },
            ControlRequest::Bundle {},
        ] {
            let line = encode(&request);
            assert!(!line.contains('\n'));
            assert_eq!(decode(line.as_bytes()), Ok(request));
        }
    }

    #[test]
    fn invalid_requests_are_rejected() {
        for line in [
            "",
            "{}",
            "[]",
            "{\"ask\":\"stop\"}",
            "{\"ask\":\"reload\",\"now\":1}",
        ] {
            assert!(decode::<ControlRequest>(line.as_bytes()).is_err(), "{line}");
        }
    }
}
