//! Tasks of 2025-11-25, hosted in front of a modern server.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use futures_util::FutureExt;
use mcpact::connection::RawResult;
use mcpact::server::backend::{BackendRequest, QuestionOutcome, ResponseMode, date};
use mcpact_engine::pact::Pact;
use mcpact_spec::{Capability, Era, ErrorCode, Method, Revision};
use mcpact_translate::input::{Outcome, Question};
use mcpact_translate::shape::adapt_client_result;
use mcpact_translate::tasks::Status;
use mcpact_translate::tasks::hosted::{Action, HostLimits, HostedTasks, ResultLookup, Timestamp};
use mcpact_wire::raw::Object;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;

use crate::connection::UpstreamConnection;
use crate::connection::questions::ANSWER_TIMEOUT;
use crate::downstream::sink::ClientSink;
use crate::error::{ServeError, UpstreamErrorKind};
use crate::exchange::rounds::{CallEnd, QuestionChannel, new_url_id};
use crate::exchange::{DeclaredTasks, Exchange, Inbound, refuse, rounds, stamped};
use crate::supervisor::CallGuard;
use crate::sync::{OnDrop, lock};
use crate::tasks::{
    LONGEST, PER_OWNER, QUESTIONS, TASKS, method_not_found, new_task_id, stored_outcome,
    stored_response, task_id, task_params, waiting,
};
use crate::upstream::binding::ServerBinding;
use crate::upstream::{Clock, UpstreamServer, expire_periodically};

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
    tasks: Mutex<HostedTasks>,
    runners: Mutex<HashMap<Box<str>, Arc<Runner>>>,
    /// Pending requests for results, by number.
    waiting: Mutex<HashMap<u64, oneshot::Sender<Outcome>>>,
    last: AtomicU64,
    clock: Clock,
}

impl Hosting {
    fn expire(self: &Arc<Self>) {
        let actions = lock(&self.tasks).expire(self.clock.now());
        self.perform(actions, None);
    }

