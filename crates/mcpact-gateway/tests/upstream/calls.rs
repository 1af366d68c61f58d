//! Progress, cancellation and disconnection of calls between eras.

use mcpact::client::Client;
use mcpact_engine::client::EraMode;
use mcpact_sim::scripted::{HttpTestClient, TestClient, listen};
use mcpact_spec::Revision;
use serde_json::{Value, json};

use crate::scene::Scene;

use Revision::{V2025_06_18, V2025_11_25, V2026_07_28};

const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
const TASKS: &str = "io.modelcontextprotocol/tasks";

fn call() -> Value {
    json!({"name": "t", "arguments": {}})
}

fn with_token(token: &str) -> Value {
    json!({"name": "t", "arguments": {}, "_meta": {"progressToken": token}})
}

/// Result of a modern server that asks for a name.
fn asks(state: &str) -> Value {
    let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}});
    let params = json!({"mode": "form", "message": "Who?", "requestedSchema": schema});
    json!({
        "resultType": "input_required",
        "inputRequests": {"who": {"method": "elicitation/create", "params": params}},
        "requestState": state,
    })
}

async fn report(server: &mut TestClient, request: &Value, progress: f64) {
    let token = request["params"]["_meta"]["progressToken"].clone();
    assert_ne!(token, Value::Null, "{request}");
    let report = json!({"progressToken": token, "progress": progress, "total": 1});
    server.notify("notifications/progress", report).await;
}

async fn agree(client: &mut TestClient, question: &Value) {
    let answer = json!({"action": "accept", "content": {"name": "Ann"}});
    client.answer(question, answer).await;
}

/// Returns the progress in the next message, which must have this token.
async fn progress(client: &mut TestClient, token: &str) -> f64 {
    let report = client.expect("notifications/progress").await;
    assert_eq!(report["params"]["progressToken"], token);
    report["params"]["progress"].as_f64().unwrap()
}

async fn elicited(scene: &mut Scene) -> (TestClient, TestClient) {
    let client = json!({"elicitation": {}});
    let server = json!({"tools": {}});
    scene.legacy_pair(V2025_06_18, client, server).await
}

/// BA-18: progress starts at zero in each round at the server, but never decreases for the client.
#[tokio::test]
async fn progress_increases_over_rounds() {
    let mut scene = Scene::new(V2026_07_28);
    let (mut client, mut server) = elicited(&mut scene).await;
    client.request(2, "tools/call", with_token("mine")).await;
    let first = server.expect("tools/call").await;
    report(&mut server, &first, 0.5).await;
    server.answer(&first, asks("s1")).await;
    assert!((progress(&mut client, "mine").await - 0.5).abs() < 1e-9);
    let question = client.expect("elicitation/create").await;
    agree(&mut client, &question).await;
    let second = server.expect("tools/call").await;
    assert_eq!(second["params"]["requestState"], "s1");
    for own in [0.1, 0.05, 0.9] {
        report(&mut server, &second, own).await;
    }
    let done = json!({"resultType": "complete", "content": []});
    server.answer(&second, done).await;
    let third = progress(&mut client, "mine").await;
    let fourth = progress(&mut client, "mine").await;
    assert!(0.5 < third && third < fourth, "{third} {fourth}");
    client.result(2).await;
}

/// Between a modern client and a legacy server each side has its own token. A call without a token gets no progress.
#[tokio::test]
async fn progress_has_the_token_of_each_side() {
    let mut scene = Scene::new(V2025_06_18);
    let token = json!({"progressToken": "mine"});
    let first = (1, "tools/call", call());
    let pair = scene.modern_pair(json!({"tools": {}}), first, token);
    let (mut client, mut server) = pair.await;
    let called = server.expect("tools/call").await;
    assert_ne!(called["params"]["_meta"]["progressToken"], "mine");
    report(&mut server, &called, 0.25).await;
    report(&mut server, &called, 0.25).await;
    report(&mut server, &called, 0.75).await;
    server.answer(&called, json!({"content": []})).await;
    assert!((progress(&mut client, "mine").await - 0.25).abs() < 1e-9);
    assert!((progress(&mut client, "mine").await - 0.75).abs() < 1e-9);
    client.result(1).await;
    client
        .request_modern_with(2, "tools/call", call(), json!({}))
        .await;
    let called = server.expect("tools/call").await;
    let stray = json!({"progressToken": "mine", "progress": 1});
    server.notify("notifications/progress", stray).await;
    server.answer(&called, json!({"content": []})).await;
    client.result(2).await;
}

