//! Response body: one buffer, or events with keep-alive comments.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_core::Stream;
use hyper::body::{Body, Frame, SizeHint};
use tokio::time::{Instant, Sleep, sleep};

use super::idle::RequestGuard;

/// Silence on an event stream after which a keep-alive comment is sent.
pub const KEEP_ALIVE: Duration = Duration::from_secs(10);

/// Maximum bytes of a buffered body that are passed on at a time. The next piece is taken when the peer has read most of
/// it, which shows its progress.
const PIECE: usize = 256 * 1024;

const KEEP_ALIVE_COMMENT: Bytes = Bytes::from_static(b": keep-alive\n\n");

/// Body of a response.
pub(super) struct ResponseBody {
    content: Content,
    /// Marks the request as in flight until the body is written.
    guard: Option<RequestGuard>,
}

enum Content {
    Full(Option<Bytes>),
    Events {
        stream: Pin<Box<dyn Stream<Item = Bytes> + Send>>,
        keep_alive: Pin<Box<Sleep>>,
    },
}

impl ResponseBody {
    pub(super) fn full(bytes: Bytes) -> Self {
        Self {
            content: Content::Full((!bytes.is_empty()).then_some(bytes)),
            guard: None,
        }
    }

    pub(super) fn events(stream: Pin<Box<dyn Stream<Item = Bytes> + Send>>) -> Self {
        let keep_alive = Box::pin(sleep(KEEP_ALIVE));
        Self {
            content: Content::Events { stream, keep_alive },
            guard: None,
        }
    }

    /// Keeps the request in flight until the body is dropped.
    pub(super) fn guarded(self, guard: RequestGuard) -> Self {
        Self {
            guard: Some(guard),
            ..self
        }
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let Self { content, guard } = self.get_mut();
        let next = match content {
            Content::Full(Some(bytes)) if bytes.len() > PIECE => {
                if let Some(guard) = guard {
                    guard.transfer_continues();
                }
                Some(bytes.split_to(PIECE))
            }
            Content::Full(bytes) => bytes.take(),
            Content::Events { stream, keep_alive } => {
                let item = match stream.as_mut().poll_next(cx) {
                    Poll::Ready(item) => item,
                    Poll::Pending if keep_alive.as_mut().poll(cx).is_ready() => {
                        Some(KEEP_ALIVE_COMMENT)
                    }
                    Poll::Pending => {
                        if let Some(guard) = guard {
                            guard.transfer_pauses();
                        }
                        return Poll::Pending;
                    }
                };
                if let Some(guard) = guard {
                    guard.transfer_continues();
                }
                keep_alive.as_mut().reset(Instant::now() + KEEP_ALIVE);
                item
            }
        };
        Poll::Ready(next.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.content, Content::Full(None))
    }

    fn size_hint(&self) -> SizeHint {
        match &self.content {
            Content::Full(bytes) => {
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

    /// H15: a silent event stream sends a comment at least every 15 seconds.
    #[tokio::test(start_paused = true)]
    async fn silent_streams_send_keep_alive_comments() {
        let mut body = Box::pin(ResponseBody::events(Box::pin(Silent)));
        for _ in 0..3 {
            let before = Instant::now();
            let frame = poll_fn(|cx| body.as_mut().poll_frame(cx)).await;
            let bytes = frame.unwrap().unwrap().into_data().unwrap();
            assert!(bytes.starts_with(b":"), "a comment");
            assert!(before.elapsed() < Duration::from_secs(15));
        }
    }
}
