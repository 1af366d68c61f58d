//! Connection over a line-based link: one connection for many concurrent calls.
//!
//! The link is the stdio of a process, an in-memory pipe or an adapted HTTP+SSE stream.

mod write_queue;

use std::pin::pin;
use std::process::ExitStatus;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use mcpact_engine::pact::Pact;
use mcpact_engine::shutdown::Grace;
use mcpact_spec::{Era, Method};
use mcpact_transport::budget::MemoryExhausted;
use mcpact_transport::error::TransportError;
use mcpact_transport::link::{LineSink, LineSource, Link, WriteProgress};
use mcpact_transport::stdio::child::Process;
use mcpact_wire::codec;
use mcpact_wire::frame::ndjson::Line;
use mcpact_wire::frame::unreadable::{answered, is_answer};
use mcpact_wire::id::{Id, IdRef};
use mcpact_wire::raw::Object;
use tokio::sync::{Notify, oneshot};
use tokio::time::{Instant, timeout};

use self::write_queue::{Kind, WriteQueue};
use super::inbox::{
    CallEvent, CallFailure, Inbox, Incoming, ServerNotification, Unsolicited, UnsolicitedSender,
    batch, parse, related_task,
};
use super::notification_limit::{Admission, DropCount, HELD_INTERVAL, NotificationLimit};
use super::server_request::{OpenRequest, ReplyPath, RequestLimit, ServerRequest};
use super::{
    CallObserver, DropReason, FailureText, Hooks, MessageHandler, RawRequest, cancellation,
};
use crate::lock;
use crate::log::ProcessEvent;

/// Time to wait for the exit status of a process that has closed its output.
const EXIT_TIMEOUT: Duration = Duration::from_millis(500);

/// Time to flush the last messages when the connection ends.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);

/// State shared by reader, writer and callers.
#[derive(Debug)]
struct Shared {
    era: Era,
    observer: Arc<dyn CallObserver>,
    handler: Option<Arc<dyn MessageHandler>>,
    calls: Mutex<Calls>,
    requests: RequestLimit,
    writes: Mutex<WriteQueue>,
    written: Notify,
    waiting: Notify,
    server: Arc<str>,
    drops: Mutex<DropCount>,
}

#[derive(Debug, Default)]
struct Calls {
    pending: foldhash::HashMap<i64, Pending>,
    gone: Option<FailureText>,
}

impl Calls {
    /// Returns the only call in flight, not counting subscriptions.
    fn only_call(&self) -> Option<i64> {
        let is_call = |pending: &Pending| pending.method != Some(Method::SubscriptionsListen);
        let mut calls = self.pending.iter().filter(|(_, pending)| is_call(pending));
        let (id, _) = calls.next()?;
        calls.next().is_none().then_some(*id)
    }
}

#[derive(Debug)]
struct Pending {
    inbox: Arc<Inbox>,
    method: Option<Method>,
    /// Task id of a `tasks/result` request.
    task: Option<Box<str>>,
}

/// The connection. Dropping it closes the link and stops the process.
#[derive(Debug)]
pub(super) struct StdioConnection {
    shared: Arc<Shared>,
    /// Dropped to stop the background job.
    stop: Mutex<Option<oneshot::Sender<()>>>,
}

/// A request on the connection.
#[derive(Debug)]
pub(super) struct StdioCall {
    shared: Arc<Shared>,
    inbox: Arc<Inbox>,
    id: i64,
    is_over: bool,
    /// The connection ended before the request was sent.
    is_unsent: bool,
    is_queued: bool,
}

impl StdioConnection {
    /// Takes over a link after the negotiation.
    pub(super) fn new(
        link: Link,
        pact: &Arc<Pact>,
        process: Option<Process>,
        unsolicited: UnsolicitedSender,
        hooks: Arc<dyn Hooks>,
    ) -> Self {
        let shared = Arc::new(Shared {
            era: pact.era(),
            observer: hooks.observer(),
            handler: hooks.message_handler(pact),
            calls: Mutex::default(),
            requests: RequestLimit::default(),
            writes: Mutex::default(),
            written: Notify::new(),
            waiting: Notify::new(),
            server: Arc::clone(hooks.server()),
            drops: Mutex::default(),
        });
        let (stop, stopped) = oneshot::channel();
        let job = run(
            link,
            process,
            Arc::clone(&shared),
            unsolicited,
            stopped,
            hooks,
        );
        tokio::spawn(job);
        Self {
            shared,
            stop: Mutex::new(Some(stop)),
        }
    }