    /// Runs a step of the state machine with the current time.
    fn at<T>(&self, step: impl FnOnce(&mut HostedTasks, Timestamp<'_>) -> T) -> T {
        let stamp = date();
        let now = Timestamp {
            moment: self.clock.now(),
            stamp: &stamp,
        };
        step(&mut lock(&self.tasks), now)
    }

    /// Ends a task.
    fn finish(&self, task: &str, outcome: Outcome) -> Vec<Action> {
        self.at(|tasks, now| tasks.finished(task, outcome, now))
    }

    fn runner(&self, task: &str) -> Option<Arc<Runner>> {
        lock(&self.runners).get(task).cloned()
    }

    /// Returns the unfinished tasks of a server with their runners.
    fn running(&self, server: u64) -> Vec<(Box<str>, Arc<Runner>)> {
        lock(&self.runners)
            .iter()
            .filter(|(_, runner)| runner.server == server)
            .map(|(task, runner)| (task.clone(), Arc::clone(runner)))
            .collect()
    }

    /// Updates the status when the call starts or stops waiting for its client.
    pub(crate) fn set_status(&self, task: &str, status: Status) {
        self.at(|tasks, now| tasks.waits(task, status, now));
        self.notify_status(task);
    }

    /// Sends the task status to the client if it supports that.
    fn notify_status(&self, task: &str) {
        let Some(runner) = self.runner(task) else {
            return;
        };
        let shown = lock(&self.tasks).get(task, &runner.owner);
        if let (Ok(shown), Some(emulated)) = (shown, runner.binding.emulated()) {
            emulated.notify(Method::TasksStatus, &shown);
        }
    }

    /// Performs the actions of the state machine. Returns the id of the server's task and the delay if it is to be
    /// polled again.
    fn perform(
        self: &Arc<Self>,
        actions: Vec<Action>,
        runner: Option<&Arc<Runner>>,
    ) -> Option<(Box<str>, Duration)> {
        let mut next_poll = None;
        for action in actions {
            match action {
                Action::Poll {
                    upstream, after, ..
                } => next_poll = Some((upstream, after)),
                Action::Ask { task, question } => {
                    if let Some(runner) = self.runner(&task) {
                        self.ask(task, question, &runner);
                    }
                }
                Action::Update { params } => {
                    if let Some(runner) = runner {
                        request_in_background(runner, Method::TasksUpdate, params);
                    }
                }
                Action::Cancel { task, upstream } => {
                    let removed = lock(&self.runners).remove(&task);
                    if let Some(runner) = removed.as_ref().or(runner) {
                        if let Some(upstream) = upstream {
                            let params = task_params(&upstream);
                            request_in_background(runner, Method::TasksCancel, params);
                        }
                        // Aborting the job drops the call, which cancels it.
                        lock(&runner.jobs).abort_all();
                    }
                }
                Action::Answer { waiter, outcome } => {
                    if let Some(waiting) = lock(&self.waiting).remove(&waiter) {
                        // The waiting request may have been cancelled.
                        let _ = waiting.send(outcome);
                    }
                }
            }
        }
        next_poll
    }

    fn ask(self: &Arc<Self>, task: Box<str>, question: Question, runner: &Arc<Runner>) {
        let (hosted, asker) = (Arc::clone(self), Arc::clone(runner));
        let asking = async move {
            let method = question.method;
            let outcome = asker.ask(method, &question.params).await;
            // The connection is known once the server's task exists.
            let connection = asker.connection.get();
            let upstream = connection.map_or(Revision::newest(Era::Modern), |one| one.revision());
            let answer = match &outcome {
                QuestionOutcome::Result(raw) => adapt_client_result(method, raw, upstream).ok(),
                _ => None,
            };
            let (key, answer) = (&question.key, answer.as_deref());
            let actions = hosted.at(|tasks, now| tasks.answered(&task, key, answer, now));
            hosted.perform(actions, Some(&asker));
        };
        lock(&runner.jobs).spawn(asking);
    }
}

/// Background jobs of one hosted task, and the channel for questions to its client.
#[derive(Debug)]
pub(crate) struct Runner {
    /// Number of the upstream server.
    server: u64,
    binding: Arc<ServerBinding>,
    pact: Arc<Pact>,
    owner: Box<str>,
    /// Connection on which the server runs its own task, once it has created one.
    connection: OnceLock<Arc<UpstreamConnection>>,
    /// Requests for the result, by number, which can carry questions to the client.
    waiters: watch::Sender<BTreeMap<u64, ClientSink>>,
    /// Background jobs of the task.
    jobs: Mutex<JoinSet<()>>,
    /// Call guard that lets the server's task finish during a drain.
    drain_guard: Mutex<Option<CallGuard>>,
}

impl Runner {
    /// Sends a question to the client on a pending request for the result. If that request ends without an answer,
    /// the question is sent again on the next one.
    pub(crate) async fn ask(&self, method: Method, params: &str) -> QuestionOutcome {
        let mut waiters = self.waiters.subscribe();
        loop {
            let waiter = match waiters.wait_for(|waiters| !waiters.is_empty()).await {
                Ok(waiters) => waiters.last_key_value().map(|(k, sink)| (*k, sink.clone())),
                Err(_) => None,
            };
            let Some((number, sink)) = waiter else {
                return QuestionOutcome::Lost("no client waits for the task");
            };
            tokio::select! {
                outcome = sink.ask(method, params, ANSWER_TIMEOUT) => return outcome,
                _ = waiters.wait_for(|waiters| !waiters.contains_key(&number)) => {}
            }
        }
    }
}

/// Returns the raw `task` entry if the client requests this call as a task.
pub(crate) fn requested_task(exchange: &Exchange) -> Option<String> {
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
        let hosted = Arc::new(Hosting {
            tasks: Mutex::new(HostedTasks::new(LIMITS)),
            runners: Mutex::default(),
            waiting: Mutex::default(),
            last: AtomicU64::new(0),
            clock: server.clock,
        });
        expire_periodically(&hosted, Hosting::expire);
        hosted
    })
}

