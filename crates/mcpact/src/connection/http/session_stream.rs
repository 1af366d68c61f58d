//! SSE stream of a legacy session, for messages that belong to no call.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use http::HeaderMap;
use mcpact_transport::error::TransportError;
use mcpact_transport::http::client::{ClientResponse, ClientResponseBody, EventStream, HttpClient};
use tokio::time::Instant;

use super::refusal::{rejects_revision, session_unknown};
use super::{HttpReplyPath, MAX_ATTEMPTS};
use crate::connection::inbox::Undelivered;
use crate::connection::inbox::{
    Incoming, ServerNotification, Unsolicited, UnsolicitedSender, parse,
};
use crate::connection::notification_limit::{
    Admission, DropCount, HELD_INTERVAL, NotificationLimit,
};
use crate::connection::server_request::RequestLimit;
use crate::connection::{CallFailure, CallObserver, DropReason, MessageHandler};

/// Destination of messages that belong to no call.
pub(super) struct UnsolicitedSink {
    pub(super) unsolicited: UnsolicitedSender,
    pub(super) handler: Option<Arc<dyn MessageHandler>>,
    pub(super) observer: Arc<dyn CallObserver>,
    pub(super) requests: RequestLimit,
}

impl UnsolicitedSink {
    async fn forward(&self, notification: ServerNotification) -> Result<(), Undelivered> {
        self.observer.notification(&notification);
        let message = Unsolicited::Notification(notification);
        self.unsolicited.send(message).await
    }
}

/// Reads the stream until the session ends, resuming it after interruptions.
pub(super) async fn listen(
    http: HttpClient,
    headers: Arc<HeaderMap>,
    sink: UnsolicitedSink,
    open: tokio::sync::oneshot::Sender<bool>,
    is_gone: Arc<AtomicBool>,
) {
    let mut open = Some(open);
    let mut was_there = false;
    let mut resume = Resume::default();
    while resume.attempt <= MAX_ATTEMPTS {
        let opened = http.listen(&headers, resume.last_id.as_deref()).await;
        if let Some(open) = open.take() {
            // The connection may not wait any longer.
            let is_there = matches!(&opened, Ok(answer) if matches!(answer.body, ClientResponseBody::Events(_)));
            let _ = open.send(is_there);
        }
        match opened {
            Ok(ClientResponse {
                body: ClientResponseBody::Events(events),
                ..
            }) => {
                was_there = true;
                let mut reader = EventReader::new(events, resume, 0);
                while let Some(read) = reader.next().await {
                    let bytes = match read {
                        Read::Message(bytes) => bytes,
                        Read::Released(notification) => {
                            if sink.forward(notification).await.is_err() {
                                return;
                            }
                            continue;
                        }
                        Read::Lost(lost) => {
                            sink.observer.dropped(lost.reason());
                            continue;
                        }
                    };
                    let message = match parse(&bytes, sink.handler.as_deref()) {
                        Incoming::Notification(notification) => {
                            let Some(notification) = reader.admit(notification, &*sink.observer)
                            else {
                                continue;
                            };
                            if sink.forward(notification).await.is_err() {
                                return;
                            }
                            continue;
                        }
                        Incoming::Request(request) => {
                            if sink.handler.is_none() {
                                reader.count();
                            }
                            let request =
                                HttpReplyPath::set(&http, &headers, &sink.requests, request);
                            let Some(request) = request else {
                                sink.observer.dropped(DropReason::TooManyRequests);
                                continue;
                            };
                            if let Some(handler) = &sink.handler {
                                handler.request(request);
                                continue;
                            }
                            Unsolicited::Request(request)
                        }
                        Incoming::Handled => continue,
                        Incoming::Response(..) => {
                            reader.count();
                            sink.observer.dropped(DropReason::LateAnswer);
                            continue;
                        }
                        Incoming::Invalid(why) => {
                            reader.count();
                            sink.observer.dropped(why);
                            continue;
                        }
                    };
                    if sink.unsolicited.send(message).await.is_err() {
                        return;
                    }
                }
                resume = reader.resume;
            }
            // 405 means that the server offers no such stream.
            Ok(answer) => {
                let status = answer.status;
                let is_another = status == 405 || rejects_revision(&answer);
                if was_there && (is_another || session_unknown(&answer)) {
                    is_gone.store(true, Ordering::Relaxed);
                }
                return tracing::debug!(status, "server offers no SSE stream");
            }
            Err(error) => tracing::debug!(%error, "failed to open the SSE stream"),
        }
        resume.attempt += 1;
        tokio::time::sleep(resume.pause()).await;
    }
    tracing::warn!("SSE stream lost; retries exhausted");
    // Listeners need a new session.
    is_gone.store(true, Ordering::Relaxed);
}

