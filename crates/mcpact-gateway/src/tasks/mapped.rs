//! Tasks of a server of 2025-11-25, mapped for modern clients.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};

use futures_util::future::OptionFuture;
use mcpact_engine::pact::Pact;
use mcpact_engine::refusal::WireError;
use mcpact_spec::{ErrorCode, Method};
use mcpact_translate::input::{Outcome, question_to_modern};
use mcpact_translate::tasks::mapped::{
    ACKNOWLEDGED, MapLimits, MappedTasks, TaskLookup, TaskOrigin, TaskView,
};
use mcpact_wire::model::error;
use mcpact_wire::raw::Object;
use tokio::sync::watch;
use tokio::task::JoinSet;

use mcpact::connection::{
    CallEvent, RawResult, ServerNotification, ServerRequest, ServerResponse, related_task,
};

use crate::connection::UpstreamConnection;
use crate::connection::questions::UnansweredQuestions;
use crate::error::ServeError;
use crate::exchange::{Exchange, refuse};
use crate::subscriptions::listen;
use crate::sync::lock;
use crate::tasks::{
    LONGEST, PER_OWNER, QUESTIONS, TASKS, method_not_found, new_task_id, task_id, task_params,
    waiting,
};
use crate::upstream::{Clock, UpstreamServer};

const LIMITS: MapLimits = MapLimits {
    tasks: TASKS,
    per_owner: PER_OWNER,
    questions: QUESTIONS,
    longest: LONGEST,
};

/// Server tasks under ids of the gateway, with the sessions in which they run.
#[derive(Debug)]
pub(crate) struct Mapping {
    tasks: Mutex<MappedTasks>,
    /// Tasks that may still change.
    open: Mutex<HashMap<Box<str>, Open>>,
    clock: Clock,
}

/// Task that may still change.
#[derive(Debug)]
struct Open {
    connection: Arc<UpstreamConnection>,
    /// Negotiated terms of the client, which limit the possible questions.
    pact: Arc<Pact>,
    upstream: Box<str>,
    /// Request to the server for the result, and the channel that closes when it has ended.
    result: Option<(JoinSet<()>, watch::Receiver<()>)>,
    /// Open questions of the server for the task.
    unanswered: UnansweredQuestions,
}

impl Mapping {
    pub(crate) fn new(clock: Clock) -> Self {
        Self {
            tasks: Mutex::new(MappedTasks::new(LIMITS)),
            open: Mutex::default(),
            clock,
        }
    }

    pub(crate) fn expire(&self) {
        let expired = lock(&self.tasks).expire(self.clock.now());
        for task in expired {
            self.close(&task);
        }
    }

    fn connection_of(&self, task: &str) -> Option<Arc<UpstreamConnection>> {
        let open = lock(&self.open);
        open.get(task).map(|open| Arc::clone(&open.connection))
    }

    /// Removes a task that cannot change from the open tasks, which releases its session.
    fn close(&self, task: &str) {
        let removed = lock(&self.open).remove(task);
        // Dropped without the lock.
        drop(removed);
    }

    /// Like [`close`](Self::close), if the task has ended.
    fn close_if_ended(&self, task: &str, owner: &str) {
        let known = lock(&self.tasks).get(task, owner);
        if matches!(known, Ok(TaskLookup::Known(_))) {
            self.close(task);
        }
    }

    /// Returns true if this session's streams can carry status notifications for the task.
    pub(crate) fn notifies_on(
        &self,
        connection: &UpstreamConnection,
        task: &str,
        owner: &str,
    ) -> bool {
        let is_here =
            |open: &Open| Arc::ptr_eq(&open.connection.subscribers, &connection.subscribers);
        lock(&self.tasks).owns(task, owner) && lock(&self.open).get(task).is_some_and(is_here)
    }

    /// Returns true if tasks run in a session.
    pub(crate) fn has_tasks_in(&self, session: u64) -> bool {
        let open = lock(&self.open);
        open.values().any(|open| open.connection.session == session)
    }

    /// Ends all tasks of a lost session.
    fn session_lost(&self, connection: &UpstreamConnection) {
        let lost = lock(&self.tasks).session_lost(connection.session);
        for task in lost {
            self.close(&task);
        }
    }

    /// Requests the result from the server, unless such a request is already in flight. The server sends the task's
    /// questions only on that request.
    fn fetch(self: &Arc<Self>, task: &str) -> Option<watch::Receiver<()>> {
        let mut all = lock(&self.open);
        let open = all.get_mut(task)?;
        if let Some((_, ended)) = &open.result {
            return Some(ended.clone());
        }
        let (end, ended) = watch::channel(());
        let (connection, upstream) = (Arc::clone(&open.connection), open.upstream.clone());
        let (mapping, task) = (Arc::downgrade(self), Box::from(task));
        let mut job = JoinSet::new();
        job.spawn(fetch(mapping, connection, upstream, task, end));
        open.result = Some((job, ended.clone()));
        Some(ended)
    }