/// Gives hosted tasks the same drain time as calls when the server is about to stop. Before the server's own task
/// exists, the call itself is in flight.
pub(crate) fn keep_calls(server: &UpstreamServer) {
    let hosted = server.hosted.get();
    for (_, runner) in hosted.map_or_else(Vec::new, |hosted| hosted.running(server.number)) {
        let connection = runner.connection.get();
        let entered = connection.map(|connection| connection.running.start_call());
        // An instance at its call limit has calls to drain anyway.
        if let Some(Ok(Some(guard))) = entered.and_then(FutureExt::now_or_never) {
            *lock(&runner.drain_guard) = Some(guard);
        }
    }
}

/// Ends the remaining tasks of a stopped server with an error, which waiting requests receive.
pub(crate) fn fail_remaining(server: &UpstreamServer) {
    let Some(hosted) = server.hosted.get() else {
        return;
    };
    let stopped = ServeError::from(server.shared.error(UpstreamErrorKind::Stopped));
    for (task, runner) in hosted.running(server.number) {
        lock(&runner.jobs).abort_all();
        let actions = hosted.finish(&task, stored_outcome(&Err(stopped.clone())));
        hosted.perform(actions, Some(&runner));
        hosted.notify_status(&task);
        lock(&hosted.runners).remove(&task);
    }
}

/// Returns true if a request concerns a hosted task and can be answered without the server.
pub(crate) fn is_hosted(server: &UpstreamServer, job: &BackendRequest, sink: &ClientSink) -> bool {
    let concerns_task = matches!(
        job.method,
        Some(Method::TasksGet | Method::TasksResult | Method::TasksCancel)
    );
    if !concerns_task || job.pact.era() != Era::Legacy {
        return false;
    }
    let params = Object::parse(&job.params).unwrap_or_default();
    let known = server.hosted.get().zip(params.get_str("taskId"));
    known.is_some_and(|(hosted, task)| lock(&hosted.tasks).get(&task, sink.owner()).is_ok())
}

/// Creates a task for a call and returns before the call is sent to the server.
pub(crate) fn host(
    server: &Arc<UpstreamServer>,
    mut exchange: Exchange,
    requested: &str,
) -> Result<RawResult, ServeError> {
    let client = exchange.downstream();
    if Object::parse(requested).is_err() {
        let why = "Invalid params: `task` must be an object";
        return Err(refuse(ErrorCode::InvalidParams, why, client));
    }
    let task = new_task_id(client)?;
    let runner = Arc::new(Runner {
        server: server.number,
        binding: Arc::clone(&exchange.binding),
        pact: Arc::clone(&exchange.inbound.job.pact),
        owner: exchange.inbound.sink.owner().into(),
        connection: OnceLock::new(),
        waiters: watch::Sender::default(),
        jobs: Mutex::default(),
        drain_guard: Mutex::default(),
    });
    let hosted = Arc::clone(hosted(server));
    let owner = exchange.inbound.sink.task_owner();
    let created = hosted.at(|tasks, now| tasks.create(&task, owner, Some(requested), now))?;
    exchange.declared_tasks = DeclaredTasks::WithTasks;
    lock(&hosted.runners).insert(task.as_str().into(), Arc::clone(&runner));
    let (server, worker) = (Arc::clone(server), Arc::clone(&runner));
    lock(&runner.jobs).spawn(async move {
        run(&server, &task, exchange, &worker).await;
        hosted.notify_status(&task);
        lock(&hosted.runners).remove(task.as_str());
    });
    Ok(created.into())
}

