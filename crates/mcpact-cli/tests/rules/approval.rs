//! Nothing is started that nobody has agreed to.

use std::fs;
use std::time::{Duration, Instant};

use mcpact::client::Client;
use mcpact_spec::Revision;
use serde_json::{Value, json};

use crate::place::{Place, Running, said};

async fn echo(client: &Client) -> Result<String, String> {
    let echoed = client.call_tool("a__echo", json!({"text": "x"})).await;
    match echoed {
        Ok(result) => Ok(result.all_text()),
        Err(error) => Err(error.to_string()),
    }
}

const CONFIG: &str =
    "[servers.a]\ncommand = \"SERVER\"\nargs = [\"one two\"]\nenv = { TOKEN = \"hunter2\" }\n";

/// The mark that `approve` shows.
fn mark(place: &Place) -> String {
    let output = place.run(&["approve"]);
    assert_eq!(output.status.code(), Some(7), "{}", said(&output));
    let shown = said(&output);
    for words in [
        place.server().to_string_lossy().as_ref(),
        "one two",
        "TOKEN",
    ] {
        assert!(shown.contains(words), "{shown}");
    }
    assert!(!shown.contains("hunter2"), "{shown}");
    let line = shown.lines().find(|line| line.contains("mark")).unwrap();
    line.split_whitespace().last().unwrap().to_owned()
}

/// SL1, SL5: what a config that was merely found wants to start is shown and started only after a yes; then
/// at once. Another argument, another folder or another program at the same place needs another yes.
#[tokio::test(flavor = "multi_thread")]
async fn a_found_config_starts_nothing_by_itself() {
    let place = Place::new();
    place.configure("mcpact.toml", CONFIG);
    let running = place.serve(&[]);
    let client = running.client(Revision::LATEST).await;
    let why = echo(&client).await.unwrap_err();
    assert!(
        why.contains("not approved") && why.contains("mcpact approve"),
        "{why}"
    );
    assert!(!place.was_started());
    let wrong = place.run(&["approve", "--mark", "0123456789abcdef0123456789abcdef"]);
    assert_eq!(wrong.status.code(), Some(7), "{}", said(&wrong));
    let first = mark(&place);
    let approved = place.run(&["approve", "--mark", &first]);
    assert_eq!(approved.status.code(), Some(0), "{}", said(&approved));
    assert_eq!(echo(&client).await.as_deref(), Ok("x"));
    assert!(place.was_started());
    drop(running);

    fs::remove_file(place.path().join("args")).unwrap();
    let changes: [(&str, &str); 3] = [
        ("args", &CONFIG.replace("one two", "one two three")),
        ("cwd", &format!("{CONFIG}cwd = \"/\"\n")),
        (
            "env",
            &CONFIG.replace("TOKEN =", "LD_LIBRARY_PATH = \"/x\", TOKEN ="),
        ),
    ];
    for (what, text) in changes {
        place.configure("mcpact.toml", text);
        let running = place.serve(&[]);
        let client = running.client(Revision::V2025_11_25).await;
        let why = echo(&client).await.unwrap_err();
        assert!(why.contains("not approved"), "{what}: {why}");
        assert!(!place.was_started(), "{what}");
    }
    place.configure("mcpact.toml", CONFIG);
    place.install("changed");
    let running = place.serve(&[]);
    let client = running.client(Revision::LATEST).await;
    let why = echo(&client).await.unwrap_err();
    assert!(why.contains("not approved"), "{why}");
    assert!(!place.was_started());
    assert_ne!(mark(&place), first);
}

/// SL1: whoever names a config agrees to what it starts, unless only approved commands are wanted.
#[tokio::test(flavor = "multi_thread")]
async fn a_named_config_is_agreed_to() {
    let place = Place::new();
    place.configure("named.toml", CONFIG);
    let running = place.serve(&["--config", "named.toml", "--approved-only"]);
    let client = running.client(Revision::LATEST).await;
    assert!(echo(&client).await.unwrap_err().contains("not approved"));
    assert!(!place.was_started());
    drop(running);
    let running = place.serve(&["--config", "named.toml"]);
    let client = running.client(Revision::LATEST).await;
    assert_eq!(echo(&client).await.as_deref(), Ok("x"));
}

/// SL1: a server that is known from an earlier run and not approved in this one does not look as if the next call
/// would start it.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_known_and_not_approved_is_told() {
    let place = Place::new();
    place.configure("named.toml", CONFIG);
    let running = place.serve(&["--config", "named.toml"]);
    let client = running.client(Revision::LATEST).await;
    client.list_tools().await.unwrap();
    let cache = place.path().join("cache/mcpact/servers");
    let is_kept = || fs::read_dir(&cache).is_ok_and(|mut files| files.next().is_some());
    until(is_kept);
    drop(running);
    fs::remove_file(place.path().join("args")).unwrap();

    let _running = place.serve(&["--config", "named.toml", "--approved-only"]);
    let told = || {
        let status = place.run(&["status", "--json", "--config", "named.toml"]);
        let status: Value = serde_json::from_slice(&status.stdout).unwrap_or_default();
        let server = &status["servers"][0];
        let missing = server["missing"].as_str().unwrap_or_default();
        server["state"] == "failed"
            && missing.starts_with("the command is not approved")
            && missing.contains("mcpact approve")
    };
    until(told);
    assert!(!place.was_started());
}

/// SL1, O5: a yes is noticed without a call.
#[tokio::test(flavor = "multi_thread")]
async fn a_yes_is_noticed_by_itself() {
    let place = Place::new();
    place.configure("mcpact.toml", &format!("{CONFIG}backoff_max_seconds = 1\n"));
    let running = place.serve(&[]);
    let mark = mark(&place);
    until_ready(&running, 503).await;
    assert!(!place.was_started());
    let approved = place.run(&["approve", "--mark", &mark]);
    assert_eq!(approved.status.code(), Some(0), "{}", said(&approved));
    until_ready(&running, 200).await;
    assert!(place.was_started());
}

/// Until the gateway says this about whether it is ready.
async fn until_ready(running: &Running, status: u16) {
    let late = Instant::now() + Duration::from_secs(30);
    while running.send("GET", "/readyz", "").await != status {
        assert!(Instant::now() < late, "it is not {status}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Until this is so.
fn until(is_so: impl Fn() -> bool) {
    let late = Instant::now() + Duration::from_secs(30);
    while !is_so() {
        assert!(Instant::now() < late, "it did not come to that");
        std::thread::sleep(Duration::from_millis(20));
    }
}
