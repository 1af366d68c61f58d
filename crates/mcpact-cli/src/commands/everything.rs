//! `mcpact everything`: the reference server, for demonstrations and tests.

use mcpact_spec::Revision;

use crate::args::Everything;
use crate::error::CliError;
use crate::exit::Exit;
use crate::report;

pub(super) fn run(args: &Everything) -> Result<Exit, CliError> {
    let revisions = revisions(&args.revisions)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(CliError::Runtime)?;
    runtime.block_on(serve(args, &revisions))?;
    Ok(Exit::Ok)
}

async fn serve(args: &Everything, revisions: &[Revision]) -> Result<(), CliError> {
    let server = mcpact_everything::server(revisions);
    let Some(address) = args.listen else {
        return tokio::select! {
            served = server.serve_stdio() => served.map_err(CliError::Serve),
            () = stopped() => Ok(()),
        };
    };
    let server = server.settings(|settings| settings.http_sse = args.sse);
    let listening = server
        .listen(address)
        .await
        .map_err(|source| CliError::Listen { address, source })?;
    report::print(&format!("{}\n", listening.url()))?;
    listening.run(stopped()).await.map_err(CliError::Serve)
}

/// Until somebody wants the process to end.
async fn stopped() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let Ok(mut terminate) = signal(SignalKind::terminate()) {
            tokio::select! {
                _ = tokio::signal::ctrl_c() => {}
                _ = terminate.recv() => {}
            }
            return;
        }
    }
    // Without signals there is nothing to wait for; the process ends by force.
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
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
