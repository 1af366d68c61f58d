//! `mcpact install`: entries in the configs of clients, and their removal.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a broken expectation is a failed test")]

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

/// A client, its config below the home folder, and a config that a user may have.
const CLIENTS: [(&str, &str, &str); 10] = [
    (
        "claude-desktop",
        ".config/Claude/claude_desktop_config.json",
        include_str!("clients/claude_desktop_config.json"),
    ),
    (
        "claude-code",
        ".claude.json",
        include_str!("clients/claude.json"),
    ),
    (
        "cursor",
        ".cursor/mcp.json",
        include_str!("clients/cursor_mcp.json"),
    ),
    (
        "vscode",
        ".config/Code/User/mcp.json",
        include_str!("clients/vscode_mcp.json"),
    ),
    (
        "windsurf",
        ".codeium/windsurf/mcp_config.json",
        include_str!("clients/windsurf_mcp_config.json"),
    ),
    (
        "zed",
        ".config/zed/settings.json",
        include_str!("clients/zed_settings.json"),
    ),
    (
        "codex",
        ".codex/config.toml",
        include_str!("clients/codex_config.toml"),
    ),
    (
        "gemini",
        ".gemini/settings.json",
        include_str!("clients/gemini_settings.json"),
    ),
    (
        "opencode",
        ".config/opencode/opencode.jsonc",
        include_str!("clients/opencode.jsonc"),
    ),
    (
        "cline",
        ".config/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
        include_str!("clients/cline_mcp_settings.json"),
    ),
];

const TOKEN: &str = "0123456789abcdef-hunter2";

/// A home folder, which is also the working directory.
struct Home(TempDir);

impl Home {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_mcpact"));
        command
            .arg("install")
            .args(args)
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("HOME", self.0.path())
            .stdin(Stdio::null())
            .current_dir(self.0.path());
        command
    }

    fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    /// Runs the command, which succeeds, and returns stdout.
    fn done(&self, args: &[&str]) -> String {
        let output = self.run(args);
        assert!(output.status.success(), "{}", seen(&output));
        text(&output.stdout)
    }

    /// Runs the command, which fails with this exit code, and returns stderr.
    fn refused(&self, args: &[&str], code: i32) -> String {
        let output = self.run(args);
        assert_eq!(output.status.code(), Some(code), "{}", seen(&output));
        assert!(output.stdout.is_empty(), "{}", seen(&output));
        text(&output.stderr)
    }

    /// Every file below the home folder, with its content.
    fn files(&self) -> Vec<(PathBuf, String)> {
        let mut all = Vec::new();
        let mut folders = vec![self.0.path().to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                match path.is_dir() {
                    true => folders.push(path),
                    false => {
                        let text = fs::read_to_string(&path).unwrap();
                        all.push((path, text));
                    }
                }
            }
        }
        all.sort();
        all
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn seen(output: &Output) -> String {
    format!(
        "{:?}\n--- stdout\n{}--- stderr\n{}",
        output.status.code(),
        text(&output.stdout),
        text(&output.stderr)
    )
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

/// Returns what was inserted into a text, except for a comma. Every other byte stays.
fn inserted<'t>(before: &str, after: &'t str) -> &'t str {
    let (old, new) = (before.as_bytes(), after.as_bytes());
    let start = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let rest = old[start..].iter().rev().zip(new[start..].iter().rev());
    let same = rest.take_while(|(a, b)| a == b).count();
    // Comments may stand between the comma and the new entry.
    let between = &before[start..before.len() - same];
    let block = &after[start..after.len() - same];
    if between.is_empty() {
        return block;
    }
    let block = block.strip_prefix(',').unwrap();
    block.strip_prefix(between).unwrap()
}

/// The forms in which editors write a file.
fn variants(text: &str) -> [String; 4] {
    [
        text.to_owned(),
        text.replace('\n', "\r\n"),
        format!("\u{feff}{text}"),
        format!("\u{feff}{}", text.trim_end().replace('\n', "\r\n")),
    ]
}

