//! Protocol policies at `everything`, `bridge` and `serve`: one test for each row of the table in `docs/manual/policies.md`.
#![expect(clippy::unwrap_used, reason = "a broken expectation is a failed test")]

use std::io::{BufRead, BufReader, Write};
use std::process::{ChildStdin, ChildStdout, Command, Stdio};

use mcpact_sim::scripted::process::TestProcess;
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
