//! `mcpact everything`: the reference server, for demonstrations and tests.

use mcpact_spec::Revision;

use super::front;
use crate::args::Everything;
use crate::error::{CliError, Settings};
use crate::exit::Exit;
use crate::report;

pub(super) fn run(args: &Everything) -> Result<Exit, CliError> {
    let revisions = revisions(&args.revisions)?;
    front::block_on(serve(args, &revisions))?;
    Ok(Exit::Ok)
}

async fn serve(args: &Everything, revisions: &[Revision]) -> Result<(), CliError> {
    let server = mcpact_everything::server(revisions).settings(|settings| {
        settings.page_size = args.page_size.unwrap_or(settings.page_size);
    });
    let Some(address) = args.listen else {
        return tokio::select! {
            served = server.serve_stdio() => served.map_err(CliError::Serve),
            () = front::stopped() => Ok(()),
        };
    };
    let mut applied = Ok(());
    let server = server.settings(|settings| {
        settings.http_sse = args.sse;
        settings.websocket = args.websocket;
        applied = front::apply(&args.front, settings);
    });
    applied?;
    let listening = server
        .listen(address)
        .await
        .map_err(|source| CliError::Listen {
            address,
            settings: Settings::Options,
            source,
        })?;
    front::tell_nameless(address, &args.front);
    report::print(&format!("{}\n", listening.url()))?;
    listening
        .run(front::stopped())
        .await
        .map_err(CliError::Serve)
}

fn revisions(given: &[String]) -> Result<Vec<Revision>, CliError> {
    if given.is_empty() {
        return Ok(Revision::ALL.to_vec());
    }
    given
        .iter()
        .map(|name| {
            let given = name.trim().to_owned();
            Revision::parse(&given).ok_or(CliError::UnknownRevision { given })
        })
        .collect()
}
