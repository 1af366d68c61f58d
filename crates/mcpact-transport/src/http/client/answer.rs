//! What came back.

use bytes::{Bytes, BytesMut};
use http::header::CONTENT_TYPE;
use http::{HeaderMap, StatusCode};

use super::events::EventStream;
use super::source::Source;
use super::{EVENTS, HttpSettings, JSON};
use crate::error::DoorError;

/// What is waited for.
const READING: &str = "reading an HTTP body";

/// How much of a body that is not ours is kept for the log.
const EXCERPT: usize = 1024;

/// The answer to one request.
#[derive(Debug)]
pub struct Answer {
    /// Its status, whatever it is.
    pub status: u16,
    /// Its headers.
    pub headers: HeaderMap,
    /// What came with it.
    pub body: AnswerBody,
}

/// What came with an answer.
#[derive(Debug)]
pub enum AnswerBody {
    /// Nothing.
    Empty,
    /// One JSON document.
    Json(Bytes),
    /// A stream of events.
    Events(Box<EventStream>),
    /// Something else; its beginning.
    Other(String),
}

impl Answer {
    /// A header, if it is there and is text.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

/// An answer whose body is not read yet.
#[derive(Debug)]
pub(super) struct Unread {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Source,
}

pub(super) async fn read(answer: Unread, settings: &HttpSettings) -> Result<Answer, DoorError> {
    let Unread {
        status,
        headers,
        body,
    } = answer;
    let kind = headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .map(|value| value.split_once(';').map_or(value, |(kind, _)| kind));
    let is = |kind: &str, wanted| kind.trim_ascii().eq_ignore_ascii_case(wanted);
    let body = match kind {
        Some(kind) if is(kind, EVENTS) => {
            AnswerBody::Events(Box::new(EventStream::new(body, settings)))
        }
        Some(kind) if is(kind, JSON) => match whole(body, settings).await? {
            bytes if bytes.is_empty() => AnswerBody::Empty,
            bytes => AnswerBody::Json(bytes),
        },
        Some(_) | None => match excerpt(body, settings).await {
            text if text.is_empty() => AnswerBody::Empty,
            text => AnswerBody::Other(text),
        },
    };
    let status = status.as_u16();
    Ok(Answer {
        status,
        headers,
        body,
    })
}

/// Reads a body within its limits; one in one piece is not copied.
async fn whole(mut body: Source, settings: &HttpSettings) -> Result<Bytes, DoorError> {
    let (idle, limit) = (settings.idle_timeout, settings.body_limit);
    if body.expected() > limit {
        return Err(DoorError::TooLarge { limit });
    }
    body.gather(idle, READING).await?;
    let mut first = Bytes::new();
    let mut all = BytesMut::new();
    while let Some(data) = body.next(idle, READING).await.transpose()? {
        if first.len().max(all.len()) + data.len() > limit {
            return Err(DoorError::TooLarge { limit });
        }
        if first.is_empty() && all.is_empty() {
            first = data;
            continue;
        }
        if all.is_empty() {
            all.extend_from_slice(&first);
        }
        all.extend_from_slice(&data);
    }
    Ok(if all.is_empty() { first } else { all.freeze() })
}

/// The beginning of a body that only a log will show: what goes wrong with it does not matter.
async fn excerpt(mut body: Source, settings: &HttpSettings) -> String {
    let mut all = BytesMut::new();
    while all.len() < EXCERPT
        && let Some(Ok(data)) = body.next(settings.idle_timeout, READING).await
    {
        all.extend_from_slice(&data);
    }
    all.truncate(EXCERPT);
    String::from_utf8_lossy(&all).into_owned()
}
