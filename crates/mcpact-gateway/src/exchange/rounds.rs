//! Legacy clients: input rounds of a modern server, and questions of a legacy server.

use std::pin::pin;
use std::sync::Arc;

use bytestring::ByteString;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use mcpact::server::backend::QuestionOutcome;
use mcpact_spec::{ErrorCode, Method};
use mcpact_translate::input::{ClientReply, NextStep, Outcome, Question, Rounds};
use mcpact_translate::tasks::{CallMode, Status, related, wants_tasks};
use mcpact_wire::model::error::ErrorBody;
use mcpact_wire::raw::{Object, ObjectWriter};

use crate::connection::pool::Lease;
use crate::connection::questions::{ANSWER_TIMEOUT, CallQuestions};
use crate::error::ServeError;
use crate::exchange::{DeclaredTasks, Exchange};
use crate::suspended::take_turn;
use crate::tasks::hosted::{self, Runner};
use crate::tasks::same_era;
use crate::tasks::waiting::{self, SentCall};
use crate::upstream::UpstreamServer;
use mcpact::connection::{CallEvent, RawResult, ServerResponse};

/// Maximum number of tool list pages to read.
const PAGES: usize = 100;

/// Channel for questions to a client.
#[derive(Clone, Copy)]
pub(crate) enum QuestionChannel<'a> {
    /// The stream of the client's call.
    Here,
    /// The pending request for the result of the client's task.
    InTask(&'a str, &'a Runner),
}

/// Outcome of a call to a modern server.
pub(crate) enum CallEnd {
    /// Response, translated to the client's revision.
    Answer(RawResult),
    /// Server result with the task that the call became.
    Task(ByteString),
}

/// Runs a call to a modern server, which requests input by ending the call. The client sees one call with
/// questions in it.
pub(crate) async fn in_rounds(
    server: &UpstreamServer,
    mut exchange: Exchange,
) -> Result<RawResult, ServeError> {
    match run_rounds(server, &mut exchange, QuestionChannel::Here).await? {
        CallEnd::Answer(raw) => Ok(raw),
        CallEnd::Task(raw) => {
            let outcome = Box::pin(waiting::follow(server, exchange, &raw)).await;
            // A task that has started must not be resent to another server.
            outcome.map_err(|error| error.with_doubt(None))
        }
    }
}

pub(crate) async fn run_rounds(
    server: &UpstreamServer,
    exchange: &mut Exchange,
    asking: QuestionChannel<'_>,
) -> Result<CallEnd, ServeError> {
    let method = exchange.inbound.job.method.unwrap_or(Method::ToolsCall);
    let original = exchange.params()?;
    let mut rounds = Rounds::new(
        method,
        exchange.inbound.job.pact.clone(),
        exchange.upstream(),
        server.settings.rounds,
        server.clock.now(),
    )
    .with_default_answers(&server.settings.default_answers);
    let mut has_refreshed = false;
    loop {
        exchange.progress.next_round();
        let params = rounds.next_params(&original);
        let mut call = exchange.send(&params).await?;
        let reply = exchange.reply(&mut call).await?;
        // Release the call slot while the client prepares its answers.
        exchange.guard = None;
        let raw = match &reply {
            ServerResponse::Error(raw) if !has_refreshed && is_header_mismatch(raw) => {
                // BA-28: the cached tool description may be outdated.
                has_refreshed = true;
                let _ = Box::pin(read_tools(exchange)).await;
                continue;
            }
            ServerResponse::Error(raw) if exchange.may_take_tasks() && wants_tasks(raw) => {
                // The tool runs only as a task and has not run yet.
                exchange.declared_tasks = DeclaredTasks::WithTasks;
                continue;
            }
            // A result that is not an object is no input round.
            ServerResponse::Result(raw) if raw.starts_with('{') => raw,
            _ => return exchange.finished(&reply).map(CallEnd::Answer),
        };
        let mut step = rounds.server_result(raw, server.clock.now(), &mut new_url_id);
        loop {
            match step {
                NextStep::Task if exchange.declared_tasks == DeclaredTasks::WithTasks => {
                    return Ok(CallEnd::Task(raw.clone().into_text()));
                }
                // A task without declared support is passed on like any result.
                NextStep::Finish | NextStep::Task => {
                    return exchange.finished(&reply).map(CallEnd::Answer);
                }
                NextStep::Answer(raw) => return Ok(CallEnd::Answer(raw.into())),
                NextStep::Fail(error) => return Err(error.into()),
                NextStep::Again => break,
                NextStep::Wait(pause) => {
                    tokio::time::sleep(pause).await;
                    break;
                }
                NextStep::Ask(questions) => {
                    // Boxed, because few calls ask: the future of every call would have room for it.
                    step = Box::pin(ask(server, exchange, asking, questions, &mut rounds)).await;
                }
            }
        }
    }
}

/// Sends all questions at once and processes the answers in the order of arrival.
pub(crate) async fn ask(
    server: &UpstreamServer,
    exchange: &Exchange,
    asking: QuestionChannel<'_>,
    questions: Vec<Question>,
    rounds: &mut Rounds,
) -> NextStep {
    let set_status = |status| {
        if let QuestionChannel::InTask(task, _) = asking {
            hosted::hosted(server).set_status(task, status);
        }
    };
    set_status(Status::InputRequired);
    let step = collect_answers(server, exchange, asking, questions, rounds).await;
    set_status(Status::Working);
    step
}

