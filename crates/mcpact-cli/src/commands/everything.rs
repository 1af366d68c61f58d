//! `mcpact everything`: the reference server.

use mcpact_spec::Revision;

use super::{block_on, http, shutdown};
use crate::args::EverythingArgs;
use crate::error::{CliError, Exit, ListenSettings};
use crate::report;

pub(super) fn run(args: &EverythingArgs) -> Result<Exit, CliError> {
    let revisions = revisions(&args.revisions)?;
    block_on(serve(args, &revisions))?;
    Ok(Exit::Ok)
}

async fn serve(args: &EverythingArgs, revisions: &[Revision]) -> Result<(), CliError> {
    let server = mcpact_everything::server(revisions).settings(|settings| {
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

fn revisions(given: &[String]) -> Result<Vec<Revision>, CliError> {
    if given.is_empty() {
        return Ok(Revision::ALL.to_vec());
    }
    let names = given.iter().map(|name| name.trim());
    names.map(super::revision).collect()
}
