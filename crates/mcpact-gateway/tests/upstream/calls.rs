//! Progress, cancellation and disconnection of calls that cross between eras.

use std::sync::Arc;

use bytes::Bytes;
use http::HeaderMap;
use mcpact::client::Client;
use mcpact_engine::client::EraMode;
use mcpact_spec::Revision;
use mcpact_transport::http::client::{ClientResponseBody, HttpClient, HttpSettings};
use serde_json::{Value, json};

use crate::staged::{Peer, Scene};

use Revision::{V2025_06_18, V2025_11_25, V2026_07_28};

const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
const TASKS: &str = "io.modelcontextprotocol/tasks";

fn call() -> Value {
    json!({"name": "t", "arguments": {}})
}

fn with_token(token: &str) -> Value {
    json!({"name": "t", "arguments": {}, "_meta": {"progressToken": token}})
}

/// A result with which a modern server asks for a name.
fn asks(state: &str) -> Value {
    let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}});
    let params = json!({"mode": "form", "message": "Who?", "requestedSchema": schema});
    json!({
        "resultType": "input_required",
        "inputRequests": {"who": {"method": "elicitation/create", "params": params}},
        "requestState": state,
    })
}

async fn report(server: &mut Peer, request: &Value, progress: f64) {
    let token = request["params"]["_meta"]["progressToken"].clone();
    assert_ne!(token, Value::Null, "{request}");
    let report = json!({"progressToken": token, "progress": progress, "total": 1});
    server.tell("notifications/progress", report).await;
}

async fn agree(client: &mut Peer, question: &Value) {
    let answer = json!({"action": "accept", "content": {"name": "Ann"}});
    client.answer(question, answer).await;
}

/// The progress in the next message, which must be of the client's own token.
async fn progress(client: &mut Peer, token: &str) -> f64 {
    let heard = client.expect("notifications/progress").await;
    assert_eq!(heard["params"]["progressToken"], token);
    heard["params"]["progress"].as_f64().unwrap()
}

async fn elicited(scene: &mut Scene) -> (Peer, Peer) {
    let client = json!({"elicitation": {}});
    let server = json!({"tools": {}});
    scene.legacy_pair(V2025_06_18, client, server).await
}

/// BA-18: a server that is asked again begins at zero again; what the client sees only grows.
#[tokio::test]
async fn progress_grows_over_rounds() {
    let mut scene = Scene::new(V2026_07_28);
    let (mut client, mut server) = elicited(&mut scene).await;
    client.ask(2, "tools/call", with_token("mine")).await;
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

/// Between a modern client and a legacy server each side has its own token, and who gave none hears
/// nothing.
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
    client.ask_modern(2, "tools/call", call(), json!({})).await;
    let called = server.expect("tools/call").await;
    let stray = json!({"progressToken": "mine", "progress": 1});
    server.tell("notifications/progress", stray).await;
    server.answer(&called, json!({"content": []})).await;
    client.result(2).await;
}

/// BA-10: a legacy client that cancels takes back the call at the server, or what it is being asked,
/// and gets no answer.
#[tokio::test]
async fn a_cancelled_round_is_over_on_both_sides() {
    let mut scene = Scene::new(V2026_07_28);
    let (mut client, mut server) = elicited(&mut scene).await;
    client.ask(2, "tools/call", call()).await;
    let first = server.expect("tools/call").await;
    server.answer(&first, asks("s1")).await;
    let question = client.expect("elicitation/create").await;
    agree(&mut client, &question).await;
    let second = server.expect("tools/call").await;
    client
        .tell("notifications/cancelled", json!({"requestId": 2}))
        .await;
    let cancelled = server.expect("notifications/cancelled").await;
    assert_eq!(cancelled["params"]["requestId"], second["id"]);

    client.ask(3, "tools/call", call()).await;
    let first = server.expect("tools/call").await;
    server.answer(&first, asks("s2")).await;
    let question = client.expect("elicitation/create").await;
    client
        .tell("notifications/cancelled", json!({"requestId": 3}))
        .await;
    let withdrawn = client.expect("notifications/cancelled").await;
    assert_eq!(withdrawn["params"]["requestId"], question["id"]);
    client.ask(4, "ping", json!({})).await;
    client.result(4).await;
}

