//! Connects to a server and negotiates, with the engine's client state machine, over any transport.

use std::borrow::Cow;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use crate::log::{NegotiationLog, ProcessEvent};
use bytes::Bytes;
use http::HeaderValue;
use mcpact_engine::capability::CapabilitySet;
use mcpact_engine::client::{
    Client as Machine, ClientTerms, EraMode, EraVerdict, Failure, Input, Phase, ProbeFailure,
    TransportKind,
};
use mcpact_engine::effect::{Effect, Severity};
use mcpact_engine::pact::Pact;
use mcpact_engine::policy::{Policy, Reading};
use mcpact_engine::refusal::Incompatible;
use mcpact_engine::time::Moment;
use mcpact_engine::transcript::Transcript;
use mcpact_spec::Era;
use mcpact_translate::lifecycle::Introduction;
use mcpact_transport::http::client::{
    ClientResponse, ClientResponseBody, HttpClient, HttpSettings,
};
use mcpact_transport::http_sse;
use mcpact_transport::link::Link;
use mcpact_transport::stdio::child::{Child, ChildCommand, Process};
use mcpact_wire::envelope::{Envelope, Outcome};
use mcpact_wire::frame::ndjson::Line;
use mcpact_wire::model::implementation::Implementation;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::http::HttpConnection;
use super::stdio::{StdioConnection, exit_text, stop};
use super::{
    ConnectError, Connection, DropReason, Hooks, HttpRefusal, Transport, UnsolicitedReceiver,
    headers, inbox,
};

/// Timeout for opening the stream of the HTTP+SSE transport.
const SSE_TIMEOUT: Duration = Duration::from_secs(30);

/// Time to wait for the exit status of a process that has closed its output.
const EXIT_TIMEOUT: Duration = Duration::from_millis(500);

/// Capabilities and identity that a server is offered.
#[derive(Clone, Debug)]
pub struct Offer {
    /// Client capabilities.
    pub capabilities: CapabilitySet,
    /// Name and version of the client.
    pub info: Implementation,
    /// Eras to try.
    pub mode: EraMode,
    /// Capabilities that the server must declare.
    pub require: Vec<Cow<'static, str>>,
    /// Era of the server, if it is known from an earlier connection.
    pub prior: Option<EraVerdict>,
}

impl From<&Offer> for ClientTerms {
    fn from(offer: &Offer) -> Self {
        let policy = Policy {
            required: offer.require.clone(),
            ..Policy::default()
        };
        let mut terms = Self::new(offer.info.clone(), offer.capabilities.clone(), policy);
        terms.mode = offer.mode;
        terms.prior = offer.prior;
        terms
    }
}

/// A connection after the negotiation.
#[derive(Debug)]
pub struct Connected {
    /// The connection.
    pub connection: Connection,
    /// Era of the server, to be remembered.
    pub verdict: Option<EraVerdict>,
    /// Steps of the negotiation.
    pub transcript: Transcript,
    /// Messages that belong to no call.
    pub unsolicited: UnsolicitedReceiver,
}

/// Location of a server.
#[derive(Debug)]
pub enum Endpoint<'a> {
    /// Program on stdio.
    Command(&'a ChildCommand),
    /// HTTP server.
    Http {
        /// URL.
        url: &'a str,
        /// Settings of the HTTP client.
        settings: &'a HttpSettings,
    },
    /// Open line-based connection, such as a socket or memory.
    Link(Box<Link>),
}

/// Connects to a server, starting it if needed, and negotiates these terms. A server that does not name itself is called `name`.
///
/// # Errors
/// [`ConnectError`] if the server cannot be started or reached, or refuses all revisions.
pub async fn connect(
    endpoint: Endpoint<'_>,
    name: &str,
    terms: ClientTerms,
    hooks: &Arc<dyn Hooks>,
) -> Result<Connected, ConnectError> {
    let new = |transport| Negotiator::new(terms, transport, name, Arc::clone(hooks));
    match endpoint {
        Endpoint::Command(command) => new(TransportKind::Child).over_stdio(command).await,
        Endpoint::Http { url, settings } => {
            let http = HttpClient::new(url, settings.clone())?;
            new(TransportKind::Http).over_http(&http).await
        }
        Endpoint::Link(link) => new(TransportKind::Stream).over_link(*link).await,
    }
}

