//! Errors for unknown names.

use mcpact_spec::{Era, Revision};
use serde_json::{Map, json};

use crate::in_process::{aggregator, client, everything, on_http, on_stdio};
use crate::wire::Wire;

/// The error for an unknown tool, prompt or resource has the code of the revision and lists a limited number of valid
/// names, the most similar first.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unknown_name_lists_similar_names() {
    let aggregator = aggregator(vec![
        everything("left", Revision::V2025_11_25),
        everything("right", Revision::V2026_07_28),
    ]);
    for revision in Revision::ALL {
        for is_http in [false, true] {
            let connected = if is_http {
                on_http(&aggregator, client(revision)).await
            } else {
                on_stdio(&aggregator, client(revision)).await
            };
            let what = format!("{revision} http: {is_http}");
            for given in ["right__ech", "ech", "rihgt__echo"] {
                let error = connected.call_tool(given, json!({"text": "x"})).await;
                let error = error.unwrap_err();
                let text = error.to_string();
                assert_eq!(error.code(), Some(-32602), "{what}: {text}");
                let first = text.split("Available: ").nth(1).unwrap_or_default();
                let echo = first
                    .split(", ")
                    .take(2)
                    .any(|name| name.contains("__echo`"));
                assert!(echo, "{what}: {text}");
                assert!(
                    text.contains(" more") && text.len() < 4000,
                    "{what}: {text}"
                );
            }
            let error = connected.call_tool("echo", json!({"text": "x"})).await;
            let error = error.unwrap_err();
            assert_eq!(error.code(), Some(-32602), "{what}: {error}");
            let meant = "use one of: `left__echo`, `right__echo`";
            assert!(error.to_string().contains(meant), "{what}: {error}");
            let long = "x".repeat(100_000);
            let text = connected.call_tool(&long, json!({})).await.unwrap_err();
            assert!(text.to_string().len() < 4000, "{what}");
            let error = connected
                .get_prompt("left__test_simple_promt", Map::new())
                .await;
            let error = error.unwrap_err();
            assert_eq!(error.code(), Some(-32602), "{what}: {error}");
            let text = error.to_string();
            assert!(
                text.contains("Available: `left__test_simple_prompt`"),
                "{what}: {text}"
            );
            let error = connected
                .read_resource("nothing://like-it")
                .await
                .unwrap_err();
            let code = match revision.era() {
                Era::Legacy => -32002,
                Era::Modern => -32602,
            };
            assert_eq!(error.code(), Some(code), "{what}: {error}");
            let text = error.to_string();
            assert!(
                text.contains("mcpact://left/test://static-text"),
                "{what}: {text}"
            );
            connected.close().await;
        }
    }
}

/// A request without its required parameter is refused with the name of the parameter, in both eras.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn missing_parameter_is_named() {
    let aggregator = aggregator(vec![
        everything("left", Revision::V2025_11_25),
        everything("right", Revision::V2026_07_28),
    ]);
    let legacy = Wire::legacy(&aggregator, &json!({})).await;
    for mut wire in [legacy, Wire::modern(&aggregator, &json!({}))] {
        for (method, key) in [
            ("tools/call", "name"),
            ("prompts/get", "name"),
            ("resources/read", "uri"),
        ] {
            for params in [json!({}), json!({key: 5})] {
                let refused = wire.ask(method, params).await;
                assert_eq!(refused["error"]["code"], -32602, "{refused}");
                let text = refused["error"]["message"].as_str().unwrap();
                let expected = format!("`{method}` needs the string `{key}` in its params");
                assert!(text.contains(&expected), "{text}");
            }
        }
    }
}
