//! Who ends a child when its owner cannot.
//!
//! A guard is a small process between owner and child. It adopts whatever the child's descendants leave
//! behind, however they detach themselves, and when owner or child is gone it ends all of them. It is
//! found by nobody's signal but `SIGKILL`, and shares the child's group, so that an owner that is alive
//! ends both together.

use std::ffi::{OsStr, OsString};

use tokio::process::Command;

use super::confinement::Confinement;
use super::process::Role;

/// The program that stands guard, which is one that calls `stand_guard`.
///
/// It is called with these arguments, the number of the owner, `--`, and the child's own command. Where the
/// system has no way to stand guard, which is everywhere but on Linux, the child is started without.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guard {
    /// Where it is.
    pub program: OsString,
    /// Its first arguments.
    pub args: Vec<OsString>,
}

impl Guard {
    /// The very program that runs, called with these arguments.
    pub fn this_program<A: Into<OsString>>(args: impl IntoIterator<Item = A>) -> Self {
        Self {
            program: running_program(),
            args: args.into_iter().map(Into::into).collect(),
        }
    }

    /// The same guard, which confines its child.
    #[must_use]
    pub fn confining(mut self, confinement: Confinement) -> Self {
        self.args.extend(confinement.args());
        self
    }

    /// The guard's command, to which only the child's arguments are missing, and what it starts.
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

/// The program file of this process, also after another version replaced it.
///
/// The file stays open: under valgrind, `/proc/self/exe` is this program when it is opened, but valgrind when it is executed.
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

/// The number of the process that a guard stands over, once it is there.
pub(super) fn ward(guard: u32) -> Option<u32> {
    // The oldest comes first; whoever is adopted is younger. It starts its child from its only busy thread.
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

    use crate::stdio::child::confinement::Confinement;
    use crate::stdio::child::family::{Family, Found, Kinship};
    use crate::stdio::child::group::SEARCHES;

    /// How long killed processes may take to die.
    const DEATH: Duration = Duration::from_secs(5);

    /// What a shell says about a program that a signal has ended.
    const BY_SIGNAL: i32 = 128;

    /// Starts a program on our own standard streams, confined like this, and stands guard over it until it, or the owner with
    /// this number, is gone; by then nothing that it started is left. Gives its exit status, as a shell
    /// would tell it.
    ///
    /// # Errors
    /// The program cannot be started, or the system does not let anybody stand guard. A program that was
    /// started is gone then.
    pub fn stand_guard(
        owner: u32,
        confinement: Confinement,
        program: &OsStr,
        args: &[OsString],
    ) -> io::Result<u8> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        runtime.block_on(stand(owner, confinement, program, args))
    }

    async fn stand(
        owner: u32,
        confinement: Confinement,
        program: &OsStr,
        args: &[OsString],
    ) -> io::Result<u8> {
        let mut owner_gone = watch(owner)?;
        set_child_subreaper(Some(getpid()))?;
        // These are for the child, which is in the same group.
        let _deaf = [
            SignalKind::terminate(),
            SignalKind::interrupt(),
            SignalKind::hangup(),
        ]
        .map(signal);
        let mut changes = signal(SignalKind::child())?;
        confinement.apply()?;
        let child = std::process::Command::new(program).args(args).spawn()?;
        let child = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let mut family = Family::default();
        let outcome = async {
            let_go_of_streams()?;
            let mut ending = None::<Parting>;
            loop {
                if let Some(status) = reap(child)? {
                    return Ok(status);
                }
                let patience = ending.as_ref().map_or(Duration::MAX, Parting::patience);
                tokio::select! {
                    _ = changes.recv() => {}
                    _ = &mut owner_gone, if ending.is_none() => ending = Some(Parting::begin()),
                    () = tokio::time::sleep(patience) => {
                        let is_over = ending.as_mut().is_none_or(Parting::go_on);
                        if is_over {
                            return Ok(BY_SIGNAL);
                        }
                    }
                }
            }
        };
        let status = outcome.await;
        kill_all(&mut family);
        let _ = timeout(DEATH, async {
            while !matches!(wait(WaitOptions::NOHANG), Err(Errno::CHILD)) {
                let _ = timeout(Duration::from_millis(50), changes.recv()).await;
            }
        })
        .await;
        status.map(|status: i32| u8::try_from(status).unwrap_or(u8::MAX))
    }

    /// Resolves when the process that wanted the guard is gone.
    fn watch(owner: u32) -> io::Result<oneshot::Receiver<()>> {
        let gone = || io::Error::other("the owner is gone");
        let owner = i32::try_from(owner).ok().and_then(Pid::from_raw);
        let owner = owner.ok_or_else(gone)?;
        let handle = pidfd_open(owner, PidfdFlags::empty())?;
        // The number was the owner's when the handle was opened if it is our parent's afterwards.
        if getppid() != Some(owner) {
            return Err(gone());
        }
        let (tell, told) = oneshot::channel();
        // A thread, because the runtime cannot wait for such a handle in safe Rust; it ends with the guard.
        std::thread::Builder::new().spawn(move || {
            let mut handles = [PollFd::new(&handle, PollFlags::IN)];
            while matches!(poll(&mut handles, None), Err(Errno::INTR)) {}
            // Nobody listens any more once the child is gone.
            let _ = tell.send(());
        })?;
        Ok(told)
    }

    /// The end of a child without an owner: its input is closed, the rest is as always.
    struct Parting {
        zero: Instant,
        ending: Ending,
    }

    impl Parting {
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

        /// The next step; whether it is the last.
        fn go_on(&mut self) -> bool {
            self.ending = self.ending.handle(EndEvent::Tick, self.now());
            match self.ending.step() {
                EndStep::Drain | EndStep::DeleteSession | EndStep::CloseInput => false,
                EndStep::Terminate => {
                    let group = rustix::process::getpgrp();
                    // We do not listen to it ourselves.
                    let _ = kill_process_group(group, Signal::TERM);
                    false
                }
                EndStep::Kill | EndStep::Done => true,
            }
        }
    }

    /// The streams are the child's alone: their end must be its end.
    fn let_go_of_streams() -> io::Result<()> {
        let nothing = OpenOptions::new()
            .read(true)
            .write(true)
            .open("/dev/null")?;
        rustix::stdio::dup2_stdin(&nothing)?;
        rustix::stdio::dup2_stdout(&nothing)?;
        rustix::stdio::dup2_stderr(&nothing)?;
        Ok(())
    }

    /// Reaps whoever has exited; the child's status if it is among them.
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

    /// Ends every descendant, also those who had left and were adopted.
    fn kill_all(family: &mut Family) {
        for _ in 0..SEARCHES {
            if family.find(Kinship::Parent(getpid())) == Found::Nobody {
                break;
            }
            // Who is stopped can start nobody new.
            family.signal(Signal::STOP);
        }
        family.signal(Signal::KILL);
    }
}
