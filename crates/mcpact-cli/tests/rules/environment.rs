//! What programs get to know.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;

use mcpact_spec::Revision;
use serde_json::json;

use crate::place::{Place, Running};

fn variables(place: &Place) -> BTreeMap<String, String> {
    let written = place.written("environ");
    let pairs = written.lines().filter_map(|line| line.split_once('='));
    pairs
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

/// A program gets PATH, HOME, LANG, TZ, TERM and what the config names; nothing else of what the
/// gateway has, whichever client's config it is. The gateway itself adds by whom it was started, in numbers alone.
#[tokio::test(flavor = "multi_thread")]
async fn programs_get_what_the_config_names() {
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
        let place = Place::new();
        fs::write(place.path().join("more.env"), "FROM_FILE=file\nBOTH=file\n").unwrap();
        place.configure(name, &text);
        let mut command = place.command(&["serve", "--listen", "127.0.0.1:0", "--config", name]);
        command.env("SECRET", "hunter2").env("SHARED", "yes");
        command
            .env("AWS_SECRET_ACCESS_KEY", "nobody's")
            .env("LD_PRELOAD_NOT", "1");
        command
            .env("LANG", "C.UTF-8")
            .env("TZ", "UTC")
            .env("TERM", "dumb");
        let running = Running::start(command);
        let client = running.client(Revision::V2026_07_28).await;
        let echoed = client.call_tool("a__echo", json!({"text": "x"})).await;
        assert_eq!(echoed.unwrap().all_text(), "x");
        let found = variables(&place);
        let names: Vec<&str> = found.keys().map(String::as_str).collect();
        expected.sort_unstable();
        assert_eq!(names, expected, "{name}");
        assert_eq!(found["GIVEN"], "hunter2");
        assert_eq!(found["BOTH"], "config");
        let (process, config) = found["MCPACT_VIA"].split_once(':').unwrap();
        assert_eq!(process, running.id().to_string());
        assert_eq!(config.len(), 16);
        assert!(config.chars().all(|letter| letter.is_ascii_hexdigit()));
    }
}

/// A variable whose value is no text reaches the program as it is, if the config names it; in a text it is an error.
#[tokio::test(flavor = "multi_thread")]
async fn values_that_are_no_text_are_passed_on_as_they_are() {
    let bytes = OsStr::from_bytes(b"a\xff\xfeb");
    let place = Place::new();
    place.configure(
        "own.toml",
        "[servers.a]\ncommand = \"SERVER\"\ninherit = [\"RAW\"]\n",
    );
    let mut command = place.command(&["serve", "--listen", "127.0.0.1:0", "--config", "own.toml"]);
    command.env("RAW", bytes);
    let running = Running::start(command);
    let client = running.client(Revision::V2026_07_28).await;
    let echoed = client.call_tool("a__echo", json!({"text": "x"})).await;
    assert_eq!(echoed.unwrap().all_text(), "x");
    let written = fs::read(place.path().join("environ")).unwrap();
    let mut lines = written.split(|byte| *byte == b'\n');
    assert!(lines.any(|line| line == b"RAW=a\xff\xfeb"));

    for text in ["${RAW}", "${RAW:-default}"] {
        let config = format!("[servers.a]\ncommand = \"SERVER\"\nargs = [\"{text}\"]\n");
        place.configure("text.toml", &config);
        let mut command = place.command(&["check", "text.toml"]);
        let output = command.env("RAW", bytes).output().unwrap();
        let told = String::from_utf8_lossy(&output.stdout).into_owned()
            + &String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(7), "{told}");
        assert!(
            told.contains("`RAW` is set, but is no UTF-8 text"),
            "{told}"
        );
    }
}
