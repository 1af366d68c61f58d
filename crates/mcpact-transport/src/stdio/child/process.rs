//! A running child process.

use std::convert::Infallible;
use std::io;
use std::pin::Pin;
use std::process::ExitStatus;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use mcpact_engine::shutdown::{Carrier, EndEvent, EndStep, Ending, Grace};
use mcpact_engine::time::Moment;
use tokio::io::{AsyncRead, ReadBuf, copy, sink};
use tokio::process::{ChildStdin, ChildStdout, Command};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};

use super::group::{Group, Leader};
use super::guard::guarded_pid;
use super::tail::Tail;
use crate::error::TransportError;
use crate::link::Link;
use crate::stdio::closable::{Closer, closable_with};

/// Time for the rest of the log after the group is gone; only a descendant that cannot be found keeps it open longer.
const LOG_TIMEOUT: Duration = Duration::from_millis(250);

/// Minimum time for a killed process to exit, even with a shorter grace period: a busy machine needs a moment, and a
/// process in uninterruptible sleep never exits.
const KILL_TIMEOUT: Duration = Duration::from_secs(5);

/// Interval and number of checks whether a guard has started its child; not every system reports it.
const PID_POLL_INTERVAL: Duration = Duration::from_millis(2);
const PID_POLLS: u32 = 1000;

/// A child: its transport and its process, which can be used separately.
#[derive(Debug)]
pub struct Child {
    /// Standard input and output.
    pub link: Link,
    /// The process.
    pub process: Process,
}

/// A running process and its descendants. Dropping it kills them.
#[derive(Debug)]
pub struct Process {
    leader: Role,
    group: Arc<Group>,
    input: Closer<ChildStdin>,
    output: Closer<ChildStdout>,
    tail: Tail,
    heard: watch::Receiver<bool>,
    ended: watch::Receiver<Option<ExitStatus>>,
}

/// Role of the started process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// The program itself.
    Program,
    /// The guard of the program.
    Guard,
}

/// Outcome of a shutdown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShutdownReport {
    /// Exit status.
    pub status: ExitStatus,
    /// Shutdown step after which the process exited.
    pub after: EndStep,
}

impl Child {
    pub(super) fn start(
        name: &str,
        mut command: Command,
        leader: Role,
        tail: Tail,
    ) -> io::Result<Self> {
        // Subscribes before the start, so that no exit is missed.
        let changes = signal(SignalKind::child())?;
        let mut started = command.spawn()?;
        let pipes = (
            started.stdin.take(),
            started.stdout.take(),
            started.stderr.take(),
        );
        let group = Arc::new(Group::of(started)?);
        let (Some(stdin), Some(stdout), Some(stderr)) = pipes else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };

        let name: Arc<str> = name.into();
        let (first_byte, heard) = watch::channel(false);
        let stderr = FirstByteReader::new(stderr, first_byte.clone());
        let log = tokio::spawn(tail.clone().run(Arc::clone(&name), stderr));
        let (abandon, abandoned) = oneshot::channel();
        let (sender, ended) = watch::channel(None);
        tokio::spawn(supervise(
            name,
            Arc::clone(&group),
            changes,
            abandoned,
            log,
            sender,
        ));

        let members = Arc::clone(&group);
        let (stdin, input) = closable_with(stdin, move |stdin| {
            // The server may exit at once when its input is closed, and its descendants could not be found afterwards.
            members.record_tree();
            drop(stdin);
        });
        let (stdout, output) = closable_with(stdout, |stdout| {
            // If the supervising job is gone, the output is closed.
            let _ = abandon.send(stdout);
        });
        let link = Link::new(FirstByteReader::new(stdout, first_byte), stdin);
        Ok(Self {
            link,
            process: Process {
                leader,
                group,
                input,
                output,
                tail,
                heard,
                ended,
            },
        })
    }
}

/// Waits for the leader, discards unread output, kills the rest of the group, and publishes the exit status.
async fn supervise(
    name: Arc<str>,
    group: Arc<Group>,
    changes: Signal,
    abandoned: oneshot::Receiver<ChildStdout>,
    mut log: JoinHandle<()>,
    ended: watch::Sender<Option<ExitStatus>>,
) {
    let status = tokio::select! {
        biased;
        status = exit(&group, changes) => status,
        never = discard(abandoned) => match never {},
    };
    let Some(status) = status else {
        return;
    };
    if timeout(LOG_TIMEOUT, &mut log).await.is_err() {
        log.abort();
    }
    match status {
        Ok(Some(status)) => {
            tracing::debug!(child = %name, %status, "exited");
            ended.send_replace(Some(status));
        }
        Ok(None) => {
            tracing::warn!(child = %name, "the process was reaped elsewhere; its exit status is lost")
        }
        Err(error) => tracing::warn!(child = %name, %error, "the exit status is lost"),
    }
}

/// Reads and discards the output that the link no longer reads: a server that writes during shutdown would fail with
/// `SIGPIPE` before it has cleaned up.
async fn discard(abandoned: oneshot::Receiver<ChildStdout>) -> Infallible {
    if let Ok(mut stdout) = abandoned.await {
        // A read error ends the output, too.
        let _ = copy(&mut stdout, &mut sink()).await;
    }
    std::future::pending().await
}

