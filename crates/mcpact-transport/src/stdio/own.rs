//! The standard streams of this process.

use crate::error::TransportError;
use crate::link::Link;

/// Returns the transport on standard input and output. Call it once, inside a tokio runtime.
///
/// Pipes and sockets are used without a helper thread and are taken over: file descriptor 0 then reads EOF and file
/// descriptor 1 leads to standard error, so that no stray `println!` or child process can write into the messages, and
/// closing the link closes the stream.
///
/// Taking over sets `O_NONBLOCK` on the pipe, for every process that inherited it, and it is not reset. A stream that
/// is also our standard error, a terminal or a file is therefore left alone and goes through tokio's blocking standard
/// streams. A pending read then keeps the runtime from shutting down, and closing the link does not close the stream.
///
/// # Errors
/// A standard stream is closed or cannot be registered with the runtime.
pub fn own() -> Result<Link, TransportError> {
    #[cfg(unix)]
    let link = unix::own()?;
    #[cfg(not(unix))]
    let link = Link::new(tokio::io::stdin(), tokio::io::stdout());
    Ok(link)
}

#[cfg(unix)]
mod unix {
    use std::fs::{File, Metadata, OpenOptions};
    use std::io;
    use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
    use std::os::unix::fs::{FileTypeExt, MetadataExt};
    use std::os::unix::net::UnixStream as StdUnixStream;

    use tokio::io::{AsyncRead, AsyncWrite};
    use tokio::net::UnixStream;
    use tokio::net::unix::pipe;

    use crate::link::Link;
    use crate::stdio::closable::closable;

    /// Kind of a standard stream.
    pub(super) enum StdStream {
        Pipe(OwnedFd),
        Socket(OwnedFd),
        Other,
    }

    impl StdStream {
        /// Classifies a stream; `log` is our standard error, which must stay blocking.
        pub(super) fn classify(stream: BorrowedFd<'_>, log: Option<&Metadata>) -> io::Result<Self> {
            let file = File::from(stream.try_clone_to_owned()?);
            let facts = file.metadata()?;
            let is_log =
                log.is_some_and(|log| (log.dev(), log.ino()) == (facts.dev(), facts.ino()));
            Ok(match facts.file_type() {
                _ if is_log => Self::Other,
                kind if kind.is_fifo() => Self::Pipe(file.into()),
                kind if kind.is_socket() => Self::Socket(file.into()),
                _ => Self::Other,
            })
        }

        /// Returns a reader; `None` if a blocking thread must read it.
        pub(super) fn reader(self) -> io::Result<Option<Box<dyn AsyncRead + Send + Unpin>>> {
            Ok(match self {
                Self::Pipe(fd) => Some(Box::new(pipe::Receiver::from_owned_fd(fd)?)),
                Self::Socket(fd) => Some(Box::new(socket(fd)?)),
                Self::Other => None,
            })
        }

        /// Returns a writer; `None` if a blocking thread must write it.
        pub(super) fn writer(self) -> io::Result<Option<Box<dyn AsyncWrite + Send + Unpin>>> {
            Ok(match self {
                Self::Pipe(fd) => Some(Box::new(closable(pipe::Sender::from_owned_fd(fd)?).0)),
                Self::Socket(fd) => Some(Box::new(socket(fd)?)),
                Self::Other => None,
            })
        }
    }

    fn socket(fd: OwnedFd) -> io::Result<UnixStream> {
        let stream = StdUnixStream::from(fd);
        stream.set_nonblocking(true)?;
        UnixStream::from_std(stream)
    }

    pub(super) fn own() -> io::Result<Link> {
        let (stdin, stdout, stderr) = (io::stdin(), io::stdout(), io::stderr());
        let log = stderr
            .as_fd()
            .try_clone_to_owned()
            .map(File::from)
            .and_then(|log| log.metadata());
        let log = log.as_ref().ok();
        let reader = StdStream::classify(stdin.as_fd(), log)?.reader()?;
        let writer = StdStream::classify(stdout.as_fd(), log)?.writer()?;
        let nothing = OpenOptions::new()
            .read(true)
            .write(true)
            .open("/dev/null")?;
        if reader.is_some() {
            rustix::stdio::dup2_stdin(&nothing)?;
        }
        if writer.is_some() {
            rustix::stdio::dup2_stdout(&stderr)
                .or_else(|_| rustix::stdio::dup2_stdout(&nothing))?;
        }
        Ok(Link::new(
            reader.unwrap_or_else(|| Box::new(tokio::io::stdin())),
            writer.unwrap_or_else(|| Box::new(tokio::io::stdout())),
        ))
    }
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::{self, Read, Write};
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::unix::StdStream;

    #[tokio::test]
    async fn pipes_need_no_thread() {
        let (theirs, mut ours) = io::pipe().unwrap();
        let mut reader = StdStream::classify(theirs.as_fd(), None)
            .unwrap()
            .reader()
            .unwrap()
            .unwrap();
        ours.write_all(b"in").unwrap();
        drop(ours);
        let mut heard = String::new();
        reader.read_to_string(&mut heard).await.unwrap();
        assert_eq!(heard, "in");

        let (mut ours, theirs) = io::pipe().unwrap();
        let mut writer = StdStream::classify(theirs.as_fd(), None)
            .unwrap()
            .writer()
            .unwrap()
            .unwrap();
        drop(theirs);
        writer.write_all(b"out").await.unwrap();
        writer.shutdown().await.unwrap();
        heard.clear();
        ours.read_to_string(&mut heard).unwrap();
        assert_eq!(heard, "out");
    }

    /// Node.js starts its children on sockets instead of pipes.
    #[tokio::test]
    async fn sockets_need_no_thread() {
        let (mut ours, theirs) = UnixStream::pair().unwrap();
        let mut reader = StdStream::classify(theirs.as_fd(), None)
            .unwrap()
            .reader()
            .unwrap()
            .unwrap();
        let mut writer = StdStream::classify(theirs.as_fd(), None)
            .unwrap()
            .writer()
            .unwrap()
            .unwrap();
        ours.write_all(b"in").unwrap();
        let mut heard = [0; 2];
        reader.read_exact(&mut heard).await.unwrap();
        assert_eq!(&heard, b"in");
        writer.write_all(b"out").await.unwrap();
        writer.shutdown().await.unwrap();
        let mut said = String::new();
        ours.read_to_string(&mut said).unwrap();
        assert_eq!(said, "out");
    }

    #[test]
    fn files_and_stderr_stay_blocking() {
        let file = tempfile::tempfile().unwrap();
        assert!(matches!(
            StdStream::classify(file.as_fd(), None).unwrap(),
            StdStream::Other
        ));
        let (_read, write) = io::pipe().unwrap();
        let log = File::from(write.as_fd().try_clone_to_owned().unwrap())
            .metadata()
            .unwrap();
        assert!(matches!(
            StdStream::classify(write.as_fd(), Some(&log)).unwrap(),
            StdStream::Other
        ));
    }
}
