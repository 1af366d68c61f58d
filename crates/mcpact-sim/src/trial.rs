//! A conversation in which the model and the machines must agree at every step.

mod forecast;
mod params;

use std::sync::Arc;
use std::time::Duration;

use mcpact_engine::client::{Input as ClientInput, Phase as ClientPhase, TransportKind};
use mcpact_engine::outstanding::{OnProgress, RequestTimeout};
use mcpact_engine::pact::Pact;
use mcpact_engine::refusal::WireError;
use mcpact_engine::revisions::RevisionSet;
use mcpact_engine::server::Scope;
use mcpact_spec::{Kind, Revision, Side};
use mcpact_wire::id::Id;

use crate::event::{Event, Seen};
use crate::model::caps::Caps;
use crate::model::ledger::{self, LedgerState};
use crate::model::{may_send, method_names};
use crate::pair::{AnswerMode, Limits, Pair, Pause, Setup, echo};
use crate::peers;
use crate::wire::Faults;
use forecast::Forecast;

pub use params::PARAMS;

/// Peers and transport of a trial.
#[derive(Clone, Debug)]
pub struct Setting {
    /// Revisions of the client.
    pub client: RevisionSet,
    /// Capabilities of the client.
    pub client_caps: Caps,
    /// Revisions of the server.
    pub server: RevisionSet,
    /// Capabilities of the server.
    pub server_caps: Caps,
    /// Transport.
    pub carrier: TransportKind,
    /// Faults of the wire.
    pub faults: Faults,
    /// Seed of random choices.
    pub seed: u64,
    /// Time before the first operation.
    pub head_start: Duration,
}

/// Numbering of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Number {
    /// One more than the last.
    Fresh,
    /// The last one again.
    Again,
}

/// An operation. Numbers select among the available choices, modulo their count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Sends a request.
    Ask {
        /// Sender.
        by: Side,
        /// Method.
        method: u8,
        /// Parameters.
        params: u8,
        /// Numbering.
        number: Number,
        /// Timeout in milliseconds.
        patience: u16,
    },
    /// Sends a notification.
    Notify {
        /// Sender.
        by: Side,
        /// Method.
        method: u8,
        /// Parameters.
        params: u8,
        /// Related request in flight, if any.
        scope: Option<u8>,
    },
    /// Cancels a request, which may have ended.
    Cancel {
        /// Requester.
        by: Side,
        /// Request.
        which: u8,
    },
    /// Answers a request, which may have been answered.
    Answer {
        /// Responder.
        by: Side,
        /// Request.
        which: u8,
        /// Answer.
        with: Reply,
    },
    /// Time passes.
    Wait {
        /// Milliseconds.
        ms: u16,
    },
    /// Delivers bytes that no side sent.
    Stray {
        /// Receiver.
        to: Side,
        /// The bytes.
        bytes: Vec<u8>,
    },
    /// Closes the client.
    Close,
    /// The connection breaks.
    Disconnect,
}

/// Answer of an owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// A result that names the request.
    Echo,
    /// An error.
    Error,
}

/// A request passed to an owner.
#[derive(Clone, Debug)]
struct Handed {
    side: Side,
    id: Id,
    method: String,
    params: Option<String>,
    revision: Revision,
}

/// A trial in progress.
#[derive(Debug)]
pub struct Trial {
    setting: Setting,
    pair: Pair,
    asked: [Vec<i64>; 2],
    handed: Vec<Handed>,
    read: usize,
    strays: usize,
}

fn at(side: Side) -> usize {
    usize::from(side == Side::Server)
}

fn pick<T>(all: &[T], number: u8) -> Option<&T> {
    all.get(usize::from(number).checked_rem(all.len())?)
}

impl Trial {
    /// Starts the conversation.
    ///
    /// # Errors
    /// The machines did something that the model excludes.
    pub fn open(setting: Setting) -> Result<Self, String> {
        let mut client = peers::client(setting.client, &setting.client_caps.document());
        client.transport = setting.carrier;
        let server = peers::server(setting.server, &setting.server_caps.document());
        let mut setup = Setup::new(client, server);
        setup.faults = setting.faults;
        setup.seed = setting.seed;
        setup.client_answers = AnswerMode::WhenTold;
        setup.server_answers = AnswerMode::WhenTold;
        let head_start = setting.head_start;
        let mut trial = Self {
            pair: setup.open(),
            setting,
            asked: [Vec::new(), Vec::new()],
            handed: Vec::new(),
            read: 0,
            strays: 0,
        };
        trial.wait(head_start)?;
        trial.take_news()?;
        Ok(trial)
    }

    /// The pair.
    #[must_use]
    pub const fn pair(&self) -> &Pair {
        &self.pair
    }

