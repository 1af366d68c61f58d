//! A server as a process that lives as long as the value.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use crate::failure::Failure;
use crate::process::run;

/// How long a server may take until it says where it listens.
const PATIENCE: Duration = Duration::from_secs(30);

/// How often a process that is about to end is looked at.
const GLANCE: Duration = Duration::from_millis(20);

/// A server that listens, stopped on drop.
pub(crate) struct Listening {
    name: String,
    child: Child,
    url: String,
    log: PathBuf,
}

impl Listening {
    /// Start the program, which says on standard output where it listens; what it says on standard
    /// error goes to the log.
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
        server.url = url.ok_or_else(|| server.trouble("it did not say where it listens"))?;
        Ok(server)
    }

    /// Where the server says that it listens.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// `Ok` unless the process has ended by itself.
    pub(crate) fn must_still_run(&mut self) -> Result<(), Failure> {
        match self.child.try_wait() {
            Ok(None) => Ok(()),
            Ok(Some(status)) => Err(self.trouble(&format!("it ended by itself ({status})"))),
            Err(source) => Err(Failure::File {
                path: self.log.clone(),
                source,
            }),
        }
    }

    /// Ask the process to end, as a service manager does, and wait for it.
    pub(crate) fn terminate(&mut self, limit: Duration) -> Result<ExitStatus, Failure> {
        let pid = self.child.id().to_string();
        run(Command::new("kill").args(["-TERM", &pid]))?;
        let start = Instant::now();
        while start.elapsed() < limit {
            if let Some(status) = self.child.try_wait().map_err(Failure::file(&self.log))? {
                return Ok(status);
            }
            thread::sleep(GLANCE);
        }
        Err(self.trouble("it does not end when it is told to"))
    }

    fn trouble(&self, what: &str) -> Failure {
        Failure::Findings {
            check: "server",
            lines: vec![
                format!("`{}`: {what}", self.name),
                format!("its words are in `{}`", self.log.display()),
            ],
            hint: "start it by hand",
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

/// The first line that is an address, if it comes in time. The thread reads on, so that the pipe
/// never fills.
fn first_url(stdout: ChildStdout) -> Option<String> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            if line.starts_with("http://") {
                // Nobody listens after the first address.
                let _ = sender.send(line.trim().to_owned());
            }
        }
    });
    receiver.recv_timeout(PATIENCE).ok()
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
    fn the_first_address_counts_and_other_lines_do_not() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        let words =
            "echo starting; echo http://127.0.0.1:1/a; echo http://127.0.0.1:2/b; exec sleep 600";
        let mut server = say(words, &log).unwrap();
        assert_eq!(server.url(), "http://127.0.0.1:1/a");
        server.must_still_run().unwrap();
    }

    #[test]
    fn a_server_that_ends_without_an_address_is_named_with_its_log() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        let refused = say("echo no port >&2; exit 1", &log).err().unwrap();
        let text = refused.to_string();
        assert!(text.contains("`words`") && text.contains("log"), "{text}");
        assert_eq!(std::fs::read_to_string(&log).unwrap(), "no port\n");
    }
}
