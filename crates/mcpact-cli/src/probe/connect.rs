//! One connection to a server, with everything that was sent and received.

use std::convert::Infallible;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use mcpact::connection::{
    CallEvent, ConnectError, Connected, Connection, Endpoint, Hooks, RawRequest, ServerRequest,
    ServerResponse, ToolHeaders, Unsolicited, UnsolicitedReceiver, connect,
};
use mcpact::log::ProcessEvent;
use mcpact_engine::client::{ClientTerms, EraMode, Failure};
use mcpact_engine::pact::Pact;
use mcpact_engine::transcript::Transcript;
use mcpact_gateway::Target;
use mcpact_spec::{Era, ErrorCode, Kind, Method, Side};
use mcpact_translate::input::Outcome;
use mcpact_transport::stdio::child::Masks;
use mcpact_transport::tap::Tap;
use mcpact_wire::model::error;
use mcpact_wire::raw::Object;
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::dialogue::Carrier;
use super::record::{Record, Recorder};

/// Limit of pages of one list.
const MAX_PAGES: usize = 20;

/// Time for a process to stop, beyond its grace period.
const STOP_TIMEOUT: Duration = Duration::from_secs(30);

/// Lists that are read if the server declares them.
const LISTS: [Method; 4] = [
    Method::ToolsList,
    Method::PromptsList,
    Method::ResourcesList,
    Method::ResourceTemplatesList,
];

/// Whether the lists of a server are read after the negotiation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lists {
    Read,
    Skip,
}

/// A connection and its outcome.
#[derive(Debug)]
pub(crate) struct Attempt {
    /// Eras that were tried.
    pub(crate) mode: EraMode,
    /// The agreement, or the reason for none.
    pub(crate) outcome: Result<Agreement, ConnectError>,
    /// Messages of both sides.
    pub(crate) record: Record,
    /// Number of processes that were started.
    pub(crate) starts: u32,
    /// Time from the start of the connection to the end of the negotiation.
    pub(crate) connect_time: Duration,
}

/// A successful negotiation.
#[derive(Debug)]
pub(crate) struct Agreement {
    /// The pact.
    pub(crate) pact: Arc<Pact>,
    /// Instructions of the server.
    pub(crate) instructions: Option<String>,
    /// Steps of the negotiation.
    pub(crate) transcript: Transcript,
    /// First request after the negotiation and the time until its response.
    pub(crate) round_trip: Option<(Method, Duration)>,
    /// Requests that got no response.
    pub(crate) unanswered: Vec<Method>,
}

/// Returns the transport of a target.
pub(crate) const fn carrier(target: &Target) -> Carrier {
    match target {
        Target::Command(_) | Target::Local(_) => Carrier::Stdio,
        Target::Url { .. } => Carrier::Http,
    }
}

#[derive(Debug)]
struct ProbeHooks {
    server: Arc<str>,
    masks: Masks,
    starts: Arc<AtomicU32>,
    recorder: Arc<Recorder>,
    /// Closed when the connection and its process have ended.
    _alive: mpsc::Sender<Infallible>,
}

impl Hooks for ProbeHooks {
    fn server(&self) -> &Arc<str> {
        &self.server
    }

    fn masks(&self) -> Masks {
        self.masks.clone()
    }

    fn process_event(&self, event: ProcessEvent<'_>) {
        if matches!(event, ProcessEvent::StartAttempt) {
            self.starts.fetch_add(1, Ordering::Relaxed);
            self.recorder.restart();
        }
    }
}

/// Connects, negotiates, reads lists and disconnects. A process has exited when this returns.
pub(crate) async fn attempt(
    target: &Target,
    mut terms: ClientTerms,
    masks: Masks,
    limit: Duration,
    lists: Lists,
) -> Attempt {
    terms.silence_limit = limit;
    terms.init_timeout = limit;
    let mode = terms.mode;
    let recorder = Recorder::new();
    let starts = Arc::<AtomicU32>::default();
    let (alive, mut ended) = mpsc::channel(1);
    let hooks: Arc<dyn Hooks> = Arc::new(ProbeHooks {
        server: Arc::from("probe"),
        masks,
        starts: Arc::clone(&starts),
        recorder: Arc::clone(&recorder),
        _alive: alive,
    });
    let begin = Instant::now();
    let tap: Arc<dyn Tap> = Arc::clone(&recorder) as Arc<dyn Tap>;
    let connected = connect_to(target, &terms, &hooks, tap, limit).await;
    drop(hooks);
    let connect_time = begin.elapsed();
    let outcome = match connected {
        Ok(connected) => Ok(agree(connected, &terms, limit, lists).await),
        Err(error) => Err(error),
    };
    // One process at a time: the next one starts after the end of this one.
    let _ = timeout(STOP_TIMEOUT, ended.recv()).await;
    Attempt {
        mode,
        outcome,
        record: recorder.record(),
        starts: starts.load(Ordering::Relaxed),
        connect_time,
    }
}

async fn connect_to(
    target: &Target,
    terms: &ClientTerms,
    hooks: &Arc<dyn Hooks>,
    tap: Arc<dyn Tap>,
    limit: Duration,
) -> Result<Connected, ConnectError> {
    let terms = terms.clone();
    match target {
        Target::Command(command) => {
            let mut command = (**command).clone();
            command.tap = Some(tap);
            let endpoint = Endpoint::Command(&command);
            within(limit, connect(endpoint, "server", terms, hooks)).await
        }
        Target::Url { url, settings } => {
            let mut settings = (**settings).clone();
            settings.connect_timeout = settings.connect_timeout.min(limit);
            settings.head_timeout = settings.head_timeout.min(limit);
            settings.idle_timeout = settings.idle_timeout.min(limit);
            settings.tap = Some(tap);
            let settings = &settings;
            let endpoint = Endpoint::Http { url, settings };
            within(limit, connect(endpoint, "server", terms, hooks)).await
        }
        Target::Local(local) => {
            let link = Box::new((local.0)().with_tap(&tap));
            let endpoint = Endpoint::Link(link);
            within(limit, connect(endpoint, "server", terms, hooks)).await
        }
    }
}

