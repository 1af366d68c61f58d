//! A server on a carrier of lines: one task per connection, many requests at once.

use std::collections::HashMap;
use std::sync::Arc;
use std::task::Poll;

use bytes::Bytes;
use futures_util::future::{AbortHandle, Abortable, BoxFuture};
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};
use mcpact_engine::refusal::WireError;
use mcpact_engine::server::Scope;
use mcpact_spec::Method;
use mcpact_transport::link::{LineSink, Link};
use mcpact_wire::frame::ndjson::Line;
use mcpact_wire::id::{Id, IdRef};
use mcpact_wire::raw::Object;
use tokio::sync::mpsc;

use super::context::{Outbox, Parcel};
use super::dispatch::Core;
use super::session::{Deed, Job, Session};
use crate::error::Error;

/// How many messages of running requests may wait to be written.
const BACKLOG: usize = 1024;

/// How often deadlines are looked at.
const TICK: std::time::Duration = std::time::Duration::from_secs(1);

/// A request that ended: its id, and its outcome unless it was cancelled.
struct Done {
    id: Id,
    outcome: Option<Result<String, WireError>>,
}

struct Connection {
    core: Arc<Core>,
    session: Arc<Session>,
    sink: LineSink,
    outbox: mpsc::Sender<Parcel>,
    parcels: mpsc::Receiver<Parcel>,
    running: FuturesUnordered<BoxFuture<'static, Done>>,
    aborts: HashMap<Id, AbortHandle>,
    is_open: bool,
}

/// How long requests may go on after the client has closed its side.
const DRAIN: std::time::Duration = std::time::Duration::from_secs(1);

/// Serves until the client closes its side; what it asked for before gets a moment to finish.
pub(super) async fn run(core: Arc<Core>, link: Link) -> Result<(), Error> {
    let Link { mut source, sink } = link;
    let session = Arc::new(Session::new(&core.terms));
    let (outbox, parcels) = mpsc::channel(BACKLOG);
    core.changes
        .add(&session, Scope::Connection, outbox.clone());
    let mut connection = Connection {
        core,
        session,
        sink,
        outbox,
        parcels,
        running: FuturesUnordered::new(),
        aborts: HashMap::new(),
        is_open: true,
    };
    let mut ticks = tokio::time::interval(TICK);
    while connection.is_open {
        while let Some(line) = source.next_line() {
            match line {
                Line::Json(bytes) => {
                    let bytes = Bytes::copy_from_slice(bytes);
                    connection.receive(&bytes).await;
                }
                Line::Noise(bytes) => {
                    tracing::warn!(
                        length = bytes.len(),
                        "the client wrote a line that is not JSON"
                    );
                    let bytes = Bytes::copy_from_slice(bytes);
                    connection.receive(&bytes).await;
                }
                Line::TooLong { limit } => {
                    tracing::warn!(limit, "the client wrote a line that is too long");
                    connection.receive(&Bytes::from_static(b"{")).await;
                }
            }
        }
        connection.sink.flush().await?;
        tokio::select! {
            more = source.fill() => {
                if !more? {
                    while let Some(Line::Json(bytes)) = source.next_line() {
                        let bytes = Bytes::copy_from_slice(bytes);
                        connection.receive(&bytes).await;
                    }
                    connection.is_open = false;
                }
            }
            Some(parcel) = connection.parcels.recv() => connection.write(parcel),
            Some(done) = connection.running.next() => connection.finish(done),
            _ = ticks.tick() => {
                let deeds = connection.session.tick();
                connection.perform(deeds).await;
            }
        }
        connection.gather();
    }
    let _ = tokio::time::timeout(DRAIN, connection.drain()).await;
    connection.session.close();
    connection.sink.close().await?;
    Ok(())
}

impl Connection {
    async fn receive(&mut self, bytes: &Bytes) {
        let deeds = self.session.bytes(bytes);
        self.perform(deeds).await;
    }

    async fn perform(&mut self, deeds: Vec<Deed>) {
        for deed in deeds {
            match deed {
                Deed::Write(text) | Deed::Reply { text, .. } => self.sink.push(&text),
                Deed::Serve(job) => self.start(job).await,
                Deed::Observe {
                    method: Some(Method::Cancelled),
                    params,
                } => self.abort(params.as_deref()),
                Deed::HangUp => self.is_open = false,
                Deed::Observe { .. } | Deed::Concluded(_) => {}
                Deed::Withheld(why) => tracing::debug!(why, "not sent"),
            }
        }
    }

    /// Runs a request as far as it goes at once; most end right here, without a task or a queue.
    async fn start(&mut self, job: Job) {
        let id = job.id.clone();
        let outbox = Outbox(self.outbox.clone());
        let serve = Arc::clone(&self.core).serve(job, Arc::clone(&self.session), outbox);
        let (abort, registration) = AbortHandle::new_pair();
        let done_id = id.clone();
        let mut future = Abortable::new(serve, registration)
            .map(move |ended| Done {
                id: done_id,
                outcome: ended.ok(),
            })
            .boxed();
        match std::future::poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx))).await {
            Poll::Ready(done) => self.finish(done),
            Poll::Pending => {
                self.aborts.insert(id, abort);
                self.running.push(future);
            }
        }
    }

    fn abort(&mut self, params: Option<&str>) {
        let object = Object::parse(params.unwrap_or("{}")).unwrap_or_default();
        let id = object
            .get("requestId")
            .and_then(IdRef::from_token)
            .map(IdRef::to_id);
        if let Some(abort) = id.and_then(|id| self.aborts.remove(&id)) {
            abort.abort();
        }
    }

    /// Writes an answer behind everything that its handler sent before.
    fn finish(&mut self, done: Done) {
        self.aborts.remove(&done.id);
        while let Ok(parcel) = self.parcels.try_recv() {
            self.write(parcel);
        }
        let cancelled = || WireError {
            code: -32603,
            message: String::from("cancelled"),
            data: None,
            http_status: 200,
        };
        let outcome = done.outcome.unwrap_or_else(|| Err(cancelled()));
        for deed in self.session.answer(done.id, outcome) {
            if let Deed::Reply { text, .. } = deed {
                self.sink.push(&text);
            }
        }
    }

    async fn drain(&mut self) {
        while let Some(done) = self.running.next().await {
            self.finish(done);
        }
    }

    fn write(&mut self, parcel: Parcel) {
        match parcel {
            Parcel::Message(text) | Parcel::Answer(text, _) => self.sink.push(&text),
            Parcel::Disconnect(_) => {}
        }
    }

    /// Takes whatever else is ready, so that it leaves in the same write.
    fn gather(&mut self) {
        while let Ok(parcel) = self.parcels.try_recv() {
            self.write(parcel);
        }
        while let Some(Some(done)) = self.running.next().now_or_never() {
            self.finish(done);
        }
    }
}
