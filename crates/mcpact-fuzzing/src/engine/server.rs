//! A server and what must hold for it.

use std::sync::Arc;

use mcpact_engine::classify::{HeaderField, TransportFacts, Verb};
use mcpact_engine::effect::Effect;
use mcpact_engine::outstanding::RequestTimeout;
use mcpact_engine::server::{Input, Phase, Scope, Server, ServerTerms};
use mcpact_engine::time::Moment;
use mcpact_wire::envelope::Envelope;
use mcpact_wire::id::Id;
use mcpact_wire::scan;

use super::ledger::{Ledger, failure, result};
use super::script::{ServerOrder, Words, http_facts};

pub(super) struct WatchedServer {
    /// Only empty while the machine handles an input.
    machine: Option<Server>,
    ledger: Ledger,
    written: Vec<String>,
    concluded: bool,
    /// True while an input is handled whose answer has a path of its own.
    has_own_path: bool,
}

/// Progress of a conversation, as a number that may only grow.
fn progress(phase: &Phase) -> u8 {
    match phase {
        Phase::AwaitInit => 0,
        Phase::AwaitInitialized(_) => 1,
        Phase::Ready(_) => 2,
        Phase::Closed => 3,
    }
}

impl WatchedServer {
    pub(super) fn new(terms: ServerTerms) -> Self {
        Self {
            machine: Some(Server::new(Arc::new(terms), Moment::ZERO)),
            ledger: Ledger::default(),
            written: Vec::new(),
            concluded: false,
            has_own_path: false,
        }
    }

    pub(super) fn take_written(&mut self) -> Vec<String> {
        std::mem::take(&mut self.written)
    }

    pub(super) fn follow(&mut self, order: &ServerOrder<'_>, now: Moment) {
        match order {
            ServerOrder::Bytes(bytes) => self.bytes(bytes, now),
            ServerOrder::Http(choice, bytes) => self.http(*choice, bytes, now),
            ServerOrder::Ask(words) => {
                let id = self.ledger.next_number(words.choice);
                self.handle(
                    Input::Ask {
                        id,
                        method: words.method,
                        params: words.params,
                        timeout: RequestTimeout::default(),
                    },
                    now,
                );
            }
            ServerOrder::Notify(words) => self.notify(words, now),
            ServerOrder::Answer(choice, raw) => {
                let id = self.ledger.choose(*choice);
                self.answer(id, Ok(&result(raw)), now);
            }
            ServerOrder::Fail(choice) => {
                let id = self.ledger.choose(*choice);
                self.answer(id, Err(failure()), now);
            }
            ServerOrder::Cancel(number) => {
                let id = i64::from(number.wrapping_sub(b'0'));
                self.handle(Input::Cancel { id }, now);
            }
            ServerOrder::Closed => self.handle(Input::Closed, now),
        }
    }

    pub(super) fn bytes(&mut self, bytes: &[u8], now: Moment) {
        let facts = TransportFacts::Stream;
        self.handle(Input::Bytes { bytes, facts }, now);
    }

    fn http(&mut self, choice: u8, bytes: &[u8], now: Moment) {
        let envelope = Envelope::parse(bytes).ok();
        let params = envelope.as_ref().and_then(Envelope::params);
        let version = params.and_then(|p| scan::text(p.meta.protocol_version?));
        let method = envelope.as_ref().and_then(Envelope::method);
        let name = params.and_then(|p| scan::text(p.name.or(p.uri).or(p.task_id)?));
        let told = [version.as_deref(), method, name.as_deref()]
            .map(|value| value.map_or(HeaderField::Absent, HeaderField::Once));
        let facts = TransportFacts::Http(http_facts(choice, told));
        self.handle(Input::Bytes { bytes, facts }, now);
    }

    fn notify(&mut self, words: &Words<'_>, now: Moment) {
        let scope = match words.choice {
            b'0' => Scope::Connection,
            choice => Scope::Request(self.ledger.choose(choice)),
        };
        self.handle(
            Input::Notify {
                scope,
                method: words.method,
                params: words.params,
            },
            now,
        );
    }

    fn answer(
        &mut self,
        id: Id,
        outcome: Result<&str, mcpact_engine::refusal::WireError>,
        now: Moment,
    ) {
        let before = self.written.len();
        let input = Input::Answer {
            id: id.clone(),
            outcome,
        };
        self.handle(input, now);
        let replies = self.written.len() - before;
        assert!(replies <= 1, "{replies} answers to {id}");
        self.ledger.answered(&id, replies);
        self.agree();
    }

    pub(super) fn tick(&mut self, now: Moment) {
        self.handle(Input::Tick, now);
        let next = self.machine.as_ref().and_then(Server::next_deadline);
        assert!(
            next.is_none_or(|next| next > now),
            "a deadline stays after its time"
        );
    }

    fn handle(&mut self, input: Input<'_>, now: Moment) {
        let Some(machine) = self.machine.take() else {
            return;
        };
        let before = progress(machine.phase());
        let is_answer = matches!(input, Input::Answer { .. });
        let mut request = None;
        if let Input::Bytes { bytes, facts } = &input {
            let id = self.ledger.receive(bytes);
            let is_posted = facts.http().is_none_or(|http| http.verb == Verb::Post);
            self.has_own_path = id.is_some() && facts.http().is_some();
            request = id.filter(|_| is_posted && before < 3);
        }
        let step = machine.handle(input, now);
        let mut taken = 0;
        for effect in step.effects {
            taken += usize::from(self.watch(effect, request.as_ref()));
        }
        if let Some(id) = request {
            assert_eq!(taken, 1, "request {id} must be answered or served");
        }
        let after = progress(step.next.phase());
        assert!(before <= after, "from {before} back to {after}");
        if after == 3 {
            self.ledger.forget_serving();
        }
        self.machine = Some(step.next);
        if !is_answer {
            self.agree();
        }
    }

    fn agree(&self) {
        if let Some(machine) = &self.machine {
            assert_eq!(machine.in_flight(), self.ledger.serving());
        }
    }

    /// Returns whether the effect answers or serves the request.
    fn watch(&mut self, effect: Effect<'_>, request: Option<&Id>) -> bool {
        match effect {
            Effect::Reply { text, id, .. } => {
                self.ledger.replied(&text, id.as_ref());
                self.written.push(text);
                return id.as_ref() == request;
            }
            Effect::Serve(call) => {
                match self.has_own_path {
                    true => self.ledger.serve_on_own_path(&call.id),
                    false => self.ledger.serve(&call.id),
                }
                return Some(&call.id) == request;
            }
            Effect::Write(text) => {
                match Envelope::parse(text.as_bytes()) {
                    Ok(Envelope::Request(asked)) => {
                        self.ledger.ask(asked.id);
                        self.ledger.wait_for(asked.id);
                    }
                    Ok(Envelope::Notification(_)) => {}
                    other => panic!("{other:?}: {text}"),
                }
                self.written.push(text);
            }
            Effect::Settled { id, .. } => self.ledger.settle(&id),
            Effect::Concluded(_) => {
                assert!(!self.concluded, "agreed twice");
                self.concluded = true;
            }
            Effect::Abandon(_) | Effect::Remember(_) | Effect::Respawn | Effect::TryHttpSse => {
                panic!("a server does nothing of this")
            }
            Effect::Observe(_)
            | Effect::Negotiated(_)
            | Effect::Withheld(_)
            | Effect::Dropped(_)
            | Effect::Report { .. }
            | Effect::HangUp => {}
        }
        false
    }
}
