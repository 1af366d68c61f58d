//! Setup and limits of a pair.

use std::sync::Arc;
use std::time::Duration;

use mcpact_engine::client::{Client, ClientTerms, Input};
use mcpact_engine::server::{Server, ServerTerms};
use mcpact_engine::time::Moment;
use mcpact_spec::Side;

use super::{Link, Pair};
use crate::clock::Clock;
use crate::wire::{Faults, Wire};

/// Answering behaviour of an application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerMode {
    /// Answers at once.
    AtOnce,
    /// Answers after this time.
    After(Duration),
    /// Answers only on request of the test.
    WhenTold,
}

/// Behaviour of the server process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerProcess {
    /// Reads at once.
    Calm,
    /// Exits on `server/discover`.
    DiesOnProbe,
    /// Reads but never answers.
    Mute,
    /// Starts reading at this moment.
    Slow(Moment),
}

/// Limits of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum number of steps.
    pub steps: usize,
    /// End of the virtual time.
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

/// Reason of a pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pause {
    /// No messages in transit, and no pending deadlines.
    Quiet,
    /// The clock reached its limit.
    TimeUp,
    /// Too many steps.
    TooManySteps,
    /// A machine requests the time again and again.
    Stuck(Side),
}

/// Setup of a pair.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Client terms.
    pub client: ClientTerms,
    /// Server terms.
    pub server: ServerTerms,
    /// Faults of the wire.
    pub faults: Faults,
    /// Seed of random choices.
    pub seed: u64,
    /// Answering behaviour of the client.
    pub client_answers: AnswerMode,
    /// Answering behaviour of the server.
    pub server_answers: AnswerMode,
    /// Behaviour of the server process.
    pub process: ServerProcess,
}

impl Setup {
    /// A reliable pipe between two peers that answer at once.
    #[must_use]
    pub const fn new(client: ClientTerms, server: ServerTerms) -> Self {
        Self {
            client,
            server,
            faults: Faults::NONE,
            seed: 0,
            client_answers: AnswerMode::AtOnce,
            server_answers: AnswerMode::AtOnce,
            process: ServerProcess::Calm,
        }
    }

    /// Creates the pair and connects the client.
    #[must_use]
    pub fn open(self) -> Pair {
        let mut pair = self.build();
        pair.tell_client(Input::Open);
        pair.connect();
        pair
    }

    /// Creates the pair without connecting.
    #[must_use]
    pub fn build(self) -> Pair {
        let client_terms = Arc::new(self.client);
        let server_terms = Arc::new(self.server);
        let clock = Clock::default();
        let started = match self.process {
            ServerProcess::Slow(until) => until,
            ServerProcess::Calm | ServerProcess::DiesOnProbe | ServerProcess::Mute => clock.now(),
        };
        Pair {
            client: Client::new(Arc::clone(&client_terms)),
            server: Server::new(Arc::clone(&server_terms), started),
            client_terms,
            server_terms,
            clock,
            wire: Wire::new(self.faults, self.seed),
            answer_modes: [self.client_answers, self.server_answers],
            process: self.process,
            later: Vec::new(),
            events: Vec::new(),
            link: Link::Down,
        }
    }
}
