//! What many children leave behind. Alone in its file, because it counts what the whole process holds.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a broken expectation is a failed test")]

use std::fs;
use std::time::Duration;

use mcpact_engine::shutdown::Grace;
use mcpact_transport::stdio::child::{Child, ChildCommand};
use tokio::runtime::Handle;
use tokio::task::yield_now;
use tokio::time::timeout;

/// The last one is about to leave the group when it is ended.
const SCRIPTS: [&str; 3] = [
    "exec cat",
    "sleep 1000 & exec cat",
    "setsid sleep 1000 & cat; wait",
];

const SHORT: Grace = Grace {
    drain: Duration::ZERO,
    exit: Duration::from_millis(20),
    terminate: Duration::from_millis(20),
};

/// Open files, tasks and children of ours, dead ones included.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Holdings {
    files: usize,
    tasks: usize,
    children: usize,
}

impl Holdings {
    fn count() -> Self {
        let us = std::process::id().to_string();
        let is_child = |stat: &String| {
            let after_name = stat.rsplit(')').next().unwrap();
            after_name.split_ascii_whitespace().nth(1) == Some(&us)
        };
        let stats = fs::read_dir("/proc")
            .unwrap()
            .filter_map(|entry| fs::read_to_string(entry.ok()?.path().join("stat")).ok());
        Self {
            files: fs::read_dir("/proc/self/fd").unwrap().count(),
            tasks: Handle::current().metrics().num_alive_tasks(),
            children: stats.filter(is_child).count(),
        }
    }
}

fn start(round: usize) -> Child {
    let script = SCRIPTS[round % SCRIPTS.len()];
    ChildCommand::new("sh")
        .with_args(["-c", script])
        .spawn()
        .unwrap()
}

/// T2, L26: files, tasks and processes return to where they were, however often children come and go.
#[tokio::test]
async fn many_children_leave_nothing() {
    start(0).process.shutdown(SHORT).await.unwrap();
    yield_now().await;
    let before = Holdings::count();
    for round in 0..200 {
        let child = start(round);
        if round % 2 == 0 {
            child.process.shutdown(SHORT).await.unwrap();
        } else {
            drop(child);
        }
    }
    let settled = async {
        while Holdings::count() != before {
            yield_now().await;
        }
    };
    let result = timeout(Duration::from_secs(30), settled).await;
    assert!(result.is_ok(), "{before:?} became {:?}", Holdings::count());
}
