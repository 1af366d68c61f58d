//! `[servers.NAME]`.

use std::collections::{BTreeMap, BTreeSet};

use http::Uri;
use http::uri::Authority;
use mcpact_engine::client::EraMode;
use mcpact_spec::{Revision, Side};
use mcpact_transport::http::client::StaticHeaders;
use mcpact_transport::stdio::child::Confinement;

use super::{answers, environment};
use crate::config::{
    ChangedTools, CommandLaunch, GatewayConfig, Health, Launch, Probe, Restarts, RunSettings,
    ServerConfig, Strategy, ToolFilter, UrlLaunch,
};
use crate::fields::{Fields, Text};
use crate::keys::{self, BUILTINS};
use crate::name::ServerName;
use crate::policy::{self, Policy};
use crate::problem::Findings;
use crate::secret::{Filled, Secret};
use crate::sent::{Sent, sent};
use crate::source::Span;
use crate::surroundings::{Sought, Surroundings};
use crate::tree::Table;

/// The keys that say what a server is, and the keys that only one of them understands.
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
        ],
    ),
    ("url", &["headers"]),
    ("builtin", &[]),
];

/// What a server stands on.
pub(super) struct Ground<'a> {
    /// The machine that it runs on; `None` if it does not run.
    pub(super) machine: Option<&'a dyn Surroundings>,
    /// What holds for all servers.
    pub(super) gateway: &'a GatewayConfig,
}

