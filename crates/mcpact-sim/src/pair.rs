//! A client and a server machine connected to each other; all effects are executed and recorded.

mod actions;
mod http;
mod setup;

use std::sync::Arc;
use std::time::Duration;

use mcpact_engine::client::{Client, ClientTerms, Input as ClientInput, TransportKind};
use mcpact_engine::outstanding::RequestTimeout;
use mcpact_engine::refusal::WireError;
use mcpact_engine::server::{Input as ServerInput, Phase, Scope, Server, ServerTerms};
use mcpact_engine::time::Moment;
use mcpact_spec::Side;
use mcpact_wire::id::Id;

use crate::clock::Clock;
use crate::event::{Event, Seen, WriteTarget};
use crate::wire::{Condition, InTransit, Wire};
use actions::{Action, Actions};

pub use setup::{AnswerMode, Limits, Pause, ServerProcess, Setup};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Link {
    Up,
    Down,
}

/// A delayed answer.
#[derive(Clone, Debug)]
struct Later {
    at: Moment,
    side: Side,
    id: Id,
    method: String,
}

/// Two machines, the wire between them, and the clock.
#[derive(Debug)]
pub struct Pair {
    client: Client,
    server: Server,
    client_terms: Arc<ClientTerms>,
    server_terms: Arc<ServerTerms>,
    clock: Clock,
    wire: Wire,
    answer_modes: [AnswerMode; 2],
    process: ServerProcess,
    later: Vec<Later>,
    events: Vec<Event>,
    link: Link,
}

/// Answer of every application. It names the request, so that misrouted answers are detected.
#[must_use]
pub fn echo(server_of: Side, id: &Id, method: &str) -> String {
    let text = format!("{server_of} {} {method}", id.raw());
    mcpact_wire::raw::ObjectWriter::new()
        .text("echo", &text)
        .finish()
}

impl Pair {
    /// The client.
    #[must_use]
    pub const fn client(&self) -> &Client {
        &self.client
    }

    /// The server.
    #[must_use]
    pub const fn server(&self) -> &Server {
        &self.server
    }

    /// Current time.
    #[must_use]
    pub const fn now(&self) -> Moment {
        self.clock.now()
    }

    /// Returns whether the connection is open.
    #[must_use]
    pub fn is_up(&self) -> bool {
        self.link == Link::Up
    }

    /// All recorded events.
    #[must_use]
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// Events since the last start of the server.
    #[must_use]
    pub fn events_since_start(&self) -> &[Event] {
        let is_start = |event: &Event| matches!(event, Event::Respawned);
        let start = self.events.iter().rposition(is_start);
        &self.events[start.unwrap_or(0)..]
    }

    /// All written messages with their senders.
    pub fn written(&self) -> impl Iterator<Item = (Side, &str)> {
        self.events.iter().filter_map(|event| match event {
            Event::Wrote { from, text, .. } => Some((*from, text.as_str())),
            _ => None,
        })
    }

    /// Methods of the requests and notifications that one side wrote.
    #[must_use]
    pub fn methods_written(&self, by: Side) -> Vec<String> {
        self.written()
            .filter(|(from, _)| *from == by)
            .filter_map(|(_, text)| Seen::of(text).method().map(str::to_owned))
            .collect()
    }

    /// Signals the open connection to the client.
    pub fn connect(&mut self) {
        self.link = Link::Up;
        self.tell_client(ClientInput::Connected);
    }

    /// Passes an input to the client and executes the effects.
    pub fn tell_client(&mut self, input: ClientInput<'_>) {
        let now = self.now();
        let blank = Client::new(Arc::clone(&self.client_terms));
        let step = std::mem::replace(&mut self.client, blank).handle(input, now);
        let actions = Actions::gather(Side::Client, step.effects, &mut self.events);
        self.client = step.next;
        self.perform(Side::Client, actions);
    }

