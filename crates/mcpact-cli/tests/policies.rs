//! Protocol policies at `everything`, `bridge` and `serve`: one test for each row of the table in `docs/manual/policies.md`.
#![expect(clippy::unwrap_used, reason = "a broken expectation is a failed test")]

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{ChildStdin, ChildStdout, Command, Stdio};

use mcpact_sim::scripted::process::{TestProcess, exchange};
use serde_json::{Value, json};
use tempfile::TempDir;

const MCPACT: &str = env!("CARGO_BIN_EXE_mcpact");

/// A command with a policy, and a client on its stdio.
struct Peer {
    name: &'static str,
    _child: TestProcess,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    _folder: TempDir,
}

fn command(args: &[&str], folder: &TempDir) -> Command {
    let mut command = Command::new(MCPACT);
    command.args(args).current_dir(folder.path());
    for (variable, name) in [
        ("XDG_CACHE_HOME", "cache"),
        ("XDG_RUNTIME_DIR", "run"),
        ("XDG_STATE_HOME", "state"),
    ] {
        command.env(variable, folder.path().join(name));
    }
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    command
}

/// Starts all three commands with the same settings: the flags of `everything` and `bridge`, and the keys of `[gateway]`.
fn peers(settings: &[&str], keys: &str) -> [Peer; 3] {
    let flags = settings.iter().flat_map(|setting| ["--policy", setting]);
    let flags: Vec<&str> = flags.collect();
    let everything = [&["everything"][..], &flags].concat();
    let target = ["--no-cache", "--", MCPACT, "everything"];
    let bridge = [&["bridge"][..], &flags, &target].concat();
    let serve = ["serve", "--stdio", "--no-cache", "--config", "mcpact.toml"];
    [
        ("everything", &everything[..]),
        ("bridge", &bridge),
        ("serve", &serve),
    ]
    .map(|(name, args)| {
        let folder = tempfile::tempdir().unwrap();
        let config = format!("[gateway]\n{keys}\n[servers.all]\nbuiltin = \"everything\"\n");
        std::fs::write(folder.path().join("mcpact.toml"), config).unwrap();
        let mut child = TestProcess::spawn(&mut command(args, &folder));
        Peer {
            name,
            input: child.stdin.take().unwrap(),
            output: BufReader::new(child.stdout.take().unwrap()),
            _child: child,
            _folder: folder,
        }
    })
}

impl Peer {
    fn send(&mut self, message: &Value) {
        writeln!(self.input, "{message}").unwrap();
    }

    /// Sends a message and returns the next one that is no notification.
    fn ask(&mut self, message: &Value) -> Value {
        self.send(message);
        self.next()
    }

    fn next(&mut self) -> Value {
        loop {
            let mut line = String::new();
            assert_ne!(
                self.output.read_line(&mut line).unwrap(),
                0,
                "{}",
                self.name
            );
            let reply: Value = serde_json::from_str(&line).unwrap();
            if reply.get("method").is_none() {
                return reply;
            }
        }
    }

    fn initialize(&mut self, version: &str, capabilities: Value) -> Value {
        self.ask(&initialize(version, capabilities))
    }

    /// Opens a legacy session.
    fn open(&mut self, version: &str, capabilities: Value) -> Value {
        let reply = self.initialize(version, capabilities);
        assert!(reply.get("result").is_some(), "{}: {reply}", self.name);
        self.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        reply["result"].clone()
    }
}

fn initialize(version: &str, capabilities: Value) -> Value {
    request(
        1,
        "initialize",
        json!({
            "protocolVersion": version,
            "capabilities": capabilities,
            "clientInfo": {"name": "t", "version": "1"},
        }),
    )
}

