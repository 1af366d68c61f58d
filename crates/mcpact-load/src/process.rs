//! A subject: a program that is started for the load, and looked at from outside.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use rustix::time::{ClockId, clock_gettime};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use crate::error::LoadError;

/// The unit of the times in `/proc`: 100 per second on every Linux of today.
const TICK: Duration = Duration::from_millis(10);

/// A running subject, killed on drop.
#[derive(Debug)]
pub struct Subject {
    child: Child,
    name: String,
}

impl Subject {
    /// Starts a program with its pipes in our hands.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(program: &Path, arguments: &[&str]) -> Result<Self, LoadError> {
        let mut command = Command::new(program);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        Self::spawn(command, program, arguments)
    }

    /// Starts a program and discards its output.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start_quietly(program: &Path, arguments: &[&str]) -> Result<Self, LoadError> {
        let mut command = Command::new(program);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        Self::spawn(command, program, arguments)
    }

    fn spawn(mut command: Command, program: &Path, arguments: &[&str]) -> Result<Self, LoadError> {
        command.args(arguments).kill_on_drop(true);
        Ok(Self {
            child: command.spawn()?,
            name: program.display().to_string(),
        })
    }

    /// The address that a server on HTTP says first.
    ///
    /// # Errors
    /// It ended before.
    pub async fn address(&mut self) -> Result<String, LoadError> {
        let stdout = self.child.stdout.take().ok_or_else(|| self.silent())?;
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line).await?;
        let address = line.trim().strip_prefix("http://");
        let host = address.and_then(|rest| rest.split('/').next());
        host.map(str::to_owned).ok_or_else(|| self.silent())
    }

    /// The pipes of a server on standard input and output.
    ///
    /// # Errors
    /// They are taken already.
    pub fn pipes(&mut self) -> Result<(ChildStdin, ChildStdout), LoadError> {
        let pipes = self.child.stdin.take().zip(self.child.stdout.take());
        pipes.ok_or_else(|| self.silent())
    }

    fn silent(&self) -> LoadError {
        LoadError::Silent(self.name.clone())
    }

    fn id(&self) -> Result<u32, LoadError> {
        self.child.id().ok_or_else(|| self.silent())
    }

    /// Returns whether it has exited.
    pub fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// Terminates the process and waits until it has exited.
    ///
    /// # Errors
    /// The process cannot be signalled.
    pub async fn stop(mut self) -> Result<(), LoadError> {
        let id = i32::try_from(self.id()?).ok().and_then(Pid::from_raw);
        let id = id.ok_or_else(|| self.silent())?;
        kill_process(id, Signal::TERM).map_err(std::io::Error::from)?;
        self.child.wait().await?;
        Ok(())
    }

    /// The processor time that it has used so far.
    ///
    /// # Errors
    /// It has ended.
    pub fn cpu(&self) -> Result<Duration, LoadError> {
        let folder = format!("/proc/{}", self.id()?);
        // Threads that have ended count in the ticks only.
        Ok(threads(&folder)?.max(ticks(&format!("{folder}/stat"))?))
    }

    /// The memory that it holds, in bytes.
    ///
    /// # Errors
    /// It has ended.
    pub fn resident(&self) -> Result<u64, LoadError> {
        self.memory("VmRSS:")
    }

    /// The most memory that it has held so far, in bytes.
    ///
    /// # Errors
    /// It has ended.
    pub fn peak(&self) -> Result<u64, LoadError> {
        self.memory("VmHWM:")
    }

    fn memory(&self, key: &str) -> Result<u64, LoadError> {
        let text = std::fs::read_to_string(format!("/proc/{}/status", self.id()?))?;
        let line = text.lines().find_map(|line| line.strip_prefix(key));
        let kibibytes =
            line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
        kibibytes
            .map(|count| count * 1024)
            .ok_or_else(|| self.silent())
    }
}

/// Processor time that this process has used so far.
#[must_use]
pub fn own_cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    Duration::from_secs(seconds) + Duration::from_nanos(u64::try_from(time.tv_nsec).unwrap_or(0))
}

/// Processor time of the running threads; zero if the kernel does not count nanoseconds.
fn threads(folder: &str) -> Result<Duration, LoadError> {
    let mut sum = Duration::ZERO;
    for thread in std::fs::read_dir(format!("{folder}/task"))? {
        // The thread may have ended since.
        let text = std::fs::read_to_string(thread?.path().join("schedstat")).unwrap_or_default();
        let time = text.split(' ').next().and_then(|time| time.parse().ok());
        sum += Duration::from_nanos(time.unwrap_or(0));
    }
    Ok(sum)
}

/// Processor time in units of 10 ms.
fn ticks(file: &str) -> Result<Duration, LoadError> {
    let text = std::fs::read_to_string(file)?;
    // The name in parentheses may hold spaces; user and system time are the 12th and 13th after it.
    let fields = text.rsplit(')').next().unwrap_or_default();
    let ticks = fields.split_whitespace().skip(11).take(2);
    let sum: u32 = ticks.filter_map(|field| field.parse::<u32>().ok()).sum();
    Ok(TICK * sum)
}

/// Runs a program to its end and takes what it wrote.
///
/// # Errors
/// It cannot be started, or fails.
pub async fn capture(program: &Path, arguments: &[&str]) -> Result<Vec<u8>, LoadError> {
    let mut command = Command::new(program);
    command
        .args(arguments)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .kill_on_drop(true);
    let output = command.output().await?;
    if !output.status.success() {
        return Err(LoadError::Silent(program.display().to_string()));
    }
    Ok(output.stdout)
}
