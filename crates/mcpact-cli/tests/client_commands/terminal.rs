//! On a terminal: progress, questions to the user, and Ctrl-C.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::process::{Command, Stdio};

use mcpact_sim::scripted::process::TestProcess;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, tcgetattr};

use crate::harness::{Harness, MCPACT, REVISIONS};

/// A command on a terminal.
struct Terminal {
    process: TestProcess,
    file: File,
    shown: String,
}

impl Terminal {
    fn start(mut command: Command) -> Self {
        let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&terminal).unwrap();
        unlockpt(&terminal).unwrap();
        let name = ptsname(&terminal, Vec::new()).unwrap();
        let mut options = File::options();
        let user = options
            .read(true)
            .write(true)
            .open(name.to_str().unwrap())
            .unwrap();
        let stream = || Stdio::from(user.try_clone().unwrap());
        command.stdin(stream()).stdout(stream()).stderr(stream());
        command.env("TERM", "xterm").env("NO_COLOR", "1");
        let process = TestProcess::spawn(&mut command);
        Self {
            process,
            file: File::from(terminal),
            shown: String::new(),
        }
    }

    /// Modes of the terminal.
    fn modes(&self) -> LocalModes {
        tcgetattr(&self.file).unwrap().local_modes
    }

    /// Reads more; false at the end of the last process that has the terminal.
    fn read(&mut self) -> bool {
        let mut chunk = [0; 4096];
        match self.file.read(&mut chunk) {
            Ok(read) if read > 0 => {
                self.shown
                    .push_str(&String::from_utf8_lossy(&chunk[..read]));
                true
            }
            Ok(_) | Err(_) => false,
        }
    }

    /// Waits until a text is shown after everything that was waited for.
    #[track_caller]
    fn wait_for(&mut self, text: &str) {
        loop {
            if let Some(at) = self.shown.find(text) {
                self.shown.drain(..at + text.len());
                return;
            }
            assert!(self.read(), "`{text}` is not shown: {}", self.shown);
        }
    }

    fn type_in(&mut self, text: &str) {
        self.file.write_all(text.as_bytes()).unwrap();
    }

    /// Waits for the end; returns the exit code and the rest of what is shown.
    fn end(mut self) -> (i32, String) {
        while self.read() {}
        (self.process.wait().unwrap().code().unwrap(), self.shown)
    }
}

fn at_stdio(harness: &Harness, args: &[&str]) -> Terminal {
    let server = ["--", MCPACT, "everything"];
    Terminal::start(harness.command(&[args, &server].concat()))
}

/// Wrong input is rejected at once, and defaults are offered.
#[test]
fn form_is_filled_in_on_the_terminal() {
    let harness = Harness::new();
    for revision in REVISIONS {
        let call = [
            "call",
            "test_elicitation_sep1034_defaults",
            "--era",
            revision,
        ];
        let mut terminal = at_stdio(&harness, &call);
        terminal.wait_for("asks: Please review the form");
        terminal.wait_for("Answer?");
        terminal.type_in("y\r");
        terminal.wait_for("name (optional) (John Doe)");
        terminal.type_in("Ada\r");
        terminal.wait_for("age (optional) (30)");
        terminal.type_in("-\r");
        terminal.wait_for("not a number");
        terminal.type_in("7\r");
        terminal.wait_for("score (optional) (95.5)");
        terminal.type_in("\r");
        terminal.wait_for("status (optional)");
        terminal.type_in("\u{1b}[B\r");
        terminal.wait_for("verified (optional)");
        terminal.type_in("n\r");
        let expected = concat!(
            "Elicitation completed: action=accept, content={\"name\":\"Ada\",\"age\":-7,\"score\":95.5,",
            "\"status\":\"inactive\",\"verified\":false}",
        );
        terminal.wait_for(expected);
        assert_eq!(terminal.end().0, 0);
    }
}

