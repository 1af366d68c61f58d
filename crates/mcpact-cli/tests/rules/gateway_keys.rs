//! Approval of gateway keys that admit more clients.

use std::fs;
use std::io::Read as _;

use crate::harness::{Harness, Running, combined_output};

/// Returns the error of a gateway that refuses to start.
fn refusal(harness: &Harness, args: &[&str]) -> String {
    let mut all = vec!["serve"];
    all.extend(args);
    let (running, mut heard) = Running::start_with_stderr(harness.command(&all));
    assert_eq!(running.url, "", "it serves");
    let mut said = String::new();
    heard.read_to_string(&mut said).unwrap();
    said
}

/// Returns the marks that `approve` shows.
fn marks(harness: &Harness, args: &[&str]) -> Vec<String> {
    let mut all = vec!["approve"];
    all.extend(args);
    let output = harness.run(&all);
    assert_eq!(
        output.status.code(),
        Some(7),
        "{}",
        combined_output(&output)
    );
    let shown = combined_output(&output);
    let lines = shown
        .lines()
        .filter_map(|line| line.trim().strip_prefix("mark"));
    lines.map(|mark| mark.trim().to_owned()).collect()
}

fn approve(harness: &Harness, mark: &str) {
    let output = harness.run(&["approve", "--mark", mark]);
    assert_eq!(
        output.status.code(),
        Some(0),
        "{}",
        combined_output(&output)
    );
}

const TOKEN: &str = "token = \"0123456789abcdef\"\n";

/// The error has the key, the line and a hint.
#[test]
fn found_config_admits_no_more_clients_without_approval() {
    for (key, text) in [
        ("listen", format!("{TOKEN}listen = \"0.0.0.0:0\"")),
        ("allow_remote", String::from("#\nallow_remote = true")),
        (
            "allow_hosts",
            String::from("#\nallow_hosts = [\"a.example\"]"),
        ),
        (
            "allow_origins",
            String::from("#\nallow_origins = [\"https://a.example\"]"),
        ),
        ("allow_users", String::from("#\nallow_users = [1001]")),
    ] {
        let harness = Harness::new();
        harness.configure("mcpact.toml", &format!("[gateway]\n{text}\n"));
        let args: &[&str] = match key {
            "listen" => &[],
            _ => &["--listen", "127.0.0.1:0"],
        };
        let message = refusal(&harness, args);
        for words in [
            &format!("`{key}`"),
            "mcpact.toml:3:",
            "mcpact approve --config",
        ] {
            assert!(message.contains(words), "{key}: {message}");
        }
        let [mark] = marks(&harness, &[]).try_into().unwrap();
        approve(&harness, &mark);
        let mut all = vec!["serve"];
        all.extend(args);
        assert_ne!(Running::start(harness.command(&all)).url, "", "{key}");
    }
}

/// Another value, a literal token or another config needs a new one.
#[test]
fn key_approval_covers_one_value_in_one_config() {
    let harness = Harness::new();
    let text = "[gateway]\ntoken = \"${file:token}\"\nlisten = \"0.0.0.0:0\"\n";
    fs::write(harness.path().join("token"), "0123456789abcdef").unwrap();
    harness.configure("mcpact.toml", text);
    let [first] = marks(&harness, &[]).try_into().unwrap();
    approve(&harness, &first);
    assert_ne!(Running::start(harness.command(&["serve"])).url, "");
    fs::create_dir(harness.path().join("other")).unwrap();
    harness.configure("other/mcpact.toml", &text.replace("file:", "file:../"));
    let [elsewhere] = marks(&harness, &["--config", "other/mcpact.toml"])
        .try_into()
        .unwrap();
    let same = harness.run(&["approve", "--config", "other/../mcpact.toml"]);
    assert_eq!(same.status.code(), Some(0), "{}", combined_output(&same));
    let mut seen = vec![first, elsewhere];
    for other in [
        text.replace("0.0.0.0", "[::]"),
        text.replace("${file:token}", "0123456789abcdef"),
        text.replace(
            "token = \"${file:token}\"",
            "tokens = { ada = \"${file:token}\" }",
        ),
        text.replace(
            "token = \"${file:token}\"",
            "tokens = { bob = \"${file:token}\" }",
        ),
    ] {
        harness.configure("mcpact.toml", &other);
        let message = refusal(&harness, &[]);
        assert!(message.contains("has changed since it was"), "{message}");
        let [mark] = marks(&harness, &[]).try_into().unwrap();
        assert!(!seen.contains(&mark), "{other}");
        seen.push(mark);
    }
}

/// Nor do a config passed with `--config`, an unused address, or stdio.
#[test]
fn harmless_gateway_keys_need_no_approval() {
    let harness = Harness::new();
    let open = format!("[gateway]\n{TOKEN}listen = \"0.0.0.0:0\"\n");
    harness.configure("mcpact.toml", &open);
    let named = ["serve", "--config", "mcpact.toml"];
    assert_ne!(Running::start(harness.command(&named)).url, "");
    let message = refusal(&harness, &["--config", "mcpact.toml", "--approved-only"]);
    assert!(message.contains("`listen`"), "{message}");
    assert_ne!(harness.serve(&[]).url, "", "the address is not used");
    let on_pipes = harness.run(&["serve", "--stdio"]);
    assert_eq!(
        on_pipes.status.code(),
        Some(0),
        "{}",
        combined_output(&on_pipes)
    );
    let shut =
        format!("[gateway]\n{TOKEN}listen = \"127.0.0.1:0\"\nsse = true\nallow_hosts = []\n");
    harness.configure("mcpact.toml", &shut);
    assert_ne!(Running::start(harness.command(&["serve"])).url, "");
}
