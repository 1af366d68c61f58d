//! Pages: a legacy cursor is good in its session only.

use mcpact_spec::Revision;
use serde_json::{Value, json};

use crate::staged::Scene;

use Revision::{V2025_06_18, V2026_07_28};

/// A modern client gets cursors that name the session, and the server gets its own back; one of another
/// session never reaches it.
#[tokio::test]
async fn a_cursor_is_good_in_its_session_only() {
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
    assert_ne!(cursor, "", "an empty cursor is easily taken for none");

    let next = json!({ "cursor": cursor });
    client.ask_modern(2, "tools/list", next, json!({})).await;
    let asked = server.expect("tools/list").await;
    assert_eq!(asked["params"]["cursor"], "");
    server.answer(&asked, json!({"tools": []})).await;
    assert_eq!(client.result(2).await["nextCursor"], Value::Null);

    let foreign = json!({"cursor": "mcpact:0:"});
    client.ask_modern(3, "tools/list", foreign, json!({})).await;
    assert_eq!(client.error(3).await, -32602);
    client
        .ask_modern(4, "tools/list", json!({}), json!({}))
        .await;
    let asked = server.expect("tools/list").await;
    assert_eq!(asked["params"]["cursor"], Value::Null);
}

/// A modern server's cursors pass, but a legacy client never sees an empty one.
#[tokio::test]
async fn a_modern_servers_cursors_pass() {
    let mut scene = Scene::new(V2026_07_28);
    let pair = scene.legacy_pair(V2025_06_18, json!({}), json!({"tools": {}}));
    let (mut client, mut server) = pair.await;
    for (id, given) in (2..).zip(["a:b", "", "mcpact:x:y"]) {
        client.ask(id, "tools/list", json!({})).await;
        let asked = server.expect("tools/list").await;
        let page = json!({"resultType": "complete", "tools": [], "nextCursor": given});
        server.answer(&asked, page).await;
        let cursor = client.result(id).await["nextCursor"].clone();
        assert_ne!(cursor, "");
        client
            .ask(id + 10, "tools/list", json!({ "cursor": cursor }))
            .await;
        let asked = server.expect("tools/list").await;
        assert_eq!(asked["params"]["cursor"], given);
        let last = json!({"resultType": "complete", "tools": []});
        server.answer(&asked, last).await;
        client.result(id + 10).await;
    }
}
