//! Environment variables of servers.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;

use mcpact_spec::Revision;
use serde_json::json;

use crate::harness::{Harness, Running};

fn variables(harness: &Harness) -> BTreeMap<String, String> {
    let written = harness.read_file("environ");
    let pairs = written.lines().filter_map(|line| line.split_once('='));
    pairs
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

/// Besides PATH, HOME, LANG, TZ, TERM, and `MCPACT_VIA` for loop detection.
#[tokio::test(flavor = "multi_thread")]
async fn servers_get_only_configured_variables() {
    let own = "[servers.a]\ncommand = \"SERVER\"\nenv = { GIVEN = \"${SECRET}\", BOTH = \"config\" }\n\
               env_file = \"more.env\"\ninherit = [\"SHARED\", \"UNSET\"]\n";
    let of_client = json!({"mcpServers": {"a": {
        "command": "SERVER", "env": {"GIVEN": "${SECRET}", "BOTH": "config"},
    }}});
    let few = [
        "PATH",
        "HOME",
        "LANG",
        "TZ",
        "TERM",
        "GIVEN",
        "BOTH",
        "MCPACT_VIA",
    ];
    let cells = [
        (
            "own.toml",
            own.to_owned(),
            [&few[..], &["FROM_FILE", "SHARED"]].concat(),
        ),
        ("client.json", of_client.to_string(), few.to_vec()),
    ];
    for (name, text, mut expected) in cells {
        let harness = Harness::new();
        fs::write(
            harness.path().join("more.env"),
            "FROM_FILE=file\nBOTH=file\n",
        )
        .unwrap();
        harness.configure(name, &text);
        let mut command = harness.command(&["serve", "--listen", "127.0.0.1:0", "--config", name]);
        command.env("SECRET", "hunter2").env("SHARED", "yes");
        command
            .env("AWS_SECRET_ACCESS_KEY", "unrelated")
            .env("LD_PRELOAD_NOT", "1");
        command
            .env("LANG", "C.UTF-8")
            .env("TZ", "UTC")
            .env("TERM", "dumb");
        let running = Running::start(command);
        let client = running.client(Revision::V2026_07_28).await;
        let echoed = client.call_tool("a__echo", json!({"text": "x"})).await;
        assert_eq!(echoed.unwrap().all_text(), "x");
        let found = variables(&harness);
        let names: Vec<&str> = found.keys().map(String::as_str).collect();
        expected.sort_unstable();
        assert_eq!(names, expected, "{name}");
        assert_eq!(found["GIVEN"], "hunter2");
        assert_eq!(found["BOTH"], "config");
        let config = &found["MCPACT_VIA"];
        assert_eq!(config.len(), 16);
        assert!(config.chars().all(|letter| letter.is_ascii_hexdigit()));
    }
}

/// In an expanded value they are an error.
#[tokio::test(flavor = "multi_thread")]
async fn inherited_variables_may_be_invalid_utf8() {
    let bytes = OsStr::from_bytes(b"a\xff\xfeb");
    let harness = Harness::new();
    harness.configure(
        "own.toml",
        "[servers.a]\ncommand = \"SERVER\"\ninherit = [\"RAW\"]\n",
    );
    let mut command =
        harness.command(&["serve", "--listen", "127.0.0.1:0", "--config", "own.toml"]);
    command.env("RAW", bytes);
    let running = Running::start(command);
    let client = running.client(Revision::V2026_07_28).await;
    let echoed = client.call_tool("a__echo", json!({"text": "x"})).await;
    assert_eq!(echoed.unwrap().all_text(), "x");
    let written = fs::read(harness.path().join("environ")).unwrap();
    let mut lines = written.split(|byte| *byte == b'\n');
    assert!(lines.any(|line| line == b"RAW=a\xff\xfeb"));

    for text in ["${RAW}", "${RAW:-default}"] {
        let config = format!("[servers.a]\ncommand = \"SERVER\"\nargs = [\"{text}\"]\n");
        harness.configure("text.toml", &config);
        let mut command = harness.command(&["check", "text.toml"]);
        let output = command.env("RAW", bytes).output().unwrap();
        let message = String::from_utf8_lossy(&output.stdout).into_owned()
            + &String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(7), "{message}");
        assert!(message.contains("`RAW` is not valid UTF-8"), "{message}");
    }
}
