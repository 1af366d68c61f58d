//! `mcpact bridge`: arguments, errors, cache and transports.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{ChildStdin, Command, Output, Stdio};
use std::sync::mpsc;

use mcpact_sim::scripted::process::TestProcess;
use serde_json::{Value, json};

const MCPACT: &str = env!("CARGO_BIN_EXE_mcpact");

/// The binary with only `PATH` and its own cache in the environment.
fn mcpact(args: &[&str], cache: &std::path::Path) -> Command {
    let mut command = Command::new(MCPACT);
    command.args(args).env_clear().env("XDG_CACHE_HOME", cache);
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command
}

fn seen(output: &Output) -> String {
    format!(
        "exit code {}\n--- stdout\n{}--- stderr\n{}",
        output.status.code().unwrap(),
        String::from_utf8(output.stdout.clone()).unwrap(),
        String::from_utf8(output.stderr.clone()).unwrap(),
    )
}

macro_rules! snapshots {
    ($($(#[$doc:meta])* $name:ident: $($arg:literal)*;)+) => {
        $(
            $(#[$doc])*
            #[test]
            fn $name() {
                let folder = tempfile::tempdir().unwrap();
                let mut command = mcpact(&["bridge", $($arg),*], folder.path());
                command.env("UNFILLED", "${UNFILLED}").env("EMPTY", "");
                let output = command.stdin(Stdio::null()).output().unwrap();
                insta::assert_snapshot!(seen(&output));
            }
        )+
    };
}

snapshots! {
    help: "--help";
    missing_target: ;
    unsupported_target: "ftp://tickets.example/mcp";
    misspelled_era: "--era" "moderm" "--" "server";
    sse_without_listen: "--sse" "--" "server";
    /// An invalid header is not repeated, because it may be a secret.
    header_without_a_colon: "--header" "canary-4711" "http://127.0.0.1:9/mcp";
    reserved_header: "--header" "Mcp-Session-Id: 1" "http://127.0.0.1:9/mcp";
    header_with_a_missing_variable: "--header" "Authorization: Bearer ${NO_SUCH_TOKEN}" "http://127.0.0.1:9/mcp";
    argument_after_the_url: "http://127.0.0.1:9/mcp" "extra";
    server_name_without_config: "files";
    command_without_dashes: "--config" "Cargo.toml" "--" "server";
    /// The value is not repeated, because it may be the token itself.
    bearer_without_a_source: "--bearer" "canary-4711" "http://127.0.0.1:9/mcp";
    bearer_with_unexpanded_variable: "--bearer" "env:UNFILLED" "http://127.0.0.1:9/mcp";
    empty_bearer: "--bearer" "env:EMPTY" "http://127.0.0.1:9/mcp";
    bearer_and_authorization_header: "--bearer" "env:UNFILLED" "--header" "authorization: canary-4711" "http://127.0.0.1:9/mcp";
    header_for_a_command: "--header" "Authorization: x" "--" "server";
}

/// A bridge on stdio.
struct Running {
    child: TestProcess,
    input: Option<ChildStdin>,
    lines: mpsc::Receiver<String>,
}

impl Running {
    fn start(mut command: Command) -> Self {
        let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = TestProcess::spawn(pipes.stderr(Stdio::piped()));
        let output = BufReader::new(child.stdout.take().unwrap());
        let (say, lines) = mpsc::channel();
        std::thread::spawn(move || {
            for line in output.lines() {
                // The receiver may be dropped.
                let _ = say.send(line.unwrap());
            }
        });
        Self {
            input: child.stdin.take(),
            child,
            lines,
        }
    }

    fn line(&self) -> String {
        let patience = std::time::Duration::from_secs(60);
        self.lines.recv_timeout(patience).unwrap()
    }

    fn ask(&mut self, message: &Value) -> Value {
        writeln!(self.input.as_ref().unwrap(), "{message}").unwrap();
        serde_json::from_str(&self.line()).unwrap()
    }

    /// Closes its input and returns its log.
    fn end(mut self) -> String {
        self.input = None;
        let mut log = String::new();
        let stderr = self.child.stderr.as_mut().unwrap();
        stderr.read_to_string(&mut log).unwrap();
        assert!(self.child.wait().unwrap().success(), "{log}");
        assert!(self.lines.recv().is_err(), "nothing else is on its output");
        log
    }
}

fn initialize(revision: &str) -> Value {
    let params = json!({
        "protocolVersion": revision,
        "capabilities": {},
        "clientInfo": {"name": "t", "version": "1"},
    });
    json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params})
}

/// Returns the error of an unusable server, `(message, reason)`, and the log.
fn refused(target: &[&str]) -> (String, String, String) {
    let folder = tempfile::tempdir().unwrap();
    let args: Vec<&str> = ["bridge"].iter().chain(target).copied().collect();
    let mut running = Running::start(mcpact(&args, folder.path()));
    let answer = running.ask(&initialize("2025-11-25"));
    let error = &answer["error"];
    assert_eq!(error["code"], -32603, "{answer}");
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let (message, reason) = (text(&error["message"]), text(&error["data"]["reason"]));
    let advice = text(&error["data"]["advice"]);
    assert!(message.ends_with(&advice), "{message} with {advice}");
    (message, reason, running.end())
}

/// Serves the same response to every request.
fn stub(answer: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut request = [0; 8192];
            let _ = stream.read(&mut request);
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    format!("http://127.0.0.1:{port}/mcp")
}

const UNAUTHORIZED: &str = "HTTP/1.1 401 Unauthorized\r\nwww-authenticate: Bearer\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
const FORBIDDEN: &str = "HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
const NOT_FOUND: &str =
    "HTTP/1.1 404 Not Found\r\ncontent-length: 4\r\nconnection: close\r\n\r\nnope";
const PAGE: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 13\r\nconnection: close\r\n\r\n<html></html>";
const TROUBLE: &str =
    "HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";

/// The client gets the cause and a hint, the log has the same, and stdout has nothing else.
#[test]
fn unusable_servers_are_reported_with_cause_and_hint() {
    let closed = TcpListener::bind("127.0.0.1:0").unwrap();
    let unused = format!("http://{}/mcp", closed.local_addr().unwrap());
    drop(closed);
    let failing = "echo 'API_KEY is missing' >&2; exit 3";
    let pages = [UNAUTHORIZED, FORBIDDEN, NOT_FOUND, PAGE, TROUBLE].map(stub);
    let mut targets: Vec<Vec<&str>> = vec![
        vec!["--", "no-such-program-4711"],
        vec!["--", "./Cargo.toml"],
        vec!["--", "./src"],
        vec!["--", "sh", "-c", failing],
        vec![&unused],
    ];
    targets.extend(pages.iter().map(|url| vec![url.as_str()]));
    let token = ["--header", "Authorization: Bearer old"];
    let unauthorized = stub(UNAUTHORIZED);
    targets.push(vec![token[0], token[1], &unauthorized]);
    let mut all = String::new();
    for target in targets {
        let (message, reason, log) = refused(&target);
        let is_reported = log.lines().any(|line| {
            let line: Value = serde_json::from_str(line).unwrap();
            let advice = line["advice"].as_str();
            advice.is_some_and(|advice| message.ends_with(advice))
        });
        assert!(is_reported, "{message}: {log}");
        let message = without_ports(&message);
        writeln!(all, "{reason}\n    {message}\n").unwrap();
    }
    insta::assert_snapshot!(all);
}

fn without_ports(text: &str) -> String {
    let mut pieces = text.split("127.0.0.1:");
    let mut clean = pieces.next().unwrap().to_owned();
    for piece in pieces {
        let rest = piece.trim_start_matches(|letter: char| letter.is_ascii_digit());
        write!(clean, "127.0.0.1:PORT{rest}").unwrap();
    }
    clean
}

const CALL: &str = r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo","arguments":{"text":"hello"}}}"#;

/// T2, U6: started by a client, the bridge works, writes nothing to stderr, and exits with its client.
#[test]
fn bridge_is_silent_and_exits_with_its_client() {
    let folder = tempfile::tempdir().unwrap();
    let server = [
        "bridge",
        "--",
        MCPACT,
        "everything",
        "--revisions",
        "2026-07-28",
    ];
    let mut running = Running::start(mcpact(&server, folder.path()));
    let opened = running.ask(&initialize("2025-06-18"));
    assert_eq!(
        opened["result"]["protocolVersion"], "2025-06-18",
        "{opened}"
    );
    let called = running.ask(&serde_json::from_str(CALL).unwrap());
    assert_eq!(called["result"]["content"][0]["text"], "hello", "{called}");
    assert_eq!(running.end(), "");
}

/// The fields are those of the library client.
#[test]
fn log_has_the_negotiation_with_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let server = [
        "bridge",
        "-v",
        "--",
        MCPACT,
        "everything",
        "--revisions",
        "2025-06-18",
    ];
    let mut running = Running::start(mcpact(&server, folder.path()));
    running.ask(&initialize("2025-11-25"));
    let log = running.end();
    let message = log
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let mut negotiated =
        message.filter(|line| line["target"] == "mcpact::negotiation" && line["side"] == "client");
    let line = negotiated.next().unwrap_or_else(|| panic!("{log}"));
    let expected = [
        ("outcome", "agreed"),
        ("status", "ok"),
        ("revision", "2025-06-18"),
        ("era", "legacy"),
        ("method", "initialize"),
        ("client.capabilities", "negotiated"),
    ];
    for (field, value) in expected {
        assert_eq!(line[field], value, "{line}");
    }
    for field in [
        "request_id",
        "transport_id",
        "client.protocol_version",
        "server.info",
    ] {
        assert!(line[field].is_string(), "{field}: {line}");
    }
}

