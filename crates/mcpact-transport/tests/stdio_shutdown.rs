//! Requirement L26: shutdown of a process and its descendants.
#![cfg(target_os = "linux")]
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a broken expectation is a failed test"
)]

use std::collections::BTreeSet;
use std::os::unix::process::ExitStatusExt;
use std::time::Duration;

use mcpact_engine::shutdown::{EndStep, Grace};
use mcpact_transport::stdio::child::{Child, ChildCommand};
use mcpact_wire::frame::ndjson::Line;
use tokio::time::timeout;

const PATIENCE: Duration = Duration::from_secs(30);

const SHORT: Grace = Grace {
    drain: Duration::ZERO,
    exit: Duration::from_millis(200),
    terminate: Duration::from_millis(200),
};

/// Starts a script that prints the ids of its processes in the first line.
async fn start(script: &str) -> (Child, BTreeSet<u32>) {
    let mut child = ChildCommand::new("sh")
        .with_args(["-c", script])
        .spawn()
        .unwrap();
    let reading = async {
        loop {
            if let Some(Line::Noise(line)) = child.link.source.next_line() {
                let line = str::from_utf8(line).unwrap();
                return line
                    .split_ascii_whitespace()
                    .map(|id| id.parse().unwrap())
                    .collect();
            }
            assert!(
                child.link.source.fill().await.unwrap(),
                "{}",
                child.process.stderr_tail()
            );
        }
    };
    let mut family: BTreeSet<u32> = timeout(PATIENCE, reading).await.unwrap();
    family.insert(child.process.id());
    family
        .iter()
        .for_each(|id| assert!(is_alive(*id), "{id} did not start"));
    (child, family)
}

/// Returns whether a process exists and is not a zombie.
fn is_alive(id: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{id}/stat")).is_ok_and(|stat| {
        !matches!(
            stat.rsplit(')').next().map(|rest| &rest[1..2]),
            Some("Z" | "X")
        )
    })
}

