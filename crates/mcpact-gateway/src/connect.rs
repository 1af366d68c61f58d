//! Connects to a target on behalf of an instance.

use std::sync::Arc;

use mcpact::connection::{self, ConnectError, Connected, Endpoint, Hooks, Offer};
use mcpact_translate::lifecycle::without_elicitation;

use crate::approval::start_failure;
use crate::error::UpstreamErrorKind;
use crate::loop_detection::LOOP_DETECTED;
use crate::loop_detection::start::StartLoop;
use crate::supervisor::InstanceGuard;
use crate::target::Target;

/// Connects to a server, starting it if needed, and negotiates.
pub(crate) async fn connect(
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
