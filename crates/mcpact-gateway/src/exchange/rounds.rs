//! Legacy clients: a modern server's rounds, and a legacy server's questions.

use std::sync::Arc;

use crate::error::ServeError;
use bytestring::ByteString;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use mcpact::server::backend::QuestionOutcome;
use mcpact_spec::{ErrorCode, Method};
use mcpact_translate::input::{self, NextStep, Outcome, Question, Rounds};
use mcpact_translate::tasks::{CallMode, Status, related, wants_tasks};
use mcpact_wire::model::error::ErrorBody;
use mcpact_wire::raw::{Object, ObjectWriter};

use crate::connection::questions::CallQuestions;
use crate::connection::slot::Lease;
use crate::connection::unasked::PATIENCE;
use crate::exchange::DeclaredTasks;
use crate::exchange::Exchange;
use crate::suspended::take_turn;
use crate::tasks::runner::Runner;
use crate::tasks::waited::Begun;
use crate::upstream::UpstreamServer;
use mcpact::connection::{CallEvent, ServerResponse};

/// How many pages of tools are read at most.
const PAGES: usize = 100;

/// Where a client is asked.
#[derive(Clone, Copy)]
pub(crate) enum QuestionChannel<'a> {
    /// On the stream of its call.
    Here,
    /// Where it waits for the result of its task.
    InTask(&'a str, &'a Runner),
}

/// What a call of a modern server came to.
pub(crate) enum CallEnd {
    /// An answer, in the client's words.
    Answer(ByteString),
    /// The server's result that says which task it made of it.
    Task(ByteString),
}

impl UpstreamServer {
    /// A modern server asks by ending the call; the client sees one call with questions in it.
    pub(crate) async fn in_rounds(&self, mut exchange: Exchange) -> Result<ByteString, ServeError> {
        match self
            .through_rounds(&mut exchange, QuestionChannel::Here)
            .await?
        {
            CallEnd::Answer(raw) => Ok(raw),
            CallEnd::Task(raw) => {
                // What the server has begun is brought to no other one.
                exchange.refusals = Arc::default();
                Box::pin(self.follow(exchange, &raw)).await
            }
        }
    }

    pub(crate) async fn through_rounds(
        &self,
        exchange: &mut Exchange,
        asking: QuestionChannel<'_>,
    ) -> Result<CallEnd, ServeError> {
        let method = exchange.inbound.job.method.unwrap_or(Method::ToolsCall);
        let original = exchange.params()?;
        let mut rounds = Rounds::new(
            method,
            exchange.inbound.job.pact.clone(),
            exchange.upstream(),
            self.settings.rounds,
            self.clock.now(),
        )
        .with_default_answers(&self.settings.default_answers);
        let mut has_refreshed = false;
        loop {
            exchange.progress.next_round();
            let params = rounds.next_params(&original);
            let mut call = exchange.send(&params).await?;
            let reply = exchange.reply(&mut call).await?;
            // Nobody has to wait while the client thinks.
            exchange.guard = None;
            let raw = match &reply {
                ServerResponse::Error(raw) if !has_refreshed && is_header_mismatch(raw) => {
                    // BA-28: what is known about the tool may be old.
                    has_refreshed = true;
                    let _ = Box::pin(self.read_tools(exchange)).await;
                    continue;
                }
                ServerResponse::Error(raw) if exchange.may_take_tasks() && wants_tasks(raw) => {
                    // The tool runs only as a task, and has not run yet.
                    exchange.told = DeclaredTasks::WithTasks;
                    continue;
                }
                ServerResponse::Error(_) => return exchange.finished(&reply).map(CallEnd::Answer),
                // No result at all: there are no rounds to it.
                ServerResponse::Result(raw) if !raw.starts_with('{') => {
                    return exchange.finished(&reply).map(CallEnd::Answer);
                }
                ServerResponse::Result(raw) => raw,
            };
            let mut turn = rounds.server_result(raw, self.clock.now(), &mut mint);
            loop {
                match turn {
                    NextStep::Finish => return exchange.finished(&reply).map(CallEnd::Answer),
                    NextStep::Task if exchange.told == DeclaredTasks::WithTasks => {
                        let (ServerResponse::Result(raw) | ServerResponse::Error(raw)) = reply;
                        return Ok(CallEnd::Task(raw));
                    }
                    // Nobody said that the client follows tasks.
                    NextStep::Task => return exchange.finished(&reply).map(CallEnd::Answer),
                    NextStep::Answer(raw) => return Ok(CallEnd::Answer(raw.into())),
                    NextStep::Fail(error) => return Err(error.into()),
                    NextStep::Again => break,
                    NextStep::Wait(pause) => {
                        tokio::time::sleep(pause).await;
                        break;
                    }
                    NextStep::Ask(questions) => {
                        turn = self.ask(exchange, asking, questions, &mut rounds).await;
                    }
                }
            }
        }
    }

