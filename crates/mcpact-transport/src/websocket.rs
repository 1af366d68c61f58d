//! The WebSocket transport: one message per text frame, subprotocol `mcp`.
//!
//! [`connect`] is the client's end. The server's end is a response of [`http::server`](crate::http::server), with the
//! same guard and token as other requests.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use http::header::SEC_WEBSOCKET_PROTOCOL;
use http::{HeaderValue, Request, Uri};
use hyper_util::rt::TokioIo;
use mcpact_wire::frame::ndjson::{DEFAULT_LINE_LIMIT, Line};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Notify;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{WebSocketStream, client_async_with_config};
use url::Url;

use crate::budget::MemoryExhausted;
use crate::error::TransportError;
use crate::http::client::{Connector, HttpSettings};
use crate::link::{LineSink, LineSource, Link, WriteProgress};
use crate::memory::{self, Fault};

mod budgeted;
mod frames;

use self::budgeted::BudgetedIo;

/// Subprotocol that both sides must name.
pub(crate) const SUBPROTOCOL: &str = "mcp";

/// Opens a WebSocket at a `ws://` or `wss://` URL, with the proxies, certificates and headers of HTTP.
///
/// # Errors
/// The URL has another scheme, the connection fails or times out, or the server refuses the upgrade.
pub async fn connect(address: &str, settings: &HttpSettings) -> Result<Link, TransportError> {
    let (request, target) = request(address, settings)?;
    let handshake = async {
        let io = Connector::new(settings)?.tunnel(target).await?;
        let io = BudgetedIo::before_upgrade(TokioIo::new(io));
        let opened = client_async_with_config(request, io, Some(config())).await;
        opened.map_err(|error| refused(&error))
    };
    let opened = tokio::time::timeout(settings.connect_timeout, handshake);
    let (socket, _) = opened
        .await
        .map_err(|_| TransportError::Timeout("opening a WebSocket"))??;
    let (link, pumping) = link(socket, CloseCode::Normal);
    tokio::spawn(pumping);
    Ok(link)
}

/// Returns the upgrade request and its HTTP URL.
fn request(address: &str, settings: &HttpSettings) -> Result<(Request<()>, Uri), TransportError> {
    let refuse = |why| TransportError::address(crate::address::shown(address), why);
    let mut url = Url::parse(address).map_err(|_| refuse("it is not a URL"))?;
    let scheme = match url.scheme() {
        "ws" => "http",
        "wss" => "https",
        _ => return Err(refuse("only `ws://` and `wss://` addresses are possible")),
    };
    if !url.username().is_empty() || url.password().is_some() {
        return Err(refuse(
            "credentials belong into a header, not into the address",
        ));
    }
    url.set_fragment(None);
    let target = format!("{scheme}{}", &url.as_str()[url.scheme().len()..]);
    let target = target
        .parse()
        .map_err(|_| refuse("it is not a URL that HTTP can carry"))?;
    let mut request = url
        .as_str()
        .into_client_request()
        .map_err(|error| TransportError::Http(error.to_string()))?;
    let headers = request.headers_mut();
    headers.extend(settings.headers.all().clone());
    headers.insert(
        SEC_WEBSOCKET_PROTOCOL,
        HeaderValue::from_static(SUBPROTOCOL),
    );
    Ok((request, target))
}

fn refused(error: &Error) -> TransportError {
    match error {
        Error::Http(answer) => TransportError::Http(format!(
            "the server answered with status {} instead of opening a WebSocket",
            answer.status()
        )),
        other => TransportError::Http(format!("no WebSocket was opened: {other}")),
    }
}

/// Timeout for sending the close frame, after earlier messages.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// Timeout for the peer's close frame.
const CLOSE_REPLY_TIMEOUT: Duration = Duration::from_millis(300);

/// Returns the limits of a WebSocket: a message may be as long as a line. Larger frames arrive in fragments.
fn config() -> WebSocketConfig {
    WebSocketConfig::default()
        .max_message_size(Some(DEFAULT_LINE_LIMIT))
        .max_frame_size(Some(frames::FRAGMENT))
        .read_buffer_size(budgeted::CHUNK)
}

/// Size of queued pongs above which nothing is read until they are written.
const MAX_PONGS: usize = 64 * 1024;

/// Size of a pong without payload.
const PONG_HEADER: usize = 2;

/// Pongs that the library has queued for the peer, which it sends without a limit.
#[derive(Debug, Default)]
struct Pongs {
    bytes: AtomicUsize,
    /// Notified when all of them are written.
    written: Notify,
    /// Notified when they must be written.
    wanted: Notify,
}

