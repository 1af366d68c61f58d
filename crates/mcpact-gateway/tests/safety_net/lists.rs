//! Lists that many clients share.

use mcpact_spec::Revision;
use serde_json::{Value, json};

use crate::client::{Address, Client};
use crate::rig::{ERAS, call, config, gateway_with};
use crate::scripted_server::{ReceivedMessage, Role, ScriptedServer};

const LEGACY: Revision = Revision::V2025_11_25;

/// Next list or call that the server gets; other lists are empty.
async fn next(scripted: &mut ScriptedServer) -> ReceivedMessage {
    loop {
        let said = scripted.recv().await;
        match said.method() {
            "resources/list" => said.result(json!({"resources": []})),
            "resources/templates/list" => said.result(json!({"resourceTemplates": []})),
            "prompts/list" => said.result(json!({"prompts": []})),
            _ => return said,
        }
    }
}

/// Answers a list with a tool that names the roots that the server got for it.
async fn list(scripted: &mut ScriptedServer, said: &ReceivedMessage) {
    said.ask("roots", "roots/list", json!({}));
    let told = next(scripted).await.message;
    assert_eq!(told["id"], "roots", "{told}");
    let roots = told["result"]["roots"].to_string();
    let tool = json!({"name": "t", "description": roots, "inputSchema": {"type": "object"}});
    said.result(json!({"tools": [tool]}));
}

/// Answers server requests until the call has a response.
async fn answer_with_roots(mut client: Client) {
    let roots = json!({"roots": [{"uri": "file:///ann"}]});
    loop {
        let message = client.next().await;
        let result = &message["result"];
        if message["method"] == "roots/list" {
            client.answer(&message, roots.clone()).await;
        } else if result["resultType"] == "input_required" {
            let mut params = call();
            params["requestState"] = result["requestState"].clone();
            for key in result["inputRequests"].as_object().unwrap().keys() {
                params["inputResponses"][key] = roots.clone();
            }
            client.request("call", "tools/call", params);
        } else if message["id"] == "call" {
            return;
        }
    }
}

/// Returns the tools that a client sees, and the number of list requests to the server.
async fn listed(client: &mut Client, scripted: &mut ScriptedServer) -> (Value, usize) {
    client.request("list", "tools/list", json!({}));
    let mut lists = 0;
    loop {
        tokio::select! {
            answer = client.answered("list") => return (answer["result"]["tools"].clone(), lists),
            said = next(scripted) => {
                assert_eq!(said.method(), "tools/list", "{}", said.message);
                lists += 1;
                list(scripted, &said).await;
            }
        }
    }
}

/// On stdio, a server request during `tools/list` looks like one for the call in flight. The list may then depend on that
/// client's answer, so no client gets it.
#[tokio::test(start_paused = true)]
async fn shared_list_never_depends_on_the_answer_of_a_client() {
    for revision in ERAS {
        let mut scripted = ScriptedServer::lines(Role::new(LEGACY));
        let shared = config("one", "strategy = \"stateless\"\nmax_instances = 1\n");
        let gateway = gateway_with(shared, &[("one", &scripted.target)]);
        let connect = async || {
            let can = json!({"roots": {}});
            Client::connect(&gateway, &Address::Link, revision, can, None).await
        };
        let (mut ann, mut bob) = (connect().await, connect().await);
        ann.request("call", "tools/call", call());
        let running = next(&mut scripted).await;
        assert_eq!(running.method(), "tools/call", "{revision}");
        let answering = tokio::spawn(async move { answer_with_roots(ann).await });
        let (tools, lists) = listed(&mut bob, &mut scripted).await;
        assert!(lists > 0, "{revision}: the server is asked");
        assert!(!tools.to_string().contains("ann"), "{revision}: {tools}");
        running.text("done");
        answering.await.unwrap();
    }
}
