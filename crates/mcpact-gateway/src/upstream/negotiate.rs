//! From a target to an agreement: the engine's client machine, on whichever carrier.

use std::borrow::Cow;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::HeaderValue;
use mcpact::log::Diary;
use mcpact_engine::capability::CapabilitySet;
use mcpact_engine::client::{
    Client as Machine, ClientTerms, EraMode, EraVerdict, Failure, Input, Phase, TransportKind,
};
use mcpact_engine::effect::{Effect, Severity};
use mcpact_engine::pact::Pact;
use mcpact_engine::policy::{Policy, Reading};
use mcpact_engine::shutdown::Grace;
use mcpact_engine::time::Moment;
use mcpact_spec::Era;
use mcpact_translate::lifecycle::{Introduction, without_elicitation};
use mcpact_transport::http::client::{Answer, AnswerBody, HttpClient};
use mcpact_transport::link::Link;
use mcpact_transport::stdio::child::{Child, ChildCommand, Process};
use mcpact_wire::envelope::{Envelope, Outcome};
use mcpact_wire::frame::ndjson::Line;
use mcpact_wire::model::implementation::Implementation;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::http::HttpWire;
use super::lines::LinesWire;
use super::{Stray, Upstream, Wire, exit, headers, mail, sse_link};
use crate::circle::LOOP;
use crate::error::Trouble;
use crate::figures::ServerFigures;
use crate::lineage::Descent;
use crate::supervisor::Life;
use crate::target::Target;

/// How many messages that belong to no call may wait.
const STRAYS: usize = 256;

/// How long the log of a program that has closed its output is waited for.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// As whom a server is approached.
#[derive(Clone, Debug)]
pub(crate) struct Wish {
    pub(crate) capabilities: CapabilitySet,
    pub(crate) info: Implementation,
    pub(crate) mode: EraMode,
    /// Capabilities that the server must have.
    pub(crate) require: Vec<Cow<'static, str>>,
    pub(crate) prior: Option<EraVerdict>,
}

/// A server that was met.
#[derive(Debug)]
pub(crate) struct Met {
    pub(crate) upstream: Upstream,
    pub(crate) verdict: Option<EraVerdict>,
    /// What it says that belongs to no call.
    pub(crate) strays: mpsc::Receiver<Stray>,
}

/// Reaches or starts a server and agrees with it.
pub(crate) async fn connect(target: &Target, wish: &Wish, life: &Life) -> Result<Met, Trouble> {
    let met = attempt(target, wish, life).await?;
    let revision = met.upstream.revision();
    // BB-24: the server would take a client that only visits URLs for one that fills in forms.
    match without_elicitation(&wish.capabilities, revision) {
        Some(capabilities) => {
            let wish = Wish {
                capabilities,
                prior: met.verdict.or(wish.prior),
                ..wish.clone()
            };
            drop(met);
            attempt(target, &wish, life).await
        }
        None => Ok(met),
    }
}

async fn attempt(target: &Target, wish: &Wish, life: &Life) -> Result<Met, Trouble> {
    match target {
        Target::Command(command) => by_command(command, wish, life).await,
        Target::Url { url, settings } => {
            let http = HttpClient::new(url, (**settings).clone())?;
            let talk = Talk {
                has_credentials: target.has_credentials(),
                ..Talk::new(wish, TransportKind::Http, &target.to_string(), life)
            };
            by_http(&http, talk, life).await
        }
        Target::Local(make) => {
            let mut talk = Talk::new(wish, TransportKind::Stream, &target.to_string(), life);
            let mut link = (make.0)();
            match talk.on_lines(&mut link, std::future::pending()).await {
                Ended::Agreed(agreed) => Ok(agreed.on_lines(link, None, &talk, life)),
                Ended::Respawn | Ended::HangUp | Ended::Gone => Err(talk.trouble(String::new())),
            }
        }
    }
}

