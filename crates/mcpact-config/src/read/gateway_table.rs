//! `[gateway]`.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use mcpact_translate::input::{DefaultAnswers, Dismissal};
use mcpact_transport::address::ListenAddress;
use mcpact_transport::stdio::child::SandboxLevel;

use crate::approvals::exposing_keys;
use crate::config::{
    CommandRules, GatewayConfig, NameStyle, NamedToken, ShellRule, ToolListing, ToolMode,
};
use crate::expand::OnMissing;
use crate::fields::{Fields, Text};
use crate::hosts::{host_problem, origin_problem};
use crate::keys;
use crate::local_host::{HostEnvironment, readable_key_warning};
use crate::problem::Findings;
use crate::read::policy_keys;
use crate::secret::Secret;
use crate::source::Span;
use crate::tree::{Table, shared_values};

/// Placeholder if `listen` is invalid.
const USUAL: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 6272);

/// Maximum length of the name of a token.
const LONGEST_TOKEN_NAME: usize = 64;

/// Minimum length of a token.
const SHORTEST_TOKEN: usize = 16;

pub(super) fn read(
    table: &Table,
    host: Option<&dyn HostEnvironment>,
    findings: &mut Findings,
) -> GatewayConfig {
    let mut fields = Fields::new(table, keys::GATEWAY, "`[gateway]`", findings);
    let listen = listen(host, &mut fields);
    let (token, written) = token(&mut fields).unzip();
    let token_variable = written.as_deref().and_then(variable_with_default);
    let token_variable = token_variable.map(str::to_owned);
    let token_written = written.filter(|written| is_plain_reference(written));
    let tokens = tokens(token.as_ref(), &mut fields);
    let allow_remote = fields.flag("allow_remote");
    let has_token = token.is_some() || !tokens.is_empty();
    if !(listen.is_local() || allow_remote || has_token) {
        remote(&mut fields);
    }
    let commands = fields.table("commands");
    let answers = fields.table("answers");
    let tools = fields.table("tools");
    let limits = fields.table("limits");
    let config = GatewayConfig {
        listen,
        token,
        token_written,
        token_variable,
        tokens,
        allow_remote,
        allow_hosts: fields.checked_words("allow_hosts", "is not a host", host_problem),
        allow_origins: fields.checked_words("allow_origins", "is not an origin", origin_problem),
        allow_users: allow_users(host, &mut fields),
        tls: tls(host, &mut fields),
        sse: fields.flag("sse"),
        websocket: fields.flag("websocket"),
        control: fields
            .text("control")
            .map(|text| super::path(host, text.value())),
        names: match fields.choice("names") {
            "flat" => NameStyle::Flat,
            _ => NameStyle::Prefix,
        },
        separator: separator(&mut fields),
        watch: fields.flag("watch"),
        drain: fields.seconds("drain_seconds"),
        list_wait: fields.seconds("list_seconds"),
        profile: fields.choice("profile"),
        policy: policy_keys::read(&mut fields),
        lenient: fields.flag("lenient"),
        missing_variables: match fields.choice("missing_variables") {
            "keep" => OnMissing::Keep,
            _ => OnMissing::Refuse,
        },
        answers: answers.map_or_else(DefaultAnswers::default, |table| {
            read_answers(table, "`[gateway.answers]`", fields.findings)
        }),
        answers_shared: answers.map_or_else(Vec::new, |table| {
            shared_values(table, "gateway.answers.", &[])
        }),
        tools: tool_listing(tools.unwrap_or(&Table::default()), fields.findings),
        memory: memory(limits.unwrap_or(&Table::default()), fields.findings),
        sandbox: SandboxLevel::parse(fields.choice("sandbox")).unwrap_or_default(),
        commands: command_rules(commands.unwrap_or(&Table::default()), fields.findings),
        exposing_keys: exposing_keys(table),
    };
    if config.tls.is_some() && config.listen.tcp().is_none() {
        let message = "TLS is not possible on a Unix socket";
        fields.reject_key("tls_cert", message, "remove `tls_cert` and `tls_key`");
    }
    for exposing_key in &config.exposing_keys {
        fields.findings.note(exposing_key.span, exposing_key.note());
    }
    if let Some((message, remedy)) = config.missing_host_warning()
        && let Some(member) = fields.member("listen")
    {
        fields
            .findings
            .warning_with(member.node.span, message, remedy);
    }
    config
}

