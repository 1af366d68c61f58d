//! How a pair is set up, and how long it may run.

use std::sync::Arc;
use std::time::Duration;

use mcpact_engine::client::{Client, ClientTerms, Input};
use mcpact_engine::server::{Server, ServerTerms};
use mcpact_engine::time::Moment;
use mcpact_spec::Side;

use super::{Link, Pair};
use crate::clock::Clock;
use crate::wire::{Faults, Wire};

/// How an application behaves toward the requests that it is handed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Habit {
    /// It answers at once.
    AtOnce,
    /// It answers after this long.
    After(Duration),
    /// It answers only when it is told to.
    WhenTold,
}

/// What a server process is like, apart from the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Temper {
    /// It reads everything at once.
    Calm,
    /// It exits when it reads `server/discover`.
    DiesOnProbe,
    /// It reads and says nothing.
    Mute,
    /// It starts, and begins to read, only at this moment.
    Slow(Moment),
}

/// How long a conversation may go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How many things may happen.
    pub steps: usize,
    /// How far the clock may go.
    pub until: Moment,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            steps: 20_000,
            until: Moment::at(Duration::from_secs(3600)),
        }
    }
}

/// Why a conversation paused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pause {
    /// Nothing is under way and nobody waits.
    Quiet,
    /// The clock reached its limit.
    TimeUp,
    /// Too much happened.
    TooManySteps,
    /// A machine wants to be told the time again and again.
    Stuck(Side),
}

/// How a pair is set up.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The client's side.
    pub client: ClientTerms,
    /// The server's side.
    pub server: ServerTerms,
    /// What befalls messages.
    pub faults: Faults,
    /// The seed of whatever is left to chance.
    pub seed: u64,
    /// How the client's owner answers.
    pub client_habit: Habit,
    /// How the server's owner answers.
    pub server_habit: Habit,
    /// What the server process is like.
    pub temper: Temper,
}

impl Setup {
    /// A faultless pipe between two peers that answer at once.
    #[must_use]
    pub const fn new(client: ClientTerms, server: ServerTerms) -> Self {
        Self {
            client,
            server,
            faults: Faults::NONE,
            seed: 0,
            client_habit: Habit::AtOnce,
            server_habit: Habit::AtOnce,
            temper: Temper::Calm,
        }
    }

    /// The pair, with the client told to connect.
    #[must_use]
    pub fn open(self) -> Pair {
        let mut pair = self.build();
        pair.tell_client(Input::Open);
        pair.connect();
        pair
    }

    /// The pair, with nobody told anything.
    #[must_use]
    pub fn build(self) -> Pair {
        let client_terms = Arc::new(self.client);
        let server_terms = Arc::new(self.server);
        let clock = Clock::default();
        let started = match self.temper {
            Temper::Slow(until) => until,
            Temper::Calm | Temper::DiesOnProbe | Temper::Mute => clock.now(),
        };
        Pair {
            client: Client::new(Arc::clone(&client_terms)),
            server: Server::new(Arc::clone(&server_terms), started),
            client_terms,
            server_terms,
            clock,
            wire: Wire::new(self.faults, self.seed),
            habits: [self.client_habit, self.server_habit],
            temper: self.temper,
            later: Vec::new(),
            events: Vec::new(),
            link: Link::Down,
        }
    }
}
