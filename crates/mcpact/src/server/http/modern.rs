//! Requests that stand alone: nothing is remembered, and a client that leaves cancels.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;

use bytestring::ByteString;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use futures_util::stream::unfold;
use mcpact_engine::classify::{HeaderField, TransportFacts, param_headers};
use mcpact_engine::refusal::{Dialect, Refusal, WireError};
use mcpact_spec::Method;
use mcpact_transport::http::server::{Answer, Arrival, KEEP_ALIVE};
use mcpact_transport::within::within;
use mcpact_wire::batch::Frame;
use mcpact_wire::codec;
use mcpact_wire::id::Id;
use mcpact_wire::raw::Object;

use super::legacy::reach;
use super::seen::seen;
use super::{HttpEndpoint, Memory, json};
use crate::server::backend::{Backend, Welcome};
use crate::server::event_log::frame as event;
use crate::server::held;
use crate::server::job::{Job, Reach};
use crate::server::outbox::{Outbox, Parcel, Parcels};
use crate::server::session::{Deed, Session};
use crate::server::visitor::{Mark, Visitor};

/// How many messages of a running request may wait to be written.
const BACKLOG: usize = 64;

/// Whether requests that run may go on. They are not woken when that ends: it ends when the server stops, and
/// every connection is looked at then.
#[derive(Clone, Debug, Default)]
pub(super) struct Patience(Arc<AtomicBool>);

