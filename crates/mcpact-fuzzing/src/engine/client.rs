//! A client and what must hold for it.

use std::sync::Arc;

use mcpact_engine::client::{Client, ClientTerms, Input, Phase};
use mcpact_engine::effect::Effect;
use mcpact_engine::outstanding::RequestTimeout;
use mcpact_engine::time::Moment;
use mcpact_wire::envelope::Envelope;
use mcpact_wire::id::{Id, IdRef};

use super::ledger::{Ledger, failure, result};
use super::script::{ClientOrder, status};

pub(super) struct WatchedClient {
    /// Only empty while the machine handles an input.
    machine: Option<Client>,
    ledger: Ledger,
    written: Vec<String>,
    concluded: bool,
}

/// Progress of a conversation. Until there is an agreement, the handshake may be repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Progress {
    Untried,
    Opening,
    Ready,
    Closing,
    Over,
}

fn progress(phase: &Phase) -> Progress {
    match phase {
        Phase::Disconnected => Progress::Untried,
        Phase::Connecting | Phase::Probing(_) | Phase::Initializing(_) => Progress::Opening,
        Phase::Ready(_) => Progress::Ready,
        Phase::Closing => Progress::Closing,
        Phase::Closed | Phase::Failed(_) => Progress::Over,
    }
}

impl WatchedClient {
    pub(super) fn new(terms: ClientTerms) -> Self {
        Self {
            machine: Some(Client::new(Arc::new(terms))),
            ledger: Ledger::default(),
            written: Vec::new(),
            concluded: false,
        }
    }

    pub(super) fn take_written(&mut self) -> Vec<String> {
        std::mem::take(&mut self.written)
    }

    pub(super) fn follow(&mut self, order: &ClientOrder<'_>, now: Moment) {
        match order {
            ClientOrder::Open => {
                self.handle(Input::Open, now);
                self.handle(Input::Connected, now);
            }
            ClientOrder::Connected => self.handle(Input::Connected, now),
            ClientOrder::FirstByte => self.handle(Input::FirstByte, now),
            ClientOrder::Bytes(bytes) => self.bytes(bytes, None, now),
            ClientOrder::Http(choice, bytes) => self.bytes(bytes, Some(status(*choice)), now),
            ClientOrder::Status(choice) => self.handle(Input::Status(status(*choice)), now),
            ClientOrder::Ask(words) => {
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
            ClientOrder::Notify(words) => {
                let (method, params) = (words.method, words.params);
                self.handle(Input::Notify { method, params }, now);
            }
            ClientOrder::Answer(choice, raw) => {
                let id = self.ledger.choose(*choice);
                self.answer(id, Ok(result(raw)), now);
            }
            ClientOrder::Fail(choice) => {
                let id = self.ledger.choose(*choice);
                self.answer(id, Err(failure()), now);
            }
            ClientOrder::Cancel(number) => {
                let id = i64::from(number.wrapping_sub(b'0'));
                self.handle(Input::Cancel { id }, now);
            }
            ClientOrder::Close => self.handle(Input::Close, now),
            ClientOrder::Closed => {
                self.handle(Input::Closed, now);
                self.ledger.forget_serving();
            }
        }
    }

    pub(super) fn bytes(&mut self, bytes: &[u8], http_status: Option<u16>, now: Moment) {
        self.ledger.receive(bytes);
        self.handle(Input::Bytes { bytes, http_status }, now);
    }

    fn answer(
        &mut self,
        id: Id,
        outcome: Result<String, mcpact_engine::refusal::WireError>,
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
    }

    pub(super) fn tick(&mut self, now: Moment) {
        self.handle(Input::Tick, now);
        let next = self.machine.as_ref().and_then(Client::next_deadline);
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
        let step = machine.handle(input, now);
        for effect in step.effects {
            self.watch(effect, before);
        }
        let after = progress(step.next.phase());
        assert!(before <= after, "from {before:?} back to {after:?}");
        assert_eq!(step.next.waiting(), self.ledger.asked());
        self.machine = Some(step.next);
    }

    fn watch(&mut self, effect: Effect<'_>, before: Progress) {
        match effect {
            Effect::Write(text) => {
                assert!(
                    !matches!(before, Progress::Untried | Progress::Over),
                    "written without a connection: {text}"
                );
                self.wrote(&text);
                self.written.push(text);
            }
            Effect::Serve(call) => self.ledger.serve(&call.id),
            Effect::Settled { id, .. } => self.ledger.settle(&id),
            Effect::Concluded(_) => {
                assert!(!self.concluded, "agreed twice");
                self.concluded = true;
            }
            Effect::Reply { text, .. } => panic!("a client writes its answers: {text}"),
            Effect::Observe(_)
            | Effect::Negotiated(_)
            | Effect::Withheld(_)
            | Effect::Dropped(_)
            | Effect::Report { .. }
            | Effect::Remember(_)
            | Effect::Abandon(_)
            | Effect::Respawn
            | Effect::TryHttpSse
            | Effect::HangUp => {}
        }
    }

    fn wrote(&mut self, text: &str) {
        match Envelope::parse(text.as_bytes()) {
            Ok(Envelope::Request(request)) => {
                self.ledger.ask(request.id);
                // The questions that open a conversation have texts as ids and end with it.
                if !request.id.raw().starts_with('"') {
                    self.ledger.wait_for(request.id);
                }
            }
            Ok(Envelope::Notification(_)) => {}
            Ok(Envelope::Response(response)) => {
                let id = response.id.map(IdRef::to_id);
                self.ledger.replied(text, id.as_ref());
            }
            Err(error) => panic!("{error}: {text}"),
        }
    }
}
