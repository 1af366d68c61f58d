//! Control socket: listener of the gateway, and its client.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use mcpact_transport::error::TransportError;
use mcpact_transport::link::{LineSink, LineSource, Link};
use mcpact_transport::unix::{self, Listener};
use mcpact_wire::frame::ndjson::Line;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::messages::{
    ControlFault, ControlReply, ControlRequest, LogLine, MAX_LOG_LINES, decode, encode,
};
use crate::gateway::{Gateway, ReloadCause, bundle};

/// Maximum number of clients; most of them follow a log.
const MAX_CLIENTS: usize = 64;

/// Timeout of the gateway for reading a request and writing a reply.
const IO_TIMEOUT: Duration = Duration::from_secs(10);

/// Timeout of the client for connecting, and for a reply.
const REPLY_TIMEOUT: Duration = Duration::from_secs(5);

/// Timeout of the client for a reload.
const RELOAD_TIMEOUT: Duration = Duration::from_secs(60);

/// Maximum length of a request.
const MAX_REQUEST: usize = 64 * 1024;

/// Pause after a failed accept.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Error of the control socket.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// The socket is in use by a running gateway.
    #[error("`{}` is in use by a running gateway{}", .path.display(), describe(.holder.as_ref()))]
    InUse {
        /// Socket.
        path: PathBuf,
        /// Process id and config of the gateway, if known.
        holder: Option<(u32, Option<String>)>,
    },
    /// The socket cannot be opened or connected.
    #[error("cannot use the control socket `{}`", .path.display())]
    Socket {
        /// Socket.
        path: PathBuf,
        /// Cause.
        #[source]
        source: TransportError,
    },
    /// The gateway does not reply in time.
    #[error("the gateway at `{}`{} did not reply within {within:?}", .path.display(), process_id(*.process))]
    Timeout {
        /// Socket.
        path: PathBuf,
        /// Process id of the gateway, if known.
        process: Option<u32>,
        /// Timeout.
        within: Duration,
    },
    /// The connection failed or the reply is invalid.
    #[error("no valid reply from the gateway at `{}`: {why}", .path.display())]
    InvalidReply {
        /// Socket.
        path: PathBuf,
        /// Cause.
        why: String,
    },
}

fn process_id(process: Option<u32>) -> String {
    process.map_or_else(String::new, |id| format!(" (process {id})"))
}

impl ControlError {
    fn socket(path: &Path) -> impl Fn(TransportError) -> Self {
        |source| Self::Socket {
            path: path.to_owned(),
            source,
        }
    }

    /// Applies a timeout.
    async fn with_timeout<T>(
        path: &Path,
        within: Duration,
        work: impl Future<Output = Result<T, Self>>,
    ) -> Result<T, Self> {
        match timeout(within, work).await {
            Ok(done) => done,
            Err(_) => {
                let process = timeout(REPLY_TIMEOUT, unix::owner(path)).await;
                Err(Self::Timeout {
                    path: path.to_owned(),
                    process: process.ok().flatten(),
                    within,
                })
            }
        }
    }
}

fn describe(holder: Option<&(u32, Option<String>)>) -> String {
    match holder {
        None => String::new(),
        Some((pid, None)) => format!(" (process {pid}, built-in servers)"),
        Some((pid, Some(config))) => format!(" (process {pid}, config `{config}`)"),
    }
}

/// Control socket of a gateway. Dropping it removes the socket.
#[derive(Debug)]
pub struct Control {
    listener: Listener,
}

impl Control {
    /// Opens the socket. Creates its directory if necessary and replaces the socket of a dead gateway.
    ///
    /// # Errors
    /// The socket is in use or cannot be opened.
    pub async fn open(path: &Path) -> Result<Self, ControlError> {
        let socket_error = ControlError::socket(path);
        if let Some(folder) = path.parent().filter(|folder| !folder.exists()) {
            unix::private_folder(folder).map_err(&socket_error)?;
        }
        match unix::listen(path).await {
            Ok(listener) => Ok(Self { listener }),
            Err(source) => Err(match holder(path).await {
                Some(holder) => ControlError::InUse {
                    path: path.to_owned(),
                    holder: Some(holder),
                },
                None => socket_error(source),
            }),
        }
    }

    /// Serves clients while this is awaited.
    pub async fn run(self, gateway: Arc<Gateway>) {
        let permits = Arc::new(Semaphore::new(MAX_CLIENTS));
        let mut clients = JoinSet::new();
        loop {
            while clients.try_join_next().is_some() {}
            let link = match self.listener.accept().await {
                Ok(link) => link,
                Err(error) => {
                    tracing::warn!(%error, "failed to accept a control connection");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                    continue;
                }
            };
            let gateway = Arc::clone(&gateway);
            let permit = Arc::clone(&permits).try_acquire_owned();
            clients.spawn(async move { serve_client(&gateway, link, permit.ok()).await });
        }
    }
}

/// Returns process id and config of the gateway that uses a socket.
async fn holder(path: &Path) -> Option<(u32, Option<String>)> {
    let request = ControlRequest::Status { server: None };
    let mut client = ControlClient::connect(path, &request).await.ok()?;
    match client.next().await {
        Ok(Some(ControlReply::Status(status))) => Some((status.gateway.pid, status.gateway.config)),
        _ => None,
    }
}

