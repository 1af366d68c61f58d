//! What programs get to know.

use std::collections::BTreeMap;
use std::fs;

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

/// K4, K5: a program gets PATH, HOME, LANG, TZ, TERM and what the config names; nothing else of what the
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
        let client = running.client(Revision::LATEST).await;
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
