//! `mcpact bridge`: one server for clients of every revision.

use std::io::IsTerminal as _;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use mcpact::server::backend::SessionEnd;
use mcpact_config::Catalog;
use mcpact_gateway::{Target, UpstreamServer, UpstreamSettings};

use super::cache::ServerCache;
use super::shutdown::{ShutdownSignals, serve_stdio};
use super::{block_on, http, policy};
use crate::args::BridgeArgs;
use crate::error::{CliError, Exit, ListenSettings};
use crate::report;
use crate::target::{self, TargetError};

pub(super) fn run(args: &BridgeArgs) -> Result<Exit, CliError> {
    block_on(async {
        let (target, settings) = upstream(args).await?;
        serve(args, target, settings).await
    })?;
    Ok(Exit::Ok)
}

/// Returns the server and its settings.
async fn upstream(args: &BridgeArgs) -> Result<(Target, UpstreamSettings), CliError> {
    let resolved = target::resolve(&args.target).await?;
    let cache = ServerCache::open(args.no_cache);
    let mut settings = UpstreamSettings {
        mode: resolved.era,
        verdicts: cache.verdicts,
        masks: resolved.masks,
        ..UpstreamSettings::default()
    };
    if let Some(server) = resolved.configured
        && server.gateway.is_none()
    {
        if !server.config.tools.is_open() {
            let (name, file) = (server.name.to_string(), server.file);
            return Err(TargetError::Filtered { name, file }.into());
        }
        settings.name = Some(server.name.to_string());
        settings.run = server.config.run;
    }
    settings.front.http_sse = args.sse;
    settings.front.policy = policy::settings(&args.policy, None)?.policy();
    http::apply(&args.http, &mut settings.front)?;
    Ok((resolved.target, settings))
}

async fn serve(
    args: &BridgeArgs,
    target: Target,
    settings: UpstreamSettings,
) -> Result<(), CliError> {
    let bridge = UpstreamServer::new(target, settings).map_err(CliError::Serve)?;
    // The default `drain_seconds` of a gateway.
    let limit = Catalog::default().gateway.drain;
    let signals = ShutdownSignals::listen();
    let first = signals.clone();
    let serving = async {
        let served = match args.listen {
            Some(address) => serve_http(args, &bridge, address, limit, first).await,
            None => {
                if std::io::stdin().is_terminal() {
                    report::hint(
                        "waiting for an MCP client on stdin; let a client start this command, or press Ctrl-C",
                    );
                }
                let drained = first.drained(bridge.drain(limit));
                let serve = |link, stopping| {
                    Arc::clone(&bridge).serve_until(link, SessionEnd::new(limit, stopping))
                };
                serve_stdio(serve, drained).await
            }
        };
        Arc::clone(&bridge).close().await;
        served
    };
    signals.abort_on_second(serving).await
}

async fn serve_http(
    args: &BridgeArgs,
    bridge: &Arc<UpstreamServer>,
    address: SocketAddr,
    limit: Duration,
    signals: ShutdownSignals,
) -> Result<(), CliError> {
    let listening = Arc::clone(bridge).listen(address).await;
    let listening = listening.map_err(CliError::listen(address, ListenSettings::Flags))?;
    http::warn_without_hosts(address, &args.http);
    report::print(&format!("{}\n", listening.url()))?;
    let door = listening.route();
    let drained = signals.drained(async {
        door.drain();
        bridge.drain(limit).await
    });
    listening.run(drained).await.map_err(CliError::Serve)
}
