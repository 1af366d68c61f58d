//! Status of the gateway and its servers.

use std::time::Duration;

use mcpact::server::router::HttpRoute;
use mcpact_config::ServerName;
use mcpact_spec::Revision;

use super::{Gateway, ServerRoute, State, clients};
use crate::aggregate::list_kind::ListKind;
use crate::control::{
    GatewayStatus, InstanceLine, LastError, ListCounts, ServerLine, Status, Transport,
};
use crate::reason::{GatewayState, ServerWord};
use crate::supervisor::{InstanceState, InstanceStatus};
use crate::target::Target;
use crate::upstream::{UpstreamServer, tool_filter};

/// Maximum number of ended instances in the status of a server.
const MAX_ENDED: usize = 5;

/// Returns the status of the gateway and of one server, or of all servers.
pub(super) fn status(gateway: &Gateway, server: Option<&str>) -> Status {
    let state = gateway.state();
    let served = state.servers.iter();
    let served = served.map(|(name, served)| server_line(gateway, &state, name, served));
    let invalid = state.catalog.wrong.iter().map(|(name, why)| ServerLine {
        name: name.to_string(),
        state: ServerWord::Wrong.as_str().to_owned(),
        missing: Some(why.clone()),
        ..ServerLine::default()
    });
    let removed = state.removed().into_iter();
    let removed = removed.map(|(name, server)| removed_line(&state, name, &server));
    let mut servers: Vec<ServerLine> = served.chain(invalid).chain(removed).collect();
    servers.retain(|line| server.is_none_or(|server| server == line.name));
    Status {
        gateway: gateway_status(gateway, &state),
        servers,
    }
}

fn gateway_status(gateway: &Gateway, state: &State) -> GatewayStatus {
    let (file, uptime) = (gateway.file.get(), gateway.started.elapsed());
    let gateway_state = if gateway.drain_gate.is_closed() {
        GatewayState::Draining
    } else {
        GatewayState::Serving
    };
    let http_sessions = gateway.routes(state).map(HttpRoute::session_count);
    GatewayStatus {
        state: gateway_state.as_str().to_owned(),
        url: gateway.origin.get().map(|origin| format!("{origin}/mcp")),
        config: file.map(|file| file.path.display().to_string()),
        watching: file.is_some() && state.catalog.gateway.watch,
        pid: std::process::id(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        uptime_seconds: uptime.as_secs(),
        state_seconds: gateway.drain_gate.closed_for().unwrap_or(uptime).as_secs(),
        sessions: http_sessions.sum::<usize>() + gateway.stdio_clients(),
        in_flight: gateway.drain_gate.in_flight(),
        last_reload: state.last_reload.clone(),
        ignored_capabilities: gateway.metrics.ignored(),
    }
}

/// Returns the status of a removed server with calls in flight.
fn removed_line(state: &State, name: &ServerName, server: &UpstreamServer) -> ServerLine {
    let instances = state.draining_instances(name);
    let profile = server.shared.info_cache.profile();
    let revision = profile.as_ref().map(|profile| profile.revision);
    ServerLine {
        name: name.to_string(),
        state: ServerWord::Draining.as_str().to_owned(),
        transport: transport(server),
        revision: revision.map(|revision| revision.to_string()),
        era: revision.map(era),
        calls_itself: profile.as_ref().and_then(|profile| profile.own_name()),
        instances: instances.iter().map(instance_line).collect(),
        in_flight: instances.iter().map(|one| one.in_flight).sum(),
        ..ServerLine::default()
    }
}

fn era(revision: Revision) -> String {
    revision.era().as_str().to_owned()
}

fn transport(server: &UpstreamServer) -> Transport {
    match &server.shared.target {
        Target::Command(_) => Transport::Stdio,
        Target::Url { .. } => Transport::Http,
        Target::Local(_) => Transport::Builtin,
    }
}

fn server_line(
    gateway: &Gateway,
    state: &State,
    name: &ServerName,
    served: &ServerRoute,
) -> ServerLine {
    let draining = state.draining_instances(name);
    let config = state.catalog.servers.get(name.as_str());
    let entry = &served.entry;
    let (server, report) = (entry.server(), entry.report());
    let profile = server.shared.info_cache.profile();
    let status = server.status();
    let retry = status.state.wait().or(status.retry_in);
    let word = status.word(report.failure.is_some());
    let remedy = entry.remedy();
    let remedy = remedy.or_else(|| status.last_error.as_ref()?.hint.clone());
    let declared = profile.as_ref().map(|profile| {
        let declared = profile.introduction.capabilities.declared();
        declared.iter().map(|one| one.path().to_owned()).collect()
    });
    let ended = status.ended.iter().take(MAX_ENDED);
    let running = status.instances.iter().chain(&draining);
    ServerLine {
        name: name.to_string(),
        state: word.to_owned(),
        retry_seconds: retry.map(rounded_up),
        revision: report.revision.map(|revision| revision.to_string()),
        era: report.revision.map(era),
        calls_itself: report.calls_itself,
        transport: transport(server),
        sandbox: config.and_then(|config| config.launch.sandbox()),
        in_flight: running.clone().map(|one| one.in_flight).sum(),
        instances: running.chain(ended).map(instance_line).collect(),
        queued: status.queued,
        starts: status.starts,
        failures: status.failures,
        sessions: served.route.session_count(),
        lists: ListCounts {
            tools: entry.lists.count(ListKind::Tools),
            served_tools: entry.served_tools(),
            prompts: entry.lists.count(ListKind::Prompts),
            resources: entry.lists.count(ListKind::Resources),
            templates: entry.lists.count(ListKind::Templates),
        },
        lacking: entry.lacking(),
        hidden_tools: tool_filter::hidden_tools(server),
        ignored_capabilities: profile.map_or_else(Vec::new, |profile| profile.ignored()),
        missing: report.failure,
        missing_seconds: entry.missing_for().map(|time| time.as_secs()),
        last_error: status.last_error.map(|failure| LastError {
            why: failure.why.to_string(),
            seconds_ago: failure.age.as_secs(),
        }),
        remedy,
        capabilities: declared.unwrap_or_default(),
        clients: clients::of(state, gateway, entry),
        stdout_noise: server.shared.supervisor.noise(),
    }
}

fn instance_line(status: &InstanceStatus) -> InstanceLine {
    let why = match &status.state {
        InstanceState::Draining { cause, .. } | InstanceState::Stopped { cause } => {
            Some(cause.as_str().to_owned())
        }
        InstanceState::Failed { why } => Some(why.to_string()),
        _ => status.unresponsive.map(|time| {
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
