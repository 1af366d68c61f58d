//! Typed form of the config.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use mcpact_engine::capability::CapabilityBits;
use mcpact_engine::client::EraMode;
use mcpact_engine::policy::Policy;
use mcpact_spec::Capability;
use mcpact_translate::input::DefaultAnswers;
use mcpact_transport::address::ListenAddress;
use mcpact_transport::stdio::child::{Confinement, SandboxLevel};

use super::approvals::{self, ExposingKey};
use super::expand::OnMissing;
use super::hosts::{self, AllowHostsSource};
use super::name::ServerName;
use super::secret::{EnvValue, ExpandedText, Secret};
use super::tree::SharedValue;
use super::{Catalog, read};

/// Settings of the gateway.
#[derive(Clone, Debug, PartialEq)]
pub struct GatewayConfig {
    /// Listen address for HTTP clients.
    pub listen: ListenAddress,
    /// Bearer token required from clients.
    pub token: Option<Secret>,
    /// Reference to the token, if the config contains only a variable or file.
    pub token_written: Option<String>,
    /// Variable of the token, if the config contains a default for it.
    pub token_variable: Option<String>,
    /// Bearer tokens by the name of their holder.
    pub tokens: BTreeMap<String, NamedToken>,
    /// Allows listening beyond loopback without a token.
    pub allow_remote: bool,
    /// Additional accepted host names.
    pub allow_hosts: Vec<String>,
    /// Origins allowed to call from web pages.
    pub allow_origins: Vec<String>,
    /// User ids of this machine that are served without a token, besides the gateway's own and root.
    pub allow_users: Vec<u32>,
    /// Paths of TLS certificate and key.
    pub tls: Option<(PathBuf, PathBuf)>,
    /// Serves clients of 2024-11-05 on `/sse`.
    pub sse: bool,
    /// Serves clients on a WebSocket.
    pub websocket: bool,
    /// Path of the control socket.
    pub control: Option<PathBuf>,
    /// Naming of tools and prompts.
    pub names: NameStyle,
    /// Separator between server name and tool name.
    pub separator: String,
    /// Watches the config file for changes.
    pub watch: bool,
    /// Time for running calls to finish on shutdown.
    pub drain: Duration,
    /// Time a merged list waits for each server.
    pub list_wait: Duration,
    /// Name of the profile that the policy is based on.
    pub profile: &'static str,
    /// Policy for negotiating with clients.
    pub policy: Policy,
    /// Skips invalid servers.
    pub lenient: bool,
    /// Treatment of unset variables in servers.
    pub missing_variables: OnMissing,
    /// Default answers in place of clients.
    pub answers: DefaultAnswers,
    /// Values of this host in the default answers.
    pub answers_shared: Vec<SharedValue>,
    /// Tools that clients of many servers are shown.
    pub tools: ToolListing,
    /// Sandbox of servers that set none.
    pub sandbox: SandboxLevel,
    /// Rules for programs.
    pub commands: CommandRules,
    /// Memory for messages in bytes; 0 means the default of this machine.
    pub memory: usize,
    /// Keys that expose the gateway to more callers than the defaults.
    pub exposing_keys: Vec<ExposingKey>,
}

/// Bearer token with a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedToken {
    /// Token.
    pub secret: Secret,
    /// Reference to the token, if the config contains only a variable or file.
    pub written: Option<String>,
}

impl GatewayConfig {
    /// Returns `true` if clients need a token.
    #[must_use]
    pub fn requires_token(&self) -> bool {
        self.token.is_some() || !self.tokens.is_empty()
    }
}

/// Naming of tools and prompts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameStyle {
    /// Server name as prefix.
    Prefix,
    /// Original names; on a collision the later server gets a hash suffix.
    Flat,
}

/// Tools that clients of many servers are shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolListing {
    /// Listed tools.
    pub mode: ToolMode,
    /// Public names of the tools that are listed in any mode.
    pub pinned: Vec<String>,
}

/// Tools that `tools/list` returns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ToolMode {
    /// All tools.
    #[default]
    All,
    /// Pinned tools, and tools of the gateway for finding and calling the others.
    Search,
}

impl ToolMode {
    /// Both modes.
    pub const ALL: [Self; 2] = [Self::All, Self::Search];