    /// Asks everything at once and hears the answers as they come.
    pub(crate) async fn ask(
        &self,
        exchange: &Exchange,
        asking: QuestionChannel<'_>,
        questions: Vec<Question>,
        rounds: &mut Rounds,
    ) -> NextStep {
        if let QuestionChannel::InTask(task, _) = asking {
            self.hosted().waits(task, Status::InputRequired);
        }
        let turn = self.hear_all(exchange, asking, questions, rounds).await;
        if let QuestionChannel::InTask(task, _) = asking {
            self.hosted().waits(task, Status::Working);
        }
        turn
    }

    async fn hear_all(
        &self,
        exchange: &Exchange,
        asking: QuestionChannel<'_>,
        questions: Vec<Question>,
        rounds: &mut Rounds,
    ) -> NextStep {
        let mut open: FuturesUnordered<_> = questions
            .into_iter()
            .map(|question| async move {
                let heard = put(exchange, asking, &question).await;
                (question.key, heard)
            })
            .collect();
        let left = rounds.deadline().since(self.clock.now());
        let late = tokio::time::sleep(left);
        tokio::pin!(late);
        loop {
            let (key, heard) = tokio::select! {
                () = &mut late => return rounds.late(),
                Some(answer) = open.next() => answer,
                else => return rounds.late(),
            };
            let turn = match &heard {
                QuestionOutcome::Result(raw) => {
                    rounds.client_reply(&key, input::ClientReply::Result(raw))
                }
                QuestionOutcome::Error(raw) => {
                    rounds.client_reply(&key, input::ClientReply::Error(raw))
                }
                QuestionOutcome::Lost(why) => {
                    rounds.client_reply(&key, input::ClientReply::Lost(why))
                }
                QuestionOutcome::Refused(_) => rounds
                    .client_reply(&key, input::ClientReply::Lost("the client cannot be asked")),
            };
            if let Some(turn) = turn {
                return turn;
            }
        }
    }

    /// Reads the server's tool list, for what its calls need; whether that was possible.
    pub(crate) async fn read_tools(&self, exchange: &Exchange) -> bool {
        // As a call, so that the server does not fall asleep before it has answered.
        let Ok(Lease { connection, guard }) = exchange.binding.acquire().await else {
            return false;
        };
        let mut page = Some(String::from("{}"));
        for _ in 0..PAGES {
            let Some(params) = page else {
                break;
            };
            let Ok(params) = exchange.stamped(&params) else {
                return false;
            };
            let Ok(ServerResponse::Result(raw)) =
                connection.request(Method::ToolsList, &params).await
            else {
                return false;
            };
            guard.answered();
            connection.learn_tools(&raw);
            let result = Object::parse(&raw).unwrap_or_default();
            page = result
                .get_str("nextCursor")
                .map(|cursor| ObjectWriter::new().text("cursor", &cursor).finish());
        }
        true
    }

    /// Between legacy peers a question is passed on as it is.
    pub(crate) async fn asking_along(
        &self,
        mut exchange: Exchange,
    ) -> Result<ByteString, ServeError> {
        let params = match exchange.go_to_task().await? {
            Some(params) => params.into(),
            None => exchange.params()?,
        };
        let sink = exchange.inbound.sink.clone();
        let method = exchange.inbound.job.method;
        if method.is_some_and(Method::may_ask_for_input) {
            take_turn(&mut exchange).await?;
        }
        if let Some(turn) = &mut exchange.turn {
            turn.begin();
        }
        // Before the call: who takes it back says so before it refuses what was asked for it.
        let mut asked = CallQuestions::default();
        let (mut call, mut started) = match self.way(&exchange).await {
            CallMode::Waited => match Box::pin(exchange.begin(&params)).await? {
                Begun::Waiting(call, started) => (call, Some(started)),
                Begun::Answered(reply) => return exchange.finished(&reply),
            },
            CallMode::Plain | CallMode::Task => (exchange.send(&params).await?, None),
        };
        let connection = Arc::clone(&exchange.connection);
        loop {
            let event = tokio::select! {
                biased;
                // What was asked goes out before the answer.
                Some(()) = asked.answered() => continue,
                event = call.next() => event,
            };
            if let (CallEvent::Response(_) | CallEvent::Failed(_), Some(turn)) =
                (&event, &mut exchange.turn)
            {
                turn.end();
            }
            match event {
                CallEvent::Notification(note) => {
                    connection.question_registry.withdraw(&note);
                    exchange.inbound.tell(&note, &mut exchange.progress).await;
                }
                CallEvent::Response(reply) => {
                    exchange.remember(&reply);
                    if let Some(started) = &mut started {
                        started.over();
                    }
                    asked.outlive_call(&connection, &sink).await;
                    let finished = exchange.finished(&reply);
                    return finished.map(|raw| exchange.keeping_tasks(raw));
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
}

/// Puts one question to the client.
async fn put(
    exchange: &Exchange,
    asking: QuestionChannel<'_>,
    question: &Question,
) -> QuestionOutcome {
    let Question { method, params, .. } = question;
    match asking {
        QuestionChannel::Here => {
            let sink = &exchange.inbound.sink;
            sink.ask(*method, params, PATIENCE).await
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

/// An id for a URL that a user shall visit.
pub(crate) fn mint() -> String {
    let mut bytes = [0_u8; 16];
    // Without randomness an id repeats, which a client notices; nothing is given away by it.
    let _ = getrandom::fill(&mut bytes);
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
