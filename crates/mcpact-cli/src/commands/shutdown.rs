//! Graceful shutdown: signals, draining, and serving a client on stdio until then.

use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use mcpact_transport::link::Link;
use tokio::sync::watch;

use crate::error::CliError;

/// Counts the termination signals received.
#[derive(Clone, Debug)]
pub(super) struct ShutdownSignals(watch::Receiver<u32>);

impl ShutdownSignals {
    /// Starts counting.
    pub(super) fn listen() -> Self {
        let (sender, count) = watch::channel(0);
        let mut signals = SignalStream::new();
        tokio::spawn(async move {
            while !sender.is_closed() {
                signals.next().await;
                sender.send_modify(|count| *count += 1);
            }
        });
        Self(count)
    }

    async fn reach(mut self, count: u32) {
        if self.0.wait_for(|counted| *counted >= count).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Waits for the first signal, then for `drain`, which returns whether all requests finished.
    pub(super) async fn drained(self, drain: impl Future<Output = bool>) {
        self.reach(1).await;
        if !drain.await {
            tracing::warn!("drain timed out; running calls aborted");
        }
    }

    /// Runs `serving` to its end, unless a second signal arrives.
    pub(super) async fn abort_on_second(
        self,
        serving: impl Future<Output = Result<(), CliError>>,
    ) -> Result<(), CliError> {
        tokio::select! {
            served = serving => served,
            () = self.reach(2) => Err(CliError::Aborted),
        }
    }
}

/// Serves one client on stdin/stdout until it disconnects or `drained` completes.
pub(super) async fn serve_stdio<S>(
    serve: impl FnOnce(Link, watch::Receiver<bool>) -> S,
    drained: impl Future<Output = ()>,
) -> Result<(), CliError>
where
    S: Future<Output = Result<(), mcpact::error::Error>>,
{
    /// Timeout for writing the last responses.
    const FLUSH: Duration = Duration::from_millis(500);
    let link = mcpact_transport::stdio::own().map_err(|e| CliError::Serve(e.into()))?;
    let (stopping, is_stopping) = watch::channel(false);
    let mut serving = pin!(serve(link, is_stopping));
    tokio::select! {
        served = serving.as_mut() => return served.map_err(CliError::Serve),
        () = drained => {}
    }
    stopping.send_replace(true);
    let _ = tokio::time::timeout(FLUSH, serving).await;
    Ok(())
}

/// Waits for a termination signal.
pub(super) async fn signal() {
    SignalStream::new().next().await;
}

/// Termination signals of the platform.
struct SignalStream {
    #[cfg(unix)]
    signals: Vec<tokio::signal::unix::Signal>,
}

impl SignalStream {
    fn new() -> Self {
        #[cfg(unix)]
        {
            use tokio::signal::unix::{SignalKind, signal};
            let kinds = [SignalKind::terminate(), SignalKind::interrupt()];
            let signals = kinds.into_iter().filter_map(|kind| signal(kind).ok());
            Self {
                signals: signals.collect(),
            }
        }
        #[cfg(not(unix))]
        Self {}
    }

    async fn next(&mut self) {
        #[cfg(unix)]
        {
            use futures_util::future::select_all;
            let received = self
                .signals
                .iter_mut()
                .map(|signal| Box::pin(signal.recv()));
            let received: Vec<_> = received.collect();
            if !received.is_empty() && select_all(received).await.0.is_some() {
                return;
            }
        }
        #[cfg(not(unix))]
        if tokio::signal::ctrl_c().await.is_ok() {
            return;
        }
        // Without signal handlers the default action ends the process.
        std::future::pending::<()>().await;
    }
}
