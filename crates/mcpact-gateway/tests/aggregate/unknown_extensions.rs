//! Methods of extensions that mcpact does not know.

use mcpact_sim::scripted::TestClient;
use mcpact_spec::Era;
use serde_json::{Value, json};

use crate::in_process::aggregator;
use crate::scripted_process::ScriptedProcess;
use crate::wire::Wire;

fn script(era: Era, extension: &str) -> ScriptedProcess {
    let extensions = json!({ extension: {} });
    let script = ScriptedProcess::new(era, &json!({"tools": {}, "extensions": extensions}));
    script.answers(
        "vendor-do",
        &json!({"resultType": "complete", "done": {"x": [1]}}),
    );
    script
}

async fn ask(client: &mut TestClient, id: i64) -> Value {
    let params = json!({"deep": {"a": null}, "name": "n"});
    client.request(id, "vendor/do", params).await;
    client.response(id).await
}

/// N29: an unknown method passes unchanged to a single server with an unknown extension, in all pairs of eras. Other servers
/// do not get it. The aggregator refuses it with the endpoint to use.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unknown_methods_reach_the_server_of_an_unknown_extension() {
    for era in [Era::Legacy, Era::Modern] {
        let vendor = script(era, "example.com/thing");
        let plain = script(era, "io.modelcontextprotocol/ui");
        let members = [vendor.member("vendor"), plain.member("plain")];
        for (round, member) in members.iter().enumerate() {
            let server = member.server();
            let clients = [
                TestClient::legacy(server, "2025-11-25", json!({})).await,
                TestClient::modern(server, json!({})),
            ];
            for mut client in clients {
                let answer = ask(&mut client, 7).await;
                if round == 0 {
                    assert_eq!(
                        answer["result"]["done"],
                        json!({"x": [1]}),
                        "{era:?}: {answer}"
                    );
                } else {
                    assert_eq!(answer["error"]["code"], -32601, "{answer}");
                }
            }
        }
        let received = vendor.received("vendor/do");
        assert_eq!(received.len(), 2);
        for request in received {
            assert_eq!(request["params"]["deep"], json!({"a": null}));
        }
        let aggregator = aggregator(members.into());
        let legacy = Wire::legacy(&aggregator, &json!({})).await;
        for mut wire in [legacy, Wire::modern(&aggregator, &json!({}))] {
            let refused = wire.ask("vendor/do", json!({})).await;
            assert_eq!(refused["error"]["code"], -32601, "{refused}");
            let message = refused["error"]["message"].as_str().unwrap();
            assert!(
                message.contains("`/servers/NAME/mcp`: `vendor`"),
                "{message}"
            );
        }
        assert_eq!(vendor.received("vendor/do").len(), 2);
        assert_eq!(plain.received("vendor/do").len(), 0);
    }
}
