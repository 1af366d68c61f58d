//! `mcpact serve`: config, cache and the startup overview.
#![expect(clippy::unwrap_used, reason = "a broken expectation is a failed test")]

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use mcpact::client::Client;
use mcpact_engine::client::EraMode;
use mcpact_sim::scripted::process::TestProcess;
use mcpact_spec::Revision;
use serde_json::{Value, json};

struct Running {
    child: TestProcess,
    url: String,
}

impl Running {
    /// Sends TERM and returns stderr.
    fn stop(mut self) -> String {
        self.child.signal("-TERM");
        let mut overview = String::new();
        let mut stderr = self.child.stderr.take().unwrap();
        stderr.read_to_string(&mut overview).unwrap();
        assert!(self.child.wait().unwrap().success(), "{overview}");
        overview
    }
}

fn command(folder: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mcpact"));
    command.arg("serve").args(args).current_dir(folder);
    command.env("XDG_CACHE_HOME", folder.join("cache"));
    command.env("XDG_RUNTIME_DIR", folder.join("run"));
    command.env("XDG_STATE_HOME", folder.join("state"));
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn start(folder: &Path, args: &[&str]) -> Running {
    running(&mut command(folder, args))
}

fn running(command: &mut Command) -> Running {
    let (child, url) = TestProcess::listening(command);
    Running { child, url }
}

async fn echo(url: &str, revision: Revision, tool: &str) -> String {
    let client = Client::builder("person", "1").mode(EraMode::Pin(revision));
    let client = client.connect(url.to_owned()).await.unwrap();
    let tools = client.list_tools().await.unwrap();
    assert!(tools.iter().any(|listed| listed.name == tool), "{tool}");
    let echoed = client.call_tool(tool, json!({"text": tool})).await.unwrap();
    client.close().await;
    echoed.all_text()
}

/// Servers and clients of both eras; the overview has the revisions and the client config.
#[tokio::test(flavor = "multi_thread")]
async fn without_a_config_demo_servers_are_served() {
    let folder = tempfile::tempdir().unwrap();
    let running = start(folder.path(), &["--listen", "127.0.0.1:0"]);
    for revision in [Revision::V2024_11_05, Revision::V2026_07_28] {
        for tool in ["legacy__echo", "modern__echo"] {
            assert_eq!(echo(&running.url, revision, tool).await, tool);
        }
    }
    let url = running.url.clone();
    let overview = running.stop();
    for words in [
        "legacy  2025-11-25",
        "modern  2026-07-28",
        "mcpServers",
        url.as_str(),
    ] {
        assert!(overview.contains(words), "{overview}");
    }
}

/// Approves everything in the nearest config.
fn approve(folder: &Path) {
    let approve = |more: &[String]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_mcpact"));
        command.arg("approve").args(more).current_dir(folder);
        command.env("XDG_STATE_HOME", folder.join("state"));
        command.stdin(Stdio::null()).output().unwrap()
    };
    let shown = approve(&[]);
    let shown = String::from_utf8(shown.stderr).unwrap();
    let marks = shown
        .lines()
        .filter_map(|line| line.trim().strip_prefix("mark"));
    let marks = marks.flat_map(|mark| [String::from("--mark"), mark.trim().to_owned()]);
    let marks: Vec<String> = marks.collect();
    assert!(approve(&marks).status.success(), "{shown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn serve_uses_the_nearest_config() {
    let folder = tempfile::tempdir().unwrap();
    let mcpact = env!("CARGO_BIN_EXE_mcpact");
    let config = format!(
        "[gateway]\nlisten = \"127.0.0.1:0\"\n\
         [servers.old]\ncommand = \"{mcpact}\"\nargs = [\"everything\", \"--revisions\", \"2025-03-26\"]\n\
         [servers.new]\ncommand = \"{mcpact}\"\nargs = [\"everything\", \"--revisions\", \"2026-07-28\"]\n"
    );
    std::fs::write(folder.path().join("mcpact.toml"), config).unwrap();
    let inner = folder.path().join("a/b");
    std::fs::create_dir_all(&inner).unwrap();
    approve(&inner);
    let running = start(&inner, &[]);
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        for tool in ["old__echo", "new__echo"] {
            assert_eq!(echo(&running.url, revision, tool).await, tool);
        }
    }
    let overview = running.stop();
    assert!(
        overview.contains("old     2025-03-26  legacy"),
        "{overview}"
    );
}