/// Pause before a broken stream is resumed, unless the server sends `retry`.
pub(super) const DEFAULT_PAUSE: Duration = Duration::from_millis(500);

/// Maximum pause.
const MAX_PAUSE: Duration = Duration::from_secs(60);

/// A message that was dropped.
#[derive(Clone, Copy, Debug)]
pub(super) enum LostMessage {
    /// It exceeds this number of bytes.
    TooLong(usize),
    /// There was no memory for it.
    MemoryExhausted,
}

impl LostMessage {
    /// Returns the message that an error stands for.
    pub(super) const fn of(error: &TransportError) -> Option<Self> {
        match error {
            TransportError::TooLarge { limit } => Some(Self::TooLong(*limit)),
            TransportError::Memory(_) => Some(Self::MemoryExhausted),
            _ => None,
        }
    }

    pub(super) const fn reason(self) -> DropReason {
        match self {
            Self::TooLong(_) => DropReason::TooLong,
            Self::MemoryExhausted => DropReason::MemoryExhausted,
        }
    }

    /// Returns the failure of the call that waits for the message.
    pub(super) const fn failure(self) -> CallFailure {
        match self {
            Self::TooLong(limit) => CallFailure::ResponseTooLarge(limit),
            Self::MemoryExhausted => CallFailure::MemoryExhausted,
        }
    }
}

/// State for resuming a stream.
#[derive(Clone, Debug, Default)]
pub(super) struct Resume {
    pub(super) last_id: Option<String>,
    retry: Option<Duration>,
    pub(super) attempt: u32,
}

/// An open stream, with a rate limit of its notifications.
pub(super) struct EventReader {
    events: Box<EventStream>,
    pub(super) resume: Resume,
    calls_in_flight: usize,
    /// Exists from the first message on that is no response to a call.
    rate: Option<Box<StreamRate>>,
}

/// What a stream delivers next.
pub(super) enum Read {
    Message(Bytes),
    /// A notification that had to wait.
    Released(ServerNotification),
    Lost(LostMessage),
}

/// Rate of the notifications of a stream.
struct StreamRate {
    limit: NotificationLimit,
    drops: DropCount,
    /// Begin of the work since the last pause.
    began: Instant,
    paused_until: Option<Instant>,
}

impl StreamRate {
    /// Pauses after work above the rate. Cancel safe.
    async fn pause(&mut self) {
        let began = self.began;
        if let Some(pause) = self.limit.pause_after(|| began.elapsed()) {
            self.paused_until = Some(Instant::now() + pause);
        }
        if let Some(until) = self.paused_until {
            tokio::time::sleep_until(until).await;
            self.paused_until = None;
        }
        self.began = Instant::now();
    }
}

impl Resume {
    /// Returns the pause before the next attempt: `retry`, doubled with every failure in a row.
    pub(super) fn pause(&self) -> Duration {
        let first = self.retry.unwrap_or(DEFAULT_PAUSE);
        let factor = 1 << self.attempt.saturating_sub(1).min(5);
        (first * factor).min(MAX_PAUSE)
    }
}

impl EventReader {
    pub(super) fn new(events: Box<EventStream>, resume: Resume, calls_in_flight: usize) -> Self {
        Self {
            events,
            resume,
            calls_in_flight,
            rate: None,
        }
    }

    fn rate(&mut self) -> &mut StreamRate {
        let rate = self.rate.get_or_insert_with(|| {
            let now = Instant::now();
            Box::new(StreamRate {
                limit: NotificationLimit::new(now),
                drops: DropCount::default(),
                began: now,
                paused_until: None,
            })
        });
        rate.limit.refill(Instant::now(), self.calls_in_flight);
        rate
    }

    /// Counts a message that is no response to a call.
    pub(super) fn count(&mut self) {
        self.rate().limit.count();
    }

    /// Returns a notification, unless it exceeds the rate.
    pub(super) fn admit(
        &mut self,
        notification: ServerNotification,
        observer: &dyn CallObserver,
    ) -> Option<ServerNotification> {
        let rate = self.rate();
        match rate.limit.admit(notification) {
            Admission::Forward(notification) => return Some(notification),
            Admission::Held => {}
            Admission::Dropped => {
                observer.dropped(DropReason::RateLimited);
                if let Some(count) = rate.drops.add(Instant::now()) {
                    let reason = DropReason::RateLimited.as_str();
                    tracing::warn!(reason, count, "messages of the server dropped");
                }
            }
        }
        None
    }