impl Patience {
    /// No request may go on.
    pub(super) fn end(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// Until no request may go on.
    pub(super) async fn ended(&self) {
        std::future::poll_fn(|_| {
            if self.0.load(Ordering::Acquire) {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
        .await;
    }
}

/// A request on its way, owned by its response: dropping the response drops the work.
struct Running {
    session: Arc<Session>,
    id: Id,
    future: Option<BoxFuture<'static, Result<ByteString, WireError>>>,
    parcels: Parcels,
    /// As long as there is one, nobody has to be woken because the last one is gone.
    _outbox: Outbox,
    ready: Option<String>,
    last: Option<(String, u16)>,
    patience: Patience,
}

/// A request that is to be served.
struct Admitted {
    session: Arc<Session>,
    job: Job,
    /// What is to be written before anything else.
    written: Option<String>,
}

impl<B: Backend> HttpEndpoint<B> {
    pub(super) async fn modern(
        &self,
        arrival: &Arrival,
        body: &ByteString,
        frame: Frame<'_>,
        facts: TransportFacts<'_>,
        mark: Mark,
    ) -> Answer {
        // It has no session by which it could be known.
        let principal = self.principal(arrival);
        let visitor = Visitor { principal, mark };
        let welcome = match self.welcome(&frame, &visitor).await {
            Ok(welcome) => welcome,
            Err(answer) => return answer,
        };
        match self.admitted(arrival, body, frame, facts, welcome, &visitor) {
            Ok(Admitted {
                session,
                job,
                written,
            }) => self.run(arrival, session, job, written).await,
            Err(answer) => answer,
        }
    }

    /// The request that is to be served; otherwise the answer to it. Apart from what waits, which would keep
    /// room for everything here for as long as the request is served.
    fn admitted(
        &self,
        arrival: &Arrival,
        body: &ByteString,
        frame: Frame<'_>,
        facts: TransportFacts<'_>,
        welcome: Welcome,
        visitor: &Visitor,
    ) -> Result<Admitted, Answer> {
        let terms = Arc::clone(&welcome.terms);
        let known = self.known(&terms);
        let session = Arc::new(Session::remembering(
            welcome,
            known,
            visitor,
            self.backend.settings(),
        ));
        let mut written = None;
        let deeds = session.frame(body, frame, facts);
        *self.memory() = session.memory().map(|agreed| Memory { terms, agreed });
        for deed in deeds {
            match deed {
                Deed::Reply { text, status, .. } => return Err(Answer::json(status, json(text))),
                Deed::Negotiated(negotiation) => self.witness.tell("http", &negotiation),
                Deed::Write(text) => written = Some(text),
                Deed::Serve(job) => {
                    self.mirrored(arrival, &job)?;
                    let job = job.traced(arrival);
                    return Ok(Admitted {
                        session,
                        job,
                        written,
                    });
                }
                _ => {}
            }
        }
        Err(Answer::empty(202))
    }

    /// Tool parameters that have headers of their own must say the same there.
    fn mirrored(&self, arrival: &Arrival, job: &Job) -> Result<(), Answer> {
        if job.method != Some(Method::ToolsCall) {
            return Ok(());
        }
        let name = job.params.name().unwrap_or_default();
        let annotations = self.backend.mirrored(&name).unwrap_or_default();
        if annotations.is_empty() {
            return Ok(());
        }
        let params: &str = &job.params;
        let params = Object::parse(params).unwrap_or_default();
        let header = |name: &str| -> HeaderField<'_> { seen(arrival, name) };
        param_headers::check(&annotations, params.get("arguments"), header).map_err(|fault| {
            let dialect = Dialect {
                revision: job.pact.revision(),
                errors: self.backend.terms().policy.errors,
            };
            let refusal = Refusal::from(fault);
            self.tell_refused(&refusal, job.method);
            let error = refusal.on_wire(dialect);
            let text = codec::error(Some(job.id.as_ref()), &error.encode());
            Answer::json(error.http_status, json(text))
        })
    }

    /// JSON if there is nothing to say before the answer, and it comes soon; a stream otherwise.
    async fn run(
        &self,
        arrival: &Arrival,
        session: Arc<Session>,
        job: Job,
        written: Option<String>,
    ) -> Answer {
        let (outbox, parcels) = Outbox::new(BACKLOG);
        let id = job.id.clone();
        let backend = Arc::clone(&self.backend);
        let serving = held::serve(backend, job, Arc::clone(&session), outbox.clone());
        let mut running = Running {
            session,
            id,
            future: Some(serving.boxed()),
            parcels,
            _outbox: outbox,
            ready: written,
            last: None,
            patience: self.patience.clone(),
        };
        while running.ready.is_none() {
            match within(KEEP_ALIVE, running.step()).await {
                Some(Some(Said::Message(text))) => running.ready = Some(text),
                Some(Some(Said::Answer(text, status))) => return Answer::json(status, json(text)),
                Some(None) => return Answer::empty(202),
                // Whoever stands between may take silence for the end.
                None if reach(arrival) == Reach::Stream => break,
                None => {}
            }
        }
        Answer::events(unfold(running, |mut running| async move {
            if let Some(text) = running.ready.take() {
                return Some((event(None, &text, None), running));
            }
            match running.step().await? {
                Said::Message(text) | Said::Answer(text, _) => {
                    Some((event(None, &text, None), running))
                }
            }
        }))
    }
}

/// What a running request says next.
enum Said {
    Message(String),
    Answer(String, u16),
}

impl Running {
    /// The next message, or the answer once everything before it is said.
    async fn step(&mut self) -> Option<Said> {
        loop {
            if let Some(text) = self.message() {
                return Some(Said::Message(text));
            }
            if let Some((text, status)) = self.last.take() {
                return Some(Said::Answer(text, status));
            }
            let future = self.future.as_mut()?;
            tokio::select! {
                biased;
                outcome = future => return self.end(outcome),
                // Whoever serves may let go of the outbox before it has an answer.
                Some(parcel) = self.parcels.take() => match parcel {
                    Parcel::Message(text) => return Some(Said::Message(text)),
                    Parcel::Answer(..) | Parcel::Disconnect(_) => {}
                },
                () = self.patience.ended() => return self.end(Err(held::cut_off())),
            }
        }
    }

    /// The work has ended; its answer waits behind what was said before it.
    fn end(&mut self, outcome: Result<ByteString, WireError>) -> Option<Said> {
        self.future = None;
        let last = self.answer(outcome);
        match self.message() {
            Some(text) => {
                self.last = last;
                Some(Said::Message(text))
            }
            None => last.map(|(text, status)| Said::Answer(text, status)),
        }
    }

    fn message(&mut self) -> Option<String> {
        while let Some(parcel) = self.parcels.try_take() {
            if let Parcel::Message(text) = parcel {
                return Some(text);
            }
        }
        None
    }

    fn answer(&self, outcome: Result<ByteString, WireError>) -> Option<(String, u16)> {
        let deeds = self.session.answer(self.id.clone(), outcome);
        deeds.into_iter().find_map(|deed| match deed {
            Deed::Reply { text, status, .. } => Some((text, status)),
            _ => None,
        })
    }
}