/// Reads a request and replies; stops when the client disconnects. A client without a permit is refused.
async fn serve_client(gateway: &Gateway, link: Link, permit: Option<OwnedSemaphorePermit>) {
    let Link {
        mut source,
        mut sink,
    } = link;
    if permit.is_none() {
        let _ = send(&mut sink, &ControlReply::Fault(ControlFault::Busy)).await;
        return;
    }
    let Ok(Some(line)) = timeout(IO_TIMEOUT, next_line(&mut source)).await else {
        return;
    };
    let reply = match decode(&line) {
        Err(why) => ControlReply::Fault(ControlFault::Unread { why }),
        Ok(ControlRequest::Status { server }) => match gateway.status(server.as_deref()) {
            Ok(status) => ControlReply::Status(Box::new(status)),
            Err(fault) => ControlReply::Fault(fault),
        },
        Ok(ControlRequest::Bundle {}) => ControlReply::Bundle(Box::new(bundle::bundle(gateway))),
        Ok(ControlRequest::ApproveTools { servers }) => {
            ControlReply::Agreed(gateway.approve_tools(&servers))
        }
        Ok(ControlRequest::Reload {}) => {
            ControlReply::Reload(gateway.reload(ReloadCause::Command).await)
        }
        Ok(ControlRequest::Logs {
            server,
            lines,
            follow,
        }) => match gateway.check_server(server.as_deref()) {
            Err(fault) => ControlReply::Fault(fault),
            Ok(()) => {
                send_logs(gateway, server.as_deref(), lines, follow, (source, sink)).await;
                return;
            }
        },
    };
    let _ = send(&mut sink, &reply).await;
}

/// Sends the last log lines, and with `follow` also new ones until the client disconnects.
async fn send_logs(
    gateway: &Gateway,
    server: Option<&str>,
    lines: usize,
    follow: bool,
    (mut source, mut sink): (LineSource, LineSink),
) {
    let history = gateway.event_history();
    let mut written = history.follow();
    let mut cursor = *written.borrow_and_update();
    let mut entries = history.last(server, lines.min(MAX_LOG_LINES));
    loop {
        for entry in entries {
            cursor = cursor.max(entry.number);
            sink.push(&encode(&ControlReply::Line(LogLine::from(entry))));
        }
        if !matches!(timeout(IO_TIMEOUT, sink.flush()).await, Ok(Ok(()))) || !follow {
            return;
        }
        tokio::select! {
            changed = written.changed() => {
                if changed.is_err() {
                    return;
                }
            }
            // A following client sends nothing more: this is the end of the connection.
            _ = next_line(&mut source) => return,
        }
        entries = history.since(server, cursor);
    }
}

async fn send(sink: &mut LineSink, reply: &ControlReply) -> Option<()> {
    sink.push(&encode(reply));
    let closed = timeout(IO_TIMEOUT, sink.close()).await;
    closed.ok()?.ok()
}

/// Returns the next line, empty if it is too long; none at the end.
async fn next_line(source: &mut LineSource) -> Option<Vec<u8>> {
    let mut is_open = true;
    loop {
        match source.next_line() {
            Some(Line::Json(bytes)) if bytes.len() <= MAX_REQUEST => return Some(bytes.to_vec()),
            Some(Line::Json(_) | Line::Noise(_) | Line::TooLong { .. }) => return Some(Vec::new()),
            // The last line may have no line break.
            None if is_open => is_open = source.fill().await.ok()?,
            None => return None,
        }
    }
}

/// Client of a control socket.
#[derive(Debug)]
pub struct ControlClient {
    path: PathBuf,
    link: Link,
    /// Timeout of each line of the reply.
    timeout: Duration,
}

impl ControlClient {
    /// Connects to the gateway at this socket and sends a request.
    ///
    /// # Errors
    /// The socket cannot be connected in time.
    pub async fn connect(path: &Path, request: &ControlRequest) -> Result<Self, ControlError> {
        let socket_error = ControlError::socket(path);
        let connecting = async {
            let mut link = unix::connect(path).await.map_err(&socket_error)?;
            link.sink.push(&encode(request));
            link.sink.flush().await.map_err(&socket_error)?;
            Ok(link)
        };
        Ok(Self {
            path: path.to_owned(),
            link: ControlError::with_timeout(path, REPLY_TIMEOUT, connecting).await?,
            timeout: match request {
                ControlRequest::Reload {} => RELOAD_TIMEOUT,
                _ => REPLY_TIMEOUT,
            },
        })
    }

    fn invalid_reply(&self, why: impl Into<String>) -> ControlError {
        ControlError::InvalidReply {
            path: self.path.clone(),
            why: why.into(),
        }
    }

    /// Returns the next line of the reply without a timeout; none after the last one.
    ///
    /// # Errors
    /// The connection failed or the reply is invalid.
    pub async fn next_entry(&mut self) -> Result<Option<ControlReply>, ControlError> {
        loop {
            if let Some(line) = self.link.source.next_line() {
                return match line {
                    Line::Json(bytes) => decode(bytes)
                        .map(Some)
                        .map_err(|why| self.invalid_reply(why)),
                    Line::Noise(_) | Line::TooLong { .. } => {
                        Err(self.invalid_reply("not a gateway"))
                    }
                };
            }
            let filled = self.link.source.fill().await;
            if !filled.map_err(|error| self.invalid_reply(error.to_string()))? {
                return Ok(None);
            }
        }
    }

    /// Returns the next line of the reply; none after the last one.
    ///
    /// # Errors
    /// As [`Self::next_entry`], and after a timeout.
    pub async fn next(&mut self) -> Result<Option<ControlReply>, ControlError> {
        let (path, limit) = (self.path.clone(), self.timeout);
        ControlError::with_timeout(&path, limit, self.next_entry()).await
    }
}