#[test]
fn form_is_declined_on_the_terminal() {
    let harness = Harness::new();
    let mut terminal = at_stdio(&harness, &["call", "test_elicitation", "message=Who?"]);
    terminal.wait_for("Answer?");
    terminal.type_in("n\r");
    terminal.wait_for("User response: action=decline");
    assert_eq!(terminal.end().0, 0);
}

/// The whole URL and its host are shown; visiting it is left to the user.
#[test]
fn url_is_shown_before_the_user_consents() {
    let harness = Harness::new();
    let mut terminal = at_stdio(&harness, &["call", "test_url_elicitation"]);
    terminal.wait_for("URL:  https://sign-in.example/");
    terminal.wait_for("host: sign-in.example");
    terminal.wait_for("Open this URL in your browser and continue?");
    terminal.type_in("y\r");
    terminal.wait_for("User response: action=accept");
    assert_eq!(terminal.end().0, 0);
}

#[test]
fn progress_is_shown_and_removed() {
    let harness = Harness::new();
    let mut terminal = at_stdio(&harness, &["call", "test_tool_with_progress"]);
    terminal.wait_for("50% Completed step 50 of 100");
    terminal.wait_for("\r\u{1b}[2KThe work is done.");
    assert_eq!(terminal.end().0, 0);
}

/// Ctrl-C reaches the server as `notifications/cancelled`.
#[test]
fn interrupted_call_is_cancelled_on_stdio() {
    let harness = Harness::new();
    harness.write("relay.sh", "tee received.txt | \"$1\" everything\n");
    for revision in REVISIONS {
        let call = [
            "call",
            "test_cancellation",
            "key=k",
            "--era",
            revision,
            "--",
        ];
        let server = ["sh", "relay.sh", MCPACT];
        let mut terminal = Terminal::start(harness.command(&[&call[..], &server].concat()));
        terminal.wait_for("begun");
        terminal.process.signal("-INT");
        let (code, shown) = terminal.end();
        assert!(shown.contains("error: interrupted"), "{shown}");
        assert_eq!(code, 1);
        let received = String::from_utf8(harness.read("received.txt")).unwrap();
        let last = received.lines().last().unwrap();
        assert!(last.contains("notifications/cancelled"), "{received}");
    }
}

/// A modern request is cancelled by closing its stream.
#[test]
fn interrupted_call_is_cancelled_over_http() {
    let harness = Harness::new();
    let (_process, url) = harness.serve();
    for revision in REVISIONS {
        let key = format!("key={revision}");
        let call = ["call", &url, "test_cancellation", &key, "--era", revision];
        let mut terminal = Terminal::start(harness.command(&call));
        terminal.wait_for("begun");
        terminal.process.signal("-INT");
        assert_eq!(terminal.end().0, 1);
        let seen = harness.run(&["call", &url, "test_cancellation_seen", &key]);
        assert_eq!(seen.ok(), format!("{revision} was cancelled.\n"));
    }
}

/// The terminal is as before when a signal ends the command at a prompt.
#[test]
fn prompt_is_interrupted() {
    let harness = Harness::new();
    let mut terminal = at_stdio(&harness, &["call", "test_elicitation", "message=Who?"]);
    let before = terminal.modes();
    terminal.wait_for("Answer?");
    // The prompt has changed the modes of the terminal.
    while terminal.modes() == before {
        std::thread::yield_now();
    }
    terminal.process.signal("-INT");
    terminal.wait_for("error: interrupted");
    assert_eq!(terminal.process.wait().unwrap().code(), Some(1));
    assert_eq!(terminal.modes(), before);
}

/// Control characters of a server are escaped on a terminal only.
#[test]
fn control_characters_are_escaped_on_the_terminal() {
    let harness = Harness::new();
    let call = ["call", "echo", "text:=\"a\\u001b[2Jb\\tc\""];
    let mut terminal = at_stdio(&harness, &call);
    terminal.wait_for("a\\u{1b}[2Jb");
    assert_eq!(terminal.end().0, 0);
    assert_eq!(harness.at_stdio(&call).ok(), "a\u{1b}[2Jb\tc\n");
}
