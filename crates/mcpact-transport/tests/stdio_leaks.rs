//! Resource leaks of many children. A separate file, because it counts resources of the whole process.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a broken expectation is a failed test")]

use std::fs;
use std::time::Duration;

use mcpact_engine::shutdown::Grace;
use mcpact_transport::stdio::child::{Child, ChildCommand};
use tokio::runtime::Handle;
use tokio::task::yield_now;
use tokio::time::timeout;

/// The last one leaves the group during shutdown.
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

/// Open files, tokio tasks and children, including zombies.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Resources {
    files: usize,
    tasks: usize,
    children: usize,
}

impl Resources {
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

/// T2, L26: files, tokio tasks and processes do not leak.
#[tokio::test]
async fn children_do_not_leak_resources() {
    start(0).process.shutdown(SHORT).await.unwrap();
    yield_now().await;
    let before = Resources::count();
    for round in 0..200 {
        let child = start(round);
        if round % 2 == 0 {
            child.process.shutdown(SHORT).await.unwrap();
        } else {
            drop(child);
        }
    }
    let settled = async {
        while Resources::count() != before {
            yield_now().await;
        }
    };
    let result = timeout(Duration::from_secs(30), settled).await;
    assert!(result.is_ok(), "{before:?} became {:?}", Resources::count());
}
