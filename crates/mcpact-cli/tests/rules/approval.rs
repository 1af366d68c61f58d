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

/// What a config that was merely found wants to start is shown and started only after a yes; then
/// at once. Another argument, another folder or another program at the same place needs another yes.
#[tokio::test(flavor = "multi_thread")]
async fn a_found_config_starts_nothing_by_itself() {
    let place = Place::new();
    place.configure("mcpact.toml", CONFIG);
    let running = place.serve(&[]);
    let client = running.client(Revision::V2026_07_28).await;
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
    let client = running.client(Revision::V2026_07_28).await;
    let why = echo(&client).await.unwrap_err();
    assert!(why.contains("not approved"), "{why}");
    assert!(!place.was_started());
    assert_ne!(mark(&place), first);
}

/// A config that was merely found sends no value of a variable or file anywhere before a yes, and the server
/// is not even contacted; the yes is for the address and the places of the values, and shows no value.
#[tokio::test(flavor = "multi_thread")]
async fn a_found_config_sends_nothing_of_this_machine_by_itself() {
    let place = Place::new();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    fs::write(place.path().join("key"), "from-a-file").unwrap();
    let text = json!({"mcpServers": {"a": {"url": url, "headers": {
        "X-Variable": "Bearer ${SOME_KEY}", "X-File": "${file:key}", "X-Plain": "plain",
    }}}});
    place.configure(".mcp.json", &text.to_string());
    let with_key = |args: &[&str]| {
        let mut command = place.command(args);
        command.env("SOME_KEY", "hunter2-hunter2");
        command
    };
    let noted = said(&with_key(&["check"]).output().unwrap());
    assert!(noted.contains("mcpact approve"), "{noted}");
    let running = Running::start(with_key(&["serve", "--listen", "127.0.0.1:0"]));
    let client = running.client(Revision::V2026_07_28).await;
    let why = echo(&client).await.unwrap_err();
    assert!(why.contains("nothing was sent"), "{why}");
    assert!(why.contains("mcpact approve"), "{why}");
    listener.set_nonblocking(true).unwrap();
    let nobody = listener.accept().unwrap_err();
    assert_eq!(nobody.kind(), std::io::ErrorKind::WouldBlock);

    let shown = with_key(&["approve"]).output().unwrap();
    assert_eq!(shown.status.code(), Some(7), "{}", said(&shown));
    let shown = said(&shown);
    for words in [&*url, "${SOME_KEY} as `X-Variable`", "key} as `X-File`"] {
        assert!(shown.contains(words), "{shown}");
    }
    for secret in ["hunter2", "from-a-file"] {
        assert!(!shown.contains(secret), "{shown}");
    }
    let line = shown.lines().find(|line| line.contains("mark")).unwrap();
    let mark = line.split_whitespace().last().unwrap();
    let mut approving = with_key(&["approve", "--mark", mark]);
    // Another value is no other place.
    approving.env("SOME_KEY", "hunter3-hunter3");
    let approved = approving.output().unwrap();
    assert_eq!(approved.status.code(), Some(0), "{}", said(&approved));
    listener.set_nonblocking(false).unwrap();
    let calling = tokio::spawn(async move { echo(&client).await });
    let request = tokio::task::spawn_blocking(move || {
        use std::io::Read as _;
        let (mut stream, _) = listener.accept().unwrap();
        let mut text = String::new();
        let mut chunk = [0; 4096];
        while !text.contains("\r\n\r\n") {
            let read = stream.read(&mut chunk).unwrap();
            assert_ne!(read, 0, "{text}");
            text.push_str(&String::from_utf8_lossy(&chunk[..read]));
        }
        text
    });
    let request = request.await.unwrap();
    for value in ["Bearer hunter2-hunter2", "from-a-file", "plain"] {
        assert!(request.contains(value), "{request}");
    }
    calling.abort();
}

/// Neither the answers of a config that was merely found nor what a server is asked for its health carry a
/// value of this machine to an address before a yes, and a command that was approved without them needs another one.
#[tokio::test(flavor = "multi_thread")]
async fn a_found_config_tells_nothing_of_this_machine_by_any_key() {
    let place = Place::new();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let url = format!("url = \"http://{}/mcp\"", listener.local_addr().unwrap());
    fs::write(place.path().join("key"), "from-a-file").unwrap();
    let told = [
        "answers = { sampling = \"${file:key}\" }",
        "answers = { roots = [\"file:///${HOME}\"] }",
        "health = \"tool:${HOME}\"\nhealth_seconds = 0.1\nmin_ready = 1",
    ];
    let everywhere = "[gateway.answers]\nsampling = \"${HOME}\"\n";
    let by_server = told.map(|told| format!("[servers.a]\n{url}\n{told}\n"));
    let by_gateway = format!("{everywhere}[servers.a]\n{url}\n");
    for text in by_server.iter().chain([&by_gateway]) {
        place.configure("mcpact.toml", text);
        let running = place.serve(&[]);
        let client = running.client(Revision::V2026_07_28).await;
        let why = echo(&client).await.unwrap_err();
        assert!(why.contains("nothing was sent"), "{text}: {why}");
        let nobody = listener.accept().unwrap_err();
        assert_eq!(nobody.kind(), std::io::ErrorKind::WouldBlock, "{text}");
    }

    place.configure("mcpact.toml", CONFIG);
    let approved = place.run(&["approve", "--mark", &mark(&place)]);
    assert_eq!(approved.status.code(), Some(0), "{}", said(&approved));
    let by_server = told.map(|told| format!("{CONFIG}{told}\n"));
    let by_gateway = format!("{everywhere}{CONFIG}");
    for text in by_server.iter().chain([&by_gateway]) {
        place.configure("mcpact.toml", text);
        let shown = place.run(&["approve"]);
        assert_eq!(shown.status.code(), Some(7), "{text}: {}", said(&shown));
        assert!(said(&shown).contains("is sent"), "{}", said(&shown));
    }
}

/// Whoever names a config agrees to what it starts, unless only approved commands are wanted.
#[tokio::test(flavor = "multi_thread")]
async fn a_named_config_is_agreed_to() {
    let place = Place::new();
    place.configure("named.toml", CONFIG);
    let running = place.serve(&["--config", "named.toml", "--approved-only"]);
    let client = running.client(Revision::V2026_07_28).await;
    assert!(echo(&client).await.unwrap_err().contains("not approved"));
    assert!(!place.was_started());
    drop(running);
    let running = place.serve(&["--config", "named.toml"]);
    let client = running.client(Revision::V2026_07_28).await;
    assert_eq!(echo(&client).await.as_deref(), Ok("x"));
}

/// A server that is known from an earlier run and not approved in this one does not look as if the next call
/// would start it.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_known_and_not_approved_is_told() {
    let place = Place::new();
    place.configure("named.toml", CONFIG);
    let running = place.serve(&["--config", "named.toml"]);
    let client = running.client(Revision::V2026_07_28).await;
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

/// A yes is noticed without a call.
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