/// Reads the cache of eras.
fn cached(folder: &std::path::Path) -> String {
    std::fs::read_to_string(folder.join("mcpact/verdicts.json")).unwrap_or_default()
}

/// The cache has no arguments of the command, which may be secrets. A damaged cache is rewritten,
/// an unusable one is ignored, and `--no-cache` writes none.
#[test]
fn server_era_is_cached() {
    let folder = tempfile::tempdir().unwrap();
    let server = [MCPACT, "everything", "--revisions", "2025-11-25"];
    let run = |flags: &[&str], cache: &std::path::Path| {
        let args: Vec<&str> = ["bridge"]
            .iter()
            .chain(flags)
            .chain(&server)
            .copied()
            .collect();
        let mut running = Running::start(mcpact(&args, cache));
        let opened = running.ask(&initialize("2025-11-25"));
        assert!(opened["result"].is_object(), "{opened}");
        running.end()
    };
    run(&["--no-cache", "--"], folder.path());
    assert_eq!(cached(folder.path()), "", "nothing is written down");
    run(&["--"], folder.path());
    let known: Value = serde_json::from_str(&cached(folder.path())).unwrap();
    let entries = known.as_object().unwrap();
    assert!(
        entries.values().any(|entry| entry["era"] == "legacy"),
        "{known}"
    );
    assert!(!known.to_string().contains("--revisions"), "{known}");
    let file = folder.path().join("mcpact/verdicts.json");
    std::fs::write(&file, "{ broken").unwrap();
    run(&["--"], folder.path());
    assert!(cached(folder.path()).contains("legacy"), "rewritten");
    // A file instead of the cache directory.
    let nowhere = folder.path().join("file");
    std::fs::write(&nowhere, "").unwrap();
    assert_eq!(run(&["--"], &nowhere), "");
}

