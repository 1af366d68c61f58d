//! From a text to a catalog.

mod answers;
mod environment;
mod filter;
mod gateway;
mod server;

use std::path::PathBuf;

use self::server::Ground;
use super::Catalog;
use super::adopt::{Adopted, adopt};
use super::config::{GatewayConfig, RunSettings, ServerConfig};
use super::expand::{Expansion, Filling, OnMissing, Shelf, Spelling};
use super::fields::Fields;
use super::filter::FilterConfig;
use super::keys;
use super::name::ServerName;
use super::problem::{Findings, Problem};
use super::source::{Source, Span};
use super::surroundings::Surroundings;
use super::syntax::Syntax;
use super::tree::{Member, Node, Table, Value};

/// What a text said.
#[derive(Clone, Debug)]
pub struct Reading {
    /// The catalog, if nothing was wrong enough to forbid it.
    pub catalog: Option<Catalog>,
    /// Everything that was wrong or should be known, in the order of the text.
    pub problems: Vec<Problem>,
}

/// Reads a config, in whatever syntax and shape it is written.
#[must_use]
pub fn read(source: &Source, surroundings: &dyn Surroundings) -> Reading {
    let syntax = Syntax::of(source);
    let mut findings = Findings::default();
    let catalog = match syntax.parse(source) {
        Ok(root) => match adopt(root, syntax, source, &surroundings.folder(), &mut findings) {
            Some(Adopted {
                root,
                spelling,
                wrong,
                ..
            }) => {
                let desk = Desk {
                    source,
                    surroundings,
                    spelling,
                };
                let mut catalog = desk.catalog(&root, &mut findings);
                for (name, problem) in wrong {
                    if !catalog.servers.contains_key(&name) {
                        catalog.wrong.insert(name, problem.in_one_line(source));
                    }
                }
                catalog
            }
            None => {
                let problem = findings.error(Span::default(), "no servers are configured here");
                problem
                    .remedy("`mcpServers`, `servers`, `context_servers` and `mcp` are looked for");
                Catalog::default()
            }
        },
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

/// What is needed beside the tree.
struct Desk<'a> {
    source: &'a Source,
    surroundings: &'a dyn Surroundings,
    spelling: Spelling,
}

impl Desk<'_> {
    fn catalog(&self, root: &Node, findings: &mut Findings) -> Catalog {
        let table = match &root.value {
            Value::Table(table) => table,
            // A file without anything in it; `null` is something.
            Value::Null if root.span == Span::default() => return Catalog::default(),
            _ => {
                findings.error(root.span, "a config is a table of keys");
                return Catalog::default();
            }
        };
        let mut fields = Fields::new(table, keys::ROOT, "the config", findings);
        let gateway = fields.table("gateway");
        let servers = fields.table("servers");
        let filters = fields.table("filters");
        let gateway = gateway.map_or_else(GatewayConfig::default, |table| {
            let table = self.expanded(table, Filling::Values(OnMissing::Refuse), findings);
            gateway::read(&table, Some(self.surroundings), findings)
        });
        let mut catalog = Catalog {
            gateway,
            ..Catalog::default()
        };
        if let Some(servers) = servers {
            self.servers(servers, &mut catalog, findings);
        }
        if let Some(filters) = filters {
            catalog.filters = self.filters(filters, &catalog.gateway, findings);
        }
        catalog
    }

    fn expanded(&self, table: &Table, filling: Filling, findings: &mut Findings) -> Table {
        let expansion = Expansion {
            source: self.source,
            surroundings: self.surroundings,
            spelling: self.spelling,
            filling,
        };
        let mut table = table.clone();
        let members = table.0.iter_mut();
        members.for_each(|member| expansion.run(&mut member.node, findings));
        table
    }

    fn servers(&self, table: &Table, catalog: &mut Catalog, findings: &mut Findings) {
        for member in &table.0 {
            let before = findings.count();
            let name = name(member, findings);
            let server = self.member(&name, member, &catalog.gateway, findings);
            if catalog.gateway.lenient {
                let errors = findings.forgive(before).iter();
                let errors: Vec<String> =
                    errors.map(|error| error.in_one_line(self.source)).collect();
                if !errors.is_empty() {
                    catalog.wrong.insert(name, errors.join("; "));
                    continue;
                }
            }
            if let Some(server) = server {
                warn_of_itself(member, &server, &catalog.gateway, findings);
                catalog.servers.insert(name, server);
            }
        }
    }

    /// In the order in which they are asked.
    fn filters(
        &self,
        table: &Table,
        gateway: &GatewayConfig,
        findings: &mut Findings,
    ) -> Vec<FilterConfig> {
        let ground = Ground {
            machine: Some(self.surroundings),
            gateway,
        };
        let mut filters = Vec::new();
        for member in &table.0 {
            let name = name(member, findings);
            let Some(table) = member.node.table() else {
                let kind = member.node.kind();
                let message = format!("filter `{name}` is {kind}, but should be a table");
                findings.error(member.node.span, message);
                continue;
            };
            let filling = Filling::Values(gateway.missing_variables);
            let table = self.expanded(table, filling, findings);
            filters.extend(filter::read(
                &name,
                member.key_span,
                &table,
                &ground,
                findings,
            ));
        }
        filters.sort_by(|one, other| (one.order, &one.name).cmp(&(other.order, &other.name)));
        filters
    }

    fn member(
        &self,
        name: &ServerName,
        member: &Member,
        gateway: &GatewayConfig,
        findings: &mut Findings,
    ) -> Option<ServerConfig> {
        let Some(table) = member.node.table() else {
            let kind = member.node.kind();
            let message = format!("server `{name}` is {kind}, but should be a table");
            findings.error(member.node.span, message);
            return None;
        };
        self.server(name, member.key_span, table, gateway, findings)
    }

    fn server(
        &self,
        name: &ServerName,
        span: Span,
        table: &Table,
        gateway: &GatewayConfig,
        findings: &mut Findings,
    ) -> Option<ServerConfig> {
        let enabled = table.member("enabled");
        let is_off = enabled.is_some_and(|member| member.node.value == Value::Flag(false));
        if is_off {
            // Whoever switched a server off need not have its variables, its files or its program.
            let table = self.expanded(table, Filling::Names(Shelf::Same), findings);
            let ground = Ground {
                machine: None,
                gateway,
            };
            let before = findings.count();
            let server = server::read(name, span, &table, &ground, findings);
            findings.soften(before);
            return server;
        }
        let filling = Filling::Values(gateway.missing_variables);
        let table = self.expanded(table, filling, findings);
        let ground = Ground {
            machine: Some(self.surroundings),
            gateway,
        };
        server::read(name, span, &table, &ground, findings)
    }
}

