//! A server that behaves: the library's own, of either era, on pipes or HTTP.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use mcpact::server::{Context, Server};
use mcpact_spec::Revision;

use crate::error::RowError;
use crate::journal::{Entry, JournalWriter};

/// Command line options.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Serve on HTTP, and say where.
    #[arg(long)]
    http: bool,
    /// The only revision that it speaks.
    #[arg(long)]
    revision: String,
    /// Path of the journal.
    #[arg(long)]
    journal: Option<PathBuf>,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Echo {
    nonce: u64,
    #[serde(default)]
    ms: u64,
}

fn ours(error: impl std::fmt::Display) -> RowError {
    RowError::Ours(error.to_string())
}

fn server(revision: Revision, pen: Option<Arc<JournalWriter>>) -> Server {
    let echo = move |args: Echo, _: Context| {
        let noted = pen.as_ref().map(|pen| pen.note(Entry::Call, args.nonce));
        async move {
            if args.ms > 0 {
                tokio::time::sleep(Duration::from_millis(args.ms)).await;
            }
            // A journal that cannot be written shows as a call that no server has seen.
            drop(noted);
            Ok(args.nonce.to_string())
        }
    };
    Server::new("peer", "1.0.0")
        .tool("echo", "Gives its number back", echo)
        .revisions(&[revision])
}

/// Serves until its input ends or it is killed.
pub(crate) async fn serve(options: &Options) -> Result<(), RowError> {
    let revision = Revision::parse(&options.revision)
        .ok_or_else(|| RowError::stage("there is no such revision"))?;
    let pen = options
        .journal
        .as_deref()
        .map(JournalWriter::open)
        .transpose()?;
    let server = server(revision, pen.map(Arc::new));
    if !options.http {
        return server.serve_stdio().await.map_err(ours);
    }
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let listening = server.listen(address).await.map_err(ours)?;
    announce(&listening.url())?;
    listening.run(std::future::pending()).await.map_err(ours)
}

fn announce(url: &str) -> Result<(), RowError> {
    use std::io::Write;
    let mut out = std::io::stdout().lock();
    writeln!(out, "{url}")?;
    Ok(out.flush()?)
}