fn is_response(bytes: &[u8]) -> bool {
    matches!(Envelope::parse(bytes), Ok(Envelope::Response(_)))
}

/// Process of a server during the negotiation. Dropping it stops the process like that of a ready server.
struct StartingProcess {
    process: Option<Process>,
    hooks: Arc<dyn Hooks>,
}

impl StartingProcess {
    /// Stops the process in the background; without a runtime it is killed.
    fn stop(&mut self) -> Option<JoinHandle<()>> {
        let (process, hooks) = (self.process.take()?, Arc::clone(&self.hooks));
        let runtime = tokio::runtime::Handle::try_current().ok()?;
        Some(runtime.spawn(async move { stop(process, &*hooks).await }))
    }
}

impl Drop for StartingProcess {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Drives the client state machine until the negotiation ends.
struct Negotiator {
    machine: Machine,
    terms: Arc<ClientTerms>,
    name: String,
    zero: Instant,
    verdict: Option<EraVerdict>,
    /// HTTP status of the last response.
    status: Option<u16>,
    has_retried: bool,
    log: NegotiationLog,
    hooks: Arc<dyn Hooks>,
}

/// Result of a successful negotiation.
struct Negotiated {
    pact: Arc<Pact>,
    introduction: Introduction,
}

/// Effects of one input.
#[derive(Default)]
struct Progress {
    writes: Vec<String>,
    negotiated: Option<Negotiated>,
    next: Next,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Next {
    #[default]
    Continue,
    Respawn,
    TryHttpSse,
    Close,
}

/// End of the negotiation on a link.
enum Ended {
    Negotiated(Box<Negotiated>),
    Respawn,
    Close,
    Disconnected,
}

impl Negotiator {
    fn new(
        mut terms: ClientTerms,
        transport: TransportKind,
        name: &str,
        hooks: Arc<dyn Hooks>,
    ) -> Self {
        terms.transport = transport;
        let terms = Arc::new(terms);
        Self {
            machine: Machine::new(Arc::clone(&terms)),
            terms,
            name: name.to_owned(),
            zero: Instant::now(),
            verdict: None,
            status: None,
            has_retried: false,
            log: NegotiationLog::new(transport, hooks.masks()),
            hooks,
        }
    }

    async fn over_stdio(mut self, command: &ChildCommand) -> Result<Connected, ConnectError> {
        let mut command = command.clone();
        if let Some(sink) = self.hooks.stderr_sink() {
            command = command.with_stderr_sink(sink);
        }
        loop {
            self.hooks.process_event(ProcessEvent::StartAttempt);
            let Child { mut link, process } = command.spawn().inspect_err(|error| {
                let event = ProcessEvent::StartFailure(error);
                self.hooks.process_event(event);
            })?;
            self.hooks.spawned(&process);
            let (arrived, exited) = (process.first_byte(), process.wait());
            let mut starting = StartingProcess {
                process: Some(process),
                hooks: Arc::clone(&self.hooks),
            };
            let first_byte = async move {
                if !arrived.await {
                    // The end of the process shows on the link, too.
                    std::future::pending::<()>().await;
                }
            };
            let mut exit = None;
            let must_respawn = match self.negotiate(&mut link, first_byte).await {
                Ended::Negotiated(negotiated) => {
                    let process = starting.process.take();
                    return Ok(self.connected_link(*negotiated, link, process));
                }
                Ended::Respawn => true,
                Ended::Close => false,
                Ended::Disconnected => {
                    let waiting = tokio::time::timeout(EXIT_TIMEOUT, exited);
                    exit = waiting.await.ok();
                    self.feed(Input::Closed, None).next == Next::Respawn
                }
            };
            let process = starting.process.as_ref();
            let stderr = process.map(Process::stderr_tail).unwrap_or_default();
            if !must_respawn {
                self.hooks.process_event(ProcessEvent::InitializeFailure);
            }
            drop(link);
            if let Some(stopping) = starting.stop() {
                // A panic is in the log.
                let _ = stopping.await;
            }
            match exit {
                _ if must_respawn => {}
                Some(Ok(status)) => {
                    return Err(ConnectError::Exited {
                        status: exit_text(status),
                        stderr,
                        transcript: self.transcript(),
                    });
                }
                Some(Err(_)) | None => return Err(self.error(stderr)),
            }
        }
    }

