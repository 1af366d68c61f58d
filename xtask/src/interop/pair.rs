//! Two programs that are run against each other: one of ours and a peer, or two peers with our bridge between them.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::manifest::{Lack, Peer, Transport};
use super::setup::Setup;
use crate::failure::Failure;
use crate::listening::Listening;

/// Timeout of a pair.
const LIMIT: Duration = Duration::from_secs(60);
/// Poll interval.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Placeholder for the working directory in a script.
const FOLDER: &str = "{folder}";

/// Role of a peer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Client,
    Server,
}

/// A peer, and what carries its messages.
pub(super) struct End<'a> {
    pub(super) peer: &'a Peer,
    pub(super) transport: Transport,
}

/// A client in one mode and a server; where there is no peer, it is ours. With two peers, our
/// bridge connects them.
pub(super) struct Pair<'a> {
    pub(super) position: usize,
    pub(super) client: Option<End<'a>>,
    pub(super) server: Option<End<'a>>,
    pub(super) mode: &'a str,
    /// Script that exercises each feature; clients have their own.
    pub(super) script: Option<&'a Value>,
    pub(super) absent: Vec<&'a Lack>,
}

/// Output of a client.
pub(super) struct Ran {
    /// Its standard output.
    pub(super) output: String,
    /// Reason for a failed run.
    pub(super) trouble: Option<String>,
    /// Logs of both programs.
    pub(super) logs: Vec<PathBuf>,
}

impl Pair<'_> {
    /// The peers with their transports, and the mode.
    pub(super) fn name(&self) -> String {
        let mode = self.mode;
        let spelled = |end: &End<'_>| format!("{} {}", end.peer.name, end.transport);
        match (&self.client, &self.server) {
            (Some(client), Some(server)) => {
                format!("{} {mode} to {}", spelled(client), spelled(server))
            }
            (Some(end), None) | (None, Some(end)) => format!("{} {mode}", spelled(end)),
            (None, None) => mode.to_owned(),
        }
    }

    /// The peers.
    pub(super) fn ends(&self) -> impl Iterator<Item = (Role, &End<'_>)> {
        let client = self.client.iter().map(|end| (Role::Client, end));
        client.chain(self.server.iter().map(|end| (Role::Server, end)))
    }

    /// Returns `true` if the bridge connects two peers.
    pub(super) fn is_bridged(&self) -> bool {
        self.client.is_some() && self.server.is_some()
    }

    /// Runs both programs until the client ends.
    pub(super) fn run(&self, setup: &Setup) -> Ran {
        let log = setup.log(self, "log");
        let output = setup.log(self, "out");
        let server_log = setup.log(self, "server.log");
        let ended = self.run_logged(setup, &output, &log, &server_log);
        let trouble = match ended {
            Ok(status) if status.success() => None,
            Ok(status) => Some(format!("the client failed ({status})")),
            Err(failure) => Some(failure.to_string().replace('\n', " ")),
        };
        Ran {
            output: fs::read_to_string(&output).unwrap_or_default(),
            trouble,
            logs: vec![log, server_log],
        }
    }

    fn run_logged(
        &self,
        setup: &Setup,
        output: &Path,
        log: &Path,
        server_log: &Path,
    ) -> Result<ExitStatus, Failure> {
        let folder = setup.work(self)?.to_string_lossy().into_owned();
        let mut started = Started {
            name: self.name(),
            folder: folder.clone(),
            log: server_log,
            listening: Vec::new(),
        };
        let (front, server) = match &self.server {
            Some(end) => {
                let words = setup.start(Role::Server, end);
                let reached = started.reached(words, end.transport)?;
                match &self.client {
                    None => (end.transport, reached),
                    Some(client) => {
                        let front = client.transport;
                        let words = our_bridge(setup, front, reached);
                        (front, started.reached(words, front)?)
                    }
                }
            }
            None => {
                let front = self
                    .client
                    .as_ref()
                    .map_or(Transport::Stdio, |c| c.transport);
                (front, started.reached(our_server(setup, front), front)?)
            }
        };
        let mut client = self.client_words(setup);
        client.extend(["--mode".to_owned(), self.mode.to_owned()]);
        client.push(
            if front == Transport::Stdio {
                "--stdio"
            } else {
                "--url"
            }
            .to_owned(),
        );
        client.extend(server);
        let status = limited(command(client, &folder), LIMIT, output, log)?;
        for server in &mut started.listening {
            server.must_still_run()?;
        }
        Ok(status)
    }

    /// The client, with its script if there is one.
    fn client_words(&self, setup: &Setup) -> Vec<String> {
        let mut words = match &self.client {
            Some(end) => setup.start(Role::Client, end),
            None => vec![setup.our_client.to_string_lossy().into_owned()],
        };
        if let Some(script) = self.script {
            let mut script = script.clone();
            script["root"] = format!("file://{FOLDER}").into();
            words.extend(["--script".to_owned(), script.to_string()]);
        }
        words
    }
}

