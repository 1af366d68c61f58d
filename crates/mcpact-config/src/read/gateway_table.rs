//! `[gateway]`.

use std::net::SocketAddr;
use std::path::PathBuf;

use mcpact_engine::policy::{OnUndeclared, Profile};
use mcpact_spec::{Revision, Side};

use super::answers_table;
use crate::config::{CommandRules, GatewayConfig, NameStyle, ShellRule};
use crate::expand::OnMissing;
use crate::exposing_keys::exposing_keys;
use crate::fields::Fields;
use crate::host_environment::HostEnvironment;
use crate::hosts::{host_hint, is_host, origin_problem};
use crate::keys;
use crate::problem::Findings;
use crate::secret::Secret;
use crate::shared_values::shared_values;
use crate::tree::Table;

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
    let Token {
        value: token,
        written: token_written,
        variable: token_variable,
    } = token(&mut fields);
    let allow_remote = fields.flag("allow_remote");
    if !(listen.ip().is_loopback() || allow_remote || token.is_some()) {
        remote(&mut fields);
    }
    let commands = fields.table("commands");
    let answers = fields.table("answers");
    let config = GatewayConfig {
        listen,
        token,
        token_written,
        token_variable,
        allow_remote,
        allow_hosts: hosts(&mut fields),
        allow_origins: origins(&mut fields),
        tls: tls(host, &mut fields),
        sse: fields.flag("sse"),
        websocket: fields.flag("websocket"),
        control: fields
            .text("control")
            .map(|text| super::path(host, text.filled.value())),
        names: match fields.choice("names") {
            "flat" => NameStyle::Flat,
            _ => NameStyle::Prefix,
        },
        separator: separator(&mut fields),
        watch: fields.flag("watch"),
        drain: fields.seconds("drain_seconds"),
        list_wait: fields.seconds("list_seconds"),
        revisions: revisions(&mut fields),
        profile: Profile::parse(fields.choice("profile")).unwrap_or(Profile::Spec),
        strict: fields.flag("strict"),
        lenient: fields.flag("lenient"),
        undeclared: match fields.choice("undeclared") {
            "warn" => OnUndeclared::Warn,
            "error" => OnUndeclared::Error,
            "disconnect" => OnUndeclared::Disconnect,
            _ => OnUndeclared::Drop,
        },
        announce_extras: fields.flag("announce_extras"),
        require: fields.capabilities("require", Side::Client),
        missing_variables: match fields.choice("missing_variables") {
            "keep" => OnMissing::Keep,
            _ => OnMissing::Refuse,
        },
        answers: answers_table::read(
            answers.unwrap_or(&Table::default()),
            "`[gateway.answers]`",
            fields.findings,
        ),
        answers_shared: answers.map_or_else(Vec::new, |table| {
            shared_values(table, "gateway.answers.", &[])
        }),
        commands: command_rules(commands.unwrap_or(&Table::default()), fields.findings),
        exposing_keys: exposing_keys(table),
    };
    for exposing_key in &config.exposing_keys {
        fields.findings.note(exposing_key.span, exposing_key.note());
    }
    if let Some((message, remedy)) = config.missing_host_warning()
        && let Some(member) = fields.member("listen")
    {
        let problem = fields.findings.warning(member.node.span, message);
        problem.remedy(remedy);
    }
    config
}

fn listen(fields: &mut Fields<'_, '_>) -> SocketAddr {
    let given = fields.text_or_default("listen");
    given.parse().unwrap_or_else(|_| {
        if let Some(text) = fields.text("listen") {
            let message = format!("`{}` is not a listen address", text.filled);
            let problem = fields.findings.error(text.span, message);
            problem
                .remedy("use an IP address and a port from 0 to 65535, such as `127.0.0.1:6272`");
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

/// The token, and its form for messages.
#[derive(Default)]
struct Token {
    value: Option<Secret>,
    written: Option<String>,
    variable: Option<String>,
}

fn token(fields: &mut Fields<'_, '_>) -> Token {
    let Some(text) = fields.text("token") else {
        return Token::default();
    };
    let value = text.filled.value();
    if value.len() < SHORTEST_TOKEN || !value.bytes().all(|byte| byte.is_ascii_graphic()) {
        let at = fields
            .member("token")
            .map_or(text.span, |member| member.key_span);
        let problem = fields.findings.error(at, "this token is too weak");
        problem.remedy(format!(
            "use at least {SHORTEST_TOKEN} visible ASCII characters; `openssl rand -hex 32` generates one"
        ));
    }
    let written = text.filled.written();
    Token {
        value: Some(Secret::new(value)),
        written: is_plain_reference(written).then(|| written.to_owned()),
        variable: variable_with_default(written).map(str::to_owned),
    }
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

fn hosts(fields: &mut Fields<'_, '_>) -> Vec<String> {
    let texts = fields.texts("allow_hosts");
    for text in texts.iter().filter(|text| !is_host(text.filled.value())) {
        let message = format!("`{}` is not a host", text.filled);
        let problem = fields.findings.error(text.span, message);
        problem.remedy(host_hint(text.filled.value()));
    }
    let texts = texts.into_iter();
    texts.map(|text| text.filled.value().to_owned()).collect()
}

fn origins(fields: &mut Fields<'_, '_>) -> Vec<String> {
    let texts = fields.texts("allow_origins");
    for text in &texts {
        if let Some(remedy) = origin_problem(text.filled.value()) {
            let message = format!("`{}` is not an origin", text.filled);
            let problem = fields.findings.error(text.span, message);
            problem.remedy(remedy);
        }
    }
    let texts = texts.into_iter();
    texts.map(|text| text.filled.value().to_owned()).collect()
}

/// Path of a file that must exist.
fn file(
    name: &str,
    host: Option<&dyn HostEnvironment>,
    fields: &mut Fields<'_, '_>,
) -> Option<PathBuf> {
    let text = fields.text(name)?;
    let path = super::path(host, text.filled.value());
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
        let message = format!("`{}` is not valid in tool names", text.filled);
        let problem = fields.findings.error(text.span, message);
        problem.remedy("use one to four ASCII letters, digits, `-`, `_` or `.`");
    }
    separator
}

fn revisions(fields: &mut Fields<'_, '_>) -> Vec<Revision> {
    let words = fields.choices("revisions").into_iter();
    words.filter_map(Revision::parse).collect()
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
