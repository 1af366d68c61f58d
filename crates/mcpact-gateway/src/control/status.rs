//! How a gateway and its servers are. What `mcpact status --json` prints is exactly this.

use serde::{Deserialize, Serialize};

use super::answer::ReloadReport;

/// How everything is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// The gateway itself.
    pub gateway: GatewayStatus,
    /// Its servers, by name.
    pub servers: Vec<ServerLine>,
}

/// How the gateway itself is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GatewayStatus {
    /// `serving` or `draining`.
    pub state: String,
    /// Where clients come to; none if it serves one client on its own pipes.
    pub url: Option<String>,
    /// The file that it serves; none means the built-in servers.
    pub config: Option<String>,
    /// Whether it reads the file anew when that changes.
    pub watching: bool,
    /// The number of its process.
    pub pid: u32,
    /// Its version.
    pub version: String,
    /// How long it has been running.
    pub uptime_seconds: u64,
    /// For how long it has been in its state.
    #[serde(default)]
    pub state_seconds: u64,
    /// How many conversations with clients are open. Modern clients have none: each request stands alone.
    pub sessions: usize,
    /// How many requests are being answered.
    pub in_flight: usize,
    /// What became of the config when it was last read anew.
    pub last_reload: Option<ReloadReport>,
}

/// How a server is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerLine {
    /// Its name in the config.
    pub name: String,
    /// In a word: `asleep`, `starting`, `ready`, `busy`, `pausing`, `suspended`, `failed`,
    /// or `wrong` if the config is.
    pub state: String,
    /// For how long it is still left alone after failures, by callers or by the gateway itself.
    pub retry_seconds: Option<u64>,
    /// What was agreed on with it last.
    pub revision: Option<String>,
    /// The era of that: `legacy` or `modern`.
    pub era: Option<String>,
    /// Who it says it is.
    pub calls_itself: Option<String>,
    /// How it is reached.
    pub transport: Transport,
    /// The instances that run, and the last ones that do not any more.
    pub instances: Vec<InstanceLine>,
    /// How many calls its instances have.
    pub in_flight: usize,
    /// How many calls wait for an instance.
    pub queued: usize,
    /// How often an instance was started.
    pub starts: u64,
    /// How many failures count at the moment, and how many calls in a row did not reach it.
    pub failures: usize,
    /// How many conversations are open at its own address.
    pub sessions: usize,
    /// What it has, as far as it was listed.
    pub lists: Lists,
    /// What its lists lack, and why.
    pub lacking: Vec<String>,
    /// Tools about which it says something else than before, and which are kept back until somebody agrees.
    #[serde(default)]
    pub hidden_tools: Vec<String>,
    /// Why it is missing, if it is.
    pub missing: Option<String>,
    /// For how long it has been missing; none if its config is wrong.
    #[serde(default)]
    pub missing_seconds: Option<u64>,
    /// What went wrong last.
    pub last_error: Option<LastError>,
}

/// How a server is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Transport {
    /// A program that is started.
    Stdio,
    /// An address.
    Http,
    /// It is part of the gateway.
    Builtin,
    /// What the config says about it is wrong.
    Unknown,
}

impl Transport {
    /// In a word.
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

/// How many things a server has; none means that nobody has asked yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lists {
    /// Tools.
    pub tools: Option<usize>,
    /// Prompts.
    pub prompts: Option<usize>,
    /// Resources.
    pub resources: Option<usize>,
    /// Templates of resources.
    pub templates: Option<usize>,
}

/// How an instance is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstanceLine {
    /// Its number.
    pub id: u64,
    /// The number of the server's own process; of its guard's for the moment until that is known.
    pub pid: Option<u32>,
    /// In a word.
    pub state: String,
    /// For how long.
    pub state_seconds: u64,
    /// How long ago it was started.
    pub uptime_seconds: u64,
    /// Why it was started.
    pub cause: String,
    /// What it speaks.
    pub revision: Option<String>,
    /// How many calls it has.
    pub in_flight: usize,
    /// Why it was stopped, or what went wrong.
    pub why: Option<String>,
}

/// What went wrong last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastError {
    /// What.
    pub why: String,
    /// How long ago.
    pub seconds_ago: u64,
}
