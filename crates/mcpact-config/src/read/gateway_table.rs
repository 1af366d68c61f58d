//! `[gateway]`.

use std::net::SocketAddr;
use std::path::PathBuf;

use mcpact_translate::input::{DefaultAnswers, Dismissal};

use crate::approvals::exposing_keys;
use crate::config::{CommandRules, GatewayConfig, NameStyle, ShellRule, ToolListing, ToolMode};
use crate::expand::OnMissing;
use crate::fields::Fields;
use crate::hosts::{host_problem, origin_problem};
use crate::keys;
use crate::local_host::HostEnvironment;
use crate::problem::Findings;
use crate::read::policy_keys;
use crate::secret::Secret;
use crate::tree::{Table, shared_values};

/// Placeholder if `listen` is invalid.
const USUAL: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 6272);

/// Minimum length of a token.
const SHORTEST_TOKEN: usize = 16;

pub(super) fn read(
    table: &Table,
    host: Option<&dyn HostEnvironment>,
    findings: &mut Findings,
) -> GatewayConfig {
    let mut fields = Fields::new(table, keys::GATEWAY, "`[gateway]`", findings);
    let listen = listen(&mut fields);
    let (token, written) = token(&mut fields).unzip();
    let token_variable = written.as_deref().and_then(variable_with_default);
    let token_variable = token_variable.map(str::to_owned);
    let token_written = written.filter(|written| is_plain_reference(written));
    let allow_remote = fields.flag("allow_remote");
    if !(listen.ip().is_loopback() || allow_remote || token.is_some()) {
        remote(&mut fields);
    }
    let commands = fields.table("commands");
    let answers = fields.table("answers");
    let tools = fields.table("tools");
    let config = GatewayConfig {
        listen,
        token,
        token_written,
        token_variable,
        allow_remote,
        allow_hosts: fields.checked_words("allow_hosts", "is not a host", host_problem),
        allow_origins: fields.checked_words("allow_origins", "is not an origin", origin_problem),
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
        commands: command_rules(commands.unwrap_or(&Table::default()), fields.findings),
        exposing_keys: exposing_keys(table),
    };
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

fn listen(fields: &mut Fields<'_, '_>) -> SocketAddr {
    let given = fields.text_or_default("listen");
    given.parse().unwrap_or_else(|_| {
        if let Some(text) = fields.text("listen") {
            let remedy = "use an IP address and a port from 0 to 65535, such as `127.0.0.1:6272`";
            fields.reject(&text, "is not a listen address", remedy);
        }
        USUAL
    })
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
    let value = text.value();
    if value.len() < SHORTEST_TOKEN || !value.bytes().all(|byte| byte.is_ascii_graphic()) {
        let at = fields
            .member("token")
            .map_or(text.span, |member| member.key_span);
        let problem = fields.findings.error(at, "this token is too weak");
        problem.remedy(format!(
            "use at least {SHORTEST_TOKEN} visible ASCII characters; `openssl rand -hex 32` generates one"
        ));
    }
    Some((Secret::new(value), text.filled.written().to_owned()))
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
