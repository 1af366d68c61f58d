//! What the keys become.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use mcpact_engine::capability::CapabilityBits;
use mcpact_engine::client::EraMode;
use mcpact_engine::policy::{OnUndeclared, Profile};
use mcpact_spec::{Capability, Revision};
use mcpact_translate::input::DefaultAnswers;
use mcpact_transport::stdio::child::Confinement;

use super::expand::OnMissing;
use super::hosts::{self, HostsGiven};
use super::opening::{self, Opening};
use super::read;
use super::secret::{Filled, Secret};
use super::sent::Sent;

/// The gateway itself.
#[derive(Clone, Debug, PartialEq)]
pub struct GatewayConfig {
    /// The address that HTTP clients come to.
    pub listen: SocketAddr,
    /// The bearer token that clients must show.
    pub token: Option<Secret>,
    /// How the token is written in the config, if that is a variable or a file and does not tell it.
    pub token_written: Option<String>,
    /// The variable that may hold the token, if the config has a default for it.
    pub token_variable: Option<String>,
    /// Whether it may listen beyond loopback without a token.
    pub allow_remote: bool,
    /// More host names that it answers to.
    pub allow_hosts: Vec<String>,
    /// Origins whose pages may call.
    pub allow_origins: Vec<String>,
    /// The files with certificate and key.
    pub tls: Option<(PathBuf, PathBuf)>,
    /// Whether clients of 2024-11-05 are served on `/sse`.
    pub sse: bool,
    /// Whether clients are served on a WebSocket.
    pub websocket: bool,
    /// The private socket for `mcpact status` and its like.
    pub control: Option<PathBuf>,
    /// When names start with the name of their server.
    pub names: NameStyle,
    /// What stands between the name of the server and that of the tool.
    pub separator: String,
    /// Whether the file is watched.
    pub watch: bool,
    /// How long running calls may take to end.
    pub drain: Duration,
    /// How long a list waits for one of the servers.
    pub list_wait: Duration,
    /// The revisions that clients may speak; empty means all.
    pub revisions: Vec<Revision>,
    /// The named set of choices.
    pub profile: Profile,
    /// Whether wrongly typed capabilities refuse the negotiation.
    pub strict: bool,
    /// Whether servers that are wrong are left out.
    pub lenient: bool,
    /// What happens to notifications that were not negotiated.
    pub undeclared: OnUndeclared,
    /// Whether vendor extras are sent.
    pub announce_extras: bool,
    /// Capabilities that a client must have.
    pub require: Vec<String>,
    /// What happens to variables of servers that are not set.
    pub missing_variables: OnMissing,
    /// What is answered in the place of clients.
    pub answers: DefaultAnswers,
    /// What these answers take from the variables and files of this machine.
    pub answers_sent: Vec<Sent>,
    /// Which programs may be started.
    pub commands: CommandRules,
    /// What of this lets more callers in than the defaults do.
    pub openings: Vec<Opening>,
}

/// When names of tools start with the name of their server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameStyle {
    /// Always.
    Prefix,
    /// Never; where two servers use the same name, the later one is marked.
    Flat,
}

/// Which programs may be started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandRules {
    /// The only ones, by name or folder; empty means every one that is not refused.
    pub allow: Vec<String>,
    /// What happens to shells.
    pub shells: ShellRule,
}

/// What happens to a server that is started by way of a shell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShellRule {
    /// The config is refused.
    Refuse,
    /// It is started, with a warning.
    Warn,
}

/// A server behind the gateway.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerConfig {
    /// How it is reached or started.
    pub launch: Launch,
    /// Whether it is served.
    pub enabled: bool,
    /// Words by which clients choose it.
    pub tags: BTreeSet<String>,
    /// What the names of its tools start with, instead of its name.
    pub prefix: Option<String>,
    /// Which of its tools are served.
    pub tools: ToolFilter,
    /// What happens to tools that are not what they were.
    pub changed_tools: ChangedTools,
    /// How it is spoken to.
    pub era: EraMode,
    /// Capabilities that it must have.
    pub require: Vec<String>,
    /// Client capabilities that a singleton is told of.
    pub declare: Vec<String>,
    /// What it is answered in the place of clients.
    pub answers: DefaultAnswers,
    /// Whether caches may keep for everybody what it calls public.
    pub public_results: bool,
    /// How its instances are kept.
    pub run: RunSettings,
}

