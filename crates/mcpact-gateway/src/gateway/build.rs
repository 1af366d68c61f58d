//! Creates servers and settings from the config.

use std::sync::Arc;

use mcpact::server::{DecisionObserver, Guard as HostGuard, Settings, TlsIdentity, Token};
use mcpact_config::{
    Approval, ChangedTools, GatewayConfig, Launch, ServerConfig, ServerName, listed,
};
use mcpact_engine::capability::CapabilitySet;
use mcpact_spec::{Capability, Side};
use mcpact_transport::error::TransportError;
use mcpact_transport::http::client::RequestHeader;
use mcpact_transport::http::server::token::TokenError;
use mcpact_transport::stdio::child::{Confinement, Masks};

use super::{Gateway, routing};
use crate::metrics::Metrics;
use crate::pins::PinSettings;
use crate::target::Target;
use crate::upstream::{UpstreamServer, UpstreamSettings};

/// Error of a catalog that cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum GatewayError {
    /// Unknown built-in server.
    #[error("server `{server}`: unknown built-in server `{builtin}`; known: {known}")]
    Builtin {
        /// Server.
        server: String,
        /// Configured built-in server.
        builtin: String,
        /// Known built-in servers.
        known: String,
    },
    /// Invalid HTTP settings of a server.
    #[error("server `{server}` cannot be set up")]
    Target {
        /// Server.
        server: String,
        /// Cause.
        #[source]
        source: TransportError,
    },
    /// A server must be confined, but the gateway has no guard process.
    #[error("server `{server}` cannot be confined: this gateway has no guard process")]
    Unguarded {
        /// Server.
        server: String,
    },
    /// Invalid certificate or key.
    #[error("invalid TLS certificate or key")]
    Tls(#[source] TransportError),
    /// Invalid token.
    #[error("invalid token: {0}")]
    Token(String),
    /// The operating system has no randomness.
    #[error("cannot set up a server")]
    UpstreamServer(#[source] mcpact::error::Error),
}

/// Returns the settings of the HTTP listener.
pub(super) fn settings(
    config: &GatewayConfig,
    metrics: &Arc<Metrics>,
) -> Result<Settings, GatewayError> {
    let guard = HostGuard::default()
        .allow_header(routing::SERVER.as_str())
        .allow_header(routing::TAGS.as_str())
        .allow_header(routing::TOOLS.as_str());
    let (hosts, origins) = (config.allow_hosts.iter(), config.allow_origins.iter());
    let guard = hosts.fold(guard, |guard, name| guard.allow_host(name));
    let guard = origins.fold(guard, |guard, origin| guard.allow_origin(origin));
    let token = config.token.as_ref();
    let token = token.map(|token| Token::new(token.reveal())).transpose();
    let named = config.tokens.iter();
    let named = named.map(|(name, token)| Ok((name.clone(), Token::new(token.secret.reveal())?)));
    let tls = config.tls.as_ref();
    let tls = tls.map(|(chain, key)| TlsIdentity::from_files(chain, key));
    Ok(Settings {
        policy: config.policy.clone(),
        http_sse: config.sse,
        websocket: config.websocket,
        guard,
        token: token.map_err(invalid_token)?,
        named_tokens: named.collect::<Result<_, _>>().map_err(invalid_token)?,
        allow_remote: config.allow_remote,
        allow_users: config.allow_users.clone(),
        tls: tls.transpose().map_err(GatewayError::Tls)?,
        observer: Some(Arc::clone(metrics) as Arc<dyn DecisionObserver>),
        ..Settings::default()
    })
}

fn invalid_token(fault: TokenError) -> GatewayError {
    GatewayError::Token(fault.to_string())
}

/// Creates an upstream server.
pub(super) fn server(
    name: &ServerName,
    config: &ServerConfig,
    gateway: &Gateway,
) -> Result<Arc<UpstreamServer>, GatewayError> {
    let env = &gateway.env;
    let launch = match (&config.launch, &env.approvals) {
        (Launch::Command(command), Some(_)) => Launch::Command(command.found()),
        (launch, _) => launch.clone(),
    };
    let mut route = None;
    let target = match &launch {
        Launch::Command(launch) => {
            let mut command = launch.child(name);
            command.guard = match &env.guard {
                Some(guard) => Some(guard.clone().confining(&launch.confinement)),
                None if launch.confinement == Confinement::default() => None,
                None => {
                    let server = name.to_string();
                    return Err(GatewayError::Unguarded { server });
                }
            };
            command.via = env.parents.encode().map(Box::from);
            Target::Command(Box::new(command))
        }
        Launch::Url(launch) => {
            let settings = launch.settings();
            let mut settings = settings.map_err(|source| GatewayError::Target {
                server: name.to_string(),
                source,
            })?;
            route = gateway.loops.route(name.clone());
            settings.request_header = route.clone().map(|route| route as Arc<dyn RequestHeader>);
            Target::Url {
                url: launch.url.value().to_owned(),
                settings: Box::new(settings),
            }
        }
        Launch::Builtin(builtin) => {
            let builtins = &env.builtins;
            let local = builtins.get(builtin.as_str()).cloned();
            Target::Local(local.ok_or_else(|| GatewayError::Builtin {
                server: name.to_string(),
                builtin: builtin.clone(),
                known: listed(builtin, &builtins.keys().copied().collect::<Vec<_>>()),
            })?)
        }
    };
    let pin_dir = env.tools.as_ref();
    let pin_file = pin_dir.map(|dir| dir.join(config.cache_file_stem(name)));
    let settings = UpstreamSettings {
        name: Some(name.to_string()),
        metrics: gateway.metrics.server(name.as_str()),
        front: gateway.settings.clone(),
        mode: config.era,
        verdicts: env.verdicts.clone(),
        run: config.run.clone(),
        server_log: gateway.event_history.server_log(name.as_str()),
        masks: Masks::new(launch.secrets()),
        drain_gate: gateway.drain_gate.clone(),
        require: config.require.clone(),
        declare: declared(&config.declare),
        default_answers: config.answers.clone(),
        public_results: config.public_results,
        filters: gateway.filters.clone(),
        kept_results: gateway.aggregator_settings.kept_results.clone(),
        approval: env.approvals.clone().map(|approvals| Approval {
            launch: launch.clone(),
            approvals,
        }),
        pins: PinSettings {
            changed: config.changed_tools,
            default: match env.approvals {
                // The config may come from anyone, and so may the next version of its servers.
                Some(_) => ChangedTools::Hide,
                None => ChangedTools::Warn,
            },
            file: pin_file,
        },
        ..UpstreamSettings::default()
    };
    UpstreamServer::with_route(route, target, settings).map_err(GatewayError::UpstreamServer)
}

/// Returns the client capabilities with these paths.
fn declared(paths: &[String]) -> CapabilitySet {
    let rows = paths.iter();
    let rows = rows.filter_map(|path| Capability::of(Side::Client).find(|row| row.path() == path));
    CapabilitySet::declaring(Side::Client, rows)
}