fn request(id: u32, method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

/// N23, C13, C14, C15: with `announce_extras` clients get the values of this entrance; by default there are none.
#[test]
fn announced_extras_are_the_own_values() {
    let settings = [
        "announce_extras=true",
        "max_batch_size=7",
        "revisions=2025-03-26,2025-11-25",
    ];
    let keys =
        "announce_extras = true\nmax_batch_size = 7\nrevisions = [\"2025-03-26\", \"2025-11-25\"]";
    for mut peer in peers(&settings, keys) {
        let name = peer.name;
        let declared = &peer.initialize("2025-03-26", json!({}))["result"]["capabilities"];
        let ours = json!(["2025-11-25", "2025-03-26"]);
        assert_eq!(declared["supportedProtocolVersions"], ours, "{name}");
        assert_eq!(declared["maxBatchSize"], 7, "{name}");
        let levels = declared["logging"]["levels"].as_array().unwrap();
        assert_eq!(levels.len(), 8, "{name}");
    }
    for mut peer in peers(&[], "") {
        let declared = &peer.initialize("2025-03-26", json!({}))["result"]["capabilities"];
        for path in [
            "/supportedProtocolVersions",
            "/maxBatchSize",
            "/logging/levels",
        ] {
            assert_eq!(declared.pointer(path), None, "{}", peer.name);
        }
    }
}

/// N23, C13, C14: the extras of an upstream server are not passed on.
#[test]
fn extras_of_an_upstream_server_are_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let target = [
        "--no-cache",
        "--",
        MCPACT,
        "everything",
        "--policy",
        "announce_extras=true",
        "--policy",
        "max_batch_size=3",
        "--revisions",
        "2025-03-26",
    ];
    for (flags, expected) in [
        (&[][..], None),
        (&["--policy", "announce_extras=true"], Some(100)),
    ] {
        let args = [&["bridge"][..], flags, &target].concat();
        let mut child = TestProcess::spawn(&mut command(&args, &folder));
        let mut input = child.stdin.take().unwrap();
        writeln!(input, "{}", initialize("2025-03-26", json!({}))).unwrap();
        let reply: Value = serde_json::from_str(&child.first_line()).unwrap();
        let declared = &reply["result"]["capabilities"];
        assert_eq!(
            declared.get("maxBatchSize").and_then(Value::as_u64),
            expected
        );
    }
}

/// C14: a batch above `max_batch_size` is rejected as a whole.
#[test]
fn batches_are_limited() {
    for mut peer in peers(&["max_batch_size=2"], "max_batch_size = 2") {
        peer.open("2025-03-26", json!({}));
        let list = |id| request(id, "tools/list", json!({}));
        let reply = peer.ask(&json!([list(2), list(3), list(4)]));
        assert_eq!(reply["error"]["code"], -32600, "{}: {reply}", peer.name);
        let detail = &reply["error"]["data"]["detail"];
        assert_eq!(
            detail, "a batch may hold at most 2 messages",
            "{}",
            peer.name
        );
        peer.send(&json!([list(5), list(6)]));
        let mut answered = [peer.next(), peer.next()].map(|reply| reply["id"].clone());
        answered.sort_by_key(Value::to_string);
        assert_eq!(answered, [5, 6], "{}", peer.name);
    }
}

/// `serve` takes the same flags, which override the config.
#[test]
fn flags_override_the_config() {
    let folder = tempfile::tempdir().unwrap();
    let config = "[gateway]\nannounce_extras = true\nmax_batch_size = 7\n[servers.all]\nbuiltin = \"everything\"\n";
    std::fs::write(folder.path().join("mcpact.toml"), config).unwrap();
    let flags = [
        "serve",
        "--stdio",
        "--config",
        "mcpact.toml",
        "--policy",
        "max_batch_size=9",
    ];
    let mut child = TestProcess::spawn(&mut command(&flags, &folder));
    let mut input = child.stdin.take().unwrap();
    writeln!(input, "{}", initialize("2025-03-26", json!({}))).unwrap();
    let reply: Value = serde_json::from_str(&child.first_line()).unwrap();
    assert_eq!(
        reply["result"]["capabilities"]["maxBatchSize"], 9,
        "{reply}"
    );
}