/// A server that is the gateway itself; where port 0 is to be listened on, that turns out later.
fn warn_of_itself(
    member: &Member,
    server: &ServerConfig,
    gateway: &GatewayConfig,
    findings: &mut Findings,
) {
    let listen = gateway.listen;
    if server.enabled && gateway.is_reached_by(&server.launch, listen) {
        let message =
            format!("a gateway on `{listen}` would serve itself here, and leaves this server out");
        let problem = findings.warning(member.key_span, message);
        problem.remedy("keep this for the configs of clients that the gateway does not read, or let the gateway listen elsewhere");
    }
}

/// The path that a text means; as it is written where there is no machine.
fn path(machine: Option<&dyn Surroundings>, written: &str) -> PathBuf {
    machine.map_or_else(|| PathBuf::from(written), |machine| machine.path(written))
}

/// The name of a server, or the nearest one, so that what is wrong with the server itself is told, too.
fn name(member: &Member, findings: &mut Findings) -> ServerName {
    ServerName::parse(&member.key).unwrap_or_else(|fault| {
        let near = ServerName::near(&member.key);
        let problem = findings.error(member.key_span, fault.to_string());
        problem.remedy(format!(
            "call it `{near}`: ASCII letters, digits, `-` and `_`"
        ));
        near
    })
}

/// The gateway when nothing is said about it.
pub(super) fn default_gateway() -> GatewayConfig {
    gateway::read(&Table::default(), None, &mut Findings::default())
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
pub(super) mod tests;
