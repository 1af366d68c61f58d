//! A server on a carrier of lines: one connection, many calls at once.

mod outgoing;
mod way_back;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use mcpact_engine::shutdown::Grace;
use mcpact_spec::{Era, Method};
use mcpact_transport::link::{LineSink, LineSource, Link};
use mcpact_transport::stdio::child::Process;
use mcpact_wire::codec;
use mcpact_wire::frame::ndjson::Line;
use mcpact_wire::frame::unreadable::{answered, is_answer};
use mcpact_wire::id::{Id, IdRef};
use mcpact_wire::raw::{Object, ObjectWriter, elements};
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::time::timeout;

use self::outgoing::Outgoing;
pub(super) use self::way_back::WayBack;
use super::ask::Ask;
use super::mail::{Event, Loss, Mail, Note, Sorted, Stray, related_task, sort};
use super::{Ordered, exit};
use crate::error::FailureText;
use crate::figures::ServerFigures;
use crate::stable::DropReason;
use crate::supervisor::Life;

/// How long the log of a program that has closed its output is waited for.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// How long a server may take to read what is still written to it at the end.
const FAREWELL: Duration = Duration::from_secs(2);

/// What reader, writer and callers share.
#[derive(Debug)]
struct Shared {
    era: Era,
    figures: Arc<ServerFigures>,
    calls: Mutex<Calls>,
    outgoing: Mutex<Outgoing>,
    written: Notify,
    waiting: Notify,
}

#[derive(Debug, Default)]
struct Calls {
    pending: HashMap<i64, Pending>,
    gone: Option<FailureText>,
}

impl Calls {
    /// The only call that an answer can be for; a subscription is open all the time.
    fn alone(&self) -> Option<i64> {
        let is_call = |pending: &Pending| pending.method != Some(Method::SubscriptionsListen);
        let mut calls = self.pending.iter().filter(|(_, pending)| is_call(pending));
        let (number, _) = calls.next()?;
        calls.next().is_none().then_some(*number)
    }
}

#[derive(Debug)]
struct Pending {
    mail: Arc<Mail>,
    method: Option<Method>,
    /// The task whose result is asked for.
    task: Option<Box<str>>,
}

/// The connection; dropping it ends it, and the program behind it.
#[derive(Debug)]
pub(super) struct LinesWire {
    shared: Arc<Shared>,
    /// Dropped with the wire, which is how the keeper learns that it may go.
    stop: Mutex<Option<oneshot::Sender<()>>>,
}

/// A request on the connection.
#[derive(Debug)]
pub(super) struct LinesCall {
    shared: Arc<Shared>,
    mail: Arc<Mail>,
    number: i64,
    is_over: bool,
    /// Whether the connection was gone before it could be sent.
    is_unsent: bool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl LinesWire {
    /// Takes over a connection on which there is an agreement.
    pub(super) fn keep(
        link: Link,
        era: Era,
        process: Option<Process>,
        strays: mpsc::Sender<Stray>,
        life: Life,
    ) -> Self {
        let shared = Arc::new(Shared {
            era,
            figures: Arc::clone(life.figures()),
            calls: Mutex::default(),
            outgoing: Mutex::default(),
            written: Notify::new(),
            waiting: Notify::new(),
        });
        let (stop, stopped) = oneshot::channel();
        let keeping = keep(link, process, Arc::clone(&shared), strays, stopped, life);
        tokio::spawn(keeping);
        Self {
            shared,
            stop: Mutex::new(Some(stop)),
        }
    }

    /// Ends it, whoever uses it.
    pub(super) fn close(&self) {
        self.shared.end(&"the connection was ended".into());
        *lock(&self.stop) = None;
    }

    pub(super) fn is_gone(&self) -> bool {
        lock(&self.shared.calls).gone.is_some()
    }

    /// Why it is gone, if it is.
    pub(super) fn end(&self) -> Option<FailureText> {
        lock(&self.shared.calls).gone.clone()
    }

    pub(super) async fn call(&self, number: i64, order: Ordered<'_>, text: String) -> LinesCall {
        let mail = Arc::<Mail>::default();
        let mut call = LinesCall {
            shared: Arc::clone(&self.shared),
            mail: Arc::clone(&mail),
            number,
            is_over: false,
            is_unsent: false,
        };
        {
            let mut calls = lock(&self.shared.calls);
            if let Some(why) = &calls.gone {
                mail.put(Event::Lost(Loss::Unsent(why.clone())));
                call.is_over = true;
                call.is_unsent = true;
                drop(calls);
                return call;
            }
            let pending = Pending {
                mail,
                method: order.method,
                task: result_wanted(order),
            };
            calls.pending.insert(number, pending);
        }
        call.is_unsent = !self.shared.send(Some(number), text).await;
        call
    }

    pub(super) async fn send(&self, text: String) {
        // Whoever has gone needs to hear nothing.
        let _ = self.shared.send(None, text).await;
    }
}

impl Shared {
    /// Hands a message to the writer, once there is room for it; whether it was still taken.
    async fn send(&self, call: Option<i64>, text: String) -> bool {
        loop {
            let written = self.written.notified();
            {
                let mut outgoing = lock(&self.outgoing);
                if outgoing.has_room() {
                    self.waiting.notify_one();
                    return outgoing.push(call, text);
                }
            }
            written.await;
        }
    }

