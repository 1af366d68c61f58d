//! Log, metrics, health and readiness of a running gateway, without secrets.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a broken expectation is a failed test")]

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use mcpact::client::{Client, ClientBuilder};
use mcpact_engine::client::EraMode;
use mcpact_sim::scripted::message::initialize;
use mcpact_sim::scripted::process::{TestProcess, exchange};
use mcpact_spec::Revision;
use serde_json::{Value, json};
use tempfile::TempDir;

/// Test timeout.
const PATIENCE: Duration = Duration::from_secs(60);

const TRACE: &str = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01";

const MCPACT: &str = env!("CARGO_BIN_EXE_mcpact");

/// A legacy server that ignores `ping`, exits on the tool `die`, and logs its secret. The tool `shout` sends log messages.
const PROGRAM: &str = r#"#!/bin/sh
echo "started with a secret: $SECRET" >&2
while IFS= read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\("[^"]*"\|[0-9][0-9]*\).*/\1/p')
  case "$line" in
    *'"initialize"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"sh","version":"1"}}}\n' "$id" ;;
    *'"tools/list"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"die","inputSchema":{"type":"object"}},{"name":"ok","inputSchema":{"type":"object"}},{"name":"shout","inputSchema":{"type":"object"}}]}}\n' "$id" ;;
    *'"die"'*) echo "dying with $SECRET" >&2; exit 3 ;;
    *'"shout"'*)
      for level in debug info notice warning error critical alert emergency; do
        printf '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"%s","logger":"db","data":{"text":"it is %s","key":"%s"}}}\n' "$level" "$level" "$SECRET"
      done
      i=0; while [ $i -lt 300 ]; do i=$((i+1)); printf '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"noise"}}\n'; done
      printf '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error","data":"after the flood"}}\n'
      printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[]}}\n' "$id" ;;
    *'"tools/call"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"canary-result"}]}}\n' "$id" ;;
  esac
done
"#;

/// Running gateway with stderr in a file.
struct Running {
    child: TestProcess,
    url: String,
    folder: TempDir,
}

fn write_program(folder: &Path) -> PathBuf {
    let program = folder.join("server");
    fs::write(&program, PROGRAM).unwrap();
    fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
    program
}

impl Running {
    /// Serves a config with the placeholders `@PROGRAM@` and `@MCPACT@`.
    fn start(config: &str, args: &[&str], env: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let program = write_program(folder.path());
        let config = config
            .replace("@PROGRAM@", program.to_str().unwrap())
            .replace("@MCPACT@", MCPACT);
        let path = folder.path().join("mcpact.toml");
        let config = format!("[gateway]\nlisten = \"127.0.0.1:0\"\n{config}");
        fs::write(&path, config).unwrap();
        let stderr = fs::File::create(folder.path().join("stderr")).unwrap();
        let mut command = Command::new(MCPACT);
        command.arg("serve").args(args).arg("--config").arg(&path);
        command.env("XDG_CACHE_HOME", folder.path().join("cache"));
        command.env("XDG_RUNTIME_DIR", folder.path().join("run"));
        command.envs(env.iter().copied());
        let (child, url) = TestProcess::listening(command.stderr(stderr));
        Self { child, url, folder }
    }

    fn stderr(&self) -> String {
        fs::read_to_string(self.folder.path().join("stderr")).unwrap()
    }

    /// Returns the JSON lines of stderr, without the overview.
    fn log(&self) -> Vec<Value> {
        let output = self.stderr();
        let lines = output.lines().filter(|line| line.starts_with('{'));
        lines
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect()
    }

