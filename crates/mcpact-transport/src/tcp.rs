//! Newline-delimited messages over TCP, on loopback only, because there is no authentication.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, ReadBuf};
use tokio::net::{TcpListener, TcpStream};

use crate::error::TransportError;
use crate::link::Link;

/// A listening socket.
#[derive(Debug)]
pub struct Listener {
    socket: TcpListener,
    address: SocketAddr,
}

/// Listens on a loopback address; port 0 picks a free one.
///
/// # Errors
/// [`TransportError::Address`]: other machines could reach it; [`TransportError::Io`]: the system refuses.
pub async fn listen(address: SocketAddr) -> Result<Listener, TransportError> {
    if !address.ip().to_canonical().is_loopback() {
        let why = "plain TCP has no authentication: listen on 127.0.0.1 or [::1], or use HTTP";
        return Err(TransportError::address(address.to_string(), why));
    }
    let socket = TcpListener::bind(address).await?;
    let address = socket.local_addr()?;
    Ok(Listener { socket, address })
}

/// Connects to a host and port, such as `localhost:6280`.
///
/// # Errors
/// The connection is refused, or the system refuses.
pub async fn connect(address: &str) -> Result<Link, TransportError> {
    let stream = TcpStream::connect(address).await?;
    let (read, write) = split(stream);
    Ok(Link::new(read, write))
}

impl Listener {
    /// Accepts a client. A connection that does not begin with a message is closed: any page can make a browser post to
    /// a port, and its HTTP headers come first.
    ///
    /// # Errors
    /// The system refuses, for example because too many files are open; a retry may succeed.
    pub async fn accept(&self) -> Result<Link, TransportError> {
        let (stream, _) = self.socket.accept().await?;
        let (read, write) = split(stream);
        let read = MessagesOnly {
            inner: read,
            is_sure: false,
        };
        Ok(Link::new(read, write))
    }

    /// Returns the listen address.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }
}

fn split(
    stream: TcpStream,
) -> (
    tokio::net::tcp::OwnedReadHalf,
    tokio::net::tcp::OwnedWriteHalf,
) {
    // Messages are small and wait for responses; a delayed segment delays the call.
    let _ = stream.set_nodelay(true);
    stream.into_split()
}

/// Fails unless the first bytes look like a message.
struct MessagesOnly<R> {
    inner: R,
    is_sure: bool,
}

impl<R: AsyncRead + Unpin> AsyncRead for MessagesOnly<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let ready = Pin::new(&mut self.inner).poll_read(context, buffer);
        if !self.is_sure {
            let mut arrived = buffer.filled()[before..].iter();
            match arrived.find(|byte| !byte.is_ascii_whitespace()) {
                Some(b'{' | b'[') => self.is_sure = true,
                Some(_) => {
                    buffer.set_filled(before);
                    let why = "the client does not begin with a message";
                    return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, why)));
                }
                None => {}
            }
        }
        ready
    }
}