/// Only the entry is new, a second run changes nothing, and `--undo` restores every byte.
#[test]
fn entry_is_installed_and_undone_in_every_client() {
    for (client, file, original) in CLIENTS {
        for original in variants(original) {
            let home = Home::new();
            let path = home.write(file, &original);
            fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
            let backup = PathBuf::from(format!("{}.mcpact-backup", path.display()));

            let told = home.done(&[client]);
            assert!(told.contains("added `mcpact` to"), "{told}");
            let after = home.read(file);
            let block = inserted(&original, &after);
            let url = "http://127.0.0.1:6272/mcp";
            assert!(block.contains("mcpact") && block.contains(url), "{block}");
            if original.contains("\r\n") {
                assert!(!after.replace("\r\n", "").contains('\n'), "{after}");
            }
            assert_eq!(mode(&path), 0o640, "{client}");
            assert_eq!(fs::read_to_string(&backup).unwrap(), original);
            assert_eq!(mode(&backup), 0o600, "{client}");

            let told = home.done(&[client]);
            assert!(told.contains("unchanged: `mcpact`"), "{told}");
            assert_eq!(home.read(file), after);

            let told = home.done(&[client, "--undo"]);
            assert!(told.contains("restored"), "{told}");
            assert_eq!(home.read(file), original, "{client}");
            assert_eq!(mode(&path), 0o640, "{client}");
            assert!(!backup.exists());
            let told = home.refused(&[client, "--undo"], 2);
            assert!(told.contains("nothing to undo"), "{told}");
        }
    }
}

/// The text of each entry, in the style of the file around it.
#[test]
fn entries_have_the_style_of_the_file() {
    let mut all = String::new();
    for (client, file, original) in CLIENTS {
        let home = Home::new();
        home.write(file, original);
        home.write("bin/mcpact", "");
        let told = home.done(&[client, "--dry-run"]);
        assert_eq!(home.read(file), original, "{client}");
        assert_eq!(home.files().len(), 2, "{:?}", home.files());
        let own = fs::canonicalize(env!("CARGO_BIN_EXE_mcpact")).unwrap();
        let told = told.replace(own.to_str().unwrap(), "/usr/bin/mcpact");
        all += &told.replace(home.0.path().to_str().unwrap(), "/home/ada");
    }
    insta::assert_snapshot!(all);
}

#[test]
fn missing_file_is_created_and_removed_by_undo() {
    for (client, file, _) in CLIENTS {
        let file = file.replace(".jsonc", ".json");
        let home = Home::new();
        home.done(&[client]);
        let path = home.path(&file);
        assert_eq!(mode(&path), 0o600, "{client}");
        let told = home.done(&[client, "--dry-run"]);
        assert!(told.is_empty(), "{told}");
        home.done(&[client, "--undo"]);
        assert!(!path.exists(), "{client}");
        assert_eq!(home.files(), []);
    }
}

#[test]
fn undo_refuses_a_file_that_changed() {
    let (client, file, original) = CLIENTS[2];
    let home = Home::new();
    let path = home.write(file, original);
    home.done(&[client]);
    let changed = home.read(file) + "\n";
    fs::write(&path, &changed).unwrap();
    let told = home.refused(&[client, "--undo"], 2);
    assert!(told.contains("has changed since"), "{told}");
    assert!(told.contains("mcp.json.mcpact-backup"), "{told}");
    assert_eq!(home.read(file), changed);

    fs::remove_file(&path).unwrap();
    let told = home.refused(&[client, "--undo"], 2);
    assert!(told.contains("has changed since"), "{told}");
}

#[test]
fn undo_refuses_a_backup_that_changed() {
    let (client, file, original) = CLIENTS[2];
    let home = Home::new();
    home.write(file, original);
    home.done(&[client]);
    let after = home.read(file);
    home.write(".cursor/mcp.json.mcpact-backup", "{}");
    let told = home.refused(&[client, "--undo"], 2);
    assert!(told.contains("missing or has changed"), "{told}");
    assert_eq!(home.read(file), after);
}

/// There is one backup per file: the text before the first change.
#[test]
fn backup_is_the_text_before_the_first_change() {
    let (client, file, original) = CLIENTS[2];
    let home = Home::new();
    home.write(file, original);
    home.write("mcpact.toml", SERVERS);
    home.done(&[client]);
    home.done(&[client, "--all"]);
    assert_eq!(home.read(".cursor/mcp.json.mcpact-backup"), original);
    home.done(&[client, "--undo"]);
    assert_eq!(home.read(file), original);

    home.done(&[client]);
    let changed = home.read(file) + "\n";
    home.write(file, &changed);
    home.done(&[client, "--server", "files"]);
    assert_eq!(home.read(".cursor/mcp.json.mcpact-backup"), changed);
}