    /// Waits for an event of a server.
    fn event(&self, server: &str, event: &str) -> Value {
        let until = Instant::now() + PATIENCE;
        loop {
            let log = self.log();
            let found = log
                .into_iter()
                .find(|line| line["event"] == event && line["server"] == server);
            if let Some(found) = found {
                return found;
            }
            assert!(
                Instant::now() < until,
                "{server} {event}\n{}",
                self.stderr()
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn origin(&self) -> &str {
        self.url.strip_suffix("/mcp").unwrap()
    }

    fn get(&self, path: &str, headers: &str) -> String {
        exchange("GET", self.origin(), path, headers, "")
    }

    /// Opens a session and returns its ID.
    fn open_session(&self, headers: &str) -> String {
        let body = initialize(1, "2025-11-25", json!({})).to_string();
        let headers = format!("{headers}Content-Type: application/json\r\n");
        let answer = exchange("POST", self.origin(), "/mcp", &headers, &body);
        let mut lines = answer.lines();
        let id = lines.find_map(|line| line.strip_prefix("mcp-session-id: "));
        id.unwrap().to_owned()
    }

    /// Sends TERM and returns all output.
    fn stop(mut self) -> String {
        self.child.signal("-TERM");
        let mut output = String::new();
        let mut stdout = self.child.stdout.take().unwrap();
        stdout.read_to_string(&mut output).unwrap();
        assert!(self.child.wait().unwrap().success(), "{}", self.stderr());
        output + &self.stderr()
    }
}

fn client(revision: Revision) -> ClientBuilder {
    Client::builder("person", "1").mode(EraMode::Pin(revision))
}

/// The event names and fields are stable.
#[tokio::test(flavor = "multi_thread")]
async fn server_lifecycle_is_logged_as_events() {
    let config = "
[servers.idle]
command = \"@PROGRAM@\"
env = { SECRET = \"0123456789\" }
idle_seconds = 1
health = \"off\"
[servers.deaf]
command = \"@PROGRAM@\"
health = \"ping\"
health_seconds = 1
health_failures = 1
[servers.dying]
command = \"@PROGRAM@\"
health = \"off\"
[servers.mute]
command = \"false\"
[servers.nothing]
command = \"/nonexistent/program\"
";
    let running = Running::start(config, &["-v"], &[]);
    let url = running.url.clone();
    let caller = client(Revision::V2025_11_25).connect(url).await.unwrap();
    for tool in ["idle__ok", "deaf__ok"] {
        caller.call_tool(tool, json!({})).await.unwrap();
    }
    assert!(caller.call_tool("dying__die", json!({})).await.is_err());
    let message = tokio::task::spawn_blocking(move || {
        let cells: &[(&str, &str, &[&str])] = &[
            ("idle", "start_attempt", &["instance", "state", "cause"]),
            (
                "idle",
                "start_success",
                &["instance", "state", "duration_ms", "revision"],
            ),
            ("idle", "idle_reap", &["instance", "state", "duration_ms"]),
            (
                "idle",
                "stop_attempt",
                &["instance", "state", "duration_ms"],
            ),
            (
                "idle",
                "stop_success",
                &["instance", "state", "duration_ms", "cause"],
            ),
            (
                "deaf",
                "ping_failure",
                &["instance", "state", "duration_ms", "error"],
            ),
            (
                "dying",
                "stop_failure",
                &["instance", "state", "duration_ms", "error"],
            ),
            (
                "dying",
                "route_error",
                &["method", "outcome", "duration_ms", "error"],
            ),
            (
                "mute",
                "initialize_failure",
                &["instance", "state", "duration_ms", "error"],
            ),
            (
                "nothing",
                "start_failure",
                &["instance", "state", "duration_ms", "error"],
            ),
            ("nothing", "route_error", &["state", "error", "advice"]),
        ];
        for (server, event, fields) in cells {
            let found = running.event(server, event);
            for field in *fields {
                assert!(
                    !found[*field].is_null(),
                    "{server} {event} {field}: {found}"
                );
            }
        }
        let log = running.log();
        let child = log
            .iter()
            .find(|line| line["child"] == "idle" && line["origin"] == "downstream");
        assert_eq!(
            child.unwrap()["message"],
            "started with a secret: ***",
            "{child:?}"
        );
        running.stop()
    });
    message.await.unwrap();
    drop(caller);
}

/// O4: log messages of a server are in the log of the gateway at their own level, without secrets and limited.
#[tokio::test(flavor = "multi_thread")]
async fn log_messages_of_servers_are_logged() {
    let config = "
[servers.loud]
command = \"@PROGRAM@\"
env = { SECRET = \"0123456789\" }
";
    let running = Running::start(config, &["-vv"], &[]);
    let url = running.url.clone();
    let caller = client(Revision::V2025_11_25).connect(url).await.unwrap();
    caller.call_tool("loud__shout", json!({})).await.unwrap();
    caller.close().await;
    let checked = tokio::task::spawn_blocking(move || {
        let log = running.log();
        let logged = |message: &str| {
            let lines = log
                .iter()
                .filter(|line| line["target"] == "mcpact::messages");
            let found = lines.filter(|line| line["message"].as_str().unwrap().contains(message));
            found.collect::<Vec<_>>()
        };
        let levels = [
            ("debug", "DEBUG"),
            ("info", "INFO"),
            ("notice", "INFO"),
            ("warning", "WARN"),
            ("error", "ERROR"),
            ("critical", "ERROR"),
            ("alert", "ERROR"),
            ("emergency", "ERROR"),
        ];
        for (severity, level) in levels {
            let lines = logged(&format!("it is {severity}"));
            assert_eq!(lines.len(), 1, "{severity}: {lines:?}");
            let line = lines[0];
            let fields = (
                &line["level"],
                &line["severity"],
                &line["server"],
                &line["logger"],
            );
            let (level, loud, db) = (json!(level), json!("loud"), json!("db"));
            assert_eq!(fields, (&level, &json!(severity), &loud, &db), "{line}");
        }
        // Three of the others are below `warning`.
        assert_eq!(logged("noise").len(), 97);
        assert_eq!(logged("after the flood").len(), 1);
        let is_limited = |line: &&Value| {
            let message = line["message"].as_str().unwrap_or_default();
            message.contains("too many log messages")
        };
        assert_eq!(log.iter().filter(is_limited).count(), 1, "{log:?}");
        let output = running.stop();
        assert!(!output.contains("0123456789"), "{output}");
    });
    checked.await.unwrap();
}

/// The default is JSON unless stderr is a terminal.
#[test]
fn log_format_is_selectable() {
    let config = "[servers.nothing]\ncommand = \"/nonexistent/program\"\n";
    let cells: [(&[&str], &str, bool); 4] = [
        (&["-v"], "", true),
        (&["-v", "--log-format", "text"], "", false),
        (&["-v"], "text", false),
        (&["-v", "--log-format", "json"], "text", true),
    ];
    for (args, message, is_json) in cells {
        let running = Running::start(config, args, &[("MCPACT_LOG_FORMAT", message)]);
        let until = Instant::now() + PATIENCE;
        while !running.stderr().contains("start_failure") {
            assert!(Instant::now() < until, "{}", running.stderr());
            std::thread::sleep(Duration::from_millis(20));
        }
        let output = running.stderr();
        let line = output
            .lines()
            .find(|line| line.contains("start_failure"))
            .unwrap();
        let parsed = serde_json::from_str::<Value>(line);
        assert_eq!(parsed.is_ok(), is_json, "{args:?} {message:?}: {line}");
        assert!(!output.contains('\u{1b}'), "no colour in a file: {output}");
    }
    let refused = Command::new(MCPACT)
        .args(["schema"])
        .env("MCPACT_LOG_FORMAT", "xml")
        .output()
        .unwrap();
    assert_eq!(refused.status.code(), Some(2));
    let output = String::from_utf8(refused.stderr).unwrap();
    assert!(
        output.contains("invalid log format `xml`") && output.contains("json"),
        "{output}"
    );
}

/// The log entry of a lost request has its trace ID.
#[tokio::test(flavor = "multi_thread")]
async fn metrics_health_and_readiness_are_served() {
    let config =
        "[servers.dying]\ncommand = \"@PROGRAM@\"\n[servers.new]\nbuiltin = \"everything\"\n";
    let running = Running::start(config, &[], &[]);
    let builder = client(Revision::V2025_11_25).header("traceparent", TRACE);
    let caller = builder.connect(running.url.clone()).await.unwrap();
    caller
        .call_tool("new__echo", json!({"text": "x"}))
        .await
        .unwrap();
    assert!(caller.call_tool("dying__die", json!({})).await.is_err());
    drop(caller);
    let watched = tokio::task::spawn_blocking(move || {
        let lost = running.event("dying", "route_error");
        assert_eq!(
            lost["trace_id"], "0af7651916cd43dd8448eb211c80319c",
            "{lost}"
        );
        assert!(running.get("/healthz", "").ends_with("ok\n"));
        let ready = running.get("/readyz", "");
        assert!(ready.contains("\"new\":{\"ready\":true"), "{ready}");
        assert!(ready.contains("\"revision\":\"2026-07-28\""), "{ready}");
        let metrics = running.get("/metrics", "");
        for row in [
            "mcpact_requests_total{server=\"new\",method=\"tools/call\",outcome=\"ok\"} 1",
            "mcpact_requests_total{server=\"dying\",method=\"tools/call\",outcome=\"lost\"} 1",
            "mcpact_instance_failures_total{server=\"dying\",cause=\"connection_ended\"} 1",
        ] {
            assert!(metrics.contains(row), "{row}\n{metrics}");
        }
        running.stop();
    });
    watched.await.unwrap();
}

/// An HTTP server that returns 500.
fn failing_server() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut asked = [0; 4096];
            let length = stream.read(&mut asked).unwrap_or_default();
            assert!(length > 0);
            let _ = write!(
                stream,
                "HTTP/1.1 500 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
            );
        }
    });
    address
}

/// P16: secrets in every part of a config and a request, at level `trace`: stdout, log, metrics,
/// errors and arguments.
#[tokio::test(flavor = "multi_thread")]
async fn secrets_are_not_in_any_output() {
    let address = failing_server();
    let config = format!(
        "token = \"canary-token-0123456789\"
[servers.dying]
command = \"@PROGRAM@\"
args = [\"--key\", \"canary-arg-0123456789\"]
env = {{ SECRET = \"canary-env-0123456789\", OTHER = \"${{FROM_OUTSIDE}}\" }}
[servers.far]
url = \"http://{address}/mcp?key=canary-query-0123456789\"
headers = {{ Authorization = \"Bearer canary-header-0123456789\" }}
[servers.mute]
command = \"sh\"
args = [\"@PROGRAM@.not-there\", \"canary-arg-0123456789\"]
env = {{ SECRET = \"canary-env-0123456789\" }}
"
    );
    let outside = [("FROM_OUTSIDE", "canary-outside-0123456789")];
    let running = Running::start(&config, &["--log", "trace"], &outside);
    let bearer = "Authorization: Bearer canary-token-0123456789\r\n";
    let mut errors = Vec::new();
    for revision in [Revision::V2025_06_18, Revision::V2026_07_28] {
        let wrong = client(revision).header("authorization", "Bearer canary-wrong-0123456789");
        let refused = wrong.connect(running.url.clone()).await;
        errors.push(
            refused
                .err()
                .map(|error| format!("{error} {error:?}"))
                .unwrap(),
        );
        let builder = client(revision)
            .header("authorization", "Bearer canary-token-0123456789")
            .header("traceparent", TRACE)
            .header("tracestate", "canary=state")
            .header("baggage", "canary=baggage");
        let caller = builder.connect(running.url.clone()).await.unwrap();
        let secret = json!({"password": "canary-argument-0123456789"});
        for tool in ["dying__ok", "dying__die", "far__x", "mute__x"] {
            if let Err(error) = caller.call_tool(tool, secret.clone()).await {
                errors.push(format!("{error} {error:?}"));
            }
        }
        caller.close().await;
    }
    let message = tokio::task::spawn_blocking(move || {
        let pid = running.child.id();
        let mut all = errors;
        for path in [
            "/metrics",
            "/readyz",
            "/healthz",
            "/servers/unknown/mcp?canary-path=1",
        ] {
            all.push(running.get(path, bearer));
            let outside = running.get(path, "");
            assert!(outside.starts_with("HTTP/1.1 401"), "{path}: {outside}");
            all.push(outside);
        }
        all.push(fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap());
        let session = running.open_session(bearer);
        all.push(running.stop());
        (all.join("\n----\n"), session)
    });
    let (message, session) = message.await.unwrap();
    assert!(!message.contains(&session), "{message}");
    for words in [
        "started with a secret: ***",
        "mcpact_requests_total",
        "\"level\":\"TRACE\"",
        "route_error",
    ] {
        assert!(message.contains(words), "{words} is missing:\n{message}");
    }
    let found = message.lines().find(|line| line.contains("canary"));
    assert_eq!(found, None, "{message}");
}