impl Pongs {
    /// Counts the pong to a ping.
    fn add(&self, payload: usize) {
        self.bytes
            .fetch_add(PONG_HEADER + payload, Ordering::Relaxed);
    }

    fn all_written(&self) {
        self.bytes.store(0, Ordering::Relaxed);
        self.written.notify_one();
    }

    /// Waits for space.
    async fn has_space(&self) {
        while self.bytes.load(Ordering::Relaxed) >= MAX_PONGS {
            self.wanted.notify_one();
            self.written.notified().await;
        }
    }
}

/// Creates the server's end of a WebSocket on a connection after its upgrade, and the future that forwards the messages
/// until either side ends.
pub async fn accept<S>(io: S) -> (Link, impl Future<Output = ()>)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let io = BudgetedIo::after_upgrade(io);
    let socket = WebSocketStream::from_raw_socket(io, Role::Server, Some(config())).await;
    // Close code 1001: the server is going away.
    link(socket, CloseCode::Away)
}

/// Creates a link on a WebSocket, which is closed with `reason` when the link is closed, and the future that forwards
/// the messages.
fn link<S>(
    socket: WebSocketStream<BudgetedIo<S>>,
    reason: CloseCode,
) -> (Link, impl Future<Output = ()>)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let fault = Fault::default();
    let (ours, mut theirs) = memory::faulty_pair(&fault);
    let progress = socket.get_ref().progress.clone();
    theirs.sink.share_progress(progress.clone());
    (theirs, pump(socket, ours, fault, progress, reason))
}

async fn pump<S: AsyncRead + AsyncWrite + Unpin>(
    socket: WebSocketStream<BudgetedIo<S>>,
    link: Link,
    fault: Fault,
    progress: WriteProgress,
    reason: CloseCode,
) {
    let (mut sender, mut receiver) = socket.split();
    let Link { source, sink } = link;
    let pongs = Pongs::default();
    let why = tokio::select! {
        why = inbound(&mut receiver, sink, &fault, &pongs) => why,
        why = outbound(&mut sender, source, &fault, &pongs, &progress, reason) => why,
    };
    if let Some(code) = why {
        let reason = match code {
            CloseCode::Policy => String::from("messages are not read"),
            CloseCode::Size => format!("a message may have {DEFAULT_LINE_LIMIT} bytes"),
            CloseCode::Again => MemoryExhausted.to_string(),
            CloseCode::Unsupported => String::from("messages are text"),
            CloseCode::Invalid => String::from("the message is not UTF-8"),
            _ => String::new(),
        };
        let frame = CloseFrame {
            code,
            reason: reason.into(),
        };
        let saying = sender.send(Message::Close(Some(frame)));
        if let Ok(Ok(())) = tokio::time::timeout(CLOSE_TIMEOUT, saying).await {
            let closing = async { while let Some(Ok(_)) = receiver.next().await {} };
            let _ = tokio::time::timeout(CLOSE_REPLY_TIMEOUT, closing).await;
        }
    }
}

/// Forwards incoming messages to the link; returns the close code, unless the socket is already closed.
async fn inbound<S: AsyncRead + AsyncWrite + Unpin>(
    receiver: &mut SplitStream<WebSocketStream<S>>,
    mut sink: LineSink,
    fault: &Fault,
    pongs: &Pongs,
) -> Option<CloseCode> {
    loop {
        pongs.has_space().await;
        match receiver.next().await? {
            Ok(Message::Text(text)) => {
                sink.push(&text);
                drop(text);
                if sink.flush().await.is_err() {
                    return Some(CloseCode::Normal);
                }
            }
            Ok(Message::Binary(_)) => return Some(CloseCode::Unsupported),
            Ok(Message::Ping(payload)) => pongs.add(payload.len()),
            Ok(Message::Pong(_) | Message::Frame(_)) => {}
            Ok(Message::Close(_)) => return None,
            Err(Error::Capacity(_)) => {
                // The rest of the message cannot be skipped, so the socket is closed.
                fault.set(TransportError::TooLarge {
                    limit: DEFAULT_LINE_LIMIT,
                });
                return Some(CloseCode::Size);
            }
            Err(Error::Io(error))
                if error
                    .get_ref()
                    .is_some_and(|error| error.is::<TransportError>()) =>
            {
                let error = error.downcast().unwrap_or_else(TransportError::Io);
                fault.set(error);
                return Some(CloseCode::Again);
            }
            Err(Error::Utf8(_)) => return Some(CloseCode::Invalid),
            Err(error) => {
                tracing::debug!(%error, "the socket broke");
                return None;
            }
        }
    }
}

