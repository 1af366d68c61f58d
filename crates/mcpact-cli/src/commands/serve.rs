//! `mcpact serve`: the gateway.

use std::collections::BTreeMap;
use std::sync::Arc;

use mcpact_engine::client::EraMode;
use mcpact_gateway::catalog::{
    Catalog, Launch, ServerConfig, ServerName, Severity, load, nearest_config,
};
use mcpact_gateway::{Gateway, Local, Surroundings};
use mcpact_spec::Revision;
use mcpact_transport::memory;
use mcpact_transport::stdio::child::Guard;

use super::front;
use super::known::Known;
use crate::args::Serve;
use crate::error::CliError;
use crate::exit::Exit;
use crate::report;
use crate::report::servers::Origin;

/// What is served when nothing is configured: a server of each era.
fn demo() -> Catalog {
    let server = |revision| ServerConfig {
        era: EraMode::Pin(revision),
        ..ServerConfig::new(Launch::Builtin(String::from("everything")))
    };
    Catalog {
        servers: BTreeMap::from([
            (ServerName::near("legacy"), server(Revision::LATEST_LEGACY)),
            (ServerName::near("modern"), server(Revision::LATEST)),
        ]),
        ..Catalog::default()
    }
}

pub(super) fn run(args: &Serve) -> Result<Exit, CliError> {
    let (mut catalog, origin) = catalog(args)?;
    if let Some(address) = args.listen {
        catalog.gateway.listen = address;
    }
    front::block_on(serve(args, catalog, origin))?;
    Ok(Exit::Ok)
}

async fn serve(args: &Serve, catalog: Catalog, origin: Origin) -> Result<(), CliError> {
    let address = catalog.gateway.listen;
    let known = if args.no_cache {
        Known::default()
    } else {
        Known::kept()
    };
    let surroundings = Surroundings {
        builtins: BTreeMap::from([("everything", everything())]),
        verdicts: known.verdicts,
        cache: known.servers,
        guard: Some(Guard::this_program(["guard"])),
    };
    let gateway = Gateway::new(catalog, surroundings)?;
    if args.stdio {
        let link = mcpact_transport::stdio::own().map_err(|e| CliError::Serve(e.into()))?;
        let served = tokio::select! {
            served = gateway.serve(link) => served.map_err(CliError::Serve),
            () = front::stopped() => Ok(()),
        };
        gateway.close().await;
        return served;
    }
    let site = gateway.listen().await;
    let site = site.map_err(|source| CliError::Listen { address, source })?;
    let url = format!("{}/mcp", site.origin());
    report::print(&format!("{url}\n"))?;
    let meeting = {
        let gateway = Arc::clone(&gateway);
        tokio::spawn(async move {
            let servers = gateway.meet().await;
            report::aside(&report::servers::text(&url, &origin, &servers));
        })
    };
    let served = site.run(front::stopped()).await;
    meeting.abort();
    gateway.close().await;
    served.map_err(CliError::Serve)
}

/// The config that was named, or the nearest one, or the built-in one.
fn catalog(args: &Serve) -> Result<(Catalog, Origin), CliError> {
    let nearest = || nearest_config(&std::env::current_dir().ok()?);
    let Some(path) = args.config.clone().or_else(nearest) else {
        return Ok((demo(), Origin::Builtin));
    };
    let loaded = load(&path)?;
    let mut problems = loaded.problems;
    // Whoever wants to know more asks `mcpact check`.
    problems.retain(|problem| problem.severity >= Severity::Warning);
    report::aside(&report::problems::list(&loaded.source, &problems));
    Ok((loaded.catalog, Origin::File(path)))
}

/// The reference server, as part of this program.
fn everything() -> Local {
    Local(Arc::new(|| {
        let (ours, theirs) = memory::pair();
        let server = mcpact_everything::server(&Revision::ALL);
        tokio::spawn(async move { server.serve(theirs).await });
        ours
    }))
}
