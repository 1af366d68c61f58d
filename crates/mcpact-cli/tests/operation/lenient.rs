//! A config that is wrong in part.

use serde_json::{Value, json};

use crate::house::{House, builtin, call, handshake, request};

/// Servers of which only `good` is right.
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

/// A lenient gateway serves what is right, and tells what is wrong to its owner, with the place, and to
/// clients, without it; put right, the server is served.
#[test]
fn what_is_right_is_served() {
    let house = House::new(&servers());
    let gateway = house.serve();
    let welcome = gateway.post("/mcp", None, &handshake());
    for name in ["typo", "unset", "unmade"] {
        let told = format!("`{name}` is missing: its config is wrong");
        assert!(welcome.body.contains(&told), "{welcome:?}");
    }
    assert!(!welcome.body.contains("mcpact.toml"), "{welcome:?}");
    let session = gateway.open("/mcp");
    let called = gateway.post("/mcp", Some(&session), &call("good__echo"));
    assert!(called.body.contains("hello"), "{called:?}");
    let refused = gateway.post("/mcp", Some(&session), &call("typo__echo"));
    for words in ["`typo`: the server", "its config is wrong"] {
        assert!(refused.body.contains(words), "{refused:?}");
    }
    // Nobody can read which tags they would have.
    let refused = gateway.post("/tags/x/mcp", None, &handshake());
    assert_eq!(refused.status, 404);
    for name in ["typo", "unset", "unmade"] {
        let told = format!("`{name}` (its config is wrong");
        assert!(refused.body.contains(&told), "{refused:?}");
    }

    let status = house.status();
    for (name, why) in [
        ("typo", "did you mean `command`?"),
        ("unset", "NOBODY_SETS_THIS"),
        ("unmade", "`nothing` is unknown as `builtin`"),
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
    let (code, printed, _) = house.run(&["status", "typo"]);
    assert!(code == 0 && printed.contains("wrong"), "{printed}");

    house.configure(&servers().replace("comand = \"sleep\"", "builtin = \"everything\""));
    let (code, printed, told) = house.run(&["reload", "--json"]);
    assert_eq!(code, 0, "{told}");
    let report: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(report["started"], json!(["typo"]));
    assert_eq!(report["wrong"], json!(["unmade", "unset"]));
    let list = request("tools/list", &json!({}));
    let listed = gateway.post("/mcp", Some(&session), &list);
    assert!(listed.body.contains("typo__echo"), "{listed:?}");
}

/// A server that is wrong in the config of another client is shown with what is wrong; whoever comes to
/// its address is told, and whoever comes to one that there is not learns which there are.
#[test]
fn what_is_wrong_in_the_config_of_another_client_is_shown() {
    let house = House::new("");
    let config = json!({"mcpServers": {
        "good": {"command": house.path("gated")},
        "typo": {"comand": "sleep"},
        "text": "sleep",
        "off": {"disabled": true},
    }});
    house.gated();
    std::fs::write(house.path("claude.json"), config.to_string()).unwrap();
    let gateway = house.serve_file("claude.json");
    let (code, printed, told) = house.run(&["status", "--config", "claude.json", "--json"]);
    assert_eq!(code, 0, "{told}");
    let status: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(status["servers"].as_array().unwrap().len(), 3, "{status}");
    for (name, why) in [
        ("typo", "did you mean `command` by `comand`?"),
        ("text", "is no server"),
    ] {
        let server = state(&status, name);
        assert_eq!(server["state"], "wrong", "{server}");
        let missing = server["missing"].as_str().unwrap();
        assert!(
            missing.contains(why) && missing.contains("claude.json:1:"),
            "{missing}"
        );
    }
    for (name, told) in [
        ("typo", "server `typo` is not served: its config is wrong"),
        (
            "godo",
            "there is no server `godo`; did you mean `good`? there are: `good`",
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
                .starts_with(told),
            "{error}"
        );
        assert_eq!(error["error"]["data"]["known"], json!(["good"]));
    }
}

/// Without it, and in what is not about one server, nothing is forgiven.
#[test]
fn nothing_else_is_forgiven() {
    for config in [
        servers().replace("lenient = true\n", ""),
        format!("wach = true\n{}", servers()),
        servers().replace("lenient", "lenient = true\nstrict = 3\nwatch"),
    ] {
        let house = House::new(&config);
        let path = house.path("mcpact.toml");
        let (code, printed, told) = house.run(&["serve", "--config", path.to_str().unwrap()]);
        assert!(code != 0 && printed.is_empty(), "{config} {printed}");
        assert!(told.contains("error"), "{told}");
    }
}
