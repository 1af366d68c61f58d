//! HTTP+SSE, the transport of 2024-11-05, as a carrier of lines: nothing of the protocol is written
//! twice for it.

use std::time::Duration;

use bytes::Bytes;
use mcpact_transport::error::DoorError;
use mcpact_transport::http::client::HttpClient;
use mcpact_transport::http_sse::client::SseConnection;
use mcpact_transport::link::Link;
use mcpact_transport::memory;
use mcpact_wire::frame::ndjson::Line;

/// How long the stream may take to begin.
const PATIENCE: Duration = Duration::from_secs(30);

/// Opens the stream and gives a link whose other end posts and listens.
pub(super) async fn open(http: &HttpClient) -> Result<Link, DoorError> {
    let SseConnection { mut events, sender } = SseConnection::open(http, PATIENCE).await?;
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
                Err(DoorError::TooLarge { limit }) => {
                    // An event has no line, and whoever reads lines knows what is to be done.
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
        // Either end ends the other: without a stream nothing can be heard.
        tokio::select! {
            () = posting => {}
            () = listening => {}
        }
    });
    Ok(ours)
}