/// The servers of a pair that run by themselves.
struct Started<'a> {
    name: String,
    folder: String,
    log: &'a Path,
    listening: Vec<Listening>,
}

impl Started<'_> {
    /// Arguments by which a client reaches a server: its command line or its URL.
    fn reached(
        &mut self,
        words: Vec<String>,
        transport: Transport,
    ) -> Result<Vec<String>, Failure> {
        if transport == Transport::Stdio {
            return Ok(words);
        }
        let log = match self.listening.len() {
            0 => self.log.to_owned(),
            count => self.log.with_extension(format!("{count}.log")),
        };
        let server = Listening::start(&self.name, command(words, &self.folder), &log)?;
        let address = address(server.url(), transport);
        self.listening.push(server);
        Ok(vec![address])
    }
}

fn our_server(setup: &Setup, front: Transport) -> Vec<String> {
    let words = [setup.our_program.to_string_lossy().into_owned()];
    let words = words.into_iter().chain(["everything".to_owned()]);
    words.chain(serving(front)).collect()
}

/// The bridge, which keeps what it learns about servers in the folder of the pair.
fn our_bridge(setup: &Setup, front: Transport, server: Vec<String>) -> Vec<String> {
    let words = [
        "env".to_owned(),
        format!("XDG_CACHE_HOME={FOLDER}/cache"),
        setup.our_program.to_string_lossy().into_owned(),
        "bridge".to_owned(),
    ];
    let words = words.into_iter().chain(serving(front));
    words.chain(["--".to_owned()]).chain(server).collect()
}

/// Arguments of our program for a transport.
fn serving(front: Transport) -> impl Iterator<Item = String> {
    let words: &[&str] = match front {
        Transport::Stdio => &[],
        Transport::Http => &["--listen", "127.0.0.1:0"],
        Transport::Sse => &["--listen", "127.0.0.1:0", "--sse"],
    };
    words.iter().map(|word| (*word).to_owned())
}

/// URL of a transport on a server that printed `said`.
pub(super) fn address(said: &str, transport: Transport) -> String {
    let origin = said.strip_suffix("/mcp").unwrap_or(said);
    match transport {
        Transport::Stdio => String::new(),
        Transport::Http => format!("{origin}/mcp"),
        Transport::Sse => format!("{origin}/sse"),
    }
}

fn command(words: Vec<String>, folder: &str) -> Command {
    let mut words = words.into_iter().map(|word| word.replace(FOLDER, folder));
    let mut command = Command::new(words.next().unwrap_or_default());
    command.args(words);
    command
}

/// Runs a program with the timeout of a pair.
pub(super) fn limited(
    mut command: Command,
    limit: Duration,
    output: &Path,
    log: &Path,
) -> Result<ExitStatus, Failure> {
    let open = |path: &Path| File::create(path).map_err(Failure::file(path));
    command
        .stdin(Stdio::null())
        .stdout(open(output)?)
        .stderr(open(log)?);
    let mut child = command.spawn().map_err(|source| Failure::NotStarted {
        command: command.get_program().to_string_lossy().into_owned(),
        source,
    })?;
    let start = Instant::now();
    while start.elapsed() < limit {
        if let Some(status) = child.try_wait().map_err(Failure::file(log))? {
            return Ok(status);
        }
        thread::sleep(POLL_INTERVAL);
    }
    // A server on pipes ends by itself when its client is gone.
    let _ = child.kill();
    let _ = child.wait();
    Err(Failure::Findings {
        check: "interop",
        lines: vec![format!("it hung: no end after {} s", limit.as_secs_f64())],
        hint: "see its log",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a shell script and returns its status and output.
    fn run(words: &str, limit: Duration) -> (Result<ExitStatus, Failure>, String, String) {
        let folder = tempfile::tempdir().unwrap();
        let (output, log) = (folder.path().join("out"), folder.path().join("log"));
        let shell = ["sh", "-c", words].map(str::to_owned).to_vec();
        let ended = limited(command(shell, "here"), limit, &output, &log);
        let read = |path: &Path| fs::read_to_string(path).unwrap();
        (ended, read(&output), read(&log))
    }

    #[test]
    fn output_of_a_hanging_client_is_kept() {
        let (ended, output, log) = run("echo told {folder}; echo why >&2", LIMIT);
        assert!(ended.unwrap().success());
        assert_eq!((output.as_str(), log.as_str()), ("told here\n", "why\n"));
        let (ended, ..) = run("exec sleep 600", Duration::ZERO);
        assert!(ended.err().unwrap().to_string().contains("it hung"));
    }
}
