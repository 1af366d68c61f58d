//! Both machines, joined: everything that they want done is done, and everything is written down.

mod deeds;
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
use crate::event::{Event, Onto, Seen};
use crate::wire::{Condition, Parcel, Wire};
use deeds::{Deed, Deeds};

pub use setup::{Habit, Limits, Pause, Setup, Temper};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Link {
    Up,
    Down,
}

/// An answer that its owner gives later.
#[derive(Clone, Debug)]
struct Later {
    at: Moment,
    side: Side,
    id: Id,
    method: String,
}

/// Two machines, the wire between them, and the time.
#[derive(Debug)]
pub struct Pair {
    client: Client,
    server: Server,
    client_terms: Arc<ClientTerms>,
    server_terms: Arc<ServerTerms>,
    clock: Clock,
    wire: Wire,
    habits: [Habit; 2],
    temper: Temper,
    later: Vec<Later>,
    events: Vec<Event>,
    link: Link,
}

/// The answer that every application gives: it names the request, so that one that reaches the
/// wrong request shows.
#[must_use]
pub fn echo(server_of: Side, id: &Id, method: &str) -> String {
    let text = format!("{server_of} {} {method}", id.raw());
    mcpact_wire::raw::ObjectWriter::new()
        .text("echo", &text)
        .finish()
}

impl Pair {
    /// The client as it is.
    #[must_use]
    pub const fn client(&self) -> &Client {
        &self.client
    }

    /// The server as it is.
    #[must_use]
    pub const fn server(&self) -> &Server {
        &self.server
    }

    /// The time.
    #[must_use]
    pub const fn now(&self) -> Moment {
        self.clock.now()
    }

    /// Whether there is a connection.
    #[must_use]
    pub fn is_up(&self) -> bool {
        self.link == Link::Up
    }

    /// Everything that was seen.
    #[must_use]
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// What was seen since the server was last started.
    #[must_use]
    pub fn events_since_start(&self) -> &[Event] {
        let is_start = |event: &Event| matches!(event, Event::Respawned);
        let start = self.events.iter().rposition(is_start);
        &self.events[start.unwrap_or(0)..]
    }

    /// Every message that was written, with its sender.
    pub fn written(&self) -> impl Iterator<Item = (Side, &str)> {
        self.events.iter().filter_map(|event| match event {
            Event::Wrote { from, text, .. } => Some((*from, text.as_str())),
            _ => None,
        })
    }

    /// The methods of the requests and notifications that one side wrote.
    #[must_use]
    pub fn methods_written(&self, by: Side) -> Vec<String> {
        self.written()
            .filter(|(from, _)| *from == by)
            .filter_map(|(_, text)| Seen::of(text).method().map(str::to_owned))
            .collect()
    }

    /// The carrier is open: says so to the client.
    pub fn connect(&mut self) {
        self.link = Link::Up;
        self.tell_client(ClientInput::Connected);
    }

    /// Tells the client something and does what follows.
    pub fn tell_client(&mut self, input: ClientInput<'_>) {
        let now = self.now();
        let blank = Client::new(Arc::clone(&self.client_terms));
        let step = std::mem::replace(&mut self.client, blank).handle(input, now);
        let deeds = Deeds::gather(Side::Client, step.effects, &mut self.events);
        self.client = step.next;
        self.perform(Side::Client, deeds);
    }

    /// Tells the server something and does what follows.
    pub fn tell_server(&mut self, input: ServerInput<'_>) {
        let now = self.now();
        let blank = Server::new(Arc::clone(&self.server_terms), now);
        let step = std::mem::replace(&mut self.server, blank).handle(input, now);
        let deeds = Deeds::gather(Side::Server, step.effects, &mut self.events);
        self.server = step.next;
        self.perform(Side::Server, deeds);
    }

    /// One side's owner asks the other something.
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

    /// One side's owner tells the other something; a client has no scopes.
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

    /// One side's owner gives up a request.
    pub fn cancel(&mut self, by: Side, id: i64) {
        match by {
            Side::Client => self.tell_client(ClientInput::Cancel { id }),
            Side::Server => self.tell_server(ServerInput::Cancel { id }),
        }
    }

    /// One side's owner answers a request.
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

    /// Hands bytes to one side as if they had come from the other.
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

    /// The connection breaks: what is under way is lost and both are told.
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

    fn perform(&mut self, by: Side, deeds: Vec<Deed>) {
        let mut condition = Condition::Whole;
        for deed in deeds {
            match deed {
                Deed::Send { text, http_status } => {
                    if self.send(by, text, http_status) == Condition::Broken {
                        condition = Condition::Broken;
                    }
                }
                Deed::Serve { id, method } => self.serve(by, id, method),
                Deed::HangUp => {
                    self.events.push(Event::HungUp(by));
                    self.disconnect();
                }
                Deed::Respawn => self.respawn(),
                // There is no second transport here: the attempt fails.
                Deed::TryHttpSse => self.disconnect(),
            }
        }
        // Whoever writes learns of a break only afterwards.
        if condition == Condition::Broken {
            self.disconnect();
        }
    }

    fn send(&mut self, from: Side, text: String, http_status: Option<u16>) -> Condition {
        let (onto, condition) = match self.link {
            Link::Down => (Onto::Nothing, Condition::Whole),
            Link::Up => {
                let now = self.now();
                (Onto::Wire, self.wire.put(from, &text, http_status, now))
            }
        };
        self.events.push(Event::Wrote { from, text, onto });
        if let Temper::Slow(until) = self.temper {
            self.wire.hold(Side::Server, until);
        }
        condition
    }

    fn serve(&mut self, by: Side, id: Id, method: String) {
        let wait = match self.habits[usize::from(by == Side::Server)] {
            Habit::AtOnce => Duration::ZERO,
            Habit::After(wait) => wait,
            Habit::WhenTold => return,
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

    /// Goes on until nothing is left to do, or a limit is reached.
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

    /// Goes on until nothing is left to do, within the usual limits.
    pub fn run_until_quiet(&mut self) -> Pause {
        self.run(Limits::default())
    }

    /// Goes on for this long, whether anything happens or not.
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
            // A connection that is closed is not asked for the time again.
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

    /// Does the one thing that is due; what arrives goes before what runs out.
    fn step(&mut self) -> Option<Side> {
        let now = self.now();
        if let Some(parcel) = self.wire.take(now) {
            self.arrive(&parcel);
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

    fn arrive(&mut self, parcel: &Parcel) {
        if parcel.to == Side::Server {
            match self.temper {
                Temper::Mute => return,
                Temper::DiesOnProbe
                    if Seen::of(&parcel.text).method() == Some("server/discover") =>
                {
                    return self.disconnect();
                }
                Temper::DiesOnProbe | Temper::Calm | Temper::Slow(_) => {}
            }
        }
        self.deliver(parcel.to, parcel.text.as_bytes(), parcel.http_status);
    }
}
