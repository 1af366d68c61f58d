//! A child that runs.

use std::io;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use mcpact_engine::shutdown::{Carrier, EndEvent, EndStep, Ending, Grace};
use mcpact_engine::time::Moment;
use tokio::process::Command;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};

use super::group::{Group, Leader};
use super::guard::ward;
use super::hearing::{Hearing, Herald};
use super::input::Input;
use super::output::{Output, Remains};
use super::tail::Tail;
use crate::error::DoorError;
use crate::link::Link;
use crate::stdio::closable::{Closer, closable};
use crate::vigil;

/// How long the rest of the log may take after the group is gone; only a descendant that nobody can find
/// any more keeps it open longer.
const LAST_WORDS: Duration = Duration::from_millis(250);

/// How long a killed process may take at least to die, however short the grace is: a busy machine needs
/// a moment, and one that waits for a broken disk never dies.
const DEATH: Duration = Duration::from_secs(5);

/// The pauses between looks whether a guard has started its child, and how many of them there are: not every system
/// tells.
const LOOK: Duration = Duration::from_millis(2);
const LOOKS: u32 = 1000;

/// A child: what carries the messages, and the process itself. They may go separate ways.
#[derive(Debug)]
pub struct Child {
    /// Its standard input and output.
    pub link: Link,
    /// The process.
    pub process: Process,
}

/// A running process and all it started. Dropping it kills them.
#[derive(Debug)]
pub struct Process {
    name: Arc<str>,
    leader: Role,
    group: Arc<Group>,
    input: Closer<Input>,
    output: Closer<Output>,
    tail: Tail,
    heard: watch::Receiver<bool>,
    ended: watch::Receiver<Option<ExitStatus>>,
}

/// What the process is that was started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// The program itself.
    Program,
    /// Its guard.
    Guard,
}

/// How a process went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departure {
    /// What it left as its status.
    pub status: ExitStatus,
    /// The step of the ending after which it went.
    pub after: EndStep,
}

impl Child {
    pub(super) fn start(
        name: &str,
        mut command: Command,
        leader: Role,
        tail: Tail,
    ) -> io::Result<Self> {
        // Listening begins before the start, so that no exit is missed.
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
        let (herald, heard) = Herald::new();
        let stderr = Hearing::new(stderr, herald.clone());
        let log = tokio::spawn(tail.clone().run(Arc::clone(&name), stderr));
        vigil::over(&stdout);
        let (stdout, remains) = Output::new(stdout);
        let (sender, ended) = watch::channel(None);
        tokio::spawn(watch_over(
            Arc::clone(&name),
            Arc::clone(&group),
            changes,
            remains,
            log,
            sender,
        ));

        let (stdin, input) = closable(Input::new(stdin, Arc::clone(&group)));
        let (stdout, output) = closable(stdout);
        let link = Link::new(Hearing::new(stdout, herald), stdin);
        Ok(Self {
            link,
            process: Process {
                name,
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

/// Waits for the leader, reads what nobody wants any more, kills what the leader leaves behind, and tells.
async fn watch_over(
    name: Arc<str>,
    group: Arc<Group>,
    changes: Signal,
    remains: Remains,
    mut log: JoinHandle<()>,
    ended: watch::Sender<Option<ExitStatus>>,
) {
    let status = tokio::select! {
        biased;
        status = exit(&group, changes) => status,
        never = remains.pour_away() => match never {},
    };
    let Some(status) = status else {
        return;
    };
    if timeout(LAST_WORDS, &mut log).await.is_err() {
        log.abort();
    }
    match status {
        Ok(Some(status)) => {
            tracing::debug!(child = %name, %status, "exited");
            ended.send_replace(Some(status));
        }
        Ok(None) => tracing::warn!(child = %name, "somebody else took the exit status"),
        Err(error) => tracing::warn!(child = %name, %error, "the exit status is lost"),
    }
}

/// Waits for the leader and kills what it leaves behind; `None` if nobody tells any more of such things.
async fn exit(group: &Group, mut changes: Signal) -> Option<io::Result<Option<ExitStatus>>> {
    loop {
        match group.leader() {
            Leader::Runs => changes.recv().await?,
            Leader::HasExited => return Some(group.reap()),
            Leader::IsLost => {
                group.give_up();
                return Some(Ok(None));
            }
        }
    }
}

impl Process {
    /// What the log calls it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The number of the process and of its group; another process may have it after the end.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.group.id()
    }

    /// Waits for the number of the program's own process, which is another one's child if it stands under guard;
    /// `None` if it ends before anybody knows, or the system does not tell.
    pub fn program_id(&self) -> impl Future<Output = Option<u32>> + Send + use<> {
        let (id, leader, mut ended) = (self.id(), self.leader, self.ended.clone());
        let look = async move {
            if leader == Role::Program {
                return Some(id);
            }
            for _ in 0..LOOKS {
                if let Some(ward) = ward(id) {
                    return Some(ward);
                }
                tokio::time::sleep(LOOK).await;
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

    /// The last lines of its standard error, at most as many bytes as its command allows, without control
    /// characters. After [`wait`](Self::wait) nothing is added any more.
    #[must_use]
    pub fn stderr_tail(&self) -> String {
        self.tail.text()
    }

    /// Waits for the first byte on standard output or standard error, from which on a slow start is over;
    /// `false` when the process ends without one.
    ///
    /// Standard output is heard only while somebody reads the link.
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

    /// Waits until the process has exited; by then its group is gone and its log is read.
    ///
    /// # Errors
    /// The status was lost: somebody else reaped the process, or the runtime is shutting down.
    pub fn wait(&self) -> impl Future<Output = Result<ExitStatus, DoorError>> + Send + use<> {
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

    /// Ends the process and all it started, politely first: closes its standard input, then `SIGTERM`,
    /// then `SIGKILL` to the whole group.
    ///
    /// The owner has let requests in flight finish, so that `grace.drain` is not waited for. The link fails
    /// from here on; what the process still writes is read into nothing, so that it need not fail at its last
    /// word. Dropping the future kills at once.
    ///
    /// # Errors
    /// The process did not even die of `SIGKILL` in time, or its status was lost.
    ///
    /// `2026-07-28 basic/transports/stdio#shutdown`
    pub async fn shutdown(self, grace: Grace) -> Result<Departure, DoorError> {
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
                    self.group.note_family();
                    self.group.terminate();
                }
                EndStep::Kill => {
                    self.group.kill();
                    patience = patience.max(DEATH);
                }
                EndStep::Drain | EndStep::DeleteSession => {}
                EndStep::Done => return Err(DoorError::Timeout("waiting for a killed process")),
            }
            match timeout(patience, self.wait()).await {
                Ok(status) => {
                    return Ok(Departure {
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
