//! Does what the fleet decides: the only file here that waits, draws random numbers and closes.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

use futures_util::future::BoxFuture;
use mcpact_config::RunSettings;
use mcpact_engine::time::Moment;
use mcpact_spec::Era;
use mcpact_transport::stdio::child::Masks;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::fleet::{Admission, Entry, Fleet, Refusal, Round};
use super::handles::{InUse, Running, Start};
use super::health::{Answer, Diagnosis, Question, judge, question};
use super::instance::{Farewell, InstanceId, StartCause, StopCause};
use super::mishaps::Standing;
use super::placement::{Choice, Few, Sharing, Tenant, most, sharing};
use super::queue::Turn;
use super::status::ServerStatus;
use crate::chronicle::Journal;
use crate::error::{FailureText, Room, Trouble};
use crate::figures::ServerFigures;

/// How long the end of everything may take beyond what running calls are given.
const GOODBYE: Duration = Duration::from_secs(5);

/// How long nothing is looked at when nothing is due.
const LONGEST: Duration = Duration::from_secs(3600);

/// A connection, as the supervisor knows it.
pub(crate) trait Connection: Debug + Send + Sync {
    /// Ends it, whoever uses it.
    fn close(&self);
    /// Whether somebody waits to hear something on it.
    fn is_held(&self) -> bool;
    /// Which questions it understands.
    fn era(&self) -> Era;
    /// Asks the server; a raw result or error, or nothing if there is no answer.
    fn ask(
        self: Arc<Self>,
        question: Question,
    ) -> BoxFuture<'static, Option<Result<String, String>>>;
}

/// Starts an instance that nobody has asked for.
pub(crate) trait Starter: Debug + Send + Sync {
    /// Starts one; what comes of it is seen by the supervisor.
    fn start(self: Arc<Self>, cause: StartCause) -> BoxFuture<'static, ()>;
}

/// Keeps the instances of one server.
#[derive(Debug)]
pub(crate) struct Supervisor {
    /// The server, as people know it.
    pub(super) server: Arc<str>,
    pub(super) figures: Arc<ServerFigures>,
    pub(super) journal: Journal,
    pub(super) masks: Masks,
    zero: Instant,
    fleet: Mutex<Fleet>,
    pub(super) standing: Arc<Standing>,
    connections: Mutex<BTreeMap<InstanceId, Weak<dyn Connection>>>,
    starter: OnceLock<Weak<dyn Starter>>,
    /// Whether the starter is at work.
    is_starting: AtomicBool,
    /// Told whenever an instance or a call comes or goes.
    pub(super) changed: Notify,
    /// Told when the next round may be sooner than planned.
    sooner: Arc<Notify>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Supervisor {
    pub(crate) fn new(
        server: Arc<str>,
        settings: RunSettings,
        figures: Arc<ServerFigures>,
        journal: Journal,
        masks: Masks,
    ) -> Arc<Self> {
        let fleet = Fleet::new(settings);
        let supervisor = Arc::new(Self {
            standing: Arc::clone(fleet.mishaps().standing()),
            server,
            figures,
            journal,
            masks,
            zero: Instant::now(),
            fleet: Mutex::new(fleet),
            connections: Mutex::default(),
            starter: OnceLock::new(),
            is_starting: AtomicBool::new(false),
            changed: Notify::new(),
            sooner: Arc::default(),
        });
        supervisor.watch();
        supervisor
    }

    /// Who starts what must be ready; from now on, so many are.
    pub(crate) fn keep_ready(&self, starter: Weak<dyn Starter>) {
        // There is one.
        let _ = self.starter.set(starter);
        self.sooner.notify_one();
    }

    pub(super) fn now(&self) -> Moment {
        Moment::at(self.zero.elapsed())
    }

    pub(super) fn fleet(&self) -> MutexGuard<'_, Fleet> {
        lock(&self.fleet)
    }

    /// How everything is.
    pub(crate) fn status(&self) -> ServerStatus {
        self.fleet().status(self.now())
    }

    /// Whether an instance takes calls.
    pub(crate) fn is_awake(&self) -> bool {
        self.fleet().is_awake()
    }

    /// Whether another instance may be started, now or once one that nobody uses has gone.
    pub(crate) fn has_room(&self) -> bool {
        self.look_who_is_held();
        self.fleet().has_room(self.now())
    }

    /// Keeps instances in another way from here on; those that run go on, as many as there may be.
    pub(crate) fn retune(&self, settings: &RunSettings) {
        self.fleet().retune(settings, self.now());
        self.changed();
    }

    /// Forgets what failed: the next call tries again.
    pub(crate) fn forgive(&self) {
        self.fleet().forgive();
        self.changed();
    }

    pub(super) fn changed(&self) {
        self.changed.notify_waiters();
        self.sooner.notify_one();
    }