    /// Executes one operation and compares the outcome with the model.
    ///
    /// # Errors
    /// They disagree.
    pub fn perform(&mut self, operation: &Operation) -> Result<(), String> {
        match operation {
            Operation::Ask {
                by,
                method,
                params,
                number,
                patience,
            } => self.ask(*by, *method, *params, *number, *patience)?,
            Operation::Notify {
                by,
                method,
                params,
                scope,
            } => self.notify(*by, *method, *params, *scope)?,
            Operation::Cancel { by, which } => self.cancel(*by, *which)?,
            Operation::Answer { by, which, with } => self.answer(*by, *which, *with)?,
            Operation::Wait { ms } => self.wait(Duration::from_millis(u64::from(*ms)))?,
            Operation::Stray { to, bytes } => {
                if self.pair.is_up() {
                    self.strays += 1;
                    self.pair.deliver(*to, bytes, None);
                }
            }
            Operation::Close => self.pair.tell_client(ClientInput::Close),
            Operation::Disconnect => self.pair.disconnect(),
        }
        self.take_news()
    }

    /// Ends the conversation and checks the invariants.
    ///
    /// # Errors
    /// The violated invariant.
    pub fn finish(mut self) -> Result<(), String> {
        self.wait(Duration::from_secs(700))?;
        self.take_news()?;
        self.has_hung_up()?;
        // A break during the probe of a child begins a second connection.
        self.pair.disconnect();
        self.pair.disconnect();
        self.pair.run(Limits::default());
        let events = self.pair.events();
        ledger::settled_once(events, LedgerState::Closed)?;
        ledger::no_writes_after_close(events)?;
        ledger::honest_versions(events, self.setting.client, self.setting.server)?;
        if self.is_undisturbed() {
            ledger::own_answers(events)?;
            Forecast::of(&self.setting, &self.pair).all_declared()?;
        }
        Ok(())
    }

    fn is_undisturbed(&self) -> bool {
        self.strays == 0
    }

    fn take_news(&mut self) -> Result<(), String> {
        let mut is_agreed = false;
        for event in &self.pair.events()[self.read..] {
            match event {
                Event::Served {
                    side,
                    id,
                    method,
                    params,
                    revision,
                } => self.handed.push(Handed {
                    side: *side,
                    id: id.clone(),
                    method: method.clone(),
                    params: params.clone(),
                    revision: *revision,
                }),
                Event::Down => self.handed.clear(),
                Event::Concluded { .. } => is_agreed = true,
                // The new process has asked nothing yet.
                Event::Respawned => self.asked[at(Side::Server)].clear(),
                _ => {}
            }
        }
        self.read = self.pair.events().len();
        if is_agreed {
            self.same_verdicts()
        } else {
            Ok(())
        }
    }

    /// A closing client disconnects as soon as no request is pending.
    fn has_hung_up(&self) -> Result<(), String> {
        let client = self.pair.client();
        let is_closing = matches!(client.phase(), ClientPhase::Closing);
        if is_closing && client.waiting() == 0 && self.pair.is_up() {
            return Err("the client wants to end, nothing waits, and it does not hang up".into());
        }
        Ok(())
    }

    fn wait(&mut self, wait: Duration) -> Result<(), String> {
        let pause = self.pair.run_for(wait);
        match pause {
            Pause::Quiet | Pause::TimeUp => Ok(()),
            Pause::TooManySteps | Pause::Stuck(_) => Err(format!("{pause:?}")),
        }
    }

    /// Messages that one side wrote since then.
    fn written_since(&self, start: usize, by: Side) -> Vec<Seen> {
        let new = self.pair.events()[start..].iter();
        new.filter_map(|event| match event {
            Event::Wrote { from, text, .. } if *from == by => Some(Seen::of(text)),
            _ => None,
        })
        .collect()
    }

    fn expect(&self, forecast: Option<bool>, was_written: bool, what: &str) -> Result<(), String> {
        match forecast.filter(|_| self.is_undisturbed()) {
            Some(expected) if expected != was_written => Err(format!(
                "{what}: the model says {expected}, the machine {was_written}; client {:?}, server {:?}",
                self.pair.client().phase(),
                self.pair.server().phase()
            )),
            Some(_) | None => Ok(()),
        }
    }

    fn ask(
        &mut self,
        by: Side,
        method: u8,
        params: u8,
        number: Number,
        patience: u16,
    ) -> Result<(), String> {
        let names = method_names();
        let method = pick(&names, method).copied().unwrap_or_default();
        let params = pick(PARAMS, params).copied().flatten();
        let last = self.asked[at(by)].last().copied();
        let id = match number {
            Number::Fresh => last.unwrap_or(0) + 1,
            Number::Again => last.unwrap_or(1),
        };
        let is_fresh = last.is_none_or(|last| id > last);
        let forecast = Forecast::of(&self.setting, &self.pair);
        let expected = is_fresh && forecast.may_ask(by, method, params);
        let start = self.pair.events().len();
        let patience = RequestTimeout {
            timeout: Duration::from_millis(u64::from(patience)),
            maximum: Duration::from_secs(60),
            on_progress: OnProgress::Extend,
        };
        self.pair.ask(by, id, method, params, patience);
        let wanted = Seen::Request(Id::number(id), method.to_owned());
        let written = self.written_since(start, by);
        let was_written = written.contains(&wanted);
        if was_written {
            self.asked[at(by)].push(id);
        }
        if written.len() != usize::from(was_written) {
            return Err(format!("asking `{method}` wrote {written:?}"));
        }
        let what = format!("{by} asks {id} `{method}` {params:?}");
        self.expect(Some(expected), was_written, &what)
    }

