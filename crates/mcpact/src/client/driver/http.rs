//! Streamable HTTP: one POST per message, streams for responses, and in the legacy era a session with a standalone
//! stream.

mod exchange;
mod facts;

use std::collections::HashMap;
use std::time::Duration;

use bytes::Bytes;
use http::HeaderValue;
use mcpact_spec::Method;
use mcpact_transport::error::TransportError;
use mcpact_transport::http::client::HttpClient;
use mcpact_wire::codec;
use mcpact_wire::envelope::{Envelope, Outcome};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

use self::exchange::{Arrival, How, Job, Status};
use super::{heed, http_sse};
use crate::client::client_error::ClientError;
use crate::client::core::{Core, Deeds, Next, number, rpc_error};

/// Capacity of the queue of arrivals; when it is full, streams wait.
const QUEUE: usize = 1024;

/// Timeout of the end of a session.
const GOODBYE: Duration = Duration::from_secs(3);

/// Purpose of a POST.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    /// The first question, whichever it is.
    Opening,
    /// A request with this number.
    Ask(i64),
    /// The end of the handshake.
    Initialized,
    /// A notification or an answer.
    Other,
}

#[derive(Debug)]
struct Exchange {
    purpose: Purpose,
    session: Option<HeaderValue>,
    task: AbortHandle,
}

struct Driver {
    core: Core,
    http: HttpClient,
    arrivals: mpsc::Receiver<Arrival>,
    arrive: mpsc::Sender<Arrival>,
    exchanges: HashMap<u64, Exchange>,
    last: u64,
    session: Option<HeaderValue>,
    stream: Option<AbortHandle>,
}

pub(in crate::client) async fn run(core: Core, http: HttpClient) {
    let (arrive, arrivals) = mpsc::channel(QUEUE);
    let mut driver = Driver {
        core,
        http,
        arrivals,
        arrive,
        exchanges: HashMap::new(),
        last: 0,
        session: None,
        stream: None,
    };
    let next = driver.converse().await;
    driver.hang_up().await;
    let Driver { core, http, .. } = driver;
    match next {
        Next::TryHttpSse => http_sse::run(core, &http).await,
        Next::GoOn | Next::Respawn | Next::HangUp => core.finish(),
    }
}

impl Driver {
    async fn converse(&mut self) -> Next {
        let deeds = self.core.connected();
        let mut next = self.perform(deeds);
        while next == Next::GoOn {
            let deeds = tokio::select! {
                woken = self.core.woken() => heed(&mut self.core, woken),
                Some(arrival) = self.arrivals.recv() => self.arrived(arrival),
            };
            next = self.perform(deeds);
        }
        next
    }

    fn perform(&mut self, mut deeds: Deeds) -> Next {
        if deeds.concluded.is_some() && self.core.is_modern() {
            self.session = None;
            deeds.add(self.core.open());
        }
        for text in std::mem::take(&mut deeds.writes) {
            self.post(&text);
        }
        for id in deeds.abandoned {
            self.close_stream(id);
        }
        deeds.next
    }

    /// Closes the stream of a request; in the modern era that cancels it.
    fn close_stream(&mut self, id: i64) {
        self.exchanges.retain(|_, exchange| {
            let is_it = exchange.purpose == Purpose::Ask(id);
            if is_it {
                exchange.task.abort();
            }
            !is_it
        });
    }

    fn post(&mut self, text: &str) {
        let Ok(envelope) = Envelope::parse(text.as_bytes()) else {
            return;
        };
        let purpose = match &envelope {
            Envelope::Request(request) => number(request.id).map_or(Purpose::Opening, Purpose::Ask),
            Envelope::Notification(note) if note.method == Method::Initialized.as_str() => {
                Purpose::Initialized
            }
            Envelope::Notification(_) | Envelope::Response(_) => Purpose::Other,
        };
        let is_modern = envelope
            .params()
            .is_some_and(|params| params.meta.protocol_version.is_some());
        if envelope.method() == Some(Method::Initialize.as_str()) {
            self.session = None;
        }
        self.last += 1;
        let job = Job {
            number: self.last,
            http: self.http.clone(),
            facts: facts::of_message(&envelope, &self.core, self.session.as_ref()),
            id: envelope.id().map(mcpact_wire::id::IdRef::to_id),
            // 2026-07-28: a stream that breaks is gone with its request.
            is_resumable: !is_modern,
            body: Bytes::copy_from_slice(text.as_bytes()),
        };
        let task = tokio::spawn(exchange::run(job, self.arrive.clone())).abort_handle();
        let exchange = Exchange {
            purpose,
            session: self.session.clone().filter(|_| !is_modern),
            task,
        };
        self.exchanges.insert(self.last, exchange);
    }

    fn arrived(&mut self, arrival: Arrival) -> Deeds {
        match arrival {
            Arrival::Session { number, session } => {
                let exchange = self.exchanges.get(&number);
                if exchange.is_some_and(|exchange| exchange.purpose == Purpose::Opening) {
                    self.session = Some(session);
                }
                Deeds::default()
            }
            Arrival::Message {
                number,
                bytes,
                status,
            } => self.message(number, &bytes, status),
            // A server may ask on its standalone stream as soon as it is called, so that stream must be open before.
            Arrival::Listening => self.core.open_again(),
            Arrival::End { number, how } => self.ended(number, how),
        }
    }