/// How a server is reached or started.
#[derive(Clone, Debug, PartialEq)]
pub enum Launch {
    /// A program that is started.
    Command(CommandLaunch),
    /// A server that is reached by HTTP.
    Url(UrlLaunch),
    /// A server that is part of the gateway.
    Builtin(String),
}

/// A program and how it is started. There is no shell.
#[derive(Clone, Debug, PartialEq)]
pub struct CommandLaunch {
    /// A path, or a name that is looked up in `PATH`.
    pub program: Filled,
    /// Its arguments.
    pub args: Vec<Filled>,
    /// Its variables, besides the few that every child gets.
    pub env: BTreeMap<String, Secret>,
    /// Where it runs.
    pub cwd: Option<Filled>,
    /// What it may not have.
    pub confinement: Confinement,
    /// What it is told from the variables and files of this machine, besides what it is started with.
    pub sent: Vec<Sent>,
}

/// An address and what goes with every request.
#[derive(Clone, Debug, PartialEq)]
pub struct UrlLaunch {
    /// The address.
    pub url: Filled,
    /// The headers.
    pub headers: BTreeMap<String, Secret>,
    /// What goes there from the variables and files of this machine.
    pub sent: Vec<Sent>,
}

/// Which tools of a server are served.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolFilter {
    /// The only ones; empty means all.
    pub only: Vec<String>,
    /// Those that are not.
    pub hidden: Vec<String>,
    /// What clients must declare to see some of them.
    pub needs: Vec<(String, Vec<Capability>)>,
}

/// What happens to a tool about which its server says something else than before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ChangedTools {
    /// It is served, and the log says so.
    #[default]
    Warn,
    /// It is not served until somebody has agreed to it.
    Hide,
    /// It is served as if nothing had happened.
    Serve,
}

/// How the instances of a server are kept.
#[derive(Clone, Debug, PartialEq)]
pub struct RunSettings {
    /// Who shares an instance.
    pub strategy: Strategy,
    /// How long an instance may be idle.
    pub idle: Duration,
    /// How many calls an instance may have at a time.
    pub max_concurrent: usize,
    /// How many instances may run at a time.
    pub max_instances: usize,
    /// How many instances are kept running.
    pub min_ready: usize,
    /// How many calls may wait for an instance.
    pub queue: usize,
    /// How long a call may wait for an instance.
    pub queue_wait: Duration,
    /// How long an instance may take to start.
    pub start_timeout: Duration,
    /// How long a call may take.
    pub call_timeout: Duration,
    /// How long running calls may take to end.
    pub drain: Duration,
    /// How long an instance waits for its client to come back.
    pub session: Duration,
    /// How an instance is asked whether it is well.
    pub health: Health,
    /// What happens after failures.
    pub restarts: Restarts,
    /// Whether a server that did not start is tried again without being called.
    pub recovers: bool,
    /// Whether calls that cannot be made on a client's own instance at the same time go to others; they take turns
    /// otherwise.
    pub spreads: bool,
}

/// Who shares an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// Everybody; there may be several.
    Stateless,
    /// Nobody: every client has its own.
    Stateful,
    /// Everybody; it is not stopped when idle.
    Persistent,
    /// Everybody; there is only one.
    Singleton,
}

impl Probe {
    /// Whether a server can be asked like this beside its work.
    #[must_use]
    pub const fn costs_nothing(&self) -> bool {
        match self {
            Self::Auto | Self::Off | Self::Ping | Self::Discover => true,
            Self::Tool(_) | Self::Resource(_) => false,
        }
    }
}

/// How an instance is asked whether it is well.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Health {
    /// What is asked.
    pub probe: Probe,
    /// How often.
    pub interval: Duration,
    /// How many bad answers in a row make it failed.
    pub failures: u32,
}

/// What an instance is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Probe {
    /// `ping` of the legacy era, `server/discover` of the modern one.
    Auto,
    /// Nothing.
    Off,
    /// `ping`.
    Ping,
    /// `server/discover`.
    Discover,
    /// A call of this tool without arguments.
    Tool(String),
    /// Reading this resource.
    Resource(String),
}

/// What happens after failures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restarts {
    /// The first pause.
    pub backoff: Duration,
    /// The longest pause.
    pub backoff_max: Duration,
    /// How many failures suspend the server.
    pub failures: u32,
    /// For how long a failure counts.
    pub window: Duration,
    /// How long a suspended server is left alone.
    pub suspend: Duration,
}

