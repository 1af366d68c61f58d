//! `mcpact doctor`: findings with cause and remedy.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use serde_json::Value;

use super::harness::{MCPACT, Seen, everything, http_server, mcpact, response, run, run_in};

/// Returns `LEVEL CHECK TEXT` of each finding about a server.
fn findings(server: &Value) -> Vec<String> {
    let all = server["findings"].as_array().unwrap().iter();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    all.map(|one| {
        let (level, check) = (text(&one["level"]), text(&one["check"]));
        let is_ok = level == "ok";
        assert_eq!(
            one["remedy"].is_null(),
            is_ok,
            "every finding has a remedy: {one}"
        );
        format!("{level} {check} {}", text(&one["text"]))
    })
    .collect()
}

fn doctor(args: &[&str]) -> (Seen, Vec<String>) {
    let args: Vec<&str> = ["doctor", "--json"].iter().chain(args).copied().collect();
    let seen = run(&args);
    let all = findings(&seen.json()["servers"][0]);
    (seen, all)
}

fn has(all: &[String], start: &str, part: &str) -> bool {
    let mut all = all.iter();
    all.any(|one| one.starts_with(start) && one.contains(part))
}

#[test]
fn working_server_has_no_findings() {
    let (seen, all) = doctor(&["--", MCPACT, "everything"]);
    assert_eq!(seen.code, 0, "{all:?}");
    for check in ["program", "start", "stdout", "negotiation", "tools"] {
        assert!(has(&all, &format!("ok {check} "), ""), "{check}: {all:?}");
    }
}

#[test]
fn missing_program_is_not_started() {
    let (seen, all) = doctor(&["--", "no-such-program-4711"]);
    assert_eq!(seen.code, 7);
    assert!(has(&all, "problem program ", "not found"), "{all:?}");
    assert_eq!(seen.json()["servers"][0]["starts"], 0);
}

#[test]
fn noise_on_stdout_is_found() {
    let script = "echo Listening; exec \"$SERVER\" everything --revisions 2025-11-25";
    let (seen, all) = doctor(&["--", "sh", "-c", script]);
    assert_eq!(seen.code, 7);
    assert!(has(&all, "problem stdout ", "1 line on stdout"), "{all:?}");
    assert!(has(&all, "ok negotiation ", "2025-11-25"), "{all:?}");
}

#[test]
fn server_that_exits_or_is_silent_is_found() {
    let (seen, all) = doctor(&["--", "sh", "-c", "echo no key >&2; exit 3"]);
    assert_eq!(seen.code, 7);
    assert!(has(&all, "problem start ", "stderr: no key"), "{all:?}");
    let (seen, all) = doctor(&["--timeout", "1", "--", "sh", "-c", "cat >/dev/null"]);
    assert_eq!(seen.code, 7);
    assert!(has(&all, "problem negotiation ", "in time"), "{all:?}");
}

#[test]
fn network_and_authentication_are_told_apart() {
    let (seen, all) = doctor(&["http://127.0.0.1:1/mcp"]);
    assert_eq!(seen.code, 7);
    assert!(has(&all, "problem network ", ""), "{all:?}");
    let locked = http_server(|_| response("401 Unauthorized", "www-authenticate: Bearer\r\n", ""));
    let (seen, all) = doctor(&[&locked]);
    assert_eq!(seen.code, 7);
    assert!(has(&all, "ok network ", ""), "{all:?}");
    assert!(has(&all, "problem authentication ", "401"), "{all:?}");
}

#[test]
fn untrusted_certificate_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let (cert, key) = (folder.path().join("cert"), folder.path().join("key"));
    std::fs::write(&cert, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    let (cert, key) = (cert.to_str().unwrap(), key.to_str().unwrap());
    let (_server, url) = everything(&["--tls-cert", cert, "--tls-key", key]);
    let url = url.replace("127.0.0.1", "localhost");
    let (seen, all) = doctor(&[&url]);
    assert_eq!(seen.code, 7);
    assert!(has(&all, "ok network ", ""), "{all:?}");
    assert!(has(&all, "problem tls ", "unknown authority"), "{all:?}");
    let mut trusting = mcpact(&["doctor", &url], folder.path());
    let output = trusting.env("SSL_CERT_FILE", cert).output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn secret_file_that_others_can_read_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let url = "url = \"http://127.0.0.1:1/mcp\"";
    let headers = "headers = { Authorization = \"Bearer ${file:token}\" }";
    write(folder.path(), &format!("[servers.web]\n{url}\n{headers}\n"));
    let token = folder.path().join("token");
    std::fs::write(&token, "canary-4711-canary").unwrap();
    for (mode, is_found) in [(0o600, false), (0o644, true)] {
        let permissions = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(&token, permissions).unwrap();
        let seen = run_in(
            &["doctor", "--json", "--config", "mcpact.toml"],
            folder.path(),
        );
        let all = findings(&seen.json()["servers"][0]);
        let found = has(&all, "warning permissions ", "token");
        assert_eq!(found, is_found, "{mode:o} {all:?}");
        assert!(!seen.stdout.contains("canary"), "{}", seen.stdout);
    }
}

fn write(folder: &Path, text: &str) {
    std::fs::write(folder.join("mcpact.toml"), text).unwrap();
}

#[test]
fn every_server_of_a_config_is_examined() {
    let folder = tempfile::tempdir().unwrap();
    write(
        folder.path(),
        &format!(
            "[servers.good]\ncommand = {MCPACT:?}\nargs = [\"everything\"]\n\
             [servers.missing]\ncommand = \"no-such-program-4711\"\n\
             [servers.off]\ncommand = \"no-such-program-4712\"\nenabled = false\n"
        ),
    );
    let seen = run_in(
        &["doctor", "--json", "--config", "mcpact.toml"],
        folder.path(),
    );
    assert_eq!(seen.code, 7, "{}", seen.stderr);
    assert_eq!(
        seen.texts("servers", "name"),
        ["mcpact.toml", "good", "missing"]
    );
    let json = seen.json();
    assert!(has(&findings(&json["servers"][1]), "ok negotiation ", ""));
    assert!(has(&findings(&json["servers"][2]), "problem program ", ""));
    // A found config needs approvals.
    let seen = run_in(&["doctor", "--json"], folder.path());
    let found = findings(&seen.json()["servers"][1]);
    assert!(has(&found, "problem approval ", ""), "{found:?}");
    assert_eq!(seen.json()["servers"][1]["starts"], 0);
}

#[test]
fn config_that_others_can_write_is_found() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "");
    let file = folder.path().join("mcpact.toml");
    for (mode, code) in [(0o600, 0), (0o666, 7)] {
        let permissions = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(&file, permissions).unwrap();
        let seen = run_in(
            &["doctor", "--json", "--config", "mcpact.toml"],
            folder.path(),
        );
        assert_eq!(seen.code, code, "{mode:o} {}", seen.stdout);
    }
}

#[test]
fn findings_as_text() {
    let script = "echo Listening; exec \"$SERVER\" everything --revisions 2025-11-25 2>/dev/null";
    let seen = run(&["doctor", "--", "sh", "-c", script]);
    assert!(
        seen.stdout.lines().all(|line| line.chars().count() <= 80),
        "{}",
        seen.stdout
    );
    insta::assert_snapshot!("doctor_noise", seen.shown());
}