async fn by_command(command: &ChildCommand, wish: &Wish, life: &Life) -> Result<Met, Trouble> {
    let command = command.clone().with_scribe(life.scribe());
    let mut talk = Talk::new(wish, TransportKind::Child, &command.name, life);
    loop {
        let Child { mut link, process } = command.spawn()?;
        life.spawned(&process);
        let heard = process.first_byte();
        let first_byte = async move {
            if !heard.await {
                // It ended without one, which the link tells, too.
                std::future::pending::<()>().await;
            }
        };
        let mut exit = None;
        let ended = talk.on_lines(&mut link, first_byte).await;
        let must_respawn = match ended {
            Ended::Agreed(agreed) => return Ok(agreed.on_lines(link, Some(process), &talk, life)),
            Ended::Respawn => true,
            Ended::HangUp => false,
            Ended::Gone => {
                exit = tokio::time::timeout(LAST_WORDS, process.wait()).await.ok();
                talk.feed(Input::Closed, None).next == Next::Respawn
            }
        };
        let stderr = process.stderr_tail();
        drop(link);
        if let Err(error) = process.shutdown(Grace::default()).await {
            tracing::warn!(%error, "failed to stop the server process");
        }
        match exit {
            _ if must_respawn => {}
            Some(_) if Descent::is_told_in(&stderr) => return Err(Trouble::Circle),
            Some(Ok(status)) => {
                let status = exit::in_words(status);
                return Err(Trouble::Exited { status, stderr });
            }
            Some(Err(_)) | None => return Err(talk.trouble(stderr)),
        }
    }
}

async fn by_http(http: &HttpClient, mut talk: Talk, life: &Life) -> Result<Met, Trouble> {
    let mut session = None;
    let mut said = talk.connected();
    loop {
        match said.next {
            Next::HangUp | Next::Respawn => return Err(talk.trouble(String::new())),
            Next::TryHttpSse => return by_http_sse(http, talk, life).await,
            Next::GoOn => {}
        }
        if let Some(agreed) = said.agreed {
            let revision = agreed.pact.revision();
            if agreed.pact.era() == Era::Legacy {
                let facts = headers::legacy(revision, session.as_ref());
                for message in said.writes {
                    let _ = http.post(&facts, Bytes::from(message)).await?;
                }
            }
            let (stray, strays) = mpsc::channel(STRAYS);
            let wire = match agreed.pact.era() {
                Era::Modern => HttpWire::modern(http.clone(), revision, life.clone()),
                Era::Legacy => {
                    HttpWire::legacy(http.clone(), revision, session, stray, life.clone()).await
                }
            };
            return Ok(agreed.on(Wire::Http(Box::new(wire)), strays, &talk));
        }
        let Some(message) = said.writes.pop() else {
            return Err(talk.trouble(String::new()));
        };
        let facts = headers::of_opening(&message);
        let posting = http.post(&facts, Bytes::from(message));
        said = match tokio::time::timeout(talk.patience(), posting).await {
            Ok(answer) => talk.heard(answer?, &mut session).await?,
            Err(_) => talk.feed(Input::Tick, None),
        };
    }
}

fn is_response(bytes: &[u8]) -> bool {
    matches!(Envelope::parse(bytes), Ok(Envelope::Response(_)))
}

async fn by_http_sse(http: &HttpClient, mut talk: Talk, life: &Life) -> Result<Met, Trouble> {
    let mut link = match sse_link::open(http).await {
        Ok(link) => link,
        // Whatever the older transport says, it is the answer to the first message that tells.
        Err(_) if talk.status.is_some() => {
            let status = talk.status.unwrap_or_default();
            return Err(Trouble::NotThere { status });
        }
        Err(error) => return Err(error.into()),
    };
    match talk.on_lines(&mut link, std::future::pending()).await {
        Ended::Agreed(agreed) => Ok(agreed.on_lines(link, None, &talk, life)),
        Ended::Respawn | Ended::HangUp | Ended::Gone => Err(talk.trouble(String::new())),
    }
}

