//! A server process, stopped on drop.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use crate::failure::Failure;
use crate::process::run;

/// Timeout until a server prints its URL.
const START_TIMEOUT: Duration = Duration::from_secs(30);

/// Poll interval.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// A running HTTP server, stopped on drop.
pub(crate) struct Listening {
    name: String,
    child: Child,
    url: String,
    log: PathBuf,
}

impl Listening {
    /// Starts the program and waits for its URL on standard output. Standard error goes to the log.
    pub(crate) fn start(name: &str, mut command: Command, log: &Path) -> Result<Self, Failure> {
        let errors = File::create(log).map_err(Failure::file(log))?;
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(errors);
        let child = command.spawn().map_err(|source| Failure::NotStarted {
            command: name.to_owned(),
            source,
        })?;
        let mut server = Self {
            name: name.to_owned(),
            child,
            url: String::new(),
            log: log.to_owned(),
        };
        let url = server.child.stdout.take().and_then(first_url);
        server.url = url.ok_or_else(|| server.failure("it did not print a URL"))?;
        Ok(server)
    }

    /// URL that the server printed.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// `Ok` unless the process has ended by itself.
    pub(crate) fn must_still_run(&mut self) -> Result<(), Failure> {
        match self.child.try_wait() {
            Ok(None) => Ok(()),
            Ok(Some(status)) => Err(self.failure(&format!("it exited ({status})"))),
            Err(source) => Err(Failure::File {
                path: self.log.clone(),
                source,
            }),
        }
    }

    /// Sends SIGTERM, as a service manager does, and waits for the process.
    pub(crate) fn terminate(&mut self, limit: Duration) -> Result<ExitStatus, Failure> {
        let pid = self.child.id().to_string();
        run(Command::new("kill").args(["-TERM", &pid]))?;
        let start = Instant::now();
        while start.elapsed() < limit {
            if let Some(status) = self.child.try_wait().map_err(Failure::file(&self.log))? {
                return Ok(status);
            }
            thread::sleep(POLL_INTERVAL);
        }
        Err(self.failure("it did not exit after SIGTERM"))
    }

    fn failure(&self, what: &str) -> Failure {
        Failure::Findings {
            check: "server",
            lines: vec![
                format!("`{}`: {what}", self.name),
                format!("its log is `{}`", self.log.display()),
            ],
            hint: "start it manually to see the cause",
        }
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        // Both fail only when the process has ended already, which is what is wanted.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// First URL on standard output, if it arrives in time. The thread keeps reading, so the pipe never
/// fills up.
fn first_url(stdout: ChildStdout) -> Option<String> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            if line.starts_with("http://") {
                // The receiver is gone after the first URL.
                let _ = sender.send(line.trim().to_owned());
            }
        }
    });
    receiver.recv_timeout(START_TIMEOUT).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn say(words: &str, log: &Path) -> Result<Listening, Failure> {
        let mut command = Command::new("sh");
        command.args(["-c", words]);
        Listening::start("words", command, log)
    }

    #[test]
    fn first_url_is_taken_and_other_lines_are_ignored() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        let words =
            "echo starting; echo http://127.0.0.1:1/a; echo http://127.0.0.1:2/b; exec sleep 600";
        let mut server = say(words, &log).unwrap();
        assert_eq!(server.url(), "http://127.0.0.1:1/a");
        server.must_still_run().unwrap();
    }

    #[test]
    fn server_that_ends_without_a_url_is_reported_with_its_log() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        let refused = say("echo no port >&2; exit 1", &log).err().unwrap();
        let text = refused.to_string();
        assert!(text.contains("`words`") && text.contains("log"), "{text}");
        assert_eq!(std::fs::read_to_string(&log).unwrap(), "no port\n");
    }
}
