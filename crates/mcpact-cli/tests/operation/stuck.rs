//! Gateways that are there and do not answer.

use crate::house::{House, Running, builtin};

/// A gateway with another config, in the same runtime folder.
fn second(house: &House) -> Running {
    let config = format!("[gateway]\n{}", builtin("other"));
    std::fs::write(house.path("other.toml"), config).unwrap();
    house.serve_file("other.toml")
}

/// A gateway that was stopped keeps nobody from asking the others, and is named with its process and a remedy when it is
/// the one that is asked, or may be.
#[test]
fn a_gateway_that_is_stopped_is_named_and_hinders_nobody() {
    let house = House::new(&builtin("local"));
    let (stopped, other) = (house.serve(), second(&house));
    stopped.signal("-STOP");
    let socket = house.path(&format!("run/mcpact/{}.sock", stopped.id()));
    let socket = socket.to_str().unwrap();
    let remedy = format!("kill -CONT {}", stopped.id());
    let named = |told: &str| told.contains(socket) && told.contains(&remedy);
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
        let house = &house;
        let run = |command| scope.spawn(move || house.run(command));
        let rows = rows.map(|(command, code, is_named)| (run(command), command, code, is_named));
        for (running, command, expected, is_named) in rows {
            let (code, _, told) = running.join().unwrap();
            let outcome = (code, named(&told));
            assert_eq!(outcome, (expected, is_named), "{command:?}: {told}");
        }
    });
    drop(other);
    let (code, _, told) = house.run(&["reload"]);
    assert!(code == 4 && named(&told), "{told}");
    stopped.signal("-CONT");
    assert_eq!(house.status()["gateway"]["pid"], stopped.id());
}