/// T5, T7: with `--sse` a 2024-11-05 client uses a modern server, and `--header` values with
/// variables reach an HTTP server.
#[test]
fn sse_client_uses_a_modern_server() {
    let folder = tempfile::tempdir().unwrap();
    let token = "0123456789abcdef-canary";
    let listen = [
        "everything",
        "--listen",
        "127.0.0.1:0",
        "--revisions",
        "2026-07-28",
    ];
    let mut server = mcpact(&listen, folder.path());
    server.env("MCPACT_TOKEN", token);
    let server = Running::start(server);
    let url = server.line();
    let header = "Authorization: Bearer ${SERVER_TOKEN}";
    let bridge = [
        "bridge",
        "--listen",
        "127.0.0.1:0",
        "--sse",
        "--header",
        header,
        &url,
    ];
    let mut bridge = mcpact(&bridge, folder.path());
    bridge.env("SERVER_TOKEN", token);
    let bridge = Running::start(bridge);
    let url = bridge.line();
    let address = url
        .strip_prefix("http://")
        .unwrap()
        .strip_suffix("/mcp")
        .unwrap();
    let mut events = TcpStream::connect(address).unwrap();
    let head = "GET /sse HTTP/1.1\r\nhost: localhost\r\naccept: text/event-stream\r\n\r\n";
    events.write_all(head.as_bytes()).unwrap();
    let mut events = BufReader::new(events).lines();
    let mut data = || loop {
        let line = events.next().unwrap().unwrap();
        if let Some(data) = line.strip_prefix("data: ") {
            return data.to_owned();
        }
    };
    let endpoint = data();
    let post = |message: &Value| {
        let body = message.to_string();
        let length = body.len();
        let mut stream = TcpStream::connect(address).unwrap();
        write!(
            stream,
            "POST {endpoint} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
        )
        .unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).unwrap();
        assert!(reply.starts_with("HTTP/1.1 202"), "{reply}");
    };
    post(&initialize("2024-11-05"));
    let opened: Value = serde_json::from_str(&data()).unwrap();
    assert_eq!(
        opened["result"]["protocolVersion"], "2024-11-05",
        "{opened}"
    );
    post(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    post(&serde_json::from_str(CALL).unwrap());
    let called: Value = serde_json::from_str(&data()).unwrap();
    assert_eq!(called["result"]["content"][0]["text"], "hello", "{called}");
}