/// Waits for the leader and kills the rest of the group; `None` if the runtime is shutting down.
async fn exit(group: &Group, mut changes: Signal) -> Option<io::Result<Option<ExitStatus>>> {
    loop {
        match group.leader() {
            Leader::Running => changes.recv().await?,
            Leader::Exited => return Some(group.reap()),
            Leader::Lost => {
                group.forget_leader();
                return Some(Ok(None));
            }
        }
    }
}

impl Process {
    /// Returns the id of the process and of its group; it may be reused after the exit.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.group.id()
    }

    /// Waits for the process id of the program itself, which differs from [`id`](Self::id) under a guard; `None` if it
    /// exits first or the system does not report it.
    pub fn program_id(&self) -> impl Future<Output = Option<u32>> + Send + use<> {
        let (id, leader, mut ended) = (self.id(), self.leader, self.ended.clone());
        let look = async move {
            if leader == Role::Program {
                return Some(id);
            }
            for _ in 0..PID_POLLS {
                if let Some(child) = guarded_pid(id) {
                    return Some(child);
                }
                tokio::time::sleep(PID_POLL_INTERVAL).await;
            }
            None
        };
        async move {
            tokio::select! {
                biased;
                found = look => found,
                _ = ended.wait_for(Option::is_some) => None,
            }
        }
    }

    /// Returns the last lines of standard error, up to the limit of the command, without control characters. Nothing is
    /// added after [`wait`](Self::wait).
    #[must_use]
    pub fn stderr_tail(&self) -> String {
        self.tail.text()
    }

    /// Waits for the first byte on standard output or standard error, which ends a slow start; `false` if the process
    /// exits without one.
    ///
    /// Standard output counts only while the link is read.
    pub fn first_byte(&self) -> impl Future<Output = bool> + Send + use<> {
        let (mut heard, mut ended) = (self.heard.clone(), self.ended.clone());
        async move {
            tokio::select! {
                biased;
                came = heard.wait_for(|came| *came) => came.is_ok(),
                _ = ended.wait_for(Option::is_some) => false,
            }
        }
    }

    /// Waits until the process has exited; its group is gone and its log is read by then.
    ///
    /// # Errors
    /// The status is lost: the process was reaped elsewhere, or the runtime is shutting down.
    pub fn wait(&self) -> impl Future<Output = Result<ExitStatus, TransportError>> + Send + use<> {
        let mut ended = self.ended.clone();
        async move {
            let lost = || io::Error::other("the exit status is lost");
            let status = ended
                .wait_for(Option::is_some)
                .await
                .ok()
                .and_then(|status| *status);
            Ok(status.ok_or_else(lost)?)
        }
    }

    /// Stops the process and its descendants: closes standard input, then sends `SIGTERM`, then `SIGKILL` to the whole
    /// group.
    ///
    /// The owner has already drained in-flight requests, so `grace.drain` is skipped. The link fails from now on;
    /// further output is discarded, so that the process does not fail while writing. Dropping the future kills at once.
    ///
    /// # Errors
    /// The process did not exit in time after `SIGKILL`, or its status is lost.
    ///
    /// `2026-07-28 basic/transports/stdio#shutdown`
    pub async fn shutdown(self, grace: Grace) -> Result<ShutdownReport, TransportError> {
        let begin = Instant::now();
        let now = || Moment::at(begin.elapsed());
        let mut ending = Ending::begin(Carrier::Child, grace, now()).handle(EndEvent::Idle, now());
        loop {
            let after = ending.step();
            let mut patience = ending.until().since(now());
            match after {
                EndStep::CloseInput => {
                    self.output.close();
                    self.input.close();
                }
                EndStep::Terminate => {
                    self.group.record_tree();
                    self.group.terminate();
                }
                EndStep::Kill => {
                    self.group.kill();
                    patience = patience.max(KILL_TIMEOUT);
                }
                EndStep::Drain | EndStep::DeleteSession => {}
                EndStep::Done => {
                    return Err(TransportError::Timeout("waiting for a killed process"));
                }
            }
            match timeout(patience, self.wait()).await {
                Ok(status) => {
                    return Ok(ShutdownReport {
                        status: status?,
                        after,
                    });
                }
                Err(_) => ending = ending.handle(EndEvent::Tick, now()),
            }
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.group.kill();
    }
}

/// A reader that signals its first byte.
#[derive(Debug)]
struct FirstByteReader<R> {
    io: R,
    /// `None` after the first byte.
    first_byte: Option<watch::Sender<bool>>,
}

impl<R> FirstByteReader<R> {
    fn new(io: R, first_byte: watch::Sender<bool>) -> Self {
        Self {
            io,
            first_byte: Some(first_byte),
        }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for FirstByteReader<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let result = Pin::new(&mut self.io).poll_read(context, buffer);
        if result.is_ready()
            && let Some(first_byte) = self.first_byte.take()
            && buffer.filled().len() > before
        {
            first_byte.send_replace(true);
        }
        result
    }
}
