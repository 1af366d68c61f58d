//! Servers that may not have everything.

use mcpact_spec::Revision;
use serde_json::json;

use crate::place::Place;

/// What the kernel says about a server, written down before it serves, and by something that it starts.
const FIRST: &str =
    "sh -c 'ulimit -n; ulimit -v; grep NoNewPrivs /proc/self/status' > \"$here/limits\"";

/// SL4: what the config says is true of a server and of whatever it starts; every start is written down.
#[tokio::test(flavor = "multi_thread")]
async fn servers_are_confined_as_the_config_says() {
    for (keys, expected) in [
        (
            "no_new_privileges = true\nmax_open_files = 200\nmax_memory_mb = 4096\n",
            "200\n4194304\nNoNewPrivs:\t1\n",
        ),
        ("no_new_privileges = true\n", "NoNewPrivs:\t1\n"),
        ("", "NoNewPrivs:\t0\n"),
    ] {
        let place = Place::new();
        place.install_noisy(FIRST);
        let control = place.path().join("control.sock");
        let control = control.to_str().unwrap();
        place.configure(
            "own.toml",
            &format!(
                "[gateway]\ncontrol = \"{control}\"\n[servers.a]\ncommand = \"SERVER\"\n{keys}"
            ),
        );
        let running = place.serve(&["--config", "own.toml"]);
        let client = running.client(Revision::LATEST).await;
        let echoed = client.call_tool("a__echo", json!({"text": "x"})).await;
        assert_eq!(echoed.unwrap().all_text(), "x", "{keys}");
        let limits = place.written("limits");
        assert!(limits.ends_with(expected), "{keys}: {limits}");
        let logs = place.run(&["logs", "--socket", control]);
        let logs = String::from_utf8(logs.stdout).unwrap();
        assert!(
            logs.contains("is started, because of") && logs.contains("runs as process"),
            "{logs}"
        );
    }
}

/// SL4: a limit below which nothing starts is told, and so is one for something that is not started.
#[test]
fn impossible_limits_are_told() {
    let place = Place::new();
    place.configure(
        "own.toml",
        "[servers.a]\ncommand = \"SERVER\"\nmax_memory_mb = 1\nmax_open_files = 3\n\
         [servers.b]\nurl = \"https://b.example/mcp\"\nno_new_privileges = true\n",
    );
    let checked = place.run(&["check", "own.toml"]);
    let told = String::from_utf8_lossy(&checked.stdout).into_owned();
    for expected in [
        "`max_memory_mb` is at least 64",
        "`max_open_files` is at least 32",
        "`no_new_privileges` means nothing beside `url`",
    ] {
        assert!(told.contains(expected), "{expected}: {told}");
    }
}
