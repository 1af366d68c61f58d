//! Harness: a gateway in its own directory, test servers and HTTP helpers.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Lines, Read};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::time::{Duration, Instant};

pub(crate) use mcpact_sim::scripted::process::signal;
use mcpact_sim::scripted::process::{self, TestProcess};
use serde_json::{Value, json};
use tempfile::TempDir;

const JSON_OR_EVENTS: &str = "Content-Type: application/json\r\n\
     Accept: application/json, text/event-stream\r\n";

/// Test timeout.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// A legacy server. Its tool `wait` creates the file `called`, sends progress, and returns when the
/// file `gate` exists. It logs its token and arguments, writes its process ID to `process`, and
/// lists the content of the file `tools` if it exists. At the end of input it sends a last message
/// and creates the file `saved`.
const GATED: &str = r#"#!/bin/sh
echo "the token is $TOKEN" >&2
[ $# -eq 0 ] || echo "the arguments are $*" >&2
here=$(dirname "$0")
echo $$ > "$here/process"
while read -r line; do
    id=$(printf '%s' "$line" | sed -n 's/.*"id":\("[^"]*"\|[0-9]*\).*/\1/p')
    case "$line" in
        *'"initialize"'*) result='"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"gated","version":"1"}}' ;;
        *'"tools/list"'*)
            result='"result":{"tools":[{"name":"wait","inputSchema":{"type":"object"}}]}'
            [ -e "$here/tools" ] && result="\"result\":$(cat "$here/tools")" ;;
        *'"tools/call"'*)
            : > "$here/called"
            token=$(printf '%s' "$line" | sed -n 's/.*"progressToken":\("[^"]*"\|[0-9]*\).*/\1/p')
            [ -z "$token" ] || printf '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":1}}\n' "$token"
            while [ ! -e "$here/gate" ]; do sleep 0.02; done
            result='"result":{"content":[{"type":"text","text":"waited"}]}' ;;
        *) result='"error":{"code":-32601,"message":"unknown"}' ;;
    esac
    case "$line" in
        *'"id":'*) printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$id" "$result" ;;
    esac
done
printf '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"bye"}}\n'
: > "$here/saved"
"#;

/// A legacy server that answers every request, optionally except `initialize`, with the same error.
const REFUSING: &str = r#"#!/bin/sh
while read -r line; do
    id=$(printf '%s' "$line" | sed -n 's/.*"id":\("[^"]*"\|[0-9]*\).*/\1/p')
    case "$line" in
        *'"initialize"'*) said='INTRODUCTION' ;;
        *) said='ERROR' ;;
    esac
    case "$line" in
        *'"id":'*) printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$id" "$said" ;;
    esac
done
"#;

/// Directory of one gateway: config, socket, caches.
pub(crate) struct Harness {
    folder: TempDir,
}

