//! Status of the gateway and its servers.

use crate::lists::server_list;
use crate::upstream::tool_filter;
use std::time::Duration;

use futures_util::Stream;
use futures_util::stream::FuturesUnordered;
use mcpact::server::router::HttpRoute;
use mcpact_config::ServerName;

use super::{Gateway, GroupTerms, State};
use crate::aggregate::list_kind::ListKind;
use crate::aggregate::server_entry::ServerReport;
use crate::control::{
    ControlFault, GatewayStatus, InstanceLine, LastError, ListCounts, ServerLine, Status, Transport,
};
use crate::filters::FilterReport;
use crate::stable::{GatewayState, ServerWord};
use crate::supervisor::{InstanceState, InstanceStatus};
use crate::target::Target;
use crate::upstream::UpstreamServer;

/// Maximum number of ended instances in the status of a server.
const MAX_ENDED: usize = 5;

impl Gateway {
    /// Connects to every server without cached metadata; yields the report of each server once it is known or failed.
    pub fn connect_all(&self) -> impl Stream<Item = ServerReport> + Send + use<> {
        let entries = self.state().entries().into_iter();
        let connecting = entries.map(|entry| async move {
            entry.meet().await;
            entry.report()
        });
        connecting.collect::<FuturesUnordered<_>>()
    }

    /// Returns the filters that are skipped because they are not approved.
    pub async fn unapproved_filters(&self) -> Vec<FilterReport> {
        self.filters.unapproved().await
    }

    /// Returns the reports of all servers.
    #[must_use]
    pub fn reports(&self) -> Vec<ServerReport> {
        let entries = self.state().entries();
        entries.iter().map(|entry| entry.report()).collect()
    }

    /// Returns the status of the gateway and of one server, or of all servers.
    ///
    /// # Errors
    /// The server is unknown.
    pub fn status(&self, server: Option<&str>) -> Result<Status, ControlFault> {
        self.check_server(server)?;
        Ok(self.snapshot(server))
    }

    /// Returns the status of the gateway and of one server, or of all servers.
    pub(super) fn snapshot(&self, server: Option<&str>) -> Status {
        let state = self.state();
        let is_selected = |name: &ServerName| server.is_none_or(|server| server == name.as_str());
        let served = state.servers.iter().filter(|(name, _)| is_selected(name));
        let served =
            served.map(|(name, served)| server_line(name, served, &state.draining_instances(name)));
        let invalid = state.catalog.wrong.iter();
        let invalid = invalid.filter(|(name, _)| is_selected(name));
        let invalid = invalid.map(|(name, why)| ServerLine {
            name: name.to_string(),
            state: ServerWord::Wrong.as_str().to_owned(),
            missing: Some(why.clone()),
            ..ServerLine::default()
        });
        let removed = state.removed().into_iter();
        let removed = removed.filter(|(name, _)| is_selected(name));
        let removed = removed
            .map(|(name, server)| removed_line(name, &server, &state.draining_instances(name)));
        Status {
            gateway: self.own_status(&state),
            servers: served.chain(invalid).chain(removed).collect(),
        }
    }

    /// Checks the name of a server; none is valid.
    ///
    /// # Errors
    /// The server is unknown.
    pub(crate) fn check_server(&self, server: Option<&str>) -> Result<(), ControlFault> {
        let state = self.state();
        match server {
            Some(name) if !state.names().any(|of| of.as_str() == name) => {
                let filters = self.filters.configs();
                Err(ControlFault::NoServer {
                    name: name.to_owned(),
                    servers: state.names().map(ToString::to_string).collect(),
                    filters: filters.map(|filter| filter.name.to_string()).collect(),
                })
            }
            Some(_) | None => Ok(()),
        }
    }