/// Forwards messages of the link to the socket; returns the close code.
async fn outbound<S: AsyncRead + AsyncWrite + Unpin>(
    sender: &mut SplitSink<WebSocketStream<S>, Message>,
    mut source: LineSource,
    fault: &Fault,
    pongs: &Pongs,
    progress: &WriteProgress,
    reason: CloseCode,
) -> Option<CloseCode> {
    loop {
        let sending = async {
            let mut lost = None;
            while let Some(line) = source.next_line() {
                match line {
                    Line::Json(bytes) => {
                        let text = String::from_utf8_lossy(bytes).into_owned();
                        sender.feed(Message::text(text)).await?;
                    }
                    Line::TooLong { limit, .. } => {
                        lost = Some(source.lost(limit));
                        break;
                    }
                    Line::Noise(_) => {}
                }
            }
            sender.flush().await.map(|()| lost)
        };
        tokio::select! {
            biased;
            sent = sending => {
                if let Some(error) = sent.ok()? {
                    tracing::warn!(%error, "WebSocket closed: a message to the peer was lost");
                    fault.set(error);
                    return Some(CloseCode::Again);
                }
            }
            stalled = progress.stalled() => {
                fault.set(stalled);
                return Some(CloseCode::Policy);
            }
        }
        pongs.all_written();
        tokio::select! {
            more = source.fill() => match more {
                Ok(true) => {}
                Ok(false) => return Some(reason),
                Err(_) => return Some(CloseCode::Away),
            },
            () = pongs.wanted.notified() => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use mcpact_wire::frame::ndjson::Line;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex, split};
    use tokio::time::timeout;

    use super::{CloseCode, MAX_PONGS, accept};
    use crate::error::TransportError;
    use crate::link::Link;

    /// Space of a connection per direction.
    const SPACE: usize = 1024;

    /// A ping without payload, with a mask.
    const PING: [u8; 6] = [0x89, 0x80, 0, 0, 0, 0];

    async fn opened() -> (DuplexStream, Link) {
        let (client, server) = duplex(SPACE);
        let (link, pumping) = accept(server).await;
        tokio::spawn(pumping);
        (client, link)
    }

    /// Sends pings until nothing is accepted for a second. Returns the rest of the last ping.
    async fn ping_without_end(client: &mut DuplexStream) -> &'static [u8] {
        let mut rest = &PING[..];
        while let Ok(accepted) = timeout(Duration::from_secs(1), client.write(rest)).await {
            rest = &rest[accepted.unwrap()..];
            if rest.is_empty() {
                rest = &PING;
            }
        }
        rest
    }

    /// Waits until the link fails.
    async fn is_cut_off(link: &mut Link) -> bool {
        let read = timeout(Duration::from_secs(15), link.source.fill()).await;
        matches!(read, Ok(Err(TransportError::Stalled { .. })))
    }

    #[tokio::test(start_paused = true)]
    async fn client_that_pings_and_does_not_read_is_disconnected() {
        let (mut client, mut link) = opened().await;
        ping_without_end(&mut client).await;
        assert!(is_cut_off(&mut link).await);
        let mut output = Vec::new();
        client.read_to_end(&mut output).await.unwrap();
        assert!(output.len() < MAX_PONGS + 2 * SPACE, "{}", output.len());
        let code = u16::from(CloseCode::Policy).to_be_bytes();
        let reason = [code.as_slice(), b"messages are not read"].concat();
        assert!(output.ends_with(&reason));
    }

    #[tokio::test(start_paused = true)]
    async fn client_that_does_not_read_messages_is_disconnected() {
        let (_client, mut link) = opened().await;
        link.sink.push(&format!("{{{}}}", " ".repeat(2 * SPACE)));
        link.sink.flush().await.unwrap();
        assert!(is_cut_off(&mut link).await);
    }

    /// A slow client is served as long as it reads.
    #[tokio::test(start_paused = true)]
    async fn slow_client_gets_its_pongs() {
        let (mut client, mut link) = opened().await;
        let rest = ping_without_end(&mut client).await;
        let (mut reader, mut writer) = split(client);
        let mut pongs = 0;
        let mut piece = [0; SPACE];
        while let Ok(count) = timeout(Duration::from_secs(30), reader.read(&mut piece)).await {
            pongs += count.unwrap();
            tokio::time::sleep(Duration::from_secs(5)).await;
        }
        assert!(pongs > MAX_PONGS, "{pongs}");
        writer.write_all(rest).await.unwrap();
        // A text message with a mask.
        let text = [0x81, 0x82, 0, 0, 0, 0, b'{', b'}'];
        writer.write_all(&text).await.unwrap();
        assert!(link.source.fill().await.unwrap());
        assert_eq!(link.source.next_line(), Some(Line::Json(b"{}")));
    }
}
