//! `[servers.NAME]` and `[filters.NAME]`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use http::Uri;
use http::uri::Authority;
use mcpact_engine::client::EraMode;
use mcpact_spec::{Revision, Side};
use mcpact_transport::http::client::{Proxy, StaticHeaders};
use mcpact_transport::stdio::child::{Confinement, Sandbox, SandboxLevel};

use super::environment;
use super::gateway_table::read_answers;
use crate::config::{
    ChangedTools, CommandLaunch, FilterConfig, GatewayConfig, Health, Launch, Probe, ProxyConfig,
    Restarts, RunSettings, ServerConfig, Stage, Strategy, ToolFilter, UrlLaunch,
};
use crate::fields::{Fields, Text};
use crate::keys::{self, BUILTINS};
use crate::local_host::{HostEnvironment, ProgramLookup};
use crate::name::ServerName;
use crate::policy::{self, Policy};
use crate::problem::Findings;
use crate::secret::{EnvValue, ExpandedText, Secret};
use crate::source::Span;
use crate::tree::{SharedValue, Table, shared_values};

/// Keys that define a server, each with the keys that only apply to it.
const LAUNCHES: [(&str, &[&str]); 3] = [
    (
        "command",
        &[
            "args",
            "env",
            "env_file",
            "inherit",
            "cwd",
            "no_new_privileges",
            "max_open_files",
            "max_memory_mb",
            "sandbox",
            "allow_read",
            "allow_write",
            "allow_ports",
        ],
    ),
    ("url", &["headers", "proxy", "no_proxy"]),
    ("builtin", &[]),
];

/// Context of reading a server.
pub(super) struct ReadContext<'a> {
    /// The host; `None` for a disabled server.
    pub(super) host: Option<&'a dyn HostEnvironment>,
    /// Settings of the gateway.
    pub(super) gateway: &'a GatewayConfig,
}

pub(super) fn read(
    name: &ServerName,
    span: Span,
    table: &Table,
    context: &ReadContext<'_>,
    findings: &mut Findings,
) -> Option<ServerConfig> {
    let what = format!("server `{name}`");
    let mut fields = Fields::new(table, keys::SERVER, &what, findings);
    let launch = launch(name, span, table, context, &mut fields);
    let declare = declare(&mut fields);
    let answers = match fields.table("answers") {
        Some(table) => read_answers(table, &format!("`answers` of {what}"), fields.findings),
        None => context.gateway.answers.clone(),
    };
    let config = ServerConfig {
        enabled: fields.flag("enabled"),
        tags: tags(&mut fields),
        prefix: prefix(&mut fields),
        tools: ToolFilter {
            only: fields.words("tools"),
            hidden: fields.words("hidden_tools"),
            needs: fields.capability_table("needs"),
        },
        changed_tools: changed_tools(&mut fields),
        era: era(fields.choice("era")),
        require: fields.capabilities("require", Side::Server),
        declare,
        answers,
        public_results: fields.flag("public_results"),
        run: run_settings(&mut fields),
        launch: launch?,
    };
    Some(config)
}

/// Treatment of changed tools, if it is configured.
fn changed_tools(fields: &mut Fields<'_, '_>) -> Option<ChangedTools> {
    fields.member("changed_tools")?;
    Some(match fields.choice("changed_tools") {
        "hide" => ChangedTools::Hide,
        "serve" => ChangedTools::Serve,
        _ => ChangedTools::Warn,
    })
}

fn launch(
    name: &ServerName,
    span: Span,
    table: &Table,
    context: &ReadContext<'_>,
    fields: &mut Fields<'_, '_>,
) -> Option<Launch> {
    let given: Vec<_> = LAUNCHES
        .iter()
        .filter_map(|(key, own)| Some((*key, *own, fields.member(key)?)))
        .collect();
    let &[(key, own, _)] = given.as_slice() else {
        if let [(first, ..), (second, _, member), ..] = given.as_slice() {
            let message = format!("server `{name}` has both `{first}` and `{second}`");
            fields
                .findings
                .error_with(member.key_span, message, "keep one of them");
        } else {
            let message = format!("server `{name}` has neither `command` nor `url` nor `builtin`");
            let problem = fields.findings.error(span, message);
            problem.remedy("set a program, such as `command = \"npx\"`, or a URL, such as `url = \"https://tickets.example/mcp\"`");
        }
        // Reports problems of the other keys too.
        fields.texts("args");
        fields.text_table("env");
        fields.text_table("headers");
        return None;
    };
    for stray in LAUNCHES.iter().flat_map(|(_, keys)| *keys) {
        if let Some(member) = fields.member(stray)
            && !own.contains(stray)
        {
            let message = format!("`{stray}` has no effect with `{key}`");
            fields
                .findings
                .error(member.key_span, message)
                .remedy("remove it");
        }
    }
    match key {
        "command" => {
            let mut confinement = confinement(context, fields);
            let command = command(context, fields)?;
            if confinement.sandbox.level != SandboxLevel::Off {
                let folder = command.cwd.as_ref();
                confinement.sandbox.folder = folder.map(|cwd| PathBuf::from(cwd.value()));
            }
            Some(Launch::Command(CommandLaunch {
                confinement,
                // Program and arguments are part of the approved command.
                shared_values: all_shared_values(table, context.gateway, &[own, &[key]].concat()),
                ..command
            }))
        }
        "url" => url(all_shared_values(table, context.gateway, &[]), fields).map(Launch::Url),
        _ => {
            let text = fields.text("builtin")?;
            let known = fields.one_of("builtin", &text, BUILTINS)?;
            Some(Launch::Builtin(known.to_owned()))
        }
    }
}

