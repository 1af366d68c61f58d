//! The response body: a text in one piece, or events with a sign of life between them.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_core::Stream;
use hyper::body::{Body, Frame, SizeHint};
use tokio::time::{Instant, Sleep, sleep};

use super::watch::Busy;
use crate::vigil;

/// How long a stream may be silent before a comment shows that it lives.
pub const KEEP_ALIVE: Duration = Duration::from_secs(10);

const COMMENT: Bytes = Bytes::from_static(b": keep-alive\n\n");

/// The body of a response.
pub(super) struct ReplyBody {
    content: Content,
    /// As long as it is not written, the request is being answered.
    _busy: Option<Busy>,
}

enum Content {
    Whole(Option<Bytes>),
    Events {
        stream: Pin<Box<dyn Stream<Item = Bytes> + Send>>,
        silence: Pin<Box<Sleep>>,
    },
}

impl ReplyBody {
    pub(super) fn whole(bytes: Bytes) -> Self {
        Self {
            content: Content::Whole((!bytes.is_empty()).then_some(bytes)),
            _busy: None,
        }
    }

    pub(super) fn events(stream: Pin<Box<dyn Stream<Item = Bytes> + Send>>) -> Self {
        let silence = Box::pin(sleep(KEEP_ALIVE));
        Self {
            content: Content::Events { stream, silence },
            _busy: None,
        }
    }

    /// The same, which ends an answer with itself.
    pub(super) fn ending(self, busy: Busy) -> Self {
        Self {
            _busy: Some(busy),
            ..self
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
        let next = match &mut self.get_mut().content {
            Content::Whole(bytes) => bytes.take(),
            Content::Events { stream, silence } => {
                let item = match stream.as_mut().poll_next(cx) {
                    Poll::Ready(item) => item,
                    Poll::Pending if silence.as_mut().poll(cx).is_ready() => Some(COMMENT),
                    Poll::Pending => return Poll::Pending,
                };
                silence.as_mut().reset(Instant::now() + KEEP_ALIVE);
                item
            }
        };
        if let Some(bytes) = &next {
            vigil::expect(bytes.len());
        }
        Poll::Ready(next.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.content, Content::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match &self.content {
            Content::Whole(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |b| b.len() as u64))
            }
            Content::Events { .. } => SizeHint::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;

    struct Silent;

    impl Stream for Silent {
        type Item = Bytes;

        fn poll_next(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Bytes>> {
            Poll::Pending
        }
    }

    /// H15: a stream that has nothing to say shows within 15 seconds that it lives, again and again.
    #[tokio::test(start_paused = true)]
    async fn a_silent_stream_shows_that_it_lives() {
        let mut body = Box::pin(ReplyBody::events(Box::pin(Silent)));
        for _ in 0..3 {
            let before = Instant::now();
            let frame = poll_fn(|cx| body.as_mut().poll_frame(cx)).await;
            let bytes = frame.unwrap().unwrap().into_data().unwrap();
            assert!(bytes.starts_with(b":"), "a comment");
            assert!(before.elapsed() < Duration::from_secs(15));
        }
    }
}
