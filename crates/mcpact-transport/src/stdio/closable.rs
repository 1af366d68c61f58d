//! One end of a pipe that can be closed from elsewhere.

use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::{fmt, io};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::lock;

/// One end of a pipe.
///
/// Shutting down or dropping a writer closes the file. tokio's pipes do not close on shutdown, and the reader would
/// never see EOF.
#[derive(Debug)]
pub(super) struct Closable<T> {
    shared: Arc<Shared<T>>,
}

/// Closes a [`Closable`] from elsewhere.
#[derive(Debug)]
pub(super) struct Closer<T> {
    shared: Arc<Shared<T>>,
}

struct Shared<T>(Mutex<State<T>>);

struct State<T> {
    /// The file, and the function that closes it; none once it is closed.
    io: Option<(T, OnClose<T>)>,
    /// The waiting job; dropping the file does not wake it.
    waiting: Option<Waker>,
}

type OnClose<T> = Box<dyn FnOnce(T) + Send>;

impl<T> fmt::Debug for Shared<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Shared(..)")
    }
}

/// Makes one end of a pipe closable.
pub(super) fn closable<T: 'static>(io: T) -> (Closable<T>, Closer<T>) {
    closable_with(io, drop)
}

/// Makes one end of a pipe closable; `on_close` closes the file.
pub(super) fn closable_with<T: 'static>(
    io: T,
    on_close: impl FnOnce(T) + Send + 'static,
) -> (Closable<T>, Closer<T>) {
    let shared = Arc::new(Shared(Mutex::new(State {
        io: Some((io, Box::new(on_close))),
        waiting: None,
    })));
    (
        Closable {
            shared: Arc::clone(&shared),
        },
        Closer { shared },
    )
}

impl<T> Shared<T> {
    fn close(&self) {
        let mut state = lock(&self.0);
        let io = state.io.take();
        let waiting = state.waiting.take();
        drop(state);
        if let Some((io, on_close)) = io {
            on_close(io);
        }
        if let Some(waker) = waiting {
            waker.wake();
        }
    }
}

impl<T> Closer<T> {
    /// Closes the pipe; reads and writes fail with a broken pipe.
    pub(super) fn close(&self) {
        self.shared.close();
    }
}

impl<T: Unpin> Closable<T> {
    fn poll<R>(
        &self,
        context: &mut Context<'_>,
        act: impl FnOnce(Pin<&mut T>, &mut Context<'_>) -> Poll<io::Result<R>>,
    ) -> Poll<io::Result<R>> {
        let mut state = lock(&self.shared.0);
        let Some((io, _)) = state.io.as_mut() else {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        };
        let result = act(Pin::new(io), context);
        state.waiting = result.is_pending().then(|| context.waker().clone());
        result
    }
}

impl<W: AsyncWrite + Unpin> AsyncWrite for Closable<W> {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll(context, |io, context| io.poll_write(context, bytes))
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll(context, AsyncWrite::poll_flush)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if lock(&self.shared.0).io.is_none() {
            return Poll::Ready(Ok(()));
        }
        let result = self.poll(context, AsyncWrite::poll_shutdown);
        if result.is_ready() {
            self.shared.close();
        }
        result
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Closable<R> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.poll(context, |io, context| io.poll_read(context, buffer))
    }
}

impl<T> Drop for Closable<T> {
    fn drop(&mut self) {
        self.shared.close();
    }
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;
    use std::time::Duration;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::unix::pipe;
    use tokio::time::timeout;

    use super::closable;

    #[tokio::test]
    async fn shutdown_and_drop_are_eof_for_the_reader() {
        for shuts_down in [true, false] {
            let (sender, mut receiver) = pipe::pipe().unwrap();
            let (mut writer, _closer) = closable(sender);
            writer.write_all(b"last words").await.unwrap();
            if shuts_down {
                writer.shutdown().await.unwrap();
                writer.shutdown().await.unwrap();
            } else {
                drop(writer);
            }
            let mut heard = Vec::new();
            receiver.read_to_end(&mut heard).await.unwrap();
            assert_eq!(heard, b"last words");
        }
    }

    #[tokio::test]
    async fn closer_wakes_a_waiting_writer() {
        let (sender, _receiver) = pipe::pipe().unwrap();
        let (mut writer, closer) = closable(sender);
        writer.write_all(&[0; 1 << 14]).await.unwrap();
        let writing = tokio::spawn(async move { writer.write_all(&[0; 1 << 20]).await });
        tokio::task::yield_now().await;
        closer.close();
        let written = timeout(Duration::from_secs(30), writing).await.unwrap();
        assert_eq!(written.unwrap().unwrap_err().kind(), ErrorKind::BrokenPipe);
    }

    #[tokio::test]
    async fn closer_wakes_a_waiting_reader() {
        let (_sender, receiver) = pipe::pipe().unwrap();
        let (mut reader, closer) = closable(receiver);
        let reading = tokio::spawn(async move { reader.read_u8().await });
        tokio::task::yield_now().await;
        closer.close();
        let read = timeout(Duration::from_secs(30), reading).await.unwrap();
        assert_eq!(read.unwrap().unwrap_err().kind(), ErrorKind::BrokenPipe);
    }
}
