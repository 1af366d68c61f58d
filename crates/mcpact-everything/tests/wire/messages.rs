//! Envelopes and batches: what is no message, what is one too many, and whom it disturbs.

use mcpact::server::{Context, HandlerError, NoArgs, Server};
use mcpact_spec::Revision;
use serde_json::{Value, json};

use crate::http::{Raw, Running, modern, request};
use crate::peer::Peer;

const LEGACY: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

/// F1, H19: what is no JSON is -32700, what is no message -32600, ids of a strange kind among them;
/// a request in flight and the connection itself are not disturbed, in any revision.
#[tokio::test]
async fn bad_messages_do_not_affect_others() {
    for version in LEGACY {
        let mut peer = Peer::start(&Revision::ALL);
        peer.open(version, json!({})).await;
        let slow = json!({"name": "slow_compute", "arguments": {"seconds": 1}});
        peer.tell(&request(77, "tools/call", &slow)).await;
        for (bad, code) in [
            ("{", -32700),
            ("nonsense", -32700),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"ping"} trailing"#,
                -32700,
            ),
            (r#"{"id":1,"method":"ping"}"#, -32600),
            (r#"{"jsonrpc":2.0,"id":1,"method":"ping"}"#, -32600),
            (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, -32600),
            (r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#, -32600),
            (r#"{"jsonrpc":"2.0","id":[1],"method":"ping"}"#, -32600),
            (r#"{"jsonrpc":"2.0","id":true,"method":"ping"}"#, -32600),
            (r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, -32600),
            (r#"{"jsonrpc":"2.0","id":1,"method":7}"#, -32600),
            (r#"{"jsonrpc":"2.0","id":1}"#, -32600),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}"#,
                -32600,
            ),
            ("7", -32600),
        ] {
            peer.say(bad).await;
            let reply = peer.hear().await;
            assert_eq!(reply["error"]["code"], code, "{version} {bad}: {reply}");
        }
        let last = peer.hear().await;
        assert_eq!(last["id"], 77, "{version}");
        assert!(last["result"].is_object(), "{version}: {last}");
    }
}

/// F1: ids come back as they were sent: texts, large and negative numbers, and an empty text.
#[tokio::test]
async fn ids_come_back_as_they_were() {
    let mut peer = Peer::start(&Revision::ALL);
    peer.open("2025-11-25", json!({})).await;
    for id in [
        json!("1"),
        json!(1),
        json!(""),
        json!(-7),
        json!(9007199254740993_i64),
        json!("\u{0}é\""),
    ] {
        let ask = json!({"jsonrpc": "2.0", "id": id, "method": "ping"});
        peer.tell(&ask).await;
        assert_eq!(peer.hear().await["id"], id);
    }
}

/// H19: on lines a second request with the id of one in flight is refused, and the first gets its own answer;
/// the text "5" and the number 5 are two ids.
#[tokio::test]
async fn an_id_in_flight_is_not_taken_twice() {
    let mut peer = Peer::start(&Revision::ALL);
    peer.open("2025-11-25", json!({})).await;
    let slow = json!({"name": "slow_compute", "arguments": {"seconds": 1}});
    peer.tell(&request(5, "tools/call", &slow)).await;
    let second = peer.ask(5, "tools/list", json!({})).await;
    assert_eq!(second["error"]["code"], -32600, "{second}");
    let text = json!({"jsonrpc": "2.0", "id": "5", "method": "tools/call",
        "params": {"name": "echo", "arguments": {"text": "other"}}});
    peer.tell(&text).await;
    let other = peer.hear().await;
    assert_eq!(other["id"], "5");
    assert_eq!(other["result"]["content"][0]["text"], "other");
    let first = peer.hear().await;
    assert_eq!(first["id"], 5);
    assert!(first["result"]["content"].is_array(), "{first}");
}

/// H19: on HTTP two requests of one session with the same id at the same time each get their own answer.
#[tokio::test]
async fn a_session_may_use_an_id_twice_at_a_time() {
    let server = Running::everything(&Revision::ALL).await;
    let id = server.session("2025-11-25").await;
    let call = |name: &str, arguments: Value| {
        let params = json!({"name": name, "arguments": arguments});
        Raw::post(&request(1, "tools/call", &params)).with("mcp-session-id", &id)
    };
    let slow = call("slow_compute", json!({"seconds": 1}));
    let (one, two) = (
        call("echo", json!({"text": "one"})),
        call("echo", json!({"text": "two"})),
    );
    let (slow, one, two) = tokio::join!(server.send(&slow), server.send(&one), server.send(&two));
    assert_eq!(one.json()["result"]["content"][0]["text"], "one");
    assert_eq!(two.json()["result"]["content"][0]["text"], "two");
    let slow = slow.json();
    let text = slow["result"]["content"][0]["text"].as_str().unwrap();
    assert!(!["one", "two"].contains(&text), "{slow}");
}

/// H19: two clients with the same ids at the same time each get their own answers.
#[tokio::test]
async fn clients_with_the_same_ids_are_not_mixed_up() {
    let server = Running::everything(&Revision::ALL).await;
    let (one, two) = (
        server.session("2025-11-25").await,
        server.session("2025-11-25").await,
    );
    let say = |text: &str| {
        request(
            1,
            "tools/call",
            &json!({"name": "echo", "arguments": {"text": text}}),
        )
    };
    let (first, second) = (
        Raw::post(&say("one")).with("mcp-session-id", &one),
        Raw::post(&say("two")).with("mcp-session-id", &two),
    );
    let modern_say = modern(
        1,
        "tools/call",
        json!({"name": "echo", "arguments": {"text": "three"}}),
    );
    let third = Raw::modern(&modern_say);
    let (a, b, c) = tokio::join!(
        server.send(&first),
        server.send(&second),
        server.send(&third)
    );
    for (reply, text) in [(a, "one"), (b, "two"), (c, "three")] {
        assert_eq!(reply.json()["result"]["content"][0]["text"], text);
    }
}

/// F2: a batch may hold requests, notifications, answers and garbage; each gets what it would get
/// alone, `initialize` has no place in it, and its size has a limit.
#[tokio::test]
async fn a_batch_is_judged_member_by_member() {
    let server = Running::everything(&Revision::ALL).await;
    let id = server.session("2025-03-26").await;
    let send = async |body: &Value| {
        server
            .send(&Raw::post(body).with("mcp-session-id", &id))
            .await
    };
    let mixed = json!([
        request(1, "ping", &json!({})),
        request(2, "tools/call", &json!({"name": "nope"})),
        request(3, "initialize", &json!({"protocolVersion": "2025-03-26", "capabilities": {},
            "clientInfo": {"name": "t", "version": "1"}})),
        {"jsonrpc": "2.0", "method": "notifications/roots/list_changed"},
        7,
        request(4, "tools/call", &json!({"name": "test_tool_with_progress", "arguments": {}})),
    ]);
    let reply = send(&mixed).await;
    assert_eq!(reply.status, 200, "{reply:?}");
    let replies = reply.json();
    let of = |id: Value| {
        let all = replies.as_array().unwrap();
        all.iter()
            .find(|reply| reply["id"] == id)
            .unwrap_or_else(|| panic!("{id}: {replies}"))
    };
    assert_eq!(replies.as_array().unwrap().len(), 5, "{replies}");
    assert_eq!(of(json!(1))["result"], json!({}));
    assert_eq!(of(json!(2))["error"]["code"], -32602);
    assert_eq!(of(json!(3))["error"]["code"], -32600);
    assert_eq!(of(json!(null))["error"]["code"], -32600);
    assert_eq!(
        of(json!(4))["result"]["content"][0]["text"],
        "The work is done."
    );
    let many: Vec<Value> = (0..101).map(|id| request(id, "ping", &json!({}))).collect();
    let reply = send(&json!(many)).await;
    assert_eq!((reply.code(), reply.status), (-32600, 400), "{reply:?}");
    assert_eq!(send(&json!([])).await.code(), -32600);
    assert_eq!(
        send(&request(9, "ping", &json!({}))).await.status,
        200,
        "the session lives"
    );
}

/// F2: calls of a batch that have something to say say it before the array of answers.
#[tokio::test]
async fn a_batch_may_have_a_stream() {
    let server = Running::everything(&Revision::ALL).await;
    let id = server.session("2025-03-26").await;
    let call = |id: i64, token: &str| {
        let params = json!({"name": "test_tool_with_progress", "arguments": {},
            "_meta": {"progressToken": token}});
        request(id, "tools/call", &params)
    };
    let batch = json!([call(1, "a"), call(2, "b")]);
    let reply = server
        .send(&Raw::post(&batch).with("mcp-session-id", &id))
        .await;
    assert_eq!(
        reply.header("content-type"),
        Some("text/event-stream"),
        "{reply:?}"
    );
    let mut events = reply.events();
    let last = events.pop().unwrap();
    assert_eq!(last.as_array().map(Vec::len), Some(2), "{last}");
    for answer in last.as_array().unwrap() {
        assert_eq!(answer["result"]["content"][0]["text"], "The work is done.");
    }
    for token in ["a", "b"] {
        let of = events
            .iter()
            .filter(|event| event["params"]["progressToken"] == token);
        assert_eq!(of.count(), 3, "{events:?}");
    }
}

/// F2: on lines a batch is served at 2025-03-26 and refused by every other revision, which goes on.
#[tokio::test]
async fn batches_on_lines_follow_the_revision() {
    for version in LEGACY {
        let mut peer = Peer::start(&Revision::ALL);
        peer.open(version, json!({})).await;
        let batch = json!([
            request(1, "ping", &json!({})),
            request(2, "ping", &json!({}))
        ]);
        peer.tell(&batch).await;
        if version == "2025-03-26" {
            let ids = [
                peer.hear().await["id"].clone(),
                peer.hear().await["id"].clone(),
            ];
            assert!(
                ids.contains(&json!(1)) && ids.contains(&json!(2)),
                "{ids:?}"
            );
        } else {
            assert_eq!(peer.hear().await["error"]["code"], -32600, "{version}");
        }
        assert_eq!(peer.ask(3, "ping", json!({})).await["id"], 3, "{version}");
    }
}

/// F21: an unknown request is not found, an unknown notification is dropped, and both leave the
/// connection as it was.
#[tokio::test]
async fn the_unknown_is_refused_or_dropped() {
    for version in LEGACY {
        let mut peer = Peer::start(&Revision::ALL);
        peer.open(version, json!({})).await;
        let unknown = peer.ask(1, "no/such", json!({})).await;
        assert_eq!(unknown["error"]["code"], -32601, "{version}");
        let note = json!({"jsonrpc": "2.0", "method": "notifications/no_such", "params": {"x": 1}});
        peer.tell(&note).await;
        let answer = json!({"jsonrpc": "2.0", "id": 99, "result": {}});
        peer.tell(&answer).await;
        assert_eq!(
            peer.ask(2, "ping", json!({})).await["id"],
            2,
            "nothing came between"
        );
    }
    let server = Running::everything(&Revision::ALL).await;
    let note = json!({"jsonrpc": "2.0", "method": "notifications/no_such", "params": {}});
    let reply = server.send(&Raw::modern(&note)).await;
    assert_eq!((reply.status, reply.body.as_str()), (202, ""));
}

/// F21: a server without prompts does not find them.
#[tokio::test]
async fn what_is_not_registered_is_not_found() {
    let server = Server::new("t", "1").tool("x", "x", |_: NoArgs, _| async { Ok("x") });
    let mut peer = Peer::of(server);
    let opened = peer.open("2025-11-25", json!({})).await;
    assert_eq!(opened["capabilities"].get("prompts"), None, "{opened}");
    for method in [
        "prompts/list",
        "resources/list",
        "completion/complete",
        "logging/setLevel",
        "tasks/list",
    ] {
        assert_eq!(
            peer.ask(1, method, json!({})).await["error"]["code"],
            -32601,
            "{method}"
        );
    }
}

/// H21: nothing is taken from an earlier request on the same connection: neither its version nor its
/// capabilities.
#[tokio::test]
async fn nothing_is_remembered_of_an_earlier_request() {
    let mut peer = Peer::start(&[Revision::V2026_07_28]);
    let meta = |capabilities: Value| {
        json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": capabilities})
    };
    let first = peer
        .ask(
            1,
            "tools/list",
            json!({"_meta": meta(json!({"elicitation": {}}))}),
        )
        .await;
    assert!(first["result"]["tools"].is_array());
    let bare = peer.ask(2, "tools/list", json!({})).await;
    assert_eq!(bare["error"]["code"], -32602, "{bare}");
    let name = "test_input_required_result_elicitation";
    let asked = peer
        .ask(
            3,
            "tools/call",
            json!({"name": name, "_meta": meta(json!({"elicitation": {}}))}),
        )
        .await;
    assert_eq!(asked["result"]["resultType"], "input_required");
    let cannot = peer
        .ask(
            4,
            "tools/call",
            json!({"name": name, "_meta": meta(json!({}))}),
        )
        .await;
    assert_eq!(cannot["error"]["code"], -32021, "{cannot}");
}

/// F19: a handler that panics is an internal error of its own request; what it said is not told, and
/// the connection goes on.
#[tokio::test]
async fn a_handler_that_panics_ends_only_its_request() {
    let broken = || {
        Server::new("t", "1").tool("broken", "Panics", |_: NoArgs, _: Context| async {
            if true {
                panic!("canary in a panic");
            }
            Ok::<_, HandlerError>("unreachable")
        })
    };
    let mut peer = Peer::of(broken());
    peer.open("2025-11-25", json!({})).await;
    let reply = peer.ask(1, "tools/call", json!({"name": "broken"})).await;
    assert_eq!(reply["error"]["code"], -32603, "{reply}");
    assert!(!reply.to_string().contains("canary"));
    assert_eq!(peer.ask(2, "ping", json!({})).await["id"], 2);
    let server = Running::start(broken()).await;
    let call = modern(1, "tools/call", json!({"name": "broken"}));
    assert_eq!(server.send(&Raw::modern(&call)).await.code(), -32603);
}

/// H22, F3: a schema that refers to something elsewhere is refused when it is registered, and nothing is
/// fetched from there.
#[tokio::test]
async fn no_reference_is_ever_fetched() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let elsewhere = format!("http://{}/schema.json", listener.local_addr().unwrap());
    for to in [elsewhere.as_str(), "file:///etc/hostname"] {
        for schema in [
            json!({"type": "object", "properties": {"a": {"$ref": to}}}),
            json!({"$id": to, "type": "object", "properties": {"a": {"$ref": "other.json"}}}),
        ] {
            let tool = mcpact::model::Tool::new("t", schema);
            let server = Server::new("t", "1").tool_with(tool, |_: Value, _| async { Ok("x") });
            let refused = server.listen(([127, 0, 0, 1], 0).into()).await;
            assert!(refused.is_err(), "{to}");
        }
    }
    let visitor =
        std::future::poll_fn(|cx| std::task::Poll::Ready(listener.poll_accept(cx).is_ready()));
    assert!(!visitor.await, "no request was made");
}

/// P19: addresses that would lead elsewhere as paths are not found, in every revision.
#[tokio::test]
async fn addresses_do_not_lead_elsewhere() {
    let mut peer = Peer::start(&Revision::ALL);
    peer.open("2025-11-25", json!({})).await;
    for id in [
        "..",
        "%2e%2e",
        "%252e%252e",
        "..%2f..",
        "a\\..",
        "a\u{0}",
        "%00",
        ".",
    ] {
        let read = json!({"uri": format!("test://template/{id}/data")});
        let reply = peer.ask(1, "resources/read", read.clone()).await;
        assert_eq!(reply["error"]["code"], -32002, "{id}: {reply}");
        let reply = peer.ask(2, "resources/subscribe", read).await;
        assert_eq!(reply["error"]["code"], -32002, "{id}: {reply}");
    }
}
