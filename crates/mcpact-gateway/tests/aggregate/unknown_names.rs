//! What there is not is told with what there is.

use mcpact_spec::{Era, Revision};
use serde_json::{Map, json};

use crate::house::{by_http, client, everything, hub, on_lines};
use crate::wire::Wire;

/// An unknown tool, prompt, resource or task is refused in the words of each revision, with what
/// there is, the most similar first and not without end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_there_is_not_is_told_with_what_there_is() {
    let hub = hub(vec![
        everything("left", Revision::V2025_11_25),
        everything("right", Revision::V2026_07_28),
    ]);
    for revision in Revision::ALL {
        for is_http in [false, true] {
            let connected = if is_http {
                by_http(&hub, client(revision)).await
            } else {
                on_lines(&hub, client(revision)).await
            };
            let what = format!("{revision} http: {is_http}");
            for given in ["right__ech", "echo", "rihgt__echo"] {
                let error = connected.call_tool(given, json!({"text": "x"})).await;
                let error = error.unwrap_err();
                let told = error.to_string();
                assert_eq!(error.code(), Some(-32602), "{what}: {told}");
                let first = told.split("There are: ").nth(1).unwrap_or_default();
                let echo = first
                    .split(", ")
                    .take(2)
                    .any(|name| name.contains("__echo`"));
                assert!(echo, "{what}: {told}");
                assert!(
                    told.contains(" more") && told.len() < 4000,
                    "{what}: {told}"
                );
            }
            let long = "x".repeat(100_000);
            let told = connected.call_tool(&long, json!({})).await.unwrap_err();
            assert!(told.to_string().len() < 4000, "{what}");
            let error = connected
                .get_prompt("left__test_simple_promt", Map::new())
                .await;
            let error = error.unwrap_err();
            assert_eq!(error.code(), Some(-32602), "{what}: {error}");
            let told = error.to_string();
            assert!(
                told.contains("There are: `left__test_simple_prompt`"),
                "{what}: {told}"
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
            let told = error.to_string();
            assert!(
                told.contains("mcpact://left/test://static-text"),
                "{what}: {told}"
            );
            connected.close().await;
        }
    }
}

/// A request that does not say what it is about is told what it lacks, for either era.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_request_lacks_is_told() {
    let hub = hub(vec![
        everything("left", Revision::V2025_11_25),
        everything("right", Revision::V2026_07_28),
    ]);
    let legacy = Wire::legacy(&hub, &json!({})).await;
    for mut wire in [legacy, Wire::modern(&hub, &json!({}))] {
        for (method, key) in [
            ("tools/call", "name"),
            ("prompts/get", "name"),
            ("resources/read", "uri"),
        ] {
            for params in [json!({}), json!({key: 5})] {
                let refused = wire.ask(method, params).await;
                assert_eq!(refused["error"]["code"], -32602, "{refused}");
                let told = refused["error"]["message"].as_str().unwrap();
                let expected = format!("`{method}` needs a text as `{key}` in its params");
                assert!(told.contains(&expected), "{told}");
            }
        }
    }
}