    /// Returns the name in configs and headers.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Search => "search",
        }
    }

    /// Parses a name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.as_str() == name)
    }
}

/// Rules for programs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommandRules {
    /// Allowed programs, by name or folder; empty means all that are not refused.
    pub allow: Vec<String>,
    /// Treatment of shells.
    pub shells: ShellRule,
}

/// Treatment of a server that starts through a shell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ShellRule {
    /// The config is rejected.
    #[default]
    Refuse,
    /// The server starts, with a warning.
    Warn,
}

/// Settings of a server.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerConfig {
    /// Launch of the server.
    pub launch: Launch,
    /// True if the server is served.
    pub enabled: bool,
    /// Tags that clients select servers by.
    pub tags: BTreeSet<String>,
    /// Prefix of its tool names, instead of its name.
    pub prefix: Option<String>,
    /// Selection of tools.
    pub tools: ToolFilter,
    /// Treatment of changed tools; `None` is the default of the gateway.
    pub changed_tools: Option<ChangedTools>,
    /// Protocol era.
    pub era: EraMode,
    /// Capabilities required from the server.
    pub require: Vec<String>,
    /// Client capabilities declared to a singleton.
    pub declare: Vec<String>,
    /// Default answers in place of clients.
    pub answers: DefaultAnswers,
    /// Allows caches to share results the server calls public.
    pub public_results: bool,
    /// Instances and limits.
    pub run: RunSettings,
}

/// Launch of a server.
#[derive(Clone, Debug, PartialEq)]
pub enum Launch {
    /// Child process.
    Command(CommandLaunch),
    /// HTTP server.
    Url(UrlLaunch),
    /// Built-in server.
    Builtin(String),
}

/// A program to start, without a shell.
#[derive(Clone, Debug, PartialEq)]
pub struct CommandLaunch {
    /// Path, or name to look up in `PATH`.
    pub program: ExpandedText,
    /// Arguments.
    pub args: Vec<ExpandedText>,
    /// Variables, besides those every child inherits.
    pub env: BTreeMap<String, EnvValue>,
    /// Working directory.
    pub cwd: Option<ExpandedText>,
    /// Process limits.
    pub confinement: Confinement,
    /// Values of this host that are sent to the server after its start.
    pub shared_values: Vec<SharedValue>,
}

/// A server reached by HTTP.
#[derive(Clone, Debug, PartialEq)]
pub struct UrlLaunch {
    /// URL.
    pub url: ExpandedText,
    /// Headers of every request.
    pub headers: BTreeMap<String, Secret>,
    /// Use of a proxy.
    pub proxy: ProxyConfig,
    /// Values of this host that are sent to the server.
    pub shared_values: Vec<SharedValue>,
}

/// Use of a proxy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ProxyConfig {
    /// That of the environment.
    #[default]
    System,
    /// None.
    Disabled,
    /// This proxy.
    Custom {
        /// URL, which may contain a password.
        url: Secret,
        /// Hosts and networks that are reached directly, separated by commas.
        exceptions: String,
    },
}

/// Selection of a server's tools.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolFilter {
    /// Patterns of served tools; empty means all.
    pub only: Vec<String>,
    /// Patterns of hidden tools.
    pub hidden: Vec<String>,
    /// Client capabilities required by tools, per pattern.
    pub needs: Vec<(String, Vec<Capability>)>,
}

/// Treatment of a tool that differs from its pinned definition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ChangedTools {
    /// Served, with a warning in the log.
    #[default]
    Warn,
    /// Hidden until it is approved.
    Hide,
    /// Served.
    Serve,
}

