//! Translation without questions: handshakes, headers, errors and fields.

use std::time::Duration;

use mcpact_sim::scripted::{HttpTestClient, TestClient, listen, message::tool};
use mcpact_spec::Revision;
use serde_json::{Value, json};

use crate::scripted_server::{Role, ScriptedServer};
use crate::upstream;

fn meta<'a>(params: &'a Value, key: &str) -> &'a Value {
    &params["_meta"][format!("io.modelcontextprotocol/{key}")]
}

/// BA-01: a legacy client gets the metadata of a modern server, which was discovered for it, in its own revision.
#[tokio::test(start_paused = true)]
async fn modern_server_info_reaches_a_legacy_client() {
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let scripted = ScriptedServer::lines(Role::new(Revision::V2026_07_28));
        let mut peer = TestClient::silent(&upstream(&scripted));
        let opened = peer.open(version, json!({"sampling": {}})).await;
        let result = &opened["result"];
        assert_eq!(result["protocolVersion"], version);
        assert_eq!(
            result["serverInfo"],
            json!({"name": "scripted", "version": "7"})
        );
        assert_eq!(result["instructions"], "be kind");
        assert_eq!(result["capabilities"]["tools"], json!({}));
        let has_completions = result["capabilities"].get("completions").is_some();
        assert_eq!(has_completions, version != "2024-11-05", "{version}");
        for modern in [
            "supportedVersions",
            "ttlMs",
            "cacheScope",
            "resultType",
            "_meta",
        ] {
            assert_eq!(result.get(modern), None, "{modern}");
        }
        let greetings = scripted.handshakes();
        assert_eq!(greetings.last().unwrap()["method"], "server/discover");
    }
}

/// BA-02: a legacy client always gets a server name.
#[tokio::test(start_paused = true)]
async fn server_info_is_always_present_for_legacy_clients() {
    let role = Role::new(Revision::V2026_07_28).introduced(json!({"resultType": "complete",
        "supportedVersions": ["2026-07-28"], "capabilities": {}, "ttlMs": 0, "cacheScope": "private"}));
    let scripted = ScriptedServer::lines(role);
    let opened = TestClient::silent(&upstream(&scripted))
        .open("2025-06-18", json!({}))
        .await;
    let info = &opened["result"]["serverInfo"];
    assert!(
        info["name"].as_str().is_some_and(|name| !name.is_empty()),
        "{opened}"
    );
    assert!(
        info["version"]
            .as_str()
            .is_some_and(|version| !version.is_empty()),
        "{opened}"
    );
}

/// BA-03: requests of a legacy client reach a modern server with the metadata and headers of a modern client.
#[tokio::test]
async fn requests_get_modern_metadata_and_headers() {
    let mut scripted = ScriptedServer::http(Role::new(Revision::V2026_07_28)).await;
    let mut peer = TestClient::legacy(
        &upstream(&scripted),
        "2025-11-25",
        json!({"elicitation": {}}),
    )
    .await;
    let calls = [
        ("tools/call", tool("größe"), Some("=?base64?Z3LDtsOfZQ==?=")),
        ("tools/call", tool("plain"), Some("plain")),
        (
            "resources/read",
            json!({"uri": "test://r"}),
            Some("test://r"),
        ),
        ("prompts/get", json!({"name": "p"}), Some("p")),
        ("tools/list", json!({}), None),
    ];
    for (id, (method, params, name)) in (1..).zip(calls) {
        peer.request(id, method, params).await;
        let said = scripted.expect(method).await;
        assert_eq!(meta(said.params(), "protocolVersion"), "2026-07-28");
        assert_eq!(
            meta(said.params(), "clientCapabilities"),
            &json!({"elicitation": {}})
        );
        assert_eq!(meta(said.params(), "clientInfo")["name"], "t");
        assert_eq!(said.header("mcp-protocol-version"), Some("2026-07-28"));
        assert_eq!(said.header("mcp-method"), Some(method));
        assert_eq!(said.header("mcp-name"), name, "{method}");
        assert_eq!(said.header("mcp-session-id"), None);
        said.result(
            json!({"resultType": "complete", "tools": [], "content": [], "contents": [],
            "messages": [], "ttlMs": 0, "cacheScope": "private"}),
        );
        let answer = peer.recv().await;
        assert_eq!(answer["id"], id, "{answer}");
        assert_eq!(answer["result"].get("resultType"), None);
    }
}

