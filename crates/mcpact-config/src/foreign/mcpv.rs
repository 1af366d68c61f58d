//! Catalogs of mcpv: keys outside of the servers. mcpv refuses unknown keys, so none is ignored here without a message.

use super::key_mapping::renamed;
use crate::nearest::nearest;
use crate::policy::has;
use crate::problem::Findings;
use crate::tree::{Member, Node, Table, Value};

/// Treatment of a top-level key.
enum RootKey {
    /// Converted.
    Used,
    /// Without effect, for this reason.
    Unneeded(&'static str),
    /// Refused if the function returns true for its value, with the consequence and the replacement.
    Refused(fn(&Value) -> bool, &'static str, &'static str),
}

use RootKey::{Refused, Unneeded, Used};

const ROOT: &[(&str, RootKey)] = &[
    (
        "servers routeTimeoutSeconds pingIntervalSeconds serverInitRetryBaseSeconds serverInitRetryMaxSeconds \
         serverInitMaxRetries toolNamespaceStrategy defaultActivationMode exposeTools proxy",
        Used,
    ),
    (
        "toolRefreshSeconds toolRefreshConcurrency",
        Unneeded("lists are fetched again when a server reports a change"),
    ),
    (
        "clientCheckSeconds clientInactiveSeconds callerCheckSeconds callerInactiveSeconds",
        Unneeded("a client ends with its session or connection"),
    ),
    (
        "bootstrapMode bootstrapConcurrency bootstrapTimeoutSeconds",
        Unneeded("lists are fetched on demand and cached"),
    ),
    (
        "plugins",
        Refused(
            has_plugins,
            "requests would pass without them",
            "write each plugin as a filter program in `[filters.NAME]` of a `mcpact.toml`, or set `disabled: true` on it",
        ),
    ),
    (
        "observability",
        Refused(
            is_set,
            "`/metrics` and `/healthz` are served at the address of the gateway",
            "remove it, and set `listen` in [gateway] of a `mcpact.toml`",
        ),
    ),
    (
        "rpc",
        Refused(
            is_set,
            "mcpact has no RPC listener; clients connect by HTTP",
            "remove it, and set `listen`, `token`, `tls_cert` and `tls_key` in [gateway] of a `mcpact.toml`",
        ),
    ),
    (
        "subAgent",
        Refused(
            has_sub_agent,
            "mcpact does not select tools with a model",
            "set `enabled: false` in it, and list the tools in `exposeTools` of each server",
        ),
    ),
    (
        "reloadMode",
        Refused(
            |mode| *mode != Value::from("lenient"),
            "after a failed reload, mcpact keeps the running config",
            "remove it or set `reloadMode: lenient`",
        ),
    ),
];

fn is_set(value: &Value) -> bool {
    *value != Value::Table(Table::default())
}

fn has_plugins(plugins: &Value) -> bool {
    let is_off = |plugin: &Node| {
        let disabled = plugin.table().and_then(|plugin| plugin.member("disabled"));
        disabled.is_some_and(|disabled| disabled.node.value == Value::Flag(true))
    };
    match plugins {
        Value::List(plugins) => !plugins.iter().all(is_off),
        _ => true,
    }
}

fn has_sub_agent(agent: &Value) -> bool {
    let Value::Table(inner) = agent else {
        return true;
    };
    match inner.member("enabled") {
        Some(enabled) => enabled.node.value != Value::Flag(false),
        None => is_set(agent),
    }
}

/// Reports the top-level keys that are not converted.
pub(super) fn check(root: &Table, findings: &mut Findings) {
    for member in &root.0 {
        let (key, at) = (&member.key, member.key_span);
        let row = ROOT.iter().find(|(names, _)| has(names, key));
        match row.map(|(_, treatment)| treatment) {
            _ if member.node.value == Value::Null => {}
            Some(Used) => {}
            Some(Unneeded(why)) => {
                findings.note(at, format!("`{key}` has no effect: {why}"));
            }
            Some(Refused(is_on, why, remedy)) => {
                if is_on(&member.node.value) {
                    let message = format!("`{key}` of mcpv is not supported: {why}");
                    findings.error_with(at, message, *remedy);
                }
            }
            None => {
                let known: Vec<&str> = ROOT.iter().flat_map(|row| row.0.split(' ')).collect();
                let problem =
                    findings.error(at, format!("unknown key `{key}` in a catalog of mcpv"));
                problem.remedy(match nearest(key, &known) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => String::from("remove it"),
                });
            }
        }
    }
}

/// Keys that every server gets, in the format of its own keys.
pub(super) fn defaults(root: &Table, findings: &mut Findings) -> Vec<Member> {
    let mut defaults = Vec::new();
    if let Some(proxy) = root.member("proxy") {
        defaults.push(proxy.clone());
    }
    if let Some(mode) = root.member("defaultActivationMode") {
        defaults.push(renamed(mode, ACTIVATION));
    }
    match root.member("exposeTools") {
        Some(tools) if tools.node.value == Value::Flag(false) => {
            let mut hidden = renamed(tools, "hidden_tools");
            let pattern = Node::new(tools.node.span, Value::from("*"));
            hidden.node.value = Value::List(vec![pattern]);
            defaults.push(hidden);
        }
        Some(tools) if !matches!(tools.node.value, Value::Flag(_) | Value::Null) => {
            findings.error(tools.node.span, "`exposeTools` must be true or false");
        }
        Some(_) | None => {}
    }
    defaults
}

const ACTIVATION: &str = "activationMode";

/// Adds the defaults to a server. The first of several equal keys wins, and a later `proxy` overrides an earlier one.
pub(super) fn add_defaults(defaults: &[Member], entry: &mut Member) {
    if let Value::Table(server) = &mut entry.node.value {
        for default in defaults {
            if default.key != ACTIVATION || server.member(ACTIVATION).is_none() {
                server.0.insert(0, default.clone());
            }
        }
    }
}
