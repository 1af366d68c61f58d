//! Configs with some invalid servers.

use serde_json::{Value, json};

use crate::harness::{Harness, builtin, call, handshake, request};

/// Servers of which only `good` is valid.
fn servers() -> String {
    format!(
        "lenient = true\n{}[servers.typo]\ncomand = \"sleep\"\n\
         [servers.unset]\ncommand = \"sleep\"\nargs = [\"${{NOBODY_SETS_THIS}}\"]\n\
         [servers.unmade]\nbuiltin = \"nothing\"\n",
        builtin("good")
    )
}

fn state<'s>(status: &'s Value, name: &str) -> &'s Value {
    let servers = status["servers"].as_array().unwrap();
    servers
        .iter()
        .find(|server| server["name"] == name)
        .unwrap()
}

/// Clients get the reason without the file position. A corrected server is served after a reload.
#[test]
fn lenient_config_serves_the_valid_servers() {
    let harness = Harness::new(&servers());
    let gateway = harness.serve();
    let welcome = gateway.post("/mcp", None, &handshake());
    for name in ["typo", "unset", "unmade"] {
        let message = format!("`{name}` is unavailable: its config is invalid");
        assert!(welcome.body.contains(&message), "{welcome:?}");
    }
    assert!(!welcome.body.contains("mcpact.toml"), "{welcome:?}");
    let session = gateway.open("/mcp");
    let called = gateway.post("/mcp", Some(&session), &call("good__echo"));
    assert!(called.body.contains("hello"), "{called:?}");
    let refused = gateway.post("/mcp", Some(&session), &call("typo__echo"));
    for words in ["server `typo`", "its config is invalid"] {
        assert!(refused.body.contains(words), "{refused:?}");
    }
    // The tags of invalid servers are unknown.
    let refused = gateway.post("/tags/x/mcp", None, &handshake());
    assert_eq!(refused.status, 404);
    for name in ["typo", "unset", "unmade"] {
        let message = format!("`{name}` (its config is invalid");
        assert!(refused.body.contains(&message), "{refused:?}");
    }

    let status = harness.status();
    for (name, why) in [
        ("typo", "did you mean `command`?"),
        ("unset", "NOBODY_SETS_THIS"),
        ("unmade", "unknown value `nothing` for `builtin`"),
    ] {
        let server = state(&status, name);
        assert_eq!(server["state"], "wrong", "{server}");
        let missing = server["missing"].as_str().unwrap();
        assert!(missing.contains(why), "{missing}");
    }
    let missing = state(&status, "typo")["missing"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(missing.contains("mcpact.toml:7:1"), "{missing}");
    let (code, stdout, _) = harness.run(&["status", "typo"]);
    assert!(code == 0 && stdout.contains("wrong"), "{stdout}");

    harness.configure(&servers().replace("comand = \"sleep\"", "builtin = \"everything\""));
    let (code, stdout, stderr) = harness.run(&["reload", "--json"]);
    assert_eq!(code, 0, "{stderr}");
    let report: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(report["started"], json!(["typo"]));
    assert_eq!(report["wrong"], json!(["unmade", "unset"]));
    let list = request("tools/list", &json!({}));
    let listed = gateway.post("/mcp", Some(&session), &list);
    assert!(listed.body.contains("typo__echo"), "{listed:?}");
}

/// Its endpoint returns the reason; an unknown endpoint lists the valid ones.
#[test]
fn invalid_server_in_a_foreign_config_is_reported() {
    let harness = Harness::new("");
    let config = json!({"mcpServers": {
        "good": {"command": harness.path("gated")},
        "typo": {"comand": "sleep"},
        "text": "sleep",
        "off": {"disabled": true},
    }});
    harness.gated();
    std::fs::write(harness.path("claude.json"), config.to_string()).unwrap();
    let gateway = harness.serve_file("claude.json");
    let (code, stdout, stderr) = harness.run(&["status", "--config", "claude.json", "--json"]);
    assert_eq!(code, 0, "{stderr}");
    let status: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(status["servers"].as_array().unwrap().len(), 3, "{status}");
    for (name, why) in [
        ("typo", "did you mean `command` by `comand`?"),
        ("text", "is not a server"),
    ] {
        let server = state(&status, name);
        assert_eq!(server["state"], "wrong", "{server}");
        let missing = server["missing"].as_str().unwrap();
        assert!(
            missing.contains(why) && missing.contains("claude.json:1:"),
            "{missing}"
        );
    }
    for (name, message) in [
        ("typo", "server `typo` is not served: its config is invalid"),
        (
            "godo",
            "unknown server `godo`; did you mean `good`? known servers: `good`",
        ),
    ] {
        let refused = gateway.post(&format!("/servers/{name}/mcp"), None, &handshake());
        assert_eq!(refused.status, 404);
        let error: Value = serde_json::from_str(&refused.body).unwrap();
        assert_eq!(error["id"], 1, "{error}");
        assert!(
            error["error"]["message"]
                .as_str()
                .unwrap()
                .starts_with(message),
            "{error}"
        );
        assert_eq!(error["error"]["data"]["known"], json!(["good"]));
    }
}

/// Only errors of a single server are tolerated, and only with `lenient`.
#[test]
fn strict_config_and_gateway_keys_reject_errors() {
    for config in [
        servers().replace("lenient = true\n", ""),
        format!("wach = true\n{}", servers()),
        servers().replace("lenient", "lenient = true\nstrict = 3\nwatch"),
    ] {
        let harness = Harness::new(&config);
        let path = harness.path("mcpact.toml");
        let (code, stdout, stderr) = harness.run(&["serve", "--config", path.to_str().unwrap()]);
        assert!(code != 0 && stdout.is_empty(), "{config} {stdout}");
        assert!(stderr.contains("error"), "{stderr}");
    }
}
