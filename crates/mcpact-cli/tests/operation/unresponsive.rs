//! Gateways that do not answer on their control socket.

use crate::harness::{Harness, Running, builtin};

/// Starts a gateway with another config in the same runtime directory.
fn start_second(harness: &Harness) -> Running {
    let config = format!("[gateway]\n{}", builtin("other"));
    std::fs::write(harness.path("other.toml"), config).unwrap();
    harness.serve_file("other.toml")
}

/// The hint has its process ID.
#[test]
fn unresponsive_gateway_is_named_and_does_not_block_others() {
    let harness = Harness::new(&builtin("local"));
    let (stopped, other) = (harness.serve(), start_second(&harness));
    stopped.signal("-STOP");
    let socket = harness.path(&format!("run/mcpact/{}.sock", stopped.id()));
    let socket = socket.to_str().unwrap();
    let remedy = format!("kill -CONT {}", stopped.id());
    let named = |message: &str| message.contains(socket) && message.contains(&remedy);
    let rows = [
        (&["status", "--config", "other.toml"][..], 0, false),
        (&["logs", "--config", "other.toml"], 0, false),
        (&["reload", "--config", "other.toml"], 0, false),
        (&["approve", "--tools", "--config", "other.toml"], 0, true),
        (&["status", "--config", "mcpact.toml"], 4, true),
        (&["status", "--socket", socket], 4, true),
        (&["reload", "--socket", socket], 4, true),
        (&["logs", "--follow", "--socket", socket], 4, true),
    ];
    std::thread::scope(|scope| {
        let harness = &harness;
        let run = |command| scope.spawn(move || harness.run(command));
        let rows = rows.map(|(command, code, is_named)| (run(command), command, code, is_named));
        for (running, command, expected, is_named) in rows {
            let (code, _, stderr) = running.join().unwrap();
            let outcome = (code, named(&stderr));
            assert_eq!(outcome, (expected, is_named), "{command:?}: {stderr}");
        }
    });
    drop(other);
    let (code, _, stderr) = harness.run(&["reload"]);
    assert!(code == 4 && named(&stderr), "{stderr}");
    stopped.signal("-CONT");
    assert_eq!(harness.status()["gateway"]["pid"], stopped.id());
}
