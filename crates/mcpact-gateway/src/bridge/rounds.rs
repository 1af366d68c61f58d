//! Legacy clients: a modern server's rounds, and a legacy server's questions.

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use mcpact::server::backend::Heard;
use mcpact_bridge::input::{self, Question, Rounds, Turn};
use mcpact_engine::refusal::WireError;
use mcpact_spec::{ErrorCode, Method};
use mcpact_wire::model::error::ErrorBody;
use mcpact_wire::raw::{Object, ObjectWriter};

use super::Bridge;
use super::crossing::{Crossing, stamped};
use super::questions::PATIENCE;
use crate::upstream::{Event, Reply, text};

/// How many pages of tools are read at most.
const PAGES: usize = 100;

impl Bridge {
    /// A modern server asks by ending the call; the client sees one call with questions in it.
    pub(super) async fn in_rounds(&self, mut crossing: Crossing) -> Result<String, WireError> {
        let method = crossing.waiter.job.method.unwrap_or(Method::ToolsCall);
        let original = crossing.params()?;
        let mut rounds = Rounds::new(
            method,
            crossing.waiter.job.pact.clone(),
            crossing.upstream(),
            self.settings.rounds,
            self.clock.now(),
        );
        let mut has_refreshed = false;
        loop {
            crossing.progress.next_round();
            let params = rounds.next_params(&original).into_owned();
            let mut call = crossing.send(&params).await?;
            let reply = crossing.reply(&mut call).await?;
            let raw = match &reply {
                Reply::Error(raw) if !has_refreshed && is_header_mismatch(text(raw)) => {
                    // BA-28: what is known about the tool may be old.
                    has_refreshed = true;
                    self.refresh_tools(&crossing).await;
                    continue;
                }
                Reply::Error(_) => return crossing.finished(&reply),
                Reply::Result(raw) => text(raw),
            };
            let mut turn = rounds.upstream(raw, self.clock.now(), &mut mint);
            loop {
                match turn {
                    Turn::Finish | Turn::Task => return crossing.finished(&reply),
                    Turn::Answer(raw) => return Ok(raw),
                    Turn::Fail(error) => return Err(error),
                    Turn::Again => break,
                    Turn::Wait(pause) => {
                        tokio::time::sleep(pause).await;
                        break;
                    }
                    Turn::Ask(questions) => {
                        turn = self.ask(&crossing, questions, &mut rounds).await;
                    }
                }
            }
        }
    }

    /// Asks everything at once and hears the answers as they come.
    async fn ask(
        &self,
        crossing: &Crossing,
        questions: Vec<Question>,
        rounds: &mut Rounds,
    ) -> Turn {
        let waiter = &crossing.waiter;
        let mut open: FuturesUnordered<_> = questions
            .into_iter()
            .map(|question| async move {
                let asking = waiter.ear.ask(question.method, &question.params, PATIENCE);
                (question.key, asking.await)
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
                Heard::Result(raw) => rounds.heard(&key, input::Heard::Result(raw)),
                Heard::Error(raw) => rounds.heard(&key, input::Heard::Error(raw)),
                Heard::Lost(why) => rounds.heard(&key, input::Heard::Lost(why)),
                Heard::Refused(_) => {
                    rounds.heard(&key, input::Heard::Lost("the client cannot be asked"))
                }
            };
            if let Some(turn) = turn {
                return turn;
            }
        }
    }

    /// Reads the server's tool list again, for the headers that its calls need.
    async fn refresh_tools(&self, crossing: &Crossing) {
        let lane = &crossing.lane;
        let reach = crossing.waiter.job.reach;
        let mut page = Some(String::from("{}"));
        for _ in 0..PAGES {
            let Some(params) = page else {
                return;
            };
            let Ok(Some(params)) = stamped(&crossing.caller, reach, lane.revision(), &params)
            else {
                return;
            };
            let Ok(Reply::Result(raw)) = lane.request(Method::ToolsList, &params).await else {
                return;
            };
            lane.book.learn(text(&raw));
            let result = Object::parse(text(&raw)).unwrap_or_default();
            page = result
                .get_str("nextCursor")
                .map(|cursor| ObjectWriter::new().text("cursor", &cursor).finish());
        }
    }

    /// Between legacy peers a question is passed on as it is.
    pub(super) async fn asking_along(&self, mut crossing: Crossing) -> Result<String, WireError> {
        let params = crossing.params()?;
        let mut call = crossing.send(&params).await?;
        let lane = std::sync::Arc::clone(&crossing.lane);
        let ear = crossing.waiter.ear.clone();
        let mut asked = FuturesUnordered::new();
        loop {
            let event = tokio::select! {
                event = call.next() => event,
                Some(()) = asked.next() => continue,
            };
            match event {
                Event::Note(note) => {
                    lane.withdraw(&note);
                    crossing.waiter.tell(&note, &mut crossing.progress).await;
                }
                Event::Done(reply) => {
                    crossing.remember(&reply);
                    return crossing.finished(&reply);
                }
                Event::Lost(loss) => return Err(crossing.lost(&loss)),
                Event::Ask(ask) => match ask.method {
                    Some(Method::Ping) => lane.upstream.answer(&ask.id, Ok("{}")).await,
                    Some(method) => {
                        let (lane, ear) = (&lane, &ear);
                        asked.push(async move {
                            lane.put_to(ear, &ask, method).await;
                        });
                    }
                    None => lane.refuse(&ask).await,
                },
            }
        }
    }
}

fn is_header_mismatch(raw: &str) -> bool {
    ErrorBody::parse(raw).is_some_and(|body| body.code == ErrorCode::HeaderMismatch.code())
}

/// An id for a URL that a user shall visit.
fn mint() -> String {
    let mut bytes = [0_u8; 16];
    // Without randomness an id repeats, which a client notices; nothing is given away by it.
    let _ = getrandom::fill(&mut bytes);
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
