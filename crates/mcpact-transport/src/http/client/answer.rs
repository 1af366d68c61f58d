//! What came back.

use bytes::{Bytes, BytesMut};
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderMap, Response};

use super::events::EventStream;
use super::pool::Source;
use super::{EVENTS, HttpSettings, JSON};
use crate::error::DoorError;
use crate::within::within;

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

pub(super) async fn read(
    response: Response<Source>,
    settings: &HttpSettings,
) -> Result<Answer, DoorError> {
    let (head, body) = response.into_parts();
    let kind = head
        .headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .map(|value| value.split_once(';').map_or(value, |(kind, _)| kind));
    let is = |kind: &str, wanted| kind.trim_ascii().eq_ignore_ascii_case(wanted);
    let body = match kind {
        Some(kind) if is(kind, EVENTS) => {
            AnswerBody::Events(Box::new(EventStream::new(body, settings)))
        }
        Some(kind) if is(kind, JSON) => {
            check_length(&head.headers, settings.body_limit)?;
            match whole(body, settings).await? {
                bytes if bytes.is_empty() => AnswerBody::Empty,
                bytes => AnswerBody::Json(bytes),
            }
        }
        Some(_) | None => match excerpt(body, settings).await {
            text if text.is_empty() => AnswerBody::Empty,
            text => AnswerBody::Other(text),
        },
    };
    Ok(Answer {
        status: head.status.as_u16(),
        headers: head.headers,
        body,
    })
}

fn check_length(headers: &HeaderMap, limit: usize) -> Result<(), DoorError> {
    let length = headers
        .get(CONTENT_LENGTH)
        .and_then(|value| value.to_str().ok())
        .and_then(|text| text.parse::<usize>().ok());
    match length {
        Some(length) if length > limit => Err(DoorError::TooLarge { limit }),
        Some(_) | None => Ok(()),
    }
}

/// Reads a body within its limits; one in one piece is not copied.
async fn whole(mut body: Source, settings: &HttpSettings) -> Result<Bytes, DoorError> {
    let expected = usize::try_from(body.expected()).unwrap_or(usize::MAX);
    let mut first = Bytes::new();
    let mut all = BytesMut::new();
    loop {
        let frame = within(settings.idle_timeout, body.frame()).await;
        let Some(frame) = frame.ok_or(DoorError::Timeout("reading an HTTP body"))? else {
            return Ok(if all.is_empty() { first } else { all.freeze() });
        };
        let frame = frame.map_err(|error| super::connector::explain(&error))?;
        let Ok(data) = frame.into_data() else {
            continue;
        };
        if first.len().max(all.len()) + data.len() > settings.body_limit {
            return Err(DoorError::TooLarge {
                limit: settings.body_limit,
            });
        }
        if first.is_empty() && all.is_empty() {
            first = data;
            continue;
        }
        if all.is_empty() {
            all.reserve(expected.min(settings.body_limit));
            all.extend_from_slice(&first);
        }
        all.extend_from_slice(&data);
    }
}

/// The beginning of a body that only a log will show: what goes wrong with it does not matter.
async fn excerpt(mut body: Source, settings: &HttpSettings) -> String {
    let mut all = BytesMut::new();
    while all.len() < EXCERPT {
        let frame = within(settings.idle_timeout, body.frame()).await;
        let Some(Some(Ok(frame))) = frame else {
            break;
        };
        if let Some(data) = frame.data_ref() {
            all.extend_from_slice(data);
        }
    }
    all.truncate(EXCERPT);
    String::from_utf8_lossy(&all).into_owned()
}
