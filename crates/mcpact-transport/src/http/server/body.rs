//! The response body: a text in one piece, or events with a sign of life between them.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_core::Stream;
use hyper::body::{Body, Frame, SizeHint};
use tokio::time::{Instant, Sleep, sleep};

/// How long a stream may be silent before a comment shows that it lives.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

const COMMENT: Bytes = Bytes::from_static(b": keep-alive\n\n");

/// The body of a response.
pub(super) enum ReplyBody {
    Whole(Option<Bytes>),
    Events {
        stream: Pin<Box<dyn Stream<Item = Bytes> + Send>>,
        silence: Pin<Box<Sleep>>,
    },
}

impl ReplyBody {
    pub(super) fn whole(bytes: Bytes) -> Self {
        Self::Whole((!bytes.is_empty()).then_some(bytes))
    }

    pub(super) fn events(stream: Pin<Box<dyn Stream<Item = Bytes> + Send>>) -> Self {
        Self::Events {
            stream,
            silence: Box::pin(sleep(KEEP_ALIVE)),
        }
    }
}

impl Body for ReplyBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.get_mut() {
            Self::Whole(bytes) => Poll::Ready(bytes.take().map(|b| Ok(Frame::data(b)))),
            Self::Events { stream, silence } => {
                let item = match stream.as_mut().poll_next(cx) {
                    Poll::Ready(item) => item,
                    Poll::Pending if silence.as_mut().poll(cx).is_ready() => Some(COMMENT),
                    Poll::Pending => return Poll::Pending,
                };
                silence.as_mut().reset(Instant::now() + KEEP_ALIVE);
                Poll::Ready(item.map(|b| Ok(Frame::data(b))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |b| b.len() as u64))
            }
            Self::Events { .. } => SizeHint::default(),
        }
    }
}
