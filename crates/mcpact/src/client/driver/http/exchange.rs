//! One POST and its response, or the standalone stream of a session, each spawned.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue};
use mcpact_transport::error::TransportError;
use mcpact_transport::http::client::{ClientResponse, ClientResponseBody, EventStream, HttpClient};
use mcpact_wire::batch::Frame;
use mcpact_wire::envelope::Envelope;
use mcpact_wire::id::Id;
use tokio::sync::mpsc;

/// Default delay before a broken stream is resumed.
const PAUSE: Duration = Duration::from_secs(1);

/// Maximum delay honoured.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// Maximum number of successive attempts to resume a stream without an event.
const ATTEMPTS: u32 = 6;

/// Number of arrivals that belong to no POST.
const NO_POST: u64 = 0;

/// POST to be made.
pub(super) struct Job {
    pub(super) number: u64,
    pub(super) http: HttpClient,
    pub(super) facts: HeaderMap,
    pub(super) body: Bytes,
    /// The request, if it is one.
    pub(super) id: Option<Id>,
    /// `true` if an interrupted stream may be resumed.
    pub(super) is_resumable: bool,
}

/// Event for the driver.
#[derive(Debug)]
pub(super) enum Arrival {
    /// The answer names a session.
    Session { number: u64, session: HeaderValue },
    /// A message or batch.
    Message {
        number: u64,
        bytes: Bytes,
        status: u16,
    },
    /// The standalone stream is open, or will not be.
    Listening,
    /// Nothing more comes.
    End { number: u64, how: How },
}

/// End of an exchange.
#[derive(Debug)]
pub(super) enum How {
    /// Messages.
    Finished,
    /// Status without a message.
    Status(Status),
    /// Message under a status that takes precedence.
    Refused(Status),
    /// Transport error.
    Failed(TransportError),
}

/// Status and related headers.
#[derive(Debug)]
pub(super) struct Status {
    pub(super) code: u16,
    pub(super) challenge: Option<String>,
    pub(super) retry_after: Option<String>,
}

impl Status {
    fn of(answer: &ClientResponse) -> Self {
        Self {
            code: answer.status,
            challenge: answer.header("www-authenticate").map(str::to_owned),
            retry_after: answer.header("retry-after").map(str::to_owned),
        }
    }
}

pub(super) async fn run(job: Job, arrive: mpsc::Sender<Arrival>) {
    let number = job.number;
    let how = match job.http.post(&job.facts, job.body.clone()).await {
        Err(error) => How::Failed(error),
        Ok(answer) => take(&job, answer, &arrive).await,
    };
    // The driver may have ended.
    let _ = arrive.send(Arrival::End { number, how }).await;
}

async fn take(job: &Job, answer: ClientResponse, arrive: &mpsc::Sender<Arrival>) -> How {
    if let Some(session) = answer.headers.get("mcp-session-id")
        && answer.status < 300
    {
        let session = session.clone();
        let number = job.number;
        let _ = arrive.send(Arrival::Session { number, session }).await;
    }
    let status = answer.status;
    let by_status = Status::of(&answer);
    match answer.body {
        ClientResponseBody::Empty => How::Status(by_status),
        ClientResponseBody::Other(excerpt) => {
            // A server may echo its input there, with secrets.
            let length = excerpt.len();
            tracing::debug!(status, length, "response without a message");
            How::Status(by_status)
        }
        ClientResponseBody::Json(bytes) => {
            if Frame::parse(&bytes).is_err() {
                return How::Status(by_status);
            }
            let message = Arrival::Message {
                number: job.number,
                bytes,
                status,
            };
            // The driver may have ended.
            let _ = arrive.send(message).await;
            match status {
                400.. => How::Refused(by_status),
                _ => How::Finished,
            }
        }
        ClientResponseBody::Events(events) => follow(job, events, status, arrive).await,
    }
}

/// Forwards events until the request is answered, and resumes an interrupted stream.
async fn follow(
    job: &Job,
    events: Box<EventStream>,
    status: u16,
    arrive: &mpsc::Sender<Arrival>,
) -> How {
    let mut reading = Reading::new(events);
    let mut attempt = 0;
    let mut failure = None;
    loop {
        while let Some(data) = reading.next().await {
            let data = match data {
                Ok(data) => data,
                // It may have been the answer, and would be too large again.
                Err(error @ TransportError::TooLarge { .. }) => return How::Failed(error),
                Err(error) => {
                    tracing::debug!(%error, "event lost");
                    failure = Some(error);
                    continue;
                }
            };
            attempt = 0;
            let is_answer = job.id.as_ref().is_some_and(|id| answers(&data, id));
            let message = Arrival::Message {
                number: job.number,
                bytes: data,
                status,
            };
            if arrive.send(message).await.is_err() || is_answer {
                return How::Finished;
            }
        }
        if job.id.is_none() || !job.is_resumable || reading.last_id.is_none() {
            return failure.map_or(How::Finished, How::Failed);
        }
        loop {
            attempt += 1;
            if attempt > ATTEMPTS {
                return failure.map_or(How::Finished, How::Failed);
            }
            tokio::time::sleep(reading.pause(attempt)).await;
            match job
                .http
                .listen(&job.facts, reading.last_id.as_deref())
                .await
            {
                Ok(answer) => {
                    let status = Status::of(&answer);
                    match answer.body {
                        ClientResponseBody::Events(events) => {
                            reading.events = events;
                            break;
                        }
                        ClientResponseBody::Empty
                        | ClientResponseBody::Json(_)
                        | ClientResponseBody::Other(_) => {
                            return How::Status(status);
                        }
                    }
                }
                Err(error) => {
                    tracing::debug!(%error, "cannot resume a stream");
                    failure = Some(error);
                }
            }
        }
    }
}

