//! Polling of a modern server's task for a legacy client that waits for its call.

use std::time::Duration;

use bytestring::ByteString;
use mcpact_spec::{ErrorCode, Method};
use mcpact_translate::input::{NextStep, Outcome, Rounds};
use mcpact_translate::tasks::{FollowedTask, Step};

use mcpact::connection::ServerResponse;

use crate::error::ServeError;
use crate::exchange::rounds::{QuestionChannel, mint};
use crate::exchange::{Exchange, refusal, rounds};
use crate::tasks::waited::Started;
use crate::tasks::{QUESTIONS, of_task, waited};
use crate::upstream::UpstreamServer;

/// Maximum number of consecutive failures to get the task status.
const ATTEMPTS: u32 = 5;

/// Polls the task until it ends; the client sees one call with questions in it.
pub(crate) async fn follow(
    server: &UpstreamServer,
    exchange: Exchange,
    result: &str,
) -> Result<ByteString, ServeError> {
    let Some(mut task) = FollowedTask::new(result, QUESTIONS) else {
        let why = String::from("the server made a task of the call and did not say which");
        let code = ErrorCode::InternalError.code();
        return Err(refusal(code, why, None, exchange.downstream()));
    };
    let mut started = Started::new(&exchange, task.id())?;
    let _awake = exchange.connection.hold();
    let params = of_task(task.id());
    let mut pause = task.pause();
    let mut rounds = rounds_of_task(server, &exchange);
    loop {
        let detailed = look(&exchange, task.id(), pause).await?;
        let step = task.status(&detailed);
        if let Step::Ask(_) = step {
            // New questions get new round limits; repeated ones are limited as in a call without a task.
            rounds = rounds_of_task(server, &exchange);
        }
        match step {
            Step::Poll(after) => pause = after,
            Step::Ask(round) | Step::AskAgain(round) => {
                let answered = answer_task(server, &exchange, &params, &round, &mut rounds);
                if let Some(raw) = answered.await? {
                    return Ok(raw.into());
                }
                pause = task.pause();
            }
            Step::End(outcome) => {
                started.over();
                return match outcome {
                    Outcome::Result(raw) => exchange.result(&raw.into()),
                    Outcome::Error(raw) => Err(exchange.error(&raw)),
                };
            }
        }
    }
}

/// Gets the status of the server's task. A broken connection is reopened, unless the task was lost with it.
pub(crate) async fn look(
    exchange: &Exchange,
    upstream: &str,
    after: Duration,
) -> Result<ByteString, ServeError> {
    let params = of_task(upstream);
    let params = exchange.stamped(&params)?;
    let mut attempt = 0;
    loop {
        tokio::time::sleep(after).await;
        attempt += 1;
        let connection = waited::for_task(&exchange.connection, &exchange.binding).await;
        let lost = match connection {
            Ok(connection) => match connection.request(Method::TasksGet, &params).await {
                Ok(ServerResponse::Result(raw)) => return Ok(raw),
                Ok(ServerResponse::Error(raw)) => return Err(exchange.error(&raw)),
                Err(loss) => exchange.lost(&loss),
            },
            Err(error) => error.into(),
        };
        if attempt >= ATTEMPTS || waited::took_tasks_along(&exchange.connection) {
            return Err(lost);
        }
    }
}

fn rounds_of_task(server: &UpstreamServer, exchange: &Exchange) -> Rounds {
    let rounds = Rounds::new(
        Method::ToolsCall,
        exchange.inbound.job.pact.clone(),
        exchange.upstream(),
        server.settings.rounds,
        server.clock.now(),
    );
    rounds.with_default_answers(&server.settings.default_answers)
}

/// Sends the task's questions to the client, and the answers to the task. Returns the call's result if a missing
/// answer ends the call.
async fn answer_task(
    server: &UpstreamServer,
    exchange: &Exchange,
    params: &str,
    round: &str,
    rounds: &mut Rounds,
) -> Result<Option<String>, ServeError> {
    let mut turn = rounds.server_result(round, server.clock.now(), &mut mint);
    loop {
        match turn {
            NextStep::Ask(questions) => {
                turn =
                    rounds::ask(server, exchange, QuestionChannel::Here, questions, rounds).await;
            }
            NextStep::Again => {
                let answers = rounds.next_params(params);
                exchange.aside(Method::TasksUpdate, &answers).await?;
                return Ok(None);
            }
            NextStep::Answer(raw) => return Ok(Some(raw)),
            NextStep::Fail(error) => return Err(error.into()),
            NextStep::Finish | NextStep::Task | NextStep::Wait(_) => return Ok(None),
        }
    }
}
