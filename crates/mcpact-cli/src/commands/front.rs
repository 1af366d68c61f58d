//! What every command that serves has in common.

use std::future::Future;
use std::net::SocketAddr;
use std::path::Path;
use std::pin::pin;
use std::time::Duration;

use mcpact::server::{Settings, TlsIdentity, Token};
use mcpact_config::{HostsGiven, namelessness};
use mcpact_transport::link::Link;
use mcpact_transport::vigil;
use tokio::sync::watch;

use crate::args::Front;
use crate::error::CliError;
use crate::report;

/// Runs a future to its end.
pub(super) fn block_on<T>(work: impl Future<Output = Result<T, CliError>>) -> Result<T, CliError> {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = vigil::keep(runtime.enable_all()).build();
    runtime.map_err(CliError::Runtime)?.block_on(work)
}

/// The name of the variable that may hold the token.
const TOKEN: &str = "MCPACT_TOKEN";

/// Sets who may come in.
pub(super) fn apply(front: &Front, settings: &mut Settings) -> Result<(), CliError> {
    settings.token = token(front.token_file.as_deref())?;
    settings.tls = match (&front.tls_cert, &front.tls_key) {
        (Some(chain), Some(key)) => {
            Some(TlsIdentity::from_files(chain, key).map_err(|error| CliError::Tls(error.into()))?)
        }
        (Some(_), None) | (None, _) => None,
    };
    settings.allow_remote = front.allow_remote;
    for name in &front.allow_host {
        settings.guard = std::mem::take(&mut settings.guard).allow_host(name);
    }
    for origin in &front.allow_origin {
        settings.guard = std::mem::take(&mut settings.guard).allow_origin(origin);
    }
    Ok(())
}

/// Tells of an address that other machines reach in vain.
pub(super) fn tell_nameless(address: SocketAddr, front: &Front) {
    let told = namelessness(address, &front.allow_host, HostsGiven::AsArguments);
    if let Some((message, remedy)) = told {
        report::warn(&message, &remedy);
    }
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

/// Counts how often somebody wanted the process to end.
#[derive(Clone, Debug)]
pub(super) struct Stops(watch::Receiver<u32>);

impl Stops {
    /// Counts from here on.
    pub(super) fn count() -> Self {
        let (sender, stops) = watch::channel(0);
        let mut signals = Signals::new();
        tokio::spawn(async move {
            while !sender.is_closed() {
                signals.next().await;
                sender.send_modify(|count| *count += 1);
            }
        });
        Self(stops)
    }

    /// Until it was wanted so often.
    pub(super) async fn reach(mut self, count: u32) {
        if self.0.wait_for(|counted| *counted >= count).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

impl Stops {
    /// Until somebody wants the process to end; then `draining` lets the requests that run finish, and tells
    /// whether they have.
    pub(super) async fn drained(self, draining: impl Future<Output = bool>) {
        self.reach(1).await;
        if !draining.await {
            tracing::warn!("some calls took longer than they may at the end, and are cut off");
        }
    }

    /// Serves until the end, unless somebody does not want to wait for it.
    pub(super) async fn cut_off(
        self,
        serving: impl Future<Output = Result<(), CliError>>,
    ) -> Result<(), CliError> {
        tokio::select! {
            served = serving => served,
            () = self.reach(2) => Err(CliError::CutOff),
        }
    }
}

/// Serves a client on standard input and output until it goes, or everything is drained.
pub(super) async fn on_own_pipes<S>(
    serve: impl FnOnce(Link, watch::Receiver<bool>) -> S,
    drained: impl Future<Output = ()>,
) -> Result<(), CliError>
where
    S: Future<Output = Result<(), mcpact::error::Error>>,
{
    /// How long the last answers may take to be written.
    const LAST_WORDS: Duration = Duration::from_millis(500);
    let link = mcpact_transport::stdio::own().map_err(|e| CliError::Serve(e.into()))?;
    let (stopping, is_stopping) = watch::channel(false);
    let mut serving = pin!(serve(link, is_stopping));
    tokio::select! {
        served = serving.as_mut() => return served.map_err(CliError::Serve),
        () = drained => {}
    }
    stopping.send_replace(true);
    let _ = tokio::time::timeout(LAST_WORDS, serving).await;
    Ok(())
}

/// Until somebody wants the process to end.
pub(super) async fn stopped() {
    Signals::new().next().await;
}

/// What tells that somebody wants the process to end.
struct Signals {
    /// None of those that the system does not tell of.
    #[cfg(unix)]
    heard: Vec<tokio::signal::unix::Signal>,
}

impl Signals {
    /// Listens from here on.
    fn new() -> Self {
        #[cfg(unix)]
        {
            use tokio::signal::unix::{SignalKind, signal};
            let kinds = [SignalKind::terminate(), SignalKind::interrupt()];
            let heard = kinds.into_iter().filter_map(|kind| signal(kind).ok());
            Self {
                heard: heard.collect(),
            }
        }
        #[cfg(not(unix))]
        Self {}
    }

    /// Until the next one.
    async fn next(&mut self) {
        #[cfg(unix)]
        {
            use futures_util::future::select_all;
            let heard = self.heard.iter_mut().map(|signal| Box::pin(signal.recv()));
            let heard: Vec<_> = heard.collect();
            if !heard.is_empty() && select_all(heard).await.0.is_some() {
                return;
            }
        }
        #[cfg(not(unix))]
        if tokio::signal::ctrl_c().await.is_ok() {
            return;
        }
        // Without signals there is nothing to wait for; the process ends by force.
        std::future::pending::<()>().await;
    }
}