impl ToolFilter {
    /// Whether every tool is served.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        self.only.is_empty() && self.hidden.is_empty()
    }

    /// What a client lacks for a tool that it could declare.
    #[must_use]
    pub fn lacking(&self, tool: &str, declared: CapabilityBits) -> Vec<Capability> {
        let fitting = self.needs.iter();
        let fitting = fitting.filter(|(pattern, _)| matches(pattern, tool));
        let needed = fitting.flat_map(|(_, needed)| needed.iter().copied());
        let lacking: CapabilityBits = needed.filter(|row| !declared.has(*row)).collect();
        lacking.iter().collect()
    }

    /// Whether only some tools are to be served, and none of these is one of them.
    #[must_use]
    pub fn misses_all(&self, tools: &[String]) -> bool {
        let is_named = |tool: &String| self.only.iter().any(|pattern| matches(pattern, tool));
        !self.only.is_empty() && !tools.iter().any(is_named)
    }

    /// Whether a tool is served.
    #[must_use]
    pub fn admits(&self, tool: &str) -> bool {
        let is_among = |patterns: &[String]| patterns.iter().any(|pattern| matches(pattern, tool));
        (self.only.is_empty() || is_among(&self.only)) && !is_among(&self.hidden)
    }
}

/// Whether a name has the shape of a pattern, in which `*` stands for anything.
pub(super) fn matches(pattern: &str, name: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else {
        return pattern == name;
    };
    let Some(mut left) = name.strip_prefix(first) else {
        return false;
    };
    let Some((middle, last)) = rest.rsplit_once('*') else {
        return left.ends_with(rest);
    };
    // The earliest place of each piece leaves the most for the others.
    for piece in middle.split('*') {
        let Some(at) = left.find(piece) else {
            return false;
        };
        left = &left[at + piece.len()..];
    }
    left.ends_with(last)
}

impl GatewayConfig {
    /// Other machines reach the gateway, but by no name that it answers to: what that means, and what to do.
    #[must_use]
    pub fn namelessness(&self) -> Option<(String, String)> {
        hosts::namelessness(self.listen, &self.allow_hosts, HostsGiven::InConfig)
    }

    /// Listens elsewhere than the config says, because whoever starts the gateway says so.
    pub fn listen_instead(&mut self, address: SocketAddr) {
        self.listen = address;
        self.openings.retain(|found| found.key != opening::LISTEN);
    }
}

impl Default for GatewayConfig {
    fn default() -> Self {
        read::default_gateway()
    }
}

impl Default for RunSettings {
    fn default() -> Self {
        read::default_run()
    }
}

impl Default for CommandRules {
    fn default() -> Self {
        read::default_gateway().commands
    }
}

impl ServerConfig {
    /// A server with the defaults of everything but its launch.
    #[must_use]
    pub fn new(launch: Launch) -> Self {
        Self {
            launch,
            enabled: true,
            tags: BTreeSet::new(),
            prefix: None,
            tools: ToolFilter::default(),
            changed_tools: ChangedTools::default(),
            era: EraMode::Auto,
            require: Vec::new(),
            declare: Vec::new(),
            answers: DefaultAnswers::default(),
            public_results: false,
            run: RunSettings::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_whole_names() {
        for (pattern, name, expected) in [
            ("a", "a", true),
            ("a", "ab", false),
            ("*", "", true),
            ("a*", "a", true),
            ("a*", "ba", false),
            ("*a", "ba", true),
            ("a*a", "a", false),
            ("a*b*c", "axxbyyc", true),
            ("a*b*c", "acb", false),
            ("a*b*b", "ab", false),
            ("*x*y*", "axbyc", true),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn hidden_wins_over_listed() {
        let filter = |only: &[&str], hidden: &[&str]| ToolFilter {
            only: only.iter().map(ToString::to_string).collect(),
            hidden: hidden.iter().map(ToString::to_string).collect(),
            needs: Vec::new(),
        };
        assert!(filter(&[], &[]).admits("a"));
        assert!(!filter(&["b"], &[]).admits("a"));
        assert!(filter(&["read_*"], &["read_secret"]).admits("read_file"));
        assert!(!filter(&["read_*"], &["read_secret"]).admits("read_secret"));
    }
}
