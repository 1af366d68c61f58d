//! Requirement L26: how a process ends, and that nothing of it is left.
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

/// Starts a script that prints, as its first line, the numbers of all processes that it started.
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

/// Whether a process exists and is not just waiting to be reaped by its parent.
fn is_alive(id: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{id}/stat")).is_ok_and(|stat| {
        !matches!(
            stat.rsplit(')').next().map(|rest| &rest[1..2]),
            Some("Z" | "X")
        )
    })
}

/// Waits until a signal that was sent has had its effect.
async fn assert_gone(family: &BTreeSet<u32>) {
    let waiting = async {
        while family.iter().any(|id| is_alive(*id)) {
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, waiting).await.expect("a process is left");
}

/// Our own children that nobody has reaped yet, among these.
fn zombies(family: &BTreeSet<u32>) -> usize {
    let ours = format!(" Z {} ", std::process::id());
    let stat = |id: &u32| std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    family.iter().filter(|id| stat(id).contains(&ours)).count()
}

/// L26, P4: a server that exits at the end of its input is not signalled.
#[tokio::test]
async fn the_end_of_input_is_enough() {
    let (child, family) = start("echo $$; exec cat").await;
    let departure = child.process.shutdown(Grace::default()).await.unwrap();
    assert_eq!(
        (departure.after, departure.status.code()),
        (EndStep::CloseInput, Some(0))
    );
    assert_gone(&family).await;
    assert_eq!(zombies(&family), 0);
}

/// L26: a server that has something to say at the end of its input can say it, however much, and goes on to its end,
/// whether or not somebody still holds the link.
#[tokio::test]
async fn a_last_word_finds_an_open_pipe() {
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

/// L26: a server that never stops talking is ended like any other.
#[tokio::test]
async fn endless_last_words_are_cut_off() {
    let (child, family) = start("trap '' TERM; yes & echo $! $$; wait").await;
    drop(child.link);
    let departure = child.process.shutdown(SHORT).await.unwrap();
    assert_eq!(departure.after, EndStep::Kill);
    assert_gone(&family).await;
    assert_eq!(zombies(&family), 0);
}

/// L26, P4: a server that ignores the end of its input is asked to end.
#[tokio::test]
async fn a_server_that_ignores_the_end_of_input_is_terminated() {
    let (child, family) = start("echo $$; exec sleep 1000").await;
    let departure = child.process.shutdown(SHORT).await.unwrap();
    assert_eq!(
        (departure.after, departure.status.signal()),
        (EndStep::Terminate, Some(15))
    );
    assert_gone(&family).await;
}

/// L26, P4: a server that ignores that as well is killed.
#[tokio::test]
async fn a_stubborn_server_is_killed() {
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
    // One that outlives its parent, which exits at the end of its input.
    "sleep 1000 & echo $!; exec cat",
    // One that its parent waits for, as `npx` does.
    "sh -c 'echo $$; sleep 1000; exit 1'; exit 1",
    // One that does not listen to anybody.
    "sh -c 'trap \"\" TERM HUP INT; echo $$; while :; do sleep 1; done' & exec cat",
];

/// L26, P4: no grandchild is left after a shutdown.
#[tokio::test]
async fn grandchildren_are_gone_after_a_shutdown() {
    for script in FAMILIES {
        let (child, family) = start(script).await;
        assert_eq!(family.len(), 2);
        child.process.shutdown(SHORT).await.unwrap();
        assert_gone(&family).await;
        assert_eq!(zombies(&family), 0);
    }
}

/// No grandchild and no zombie is left after dropping.
#[tokio::test]
async fn grandchildren_are_gone_after_dropping() {
    for script in FAMILIES {
        let (child, family) = start(script).await;
        let ended = child.process.wait();
        drop(child);
        assert_gone(&family).await;
        timeout(PATIENCE, ended).await.unwrap().unwrap();
        assert_eq!(zombies(&family), 0);
    }
}

/// No grandchild is left when the leader exits by itself.
#[tokio::test]
async fn grandchildren_are_gone_after_a_crash() {
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

/// A descendant that has left the group is found as long as its parents live.
#[tokio::test]
async fn a_descendant_in_another_session_is_gone_too() {
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

/// Nothing is left when the runtime goes away under a child.
#[test]
fn nothing_is_left_after_the_runtime() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (child, family) = runtime.block_on(start(FAMILIES[0]));
    drop(runtime);
    drop(child);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(assert_gone(&family));
}

/// L26: without any grace, a server is killed at once, and has died when the shutdown is over.
#[tokio::test]
async fn without_grace_a_server_is_killed_at_once() {
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

/// A shutdown that is given up kills at once.
#[tokio::test]
async fn a_shutdown_that_is_given_up_kills() {
    let (child, family) = start("trap '' TERM; echo $$; while :; do sleep 1; done").await;
    let shutdown = child.process.shutdown(Grace {
        exit: Duration::MAX,
        ..SHORT
    });
    assert!(timeout(Duration::from_millis(50), shutdown).await.is_err());
    assert_gone(&family).await;
}

/// L26: a writer that waits at a full pipe does not hold up the end.
#[tokio::test]
async fn a_full_pipe_does_not_hold_up_the_end() {
    let (child, family) = start("echo $$; exec sleep 1000").await;
    let mut link = child.link;
    link.sink.push(&"7".repeat(1 << 20));
    let (written, departure) = tokio::join!(link.sink.flush(), child.process.shutdown(SHORT));
    assert!(written.is_err());
    assert_eq!(departure.unwrap().after, EndStep::Terminate);
    assert_gone(&family).await;
}