    /// Closes the connection.
    pub(super) fn close(&self) {
        self.shared.end(&"the connection was closed".into());
        *lock(&self.stop) = None;
    }

    pub(super) fn is_gone(&self) -> bool {
        lock(&self.shared.calls).gone.is_some()
    }

    /// Returns the cause of the end of the connection.
    pub(super) fn end(&self) -> Option<FailureText> {
        lock(&self.shared.calls).gone.clone()
    }

    pub(super) async fn call(&self, id: i64, request: RawRequest<'_>, text: String) -> StdioCall {
        let inbox = Arc::<Inbox>::default();
        let mut call = StdioCall {
            shared: Arc::clone(&self.shared),
            inbox: Arc::clone(&inbox),
            id,
            is_over: false,
            is_unsent: false,
            is_queued: false,
        };
        {
            let mut calls = lock(&self.shared.calls);
            if let Some(why) = &calls.gone {
                inbox.put(CallEvent::Failed(CallFailure::NotSent(why.clone())));
                call.is_over = true;
                call.is_unsent = true;
                drop(calls);
                return call;
            }
            let pending = Pending {
                inbox,
                method: request.method,
                task: task_of_result(request),
            };
            calls.pending.insert(id, pending);
        }
        call.is_queued = self.shared.send(Kind::Call(id), text).await;
        call.is_unsent = !call.is_queued;
        call
    }

    pub(super) async fn send(&self, text: String) {
        // A closed connection needs no message.
        let _ = self.shared.send(Kind::Notification, text).await;
    }
}

/// Path of a reply on this connection.
#[derive(Debug)]
pub(super) struct StdioReplyPath {
    shared: Arc<Shared>,
    _open: OpenRequest,
}

impl StdioReplyPath {
    /// Queues a reply, waiting for space.
    pub(super) async fn send(&self, text: String) {
        // A closed connection needs no reply.
        let _ = self.shared.send(Kind::Answer, text).await;
    }

    /// Queues a reply without waiting for space.
    pub(super) fn push(&self, text: String) {
        self.shared.push(Kind::Answer, text);
    }
}

impl Shared {
    /// Queues a message, waiting for space. Returns false if the connection has ended.
    async fn send(&self, kind: Kind, text: String) -> bool {
        loop {
            let written = self.written.notified();
            {
                let mut writes = lock(&self.writes);
                if writes.has_space() {
                    self.waiting.notify_one();
                    return writes.push(kind, text);
                }
            }
            written.await;
        }
    }

    /// Queues a message without waiting for space.
    fn push(&self, kind: Kind, text: String) {
        lock(&self.writes).push(kind, text);
        self.waiting.notify_one();
    }

    /// Waits while the server leaves too many answers unread, unless it stalls.
    ///
    /// Only answers count: a server may well stop reading calls while it writes a large result.
    async fn answers_read(&self, progress: &WriteProgress) -> Result<(), TransportError> {
        let mut stalled = pin!(progress.stalled());
        loop {
            let written = self.written.notified();
            if !lock(&self.writes).has_unread_answers() {
                return Ok(());
            }
            tokio::select! {
                () = written => {}
                stalled = stalled.as_mut() => return Err(stalled),
            }
        }
    }

    /// Counts a dropped message, and logs some of them.
    fn dropped(&self, reason: DropReason) {
        self.observer.dropped(reason);
        if let Some(count) = lock(&self.drops).add(Instant::now()) {
            let (server, reason) = (&*self.server, reason.as_str());
            tracing::warn!(server, reason, count, "messages of the server dropped");
        }
    }

    /// Delivers an event to a call, and counts the events dropped for it.
    fn deliver(&self, inbox: &Inbox, event: CallEvent) {
        for _ in 0..inbox.put(event) {
            self.observer.dropped(DropReason::SlowCall);
        }
    }