/// BA-17: the gateway answers pings of a legacy client.
#[tokio::test(start_paused = true)]
async fn gateway_answers_pings_of_the_client() {
    let mut scripted = ScriptedServer::lines(Role::new(Revision::V2026_07_28));
    let mut peer = TestClient::legacy(&upstream(&scripted), "2024-11-05", json!({})).await;
    assert_eq!(peer.ask(1, "ping", json!({})).await["result"], json!({}));
    assert!(scripted.received().is_empty());
}

/// BA-19: a missing resource has its legacy error code for a legacy client; other codes are unchanged.
#[tokio::test(start_paused = true)]
async fn missing_resources_have_the_legacy_error_code() {
    let mut scripted = ScriptedServer::lines(Role::new(Revision::V2026_07_28));
    let mut peer = TestClient::legacy(&upstream(&scripted), "2025-11-25", json!({})).await;
    let cells = [
        ("test://gone", json!({"uri": "test://gone"}), -32002),
        ("test://gone", json!({"uri": "test://other"}), -32602),
        ("bad", json!({"field": "uri"}), -32602),
    ];
    for (uri, data, code) in cells {
        peer.request(1, "resources/read", json!({"uri": uri})).await;
        let said = scripted.recv().await;
        said.error(json!({"code": -32602, "message": "no", "data": data}));
        let error = peer.recv().await["error"].clone();
        assert_eq!(
            (&error["code"], &error["data"]),
            (&json!(code), &data),
            "{uri}"
        );
    }
}

/// BA-20: structured content becomes text for clients that do not know it.
#[tokio::test(start_paused = true)]
async fn structured_content_becomes_text_for_older_clients() {
    let mut scripted = ScriptedServer::lines(Role::new(Revision::V2026_07_28));
    let upstream = upstream(&scripted);
    for version in ["2025-03-26", "2025-06-18", "2025-11-25"] {
        let mut peer = TestClient::legacy(&upstream, version, json!({})).await;
        peer.request(1, "tools/call", tool("list")).await;
        let said = scripted.recv().await;
        said.result(json!({"resultType": "complete", "content": [], "structuredContent": [1, 2]}));
        let result = peer.recv().await["result"].clone();
        assert!(
            !result["structuredContent"].is_array(),
            "{version}: {result}"
        );
        let text = result["content"][0]["text"].as_str().unwrap_or_default();
        let said: Value = serde_json::from_str(text).unwrap_or_default();
        assert_eq!(said, json!([1, 2]), "{version}: {result}");
    }
}

/// BA-24: a modern extension that a legacy client declares does not reach the server.
#[tokio::test(start_paused = true)]
async fn modern_task_extension_of_legacy_clients_is_dropped() {
    let mut scripted = ScriptedServer::lines(Role::new(Revision::V2026_07_28));
    let declared =
        json!({"extensions": {"io.modelcontextprotocol/tasks": {}, "com.example/x": {}}});
    let mut peer = TestClient::legacy(&upstream(&scripted), "2025-11-25", declared).await;
    peer.request(1, "prompts/list", json!({})).await;
    let said = scripted.expect("prompts/list").await;
    let declared = meta(said.params(), "clientCapabilities");
    let tasks = declared.pointer("/extensions/io.modelcontextprotocol~1tasks");
    assert_eq!(tasks, None, "{declared}");
}

/// BB-02, BB-27, XR-10, XR-12: a modern client gets every required member and no invented ones; the server receives
/// nothing that only modern servers read.
#[tokio::test(start_paused = true)]
async fn legacy_lists_get_all_modern_members() {
    for revision in [Revision::V2024_11_05, Revision::V2025_11_25] {
        let mut scripted = ScriptedServer::lines(Role::new(revision));
        let mut peer = TestClient::modern(&upstream(&scripted), json!({"sampling": {}}));
        peer.request(1, "tools/list", json!({})).await;
        let said = scripted.expect("tools/list").await;
        let reserved = said.params()["_meta"].as_object().into_iter().flatten();
        let leaked: Vec<_> = reserved.filter(|(key, _)| key.contains('/')).collect();
        assert!(leaked.is_empty(), "{leaked:?}");
        said.result(json!({"resultType": "x", "tools": [{"name": "t",
            "inputSchema": {"type": "object"}, "execution": {"taskSupport": "optional"}}]}));
        let result = peer.recv().await["result"].clone();
        assert_eq!(result["resultType"], "complete");
        assert_eq!(
            (&result["ttlMs"], &result["cacheScope"]),
            (&json!(0), &json!("private"))
        );
        assert_eq!(
            result["tools"],
            json!([{"name": "t", "inputSchema": {"type": "object"}}])
        );
        let info = meta(&result, "serverInfo");
        assert_eq!(
            (&info["name"], &info["version"]),
            (&json!("scripted"), &json!("7"))
        );
    }
}