/// Waits until all processes are gone.
async fn assert_gone(family: &BTreeSet<u32>) {
    let waiting = async {
        while family.iter().any(|id| is_alive(*id)) {
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, waiting).await.expect("a process is left");
}

/// Number of unreaped children among these.
fn zombies(family: &BTreeSet<u32>) -> usize {
    let ours = format!(" Z {} ", std::process::id());
    let stat = |id: &u32| std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    family.iter().filter(|id| stat(id).contains(&ours)).count()
}

/// L26, P4: a server that exits at EOF is not signalled.
#[tokio::test]
async fn eof_stops_the_server() {
    let (child, family) = start("echo $$; exec cat").await;
    let departure = child.process.shutdown(Grace::default()).await.unwrap();
    assert_eq!(
        (departure.after, departure.status.code()),
        (EndStep::CloseInput, Some(0))
    );
    assert_gone(&family).await;
    assert_eq!(zombies(&family), 0);
}

/// L26: a server can write any amount of output after EOF and exit normally, even if the link is dropped.
#[tokio::test]
async fn output_after_eof_is_accepted() {
    let script = "echo $$; cat > /dev/null; head -c 10000000 /dev/zero || exit 9; exit 7";
    for is_held in [true, false] {
        let (child, family) = start(script).await;
        let link = is_held.then_some(child.link);
        let departure = child.process.shutdown(Grace::default()).await.unwrap();
        assert_eq!(
            (departure.after, departure.status.code()),
            (EndStep::CloseInput, Some(7)),
            "{link:?}"
        );
        assert_gone(&family).await;
        assert_eq!(zombies(&family), 0);
    }
}

/// L26: a server that writes without end is killed.
#[tokio::test]
async fn endless_output_after_eof_is_killed() {
    // The ids come from the process that becomes `yes`, so that they precede its output.
    let (child, family) = start("trap '' TERM; sh -c 'echo $$ $PPID; exec yes' & wait").await;
    drop(child.link);
    let departure = child.process.shutdown(SHORT).await.unwrap();
    assert_eq!(departure.after, EndStep::Kill);
    assert_gone(&family).await;
    assert_eq!(zombies(&family), 0);
}

/// L26, P4: a server that ignores EOF gets `SIGTERM`.
#[tokio::test]
async fn server_that_ignores_eof_is_terminated() {
    let (child, family) = start("echo $$; exec sleep 1000").await;
    let departure = child.process.shutdown(SHORT).await.unwrap();
    assert_eq!(
        (departure.after, departure.status.signal()),
        (EndStep::Terminate, Some(15))
    );
    assert_gone(&family).await;
}

/// L26, P4: a server that ignores `SIGTERM` is killed.
#[tokio::test]
async fn server_that_ignores_sigterm_is_killed() {
    let (child, family) =
        start("trap '' TERM; sleep 1000 & echo $! $$; wait; while :; do sleep 1; done").await;
    let departure = child.process.shutdown(SHORT).await.unwrap();
    assert_eq!(
        (departure.after, departure.status.signal()),
        (EndStep::Kill, Some(9))
    );
    assert_gone(&family).await;
    assert_eq!(zombies(&family), 0);
}

const FAMILIES: [&str; 3] = [
    // Outlives its parent, which exits at EOF.
    "sleep 1000 & echo $!; exec cat",
    // Its parent waits for it, as `npx` does.
    "sh -c 'echo $$; sleep 1000; exit 1'; exit 1",
    // Ignores signals.
    "sh -c 'trap \"\" TERM HUP INT; echo $$; while :; do sleep 1; done' & exec cat",
];

/// L26, P4: no descendant survives a shutdown.
#[tokio::test]
async fn shutdown_kills_descendants() {
    for script in FAMILIES {
        let (child, family) = start(script).await;
        assert_eq!(family.len(), 2);
        child.process.shutdown(SHORT).await.unwrap();
        assert_gone(&family).await;
        assert_eq!(zombies(&family), 0);
    }
}

/// No descendant and no zombie survives a drop.
#[tokio::test]
async fn drop_kills_descendants() {
    for script in FAMILIES {
        let (child, family) = start(script).await;
        let ended = child.process.wait();
        drop(child);
        assert_gone(&family).await;
        timeout(PATIENCE, ended).await.unwrap().unwrap();
        assert_eq!(zombies(&family), 0);
    }
}

/// No descendant survives an exit of the leader.
#[tokio::test]
async fn exit_kills_descendants() {
    let (mut child, family) = start("sleep 1000 & echo $!; read line; kill -SEGV $$").await;
    child.link.sink.push("{}");
    child.link.sink.flush().await.unwrap();
    let status = timeout(PATIENCE, child.process.wait())
        .await
        .unwrap()
        .unwrap();
    assert_eq!(status.signal(), Some(11));
    assert_gone(&family).await;
}

/// A descendant outside of the group is found while its parents live.
#[tokio::test]
async fn descendant_in_another_session_is_killed() {
    let script = "setsid sh -c 'echo $$; exec sleep 1000' & exec cat";
    let (child, family) = start(script).await;
    child.process.shutdown(SHORT).await.unwrap();
    assert_gone(&family).await;

    let (child, family) = start(script).await;
    drop(child);
    assert_gone(&family).await;

    let (mut child, family) = start(script).await;
    child.link.sink.close().await.unwrap();
    timeout(PATIENCE, child.process.wait())
        .await
        .unwrap()
        .unwrap();
    assert_gone(&family).await;
}

/// No process survives the runtime.
#[test]
fn runtime_shutdown_kills_processes() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (child, family) = runtime.block_on(start(FAMILIES[0]));
    drop(runtime);
    drop(child);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(assert_gone(&family));
}

/// L26: without grace period a server is killed at once, and is gone after the shutdown.
#[tokio::test]
async fn zero_grace_kills_at_once() {
    let (child, family) = start("trap '' TERM; echo $$; while :; do sleep 1; done").await;
    let none = Grace {
        drain: Duration::ZERO,
        exit: Duration::ZERO,
        terminate: Duration::ZERO,
    };
    let departure = child.process.shutdown(none).await.unwrap();
    assert_eq!(
        (departure.after, departure.status.signal()),
        (EndStep::Kill, Some(9))
    );
    assert_gone(&family).await;
}

/// A cancelled shutdown kills at once.
#[tokio::test]
async fn cancelled_shutdown_kills() {
    let (child, family) = start("trap '' TERM; echo $$; while :; do sleep 1; done").await;
    let shutdown = child.process.shutdown(Grace {
        exit: Duration::MAX,
        ..SHORT
    });
    assert!(timeout(Duration::from_millis(50), shutdown).await.is_err());
    assert_gone(&family).await;
}

/// L26: a blocked writer does not delay the shutdown.
#[tokio::test]
async fn full_pipe_does_not_delay_the_shutdown() {
    let (child, family) = start("echo $$; exec sleep 1000").await;
    let mut link = child.link;
    link.sink.push(&"7".repeat(1 << 20));
    let (written, departure) = tokio::join!(link.sink.flush(), child.process.shutdown(SHORT));
    assert!(written.is_err());
    assert_eq!(departure.unwrap().after, EndStep::Terminate);
    assert_gone(&family).await;
}
