//! Tasks of 2025-11-25, hosted in front of a modern server.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

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
use crate::error::{ServeError, UpstreamErrorKind};
use crate::exchange::rounds::{CallEnd, QuestionChannel, mint};
use crate::exchange::{DeclaredTasks, Exchange, Inbound, refusal, rounds, stamped};
use crate::sync::lock;
use crate::tasks::runner::{ResultWaiter, Runner};
use crate::tasks::{
    ExpiringTasks, LONGEST, PER_OWNER, QUESTIONS, TASKS, follow, meant, new_name, of_task, unknown,
    waited, watch,
};
use crate::upstream::{Clock, UpstreamServer};

const LIMITS: HostLimits = HostLimits {
    tasks: TASKS,
    per_owner: PER_OWNER,
    per_task: QUESTIONS,
    longest: LONGEST,
    poll: Duration::from_millis(500),
    page: 100,
};

/// Hosted tasks, their runners, and the requests that wait for results.
#[derive(Debug)]
pub(crate) struct Hosting {
    hosted: Mutex<HostedTasks>,
    runners: Mutex<HashMap<Box<str>, Arc<Runner>>>,
    waiting: Mutex<HashMap<u64, oneshot::Sender<Outcome>>>,
    last: AtomicU64,
    clock: Clock,
}

/// Id of the server's task, and the delay until its next poll.
struct Freshness {
    upstream: Box<str>,
    after: Duration,
}

/// Registration of a request for a result; dropping it removes the registration.
struct Waiting<'a> {
    hosted: &'a Hosting,
    runner: Option<Arc<Runner>>,
    inbound: u64,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.hosted.hosted().left(self.inbound);
        lock(&self.hosted.waiting).remove(&self.inbound);
        if let Some(runner) = &self.runner {
            runner.left(self.inbound);
        }
    }
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

    /// Runs a step of the state machine with the current time.
    fn at<T>(&self, step: impl FnOnce(&mut HostedTasks, Timestamp<'_>) -> T) -> T {
        let stamp = date();
        let now = Timestamp {
            moment: self.clock.now(),
            stamp: &stamp,
        };
        step(&mut self.hosted(), now)
    }

    /// Returns true if the task exists and belongs to this owner.
    fn has(&self, task: &str, owner: &str) -> bool {
        self.hosted().get(task, owner).is_ok()
    }

    /// Returns the unfinished tasks of a server with their runners.
    fn running(&self, server: u64) -> Vec<(Box<str>, Arc<Runner>)> {
        lock(&self.runners)
            .iter()
            .filter(|(_, runner)| runner.server == server)
            .map(|(task, runner)| (task.clone(), Arc::clone(runner)))
            .collect()
    }

    /// Ends the unfinished tasks of a stopped server with an error, which waiting requests receive.
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

    /// Updates the status when the call starts or stops waiting for its client.
    pub(crate) fn waits(&self, task: &str, status: Status) {
        self.at(|hosted, now| hosted.waits(task, status, now));
        self.tell(task);
    }

    /// Sends the task status to the client if it supports that.
    fn tell(&self, task: &str) {
        let runner = lock(&self.runners).get(task).cloned();
        let Some(runner) = runner else {
            return;
        };
        let shown = self.hosted().get(task, &runner.owner);
        if let (Ok(shown), Some(emulated)) = (shown, runner.binding.emulated()) {
            emulated.notify(Method::TasksStatus, &shown);
        }
    }

    /// Performs the actions of the state machine. Polling is left to the caller of this function.
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
                        // Aborting the job drops the call, which cancels it.
                        runner.stop();
                    }
                }
                Action::Answer {
                    waiter: inbound,
                    outcome,
                } => {
                    if let Some(waiting) = lock(&self.waiting).remove(&inbound) {
                        // The waiting request may have been cancelled.
                        let _ = waiting.send(outcome);
                    }
                }
            }
        }
        look
    }

    fn ask(self: &Arc<Self>, task: Box<str>, question: Question, runner: &Arc<Runner>) {
        let (hosted, asker) = (Arc::clone(self), Arc::clone(runner));
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
                hosted.at(|hosted, now| hosted.answered(&task, &key, answer.as_deref(), now));
            hosted.perform(acts, Some(&asker));
        });
        runner.employ(asking.abort_handle());
    }
}