    /// Returns the status of a task, and requests its result if needed. Returns `None` if the task has ended and the
    /// result is not known yet.
    fn shown(self: &Arc<Self>, task: &str, view: TaskView) -> Option<String> {
        if !matches!(view, TaskView::Now(_)) {
            let _ = self.fetch(task);
        }
        match view {
            TaskView::Now(status) | TaskView::NowAndOpen(status) => Some(status),
            TaskView::AfterResult => None,
        }
    }

    /// Processes a status notification of the server. Returns the parameters for the client's notification, unless the
    /// request for the result sends it.
    pub(crate) fn status_changed(
        self: &Arc<Self>,
        connection: &UpstreamConnection,
        note: &ServerNotification,
    ) -> Option<String> {
        let changed = lock(&self.tasks).status_notification(connection.session, &note.params);
        let (task, view) = changed.ok()??;
        self.shown(&task, view)
    }

    /// Returns the client's id of the task to which a question of the server belongs.
    pub(crate) fn task_of(
        &self,
        connection: &UpstreamConnection,
        ask: &ServerRequest,
    ) -> Option<String> {
        let upstream = related_task(&ask.params)?;
        let tasks = lock(&self.tasks);
        let task = tasks.local_id(connection.session, &upstream);
        task.map(str::to_owned)
    }

    /// Stores a question for a task; the client finds it in the task status.
    pub(crate) async fn asked(
        &self,
        connection: &UpstreamConnection,
        task: &str,
        ask: ServerRequest,
    ) {
        let pact = lock(&self.open)
            .get(task)
            .map(|open| Arc::clone(&open.pact));
        let (Some(pact), Some(method)) = (pact, ask.method) else {
            return connection.refuse(ask).await;
        };
        let Some(ask) = connection.answer_by_default(&pact, ask, method).await else {
            return;
        };
        let raised = question_to_modern(method, Some(&ask.params), connection.revision(), &pact);
        let refused = match raised {
            Ok(question) => self.keep(task, ask, method, question),
            Err(unasked) => Some((ask, unasked.answer)),
        };
        if let Some((ask, answer)) = refused {
            ask.answer(&Outcome::Error(answer.encode())).await;
        }
    }

    /// Stores a question for the client of a task. If it is refused, returns it with the error. A question for a task
    /// that has ended is dropped.
    fn keep(
        &self,
        task: &str,
        ask: ServerRequest,
        method: Method,
        question: String,
    ) -> Option<(ServerRequest, WireError)> {
        // The lock hides the question until it is stored.
        let mut tasks = lock(&self.tasks);
        if let Err(refused) = tasks.asked(task, ask.id.clone(), method, question) {
            return Some((ask, refused));
        }
        lock(&self.open).get_mut(task)?.unanswered.keep(ask);
        None
    }

    /// Withdraws a question of a task at the server's request.
    pub(crate) fn withdraw(&self, connection: &UpstreamConnection, note: &ServerNotification) {
        let Some(question) = note.cancelled_request() else {
            return;
        };
        let mut tasks = lock(&self.tasks);
        for (task, open) in lock(&self.open).iter_mut() {
            if open.connection.session == connection.session {
                tasks.withdrawn(task, question.as_ref());
                open.unanswered.withdrawn(&question);
            }
        }
    }
}

/// Requests the result of a task, processes questions meanwhile, and announces the outcome. The channel closes at the end.
async fn fetch(
    mapping: Weak<Mapping>,
    connection: Arc<UpstreamConnection>,
    upstream: Box<str>,
    task: Box<str>,
    _end: watch::Sender<()>,
) {
    let mut call = waiting::request_result(&connection, &upstream).await;
    let ended = loop {
        let event = call.next().await;
        let Some(mapping) = mapping.upgrade() else {
            return;
        };
        match event {
            CallEvent::Request(ask) => mapping.asked(&connection, &task, ask).await,
            CallEvent::Notification(note) => mapping.withdraw(&connection, &note),
            CallEvent::Response(ServerResponse::Result(raw)) => {
                break Outcome::Result(raw.to_string());
            }
            CallEvent::Response(ServerResponse::Error(raw)) => {
                break Outcome::Error(raw.to_string());
            }
            CallEvent::Failed(_) => {
                let why = "the session of the server that ran the task is lost";
                let code = ErrorCode::InternalError.code();
                break Outcome::Error(error::encode(code, why, None));
            }
        }
    };
    let Some(mapping) = mapping.upgrade() else {
        return;
    };
    let detailed = lock(&mapping.tasks).ended(&task, &ended, Some(&connection.server_info));
    // Dropped at the end, because the drop aborts this job.
    let _open = lock(&mapping.open).remove(&task);
    if let Some(detailed) = detailed {
        listen::notify(&connection, Method::TasksChanged, &detailed).await;
    }
}

