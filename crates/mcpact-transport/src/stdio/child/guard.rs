//! The guard process, which kills a child when its owner cannot.
//!
//! A guard is a small process between owner and child. It is the subreaper of the child's descendants, and it kills all
//! of them when the owner or the child has exited. It ignores every signal but `SIGKILL` and shares the child's process
//! group, so a live owner kills both together.

use std::ffi::{OsStr, OsString};

use tokio::process::Command;

use super::process::Role;
use super::sandbox::{Sandbox, SandboxLevel, SandboxProblem};

/// The guard program, which must call `stand_guard`.
///
/// Its arguments are `args`, the process id of the owner, `--`, and the program of the child. The arguments of the child
/// are in its environment, because every user can read a command line. Only Linux supports guards; on other systems the
/// child is started without one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guard {
    /// Path of the program.
    pub program: OsString,
    /// Leading arguments.
    pub args: Box<[OsString]>,
    /// Level of the sandbox that the arguments ask for.
    sandbox: SandboxLevel,
}

impl Guard {
    /// Uses the running program as guard, called with these arguments.
    pub fn this_program<A: Into<OsString>>(args: impl IntoIterator<Item = A>) -> Self {
        Self {
            program: running_program(),
            args: args.into_iter().map(Into::into).collect(),
            sandbox: SandboxLevel::Off,
        }
    }

    /// Sets limits for the child.
    #[must_use]
    pub fn confining(mut self, confinement: &Confinement) -> Self {
        let args = std::mem::take(&mut self.args).into_iter();
        self.args = args.chain(confinement.args()).collect();
        self.sandbox = confinement.sandbox.level;
        self
    }

    /// Returns the reason why this system cannot enforce the sandbox.
    pub(super) fn sandbox_problem(&self) -> Option<SandboxProblem> {
        self.sandbox.problem()
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

/// Environment variable of a guard: number of arguments of its child.
const ARGUMENT_COUNT: &str = "MCPACT_GUARD_ARGUMENTS";

/// Returns the environment variable of a guard that holds an argument of its child. Each has its own, because the system
/// limits the length of a variable like that of an argument.
fn argument_variable(index: usize) -> String {
    format!("MCPACT_GUARD_ARGUMENT_{index}")
}

/// Passes the arguments of a child to its guard.
pub(super) fn pass_args(command: &mut Command, args: &[OsString]) {
    let numbered = args.iter().enumerate();
    command
        .env(ARGUMENT_COUNT, args.len().to_string())
        .envs(numbered.map(|(index, arg)| (argument_variable(index), arg)));
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
    use std::pin::pin;
    use std::time::Duration;

    use mcpact_engine::shutdown::{Carrier, EndEvent, EndStep, Ending, Grace};
    use mcpact_engine::time::Moment;
    use rustix::io::Errno;
    use rustix::process::{
        Pid, PidfdFlags, Signal, WaitOptions, WaitStatus, getpid, getppid, kill_process_group,
        pidfd_open, set_child_subreaper, wait,
    };
    use tokio::net::unix::pipe;
    use tokio::signal::unix::{SignalKind, signal};
    use tokio::time::{Instant, timeout};

    use crate::stdio::child::group::SEARCHES;
    use crate::stdio::child::guard::{ARGUMENT_COUNT, Confinement, argument_variable};
    use crate::stdio::child::process_tree::{Found, ProcessTree, TreeRoot};
    use crate::stdio::child::sandbox::{self, SandboxLevel};

    /// Time for killed processes to exit.
    const KILL_TIMEOUT: Duration = Duration::from_secs(5);

    /// Exit status base of a program that a signal ended, as in a shell.
    const BY_SIGNAL: i32 = 128;

    /// Starts a program on the standard streams of this process, with these limits, and guards it until the program or
    /// the owner has exited. Its arguments are `args`, then those that the owner put into the environment. All descendants
    /// are gone on return. Returns the exit status in the way of a shell.
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
        let owner = watch(owner)?;
        let mut owner_gone = pin!(owner.readable());
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
        let mut command = guarded_command(program, args)?;
        let (child, _sandboxed) = match confinement.sandbox.level {
            SandboxLevel::Off => (command.spawn()?.id(), None),
            SandboxLevel::Standard | SandboxLevel::Strict => {
                let sandboxed = sandbox::spawn(&confinement.sandbox, command)?;
                (sandboxed.child.id(), Some(sandboxed))
            }
        };
        let child = i32::try_from(child).ok().and_then(Pid::from_raw);
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
                    // An error is also an end: an owner that cannot be watched must not leave the child behind.
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

    /// Returns the command of the child: its arguments are `args` and those in the environment, which it does not see.
    fn guarded_command(program: &OsStr, args: &[OsString]) -> io::Result<std::process::Command> {
        let mut command = std::process::Command::new(program);
        command.args(args).env_remove(ARGUMENT_COUNT);
        let count = std::env::var(ARGUMENT_COUNT).ok();
        for index in 0..count.and_then(|count| count.parse().ok()).unwrap_or(0) {
            let variable = argument_variable(index);
            let arg = std::env::var_os(&variable);
            let arg = arg.ok_or_else(|| io::Error::other("an argument of the program is lost"))?;
            command.arg(arg).env_remove(variable);
        }
        Ok(command)
    }

    /// Returns a handle that becomes readable when the owner has exited.
    fn watch(owner: u32) -> io::Result<pipe::Receiver> {
        let gone = || io::Error::other("the owner is gone");
        let owner = i32::try_from(owner).ok().and_then(Pid::from_raw);
        let owner = owner.ok_or_else(gone)?;
        let handle = pidfd_open(owner, PidfdFlags::empty())?;
        // If the owner is still our parent, the handle was opened for the right process.
        if getppid() != Some(owner) {
            return Err(gone());
        }
        // Nothing is read. Of tokio's safe types this one takes any descriptor that `epoll` supports.
        pipe::Receiver::from_owned_fd_unchecked(handle)
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
        // All descendants have an ancestor among the children of their subreaper. A search reads every process.
        let has_no_child = || matches!(wait(WaitOptions::NOHANG), Err(Errno::CHILD));
        for _ in 0..SEARCHES {
            if has_no_child() || process_tree.find(TreeRoot::Parent(getpid())) == Found::Nothing {
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
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Confinement {
    /// Prevents the child from gaining privileges, for example through setuid programs.
    pub no_new_privileges: bool,
    /// Maximum number of open files per process.
    pub open_files: Option<u64>,
    /// Maximum bytes of address space per process.
    pub memory: Option<u64>,
    /// Limits of files and network.
    pub sandbox: Sandbox,
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
        args.extend(self.sandbox.args());
        args
    }

    /// Applies the limits except the sandbox to the current thread and to every process it starts from now on.
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