#[test]
fn broken_file_stays_as_it_is() {
    for (client, file, original) in CLIENTS {
        let broken = &original[..original.len() / 2];
        let home = Home::new();
        let path = home.write(file, broken);
        let told = home.refused(&[client], 2);
        assert!(told.contains("invalid config"), "{told}");
        assert!(!told.contains("hunter2"), "{told}");
        assert_eq!(home.read(file), broken);
        assert_eq!(home.files(), [(path, broken.to_owned())]);
    }
}

#[test]
fn read_only_file_stays_as_it_is() {
    let (client, file, original) = CLIENTS[2];
    let home = Home::new();
    let path = home.write(file, original);
    fs::set_permissions(&path, Permissions::from_mode(0o444)).unwrap();
    let told = home.refused(&[client], 1);
    assert!(told.contains("the file is read-only"), "{told}");
    assert_eq!(home.files(), [(path, original.to_owned())]);
}

#[test]
fn file_in_a_read_only_folder_stays_as_it_is() {
    /// User without an account.
    const USER: u32 = 65_533;
    let is_root = rustix::process::geteuid().is_root();
    let (client, file, original) = CLIENTS[2];
    let home = Home::new();
    let path = home.write(file, original);
    let folder = path.parent().unwrap();
    let mut command = home.command(&[client]);
    if is_root {
        for path in [home.0.path(), folder, &path] {
            chown(path, Some(USER), None).unwrap();
        }
        command.uid(USER);
    }
    fs::set_permissions(folder, Permissions::from_mode(0o555)).unwrap();
    let Ok(output) = command.output() else {
        eprintln!("skipped: other users cannot run the program");
        return;
    };
    assert_eq!(output.status.code(), Some(1), "{}", seen(&output));
    let told = text(&output.stderr);
    assert!(told.contains("failed to write"), "{told}");
    assert_eq!(home.files(), [(path.clone(), original.to_owned())]);
    fs::set_permissions(folder, Permissions::from_mode(0o755)).unwrap();
}

/// Writes fail as on a full disk.
#[test]
fn full_disk_leaves_the_file_as_it_is() {
    let (client, file, original) = CLIENTS[2];
    let home = Home::new();
    let path = home.write(file, original);
    let mut command = Command::new("sh");
    command
        .args(["-c", "trap '' XFSZ; ulimit -f 0; exec \"$@\"", "sh"])
        .args([env!("CARGO_BIN_EXE_mcpact"), "install", client])
        .env_clear()
        .env("HOME", home.0.path())
        .current_dir(home.0.path());
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", seen(&output));
    let told = text(&output.stderr);
    assert!(told.contains("failed to write"), "{told}");
    assert_eq!(home.files(), [(path, original.to_owned())]);
}

#[test]
fn symbolic_link_stays() {
    let (client, file, original) = CLIENTS[2];
    let home = Home::new();
    let target = home.write("dotfiles/mcp.json", original);
    fs::create_dir(home.path(".cursor")).unwrap();
    symlink("../dotfiles/mcp.json", home.path(file)).unwrap();
    home.done(&[client]);
    assert!(home.path(file).is_symlink());
    assert_ne!(fs::read_to_string(&target).unwrap(), original);
    home.done(&[client, "--undo"]);
    assert!(home.path(file).is_symlink());
    assert_eq!(fs::read_to_string(&target).unwrap(), original);

    fs::remove_file(&target).unwrap();
    let told = home.refused(&[client], 2);
    assert!(told.contains("cannot read"), "{told}");
    assert!(home.path(file).is_symlink());
}

const SERVERS: &str = "[servers.files]\ncommand = \"files-server\"\n\n[servers.tickets]\nurl = \"https://tickets.example/mcp\"\n";