pub(super) fn command(
    context: &ReadContext<'_>,
    fields: &mut Fields<'_, '_>,
) -> Option<CommandLaunch> {
    let args = fields.texts("args");
    let env = environment::read(context.host, fields);
    let cwd = cwd(context, fields);
    let program = fields.text("command")?;
    let mut chosen = program.filled.clone();
    let is_relative = program.value().contains('/') && !Path::new(program.value()).is_absolute();
    if let Some(host) = context.host.filter(|_| is_relative && cwd.is_none()) {
        // The same program wherever the gateway is started.
        let path = host.path(program.value());
        chosen = chosen.with_value(path.to_string_lossy());
    }
    let is_listed = !context.gateway.commands.allow.is_empty();
    if let Some(host) = context.host {
        // An allow-list refers to programs found by the gateway itself.
        let own_path = env.get("PATH").filter(|_| !is_listed);
        let facts = host.program(&ProgramLookup {
            program: chosen.value(),
            path: own_path.map(EnvValue::reveal),
            folder: cwd.as_ref().map(ExpandedText::value),
        });
        let policy = Policy {
            rules: &context.gateway.commands,
            host,
            path: env.get("PATH").map(EnvValue::reveal),
            folder: cwd.as_ref().map(|cwd| cwd.value().to_owned()),
        };
        policy::check(&program, &args, &facts, &policy, fields.findings);
        if let Some(path) = facts.path.filter(|_| is_listed) {
            // Starts the program that was checked, regardless of the server's `PATH`.
            chosen = program.filled.with_value(path);
        }
    }
    Some(CommandLaunch {
        program: chosen,
        args: args.into_iter().map(|text| text.filled.clone()).collect(),
        env,
        cwd,
        confinement: Confinement::default(),
        shared_values: Vec::new(),
    })
}

/// Values shared with a server by its own keys and by those of the gateway.
fn all_shared_values(table: &Table, gateway: &GatewayConfig, except: &[&str]) -> Vec<SharedValue> {
    let mut all = shared_values(table, "", except);
    if table.member("answers").is_none() {
        all.extend(gateway.answers_shared.iter().cloned());
    }
    all
}

/// Limits of the server's processes.
fn confinement(context: &ReadContext<'_>, fields: &mut Fields<'_, '_>) -> Confinement {
    /// Programs do not start with less.
    const LEAST_MIB: u64 = 64;
    let limit = |count: u32| (count > 0).then_some(u64::from(count));
    let files = limit(fields.count("max_open_files"));
    let memory = limit(fields.count("max_memory_mb"));
    for (name, given, least) in [
        ("max_open_files", files, 32),
        ("max_memory_mb", memory, LEAST_MIB),
    ] {
        if given.is_some_and(|given| given < least) {
            let message =
                format!("`{name}` must be at least {least}: programs do not start with less");
            fields.reject_key(name, message, "increase it or remove it");
        }
    }
    let confinement = Confinement {
        no_new_privileges: fields.flag("no_new_privileges"),
        open_files: files,
        memory: memory.map(|mib| mib << 20),
        sandbox: Sandbox::default(),
    };
    let has_limits = confinement != Confinement::default();
    let confinement = Confinement {
        sandbox: sandbox(context, fields),
        ..confinement
    };
    if has_limits
        && !cfg!(target_os = "linux")
        && let Some(member) = fields.member("command")
    {
        let message = "process limits work only on Linux";
        let problem = fields.findings.error(member.key_span, message);
        problem.remedy("remove `no_new_privileges`, `max_open_files` and `max_memory_mb`");
    }
    confinement
}