/// Makes the call, and polls the resulting task of the server until it ends.
async fn run(server: &UpstreamServer, task: &str, mut exchange: Exchange, runner: &Arc<Runner>) {
    let channel = QuestionChannel::InTask(task, runner);
    let ended = rounds::run_rounds(server, &mut exchange, channel).await;
    let hosted = hosted(server);
    let mut actions = match ended {
        Ok(CallEnd::Task(raw)) => {
            // A call becomes a task at most once.
            let _ = runner.connection.set(Arc::clone(&exchange.connection));
            lock(&hosted.tasks).started(task, &raw)
        }
        Ok(CallEnd::Answer(raw)) => hosted.finish(task, stored_outcome(&Ok(raw))),
        Err(error) => hosted.finish(task, stored_outcome(&Err(error))),
    };
    // No call is in flight between two polls; the guard prevents idle shutdown while the server's task runs.
    let _awake = exchange.connection.hold();
    while let Some((upstream, after)) = hosted.perform(actions, Some(runner)) {
        actions = match waiting::poll(&exchange, &upstream, after).await {
            Ok(detailed) => hosted
                .at(|tasks, now| tasks.polled(task, &detailed, &runner.pact, now, &mut new_url_id)),
            Err(error) => hosted.finish(task, stored_outcome(&Err(error))),
        };
        hosted.notify_status(task);
    }
}

/// Handles task requests of a client of 2025-11-25.
pub(crate) async fn serve_hosted(
    server: &UpstreamServer,
    inbound: &Inbound,
) -> Result<RawResult, ServeError> {
    let hosted = hosted(server);
    let owner = inbound.sink.owner();
    match inbound.job.method {
        Some(Method::TasksList) => {
            let params = Object::parse(&inbound.job.params).unwrap_or_default();
            let cursor = params.get_str("cursor");
            Ok(lock(&hosted.tasks).list(owner, cursor.as_deref())?.into())
        }
        Some(Method::TasksGet) => {
            let task = task_id(inbound)?;
            Ok(lock(&hosted.tasks).get(&task, owner)?.into())
        }
        Some(Method::TasksCancel) => {
            let task = task_id(inbound)?;
            let (response, actions) = hosted.at(|tasks, now| tasks.cancel(&task, owner, now))?;
            hosted.notify_status(&task);
            hosted.perform(actions, None);
            Ok(response.into())
        }
        Some(Method::TasksResult) => hosted_result(hosted, inbound, &task_id(inbound)?).await,
        Some(_) | None => Err(method_not_found(inbound)),
    }
}

/// Waits for the end of a task; questions to the client are possible meanwhile.
async fn hosted_result(
    hosted: &Arc<Hosting>,
    inbound: &Inbound,
    task: &str,
) -> Result<RawResult, ServeError> {
    let sink = &inbound.sink;
    let number = hosted.last.fetch_add(1, Ordering::Relaxed);
    let (sender, outcome) = oneshot::channel();
    lock(&hosted.waiting).insert(number, sender);
    let runner = hosted.runner(task);
    let _waiting = OnDrop::new(|| {
        lock(&hosted.tasks).left(number);
        lock(&hosted.waiting).remove(&number);
        if let Some(runner) = &runner {
            runner.waiters.send_modify(|all| drop(all.remove(&number)));
        }
    });
    let lookup = lock(&hosted.tasks).result(task, sink.owner(), number)?;
    let outcome = match lookup {
        ResultLookup::Now(outcome) => outcome,
        ResultLookup::Later(actions) => {
            // Without a stream, this request cannot carry questions.
            if let Some(runner) = &runner
                && inbound.job.response_mode == ResponseMode::Stream
            {
                let add = |all: &mut BTreeMap<_, _>| drop(all.insert(number, sink.clone()));
                runner.waiters.send_modify(add);
            }
            hosted.perform(actions, None);
            outcome.await.map_err(|_| {
                let why = "the server is closing";
                refuse(ErrorCode::InternalError, why, inbound.revision())
            })?
        }
    };
    stored_response(outcome, inbound.revision())
}

/// Sends a request about its task to a modern server in the background, without waiting for the response.
fn request_in_background(runner: &Runner, method: Method, params: String) {
    let binding = Arc::clone(&runner.binding);
    let Some(connection) = runner.connection.get().cloned() else {
        return;
    };
    tokio::spawn(async move {
        let Ok(connection) = waiting::connection_for_task(&connection, &binding).await else {
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
        let params = stamped.unwrap_or(params);
        if let Err(loss) = connection.request(method, &params).await {
            tracing::debug!(?loss, %method, "failed to notify the server");
        }
    });
}