#[test]
fn servers_get_entries_of_their_own() {
    let home = Home::new();
    home.write("mcpact.toml", SERVERS);
    home.write(".cursor/mcp.json", CLIENTS[2].2);
    let told = home.done(&["cursor", "--all"]);
    assert!(told.contains("added `files`"), "{told}");
    assert!(told.contains("replaced `tickets`"), "{told}");
    let text = home.read(".cursor/mcp.json");
    for name in ["files", "tickets"] {
        let url = format!("http://127.0.0.1:6272/servers/{name}/mcp");
        assert!(text.contains(&url), "{text}");
    }
    assert!(text.contains("\"time\":{\"command\":\"uvx\""), "{text}");
    assert!(!text.contains("hunter2"), "{text}");
    home.done(&["codex", "--server", "files"]);
    assert_eq!(
        home.read(".codex/config.toml"),
        "[mcp_servers.files]\nurl = \"http://127.0.0.1:6272/servers/files/mcp\"\n"
    );
    let told = home.refused(&["cursor", "--server", "file"], 2);
    assert!(told.contains("did you mean `files`?"), "{told}");
}

#[test]
fn unknown_clients_are_suggested() {
    let home = Home::new();
    let told = home.refused(&["windsrf"], 2);
    assert!(told.contains("did you mean `windsurf`?"), "{told}");
    assert!(told.contains("`claude-desktop`, `claude-code`"), "{told}");
    let told = home.refused(&["cursor", "--all"], 2);
    assert!(told.contains("no config found"), "{told}");
    assert_eq!(home.files(), []);
}

/// The address of the gateway decides about the form of the entry.
#[test]
fn entry_points_at_the_address_of_the_config() {
    for (gateway, client, file, expected) in [
        (
            "listen = \"0.0.0.0:7000\"\nallow_remote = true",
            "cursor",
            ".cursor/mcp.json",
            "\"url\": \"http://127.0.0.1:7000/mcp\"",
        ),
        (
            "listen = \"[::1]:7000\"",
            "cursor",
            ".cursor/mcp.json",
            "\"url\": \"http://[::1]:7000/mcp\"",
        ),
        (
            "listen = \"unix:/run/user/1/mcpact.sock\"",
            "cursor",
            ".cursor/mcp.json",
            "\"bridge\", \"unix:/run/user/1/mcpact.sock\"]",
        ),
        (
            "listen = \"127.0.0.1:0\"",
            "codex",
            ".codex/config.toml",
            "\"serve\", \"--stdio\", \"--config\", \"",
        ),
    ] {
        let home = Home::new();
        let config = home.write(
            "work/gateway.toml",
            &format!("[gateway]\n{gateway}\n{SERVERS}"),
        );
        home.done(&[client, "--config", "work/gateway.toml"]);
        let text = home.read(file);
        assert!(text.contains(expected), "{text}");
        if gateway.contains(":0\"") {
            assert!(text.contains(config.to_str().unwrap()), "{text}");
            let args = [client, "--config", "work/gateway.toml", "--server", "files"];
            let told = home.refused(&args, 2);
            assert!(told.contains("no fixed address"), "{told}");
        }
    }
}

/// The token is never written, and the variable need not be set.
#[test]
fn tokens_are_written_as_references() {
    for is_set in [false, true] {
        for (client, file, _) in CLIENTS {
            let home = Home::new();
            home.write("mcpact.toml", "[gateway]\ntoken = \"${GATEWAY_TOKEN}\"\n");
            let mut command = home.command(&[client]);
            if is_set {
                command.env("GATEWAY_TOKEN", TOKEN);
            }
            let output = command.output().unwrap();
            assert!(!seen(&output).contains(TOKEN));
            assert!(home.files().iter().all(|(_, text)| !text.contains(TOKEN)));
            let path = home.path(&file.replace(".jsonc", ".json"));
            if matches!(client, "claude-desktop" | "cline") {
                assert_eq!(output.status.code(), Some(2), "{}", seen(&output));
                let told = text(&output.stderr);
                assert!(
                    told.contains("does not pass the variable `GATEWAY_TOKEN`"),
                    "{told}"
                );
                assert!(told.contains("${file:PATH}"), "{told}");
                assert!(!path.exists());
            } else {
                assert!(output.status.success(), "{}", seen(&output));
                let written = fs::read_to_string(path).unwrap();
                assert!(written.contains("GATEWAY_TOKEN"), "{written}");
                let told = text(&output.stderr);
                assert!(told.contains("set `GATEWAY_TOKEN` to the token"), "{told}");
            }
        }
    }
}