/// BB-16, BB-17: error codes that the revision of a modern client reserves are replaced.
#[tokio::test(start_paused = true)]
async fn reserved_error_codes_are_replaced() {
    let mut scripted = ScriptedServer::lines(Role::new(Revision::V2025_11_25));
    let mut peer = TestClient::modern(&upstream(&scripted), json!({}));
    let gone = json!({"uri": "test://gone"});
    let wrapped = json!({"upstreamCode": -32055, "upstreamData": gone.clone()});
    let cells = [
        (-32002, -32602, &gone),
        (-32055, -32603, &wrapped),
        (-32603, -32603, &gone),
        (7, 7, &gone),
    ];
    for (code, expected, data) in cells {
        peer.request(1, "resources/read", json!({"uri": "test://gone"}))
            .await;
        let said = scripted.recv().await;
        said.error(json!({"code": code, "message": "no", "data": gone}));
        let error = peer.recv().await["error"].clone();
        assert_eq!(
            (&error["code"], &error["data"]),
            (&json!(expected), data),
            "{code}"
        );
    }
}

/// XR-14: an error without an id answers the request that it was sent for.
#[tokio::test]
async fn errors_without_id_answer_their_request() {
    let mut scripted = ScriptedServer::http(Role::new(Revision::V2026_07_28)).await;
    let url = listen(&upstream(&scripted)).await;
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let mut peer = TestClient::legacy(&upstream(&scripted), version, json!({})).await;
        peer.request(5, "tools/call", tool("t")).await;
        let said = scripted.expect("tools/call").await;
        said.status(
            400,
            json!({"jsonrpc": "2.0", "error": {"code": -32600, "message": "no"}}),
        );
        let answer = peer.recv().await;
        assert_eq!(
            (&answer["id"], &answer["error"]["code"]),
            (&json!(5), &json!(-32600))
        );
        if version == "2024-11-05" {
            continue;
        }
        let web = HttpTestClient::legacy(&url, version, json!({})).await;
        let (mut reply, ()) = tokio::join!(web.request(6, "tools/call", tool("t")), async {
            let said = scripted.expect("tools/call").await;
            said.status(
                400,
                json!({"jsonrpc": "2.0", "error": {"code": -32600, "message": "no"}}),
            );
        });
        assert_eq!(reply.status, 200);
        assert_eq!(reply.only().await["id"], 6);
    }
}

/// XR-08, XR-09: members that an older peer does not know are not sent to it.
#[tokio::test(start_paused = true)]
async fn unknown_members_are_not_sent_to_older_peers() {
    let mut scripted = ScriptedServer::lines(Role::new(Revision::V2025_03_26));
    let mut peer = TestClient::modern(&upstream(&scripted), json!({}));
    let params = json!({"ref": {"type": "ref/prompt", "name": "p"},
        "argument": {"name": "a", "value": "b"}, "context": {"arguments": {"c": "d"}}});
    peer.request(1, "completion/complete", params).await;
    let said = scripted.expect("completion/complete").await;
    assert_eq!(said.params().get("context"), None);
    assert_eq!(
        said.params()["argument"],
        json!({"name": "a", "value": "b"})
    );
    said.result(json!({"completion": {"values": []}}));
    assert_eq!(peer.recv().await["result"]["resultType"], "complete");

    let mut scripted = ScriptedServer::lines(Role::new(Revision::V2026_07_28));
    let mut peer = TestClient::legacy(&upstream(&scripted), "2024-11-05", json!({})).await;
    let mut params = tool("slow");
    params["_meta"] = json!({"progressToken": 4});
    peer.request(1, "tools/call", params).await;
    let said = scripted.recv().await;
    let token = meta_token(said.params());
    said.notify(
        "notifications/progress",
        json!({"progressToken": token, "progress": 1, "message": "half"}),
    );
    let told = peer.expect("notifications/progress").await;
    assert_eq!(told["params"], json!({"progressToken": 4, "progress": 1}));
    said.text("done");
    assert_eq!(peer.recv().await["id"], 1);
}

