//! Ambiguous requests through the entrances of the program other than HTTP.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{ChildStdin, ChildStdout, Command, Stdio};

use mcpact_sim::scripted::message::initialize;
use mcpact_sim::scripted::process::TestProcess;
use mcpact_transport::http::client::HttpSettings;
use mcpact_transport::link::Link;
use mcpact_transport::websocket;
use mcpact_wire::frame::ndjson::Line;
use serde_json::{Value, json};

use crate::harness::Harness;

/// Client on a stream.
enum Peer {
    Stdio {
        _process: TestProcess,
        input: ChildStdin,
        output: BufReader<ChildStdout>,
    },
    WebSocket(Box<Link>),
}

impl Peer {
    fn stdio(mut command: Command) -> Self {
        let command = command.stdin(Stdio::piped()).stderr(Stdio::null());
        let mut process = TestProcess::spawn(command);
        Self::Stdio {
            input: process.stdin.take().unwrap(),
            output: BufReader::new(process.stdout.take().unwrap()),
            _process: process,
        }
    }

    async fn send(&mut self, line: &str) {
        match self {
            Self::Stdio { input, .. } => writeln!(input, "{line}").unwrap(),
            Self::WebSocket(link) => {
                link.sink.push(line);
                link.sink.flush().await.unwrap();
            }
        }
    }

    /// Returns the response with this id, also from a batch.
    async fn response(&mut self, id: u32) -> Value {
        loop {
            let message = self.message().await;
            let all = message.as_array().cloned().unwrap_or(vec![message]);
            let found = all.into_iter().find(|message| message["id"] == id);
            if let Some(found) = found {
                return found;
            }
        }
    }

    async fn message(&mut self) -> Value {
        match self {
            Self::Stdio { output, .. } => {
                let mut line = String::new();
                output.read_line(&mut line).unwrap();
                serde_json::from_str(&line).unwrap()
            }
            Self::WebSocket(link) => loop {
                if let Some(Line::Json(line)) = link.source.next_line() {
                    return serde_json::from_slice(line).unwrap();
                }
                assert!(link.source.fill().await.unwrap(), "connection closed");
            },
        }
    }
}

/// Parameters that pass, and those that do not.
const DIRECT: (&str, &[&str]) = (
    r#""name":"a__echo","arguments":{"text":"a"}"#,
    &[
        r#""name":"a__echo","Name":"a__die","arguments":{"text":"a"}"#,
        r#""name":"a__echo","arguments":{"text":"a","t\u0065xt":"b"}"#,
        r#""name":"a__echo","arguments":{"text":"a"},"_meta":{"x":[{"y":1,"y":2}]}"#,
    ],
);

/// The same for a call by `call_tool`.
const INDIRECT: (&str, &[&str]) = (
    r#""name":"call_tool","arguments":{"name":"a__echo","arguments":{"text":"a"}}"#,
    &[
        r#""name":"call_tool","arguments":{"name":"a__echo","n\u0061me":"a__die"}"#,
        r#""name":"call_tool","arguments":{"name":"a__echo","arguments":{"text":"a","text":"b"}}"#,
        r#""name":"call_tool","Arguments":{},"arguments":{"name":"a__echo","arguments":{"text":"a"}}"#,
    ],
);

/// The same for a request that names a task.
const TASK: (&str, &[&str]) = (
    r#""taskId":"x""#,
    &[
        r#""taskId":"x","TaskId":"y""#,
        r#""taskId":"x","z":{"y":1,"y":2}"#,
    ],
);

/// Asserts that ambiguous requests are refused, and the other one passes.
async fn assert_refused(
    peer: &mut Peer,
    what: &str,
    version: &str,
    method: &str,
    (innocent, attacks): (&str, &[&str]),
) {
    let opening = initialize(0, version, json!({})).to_string();
    peer.send(&opening).await;
    let opened = peer.response(0).await;
    assert_eq!(opened["result"]["protocolVersion"], version, "{what}");
    peer.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#)
        .await;
    let request = |id: u32, params: &str| {
        format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{{params}}}}}"#)
    };
    for attack in attacks {
        match version {
            "2025-03-26" => {
                let batch = format!("[{},{}]", request(1, innocent), request(2, attack));
                peer.send(&batch).await;
            }
            _ => peer.send(&request(2, attack)).await,
        }
        let refused = peer.response(2).await;
        let error = &refused["error"];
        assert_eq!(error["code"], -32602, "{what}: {attack}: {refused}");
        let reason = &error["data"]["reason"];
        assert_eq!(reason, "request_ambiguous", "{what}: {attack}: {refused}");
    }
    peer.send(&request(3, innocent)).await;
    let passed = peer.response(3).await;
    let reason = &passed["error"]["data"]["reason"];
    assert_ne!(reason, "request_ambiguous", "{what}: {passed}");
    if method == "tools/call" {
        let text = &passed["result"]["content"][0]["text"];
        assert_eq!(text, "a", "{what}: {passed}");
    }
}

/// On stdio, in a batch, by `call_tool`, through `mcpact bridge` and on a WebSocket.
#[tokio::test(flavor = "multi_thread")]
async fn every_entrance_refuses_ambiguous_requests() {
    let harness = Harness::new();
    let config = "[servers.a]\ncommand = \"SERVER\"\n";
    harness.configure(
        "own.toml",
        &format!("[gateway]\nwebsocket = true\n{config}"),
    );
    let search = format!("[gateway.tools]\nmode = \"search\"\n{config}");
    harness.configure("search.toml", &search);
    let server = harness.server().display().to_string();
    let serve = |config| harness.command(&["serve", "--stdio", "--config", config]);
    let bridge = harness.command(&["bridge", "--no-cache", "--", &server]);
    for (what, command, version, method, params) in [
        (
            "stdio",
            serve("own.toml"),
            "2025-11-25",
            "tools/call",
            DIRECT,
        ),
        (
            "batch",
            serve("own.toml"),
            "2025-03-26",
            "tools/call",
            DIRECT,
        ),
        (
            "search",
            serve("search.toml"),
            "2025-11-25",
            "tools/call",
            INDIRECT,
        ),
        ("bridge", bridge, "2025-11-25", "tasks/get", TASK),
    ] {
        let mut peer = Peer::stdio(command);
        assert_refused(&mut peer, what, version, method, params).await;
    }
    let running = harness.serve(&["--config", "own.toml"]);
    let url = running
        .url
        .replace("http://", "ws://")
        .replace("/mcp", "/ws");
    let link = websocket::connect(&url, &HttpSettings::default()).await;
    let mut peer = Peer::WebSocket(Box::new(link.unwrap()));
    assert_refused(&mut peer, "WebSocket", "2025-11-25", "tools/call", DIRECT).await;
}