/// N5, N23, L10: the policy of a gateway holds at all of its HTTP endpoints.
#[test]
fn policy_holds_at_every_endpoint() {
    let folder = tempfile::tempdir().unwrap();
    let config = "[gateway]\nlisten = \"127.0.0.1:0\"\nrevisions = [\"2025-03-26\"]\nunsupported_version = \"reject\"\n\
        early_requests = \"reject\"\nannounce_extras = true\nmax_batch_size = 7\n\
        [servers.all]\nbuiltin = \"everything\"\ntags = [\"work\"]\n";
    std::fs::write(folder.path().join("mcpact.toml"), config).unwrap();
    let mut started = command(&["serve", "--config", "mcpact.toml"], &folder);
    let (_gateway, url) = TestProcess::listening(started.stderr(Stdio::piped()));
    let address = url.strip_prefix("http://").unwrap();
    let address = address.split('/').next().unwrap();
    let json_type =
        "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n";
    for path in ["/mcp", "/servers/all/mcp", "/tags/work/mcp"] {
        let post = |headers: &str, message: &Value| {
            exchange("POST", address, path, headers, &message.to_string())
        };
        let rejected = post(json_type, &initialize("2025-11-25", json!({})));
        assert!(
            rejected.contains("Unsupported protocol version"),
            "{path}: {rejected}"
        );
        let opened = post(json_type, &initialize("2025-03-26", json!({})));
        assert!(opened.contains(r#""maxBatchSize":7"#), "{path}: {opened}");
        let session = opened
            .lines()
            .find_map(|line| line.strip_prefix("mcp-session-id: "));
        let headers = format!("{json_type}Mcp-Session-Id: {}\r\n", session.unwrap().trim());
        let early = post(&headers, &request(2, "tools/list", json!({})));
        assert!(early.contains("not_initialized"), "{path}: {early}");
    }
}

/// Returns the usage error of a command.
fn usage_error(args: &[&str]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let output = command(args, &folder)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2), "{args:?}");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn invalid_settings_fail_at_start() {
    for command in [
        &["everything"][..],
        &["serve"],
        &["bridge", "http://127.0.0.1:9/mcp"],
    ] {
        let (name, rest) = command.split_first().unwrap();
        let with = |flags: &[&str]| usage_error(&[&[*name], flags, rest].concat());
        let stderr = with(&["--profile", "erlang"]);
        assert!(
            stderr.contains("error: unknown value `erlang` for `profile`"),
            "{stderr}"
        );
        let stderr = with(&["--policy", "max_batch=1"]);
        assert!(
            stderr.contains("error: unknown protocol setting `max_batch`"),
            "{stderr}"
        );
        assert!(
            stderr.contains("did you mean `max_batch_size`?"),
            "{stderr}"
        );
    }
}

/// Text of an error, its code and its data.
fn error(reply: &Value) -> (i64, &str, &Value) {
    let error = &reply["error"];
    let code = error["code"].as_i64().unwrap_or_default();
    (
        code,
        error["message"].as_str().unwrap_or_default(),
        &error["data"],
    )
}

/// N5, N35, C1: `mcpv-strict` and `revisions` with `unsupported_version = "reject"` accept one version.
#[test]
fn exact_version_rejects_every_other() {
    let rejecting = ["revisions=2025-11-25", "unsupported_version=reject"];
    let keys = "revisions = [\"2025-11-25\"]\nunsupported_version = \"reject\"";
    let by_profile = peers(&["profile=mcpv-strict"], "profile = \"mcpv-strict\"");
    for mut peer in peers(&rejecting, keys).into_iter().chain(by_profile) {
        for version in ["2025-06-18", "2026-07-28", "1.0.0"] {
            let reply = peer.initialize(version, json!({}));
            let data = json!({"supported": ["2025-11-25"], "requested": version});
            let expected = (-32602, "Unsupported protocol version", &data);
            assert_eq!(error(&reply), expected, "{}", peer.name);
        }
        let reply = peer.open("2025-11-25", json!({}));
        assert_eq!(reply["protocolVersion"], "2025-11-25");
    }
}

/// N4, C1: by default a version that is not served gets a counter-offer.
#[test]
fn unsupported_version_gets_a_counter_offer() {
    for mut peer in peers(&["revisions=2025-11-25"], "revisions = [\"2025-11-25\"]") {
        let reply = peer.open("2025-06-18", json!({}));
        assert_eq!(reply["protocolVersion"], "2025-11-25", "{}", peer.name);
    }
    let counter_offer = ["profile=mcpv-strict", "unsupported_version=counter-offer"];
    let keys = "profile = \"mcpv-strict\"\nunsupported_version = \"counter-offer\"";
    for mut peer in peers(&counter_offer, keys) {
        let reply = peer.open("2025-06-18", json!({}));
        assert_eq!(reply["protocolVersion"], "2025-11-25", "{}", peer.name);
    }
}

/// N6, N7, N35, C1: a range of dates, with the error texts of erlmcp.
#[test]
fn version_range_rejects_older_and_newer_dates() {
    let range = [
        "version_range=2025-01-01..2025-06-18",
        "unsupported_version=reject",
    ];
    let keys = "version_range = \"2025-01-01..2025-06-18\"\nunsupported_version = \"reject\"";
    let by_profile = peers(&["profile=erlmcp"], "profile = \"erlmcp\"");
    for mut peer in peers(&range, keys).into_iter().chain(by_profile) {
        for (version, text) in [
            (json!("2024-06-18"), "Protocol version too old"),
            (json!("2024-12-31"), "Protocol version too old"),
            (json!("2025-06-19"), "Protocol version not yet supported"),
            (json!("2099-01-01"), "Protocol version not yet supported"),
            (json!("1.0.0"), "Invalid protocol version format"),
            (json!(7), "Invalid protocol version format"),
        ] {
            let mut message = initialize("", json!({}));
            message["params"]["protocolVersion"] = version;
            let reply = peer.ask(&message);
            let (code, message, data) = error(&reply);
            assert_eq!((code, message), (-32602, text), "{}: {reply}", peer.name);
            if text.starts_with("Protocol") {
                assert_eq!(data["supported"], json!(["2025-06-18", "2025-03-26"]));
            }
        }
        // A date within the range that is no revision gets the newest one of the range.
        let reply = peer.open("2025-01-01", json!({}));
        assert_eq!(reply["protocolVersion"], "2025-06-18", "{}", peer.name);
    }
}

/// A range that contains the modern revision serves it as well.
#[test]
fn version_range_applies_to_modern_requests() {
    let modern = request(
        1,
        "tools/list",
        json!({"_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        }}),
    );
    for (range, is_served) in [
        ("2025-06-18..2026-12-31", true),
        ("2025-06-18..2026-01-01", false),
    ] {
        let keys = format!("version_range = \"{range}\"");
        for mut peer in peers(&[&format!("version_range={range}")], &keys) {
            let reply = peer.ask(&modern);
            assert_eq!(
                reply.get("result").is_some(),
                is_served,
                "{}: {reply}",
                peer.name
            );
        }
    }
}

/// N8, C2: a missing version is an error that names the member, or the newest served one.
#[test]
fn missing_version_is_rejected_or_assumed() {
    let mut message = initialize("", json!({}));
    message["params"]
        .as_object_mut()
        .unwrap()
        .remove("protocolVersion");
    for mut peer in peers(&[], "") {
        let reply = peer.ask(&message);
        let data = json!({"path": "protocolVersion"});
        assert_eq!(error(&reply), (-32602, "Missing protocol version", &data));
    }
    for (flag, keys, version) in [
        (
            "missing_version=assume",
            "missing_version = \"assume\"",
            "2025-11-25",
        ),
        ("profile=erlmcp", "profile = \"erlmcp\"", "2025-06-18"),
    ] {
        for mut peer in peers(&[flag], keys) {
            let assumed = &peer.ask(&message)["result"]["protocolVersion"];
            assert_eq!(assumed, version, "{}", peer.name);
        }
    }
}

/// L4, C3, C4: every method is blocked before `initialize`, with the code and text of the profile.
#[test]
fn requests_before_initialize_are_rejected_in_the_dialect_of_the_profile() {
    let spec = ("profile=spec", "profile = \"spec\"");
    let erlmcp = ("profile=erlmcp", "profile = \"erlmcp\"");
    for ((flag, keys), code) in [(spec, -32600), (erlmcp, -32005)] {
        // One era, so that a request without `_meta` belongs to a legacy session.
        let legacy = "revisions=2025-03-26,2025-06-18";
        let keys = format!("{keys}\nrevisions = [\"2025-03-26\", \"2025-06-18\"]");
        for mut peer in peers(&[flag, legacy], &keys) {
            for (method, text) in [
                (
                    "tools/list",
                    "Cannot list tools before server initialization",
                ),
                (
                    "resources/list",
                    "Cannot list resources before server initialization",
                ),
                (
                    "prompts/get",
                    "Cannot get prompts before server initialization",
                ),
            ] {
                let reply = peer.ask(&request(5, method, json!({})));
                let (given, message, _) = error(&reply);
                assert_eq!(given, code, "{}: {reply}", peer.name);
                assert_eq!(message == text, code == -32005, "{}: {reply}", peer.name);
            }
            let pong = peer.ask(&request(6, "ping", json!({})));
            assert_eq!(pong["result"], json!({}), "{}", peer.name);
            peer.open("2025-06-18", json!({}));
            let again = peer.initialize("2025-06-18", json!({}));
            let expected = "Server already initialized. Initialize must be called only once.";
            assert_eq!((error(&again).0, error(&again).1), (code, expected));
        }
    }
}

/// L10: a request before `notifications/initialized` is served, or rejected.
#[test]
fn early_requests_are_served_or_rejected() {
    for (flags, keys, is_served) in [
        (&[][..], "", true),
        (
            &["early_requests=reject"],
            "early_requests = \"reject\"",
            false,
        ),
    ] {
        for mut peer in peers(flags, keys) {
            peer.initialize("2025-11-25", json!({}));
            let reply = peer.ask(&request(2, "tools/list", json!({})));
            assert_eq!(
                reply.get("result").is_some(),
                is_served,
                "{}: {reply}",
                peer.name
            );
            if !is_served {
                assert_eq!(error(&reply).2["reason"], "not_initialized");
                let expected = "Server not initialized: send `notifications/initialized` first";
                assert_eq!(error(&reply).1, expected, "{}", peer.name);
                peer.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
                let reply = peer.ask(&request(3, "tools/list", json!({})));
                assert!(reply.get("result").is_some(), "{}: {reply}", peer.name);
            }
        }
    }
}

/// L18: an unknown method is rejected, or passes to the server of a bridge.
#[test]
fn unknown_methods_are_rejected_or_passed_on() {
    let folder = tempfile::tempdir().unwrap();
    let script = r#"
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked: continue
    if asked["method"] == "initialize":
        result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}
    elif asked["method"] == "server/discover":
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "error": {"code": -32601, "message": "no"}}), flush=True)
        continue
    else:
        result = {"method": asked["method"], "params": asked.get("params")}
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"#;
    std::fs::write(folder.path().join("server.py"), script).unwrap();
    for (flags, is_passed) in [
        (&[][..], false),
        (&["--policy", "unknown_methods=pass"], true),
    ] {
        let target = ["--no-cache", "--", "python3", "server.py"];
        let args = [&["bridge"][..], flags, &target].concat();
        let mut child = TestProcess::spawn(&mut command(&args, &folder));
        let mut peer = Peer {
            name: "bridge",
            input: child.stdin.take().unwrap(),
            output: BufReader::new(child.stdout.take().unwrap()),
            _child: child,
            _folder: tempfile::tempdir().unwrap(),
        };
        peer.open("2025-11-25", json!({}));
        let reply = peer.ask(&request(2, "vendor/thing", json!({"a": 1})));
        if is_passed {
            let expected = json!({"method": "vendor/thing", "params": {"a": 1}});
            assert_eq!(reply["result"], expected, "{reply}");
            let meta = json!({
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": {},
            });
            let reply = peer.ask(&request(3, "vendor/thing", json!({"a": 1, "_meta": meta})));
            assert_eq!(reply["result"]["params"]["a"], 1, "{reply}");
        } else {
            assert_eq!(error(&reply).0, -32601, "{reply}");
        }
    }
    // No single server has it: the reference server, and `/mcp`, answer with an error.
    for mut peer in peers(&["unknown_methods=pass"], "unknown_methods = \"pass\"") {
        peer.open("2025-11-25", json!({}));
        let reply = peer.ask(&request(2, "vendor/thing", json!({})));
        assert_eq!(error(&reply).0, -32601, "{}: {reply}", peer.name);
    }
}