/// A modern client on lines cancels in the words of its revision; the server is told in its own.
#[tokio::test]
async fn a_modern_client_cancels_on_lines() {
    let mut scene = Scene::new(V2025_06_18);
    let first = (1, "tools/call", call());
    let pair = scene.modern_pair(json!({"tools": {}}), first, json!({}));
    let (mut client, mut server) = pair.await;
    let called = server.expect("tools/call").await;
    client
        .tell("notifications/cancelled", json!({"requestId": 1}))
        .await;
    let cancelled = server.expect("notifications/cancelled").await;
    assert_eq!(cancelled["params"]["requestId"], called["id"]);
    client.ask_modern(2, "tools/call", call(), json!({})).await;
    let called = server.expect("tools/call").await;
    server.answer(&called, json!({"content": []})).await;
    client.result(2).await;
}

/// BB-21: a modern client that closes the stream of its call has cancelled it.
#[tokio::test]
async fn a_modern_client_that_leaves_cancels() {
    let mut scene = Scene::new(V2025_06_18);
    let front = Arc::clone(&scene.bridge);
    let front = front.listen(([127, 0, 0, 1], 0).into()).await.unwrap();
    let url = front.url();
    let running = tokio::spawn(front.run(std::future::pending()));
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
    running.abort();
}

/// The opposite: a legacy client that loses its connection has not cancelled anything.
#[tokio::test]
async fn a_legacy_client_that_loses_its_stream_does_not_cancel() {
    let mut scene = Scene::new(V2026_07_28);
    let front = Arc::clone(&scene.bridge);
    let front = front.listen(([127, 0, 0, 1], 0).into()).await.unwrap();
    let http = HttpClient::new(&front.url(), HttpSettings::default()).unwrap();
    let running = tokio::spawn(front.run(std::future::pending()));
    let opener = http.clone();
    let opening = tokio::spawn(async move {
        let info = json!({"name": "leaves", "version": "1"});
        let params =
            json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": info});
        let opened = post(&opener, &HeaderMap::new(), 1, "initialize", params).await;
        let mut facts = HeaderMap::new();
        let session = opened.headers["mcp-session-id"].clone();
        facts.insert("mcp-session-id", session);
        facts.insert("mcp-protocol-version", "2025-06-18".parse().unwrap());
        let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        let ready = Bytes::from(ready.to_string());
        opener.post(&facts, ready).await.unwrap();
        facts
    });
    let mut server = scene.server(json!({"tools": {}, "prompts": {}})).await;
    let facts = opening.await.unwrap();
    let (poster, leaving) = (http.clone(), facts.clone());
    let calling =
        tokio::spawn(async move { post(&poster, &leaving, 2, "tools/call", call()).await });
    let called = server.expect("tools/call").await;
    calling.abort();
    assert!(calling.await.is_err(), "nobody has answered yet");
    let listing = tokio::spawn(async move {
        let listed = post(&http, &facts, 3, "prompts/list", json!({})).await;
        matches!(
            listed.body,
            ClientResponseBody::Json(_) | ClientResponseBody::Events(_)
        )
    });
    // Had the call been cancelled, the server would have heard of that first.
    let listed = server.expect("prompts/list").await;
    let done = json!({"resultType": "complete", "content": []});
    server.answer(&called, done).await;
    let prompts = json!({"resultType": "complete", "prompts": []});
    server.answer(&listed, prompts).await;
    assert!(listing.await.unwrap());
    running.abort();
}

async fn post(
    http: &HttpClient,
    facts: &HeaderMap,
    id: u64,
    method: &str,
    params: Value,
) -> mcpact_transport::http::client::ClientResponse {
    let body = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
    let body = Bytes::from(body.to_string());
    http.post(facts, body).await.unwrap()
}

/// A modern server's task that a legacy client waits for is called off with the call.
#[tokio::test]
async fn cancelling_a_call_calls_off_the_task_behind_it() {
    let mut scene = Scene::new(V2026_07_28);
    let server = json!({"tools": {}, "extensions": { TASKS: {} }});
    let (mut client, mut server) = scene.legacy_pair(V2025_06_18, json!({}), server).await;
    client.ask(2, "tools/call", call()).await;
    let refused = server.expect("tools/call").await;
    let required = json!({"requiredCapabilities": {"extensions": { TASKS: {} }}});
    let error = json!({"code": -32021, "message": "Missing", "data": required});
    server
        .say(json!({"id": refused["id"], "error": error}))
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
        .tell("notifications/cancelled", json!({"requestId": 2}))
        .await;
    let both = [server.hear().await, server.hear().await];
    let of = |method: &str| both.iter().find(|heard| heard["method"] == method);
    assert!(of("notifications/cancelled").is_some(), "{both:?}");
    assert_eq!(of("tasks/cancel").unwrap()["params"]["taskId"], "x");
}

