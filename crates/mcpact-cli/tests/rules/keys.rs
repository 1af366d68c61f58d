//! Config keys for negotiation and tool visibility.

use mcpact::client::ClientBuilder;
use mcpact::model::{ElicitResult, TaskSupport};
use mcpact_spec::Revision;
use serde_json::json;

use crate::harness::{Harness, client};

async fn is_served(builder: ClientBuilder, url: &str) -> bool {
    match builder.connect(url.to_owned()).await {
        Ok(connected) => connected.list_tools().await.is_ok(),
        Err(_) => false,
    }
}

/// K2: keys of the gateway decide the handshake with a client, and `era` that with a server.
#[tokio::test(flavor = "multi_thread")]
async fn keys_decide_each_handshake() {
    let none = json!({});
    let wrong = json!({"roots": []});
    for (keys, version, declared, expected) in [
        (
            "",
            "2025-06-18",
            &wrong,
            r#""protocolVersion":"2025-06-18""#,
        ),
        ("strict = true", "2025-06-18", &wrong, r#""code":-32602"#),
        (
            "profile = \"mcpv-strict\"",
            "2025-06-18",
            &none,
            r#""code":-32602"#,
        ),
        (
            "profile = \"mcpv-strict\"",
            "2025-11-25",
            &none,
            r#""protocolVersion":"2025-11-25""#,
        ),
        (
            "revisions = [\"2025-06-18\"]",
            "2025-11-25",
            &none,
            r#""protocolVersion":"2025-06-18""#,
        ),
        (
            "require = [\"elicitation\"]",
            "2025-11-25",
            &none,
            "\"requiredCapabilities\":{\"elicitation\"",
        ),
    ] {
        let harness = Harness::new();
        harness.configure(
            "own.toml",
            &format!("[gateway]\n{keys}\n[servers.a]\nbuiltin = \"everything\"\n"),
        );
        let running = harness.serve(&["--config", "own.toml"]);
        let params = json!({"protocolVersion": version, "capabilities": declared, "clientInfo": {"name": "c", "version": "1"}});
        let request = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params});
        let answer = running.exchange("POST", "/mcp", &request.to_string()).await;
        assert!(answer.contains(expected), "{keys}: {answer}");
    }
    let harness = Harness::new();
    harness.configure(
        "own.toml",
        "[servers.old]\ncommand = \"SERVER\"\nera = \"2025-03-26\"\n[servers.new]\ncommand = \"SERVER\"\nera = \"2025-11-25\"\n",
    );
    let running = harness.serve(&["--config", "own.toml"]);
    let connected = running.client(Revision::V2025_11_25).await;
    let tools = connected.list_tools().await.unwrap();
    let has_tasks = |server: &str| {
        let mut own = tools.iter().filter(|tool| tool.name.starts_with(server));
        own.any(|tool| tool.supports_tasks() != TaskSupport::Forbidden)
    };
    assert!(has_tasks("new__") && !has_tasks("old__"));
}

/// K2: `revisions`, `require` and `hidden_tools`.
#[tokio::test(flavor = "multi_thread")]
async fn negotiation_follows_the_config() {
    let harness = Harness::new();
    harness.configure(
        "own.toml",
        "[gateway]\nrevisions = [\"2025-06-18\", \"2025-11-25\"]\nrequire = [\"elicitation\"]\n\
         [servers.fit]\ncommand = \"SERVER\"\nrequire = [\"tools\"]\nhidden_tools = [\"add*\"]\n\
         [servers.unfit]\ncommand = \"SERVER\"\nrequire = [\"experimental.magic\"]\n",
    );
    let running = harness.serve(&["--config", "own.toml"]);
    let able =
        |revision| client(revision).on_elicitation(|_| async { Ok(ElicitResult::decline()) });
    for refused in [Revision::V2024_11_05, Revision::V2026_07_28] {
        assert!(!is_served(able(refused), &running.url).await, "{refused}");
    }
    let bare = client(Revision::V2025_11_25);
    assert!(!is_served(bare, &running.url).await, "without elicitation");
    let connected = able(Revision::V2025_11_25)
        .connect(running.url.clone())
        .await;
    let connected = connected.unwrap();
    let tools = connected.list_tools().await.unwrap();
    let has = |start: &str| tools.iter().any(|tool| tool.name.starts_with(start));
    assert!(has("fit__echo") && !has("fit__add") && !has("unfit__"));
    let refused = connected
        .call_tool("unfit__echo", json!({"text": "x"}))
        .await;
    let why = refused.unwrap_err().to_string();
    assert!(why.contains("experimental.magic"), "{why}");
}

