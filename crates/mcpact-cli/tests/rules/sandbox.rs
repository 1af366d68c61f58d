//! Sandboxed servers: a hostile one, and a kernel that cannot enforce a level.

use std::collections::BTreeMap;
use std::fs;
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};
use std::path::Path;
use std::process::{Command, Stdio};

use mcpact_sim::scripted::process::TestProcess;
use mcpact_spec::Revision;
use serde_json::json;

use crate::harness::{Harness, Running, combined_output};

/// Tries to leave the sandbox.
const HOSTILE: &str = include_str!("../../../mcpact-faults/src/rows/hostile.py");

/// Attempts that fail without a sandbox as well, at least on some kernels.
const ALSO_FAIL: [&str; 4] = ["stream pair", "io_uring", "other call table", "terminal"];

type Attempts = BTreeMap<String, BTreeMap<String, String>>;

/// Path of the interpreter; `python3` may be a script of a version manager.
fn python() -> String {
    let mut command = Command::new("python3");
    let output = command.args(["-c", "import sys; print(sys.executable)"]);
    let output = output.output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// Runs the hostile server at a level; returns the outcome of each attempt.
async fn attack(level: &str) -> Attempts {
    let harness = Harness::new();
    let root = harness.path();
    let home = root.join("home");
    let own = home.join("projects/hostile");
    let files = [
        ("home/.ssh/id_ed25519", "secret"),
        ("home/moved", ""),
        ("home/deleted", ""),
        ("home/truncated", "text"),
        ("home/state/approvals.json", "{}"),
        ("home/work/working.txt", "x"),
        ("home/projects/other/server.txt", "x"),
        ("home/projects/hostile/own.txt", "x"),
        ("home/projects/hostile/hostile.py", HOSTILE),
        ("readable/file", "x"),
        ("writable/file", "x"),
    ];
    for (name, text) in files {
        let path = root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let tcp = [(), ()].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    let [allowed, forbidden] = tcp.each_ref().map(|tcp| tcp.local_addr().unwrap().port());
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    let _unix = UnixListener::bind(root.join("agent.sock")).unwrap();
    let _datagrams = UnixDatagram::bind(root.join("datagrams.sock")).unwrap();
    let name = format!("mcpact-test-{}-{level}", std::process::id());
    let address = SocketAddr::from_abstract_name(&name).unwrap();
    let _abstract = UnixListener::bind_addr(&address).unwrap();
    let mut other = Command::new("sleep");
    let other = TestProcess::spawn(other.arg("1000").stdin(Stdio::null()));
    let shown = |path: &Path| path.display().to_string();
    let target = json!({
        "home": shown(&home),
        "other": shown(&home.join("projects/other")),
        "config": shown(&root.join("own.toml")),
        "state": shown(&home.join("state/approvals.json")),
        "shared": shown(root),
        "readable": shown(&root.join("readable")),
        "writable": shown(&root.join("writable")),
        "socket": shown(&root.join("agent.sock")),
        "datagrams": shown(&root.join("datagrams.sock")),
        "abstract": name,
        "process": other.id(),
        "udp": udp.local_addr().unwrap().port(),
        "allowed": allowed,
        "forbidden": forbidden,
    });
    let exceptions = match level {
        "off" => String::new(),
        "standard" => String::from("allow_read = [\"readable\"]\nallow_write = [\"writable\"]\n"),
        _ => format!(
            "allow_read = [\"readable\"]\nallow_write = [\"writable\"]\nallow_ports = [{allowed}]\n"
        ),
    };
    harness.configure(
        "own.toml",
        &format!(
            "[gateway]\nsandbox = \"{level}\"\n\
             [servers.hostile]\ncommand = {:?}\nargs = [{:?}, {:?}]\ncwd = \"home/work\"\n\
             {exceptions}",
            python(),
            shown(&own.join("hostile.py")),
            target.to_string(),
        ),
    );
    let mut command =
        harness.command(&["serve", "--listen", "127.0.0.1:0", "--config", "own.toml"]);
    command.env("HOME", &home);
    let running = Running::start(command);
    let client = running.client(Revision::V2025_11_25).await;
    let result = client.call_tool("hostile__attack", json!({})).await;
    let attempts = serde_json::from_str(&result.unwrap().all_text()).unwrap();
    let truncated = fs::read_to_string(home.join("truncated")).unwrap();
    assert_eq!(truncated.is_empty(), level == "off", "{level}");
    attempts
}

fn failures<'a>(attempts: &'a Attempts, group: &str) -> Vec<&'a str> {
    let all = attempts[group].iter();
    let failed = all.filter(|(_, outcome)| *outcome != "ok");
    failed.map(|(name, _)| name.as_str()).collect()
}

fn successes<'a>(attempts: &'a Attempts, group: &str) -> Vec<&'a str> {
    let all = attempts[group].iter();
    let succeeded = all.filter(|(_, outcome)| *outcome == "ok");
    succeeded.map(|(name, _)| name.as_str()).collect()
}

const NONE: Vec<&str> = Vec::new();