/// Instances of a server, and their limits.
#[derive(Clone, Debug, PartialEq)]
pub struct RunSettings {
    /// Sharing of instances.
    pub strategy: Strategy,
    /// Idle time before an instance is stopped.
    pub idle: Duration,
    /// Maximum number of calls per instance.
    pub max_concurrent: usize,
    /// Maximum number of instances.
    pub max_instances: usize,
    /// Maximum number of further instances whose calls wait for the input of modern clients.
    pub max_input_waits: usize,
    /// Time after which a call that waits for input may be ended in favour of queued calls.
    pub input_grace: Duration,
    /// Number of instances kept running.
    pub min_ready: usize,
    /// Maximum number of queued calls.
    pub queue: usize,
    /// Maximum time in the queue.
    pub queue_wait: Duration,
    /// Timeout of a start.
    pub start_timeout: Duration,
    /// Timeout of a call.
    pub call_timeout: Duration,
    /// Maximum size of the result of a call; 0 means unlimited.
    pub max_result_bytes: usize,
    /// Time for running calls to finish when an instance stops.
    pub drain: Duration,
    /// Time an exclusive instance waits for its client to return.
    pub session: Duration,
    /// Health checks.
    pub health: Health,
    /// Restarts after failures.
    pub restarts: Restarts,
    /// Retries a failed start without waiting for a call.
    pub recovers: bool,
    /// Sends calls that cannot run concurrently on a client's own instance to other instances; otherwise they queue.
    pub spreads: bool,
}

/// Sharing of instances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// Shared by all clients; several instances.
    Stateless,
    /// One instance per client.
    Stateful,
    /// Shared by all clients; not stopped when idle.
    Persistent,
    /// Shared by all clients; one instance.
    Singleton,
}

impl Probe {
    /// Returns whether the probe does not occupy the server.
    #[must_use]
    pub const fn is_free(&self) -> bool {
        match self {
            Self::Auto | Self::Off | Self::Ping | Self::Discover => true,
            Self::Tool(_) | Self::Resource(_) => false,
        }
    }
}

/// Health checks of an instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Health {
    /// Kind of check.
    pub probe: Probe,
    /// Interval.
    pub interval: Duration,
    /// Consecutive failures after which the instance is failed.
    pub failures: u32,
    /// An error as answer to `ping` or `server/discover` fails the check.
    pub errors_fail: bool,
}

/// Kind of health check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Probe {
    /// `ping` of the legacy era, `server/discover` of the modern one.
    Auto,
    /// None.
    Off,
    /// `ping`.
    Ping,
    /// `server/discover`.
    Discover,
    /// Call of this tool without arguments.
    Tool(String),
    /// Read of this resource.
    Resource(String),
}

/// Restarts after failures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restarts {
    /// First backoff.
    pub backoff: Duration,
    /// Longest backoff.
    pub backoff_max: Duration,
    /// Failures within the window that suspend the server.
    pub failures: u32,
    /// Time during which a failure counts.
    pub window: Duration,
    /// Time a suspended server is not started.
    pub suspend: Duration,
}

impl ToolFilter {
    /// Returns whether all tools are served.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        self.only.is_empty() && self.hidden.is_empty()
    }

    /// Capabilities a client would have to declare for a tool.
    #[must_use]
    pub fn lacking(&self, tool: &str, declared: CapabilityBits) -> Vec<Capability> {
        let fitting = self.needs.iter();
        let fitting = fitting.filter(|(pattern, _)| matches(pattern, tool));
        let needed = fitting.flat_map(|(_, needed)| needed.iter().copied());
        let lacking: CapabilityBits = needed.filter(|row| !declared.has(*row)).collect();
        lacking.iter().collect()
    }

    /// Returns whether only listed tools are served and none of these is listed.
    #[must_use]
    pub fn misses_all(&self, tools: &[String]) -> bool {
        let is_named = |tool: &String| self.only.iter().any(|pattern| matches(pattern, tool));
        !self.only.is_empty() && !tools.iter().any(is_named)
    }

    /// Returns whether a tool is served.
    #[must_use]
    pub fn admits(&self, tool: &str) -> bool {
        let is_among = |patterns: &[String]| patterns.iter().any(|pattern| matches(pattern, tool));
        (self.only.is_empty() || is_among(&self.only)) && !is_among(&self.hidden)
    }
}

/// Matches a name against a pattern, in which `*` matches anything.
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
    // Leftmost matches leave the most for the rest.
    for piece in middle.split('*') {
        let Some(at) = left.find(piece) else {
            return false;
        };
        left = &left[at + piece.len()..];
    }
    left.ends_with(last)
}

impl GatewayConfig {
    /// Warning and hint if other hosts can reach the gateway, but no host name is accepted.
    #[must_use]
    pub fn missing_host_warning(&self) -> Option<(String, String)> {
        let listen = self.listen.tcp()?;
        hosts::missing_host_warning(listen, &self.allow_hosts, AllowHostsSource::InConfig)
    }

