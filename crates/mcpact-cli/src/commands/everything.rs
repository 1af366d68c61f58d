//! `mcpact everything`: the reference server.

use mcpact_engine::policy::Policy;
use mcpact_spec::Revision;

use super::{block_on, http, policy, shutdown};
use crate::args::EverythingArgs;
use crate::error::{CliError, Exit, ListenSettings};
use crate::report;

pub(super) fn run(args: &EverythingArgs) -> Result<Exit, CliError> {
    for name in &args.revisions {
        super::revision(name.trim())?;
    }
    let revisions = match args.revisions.join(",") {
        given if given.is_empty() => None,
        given => Some(format!("revisions={given}")),
    };
    let policy = policy::settings(&args.policy, revisions)?.policy();
    block_on(serve(args, policy))?;
    Ok(Exit::Ok)
}

async fn serve(args: &EverythingArgs, policy: Policy) -> Result<(), CliError> {
    let server = mcpact_everything::server(&Revision::ALL).settings(|settings| {
        settings.policy = policy;
        settings.page_size = args.page_size.unwrap_or(settings.page_size);
    });
    let Some(address) = args.listen else {
        return tokio::select! {
            served = server.serve_stdio() => served.map_err(CliError::Serve),
            () = shutdown::signal() => Ok(()),
        };
    };
    let mut applied = Ok(());
    let server = server.settings(|settings| {
        settings.http_sse = args.sse;
        settings.websocket = args.websocket;
        applied = http::apply(&args.http, settings);
    });
    applied?;
    let listening = server.listen(address).await;
    let listening = listening.map_err(CliError::listen(address, ListenSettings::Flags))?;
    http::warn_without_hosts(address, &args.http);
    report::print(&format!("{}\n", listening.url()))?;
    listening
        .run(shutdown::signal())
        .await
        .map_err(CliError::Serve)
}
