//! Adapter that presents HTTP+SSE, the transport of 2024-11-05, as a line-based link like stdio.

use std::time::Duration;

use bytes::Bytes;
use mcpact_transport::error::TransportError;
use mcpact_transport::http::client::HttpClient;
use mcpact_transport::http_sse::client::SseConnection;
use mcpact_transport::link::Link;
use mcpact_transport::memory;
use mcpact_wire::frame::ndjson::Line;

/// Timeout for opening the stream.
const OPEN_TIMEOUT: Duration = Duration::from_secs(30);

/// Opens the stream and returns a link. Two background loops post its output and feed its input.
pub(super) async fn open(http: &HttpClient) -> Result<Link, TransportError> {
    let SseConnection { mut events, sender } = SseConnection::open(http, OPEN_TIMEOUT).await?;
    let (ours, theirs) = memory::pair();
    let Link {
        mut source,
        mut sink,
    } = theirs;
    let posting = async move {
        loop {
            while let Some(line) = source.next_line() {
                let Line::Json(bytes) = line else { continue };
                match sender.post(Bytes::copy_from_slice(bytes)).await {
                    Ok(answer) if answer.status < 300 => {}
                    Ok(answer) => {
                        return tracing::warn!(
                            status = answer.status,
                            "message rejected by the server"
                        );
                    }
                    Err(error) => {
                        return tracing::warn!(%error, "failed to send message");
                    }
                }
            }
            if !source.fill().await.unwrap_or_default() {
                return;
            }
        }
    };
    let listening = async move {
        while let Some(event) = events.next().await {
            match event {
                Ok(event) if matches!(event.name.as_deref(), None | Some("message")) => {
                    sink.push(&event.data);
                    if sink.flush().await.is_err() {
                        return;
                    }
                }
                Ok(_) => {}
                Err(TransportError::TooLarge { limit }) => {
                    // The reader of the link reports a line that is too long.
                    sink.push(&format!("{{\"result\":{}", " ".repeat(limit)));
                    if sink.flush().await.is_err() {
                        return;
                    }
                }
                Err(error) => tracing::debug!(%error, "invalid SSE event dropped"),
            }
        }
    };
    tokio::spawn(async move {
        // The end of either loop ends the connection.
        tokio::select! {
            () = posting => {}
            () = listening => {}
        }
    });
    Ok(ours)
}
