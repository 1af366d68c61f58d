//! `mcpact everything`: the reference server, for demonstrations and tests.

use std::path::Path;

use mcpact::server::{Server, TlsIdentity, Token};
use mcpact_spec::Revision;

use crate::args::{Everything, Front};
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
    let server = server.settings(|settings| {
        settings.http_sse = args.sse;
        settings.websocket = args.websocket;
    });
    let listening = behind(&args.front, server)?
        .listen(address)
        .await
        .map_err(|source| CliError::Listen { address, source })?;
    report::print(&format!("{}\n", listening.url()))?;
    listening.run(stopped()).await.map_err(CliError::Serve)
}

/// The name of the variable that may hold the token.
const TOKEN: &str = "MCPACT_TOKEN";

/// Puts the server behind what the arguments say about who may come in.
fn behind(front: &Front, server: Server) -> Result<Server, CliError> {
    let token = token(front.token_file.as_deref())?;
    let tls = match (&front.tls_cert, &front.tls_key) {
        (Some(chain), Some(key)) => {
            Some(TlsIdentity::from_files(chain, key).map_err(|error| CliError::Tls(error.into()))?)
        }
        (Some(_), None) | (None, _) => None,
    };
    Ok(server.settings(|settings| {
        settings.token = token;
        settings.tls = tls;
        settings.allow_remote = front.allow_remote;
        for name in &front.allow_host {
            settings.guard = std::mem::take(&mut settings.guard).allow_host(name);
        }
        for origin in &front.allow_origin {
            settings.guard = std::mem::take(&mut settings.guard).allow_origin(origin);
        }
    }))
}

/// The token of the file or else of the variable. It is no argument: those can be seen by everybody.
fn token(file: Option<&Path>) -> Result<Option<Token>, CliError> {
    let (origin, text) = match (file, std::env::var_os(TOKEN)) {
        (Some(path), _) => {
            let origin = format!("`{}`", path.display());
            (
                origin,
                std::fs::read_to_string(path).map_err(|e| e.to_string()),
            )
        }
        (None, Some(text)) => {
            let not_text = |_| String::from("it is not text");
            (format!("`{TOKEN}`"), text.into_string().map_err(not_text))
        }
        (None, None) => return Ok(None),
    };
    let token = text.and_then(|text| Token::new(&text).map_err(|fault| fault.to_string()));
    token
        .map(Some)
        .map_err(|why| CliError::Token { origin, why })
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
