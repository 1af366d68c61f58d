//! Harness: a config directory, a test server that records its start, and a gateway.

use std::fs;
use std::io::BufReader;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{ChildStderr, Command, Output, Stdio};

use mcpact::client::{Client, ClientBuilder};
use mcpact_engine::client::EraMode;
use mcpact_sim::scripted::exchange;
use mcpact_sim::scripted::process::TestProcess;
use mcpact_spec::Revision;
use tempfile::TempDir;

/// A server that writes its arguments and environment to files.
const SERVER: &str = r#"#!/bin/sh
here=$(dirname "$0")
printf '%s\n' "$@" > "$here/args"
tr '\0' '\n' < /proc/$$/environ > "$here/environ"
FIRST
exec MCPACT everything
"#;

pub(crate) struct Harness {
    folder: TempDir,
}

impl Harness {
    pub(crate) fn new() -> Self {
        let harness = Self {
            folder: tempfile::tempdir().unwrap(),
        };
        harness.install("");
        harness
    }

    /// Installs the server with this comment.
    pub(crate) fn install(&self, more: &str) {
        self.install_with(&format!("# {more}"));
    }

    /// Installs the server with a shell command before it serves.
    pub(crate) fn install_with(&self, first: &str) {
        let program = self.server();
        let text = SERVER.replace("MCPACT", env!("CARGO_BIN_EXE_mcpact"));
        // A new file, because the old one may be running.
        let _ = fs::remove_file(&program);
        let text = text.replace("FIRST", first);
        let text = text.replace("MARKER", &self.path().join("marker").to_string_lossy());
        fs::write(&program, text).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o700)).unwrap();
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn server(&self) -> PathBuf {
        self.path().join("server")
    }

    /// Writes a config. `SERVER` is the path of the server, `MARKER` a file that must not be
    /// created.
    pub(crate) fn configure(&self, name: &str, text: &str) {
        let text = text.replace("SERVER", &self.server().to_string_lossy());
        let text = text.replace("MARKER", &self.path().join("marker").to_string_lossy());
        fs::write(self.path().join(name), text).unwrap();
    }

    pub(crate) fn was_started(&self) -> bool {
        self.path().join("args").exists() || self.path().join("marker").exists()
    }

    pub(crate) fn read_file(&self, name: &str) -> String {
        fs::read_to_string(self.path().join(name)).unwrap()
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_mcpact"));
        command.args(args).current_dir(self.path());
        command.env("XDG_CACHE_HOME", self.path().join("cache"));
        command.env("XDG_STATE_HOME", self.path().join("state"));
        command.stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Runs a command.
    pub(crate) fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    /// Starts the gateway.
    pub(crate) fn serve(&self, args: &[&str]) -> Running {
        let mut all = vec!["serve", "--listen", "127.0.0.1:0"];
        all.extend(args);
        Running::start(self.command(&all))
    }
}

pub(crate) struct Running {
    child: TestProcess,
    pub(crate) url: String,
}

impl Running {
    pub(crate) fn start(mut command: Command) -> Self {
        let (child, url) = TestProcess::listening(command.stderr(Stdio::null()));
        Self { child, url }
    }

    /// Starts a gateway and returns its stderr, which must be read.
    pub(crate) fn start_with_stderr(mut command: Command) -> (Self, BufReader<ChildStderr>) {
        let (mut child, url) = TestProcess::listening(&mut command);
        let errors = BufReader::new(child.stderr.take().unwrap());
        (Self { child, url }, errors)
    }

    /// Returns the process ID.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends a request and returns the status.
    pub(crate) async fn send(&self, verb: &str, path: &str, body: &str) -> u16 {
        let answer = self.exchange(verb, path, body).await;
        answer.split(' ').nth(1).unwrap().parse().unwrap()
    }

    /// Sends a request and returns the whole response.
    pub(crate) async fn exchange(&self, verb: &str, path: &str, body: &str) -> String {
        let origin = self.url.strip_suffix("/mcp").unwrap();
        let headers = "Content-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\n";
        exchange(verb, origin, path, headers, body).await
    }

    pub(crate) async fn client(&self, revision: Revision) -> Client {
        client(revision).connect(self.url.clone()).await.unwrap()
    }
}

pub(crate) fn client(revision: Revision) -> ClientBuilder {
    Client::builder("person", "1").mode(EraMode::Pin(revision))
}

pub(crate) fn combined_output(output: &Output) -> String {
    let both = [&output.stdout, &output.stderr];
    both.map(|bytes| String::from_utf8_lossy(bytes).into_owned())
        .concat()
}