    /// Passes an input to the server and executes the effects.
    pub fn tell_server(&mut self, input: ServerInput<'_>) {
        let now = self.now();
        let blank = Server::new(Arc::clone(&self.server_terms), now);
        let step = std::mem::replace(&mut self.server, blank).handle(input, now);
        let actions = Actions::gather(Side::Server, step.effects, &mut self.events);
        self.server = step.next;
        self.perform(Side::Server, actions);
    }

    /// Sends a request of one side.
    pub fn ask(
        &mut self,
        by: Side,
        id: i64,
        method: &str,
        params: Option<&str>,
        timeout: RequestTimeout,
    ) {
        match by {
            Side::Client => self.tell_client(ClientInput::Ask {
                id,
                method,
                params,
                timeout,
            }),
            Side::Server => self.tell_server(ServerInput::Ask {
                id,
                method,
                params,
                timeout,
            }),
        }
    }

    /// Sends a notification of one side; a client has no scopes.
    pub fn notify(&mut self, by: Side, scope: Scope, method: &str, params: Option<&str>) {
        match by {
            Side::Client => self.tell_client(ClientInput::Notify { method, params }),
            Side::Server => self.tell_server(ServerInput::Notify {
                scope,
                method,
                params,
            }),
        }
    }

    /// Cancels a request of one side.
    pub fn cancel(&mut self, by: Side, id: i64) {
        match by {
            Side::Client => self.tell_client(ClientInput::Cancel { id }),
            Side::Server => self.tell_server(ServerInput::Cancel { id }),
        }
    }

    /// Answers a request.
    pub fn answer(&mut self, by: Side, id: Id, outcome: Result<String, WireError>) {
        match by {
            Side::Client => self.tell_client(ClientInput::Answer { id, outcome }),
            Side::Server => {
                let outcome = match &outcome {
                    Ok(raw) => Ok(raw.as_str()),
                    Err(error) => Err(error.clone()),
                };
                self.tell_server(ServerInput::Answer { id, outcome });
            }
        }
    }

    /// Delivers bytes to one side as if the other had sent them.
    pub fn deliver(&mut self, to: Side, bytes: &[u8], http_status: Option<u16>) {
        match to {
            Side::Client => self.tell_client(ClientInput::Bytes { bytes, http_status }),
            Side::Server => {
                let negotiated = self.server.phase().pact().map(|pact| pact.revision());
                let carried = match self.client_terms.transport {
                    TransportKind::Http => Some(http::Headers::of(bytes, negotiated)),
                    TransportKind::Child | TransportKind::Stream => None,
                };
                let facts = http::facts(carried.as_ref());
                self.tell_server(ServerInput::Bytes { bytes, facts });
            }
        }
    }

    /// Breaks the connection: messages in transit are lost, and both sides are notified.
    pub fn disconnect(&mut self) {
        if self.link == Link::Down {
            return;
        }
        self.link = Link::Down;
        self.wire.cut();
        self.later.clear();
        self.events.push(Event::Down);
        self.tell_server(ServerInput::Closed);
        self.tell_client(ClientInput::Closed);
    }

    fn perform(&mut self, by: Side, actions: Vec<Action>) {
        let mut condition = Condition::Whole;
        for action in actions {
            match action {
                Action::Send { text, http_status } => {
                    if self.send(by, text, http_status) == Condition::Broken {
                        condition = Condition::Broken;
                    }
                }
                Action::Serve { id, method } => self.serve(by, id, method),
                Action::HangUp => {
                    self.events.push(Event::HungUp(by));
                    self.disconnect();
                }
                Action::Respawn => self.respawn(),
                // There is no second transport here: the attempt fails.
                Action::TryHttpSse => self.disconnect(),
            }
        }
        // A writer learns of a broken connection only afterwards.
        if condition == Condition::Broken {
            self.disconnect();
        }
    }

