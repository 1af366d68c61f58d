//! `mcpact serve`, as a person starts it.
#![expect(clippy::unwrap_used, reason = "a broken expectation is a failed test")]

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use mcpact::client::Client;
use mcpact_engine::client::EraMode;
use mcpact_spec::Revision;
use serde_json::json;

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
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn start(folder: &Path, args: &[&str]) -> Running {
    let mut child = command(folder, args).spawn().unwrap();
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

/// G1, O5: without any config, servers of both eras behind one address, for clients of both; what was
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

/// G1, G2, K1: the nearest config is found; its programs are started with what it names.
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
    let running = start(&inner, &[]);
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        for tool in ["old__echo", "new__echo"] {
            assert_eq!(echo(&running.url, revision, tool).await, tool);
        }
    }
    let said = running.end();
    assert!(said.contains("old     2025-03-26  legacy"), "{said}");
}

/// K1: a config that is wrong ends it at once, with everything that is wrong.
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
