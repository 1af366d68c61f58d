//! Forwarding between a WebSocket and a link.

use std::time::Duration;

use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use mcpact_wire::frame::ndjson::{DEFAULT_LINE_LIMIT, Line};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::JoinHandle;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message};

use crate::error::TransportError;
use crate::link::{LineSink, LineSource, Link};
use crate::memory::{self, Fault};

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