/// L17, N35, C5: a method can require a client capability; `erlmcp` requires one for most methods.
#[test]
fn client_capability_is_required_for_a_method() {
    let flags = ["require_client_capability.tools/list=sampling"];
    let keys = "require_client_capability = { \"tools/list\" = \"sampling\" }";
    for mut peer in peers(&flags, keys) {
        peer.open("2025-11-25", json!({}));
        let reply = peer.ask(&request(2, "tools/list", json!({})));
        let data = json!({"requiredCapabilities": {"sampling": {}}});
        let expected = (-32602, "Client does not support sampling capability", &data);
        assert_eq!(error(&reply), expected, "{}", peer.name);
        let call = json!({"name": "echo", "arguments": {"text": "x"}});
        let reply = peer.ask(&request(3, "prompts/list", call));
        assert!(reply.get("result").is_some(), "{}: {reply}", peer.name);
        let meta = |capabilities: Value| {
            let meta = json!({
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": capabilities,
            });
            request(4, "tools/list", json!({"_meta": meta}))
        };
        let reply = peer.ask(&meta(json!({})));
        assert_eq!(
            (error(&reply).0, error(&reply).2),
            (-32021, &data),
            "{}",
            peer.name
        );
        let reply = peer.ask(&meta(json!({"sampling": {}})));
        assert!(reply.get("result").is_some(), "{}: {reply}", peer.name);
    }
    for mut peer in peers(&["profile=erlmcp"], "profile = \"erlmcp\"") {
        peer.open("2025-06-18", json!({"tools": {}}));
        let reply = peer.ask(&request(2, "resources/list", json!({})));
        assert_eq!(
            error(&reply).1,
            "Client does not support resources capability"
        );
        let reply = peer.ask(&request(3, "tools/list", json!({})));
        assert!(reply.get("result").is_some(), "{}: {reply}", peer.name);
    }
}

