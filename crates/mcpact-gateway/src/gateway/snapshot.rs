//! How a gateway and its servers are, at one moment.

use std::sync::atomic::Ordering;
use std::time::Duration;

use mcpact::server::site::Door;
use mcpact_config::{Launch, ServerConfig, ServerName};

use super::{Gateway, Served, State};
use crate::bridge::Bridge;
use crate::control::{
    Fault, GatewayStatus, InstanceLine, LastError, Lists, ServerLine, Status, Transport,
};
use crate::stable::{GatewayState, ServerWord};
use crate::supervisor::{InstanceState, InstanceStatus};
use crate::target::Target;

impl Gateway {
    /// How everything is; of the servers only this one, if one is named.
    ///
    /// # Errors
    /// There is no such server.
    pub fn status(&self, server: Option<&str>) -> Result<Status, Fault> {
        self.known(server)?;
        Ok(self.snapshot(server))
    }

    /// How everything is.
    pub(super) fn everything(&self) -> Status {
        self.snapshot(None)
    }

    fn snapshot(&self, server: Option<&str>) -> Status {
        let state = self.state();
        let wanted = |name: &ServerName| server.is_none_or(|server| server == name.as_str());
        let servers = state
            .servers
            .iter()
            .filter(|(name, _)| wanted(name))
            .filter_map(|(name, served)| {
                let config = state.catalog.servers.get(name)?;
                Some(line(name, served, config, &state.leaving(name)))
            })
            .collect::<Vec<_>>();
        let left = state.left().into_iter().filter(|(name, _)| wanted(name));
        let left = left.map(|(name, bridge)| left_line(name, &bridge, &state.leaving(name)));
        let wrong = state.catalog.wrong.iter();
        let wrong = wrong.filter(|(name, _)| wanted(name));
        let servers = servers
            .into_iter()
            .chain(wrong.map(wrong_line))
            .chain(left)
            .collect();
        Status {
            gateway: self.own_status(&state),
            servers,
        }
    }

    /// Whether there is such a server; everybody is known.
    ///
    /// # Errors
    /// There is not.
    pub(crate) fn known(&self, server: Option<&str>) -> Result<(), Fault> {
        let state = self.state();
        match server {
            Some(name) if !state.names().any(|of| of.as_str() == name) => Err(Fault::NoServer {
                name: name.to_owned(),
                servers: state.names().map(ToString::to_string).collect(),
                filters: self
                    .filters
                    .configs()
                    .map(|filter| filter.name.to_string())
                    .collect(),
            }),
            Some(_) | None => Ok(()),
        }
    }

    fn own_status(&self, state: &State) -> GatewayStatus {
        let (file, uptime) = (self.file.get(), self.started.elapsed());
        let word = if self.turnstile.is_closed() {
            GatewayState::Draining
        } else {
            GatewayState::Serving
        };
        GatewayStatus {
            state: word.as_str().to_owned(),
            url: self.origin.get().map(|origin| format!("{origin}/mcp")),
            config: file.map(|file| file.path.display().to_string()),
            watching: file.is_some() && state.catalog.gateway.watch,
            pid: std::process::id(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            uptime_seconds: uptime.as_secs(),
            state_seconds: self.turnstile.closed_for().unwrap_or(uptime).as_secs(),
            sessions: self.doors(state).map(Door::guests).sum::<usize>()
                + self.on_lines.load(Ordering::Relaxed),
            in_flight: self.turnstile.inside(),
            last_reload: state.last_reload.clone(),
        }
    }
}

/// A server that is left out.
fn wrong_line((name, why): (&ServerName, &String)) -> ServerLine {
    ServerLine {
        missing: Some(why.clone()),
        ..unserved_line(name, ServerWord::Wrong)
    }
}

/// A server that the config has no more, and whose calls may still run.
fn left_line(name: &ServerName, bridge: &Bridge, leaving: &[InstanceStatus]) -> ServerLine {
    let met = bridge.met();
    let revision = met.as_ref().map(|met| met.revision);
    ServerLine {
        transport: match bridge.target() {
            Target::Command(_) => Transport::Stdio,
            Target::Url { .. } => Transport::Http,
            Target::Local(_) => Transport::Builtin,
        },
        revision: revision.map(|revision| revision.to_string()),
        era: revision.map(|revision| revision.era().as_str().to_owned()),
        calls_itself: met.as_ref().and_then(|met| met.calls_itself()),
        instances: leaving.iter().map(instance).collect(),
        in_flight: leaving.iter().map(|one| one.in_flight).sum(),
        ..unserved_line(name, ServerWord::Draining)
    }
}

fn unserved_line(name: &ServerName, state: ServerWord) -> ServerLine {
    ServerLine {
        name: name.to_string(),
        state: state.as_str().to_owned(),
        retry_seconds: None,
        revision: None,
        era: None,
        calls_itself: None,
        transport: Transport::Unknown,
        instances: Vec::new(),
        in_flight: 0,
        queued: 0,
        starts: 0,
        failures: 0,
        sessions: 0,
        lists: Lists::default(),
        lacking: Vec::new(),
        hidden_tools: Vec::new(),
        missing: None,
        missing_seconds: None,
        last_error: None,
    }
}

fn line(
    name: &ServerName,
    served: &Served,
    config: &ServerConfig,
    leaving: &[InstanceStatus],
) -> ServerLine {
    let member = &served.member;
    let report = member.report();
    let status = member.bridge().status();
    let retry = status.state.wait().or(status.tried_in);
    let state = status.word(report.failure.is_some());
    let over = status.over.iter().take(LAST);
    let running = status.instances.iter().chain(leaving);
    ServerLine {
        name: name.to_string(),
        state: state.to_owned(),
        retry_seconds: retry.map(rounded_up),
        revision: report.revision.map(|revision| revision.to_string()),
        era: report
            .revision
            .map(|revision| revision.era().as_str().to_owned()),
        calls_itself: report.calls_itself,
        transport: match config.launch {
            Launch::Command(_) => Transport::Stdio,
            Launch::Url(_) => Transport::Http,
            Launch::Builtin(_) => Transport::Builtin,
        },
        in_flight: running.clone().map(|one| one.in_flight).sum(),
        instances: running.chain(over).map(instance).collect(),
        queued: status.queued,
        starts: status.starts,
        failures: status.failures,
        sessions: served.door.guests(),
        lists: member.lists(),
        lacking: member.lacking(),
        hidden_tools: member.bridge().hidden_tools(),
        missing: report.failure,
        missing_seconds: member.missing_for().map(|time| time.as_secs()),
        last_error: status.last_error.map(|mishap| LastError {
            why: mishap.why.to_string(),
            seconds_ago: mishap.age.as_secs(),
        }),
    }
}

/// How many instances are shown that do not run any more.
const LAST: usize = 5;

fn instance(status: &InstanceStatus) -> InstanceLine {
    let why = match &status.state {
        InstanceState::Draining { cause, .. } | InstanceState::Stopped { cause } => {
            Some(cause.as_str().to_owned())
        }
        InstanceState::Failed { why } => Some(why.to_string()),
        InstanceState::Starting
        | InstanceState::Handshaking
        | InstanceState::Ready
        | InstanceState::Busy { .. } => status.silent.map(|time| {
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

/// Nobody is told to come back too early.
fn rounded_up(wait: Duration) -> u64 {
    wait.as_secs() + u64::from(wait.subsec_nanos() > 0)
}
