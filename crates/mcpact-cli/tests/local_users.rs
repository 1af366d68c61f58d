//! Requests of other users of this machine.
//!
//! The processes run as several users, so root must start the tests. Otherwise only the own user is checked.
#![cfg(target_os = "linux")]
#![expect(clippy::print_stderr, reason = "a skipped test is visible")]
#![expect(clippy::unwrap_used, reason = "a broken expectation is a failed test")]

use std::fs::{self, Permissions};
use std::io::{Read, Write};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use mcpact_sim::scripted::process::{TestProcess, exchange};
use rustix::process::Uid;
use tempfile::TempDir;

/// User ids without an account.
const OWN: u32 = 65_533;
const FRIEND: u32 = 65_532;
const STRANGER: u32 = 65_531;

const HEADERS: &str =
    "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n";
const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;

/// Home folder of a gateway of the user [`OWN`].
struct Home(TempDir);

impl Home {
    /// None without the right to run processes as other users.
    fn new() -> Option<Self> {
        let is_root = rustix::process::geteuid().is_root();
        let home = Self(tempfile::tempdir().unwrap());
        let can_run = || {
            let mut command = Command::new(env!("CARGO_BIN_EXE_mcpact"));
            let status = command
                .arg("--version")
                .uid(OWN)
                .stdout(Stdio::null())
                .status();
            status.is_ok_and(|status| status.success())
        };
        if !is_root || !can_run() {
            eprintln!("skipped: only root can run processes as other users");
            return None;
        }
        chown(home.0.path(), Some(OWN), None).unwrap();
        Some(home)
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn command(&self, uid: u32, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_mcpact"));
        command
            .args(args)
            .env_clear()
            .env("HOME", self.path())
            .current_dir(self.path())
            .stderr(Stdio::null())
            .uid(uid);
        command
    }

    /// Starts a gateway as [`OWN`]; returns it and its URL without the path.
    fn start(&self, args: &[&str]) -> (TestProcess, String) {
        let (process, url) = TestProcess::listening(&mut self.command(OWN, args));
        (process, url.strip_suffix("/mcp").unwrap().to_owned())
    }

    fn serve(&self, gateway: &str) -> (TestProcess, String) {
        let config = self.path().join("mcpact.toml");
        let text = format!("[gateway]\n{gateway}\n[servers.demo]\nbuiltin = \"everything\"\n");
        fs::write(&config, text).unwrap();
        self.start(&["serve", "--config", config.to_str().unwrap()])
    }
}

/// Runs a client as another user: the socket belongs to the user of the thread that creates it.
fn as_user<T: Send>(uid: u32, client: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            rustix::thread::set_thread_uid(Uid::from_raw(uid)).unwrap();
            client()
        });
        thread.join().unwrap()
    })
}

fn initialize(origin: &str, headers: &str) -> String {
    exchange(
        "POST",
        origin,
        "/mcp",
        &format!("{HEADERS}{headers}"),
        INITIALIZE,
    )
}

fn is_ok(response: &str) -> bool {
    response.starts_with("HTTP/1.1 200 ")
}

#[test]
fn only_the_own_user_and_root_are_served_on_loopback() {
    let Some(home) = Home::new() else { return };
    for args in [
        &["serve", "--listen", "127.0.0.1:0"][..],
        &["serve", "--listen", "[::1]:0"],
        &["everything", "--listen", "127.0.0.1:0"],
        &[
            "bridge",
            "--listen",
            "127.0.0.1:0",
            "--",
            env!("CARGO_BIN_EXE_mcpact"),
            "everything",
        ],
    ] {
        let (_gateway, origin) = home.start(args);
        for uid in [OWN, 0] {
            let response = as_user(uid, || initialize(&origin, ""));
            assert!(is_ok(&response), "{args:?} {uid}: {response}");
        }
        let response = as_user(STRANGER, || initialize(&origin, ""));
        assert!(
            response.starts_with("HTTP/1.1 403 "),
            "{args:?}: {response}"
        );
        let text = format!(
            "this request comes from user id {STRANGER}; this server serves only user id {OWN}. Add the user to `allow_users`, or set `token`"
        );
        assert!(response.ends_with(&text), "{args:?}: {response}");
        if args[0] == "serve" {
            let metrics = exchange("GET", &origin, "/metrics", "", "");
            let count = "mcpact_http_rejections_total{status=\"403\"} 1\n";
            assert!(metrics.contains(count), "{metrics}");
        }
    }
}

/// A process of this machine can connect to loopback from another address of it.
#[test]
fn another_source_address_does_not_hide_the_user() {
    let Some(home) = Home::new() else { return };
    let (_gateway, origin) = home.start(&["serve", "--listen", "127.0.0.1:0"]);
    let response = as_user(STRANGER, || {
        let address: std::net::SocketAddr =
            origin.strip_prefix("http://").unwrap().parse().unwrap();
        let socket = rustix::net::socket(
            rustix::net::AddressFamily::INET,
            rustix::net::SocketType::STREAM,
            None,
        );
        let socket = socket.unwrap();
        let source: std::net::SocketAddr = "127.9.9.9:0".parse().unwrap();
        rustix::net::bind(&socket, &source).unwrap();
        rustix::net::connect(&socket, &address).unwrap();
        let mut stream = std::net::TcpStream::from(socket);
        request(&mut stream)
    });
    assert!(response.starts_with("HTTP/1.1 403 "), "{response}");
}

