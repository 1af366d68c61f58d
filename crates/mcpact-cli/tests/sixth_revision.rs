//! A revision that is added to the tables is bridged to all others.
//!
//! The feature `pretend-revision` adds a sixth, modern revision: the fifth with the method
//! `tools/describe`, without `icons` of tools, and with -32002 for missing resources.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{ChildStdin, ChildStdout, Command, Stdio};

use mcpact_sim::scripted::process::TestProcess;
use mcpact_spec::{Era, ErrorCode, Revision};
use serde_json::{Value, json};

const MCPACT: &str = env!("CARGO_BIN_EXE_mcpact");
const SIXTH: Revision = Revision::V2099_01_01;

/// A client on stdio of a bridge to the reference server.
struct Peer {
    revision: Revision,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    _process: TestProcess,
}

impl Peer {
    fn new(client: Revision, server: Revision) -> Self {
        let mut command = Command::new(MCPACT);
        let server = [MCPACT, "everything", "--revisions", server.as_str()];
        command.args(["bridge", "--no-cache", "--"]).args(server);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut process = TestProcess::spawn(&mut command);
        let mut peer = Self {
            revision: client,
            input: process.stdin.take().unwrap(),
            output: BufReader::new(process.stdout.take().unwrap()),
            _process: process,
        };
        if client.era() == Era::Legacy {
            let info = json!({"name": "t", "version": "1"});
            let params =
                json!({"protocolVersion": client.as_str(), "capabilities": {}, "clientInfo": info});
            let opened = peer.ask("initialize", params);
            assert_eq!(
                opened["result"]["protocolVersion"],
                client.as_str(),
                "{opened}"
            );
            peer.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        }
        peer
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.input, "{message}").unwrap();
    }

    /// Sends a request and returns its response.
    fn ask(&mut self, method: &str, mut params: Value) -> Value {
        if self.revision.era() == Era::Modern {
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": self.revision.as_str(),
                "io.modelcontextprotocol/clientCapabilities": {},
            });
        }
        self.send(&json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}));
        loop {
            let mut line = String::new();
            self.output.read_line(&mut line).unwrap();
            let answer: Value = serde_json::from_str(&line).unwrap();
            if answer["id"] == 1 {
                return answer;
            }
        }
    }
}

#[test]
fn the_sixth_revision_is_bridged_to_all_others() {
    for other in Revision::ALL {
        for (client, server) in [(SIXTH, other), (other, SIXTH)] {
            let mut peer = Peer::new(client, server);
            let arguments = json!({"name": "echo", "arguments": {"text": "hello"}});
            let called = peer.ask("tools/call", arguments);
            let text = &called["result"]["content"][0]["text"];
            assert_eq!(text, "hello", "{client} {server}: {called}");
            let described = peer.ask("tools/describe", json!({}));
            assert_eq!(
                described["error"]["code"], -32601,
                "{client} {server}: {described}"
            );
            let missing = peer.ask("resources/read", json!({"uri": "test://none"}));
            let code = match ErrorCode::ResourceNotFound.emitted_in(client) {
                true => ErrorCode::ResourceNotFound,
                false => ErrorCode::InvalidParams,
            };
            assert_eq!(
                missing["error"]["code"],
                code.code(),
                "{client} {server}: {missing}"
            );
        }
    }
}