/// Calls a tool as a task that the client follows.
pub(crate) async fn call_as_task(
    server: &UpstreamServer,
    mut exchange: Exchange,
) -> Result<RawResult, ServeError> {
    let mapping = Arc::clone(&server.shared.mapping);
    let sink = exchange.inbound.sink.clone();
    lock(&mapping.tasks).room(sink.task_owner().account)?;
    let params = exchange.params()?;
    let (reply, upstream) = waiting::send_as_task(&mut exchange, &params).await?;
    let (ServerResponse::Result(raw), Some(upstream)) = (&reply, upstream) else {
        return exchange.finished(&reply);
    };
    let task = new_task_id(exchange.downstream())?;
    let open = Open {
        connection: Arc::clone(&exchange.connection),
        pact: Arc::clone(&exchange.inbound.job.pact),
        upstream: upstream.into(),
        result: None,
        unanswered: UnansweredQuestions::default(),
    };
    // The session must be registered before a client can refer to the task.
    lock(&mapping.open).insert(task.as_str().into(), open);
    let origin = TaskOrigin {
        owner: sink.task_owner(),
        client: exchange.downstream(),
        session: exchange.connection.session,
    };
    let (info, now) = (Some(&*exchange.connection.server_info), server.clock.now());
    let created = lock(&mapping.tasks).created(&task, origin, raw, info, now);
    created.map(Into::into).map_err(|fault| {
        mapping.close(&task);
        exchange.unfit("task", fault)
    })
}

/// Handles task requests of a modern client.
pub(crate) async fn serve_mapped(
    server: &UpstreamServer,
    exchange: Exchange,
) -> Result<RawResult, ServeError> {
    let mapping = &server.shared.mapping;
    let task = task_id(&exchange.inbound)?;
    let owner = exchange.inbound.sink.owner();
    let answer = match exchange.inbound.job.method {
        Some(Method::TasksGet) => mapped_task(server, &exchange, &task).await?,
        Some(Method::TasksUpdate) => {
            let params = Object::parse(&exchange.inbound.job.params).unwrap_or_default();
            let responses = params.get_present("inputResponses");
            let answers = lock(&mapping.tasks).update(&task, owner, responses)?;
            let sending = lock(&mapping.open)
                .get_mut(&*task)
                .map(|open| open.unanswered.answer(answers));
            OptionFuture::from(sending).await;
            ACKNOWLEDGED.into()
        }
        Some(Method::TasksCancel) => {
            let upstream = lock(&mapping.tasks).cancel(&task, owner)?;
            if let Some(upstream) = upstream {
                cancel_mapped(server, &task, &upstream, owner).await;
            }
            ACKNOWLEDGED.into()
        }
        Some(_) | None => return Err(method_not_found(&exchange.inbound)),
    };
    exchange.result(&answer)
}

async fn mapped_task(
    server: &UpstreamServer,
    exchange: &Exchange,
    task: &str,
) -> Result<RawResult, ServeError> {
    let mapping = &server.shared.mapping;
    let owner = exchange.inbound.sink.owner();
    let upstream = match lock(&mapping.tasks).get(task, owner)? {
        TaskLookup::Known(detailed) => return Ok(detailed.into()),
        TaskLookup::Ask(upstream) => upstream,
    };
    if let Some(connection) = mapping.connection_of(task) {
        let params = task_params(&upstream);
        match connection.request(Method::TasksGet, &params).await {
            Ok(ServerResponse::Result(raw)) => {
                let view = lock(&mapping.tasks).status(task, &raw);
                let view = view.map_err(|fault| exchange.unfit("task", fault))?;
                if let Some(view) = view {
                    if let Some(status) = mapping.shown(task, view) {
                        mapping.close_if_ended(task, owner);
                        return Ok(status.into());
                    }
                    if let Some(mut ended) = mapping.fetch(task) {
                        // The channel carries no values; it is closed at the end.
                        while ended.changed().await.is_ok() {}
                    }
                }
            }
            Ok(ServerResponse::Error(raw)) => return Err(exchange.error(&raw)),
            Err(_) => mapping.session_lost(&connection),
        }
    }
    // The task has ended or expired meanwhile.
    match lock(&mapping.tasks).get(task, owner)? {
        TaskLookup::Known(detailed) => Ok(detailed.into()),
        TaskLookup::Ask(_) => {
            let why = "the server returned no task status";
            Err(refuse(ErrorCode::InternalError, why, exchange.downstream()))
        }
    }
}

/// Cancels a task at the server. The client's request succeeds regardless of the server's response.
async fn cancel_mapped(server: &UpstreamServer, task: &str, upstream: &str, owner: &str) {
    let mapping = &server.shared.mapping;
    let Some(connection) = mapping.connection_of(task) else {
        return;
    };
    let params = task_params(upstream);
    match connection.request(Method::TasksCancel, &params).await {
        Ok(ServerResponse::Result(raw)) => {
            let seen = lock(&mapping.tasks).status(task, &raw);
            if let Ok(Some(TaskView::Now(detailed))) = seen {
                mapping.close_if_ended(task, owner);
                listen::notify(&connection, Method::TasksChanged, &detailed).await;
            }
        }
        Ok(ServerResponse::Error(_)) => tracing::debug!("the task has already ended"),
        Err(_) => mapping.session_lost(&connection),
    }
}