    /// Returns a notification that waits.
    pub(super) fn take_held(&mut self) -> Option<ServerNotification> {
        self.rate.as_mut()?.limit.take_held()
    }

    /// Returns the next message, or none at the end of the stream. Cancel safe.
    pub(super) async fn next(&mut self) -> Option<Read> {
        loop {
            let Some(rate) = &mut self.rate else {
                return self.read().await;
            };
            rate.pause().await;
            if let Some(notification) = self.rate().limit.release() {
                return Some(Read::Released(notification));
            }
            let is_holding = self.rate().limit.is_holding();
            let ready = pin!(self.read()).now_or_never();
            let read = match ready {
                Some(read) => read,
                None => {
                    let read = tokio::select! {
                        biased;
                        read = self.read() => read,
                        () = tokio::time::sleep(HELD_INTERVAL), if is_holding => continue,
                    };
                    // Waiting is no work.
                    self.rate().began = Instant::now();
                    read
                }
            };
            return read.or_else(|| self.take_held().map(Read::Released));
        }
    }

    async fn read(&mut self) -> Option<Read> {
        while let Some(event) = self.events.next().await {
            let event = match event {
                Ok(event) => event,
                Err(error) => {
                    if let Some(lost) = LostMessage::of(&error) {
                        return Some(Read::Lost(lost));
                    }
                    tracing::debug!(%error, "invalid SSE event dropped");
                    continue;
                }
            };
            if let Some(id) = event.id {
                self.resume.last_id = Some(id).filter(|id| !id.is_empty());
            }
            if let Some(retry) = event.retry {
                self.resume.retry = Some(Duration::from_millis(retry).min(MAX_PAUSE));
            }
            let is_message = matches!(event.name.as_deref(), None | Some("message"));
            if is_message && !event.data.is_empty() {
                self.resume.attempt = 0;
                return Some(Read::Message(self.events.charged(event.data)));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use mcpact_spec::Method;
    use mcpact_transport::http::client::HttpSettings;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    #[derive(Debug, Default)]
    struct Drops(AtomicUsize);

    impl CallObserver for Drops {
        fn dropped(&self, reason: DropReason) {
            assert_eq!(reason, DropReason::RateLimited);
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// A server that sends this event stream to one request.
    async fn stream(events: String) -> HttpClient {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        tokio::spawn(async move {
            let (mut socket, _) = listener.accept().await.unwrap();
            let _ = socket.read(&mut [0; 4096]).await;
            let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close";
            let text = format!("{head}\r\n\r\n{events}");
            let _ = socket.write_all(text.as_bytes()).await;
        });
        HttpClient::new(&url, HttpSettings::default()).unwrap()
    }

    /// Above the rate, progress is dropped, changes are combined and delivered before the end, and other messages pass.
    #[tokio::test]
    async fn storm_on_a_stream_is_limited() {
        const STORM: usize = 20_000;
        let note = |method: &str| {
            format!("data: {{\"jsonrpc\":\"2.0\",\"method\":\"notifications/{method}\"}}\n\n")
        };
        let answer = "data: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n\n";
        let changed = note("tools/list_changed");
        let events = note("progress").repeat(STORM) + &changed.repeat(3) + answer;
        let http = stream(events).await;
        let opened = http.listen(&HeaderMap::new(), None).await.unwrap();
        let ClientResponseBody::Events(events) = opened.body else {
            panic!("no stream");
        };
        let (mut reader, observer) = (
            EventReader::new(events, Resume::default(), 1),
            Drops::default(),
        );
        let (mut forwarded, mut responses) = (Vec::new(), 0);
        while let Some(read) = reader.next().await {
            match read {
                Read::Message(bytes) => match parse(&bytes, None) {
                    Incoming::Notification(note) => forwarded.extend(reader.admit(note, &observer)),
                    Incoming::Response(..) => responses += 1,
                    _ => panic!("nothing else was sent"),
                },
                Read::Released(note) => forwarded.push(note),
                Read::Lost(lost) => panic!("{lost:?}"),
            }
        }
        let of = |method| {
            forwarded
                .iter()
                .filter(|note| note.method == method)
                .count()
        };
        let dropped = observer.0.load(Ordering::Relaxed);
        assert!(dropped > 0, "the storm exceeds the rate");
        assert_eq!(of(Method::Progress) + dropped, STORM);
        let changes = of(Method::ToolsListChanged);
        assert!((1..=3).contains(&changes), "{changes}");
        assert_eq!(responses, 1);
    }
}