#[test]
fn token_files_are_written_as_references() {
    for (client, file, _) in CLIENTS {
        let home = Home::new();
        let token = home.write("token", TOKEN);
        home.write("mcpact.toml", "[gateway]\ntoken = \"${file:token}\"\n");
        home.done(&[client]);
        let written = home.read(&file.replace(".jsonc", ".json"));
        assert!(written.contains(token.to_str().unwrap()), "{written}");
        assert!(!written.contains(TOKEN), "{written}");
    }
}

/// The command of an entry starts a gateway with the servers of the config.
#[test]
fn installed_command_serves_the_config() {
    const LIST: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}"#;
    let home = Home::new();
    let config = "[gateway]\nlisten = \"127.0.0.1:0\"\n[servers.demo]\nbuiltin = \"everything\"\n";
    home.write("mcpact.toml", config);
    home.done(&["claude-desktop"]);
    let written = home.read(".config/Claude/claude_desktop_config.json");
    let written: serde_json::Value = serde_json::from_str(&written).unwrap();
    let entry = &written["mcpServers"]["mcpact"];
    let args = entry["args"].as_array().unwrap();
    let args = args.iter().map(|arg| arg.as_str().unwrap());
    let requests = home.write("requests", &format!("{LIST}\n"));
    let output = Command::new(entry["command"].as_str().unwrap())
        .args(args)
        .env_clear()
        .env("HOME", home.0.path())
        .current_dir("/")
        .stdin(fs::File::open(requests).unwrap())
        .output()
        .unwrap();
    assert!(
        text(&output.stdout).contains("demo__echo"),
        "{}",
        seen(&output)
    );
}

/// A gateway must not serve its own entries.
#[test]
fn config_of_the_gateway_is_not_edited() {
    let home = Home::new();
    home.write(".cursor/mcp.json", CLIENTS[2].2);
    let args = ["cursor", "--all", "--config", ".cursor/mcp.json"];
    let told = home.refused(&args, 2);
    assert!(told.contains("the gateway reads"), "{told}");
    assert!(told.contains("mcpact import"), "{told}");
    assert_eq!(home.read(".cursor/mcp.json"), CLIENTS[2].2);
}

#[test]
fn clients_are_listed_with_their_state() {
    let home = Home::new();
    home.write(".cursor/mcp.json", CLIENTS[2].2);
    home.write(".config/zed/settings.json", CLIENTS[5].2);
    home.done(&["zed"]);
    home.done(&["codex"]);
    insta::assert_snapshot!(home.done(&[]));
}

/// The environment of some clients moves their config.
#[test]
fn config_folder_of_the_client_is_respected() {
    let home = Home::new();
    let mut command = home.command(&["codex"]);
    command.env("CODEX_HOME", home.path("codex"));
    assert!(command.output().unwrap().status.success());
    assert!(
        home.read("codex/config.toml")
            .contains("[mcp_servers.mcpact]")
    );
}

/// Exit code, stdout and stderr of every outcome.
#[test]
fn outcomes_are_reported() {
    let home = Home::new();
    home.write(".cursor/mcp.json", "{ \"mcpServers\": { // none yet\n} }\n");
    home.write(".codex/config.toml", "[mcp_servers\n");
    home.write(
        "mcpact.toml",
        &format!("[gateway]\ntoken = \"${{TOKEN}}\"\n{SERVERS}"),
    );
    let mut all = String::new();
    for args in [
        &["cursor", "--dry-run"][..],
        &["cursor"],
        &["cursor"],
        &["cursor", "--undo"],
        &["cursor", "--undo"],
        &["cursor", "--server", "tickts"],
        &["cursr"],
        &["codex"],
        &["cline"],
        &["cursor", "--all", "--undo"],
    ] {
        let output = home.run(args);
        all += &format!("$ mcpact install {}\n{}\n", args.join(" "), seen(&output));
    }
    let folder = home.0.path().to_str().unwrap();
    insta::assert_snapshot!(all.replace(folder, "/home/ada"));
}

#[test]
fn diff_is_coloured_on_demand() {
    let home = Home::new();
    let run = |name: &str| {
        let mut command = home.command(&["cursor", "--dry-run"]);
        text(&command.env(name, "1").output().unwrap().stdout)
    };
    assert!(run("CLICOLOR_FORCE").contains("\u{1b}[32m+"));
    assert!(!run("NO_COLOR").contains('\u{1b}'));
}

#[test]
fn install_help() {
    insta::assert_snapshot!(Home::new().done(&["--help"]));
}
