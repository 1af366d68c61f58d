//! Our reference server as a process that lives as long as the value.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use crate::failure::Failure;

/// How long the server may take until it says where it listens.
const PATIENCE: Duration = Duration::from_secs(30);

/// `mcpact everything`, stopped on drop.
pub(super) struct Server {
    child: Child,
    url: String,
    log: PathBuf,
}

impl Server {
    /// Start the server on a free port; what it says on standard error goes to the log.
    pub(super) fn start(binary: &Path, log: &Path) -> Result<Self, Failure> {
        let errors = File::create(log).map_err(Failure::file(log))?;
        let mut command = Command::new(binary);
        command
            .args(["everything", "--listen", "127.0.0.1:0"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(errors);
        let child = command.spawn().map_err(|source| Failure::NotStarted {
            command: "mcpact everything".to_owned(),
            source,
        })?;
        let (url, log) = (String::new(), log.to_owned());
        let mut server = Self { child, url, log };
        let line = server.child.stdout.take().and_then(first_line);
        server.url = line
            .as_deref()
            .and_then(by_name)
            .ok_or_else(|| server.trouble("it did not say where it listens"))?;
        Ok(server)
    }

    /// Where the server listens, with a host name.
    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// `Ok` unless the process has ended by itself.
    pub(super) fn must_still_run(&mut self) -> Result<(), Failure> {
        match self.child.try_wait() {
            Ok(None) => Ok(()),
            Ok(Some(status)) => Err(self.trouble(&format!("it ended during the suite ({status})"))),
            Err(source) => Err(Failure::File {
                path: self.log.clone(),
                source,
            }),
        }
    }

    fn trouble(&self, what: &str) -> Failure {
        Failure::Findings {
            check: "conformance",
            lines: vec![
                format!("`mcpact everything`: {what}"),
                format!("its words are in `{}`", self.log.display()),
            ],
            hint: "start it by hand and run the suite against it with `--url`",
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Both fail only when the process has ended already, which is what is wanted.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The first line, if it comes in time. The thread reads on, so that the pipe never fills.
fn first_line(stdout: ChildStdout) -> Option<String> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            // Nobody listens after the first line.
            let _ = sender.send(line);
        }
    });
    receiver.recv_timeout(PATIENCE).ok()
}

/// The suite's check against DNS rebinding wants a host by name.
fn by_name(line: &str) -> Option<String> {
    let rest = line.trim().strip_prefix("http://127.0.0.1:")?;
    Some(format!("http://localhost:{rest}"))
}

#[cfg(test)]
mod tests {
    use super::by_name;

    #[test]
    fn the_suite_gets_a_host_by_name() {
        assert_eq!(
            by_name("http://127.0.0.1:4711/mcp\n").unwrap(),
            "http://localhost:4711/mcp"
        );
        assert_eq!(by_name("error: the port is taken"), None);
    }
}