    /// As [`send`](Self::send), for what must not wait.
    fn push(&self, text: String) {
        lock(&self.outgoing).push(None, text);
        self.waiting.notify_one();
    }

    /// Gives a call what belongs to it; one that does not read misses what it can do without.
    fn hand(&self, mail: &Mail, event: Event) {
        for _ in 0..mail.put(event) {
            self.figures.dropped(DropReason::SlowCall);
        }
    }

    /// Ends every call; whatever comes later ends at once.
    fn end(&self, why: &FailureText) {
        let mut calls = lock(&self.calls);
        calls.gone = Some(why.clone());
        let unsent = lock(&self.outgoing).close();
        for (number, pending) in calls.pending.drain() {
            let loss = match unsent.contains(&number) {
                true => Loss::Unsent(why.clone()),
                false => Loss::Connection(why.clone()),
            };
            pending.mail.put(Event::Lost(loss));
        }
        drop(calls);
        self.waiting.notify_one();
        self.written.notify_waiters();
    }
}

impl LinesCall {
    /// Whether the connection was gone before.
    pub(super) const fn was_unsent(&self) -> bool {
        self.is_unsent
    }

    pub(super) async fn next(&mut self) -> Event {
        let event = self.mail.take().await;
        if matches!(event, Event::Done(_) | Event::Lost(_)) {
            self.is_over = true;
        }
        event
    }
}

impl Drop for LinesCall {
    /// Whoever asked has gone: the server is told, and its answer is not waited for.
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        let was_open = lock(&self.shared.calls)
            .pending
            .remove(&self.number)
            .is_some();
        if was_open {
            let id = Id::number(self.number);
            let params = ObjectWriter::new().raw("requestId", id.raw()).finish();
            self.shared
                .push(codec::call(None, Method::Cancelled.as_str(), Some(&params)));
        }
    }
}

async fn keep(
    link: Link,
    process: Option<Process>,
    shared: Arc<Shared>,
    strays: mpsc::Sender<Stray>,
    stopped: oneshot::Receiver<()>,
    life: Life,
) {
    let Link { source, sink } = link;
    let mut writer = tokio::spawn(write(sink, Arc::clone(&shared)));
    let is_wanted = tokio::select! {
        () = read(source, &shared, &strays) => true,
        _ = stopped => false,
    };
    // How it has ended is told a moment later; nobody is sent there meanwhile.
    lock(&shared.outgoing).hold();
    let mut why = FailureText::from("the server closed the connection");
    if let Some(process) = &process
        && is_wanted
    {
        let status = timeout(LAST_WORDS, process.wait()).await;
        if let Ok(Ok(status)) = status {
            why.cause = format!("the server process ended ({})", exit::in_words(status));
        }
        let tail = process.stderr_tail();
        let last = tail.trim_end().rsplit('\n').next().unwrap_or_default();
        why.stderr = last.to_owned();
    }
    // Before others hear of it, who would let go of the connection as if it were not needed.
    if is_wanted {
        life.fell(why.clone());
    }
    shared.end(&why);
    // Whoever hears what belongs to no call learns that nothing more comes.
    drop(strays);
    // The writer closes the pipe behind its last message; a process takes that as the end.
    if timeout(FAREWELL, &mut writer).await.is_err() {
        writer.abort();
    }
    if let Some(process) = process
        && let Err(error) = process.shutdown(Grace::default()).await
    {
        tracing::warn!(%error, "failed to stop the server process");
    }
}

