//! The real binary, with a config and a folder of its own.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::Signal;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use crate::client::{Client, Era};
use crate::error::RowError;
use crate::journal::Journal;
use crate::process::{self, PATIENCE};

/// The server without faults.
pub(crate) const CALM: &str = "calm";

/// Setup of a gateway: its config and the folder with all its files.
#[derive(Debug)]
pub(crate) struct GatewaySetup {
    folder: TempDir,
    gateway: String,
    servers: String,
    variables: Vec<(String, String)>,
    /// Options of `prlimit`.
    limits: Vec<String>,
}

/// The program of this name beside ours.
pub(crate) fn program(name: &str) -> Result<PathBuf, RowError> {
    let own = std::env::current_exe()?;
    Ok(own.with_file_name(name))
}

/// A TOML list of texts.
fn list<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    let words: Vec<String> = words.into_iter().map(|word| format!("{word:?}")).collect();
    format!("[{}]", words.join(", "))
}

impl GatewaySetup {
    /// An empty config, with one server that nothing happens to.
    pub(crate) fn new() -> Result<Self, RowError> {
        let setup = Self {
            folder: tempfile::tempdir()?,
            gateway: String::from("[gateway]\nlisten = \"127.0.0.1:0\"\n"),
            servers: String::new(),
            variables: Vec::new(),
            limits: Vec::new(),
        };
        setup.scripted(CALM, &[], "max_concurrent = 64\n")
    }

    /// With settings of the gateway.
    pub(crate) fn setting(mut self, lines: &str) -> Self {
        self.gateway.push_str(lines);
        self
    }

    /// With a variable that the gateway is started with.
    pub(crate) fn variable(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    /// With a limit of the system, an option of `prlimit`.
    pub(crate) fn limited(mut self, option: &str) -> Self {
        self.limits.push(option.to_owned());
        self
    }

    /// With a server that is a command, and settings of it.
    pub(crate) fn command(mut self, name: &str, words: &[&str], keys: &str) -> Self {
        let (program, rest) = words.split_first().unwrap_or((&"", &[]));
        let args = list(rest.iter().copied());
        // Nothing can go wrong in writing to a text.
        let _ = write!(
            self.servers,
            "\n[servers.{name}]\ncommand = {program:?}\nargs = {args}\n{keys}"
        );
        self
    }

    /// With a scripted server, and settings of it.
    pub(crate) fn scripted(self, name: &str, words: &[&str], keys: &str) -> Result<Self, RowError> {
        let own = std::env::current_exe()?.display().to_string();
        let journal = self.journal(name).path().display().to_string();
        let mut all = vec![own.as_str(), "script", "--journal", journal.as_str()];
        all.extend_from_slice(words);
        let keys = format!("era = \"legacy\"\n{keys}");
        Ok(self.command(name, &all, &keys))
    }

    /// With the built-in reference server, and settings of it.
    pub(crate) fn builtin(mut self, name: &str, keys: &str) -> Self {
        let _ = write!(
            self.servers,
            "\n[servers.{name}]\nbuiltin = \"everything\"\n{keys}"
        );
        self
    }

    /// With a server that is reached by HTTP.
    pub(crate) fn url(mut self, name: &str, url: &str, keys: &str) -> Self {
        let _ = write!(self.servers, "\n[servers.{name}]\nurl = {url:?}\n{keys}");
        self
    }

    /// Writes a program that is a shell script.
    pub(crate) fn shell(&self, name: &str, text: &str) -> Result<String, RowError> {
        use std::os::unix::fs::PermissionsExt;
        let path = self.folder.path().join(name);
        fs::write(&path, format!("#!/bin/sh\n{text}"))?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700))?;
        Ok(path.display().to_string())
    }

    /// Journal of a scripted server.
    pub(crate) fn journal(&self, name: &str) -> Journal {
        Journal::at(self.folder.path().join(format!("{name}.journal")))
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The text of the config.
    pub(crate) fn text(&self) -> String {
        format!("{}{}", self.gateway, self.servers)
    }

    /// Starts the gateway.
    pub(crate) async fn serve(self) -> Result<Gateway, RowError> {
        let config = self.folder.path().join("mcpact.toml");
        fs::write(&config, self.text())?;
        let program = program("mcpact")?;
        let mut command = match self.limits.is_empty() {
            true => Command::new(program),
            false => {
                let mut command = Command::new("prlimit");
                command.args(&self.limits).arg(program);
                command
            }
        };
        command.args(["serve", "--config"]).arg(&config);
        Gateway::start(self, command).await
    }

    /// Starts the gateway on the config that it finds in its folder, which needs approval.
    pub(crate) async fn serve_found(self) -> Result<Gateway, RowError> {
        let mut command = Command::new(program("mcpact")?);
        command.arg("serve");
        Gateway::start(self, command).await
    }

    /// Writes the config and approves all of it.
    pub(crate) async fn approved(self) -> Result<Self, RowError> {
        fs::write(self.folder.path().join("mcpact.toml"), self.text())?;
        let mut command = Command::new(program("mcpact")?);
        let shown = self.at_home(command.arg("approve")).output().await?;
        let shown = String::from_utf8_lossy(&shown.stderr).into_owned();
        let marks = shown
            .lines()
            .filter_map(|line| line.trim().strip_prefix("mark "));
        let mut command = Command::new(program("mcpact")?);
        self.at_home(command.arg("approve"));
        for mark in marks {
            command.args(["--mark", mark.trim()]);
        }
        let done = command.output().await?;
        match done.status.success() {
            true => Ok(self),
            false => Err(RowError::stage(format!(
                "not everything is approved: {shown}"
            ))),
        }
    }

    /// Sets the folder of a command, and those of all its files.
    fn at_home<'c>(&self, command: &'c mut Command) -> &'c mut Command {
        command
            .current_dir(self.folder())
            .env("HOME", self.folder())
            .env("XDG_CACHE_HOME", self.folder().join("cache"))
            .env("XDG_STATE_HOME", self.folder().join("state"))
            .env("XDG_RUNTIME_DIR", self.folder())
    }
}