/// Sandbox of the server's processes.
fn sandbox(context: &ReadContext<'_>, fields: &mut Fields<'_, '_>) -> Sandbox {
    let own = fields
        .member("sandbox")
        .is_some()
        .then(|| fields.choice("sandbox"));
    let level = own.and_then(SandboxLevel::parse);
    let level = level.unwrap_or(context.gateway.sandbox);
    if let Some(problem) = level.problem()
        && let Some(member) = fields.member("command")
    {
        let message = format!("the server will not start: {problem}");
        let found = fields.findings.warning(member.key_span, message);
        found.remedy(problem.remedy());
    }
    let allowed = Sandbox {
        level,
        folder: None,
        read: allowed_paths("allow_read", context, fields),
        write: allowed_paths("allow_write", context, fields),
        ports: fields
            .counts("allow_ports")
            .into_iter()
            .filter_map(|port| u16::try_from(port).ok())
            .collect(),
    };
    let unused: &[&str] = match level {
        SandboxLevel::Off => &["allow_read", "allow_write", "allow_ports"],
        SandboxLevel::Standard => &["allow_ports"],
        SandboxLevel::Strict => &[],
    };
    for key in unused {
        let message = format!(
            "`{key}` has no effect with `sandbox = \"{}\"`",
            level.as_str()
        );
        fields.reject_key(key, message, "remove it, or set a stricter `sandbox`");
    }
    match level {
        SandboxLevel::Off => Sandbox::default(),
        SandboxLevel::Standard | SandboxLevel::Strict => allowed,
    }
}

/// Paths of an exception to the sandbox.
fn allowed_paths(
    name: &str,
    context: &ReadContext<'_>,
    fields: &mut Fields<'_, '_>,
) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    for text in fields.texts(name) {
        let path = super::path(context.host, text.value());
        let shown = path.to_string_lossy();
        // Unexpanded variables cannot be checked.
        let is_open = shown.contains("${");
        if let Some(host) = context.host
            && !is_open
            && !host.exists(&shown)
        {
            let message = format!("`{}` of `{name}` not found: it is ignored", text.filled);
            fields
                .findings
                .warning_with(text.span, message, "create it or correct the path");
        }
        paths.push(path);
    }
    paths
}

fn cwd(context: &ReadContext<'_>, fields: &mut Fields<'_, '_>) -> Option<ExpandedText> {
    let text = fields.text("cwd")?;
    let path = super::path(context.host, text.value());
    let path = path.to_string_lossy();
    // Unexpanded variables cannot be checked.
    let is_open = path.contains("${");
    let is_there = |host: &dyn HostEnvironment| is_open || host.has_folder(&path);
    if !context.host.is_none_or(is_there) {
        let message = format!("folder `{}` not found", text.filled);
        fields
            .findings
            .warning_with(text.span, message, "create it or correct `cwd`");
    }
    Some(text.filled.with_value(path))
}

fn url(shared_values: Vec<SharedValue>, fields: &mut Fields<'_, '_>) -> Option<UrlLaunch> {
    let headers = headers(fields);
    let proxy = proxy(fields);
    let text = fields.text("url")?;
    // The URL may contain a secret, so the position is that of the key.
    let at = fields
        .member("url")
        .map_or(text.span, |member| member.key_span);
    if !shared_values.is_empty() {
        let message = "values of this host are sent to this URL: needs `mcpact approve`, unless the config is passed with `--config`";
        fields.findings.note(at, message);
    }
    // Unexpanded variables cannot be checked.
    let is_open = text.value().contains("${");
    if let Some(fault) = url_fault(text.value()).filter(|_| !is_open) {
        let problem = fields.findings.error(at, format!("`url` {fault}"));
        problem.remedy("use a URL such as `https://tickets.example/mcp`");
    }
    Some(UrlLaunch {
        url: text.filled.clone(),
        headers,
        proxy,
        shared_values,
    })
}

fn proxy(fields: &mut Fields<'_, '_>) -> ProxyConfig {
    let exceptions = fields.words("no_proxy").join(",");
    let proxy = match fields.text_or_default("proxy") {
        mode if mode == "system" => ProxyConfig::System,
        mode if mode == "disabled" => ProxyConfig::Disabled,
        // Unexpanded variables cannot be checked.
        url if url.contains("${") || Proxy::new(&url).is_ok() => {
            let url = Secret::new(url);
            return ProxyConfig::Custom { url, exceptions };
        }
        _ => {
            let remedy = "use `system`, `disabled`, or a URL such as `http://proxy.example:3128`";
            fields.reject_key("proxy", "`proxy` is not the URL of a proxy", remedy);
            return ProxyConfig::Disabled;
        }
    };
    let message = "`no_proxy` works only with the URL of a proxy";
    let remedy = "remove it, or set `NO_PROXY` in the environment of the gateway";
    fields.reject_key("no_proxy", message, remedy);
    proxy
}

