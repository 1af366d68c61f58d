//! Moves requests and answers over the private socket, on both sides.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use mcpact_transport::error::DoorError;
use mcpact_transport::link::{LineSink, LineSource, Link};
use mcpact_transport::unix::{self, Listener};
use mcpact_wire::frame::ndjson::Line;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::answer::{Answer, Fault, LogLine};
use super::request::{MOST_LINES, Request};
use crate::gateway::{Gateway, ReloadCause};

/// How many may ask at a time; most of them follow a log.
const ASKERS: usize = 64;

/// How long a request may take to come, and an answer to be taken.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long a gateway may take to be reached, and to tell what it knows.
const ANSWER: Duration = Duration::from_secs(5);

/// How long it may take to read its config and to do what stands there.
const DEED: Duration = Duration::from_secs(60);

/// No request is longer.
const LONGEST: usize = 64 * 1024;

/// How long the socket rests when the system refuses connections.
const REST: Duration = Duration::from_millis(100);

/// Why a gateway cannot be asked, or cannot be made to answer.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// The socket belongs to a gateway that runs.
    #[error("`{}` belongs to a gateway that runs{}", .path.display(), said(.holder.as_ref()))]
    Held {
        /// The socket.
        path: PathBuf,
        /// Its process and its config, as far as it tells.
        holder: Option<(u32, Option<String>)>,
    },
    /// The socket cannot be opened or reached.
    #[error("cannot use the socket `{}`", .path.display())]
    Door {
        /// The socket.
        path: PathBuf,
        /// Why.
        #[source]
        source: DoorError,
    },
    /// The gateway is there, and says nothing.
    #[error("the gateway at `{}`{} does not answer: nothing came within {within:?}", .path.display(), by(*.process))]
    Stuck {
        /// The socket.
        path: PathBuf,
        /// Its process, as far as the system tells.
        process: Option<u32>,
        /// How long it was given.
        within: Duration,
    },
    /// The gateway did not answer.
    #[error("the gateway at `{}` did not answer: {why}", .path.display())]
    Silent {
        /// The socket.
        path: PathBuf,
        /// What happened instead.
        why: String,
    },
}

fn by(process: Option<u32>) -> String {
    process.map_or_else(String::new, |id| format!(" (process {id})"))
}

impl ControlError {
    /// Waits no longer than this for a gateway.
    async fn unless_stuck<T>(
        path: &Path,
        within: Duration,
        work: impl Future<Output = Result<T, Self>>,
    ) -> Result<T, Self> {
        match timeout(within, work).await {
            Ok(done) => done,
            Err(_) => Err(Self::Stuck {
                path: path.to_owned(),
                process: timeout(ANSWER, unix::owner(path)).await.ok().flatten(),
                within,
            }),
        }
    }
}

fn said(holder: Option<&(u32, Option<String>)>) -> String {
    match holder {
        None => String::new(),
        Some((pid, None)) => format!(" as process {pid} with its built-in servers"),
        Some((pid, Some(config))) => format!(" as process {pid} and serves `{config}`"),
    }
}

/// The private socket of a gateway. Dropping it removes it.
#[derive(Debug)]
pub struct Control {
    listener: Listener,
}

impl Control {
    /// Opens the socket; its folder is made if it is missing. One that a dead gateway left is replaced.
    ///
    /// # Errors
    /// A gateway that runs has it, or the system refuses.
    pub async fn open(path: &Path) -> Result<Self, ControlError> {
        let door = |source| ControlError::Door {
            path: path.to_owned(),
            source,
        };
        if let Some(folder) = path.parent().filter(|folder| !folder.exists()) {
            unix::private_folder(folder).map_err(door)?;
        }
        match unix::listen(path).await {
            Ok(listener) => Ok(Self { listener }),
            Err(source) => Err(match holder(path).await {
                Some(holder) => ControlError::Held {
                    path: path.to_owned(),
                    holder: Some(holder),
                },
                None => door(source),
            }),
        }
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.listener.path()
    }

    /// Answers everybody who asks, for as long as this is awaited.
    pub async fn run(self, gateway: Arc<Gateway>) {
        let seats = Arc::new(Semaphore::new(ASKERS));
        let mut askers = JoinSet::new();
        loop {
            while askers.try_join_next().is_some() {}
            let link = match self.listener.accept().await {
                Ok(link) => link,
                Err(error) => {
                    tracing::warn!(%error, "failed to accept a control connection");
                    tokio::time::sleep(REST).await;
                    continue;
                }
            };
            let gateway = Arc::clone(&gateway);
            match Arc::clone(&seats).try_acquire_owned() {
                Ok(seat) => askers.spawn(async move {
                    converse(&gateway, link).await;
                    drop(seat);
                }),
                Err(_) => askers.spawn(async move {
                    let Link { mut sink, .. } = link;
                    let _ = send(&mut sink, &Answer::Fault(Fault::Busy)).await;
                }),
            };
        }
    }
}

/// Who has a socket: process and config.
async fn holder(path: &Path) -> Option<(u32, Option<String>)> {
    let request = Request::Status { server: None };
    let mut conversation = Conversation::begin(path, &request).await.ok()?;
    match conversation.next().await {
        Ok(Some(Answer::Status(status))) => Some((status.gateway.pid, status.gateway.config)),
        _ => None,
    }
}