fn listen(host: Option<&dyn HostEnvironment>, fields: &mut Fields<'_, '_>) -> ListenAddress {
    match fields.text_or_default("listen").parse() {
        Ok(ListenAddress::Unix(path)) => {
            ListenAddress::Unix(super::path(host, &path.to_string_lossy()))
        }
        Ok(address) => address,
        Err(_) => {
            if let Some(text) = fields.text("listen") {
                let remedy = "use an IP address and a port from 0 to 65535, such as `127.0.0.1:6272`, or `unix:PATH`";
                fields.reject(&text, "is not a listen address", remedy);
            }
            USUAL.into()
        }
    }
}

fn allow_users(host: Option<&dyn HostEnvironment>, fields: &mut Fields<'_, '_>) -> Vec<u32> {
    let Some(host) = host else {
        return Vec::new();
    };
    let users = fields.users("allow_users");
    let mut ids = Vec::new();
    for (text, span) in users {
        match host.user_id(&text) {
            Some(id) => ids.push(id),
            None => {
                let message = format!("no user `{text}` on this machine");
                let problem = fields.findings.error(span, message);
                problem.remedy("use a name of `/etc/passwd`, or the user id that `id -u` prints");
            }
        }
    }
    ids
}

fn remote(fields: &mut Fields<'_, '_>) {
    let Some(text) = fields.text("listen") else {
        return;
    };
    let message = format!(
        "other hosts can reach `{}`, and no token is set",
        text.filled
    );
    let problem = fields.findings.error(text.span, message);
    problem.remedy(
        "listen on `127.0.0.1` or `[::1]`, set `token`, or set `allow_remote = true` to serve everyone who can connect",
    );
}

/// Reads the token and its written form.
fn token(fields: &mut Fields<'_, '_>) -> Option<(Secret, String)> {
    let text = fields.text("token")?;
    let at = fields
        .member("token")
        .map_or(text.span, |member| member.key_span);
    check_strength(text.value(), at, fields);
    Some((Secret::new(text.value()), text.filled.written().to_owned()))
}

/// Rejects a token that could be guessed.
fn check_strength(token: &str, at: Span, fields: &mut Fields<'_, '_>) {
    // A reference that cannot be expanded has an error of its own.
    if token.contains("${") {
        return;
    }
    if token.len() < SHORTEST_TOKEN || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        let problem = fields.findings.error(at, "this token is too weak");
        problem.remedy(format!(
            "use at least {SHORTEST_TOKEN} visible ASCII characters; `openssl rand -hex 32` generates one"
        ));
    }
}

/// Reads the named tokens. Two names for one token would make it unclear who a client is.
fn tokens(single: Option<&Secret>, fields: &mut Fields<'_, '_>) -> BTreeMap<String, NamedToken> {
    let mut tokens: BTreeMap<String, NamedToken> = BTreeMap::new();
    for (name, Text { filled, span }) in fields.text_table("tokens") {
        let is_valid = (1..=LONGEST_TOKEN_NAME).contains(&name.len())
            && name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'));
        if !is_valid || name == "token" {
            let message = format!("`{name}` is not a name for a token");
            let problem = fields.findings.error(span, message);
            problem.remedy(format!(
                "use 1 to {LONGEST_TOKEN_NAME} ASCII letters, digits, `-`, `_` or `.`; `token` is the name of the key `token`"
            ));
        }
        check_strength(filled.value(), span, fields);
        let secret = Secret::new(filled.value());
        let mut others = tokens.values().map(|other| &other.secret).chain(single);
        if others.any(|other| *other == secret) {
            let message = format!("the token of `{name}` is also that of another name");
            let problem = fields.findings.error(span, message);
            problem.remedy("give each name its own token");
        }
        let written = Some(filled.written().to_owned());
        let written = written.filter(|written| is_plain_reference(written));
        tokens.insert(name.to_owned(), NamedToken { secret, written });
    }
    tokens
}

/// Returns whether a text is a single variable or file reference without default.
fn is_plain_reference(written: &str) -> bool {
    let inner = written
        .strip_prefix("${")
        .and_then(|rest| rest.strip_suffix('}'));
    inner.is_some_and(|inner| !inner.contains(":-") && !inner.contains(['$', '{', '}']))
}

/// Name of the variable, if the text is a single variable with a default.
fn variable_with_default(written: &str) -> Option<&str> {
    let inner = written.strip_prefix("${")?.strip_suffix('}')?;
    let (name, default) = inner.split_once(":-")?;
    let is_all = !default.contains(['$', '{', '}']) && !name.starts_with("file:");
    is_all.then(|| name.strip_prefix("env:").unwrap_or(name))
}

