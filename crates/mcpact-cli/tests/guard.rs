//! What is left of servers when the gateway goes, whatever way it goes.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a broken expectation is a failed test")]

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use mcpact_engine::shutdown::Grace;
use mcpact_transport::stdio::child::{ChildCommand, Guard};

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;

/// A tree as `npx` makes it: a launcher that waits for a shell that waits for the server, and beside it
/// whatever stays behind: one that ignores the end of its input, one in a session of its own, and one
/// whose parents have all gone. Each writes down its number.
const TREE: &str = r#"
note() { echo $1 >> "$NOTES/pids"; }
note $$
sh -c 'echo $$ >> "$NOTES/pids"; trap "" TERM HUP; while :; do sleep 1000; done' &
setsid sh -c 'echo $$ >> "$NOTES/pids"; exec sleep 1000' &
sh -c '(setsid sh -c "echo \$\$ >> \"\$NOTES/pids\"; exec sleep 1000" &) ; exit 0'
while [ "$(wc -l < "$NOTES/pids")" -lt 4 ]; do :; done
sh -c '"$MCPACT" everything; exit $?'
exit $?
"#;

struct Running {
    child: Child,
    notes: PathBuf,
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A bridge in front of a tree, which has answered a first request.
fn start(notes: &Path) -> Running {
    let mut child = Command::new(env!("CARGO_BIN_EXE_mcpact"))
        .args(["bridge", "--era", "legacy", "--", "sh", "-c", TREE])
        .env("NOTES", notes)
        .env("MCPACT", env!("CARGO_BIN_EXE_mcpact"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .unwrap();
    writeln!(child.stdin.as_mut().unwrap(), "{INITIALIZE}").unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap())
        .read_line(&mut line)
        .unwrap();
    assert!(line.contains("serverInfo"), "{line}");
    Running {
        child,
        notes: notes.to_owned(),
    }
}

impl Running {
    /// Everybody in the tree, as far as they have written their numbers down or are descendants.
    fn family(&self) -> BTreeSet<u32> {
        let noted = fs::read_to_string(self.notes.join("pids")).unwrap();
        let mut family: BTreeSet<u32> = noted.lines().map(|id| id.parse().unwrap()).collect();
        assert_eq!(family.len(), 4, "{noted}");
        loop {
            let parents = family.clone();
            family.extend(processes().filter_map(|(id, parent)| {
                (parent == self.child.id() || parents.contains(&parent)).then_some(id)
            }));
            if family.len() == parents.len() {
                return family;
            }
        }
    }
}

/// Every process that has not exited, and its parent.
fn processes() -> impl Iterator<Item = (u32, u32)> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    entries.filter_map(|entry| {
        let id = entry.file_name().to_str()?.parse().ok()?;
        let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
        let mut fields = stat.rsplit(')').next()?.split_ascii_whitespace();
        let state = fields.next()?;
        let parent = fields.next()?.parse().ok()?;
        (!matches!(state, "Z" | "X")).then_some((id, parent))
    })
}

/// Who of them is alive after all had the time to go.
fn survivors(family: &BTreeSet<u32>) -> Vec<String> {
    let patience = Duration::from_secs(60);
    let begin = Instant::now();
    loop {
        let alive: Vec<u32> = processes()
            .map(|(id, _)| id)
            .filter(|id| family.contains(id))
            .collect();
        if alive.is_empty() || begin.elapsed() > patience {
            let shown = |id: u32| fs::read_to_string(format!("/proc/{id}/cmdline"));
            return alive
                .into_iter()
                .map(|id| format!("{id} {:?}", shown(id)))
                .collect();
        }
        std::thread::yield_now();
    }
}

/// When the gateway is killed, nothing of a server's tree is left, however it has detached itself.
#[test]
fn a_killed_gateway_leaves_nothing() {
    let notes = tempfile::tempdir().unwrap();
    let mut running = start(notes.path());
    let family = running.family();
    // Launcher, two that linger, one without parents, a shell, the server, the guard.
    assert!(family.len() >= 7, "{family:?}");
    running.child.kill().unwrap();
    running.child.wait().unwrap();
    assert_eq!(survivors(&family), Vec::<String>::new());
}

/// When the gateway ends in order, nothing is left either, and it has waited for that.
#[test]
fn a_gateway_that_ends_leaves_nothing() {
    let notes = tempfile::tempdir().unwrap();
    let mut running = start(notes.path());
    let family = running.family();
    drop(running.child.stdin.take());
    assert!(running.child.wait().unwrap().success());
    assert_eq!(survivors(&family), Vec::<String>::new());
}

/// A program that is not there is reported as such, guard or not.
#[test]
fn a_missing_program_is_named() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_mcpact"))
        .args(["bridge", "--", "no-such-program-here"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    writeln!(child.stdin.as_mut().unwrap(), "{INITIALIZE}").unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap())
        .read_line(&mut line)
        .unwrap();
    assert!(line.contains("`no-such-program-here`"), "{line}");
    assert!(line.contains("upstream_unreachable"), "{line}");
    drop(child.stdin.take());
    child.wait().unwrap();
}

/// A guard says what its program says, and does not start one for somebody who has gone.
#[test]
fn a_guard_passes_the_status_on() {
    let guard = |owner: u32, script: &str| {
        Command::new(env!("CARGO_BIN_EXE_mcpact"))
            .args(["guard", &owner.to_string(), "--", "sh", "-c", script])
            .stdin(Stdio::null())
            .output()
            .unwrap()
    };
    let us = std::process::id();
    assert_eq!(guard(us, "exit 7").status.code(), Some(7));
    assert_eq!(guard(us, "kill -9 $$").status.code(), Some(128 + 9));
    let nobody = guard(u32::MAX, "echo started");
    assert_eq!(nobody.status.code(), Some(1));
    assert!(nobody.stdout.is_empty());
}

/// A smaller tree, which is started often: a launcher, what it leaves behind, and a server.
const SMALL_TREE: &str = "sleep 1000 & (setsid sleep 1000 &); sh -c 'cat; exit $?'; exit $?";

/// L26: two hundred trees come and go, by the end of their input or by force; no process and no zombie
/// is left.
#[tokio::test]
async fn two_hundred_trees_leave_nothing() {
    // Other tests of this process have children, too, and wait for them.
    let zombies = || {
        let us = std::process::id().to_string();
        let entries = fs::read_dir("/proc").unwrap().flatten();
        let is_ours = |entry: &fs::DirEntry| {
            let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
            let rest = stat.rsplit(')').next().unwrap_or_default().to_owned();
            let mut fields = rest.split_ascii_whitespace();
            fields.next() == Some("Z") && fields.next() == Some(&us)
        };
        entries.filter(is_ours).count()
    };
    let guard = Guard {
        program: env!("CARGO_BIN_EXE_mcpact").into(),
        args: vec!["guard".into()],
    };
    let mark = format!("mcpact-tree-{}", std::process::id());
    let command = ChildCommand::new("sh")
        .with_args(["-c", SMALL_TREE])
        .with_env("TREE_MARK", &mark)
        .with_guard(guard);
    for round in 0..200 {
        let child = command.spawn().unwrap();
        if round % 2 == 0 {
            child.process.shutdown(Grace::default()).await.unwrap();
        } else {
            let ended = child.process.wait();
            drop(child);
            ended.await.unwrap();
        }
    }
    let marked: BTreeSet<u32> = processes()
        .map(|(id, _)| id)
        .filter(|id| {
            let variables = fs::read(format!("/proc/{id}/environ")).unwrap_or_default();
            variables
                .windows(mark.len())
                .any(|part| part == mark.as_bytes())
        })
        .collect();
    assert_eq!(survivors(&marked), Vec::<String>::new());
    for _ in 0..1000 {
        if zombies() == 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(zombies(), 0);
}