/// Timeout for the headers of the standalone stream.
const HEAD: Duration = Duration::from_millis(500);

/// Reads the standalone stream of a session.
pub(super) async fn listen(http: HttpClient, facts: HeaderMap, arrive: mpsc::Sender<Arrival>) {
    let mut reading: Option<Reading> = None;
    let mut attempt = 0;
    let mut announce = Some(&arrive);
    while attempt <= ATTEMPTS {
        let last_id = reading.as_ref().and_then(|reading| reading.last_id.clone());
        let opened = open_stream(&http, &facts, last_id.as_deref(), announce.take()).await;
        match opened {
            Ok(ClientResponse {
                body: ClientResponseBody::Events(events),
                ..
            }) => match &mut reading {
                Some(reading) => reading.events = events,
                None => reading = Some(Reading::new(events)),
            },
            // 405 means that the server has no such stream.
            Ok(answer) => {
                let status = answer.status;
                return tracing::debug!(status, "the server has no standalone stream");
            }
            Err(error) => tracing::debug!(%error, "cannot open the standalone stream"),
        }
        if let Some(reading) = &mut reading {
            while let Some(bytes) = reading.next().await {
                let bytes = match bytes {
                    Ok(bytes) => bytes,
                    Err(error) => {
                        tracing::debug!(%error, "event lost");
                        continue;
                    }
                };
                attempt = 0;
                let message = Arrival::Message {
                    number: NO_POST,
                    bytes,
                    status: 200,
                };
                if arrive.send(message).await.is_err() {
                    return;
                }
            }
        }
        attempt += 1;
        let pause = reading
            .as_ref()
            .map_or(PAUSE, |reading| reading.pause(attempt));
        tokio::time::sleep(pause).await;
    }
    tracing::warn!("cannot keep the standalone stream open");
}

/// Opens the standalone stream; the first time, notifies the driver when it is open or slow.
async fn open_stream(
    http: &HttpClient,
    facts: &HeaderMap,
    last_id: Option<&str>,
    announce: Option<&mpsc::Sender<Arrival>>,
) -> Result<ClientResponse, TransportError> {
    let opening = http.listen(facts, last_id);
    let Some(arrive) = announce else {
        return opening.await;
    };
    tokio::pin!(opening);
    let early = tokio::time::timeout(HEAD, &mut opening).await;
    // The driver may have ended.
    let _ = arrive.send(Arrival::Listening).await;
    match early {
        Ok(opened) => opened,
        Err(_) => opening.await,
    }
}

/// Event stream with the data for its resumption.
struct Reading {
    events: Box<EventStream>,
    last_id: Option<String>,
    retry: Option<Duration>,
}

impl Reading {
    const fn new(events: Box<EventStream>) -> Self {
        Self {
            events,
            last_id: None,
            retry: None,
        }
    }

    /// Returns the next message; none at the end of the stream.
    async fn next(&mut self) -> Option<Result<Bytes, TransportError>> {
        while let Some(event) = self.events.next().await {
            let event = match event {
                Ok(event) => event,
                Err(error) => return Some(Err(error)),
            };
            if let Some(id) = event.id {
                self.last_id = Some(id).filter(|id| !id.is_empty());
            }
            if let Some(retry) = event.retry {
                self.retry = Some(Duration::from_millis(retry).min(LONGEST_PAUSE));
            }
            let is_message = matches!(event.name.as_deref(), None | Some("message"));
            if is_message && !event.data.is_empty() {
                return Some(Ok(Bytes::from(event.data)));
            }
        }
        None
    }

    /// `2025-11-25 basic/transports#sending-messages-to-the-server`: `retry` is respected. Successive failures back
    /// off.
    fn pause(&self, attempt: u32) -> Duration {
        let first = self.retry.unwrap_or(PAUSE);
        let factor = 1 << attempt.saturating_sub(1).min(5);
        (first * factor).min(LONGEST_PAUSE)
    }
}

fn answers(bytes: &[u8], id: &Id) -> bool {
    let is_it = |envelope: &Envelope<'_>| match envelope {
        Envelope::Response(response) => response.id == Some(id.as_ref()),
        Envelope::Request(_) | Envelope::Notification(_) => false,
    };
    match Frame::parse(bytes) {
        Ok(Frame::Single(envelope)) => is_it(&envelope),
        Ok(Frame::Batch(all)) => all.iter().flatten().any(is_it),
        Err(_) => false,
    }
}