    /// Ends all calls after the loss of a message that ended the connection.
    fn fail_all(&self, failure: &CallFailure) {
        for (_, pending) in lock(&self.calls).pending.drain() {
            pending.inbox.put(CallEvent::Failed(failure.clone()));
        }
    }

    /// Ends the connection with all calls. Later calls fail at once.
    fn end(&self, why: &FailureText) {
        let mut calls = lock(&self.calls);
        calls.gone = Some(why.clone());
        let unsent = lock(&self.writes).close();
        for (id, pending) in calls.pending.drain() {
            let loss = match unsent.contains(&id) {
                true => CallFailure::NotSent(why.clone()),
                false => CallFailure::ConnectionLost(why.clone()),
            };
            pending.inbox.put(CallEvent::Failed(loss));
        }
        drop(calls);
        self.waiting.notify_one();
        self.written.notify_waiters();
    }
}

impl StdioCall {
    /// Returns true if the connection ended before the request was sent.
    pub(super) const fn was_unsent(&self) -> bool {
        self.is_unsent
    }

    /// Prevents the cancellation of the request.
    pub(super) fn forget(&mut self) {
        self.is_over = true;
        lock(&self.shared.calls).pending.remove(&self.id);
    }

    pub(super) async fn next(&mut self) -> CallEvent {
        let event = self.inbox.take().await;
        if matches!(event, CallEvent::Response(_) | CallEvent::Failed(_)) {
            self.is_over = true;
        }
        event
    }
}

impl Drop for StdioCall {
    /// Cancels the request at the server.
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        let was_open = lock(&self.shared.calls).pending.remove(&self.id).is_some();
        let must_cancel =
            was_open && self.is_queued && !lock(&self.shared.writes).withdraw(self.id);
        if must_cancel {
            let text = cancellation(&Id::number(self.id));
            self.shared.push(Kind::Notification, text);
        }
    }
}

async fn run(
    link: Link,
    process: Option<Process>,
    shared: Arc<Shared>,
    unsolicited: UnsolicitedSender,
    stopped: oneshot::Receiver<()>,
    hooks: Arc<dyn Hooks>,
) {
    let Link { mut source, sink } = link;
    let progress = sink.progress();
    let mut writer = tokio::spawn(write(sink, Arc::clone(&shared)));
    let end = tokio::select! {
        end = Reader::new(&shared, &unsolicited, &progress).run(&mut source) => Some(end),
        _ = stopped => None,
    };
    let was_lost = end.is_some();
    // Writes pause until the exit status is known.
    lock(&shared.writes).pause();
    let mut why = FailureText::from(end.unwrap_or_default().cause());
    if let Some(process) = &process
        && was_lost
    {
        let status = timeout(EXIT_TIMEOUT, process.wait()).await;
        if let Ok(Ok(status)) = status {
            why.cause = format!("the server process ended ({})", exit_text(status));
        }
        let tail = process.stderr_tail();
        let last = tail.trim_end().rsplit('\n').next().unwrap_or_default();
        why.stderr = last.to_owned();
    }
    // The supervisor learns of the failure before callers release the instance.
    if was_lost {
        hooks.lost(why.clone());
    }
    shared.end(&why);
    // Signals the end of unsolicited messages.
    drop(unsolicited);
    // The writer closes the pipe after its last message, which asks the process to exit.
    let flush = async {
        if timeout(FLUSH_TIMEOUT, &mut writer).await.is_err() {
            writer.abort();
        }
    };
    // A server that still writes must not block.
    let discard = async {
        while source.fill().await.unwrap_or_default() {
            while source.next_line().is_some() {}
        }
    };
    match process {
        Some(process) => tokio::select! {
            () = async { flush.await; stop(process, &*hooks).await } => {}
            () = async { discard.await; std::future::pending().await } => {}
        },
        None => drop(tokio::join!(flush, timeout(FLUSH_TIMEOUT, discard))),
    }
}

/// Stops a process that was asked to exit.
pub(super) async fn stop(process: Process, hooks: &dyn Hooks) {
    hooks.process_event(ProcessEvent::StopAttempt);
    match process.shutdown(Grace::default()).await {
        Ok(_) => hooks.process_event(ProcessEvent::StopSuccess),
        Err(error) => {
            tracing::warn!(%error, "failed to stop the server process");
            hooks.process_event(ProcessEvent::StopFailure(&error));
        }
    }
}