/// The machine until it agrees.
struct Talk {
    machine: Machine,
    terms: Arc<ClientTerms>,
    name: String,
    zero: Instant,
    verdict: Option<EraVerdict>,
    /// The status of the last answer, on HTTP.
    status: Option<u16>,
    /// Whether the server is told who asks.
    has_credentials: bool,
    diary: Diary,
    /// What the log calls the server.
    server: Arc<str>,
    figures: Arc<ServerFigures>,
}

struct Agreed {
    pact: Arc<Pact>,
    introduction: Introduction,
}

#[derive(Default)]
struct Said {
    writes: Vec<String>,
    agreed: Option<Agreed>,
    next: Next,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Next {
    #[default]
    GoOn,
    Respawn,
    TryHttpSse,
    HangUp,
}

enum Ended {
    Agreed(Box<Agreed>),
    Respawn,
    HangUp,
    Gone,
}

impl Agreed {
    fn on(self, wire: Wire, strays: mpsc::Receiver<Stray>, talk: &Talk) -> Met {
        Met {
            upstream: Upstream::new(self.pact, self.introduction, wire),
            verdict: talk.verdict,
            strays,
        }
    }

    fn on_lines(self, link: Link, process: Option<Process>, talk: &Talk, life: &Life) -> Met {
        let (stray, strays) = mpsc::channel(STRAYS);
        let wire = Wire::Lines(LinesWire::keep(
            link,
            self.pact.era(),
            process,
            stray,
            life.clone(),
        ));
        self.on(wire, strays, talk)
    }
}

impl Talk {
    fn new(wish: &Wish, carrier: TransportKind, name: &str, life: &Life) -> Self {
        let policy = Policy {
            required: wish.require.clone(),
            ..Policy::default()
        };
        let mut terms = ClientTerms::new(wish.info.clone(), wish.capabilities.clone(), policy);
        terms.mode = wish.mode;
        terms.prior = wish.prior;
        terms.transport = carrier;
        let terms = Arc::new(terms);
        Self {
            machine: Machine::new(Arc::clone(&terms)),
            terms,
            name: name.to_owned(),
            zero: Instant::now(),
            verdict: None,
            status: None,
            has_credentials: false,
            diary: Diary::new(carrier).covering(life.masks().clone()),
            server: Arc::clone(life.server()),
            figures: Arc::clone(life.figures()),
        }
    }

    fn connected(&mut self) -> Said {
        self.diary.begin(&self.server);
        let _ = self.feed(Input::Open, None);
        self.feed(Input::Connected, None)
    }

    /// How long the machine wants to wait for an answer.
    fn patience(&self) -> Duration {
        const LONGEST: Duration = Duration::from_secs(120);
        let now = Moment::at(self.zero.elapsed());
        self.machine
            .next_deadline()
            .map_or(LONGEST, |deadline| deadline.since(now).min(LONGEST))
    }

