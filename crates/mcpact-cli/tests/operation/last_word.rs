//! Servers that have something to say at their end, and something to do after it.

use std::io::{BufRead, BufReader, Write};

use crate::house::{House, Running, call, handshake, until};

/// A gateway whose server was called once.
fn served(house: &House, settings: &str) -> Running {
    house.configure(&format!("{}{settings}", house.gated()));
    house.open_the_gate();
    let running = house.serve();
    let session = running.open("/mcp");
    let reply = running.post("/mcp", Some(&session), &call("gated__wait"));
    assert!(reply.body.contains("waited"), "{reply:?}");
    running
}

/// L26: a server that is stopped because nobody asks it can say its last word and save what it has.
#[test]
fn an_idle_server_can_say_its_last_word() {
    let house = House::new("");
    let _running = served(&house, "idle_seconds = 1\n");
    until(|| house.path("saved").exists());
}

/// L26: a gateway that is told to end lets its servers say their last word.
#[test]
fn a_gateway_that_ends_lets_servers_say_their_last_word() {
    let house = House::new("");
    let running = served(&house, "");
    running.signal("-TERM");
    assert_eq!(running.ended(), Some(0));
    assert!(house.path("saved").exists());
}

/// L26: a bridge whose client leaves lets its server say its last word.
#[test]
fn a_bridge_that_ends_lets_its_server_say_its_last_word() {
    let house = House::new("");
    let mut child = house.bridge_on_pipes();
    let mut input = child.stdin.take().unwrap();
    writeln!(input, "{}", handshake()).unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let welcome = lines.next().unwrap().unwrap();
    assert!(welcome.contains("protocolVersion"), "{welcome}");
    drop(input);
    assert!(child.wait().unwrap().success());
    assert!(house.path("saved").exists());
}