/// One request and its answer; whoever hangs up is not told more.
async fn converse(gateway: &Arc<Gateway>, link: Link) {
    let Link {
        mut source,
        mut sink,
    } = link;
    let Ok(Some(line)) = timeout(PATIENCE, next_line(&mut source)).await else {
        return;
    };
    let answer = match Request::parse(&line) {
        Err(why) => Answer::Fault(Fault::Unread { why }),
        Ok(Request::Status { server }) => match gateway.status(server.as_deref()) {
            Ok(status) => Answer::Status(Box::new(status)),
            Err(fault) => Answer::Fault(fault),
        },
        Ok(Request::Bundle {}) => Answer::Bundle(Box::new(gateway.bundle())),
        Ok(Request::AgreeToTools { servers }) => Answer::Agreed(gateway.agree_to_tools(&servers)),
        Ok(Request::Reload {}) => Answer::Reload(gateway.reload(ReloadCause::Command).await),
        Ok(Request::Logs {
            server,
            lines,
            follow,
        }) => match gateway.known(server.as_deref()) {
            Err(fault) => Answer::Fault(fault),
            Ok(()) => {
                let reader = Reader {
                    gateway,
                    server,
                    follow,
                };
                return reader.read(lines, &mut source, &mut sink).await;
            }
        },
    };
    let _ = send(&mut sink, &answer).await;
}

/// Somebody who reads what happened.
struct Reader<'g> {
    gateway: &'g Gateway,
    server: Option<String>,
    follow: bool,
}

impl Reader<'_> {
    async fn read(self, lines: usize, source: &mut LineSource, sink: &mut LineSink) {
        let chronicle = self.gateway.chronicle();
        let mut written = chronicle.follow();
        let mut cursor = *written.borrow_and_update();
        let mut entries = chronicle.last(self.server.as_deref(), lines.min(MOST_LINES));
        loop {
            for entry in entries {
                cursor = cursor.max(entry.number);
                sink.push(&Answer::Line(LogLine::from(entry)).encode());
            }
            if !matches!(timeout(PATIENCE, sink.flush()).await, Ok(Ok(()))) || !self.follow {
                return;
            }
            tokio::select! {
                changed = written.changed() => {
                    if changed.is_err() {
                        return;
                    }
                }
                // Whoever follows says nothing more; the end is all that can come.
                _ = next_line(source) => return,
            }
            entries = chronicle.since(self.server.as_deref(), cursor);
        }
    }
}

async fn send(sink: &mut LineSink, answer: &Answer) -> Option<()> {
    sink.push(&answer.encode());
    let closed = timeout(PATIENCE, sink.close()).await;
    closed.ok()?.ok()
}

/// The next line that is not too long; none when there is no more.
async fn next_line(source: &mut LineSource) -> Option<Vec<u8>> {
    loop {
        match source.next_line() {
            Some(Line::Json(bytes)) if bytes.len() <= LONGEST => return Some(bytes.to_vec()),
            Some(Line::Json(_) | Line::Noise(_) | Line::TooLong { .. }) => return Some(Vec::new()),
            None => {}
        }
        if !source.fill().await.ok()? {
            return match source.next_line() {
                Some(Line::Json(bytes)) if bytes.len() <= LONGEST => Some(bytes.to_vec()),
                _ => None,
            };
        }
    }
}

/// The side that asks.
#[derive(Debug)]
pub struct Conversation {
    path: PathBuf,
    link: Link,
    /// How long each line of the answer may take.
    patience: Duration,
}

impl Conversation {
    /// Asks the gateway at this socket.
    ///
    /// # Errors
    /// There is none, or it cannot be reached in time.
    pub async fn begin(path: &Path, request: &Request) -> Result<Self, ControlError> {
        ControlError::unless_stuck(path, ANSWER, Self::ask(path, request)).await
    }

    async fn ask(path: &Path, request: &Request) -> Result<Self, ControlError> {
        let door = |source| ControlError::Door {
            path: path.to_owned(),
            source,
        };
        let mut link = unix::connect(path).await.map_err(door)?;
        link.sink.push(&request.encode());
        link.sink.flush().await.map_err(door)?;
        Ok(Self {
            path: path.to_owned(),
            link,
            patience: match request {
                Request::Reload {} => DEED,
                Request::Status { .. }
                | Request::Logs { .. }
                | Request::AgreeToTools { .. }
                | Request::Bundle {} => ANSWER,
            },
        })
    }

    fn silent(&self, why: impl Into<String>) -> ControlError {
        ControlError::Silent {
            path: self.path.clone(),
            why: why.into(),
        }
    }

    /// The next line of the answer, however long it takes; none after the last one.
    ///
    /// # Errors
    /// The connection failed, or what came is no answer.
    pub async fn next_entry(&mut self) -> Result<Option<Answer>, ControlError> {
        loop {
            if let Some(line) = self.link.source.next_line() {
                return match line {
                    Line::Json(bytes) => Answer::parse(bytes)
                        .map(Some)
                        .map_err(|why| self.silent(why)),
                    Line::Noise(_) | Line::TooLong { .. } => Err(self.silent("it is no gateway")),
                };
            }
            let filled = self.link.source.fill().await;
            if !filled.map_err(|error| self.silent(error.to_string()))? {
                return Ok(None);
            }
        }
    }

    /// The next line of the answer, soon; none after the last one.
    ///
    /// # Errors
    /// As [`Self::next_entry`], and when nothing comes in time.
    pub async fn next(&mut self) -> Result<Option<Answer>, ControlError> {
        let (path, patience) = (self.path.clone(), self.patience);
        ControlError::unless_stuck(&path, patience, self.next_entry()).await
    }
}