/// Writes queued messages in batches.
async fn write(mut sink: LineSink, shared: Arc<Shared>) {
    loop {
        let batch = lock(&shared.writes).take();
        shared.written.notify_waiters();
        for text in &batch.texts {
            sink.push(text);
        }
        if let Err(error) = sink.flush().await {
            tracing::debug!(%error, "failed to write to the server");
            return;
        }
        if batch.is_last {
            // The peer may have closed its side first.
            let _ = sink.close().await;
            return;
        }
        if batch.texts.is_empty() {
            shared.waiting.notified().await;
        }
    }
}

/// End of a connection that was not closed here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum End {
    #[default]
    Closed,
    /// The server does not read.
    Stalled,
}

impl End {
    const fn cause(self) -> &'static str {
        match self {
            Self::Closed => "the server closed the connection",
            Self::Stalled => "the server was disconnected: it does not read",
        }
    }
}

impl From<TransportError> for End {
    fn from(error: TransportError) -> Self {
        match error {
            TransportError::Stalled { .. } => Self::Stalled,
            _ => Self::Closed,
        }
    }
}

/// Reader of the messages of a server.
struct Reader<'a> {
    shared: &'a Arc<Shared>,
    unsolicited: &'a UnsolicitedSender,
    progress: &'a WriteProgress,
    limit: NotificationLimit,
}

impl<'a> Reader<'a> {
    fn new(
        shared: &'a Arc<Shared>,
        unsolicited: &'a UnsolicitedSender,
        progress: &'a WriteProgress,
    ) -> Self {
        Self {
            shared,
            unsolicited,
            progress,
            limit: NotificationLimit::new(Instant::now()),
        }
    }

    /// Reads until the server closes its side, or no longer reads what it asked for.
    async fn run(mut self, source: &mut LineSource) -> End {
        loop {
            let begin = Instant::now();
            let calls_in_flight = lock(&self.shared.calls).pending.len();
            self.limit.refill(begin, calls_in_flight);
            while let Some(notification) = self.limit.release() {
                self.forward(notification);
            }
            if let Err(error) = self.read_lines(source).await {
                let server = &*self.shared.server;
                tracing::warn!(server, %error, "server disconnected");
                return error.into();
            }
            if let Some(pause) = self.limit.pause_after(|| begin.elapsed()) {
                tokio::time::sleep(pause).await;
            }
            let filled = tokio::select! {
                biased;
                filled = source.fill() => filled,
                () = tokio::time::sleep(HELD_INTERVAL), if self.limit.is_holding() => continue,
            };
            match filled {
                Ok(true) => {}
                Ok(false) => return End::Closed,
                Err(error) => {
                    match error {
                        TransportError::TooLarge { limit } => {
                            self.shared.fail_all(&CallFailure::ResponseTooLarge(limit));
                        }
                        TransportError::Memory(_) => {
                            self.shared.observer.dropped(DropReason::MemoryExhausted);
                            self.shared.fail_all(&CallFailure::MemoryExhausted);
                        }
                        _ => {}
                    }
                    tracing::debug!(%error, "connection lost");
                    return error.into();
                }
            }
        }
    }

    /// Reads the lines that have arrived.
    async fn read_lines(&mut self, source: &mut LineSource) -> Result<(), TransportError> {
        while let Some(line) = source.next_line() {
            match line {
                Line::Json(bytes) => {
                    let bytes = Bytes::copy_from_slice(bytes);
                    let bytes = source.charged(bytes);
                    self.receive(&bytes).await?;
                }
                Line::Noise(bytes) => {
                    self.count();
                    self.shared.observer.dropped(DropReason::NotJson);
                    self.shared.observer.noise(bytes);
                    tracing::debug!(
                        length = bytes.len(),
                        "line from the server dropped: not JSON"
                    );
                }
                Line::TooLong { limit, ends } => {
                    let ends = ends.to_vec();
                    let failure = if source.was_short_of_memory() {
                        self.shared.observer.dropped(DropReason::MemoryExhausted);
                        tracing::warn!("line from the server dropped: {MemoryExhausted}");
                        CallFailure::MemoryExhausted
                    } else {
                        self.shared.observer.dropped(DropReason::TooLong);
                        tracing::warn!(limit, "line from the server dropped: too long");
                        CallFailure::ResponseTooLarge(limit)
                    };
                    fail_oversized(&ends, failure, self.shared);
                }
            }
        }
        Ok(())
    }