/// BA-10: cancellation by a legacy client cancels the call at the server or the open question, and the client gets no
/// response.
#[tokio::test]
async fn cancelled_round_ends_on_both_sides() {
    let mut scene = Scene::new(V2026_07_28);
    let (mut client, mut server) = elicited(&mut scene).await;
    client.request(2, "tools/call", call()).await;
    let first = server.expect("tools/call").await;
    server.answer(&first, asks("s1")).await;
    let question = client.expect("elicitation/create").await;
    agree(&mut client, &question).await;
    let second = server.expect("tools/call").await;
    client
        .notify("notifications/cancelled", json!({"requestId": 2}))
        .await;
    let cancelled = server.expect("notifications/cancelled").await;
    assert_eq!(cancelled["params"]["requestId"], second["id"]);

    client.request(3, "tools/call", call()).await;
    let first = server.expect("tools/call").await;
    server.answer(&first, asks("s2")).await;
    let question = client.expect("elicitation/create").await;
    client
        .notify("notifications/cancelled", json!({"requestId": 3}))
        .await;
    let withdrawn = client.expect("notifications/cancelled").await;
    assert_eq!(withdrawn["params"]["requestId"], question["id"]);
    client.request(4, "ping", json!({})).await;
    client.result(4).await;
}

/// The cancellation of a modern stdio client reaches a legacy server.
#[tokio::test]
async fn modern_stdio_client_cancels_at_a_legacy_server() {
    let mut scene = Scene::new(V2025_06_18);
    let first = (1, "tools/call", call());
    let pair = scene.modern_pair(json!({"tools": {}}), first, json!({}));
    let (mut client, mut server) = pair.await;
    let called = server.expect("tools/call").await;
    client
        .notify("notifications/cancelled", json!({"requestId": 1}))
        .await;
    let cancelled = server.expect("notifications/cancelled").await;
    assert_eq!(cancelled["params"]["requestId"], called["id"]);
    client
        .request_modern_with(2, "tools/call", call(), json!({}))
        .await;
    let called = server.expect("tools/call").await;
    server.answer(&called, json!({"content": []})).await;
    client.result(2).await;
}

/// BB-21: a modern client cancels a call by closing its stream.
#[tokio::test]
async fn closed_stream_of_a_modern_client_cancels_the_call() {
    let mut scene = Scene::new(V2025_06_18);
    let url = listen(&scene.bridge).await;
    let calling = tokio::spawn(async move {
        let mode = EraMode::Pin(V2026_07_28);
        let client = Client::builder("leaves", "1").mode(mode).connect(url).await;
        client.unwrap().call_tool("t", json!({})).await
    });
    let mut server = scene.server(json!({"tools": {}})).await;
    let called = server.expect("tools/call").await;
    calling.abort();
    let cancelled = server.expect("notifications/cancelled").await;
    assert_eq!(cancelled["params"]["requestId"], called["id"]);
}

/// A legacy client that loses its stream has not cancelled its call.
#[tokio::test]
async fn lost_stream_of_a_legacy_client_does_not_cancel() {
    let mut scene = Scene::new(V2026_07_28);
    let url = listen(&scene.bridge).await;
    let opening =
        tokio::spawn(async move { HttpTestClient::legacy(&url, "2025-06-18", json!({})).await });
    let mut server = scene.server(json!({"tools": {}, "prompts": {}})).await;
    let client = opening.await.unwrap();
    let caller = client.clone();
    let calling = tokio::spawn(async move { caller.request(2, "tools/call", call()).await });
    let called = server.expect("tools/call").await;
    calling.abort();
    assert!(calling.await.is_err(), "the call is still open");
    let listing = tokio::spawn(async move {
        let mut listed = client.request(3, "prompts/list", json!({})).await;
        listed.next().await.is_some()
    });
    // A cancellation would have arrived before this request.
    let listed = server.expect("prompts/list").await;
    let done = json!({"resultType": "complete", "content": []});
    server.answer(&called, done).await;
    let prompts = json!({"resultType": "complete", "prompts": []});
    server.answer(&listed, prompts).await;
    assert!(listing.await.unwrap());
}