/// What a legacy server of 2025-11-25 says about its one tool, which runs as a task.
async fn tell_tools(server: &mut Peer, support: &str) {
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

/// BB-21: a task of 2025-11-25 that a client waits for without knowing of it is called off with
/// `tasks/cancel`.
#[tokio::test]
async fn cancelling_a_call_calls_off_the_core_task_behind_it() {
    let mut scene = Scene::new(V2025_11_25);
    let first = (1, "tools/call", call());
    let pair = scene.modern_pair(core_tasks(), first, json!({}));
    let (mut client, mut server) = pair.await;
    tell_tools(&mut server, "required").await;
    let called = server.expect("tools/call").await;
    assert_eq!(called["params"]["task"], json!({}), "{called}");
    let created = json!({"task": core_task("working")});
    server.answer(&called, created).await;
    let waits = server.expect("tasks/result").await;
    client
        .tell("notifications/cancelled", json!({"requestId": 1}))
        .await;
    let both = [server.hear().await, server.hear().await];
    let of = |method: &str| both.iter().find(|heard| heard["method"] == method);
    let cancelled = of("notifications/cancelled").unwrap();
    assert_eq!(cancelled["params"]["requestId"], waits["id"]);
    assert_eq!(of("tasks/cancel").unwrap()["params"]["taskId"], "x");
}

fn following() -> Value {
    let declared = json!({"elicitation": {}, "extensions": { TASKS: {} }});
    json!({"io.modelcontextprotocol/clientCapabilities": declared})
}

/// A task's question is the task's, whatever else is open on the connection; who listens to the task
/// hears of its end with its result, and nobody else's name for it is good.
#[tokio::test]
async fn a_core_tasks_questions_and_changes_reach_its_client() {
    let mut scene = Scene::new(V2025_11_25);
    let first = (1, "tools/call", call());
    let pair = scene.modern_pair(core_tasks(), first, following());
    let (mut client, mut server) = pair.await;
    tell_tools(&mut server, "optional").await;
    let called = server.expect("tools/call").await;
    let created = json!({"task": core_task("working")});
    server.answer(&called, created).await;
    let task = client.result(1).await;
    assert_eq!(task["resultType"], "task");
    let name = task["taskId"].clone();
    assert_ne!(name, "x", "the server's name may be guessed");
    assert_eq!(task["_meta"][SERVER_INFO]["name"], "script");

    let filter = json!({"notifications": {"taskIds": [name, "x"]}});
    client
        .ask_modern(2, "subscriptions/listen", filter, following())
        .await;
    let acknowledged = client
        .expect("notifications/subscriptions/acknowledged")
        .await;
    assert_eq!(
        acknowledged["params"]["notifications"]["taskIds"],
        json!([name])
    );

    let waiting = core_task("input_required");
    server.tell("notifications/tasks/status", waiting).await;
    let waits = server.expect("tasks/result").await;
    assert_eq!(waits["params"]["taskId"], "x");
    let told = client.expect("notifications/tasks").await;
    assert_eq!(told["params"]["taskId"], name);
    let question = json!({
        "message": "Who?",
        "requestedSchema": {"type": "object", "properties": {}},
        "_meta": {"io.modelcontextprotocol/related-task": {"taskId": "x"}},
    });
    server.ask(77, "elicitation/create", question).await;
    let wanted = json!({ "taskId": name });
    client
        .ask_modern(3, "tasks/get", wanted.clone(), following())
        .await;
    let looked = server.expect("tasks/get").await;
    server.answer(&looked, core_task("input_required")).await;
    let detailed = client.result(3).await;
    assert_eq!(detailed["status"], "input_required", "{detailed}");
    assert_eq!(detailed["_meta"][SERVER_INFO]["name"], "script");
    let asked = detailed["inputRequests"].as_object().unwrap();
    let (key, asked) = asked.iter().next().unwrap();
    assert_eq!(asked["params"]["message"], "Who?");
    assert_eq!(asked["params"]["_meta"], Value::Null);
    let answers = json!({ key: {"action": "accept", "content": {}} });
    let update = json!({"taskId": name, "inputResponses": answers});
    client
        .ask_modern(4, "tasks/update", update, following())
        .await;
    let answered = server.hear().await;
    assert_eq!(
        (&answered["id"], &answered["result"]["action"]),
        (&json!(77), &json!("accept"))
    );
    client.result(4).await;

    let result = json!({"content": [{"type": "text", "text": "done"}]});
    server.answer(&waits, result).await;
    let told = client.expect("notifications/tasks").await;
    assert_eq!(told["params"]["status"], "completed", "{told}");
    assert_eq!(told["params"]["result"]["content"][0]["text"], "done");
    client.ask_modern(5, "tasks/get", wanted, following()).await;
    assert_eq!(client.result(5).await["status"], "completed");
    client
        .ask_modern(6, "tasks/get", json!({"taskId": "x"}), following())
        .await;
    assert_eq!(client.error(6).await, -32602);
}

/// A server that is gone takes its tasks with it, and their clients are told so.
#[tokio::test]
async fn a_task_fails_with_the_session_that_it_lived_in() {
    let mut scene = Scene::new(V2025_11_25);
    let first = (1, "tools/call", call());
    let pair = scene.modern_pair(core_tasks(), first, following());
    let (mut client, mut server) = pair.await;
    tell_tools(&mut server, "optional").await;
    let called = server.expect("tools/call").await;
    let created = json!({"task": core_task("working")});
    server.answer(&called, created).await;
    let name = client.result(1).await["taskId"].clone();
    let wanted = json!({ "taskId": name });
    client.ask_modern(2, "tasks/get", wanted, following()).await;
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

/// A client of 2025-11-25 is asked where it waits for the result, and again when it comes back.
#[tokio::test]
async fn a_hosted_task_asks_where_its_client_waits() {
    let mut scene = Scene::new(V2026_07_28);
    let client = json!({"elicitation": {}});
    let server = json!({"tools": {}, "extensions": { TASKS: {} }});
    let (mut client, mut server) = scene.legacy_pair(V2025_11_25, client, server).await;
    let params = json!({"name": "t", "arguments": {}, "task": {"ttl": 60000}});
    client.ask(2, "tools/call", params).await;
    let created = client.result(2).await;
    assert_eq!(created["task"]["status"], "working");
    assert_eq!(created["task"]["ttl"], 60000);
    let name = created["task"]["taskId"].clone();
    let called = server.expect("tools/call").await;
    assert_eq!(called["params"]["task"], Value::Null);
    server.answer(&called, asks("s")).await;
    let told = client.expect("notifications/tasks/status").await;
    assert_eq!(told["params"]["status"], "input_required");
    assert_eq!(told["params"]["taskId"], name);

    let wanted = json!({ "taskId": name });
    client.ask(3, "tasks/result", wanted.clone()).await;
    let question = client.expect("elicitation/create").await;
    let related = &question["params"]["_meta"]["io.modelcontextprotocol/related-task"];
    assert_eq!(related["taskId"], name);
    client
        .tell("notifications/cancelled", json!({"requestId": 3}))
        .await;
    let withdrawn = client.expect("notifications/cancelled").await;
    assert_eq!(withdrawn["params"]["requestId"], question["id"]);
    client.ask(4, "tasks/result", wanted).await;
    let question = client.expect("elicitation/create").await;
    agree(&mut client, &question).await;
    let told = client.expect("notifications/tasks/status").await;
    assert_eq!(told["params"]["status"], "working");
    let again = server.expect("tools/call").await;
    assert_eq!(again["params"]["inputResponses"]["who"]["action"], "accept");
    let failed = json!({"resultType": "complete", "content": [], "isError": true});
    server.answer(&again, failed).await;
    let mut heard = [client.hear().await, client.hear().await];
    heard.sort_by_key(|heard| heard.get("id").is_none());
    let [result, told] = heard;
    assert_eq!(result["result"]["isError"], true);
    assert_eq!(told["params"]["status"], "failed", "{told}");
}