    /// A call has ended; rounds are not sooner for that.
    pub(crate) fn left(&self) {
        self.changed.notify_waiters();
    }

    /// Lets somebody start an instance, now or soon.
    pub(crate) async fn admit(
        self: &Arc<Self>,
        tenant: Tenant,
        cause: StartCause,
    ) -> Result<Start, Trouble> {
        let id = self
            .wait_for(|line| {
                self.look_who_is_held();
                let admission = self.fleet().admit(tenant, cause, line, self.now());
                match admission {
                    Admission::Start(id) => Ok(Turn::Done(id)),
                    Admission::Refuse(refusal) => Err(refusal),
                    Admission::Wait { until, close } => {
                        close.into_iter().for_each(|id| self.close_one(id));
                        Ok(Turn::Wait(until))
                    }
                }
            })
            .await?;
        self.tell_attempt(id, cause);
        Ok(Start::new(Arc::clone(self), id))
    }

    /// Begins a call on one of the instances that it may use, at once or when one has room; none when
    /// another instance is to be started for it.
    pub(crate) async fn enter_any<L: AsRef<Running>>(
        self: &Arc<Self>,
        open: impl Fn() -> Few<Arc<L>>,
    ) -> Result<Option<(Arc<L>, InUse)>, Trouble> {
        self.wait_for(|line| {
            let open = open();
            let ids: Few<InstanceId> = open.iter().map(|one| (**one).as_ref().id()).collect();
            let mut fleet = self.fleet();
            let id = match fleet.choose(&ids, line, self.now()) {
                Choice::Use(id) => id,
                Choice::Start => return Ok(Turn::Done(None)),
                Choice::Wait(until) => return Ok(Turn::Wait(until)),
                Choice::Refuse => return Err(Refusal::Busy),
            };
            let entry = fleet.enter(id, line, self.now());
            drop(fleet);
            let chosen = open.into_iter().find(|one| (**one).as_ref().id() == id);
            match (entry, chosen) {
                (Entry::Entered, Some(chosen)) => {
                    let in_use = InUse::new(Arc::clone(self), id);
                    Ok(Turn::Done(Some((chosen, in_use))))
                }
                _ => Ok(Turn::Wait(None)),
            }
        })
        .await
    }

    pub(super) fn connect(&self, id: InstanceId, connection: Weak<dyn Connection>) {
        lock(&self.connections).insert(id, connection);
        // It may have been told to go while it was started, when there was nothing to close yet.
        if !self.fleet().is_open(id) {
            self.close_one(id);
        }
    }

    fn connection(&self, id: InstanceId) -> Option<Arc<dyn Connection>> {
        lock(&self.connections).get(&id)?.upgrade()
    }

    pub(super) fn close_one(&self, id: InstanceId) {
        let Some(connection) = self.connection(id) else {
            return;
        };
        self.tell_closing(id);
        connection.close();
    }

    fn look_who_is_held(&self) {
        let connections = lock(&self.connections).clone();
        for (id, connection) in connections {
            if let Some(connection) = connection.upgrade() {
                let is_held = connection.is_held();
                self.fleet().set_held(id, is_held);
            }
        }
    }

    /// The connection has ended, which nobody wanted.
    pub(super) fn lost(&self, id: InstanceId, why: &FailureText) {
        self.fleet().lost(id, why, random(), self.now());
        self.changed();
    }

    /// An instance and everything that belonged to it is gone.
    pub(super) fn gone(&self, id: InstanceId, why: &FailureText) {
        lock(&self.connections).remove(&id);
        let over = self.fleet().gone(id, why, random(), self.now());
        if let Some(instance) = over {
            self.tell_end(&instance);
        }
        self.changed();
    }

    /// Ends everything, and waits until it has ended.
    pub(crate) async fn close(&self, farewell: Farewell) {
        let patience = self.fleet().settings().drain + GOODBYE;
        let closing = self.fleet().close(farewell, self.now());
        closing.into_iter().for_each(|id| self.close_one(id));
        self.changed();
        // Whoever is left after that is ended by force, with the runtime.
        let _ = tokio::time::timeout(patience, self.until(Fleet::is_empty)).await;
    }

    /// Refuses those who wait, and everybody who comes; calls that run go on. How many wait.
    pub(crate) fn turn_away(&self) -> usize {
        let waiting = self.fleet().turn_away();
        self.changed();
        waiting
    }

    /// Until nobody is served any more.
    pub(crate) async fn closed(&self) {
        self.until(Fleet::is_closed).await;
    }

    async fn until(&self, is_so: impl Fn(&Fleet) -> bool) {
        self.when(|| is_so(&self.fleet()).then_some(())).await;
    }