/// A server that refuses every request and repeats the token.
fn repeater() -> String {
    let door = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!(
        "http://{}/mcp?key=canary-of-the-query",
        door.local_addr().unwrap()
    );
    std::thread::spawn(move || {
        for mut guest in door.incoming().map_while(Result::ok) {
            let mut lines = BufReader::new(guest.try_clone().unwrap());
            let (mut length, mut token, mut line) = (0, String::new(), String::new());
            while lines.read_line(&mut line).unwrap() > 2 {
                if let Some((name, value)) = line.trim().split_once(": ") {
                    match name {
                        "content-length" => length = value.parse().unwrap(),
                        "authorization" => value.clone_into(&mut token),
                        _ => {}
                    }
                }
                line.clear();
            }
            let mut body = vec![0; length];
            lines.read_exact(&mut body).unwrap();
            let asked: Value = serde_json::from_slice(&body).unwrap_or_default();
            let why = format!("wrong token: {token}, wrong key: canary-of-the-query");
            let error = json!({"code": -32000, "message": why});
            let said = json!({"jsonrpc": "2.0", "id": asked["id"], "error": error}).to_string();
            let length = said.len();
            let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close";
            write!(guest, "{head}\r\ncontent-length: {length}\r\n\r\n{said}").unwrap();
        }
    });
    url
}

/// Headers and URL parts that a server repeats in an error are masked.
#[test]
fn secrets_echoed_by_a_server_are_masked() {
    let folder = tempfile::tempdir().unwrap();
    let url = repeater();
    let header = "Authorization: Bearer ${SERVER_TOKEN}";
    for era in ["legacy", "auto"] {
        let args = [
            "-v",
            "bridge",
            "--no-cache",
            "--era",
            era,
            "--header",
            header,
            &url,
        ];
        let mut command = mcpact(&args, folder.path());
        command.env("SERVER_TOKEN", "canary-of-the-header");
        let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut bridge = pipes.stderr(Stdio::piped()).spawn().unwrap();
        let mut input = bridge.stdin.take().unwrap();
        writeln!(input, "{}", initialize("2025-06-18")).unwrap();
        drop(input);
        let message = seen(&bridge.wait_with_output().unwrap());
        assert!(
            message.contains("wrong token: ***, wrong key: ***"),
            "{era}: {message}"
        );
        assert!(!message.contains("canary"), "{era}: {message}");
    }
}