/// At every endpoint; a call names the missing capability. Configured answers count as
/// capabilities.
#[tokio::test(flavor = "multi_thread")]
async fn tools_are_hidden_from_clients_without_needed_capabilities() {
    let harness = Harness::new();
    let needs = "needs = { test_sampling = [\"sampling\"], \"test_elicit*\" = [\"elicitation\"] }";
    harness.configure(
        "own.toml",
        &format!(
            "[servers.plain]\ncommand = \"SERVER\"\n{needs}\n\
             [servers.helped]\ncommand = \"SERVER\"\n{needs}\nanswers = {{ sampling = \"no\" }}\n"
        ),
    );
    let running = harness.serve(&["--config", "own.toml"]);
    let alone = running.url.replace("/mcp", "/servers/plain/mcp");
    for revision in Revision::ALL {
        let able = || client(revision).on_elicitation(|_| async { Ok(ElicitResult::decline()) });
        for (url, prefix) in [(&running.url, "plain__"), (&alone, "")] {
            let bare = client(revision).connect(url.clone()).await.unwrap();
            let asked = able().connect(url.clone()).await.unwrap();
            // The capabilities of one client do not affect another.
            let can_elicit = revision >= Revision::V2025_06_18;
            for (who, elicits) in [(&bare, false), (&asked, can_elicit), (&bare, false)] {
                let tools = who.list_tools().await.unwrap();
                let has = |name: &str| {
                    tools
                        .iter()
                        .any(|tool| tool.name == format!("{prefix}{name}"))
                };
                assert!(has("echo") && !has("test_sampling"), "{revision} {url}");
                assert_eq!(has("test_elicitation"), elicits, "{revision} {url}");
            }
            let tool = format!("{prefix}test_elicitation");
            let refused = bare.call_tool(&tool, json!({"message": "x"})).await;
            let why = refused.unwrap_err().to_string();
            assert!(why.contains("needs `elicitation`"), "{revision} {why}");
            if !prefix.is_empty() {
                // The suggestions do not name it either.
                let typo = format!("{prefix}test_elicitatoin");
                let why = bare.call_tool(&typo, json!({})).await.unwrap_err();
                let why = why.to_string();
                let (shown, hidden) = ("`plain__test_", "test_elicitation`");
                assert!(why.contains(shown) && !why.contains(hidden), "{why}");
            }
            if can_elicit {
                let called = asked.call_tool(&tool, json!({"message": "x"})).await;
                assert!(called.unwrap().all_text().contains("action=decline"));
            }
        }
        let bare = running.client(revision).await;
        let tools = bare.list_tools().await.unwrap();
        let has = |name: &str| tools.iter().any(|tool| tool.name == name);
        assert!(has("helped__test_sampling") && !has("helped__test_elicitation"));
    }
}

#[test]
fn invalid_needs_are_rejected() {
    let harness = Harness::new();
    harness.configure(
        "own.toml",
        "[servers.a]\ncommand = \"SERVER\"\nneeds = { x = [\"samplin\"], y = \"roots\" }\n",
    );
    let checked = harness.run(&["check", "own.toml"]);
    let message = String::from_utf8_lossy(&checked.stdout).into_owned()
        + &String::from_utf8_lossy(&checked.stderr);
    assert!(message.contains("did you mean `sampling`?"), "{message}");
    assert!(
        message.contains("`needs.y` must be a list of strings, not a string"),
        "{message}"
    );
}
