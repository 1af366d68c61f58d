//! Process cleanup when a gateway stops or is killed.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a broken expectation is a failed test")]

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use mcpact_engine::shutdown::Grace;
use mcpact_sim::scripted::process::TestProcess;
use mcpact_transport::stdio::child::{ChildCommand, Guard};

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;

/// A process tree like that of `npx`: a launcher, a shell and the server. Besides these, a process
/// that ignores signals, one in its own session, and an orphan. Each writes its process ID.
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
    child: TestProcess,
    notes: PathBuf,
}

/// Starts a bridge to a process tree and waits for the first response.
fn start(notes: &Path) -> Running {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mcpact"));
    command
        .args(["bridge", "--era", "legacy", "--", "sh", "-c", TREE])
        .env("NOTES", notes)
        .env("MCPACT", env!("CARGO_BIN_EXE_mcpact"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut child = TestProcess::spawn(&mut command);
    writeln!(child.stdin.as_mut().unwrap(), "{INITIALIZE}").unwrap();
    let line = child.first_line();
    assert!(line.contains("serverInfo"), "{line}");
    Running {
        child,
        notes: notes.to_owned(),
    }
}

impl Running {
    /// Returns the processes that wrote their ID, and all descendants.
    fn tree(&self) -> BTreeSet<u32> {
        let noted = fs::read_to_string(self.notes.join("pids")).unwrap();
        let mut tree: BTreeSet<u32> = noted.lines().map(|id| id.parse().unwrap()).collect();
        assert_eq!(tree.len(), 4, "{noted}");
        loop {
            let parents = tree.clone();
            tree.extend(processes().filter_map(|(id, parent)| {
                (parent == self.child.id() || parents.contains(&parent)).then_some(id)
            }));
            if tree.len() == parents.len() {
                return tree;
            }
        }
    }
}

/// Returns every live process with its parent.
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

/// Waits for the processes to exit; returns those that remain.
fn survivors(tree: &BTreeSet<u32>) -> Vec<String> {
    let patience = Duration::from_secs(60);
    let begin = Instant::now();
    loop {
        let alive: Vec<u32> = processes()
            .map(|(id, _)| id)
            .filter(|id| tree.contains(id))
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

/// Not even detached descendants of a server.
#[test]
fn killed_gateway_leaves_no_processes() {
    let notes = tempfile::tempdir().unwrap();
    let mut running = start(notes.path());
    let tree = running.tree();
    // Launcher, two lingering processes, an orphan, a shell, the server, the guard.
    assert!(tree.len() >= 7, "{tree:?}");
    running.child.kill().unwrap();
    running.child.wait().unwrap();
    assert_eq!(survivors(&tree), Vec::<String>::new());
}

/// The gateway waits for them.
#[test]
fn stopped_gateway_leaves_no_processes() {
    let notes = tempfile::tempdir().unwrap();
    let mut running = start(notes.path());
    let tree = running.tree();
    drop(running.child.stdin.take());
    assert!(running.child.wait().unwrap().success());
    assert_eq!(survivors(&tree), Vec::<String>::new());
}

/// Every user can read a command line. The program gets its arguments unchanged, and no variable of the guard.
#[test]
fn guard_hides_the_arguments_of_its_program() {
    const SCRIPT: &str = r#"
printf '[%s]' "$@" > "$NOTES/args"
env | grep MCPACT_GUARD > "$NOTES/variables"
exec "$MCPACT" everything
"#;
    let notes = tempfile::tempdir().unwrap();
    let long = "x".repeat(100_000);
    let args = ["--token=hunter2", "", "two words", &long];
    let mut command = Command::new(env!("CARGO_BIN_EXE_mcpact"));
    command
        .args(["bridge", "--era", "legacy", "--", "sh", "-c", SCRIPT, "sh"])
        .args(args)
        .env("NOTES", notes.path())
        .env("MCPACT", env!("CARGO_BIN_EXE_mcpact"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut child = TestProcess::spawn(&mut command);
    writeln!(child.stdin.as_mut().unwrap(), "{INITIALIZE}").unwrap();
    let line = child.first_line();
    assert!(line.contains("serverInfo"), "{line}");
    let note = |name: &str| fs::read_to_string(notes.path().join(name)).unwrap();
    assert_eq!(note("args"), args.map(|arg| format!("[{arg}]")).concat());
    assert_eq!(note("variables"), "");
    let (guard, _) = processes()
        .find(|(_, parent)| *parent == child.id())
        .unwrap();
    let shown = fs::read_to_string(format!("/proc/{guard}/cmdline")).unwrap();
    assert!(shown.ends_with("\0--\0sh\0"), "{shown}");
    drop(child.stdin.take());
    child.wait().unwrap();
}

#[test]
fn missing_program_is_named() {
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

/// It starts nothing if its owner no longer runs.
#[test]
fn guard_returns_the_exit_status_of_its_program() {
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
    let orphaned = guard(u32::MAX, "echo started");
    assert_eq!(orphaned.status.code(), Some(1));
    assert!(orphaned.stdout.is_empty());
}

/// A small process tree: a launcher, two lingering processes, and a server.
const SMALL_TREE: &str = "sleep 1000 & (setsid sleep 1000 &); sh -c 'cat; exit $?'; exit $?";

/// L26: half of them end with their input, half by force; no zombies remain.
#[tokio::test]
async fn two_hundred_process_trees_leave_no_processes() {
    // Other tests in this process also have children, and wait for them.
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
    let mut guard = Guard::this_program(["guard"]);
    guard.program = env!("CARGO_BIN_EXE_mcpact").into();
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
