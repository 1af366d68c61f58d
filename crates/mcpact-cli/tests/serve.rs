//! `mcpact serve`, as a person starts it.
#![expect(clippy::unwrap_used, reason = "a broken expectation is a failed test")]

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use mcpact::client::Client;
use mcpact_engine::client::EraMode;
use mcpact_spec::Revision;
use serde_json::{Value, json};

struct Running {
    child: Child,
    url: String,
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Running {
    /// Ends it as a service manager does, and gives back what it said beside its results.
    fn end(mut self) -> String {
        let pid = self.child.id().to_string();
        let ended = Command::new("kill").args(["-TERM", &pid]).status().unwrap();
        assert!(ended.success());
        let mut said = String::new();
        let mut stderr = self.child.stderr.take().unwrap();
        stderr.read_to_string(&mut said).unwrap();
        assert!(self.child.wait().unwrap().success(), "{said}");
        said
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
    let mut child = command.spawn().unwrap();
    let mut url = String::new();
    let stdout = child.stdout.take().unwrap();
    BufReader::new(stdout).read_line(&mut url).unwrap();
    Running {
        child,
        url: url.trim().to_owned(),
    }
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

/// Without any config, servers of both eras behind one address, for clients of both; what was
/// negotiated and what to paste into a client is told.
#[tokio::test(flavor = "multi_thread")]
async fn without_a_config_it_shows_what_it_does() {
    let folder = tempfile::tempdir().unwrap();
    let running = start(folder.path(), &["--listen", "127.0.0.1:0"]);
    for revision in [Revision::V2024_11_05, Revision::V2026_07_28] {
        for tool in ["legacy__echo", "modern__echo"] {
            assert_eq!(echo(&running.url, revision, tool).await, tool);
        }
    }
    let url = running.url.clone();
    let said = running.end();
    for words in [
        "legacy  2025-11-25",
        "modern  2026-07-28",
        "mcpServers",
        url.as_str(),
    ] {
        assert!(said.contains(words), "{said}");
    }
}

/// Agrees to everything that the nearest config starts.
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

/// The nearest config is found; its programs are started with what it names.
#[tokio::test(flavor = "multi_thread")]
async fn the_nearest_config_is_served() {
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
    let said = running.end();
    assert!(said.contains("old     2025-03-26  legacy"), "{said}");
}

/// A config that is wrong ends it at once, with everything that is wrong.
#[test]
fn a_wrong_config_is_refused_with_all_of_its_problems() {
    let folder = tempfile::tempdir().unwrap();
    let config = "[servers.a]\ncommnad = \"x\"\n[servers.b]\nurl = \"nowhere\"\n";
    std::fs::write(folder.path().join("mcpact.toml"), config).unwrap();
    let output = command(folder.path(), &[]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8(output.stderr).unwrap();
    for words in ["mcpact.toml:2:1", "`command`", "mcpact.toml:4:1"] {
        assert!(said.contains(words), "{said}");
    }
}

/// A server of the folder that notes when it is started, and a config with it.
#[cfg(unix)]
fn noting(folder: &Path) {
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

/// After a restart the lists are there and nothing was started for them; a call starts the server.
/// Nothing of its configuration is written down, and with `--no-cache` nothing at all.
#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn lists_are_there_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    noting(folder.path());
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
    forgetful.end();
    assert!(!folder.path().join("cache").exists(), "nothing is kept");
    let first = start(folder.path(), &[]);
    for revision in eras {
        assert!(listed(&first.url, revision).await);
    }
    first.end();
    let before = starts();
    assert!(before > 1);
    let second = start(folder.path(), &[]);
    for revision in eras {
        assert!(listed(&second.url, revision).await);
    }
    assert_eq!(starts(), before, "nothing was started for lists");
    assert_eq!(echo(&second.url, eras[0], "a__echo").await, "a__echo");
    assert_eq!(starts(), before + 1);
    let said = second.end();
    assert!(said.contains("2025-11-25  legacy  asleep"), "{said}");
    let kept = std::fs::read_dir(folder.path().join("cache/mcpact/servers")).unwrap();
    for file in kept {
        let path = file.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains("tools/list"), "{text}");
        let is_told = |what: &str| text.contains(what) || path.to_string_lossy().contains(what);
        assert!(!is_told("canary") && !is_told("noting"), "{text}");
    }
}

/// What is served is shown as soon as it can be, whoever takes long to introduce itself; it is told of when it
/// has.
#[cfg(unix)]
#[test]
fn nobody_waits_for_a_slow_server_to_be_shown_the_others() {
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
    let mut said = BufReader::new(running.child.stderr.take().unwrap()).lines();
    let mut until = |words: &str| said.any(|line| line.unwrap().contains(words));
    assert!(until("quick   2026-07-28"));
    assert!(until("slow    -           -       starting"));
    assert!(until("mcpServers"));
    std::fs::write(gate, "").unwrap();
    assert!(until("slow    2025-11-25  legacy  ready"));
}

/// Whoever begins with an empty config is told how to go on.
#[test]
fn a_config_without_servers_is_told_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("empty.toml"), "").unwrap();
    let args = ["--listen", "127.0.0.1:0", "--config", "empty.toml"];
    let mut running = start(folder.path(), &args);
    let mut said = BufReader::new(running.child.stderr.take().unwrap()).lines();
    assert!(said.any(|line| line.unwrap().contains("none yet: add one to the file")));
}

/// The command with its variables and the header that a gateway proposes for the configs of clients, and all that it says.
fn proposed(running: &mut Running) -> (Vec<String>, Value, String, String) {
    let said = BufReader::new(running.child.stderr.take().unwrap());
    let mut all = String::new();
    let mut servers = Vec::new();
    for line in said.lines() {
        let line = line.unwrap();
        all.push_str(&line);
        if let Ok(config) = serde_json::from_str::<Value>(&line) {
            servers.push(config["mcpServers"]["mcpact"].clone());
        }
        // What follows behind the proposals is about the token.
        if line.starts_with("where `") {
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

/// What is to be pasted into a client lets it in where a token is asked for, and does not tell it.
#[test]
fn what_to_paste_shows_how_the_token_is_given() {
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
        let (words, env, header, said) = proposed(&mut running);
        assert_eq!(header, format!("Bearer ${{{variable}}}"), "{written}");
        assert!(!said.contains(TOKEN), "{said}");
        let place = place.replace("FOLDER", &inside.to_string_lossy());
        // No argument has anything in it that a client would fill in, for all to see.
        assert_eq!(words[1..], ["bridge", "--bearer", &place, &running.url]);
        let expected = match place.strip_prefix("env:") {
            Some(name) => json!({ name: format!("${{{name}}}") }),
            None => Value::Null,
        };
        assert_eq!(env, expected, "{written}");

        let mut bridge = Command::new(&words[0]);
        // Whoever starts it gives it what its config names and little else.
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

/// Whoever listens beyond loopback by an argument is told the same as by the config: others reach the gateway, and are
/// turned away.
#[test]
fn listening_beyond_loopback_is_told_wherever_it_is_said() {
    let folder = tempfile::tempdir().unwrap();
    for (listen, hosts, is_told) in [
        ("0.0.0.0:0", "", true),
        ("0.0.0.0:0", "allow_hosts = [\"mcp.example\"]\n", false),
        ("127.0.0.1:0", "", false),
    ] {
        let config = format!("[gateway]\ntoken = \"abcdefgh-0123456789\"\n{hosts}");
        std::fs::write(folder.path().join("own.toml"), config).unwrap();
        let args = ["--listen", listen, "--config", "own.toml"];
        let mut running = start(folder.path(), &args);
        let said = BufReader::new(running.child.stderr.take().unwrap()).lines();
        let mut said = said.map(Result::unwrap);
        let before: Vec<String> = said
            .by_ref()
            .take_while(|line| !line.contains("the servers of"))
            .collect();
        let told = before
            .iter()
            .any(|line| line.contains("get 403 without `allow_hosts`"));
        assert_eq!(told, is_told, "{listen} {hosts}: {before:?}");
    }
}

/// What to paste also tells clients on other machines how to come, by the names that the config allows.
#[tokio::test(flavor = "multi_thread")]
async fn clients_on_other_machines_are_shown_how_to_come() {
    let folder = tempfile::tempdir().unwrap();
    let config = "[gateway]\ntoken = \"abcdefgh-0123456789\"\nallow_hosts = [\"mcp.example\", \"fd00::1\"]\n";
    std::fs::write(folder.path().join("own.toml"), config).unwrap();
    for (listen, is_told) in [("0.0.0.0:0", true), ("127.0.0.1:0", false)] {
        let args = ["--listen", listen, "--config", "own.toml"];
        let mut running = start(folder.path(), &args);
        let port = running.url.rsplit([':', '/']).nth(1).unwrap().to_owned();
        let stderr = BufReader::new(running.child.stderr.take().unwrap());
        let mut lines = stderr.lines().map(Result::unwrap);
        let is_last = |line: &String| line.contains("variables needs the token itself");
        let mut said: Vec<String> = lines.by_ref().take_while(|line| !is_last(line)).collect();
        if is_told {
            said.extend(lines.take(2));
        }
        let said = said.join("\n");
        for words in [
            format!("  elsewhere    http://mcp.example:{port}/mcp"),
            format!("  elsewhere    http://[fd00::1]:{port}/mcp"),
            format!(
                "on other machines with `http://mcp.example:{port}` in the place of `http://127.0.0.1:{port}`"
            ),
        ] {
            assert_eq!(said.contains(&words), is_told, "{listen}: {said}");
        }
    }
}
