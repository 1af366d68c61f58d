//! Reading of a config into a [`Catalog`].

mod environment;
mod gateway_table;
pub(super) mod policy_keys;
mod server_table;

use std::collections::BTreeMap;
use std::path::PathBuf;

use self::server_table::ReadContext;
use super::config::{FilterConfig, GatewayConfig, RunSettings, ServerConfig};
use super::expand::{Expansion, ExpansionMode, OnMissing, TargetFolder, VariableSyntax};
use super::fields::Fields;
use super::foreign::{ConvertedConfig, convert};
use super::name::ServerName;
use super::policy_settings::PolicySettings;
use super::problem::{Findings, Problem, Severity};
use super::source::{Source, Span};
use super::syntax::Syntax;
use super::tree::{Member, Node, Table, Value};
use super::{Catalog, keys};
use crate::local_host::HostEnvironment;

/// Result of reading a config.
#[derive(Clone, Debug)]
pub struct ReadOutcome {
    /// The catalog, unless there are errors.
    pub catalog: Option<Catalog>,
    /// All problems in source order.
    pub problems: Vec<Problem>,
}

/// Reads a config in any supported syntax, native or of another client.
#[must_use]
pub fn read(source: &Source, host: &dyn HostEnvironment) -> ReadOutcome {
    read_with(source, host, &PolicySettings::default())
}

/// Reads a config; the settings replace keys of its `[gateway]`.
#[must_use]
pub fn read_with(
    source: &Source,
    host: &dyn HostEnvironment,
    settings: &PolicySettings,
) -> ReadOutcome {
    let syntax = Syntax::of(source);
    let mut findings = Findings::default();
    let catalog = match syntax.parse(source) {
        Ok(root) => match convert(root, syntax, source, &host.folder(), &mut findings) {
            Some(ConvertedConfig {
                root,
                variable_syntax,
                wrong,
                is_native,
                ..
            }) => {
                let purpose = match is_native {
                    true => Purpose::Serve,
                    false => Purpose::ServeForeign,
                };
                let reader = CatalogReader {
                    source,
                    host,
                    variable_syntax,
                    settings,
                    purpose,
                };
                let mut catalog = reader.catalog(&root, &mut findings);
                for (name, problem) in wrong {
                    if !catalog.servers.contains_key(&name) {
                        catalog.wrong.insert(name, problem.in_one_line(source));
                    }
                }
                catalog
            }
            None => {
                let problem = findings.error(Span::default(), "no servers configured");
                problem
                    .remedy("add a `[servers.NAME]` table, or a table that another client uses, such as `mcpServers`");
                Catalog::default()
            }
        },
        Err(problem) => {
            return ReadOutcome {
                catalog: None,
                problems: vec![problem],
            };
        }
    };
    ReadOutcome {
        catalog: (!findings.has_errors()).then_some(catalog),
        problems: findings.finish(),
    }
}

/// Checks a native tree that is going to be written. Returns the errors, and the servers that have one.
pub(super) fn check_import(
    root: &Node,
    source: &Source,
    host: &dyn HostEnvironment,
) -> (Vec<Problem>, BTreeMap<ServerName, String>) {
    let reader = CatalogReader {
        source,
        host,
        variable_syntax: VariableSyntax::Dollar,
        settings: &PolicySettings::default(),
        purpose: Purpose::Import,
    };
    let mut findings = Findings::default();
    let catalog = reader.catalog(root, &mut findings);
    let mut problems = findings.finish();
    problems.retain(|problem| problem.severity == Severity::Error);
    (problems, catalog.wrong)
}

/// Inputs of reading besides the tree.
struct CatalogReader<'a> {
    source: &'a Source,
    host: &'a dyn HostEnvironment,
    variable_syntax: VariableSyntax,
    settings: &'a PolicySettings,
    purpose: Purpose,
}

/// Purpose of reading.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Purpose {
    Serve,
    /// Serves the config of another client: an invalid server disables only itself.
    ServeForeign,
    /// Finds the servers that would be refused; variables may be unset for now.
    Import,
}