/// Writes whatever waits, everything in one go.
async fn write(mut sink: LineSink, shared: Arc<Shared>) {
    loop {
        let (texts, is_closed) = lock(&shared.outgoing).take();
        shared.written.notify_waiters();
        for text in &texts {
            sink.push(text);
        }
        if let Err(error) = sink.flush().await {
            tracing::debug!(%error, "failed to write to the server");
            return;
        }
        if is_closed {
            // The peer may have closed its side first.
            let _ = sink.close().await;
            return;
        }
        if texts.is_empty() {
            shared.waiting.notified().await;
        }
    }
}

/// Reads until the server closes its side.
async fn read(mut source: LineSource, shared: &Arc<Shared>, strays: &mpsc::Sender<Stray>) {
    loop {
        while let Some(line) = source.next_line() {
            match line {
                Line::Json(bytes) => receive(&Bytes::copy_from_slice(bytes), shared, strays),
                Line::Noise(bytes) => {
                    shared.figures.dropped(DropReason::NotJson);
                    tracing::debug!(
                        length = bytes.len(),
                        "line from the server dropped: not JSON"
                    );
                }
                Line::TooLong { limit, ends } => {
                    shared.figures.dropped(DropReason::TooLong);
                    tracing::warn!(limit, "line from the server dropped: too long");
                    miss(ends, limit, shared);
                }
            }
        }
        match source.fill().await {
            Ok(true) => {}
            Ok(false) => return,
            Err(error) => return tracing::debug!(%error, "connection lost"),
        }
    }
}

fn receive(bytes: &Bytes, shared: &Arc<Shared>, strays: &mpsc::Sender<Stray>) {
    // 2025-03-26 servers may answer in batches.
    if bytes.first() == Some(&b'[') {
        for one in elements(std::str::from_utf8(bytes).unwrap_or("[]")).unwrap_or_default() {
            deliver(&bytes.slice_ref(one.as_bytes()), shared, strays);
        }
        return;
    }
    deliver(bytes, shared, strays);
}

fn deliver(bytes: &Bytes, shared: &Arc<Shared>, strays: &mpsc::Sender<Stray>) {
    let stray = match sort(bytes) {
        Sorted::Reply(id, reply) => {
            let number = id.and_then(|id| id.raw().parse::<i64>().ok());
            let pending = number.and_then(|number| lock(&shared.calls).pending.remove(&number));
            match pending {
                Some(pending) => drop(pending.mail.put(Event::Done(reply))),
                None => {
                    shared.figures.dropped(DropReason::LateAnswer);
                    tracing::debug!("response dropped: no pending request");
                }
            }
            return;
        }
        Sorted::Note(note) => match owner_of_note(&note, shared) {
            Some(mail) => return shared.hand(&mail, Event::Note(note)),
            None => Stray::Note(note),
        },
        Sorted::Ask(ask) if ask.method == Some(Method::Ping) => {
            // A legacy peer is answered whatever else is going on.
            return shared.push(codec::result(ask.id.as_ref(), "{}"));
        }
        Sorted::Ask(ask) => {
            let ask = WayBack::of(shared, ask);
            match owner_of_ask(&ask, shared) {
                Some(mail) => return shared.hand(&mail, Event::Ask(ask)),
                None => Stray::Ask(ask),
            }
        }
        Sorted::Nothing(why) => {
            shared.figures.dropped(why);
            return spoil(bytes, shared);
        }
    };
    // Whoever does not read fast enough misses hints, and questions without a caller.
    if strays.try_send(stray).is_err() {
        shared.figures.dropped(DropReason::NoReader);
        tracing::warn!("message dropped: no matching call");
    }
}