    fn send(&mut self, from: Side, text: String, http_status: Option<u16>) -> Condition {
        let (target, condition) = match self.link {
            Link::Down => (WriteTarget::Nothing, Condition::Whole),
            Link::Up => {
                let now = self.now();
                (
                    WriteTarget::Wire,
                    self.wire.put(from, &text, http_status, now),
                )
            }
        };
        self.events.push(Event::Wrote { from, text, target });
        if let ServerProcess::Slow(until) = self.process {
            self.wire.hold(Side::Server, until);
        }
        condition
    }

    fn serve(&mut self, by: Side, id: Id, method: String) {
        let wait = match self.answer_modes[usize::from(by == Side::Server)] {
            AnswerMode::AtOnce => Duration::ZERO,
            AnswerMode::After(wait) => wait,
            AnswerMode::WhenTold => return,
        };
        self.later.push(Later {
            at: self.now().after(wait),
            side: by,
            id,
            method,
        });
    }

    fn respawn(&mut self) {
        self.events.push(Event::Respawned);
        self.wire.cut();
        self.server = Server::new(Arc::clone(&self.server_terms), self.now());
        self.connect();
    }

    /// Runs until idle, or until a limit is reached.
    pub fn run(&mut self, limits: Limits) -> Pause {
        for _ in 0..limits.steps {
            let Some(next) = self.next_moment() else {
                return Pause::Quiet;
            };
            if next > limits.until {
                self.clock.advance_to(limits.until);
                return Pause::TimeUp;
            }
            self.clock.advance_to(next);
            if let Some(stuck) = self.step() {
                return Pause::Stuck(stuck);
            }
        }
        Pause::TooManySteps
    }

    /// Runs until idle, within the default limits.
    pub fn run_until_quiet(&mut self) -> Pause {
        self.run(Limits::default())
    }

    /// Runs for this duration.
    pub fn run_for(&mut self, wait: Duration) -> Pause {
        let until = self.now().after(wait);
        let pause = self.run(Limits {
            until,
            ..Limits::default()
        });
        if pause == Pause::Quiet {
            self.clock.advance_to(until);
        }
        pause
    }

    fn deadline(&self, side: Side) -> Option<Moment> {
        match side {
            Side::Client => self.client.next_deadline(),
            // A closed connection has no deadline.
            Side::Server if matches!(self.server.phase(), Phase::Closed) => None,
            Side::Server => self.server.next_deadline(),
        }
    }

    fn next_moment(&self) -> Option<Moment> {
        let answers = self.later.iter().map(|later| later.at);
        answers
            .chain(self.wire.next_due())
            .chain(self.deadline(Side::Client))
            .chain(self.deadline(Side::Server))
            .min()
    }

    /// Executes the next due step; arrivals go before timeouts.
    fn step(&mut self) -> Option<Side> {
        let now = self.now();
        if let Some(message) = self.wire.take(now) {
            self.arrive(&message);
            return None;
        }
        if let Some(at) = self.later.iter().position(|later| later.at <= now) {
            let later = self.later.remove(at);
            let result = echo(later.side, &later.id, &later.method);
            self.answer(later.side, later.id, Ok(result));
            return None;
        }
        for side in [Side::Client, Side::Server] {
            if self.deadline(side).is_some_and(|at| at <= now) {
                match side {
                    Side::Client => self.tell_client(ClientInput::Tick),
                    Side::Server => self.tell_server(ServerInput::Tick),
                }
                let is_past = self.deadline(side).is_some_and(|at| at <= now);
                return is_past.then_some(side);
            }
        }
        None
    }

    fn arrive(&mut self, message: &InTransit) {
        if message.to == Side::Server {
            match self.process {
                ServerProcess::Mute => return,
                ServerProcess::DiesOnProbe
                    if Seen::of(&message.text).method() == Some("server/discover") =>
                {
                    return self.disconnect();
                }
                ServerProcess::DiesOnProbe | ServerProcess::Calm | ServerProcess::Slow(_) => {}
            }
        }
        self.deliver(message.to, message.text.as_bytes(), message.http_status);
    }
}
