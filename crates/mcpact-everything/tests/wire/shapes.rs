//! Messages to clients contain only what their revision defines.

use mcpact_spec::Revision;
use serde_json::{Value, json};

use crate::http::{Raw, Running, request};

async fn ask(server: &Running, session: &str, method: &str, params: Value) -> Value {
    let raw = Raw::post(&request(1, method, &params)).with("mcp-session-id", session);
    server.send(&raw).await.json()["result"].clone()
}

/// Every key anywhere in a value.
fn keys(value: &Value, into: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                into.push(key.clone());
                // A schema is the tool's own, whatever stands in it.
                if key != "inputSchema" {
                    keys(value, into);
                }
            }
        }
        Value::Array(all) => all.iter().for_each(|value| keys(value, into)),
        _ => {}
    }
}

/// F3, F15: fields come with their revision.
#[tokio::test]
async fn fields_come_with_their_revision() {
    let server = Running::everything(&Revision::ALL).await;
    for (version, absent) in [
        (
            "2024-11-05",
            &[
                "annotations",
                "outputSchema",
                "title",
                "icons",
                "execution",
                "resultType",
                "ttlMs",
                "_meta",
            ][..],
        ),
        (
            "2025-03-26",
            &[
                "outputSchema",
                "icons",
                "execution",
                "resultType",
                "ttlMs",
                "cacheScope",
            ],
        ),
        (
            "2025-06-18",
            &["icons", "execution", "resultType", "ttlMs", "cacheScope"],
        ),
        ("2025-11-25", &["resultType", "ttlMs", "cacheScope"]),
    ] {
        let id = server.session(version).await;
        for method in [
            "tools/list",
            "prompts/list",
            "resources/list",
            "resources/templates/list",
        ] {
            let result = ask(&server, &id, method, json!({})).await;
            let mut found = Vec::new();
            keys(&result, &mut found);
            for key in absent {
                assert!(
                    !found.iter().any(|k| k == key),
                    "{version} {method} has {key}"
                );
            }
        }
    }
}

/// F3: structured content and audio become what an old client can read.
#[tokio::test]
async fn old_clients_get_what_they_can_read() {
    let server = Running::everything(&Revision::ALL).await;
    let sum = json!({"name": "add", "arguments": {"a": 1, "b": 2}});
    let sound = json!({"name": "test_audio_content", "arguments": {}});
    let old = server.session("2024-11-05").await;
    let result = ask(&server, &old, "tools/call", sum.clone()).await;
    assert_eq!(result.get("structuredContent"), None);
    assert_eq!(result["content"][0]["type"], "text");
    let result = ask(&server, &old, "tools/call", sound.clone()).await;
    assert_eq!(result["content"][0]["type"], "resource", "{result}");
    let new = server.session("2025-06-18").await;
    let result = ask(&server, &new, "tools/call", sum).await;
    assert_eq!(result["structuredContent"], json!({"sum": 3.0}));
    assert_eq!(
        ask(&server, &new, "tools/call", sound).await["content"][0]["type"],
        "audio"
    );
}