#[test]
fn invalid_config_is_rejected_with_all_problems() {
    let folder = tempfile::tempdir().unwrap();
    let config = "[servers.a]\ncommnad = \"x\"\n[servers.b]\nurl = \"nowhere\"\n";
    std::fs::write(folder.path().join("mcpact.toml"), config).unwrap();
    let output = command(folder.path(), &[]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let overview = String::from_utf8(output.stderr).unwrap();
    for words in ["mcpact.toml:2:1", "`command`", "mcpact.toml:4:1"] {
        assert!(overview.contains(words), "{overview}");
    }
}

/// Installs a server that records its starts, and its config.
#[cfg(unix)]
fn install_recording_server(folder: &Path) {
    use std::os::unix::fs::PermissionsExt;
    let script = folder.join("noting");
    let mcpact = env!("CARGO_BIN_EXE_mcpact");
    let text = format!(
        "#!/bin/sh\necho x >> \"$NOTES\"\nexec {mcpact} everything --revisions 2025-11-25\n"
    );
    std::fs::write(&script, text).unwrap();
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o700)).unwrap();
    let config = format!(
        "[gateway]\nlisten = \"127.0.0.1:0\"\n[servers.a]\ncommand = {:?}\nenv = {{ NOTES = {:?}, SECRET = \"canary\" }}\n",
        script,
        folder.join("starts")
    );
    std::fs::write(folder.join("mcpact.toml"), config).unwrap();
}

/// A list starts nothing; a call starts the server. The cache has no configuration, and `--no-
/// cache` writes none.
#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn lists_are_cached_across_restarts() {
    let folder = tempfile::tempdir().unwrap();
    install_recording_server(folder.path());
    approve(folder.path());
    let starts = || {
        let notes = std::fs::read_to_string(folder.path().join("starts"));
        notes.unwrap_or_default().lines().count()
    };
    let listed = async |url: &str, revision: Revision| {
        let client = Client::builder("person", "1").mode(EraMode::Pin(revision));
        let client = client.connect(url.to_owned()).await.unwrap();
        let tools = client.list_tools().await.unwrap();
        client.list_resources().await.unwrap();
        client.close().await;
        tools.iter().any(|tool| tool.name == "a__echo")
    };
    let eras = [Revision::V2025_06_18, Revision::V2026_07_28];
    let forgetful = start(folder.path(), &["--no-cache"]);
    assert!(listed(&forgetful.url, eras[0]).await);
    forgetful.stop();
    assert!(!folder.path().join("cache").exists(), "nothing is kept");
    let first = start(folder.path(), &[]);
    for revision in eras {
        assert!(listed(&first.url, revision).await);
    }
    first.stop();
    let before = starts();
    assert!(before > 1);
    let second = start(folder.path(), &[]);
    for revision in eras {
        assert!(listed(&second.url, revision).await);
    }
    assert_eq!(starts(), before, "nothing was started for lists");
    assert_eq!(echo(&second.url, eras[0], "a__echo").await, "a__echo");
    assert_eq!(starts(), before + 1);
    let overview = second.stop();
    assert!(
        overview.contains("2025-11-25  legacy  asleep"),
        "{overview}"
    );
    let kept = std::fs::read_dir(folder.path().join("cache/mcpact/servers")).unwrap();
    for file in kept {
        let path = file.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains("tools/list"), "{text}");
        let is_reported = |what: &str| text.contains(what) || path.to_string_lossy().contains(what);
        assert!(!is_reported("canary") && !is_reported("noting"), "{text}");
    }
}

