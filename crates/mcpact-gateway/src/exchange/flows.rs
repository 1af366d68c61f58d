//! Flow of one attempt after a connection was found: who may ask whom, and which parts the gateway emulates.

use std::borrow::Cow;
use std::future::ready;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytestring::ByteString;
use futures_util::future::BoxFuture;
use mcpact::connection::{RawResult, ServerResponse};
use mcpact_spec::{Capability, Era, ErrorCode, Method, Side};
use mcpact_translate::input::{self, AnsweredResult};
use mcpact_translate::plan::{Machine, Plan, with_capabilities};
use mcpact_wire::scan::SeenKeys;

use super::{Exchange, level_of, refuse, rounds};
use crate::error::{ServeError, UpstreamErrorKind};
use crate::subscriptions::{legacy, listen};
use crate::suspended::{self, modern};
use crate::tasks::{hosted, mapped, same_era};
use crate::upstream::UpstreamServer;

/// Runs the flow that the translation plan selects, within the time limit of a call.
pub(crate) async fn run(
    server: &Arc<UpstreamServer>,
    plan: Plan,
    exchange: Exchange,
) -> Result<RawResult, ServeError> {
    let (binding, is_sent) = (Arc::clone(&exchange.binding), Arc::clone(&exchange.is_sent));
    let flow = match plan {
        Plan::Pass | Plan::NewerServer | Plan::OlderServer => translated(server, exchange),
        Plan::Emulate(Machine::TasksExtension) => Box::pin(mapped::serve_mapped(server, exchange)),
        // Streams and results of tasks have no time limit.
        Plan::Emulate(machine) => return Box::pin(emulate(server, machine, exchange)).await,
    };
    let limit = server.shared.run().call_timeout;
    let outcome = tokio::time::timeout(limit, flow).await;
    outcome.unwrap_or_else(|_| {
        let kind = match is_sent.load(Ordering::Relaxed) {
            true => UpstreamErrorKind::CallTimeout { limit },
            false => UpstreamErrorKind::TimeoutBeforeSend { limit },
        };
        Err(binding.lost_call(kind).into())
    })
}

/// Selects the flow by era and method. Each flow is boxed: an unboxed future is moved on every hand-off and has the
/// size of the largest flow.
fn translated(
    server: &Arc<UpstreamServer>,
    exchange: Exchange,
) -> BoxFuture<'_, Result<RawResult, ServeError>> {
    let job = &exchange.inbound.job;
    if let Some(requested) = hosted::requested_task(&exchange) {
        return Box::pin(ready(hosted::host(server, exchange, &requested)));
    }
    let may_ask = job.method.is_some_and(Method::may_ask_for_input);
    match (exchange.downstream().era(), exchange.upstream().era()) {
        (Era::Legacy, Era::Modern) if may_ask => Box::pin(rounds::in_rounds(server, exchange)),
        (Era::Modern, Era::Legacy) if may_ask => Box::pin(suspended::serve(server, exchange)),
        (Era::Legacy, Era::Legacy) if legacy::is_subscription(job.method) => {
            Box::pin(legacy::change_subscription(server, exchange))
        }
        (Era::Legacy, Era::Legacy) => Box::pin(rounds::relay_with_questions(server, exchange)),
        (Era::Modern, Era::Legacy) => Box::pin(suspended::serve_without_questions(exchange)),
        (Era::Legacy | Era::Modern, Era::Modern) => Box::pin(pass_through(server, exchange)),
    }
}

