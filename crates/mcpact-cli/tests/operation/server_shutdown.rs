//! Shutdown of server processes.

use std::io::{BufRead, BufReader, Write};

use crate::harness::{Harness, Running, call, handshake, wait_until};

/// Starts a gateway and calls its server once.
fn serve_and_call(harness: &Harness, settings: &str) -> Running {
    harness.configure(&format!("{}{settings}", harness.gated()));
    harness.open_the_gate();
    let running = harness.serve();
    let session = running.open("/mcp");
    let reply = running.post("/mcp", Some(&session), &call("gated__wait"));
    assert!(reply.body.contains("waited"), "{reply:?}");
    running
}

/// L26: it can send a last message and save its state.
#[test]
fn idle_server_receives_end_of_input_first() {
    let harness = Harness::new("");
    let _running = serve_and_call(&harness, "idle_seconds = 1\n");
    wait_until(|| harness.path("saved").exists());
}

/// L26: stopping gateway ends the input of servers first.
#[test]
fn stopping_gateway_ends_the_input_of_servers_first() {
    let harness = Harness::new("");
    let running = serve_and_call(&harness, "");
    running.signal("-TERM");
    assert_eq!(running.exit_code(), Some(0));
    assert!(harness.path("saved").exists());
}

/// L26: a server that is still starting is stopped like a ready one.
#[test]
fn stopping_gateway_ends_the_input_of_a_starting_server_first() {
    let harness = Harness::new("");
    let slow = harness.program(
        "slow",
        "#!/bin/sh\ncd \"$(dirname \"$0\")\"\n: > started\nwhile read -r line; do :; done\nsleep 0.5\n: > saved\n",
    );
    harness.configure(&format!("{slow}min_ready = 1\nera = \"legacy\"\n"));
    let running = harness.serve();
    wait_until(|| harness.path("started").exists());
    running.signal("-TERM");
    assert_eq!(running.exit_code(), Some(0));
    assert!(harness.path("saved").exists());
}

/// L26: stopping bridge ends the input of its server first.
#[test]
fn stopping_bridge_ends_the_input_of_its_server_first() {
    let harness = Harness::new("");
    let mut child = harness.bridge_stdio();
    let mut input = child.stdin.take().unwrap();
    writeln!(input, "{}", handshake()).unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let welcome = lines.next().unwrap().unwrap();
    assert!(welcome.contains("protocolVersion"), "{welcome}");
    drop(input);
    assert!(child.wait().unwrap().success());
    assert!(harness.path("saved").exists());
}