/// Cancelling the call of a legacy client cancels the task of a modern server.
#[tokio::test]
async fn cancelling_a_call_cancels_its_modern_task() {
    let mut scene = Scene::new(V2026_07_28);
    let server = json!({"tools": {}, "extensions": { TASKS: {} }});
    let (mut client, mut server) = scene.legacy_pair(V2025_06_18, json!({}), server).await;
    client.request(2, "tools/call", call()).await;
    let refused = server.expect("tools/call").await;
    let required = json!({"requiredCapabilities": {"extensions": { TASKS: {} }}});
    let error = json!({"code": -32021, "message": "Missing", "data": required});
    server
        .send(json!({"id": refused["id"], "error": error}))
        .await;
    let called = server.expect("tools/call").await;
    let declared = &called["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"];
    assert_eq!(declared["extensions"][TASKS], json!({}), "{called}");
    let task = json!({
        "resultType": "task", "taskId": "x", "status": "working", "ttlMs": null,
        "createdAt": "2026-07-28T00:00:00Z", "lastUpdatedAt": "2026-07-28T00:00:00Z",
        "pollIntervalMs": 1,
    });
    server.answer(&called, task).await;
    let looked = server.expect("tasks/get").await;
    assert_eq!(looked["params"]["taskId"], "x");
    client
        .notify("notifications/cancelled", json!({"requestId": 2}))
        .await;
    let both = [server.recv().await, server.recv().await];
    let of = |method: &str| both.iter().find(|message| message["method"] == method);
    assert!(of("notifications/cancelled").is_some(), "{both:?}");
    assert_eq!(of("tasks/cancel").unwrap()["params"]["taskId"], "x");
}

/// Answers `tools/list` of a server of 2025-11-25 with one tool and its task support.
async fn answer_tools(server: &mut TestClient, support: &str) {
    let listed = server.expect("tools/list").await;
    let execution = json!({ "taskSupport": support });
    let tool = json!({"name": "t", "inputSchema": {"type": "object"}, "execution": execution});
    server.answer(&listed, json!({"tools": [tool]})).await;
}

fn core_tasks() -> Value {
    let requests = json!({"tools": {"call": {}}});
    json!({"tools": {}, "tasks": {"cancel": {}, "requests": requests}})
}

fn core_task(status: &str) -> Value {
    json!({
        "taskId": "x", "status": status, "ttl": 60000, "pollInterval": 10,
        "createdAt": "2025-11-25T00:00:00Z", "lastUpdatedAt": "2025-11-25T00:00:00Z",
    })
}

/// BB-21: cancelling a call that runs as a task of 2025-11-25 sends `tasks/cancel`.
#[tokio::test]
async fn cancelling_a_call_cancels_its_core_task() {
    let mut scene = Scene::new(V2025_11_25);
    let first = (1, "tools/call", call());
    let pair = scene.modern_pair(core_tasks(), first, json!({}));
    let (mut client, mut server) = pair.await;
    answer_tools(&mut server, "required").await;
    let called = server.expect("tools/call").await;
    assert_eq!(called["params"]["task"], json!({}), "{called}");
    let created = json!({"task": core_task("working")});
    server.answer(&called, created).await;
    let waits = server.expect("tasks/result").await;
    client
        .notify("notifications/cancelled", json!({"requestId": 1}))
        .await;
    let both = [server.recv().await, server.recv().await];
    let of = |method: &str| both.iter().find(|message| message["method"] == method);
    let cancelled = of("notifications/cancelled").unwrap();
    assert_eq!(cancelled["params"]["requestId"], waits["id"]);
    assert_eq!(of("tasks/cancel").unwrap()["params"]["taskId"], "x");
}

