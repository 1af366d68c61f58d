//! A stream of changes of a modern server, for a modern client: it goes on when the server comes back.

use crate::tasks::status;
use std::time::Duration;

use crate::error::ServeError;
use bytestring::ByteString;
use mcpact_engine::server::Scope;
use mcpact_engine::server::listen::ListenFilter;
use mcpact_spec::Method;
use mcpact_translate::input::Backoff;
use mcpact_wire::raw::ObjectWriter;
use tokio::time::Instant;

use crate::connection::slot::TRIES;
use crate::exchange::Exchange;
use crate::exchange::Inbound;
use crate::subscriptions::listen::farewell;
use crate::tasks::status::TaskListen;
use crate::upstream::UpstreamServer;
use mcpact::connection::{Call, CallEvent, CallFailure, ServerNotification, ServerResponse};

/// The pauses before a server is asked once more to tell of changes.
const PAUSES: Backoff = Backoff {
    first: Duration::from_millis(100),
    longest: Duration::from_secs(60),
};

/// How often a stream has broken off, or could not be opened again.
struct StreamFailures {
    /// Soon after it was asked for.
    in_a_row: u32,
    /// Without an agreement since the last one.
    in_vain: u32,
    /// When it was asked for last.
    since: Instant,
}

impl StreamFailures {
    fn new() -> Self {
        Self {
            in_a_row: 0,
            in_vain: 0,
            since: Instant::now(),
        }
    }

    /// How long to wait before it is opened again; none if that has been in vain too often.
    fn pause(&mut self) -> Option<Duration> {
        if self.since.elapsed() > PAUSES.longest {
            self.in_a_row = 0;
        }
        let pause = PAUSES.pause(self.in_a_row);
        self.in_a_row = self.in_a_row.saturating_add(1);
        self.in_vain += 1;
        (self.in_vain <= TRIES).then_some(pause)
    }

    /// It is asked for.
    fn begin(&mut self) {
        self.since = Instant::now();
    }
}

/// How a stream has ended.
enum Ended {
    /// The server has ended it, or refused it.
    DeclaredTasks(Result<ByteString, ServeError>),
    /// It was lost with its connection, and can be opened again.
    Lost(ServeError),
}

/// A modern server is listened to on the client's behalf, under its name for the stream.
pub(crate) async fn listen_along(
    server: &UpstreamServer,
    mut exchange: Exchange,
) -> Result<ByteString, ServeError> {
    let params = exchange.params()?;
    let TaskListen { first, later } = status::go_to_tasks(&mut exchange, params).await;
    let mut call = exchange.send(&first).await?;
    let mut stream = Stream::new();
    loop {
        let mut error = match stream.follow(&mut exchange, call).await {
            Ended::DeclaredTasks(outcome) => return outcome,
            // Nobody was promised anything.
            Ended::Lost(error) if !stream.is_agreed => return Err(error),
            Ended::Lost(error) => error,
        };
        call = loop {
            let Some(pause) = stream.breaks.pause() else {
                return Err(error);
            };
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = server.shared.supervisor.closed() => return Err(error),
            }
            stream.breaks.begin();
            match open_again(&mut exchange, &later).await {
                Ok(Ok(call)) => break call,
                Ok(Err(failed)) => error = failed,
                Err(Changed) => return Err(exchange.changed()),
            }
        };
    }
}

/// The server speaks another revision than it did, so that its client has to ask in another way.
struct Changed;

async fn open_again(
    exchange: &mut Exchange,
    params: &str,
) -> Result<Result<Call, ServeError>, Changed> {
    let before = exchange.upstream();
    if let Err(error) = exchange.acquire().await {
        return Ok(Err(error));
    }
    if exchange.upstream() != before {
        return Err(Changed);
    }
    Ok(exchange.send(params).await)
}

/// What is known of a stream over all of its connections.
struct Stream {
    /// Whether the client was told what the server agrees to.
    is_agreed: bool,
    breaks: StreamFailures,
}

impl Stream {
    fn new() -> Self {
        Self {
            is_agreed: false,
            breaks: StreamFailures::new(),
        }
    }

    /// Passes on what the server tells, until it ends.
    async fn follow(&mut self, exchange: &mut Exchange, mut call: Call) -> Ended {
        // A stream is no call that others would have to wait for.
        let _listening = exchange.connection.hold();
        exchange.guard = None;
        loop {
            match call.next().await {
                CallEvent::Notification(note) => self.tell(exchange, &note).await,
                CallEvent::Response(ServerResponse::Result(_)) => {
                    let id = exchange.inbound.job.id.raw();
                    return Ended::DeclaredTasks(Ok(farewell(id).into()));
                }
                CallEvent::Response(reply) => {
                    return Ended::DeclaredTasks(exchange.finished(&reply));
                }
                CallEvent::Failed(
                    loss @ (CallFailure::ConnectionLost(_) | CallFailure::NotSent(_)),
                ) if !exchange.connection.is_ended() => {
                    return Ended::Lost(exchange.lost(&loss));
                }
                CallEvent::Failed(loss) => return Ended::DeclaredTasks(Err(exchange.lost(&loss))),
                CallEvent::Request(_) => {}
            }
        }
    }

    /// What the server agrees to is told once; when it does so again, so is everything that may have changed while
    /// nobody listened.
    async fn tell(&mut self, exchange: &Exchange, note: &ServerNotification) {
        let inbound = &exchange.inbound;
        let scope = Scope::Request(inbound.job.id.clone());
        if note.method == Method::SubscriptionsAcknowledged {
            self.breaks.in_vain = 0;
            if std::mem::replace(&mut self.is_agreed, true) {
                let filter = ListenFilter::parse(Some(&note.params)).unwrap_or_default();
                return hint_changed(inbound, &filter);
            }
        }
        let named = status::task_told(exchange, note);
        let params = named.as_deref().unwrap_or(&note.params);
        inbound.sink.tell(&scope, note.method, params).await;
    }
}

fn hint_changed(inbound: &Inbound, filter: &ListenFilter) {
    let scope = Scope::Request(inbound.job.id.clone());
    for method in [
        Method::ToolsListChanged,
        Method::PromptsListChanged,
        Method::ResourcesListChanged,
    ] {
        if filter.wants(method, None) {
            inbound.sink.hint(&scope, method, "{}");
        }
    }
    for uri in &filter.uris {
        let params = ObjectWriter::new().text("uri", uri).finish();
        inbound.sink.hint(&scope, Method::ResourcesUpdated, &params);
    }
}