    async fn over_http(mut self, http: &HttpClient) -> Result<Connected, ConnectError> {
        let mut session = None;
        let mut progress = self.start();
        loop {
            match progress.next {
                Next::Close | Next::Respawn => return Err(self.error(String::new())),
                Next::TryHttpSse => return self.over_http_sse(http).await,
                Next::Continue => {}
            }
            if let Some(negotiated) = progress.negotiated {
                let pact = &negotiated.pact;
                let (sender, unsolicited) = inbox::unsolicited();
                let (http, hooks) = (http.clone(), Arc::clone(&self.hooks));
                let connection = match pact.era() {
                    Era::Modern => HttpConnection::modern(http, pact, hooks),
                    Era::Legacy => {
                        let headers = headers::of_session(pact.revision(), session.as_ref());
                        for message in progress.writes {
                            let answer = http.post(&headers, Bytes::from(message)).await?;
                            if answer.status >= 300 {
                                let status = answer.status;
                                tracing::warn!(status, "`notifications/initialized` rejected");
                            }
                        }
                        HttpConnection::legacy(http, pact, headers, sender, hooks).await
                    }
                };
                let transport = Transport::Http(Box::new(connection));
                return Ok(self.connected(negotiated, transport, unsolicited));
            }
            let Some(message) = progress.writes.pop() else {
                return Err(self.error(String::new()));
            };
            let headers = headers::opening(&message);
            let posting = http.post(&headers, Bytes::from(message));
            progress = match tokio::time::timeout(self.timeout(), posting).await {
                Ok(answer) => self.received(answer?, &mut session).await?,
                Err(_) => self.feed(Input::Tick, None),
            };
        }
    }

    async fn over_http_sse(self, http: &HttpClient) -> Result<Connected, ConnectError> {
        match (http_sse::connect(http, SSE_TIMEOUT).await, self.status) {
            (Ok(link), _) => self.over_link(link).await,
            // The response to the first message is more useful than the failure of the older transport.
            (Err(source), Some(status)) => Err(ConnectError::NotMcp { status, source }),
            (Err(error), None) => Err(error.into()),
        }
    }

    async fn over_link(mut self, mut link: Link) -> Result<Connected, ConnectError> {
        let first_byte = std::future::pending();
        match self.negotiate(&mut link, first_byte).await {
            Ended::Negotiated(negotiated) => Ok(self.connected_link(*negotiated, link, None)),
            Ended::Respawn | Ended::Close | Ended::Disconnected => Err(self.error(String::new())),
        }
    }

    fn connected_link(
        self,
        negotiated: Negotiated,
        link: Link,
        process: Option<Process>,
    ) -> Connected {
        let (sender, unsolicited) = inbox::unsolicited();
        let hooks = Arc::clone(&self.hooks);
        let connection = StdioConnection::new(link, &negotiated.pact, process, sender, hooks);
        self.connected(negotiated, Transport::Stdio(connection), unsolicited)
    }

    fn connected(
        self,
        negotiated: Negotiated,
        transport: Transport,
        unsolicited: UnsolicitedReceiver,
    ) -> Connected {
        let Negotiated { pact, introduction } = negotiated;
        Connected {
            connection: Connection::new(pact, introduction, transport),
            verdict: self.verdict,
            transcript: self.machine.transcript().clone(),
            unsolicited,
        }
    }