    async fn receive(&mut self, bytes: &Bytes) -> Result<(), TransportError> {
        let Some(all) = batch(bytes) else {
            self.deliver(bytes);
            return self.shared.answers_read(self.progress).await;
        };
        for one in &all {
            self.deliver(one);
            self.shared.answers_read(self.progress).await?;
        }
        Ok(())
    }

    /// Counts a message that is no response to a call. A handler limits its server itself.
    fn count(&mut self) {
        if self.shared.handler.is_none() {
            self.limit.count();
        }
    }

    fn deliver(&mut self, bytes: &Bytes) {
        let shared = self.shared;
        let handler = shared.handler.as_deref();
        match parse(bytes, handler) {
            Incoming::Response(id, reply) => {
                let id = id.and_then(|id| id.raw().parse::<i64>().ok());
                let pending = id.and_then(|id| lock(&shared.calls).pending.remove(&id));
                match pending {
                    Some(pending) => drop(pending.inbox.put(CallEvent::Response(reply))),
                    None => {
                        self.count();
                        shared.observer.dropped(DropReason::LateAnswer);
                        tracing::debug!("response dropped: no pending request");
                    }
                }
            }
            Incoming::Notification(notification) => match self.limit.admit(notification) {
                Admission::Forward(notification) => self.forward(notification),
                Admission::Held => {}
                Admission::Dropped => shared.dropped(DropReason::RateLimited),
            },
            Incoming::Handled => {}
            Incoming::Request(request) => {
                self.count();
                self.request(request);
            }
            Incoming::Invalid(why) => {
                self.count();
                shared.observer.dropped(why);
                fail_unreadable(bytes, shared);
            }
        }
    }

    fn forward(&self, notification: ServerNotification) {
        let shared = self.shared;
        shared.observer.notification(&notification);
        match owner_of_notification(&notification, shared) {
            Some(inbox) => shared.deliver(&inbox, CallEvent::Notification(notification)),
            None => self.send_unsolicited(Unsolicited::Notification(notification)),
        }
    }

    fn request(&self, request: ServerRequest) {
        let shared = self.shared;
        let handler = shared.handler.as_deref();
        if request.method == Some(Method::Ping) && handler.is_none() {
            let text = codec::result(request.id.as_ref(), "{}");
            return shared.push(Kind::Answer, text);
        }
        let Some(open) = shared.requests.admit(&request) else {
            shared.dropped(DropReason::TooManyRequests);
            return shared.push(Kind::Answer, request.refusal());
        };
        let path = StdioReplyPath {
            shared: Arc::clone(shared),
            _open: open,
        };
        let request = request.reply_to(ReplyPath::Stdio(path));
        if let Some(handler) = handler {
            return handler.request(request);
        }
        match owner_of_request(&request, shared) {
            Some(inbox) => shared.deliver(&inbox, CallEvent::Request(request)),
            None => self.send_unsolicited(Unsolicited::Request(request)),
        }
    }

    fn send_unsolicited(&self, message: Unsolicited) {
        if self.unsolicited.try_send(message).is_err() {
            self.shared.dropped(DropReason::NoReader);
        }
    }
}

/// Ends the call that an unreadable response belongs to.
fn fail_unreadable(line: &[u8], shared: &Shared) {
    let id = answered(line);
    if let Some(pending) = id.and_then(|id| lock(&shared.calls).pending.remove(&id)) {
        let why = String::from("the response is not JSON-RPC or nested too deeply");
        pending
            .inbox
            .put(CallEvent::Failed(CallFailure::ConnectionLost(why.into())));
    }
}

/// Ends the call that an oversized response belongs to.
///
/// Without a readable id the response can only be attributed if one call is in flight. Otherwise its call times out.
fn fail_oversized(ends: &[u8], failure: CallFailure, shared: &Shared) {
    let mut calls = lock(&shared.calls);
    let only = || calls.only_call().filter(|_| is_answer(ends));
    let id = answered(ends).or_else(only);
    if let Some(pending) = id.and_then(|id| calls.pending.remove(&id)) {
        pending.inbox.put(CallEvent::Failed(failure));
    }
}