/// N19: a wrongly typed capability counts as absent, or is rejected with its path.
#[test]
fn wrongly_typed_capability_is_ignored_or_rejected() {
    let wrong = || json!({"roots": {"listChanged": "x"}});
    for mut peer in peers(&[], "") {
        peer.open("2025-11-25", wrong());
    }
    let by_profile = peers(&["profile=mcpv-strict"], "profile = \"mcpv-strict\"");
    for mut peer in peers(&["strict=true"], "strict = true")
        .into_iter()
        .chain(by_profile)
    {
        let reply = peer.initialize("2025-11-25", wrong());
        let data = json!({"path": "capabilities.roots.listChanged"});
        assert_eq!(
            (error(&reply).0, error(&reply).2),
            (-32602, &data),
            "{}",
            peer.name
        );
    }
}

/// C17: a notification that was not negotiated is dropped, or ends the connection.
#[test]
fn undeclared_notification_is_dropped_or_disconnects() {
    let undeclared = json!({"jsonrpc": "2.0", "method": "notifications/roots/list_changed"});
    for mut peer in peers(&[], "") {
        peer.open("2025-11-25", json!({}));
        peer.send(&undeclared);
        let pong = peer.ask(&request(2, "ping", json!({})));
        assert_eq!(pong["result"], json!({}), "{}", peer.name);
    }
    for mut peer in peers(&["undeclared=disconnect"], "undeclared = \"disconnect\"") {
        peer.open("2025-11-25", json!({}));
        peer.send(&undeclared);
        let mut rest = String::new();
        peer.output.read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "", "{}", peer.name);
    }
}

