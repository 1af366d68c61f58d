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
        count_signals(&sender);
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
pub(crate) async fn signal() {
    ShutdownSignals::listen().reach(1).await;
}

/// Counts termination signals in the background. Without a handler, the default action ends the process.
#[cfg(unix)]
fn count_signals(sender: &watch::Sender<u32>) {
    use tokio::signal::unix::{SignalKind, signal};
    for kind in [SignalKind::terminate(), SignalKind::interrupt()] {
        if let Ok(mut signals) = signal(kind) {
            let sender = sender.clone();
            tokio::spawn(async move {
                while signals.recv().await.is_some() {
                    sender.send_modify(|count| *count += 1);
                }
            });
        }
    }
}

#[cfg(not(unix))]
fn count_signals(sender: &watch::Sender<u32>) {
    let sender = sender.clone();
    tokio::spawn(async move {
        while tokio::signal::ctrl_c().await.is_ok() {
            sender.send_modify(|count| *count += 1);
        }
    });
}