fn meta_token(params: &Value) -> Value {
    params["_meta"]["progressToken"].clone()
}

/// XR-01, XR-02, XR-03, XR-04, XR-05: results and tools are translated for older clients.
#[tokio::test(start_paused = true)]
async fn results_are_translated_for_older_clients() {
    let mut scripted = ScriptedServer::lines(Role::new(Revision::V2026_07_28));
    let upstream = upstream(&scripted);
    let mut first = TestClient::legacy(&upstream, "2024-11-05", json!({})).await;
    first.request(1, "tools/call", tool("all")).await;
    scripted.recv().await.result(
        json!({"resultType": "complete", "structuredContent": {"a": 1}, "content": [
        {"type": "audio", "data": "AAAA", "mimeType": "audio/wav"},
        {"type": "resource_link", "uri": "test://r", "name": "r"}]}),
    );
    let result = first.recv().await["result"].clone();
    let kinds: Vec<_> = result["content"]
        .as_array()
        .unwrap()
        .iter()
        .map(|block| &block["type"])
        .collect();
    assert!(
        kinds
            .iter()
            .all(|kind| matches!(kind.as_str(), Some("text" | "image" | "resource"))),
        "{result}"
    );
    assert_eq!(result.get("structuredContent"), None);
    let text = result["content"].to_string();
    assert!(
        text.contains("test://r") && text.contains(r#"{\"a\":1}"#),
        "{text}"
    );

    let listed = json!({"resultType": "complete", "ttlMs": 0, "cacheScope": "private", "tools": [{
        "name": "t", "title": "T", "description": "d", "icons": [{"src": "https://i.example"}],
        "inputSchema": {"type": "object"}, "outputSchema": {"type": "object"},
        "annotations": {"readOnlyHint": true}}]});
    first.request(2, "tools/list", json!({})).await;
    scripted.recv().await.result(listed.clone());
    let tools = first.recv().await["result"]["tools"].clone();
    assert_eq!(
        tools,
        json!([{"name": "t", "description": "d", "inputSchema": {"type": "object"}}])
    );
    let mut second = TestClient::legacy(&upstream, "2025-03-26", json!({})).await;
    second.request(1, "tools/list", json!({})).await;
    scripted.recv().await.result(listed);
    let tools = second.recv().await["result"]["tools"].clone();
    assert_eq!(
        tools[0]["annotations"],
        json!({"readOnlyHint": true, "title": "T"})
    );
}

/// XR-11: two blocks of one sampled message become two messages for an older client.
#[tokio::test(start_paused = true)]
async fn sampled_blocks_become_messages_for_older_clients() {
    let mut scripted = ScriptedServer::lines(Role::new(Revision::V2026_07_28));
    let mut peer =
        TestClient::legacy(&upstream(&scripted), "2025-06-18", json!({"sampling": {}})).await;
    peer.request(1, "tools/call", tool("think")).await;
    let block = |text: &str| json!({"type": "text", "text": text});
    scripted.recv().await.result(
        json!({"resultType": "input_required", "inputRequests": {"s": {
        "method": "sampling/createMessage", "params": {"maxTokens": 9, "messages": [
            {"role": "user", "content": [block("a"), block("b")]}]}}}}),
    );
    let asked = peer.expect("sampling/createMessage").await;
    let expected =
        json!([{"role": "user", "content": block("a")}, {"role": "user", "content": block("b")}]);
    assert_eq!(asked["params"]["messages"], expected);
}

/// A client that was idle for an hour is still served, in either era.
#[tokio::test(start_paused = true)]
async fn idle_clients_stay_connected() {
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let mut scripted = ScriptedServer::lines(Role::new(revision));
        let upstream = upstream(&scripted);
        let legacy = TestClient::legacy(&upstream, "2025-11-25", json!({})).await;
        let mut modern = TestClient::modern(&upstream, json!({}));
        modern.expect_silence().await;
        for mut peer in [legacy, modern] {
            tokio::time::sleep(Duration::from_secs(3600)).await;
            peer.request(9, "tools/call", tool("t")).await;
            scripted.expect("tools/call").await.text("here");
            assert_eq!(peer.recv().await["id"], 9);
        }
    }
}