/// Returns the raw `task` entry if the client requests this call as a task.
pub(crate) fn wished_task(exchange: &Exchange) -> Option<String> {
    let job = &exchange.inbound.job;
    let may = job.method == Some(Method::ToolsCall)
        && exchange.upstream().era() == Era::Modern
        && exchange.downstream().era() == Era::Legacy
        && !job.params.is_plain_call()
        && job.pact.declares(Capability::ServerTasksToolsCall);
    if !may {
        return None;
    }
    let params = Object::parse(&job.params).ok()?;
    params.get_present("task").map(str::to_owned)
}

/// Returns the hosted tasks. They belong to the clients and are passed on to a successor of this server.
pub(crate) fn hosted(server: &UpstreamServer) -> &Arc<Hosting> {
    server.hosted.get_or_init(|| {
        let hosted = Arc::new(Hosting::new(server.clock));
        watch(&hosted);
        hosted
    })
}

/// Gives hosted tasks the same drain time as calls when the server is about to stop.
pub(crate) fn outlast_hosted(server: &UpstreamServer) {
    let hosted = server.hosted.get();
    for (_, runner) in hosted.map_or_else(Vec::new, |hosted| hosted.running(server.number)) {
        runner.outlast();
    }
}

/// Reports the remaining hosted tasks as lost after the server has stopped.
pub(crate) fn lose_hosted(server: &UpstreamServer) {
    if let Some(hosted) = server.hosted.get() {
        let ended = server.shared.error(UpstreamErrorKind::Stopped).into();
        hosted.lost(server.number, &ended);
    }
}

/// Returns true if a request concerns a hosted task and can be answered without the server.
pub(crate) fn hosts(server: &UpstreamServer, job: &BackendRequest, sink: &ClientSink) -> bool {
    let is_about_one = matches!(
        job.method,
        Some(Method::TasksGet | Method::TasksResult | Method::TasksCancel)
    );
    let params = || Object::parse(&job.params).unwrap_or_default();
    let has = |hosted: &Arc<Hosting>| {
        let params = params();
        let task = params.get_str("taskId");
        task.is_some_and(|task| hosted.has(&task, sink.owner()))
    };
    is_about_one && job.pact.era() == Era::Legacy && server.hosted.get().is_some_and(has)
}

/// Creates a task for a call and returns before the call is sent to the server.
pub(crate) fn host(
    server: &Arc<UpstreamServer>,
    mut exchange: Exchange,
    wish: &str,
) -> Result<ByteString, ServeError> {
    if Object::parse(wish).is_err() {
        let why = String::from("Invalid params: `task` must be an object");
        let code = ErrorCode::InvalidParams.code();
        return Err(refusal(code, why, None, exchange.downstream()));
    }
    let task = new_name(exchange.downstream())?;
    let runner = Arc::new(Runner::new(&exchange, server.number));
    let created =
        hosted(server).at(|hosted, now| hosted.create(&task, &runner.owner, Some(wish), now))?;
    exchange.told = DeclaredTasks::WithTasks;
    lock(&hosted(server).runners).insert(task.as_str().into(), Arc::clone(&runner));
    let (server, worker) = (Arc::clone(server), Arc::clone(&runner));
    let job = tokio::spawn(async move {
        work(&server, &task, exchange, &worker).await;
        hosted(&server).tell(&task);
        lock(&hosted(&server).runners).remove(task.as_str());
    });
    runner.employ(job.abort_handle());
    Ok(created.into())
}

