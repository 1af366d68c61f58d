//! Connects to a target on behalf of an instance.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use mcpact::connection::{self, ConnectError, Connected, Endpoint, Hooks, Offer};
use mcpact_translate::lifecycle::without_elicitation;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::approval::start_failure;
use crate::error::UpstreamErrorKind;
use crate::loop_detection::LOOP_DETECTED;
use crate::loop_detection::start::StartLoop;
use crate::supervisor::InstanceGuard;
use crate::target::Target;

/// Maximum number of processes that start at the same time. More would only compete for the processor.
const PARALLEL_STARTS: usize = 16;

/// Permits of all gateways in this process.
static STARTS: Semaphore = Semaphore::const_new(PARALLEL_STARTS);

/// Time after which a start gives up its permit, so that slow servers do not delay the others for long.
const PERMIT_TIME: Duration = Duration::from_secs(1);

/// Connects to a server, starting it if needed, and negotiates.
pub(crate) async fn connect(
    target: &Target,
    offer: &Offer,
    guard: &InstanceGuard,
) -> Result<Connected, UpstreamErrorKind> {
    let connecting = negotiate(target, offer, guard);
    match target {
        Target::Command(_) => in_turn(&STARTS, connecting).await,
        Target::Url { .. } | Target::Local(_) => connecting.await,
    }
}

/// Runs a start once a permit is free.
async fn in_turn<T>(permits: &Semaphore, start: impl Future<Output = T>) -> T {
    let permit = permits.acquire().await;
    let mut start = pin!(start);
    if let Ok(started) = timeout(PERMIT_TIME, &mut start).await {
        return started;
    }
    drop(permit);
    start.await
}

async fn negotiate(
    target: &Target,
    offer: &Offer,
    guard: &InstanceGuard,
) -> Result<Connected, UpstreamErrorKind> {
    let connected = attempt(target, offer, guard).await?;
    let revision = connected.connection.revision();
    // BB-24: the server would take a client that only opens URLs for one that fills in forms.
    match without_elicitation(&offer.capabilities, revision) {
        Some(capabilities) => {
            let offer = Offer {
                capabilities,
                prior: connected.verdict.or(offer.prior),
                ..offer.clone()
            };
            drop(connected);
            attempt(target, &offer, guard).await
        }
        None => Ok(connected),
    }
}

async fn attempt(
    target: &Target,
    offer: &Offer,
    guard: &InstanceGuard,
) -> Result<Connected, UpstreamErrorKind> {
    let hooks = Arc::new(guard.clone()) as Arc<dyn Hooks>;
    let name = target.to_string();
    let (endpoint, name) = match target {
        Target::Command(command) => (Endpoint::Command(command), &*command.name),
        Target::Url { url, settings } => (Endpoint::Http { url, settings }, name.as_str()),
        Target::Local(local) => (Endpoint::Link(Box::new((local.0)())), name.as_str()),
    };
    let connected = connection::connect(endpoint, name, offer.into(), &hooks).await;
    connected.map_err(|error| classify(error, target))
}

/// Adds what the gateway knows about the target.
fn classify(error: ConnectError, target: &Target) -> UpstreamErrorKind {
    match error {
        ConnectError::HttpStatus(refusal) if refusal.status == LOOP_DETECTED => {
            UpstreamErrorKind::Loop
        }
        ConnectError::Exited { stderr, .. } | ConnectError::Negotiation { stderr, .. }
            if StartLoop::is_in(&stderr) =>
        {
            UpstreamErrorKind::StartLoop
        }
        ConnectError::HttpStatus(refusal) => UpstreamErrorKind::HttpStatus {
            status: refusal.status,
            has_credentials: target.has_credentials(),
        },
        ConnectError::Transport(error) => start_failure(error),
        error => error.into(),
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::sync::Arc;

    use tokio::sync::Semaphore;
    use tokio::time::Instant;

    use super::{PERMIT_TIME, in_turn};

    #[tokio::test(start_paused = true)]
    async fn slow_starts_delay_the_next_one_for_a_limited_time() {
        let permits = Arc::new(Semaphore::new(2));
        for _ in 0..2 {
            let permits = Arc::clone(&permits);
            tokio::spawn(async move { in_turn(&permits, pending::<()>()).await });
        }
        tokio::task::yield_now().await;
        assert_eq!(permits.available_permits(), 0);
        let begin = Instant::now();
        in_turn(&permits, async {}).await;
        assert_eq!(begin.elapsed(), PERMIT_TIME);
    }
}