impl CatalogReader<'_> {
    fn catalog(&self, root: &Node, findings: &mut Findings) -> Catalog {
        let table = match &root.value {
            Value::Table(table) => table,
            // An empty file; a literal `null` is an error.
            Value::Null if root.span == Span::default() => {
                let mut catalog = Catalog::default();
                catalog.gateway.policy = self.settings.policy();
                return catalog;
            }
            _ => {
                findings.error(root.span, "a config must be a table");
                return Catalog::default();
            }
        };
        let mut fields = Fields::new(table, keys::ROOT, "the config", findings);
        let gateway = fields.table("gateway");
        let servers = fields.table("servers");
        let filters = fields.table("filters");
        let empty = Table::default();
        let mode = ExpansionMode::Values(OnMissing::Refuse);
        let mut table = self.expanded(gateway.unwrap_or(&empty), mode, findings);
        self.settings.override_in(&mut table);
        let gateway = gateway_table::read(&table, Some(self.host), findings);
        let gateway = match self.purpose {
            Purpose::ServeForeign if table.member("lenient").is_none() => GatewayConfig {
                lenient: true,
                ..gateway
            },
            Purpose::Serve | Purpose::ServeForeign => gateway,
            Purpose::Import => GatewayConfig {
                lenient: true,
                missing_variables: OnMissing::Keep,
                ..gateway
            },
        };
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

    fn expanded(&self, table: &Table, mode: ExpansionMode, findings: &mut Findings) -> Table {
        let expansion = Expansion {
            source: self.source,
            host: self.host,
            variable_syntax: self.variable_syntax,
            mode,
        };
        let numbers = Expansion {
            mode: ExpansionMode::Values(OnMissing::Refuse),
            ..expansion
        };
        let mut table = table.clone();
        table.0.retain_mut(|member| {
            let is_number = member.theirs.is_some() && is_unknown_number(member);
            if !is_number || matches!(mode, ExpansionMode::Names(_)) {
                expansion.run(&mut member.node, findings);
                return true;
            }
            // Dropped with an error of the variable, or the reader would report it again.
            let before = findings.count();
            numbers.run(&mut member.node, findings);
            findings.remedy(before, "set the variable, or write the number itself");
            findings.count() == before
        });
        table
    }

    fn servers(&self, table: &Table, catalog: &mut Catalog, findings: &mut Findings) {
        for member in &table.0 {
            let before = findings.count();
            let name = name(member, findings);
            let server = self.server(&name, member, &catalog.gateway, findings);
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
                warn_of_loop(member, &server, &catalog.gateway, findings);
                catalog.servers.insert(name, server);
            }
        }
    }

    /// Filters in the order in which they run.
    fn filters(
        &self,
        table: &Table,
        gateway: &GatewayConfig,
        findings: &mut Findings,
    ) -> Vec<FilterConfig> {
        let context = ReadContext {
            host: Some(self.host),
            gateway,
        };
        let mut filters = Vec::new();
        for member in &table.0 {
            let name = name(member, findings);
            let Some(table) = table_of("filter", &name, member, findings) else {
                continue;
            };
            let mode = ExpansionMode::Values(gateway.missing_variables);
            let table = self.expanded(table, mode, findings);
            filters.extend(server_table::read_filter(
                &name,
                member.key_span,
                &table,
                &context,
                findings,
            ));
        }
        filters.sort_by(|one, other| (one.order, &one.name).cmp(&(other.order, &other.name)));
        filters
    }

    fn server(
        &self,
        name: &ServerName,
        member: &Member,
        gateway: &GatewayConfig,
        findings: &mut Findings,
    ) -> Option<ServerConfig> {
        let table = table_of("server", name, member, findings)?;
        let span = member.key_span;
        let enabled = table.member("enabled");
        let is_off = enabled.is_some_and(|member| member.node.value == Value::Flag(false));
        // A disabled server may refer to missing variables, files or programs.
        let (mode, host) = match is_off {
            true => (ExpansionMode::Names(TargetFolder::Same), None),
            false => {
                let mode = ExpansionMode::Values(gateway.missing_variables);
                (mode, Some(self.host))
            }
        };
        let mut table = self.expanded(table, mode, findings);
        if is_off {
            table.0.retain(|member| !is_unknown_number(member));
        }
        let before = findings.count();
        let context = ReadContext { host, gateway };
        let server = server_table::read(name, span, &table, &context, findings);
        if is_off {
            findings.soften(before);
        }
        server
    }
}

/// Returns whether a number is given by a variable without a value.
pub(super) fn is_unknown_number(member: &Member) -> bool {
    let kind = keys::find(keys::SERVER, &member.key).map(|key| key.kind);
    matches!(kind, Some(keys::Kind::Count(..) | keys::Kind::Seconds(..)))
        && member
            .node
            .text()
            .is_some_and(|text| text.value().contains('$'))
}

fn table_of<'t>(
    what: &str,
    name: &ServerName,
    member: &'t Member,
    findings: &mut Findings,
) -> Option<&'t Table> {
    let table = member.node.table();
    if table.is_none() {
        let kind = member.node.kind();
        let message = format!("{what} `{name}` must be a table, not {kind}");
        findings.error(member.node.span, message);
    }
    table
}

/// Warns if a server is this gateway itself. Port 0 can be checked only after binding.
fn warn_of_loop(
    member: &Member,
    server: &ServerConfig,
    gateway: &GatewayConfig,
    findings: &mut Findings,
) {
    let Some(listen) = gateway.listen.tcp() else {
        return;
    };
    if server.enabled && gateway.leads_to_gateway(&server.launch, listen) {
        let message =
            format!("proxy loop: this server is the gateway itself on `{listen}`, and is ignored");
        let problem = findings.warning(member.key_span, message);
        problem.remedy("remove it, or set another `listen` address");
    }
}

/// Resolves a path; unchanged without a host.
fn path(host: Option<&dyn HostEnvironment>, written: &str) -> PathBuf {
    host.map_or_else(|| PathBuf::from(written), |host| host.path(written))
}

/// Name of the server, or the nearest valid one, so that its other problems are reported too.
fn name(member: &Member, findings: &mut Findings) -> ServerName {
    ServerName::parse(&member.key).unwrap_or_else(|fault| {
        let near = ServerName::near(&member.key);
        let problem = findings.error(member.key_span, fault.to_string());
        problem.remedy(format!(
            "rename it to `{near}`: use ASCII letters, digits, `-` and `_`"
        ));
        near
    })
}

/// Gateway settings with all defaults.
pub(super) fn default_gateway() -> GatewayConfig {
    gateway_table::read(&Table::default(), None, &mut Findings::default())
}

/// Run settings with all defaults.
pub(super) fn default_run() -> RunSettings {
    server_table::run_settings(&mut Fields::new(
        &Table::default(),
        keys::SERVER,
        "",
        &mut Findings::default(),
    ))
}

#[cfg(test)]
pub(super) mod tests;
