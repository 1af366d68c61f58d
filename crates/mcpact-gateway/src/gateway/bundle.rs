//! Diagnostic bundle without secrets.

use std::collections::BTreeMap;

use mcpact::server::backend::date;
use mcpact_config::{Catalog, ExpandedText, Launch, ServerConfig};
use mcpact_engine::policy::Reading;
use mcpact_transport::stdio::child::Masks;
use serde_json::{Value, json};

use super::{Gateway, snapshot};
use crate::control::{Attempt, Bundle, LogLine, Status, Step};
use crate::event_history::{LogEntry, LogEntryKind};

/// Maximum number of log lines.
const MAX_LINES: usize = 300;

/// Maximum number of starts.
const MAX_ATTEMPTS: usize = 100;

/// Replacement of a secret.
const MASKED: &str = "***";

/// Returns the diagnostic bundle.
#[must_use]
pub(crate) fn bundle(gateway: &Gateway) -> Bundle {
    let catalog = gateway.state().catalog.clone();
    let masks = Masks::new(secrets(&catalog));
    let status = snapshot::status(gateway, None);
    let entries = gateway.event_history.since(None, 0);
    let attempts = attempts(&entries, &status);
    let first = entries.len().saturating_sub(MAX_LINES);
    let log = entries.into_iter().skip(first).map(LogLine::from);
    let bundle = Bundle {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        system: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
        time: date(),
        config: config(&catalog),
        attempts,
        log: log.collect(),
        status,
    };
    masked(&bundle, &masks).unwrap_or(bundle)
}

/// Returns the bundle with masked secrets.
fn masked(bundle: &Bundle, masks: &Masks) -> Option<Bundle> {
    let mut value = serde_json::to_value(bundle).ok()?;
    mask(&mut value, masks);
    serde_json::from_value(value).ok()
}

fn mask(value: &mut Value, masks: &Masks) {
    match value {
        Value::String(text) => *text = masks.cover(std::mem::take(text)),
        Value::Array(items) => items.iter_mut().for_each(|item| mask(item, masks)),
        Value::Object(entries) => entries.values_mut().for_each(|item| mask(item, masks)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Returns every secret of the config and every value from a variable.
fn secrets(catalog: &Catalog) -> Vec<String> {
    let token = catalog.gateway.token.iter();
    let tokens = catalog.gateway.tokens.values();
    let servers = catalog.servers.values();
    let filters = catalog.filters.iter();
    token
        .chain(tokens.map(|named| &named.secret))
        .map(|token| token.reveal().to_owned())
        .chain(servers.flat_map(|server| server.launch.secrets()))
        .chain(filters.flat_map(|filter| filter.command.secrets()))
        .collect()
}

/// Returns the config as written, with masked secrets.
fn config(catalog: &Catalog) -> Value {
    let gateway = &catalog.gateway;
    let servers = catalog.servers.iter();
    let servers = servers.map(|(name, config)| (name.to_string(), server(config)));
    let policy = &gateway.policy;
    json!({
        "gateway": {
            "listen": gateway.listen.to_string(),
            "token": gateway.token.as_ref().map(|_| MASKED),
            "tokens": gateway.tokens.keys().map(|name| (name, MASKED)).collect::<BTreeMap<_, _>>(),
            "tls": gateway.tls.is_some(),
            "allow_remote": gateway.allow_remote,
            "allow_hosts": gateway.allow_hosts,
            "allow_origins": gateway.allow_origins,
            "allow_users": gateway.allow_users,
            "sse": gateway.sse,
            "websocket": gateway.websocket,
            "revisions": policy.version.supported.names(),
            "profile": gateway.profile,
            "strict": policy.reading == Reading::Strict,
            "lenient": gateway.lenient,
            "require": policy.required,
        },
        "servers": Value::Object(servers.collect()),
    })
}

fn server(config: &ServerConfig) -> Value {
    let run = &config.run;
    let mut shown = json!({
        "enabled": config.enabled,
        "era": format!("{:?}", config.era),
        "strategy": format!("{:?}", run.strategy),
        "require": config.require,
        "idle_seconds": run.idle.as_secs_f64(),
        "max_concurrent": run.max_concurrent,
        "max_instances": run.max_instances,
        "min_ready": run.min_ready,
        "queue": run.queue,
        "start_seconds": run.start_timeout.as_secs_f64(),
        "call_seconds": run.call_timeout.as_secs_f64(),
    });
    let names = |of: Vec<&String>| {
        let masked = of.into_iter().map(|name| (name.clone(), json!(MASKED)));
        Value::Object(masked.collect())
    };
    match &config.launch {
        Launch::Command(command) => {
            shown["command"] = json!(command.program.written());
            let args = command.args.iter().map(ExpandedText::written);
            shown["args"] = json!(args.collect::<Vec<_>>());
            shown["env"] = names(command.env.keys().collect());
        }
        Launch::Url(url) => {
            shown["url"] = json!(url.url.written());
            shown["headers"] = names(url.headers.keys().collect());
        }
        Launch::Builtin(builtin) => shown["builtin"] = json!(builtin),
    }
    shown
}

/// Returns the last starts of all servers with their events.
fn attempts(entries: &[LogEntry], status: &Status) -> Vec<Attempt> {
    let mut found: Vec<Attempt> = Vec::new();
    for entry in entries {
        let (Some(server), Some(instance)) = (&entry.server, entry.instance) else {
            continue;
        };
        let LogEntryKind::Event(event) = entry.kind else {
            continue;
        };
        let is_it = |attempt: &Attempt| attempt.server == **server && attempt.instance == instance;
        let step = Step {
            time: entry.time.clone(),
            event: event.to_owned(),
            text: entry.text.clone(),
        };
        match found.iter_mut().rfind(|attempt| is_it(attempt)) {
            Some(attempt) => attempt.steps.push(step),
            None => found.push(new_attempt(server, instance, status, step)),
        }
    }
    found.drain(..found.len().saturating_sub(MAX_ATTEMPTS));
    found
}

fn new_attempt(server: &str, instance: u64, status: &Status, first: Step) -> Attempt {
    let line = status.servers.iter().find(|line| line.name == server);
    let known = line.and_then(|line| line.instances.iter().find(|one| one.id == instance));
    Attempt {
        server: server.to_owned(),
        instance,
        state: known.map(|one| one.state.clone()),
        state_seconds: known.map(|one| one.state_seconds),
        steps: vec![first],
    }
}