    /// Overrides the configured listen address.
    pub fn override_listen(&mut self, address: ListenAddress) {
        self.listen = address;
        self.exposing_keys
            .retain(|found| found.key != approvals::LISTEN);
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

impl ServerConfig {
    /// A server with default settings.
    #[must_use]
    pub fn new(launch: Launch) -> Self {
        Self {
            launch,
            enabled: true,
            tags: BTreeSet::new(),
            prefix: None,
            tools: ToolFilter::default(),
            changed_tools: None,
            era: EraMode::Auto,
            require: Vec::new(),
            declare: Vec::new(),
            answers: DefaultAnswers::default(),
            public_results: false,
            run: RunSettings::default(),
        }
    }
}

/// A program that inspects requests, results, or both.
#[derive(Clone, Debug, PartialEq)]
pub struct FilterConfig {
    /// Name.
    pub name: ServerName,
    /// Command of the program.
    pub command: CommandLaunch,
    /// Position; smaller numbers run first.
    pub order: u32,
    /// Inspected stages; empty means all.
    pub stages: Vec<Stage>,
    /// Inspected methods; empty means all.
    pub methods: Vec<String>,
    /// Rejects requests if the filter is not available.
    pub required: bool,
    /// Timeout of one decision.
    pub timeout: Duration,
}

/// Stage at which a filter runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Request parameters, before the request is handled.
    Request,
    /// Result, before it is sent to the client.
    Response,
}

impl Stage {
    /// Name of the stage.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Request => "request",
            Self::Response => "response",
        }
    }

    /// JSON field with the inspected value.
    #[must_use]
    pub const fn body(self) -> &'static str {
        match self {
            Self::Request => "params",
            Self::Response => "result",
        }
    }
}

impl FilterConfig {
    /// Returns whether the filter inspects this method at this stage.
    #[must_use]
    pub fn wants(&self, stage: Stage, method: &str) -> bool {
        let any = |pattern: &String| matches(pattern, method);
        (self.stages.is_empty() || self.stages.contains(&stage))
            && (self.methods.is_empty() || self.methods.iter().any(any))
    }
}

/// Difference between two configs. Disabled servers count as absent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Added servers.
    pub added: BTreeSet<ServerName>,
    /// Removed servers.
    pub removed: BTreeSet<ServerName>,
    /// Changed servers.
    pub changed: BTreeMap<ServerName, Change>,
    /// True if the gateway settings differ.
    pub gateway: bool,
}

/// Effect of a change on a running server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// The launch differs: instances are stopped and start again on the next call.
    Relaunch,
    /// Only limits, names or visibility differ; instances keep running.
    Settings,
}

impl Changes {
    /// Returns whether the configs are equal.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl Catalog {
    /// Computes the changes from this config to another.
    #[must_use]
    pub fn changes_to(&self, next: &Self) -> Changes {
        let (old, new) = (self.served(), next.served());
        let names = |all: &BTreeMap<&ServerName, _>, other: &BTreeMap<&ServerName, _>| {
            let only = all.keys().filter(|name| !other.contains_key(*name));
            only.map(|name| (*name).clone()).collect()
        };
        let changed = new.iter().filter_map(|(name, server)| {
            let change = change(old.get(name)?, server)?;
            Some(((*name).clone(), change))
        });
        Changes {
            added: names(&new, &old),
            removed: names(&old, &new),
            changed: changed.collect(),
            gateway: self.gateway != next.gateway,
        }
    }

    /// Enabled servers.
    #[must_use]
    pub fn served(&self) -> BTreeMap<&ServerName, &ServerConfig> {
        let all = self.servers.iter();
        all.filter(|(_, server)| server.enabled).collect()
    }
}

fn change(old: &ServerConfig, new: &ServerConfig) -> Option<Change> {
    let is_started_alike = old.launch == new.launch
        && old.era == new.era
        && old.require == new.require
        && old.declare == new.declare
        && old.answers == new.answers
        && old.run.strategy == new.run.strategy;
    if !is_started_alike {
        return Some(Change::Relaunch);
    }
    (old != new).then_some(Change::Settings)
}

#[cfg(test)]
mod tests {
    use super::*;
    use mcpact_engine::policy::{Extras, OnUndeclared, Profile, Reading};
    use mcpact_engine::revisions::RevisionSet;
    use mcpact_spec::Revision;