    fn start(&mut self) -> Progress {
        self.log.begin(self.hooks.server());
        let _ = self.feed(Input::Open, None);
        self.feed(Input::Connected, None)
    }

    /// Returns the time to wait for a response.
    fn timeout(&self) -> Duration {
        const MAX: Duration = Duration::from_secs(120);
        let now = Moment::at(self.zero.elapsed());
        self.machine
            .next_deadline()
            .map_or(MAX, |deadline| deadline.since(now).min(MAX))
    }

    fn feed(&mut self, input: Input<'_>, bytes: Option<&[u8]>) -> Progress {
        let now = Moment::at(self.zero.elapsed());
        let idle = Machine::new(Arc::clone(&self.terms));
        let step = std::mem::replace(&mut self.machine, idle).handle(input, now);
        self.machine = step.next;
        let mut progress = Progress::default();
        let mut negotiated = None;
        for effect in step.effects {
            match effect {
                Effect::Write(text) | Effect::Reply { text, .. } => progress.writes.push(text),
                Effect::Concluded(pact) => progress.negotiated = self.introduced(pact, bytes),
                Effect::Remember(verdict) => self.verdict = Some(verdict),
                Effect::Respawn => progress.next = Next::Respawn,
                Effect::TryHttpSse => progress.next = Next::TryHttpSse,
                Effect::HangUp => progress.next = Next::Close,
                Effect::Dropped(dropped) => {
                    tracing::debug!(what = %dropped.what, why = ?dropped.why, "message dropped");
                }
                Effect::Report { refusal, gravity } => {
                    let (reason, text) = (refusal.reason(), refusal.log_text());
                    match gravity {
                        Severity::Warning => tracing::warn!(reason, "{text}"),
                        Severity::Error => tracing::error!(reason, "{text}"),
                    }
                }
                Effect::Negotiated(negotiation) => negotiated = Some(negotiation),
                Effect::Serve(_)
                | Effect::Observe(_)
                | Effect::Settled { .. }
                | Effect::Withheld(_)
                | Effect::Abandon(_) => {}
            }
        }
        if !self.has_retried && self.offers_what_we_speak() {
            // The server refuses a version and lists that very version.
            self.has_retried = true;
            self.machine = Machine::new(Arc::clone(&self.terms));
            return self.start();
        }
        if let Some(negotiation) = &negotiated {
            self.hooks.negotiated(negotiation);
        }
        self.log.record(self.machine.transcript(), negotiated);
        progress
    }

    fn introduced(&self, pact: Arc<Pact>, bytes: Option<&[u8]>) -> Option<Negotiated> {
        let Ok(Envelope::Response(response)) = Envelope::parse(bytes?) else {
            return None;
        };
        let Outcome::Result(body) = response.outcome else {
            return None;
        };
        let introduction = match pact.era() {
            Era::Legacy => Introduction::of_initialize(body.raw, Reading::Lenient),
            Era::Modern => Introduction::of_discover(body.raw, &self.name, Reading::Lenient),
        };
        match introduction {
            Ok(introduction) => Some(Negotiated { pact, introduction }),
            Err(error) => {
                tracing::warn!(%error, "invalid server info");
                None
            }
        }
    }

    /// Returns true if the negotiation failed although the server offers a revision of ours.
    fn offers_what_we_speak(&self) -> bool {
        let Phase::Failed(Failure::Probe(ProbeFailure::Incompatible(
            Incompatible::NoCommonVersion { offered, .. },
        ))) = self.machine.phase()
        else {
            return false;
        };
        let supported = self.terms.supported();
        let is_supported = |offer: &str| supported.iter().any(|ours| ours.as_str() == offer);
        offered.iter().any(|offer| is_supported(offer))
    }

    fn transcript(&self) -> Box<Transcript> {
        Box::new(self.machine.transcript().clone())
    }