/// Its row follows when it has started.
#[cfg(unix)]
#[test]
fn slow_server_does_not_delay_the_overview() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let (script, gate) = (folder.path().join("slow"), folder.path().join("gate"));
    let mcpact = env!("CARGO_BIN_EXE_mcpact");
    let text = format!(
        "#!/bin/sh\nwhile [ ! -e {gate:?} ]; do sleep 0.02; done\nexec {mcpact} everything --revisions 2025-11-25\n"
    );
    std::fs::write(&script, text).unwrap();
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o700)).unwrap();
    let config = format!(
        "[servers.quick]\nbuiltin = \"everything\"\n[servers.slow]\ncommand = {script:?}\nera = \"legacy\"\nstart_seconds = 3600\n"
    );
    std::fs::write(folder.path().join("slow.toml"), config).unwrap();
    let args = ["--listen", "127.0.0.1:0", "--config", "slow.toml"];
    let mut running = start(folder.path(), &args);
    let mut overview = BufReader::new(running.child.stderr.take().unwrap()).lines();
    let mut until = |words: &str| overview.any(|line| line.unwrap().contains(words));
    assert!(until("quick   2026-07-28"));
    assert!(until("slow    -           -       starting"));
    assert!(until("mcpServers"));
    std::fs::write(gate, "").unwrap();
    assert!(until("slow    2025-11-25  legacy  ready"));
}

#[test]
fn empty_config_prints_next_steps() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("empty.toml"), "").unwrap();
    let args = ["--listen", "127.0.0.1:0", "--config", "empty.toml"];
    let mut running = start(folder.path(), &args);
    let mut overview = BufReader::new(running.child.stderr.take().unwrap()).lines();
    assert!(overview.any(|line| {
        line.unwrap()
            .contains("no servers yet: add one to the config")
    }));
}

/// Returns command, variables and header of the client configs in the overview, and the whole
/// overview.
fn client_configs(running: &mut Running) -> (Vec<String>, Value, String, String) {
    let overview = BufReader::new(running.child.stderr.take().unwrap());
    let mut all = String::new();
    let mut servers = Vec::new();
    for line in overview.lines() {
        let line = line.unwrap();
        all.push_str(&line);
        if let Ok(config) = serde_json::from_str::<Value>(&line) {
            servers.push(config["mcpServers"]["mcpact"].clone());
        }
        // The note about the token follows the configs.
        if line.starts_with("Set `") {
            break;
        }
    }
    assert_eq!(servers.len(), 2, "{all}");
    let (by_http, by_program) = (&servers[0], &servers[1]);
    assert_eq!(by_http["url"], running.url);
    let header = by_http["headers"]["Authorization"].as_str();
    let args = by_program["args"].as_array().unwrap().iter();
    let words = std::iter::once(&by_program["command"]).chain(args);
    let words = words
        .map(|word| word.as_str().unwrap().to_owned())
        .collect();
    let header = header.unwrap_or_default().to_owned();
    (words, by_program["env"].clone(), header, all)
}

