//! The WebSocket transport: one message per text frame, subprotocol `mcp`.
//!
//! [`connect`] is the client's end. The server's end is a response of [`http::server`](crate::http::server), with the
//! same guard and token as other requests.

use std::time::Duration;

use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use http::header::SEC_WEBSOCKET_PROTOCOL;
use http::{HeaderValue, Request, Uri};
use hyper_util::rt::TokioIo;
use mcpact_wire::frame::ndjson::{DEFAULT_LINE_LIMIT, Line};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::JoinHandle;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{WebSocketStream, client_async_with_config};
use url::Url;

use crate::error::TransportError;
use crate::http::client::{Connector, HttpSettings};
use crate::link::{LineSink, LineSource, Link};
use crate::memory::{self, Fault};

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
        let opened = client_async_with_config(request, TokioIo::new(io), Some(config())).await;
        opened.map_err(|error| refused(&error))
    };
    let opened = tokio::time::timeout(settings.connect_timeout, handshake);
    let (socket, _) = opened
        .await
        .map_err(|_| TransportError::Timeout("opening a WebSocket"))??;
    let (link, _) = link(socket, CloseCode::Normal);
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

/// Returns the limits of a WebSocket: a message may be as long as a line.
pub(crate) fn config() -> WebSocketConfig {
    WebSocketConfig::default()
        .max_message_size(Some(DEFAULT_LINE_LIMIT))
        .max_frame_size(Some(DEFAULT_LINE_LIMIT))
}

/// Creates a link on a WebSocket, which is closed with `reason` when the link is closed, and returns the handle of the
/// background job. Needs a tokio runtime.
pub(crate) fn link<S>(socket: WebSocketStream<S>, reason: CloseCode) -> (Link, JoinHandle<()>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let fault = Fault::default();
    let (ours, theirs) = memory::faulty_pair(&fault);
    let pumping = tokio::spawn(pump(socket, ours, fault, reason));
    (theirs, pumping)
}

async fn pump<S: AsyncRead + AsyncWrite + Unpin>(
    socket: WebSocketStream<S>,
    link: Link,
    fault: Fault,
    reason: CloseCode,
) {
    let (mut sender, mut receiver) = socket.split();
    let Link { source, sink } = link;
    let why = tokio::select! {
        why = inbound(&mut receiver, sink, &fault) => why,
        why = outbound(&mut sender, source, reason) => why,
    };
    if let Some(code) = why {
        let reason = match code {
            CloseCode::Size => format!("a message may have {DEFAULT_LINE_LIMIT} bytes"),
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
) -> Option<CloseCode> {
    loop {
        match receiver.next().await? {
            Ok(Message::Text(text)) => {
                sink.push(&text);
                if sink.flush().await.is_err() {
                    return Some(CloseCode::Normal);
                }
            }
            Ok(Message::Binary(_)) => return Some(CloseCode::Unsupported),
            Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_)) => {}
            Ok(Message::Close(_)) => return None,
            Err(Error::Capacity(_)) => {
                // The rest of the message cannot be skipped, so the socket is closed.
                fault.set(TransportError::TooLarge {
                    limit: DEFAULT_LINE_LIMIT,
                });
                return Some(CloseCode::Size);
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
    reason: CloseCode,
) -> Option<CloseCode> {
    loop {
        while let Some(line) = source.next_line() {
            if let Line::Json(bytes) = line {
                let text = String::from_utf8_lossy(bytes).into_owned();
                sender.feed(Message::text(text)).await.ok()?;
            }
        }
        sender.flush().await.ok()?;
        match source.fill().await {
            Ok(true) => {}
            Ok(false) => return Some(reason),
            Err(_) => return Some(CloseCode::Away),
        }
    }
}
