//! From configuration to what runs.

use std::sync::Arc;

use mcpact::server::{Guard as HostGuard, Settings, TlsIdentity, Token, Watch};
use mcpact_config::{Approval, CommandLaunch, GatewayConfig, Launch, ServerConfig, ServerName};
use mcpact_engine::capability::CapabilitySet;
use mcpact_spec::{Capability, Side};
use mcpact_transport::error::DoorError;
use mcpact_transport::stdio::child::{Confinement, Guard, Masks};

use super::{Gateway, Surroundings, reception};
use crate::bridge::{Bridge, BridgeSettings};
use crate::circle::Road;
use crate::figures::Figures;
use crate::filters::Filters;
use crate::hub::HubSettings;
use crate::pins::PinSettings;
use crate::target::Target;
use crate::turnstile::Turnstile;

/// Why a catalog cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum GatewayError {
    /// There is no such server in the program.
    #[error("server `{server}`: there is no built-in server `{builtin}`; there is {known}")]
    Builtin {
        /// Which server.
        server: String,
        /// What it names.
        builtin: String,
        /// What there is.
        known: String,
    },
    /// A server cannot be reached in the way that is configured.
    #[error("server `{server}` cannot be set up")]
    Target {
        /// Which server.
        server: String,
        /// Why.
        #[source]
        source: DoorError,
    },
    /// A server shall be confined, and there is nobody to do it.
    #[error("server `{server}` cannot be confined: this gateway has no guard")]
    Unguarded {
        /// Which server.
        server: String,
    },
    /// The certificate cannot be used.
    #[error("the certificate cannot be used")]
    Tls(#[source] DoorError),
    /// The token cannot be used.
    #[error("the token cannot be used: {0}")]
    Token(String),
    /// The operating system has no randomness.
    #[error("a bridge cannot be made")]
    Bridge(#[source] mcpact::error::Error),
}

/// How the fronts are set.
pub(super) fn settings(
    config: &GatewayConfig,
    figures: &Arc<Figures>,
) -> Result<Settings, GatewayError> {
    let mut guard = HostGuard::default()
        .allow_header(reception::SERVER.as_str())
        .allow_header(reception::TAGS.as_str());
    for name in &config.allow_hosts {
        guard = guard.allow_host(name);
    }
    for origin in &config.allow_origins {
        guard = guard.allow_origin(origin);
    }
    let token = config
        .token
        .as_ref()
        .map(|token| Token::new(token.reveal()));
    let token = token.transpose();
    let tls = config.tls.as_ref();
    let tls = tls.map(|(chain, key)| TlsIdentity::from_files(chain, key));
    Ok(Settings {
        policy: config.policy(),
        http_sse: config.sse,
        websocket: config.websocket,
        guard,
        token: token.map_err(|fault| GatewayError::Token(fault.to_string()))?,
        allow_remote: config.allow_remote,
        tls: tls.transpose().map_err(GatewayError::Tls)?,
        watch: Some(Arc::clone(figures) as Arc<dyn Watch>),
        ..Settings::default()
    })
}

pub(super) fn hub_settings(
    config: &GatewayConfig,
    front: &Settings,
    figures: &Arc<Figures>,
    turnstile: &Turnstile,
    filters: &Filters,
) -> HubSettings {
    HubSettings {
        filters: filters.clone(),
        figures: Arc::clone(figures),
        front: front.clone(),
        separator: config.separator.clone(),
        turnstile: turnstile.clone(),
        list_wait: config.list_wait,
        ..HubSettings::default()
    }
}

/// The way to a server.
pub(super) fn bridge(
    name: &ServerName,
    config: &ServerConfig,
    gateway: &Gateway,
) -> Result<Arc<Bridge>, GatewayError> {
    let surroundings = &gateway.surroundings;
    let server = || name.to_string();
    let launch = match (&config.launch, &surroundings.approvals) {
        (Launch::Command(command), Some(_)) => Launch::Command(command.found()),
        (launch, _) => launch.clone(),
    };
    let mut target = match &launch {
        Launch::Command(launch) => {
            let mut command = launch.child(name);
            command.guard = guard(launch, surroundings, name)?;
            command.lineage = surroundings.lineage.encode().map(Box::from);
            Target::Command(command)
        }
        Launch::Url(launch) => {
            let settings = launch.settings().map_err(|source| GatewayError::Target {
                server: server(),
                source,
            })?;
            Target::Url {
                url: launch.url.value().to_owned(),
                settings: Box::new(settings),
            }
        }
        Launch::Builtin(builtin) => {
            let builtins = &surroundings.builtins;
            let local = builtins.get(builtin.as_str()).cloned();
            Target::Local(local.ok_or_else(|| GatewayError::Builtin {
                server: server(),
                builtin: builtin.clone(),
                known: quoted(builtins.keys().copied()),
            })?)
        }
    };
    let road = gateway.mark.and_then(|mark| Road::onto(&mut target, mark));
    let settings = BridgeSettings {
        name: Some(name.to_string()),
        figures: gateway.figures.server(name.as_str()),
        front: gateway.settings.clone(),
        mode: config.era,
        verdicts: surroundings.verdicts.clone(),
        run: config.run.clone(),
        journal: gateway.chronicle.journal(name.as_str()),
        masks: Masks::new(launch.secrets()),
        turnstile: gateway.turnstile.clone(),
        require: config.require.clone(),
        declare: declared(&config.declare),
        stand_in: config.answers.clone(),
        public_results: config.public_results,
        filters: gateway.filters.clone(),
        approval: approval(&launch, surroundings),
        pins: PinSettings {
            changed: config.changed_tools,
            file: surroundings
                .tools
                .as_ref()
                .map(|folder| folder.join(config.remembered_as(name))),
        },
        ..BridgeSettings::default()
    };
    Bridge::by(road, target, settings).map_err(GatewayError::Bridge)
}

/// Who ends the program should the gateway be killed, and confines it.
fn guard(
    launch: &CommandLaunch,
    surroundings: &Surroundings,
    name: &ServerName,
) -> Result<Option<Guard>, GatewayError> {
    let confinement = launch.confinement;
    match &surroundings.guard {
        Some(guard) => Ok(Some(guard.clone().confining(confinement))),
        None if confinement == Confinement::default() => Ok(None),
        None => Err(GatewayError::Unguarded {
            server: name.to_string(),
        }),
    }
}

/// Whose approval it takes to start or reach this.
fn approval(launch: &Launch, surroundings: &Surroundings) -> Option<Approval> {
    Some(Approval {
        launch: launch.clone(),
        approvals: surroundings.approvals.clone()?,
    })
}

/// These capabilities, as a client declares them.
fn declared(paths: &[String]) -> CapabilitySet {
    let rows = paths.iter();
    let rows = rows.filter_map(|path| Capability::of(Side::Client).find(|row| row.path() == path));
    CapabilitySet::declaring(Side::Client, rows)
}

fn quoted<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<String> = names.map(|name| format!("`{name}`")).collect();
    names.join(", ")
}