/// A gateway that runs, killed on drop.
#[derive(Debug)]
pub(crate) struct Gateway {
    pub(crate) setup: GatewaySetup,
    child: Child,
    id: u32,
    pub(crate) address: String,
}

impl Gateway {
    async fn start(setup: GatewaySetup, mut command: Command) -> Result<Self, RowError> {
        let log = File::create(setup.folder().join("log"))?;
        setup
            .at_home(&mut command)
            .envs(setup.variables.iter().cloned())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log)
            .kill_on_drop(true);
        let mut child = command.spawn()?;
        let stdout = child.stdout.take();
        let stdout = stdout.ok_or_else(|| RowError::stage("there is no standard output"))?;
        let mut line = String::new();
        let first = BufReader::new(stdout).read_line(&mut line).await;
        first?;
        let host = line.trim().strip_prefix("http://");
        let host = host
            .and_then(|rest| rest.split('/').next())
            .map(str::to_owned);
        let id = child.id().unwrap_or_default();
        let address = host.ok_or_else(|| {
            let log = fs::read_to_string(setup.folder().join("log")).unwrap_or_default();
            RowError::stage(format!("the gateway does not say where it listens: {log}"))
        })?;
        Ok(Self {
            setup,
            child,
            id,
            address,
        })
    }

    /// Its process.
    pub(crate) const fn id(&self) -> u32 {
        self.id
    }

    /// A client of one server.
    pub(crate) async fn client(&self, server: &str, era: Era) -> Result<Client, RowError> {
        Client::open(&self.address, &path(server), era).await
    }

    /// The journal of a scripted server.
    pub(crate) fn journal(&self, name: &str) -> Journal {
        self.setup.journal(name)
    }

    /// Resident memory in bytes.
    pub(crate) fn resident(&self) -> Result<u64, RowError> {
        process::memory(self.id, "VmRSS:")
    }

    /// The most that it has held so far, in bytes.
    pub(crate) fn peak(&self) -> Result<u64, RowError> {
        process::memory(self.id, "VmHWM:")
    }

    /// Forgets the most that it has held so far.
    pub(crate) fn forget_peak(&self) -> Result<(), RowError> {
        Ok(fs::write(format!("/proc/{}/clear_refs", self.id), "5")?)
    }

    /// Log output so far.
    pub(crate) fn log(&self) -> String {
        let bytes = fs::read(self.setup.folder().join("log")).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Sends a signal to it, and only to it.
    pub(crate) fn signal(&self, signal: Signal) {
        process::signal(self.id, signal);
    }

    /// Waits until it has ended.
    pub(crate) async fn ended(&mut self) -> Result<ExitStatus, RowError> {
        let ended = tokio::time::timeout(PATIENCE, self.child.wait()).await;
        Ok(ended.map_err(|_| RowError::Patience("the end of the gateway"))??)
    }

    /// Asks it to end, and returns its setup for another one.
    pub(crate) async fn stop(mut self) -> Result<GatewaySetup, RowError> {
        self.signal(Signal::TERM);
        self.ended().await?;
        Ok(self.setup)
    }

    /// Asks it to end, and waits until nothing of it is left.
    pub(crate) async fn close(mut self) -> Result<Duration, RowError> {
        let family = process::descendants(self.id);
        let begin = std::time::Instant::now();
        self.signal(Signal::TERM);
        self.ended().await?;
        process::until("the end of the servers", || {
            !family.iter().any(|id| process::is_alive(*id))
        })
        .await?;
        Ok(begin.elapsed())
    }
}

/// The path of one server.
pub(crate) fn path(server: &str) -> String {
    format!("/servers/{server}/mcp")
}
