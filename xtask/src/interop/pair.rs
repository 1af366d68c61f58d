//! One of our programs and one peer, run against each other.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::ground::Ground;
use super::manifest::{Absent, Peer, Transport};
use crate::failure::Failure;
use crate::listening::Listening;

/// How long a pair may take in all.
const LIMIT: Duration = Duration::from_secs(60);
/// How often a running pair is looked at.
const GLANCE: Duration = Duration::from_millis(20);
/// What a script says in place of the folder of the pair.
const FOLDER: &str = "{folder}";

/// A peer, on one transport, in one mode of the client.
pub(super) struct Pair<'a> {
    pub(super) position: usize,
    pub(super) peer: &'a Peer,
    pub(super) transport: Transport,
    pub(super) mode: &'a str,
    /// What there is to show each feature with, if the peer is a server; a client knows by itself.
    pub(super) script: Option<&'a Value>,
    pub(super) absent: Vec<&'a Absent>,
}

/// What a client left behind.
pub(super) struct Ran {
    /// Its standard output.
    pub(super) output: String,
    /// Why it did not come to its end, if it did not.
    pub(super) trouble: Option<String>,
    /// Where the words of both programs are.
    pub(super) logs: Vec<PathBuf>,
}

impl Pair<'_> {
    /// The peer, the transport and the mode.
    pub(super) fn name(&self) -> String {
        format!("{} {} {}", self.peer.name, self.transport, self.mode)
    }

    /// Whether the peer is the server of the two.
    pub(super) fn peer_serves(&self) -> bool {
        self.script.is_some()
    }

    /// Run both programs until the client has ended.
    pub(super) fn run(&self, ground: &Ground) -> Ran {
        let log = ground.log(self, "log");
        let output = ground.log(self, "out");
        let server_log = ground.log(self, "server.log");
        let ended = self.run_logged(ground, &output, &log, &server_log);
        let trouble = match ended {
            Ok(status) if status.success() => None,
            Ok(status) => Some(format!("the client ended badly ({status})")),
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
        ground: &Ground,
        output: &Path,
        log: &Path,
        server_log: &Path,
    ) -> Result<ExitStatus, Failure> {
        let folder = ground.work(self)?.to_string_lossy().into_owned();
        let peer = ground.start(self);
        let ours = ground.our_server.to_string_lossy().into_owned();
        let (server, mut client) = match self.script {
            Some(script) => {
                let mut script = script.clone();
                script["root"] = format!("file://{FOLDER}").into();
                let client = ground.our_client.to_string_lossy().into_owned();
                let script = script.to_string();
                (peer, vec![client, "--script".to_owned(), script])
            }
            None => (self.our_server(ours), peer),
        };
        client.extend(["--mode".to_owned(), self.mode.to_owned()]);
        let mut listening = None;
        if self.transport == Transport::Stdio {
            client.push("--stdio".to_owned());
            client.extend(server);
        } else {
            let server = command(server, &folder);
            let server = Listening::start(&self.name(), server, server_log)?;
            client.extend(["--url".to_owned(), self.address(server.url())]);
            listening = Some(server);
        }
        let status = limited(command(client, &folder), LIMIT, output, log)?;
        listening.map_or(Ok(()), |mut server| server.must_still_run())?;
        Ok(status)
    }

    fn our_server(&self, binary: String) -> Vec<String> {
        let listen = ["--listen", "127.0.0.1:0"];
        let words = match self.transport {
            Transport::Stdio => Vec::new(),
            Transport::Http => listen.to_vec(),
            Transport::Sse => [listen.as_slice(), &["--sse"]].concat(),
        };
        let words = ["everything"].into_iter().chain(words);
        [binary]
            .into_iter()
            .chain(words.map(str::to_owned))
            .collect()
    }

    /// Where the transport is found at a server that said this.
    fn address(&self, said: &str) -> String {
        let origin = said.strip_suffix("/mcp").unwrap_or(said);
        match self.transport {
            Transport::Stdio => String::new(),
            Transport::Http => format!("{origin}/mcp"),
            Transport::Sse => format!("{origin}/sse"),
        }
    }
}

fn command(words: Vec<String>, folder: &str) -> Command {
    let mut words = words.into_iter().map(|word| word.replace(FOLDER, folder));
    let mut command = Command::new(words.next().unwrap_or_default());
    command.args(words);
    command
}

/// Run to the end, but not longer than a pair may take.
fn limited(
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
        thread::sleep(GLANCE);
    }
    // A server on pipes ends by itself when its client is gone.
    let _ = child.kill();
    let _ = child.wait();
    Err(Failure::Findings {
        check: "interop",
        lines: vec![format!("it hung: no end after {} s", limit.as_secs_f64())],
        hint: "look into its log",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Run words of the shell and give what became of them, with what they wrote.
    fn run(words: &str, limit: Duration) -> (Result<ExitStatus, Failure>, String, String) {
        let folder = tempfile::tempdir().unwrap();
        let (output, log) = (folder.path().join("out"), folder.path().join("log"));
        let shell = ["sh", "-c", words].map(str::to_owned).to_vec();
        let ended = limited(command(shell, "here"), limit, &output, &log);
        let read = |path: &Path| fs::read_to_string(path).unwrap();
        (ended, read(&output), read(&log))
    }

    #[test]
    fn what_a_client_wrote_is_kept_also_when_it_hangs() {
        let (ended, output, log) = run("echo told {folder}; echo why >&2", LIMIT);
        assert!(ended.unwrap().success());
        assert_eq!((output.as_str(), log.as_str()), ("told here\n", "why\n"));
        let (ended, ..) = run("exec sleep 600", Duration::ZERO);
        assert!(ended.err().unwrap().to_string().contains("it hung"));
    }
}
