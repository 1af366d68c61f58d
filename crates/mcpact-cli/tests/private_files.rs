//! Files that are private whatever the umask is, and output of foreign text.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a broken expectation is a failed test")]

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use mcpact_sim::scripted::process::{TestProcess, exchange};
use tempfile::TempDir;

const HEADERS: &str = "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/list\r\n";
const LIST: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}"#;

/// Home folder with a config for one server.
struct Home(TempDir);

impl Home {
    fn new() -> Self {
        let home = Self(tempfile::tempdir().unwrap());
        let program = env!("CARGO_BIN_EXE_mcpact");
        let config = format!(
            "[gateway]\nlisten = \"127.0.0.1:0\"\n[servers.demo]\ncommand = \"{program}\"\nargs = [\"everything\"]\n"
        );
        fs::write(home.path("mcpact.toml"), config).unwrap();
        home
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn command(&self, umask: &str, args: &[&str]) -> Command {
        let mut command = Command::new("sh");
        let script = "umask $0; exec \"$@\"";
        command
            .args(["-c", script, umask, env!("CARGO_BIN_EXE_mcpact")])
            .args(args);
        command
            .env("HOME", self.0.path())
            .current_dir(self.0.path());
        for name in ["XDG_CACHE_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR"] {
            command.env_remove(name);
        }
        command
    }

    fn run(&self, args: &[&str]) -> Output {
        self.command("022", args).output().unwrap()
    }

    fn serve(&self, umask: &str) -> (TestProcess, String) {
        let mut command = self.command(umask, &["serve", "--config", "mcpact.toml"]);
        TestProcess::listening(command.stderr(Stdio::null()))
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Returns everything below a folder with its mode.
fn modes(folder: &Path) -> Vec<(PathBuf, u32)> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        let facts = fs::symlink_metadata(&path).unwrap();
        if facts.is_dir() {
            all.extend(modes(&path));
        }
        all.push((path, facts.permissions().mode() & 0o777));
    }
    all
}

fn wait_for(path: &Path) {
    let late = Instant::now() + Duration::from_secs(20);
    while fs::read_dir(path).map_or(0, Iterator::count) == 0 {
        assert!(Instant::now() < late, "{} is empty", path.display());
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn cache_and_state_are_private_under_every_umask() {
    for umask in ["000", "022", "077"] {
        let home = Home::new();
        let (_gateway, url) = home.serve(umask);
        let origin = url.strip_suffix("/mcp").unwrap();
        let list = exchange("POST", origin, "/mcp", HEADERS, LIST);
        assert!(list.contains("demo__"), "{list}");
        let shown = home
            .command(umask, &["approve"])
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let shown = text(&shown.stderr);
        let mark = shown
            .lines()
            .find_map(|line| line.trim().strip_prefix("mark "));
        let approve = ["approve", "--mark", mark.unwrap().trim()];
        let approved = home.command(umask, &approve).output().unwrap();
        assert!(approved.status.success(), "{}", text(&approved.stderr));
        wait_for(&home.path(".cache/mcpact/servers"));
        wait_for(&home.path(".local/state/mcpact/tools"));
        let all = [".cache", ".local"]
            .map(|folder| modes(&home.path(folder)))
            .concat();
        let has = |name: &str| all.iter().any(|(path, _)| path.ends_with(name));
        assert!(has("approvals") && has("verdicts.json"), "{all:?}");
        for (path, mode) in &all {
            let expected = if path.is_dir() { 0o700 } else { 0o600 };
            assert_eq!(*mode, expected, "umask {umask}: {}", path.display());
        }
    }
}

/// Folders of an earlier version become private.
#[test]
fn open_folders_of_the_user_become_private() {
    let home = Home::new();
    let folder = home.path(".cache/mcpact");
    fs::create_dir_all(&folder).unwrap();
    fs::set_permissions(&folder, Permissions::from_mode(0o755)).unwrap();
    let _gateway = home.serve("022");
    let mode = fs::metadata(&folder).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
}

#[test]
fn bundle_is_not_written_through_links() {
    let home = Home::new();
    let _gateway = home.serve("022");
    let (victim, link) = (home.path("victim"), home.path("bundle.json"));
    fs::write(&victim, "victim").unwrap();
    symlink(&victim, &link).unwrap();
    let output = home.run(&["status", "--bundle", "bundle.json"]);
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(message.contains("it is a symbolic link"), "{message}");
    assert_eq!(fs::read_to_string(&victim).unwrap(), "victim");
    fs::remove_file(&link).unwrap();
    for _ in 0..2 {
        let output = home.run(&["status", "--bundle", "bundle.json"]);
        assert!(output.status.success(), "{}", text(&output.stderr));
        let mode = fs::metadata(&link).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}

#[test]
fn readable_private_key_is_a_warning() {
    let home = Home::new();
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    fs::write(home.path("cert.pem"), made.cert.pem()).unwrap();
    fs::write(home.path("key.pem"), made.signing_key.serialize_pem()).unwrap();
    let config = "[gateway]\nlisten = \"127.0.0.1:0\"\ntls_cert = \"cert.pem\"\ntls_key = \"key.pem\"\n[servers.demo]\nbuiltin = \"everything\"\n";
    fs::write(home.path("mcpact.toml"), config).unwrap();
    let warning = "every user of this machine can read the private key";
    for (mode, expected) in [(0o644, true), (0o600, false)] {
        fs::set_permissions(home.path("key.pem"), Permissions::from_mode(mode)).unwrap();
        let checked = text(&home.run(&["check", "mcpact.toml"]).stdout);
        assert_eq!(checked.contains(warning), expected, "{checked}");
        let listen = ["everything", "--listen", "127.0.0.1:0"];
        let tls = ["--tls-cert", "cert.pem", "--tls-key", "key.pem"];
        for args in [
            ["serve", "--config", "mcpact.toml"].to_vec(),
            [&listen[..], &tls].concat(),
        ] {
            let mut command = home.command("022", &args);
            let log = fs::File::create(home.path("log")).unwrap();
            let _server = TestProcess::listening(command.stderr(log));
            let log = fs::read_to_string(home.path("log")).unwrap();
            assert_eq!(log.contains(warning), expected, "{args:?}: {log}");
        }
    }
}

/// Text of a config that someone else wrote has no effect on the terminal.
#[test]
fn foreign_text_is_escaped_in_output() {
    let home = Home::new();
    let json = "{\"mcpServers\": {\"a\\u001b[2J\": {\"command\": \"./x\\u202ey\\u001b[2J\", \"args\": [\"\\u009b31m\", \"\\u200b\"], \"cwd\": \".\", \"env\": {\"K\\u001b[4m\": \"\\u0007\"}, \"nonsense\\u001b[5m\": 1},\
        \"b\": {\"command\": \"./missing\\u001b[7m\"}}}";
    let program = home.path("x\u{202e}y\u{1b}[2J");
    fs::write(&program, "#!/bin/sh\n").unwrap();
    fs::set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
    fs::write(home.path("\u{1b}[3m.mcp.json"), json).unwrap();
    let file = "\u{1b}[3m.mcp.json";
    let runs: [&[&str]; 5] = [
        &["import", "--output", "-", file],
        &["check", file],
        &["check", "--strict", file],
        &["approve", "--config", file],
        &["serve", "--stdio", "--config", file],
    ];
    for args in runs {
        let output = home
            .command("022", args)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        assert!(args[0] != "import" || output.status.success(), "{args:?}");
        assert!(
            !output.stdout.is_empty() || !output.stderr.is_empty(),
            "{args:?}"
        );
        for shown in [text(&output.stdout), text(&output.stderr)] {
            let is_bad =
                |c: char| (c.is_control() && c != '\n') || matches!(c, '\u{202e}' | '\u{200b}');
            assert!(!shown.contains(is_bad), "{args:?}: {shown:?}");
        }
    }
}
