//! HTTP+SSE, the transport of 2024-11-05: one event stream from the server, and an endpoint for messages that the stream
//! names first. The adapter presents it as a line-based link like stdio.

use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use mcpact_wire::frame::ndjson::Line;
use mcpact_wire::frame::sse::Event;

use crate::error::TransportError;
use crate::http::client::{ClientResponseBody, EventStream, HttpClient};
use crate::link::Link;
use crate::memory::{self, Fault};

/// Opens the stream, waits for the endpoint and returns a link. Two background loops post its output and feed its input.
///
/// # Errors
/// The stream cannot be opened, the endpoint does not arrive in time, or it has another origin.
pub async fn connect(http: &HttpClient, timeout: Duration) -> Result<Link, TransportError> {
    let (mut events, sender) = tokio::time::timeout(timeout, open(http))
        .await
        .map_err(|_| TransportError::Timeout("waiting for the `endpoint` event"))??;
    let no_headers = HeaderMap::new();
    let fault = Fault::default();
    let (theirs, ours) = memory::faulty_pair(&fault);
    let listening_fault = fault.clone();
    let Link {
        mut source,
        mut sink,
    } = theirs;
    let posting = async move {
        let mut is_first = true;
        loop {
            while let Some(line) = source.next_line() {
                let bytes = match line {
                    Line::Json(bytes) => bytes,
                    Line::TooLong { limit, .. } => {
                        let error = source.lost(limit);
                        tracing::warn!(%error, "message to the server lost");
                        return fault.set(error);
                    }
                    Line::Noise(_) => continue,
                };
                let message = Bytes::copy_from_slice(bytes);
                // Only the first message, `initialize`, may be sent twice.
                let posted = match std::mem::take(&mut is_first) {
                    true => sender.post(&no_headers, message).await,
                    false => sender.post_once(&no_headers, message).await,
                };
                match posted {
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
                Err(error @ TransportError::Memory(_)) => return listening_fault.set(error),
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

/// Returns the stream, and a client for the endpoint of messages.
///
/// `2024-11-05 basic/transports#http-with-sse`: the first event must be `endpoint`.
async fn open(http: &HttpClient) -> Result<(Box<EventStream>, HttpClient), TransportError> {
    let response = http.listen(&HeaderMap::new(), None).await?;
    let ClientResponseBody::Events(mut events) = response.body else {
        let status = response.status;
        return Err(TransportError::Http(format!(
            "a GET was answered with status {status} instead of an event stream"
        )));
    };
    match events.next().await {
        Some(first) => {
            let sender = http.at(address(&first?)?)?;
            Ok((events, sender))
        }
        None => Err(TransportError::Http(
            "the event stream ended before its `endpoint` event".to_owned(),
        )),
    }
}

fn address(event: &Event) -> Result<&str, TransportError> {
    if event.name.as_deref() == Some("endpoint") {
        Ok(event.data.trim())
    } else {
        Err(TransportError::Http(
            "the event stream does not begin with an `endpoint` event".to_owned(),
        ))
    }
}
