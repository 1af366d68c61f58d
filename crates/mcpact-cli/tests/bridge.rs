//! `mcpact bridge`, as the config of a client or a person starts it.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, ChildStdin, Command, Output, Stdio};
use std::sync::mpsc;

use serde_json::{Value, json};

const MCPACT: &str = env!("CARGO_BIN_EXE_mcpact");

/// The binary with nothing but programs to find and a cache of its own in its environment.
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
    no_target: ;
    target_that_is_neither: "ftp://tickets.example/mcp";
    era_that_is_nearly_one: "--era" "moderm" "--" "server";
    sse_without_an_address: "--sse" "--" "server";
    /// A header that is none is not repeated, for it may be a secret.
    header_without_a_colon: "--header" "canary-4711" "http://127.0.0.1:9/mcp";
    header_of_the_protocol: "--header" "Mcp-Session-Id: 1" "http://127.0.0.1:9/mcp";
    header_with_a_missing_variable: "--header" "Authorization: Bearer ${NO_SUCH_TOKEN}" "http://127.0.0.1:9/mcp";
    option_behind_an_address: "http://127.0.0.1:9/mcp" "--no-cache";
    /// A token that stands where its place should be is not shown.
    bearer_that_is_no_place: "--bearer" "canary-4711" "http://127.0.0.1:9/mcp";
    bearer_that_nobody_filled_in: "--bearer" "env:UNFILLED" "http://127.0.0.1:9/mcp";
    bearer_that_is_empty: "--bearer" "env:EMPTY" "http://127.0.0.1:9/mcp";
    bearer_beside_its_header: "--bearer" "env:UNFILLED" "--header" "authorization: canary-4711" "http://127.0.0.1:9/mcp";
    header_for_a_program: "--header" "Authorization: x" "--" "server";
}

/// A bridge on pipes.
struct Running {
    child: Child,
    input: Option<ChildStdin>,
    lines: mpsc::Receiver<String>,
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Running {
    fn start(mut command: Command) -> Self {
        let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = pipes.stderr(Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let (say, lines) = mpsc::channel();
        std::thread::spawn(move || {
            for line in output.lines() {
                // Whoever listened may have gone.
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

    /// Closes its input, and gives everything that it wrote to its log.
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

/// What a client is told when it uses a server that cannot be used: `(message, reason)`, and the log.
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

/// Answers everything on this port with the same bytes.
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

/// Whatever makes a server unusable, its client is told the cause and what to do about it, the log
/// says the same, and nothing else is on standard output.
#[test]
fn every_refusal_names_cause_and_remedy() {
    let closed = TcpListener::bind("127.0.0.1:0").unwrap();
    let nobody = format!("http://{}/mcp", closed.local_addr().unwrap());
    drop(closed);
    let failing = "echo 'API_KEY is missing' >&2; exit 3";
    let pages = [UNAUTHORIZED, FORBIDDEN, NOT_FOUND, PAGE, TROUBLE].map(stub);
    let mut targets: Vec<Vec<&str>> = vec![
        vec!["--", "no-such-program-4711"],
        vec!["--", "./Cargo.toml"],
        vec!["--", "./src"],
        vec!["--", "sh", "-c", failing],
        vec![&nobody],
    ];
    targets.extend(pages.iter().map(|url| vec![url.as_str()]));
    let token = ["--header", "Authorization: Bearer old"];
    let unauthorized = stub(UNAUTHORIZED);
    targets.push(vec![token[0], token[1], &unauthorized]);
    let mut all = String::new();
    for target in targets {
        let (message, reason, log) = refused(&target);
        let is_told = log.lines().any(|line| {
            let line: Value = serde_json::from_str(line).unwrap();
            let advice = line["advice"].as_str();
            advice.is_some_and(|advice| message.ends_with(advice))
        });
        assert!(is_told, "{message}: {log}");
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

/// T2: pasted into the config of a client as it is, a bridge works, is silent on standard error, and
/// ends with its client.
#[test]
fn it_is_quiet_in_the_config_of_a_client() {
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

/// What was negotiated with the server is in the log, with the fields that the library's own
/// client has.
#[test]
fn the_log_tells_what_was_negotiated_with_the_server() {
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
    let told = log
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let mut negotiated =
        told.filter(|line| line["target"] == "mcpact::negotiation" && line["side"] == "client");
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

/// What is in the cache of eras.
fn cached(folder: &std::path::Path) -> String {
    std::fs::read_to_string(folder.join("mcpact/verdicts.json")).unwrap_or_default()
}

/// The era of a server is remembered for the next run, without the arguments of its command, which
/// may be secrets; a broken cache is written anew, one that cannot be used does not matter, and with
/// `--no-cache` there is none.
#[test]
fn the_era_of_a_server_is_remembered() {
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
    assert!(cached(folder.path()).contains("legacy"), "written anew");
    // A file stands where the folder should be.
    let nowhere = folder.path().join("file");
    std::fs::write(&nowhere, "").unwrap();
    assert_eq!(run(&["--"], &nowhere), "");
}

/// T5, T7: with `--sse` a client of 2024-11-05 uses a modern server on the oldest transport, and the
/// headers that were asked for reach a server on HTTP, filled in from variables.
#[test]
fn the_oldest_transport_leads_to_the_newest_server() {
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

/// A server that refuses everything, and repeats by which token it was asked.
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

/// What a server was given in a header or its address, and repeats when it refuses to agree, is told to nobody.
#[test]
fn what_a_server_repeats_of_its_headers_is_covered() {
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
        let told = seen(&bridge.wait_with_output().unwrap());
        assert!(
            told.contains("wrong token: ***, wrong key: ***"),
            "{era}: {told}"
        );
        assert!(!told.contains("canary"), "{era}: {told}");
    }
}
