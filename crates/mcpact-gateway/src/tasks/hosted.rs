//! Tasks of 2025-11-25 in front of a modern server.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::error::{ServeError, UpstreamErrorKind};
use bytestring::ByteString;
use mcpact::server::backend::{BackendRequest, QuestionOutcome, ResponseMode, date};
use mcpact_spec::{Capability, Era, ErrorCode, Method};
use mcpact_translate::input::{Outcome, Question};
use mcpact_translate::shape::adapt_client_result;
use mcpact_translate::tasks::Status;
use mcpact_translate::tasks::hosted::{Action, HostLimits, HostedTasks, ResultLookup, Timestamp};
use mcpact_wire::model::error::ErrorBody;
use mcpact_wire::raw::Object;
use tokio::sync::oneshot;

use crate::downstream::sink::ClientSink;
use crate::exchange::DeclaredTasks;
use crate::exchange::Exchange;
use crate::exchange::Inbound;
use crate::exchange::refusal;
use crate::exchange::rounds::CallEnd;
use crate::exchange::rounds::QuestionChannel;
use crate::exchange::rounds::mint;
use crate::exchange::stamped;
use crate::tasks::ExpiringTasks;
use crate::tasks::LONGEST;
use crate::tasks::PER_OWNER;
use crate::tasks::QUESTIONS;
use crate::tasks::TASKS;
use crate::tasks::meant;
use crate::tasks::new_name;
use crate::tasks::of_task;
use crate::tasks::runner::ResultWaiter;
use crate::tasks::runner::Runner;
use crate::tasks::unknown;
use crate::tasks::watch;
use crate::upstream::Clock;
use crate::upstream::UpstreamServer;

const LIMITS: HostLimits = HostLimits {
    tasks: TASKS,
    per_owner: PER_OWNER,
    per_task: QUESTIONS,
    longest: LONGEST,
    poll: Duration::from_millis(500),
    page: 100,
};

/// The hosted tasks, who works for them and who waits for them.
#[derive(Debug)]
pub(crate) struct Hosting {
    hosted: Mutex<HostedTasks>,
    runners: Mutex<HashMap<Box<str>, Arc<Runner>>>,
    waiting: Mutex<HashMap<u64, oneshot::Sender<Outcome>>>,
    last: AtomicU64,
    clock: Clock,
}

/// When to look at the server's task, and what it is called.
struct Freshness {
    upstream: Box<str>,
    after: Duration,
}