fn request(stream: &mut (impl Read + Write)) -> String {
    let length = INITIALIZE.len();
    write!(
        stream,
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\n{HEADERS}Content-Length: {length}\r\nConnection: close\r\n\r\n{INITIALIZE}"
    )
    .unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    response
}

#[test]
fn listed_users_and_clients_with_the_token_are_served() {
    let Some(home) = Home::new() else { return };
    let flag = FRIEND.to_string();
    let listed = [
        "everything",
        "--listen",
        "127.0.0.1:0",
        "--allow-user",
        &flag,
    ];
    for (_gateway, origin) in [
        home.start(&listed),
        home.serve(&format!(
            "listen = \"127.0.0.1:0\"\nallow_users = [\"root\", {FRIEND}]"
        )),
    ] {
        let [friend, stranger] =
            [FRIEND, STRANGER].map(|uid| as_user(uid, || initialize(&origin, "")));
        assert!(is_ok(&friend), "{friend}");
        assert!(stranger.starts_with("HTTP/1.1 403 "), "{stranger}");
    }
    let token = "0123456789abcdef";
    let (_gateway, origin) = home.serve(&format!("listen = \"127.0.0.1:0\"\ntoken = \"{token}\""));
    let bearer = format!("Authorization: Bearer {token}\r\n");
    let response = as_user(STRANGER, || initialize(&origin, &bearer));
    assert!(is_ok(&response), "{response}");
    let (_gateway, origin) = home.serve("listen = \"127.0.0.1:0\"\nallow_remote = true");
    assert!(is_ok(&as_user(STRANGER, || initialize(&origin, ""))));
}

#[test]
fn unix_socket_is_private_unless_users_are_listed() {
    let Some(home) = Home::new() else { return };
    let socket = home.path().join("gateway.sock");
    let listen = format!("listen = \"unix:{}\"", socket.display());
    let connect = |uid| {
        as_user(uid, || match UnixStream::connect(&socket) {
            Ok(mut stream) => request(&mut stream),
            Err(error) => error.kind().to_string(),
        })
    };
    let (gateway, origin) = home.serve(&listen);
    assert_eq!(origin, format!("unix:{}:", socket.display()));
    let mode = fs::metadata(&socket).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert!(is_ok(&connect(OWN)));
    assert!(is_ok(&connect(0)));
    fs::set_permissions(home.path(), Permissions::from_mode(0o755)).unwrap();
    assert_eq!(connect(STRANGER), "permission denied");
    drop(gateway);
    // The socket of the killed gateway is replaced.
    let (_gateway, _) = home.serve(&format!("{listen}\nallow_users = [{FRIEND}]"));
    let [friend, stranger] = [FRIEND, STRANGER].map(connect);
    assert!(is_ok(&friend), "{friend}");
    assert!(stranger.starts_with("HTTP/1.1 403 "), "{stranger}");
    assert!(
        stranger.contains(&format!("user id {STRANGER}")),
        "{stranger}"
    );
}

/// Runs as any user.
#[test]
fn bridge_connects_stdio_clients_to_a_unix_socket() {
    let home = tempfile::tempdir().unwrap();
    let socket = home.path().join("gateway.sock");
    let mcpact = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_mcpact"));
        command.args(args).env_clear().env("HOME", home.path());
        command.current_dir(home.path()).stderr(Stdio::null());
        command
    };
    let listen = format!("unix:{}", socket.display());
    let (_gateway, url) = TestProcess::listening(&mut mcpact(&["serve", "--listen", &listen]));
    assert_eq!(url, format!("{listen}:/mcp"));
    let one = format!("{listen}:/servers/modern/mcp");
    for target in [&listen, &url, &one] {
        let mut command = mcpact(&["bridge", target]);
        let mut bridge = TestProcess::spawn(command.stdin(Stdio::piped()).stdout(Stdio::piped()));
        writeln!(bridge.stdin.as_mut().unwrap(), "{INITIALIZE}").unwrap();
        let line = bridge.first_line();
        assert!(line.contains("serverInfo"), "{target}: {line}");
    }
}

/// Another user could take the path first.
#[test]
fn unix_socket_in_a_world_writable_folder_is_refused() {
    let home = tempfile::tempdir().unwrap();
    fs::set_permissions(home.path(), Permissions::from_mode(0o1777)).unwrap();
    let listen = format!("unix:{}/gateway.sock", home.path().display());
    let mut command = Command::new(env!("CARGO_BIN_EXE_mcpact"));
    let output = command
        .args(["serve", "--listen", &listen])
        .env("HOME", home.path());
    let output = output.output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(
        message.contains("every user may create files in its folder"),
        "{message}"
    );
}
