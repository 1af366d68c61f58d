//! The guard process, which kills a child when its owner cannot.
//!
//! A guard is a small process between owner and child. It is the subreaper of the child's descendants, and it kills all
//! of them when the owner or the child has exited. It ignores every signal but `SIGKILL` and shares the child's process
//! group, so a live owner kills both together.

use std::ffi::{OsStr, OsString};

use tokio::process::Command;

use super::process::Role;

/// The guard program, which must call `stand_guard`.
///
/// Its arguments are `args`, the process id of the owner, `--`, and the command of the child. Only Linux supports
/// guards; on other systems the child is started without one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guard {
    /// Path of the program.
    pub program: OsString,
    /// Leading arguments.
    pub args: Vec<OsString>,
}

impl Guard {
    /// Uses the running program as guard, called with these arguments.
    pub fn this_program<A: Into<OsString>>(args: impl IntoIterator<Item = A>) -> Self {
        Self {
            program: running_program(),
            args: args.into_iter().map(Into::into).collect(),
        }
    }

    /// Sets limits for the child.
    #[must_use]
    pub fn confining(mut self, confinement: Confinement) -> Self {
        self.args.extend(confinement.args());
        self
    }

    /// Returns the guard's command, without the arguments of the child, and the role of the started process.
    pub(super) fn command(&self, program: &OsStr) -> (Command, Role) {
        if !cfg!(target_os = "linux") {
            return (Command::new(program), Role::Program);
        }
        let mut command = Command::new(&self.program);
        command
            .args(&self.args)
            .arg(std::process::id().to_string())
            .arg("--")
            .arg(program);
        (command, Role::Guard)
    }
}

/// Returns a path to the program file of this process, also after another version replaced it.
///
/// The file stays open: under valgrind, opening `/proc/self/exe` gives this program, but executing it starts valgrind.
fn running_program() -> OsString {
    const PATH: &str = "/proc/self/exe";
    #[cfg(target_os = "linux")]
    {
        use std::os::fd::AsRawFd as _;
        static FILE: std::sync::OnceLock<Option<std::fs::File>> = std::sync::OnceLock::new();
        if let Some(file) = FILE.get_or_init(|| std::fs::File::open(PATH).ok()) {
            return format!("/proc/self/fd/{}", file.as_raw_fd()).into();
        }
    }
    PATH.into()
}

/// Returns the process id of the guarded child, once it was started.
pub(super) fn guarded_pid(guard: u32) -> Option<u32> {
    // The oldest child comes first, and adopted processes are younger. The guard starts its child from its main thread.
    let children = std::fs::read_to_string(format!("/proc/{guard}/task/{guard}/children"));
    let children = children.ok()?;
    children.split_ascii_whitespace().next()?.parse().ok()
}

#[cfg(target_os = "linux")]
pub use linux::stand_guard;

#[cfg(target_os = "linux")]
mod linux {
    use std::ffi::{OsStr, OsString};
    use std::fs::OpenOptions;
    use std::io;
    use std::time::Duration;

    use mcpact_engine::shutdown::{Carrier, EndEvent, EndStep, Ending, Grace};
    use mcpact_engine::time::Moment;
    use rustix::event::{PollFd, PollFlags, poll};
    use rustix::io::Errno;
    use rustix::process::{
        Pid, PidfdFlags, Signal, WaitOptions, WaitStatus, getpid, getppid, kill_process_group,
        pidfd_open, set_child_subreaper, wait,
    };
    use tokio::signal::unix::{SignalKind, signal};
    use tokio::sync::oneshot;
    use tokio::time::{Instant, timeout};

    use crate::stdio::child::group::SEARCHES;
    use crate::stdio::child::guard::Confinement;
    use crate::stdio::child::process_tree::{Found, ProcessTree, TreeRoot};

    /// Time for killed processes to exit.
    const KILL_TIMEOUT: Duration = Duration::from_secs(5);

    /// Exit status base of a program that a signal ended, as in a shell.
    const BY_SIGNAL: i32 = 128;