async fn collect_answers(
    server: &UpstreamServer,
    exchange: &Exchange,
    asking: QuestionChannel<'_>,
    questions: Vec<Question>,
    rounds: &mut Rounds,
) -> NextStep {
    let mut open: FuturesUnordered<_> = questions
        .into_iter()
        .map(|question| async move {
            let outcome = put(exchange, asking, &question).await;
            (question.key, outcome)
        })
        .collect();
    let left = rounds.deadline().since(server.clock.now());
    let mut late = pin!(tokio::time::sleep(left));
    loop {
        let (key, outcome) = tokio::select! {
            () = &mut late => return rounds.late(),
            Some(answer) = open.next() => answer,
            else => return rounds.late(),
        };
        let reply = match &outcome {
            QuestionOutcome::Result(raw) => ClientReply::Result(raw),
            QuestionOutcome::Error(raw) => ClientReply::Error(raw),
            QuestionOutcome::Lost(why) => ClientReply::Lost(why),
            QuestionOutcome::Refused(_) => ClientReply::Lost("the client cannot be asked"),
        };
        if let Some(step) = rounds.client_reply(&key, reply) {
            return step;
        }
    }
}

/// Reads the server's tool list for the metadata that calls need. Returns true on success.
pub(crate) async fn read_tools(exchange: &Exchange) -> bool {
    // Counted as a call to prevent idle shutdown before the server has responded.
    let Ok(Lease { connection, guard }) = exchange.binding.acquire().await else {
        return false;
    };
    let mut params = String::from("{}");
    for _ in 0..PAGES {
        let Ok(stamped) = exchange.stamped(&params) else {
            return false;
        };
        let Ok(ServerResponse::Result(raw)) = connection.request(Method::ToolsList, &stamped).await
        else {
            return false;
        };
        guard.answered();
        connection.learn_tools(&raw);
        let result = Object::parse(&raw).unwrap_or_default();
        let Some(cursor) = result.get_str("nextCursor") else {
            break;
        };
        params = ObjectWriter::new().text("cursor", &cursor).finish();
    }
    true
}

/// Runs a call between legacy peers and forwards questions unchanged.
pub(crate) async fn relay_with_questions(
    server: &UpstreamServer,
    mut exchange: Exchange,
) -> Result<RawResult, ServeError> {
    let params = match same_era::select_instance(&mut exchange).await? {
        Some(params) => params.into(),
        None => exchange.params()?,
    };
    let sink = exchange.inbound.sink.clone();
    let method = exchange.inbound.job.method;
    if method.is_some_and(Method::may_ask_for_input) {
        take_turn(&mut exchange).await?;
    }
    if let Some(turn) = &mut exchange.turn {
        turn.is_running = true;
    }
    // Declared before the call so that it is dropped after it: the call is cancelled before its questions are
    // refused.
    let mut asked = CallQuestions::default();
    let (mut call, mut started) = match waiting::call_mode(server, &exchange).await {
        CallMode::Waited => match Box::pin(waiting::begin(&mut exchange, &params)).await? {
            SentCall::Waiting(call, started) => (call, Some(started)),
            SentCall::Answered(reply) => return exchange.finished(&reply),
        },
        CallMode::Plain | CallMode::Task => (exchange.send(&params).await?, None),
    };
    let connection = Arc::clone(&exchange.connection);
    loop {
        let event = tokio::select! {
            biased;
            // Questions are forwarded before the response.
            Some(()) = asked.answered() => continue,
            event = call.next() => event,
        };
        if let (CallEvent::Response(_) | CallEvent::Failed(_), Some(turn)) =
            (&event, &mut exchange.turn)
        {
            turn.is_running = false;
        }
        match event {
            CallEvent::Notification(note) => {
                connection.question_registry.withdraw(&note);
                exchange.inbound.notify(&note, &mut exchange.progress).await;
            }
            CallEvent::Response(reply) => {
                exchange.remember(&reply);
                if let Some(started) = &mut started {
                    started.set_ended();
                }
                asked.outlive_call(&connection, &sink).await;
                let finished = exchange.finished(&reply);
                return finished.map(|raw| same_era::record_tasks(&exchange, raw));
            }
            CallEvent::Failed(loss) => return Err(exchange.lost(&loss)),
            CallEvent::Request(ask) => match ask.method {
                Some(Method::Ping) => ask.answer(&Outcome::Result("{}".into())).await,
                Some(method) => {
                    connection.asked_during_call();
                    asked.put(&connection, &sink, ask, method);
                }
                None => connection.refuse(ask).await,
            },
        }
    }
}

/// Sends one question to the client.
async fn put(
    exchange: &Exchange,
    asking: QuestionChannel<'_>,
    question: &Question,
) -> QuestionOutcome {
    let Question { method, params, .. } = question;
    match asking {
        QuestionChannel::Here => {
            let sink = &exchange.inbound.sink;
            sink.ask(*method, params, ANSWER_TIMEOUT).await
        }
        QuestionChannel::InTask(task, runner) => match related(params, task) {
            Ok(params) => runner.ask(*method, &params).await,
            Err(_) => QuestionOutcome::Lost("the question cannot be read"),
        },
    }
}

fn is_header_mismatch(raw: &str) -> bool {
    ErrorBody::parse(raw).is_some_and(|body| body.code == ErrorCode::HeaderMismatch.code())
}

/// Generates an id for a URL that a user should visit.
pub(crate) fn new_url_id() -> String {
    let mut bytes = [0_u8; 16];
    // Without randomness, ids repeat, which clients detect; nothing secret is exposed.
    let _ = getrandom::fill(&mut bytes);
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