fn following() -> Value {
    let declared = json!({"elicitation": {}, "extensions": { TASKS: {} }});
    json!({"io.modelcontextprotocol/clientCapabilities": declared})
}

/// Questions of a task are assigned to it by its id. A subscriber is notified of its end with the result. The id at the
/// server is not valid for clients.
#[tokio::test]
async fn questions_and_changes_of_a_core_task_reach_its_client() {
    let mut scene = Scene::new(V2025_11_25);
    let first = (1, "tools/call", call());
    let pair = scene.modern_pair(core_tasks(), first, following());
    let (mut client, mut server) = pair.await;
    answer_tools(&mut server, "optional").await;
    let called = server.expect("tools/call").await;
    let created = json!({"task": core_task("working")});
    server.answer(&called, created).await;
    let task = client.result(1).await;
    assert_eq!(task["resultType"], "task");
    let name = task["taskId"].clone();
    assert_ne!(name, "x", "the id of the server may be guessed");
    assert_eq!(task["_meta"][SERVER_INFO]["name"], "scripted");

    let filter = json!({"notifications": {"taskIds": [name, "x"]}});
    client
        .request_modern_with(2, "subscriptions/listen", filter, following())
        .await;
    let acknowledged = client
        .expect("notifications/subscriptions/acknowledged")
        .await;
    assert_eq!(
        acknowledged["params"]["notifications"]["taskIds"],
        json!([name])
    );

    let waiting = core_task("input_required");
    server.notify("notifications/tasks/status", waiting).await;
    let waits = server.expect("tasks/result").await;
    assert_eq!(waits["params"]["taskId"], "x");
    let note = client.expect("notifications/tasks").await;
    assert_eq!(note["params"]["taskId"], name);
    let question = json!({
        "message": "Who?",
        "requestedSchema": {"type": "object", "properties": {}},
        "_meta": {"io.modelcontextprotocol/related-task": {"taskId": "x"}},
    });
    server.request(77, "elicitation/create", question).await;
    let wanted = json!({ "taskId": name });
    client
        .request_modern_with(3, "tasks/get", wanted.clone(), following())
        .await;
    let looked = server.expect("tasks/get").await;
    server.answer(&looked, core_task("input_required")).await;
    let detailed = client.result(3).await;
    assert_eq!(detailed["status"], "input_required", "{detailed}");
    assert_eq!(detailed["_meta"][SERVER_INFO]["name"], "scripted");
    let asked = detailed["inputRequests"].as_object().unwrap();
    let (key, asked) = asked.iter().next().unwrap();
    assert_eq!(asked["params"]["message"], "Who?");
    assert_eq!(asked["params"]["_meta"], Value::Null);
    let answers = json!({ key: {"action": "accept", "content": {}} });
    let update = json!({"taskId": name, "inputResponses": answers});
    client
        .request_modern_with(4, "tasks/update", update, following())
        .await;
    let answered = server.recv().await;
    assert_eq!(
        (&answered["id"], &answered["result"]["action"]),
        (&json!(77), &json!("accept"))
    );
    client.result(4).await;

    let result = json!({"content": [{"type": "text", "text": "done"}]});
    server.answer(&waits, result).await;
    let note = client.expect("notifications/tasks").await;
    assert_eq!(note["params"]["status"], "completed", "{note}");
    assert_eq!(note["params"]["result"]["content"][0]["text"], "done");
    client
        .request_modern_with(5, "tasks/get", wanted, following())
        .await;
    assert_eq!(client.result(5).await["status"], "completed");
    client
        .request_modern_with(6, "tasks/get", json!({"taskId": "x"}), following())
        .await;
    assert_eq!(client.error(6).await, -32602);
}