    /// What is looked for, once an instance or a call that comes or goes has brought it.
    pub(crate) async fn when<T>(&self, found: impl Fn() -> Option<T>) -> T {
        loop {
            let mut changed = pin!(self.changed.notified());
            changed.as_mut().enable();
            if let Some(found) = found() {
                return found;
            }
            changed.await;
        }
    }

    fn watch(self: &Arc<Self>) {
        let supervisor = Arc::downgrade(self);
        let sooner = Arc::clone(&self.sooner);
        tokio::spawn(async move {
            loop {
                let pause = match supervisor.upgrade() {
                    None => return,
                    Some(supervisor) => supervisor.look_around(),
                };
                // A new reason to look, or the time to.
                let _ = tokio::time::timeout(pause, sooner.notified()).await;
            }
        });
    }

    /// One round; how long until the next.
    fn look_around(self: &Arc<Self>) -> Duration {
        self.look_who_is_held();
        let round = self.fleet().round(self.now());
        let Round {
            close,
            ask,
            start,
            next,
        } = round;
        for id in close {
            self.tell_idle(id);
            self.close_one(id);
        }
        for id in ask {
            self.examine(id);
        }
        if let Some(cause) = start
            && let Some(starter) = self.starter.get().and_then(Weak::upgrade)
            && !self.is_starting.swap(true, Ordering::Relaxed)
        {
            let supervisor = Arc::clone(self);
            tokio::spawn(async move {
                let before = supervisor.fleet().starts();
                starter.start(cause).await;
                // Somebody may have to agree to it first.
                if supervisor.fleet().starts() == before {
                    supervisor.fleet().not_begun(random(), supervisor.now());
                }
                supervisor.is_starting.store(false, Ordering::Relaxed);
                // One after the other.
                supervisor.sooner.notify_one();
            });
        }
        next.map_or(LONGEST, |next| next.since(self.now()).min(LONGEST))
    }

    /// Asks an instance whether it is well.
    fn examine(self: &Arc<Self>, id: InstanceId) {
        let (probe, patience) = {
            let fleet = self.fleet();
            (fleet.probe(id).clone(), fleet.patience(id))
        };
        let connection = self.connection(id);
        let question = connection
            .as_ref()
            .and_then(|connection| question(&probe, connection.era()));
        // Until there is an answer it is not asked again.
        self.fleet().asked(id, self.now());
        let (Some(connection), Some(question)) = (connection, question) else {
            return;
        };
        let supervisor = Arc::downgrade(self);
        tokio::spawn(async move {
            let reading = question.reading;
            let asking = connection.ask(question);
            let answer = match tokio::time::timeout(patience, asking).await {
                Ok(Some(Ok(result))) => judge(reading, Ok(&result)),
                Ok(Some(Err(error))) => judge(reading, Err(&error)),
                Ok(None) | Err(_) => Answer::Bad,
            };
            if let Some(supervisor) = supervisor.upgrade() {
                supervisor.diagnose(id, answer);
            }
        });
    }

    fn diagnose(&self, id: InstanceId, answer: Answer) {
        let (diagnosis, effect) = self.fleet().answered(id, answer, random(), self.now());
        if diagnosis != Diagnosis::Well {
            self.tell_unwell(id, diagnosis);
        }
        if effect.is_some() {
            self.close_one(id);
        }
        self.changed();
    }

    /// A start came to nothing.
    pub(super) fn failed(&self, id: InstanceId, trouble: &Trouble) {
        let why = trouble.text(&self.masks);
        self.tell_no_start(id, trouble, &why);
        self.fleet().failed(id, why, random(), self.now());
        self.changed();
    }

    pub(super) fn retire(&self, id: InstanceId, cause: StopCause) {
        let effect = self.fleet().retire(id, cause, self.now());
        if effect.is_some() {
            self.close_one(id);
        }
        self.changed();
    }

    pub(super) fn trouble(&self, refusal: Refusal) -> Trouble {
        let fleet = self.fleet();
        let settings = fleet.settings();
        match refusal {
            Refusal::Busy => Trouble::Busy {
                state: fleet.status(self.now()).crowded(),
                room: room(settings),
            },
            Refusal::Suspended { failures, wait } => Trouble::Suspended {
                tries: u32::try_from(failures).unwrap_or(u32::MAX),
                wait,
                why: fleet
                    .last_error()
                    .cloned()
                    .unwrap_or_else(|| "it went away".into()),
            },
            Refusal::Closed => Trouble::Closed,
        }
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        self.sooner.notify_one();
    }
}

/// What a server may take that is set like this.
pub(super) fn room(settings: &RunSettings) -> Room {
    Room {
        is_own: sharing(settings.strategy) == Sharing::Nobody,
        is_of_turns: false,
        instances: most(settings),
        calls: settings.max_concurrent,
        queue: settings.queue,
    }
}

/// Spreads pauses; without randomness they are as short as they can be.
pub(super) fn random() -> u32 {
    getrandom::u32().unwrap_or(0)
}
