//! The client of HTTP+SSE, the transport of 2024-11-05: one event stream from the server, and an endpoint for messages
//! that the stream names first.

use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use mcpact_wire::frame::sse::Event;

use crate::error::TransportError;
use crate::http::client::{ClientResponse, ClientResponseBody, EventStream, HttpClient};

/// Both directions of an HTTP+SSE connection.
#[derive(Debug)]
pub struct SseConnection {
    /// Messages from the server.
    pub events: Box<EventStream>,
    /// Sender of messages to the server.
    pub sender: SseSender,
}

/// Sends messages to the endpoint of a connection.
#[derive(Clone, Debug)]
pub struct SseSender {
    http: HttpClient,
}

impl SseConnection {
    /// Opens the stream and waits for the endpoint.
    ///
    /// `2024-11-05 basic/transports#http-with-sse`: the first event must be `endpoint`.
    ///
    /// # Errors
    /// The stream cannot be opened, the endpoint does not arrive in time, or it has another origin.
    pub async fn open(http: &HttpClient, patience: Duration) -> Result<Self, TransportError> {
        let opening = async {
            let response = http.listen(&HeaderMap::new(), None).await?;
            let ClientResponseBody::Events(mut events) = response.body else {
                let status = response.status;
                return Err(TransportError::Http(format!(
                    "a GET was answered with status {status} instead of an event stream"
                )));
            };
            let sender = match events.next().await {
                Some(first) => SseSender {
                    http: http.at(address(&first?)?)?,
                },
                None => {
                    return Err(TransportError::Http(
                        "the event stream ended before its `endpoint` event".to_owned(),
                    ));
                }
            };
            Ok(Self { events, sender })
        };
        tokio::time::timeout(patience, opening)
            .await
            .map_err(|_| TransportError::Timeout("waiting for the `endpoint` event"))?
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

impl SseSender {
    /// Sends one message; its response arrives on the stream.
    ///
    /// # Errors
    /// As for [`HttpClient::post`].
    pub async fn post(&self, message: Bytes) -> Result<ClientResponse, TransportError> {
        self.http.post(&HeaderMap::new(), message).await
    }
}