/// A request for a result, until it is answered or given up.
struct Waiting<'a> {
    hosting: &'a Hosting,
    runner: Option<Arc<Runner>>,
    waiter: u64,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.hosting.hosted().left(self.waiter);
        lock(&self.hosting.waiting).remove(&self.waiter);
        if let Some(runner) = &self.runner {
            runner.left(self.waiter);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ExpiringTasks for Hosting {
    fn expire(self: &Arc<Self>) {
        let acts = self.hosted().expire(self.clock.now());
        self.perform(acts, None);
    }
}

impl Hosting {
    pub(crate) fn new(clock: Clock) -> Self {
        Self {
            hosted: Mutex::new(HostedTasks::new(LIMITS)),
            runners: Mutex::default(),
            waiting: Mutex::default(),
            last: AtomicU64::new(0),
            clock,
        }
    }

    fn hosted(&self) -> MutexGuard<'_, HostedTasks> {
        lock(&self.hosted)
    }

    /// What a step of the machine leads to, at this very time.
    fn at<T>(&self, step: impl FnOnce(&mut HostedTasks, Timestamp<'_>) -> T) -> T {
        let stamp = date();
        let now = Timestamp {
            moment: self.clock.now(),
            stamp: &stamp,
        };
        step(&mut self.hosted(), now)
    }

    /// Whether this owner has this task.
    fn has(&self, task: &str, owner: &str) -> bool {
        self.hosted().get(task, owner).is_ok()
    }

    /// The tasks of a server that have not ended, and who works for them.
    fn running(&self, server: u64) -> Vec<(Box<str>, Arc<Runner>)> {
        lock(&self.runners)
            .iter()
            .filter(|(_, runner)| runner.server == server)
            .map(|(task, runner)| (task.clone(), Arc::clone(runner)))
            .collect()
    }

    /// A server is gone, and the calls behind the tasks that have not ended: whoever waits for them is told so.
    fn lost(self: &Arc<Self>, server: u64, error: &ServeError) {
        for (task, runner) in self.running(server) {
            runner.stop();
            let outcome = Outcome::Error(error.to_wire().encode());
            let acts = self.at(|hosted, now| hosted.finished(&task, outcome, now));
            self.perform(acts, Some(&runner));
            self.tell(&task);
            lock(&self.runners).remove(&task);
        }
    }

    /// The call waits for its client, or does so no more.
    pub(crate) fn waits(&self, task: &str, status: Status) {
        self.at(|hosted, now| hosted.waits(task, status, now));
        self.tell(task);
    }

    /// Tells the client where its task stands, if it can be told.
    fn tell(&self, task: &str) {
        let runner = lock(&self.runners).get(task).cloned();
        let Some(runner) = runner else {
            return;
        };
        let shown = self.hosted().get(task, &runner.owner);
        if let (Ok(shown), Some(wishing)) = (shown, runner.caller.wishing()) {
            wishing.say(Method::TasksStatus, &shown);
        }
    }

    /// Does what the machine wants; the server is looked after by whoever called.
    fn perform(
        self: &Arc<Self>,
        acts: Vec<Action>,
        runner: Option<&Arc<Runner>>,
    ) -> Option<Freshness> {
        let mut look = None;
        for act in acts {
            match act {
                Action::Poll {
                    upstream, after, ..
                } => look = Some(Freshness { upstream, after }),
                Action::Ask { task, question } => {
                    let runner = lock(&self.runners).get(&task).cloned();
                    if let Some(runner) = runner {
                        self.ask(task, question, &runner);
                    }
                }
                Action::Update { params } => {
                    if let Some(runner) = runner {
                        request_apart(runner, Method::TasksUpdate, params);
                    }
                }
                Action::Cancel { task, upstream } => {
                    let employed = lock(&self.runners).remove(&task);
                    if let Some(runner) = employed.as_ref().or(runner) {
                        if let Some(upstream) = upstream {
                            request_apart(runner, Method::TasksCancel, of_task(&upstream));
                        }
                        // Whoever made the call cancels it by stopping.
                        runner.stop();
                    }
                }
                Action::Answer { waiter, outcome } => {
                    if let Some(waiting) = lock(&self.waiting).remove(&waiter) {
                        // Whoever waited may have gone.
                        let _ = waiting.send(outcome);
                    }
                }
            }
        }
        look
    }

    fn ask(self: &Arc<Self>, task: Box<str>, question: Question, runner: &Arc<Runner>) {
        let (hosting, asker) = (Arc::clone(self), Arc::clone(runner));
        let asking = tokio::spawn(async move {
            let Question {
                key,
                method,
                params,
            } = question;
            let answer = match asker.ask(method, &params).await {
                QuestionOutcome::Result(raw) => adapt_client_result(method, &raw, asker.upstream())
                    .ok()
                    .map(std::borrow::Cow::into_owned),
                QuestionOutcome::Error(_)
                | QuestionOutcome::Lost(_)
                | QuestionOutcome::Refused(_) => None,
            };
            let acts =
                hosting.at(|hosted, now| hosted.answered(&task, &key, answer.as_deref(), now));
            hosting.perform(acts, Some(&asker));
        });
        runner.employ(asking.abort_handle());
    }
}

impl UpstreamServer {
    /// Whether the client wants this call to be a task: the raw `task` member.
    pub(crate) fn wished_task(crossing: &Exchange) -> Option<String> {
        let job = &crossing.waiter.job;
        let may = job.method == Some(Method::ToolsCall)
            && crossing.upstream().era() == Era::Modern
            && crossing.downstream().era() == Era::Legacy
            && !job.params.is_plain_call()
            && job.pact.declares(Capability::ServerTasksToolsCall);
        if !may {
            return None;
        }
        let params = Object::parse(&job.params).ok()?;
        params.get_present("task").map(str::to_owned)
    }

    /// The tasks that are hosted here; they are the client's, and stay when another server takes the place of this one.
    pub(crate) fn hosting(&self) -> &Arc<Hosting> {
        self.hosting.get_or_init(|| {
            let hosting = Arc::new(Hosting::new(self.clock));
            watch(&hosting);
            hosting
        })
    }

    /// The server is about to be ended: what is hosted for it has as much time as its calls.
    pub(crate) fn outlast_hosted(&self) {
        let hosting = self.hosting.get();
        for (_, runner) in hosting.map_or_else(Vec::new, |hosting| hosting.running(self.number)) {
            runner.outlast();
        }
    }

    /// The server is gone: what is still hosted for it is lost.
    pub(crate) fn lose_hosted(&self) {
        if let Some(hosting) = self.hosting.get() {
            let ended = self.shared.error(UpstreamErrorKind::Stopped).into();
            hosting.lost(self.number, &ended);
        }
    }

    /// Whether a request is about a task that is hosted here: it can be answered without the server.
    pub(crate) fn hosts(&self, job: &BackendRequest, ear: &ClientSink) -> bool {
        let is_about_one = matches!(
            job.method,
            Some(Method::TasksGet | Method::TasksResult | Method::TasksCancel)
        );
        let params = || Object::parse(&job.params).unwrap_or_default();
        let has = |hosting: &Arc<Hosting>| {
            let params = params();
            let task = params.get_str("taskId");
            task.is_some_and(|task| hosting.has(&task, ear.owner()))
        };
        is_about_one && job.pact.era() == Era::Legacy && self.hosting.get().is_some_and(has)
    }

    /// Makes a task of a call, and answers before the server is even asked.
    pub(crate) fn host(
        self: &Arc<Self>,
        mut crossing: Exchange,
        wish: &str,
    ) -> Result<ByteString, ServeError> {
        if Object::parse(wish).is_err() {
            let why = String::from("Invalid params: `task` must be an object");
            let code = ErrorCode::InvalidParams.code();
            return Err(refusal(code, why, None, crossing.downstream()));
        }
        let task = new_name(crossing.downstream())?;
        let runner = Arc::new(Runner::new(&crossing, self.number));
        let created = self
            .hosting()
            .at(|hosted, now| hosted.create(&task, &runner.owner, Some(wish), now))?;
        crossing.told = DeclaredTasks::WithTasks;
        lock(&self.hosting().runners).insert(task.as_str().into(), Arc::clone(&runner));
        let (bridge, worker) = (Arc::clone(self), Arc::clone(&runner));
        let job = tokio::spawn(async move {
            bridge.work(&task, crossing, &worker).await;
            bridge.hosting().tell(&task);
            lock(&bridge.hosting().runners).remove(task.as_str());
        });
        runner.employ(job.abort_handle());
        Ok(created.into())
    }

    /// Makes the call, and looks after what it has become until it is over.
    async fn work(&self, task: &str, mut crossing: Exchange, runner: &Arc<Runner>) {
        let asking = QuestionChannel::InTask(task, runner);
        let met = self.through_rounds(&mut crossing, asking).await;
        let hosting = self.hosting();
        let mut acts = match met {
            Ok(CallEnd::Task(raw)) => {
                // A call becomes a task once.
                let _ = runner.lane.set(Arc::clone(&crossing.lane));
                hosting.hosted().started(task, &raw)
            }
            Ok(CallEnd::Answer(raw)) => hosting
                .at(|hosted, now| hosted.finished(task, Outcome::Result(raw.to_string()), now)),
            Err(error) => hosting.at(|hosted, now| {
                hosted.finished(task, Outcome::Error(error.to_wire().encode()), now)
            }),
        };
        // Between two looks nobody calls the server, and its task goes on.
        let _awake = crossing.lane.hold();
        while let Some(Freshness { upstream, after }) = hosting.perform(acts, Some(runner)) {
            acts = match self.look(&crossing, &upstream, after).await {
                Ok(detailed) => hosting
                    .at(|hosted, now| hosted.polled(task, &detailed, &runner.pact, now, &mut mint)),
                Err(error) => hosting.at(|hosted, now| {
                    hosted.finished(task, Outcome::Error(error.to_wire().encode()), now)
                }),
            };
            hosting.tell(task);
        }
    }

    /// What a client of 2025-11-25 asks about its tasks.
    pub(crate) async fn about_hosted(&self, waiter: &Inbound) -> Result<ByteString, ServeError> {
        let hosting = self.hosting();
        let owner = waiter.ear.owner();
        match waiter.job.method {
            Some(Method::TasksList) => {
                let params = Object::parse(&waiter.job.params).unwrap_or_default();
                let listed = hosting
                    .hosted()
                    .list(owner, params.get_str("cursor").as_deref());
                Ok(listed?.into())
            }
            Some(Method::TasksGet) => {
                let told = hosting.hosted().get(&meant(waiter)?, owner);
                Ok(told?.into())
            }
            Some(Method::TasksCancel) => {
                let task = meant(waiter)?;
                let (answer, acts) = hosting.at(|hosted, now| hosted.cancel(&task, owner, now))?;
                hosting.tell(&task);
                hosting.perform(acts, None);
                Ok(answer.into())
            }
            Some(Method::TasksResult) => self.hosted_result(waiter, &meant(waiter)?).await,
            Some(_) | None => Err(unknown(waiter)),
        }
    }

    /// Waits for the end of a task; meanwhile its client can be asked.
    async fn hosted_result(&self, asked: &Inbound, task: &str) -> Result<ByteString, ServeError> {
        let hosting = self.hosting();
        let ear = &asked.ear;
        let waiter = hosting.last.fetch_add(1, Ordering::Relaxed);
        let (answer, answered) = oneshot::channel();
        lock(&hosting.waiting).insert(waiter, answer);
        let runner = lock(&hosting.runners).get(task).cloned();
        let waiting = Waiting {
            hosting,
            runner,
            waiter,
        };
        let retrieved = hosting.hosted().result(task, ear.owner(), waiter)?;
        let outcome = match retrieved {
            ResultLookup::Now(outcome) => outcome,
            ResultLookup::Later(acts) => {
                // ClientRef takes no stream cannot be asked there.
                let reach = asked.job.response_mode;
                let runner = waiting.runner.as_ref();
                if let Some(runner) = runner.filter(|_| reach == ResponseMode::Stream) {
                    runner.arrived(ResultWaiter {
                        waiter,
                        ear: ear.clone(),
                    });
                }
                hosting.perform(acts, None);
                match answered.await {
                    Ok(outcome) => outcome,
                    Err(_) => return Err(ended(asked, "the bridge is closing")),
                }
            }
        };
        match outcome {
            Outcome::Result(raw) => Ok(raw.into()),
            Outcome::Error(raw) => Err(match ErrorBody::parse(&raw) {
                Some(body) => refusal(
                    body.code,
                    body.message.into_owned(),
                    body.data.map(str::to_owned),
                    asked.revision(),
                ),
                None => ended(asked, &raw),
            }),
        }
    }
}

fn ended(waiter: &Inbound, why: &str) -> ServeError {
    refusal(
        ErrorCode::InternalError.code(),
        why.to_owned(),
        None,
        waiter.revision(),
    )
}

/// Tells a modern server something about its task, whoever waits for what.
fn request_apart(runner: &Runner, method: Method, params: String) {
    let caller = Arc::clone(&runner.caller);
    let Some(lane) = runner.lane.get().cloned() else {
        return;
    };
    tokio::spawn(async move {
        let Ok(lane) = lane.for_task(&caller).await else {
            return;
        };
        let stamped = stamped(
            &caller,
            ResponseMode::Stream,
            DeclaredTasks::WithTasks,
            lane.revision(),
            &params,
        );
        let Ok(stamped) = stamped else {
            return;
        };
        let params = stamped.as_deref().unwrap_or(&params);
        if let Err(loss) = lane.request(method, params).await {
            tracing::debug!(?loss, %method, "the server could not be told");
        }
    });
}