/// Ends the call whose answer cannot be read: another one will not come.
fn spoil(line: &[u8], shared: &Shared) {
    let number = answered(line);
    if let Some(pending) = number.and_then(|number| lock(&shared.calls).pending.remove(&number)) {
        let why = String::from("its answer cannot be read: it is too deep, or no JSON-RPC");
        pending.mail.put(Event::Lost(Loss::Connection(why.into())));
    }
}

/// Ends the call whose answer was too long.
///
/// One that names nobody can only be told to a caller who is alone. Where several wait, all but one are
/// still answered: to tell them all would lose every answer, and the one waits no longer than any call may.
fn miss(ends: &[u8], limit: usize, shared: &Shared) {
    let mut calls = lock(&shared.calls);
    let alone = || calls.alone().filter(|_| is_answer(ends));
    let number = answered(ends).or_else(alone);
    if let Some(pending) = number.and_then(|number| calls.pending.remove(&number)) {
        pending.mail.put(Event::Lost(Loss::TooLong(limit)));
    }
}

/// The task whose result a request is for.
fn result_wanted(order: Ordered<'_>) -> Option<Box<str>> {
    order.method.filter(|m| *m == Method::TasksResult)?;
    let params = Object::parse(order.params).ok()?;
    params.get_str("taskId").map(|id| Box::from(id.as_ref()))
}

/// Whose question it is. `2025-11-25 basic/utilities/tasks#associating-task-related-messages`: one that
/// is for a task says so, and is nobody else's.
fn owner_of_ask(ask: &Ask, shared: &Shared) -> Option<Arc<Mail>> {
    let Some(task) = related_task(&ask.params) else {
        return sole(shared, may_ask);
    };
    let calls = lock(&shared.calls);
    let mut all = calls.pending.values();
    let waiting = all.find(|pending| pending.task.as_deref() == Some(&*task));
    waiting.map(|pending| Arc::clone(&pending.mail))
}

/// Whose notification it is, as far as that can be known on a connection that everybody shares.
fn owner_of_note(note: &Note, shared: &Shared) -> Option<Arc<Mail>> {
    let params = Object::parse(&note.params).unwrap_or_default();
    let by_number = |raw: Option<&str>| {
        let number = raw?.parse::<i64>().ok()?;
        let calls = lock(&shared.calls);
        calls.pending.get(&number).map(|p| Arc::clone(&p.mail))
    };
    match note.method {
        Method::Progress => by_number(params.get("progressToken")),
        // A legacy server takes a question of its own back, under its own id.
        Method::Cancelled if shared.era == Era::Legacy => sole(shared, may_ask),
        Method::Cancelled => by_number(
            params
                .get("requestId")
                .and_then(IdRef::from_token)
                .map(IdRef::raw),
        ),
        Method::LoggingMessage => sole(shared, may_log),
        _ => {
            let meta = Object::parse(params.get("_meta")?).ok()?;
            by_number(meta.get(mcpact_spec::tables::meta::SUBSCRIPTION_ID))
        }
    }
}

/// During what a legacy server may ask something.
const fn may_ask(method: Method) -> bool {
    method.may_ask_for_input() || matches!(method, Method::TasksResult)
}

/// What is open all the time, or asked for by ourselves, is not what a server logs about.
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

/// The only call of its kind, if there is exactly one.
fn sole(shared: &Shared, is_kind: impl Fn(Method) -> bool) -> Option<Arc<Mail>> {
    let calls = lock(&shared.calls);
    let mut all = calls
        .pending
        .values()
        .filter(|pending| pending.method.is_some_and(&is_kind));
    let first = all.next()?;
    all.next().is_none().then(|| Arc::clone(&first.mail))
}