    fn error(&self, stderr: String) -> ConnectError {
        let failure = match self.machine.phase() {
            Phase::Failed(failure) => failure.clone(),
            _ => Failure::ConnectionClosed,
        };
        ConnectError::Negotiation {
            failure,
            stderr,
            transcript: self.transcript(),
        }
    }

    async fn negotiate(&mut self, link: &mut Link, first_byte: impl Future<Output = ()>) -> Ended {
        let mut first_byte = pin!(first_byte);
        let mut is_silent = true;
        let mut progress = self.start();
        loop {
            loop {
                for message in progress.writes.drain(..) {
                    link.sink.push(&message);
                }
                if progress.next != Next::Continue || progress.negotiated.is_some() {
                    break;
                }
                progress = match link.source.next_line() {
                    Some(Line::Json(bytes)) => {
                        let bytes = Bytes::copy_from_slice(bytes);
                        let input = Input::Bytes {
                            bytes: &bytes,
                            http_status: None,
                        };
                        self.feed(input, Some(&bytes))
                    }
                    Some(Line::Noise(bytes)) => {
                        let observer = self.hooks.observer();
                        observer.dropped(DropReason::NotJson);
                        observer.noise(bytes);
                        continue;
                    }
                    Some(Line::TooLong { .. }) => continue,
                    None => break,
                };
            }
            let timeout = self.timeout();
            match tokio::time::timeout(timeout, link.sink.flush()).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) => return Ended::Disconnected,
                // The server does not read.
                Err(_) => {
                    progress = self.feed(Input::Tick, None);
                    continue;
                }
            }
            if let Some(negotiated) = progress.negotiated.take() {
                return Ended::Negotiated(Box::new(negotiated));
            }
            match progress.next {
                Next::Continue => {}
                Next::Respawn => return Ended::Respawn,
                Next::Close | Next::TryHttpSse => return Ended::Close,
            }
            progress = tokio::select! {
                more = link.source.fill() => match more {
                    Ok(true) => Progress::default(),
                    Ok(false) | Err(_) => return Ended::Disconnected,
                },
                () = &mut first_byte, if is_silent => {
                    is_silent = false;
                    self.feed(Input::FirstByte, None)
                }
                () = tokio::time::sleep(self.timeout()) => self.feed(Input::Tick, None),
            };
        }
    }

    /// Handles the response to a POST of the handshake.
    async fn received(
        &mut self,
        answer: ClientResponse,
        session: &mut Option<HeaderValue>,
    ) -> Result<Progress, ConnectError> {
        let status = answer.status;
        self.status = Some(status);
        // These do not depend on the era.
        if matches!(status, 401 | 403 | 429 | 508) {
            return Err(ConnectError::HttpStatus(HttpRefusal::of(&answer)));
        }
        if let Some(id) = answer.headers.get(headers::SESSION_ID)
            && status < 300
        {
            *session = Some(id.clone());
        }
        let bytes = match answer.body {
            ClientResponseBody::Json(bytes) if is_response(&bytes) => bytes,
            ClientResponseBody::Events(mut events) => loop {
                let event = match tokio::time::timeout(self.timeout(), events.next()).await {
                    Ok(Some(event)) => event?,
                    Ok(None) => return Ok(self.feed(Input::Status(status), None)),
                    Err(_) => return Ok(self.feed(Input::Tick, None)),
                };
                let bytes = Bytes::from(event.data);
                if is_response(&bytes) {
                    break bytes;
                }
            },
            // Frameworks and proxies answer with JSON that is not MCP.
            ClientResponseBody::Empty
            | ClientResponseBody::Json(_)
            | ClientResponseBody::Other(_) => {
                return Ok(self.feed(Input::Status(status), None));
            }
        };
        let bytes = inbox::without_error_id(bytes);
        let input = Input::Bytes {
            bytes: &bytes,
            http_status: Some(status),
        };
        Ok(self.feed(input, Some(&bytes)))
    }
}
