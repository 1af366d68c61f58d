//! Legacy clients of a modern server that asks questions before it answers.

use mcpact_sim::scripted::{HttpTestClient, TestClient, listen, message::tool};
use mcpact_spec::Revision;
use serde_json::{Value, json};

use crate::scripted_server::{Role, ScriptedServer};
use crate::upstream;

async fn scene(version: &str, capabilities: Value) -> (ScriptedServer, TestClient) {
    let scripted = ScriptedServer::lines(Role::new(Revision::V2026_07_28));
    let peer = TestClient::legacy(&upstream(&scripted), version, capabilities).await;
    (scripted, peer)
}

fn form(message: &str) -> Value {
    json!({"method": "elicitation/create", "params": {"mode": "form", "message": message,
        "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}}}})
}

fn sample() -> Value {
    json!({"method": "sampling/createMessage", "params": {"maxTokens": 9,
        "messages": [{"role": "user", "content": {"type": "text", "text": "capital?"}}]}})
}

fn accept(name: &str) -> Value {
    json!({"action": "accept", "content": {"name": name}})
}

/// Returns the parameters without the members that change between rounds.
fn stable(params: &Value) -> Value {
    let mut params = params.clone();
    for changing in ["_meta", "inputResponses", "requestState"] {
        params.as_object_mut().unwrap().remove(changing);
    }
    params
}

/// MR-01, MR-02, BA-06: the client sees one call with two questions; the server sees three calls with fresh ids and the
/// same parameters, the answers of the previous round and its state, byte for byte.
#[tokio::test(start_paused = true)]
async fn input_rounds_are_one_call_for_a_legacy_client() {
    let (mut scripted, mut peer) = scene("2025-11-25", json!({"elicitation": {}})).await;
    peer.request(7, "tools/call", tool("greet")).await;
    let first = scripted.expect("tools/call").await;
    assert_eq!(stable(first.params()), tool("greet"));
    let state = "S\u{1F980}/\"\\ 1==";
    first.result(
        json!({"resultType": "input_required", "inputRequests": {"who": form("Who?")},
        "requestState": state}),
    );
    let asked = peer.expect("elicitation/create").await;
    assert_eq!(asked["params"]["message"], "Who?");
    peer.answer(&asked, accept("Ann")).await;

    let second = scripted.expect("tools/call").await;
    assert_ne!(second.message["id"], first.message["id"]);
    assert_eq!(stable(second.params()), tool("greet"));
    assert_eq!(second.params()["requestState"], state);
    assert_eq!(
        second.params()["inputResponses"],
        json!({"who": accept("Ann")})
    );
    second.result(
        json!({"resultType": "input_required", "inputRequests": {"title": form("Title?")}}),
    );
    let again = peer.expect("elicitation/create").await;
    assert_ne!(again["id"], asked["id"]);
    peer.answer(&again, accept("Dr")).await;

    let third = scripted.expect("tools/call").await;
    let ids = [&first, &second, &third].map(|said| said.message["id"].clone());
    assert!(ids[2] != ids[0] && ids[2] != ids[1], "{ids:?}");
    assert_eq!(stable(third.params()), tool("greet"));
    assert_eq!(
        third.params().get("requestState"),
        None,
        "the last round had none"
    );
    assert_eq!(
        third.params()["inputResponses"],
        json!({"title": accept("Dr")})
    );
    third.text("Hello, Dr Ann!");
    let answer = peer.recv().await;
    assert_eq!(
        (
            &answer["id"],
            answer["result"]["content"][0]["text"].as_str()
        ),
        (&json!(7), Some("Hello, Dr Ann!"))
    );
    assert_eq!(answer["result"].get("resultType"), None);
    peer.expect_silence().await;
}

/// MR-03: a concurrent call has no state of the rounds.
#[tokio::test(start_paused = true)]
async fn concurrent_calls_are_not_affected_by_rounds() {
    let (mut scripted, mut peer) = scene("2025-11-25", json!({"elicitation": {}})).await;
    peer.request(1, "tools/call", tool("greet")).await;
    let first = scripted.expect("tools/call").await;
    first.result(
        json!({"resultType": "input_required", "inputRequests": {"who": form("Who?")},
        "requestState": "S1"}),
    );
    let asked = peer.expect("elicitation/create").await;
    peer.request(2, "tools/call", tool("other")).await;
    let other = scripted.expect("tools/call").await;
    assert_eq!(other.params()["name"], "other");
    assert_eq!(other.params().get("requestState"), None);
    assert_eq!(other.params().get("inputResponses"), None);
    other.text("done");
    assert_eq!(peer.recv().await["id"], 2);
    peer.answer(&asked, accept("Ann")).await;
    scripted.expect("tools/call").await.text("hello");
    assert_eq!(peer.recv().await["id"], 1);
}

/// The questions of a round are asked at once and may be answered in any order.
#[tokio::test(start_paused = true)]
async fn questions_of_a_round_are_asked_together() {
    let capabilities = json!({"elicitation": {}, "sampling": {}, "roots": {}});
    let (mut scripted, mut peer) = scene("2025-11-25", capabilities).await;
    peer.request(1, "tools/call", tool("all")).await;
    scripted
        .recv()
        .await
        .result(json!({"resultType": "input_required", "inputRequests": {
        "a": form("Who?"), "b": sample(), "c": {"method": "roots/list"}}}));
    let asked = [peer.recv().await, peer.recv().await, peer.recv().await];
    let sampled =
        json!({"role": "assistant", "model": "m", "content": {"type": "text", "text": "Paris"}});
    let roots = json!({"roots": [{"uri": "file:///a"}]});
    for question in asked.iter().rev() {
        let answer = match question["method"].as_str().unwrap() {
            "elicitation/create" => accept("Ann"),
            "sampling/createMessage" => sampled.clone(),
            _ => roots.clone(),
        };
        peer.answer(question, answer).await;
    }
    let retry = scripted.recv().await;
    let expected = json!({"a": accept("Ann"), "b": sampled, "c": roots});
    assert_eq!(retry.params()["inputResponses"], expected);
    retry.text("done");
    assert_eq!(peer.recv().await["id"], 1);
}

/// BA-07: an error response to a form counts as dismissal.
#[tokio::test(start_paused = true)]
async fn form_errors_count_as_dismissed() {
    let (mut scripted, mut peer) = scene("2025-06-18", json!({"elicitation": {}})).await;
    peer.request(1, "tools/call", tool("greet")).await;
    scripted
        .recv()
        .await
        .result(json!({"resultType": "input_required",
        "inputRequests": {"who": form("Who?")}, "requestState": "S"}));
    let asked = peer.expect("elicitation/create").await;
    peer.refuse(&asked, -32603).await;
    let retry = scripted.expect("tools/call").await;
    assert_eq!(
        retry.params()["inputResponses"],
        json!({"who": {"action": "cancel"}})
    );
    assert_eq!(retry.params()["requestState"], "S");
    retry.text("then not");
    assert_eq!(
        peer.recv().await["result"]["content"][0]["text"],
        "then not"
    );
}

/// BA-08: a rejected sample ends the call without another round: as a tool result for tools, as an error for other
/// methods.
#[tokio::test(start_paused = true)]
async fn rejected_sample_ends_the_call() {
    let (mut scripted, mut peer) = scene("2025-11-25", json!({"sampling": {}})).await;
    let calls = [
        ("tools/call", tool("think")),
        ("prompts/get", json!({"name": "p"})),
        ("resources/read", json!({"uri": "test://r"})),
    ];
    for (id, (method, params)) in (1..).zip(calls) {
        peer.request(id, method, params).await;
        scripted
            .expect(method)
            .await
            .result(json!({"resultType": "input_required",
            "inputRequests": {"s": sample()}, "requestState": "S"}));
        let asked = peer.expect("sampling/createMessage").await;
        peer.refuse(&asked, -1).await;
        let answer = peer.recv().await;
        assert_eq!(answer["id"], id);
        if method == "tools/call" {
            assert_eq!(answer["result"]["isError"], true);
            let text = answer["result"]["content"][0]["text"].as_str().unwrap();
            assert!(text.contains("sampling/createMessage"), "{text}");
        } else {
            assert_eq!(answer["error"]["code"], -32603, "{answer}");
            assert_eq!(answer["error"]["data"]["inputRequest"], "s");
        }
    }
    peer.expect_silence().await;
    assert!(
        scripted.received().is_empty(),
        "the server hears no more of it"
    );
}

/// MR-04, BA-09: a server that only asks to be called again is called with growing pauses and its latest state, for a
/// limited time.
#[tokio::test(start_paused = true)]
async fn rounds_without_questions_are_limited() {
    let (mut scripted, mut peer) = scene("2025-11-25", json!({})).await;
    peer.request(1, "tools/call", tool("busy")).await;
    let mut pauses = Vec::new();
    let mut last = tokio::time::Instant::now();
    let mut calls = 0;
    let answer = loop {
        tokio::select! {
            said = scripted.recv() => {
                pauses.push(last.elapsed());
                last = tokio::time::Instant::now();
                if calls > 0 {
                    assert_eq!(said.params()["requestState"], format!("S{calls}"));
                    assert_eq!(said.params().get("inputResponses"), None);
                }
                calls += 1;
                said.result(json!({"resultType": "input_required",
                    "requestState": format!("S{calls}")}));
            }
            answer = peer.recv() => break answer,
        }
    };
    assert_eq!(answer["error"]["code"], -32603, "{answer}");
    assert!((2..=11).contains(&calls), "{calls}");
    assert!(
        pauses.windows(2).skip(1).all(|two| two[0] <= two[1]),
        "{pauses:?}"
    );
}

/// A server may answer after asking to be called again.
#[tokio::test(start_paused = true)]
async fn rounds_without_questions_may_succeed() {
    let (mut scripted, mut peer) = scene("2024-11-05", json!({})).await;
    peer.request(1, "tools/call", tool("busy")).await;
    let first = scripted.recv().await;
    first.result(json!({"resultType": "input_required", "requestState": "later"}));
    let second = scripted.recv().await;
    assert_eq!(second.params()["requestState"], "later");
    second.text("done");
    assert_eq!(peer.recv().await["result"]["content"][0]["text"], "done");
}

/// MR-11: a client never receives a question that it did not declare.
#[tokio::test(start_paused = true)]
async fn undeclared_questions_never_reach_the_client() {
    let (mut scripted, mut peer) = scene("2025-11-25", json!({"sampling": {}})).await;
    peer.request(1, "tools/call", tool("greet")).await;
    let said = scripted.recv().await;
    let declared = &said.params()["_meta"]["io.modelcontextprotocol/clientCapabilities"];
    assert_eq!(declared, &json!({"sampling": {}}));
    said.result(json!({"resultType": "input_required", "inputRequests": {"who": form("Who?")}}));
    let answer = peer.recv().await;
    assert_eq!(
        (&answer["id"], &answer["error"]["code"]),
        (&json!(1), &json!(-32603))
    );
    peer.expect_silence().await;
}

/// BA-10: a call that is cancelled between rounds withdraws its question and is not answered.
#[tokio::test(start_paused = true)]
async fn cancelled_calls_withdraw_their_questions() {
    let (mut scripted, mut peer) = scene("2025-11-25", json!({"elicitation": {}})).await;
    peer.request(1, "tools/call", tool("greet")).await;
    for _ in 0..2 {
        let said = scripted.expect("tools/call").await;
        said.result(json!({"resultType": "input_required",
            "inputRequests": {"who": form("Who?")}, "requestState": "S"}));
        let asked = peer.expect("elicitation/create").await;
        if said.params().get("inputResponses").is_none() {
            peer.answer(&asked, accept("Ann")).await;
        } else {
            peer.notify("notifications/cancelled", json!({"requestId": 1}))
                .await;
            let withdrawn = peer.expect("notifications/cancelled").await;
            assert_eq!(withdrawn["params"]["requestId"], asked["id"]);
            // Too late: the call is cancelled.
            peer.answer(&asked, accept("Ann")).await;
        }
    }
    peer.expect_silence().await;
    assert!(
        scripted.received().is_empty(),
        "the server hears no more of it"
    );
}

/// BA-10: a call that is cancelled during its second round is cancelled at the server: by a notification on stdio, by
/// closing the stream on HTTP.
#[tokio::test]
async fn cancellation_reaches_the_server_in_a_later_round() {
    for is_http in [false, true] {
        let role = Role::new(Revision::V2026_07_28);
        let mut scripted = match is_http {
            true => ScriptedServer::http(role).await,
            false => ScriptedServer::lines(role),
        };
        let mut peer = TestClient::legacy(
            &upstream(&scripted),
            "2025-11-25",
            json!({"elicitation": {}}),
        )
        .await;
        peer.request(1, "tools/call", tool("greet")).await;
        scripted
            .expect("tools/call")
            .await
            .result(json!({"resultType": "input_required",
            "inputRequests": {"who": form("Who?")}, "requestState": "S"}));
        let asked = peer.expect("elicitation/create").await;
        peer.answer(&asked, accept("Ann")).await;
        let second = scripted.expect("tools/call").await;
        peer.notify("notifications/cancelled", json!({"requestId": 1}))
            .await;
        if is_http {
            second.closed().await;
        } else {
            let cancelled = scripted.expect("notifications/cancelled").await;
            assert_eq!(cancelled.params()["requestId"], second.message["id"]);
            second.text("too late");
        }
        peer.expect_silence().await;
    }
}

/// BA-18: progress of a call increases even if the server restarts it in a later round.
#[tokio::test(start_paused = true)]
async fn progress_increases_over_rounds() {
    let (mut scripted, mut peer) = scene("2025-11-25", json!({"elicitation": {}})).await;
    let mut params = tool("slow");
    params["_meta"] = json!({"progressToken": "mine"});
    peer.request(1, "tools/call", params).await;
    let first = scripted.recv().await;
    let token = first.params()["_meta"]["progressToken"].clone();
    first.notify(
        "notifications/progress",
        json!({"progressToken": token, "progress": 0.5}),
    );
    first.result(json!({"resultType": "input_required", "inputRequests": {"who": form("Who?")}}));
    let mut seen = Vec::new();
    let asked = loop {
        let message = peer.recv().await;
        match message["method"].as_str() {
            Some("notifications/progress") => seen.push(message["params"].clone()),
            _ => break message,
        }
    };
    peer.answer(&asked, accept("Ann")).await;
    let second = scripted.recv().await;
    let token = second.params()["_meta"]["progressToken"].clone();
    for progress in [0.1, 0.2, 0.7] {
        second.notify(
            "notifications/progress",
            json!({"progressToken": token, "progress": progress}),
        );
    }
    second.text("done");
    loop {
        let message = peer.recv().await;
        match message["method"].as_str() {
            Some("notifications/progress") => seen.push(message["params"].clone()),
            _ => break,
        }
    }
    assert!(seen.len() >= 2, "{seen:?}");
    assert!(
        seen.iter().all(|params| params["progressToken"] == "mine"),
        "{seen:?}"
    );
    let values: Vec<f64> = seen
        .iter()
        .map(|params| params["progress"].as_f64().unwrap())
        .collect();
    assert!(values.windows(2).all(|two| two[0] < two[1]), "{values:?}");
}

/// The gateway waits five minutes for an answer; when the call times out, the form counts as dismissed and the client is
/// notified.
#[tokio::test(start_paused = true)]
async fn slow_answers_are_awaited_until_the_call_timeout() {
    let (mut scripted, mut peer) = scene("2025-11-25", json!({"elicitation": {}})).await;
    peer.request(1, "tools/call", tool("greet")).await;
    scripted
        .recv()
        .await
        .result(json!({"resultType": "input_required",
        "inputRequests": {"who": form("Who?")}}));
    let asked = peer.expect("elicitation/create").await;
    tokio::time::sleep(std::time::Duration::from_secs(300)).await;
    peer.answer(&asked, accept("Ann")).await;
    let retry = scripted.recv().await;
    assert_eq!(
        retry.params()["inputResponses"],
        json!({"who": accept("Ann")})
    );
    retry.text("hello");
    assert_eq!(peer.recv().await["id"], 1);

    peer.request(2, "tools/call", tool("greet")).await;
    scripted
        .recv()
        .await
        .result(json!({"resultType": "input_required",
        "inputRequests": {"who": form("Who?")}}));
    let asked = peer.expect("elicitation/create").await;
    let (mut is_withdrawn, mut is_answered) = (false, false);
    while !(is_withdrawn && is_answered) {
        let message = peer.recv().await;
        if message["method"] == "notifications/cancelled" {
            assert_eq!(message["params"]["requestId"], asked["id"]);
            is_withdrawn = true;
        } else {
            assert_eq!(message["id"], 2, "{message}");
            is_answered = true;
        }
    }
}

/// BA-04: a client without the capability gets the error of the server, on HTTP with the status of a response, and no
/// question.
#[tokio::test]
async fn missing_capability_error_reaches_the_client() {
    let mut scripted = ScriptedServer::http(Role::new(Revision::V2026_07_28)).await;
    let url = listen(&upstream(&scripted)).await;
    let web = HttpTestClient::legacy(&url, "2025-03-26", json!({})).await;
    let (mut reply, ()) = tokio::join!(web.request(1, "tools/call", tool("greet")), async {
        let said = scripted.expect("tools/call").await;
        let declared = &said.params()["_meta"]["io.modelcontextprotocol/clientCapabilities"];
        assert_eq!(declared, &json!({}));
        let data = json!({"requiredCapabilities": {"elicitation": {}}});
        let error =
            json!({"code": -32021, "message": "Missing required client capability", "data": data});
        said.status(
            400,
            json!({"jsonrpc": "2.0", "id": said.message["id"], "error": error}),
        );
    });
    assert_eq!(reply.status, 200);
    let answer = reply.only().await;
    assert_eq!(answer["error"]["code"], -32021, "{answer}");
    assert_eq!(
        answer["error"]["data"]["requiredCapabilities"],
        json!({"elicitation": {}})
    );
    assert!(
        answer["error"]["message"]
            .as_str()
            .unwrap()
            .contains("elicitation"),
        "{answer}"
    );
}

/// On HTTP a question arrives on the stream of its call and nowhere else.
#[tokio::test]
async fn questions_arrive_on_the_stream_of_their_call() {
    let mut scripted = ScriptedServer::http(Role::new(Revision::V2026_07_28)).await;
    let url = listen(&upstream(&scripted)).await;
    let web = HttpTestClient::legacy(&url, "2025-06-18", json!({"elicitation": {}})).await;
    let (mut reply, ()) = tokio::join!(web.request(7, "tools/call", tool("greet")), async {
        scripted
            .expect("tools/call")
            .await
            .result(json!({"resultType": "input_required",
            "inputRequests": {"who": form("Who?")}, "requestState": "S"}));
    });
    let asked = reply.next().await.unwrap();
    assert_eq!(asked["method"], "elicitation/create");
    assert_eq!(
        asked["params"].get("mode"),
        None,
        "2025-06-18 knows no modes"
    );
    web.answer(&asked, accept("Ann")).await;
    let retry = scripted.expect("tools/call").await;
    assert_eq!(
        retry.params()["inputResponses"],
        json!({"who": accept("Ann")})
    );
    retry.text("hello");
    let answer = reply.only().await;
    assert_eq!(
        (&answer["id"], &answer["result"]["content"][0]["text"]),
        (&json!(7), &json!("hello"))
    );
}

/// A client that ends its session cancels its calls.
#[tokio::test]
async fn ending_a_session_cancels_its_calls() {
    let mut scripted = ScriptedServer::http(Role::new(Revision::V2026_07_28)).await;
    let url = listen(&upstream(&scripted)).await;
    let web = HttpTestClient::legacy(&url, "2025-11-25", json!({})).await;
    let other = web.clone();
    let calling =
        tokio::spawn(async move { other.request(1, "tools/call", tool("slow")).await.status });
    let said = scripted.expect("tools/call").await;
    assert_eq!(web.delete().await, 200);
    said.closed().await;
    calling.await.unwrap();
}
