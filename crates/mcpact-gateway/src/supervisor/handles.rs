//! What others hold of an instance: its start, its life, its use.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use mcpact_spec::Revision;
use mcpact_transport::stdio::child::{Masks, Process, Scribe};

use super::fleet::{Entry, Parting, Refusal};
use super::instance::{InstanceId, StopCause};
use super::placement::Tenant;
use super::queue::Turn;
use super::run::{Connection, Supervisor};
use super::tell::Miss;
use crate::error::{FailureText, Trouble};
use crate::figures::ServerFigures;

/// The right to start one instance. Dropped without an outcome, the start was given up.
#[derive(Debug)]
pub(crate) struct Start {
    life: Life,
    is_settled: bool,
}

/// Held by everything that lives as long as an instance; when the last one lets go, the instance is gone.
#[derive(Clone, Debug)]
pub(crate) struct Life(Arc<Stay>);

#[derive(Debug)]
struct Stay {
    supervisor: Arc<Supervisor>,
    id: InstanceId,
    /// Why the connection ended, if whoever keeps it knows.
    why: OnceLock<FailureText>,
}

/// An instance that agreed. Dropped, it is not needed any more.
#[derive(Debug)]
pub(crate) struct Running {
    supervisor: Arc<Supervisor>,
    id: InstanceId,
}

/// A call on an instance, for as long as this is held.
#[derive(Debug)]
pub(crate) struct InUse {
    supervisor: Arc<Supervisor>,
    id: InstanceId,
    /// Whether the server has answered it.
    is_answered: AtomicBool,
}

/// Hears whether calls reach an instance, and does not keep it.
#[derive(Clone, Debug)]
pub(crate) struct Witness {
    supervisor: Arc<Supervisor>,
    id: InstanceId,
}

impl Witness {
    /// Where the instance is counted.
    pub(crate) fn figures(&self) -> &ServerFigures {
        &self.supervisor.figures
    }

    /// A call could not be brought to the server, or its answer not be read.
    pub(crate) fn missed(&self, miss: Miss, why: &str) {
        let Self { supervisor, id } = self;
        supervisor.tell_missed(*id, miss, why);
        supervisor.fleet().missed(why.into(), supervisor.now());
    }

    /// The server has answered a call.
    pub(crate) fn reached(&self) {
        let Self { supervisor, id } = self;
        if supervisor.standing.is_any() && supervisor.fleet().reached() {
            supervisor.tell_reached(*id);
        }
    }
}

impl Start {
    pub(super) fn new(supervisor: Arc<Supervisor>, id: InstanceId) -> Self {
        Self {
            life: Life(Arc::new(Stay {
                supervisor,
                id,
                why: OnceLock::new(),
            })),
            is_settled: false,
        }
    }

    /// What whoever keeps the connection holds.
    pub(crate) const fn life(&self) -> &Life {
        &self.life
    }

    /// It came to nothing.
    pub(crate) fn failed(mut self, trouble: &Trouble) {
        self.is_settled = true;
        let Stay { supervisor, id, .. } = &*self.life.0;
        supervisor.failed(*id, trouble);
    }

    /// There is an agreement: calls may come, of these clients.
    pub(crate) fn agreed(mut self, revision: Revision, tenant: Tenant) -> Running {
        self.is_settled = true;
        let Stay { supervisor, id, .. } = &*self.life.0;
        supervisor.fleet().let_to(*id, tenant);
        supervisor.fleet().agreed(*id, revision, supervisor.now());
        supervisor.tell_ready(*id, revision);
        supervisor.changed();
        // It may have ended before anybody heard that it agreed.
        if let Some(why) = self.life.0.why.get() {
            supervisor.lost(*id, why);
        }
        Running {
            supervisor: Arc::clone(supervisor),
            id: *id,
        }
    }
}

impl Drop for Start {
    fn drop(&mut self) {
        if !self.is_settled {
            let Stay { supervisor, id, .. } = &*self.life.0;
            supervisor.fleet().given_up(*id, supervisor.now());
        }
    }
}

impl Life {
    /// What the log calls the server.
    pub(crate) fn server(&self) -> &Arc<str> {
        &self.0.supervisor.server
    }

    /// What the server was given and nobody else is told.
    pub(crate) fn masks(&self) -> &Masks {
        &self.0.supervisor.masks
    }