#[test]
fn client_config_refers_to_the_token_without_revealing_it() {
    const TOKEN: &str = "abcdefgh-0123456789";
    for (written, variable, place) in [
        (TOKEN, "MCPACT_TOKEN", "env:MCPACT_TOKEN"),
        ("${MY_TOKEN}", "MY_TOKEN", "env:MY_TOKEN"),
        ("${env:MY_TOKEN}", "MY_TOKEN", "env:MY_TOKEN"),
        ("${MY_TOKEN:-x}", "MY_TOKEN", "env:MY_TOKEN"),
        ("${env:MY_TOKEN:-x}", "MY_TOKEN", "env:MY_TOKEN"),
        ("${file:to ken}", "MCPACT_TOKEN", "file:FOLDER/to ken"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let inside = folder.path().canonicalize().unwrap();
        std::fs::write(inside.join("to ken"), TOKEN).unwrap();
        let config = format!(
            "[gateway]\nlisten = \"127.0.0.1:0\"\ntoken = {written:?}\n[servers.e]\nbuiltin = \"everything\"\n"
        );
        std::fs::write(inside.join("mcpact.toml"), config).unwrap();
        let mut gateway = command(&inside, &[]);
        let mut running = running(gateway.env("MY_TOKEN", TOKEN));
        let (words, env, header, overview) = client_configs(&mut running);
        assert_eq!(header, format!("Bearer ${{{variable}}}"), "{written}");
        assert!(!overview.contains(TOKEN), "{overview}");
        let place = place.replace("FOLDER", &inside.to_string_lossy());
        // Clients expand `${…}` in arguments, which the process list shows.
        assert_eq!(words[1..], ["bridge", "--bearer", &place, &running.url]);
        let expected = match place.strip_prefix("env:") {
            Some(name) => json!({ name: format!("${{{name}}}") }),
            None => Value::Null,
        };
        assert_eq!(env, expected, "{written}");

        let mut bridge = Command::new(&words[0]);
        // A client passes only the variables of its config.
        bridge
            .args(&words[1..])
            .env_clear()
            .env("XDG_CACHE_HOME", inside.join("cache"));
        for name in env.as_object().into_iter().flat_map(|env| env.keys()) {
            bridge.env(name, TOKEN);
        }
        bridge.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut bridge = bridge.spawn().unwrap();
        let mut to = bridge.stdin.take().unwrap();
        let hello = json!({
            "jsonrpc": "2.0", "id": 1, "method": "initialize",
            "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
        });
        writeln!(to, "{hello}").unwrap();
        let mut answer = String::new();
        BufReader::new(bridge.stdout.take().unwrap())
            .read_line(&mut answer)
            .unwrap();
        drop(to);
        assert!(bridge.wait().unwrap().success());
        assert!(answer.contains("serverInfo"), "{written}: {answer}");
    }
}

/// Like the key `listen`.
#[test]
fn listen_flag_warns_about_non_loopback_address() {
    let folder = tempfile::tempdir().unwrap();
    for (listen, hosts, is_reported) in [
        ("0.0.0.0:0", "", true),
        ("0.0.0.0:0", "allow_hosts = [\"mcp.example\"]\n", false),
        ("127.0.0.1:0", "", false),
    ] {
        let config = format!("[gateway]\ntoken = \"abcdefgh-0123456789\"\n{hosts}");
        std::fs::write(folder.path().join("own.toml"), config).unwrap();
        let args = ["--listen", listen, "--config", "own.toml"];
        let mut running = start(folder.path(), &args);
        let overview = BufReader::new(running.child.stderr.take().unwrap()).lines();
        let mut overview = overview.map(Result::unwrap);
        let before: Vec<String> = overview
            .by_ref()
            .take_while(|line| !line.starts_with("Serving "))
            .collect();
        let message = before
            .iter()
            .any(|line| line.contains("get 403 without `allow_hosts`"));
        assert_eq!(message, is_reported, "{listen} {hosts}: {before:?}");
    }
}

/// For the hosts in `allow_hosts`.
#[tokio::test(flavor = "multi_thread")]
async fn overview_shows_urls_for_other_machines() {
    let folder = tempfile::tempdir().unwrap();
    let config = "[gateway]\ntoken = \"abcdefgh-0123456789\"\nallow_hosts = [\"mcp.example\", \"fd00::1\"]\n";
    std::fs::write(folder.path().join("own.toml"), config).unwrap();
    for (listen, is_reported) in [("0.0.0.0:0", true), ("127.0.0.1:0", false)] {
        let args = ["--listen", listen, "--config", "own.toml"];
        let mut running = start(folder.path(), &args);
        let port = running.url.rsplit([':', '/']).nth(1).unwrap().to_owned();
        let stderr = BufReader::new(running.child.stderr.take().unwrap());
        let mut lines = stderr.lines().map(Result::unwrap);
        let is_last = |line: &String| line.contains("does not expand variables, replace");
        let mut overview: Vec<String> = lines.by_ref().take_while(|line| !is_last(line)).collect();
        if is_reported {
            overview.extend(lines.take(2));
        }
        let overview = overview.join("\n");
        for words in [
            format!("  remote       http://mcp.example:{port}/mcp"),
            format!("  remote       http://[fd00::1]:{port}/mcp"),
            format!(
                "On other machines, replace `http://127.0.0.1:{port}` with `http://mcp.example:{port}`."
            ),
        ] {
            assert_eq!(
                overview.contains(&words),
                is_reported,
                "{listen}: {overview}"
            );
        }
    }
}
