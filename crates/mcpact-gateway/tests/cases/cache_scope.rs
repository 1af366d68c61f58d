//! Cache scope of results.

use mcpact_gateway::{UpstreamServer, UpstreamSettings};
use mcpact_sim::scripted::TestClient;
use mcpact_spec::Revision;
use serde_json::{Value, json};

use crate::scripted_server::{Role, ScriptedServer};

/// P14: results that a server declares public are private for clients unless the operator allows it.
#[tokio::test(start_paused = true)]
async fn public_results_become_private() {
    for public_results in [false, true] {
        let mut scripted = ScriptedServer::lines(Role::new(Revision::V2026_07_28));
        let settings = UpstreamSettings {
            public_results,
            ..UpstreamSettings::default()
        };
        let upstream = UpstreamServer::new(scripted.target.clone(), settings).unwrap();
        let mut peer = TestClient::modern(&upstream, json!({}));
        let results: [(&str, Value, Value); 5] = [
            ("tools/list", json!({}), json!({"tools": []})),
            ("prompts/list", json!({}), json!({"prompts": []})),
            ("resources/list", json!({}), json!({"resources": []})),
            (
                "resources/templates/list",
                json!({}),
                json!({"resourceTemplates": []}),
            ),
            (
                "resources/read",
                json!({"uri": "a://b"}),
                json!({"contents": [{"uri": "a://b", "text": "\"cacheScope\":\"public\""}]}),
            ),
        ];
        for (method, params, mut result) in results {
            result["resultType"] = json!("complete");
            result["ttlMs"] = json!(1000);
            for (scope, expected) in [
                ("public", if public_results { "public" } else { "private" }),
                ("private", "private"),
            ] {
                result["cacheScope"] = json!(scope);
                peer.request(1, method, params.clone()).await;
                scripted.expect(method).await.result(result.clone());
                let mut expected_result = result.clone();
                expected_result["cacheScope"] = json!(expected);
                assert_eq!(peer.recv().await["result"], expected_result, "{method}");
            }
        }
    }
}