    /// Starts a program on the standard streams of this process, with these limits, and guards it until the program or
    /// the owner has exited. All descendants are gone on return. Returns the exit status in the way of a shell.
    ///
    /// # Errors
    /// The program cannot be started, or the system does not support guards. A program that was started is killed.
    pub fn stand_guard(
        owner: u32,
        confinement: Confinement,
        program: &OsStr,
        args: &[OsString],
    ) -> io::Result<u8> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        runtime.block_on(run(owner, confinement, program, args))
    }

    async fn run(
        owner: u32,
        confinement: Confinement,
        program: &OsStr,
        args: &[OsString],
    ) -> io::Result<u8> {
        let mut owner_gone = watch(owner)?;
        set_child_subreaper(Some(getpid()))?;
        // These signals are meant for the child, which is in the same group.
        let _ignored = [
            SignalKind::terminate(),
            SignalKind::interrupt(),
            SignalKind::hangup(),
        ]
        .map(signal);
        let mut changes = signal(SignalKind::child())?;
        confinement.apply()?;
        let child = std::process::Command::new(program).args(args).spawn()?;
        let child = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let mut process_tree = ProcessTree::default();
        let outcome = async {
            detach_stdio()?;
            let mut ending = None::<OrphanShutdown>;
            loop {
                if let Some(status) = reap(child)? {
                    return Ok(status);
                }
                let patience = ending
                    .as_ref()
                    .map_or(Duration::MAX, OrphanShutdown::patience);
                tokio::select! {
                    _ = changes.recv() => {}
                    _ = &mut owner_gone, if ending.is_none() => ending = Some(OrphanShutdown::begin()),
                    () = tokio::time::sleep(patience) => {
                        let is_over = ending.as_mut().is_none_or(OrphanShutdown::go_on);
                        if is_over {
                            return Ok(BY_SIGNAL);
                        }
                    }
                }
            }
        };
        let status = outcome.await;
        kill_all(&mut process_tree);
        let _ = timeout(KILL_TIMEOUT, async {
            while !matches!(wait(WaitOptions::NOHANG), Err(Errno::CHILD)) {
                let _ = timeout(Duration::from_millis(50), changes.recv()).await;
            }
        })
        .await;
        status.map(|status: i32| u8::try_from(status).unwrap_or(u8::MAX))
    }

    /// Resolves when the owner has exited.
    fn watch(owner: u32) -> io::Result<oneshot::Receiver<()>> {
        let gone = || io::Error::other("the owner is gone");
        let owner = i32::try_from(owner).ok().and_then(Pid::from_raw);
        let owner = owner.ok_or_else(gone)?;
        let handle = pidfd_open(owner, PidfdFlags::empty())?;
        // If the owner is still our parent, the handle was opened for the right process.
        if getppid() != Some(owner) {
            return Err(gone());
        }
        let (tell, told) = oneshot::channel();
        // A thread, because tokio cannot wait for a pidfd in safe Rust. It ends with the guard.
        std::thread::Builder::new().spawn(move || {
            let mut handles = [PollFd::new(&handle, PollFlags::IN)];
            while matches!(poll(&mut handles, None), Err(Errno::INTR)) {}
            // The receiver is dropped once the child has exited.
            let _ = tell.send(());
        })?;
        Ok(told)
    }

    /// Shutdown of a child whose owner has exited; its standard input is already closed.
    struct OrphanShutdown {
        zero: Instant,
        ending: Ending,
    }

    impl OrphanShutdown {
        fn begin() -> Self {
            let ending = Ending::begin(Carrier::Child, Grace::default(), Moment::ZERO);
            Self {
                zero: Instant::now(),
                ending: ending.handle(EndEvent::Idle, Moment::ZERO),
            }
        }

        fn patience(&self) -> Duration {
            self.ending.until().since(self.now())
        }

        fn now(&self) -> Moment {
            Moment::at(self.zero.elapsed())
        }

        /// Takes the next step; returns whether it was the last.
        fn go_on(&mut self) -> bool {
            self.ending = self.ending.handle(EndEvent::Tick, self.now());
            match self.ending.step() {
                EndStep::Drain | EndStep::DeleteSession | EndStep::CloseInput => false,
                EndStep::Terminate => {
                    let group = rustix::process::getpgrp();
                    // The guard itself ignores this signal.
                    let _ = kill_process_group(group, Signal::TERM);
                    false
                }
                EndStep::Kill | EndStep::Done => true,
            }
        }
    }

    /// Closes our copies of the standard streams, so that EOF comes when the child closes its own.
    fn detach_stdio() -> io::Result<()> {
        let nothing = OpenOptions::new()
            .read(true)
            .write(true)
            .open("/dev/null")?;
        rustix::stdio::dup2_stdin(&nothing)?;
        rustix::stdio::dup2_stdout(&nothing)?;
        rustix::stdio::dup2_stderr(&nothing)?;
        Ok(())
    }

    /// Reaps exited processes; returns the status of the child if it is among them.
    fn reap(child: Option<Pid>) -> io::Result<Option<i32>> {
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((id, status))) if Some(id) == child => return Ok(Some(code(status))),
                Ok(Some(_)) | Err(Errno::INTR) => {}
                Ok(None) => return Ok(None),
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn code(status: WaitStatus) -> i32 {
        let by_signal = || status.terminating_signal().map(|signal| BY_SIGNAL + signal);
        status.exit_status().or_else(by_signal).unwrap_or(BY_SIGNAL)
    }

    /// Kills every descendant, including adopted ones.
    fn kill_all(process_tree: &mut ProcessTree) {
        for _ in 0..SEARCHES {
            if process_tree.find(TreeRoot::Parent(getpid())) == Found::Nothing {
                break;
            }
            // A stopped process cannot start another one.
            process_tree.signal(Signal::STOP);
        }
        process_tree.signal(Signal::KILL);
    }
}

