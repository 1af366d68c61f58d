//! Servers that were there, and are not any more.

use std::fs;

use serde_json::{Value, json};

use crate::house::{House, Running, call, handshake, signal, until};

/// What `/readyz` tells of one server.
fn readiness(gateway: &Running, server: &str) -> Value {
    let body = gateway.get("/readyz").body;
    let told: Value = serde_json::from_str(&body).unwrap();
    told["servers"][server].clone()
}

/// What a new client is told.
fn welcome(gateway: &Running) -> String {
    gateway.post("/mcp", None, &handshake()).body
}

/// A gateway whose only server is not there is ready again when the server is, although nobody has called.
#[test]
fn readiness_returns_by_itself() {
    let house = House::new("");
    let server = house.everything("127.0.0.1:0");
    let address = server.origin.strip_prefix("http://").unwrap().to_owned();
    drop(server);
    house.configure(&format!(
        "[servers.away]\nurl = \"http://{address}/mcp\"\nbackoff_max_seconds = 1\n"
    ));
    let gateway = house.serve();
    until(|| gateway.get("/readyz").status == 503);
    let _server = house.everything(&address);
    until(|| gateway.get("/readyz").status == 200);
    let away = &house.status()["servers"][0];
    assert_eq!(away["state"], "ready", "{away}");
    assert_eq!(away["missing"], Value::Null, "{away}");
    assert_eq!(away["instances"][0]["cause"], "recovery", "{away}");
}

/// A call that cannot reach its server is told that no server saw it and what would help, and counts as a failure
/// of the server, with its cause and time; everybody who watches is told until a call succeeds.
#[test]
fn a_server_that_cannot_be_reached_is_told_until_it_can() {
    let house = House::new("");
    let server = house.everything("127.0.0.1:0");
    let address = server.origin.strip_prefix("http://").unwrap().to_owned();
    house.configure(&format!("[servers.away]\nurl = \"http://{address}/mcp\"\n"));
    let gateway = house.serve();
    let session = gateway.open("/mcp");
    let echo = || {
        let reply = gateway.post("/mcp", Some(&session), &call("away__echo"));
        reply.body
    };
    let answer = echo();
    assert!(answer.contains("hello"), "{answer}");
    assert_eq!(readiness(&gateway, "away")["ready"], true);
    server.signal("-KILL");
    server.ended();

    let answer = echo();
    for told in [
        "Connection refused",
        r#""reason":"upstream_unreachable""#,
        "check that the server runs",
    ] {
        assert!(answer.contains(told), "{answer}");
    }
    let figures = gateway.get("/metrics").body;
    let calls = |outcome| {
        let is_it = |line: &&str| line.contains("\"tools/call\"") && line.contains(outcome);
        figures.lines().filter(is_it).count()
    };
    assert_eq!(calls("outcome=\"unavailable\""), 1, "{figures}");
    assert_eq!(calls("outcome=\"lost\""), 0, "{figures}");
    let status = house.status();
    let away = &status["servers"][0];
    assert_eq!(away["state"], "failed", "{away}");
    assert!(away["failures"].as_u64().unwrap() > 0, "{away}");
    let why = away["last_error"]["why"].as_str().unwrap();
    assert!(why.contains("Connection refused"), "{away}");
    assert!(away["last_error"]["seconds_ago"].is_u64(), "{away}");
    let ready = readiness(&gateway, "away");
    assert_eq!(
        (&ready["ready"], &ready["state"]),
        (&json!(false), &json!("failed"))
    );
    let (_, printed, _) = house.run(&["status"]);
    let (_, logged, _) = house.run(&["logs", "away"]);
    let why = ready["why"].as_str().unwrap().to_owned();
    for told in [why, printed, logged, welcome(&gateway)] {
        assert!(told.contains("Connection refused"), "{told}");
    }

    let _server = house.everything(&address);
    until(|| echo().contains("hello"));
    let away = &house.status()["servers"][0];
    assert_eq!(
        (&away["state"], &away["failures"]),
        (&json!("ready"), &json!(0))
    );
    assert_eq!(readiness(&gateway, "away")["ready"], true);
    let welcome = welcome(&gateway);
    assert!(!welcome.contains("is missing"), "{welcome}");
}

/// A server that once worked and does not start any more is told as one that never did, before it has failed
/// so often that it is suspended.
#[test]
fn a_server_that_does_not_start_any_more_is_told_at_once() {
    let house = House::new("");
    house.configure(&house.gated());
    house.open_the_gate();
    let gateway = house.serve();
    let session = gateway.open("/mcp");
    let ask = |tool: &str| gateway.post("/mcp", Some(&session), &call(tool)).body;
    let answer = ask("gated__wait");
    assert!(answer.contains("waited"), "{answer}");
    let pid = house.status()["servers"][0]["instances"][0]["pid"].clone();
    fs::write(house.path("gated"), "#!/bin/sh\nexit 7\n").unwrap();
    signal(u32::try_from(pid.as_u64().unwrap()).unwrap(), "-KILL");

    until(|| ask("gated__wait").contains("exit status: 7"));
    let ready = readiness(&gateway, "gated");
    assert_eq!(ready["ready"], false, "{ready}");
    assert_ne!(ready["state"], "suspended", "{ready}");
    let why = ready["why"].as_str().unwrap().to_owned();
    for told in [why, welcome(&gateway), ask("gated__nothing")] {
        assert!(told.contains("exit status: 7"), "{told}");
    }
}