/// Makes the call, and polls the resulting task of the server until it ends.
async fn work(server: &UpstreamServer, task: &str, mut exchange: Exchange, runner: &Arc<Runner>) {
    let asking = QuestionChannel::InTask(task, runner);
    let profile = rounds::through_rounds(server, &mut exchange, asking).await;
    let hosted = hosted(server);
    let mut acts = match profile {
        Ok(CallEnd::Task(raw)) => {
            // A call becomes a task at most once.
            let _ = runner.connection.set(Arc::clone(&exchange.connection));
            hosted.hosted().started(task, &raw)
        }
        Ok(CallEnd::Answer(raw)) => {
            hosted.at(|hosted, now| hosted.finished(task, Outcome::Result(raw.to_string()), now))
        }
        Err(error) => hosted
            .at(|hosted, now| hosted.finished(task, Outcome::Error(error.to_wire().encode()), now)),
    };
    // No call is in flight between two polls; the guard prevents idle shutdown while the server's task runs.
    let _awake = exchange.connection.hold();
    while let Some(Freshness { upstream, after }) = hosted.perform(acts, Some(runner)) {
        acts = match follow::look(&exchange, &upstream, after).await {
            Ok(detailed) => hosted
                .at(|hosted, now| hosted.polled(task, &detailed, &runner.pact, now, &mut mint)),
            Err(error) => hosted.at(|hosted, now| {
                hosted.finished(task, Outcome::Error(error.to_wire().encode()), now)
            }),
        };
        hosted.tell(task);
    }
}

/// Handles task requests of a client of 2025-11-25.
pub(crate) async fn about_hosted(
    server: &UpstreamServer,
    inbound: &Inbound,
) -> Result<ByteString, ServeError> {
    let hosted = hosted(server);
    let owner = inbound.sink.owner();
    match inbound.job.method {
        Some(Method::TasksList) => {
            let params = Object::parse(&inbound.job.params).unwrap_or_default();
            let listed = hosted
                .hosted()
                .list(owner, params.get_str("cursor").as_deref());
            Ok(listed?.into())
        }
        Some(Method::TasksGet) => {
            let told = hosted.hosted().get(&meant(inbound)?, owner);
            Ok(told?.into())
        }
        Some(Method::TasksCancel) => {
            let task = meant(inbound)?;
            let (answer, acts) = hosted.at(|hosted, now| hosted.cancel(&task, owner, now))?;
            hosted.tell(&task);
            hosted.perform(acts, None);
            Ok(answer.into())
        }
        Some(Method::TasksResult) => hosted_result(server, inbound, &meant(inbound)?).await,
        Some(_) | None => Err(unknown(inbound)),
    }
}

/// Waits for the end of a task; questions to the client are possible meanwhile.
async fn hosted_result(
    server: &UpstreamServer,
    asked: &Inbound,
    task: &str,
) -> Result<ByteString, ServeError> {
    let hosted = hosted(server);
    let sink = &asked.sink;
    let inbound = hosted.last.fetch_add(1, Ordering::Relaxed);
    let (answer, answered) = oneshot::channel();
    lock(&hosted.waiting).insert(inbound, answer);
    let runner = lock(&hosted.runners).get(task).cloned();
    let waiting = Waiting {
        hosted,
        runner,
        inbound,
    };
    let retrieved = hosted.hosted().result(task, sink.owner(), inbound)?;
    let outcome = match retrieved {
        ResultLookup::Now(outcome) => outcome,
        ResultLookup::Later(acts) => {
            // Without a stream, this request cannot carry questions.
            let reach = asked.job.response_mode;
            let runner = waiting.runner.as_ref();
            if let Some(runner) = runner.filter(|_| reach == ResponseMode::Stream) {
                runner.arrived(ResultWaiter {
                    inbound,
                    sink: sink.clone(),
                });
            }
            hosted.perform(acts, None);
            match answered.await {
                Ok(outcome) => outcome,
                Err(_) => return Err(ended(asked, "the server is closing")),
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

fn ended(inbound: &Inbound, why: &str) -> ServeError {
    refusal(
        ErrorCode::InternalError.code(),
        why.to_owned(),
        None,
        inbound.revision(),
    )
}

/// Sends a request about its task to a modern server in the background, without waiting for the response.
fn request_apart(runner: &Runner, method: Method, params: String) {
    let binding = Arc::clone(&runner.binding);
    let Some(connection) = runner.connection.get().cloned() else {
        return;
    };
    tokio::spawn(async move {
        let Ok(connection) = waited::for_task(&connection, &binding).await else {
            return;
        };
        let stamped = stamped(
            &binding,
            ResponseMode::Stream,
            DeclaredTasks::WithTasks,
            connection.revision(),
            &params,
        );
        let Ok(stamped) = stamped else {
            return;
        };
        let params = stamped.as_deref().unwrap_or(&params);
        if let Err(loss) = connection.request(method, params).await {
            tracing::debug!(?loss, %method, "the server could not be told");
        }
    });
}