/// Option of the guard command for [`Confinement::no_new_privileges`].
const NO_NEW_PRIVILEGES: &str = "--no-new-privileges";
/// Option of the guard command for [`Confinement::open_files`].
const OPEN_FILES: &str = "--open-files";
/// Option of the guard command for [`Confinement::memory`].
const MEMORY: &str = "--memory";

/// Limits that a guard sets for its child. Descendants inherit them and cannot lift them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Confinement {
    /// Prevents the child from gaining privileges, for example through setuid programs.
    pub no_new_privileges: bool,
    /// Maximum number of open files per process.
    pub open_files: Option<u64>,
    /// Maximum bytes of address space per process.
    pub memory: Option<u64>,
}

impl Confinement {
    /// Returns the options for the guard command.
    #[must_use]
    pub fn args(&self) -> Vec<OsString> {
        let mut args = Vec::new();
        if self.no_new_privileges {
            args.push(OsString::from(NO_NEW_PRIVILEGES));
        }
        for (option, limit) in [(OPEN_FILES, self.open_files), (MEMORY, self.memory)] {
            if let Some(limit) = limit {
                args.extend([option.into(), limit.to_string().into()]);
            }
        }
        args
    }

    /// Applies the limits to the current thread and to every process it starts from now on.
    ///
    /// # Errors
    /// The system refuses; the child must not be started then.
    #[cfg(target_os = "linux")]
    pub(super) fn apply(&self) -> std::io::Result<()> {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
        if self.no_new_privileges {
            rustix::thread::set_no_new_privs(true)?;
        }
        for (resource, limit) in [
            (Resource::Nofile, self.open_files),
            (Resource::As, self.memory),
        ] {
            let Some(limit) = limit else {
                continue;
            };
            // A lower limit that is already in force stays.
            let highest = getrlimit(resource).maximum;
            let limit = highest.map_or(limit, |highest| highest.min(limit));
            let new = Rlimit {
                current: Some(limit),
                maximum: Some(limit),
            };
            setrlimit(resource, new)?;
        }
        Ok(())
    }
}