fn url_fault(text: &str) -> Option<&'static str> {
    let Ok(uri) = text.parse::<Uri>() else {
        return Some("is not a URL");
    };
    match uri.scheme_str() {
        Some("http" | "https") => match uri.authority() {
            Some(authority) if authority.as_str().contains('@') => {
                Some("contains a password, which logs would show; put it into `headers`")
            }
            Some(authority) if authority.host().is_empty() => Some("has no host"),
            Some(authority) if !has_possible_port(authority) => {
                Some("has an invalid port; use 1 to 65535")
            }
            Some(_) => None,
            None => Some("has no host"),
        },
        Some(_) | None => Some("does not start with `http://` or `https://`"),
    }
}

fn has_possible_port(authority: &Authority) -> bool {
    let after_host = authority.as_str().strip_prefix(authority.host());
    matches!(after_host, Some("" | ":")) || authority.port_u16().is_some_and(|port| port > 0)
}

fn headers(fields: &mut Fields<'_, '_>) -> BTreeMap<String, Secret> {
    let mut headers = BTreeMap::new();
    let mut sendable = StaticHeaders::default();
    let mut seen = BTreeSet::new();
    for (name, Text { filled, span }) in fields.text_table("headers") {
        if !seen.insert(name.to_ascii_lowercase()) {
            let message = format!("duplicate header `{name}`: names are case-insensitive");
            fields
                .findings
                .error(span, message)
                .remedy("keep one of them");
        }
        if let Err(error) = sendable.insert(name, filled.value()) {
            fields
                .findings
                .error_with(span, error.to_string(), "correct it or remove it");
        }
        headers.insert(name.to_owned(), Secret::new(filled.value()));
    }
    headers
}

/// Client capabilities declared to a shared server.
fn declare(fields: &mut Fields<'_, '_>) -> Vec<String> {
    let declare = fields.capabilities("declare", Side::Client);
    let Some(member) = fields.member("declare") else {
        return declare;
    };
    let (key, value) = (member.key_span, member.node.span);
    if fields.choice("strategy") != "singleton" {
        let message = "`declare` works for a `singleton` only: other servers receive the capabilities of each client";
        fields
            .findings
            .error_with(key, message, "remove it or set `strategy = \"singleton\"`");
    }
    if let Some(open) = declare
        .iter()
        .find(|path| path.starts_with("experimental.") || path.starts_with("extensions."))
    {
        let message = format!("`{open}` cannot be declared: not every client supports it");
        fields.findings.error(value, message).remedy("remove it");
    }
    declare
}

fn prefix(fields: &mut Fields<'_, '_>) -> Option<String> {
    let text = fields.text("prefix")?;
    if let Err(fault) = ServerName::parse(text.value()) {
        let problem = fields.findings.error(text.span, fault.to_string());
        problem.remedy("use ASCII letters, digits, `-` and `_`");
    }
    Some(text.value().to_owned())
}

/// Tags must be usable in a URL path and in comma-separated lists.
fn tags(fields: &mut Fields<'_, '_>) -> BTreeSet<String> {
    let is_usual = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':');
    let mut tags = BTreeSet::new();
    for Text { filled, span } in fields.texts("tags") {
        let tag = filled.value();
        let is_empty = !tag.contains(|c: char| c.is_ascii_alphanumeric());
        if is_empty || !tag.chars().all(is_usual) {
            let message = format!("invalid tag `{filled}`");
            let problem = fields.findings.error(span, message);
            problem.remedy("use ASCII letters, digits, `-`, `_`, `.` and `:`");
        }
        tags.insert(tag.to_owned());
    }
    tags
}

fn era(word: &str) -> EraMode {
    match word {
        "legacy" => EraMode::Legacy,
        "modern" => EraMode::Modern,
        word => Revision::parse(word).map_or(EraMode::Auto, EraMode::Pin),
    }
}

/// Time in which a new instance gets the call that it was started for.
const SHORTEST_IDLE: Duration = Duration::from_millis(50);

