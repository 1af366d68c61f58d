//! One POST and its answer, or the stream of a session, each in a task of its own.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue};
use mcpact_transport::error::DoorError;
use mcpact_transport::http::client::{Answer, AnswerBody, EventStream, HttpClient};
use mcpact_wire::batch::Frame;
use mcpact_wire::envelope::Envelope;
use mcpact_wire::id::Id;
use tokio::sync::mpsc;

/// How long to wait before a broken stream is taken up again, if the server does not say.
const PAUSE: Duration = Duration::from_secs(1);

/// The longest such wait that is honoured.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// How often in a row a stream is taken up without an event.
const ATTEMPTS: u32 = 6;

/// The number of arrivals that belong to no POST.
const NO_POST: u64 = 0;

/// A POST to be made.
pub(super) struct Job {
    pub(super) number: u64,
    pub(super) http: HttpClient,
    pub(super) facts: HeaderMap,
    pub(super) body: Bytes,
    /// The request, if it is one.
    pub(super) id: Option<Id>,
    /// Whether a stream that ends early may be taken up again.
    pub(super) is_resumable: bool,
}

/// What a task tells the driver.
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
    /// The session's own stream is open, or will not be.
    Listening,
    /// Nothing more comes.
    End { number: u64, how: How },
}

/// How an exchange ended.
#[derive(Debug)]
pub(super) enum How {
    /// With messages.
    Finished,
    /// With a status and no message.
    Status(Status),
    /// With a message under a status that may count more.
    Refused(Status),
    /// At the door.
    Failed(DoorError),
}

/// A status and what goes with it.
#[derive(Debug)]
pub(super) struct Status {
    pub(super) code: u16,
    pub(super) challenge: Option<String>,
    pub(super) retry_after: Option<String>,
}

impl Status {
    fn of(answer: &Answer) -> Self {
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

async fn take(job: &Job, answer: Answer, arrive: &mpsc::Sender<Arrival>) -> How {
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
        AnswerBody::Empty => How::Status(by_status),
        AnswerBody::Other(excerpt) => {
            // A server may repeat there what it was sent, secrets too.
            let length = excerpt.len();
            tracing::debug!(status, length, "an answer that is no message");
            How::Status(by_status)
        }
        AnswerBody::Json(bytes) => {
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
        AnswerBody::Events(events) => follow(job, events, status, arrive).await,
    }
}

/// Passes events on until the request is answered, and takes up a stream that breaks off before.
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
                Err(error @ DoorError::TooLarge { .. }) => return How::Failed(error),
                Err(error) => {
                    tracing::debug!(%error, "an event was lost");
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
                        AnswerBody::Events(events) => {
                            reading.events = events;
                            break;
                        }
                        AnswerBody::Empty | AnswerBody::Json(_) | AnswerBody::Other(_) => {
                            return How::Status(status);
                        }
                    }
                }
                Err(error) => {
                    tracing::debug!(%error, "a stream could not be taken up again");
                    failure = Some(error);
                }
            }
        }
    }
}

/// How long a session waits for the head of its own stream before it is used without.
const HEAD: Duration = Duration::from_millis(500);

/// The stream of a session, for what the server says without being asked.
pub(super) async fn listen(http: HttpClient, facts: HeaderMap, arrive: mpsc::Sender<Arrival>) {
    let mut reading: Option<Reading> = None;
    let mut attempt = 0;
    let mut announce = Some(&arrive);
    while attempt <= ATTEMPTS {
        let last_id = reading.as_ref().and_then(|reading| reading.last_id.clone());
        let opened = open_stream(&http, &facts, last_id.as_deref(), announce.take()).await;
        match opened {
            Ok(Answer {
                body: AnswerBody::Events(events),
                ..
            }) => match &mut reading {
                Some(reading) => reading.events = events,
                None => reading = Some(Reading::new(events)),
            },
            // 405 is the polite way to say that there is no such stream.
            Ok(answer) => {
                let status = answer.status;
                return tracing::debug!(status, "the server has no stream of its own");
            }
            Err(error) => tracing::debug!(%error, "the stream could not be opened"),
        }
        if let Some(reading) = &mut reading {
            while let Some(bytes) = reading.next().await {
                let bytes = match bytes {
                    Ok(bytes) => bytes,
                    Err(error) => {
                        tracing::debug!(%error, "an event was lost");
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
    tracing::warn!("the server's stream could not be kept open");
}

/// Opens the session's own stream; the first time, the driver learns when that is done or takes long.
async fn open_stream(
    http: &HttpClient,
    facts: &HeaderMap,
    last_id: Option<&str>,
    announce: Option<&mpsc::Sender<Arrival>>,
) -> Result<Answer, DoorError> {
    let opening = http.listen(facts, last_id);
    let Some(arrive) = announce else {
        return opening.await;
    };
    tokio::pin!(opening);
    let early = tokio::time::timeout(HEAD, &mut opening).await;
    // The driver may be gone already; then nobody waits for this.
    let _ = arrive.send(Arrival::Listening).await;
    match early {
        Ok(opened) => opened,
        Err(_) => opening.await,
    }
}

/// A stream and what its resumption needs.
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

    /// The next message; none when the stream has ended.
    async fn next(&mut self) -> Option<Result<Bytes, DoorError>> {
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

    /// `2025-11-25 basic/transports#sending-messages-to-the-server`: `retry` is respected. Failures
    /// in a row wait longer.
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