    fn message(&mut self, number: u64, bytes: &[u8], status: u16) -> Deeds {
        let exchange = self.exchanges.get(&number);
        match exchange.map(|exchange| exchange.purpose) {
            Some(Purpose::Opening) => self.opening_message(bytes, status),
            Some(Purpose::Ask(id)) => {
                let has_session = exchange.is_some_and(|exchange| exchange.session.is_some());
                if matches!(status, 401 | 403) || (status == 404 && has_session) {
                    // The status takes precedence over the body; the end of the exchange reports it.
                    return Deeds::default();
                }
                let deeds = self.core.receive(bytes, Some(status));
                if deeds.is_unknown_answer
                    && status >= 400
                    && self.core.waits(id)
                    && let Some(raw) = error_in(bytes)
                {
                    // An error without a matching id still belongs to the request that it answers.
                    self.core.lose(id, rpc_error(raw).into());
                }
                deeds
            }
            Some(Purpose::Initialized | Purpose::Other) | None => {
                self.core.receive(bytes, Some(status))
            }
        }
    }

    fn opening_message(&mut self, bytes: &[u8], status: u16) -> Deeds {
        if tells_of_the_moment(status) {
            return Deeds::default();
        }
        let deeds = self.core.receive(bytes, Some(status));
        match error_in(bytes) {
            // Some servers answer with an id of their own.
            Some(raw) if deeds.is_unknown_answer => {
                let text = codec::error(None, raw);
                self.core.receive(text.as_bytes(), Some(status))
            }
            Some(_) | None => deeds,
        }
    }

    fn ended(&mut self, number: u64, how: How) -> Deeds {
        let Some(exchange) = self.exchanges.remove(&number) else {
            return Deeds::default();
        };
        match exchange.purpose {
            Purpose::Opening => self.opening_ended(how),
            Purpose::Ask(id) => self.ask_ended(id, exchange.session, how),
            Purpose::Initialized => {
                if let How::Status(status) | How::Refused(status) = &how
                    && status.code >= 300
                {
                    let status = status.code;
                    tracing::warn!(
                        status,
                        "the server did not accept `notifications/initialized`"
                    );
                }
                self.listen();
                Deeds::default()
            }
            Purpose::Other => {
                if let How::Failed(error) = how {
                    tracing::warn!(%error, "cannot post a message");
                }
                Deeds::default()
            }
        }
    }

    fn opening_ended(&mut self, how: How) -> Deeds {
        let error = match how {
            How::Status(status) | How::Refused(status) if tells_of_the_moment(status.code) => {
                by_status(status)
            }
            How::Status(status) => return self.core.status(status.code),
            How::Finished | How::Refused(_) => return Deeds::default(),
            How::Failed(source) => ClientError::Unreachable {
                target: self.core.shared.target.clone(),
                stderr: String::new(),
                source,
            },
        };
        self.core.fail(error);
        Deeds {
            next: Next::HangUp,
            ..Deeds::default()
        }
    }

    fn ask_ended(&mut self, id: i64, session: Option<HeaderValue>, how: How) -> Deeds {
        if !self.core.waits(id) {
            return Deeds::default();
        }
        let error = match how {
            How::Status(status) | How::Refused(status)
                if status.code == 404 && session.is_some() =>
            {
                return self.session_lost(id, session);
            }
            How::Status(status) | How::Refused(status) => by_status(status),
            How::Finished => ClientError::ProtocolViolation("an answer ended without a result"),
            How::Failed(source @ TransportError::TooLarge { .. }) => ClientError::Transport(source),
            How::Failed(source) => ClientError::Unreachable {
                target: self.core.shared.target.clone(),
                stderr: String::new(),
                source,
            },
        };
        self.core.lose(id, error);
        Deeds::default()
    }

    /// `2025-11-25 basic/transports#session-management`: a 404 to a request with a session means that the session is
    /// over, and a new one must be opened. The request was not served, so it is resent once.
    fn session_lost(&mut self, id: i64, session: Option<HeaderValue>) -> Deeds {
        if !self.core.put_back(id) {
            return Deeds::default();
        }
        if !self.core.is_open() {
            return Deeds::default();
        }
        if session != self.session {
            return self.core.open();
        }
        self.session = None;
        if let Some(stream) = self.stream.take() {
            stream.abort();
        }
        self.core.reopen_session()
    }

    /// `2025-11-25 basic/transports#listening-for-messages-from-the-server`
    fn listen(&mut self) {
        let facts = facts::of_session(&self.core, self.session.as_ref());
        let stream = exchange::listen(self.http.clone(), facts, self.arrive.clone());
        self.stream = Some(tokio::spawn(stream).abort_handle());
    }

    async fn hang_up(&mut self) {
        for (_, exchange) in self.exchanges.drain() {
            exchange.task.abort();
        }
        if let Some(stream) = self.stream.take() {
            stream.abort();
        }
        if let Some(session) = self.session.take() {
            // The server may not allow it, and need not answer.
            let facts = facts::of_session(&self.core, Some(&session));
            let _ = tokio::time::timeout(GOODBYE, self.http.delete(&facts)).await;
        }
    }
}

/// Statuses that do not depend on the era, with instructions in their headers.
const fn tells_of_the_moment(status: u16) -> bool {
    matches!(status, 401 | 403 | 429)
}

fn by_status(status: Status) -> ClientError {
    let Status {
        code,
        challenge,
        retry_after,
    } = status;
    match code {
        401 | 403 => ClientError::Auth {
            status: code,
            challenge,
        },
        status => ClientError::Http {
            status,
            retry_after,
        },
    }
}

/// Returns the raw error of an error response.
fn error_in(bytes: &[u8]) -> Option<&str> {
    match Envelope::parse(bytes) {
        Ok(Envelope::Response(response)) => match response.outcome {
            Outcome::Error(raw) => Some(raw),
            Outcome::Result(_) => None,
        },
        Ok(Envelope::Request(_) | Envelope::Notification(_)) | Err(_) => None,
    }
}
