//! From a text to a catalog.

mod gateway;
mod server;

use std::collections::BTreeMap;

use super::Catalog;
use super::config::{GatewayConfig, RunSettings, ServerConfig};
use super::fields::Fields;
use super::keys;
use super::name::ServerName;
use super::problem::{Findings, Problem};
use super::source::Source;
use super::syntax;
use super::tree::{Member, Node, Table};

/// What a text said.
#[derive(Clone, Debug)]
pub struct Reading {
    /// The catalog, if nothing was wrong enough to forbid it.
    pub catalog: Option<Catalog>,
    /// Everything that was wrong or should be known, in the order of the text.
    pub problems: Vec<Problem>,
}

/// Reads a config.
#[must_use]
pub fn read(source: &Source) -> Reading {
    let mut findings = Findings::default();
    let catalog = match syntax::parse(source) {
        Ok(root) => catalog(&root, &mut findings),
        Err(problem) => {
            return Reading {
                catalog: None,
                problems: vec![problem],
            };
        }
    };
    Reading {
        catalog: (!findings.has_errors()).then_some(catalog),
        problems: findings.finish(),
    }
}

fn catalog(root: &Node, findings: &mut Findings) -> Catalog {
    let Some(table) = root.table() else {
        findings.error(root.span, "a config is a table of keys");
        return Catalog::default();
    };
    let mut fields = Fields::new(table, keys::ROOT, "the config", findings);
    let gateway = fields.table("gateway");
    let servers = fields.table("servers");
    Catalog {
        gateway: gateway.map_or_else(GatewayConfig::default, |table| {
            gateway::read(table, findings)
        }),
        servers: servers.map_or_else(BTreeMap::new, |table| self::servers(table, findings)),
    }
}

fn servers(table: &Table, findings: &mut Findings) -> BTreeMap<ServerName, ServerConfig> {
    let mut servers = BTreeMap::new();
    for member in &table.0 {
        let Some(name) = name(member, findings) else {
            continue;
        };
        let Some(table) = member.node.table() else {
            let message = format!(
                "server `{name}` is {}, but should be a table",
                member.node.kind()
            );
            findings.error(member.node.span, message);
            continue;
        };
        if let Some(server) = server::read(&name, member.key_span, table, findings) {
            servers.insert(name, server);
        }
    }
    servers
}

fn name(member: &Member, findings: &mut Findings) -> Option<ServerName> {
    match ServerName::parse(&member.key) {
        Ok(name) => Some(name),
        Err(fault) => {
            let problem = findings.error(member.key_span, fault.to_string());
            let near = ServerName::near(&member.key);
            problem.remedy(format!("call it `{near}`: letters, digits, `-` and `_`"));
            None
        }
    }
}

/// The gateway when nothing is said about it.
pub(super) fn default_gateway() -> GatewayConfig {
    gateway::read(&Table::default(), &mut Findings::default())
}

/// How instances are kept when nothing is said about it.
pub(super) fn default_run() -> RunSettings {
    server::run_settings(&mut Fields::new(
        &Table::default(),
        keys::SERVER,
        "",
        &mut Findings::default(),
    ))
}

#[cfg(test)]
mod tests;
