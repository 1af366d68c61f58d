//! Cursors of pages: a legacy cursor is valid in its session only.

use mcpact_spec::Revision;
use serde_json::{Value, json};

use crate::scene::Scene;

use Revision::{V2025_06_18, V2026_07_28};

/// A modern client gets cursors that name the session; the server gets its own cursor back. A cursor of another session
/// is never sent.
#[tokio::test]
async fn legacy_cursor_is_valid_in_its_session_only() {
    let mut scene = Scene::new(V2025_06_18);
    let first = (1, "tools/list", json!({}));
    let (mut client, mut server) = scene
        .modern_pair(json!({"tools": {}}), first, json!({}))
        .await;
    let asked = server.expect("tools/list").await;
    assert_eq!(asked["params"]["cursor"], Value::Null);
    let page = json!({"tools": [], "nextCursor": ""});
    server.answer(&asked, page).await;
    let cursor = client.result(1).await["nextCursor"].clone();
    assert_ne!(cursor, "", "an empty cursor may be read as none");

    let next = json!({ "cursor": cursor });
    client
        .request_modern_with(2, "tools/list", next, json!({}))
        .await;
    let asked = server.expect("tools/list").await;
    assert_eq!(asked["params"]["cursor"], "");
    server.answer(&asked, json!({"tools": []})).await;
    assert_eq!(client.result(2).await["nextCursor"], Value::Null);

    let foreign = json!({"cursor": "mcpact:0:"});
    client
        .request_modern_with(3, "tools/list", foreign, json!({}))
        .await;
    assert_eq!(client.error(3).await, -32602);
    client
        .request_modern_with(4, "tools/list", json!({}), json!({}))
        .await;
    let asked = server.expect("tools/list").await;
    assert_eq!(asked["params"]["cursor"], Value::Null);
}

/// Cursors of a modern server reach a legacy client unchanged, except for an empty one.
#[tokio::test]
async fn modern_cursor_is_passed_on_unless_empty() {
    let mut scene = Scene::new(V2026_07_28);
    let pair = scene.legacy_pair(V2025_06_18, json!({}), json!({"tools": {}}));
    let (mut client, mut server) = pair.await;
    for (id, given) in (2..).zip(["a:b", "", "mcpact:x:y"]) {
        client.request(id, "tools/list", json!({})).await;
        let asked = server.expect("tools/list").await;
        let page = json!({"resultType": "complete", "tools": [], "nextCursor": given});
        server.answer(&asked, page).await;
        let cursor = client.result(id).await["nextCursor"].clone();
        assert_ne!(cursor, "");
        client
            .request(id + 10, "tools/list", json!({ "cursor": cursor }))
            .await;
        let asked = server.expect("tools/list").await;
        assert_eq!(asked["params"]["cursor"], given);
        let last = json!({"resultType": "complete", "tools": []});
        server.answer(&asked, last).await;
        client.result(id + 10).await;
    }
}