/// A task fails when the session of the server that runs it ends.
#[tokio::test]
async fn task_fails_when_its_session_ends() {
    let mut scene = Scene::new(V2025_11_25);
    let first = (1, "tools/call", call());
    let pair = scene.modern_pair(core_tasks(), first, following());
    let (mut client, mut server) = pair.await;
    answer_tools(&mut server, "optional").await;
    let called = server.expect("tools/call").await;
    let created = json!({"task": core_task("working")});
    server.answer(&called, created).await;
    let name = client.result(1).await["taskId"].clone();
    let wanted = json!({ "taskId": name });
    client
        .request_modern_with(2, "tasks/get", wanted, following())
        .await;
    server.expect("tasks/get").await;
    drop(server);
    let failed = client.result(2).await;
    assert_eq!(failed["status"], "failed", "{failed}");
    assert!(
        failed["error"]["message"]
            .as_str()
            .unwrap()
            .contains("lost")
    );
}

/// Questions of a task hosted for a client of 2025-11-25 are sent during `tasks/result`, and again during a second one.
#[tokio::test]
async fn hosted_task_asks_during_tasks_result() {
    let mut scene = Scene::new(V2026_07_28);
    let client = json!({"elicitation": {}});
    let server = json!({"tools": {}, "extensions": { TASKS: {} }});
    let (mut client, mut server) = scene.legacy_pair(V2025_11_25, client, server).await;
    let params = json!({"name": "t", "arguments": {}, "task": {"ttl": 60000}});
    client.request(2, "tools/call", params).await;
    let created = client.result(2).await;
    assert_eq!(created["task"]["status"], "working");
    assert_eq!(created["task"]["ttl"], 60000);
    let name = created["task"]["taskId"].clone();
    let called = server.expect("tools/call").await;
    assert_eq!(called["params"]["task"], Value::Null);
    server.answer(&called, asks("s")).await;
    let note = client.expect("notifications/tasks/status").await;
    assert_eq!(note["params"]["status"], "input_required");
    assert_eq!(note["params"]["taskId"], name);

    let wanted = json!({ "taskId": name });
    client.request(3, "tasks/result", wanted.clone()).await;
    let question = client.expect("elicitation/create").await;
    let related = &question["params"]["_meta"]["io.modelcontextprotocol/related-task"];
    assert_eq!(related["taskId"], name);
    client
        .notify("notifications/cancelled", json!({"requestId": 3}))
        .await;
    let withdrawn = client.expect("notifications/cancelled").await;
    assert_eq!(withdrawn["params"]["requestId"], question["id"]);
    client.request(4, "tasks/result", wanted).await;
    let question = client.expect("elicitation/create").await;
    agree(&mut client, &question).await;
    let note = client.expect("notifications/tasks/status").await;
    assert_eq!(note["params"]["status"], "working");
    let again = server.expect("tools/call").await;
    assert_eq!(again["params"]["inputResponses"]["who"]["action"], "accept");
    let failed = json!({"resultType": "complete", "content": [], "isError": true});
    server.answer(&again, failed).await;
    let mut received = [client.recv().await, client.recv().await];
    received.sort_by_key(|message| message.get("id").is_none());
    let [result, note] = received;
    assert_eq!(result["result"]["isError"], true);
    assert_eq!(note["params"]["status"], "failed", "{note}");
}

/// L13: a server that did not declare tasks gets no `task`, and the rest of the call unchanged.
#[tokio::test]
async fn task_is_not_sent_to_a_server_without_tasks() {
    let mut scene = Scene::new(V2025_11_25);
    let pair = scene.legacy_pair(V2025_11_25, json!({}), json!({"tools": {}}));
    let (mut client, mut server) = pair.await;
    let plain = json!({"name": "t", "arguments": {"task": 1.50}, "x/y": 2});
    let mut params = plain.clone();
    params["task"] = json!({"ttl": 1});
    client.request(2, "tools/call", params).await;
    let called = server.expect("tools/call").await;
    assert_eq!(called["params"], plain);
    server.answer(&called, json!({"content": []})).await;
    client.result(2).await;
}