/// Reads the run settings.
pub(super) fn run_settings(fields: &mut Fields<'_, '_>) -> RunSettings {
    let run = RunSettings {
        strategy: match fields.choice("strategy") {
            "stateful" => Strategy::Stateful,
            "persistent" => Strategy::Persistent,
            "singleton" => Strategy::Singleton,
            _ => Strategy::Stateless,
        },
        idle: fields.seconds("idle_seconds").max(SHORTEST_IDLE),
        max_concurrent: fields.count("max_concurrent") as usize,
        max_instances: fields.count("max_instances") as usize,
        max_input_waits: fields.count("max_input_waits") as usize,
        input_grace: fields.seconds("input_grace_seconds"),
        min_ready: fields.count("min_ready") as usize,
        queue: fields.count("queue") as usize,
        queue_wait: fields.seconds("queue_seconds"),
        start_timeout: fields.seconds("start_seconds"),
        call_timeout: fields.seconds("call_seconds"),
        max_result_bytes: fields.count("max_result_bytes") as usize,
        drain: fields.seconds("drain_seconds"),
        session: fields.seconds("session_seconds"),
        health: Health {
            probe: probe(fields),
            interval: fields.seconds("health_seconds"),
            failures: fields.count("health_failures"),
            errors_fail: fields.choice("health_errors") == "fail",
        },
        restarts: Restarts {
            backoff: fields.seconds("backoff_seconds"),
            backoff_max: fields.seconds("backoff_max_seconds"),
            failures: fields.count("failures"),
            window: fields.seconds("failure_seconds"),
            suspend: fields.seconds("suspend_seconds"),
        },
        recovers: true,
        spreads: false,
    };
    contradictions(&run, fields);
    run
}

fn probe(fields: &mut Fields<'_, '_>) -> Probe {
    let given = fields.text_or_default("health");
    match given.split_once(':') {
        Some(("tool", name)) if !name.is_empty() => return Probe::Tool(name.to_owned()),
        Some(("resource", uri)) if !uri.is_empty() => return Probe::Resource(uri.to_owned()),
        Some(_) | None => {}
    }
    match given.as_str() {
        "auto" => Probe::Auto,
        "off" => Probe::Off,
        "ping" => Probe::Ping,
        "discover" => Probe::Discover,
        _ => {
            if let Some(text) = fields.text("health") {
                let message = format!("unknown value `{}` for `health`", text.filled);
                let remedy = "possible values: `auto`, `off`, `ping`, `discover`, `tool:NAME`, `resource:URI`";
                fields.reject_key("health", message, remedy);
            }
            Probe::Auto
        }
    }
}

/// Checks combinations of keys.
fn contradictions(run: &RunSettings, fields: &mut Fields<'_, '_>) {
    let most = match run.strategy {
        Strategy::Singleton => 1,
        Strategy::Stateless | Strategy::Stateful | Strategy::Persistent => run.max_instances,
    };
    if run.min_ready > most {
        let message = format!(
            "`min_ready` is {}, but at most {most} instances may run",
            run.min_ready
        );
        let remedy = "decrease `min_ready` or increase `max_instances`";
        fields.reject_key("min_ready", message, remedy);
    }
    if (1..1024).contains(&run.max_result_bytes) {
        let remedy = "set at least 1024, or 0 for no limit";
        fields.reject_key("max_result_bytes", "this limit is too small", remedy);
    }
    if run.strategy == Strategy::Singleton && run.max_instances > 1 {
        let remedy = "remove `max_instances` or set `strategy = \"stateless\"`";
        fields.reject_key("max_instances", "a `singleton` has one instance", remedy);
    }
    if run.restarts.backoff > run.restarts.backoff_max {
        let key = match fields.member("backoff_max_seconds") {
            Some(_) => "backoff_max_seconds",
            None => "backoff_seconds",
        };
        let message = "`backoff_max_seconds` is less than `backoff_seconds`";
        let remedy = "increase `backoff_max_seconds` or decrease `backoff_seconds`";
        fields.reject_key(key, message, remedy);
    }
}

/// Reads `[filters.NAME]`.
pub(super) fn read_filter(
    name: &ServerName,
    span: Span,
    table: &Table,
    context: &ReadContext<'_>,
    findings: &mut Findings,
) -> Option<FilterConfig> {
    let what = format!("filter `{name}`");
    let mut fields = Fields::new(table, keys::FILTER, &what, findings);
    if fields.member("command").is_none() {
        let problem = fields
            .findings
            .error(span, format!("{what} has no `command`"));
        problem.remedy("set the program to start, such as `command = \"audit\"`");
    }
    let stages = fields.choices("on").into_iter();
    let stages = stages.map(|word| match word {
        "response" => Stage::Response,
        _ => Stage::Request,
    });
    Some(FilterConfig {
        name: name.clone(),
        stages: stages.collect(),
        order: fields.count("order"),
        methods: fields.words("methods"),
        required: fields.flag("required"),
        timeout: fields.seconds("seconds"),
        command: command(context, &mut fields)?,
    })
}
