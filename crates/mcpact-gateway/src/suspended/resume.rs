//! Resumption of a suspended call with the client's answers.

use std::sync::Arc;
use std::time::Duration;

use mcpact::connection::RawResult;
use mcpact_spec::{Era, Revision};
use mcpact_translate::input::{
    Claims, ResumeOutcome, Ticket, TicketOutcome, invalid_state, redeem,
};
use mcpact_translate::progress::Progress;
use mcpact_wire::raw::Object;
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::error::ServeError;
use crate::exchange::{Exchange, Inbound};
use crate::handover;
use crate::suspended::call::{CallMessage, Waiter};
use crate::suspended::registry::SuspendedRegistry;
use crate::suspended::{self, binding};
use crate::sync::OnDrop;
use crate::tasks::stored_response;
use crate::upstream::UpstreamServer;

/// Time limit for the server to report a visited URL, before the call is sent again.
const VISIT_TIMEOUT: Duration = Duration::from_secs(25);

/// Time limit for a disconnected client to return with the same answers.
const GRACE: Duration = Duration::from_secs(2);

/// Polling interval for that report.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Resumes the call that a sealed state refers to.
pub(crate) async fn resume(
    server: &Arc<UpstreamServer>,
    exchange: Exchange,
    state: &str,
    responses: Option<&str>,
) -> Result<RawResult, ServeError> {
    if let Some((suspended, plain)) = unseal(server, state) {
        if let Some(claims) = Claims::parse(&plain) {
            return suspended.resume(exchange.inbound, &claims, responses).await;
        }
        if let Some(ticket) = Ticket::parse(&plain) {
            let (binding, now) = (binding(&exchange.inbound), suspended.clock.now());
            let presented = redeem(ticket, &binding, responses, exchange.downstream(), now);
            return resume_visit(server, exchange, presented).await;
        }
    }
    tracing::warn!("`requestState` rejected: not created by this gateway");
    Err(invalid_state().into())
}

/// Opens a sealed state; returns its registry and its content.
fn unseal(server: &UpstreamServer, state: &str) -> Option<(Arc<SuspendedRegistry>, Vec<u8>)> {
    let mut registries = handover::suspended_registries(server);
    registries.find_map(|suspended| Some((Arc::clone(suspended), suspended.sealer.open(state)?)))
}

/// Resumes a suspended call at a server that accepts no new calls; `None` if no suspended call matches.
pub(crate) async fn resume_only(
    server: &UpstreamServer,
    inbound: Inbound,
) -> Option<Result<RawResult, ServeError>> {
    let raw = inbound.job.params.clone();
    let params = Object::parse(&raw).ok()?;
    let (suspended, plain) = unseal(server, &params.get_str("requestState")?)?;
    let claims = Claims::parse(&plain)?;
    let responses = params.get_present("inputResponses");
    Some(suspended.resume(inbound, &claims, responses).await)
}

/// Continues after the user agreed to visit a URL. The call is resent once the server reports completion, or
/// after a timeout.
async fn resume_visit(
    server: &Arc<UpstreamServer>,
    exchange: Exchange,
    presented: TicketOutcome,
) -> Result<RawResult, ServeError> {
    match presented {
        TicketOutcome::Refused { error, cause } => {
            tracing::warn!(cause, "`requestState` rejected");
            return Err(error.into());
        }
        TicketOutcome::Answer(raw) => return Ok(raw.into()),
        TicketOutcome::Fail(error) => return Err(error.into()),
        TicketOutcome::Again => {}
        TicketOutcome::Wait(ids) => {
            let until = Instant::now() + VISIT_TIMEOUT;
            while Instant::now() < until && !exchange.connection.completions().has_all(&ids) {
                tokio::time::sleep(POLL_INTERVAL).await;
            }
        }
    }
    suspended::call(server, exchange).await
}

impl SuspendedRegistry {
    /// Resumes a call that is suspended in this registry.
    async fn resume(
        &self,
        inbound: Inbound,
        claims: &Claims,
        responses: Option<&str>,
    ) -> Result<RawResult, ServeError> {
        let binding = binding(&inbound);
        let (response, sender) = {
            let mut calls = self.calls();
            let answers = match calls.resume(claims, &binding, responses, self.clock.now()) {
                ResumeOutcome::Refused { error, cause } => {
                    tracing::warn!(cause, "`requestState` rejected");
                    return Err(error.into());
                }
                ResumeOutcome::Done(outcome) => {
                    return stored_response(outcome, Revision::newest(Era::Modern));
                }
                ResumeOutcome::Join => Vec::new(),
                ResumeOutcome::Go { answers, missing } => {
                    if let Some(round) = missing {
                        self.send(claims.call, CallMessage::Resumed(answers, None));
                        return self.input_request(&round);
                    }
                    answers
                }
            };
            let (sender, response) = oneshot::channel();
            let waiter = Waiter {
                inbound,
                progress: Progress::default(),
                response: sender,
            };
            let message = CallMessage::Resumed(answers, Some(Box::new(waiter)));
            self.send(claims.call, message);
            (response, self.sender(claims.call))
        };
        let leaving = OnDrop::new(move || {
            if let Some(sender) = sender
                && let Ok(runtime) = tokio::runtime::Handle::try_current()
            {
                runtime.spawn(async move {
                    tokio::time::sleep(GRACE).await;
                    let _ = sender.send(CallMessage::Left);
                });
            }
        });
        let response = response.await;
        leaving.disarm();
        let response = response.unwrap_or_else(|_| Err(invalid_state().into()));
        // An earlier request started the call, so this one is not tried elsewhere.
        response.map_err(|error| error.with_doubt(None))
    }
}
