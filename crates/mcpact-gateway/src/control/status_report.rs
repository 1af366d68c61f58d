//! Status of a gateway and its servers, as `mcpact status --json` prints it, and the diagnostic bundle.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::messages::{LogLine, ReloadReport};

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
    /// Cause of unavailability.
    pub missing: Option<String>,
    /// Duration of unavailability; none for an invalid config.
    #[serde(default)]
    pub missing_seconds: Option<u64>,
    /// Last failure.
    pub last_error: Option<LastError>,
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