/// Returns the task id of a `tasks/result` request.
fn task_of_result(request: RawRequest<'_>) -> Option<Box<str>> {
    request.method.filter(|m| *m == Method::TasksResult)?;
    let params = Object::parse(request.params?).ok()?;
    params.get_str("taskId").map(|id| Box::from(id.as_ref()))
}

/// Returns the call that a server request belongs to.
///
/// `2025-11-25 basic/utilities/tasks#associating-task-related-messages`: a request for a task names it.
fn owner_of_request(request: &ServerRequest, shared: &Shared) -> Option<Arc<Inbox>> {
    let Some(task) = related_task(&request.params) else {
        return only_call_with(shared, Method::may_ask_for_input);
    };
    let calls = lock(&shared.calls);
    let mut all = calls.pending.values();
    let waiting = all.find(|pending| pending.task.as_deref() == Some(&*task));
    waiting.map(|pending| Arc::clone(&pending.inbox))
}

/// Returns the call that a notification belongs to, as far as the connection shows it.
fn owner_of_notification(notification: &ServerNotification, shared: &Shared) -> Option<Arc<Inbox>> {
    let params = Object::parse(&notification.params).unwrap_or_default();
    let by_id = |raw: Option<&str>| {
        let id = raw?.parse::<i64>().ok()?;
        let calls = lock(&shared.calls);
        calls.pending.get(&id).map(|p| Arc::clone(&p.inbox))
    };
    match notification.method {
        Method::Progress => by_id(params.get("progressToken")),
        // A legacy server cancels its own request, under its own id.
        Method::Cancelled if shared.era == Era::Legacy => only_call_with(shared, may_ask),
        Method::Cancelled => by_id(
            params
                .get("requestId")
                .and_then(IdRef::from_token)
                .map(IdRef::raw),
        ),
        Method::LoggingMessage => only_call_with(shared, may_log),
        _ => {
            let meta = Object::parse(params.get("_meta")?).ok()?;
            by_id(meta.get(mcpact_spec::tables::meta::SUBSCRIPTION_ID))
        }
    }
}

/// Returns true for methods during which a legacy server may send requests.
const fn may_ask(method: Method) -> bool {
    method.may_ask_for_input() || matches!(method, Method::TasksResult)
}

/// Returns true for methods that server logs may be about: not subscriptions or requests of the gateway itself.
const fn may_log(method: Method) -> bool {
    !matches!(
        method,
        Method::SubscriptionsListen
            | Method::LoggingSetLevel
            | Method::TasksGet
            | Method::TasksResult
            | Method::TasksCancel
    )
}

/// Returns the call with such a method, if there is exactly one.
fn only_call_with(shared: &Shared, matches_method: impl Fn(Method) -> bool) -> Option<Arc<Inbox>> {
    let calls = lock(&shared.calls);
    let mut all = calls
        .pending
        .values()
        .filter(|pending| pending.method.is_some_and(&matches_method));
    let first = all.next()?;
    all.next().is_none().then(|| Arc::clone(&first.inbox))
}

/// Added by shells to the number of a signal that ended a process.
#[cfg(unix)]
const SIGNAL_STATUS: i32 = 128;

/// Returns the exit status as text. A guard process reports a signal of its child like a shell.
pub(super) fn exit_text(status: ExitStatus) -> String {
    #[cfg(unix)]
    if let Some(signal @ 1..=64) = status.code().map(|code| code - SIGNAL_STATUS) {
        use std::os::unix::process::ExitStatusExt as _;
        return format!("{status}, as after {}", ExitStatus::from_raw(signal));
    }
    status.to_string()
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;

    use super::*;

    #[test]
    fn exit_text_names_the_signal() {
        let cases = [
            (0x0300, "exit status: 3"),
            (9, "signal: 9 (SIGKILL)"),
            (137 << 8, "exit status: 137, as after signal: 9 (SIGKILL)"),
            (0xff00, "exit status: 255"),
        ];
        for (raw, expected) in cases {
            assert_eq!(exit_text(ExitStatus::from_raw(raw)), expected);
        }
    }
}