/// Path of a file that must exist.
fn file(
    name: &str,
    host: Option<&dyn HostEnvironment>,
    fields: &mut Fields<'_, '_>,
) -> Option<PathBuf> {
    let text = fields.text(name)?;
    let path = super::path(host, text.value());
    if host.is_some_and(|host| !host.exists(&path.to_string_lossy())) {
        let message = format!("file `{}` not found", path.display());
        let problem = fields.findings.error(text.span, message);
        problem.remedy(format!(
            "create it or correct `{name}`; relative paths start at the folder of the config"
        ));
    }
    Some(path)
}

fn tls(
    host: Option<&dyn HostEnvironment>,
    fields: &mut Fields<'_, '_>,
) -> Option<(PathBuf, PathBuf)> {
    let cert = file("tls_cert", host, fields);
    let key = file("tls_key", host, fields);
    if let (Some(host), Some(path)) = (host, &key)
        && host.readable_by_all(path)
        && let Some(member) = fields.member("tls_key")
    {
        let (message, remedy) = readable_key_warning(path);
        let span = member.node.span;
        fields.findings.warning_with(span, message, remedy);
    }
    match (cert, key) {
        (Some(cert), Some(key)) => Some((cert, key)),
        (None, None) => None,
        (cert, _) => {
            let (there, missing) = match cert {
                Some(_) => ("tls_cert", "tls_key"),
                None => ("tls_key", "tls_cert"),
            };
            if let Some(member) = fields.member(there) {
                let message = format!("`{there}` requires `{missing}`");
                fields.findings.error(member.key_span, message);
            }
            None
        }
    }
}

fn separator(fields: &mut Fields<'_, '_>) -> String {
    let separator = fields.text_or_default("separator");
    let fits = (1..=4).contains(&separator.len())
        && separator
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'));
    if !fits && let Some(text) = fields.text("separator") {
        let remedy = "use one to four ASCII letters, digits, `-`, `_` or `.`";
        fields.reject(&text, "is not valid in tool names", remedy);
    }
    separator
}

fn command_rules(table: &Table, findings: &mut Findings) -> CommandRules {
    let mut fields = Fields::new(table, keys::COMMANDS, "`[gateway.commands]`", findings);
    CommandRules {
        allow: fields.words("allow"),
        shells: match fields.choice("shells") {
            "warn" => ShellRule::Warn,
            _ => ShellRule::Refuse,
        },
    }
}

/// Minimum of `memory_mb`: one request of maximum size with its copies fits into the share of requests.
const LEAST_MEMORY_MB: u32 = 96;

/// Reads `memory_mb`, in bytes.
fn memory(table: &Table, findings: &mut Findings) -> usize {
    let mut fields = Fields::new(table, keys::LIMITS, "`[gateway.limits]`", findings);
    let megabytes = fields.count("memory_mb");
    if (1..LEAST_MEMORY_MB).contains(&megabytes) {
        let remedy = "use at least 96, or 0 for a quarter of the memory of this machine";
        fields.reject_key("memory_mb", "this limit is too small", remedy);
    }
    (megabytes as usize) << 20
}

fn tool_listing(table: &Table, findings: &mut Findings) -> ToolListing {
    let mut fields = Fields::new(table, keys::TOOLS, "`[gateway.tools]`", findings);
    ToolListing {
        mode: ToolMode::parse(fields.choice("mode")).unwrap_or_default(),
        pinned: fields.words("pinned"),
    }
}

/// Reads `[gateway.answers]` or `[servers.NAME.answers]`.
pub(super) fn read_answers(table: &Table, what: &str, findings: &mut Findings) -> DefaultAnswers {
    let mut fields = Fields::new(table, keys::ANSWERS, what, findings);
    let is_root = |uri: &str| uri.starts_with("file://");
    let remedy = "use a `file://` URI, such as `file:///home/ann/work`";
    let roots = fields.checked_words("roots", "is not a root URI", |uri| {
        (!is_root(uri)).then_some(remedy)
    });
    DefaultAnswers {
        elicitation: match fields.choice("elicitation") {
            "decline" => Some(Dismissal::Decline),
            "cancel" => Some(Dismissal::Cancel),
            _ => None,
        },
        sampling: fields.text("sampling").map(|text| text.value().to_owned()),
        // An empty list is a valid answer.
        roots: fields.member("roots").map(|_| roots),
    }
}
