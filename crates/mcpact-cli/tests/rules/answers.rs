//! Configured answers for clients without the capability.

use mcpact::client::Client;
use mcpact::model::ElicitResult;
use mcpact_spec::Revision;
use serde_json::{Value, json};

use crate::harness::{Harness, client};

async fn called(client: &Client, tool: &str, arguments: Value) -> String {
    match client.call_tool(tool, arguments).await {
        Ok(result) => result.all_text(),
        Err(error) => error.to_string(),
    }
}

/// For clients of every revision and servers of both eras; a server can override them.
#[tokio::test(flavor = "multi_thread")]
async fn configured_answers_replace_missing_client_capabilities() {
    let harness = Harness::new();
    harness.configure(
        "own.toml",
        "[gateway.answers]\nelicitation = \"decline\"\nsampling = \"use another model\"\n\
         roots = [\"file:///srv/shared\"]\n\
         [servers.old]\ncommand = \"SERVER\"\nera = \"2025-11-25\"\n\
         [servers.new]\ncommand = \"SERVER\"\nera = \"2026-07-28\"\n\
         [servers.other]\ncommand = \"SERVER\"\nanswers = { elicitation = \"cancel\" }\n\
         [servers.bare]\ncommand = \"SERVER\"\nanswers = {}\n",
    );
    let running = harness.serve(&["--config", "own.toml"]);
    let message = || json!({"message": "Who?"});
    for revision in Revision::ALL {
        let bare = running.client(revision).await;
        for server in ["old", "new"] {
            let tool = format!("{server}__test_elicitation");
            let text = called(&bare, &tool, message()).await;
            assert!(text.contains("action=decline"), "{revision} {tool} {text}");
            let tool = format!("{server}__test_sampling");
            let text = called(&bare, &tool, json!({"prompt": "hi"})).await;
            assert!(
                text.contains("use another model"),
                "{revision} {tool} {text}"
            );
            let tool = format!("{server}__test_input_required_result_list_roots");
            let text = called(&bare, &tool, json!({})).await;
            assert_eq!(text, "1 roots: file:///srv/shared", "{revision} {tool}");
        }
        let text = called(&bare, "other__test_elicitation", message()).await;
        assert!(text.contains("action=cancel"), "{revision} {text}");
        for tool in ["other__test_sampling", "bare__test_sampling"] {
            let text = called(&bare, tool, json!({"prompt": "hi"})).await;
            assert!(!text.contains("use another model"), "{revision} {text}");
            assert!(text.contains("sampling"), "{revision} {text}");
        }
    }
    let able = client(Revision::V2025_11_25).on_elicitation(|_| async {
        let content = json!({"username": "ann", "email": "a@b.example"});
        Ok(ElicitResult::accept(content.as_object().unwrap().clone()))
    });
    let able = able.connect(running.url.clone()).await.unwrap();
    let text = called(&able, "old__test_elicitation", message()).await;
    assert!(text.contains("action=accept"), "{text}");
}

#[test]
fn invalid_answers_are_rejected() {
    let harness = Harness::new();
    harness.configure(
        "own.toml",
        "[gateway.answers]\nelicitation = \"declined\"\nroots = [\"/srv\"]\n\
         [servers.a.answers]\nsample = \"no\"\n[servers.a]\ncommand = \"SERVER\"\n",
    );
    let checked = harness.run(&["check", "own.toml"]);
    let message = String::from_utf8_lossy(&checked.stdout).into_owned()
        + &String::from_utf8_lossy(&checked.stderr);
    for expected in [
        "did you mean `decline`?",
        "`/srv` is not a root URI",
        "did you mean `sampling`?",
    ] {
        assert!(message.contains(expected), "{expected}: {message}");
    }
}