    fn own_status(&self, state: &State) -> GatewayStatus {
        let (file, uptime) = (self.file.get(), self.started.elapsed());
        let gateway_state = if self.drain_gate.is_closed() {
            GatewayState::Draining
        } else {
            GatewayState::Serving
        };
        GatewayStatus {
            state: gateway_state.as_str().to_owned(),
            url: self.origin.get().map(|origin| format!("{origin}/mcp")),
            config: file.map(|file| file.path.display().to_string()),
            watching: file.is_some() && state.catalog.gateway.watch,
            pid: std::process::id(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            uptime_seconds: uptime.as_secs(),
            state_seconds: self.drain_gate.closed_for().unwrap_or(uptime).as_secs(),
            sessions: self
                .routes(state)
                .map(HttpRoute::session_count)
                .sum::<usize>()
                + self.stdio_clients(),
            in_flight: self.drain_gate.in_flight(),
            last_reload: state.last_reload.clone(),
        }
    }
}

/// Returns the status of a removed server with calls in flight.
fn removed_line(
    name: &ServerName,
    server: &UpstreamServer,
    instances: &[InstanceStatus],
) -> ServerLine {
    let profile = server_list::profile(server);
    let revision = profile.as_ref().map(|profile| profile.revision);
    ServerLine {
        name: name.to_string(),
        state: ServerWord::Draining.as_str().to_owned(),
        transport: transport(server),
        revision: revision.map(|revision| revision.to_string()),
        era: revision.map(|revision| revision.era().as_str().to_owned()),
        calls_itself: profile.as_ref().and_then(|profile| profile.calls_itself()),
        instances: instances.iter().map(instance_line).collect(),
        in_flight: instances.iter().map(|one| one.in_flight).sum(),
        ..ServerLine::default()
    }
}

fn transport(server: &UpstreamServer) -> Transport {
    match server.target() {
        Target::Command(_) => Transport::Stdio,
        Target::Url { .. } => Transport::Http,
        Target::Local(_) => Transport::Builtin,
    }
}

fn server_line(name: &ServerName, served: &GroupTerms, draining: &[InstanceStatus]) -> ServerLine {
    let entry = &served.entry;
    let (server, report) = (entry.server(), entry.report());
    let status = server.status();
    let retry = status.state.wait().or(status.retry_in);
    let state = status.word(report.failure.is_some());
    let ended = status.ended.iter().take(MAX_ENDED);
    let running = status.instances.iter().chain(draining);
    ServerLine {
        name: name.to_string(),
        state: state.to_owned(),
        retry_seconds: retry.map(rounded_up),
        revision: report.revision.map(|revision| revision.to_string()),
        era: report
            .revision
            .map(|revision| revision.era().as_str().to_owned()),
        calls_itself: report.calls_itself,
        transport: transport(server),
        in_flight: running.clone().map(|one| one.in_flight).sum(),
        instances: running.chain(ended).map(instance_line).collect(),
        queued: status.queued,
        starts: status.starts,
        failures: status.failures,
        sessions: served.route.session_count(),
        lists: ListCounts {
            tools: entry.listed(ListKind::Tools),
            prompts: entry.listed(ListKind::Prompts),
            resources: entry.listed(ListKind::Resources),
            templates: entry.listed(ListKind::Templates),
        },
        lacking: entry.lacking(),
        hidden_tools: tool_filter::hidden_tools(server),
        missing: report.failure,
        missing_seconds: entry.missing_for().map(|time| time.as_secs()),
        last_error: status.last_error.map(|failure| LastError {
            why: failure.why.to_string(),
            seconds_ago: failure.age.as_secs(),
        }),
    }
}

fn instance_line(status: &InstanceStatus) -> InstanceLine {
    let why = match &status.state {
        InstanceState::Draining { cause, .. } | InstanceState::Stopped { cause } => {
            Some(cause.as_str().to_owned())
        }
        InstanceState::Failed { why } => Some(why.to_string()),
        InstanceState::Starting
        | InstanceState::Handshaking
        | InstanceState::Ready
        | InstanceState::Busy { .. } => status.unresponsive.map(|time| {
            let seconds = time.as_secs();
            format!("no answer to health checks for {seconds} s; it may hang, or handle one call at a time")
        }),
    };
    InstanceLine {
        id: status.id.number(),
        pid: status.pid,
        state: status.state.as_str().to_owned(),
        state_seconds: status.age.as_secs(),
        uptime_seconds: status.uptime.as_secs(),
        cause: status.cause.as_str().to_owned(),
        revision: status.revision.map(|revision| revision.to_string()),
        in_flight: status.in_flight,
        why,
    }
}

/// Rounds up, so that clients do not retry too early.
fn rounded_up(wait: Duration) -> u64 {
    wait.as_secs() + u64::from(wait.subsec_nanos() > 0)
}
