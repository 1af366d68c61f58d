//! The client of HTTP+SSE, the transport of 2024-11-05: one event stream from the server, and an endpoint for messages
//! that the stream names first.

use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use mcpact_wire::frame::sse::Event;

use crate::error::DoorError;
use crate::http::client::{Answer, AnswerBody, EventStream, HttpClient};

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
    pub async fn open(http: &HttpClient, patience: Duration) -> Result<Self, DoorError> {
        let opening = async {
            let answer = http.listen(&HeaderMap::new(), None).await?;
            let AnswerBody::Events(mut events) = answer.body else {
                let status = answer.status;
                return Err(DoorError::Http(format!(
                    "a GET was answered with status {status} instead of an event stream"
                )));
            };
            let sender = match events.next().await {
                Some(first) => SseSender {
                    http: http.at(address(&first?)?)?,
                },
                None => {
                    return Err(DoorError::Http(
                        "the event stream ended before its `endpoint` event".to_owned(),
                    ));
                }
            };
            Ok(Self { events, sender })
        };
        tokio::time::timeout(patience, opening)
            .await
            .map_err(|_| DoorError::Timeout("waiting for the `endpoint` event"))?
    }
}

fn address(event: &Event) -> Result<&str, DoorError> {
    if event.name.as_deref() == Some("endpoint") {
        Ok(event.data.trim())
    } else {
        Err(DoorError::Http(
            "the event stream does not begin with an `endpoint` event".to_owned(),
        ))
    }
}

impl SseSender {
    /// Sends one message; its response arrives on the stream.
    ///
    /// # Errors
    /// As for [`HttpClient::post`].
    pub async fn post(&self, message: Bytes) -> Result<Answer, DoorError> {
        self.http.post(&HeaderMap::new(), message).await
    }
}
