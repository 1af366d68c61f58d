//! Runs the binary with its own folders, and the reference server over both transports.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use mcpact_sim::scripted::process::TestProcess;
use tempfile::TempDir;

pub(crate) const MCPACT: &str = env!("CARGO_BIN_EXE_mcpact");

/// Revisions of both eras.
pub(crate) const REVISIONS: [&str; 2] = ["2025-11-25", "2026-07-28"];

/// A folder in which commands run.
pub(crate) struct Harness {
    folder: TempDir,
}

/// Result of a command.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Seen {
    pub(crate) fn of(output: &Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        Self {
            code: output.status.code().unwrap(),
            stdout: text(&output.stdout),
            stderr: text(&output.stderr),
        }
    }

    /// The whole result, without the path of the binary.
    pub(crate) fn shown(&self) -> String {
        let Self {
            code,
            stdout,
            stderr,
        } = self;
        let shown = format!("exit code {code}\n--- stdout\n{stdout}--- stderr\n{stderr}");
        shown.replace(MCPACT, "mcpact")
    }

    /// Stdout of a command that succeeded.
    #[track_caller]
    pub(crate) fn ok(self) -> String {
        assert_eq!(self.code, 0, "{}", self.shown());
        self.stdout
    }

    /// Stderr of a command that failed with this code.
    #[track_caller]
    pub(crate) fn failed(self, code: i32) -> String {
        assert_eq!(self.code, code, "{}", self.shown());
        self.stderr
    }
}

impl Harness {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self { folder }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path().join(name), text).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path().join(name)).unwrap()
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(MCPACT);
        command.args(args).env_clear().current_dir(self.path());
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        for name in [
            "XDG_CACHE_HOME",
            "XDG_STATE_HOME",
            "XDG_RUNTIME_DIR",
            "HOME",
        ] {
            command.env(name, self.path().join(".home"));
        }
        command.stdin(Stdio::null());
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Seen {
        Seen::of(&self.command(args).output().unwrap())
    }

    /// Runs a command with the reference server on stdio as its target.
    pub(crate) fn at_stdio(&self, args: &[&str]) -> Seen {
        self.run(&[args, &["--", MCPACT, "everything"]].concat())
    }

    /// Starts the reference server, and returns its URL.
    pub(crate) fn serve(&self) -> (TestProcess, String) {
        let mut command = self.command(&["everything", "--listen", "127.0.0.1:0"]);
        command.stdout(Stdio::piped());
        let mut process = TestProcess::spawn(&mut command);
        let url = process.first_line().trim().to_owned();
        (process, url)
    }

    /// Runs a command in both eras over both transports.
    pub(crate) fn everywhere(&self, command: &str, args: &[&str], check: impl Fn(Seen)) {
        let (_process, url) = self.serve();
        for revision in REVISIONS {
            let era = ["--era", revision];
            check(self.at_stdio(&[&[command], args, &era].concat()));
            check(self.run(&[&[command, &url], args, &era].concat()));
        }
    }
}