    /// Where the instance is counted.
    pub(crate) fn figures(&self) -> &Arc<ServerFigures> {
        &self.0.supervisor.figures
    }

    /// Who takes the lines of its log.
    pub(crate) fn scribe(&self) -> Scribe {
        let Stay { supervisor, id, .. } = &*self.0;
        supervisor.scribe(*id)
    }

    /// Who hears whether calls reach it.
    pub(crate) fn witness(&self) -> Witness {
        let Stay { supervisor, id, .. } = &*self.0;
        Witness {
            supervisor: Arc::clone(supervisor),
            id: *id,
        }
    }

    /// The connection has ended for this reason, which nobody wanted.
    pub(crate) fn fell(&self, why: FailureText) {
        let Stay {
            supervisor,
            id,
            why: first,
        } = &*self.0;
        // It ends once.
        supervisor.lost(*id, first.get_or_init(|| why));
    }

    /// A process runs. The instance is not gone before it is, also where its start is given up.
    pub(crate) fn spawned(&self, process: &Process) {
        let Stay { supervisor, id, .. } = &*self.0;
        // A guard's number, until its child's is known.
        let first = process.id();
        supervisor.fleet().spawned(*id, first, supervisor.now());
        let (life, own, ended) = (self.clone(), process.program_id(), process.wait());
        tokio::spawn(async move {
            let Stay { supervisor, id, .. } = &*life.0;
            let pid = own.await.unwrap_or(first);
            supervisor.fleet().spawned(*id, pid, supervisor.now());
            supervisor.tell_spawned(*id, pid);
            // It is over for this end, too, where nobody knows how it ended.
            let _ = ended.await;
            drop(life);
        });
    }
}

impl Drop for Stay {
    fn drop(&mut self) {
        let why = self.why.get().cloned();
        let why = why.unwrap_or_else(|| "the connection ended".into());
        self.supervisor.gone(self.id, &why);
    }
}

impl Running {
    pub(crate) const fn id(&self) -> InstanceId {
        self.id
    }

    /// How the supervisor reaches the connection.
    pub(crate) fn is_reached_by(&self, connection: Weak<dyn Connection>) {
        self.supervisor.connect(self.id, connection);
    }

    /// Whether it takes calls.
    pub(crate) fn is_open(&self) -> bool {
        self.supervisor.fleet().is_open(self.id)
    }

    /// How many calls it has.
    pub(crate) fn calls(&self) -> usize {
        self.supervisor.fleet().calls(self.id)
    }

    /// Begins a call, at once or when another one has ended; none if the instance takes no calls any more.
    pub(crate) async fn enter(&self) -> Result<Option<InUse>, Trouble> {
        let entering = self.supervisor.wait_for(|line| {
            let now = self.supervisor.now();
            let entry = self.supervisor.fleet().enter(self.id, line, now);
            match entry {
                Entry::Entered => Ok(Turn::Done(true)),
                Entry::Retired => Ok(Turn::Done(false)),
                Entry::Wait => Ok(Turn::Wait(None)),
                Entry::Refuse => Err(Refusal::Busy),
            }
        });
        let has_entered = entering.await?;
        Ok(has_entered.then(|| InUse::new(Arc::clone(&self.supervisor), self.id)))
    }

    /// Why it ended by itself, if it did.
    pub(crate) fn failure(&self) -> Option<FailureText> {
        self.supervisor.fleet().failure(self.id)
    }

    /// Why it was ended on purpose, if it was.
    pub(crate) fn retired(&self) -> Option<StopCause> {
        self.supervisor.fleet().retired(self.id)
    }
}

impl InUse {
    pub(super) const fn new(supervisor: Arc<Supervisor>, id: InstanceId) -> Self {
        Self {
            supervisor,
            id,
            is_answered: AtomicBool::new(false),
        }
    }

    /// The server has answered. Calls that end without that show nothing of its health.
    pub(crate) fn answered(&self) {
        self.is_answered.store(true, Ordering::Relaxed);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.supervisor.retire(self.id, StopCause::Released);
    }
}

impl Drop for InUse {
    fn drop(&mut self) {
        let parting = match *self.is_answered.get_mut() {
            true => Parting::Answered,
            false => Parting::GivenUp,
        };
        let now = self.supervisor.now();
        let effect = self.supervisor.fleet().leave(self.id, parting, now);
        if effect.is_some() {
            self.supervisor.close_one(self.id);
        }
        self.supervisor.left();
    }
}