/// Sends a request and returns its response. Configured default answers may add input rounds in between.
async fn pass_through(
    server: &UpstreamServer,
    mut exchange: Exchange,
) -> Result<RawResult, ServeError> {
    let params = match same_era::select_instance(&mut exchange).await? {
        Some(params) => params.into(),
        None => exchange.params()?,
    };
    let mut params = with_default_capabilities(server, &exchange, params)?;
    let _awake = modern::answered_question(server, &exchange);
    for _ in 0..=server.settings.rounds.rounds {
        let mut call = exchange.send(&params).await?;
        let reply = exchange.reply(&mut call).await?;
        match with_default_answers(server, &exchange, &params, &reply) {
            AnsweredResult::Pass => {
                let finished = exchange.finished(&reply)?;
                let finished = with_adapted_sampling(&exchange, finished)?;
                modern::note_question(server, &exchange, &finished);
                return Ok(same_era::record_tasks(&exchange, finished));
            }
            AnsweredResult::Ask(raw) | AnsweredResult::Answer(raw) => {
                let raw = with_adapted_sampling(&exchange, raw.into())?;
                modern::note_question(server, &exchange, &raw);
                return Ok(raw);
            }
            AnsweredResult::Fail(error) => return Err(error.into()),
            AnsweredResult::Again(next) => params = next.into(),
        }
    }
    let why = "Too many input rounds: the server keeps asking";
    let code = ErrorCode::InternalError;
    Err(refuse(code, why, exchange.downstream()))
}

/// Checks and adapts the sampling requests in a result for a modern client.
fn with_adapted_sampling(exchange: &Exchange, raw: RawResult) -> Result<RawResult, ServeError> {
    let job = &exchange.inbound.job;
    // Fast path: few clients sample, and few results ask them to.
    if !job.pact.declares(Capability::Sampling)
        || !job.method.is_some_and(Method::may_ask_for_input)
        || !raw.may_have(SeenKeys::INPUT_REQUESTS)
    {
        return Ok(raw);
    }
    match input::with_adapted_sampling(&raw, &job.pact) {
        Ok(Cow::Borrowed(_)) => Ok(raw),
        Ok(Cow::Owned(adapted)) => Ok(adapted.into()),
        Err(fault) => Err(exchange.unfit("question", fault)),
    }
}

/// Returns the client's parameters. For a modern client, capabilities that default answers cover are added to its
/// own.
fn with_default_capabilities(
    server: &UpstreamServer,
    exchange: &Exchange,
    params: ByteString,
) -> Result<ByteString, ServeError> {
    if exchange.downstream().era() == Era::Legacy {
        return Ok(params);
    }
    let client = exchange.inbound.job.pact.party(Side::Client);
    let default_answers = &server.settings.default_answers;
    match default_answers.declared_for(&client.capabilities) {
        Some(declared) => with_capabilities(&params, declared.raw())
            .map(Into::into)
            .map_err(|fault| exchange.malformed(&fault)),
        None => Ok(params),
    }
}

/// Applies the configured default answers to the result of a modern server, for a modern client.
fn with_default_answers(
    server: &UpstreamServer,
    exchange: &Exchange,
    params: &str,
    reply: &ServerResponse,
) -> AnsweredResult {
    let job = &exchange.inbound.job;
    let default_answers = &server.settings.default_answers;
    match (reply, job.method) {
        (ServerResponse::Result(raw), Some(method))
            if !default_answers.is_empty() && method.may_ask_for_input() =>
        {
            default_answers.apply(&job.pact, method, params, raw)
        }
        _ => AnsweredResult::Pass,
    }
}

async fn emulate(
    server: &UpstreamServer,
    machine: Machine,
    exchange: Exchange,
) -> Result<RawResult, ServeError> {
    let job = &exchange.inbound.job;
    match machine {
        Machine::SetLevel => {
            exchange.binding.set_level(level_of(job)?);
            Ok("{}".into())
        }
        Machine::Ping => Ok("{}".into()),
        Machine::Listen => listen::serve_stream(server, exchange).await,
        Machine::Subscribe | Machine::Unsubscribe => match exchange.binding.emulated() {
            Some(emulated) => emulated.change_subscription(&exchange).await,
            None => Err(refused(&exchange)),
        },
        // A request for the result waits as long as the task is retained.
        Machine::TasksCore => hosted::serve_hosted(server, &exchange.inbound).await,
        _ => Err(refused(&exchange)),
    }
}

/// Error for a method without a counterpart at the server.
fn refused(exchange: &Exchange) -> ServeError {
    let (name, upstream) = (&exchange.inbound.job.name, exchange.upstream());
    let why = format!("`{name}` has no counterpart at a server of {upstream}");
    refuse(ErrorCode::MethodNotFound, why, exchange.downstream())
}