    fn feed(&mut self, input: Input<'_>, bytes: Option<&[u8]>) -> Said {
        let now = Moment::at(self.zero.elapsed());
        let idle = Machine::new(Arc::clone(&self.terms));
        let step = std::mem::replace(&mut self.machine, idle).handle(input, now);
        self.machine = step.next;
        let mut said = Said::default();
        let mut negotiated = None;
        for effect in step.effects {
            match effect {
                Effect::Write(text) | Effect::Reply { text, .. } => said.writes.push(text),
                Effect::Concluded(pact) => said.agreed = self.introduced(pact, bytes),
                Effect::Remember(verdict) => self.verdict = Some(verdict),
                Effect::Respawn => said.next = Next::Respawn,
                Effect::TryHttpSse => said.next = Next::TryHttpSse,
                Effect::HangUp => said.next = Next::HangUp,
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
        if let Some(negotiation) = &negotiated {
            self.figures.negotiated(negotiation);
        }
        self.diary.follow(self.machine.transcript(), negotiated);
        said
    }

    fn introduced(&self, pact: Arc<Pact>, bytes: Option<&[u8]>) -> Option<Agreed> {
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
            Ok(introduction) => Some(Agreed { pact, introduction }),
            Err(error) => {
                tracing::warn!(%error, "invalid server info");
                None
            }
        }
    }

    fn trouble(&self, stderr: String) -> Trouble {
        let failure = match self.machine.phase() {
            Phase::Failed(failure) => failure.clone(),
            _ => Failure::ConnectionClosed,
        };
        Trouble::Failure { failure, stderr }
    }

    async fn on_lines(&mut self, link: &mut Link, first_byte: impl Future<Output = ()>) -> Ended {
        let mut first_byte = pin!(first_byte);
        let mut is_silent = true;
        let mut said = self.connected();
        loop {
            loop {
                for message in said.writes.drain(..) {
                    link.sink.push(&message);
                }
                if said.next != Next::GoOn || said.agreed.is_some() {
                    break;
                }
                said = match link.source.next_line() {
                    Some(Line::Json(bytes)) => {
                        let bytes = Bytes::copy_from_slice(bytes);
                        let input = Input::Bytes {
                            bytes: &bytes,
                            http_status: None,
                        };
                        self.feed(input, Some(&bytes))
                    }
                    Some(Line::Noise(_) | Line::TooLong { .. }) => continue,
                    None => break,
                };
            }
            if link.sink.flush().await.is_err() {
                return Ended::Gone;
            }
            if let Some(agreed) = said.agreed.take() {
                return Ended::Agreed(Box::new(agreed));
            }
            match said.next {
                Next::GoOn => {}
                Next::Respawn => return Ended::Respawn,
                Next::HangUp | Next::TryHttpSse => return Ended::HangUp,
            }
            said = tokio::select! {
                more = link.source.fill() => match more {
                    Ok(true) => Said::default(),
                    Ok(false) | Err(_) => return Ended::Gone,
                },
                () = &mut first_byte, if is_silent => {
                    is_silent = false;
                    self.feed(Input::FirstByte, None)
                }
                () = tokio::time::sleep(self.patience()) => self.feed(Input::Tick, None),
            };
        }
    }

    /// What a POST of the handshake brought.
    async fn heard(
        &mut self,
        answer: Answer,
        session: &mut Option<HeaderValue>,
    ) -> Result<Said, Trouble> {
        let status = answer.status;
        self.status = Some(status);
        // These say nothing about the era.
        if matches!(status, 401 | 403 | 429) {
            let has_credentials = self.has_credentials;
            return Err(Trouble::Status {
                status,
                has_credentials,
            });
        }
        if status == LOOP {
            return Err(Trouble::Circle);
        }
        if let Some(id) = answer.headers.get("mcp-session-id")
            && status < 300
        {
            *session = Some(id.clone());
        }
        let bytes = match answer.body {
            AnswerBody::Json(bytes) if is_response(&bytes) => bytes,
            AnswerBody::Events(mut events) => loop {
                let event = match tokio::time::timeout(self.patience(), events.next()).await {
                    Ok(Some(event)) => event?,
                    Ok(None) => return Ok(self.feed(Input::Status(status), None)),
                    Err(_) => return Ok(self.feed(Input::Tick, None)),
                };
                let bytes = Bytes::from(event.data);
                if is_response(&bytes) {
                    break bytes;
                }
            },
            // Frameworks, and whoever stands before a server, speak JSON that is no message.
            AnswerBody::Empty | AnswerBody::Json(_) | AnswerBody::Other(_) => {
                return Ok(self.feed(Input::Status(status), None));
            }
        };
        let bytes = mail::readdressed(bytes);
        let input = Input::Bytes {
            bytes: &bytes,
            http_status: Some(status),
        };
        Ok(self.feed(input, Some(&bytes)))
    }
}