/// Every attempt that a sandbox stops has to work without one.
#[tokio::test(flavor = "multi_thread")]
async fn attempts_succeed_without_sandbox() {
    let attempts = attack("off").await;
    for group in ["usual", "files", "network"] {
        let mut failed = failures(&attempts, group);
        failed.retain(|name| !ALSO_FAIL.contains(name));
        assert_eq!(failed, NONE, "{attempts:#?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn standard_sandbox_limits_files_and_unix_sockets() {
    let attempts = attack("standard").await;
    assert_eq!(failures(&attempts, "usual"), NONE, "{attempts:#?}");
    assert_eq!(successes(&attempts, "files"), NONE, "{attempts:#?}");
    assert_eq!(failures(&attempts, "network"), NONE, "{attempts:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn strict_sandbox_also_limits_the_network() {
    let attempts = attack("strict").await;
    assert_eq!(failures(&attempts, "usual"), NONE, "{attempts:#?}");
    assert_eq!(successes(&attempts, "files"), NONE, "{attempts:#?}");
    assert_eq!(successes(&attempts, "network"), NONE, "{attempts:#?}");
}

/// Runs a program on a kernel without Landlock: its first system call is unknown.
const WITHOUT_LANDLOCK: &str = r#"
import ctypes, os, struct, sys
steps = [(0x20, 0, 0, 0), (0x15, 0, 1, 444), (0x06, 0, 0, 0x50000 | 38), (0x06, 0, 0, 0x7fff0000)]
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("steps", ctypes.c_void_p)]
libc = ctypes.CDLL(None)
assert libc.prctl(38, 1, 0, 0, 0) == 0
program = Program(len(steps), ctypes.addressof(code))
assert libc.prctl(22, 2, ctypes.byref(program), 0, 0) == 0
os.execv(sys.argv[1], sys.argv[1:])
"#;

#[tokio::test(flavor = "multi_thread")]
async fn server_does_not_start_without_its_sandbox() {
    for level in ["standard", "strict"] {
        let harness = Harness::new();
        harness.configure(
            "own.toml",
            &format!("[servers.a]\ncommand = \"SERVER\"\nsandbox = \"{level}\"\n"),
        );
        let within = |args: &[&str]| {
            let plain = harness.command(args);
            let mut command = Command::new(python());
            command
                .args(["-c", WITHOUT_LANDLOCK])
                .arg(plain.get_program());
            command.args(plain.get_args()).current_dir(harness.path());
            for (name, value) in plain.get_envs() {
                command.env(name, value.unwrap_or_default());
            }
            command
        };
        let checked = within(&["check", "own.toml"]).output().unwrap();
        let checked = combined_output(&checked);
        let line = format!("sandbox: {level} not available: the kernel has no Landlock");
        assert!(checked.contains(&line), "{checked}");
        assert!(checked.contains("the server will not start"), "{checked}");
        let serve = ["serve", "--listen", "127.0.0.1:0", "--config", "own.toml"];
        let mut serve = within(&serve);
        serve.stdin(Stdio::null());
        let running = Running::start(serve);
        let body = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;
        let reply = running.exchange("POST", "/servers/a/mcp", body).await;
        assert!(reply.contains("upstream_unsandboxed"), "{reply}");
        assert!(reply.contains("the kernel has no Landlock"), "{reply}");
        assert!(!harness.was_started());
    }
}

#[test]
fn check_shows_sandboxes_and_their_mistakes() {
    let harness = Harness::new();
    harness.configure(
        "own.toml",
        "[gateway]\nsandbox = \"standard\"\n\
         [servers.a]\ncommand = \"SERVER\"\nallow_read = [\"missing\"]\n\
         [servers.b]\ncommand = \"SERVER\"\nsandbox = \"off\"\n\
         [servers.c]\nurl = \"https://c.example/mcp\"\n",
    );
    let checked = combined_output(&harness.run(&["check", "own.toml"]));
    assert_eq!(
        checked.matches("sandbox: standard (landlock ").count(),
        1,
        "{checked}"
    );
    assert!(
        checked.contains("`missing` of `allow_read` not found"),
        "{checked}"
    );
    harness.configure(
        "own.toml",
        "[servers.a]\ncommand = \"SERVER\"\nallow_write = [\"/tmp\"]\n\
         [servers.b]\ncommand = \"SERVER\"\nsandbox = \"standard\"\nallow_ports = [443]\n\
         [servers.c]\ncommand = \"SERVER\"\nsandbox = \"strict\"\nallow_ports = [0]\n\
         [servers.d]\nurl = \"https://d.example/mcp\"\nsandbox = \"strict\"\n",
    );
    let checked = combined_output(&harness.run(&["check", "own.toml"]));
    for expected in [
        "`allow_write` has no effect with `sandbox = \"off\"`",
        "`allow_ports` has no effect with `sandbox = \"standard\"`",
        "`allow_ports` must contain integers from 1 to 65535",
        "`sandbox` has no effect with `url`",
    ] {
        assert!(checked.contains(expected), "{expected}: {checked}");
    }
}
