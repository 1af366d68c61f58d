//! A shell session as a page shows it: a folder, commands that end, and commands that keep running.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use mcpact_sim::scripted::process::TestProcess;

use crate::output;

const MCPACT: &str = env!("CARGO_BIN_EXE_mcpact");
/// Time for one command.
const LIMIT: Duration = Duration::from_secs(60);
/// Home folder that pages show.
const HOME: &str = "/home/ada";
/// Address that pages show.
const ADDRESS: &str = "127.0.0.1";

/// Time until a state is reached that a page shows.
const STATE_LIMIT: Duration = Duration::from_secs(20);
/// Commands with one of these beginnings show a state, which may need time: they run until they show that of the page.
const OBSERVING: [&str; 2] = ["mcpact status", "mcpact logs"];
/// Commands with one of these beginnings keep running.
const RUNNING: [&str; 3] = [
    "mcpact serve",
    "mcpact bridge --listen",
    "mcpact everything --listen",
];

/// State of the commands of one page.
pub(crate) struct Session {
    /// Stopped before the folder is removed.
    running: Vec<TestProcess>,
    home: PathBuf,
    address: String,
    _folder: tempfile::TempDir,
}

impl Session {
    /// A session of the page with this number.
    pub(crate) fn new(number: u8) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().canonicalize().unwrap().join("ada");
        for inner in ["work", "run"] {
            std::fs::create_dir_all(home.join(inner)).unwrap();
        }
        let [.., high, low] = std::process::id().to_be_bytes();
        Self {
            running: Vec::new(),
            home,
            address: format!("127.{}.{high}.{}", 100 + number, low.clamp(1, 254)),
            _folder: folder,
        }
    }

    /// Writes a file of the working folder.
    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.work().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, self.localized(text)).unwrap();
    }

    /// Runs a command and compares its output with the page. A command that keeps running is left running.
    ///
    /// # Errors
    /// What it printed instead.
    pub(crate) fn run(&mut self, command: &str, shown: &str) -> Result<(), String> {
        let is_observing = OBSERVING.iter().any(|start| command.starts_with(start));
        let deadline = Instant::now() + STATE_LIMIT;
        loop {
            match self.run_once(command, shown) {
                Err(_) if is_observing && Instant::now() < deadline => {}
                result => return result,
            }
        }
    }

    fn run_once(&mut self, command: &str, shown: &str) -> Result<(), String> {
        let is_running = RUNNING.iter().any(|start| command.starts_with(start));
        let mut line = self.localized(command);
        if is_running {
            line = format!("exec {line}");
            if command.starts_with("mcpact serve") && !self.sets_listen() {
                line.push_str(&format!(" --listen {}:6272", self.address));
            }
        }
        let (reader, writer) = std::io::pipe().unwrap();
        let mut shell = self.shell(&line);
        shell.stdout(writer.try_clone().unwrap()).stderr(writer);
        let mut process = TestProcess::spawn(&mut shell);
        // The command has the ends of the pipe; ours would keep it open.
        drop(shell);
        let (say, lines) = mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(reader).lines() {
                // The receiver may be dropped.
                let _ = say.send(line.unwrap());
            }
        });
        let deadline = Instant::now() + LIMIT;
        let mut printed = String::new();
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match lines.recv_timeout(left) {
                Ok(line) => printed.push_str(&(self.displayed(&line) + "\n")),
                Err(RecvTimeoutError::Disconnected) if !is_running => break,
                Err(_) => return Err(printed),
            }
            if is_running && output::has_lines(shown, &printed) {
                self.running.push(process);
                return Ok(());
            }
        }
        let status = process.wait().unwrap();
        match output::matches(shown, &printed) {
            true => Ok(()),
            false if printed.is_empty() => Err(format!("({status})\n")),
            false => Err(printed),
        }
    }

    fn shell(&self, line: &str) -> Command {
        let programs = Path::new(MCPACT).parent().unwrap();
        let path = std::env::var("PATH").unwrap_or_default();
        let mut shell = Command::new("sh");
        shell
            .args(["-c", line])
            .current_dir(self.work())
            .env_clear();
        shell.env("PATH", format!("{}:{path}", programs.display()));
        shell.env("HOME", &self.home);
        for (variable, folder) in [
            ("XDG_CACHE_HOME", "cache"),
            ("XDG_CONFIG_HOME", "config"),
            ("XDG_RUNTIME_DIR", "run"),
            ("XDG_STATE_HOME", "state"),
        ] {
            shell.env(variable, self.home.join(folder));
        }
        shell.stdin(Stdio::null());
        shell
    }

    fn work(&self) -> PathBuf {
        self.home.join("work")
    }

    /// Returns whether the config sets the address itself.
    fn sets_listen(&self) -> bool {
        let config = std::fs::read_to_string(self.work().join("mcpact.toml"));
        config.is_ok_and(|config| config.contains("listen ="))
    }

    /// Replaces what a page shows by what the session uses.
    fn localized(&self, text: &str) -> String {
        let text = text.replace(HOME, self.home.to_str().unwrap());
        // A gateway on all addresses would be in the way of the other pages.
        let text = text.replace("0.0.0.0", ADDRESS);
        text.replace(ADDRESS, &self.address)
    }

    /// Replaces what the session uses by what a page shows.
    fn displayed(&self, line: &str) -> String {
        let line = line.replace(self.home.to_str().unwrap(), HOME);
        line.replace(&self.address, ADDRESS)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        for process in &mut self.running {
            process.signal("-TERM");
            // Killed anyway; its exit status is of no interest.
            let _ = process.wait();
        }
    }
}