impl Harness {
    pub(crate) fn new(config: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let harness = Self { folder };
        fs::create_dir(harness.path("run")).unwrap();
        harness.configure(config);
        harness
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn configure(&self, servers: &str) {
        let config = format!("[gateway]\nlisten = \"127.0.0.1:0\"\n{servers}");
        fs::write(self.path("mcpact.toml"), config).unwrap();
    }

    /// Installs the server `gated` and returns its config.
    pub(crate) fn gated(&self) -> String {
        let server = self.program("gated", GATED);
        format!("{server}env = {{ TOKEN = \"hunter2-hunter2\" }}\n")
    }

    /// Installs a server that never responds and returns its config.
    pub(crate) fn silent(&self) -> String {
        self.program("silent", "#!/bin/sh\nexec sleep 3600\n")
    }

    /// Installs a server that answers with this error and returns its config. With a name, it
    /// completes the handshake first. The text is placed in single quotes of a shell.
    pub(crate) fn refusing(&self, name: &str, words: &str, calls_itself: Option<&str>) -> String {
        let error = format!(r#""error":{{"code":-32000,"message":"{words}"}}"#);
        let agreed = calls_itself.map(|itself| {
            format!(
                r#""result":{{"protocolVersion":"2025-06-18","capabilities":{{"tools":{{}}}},"serverInfo":{{"name":"{itself}","version":"1"}}}}"#
            )
        });
        let text = REFUSING.replace("INTRODUCTION", agreed.as_ref().unwrap_or(&error));
        self.program(name, &text.replace("ERROR", &error))
    }

    /// Installs a program and returns its config as a server.
    pub(crate) fn program(&self, name: &str, text: &str) -> String {
        let program = self.path(name);
        fs::write(&program, text).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        format!("[servers.{name}]\ncommand = \"{}\"\n", program.display())
    }

    /// Waits until the tool of `gated` was called.
    pub(crate) fn wait_for_call(&self) {
        wait_until(|| self.path("called").exists());
    }

    pub(crate) fn open_the_gate(&self) {
        fs::write(self.path("gate"), "").unwrap();
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_mcpact"));
        command.args(args).current_dir(self.folder.path());
        command.env("XDG_CACHE_HOME", self.path("cache"));
        command.env("XDG_RUNTIME_DIR", self.path("run"));
        command.env("XDG_STATE_HOME", self.path("state"));
        command.env("COLUMNS", "120");
        command
    }

    /// Runs a command; returns exit code, stdout and stderr.
    pub(crate) fn run(&self, args: &[&str]) -> (i32, String, String) {
        let Output {
            status,
            stdout,
            stderr,
        } = self.command(args).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (status.code().unwrap(), text(stdout), text(stderr))
    }

    pub(crate) fn status(&self) -> Value {
        let (code, stdout, message) = self.run(&["status", "--json"]);
        assert_eq!(code, 0, "{message}");
        serde_json::from_str(&stdout).unwrap()
    }

    pub(crate) fn serve(&self) -> Running {
        let config = self.path("mcpact.toml");
        self.start(&["serve", "--config", config.to_str().unwrap()])
    }

    /// Starts a gateway with the text log.
    pub(crate) fn serve_with_text_log(&self) -> Running {
        let config = self.path("mcpact.toml");
        let config = config.to_str().unwrap();
        self.start(&["--log-format", "text", "serve", "--config", config])
    }

    /// Starts a gateway with another config and a free port.
    pub(crate) fn serve_file(&self, name: &str) -> Running {
        self.start(&["serve", "--listen", "127.0.0.1:0", "--config", name])
    }

    /// Starts a gateway with another config at its address.
    pub(crate) fn serve_as_configured(&self, name: &str) -> Running {
        self.start(&["serve", "--config", name])
    }

    /// Starts the reference server at this address.
    pub(crate) fn everything(&self, address: &str) -> Running {
        self.start(&["everything", "--listen", address])
    }

    /// Starts an HTTP bridge to `gated`.
    pub(crate) fn bridge(&self) -> Running {
        self.gated();
        self.start(&["bridge", "--listen", "127.0.0.1:0", "--", "./gated"])
    }

    pub(crate) fn bridge_stdio(&self) -> Child {
        self.gated();
        self.bridge_stdio_to("./gated")
    }

    /// Starts a stdio bridge to this program.
    pub(crate) fn bridge_stdio_to(&self, program: &str) -> Child {
        let mut command = self.command(&["-v", "bridge", "--", program]);
        let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        pipes.stderr(Stdio::piped()).spawn().unwrap()
    }

    /// Starts a gateway with log level `info`.
    pub(crate) fn serve_with_info_log(&self) -> Running {
        let config = self.path("mcpact.toml");
        self.start(&["-v", "serve", "--config", config.to_str().unwrap()])
    }

    pub(crate) fn serve_stdio(&self) -> Child {
        let config = self.path("mcpact.toml");
        self.spawn_stdio(&["serve", "--stdio", "--config", config.to_str().unwrap()])
    }

    /// Starts a stdio gateway without a config.
    pub(crate) fn serve_stdio_without_config(&self) -> Child {
        self.spawn_stdio(&["serve", "--stdio"])
    }

    fn spawn_stdio(&self, args: &[&str]) -> Child {
        let mut command = self.command(args);
        let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        pipes.stderr(Stdio::null()).spawn().unwrap()
    }

    fn start(&self, args: &[&str]) -> Running {
        let mut command = self.command(args);
        let mut log = File::options();
        let log = log.append(true).create(true).open(self.path("log"));
        let (child, url) = TestProcess::listening(command.stderr(log.unwrap()));
        let origin = url.strip_suffix("/mcp").unwrap().to_owned();
        Running { child, origin }
    }

    /// Follows the log from its start.
    pub(crate) fn follow_logs(&self) -> LogFollower {
        let args = ["logs", "--follow", "--json", "--lines", "100000"];
        let mut child = TestProcess::spawn(self.command(&args).stdout(Stdio::piped()));
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        LogFollower {
            _child: child,
            lines,
        }
    }
}

/// Polls until the condition holds.
pub(crate) fn wait_until(mut is_so: impl FnMut() -> bool) {
    let late = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < late, "it did not come to that");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A running `mcpact logs --follow`.
pub(crate) struct LogFollower {
    _child: TestProcess,
    lines: Lines<BufReader<ChildStdout>>,
}

impl LogFollower {
    /// Returns the text of the next entry with this event; `None` selects server output.
    pub(crate) fn next(&mut self, event: Option<&str>) -> String {
        let found = self.lines.by_ref().find_map(|line| {
            let line: Value = serde_json::from_str(&line.unwrap()).unwrap();
            let is_meant = line["event"].as_str() == event;
            is_meant.then(|| line["text"].as_str().unwrap().to_owned())
        });
        found.unwrap()
    }
}

/// A running gateway.
pub(crate) struct Running {
    child: TestProcess,
    pub(crate) origin: String,
}

impl Running {
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn signal(&self, name: &str) {
        signal(self.id(), name);
    }

    /// Waits for the exit code.
    pub(crate) fn exit_code(mut self) -> Option<i32> {
        self.child.wait().unwrap().code()
    }

    /// Sends raw HTTP, because the library client would reopen a lost session.
    pub(crate) fn post(&self, path: &str, session: Option<&str>, body: &Value) -> Reply {
        send(&self.origin, path, session, body)
    }

    /// Sends a GET request.
    pub(crate) fn get(&self, path: &str) -> Reply {
        self.get_with(path, "")
    }

    /// Sends a GET request with header lines.
    pub(crate) fn get_with(&self, path: &str, headers: &str) -> Reply {
        read(process::send("GET", &self.origin, path, headers, ""))
    }

    /// Opens a legacy session with raw HTTP.
    pub(crate) fn open(&self, path: &str) -> String {
        let reply = self.post(path, None, &handshake());
        assert_eq!(reply.status, 200, "{reply:?}");
        let session = reply.header("mcp-session-id").unwrap();
        let note = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        assert_eq!(self.post(path, Some(&session), &note).status, 202);
        session
    }
}

pub(crate) fn handshake() -> Value {
    let params = json!({"protocolVersion": "2025-06-18", "capabilities": {},
        "clientInfo": {"name": "hand", "version": "1"}});
    request("initialize", &params)
}

pub(crate) fn request(method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
}

pub(crate) fn call(tool: &str) -> Value {
    request(
        "tools/call",
        &json!({"name": tool, "arguments": {"text": "hello"}}),
    )
}

/// An HTTP response.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    head: String,
    pub(crate) body: String,
}

impl Reply {
    pub(crate) fn header(&self, name: &str) -> Option<String> {
        self.head.lines().find_map(|line| {
            let (of, value) = line.split_once(':')?;
            of.eq_ignore_ascii_case(name)
                .then(|| value.trim().to_owned())
        })
    }
}

pub(crate) fn send(origin: &str, path: &str, session: Option<&str>, body: &Value) -> Reply {
    read(write("POST", origin, path, session, &body.to_string()))
}

/// Sends a request without waiting for the response.
pub(crate) fn start_request(origin: &str, path: &str, session: &str, body: &Value) -> TcpStream {
    write("POST", origin, path, Some(session), &body.to_string())
}

fn write(verb: &str, origin: &str, path: &str, session: Option<&str>, body: &str) -> TcpStream {
    let session = session.map_or_else(String::new, |id| {
        format!("Mcp-Session-Id: {id}\r\nMCP-Protocol-Version: 2025-06-18\r\n")
    });
    process::send(
        verb,
        origin,
        path,
        &format!("{JSON_OR_EVENTS}{session}"),
        body,
    )
}

/// Ends a session.
pub(crate) fn delete(origin: &str, path: &str, session: &str) -> Reply {
    read(write("DELETE", origin, path, Some(session), ""))
}

/// Opens an SSE stream.
pub(crate) fn listen(origin: &str, path: &str, session: Option<&str>) -> TcpStream {
    write("GET", origin, path, session, "")
}

/// Sends a 2026-07-28 request with its metadata.
pub(crate) fn send_modern(origin: &str, path: &str, body: &Value) -> Reply {
    read(start_modern_request(origin, path, body))
}

/// Sends a 2026-07-28 request without waiting for the response.
pub(crate) fn start_modern_request(origin: &str, path: &str, body: &Value) -> TcpStream {
    let mut body = body.clone();
    let (method, name) = (body["method"].clone(), body["params"]["name"].clone());
    let (method, name) = (method.as_str().unwrap(), name.as_str().unwrap_or_default());
    let meta = &mut body["params"]["_meta"];
    meta["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
    meta["io.modelcontextprotocol/clientInfo"] = json!({"name": "hand", "version": "1"});
    let declared = &mut meta["io.modelcontextprotocol/clientCapabilities"];
    if declared.is_null() {
        *declared = json!({});
    }
    let headers = format!(
        "{JSON_OR_EVENTS}MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: {method}\r\n\
         Mcp-Name: {name}\r\n"
    );
    process::send("POST", origin, path, &headers, &body.to_string())
}

/// Reads the response until the connection closes.
pub(crate) fn read(mut stream: TcpStream) -> Reply {
    let mut reply = String::new();
    stream.read_to_string(&mut reply).unwrap();
    let (head, body) = reply.split_once("\r\n\r\n").unwrap();
    Reply {
        status: head.split(' ').nth(1).unwrap().parse().unwrap(),
        head: head.to_owned(),
        body: body.to_owned(),
    }
}

/// Returns the config of a built-in server.
pub(crate) fn builtin(name: &str) -> String {
    format!("[servers.{name}]\nbuiltin = \"everything\"\nera = \"2025-06-18\"\n")
}

pub(crate) fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}
