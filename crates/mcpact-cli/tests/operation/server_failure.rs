//! Server failures and recovery.

use std::fs;

use serde_json::{Value, json};

use crate::harness::{Harness, Running, call, handshake, signal, wait_until};

/// Returns the readiness of a server.
fn readiness(gateway: &Running, server: &str) -> Value {
    let body = gateway.get("/readyz").body;
    let message: Value = serde_json::from_str(&body).unwrap();
    message["servers"][server].clone()
}

/// Returns the response to a new `initialize`.
fn initialize_response(gateway: &Running) -> String {
    gateway.post("/mcp", None, &handshake()).body
}

#[test]
fn readiness_recovers_without_a_call() {
    let harness = Harness::new("");
    let server = harness.everything("127.0.0.1:0");
    let address = server.origin.strip_prefix("http://").unwrap().to_owned();
    drop(server);
    harness.configure(&format!(
        "[servers.away]\nurl = \"http://{address}/mcp\"\nbackoff_max_seconds = 1\n"
    ));
    let gateway = harness.serve();
    wait_until(|| gateway.get("/readyz").status == 503);
    let _server = harness.everything(&address);
    wait_until(|| gateway.get("/readyz").status == 200);
    let away = &harness.status()["servers"][0];
    assert_eq!(away["state"], "ready", "{away}");
    assert_eq!(away["missing"], Value::Null, "{away}");
    assert_eq!(away["instances"][0]["cause"], "recovery", "{away}");
}

/// The call fails as not sent, with a hint. Status, readiness, log, metrics and instructions report
/// the failure until a call succeeds.
#[test]
fn unreachable_server_is_reported_until_it_recovers() {
    let harness = Harness::new("");
    let server = harness.everything("127.0.0.1:0");
    let address = server.origin.strip_prefix("http://").unwrap().to_owned();
    harness.configure(&format!("[servers.away]\nurl = \"http://{address}/mcp\"\n"));
    let gateway = harness.serve();
    let session = gateway.open("/mcp");
    let echo = || {
        let reply = gateway.post("/mcp", Some(&session), &call("away__echo"));
        reply.body
    };
    let answer = echo();
    assert!(answer.contains("hello"), "{answer}");
    assert_eq!(readiness(&gateway, "away")["ready"], true);
    server.signal("-KILL");
    server.exit_code();

    let answer = echo();
    for message in [
        "Connection refused",
        r#""reason":"upstream_unreachable""#,
        "check that the server runs",
    ] {
        assert!(answer.contains(message), "{answer}");
    }
    let metrics = gateway.get("/metrics").body;
    let calls = |outcome| {
        let is_it = |line: &&str| line.contains("\"tools/call\"") && line.contains(outcome);
        metrics.lines().filter(is_it).count()
    };
    assert_eq!(calls("outcome=\"unavailable\""), 1, "{metrics}");
    assert_eq!(calls("outcome=\"lost\""), 0, "{metrics}");
    let status = harness.status();
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
    let (_, stdout, _) = harness.run(&["status"]);
    let (_, logged, _) = harness.run(&["logs", "away"]);
    let why = ready["why"].as_str().unwrap().to_owned();
    for message in [why, stdout, logged, initialize_response(&gateway)] {
        assert!(message.contains("Connection refused"), "{message}");
    }

    let _server = harness.everything(&address);
    wait_until(|| echo().contains("hello"));
    let away = &harness.status()["servers"][0];
    assert_eq!(
        (&away["state"], &away["failures"]),
        (&json!("ready"), &json!(0))
    );
    assert_eq!(readiness(&gateway, "away")["ready"], true);
    let welcome = initialize_response(&gateway);
    assert!(!welcome.contains("is unavailable"), "{welcome}");
}

/// Before it has failed often enough to be suspended.
#[test]
fn server_that_stops_starting_is_reported_at_once() {
    let harness = Harness::new("");
    harness.configure(&harness.gated());
    harness.open_the_gate();
    let gateway = harness.serve();
    let session = gateway.open("/mcp");
    let ask = |tool: &str| gateway.post("/mcp", Some(&session), &call(tool)).body;
    let answer = ask("gated__wait");
    assert!(answer.contains("waited"), "{answer}");
    let pid = harness.status()["servers"][0]["instances"][0]["pid"].clone();
    fs::write(harness.path("gated"), "#!/bin/sh\nexit 7\n").unwrap();
    signal(u32::try_from(pid.as_u64().unwrap()).unwrap(), "-KILL");

    wait_until(|| ask("gated__wait").contains("exit status: 7"));
    let ready = readiness(&gateway, "gated");
    assert_eq!(ready["ready"], false, "{ready}");
    assert_ne!(ready["state"], "suspended", "{ready}");
    let why = ready["why"].as_str().unwrap().to_owned();
    for message in [why, initialize_response(&gateway), ask("gated__nothing")] {
        assert!(message.contains("exit status: 7"), "{message}");
    }
}