/// Limits the whole negotiation, which has a limit for each answer.
async fn within(
    limit: Duration,
    connecting: impl Future<Output = Result<Connected, ConnectError>>,
) -> Result<Connected, ConnectError> {
    let whole = limit * 3 + Duration::from_secs(5);
    timeout(whole, connecting).await.unwrap_or_else(|_| {
        Err(ConnectError::Negotiation {
            failure: Failure::InitTimeout,
            stderr: String::new(),
            transcript: Box::default(),
        })
    })
}

async fn agree(
    connected: Connected,
    terms: &ClientTerms,
    limit: Duration,
    lists: Lists,
) -> Agreement {
    let Connected {
        connection,
        transcript,
        unsolicited,
        ..
    } = connected;
    let answering = tokio::spawn(answer_all(unsolicited));
    let pact = Arc::clone(&connection.pact);
    let mut session = Session {
        connection,
        terms,
        limit,
        round_trip: None,
        unanswered: Vec::new(),
    };
    if lists == Lists::Read {
        session.read_lists().await;
    }
    session.connection.close();
    answering.abort();
    let instructions = session.connection.introduction.instructions.clone();
    Agreement {
        pact,
        instructions: instructions.map(String::from),
        transcript,
        round_trip: session.round_trip,
        unanswered: session.unanswered,
    }
}

/// Answers the requests of the server that belong to no call.
async fn answer_all(mut unsolicited: UnsolicitedReceiver) {
    while let Some(message) = unsolicited.recv().await {
        if let Unsolicited::Request(request) = message {
            answer(request).await;
        }
    }
}

/// Answers a request of the server: a probe has no roots, and no user or model to ask.
async fn answer(request: ServerRequest) {
    let outcome = match request.method {
        Some(Method::Ping) => Outcome::Result(String::from("{}")),
        Some(Method::RootsList) => Outcome::Result(String::from(r#"{"roots":[]}"#)),
        Some(Method::ElicitationCreate) => Outcome::Result(String::from(r#"{"action":"cancel"}"#)),
        _ => Outcome::Error(error::encode(
            ErrorCode::InternalError.code(),
            "mcpact probe answers no questions",
            None,
        )),
    };
    request.answer(&outcome).await;
}

struct Session<'a> {
    connection: Connection,
    terms: &'a ClientTerms,
    limit: Duration,
    round_trip: Option<(Method, Duration)>,
    unanswered: Vec<Method>,
}

impl Session<'_> {
    /// Pings a legacy server and reads the lists that it declares. Stops at the first request without a response.
    async fn read_lists(&mut self) {
        if self.connection.pact.era() == Era::Legacy && self.ask(Method::Ping, None).await.is_none()
        {
            return;
        }
        for method in LISTS {
            let pact = &self.connection.pact;
            let ruling = pact.rule_on(Side::Client, Kind::Request, method);
            if ruling.is_open() && !self.read_list(method).await {
                return;
            }
        }
    }

    /// Reads the pages of a list; false if a response is missing.
    async fn read_list(&mut self, method: Method) -> bool {
        let mut cursors: Vec<String> = Vec::new();
        for _ in 0..MAX_PAGES {
            let params = cursors.last().map(|cursor| {
                let cursor = serde_json::Value::from(cursor.as_str());
                format!(r#"{{"cursor":{cursor}}}"#)
            });
            let Some(response) = self.ask(method, params.as_deref()).await else {
                return false;
            };
            let next = match &response {
                ServerResponse::Result(result) => next_cursor(result),
                ServerResponse::Error(_) => None,
            };
            match next {
                Some(cursor) if !cursors.contains(&cursor) => cursors.push(cursor),
                Some(_) | None => return true,
            }
        }
        true
    }

    async fn ask(&mut self, method: Method, params: Option<&str>) -> Option<ServerResponse> {
        let revision = self.connection.revision();
        let stamped = match revision.era() {
            Era::Modern => self.terms.stamp(revision, params).ok(),
            Era::Legacy => params.map(str::to_owned),
        };
        let request = RawRequest {
            method: Some(method),
            name: method.as_str(),
            params: stamped.as_deref(),
            trace: None,
        };
        let begin = Instant::now();
        let response = timeout(self.limit, self.response(request)).await;
        let response = response.ok().flatten();
        match &response {
            Some(_) if self.round_trip.is_none() => {
                self.round_trip = Some((method, begin.elapsed()));
            }
            Some(_) => {}
            None => self.unanswered.push(method),
        }
        response
    }

    async fn response(&self, request: RawRequest<'_>) -> Option<ServerResponse> {
        let number = self.connection.next_id();
        let headers = ToolHeaders::default();
        let mut call = self.connection.call(number, request, &headers).await;
        loop {
            match call.next().await {
                CallEvent::Notification(_) => {}
                CallEvent::Request(request) => answer(request).await,
                CallEvent::Response(response) => return Some(response),
                CallEvent::Failed(failure) => {
                    tracing::debug!(?failure, "request failed");
                    return None;
                }
            }
        }
    }
}

fn next_cursor(result: &str) -> Option<String> {
    let cursor = Object::parse(result).ok()?.get_str("nextCursor")?;
    Some(cursor.into_owned())
}