/// N28: `require` refuses a client without the capability.
#[test]
fn required_capabilities_of_clients() {
    for mut peer in peers(&["require=elicitation"], "require = [\"elicitation\"]") {
        let reply = peer.initialize("2025-11-25", json!({}));
        let data = json!({"requiredCapabilities": {"elicitation": {}}});
        assert_eq!(
            (error(&reply).0, error(&reply).2),
            (-32602, &data),
            "{}",
            peer.name
        );
        peer.open("2025-11-25", json!({"elicitation": {}}));
    }
}

/// Keys that contradict each other are errors at start, on the command line and in a config.
#[test]
fn contradictory_keys_fail_at_start() {
    for (flags, keys, expected) in [
        (
            &["profile=mcpv-strict", "revisions=2025-06-18"][..],
            "profile = \"mcpv-strict\"\nrevisions = [\"2025-06-18\"]",
            "excludes 2025-06-18",
        ),
        (
            &[
                "version_range=2025-01-01..2025-06-18",
                "revisions=2025-11-25,2025-06-18",
            ],
            "version_range = \"2025-01-01..2025-06-18\"\nrevisions = [\"2025-11-25\", \"2025-06-18\"]",
            "excludes 2025-11-25",
        ),
        (
            &["version_range=2020-01-01..2020-12-31"],
            "version_range = \"2020-01-01..2020-12-31\"",
            "leave no revision",
        ),
        (
            &["version_range=2025-06-18..2025-01-01"],
            "version_range = \"2025-06-18..2025-01-01\"",
            "is not a range of dates",
        ),
        (
            &["revisions=2026-07-28", "early_requests=reject"],
            "revisions = [\"2026-07-28\"]\nearly_requests = \"reject\"",
            "`early_requests` applies to `initialize`",
        ),
        (
            &["require_client_capability.vendor/thing=roots"],
            "require_client_capability = { \"vendor/thing\" = \"roots\" }",
            "`unknown_methods` rejects it",
        ),
        (
            &["require_client_capability.initialize=roots"],
            "require_client_capability = { initialize = \"roots\" }",
            "`initialize` cannot require a capability",
        ),
        (
            &["require_client_capability.tools/list=rots"],
            "require_client_capability = { \"tools/list\" = \"rots\" }",
            "unknown capability `rots`",
        ),
        (
            &["require_client_capability.tools/list=foo"],
            "require_client_capability = { \"tools/list\" = \"foo\" }",
            "possible values: `completions`, `elicitation`, `elicitation.form`, `elicitation.url`, `experimental`, `extensions`, `logging`",
        ),
    ] {
        let flags: Vec<&str> = flags.iter().flat_map(|flag| ["--policy", flag]).collect();
        let stderr = usage_error(&[&["everything"][..], &flags].concat());
        assert!(stderr.contains(expected), "{stderr}");
        assert!(stderr.contains("hint: "), "{stderr}");
        let stderr = usage_error(&[&["bridge"][..], &flags, &["--", "server"]].concat());
        assert!(stderr.contains(expected), "{stderr}");
        let folder = tempfile::tempdir().unwrap();
        let config = format!("[gateway]\n{keys}\n");
        std::fs::write(folder.path().join("mcpact.toml"), config).unwrap();
        let args = ["serve", "--stdio", "--config", "mcpact.toml"];
        let output = command(&args, &folder)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(2), "{keys}");
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(stderr.contains(expected), "{stderr}");
    }
}

/// An option that contradicts a valid config is named in the error.
#[test]
fn contradiction_names_the_option() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("mcpact.toml");
    let serve = |keys: &str| {
        std::fs::write(&config, format!("[gateway]\n{keys}\n")).unwrap();
        let options = ["--policy", "revisions=2025-11-25"];
        let serve = ["serve", "--stdio", "--config", "mcpact.toml"];
        let output = command(&[&serve[..], &options].concat(), &folder)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(2), "{keys}");
        String::from_utf8(output.stderr).unwrap()
    };
    let stderr = serve("profile = \"erlmcp\"");
    let expected = "`--policy revisions=2025-11-25` contradicts `mcpact.toml`: `profile` or `version_range` excludes 2025-11-25";
    assert!(stderr.contains(expected), "{stderr}");
    assert!(!stderr.contains("mcpact check"), "{stderr}");
    let stderr = serve("profile = \"erlang\"");
    assert!(stderr.contains("invalid config"), "{stderr}");
    assert!(!stderr.contains("contradicts"), "{stderr}");
}