pub(super) fn read(
    name: &ServerName,
    span: Span,
    table: &Table,
    ground: &Ground<'_>,
    findings: &mut Findings,
) -> Option<ServerConfig> {
    let what = format!("server `{name}`");
    let mut fields = Fields::new(table, keys::SERVER, &what, findings);
    let launch = launch(name, span, table, ground, &mut fields);
    let declare = declare(&mut fields);
    let answers = match fields.table("answers") {
        Some(table) => answers::read(table, &format!("`answers` of {what}"), fields.findings),
        None => ground.gateway.answers.clone(),
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
        changed_tools: match fields.choice("changed_tools") {
            "hide" => ChangedTools::Hide,
            "serve" => ChangedTools::Serve,
            _ => ChangedTools::Warn,
        },
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

fn launch(
    name: &ServerName,
    span: Span,
    table: &Table,
    ground: &Ground<'_>,
    fields: &mut Fields<'_, '_>,
) -> Option<Launch> {
    let given: Vec<_> = LAUNCHES
        .iter()
        .filter_map(|(key, own)| Some((*key, *own, fields.member(key)?)))
        .collect();
    let &[(key, own, _)] = given.as_slice() else {
        if let [(first, ..), (second, _, member), ..] = given.as_slice() {
            let message = format!("server `{name}` has both `{first}` and `{second}`");
            let problem = fields.findings.error(member.key_span, message);
            problem.remedy("keep one of them: a server is started, reached by HTTP, or built in");
        } else {
            let message = format!("server `{name}` has neither `command` nor `url` nor `builtin`");
            let problem = fields.findings.error(span, message);
            problem.remedy("say which program to start, such as `command = \"npx\"`, or which address to ask, such as `url = \"https://tickets.example/mcp\"`");
        }
        // What else is wrong with it is told all the same.
        fields.texts("args");
        fields.text_table("env");
        fields.text_table("headers");
        return None;
    };
    for stray in LAUNCHES.iter().flat_map(|(_, keys)| *keys) {
        if let Some(member) = fields.member(stray)
            && !own.contains(stray)
        {
            let message = format!("`{stray}` means nothing beside `{key}`");
            fields
                .findings
                .error(member.key_span, message)
                .remedy("leave it out");
        }
    }
    match key {
        "command" => {
            let confinement = confinement(fields);
            let command = command(ground, fields)?;
            Some(Launch::Command(CommandLaunch {
                confinement,
                // What it is started with is approved as what it is.
                sent: told(table, ground.gateway, &[own, &[key]].concat()),
                ..command
            }))
        }
        "url" => url(told(table, ground.gateway, &[]), fields).map(Launch::Url),
        _ => {
            let text = fields.text("builtin")?;
            let known = fields.one_of("builtin", &text, BUILTINS)?;
            Some(Launch::Builtin(known.to_owned()))
        }
    }
}

pub(super) fn command(ground: &Ground<'_>, fields: &mut Fields<'_, '_>) -> Option<CommandLaunch> {
    let args = fields.texts("args");
    let env = environment::read(ground.machine, fields);
    let cwd = cwd(ground, fields);
    let program = fields.text("command")?;
    let mut chosen = program.filled.clone();
    let is_listed = !ground.gateway.commands.allow.is_empty();
    if let Some(machine) = ground.machine {
        // A list of names means the programs that the gateway itself finds under them.
        let own_path = env.get("PATH").filter(|_| !is_listed);
        let facts = machine.program(&Sought {
            program: program.filled.value(),
            path: own_path.map(Secret::reveal),
            folder: cwd.as_ref().map(Filled::value),
        });
        let policy = Policy {
            rules: &ground.gateway.commands,
            host: machine,
            path: env.get("PATH").map(Secret::reveal),
            folder: cwd.as_ref().map(|cwd| cwd.value().to_owned()),
        };
        policy::check(&program, &args, &facts, &policy, fields.findings);
        if let Some(path) = facts.path.filter(|_| is_listed) {
            // The one that was judged is started, whatever `PATH` the server is given.
            chosen = Filled::new(path, program.filled.written());
        }
    }
    Some(CommandLaunch {
        program: chosen,
        args: args.into_iter().map(|text| text.filled.clone()).collect(),
        env,
        cwd,
        confinement: Confinement::default(),
        sent: Vec::new(),
    })
}

/// What a server gets from this machine, by its own keys and by those that hold for all.
fn told(table: &Table, gateway: &GatewayConfig, except: &[&str]) -> Vec<Sent> {
    let mut told = sent(table, "", except);
    if table.member("answers").is_none() {
        told.extend(gateway.answers_sent.iter().cloned());
    }
    told
}

/// What the processes of the server may not have.
fn confinement(fields: &mut Fields<'_, '_>) -> Confinement {
    /// Less is not enough for whoever starts it.
    const LEAST_MIB: u64 = 64;
    let limit = |count: u32| (count > 0).then_some(u64::from(count));
    let files = limit(fields.count("max_open_files"));
    let memory = limit(fields.count("max_memory_mb"));
    for (name, given, least) in [
        ("max_open_files", files, 32),
        ("max_memory_mb", memory, LEAST_MIB),
    ] {
        if let Some(member) = fields.member(name)
            && given.is_some_and(|given| given < least)
        {
            let message = format!("nothing starts with so little: `{name}` is at least {least}");
            let problem = fields.findings.error(member.node.span, message);
            problem.remedy("raise it, or leave it out");
        }
    }
    let confinement = Confinement {
        no_new_privileges: fields.flag("no_new_privileges"),
        open_files: files,
        memory: memory.map(|mib| mib << 20),
    };
    if confinement != Confinement::default()
        && !cfg!(target_os = "linux")
        && let Some(member) = fields.member("command")
    {
        let message = "servers are confined on Linux only";
        let problem = fields.findings.error(member.key_span, message);
        problem.remedy("leave out `no_new_privileges`, `max_open_files` and `max_memory_mb`");
    }
    confinement
}

fn cwd(ground: &Ground<'_>, fields: &mut Fields<'_, '_>) -> Option<Filled> {
    let text = fields.text("cwd")?;
    let path = super::path(ground.machine, text.filled.value());
    let path = path.to_string_lossy();
    // Variables that stay as they are written can be anything.
    let is_open = path.contains("${");
    let is_there = |machine: &dyn Surroundings| is_open || machine.has_folder(&path);
    if !ground.machine.is_none_or(is_there) {
        let message = format!("there is no folder `{}`", text.filled);
        let problem = fields.findings.warning(text.span, message);
        problem.remedy("create it, or correct `cwd`");
    }
    Some(Filled::new(path, text.filled.written()))
}

fn url(sent: Vec<Sent>, fields: &mut Fields<'_, '_>) -> Option<UrlLaunch> {
    let headers = headers(fields);
    let text = fields.text("url")?;
    if !sent.is_empty() {
        let message = "values of this machine are sent there: unless the config is named, that needs `mcpact approve`";
        // What stands in the address may be a secret, so that its key is shown.
        let at = fields
            .member("url")
            .map_or(text.span, |member| member.key_span);
        fields.findings.note(at, message);
    }
    // Variables that stay as they are written can be anything.
    let is_open = text.filled.value().contains("${");
    if let Some(fault) = url_fault(text.filled.value()).filter(|_| !is_open) {
        // What is no address may hold anything, so it is not shown.
        let at = fields
            .member("url")
            .map_or(text.span, |member| member.key_span);
        let problem = fields.findings.error(at, format!("`url` {fault}"));
        problem.remedy("an address such as `https://tickets.example/mcp` is needed");
    }
    Some(UrlLaunch {
        url: text.filled.clone(),
        headers,
        sent,
    })
}

fn url_fault(text: &str) -> Option<&'static str> {
    let Ok(uri) = text.parse::<Uri>() else {
        return Some("is no address");
    };
    match uri.scheme_str() {
        Some("http" | "https") => match uri.authority() {
            Some(authority) if authority.as_str().contains('@') => {
                Some("has a password in it, which logs would show; put it into `headers`")
            }
            Some(authority) if authority.host().is_empty() => Some("names no host"),
            Some(authority) if !has_possible_port(authority) => {
                Some("has a port that is no number from 1 to 65535")
            }
            Some(_) => None,
            None => Some("names no host"),
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
            let message = format!("the header `{name}` is there twice: case makes no difference");
            fields
                .findings
                .error(span, message)
                .remedy("keep one of them");
        }
        if let Err(error) = sendable.insert(name, filled.value()) {
            let problem = fields.findings.error(span, error.to_string());
            problem.remedy("leave it out, or correct it");
        }
        headers.insert(name.to_owned(), Secret::new(filled.value()));
    }
    headers
}

/// What a server that everybody shares may ask whoever calls it.
fn declare(fields: &mut Fields<'_, '_>) -> Vec<String> {
    let declare = fields.capabilities("declare", Side::Client);
    let Some(member) = fields.member("declare") else {
        return declare;
    };
    let (key, value) = (member.key_span, member.node.span);
    if fields.choice("strategy") != "singleton" {
        let message = "`declare` means something for a `singleton` only: other servers are told what each client declares";
        let problem = fields.findings.error(key, message);
        problem.remedy("leave it out, or choose `strategy = \"singleton\"`");
    }
    if let Some(open) = declare
        .iter()
        .find(|path| path.starts_with("experimental.") || path.starts_with("extensions."))
    {
        let message = format!("`{open}` cannot be declared for everybody: not every client has it");
        fields.findings.error(value, message).remedy("leave it out");
    }
    declare
}

fn prefix(fields: &mut Fields<'_, '_>) -> Option<String> {
    let text = fields.text("prefix")?;
    if let Err(fault) = ServerName::parse(text.filled.value()) {
        let problem = fields.findings.error(text.span, fault.to_string());
        problem.remedy("a prefix has ASCII letters, digits, `-` and `_`");
    }
    Some(text.filled.value().to_owned())
}

/// Words that can stand in a path as they are, and in a list with commas.
fn tags(fields: &mut Fields<'_, '_>) -> BTreeSet<String> {
    let is_usual = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':');
    let mut tags = BTreeSet::new();
    for Text { filled, span } in fields.texts("tags") {
        let tag = filled.value();
        let is_empty = !tag.contains(|c: char| c.is_ascii_alphanumeric());
        if is_empty || !tag.chars().all(is_usual) {
            let message = format!("nobody can choose servers by the tag `{filled}`");
            let problem = fields.findings.error(span, message);
            problem.remedy("a tag has ASCII letters, digits, `-`, `_`, `.` and `:`");
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

/// How the instances are kept.
pub(super) fn run_settings(fields: &mut Fields<'_, '_>) -> RunSettings {
    let run = RunSettings {
        strategy: match fields.choice("strategy") {
            "stateful" => Strategy::Stateful,
            "persistent" => Strategy::Persistent,
            "singleton" => Strategy::Singleton,
            _ => Strategy::Stateless,
        },
        idle: fields.seconds("idle_seconds"),
        max_concurrent: fields.count("max_concurrent") as usize,
        max_instances: fields.count("max_instances") as usize,
        min_ready: fields.count("min_ready") as usize,
        queue: fields.count("queue") as usize,
        queue_wait: fields.seconds("queue_seconds"),
        start_timeout: fields.seconds("start_seconds"),
        call_timeout: fields.seconds("call_seconds"),
        drain: fields.seconds("drain_seconds"),
        session: fields.seconds("session_seconds"),
        health: Health {
            probe: probe(fields),
            interval: fields.seconds("health_seconds"),
            failures: fields.count("health_failures"),
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
                let message = format!("`{}` is unknown as `health`", text.filled);
                let problem = fields.findings.error(text.span, message);
                problem.remedy(
                    "it may be `auto`, `off`, `ping`, `discover`, `tool:NAME` or `resource:URI`",
                );
            }
            Probe::Auto
        }
    }
}

/// What is possible for each key alone, but not together.
fn contradictions(run: &RunSettings, fields: &mut Fields<'_, '_>) {
    let most = match run.strategy {
        Strategy::Singleton => 1,
        Strategy::Stateless | Strategy::Stateful | Strategy::Persistent => run.max_instances,
    };
    if run.min_ready > most
        && let Some(member) = fields.member("min_ready")
    {
        let message = format!(
            "{} instances cannot be ready: at most {most} may run",
            run.min_ready
        );
        let problem = fields.findings.error(member.node.span, message);
        problem.remedy("lower `min_ready`, or raise `max_instances`");
    }
    if run.strategy == Strategy::Singleton
        && run.max_instances > 1
        && let Some(member) = fields.member("max_instances")
    {
        let problem = fields
            .findings
            .error(member.node.span, "a `singleton` has one instance");
        problem.remedy("leave `max_instances` out, or choose `strategy = \"stateless\"`");
    }
    if run.restarts.backoff > run.restarts.backoff_max
        && let Some(member) = fields
            .member("backoff_max_seconds")
            .or_else(|| fields.member("backoff_seconds"))
    {
        let problem = fields.findings.error(
            member.node.span,
            "the longest pause is shorter than the first",
        );
        problem.remedy("raise `backoff_max_seconds`, or lower `backoff_seconds`");
    }
}