    use crate::read::tests::{found_in, taken_from};

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
    fn hidden_tools_win_over_listed_ones() {
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

    /// The policy follows the config.
    #[test]
    fn policy_follows_the_config() {
        let usual = taken_from("mcpact.toml", "").gateway;
        assert_eq!(usual.policy, Profile::Spec.policy());
        let text = "[gateway]\nrevisions = [\"2025-06-18\", \"2026-07-28\"]\nstrict = true\nundeclared = \"warn\"\nannounce_extras = true\nrequire = [\"elicitation\"]\n";
        let policy = taken_from("mcpact.toml", text).gateway.policy;
        let both = [Revision::V2025_06_18, Revision::V2026_07_28];
        assert_eq!(policy.version.supported, RevisionSet::of(&both));
        assert_eq!(policy.reading, Reading::Strict);
        assert_eq!(policy.undeclared, OnUndeclared::Warn);
        assert_eq!(policy.extras, Extras::Announce);
        assert_eq!(policy.required, ["elicitation"]);
        let strict = taken_from("mcpact.toml", "[gateway]\nprofile = \"mcpv-strict\"").gateway;
        assert_eq!(strict.policy, Profile::McpvStrict.policy());
    }

    /// Unknown capabilities are rejected: as a requirement they would exclude all clients.
    #[test]
    fn unknown_capabilities_are_rejected() {
        let told = found_in(
            "mcpact.toml",
            "[gateway]\nrequire = [\"elicitaton\", \"experimental.x\"]",
        );
        assert_eq!(told.len(), 1);
        assert!(told[0].contains("did you mean `elicitation`?"), "{told:?}");
        let told = found_in(
            "mcpact.toml",
            "[servers.a]\nbuiltin = \"everything\"\nrequire = [\"roots\"]\nstrategy = \"singleton\"\ndeclare = [\"tools\"]",
        );
        assert_eq!(told.len(), 2, "{told:?}");
        let told = found_in(
            "mcpact.toml",
            "[servers.a]\nbuiltin = \"everything\"\ndeclare = [\"roots\", \"experimental.x\"]",
        );
        assert_eq!(told.len(), 2, "{told:?}");
        assert!(told[0].contains("`singleton` only"), "{told:?}");
    }
}

#[cfg(test)]
mod changes_tests {
    use crate::read::tests::taken_from;

    use super::*;

    fn changes(old: &str, new: &str) -> Changes {
        taken_from("mcpact.toml", old).changes_to(&taken_from("mcpact.toml", new))
    }

    /// Unchanged servers are not listed; only a changed launch restarts a server.
    #[test]
    fn changes_are_classified() {
        let old = "[servers.a]\ncommand = \"a\"\n[servers.b]\ncommand = \"b\"\n[servers.c]\ncommand = \"c\"\n[servers.d]\ncommand = \"d\"\n[servers.e]\ncommand = \"e\"\nenabled = false";
        let new = "[servers.a]\ncommand = \"a\"\n[servers.b]\ncommand = \"b\"\nmax_concurrent = 1\n[servers.c]\ncommand = \"c\"\nargs = [\"x\"]\n[servers.d]\ncommand = \"d\"\nenabled = false\n[servers.e]\ncommand = \"e\"\n[servers.f]\ncommand = \"f\"";
        let found = changes(old, new);
        let names =
            |set: &BTreeSet<ServerName>| set.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(names(&found.added), ["e", "f"]);
        assert_eq!(names(&found.removed), ["d"]);
        assert_eq!(found.changed.len(), 2);
        assert_eq!(found.changed["b"], Change::Settings);
        assert_eq!(found.changed["c"], Change::Relaunch);
        assert!(!found.gateway);
    }

    /// A changed secret counts as a change.
    #[test]
    fn changed_secret_is_a_change() {
        let one = "[servers.a]\nurl = \"https://a.example/\"\nheaders = { K = \"1\" }";
        let two = "[servers.a]\nurl = \"https://a.example/\"\nheaders = { K = \"2\" }";
        assert_eq!(changes(one, two).changed["a"], Change::Relaunch);
        assert!(changes(one, one).is_empty());
        assert!(changes(one, &format!("[gateway]\nsse = true\n{one}")).gateway);
    }
}