    fn notify(
        &mut self,
        by: Side,
        method: u8,
        params: u8,
        scope: Option<u8>,
    ) -> Result<(), String> {
        let names = method_names();
        let method = pick(&names, method).copied().unwrap_or_default();
        let params = pick(PARAMS, params).copied().flatten();
        let own: Vec<_> = self.handed.iter().filter(|h| h.side == by).collect();
        let handed = scope.and_then(|which| pick(&own, which).copied());
        let forecast = Forecast::of(&self.setting, &self.pair);
        let (expected, scope) = match handed {
            Some(request) => (
                forecast.may_note_on(by, request, method, params),
                Scope::Request(request.id.clone()),
            ),
            None => (
                Some(forecast.may_note(by, method, params)),
                Scope::Connection,
            ),
        };
        let what = format!("{by} notes `{method}` {params:?} on {scope:?}");
        let start = self.pair.events().len();
        self.pair.notify(by, scope, method, params);
        let written = self.written_since(start, by);
        let was_written = written == [Seen::Notification(method.to_owned())];
        if !was_written && !written.is_empty() {
            return Err(format!("{what}: wrote {written:?}"));
        }
        self.expect(expected, was_written, &what)
    }

    fn cancel(&mut self, by: Side, which: u8) -> Result<(), String> {
        let Some(id) = pick(&self.asked[at(by)], which).copied() else {
            return Ok(());
        };
        let count = |events: &[Event]| {
            let own = |event: &&Event| matches!(event, Event::Settled { side, id: settled, .. } if *side == by && *settled == Id::number(id));
            events.iter().filter(own).count()
        };
        // The cancellation itself may break the wire and restart the server, so count from here on.
        let since = self.pair.events().len() - self.pair.events_since_start().len();
        let before = count(&self.pair.events()[since..]);
        let start = self.pair.events().len();
        self.pair.cancel(by, id);
        let after = count(&self.pair.events()[since..]);
        let told = self.pair.events()[start..].iter().any(|event| match event {
            Event::Wrote { from, text, .. } => {
                *from == by && Seen::of(text).method() == Some("notifications/cancelled")
            }
            Event::Abandoned(_) => true,
            _ => false,
        });
        // An ended request is not cancelled, and a cancelled one has ended.
        if before + usize::from(told) == after && after == 1 {
            Ok(())
        } else {
            Err(format!(
                "{by} cancels {id}: settled {before} times before, {after} after, told {told}"
            ))
        }
    }

    fn answer(&mut self, by: Side, which: u8, with: Reply) -> Result<(), String> {
        let own: Vec<_> = self.handed.iter().filter(|h| h.side == by).collect();
        let Some(request) = pick(&own, which).map(|request| (*request).clone()) else {
            return Ok(());
        };
        let outcome = match with {
            Reply::Echo => Ok(echo(by, &request.id, &request.method)),
            Reply::Error => Err(WireError {
                code: -32603,
                message: "no".to_owned(),
                data: None,
                http_status: 200,
            }),
        };
        let start = self.pair.events().len();
        self.pair.answer(by, request.id.clone(), outcome);
        let written = self.written_since(start, by);
        if written.len() > 1 || written.iter().any(|seen| *seen != Seen::Answer) {
            return Err(format!("answering {} wrote {written:?}", request.id));
        }
        Ok(())
    }

    /// Both machines and the model agree on every possible message.
    fn same_verdicts(&self) -> Result<(), String> {
        if !self.is_undisturbed() {
            return Ok(());
        }
        let client = self.pair.client().pact();
        // A server may hold what the client is about to turn down.
        let is_shared = |pact: &&Arc<Pact>| client.is_some_and(|c| c.revision() == pact.revision());
        let server = self.pair.server().phase().pact().filter(is_shared);
        let Setting {
            client_caps,
            server_caps,
            ..
        } = &self.setting;
        for pact in client.into_iter().chain(server) {
            for method in method_names() {
                for sender in [Side::Client, Side::Server] {
                    for kind in [Kind::Request, Kind::Notification] {
                        let revision = pact.revision();
                        let is_open = pact.rule(sender, kind, method).is_open();
                        let expected =
                            may_send(revision, client_caps, server_caps, sender, kind, method);
                        if is_open != expected {
                            return Err(format!(
                                "{revision} {sender} {kind:?} `{method}`: the model says {expected}, a pact {is_open}"
                            ));
                        }
                    }
                }
            }
        }
        Ok(())
    }
}
