//! Tasks of 2025-11-25.

use mcpact::server::{NoArgs, Server, TaskRequirement};
use serde_json::{Value, json};

use super::{RELATED, server};
use crate::http::request;
use crate::peer::Peer;

/// A connection of a client that accepts requests.
async fn connect(server: Server) -> (Peer, Value) {
    let mut peer = Peer::of(server);
    let opened = peer.open("2025-11-25", json!({"elicitation": {}})).await;
    (peer, opened)
}

/// Starts a tool as a task, which begins as working.
async fn start(peer: &mut Peer, tool: &str) -> String {
    let params = json!({"name": tool, "task": {"ttl": 60000}});
    let started = peer.ask(1, "tools/call", params).await;
    let task = &started["result"]["task"];
    assert_eq!(task["status"], "working", "{started}");
    task["taskId"].as_str().unwrap().to_owned()
}

async fn look(peer: &mut Peer, task: &str) -> Value {
    let seen = peer.ask(2, "tasks/get", json!({"taskId": task})).await;
    seen["result"].clone()
}

async fn fetch(peer: &mut Peer, task: &str) -> Value {
    peer.ask(3, "tasks/result", json!({"taskId": task})).await
}

fn accept(question: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": question["id"],
        "result": {"action": "accept", "content": {"name": "Ann"}}})
}

/// F11: a task is declared, asked for with its ttl, answered at once, seen, listed and fetched; what
/// is fetched names its task.
#[tokio::test]
async fn a_task_is_worked_on_and_completed() {
    let (server, go_on) = server();
    let (mut peer, opened) = connect(server).await;
    assert_eq!(
        opened["capabilities"]["tasks"],
        json!({"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}})
    );
    let params = json!({"name": "work", "task": {"ttl": 60000}});
    let created = peer.ask(1, "tools/call", params).await["result"].clone();
    assert_eq!(created.as_object().map(|result| result.len()), Some(1));
    let task = &created["task"];
    assert_eq!(
        (&task["status"], &task["ttl"]),
        (&json!("working"), &json!(60000))
    );
    assert!(task["pollInterval"].is_u64() && task["statusMessage"].is_string());
    assert!(task["createdAt"].is_string() && task["lastUpdatedAt"].is_string());
    let id = task["taskId"].as_str().unwrap();
    assert_eq!(&look(&mut peer, id).await, task);
    let list = peer.ask(2, "tasks/list", json!({})).await;
    assert_eq!(list["result"]["tasks"], json!([task]));
    peer.tell(&request(3, "tasks/result", &json!({"taskId": id})))
        .await;
    assert_eq!(look(&mut peer, id).await["status"], "working", "it waits");
    go_on.add_permits(1);
    let fetched = peer.hear().await;
    assert_eq!(fetched["id"], 3);
    assert_eq!(fetched["result"]["content"][0]["text"], "worked");
    assert_eq!(fetched["result"]["_meta"][RELATED], json!({"taskId": id}));
    let ended = look(&mut peer, id).await;
    assert_eq!(
        (&ended["status"], &ended["createdAt"]),
        (&json!("completed"), &task["createdAt"])
    );
    assert!(
        ended.get("result").is_none(),
        "that is what tasks/result is for"
    );
    let again = fetch(&mut peer, id).await;
    assert_eq!(again["result"], fetched["result"], "as often as one likes");
}

/// F11: a task fails with its tool, says why, and gives what the call would have given: a failed
/// result, or the very error.
#[tokio::test]
async fn a_task_fails_as_its_call_would_have() {
    let (mut peer, _) = connect(server().0).await;
    for (tool, message) in [("fail", "It did not work."), ("promise", "output schema")] {
        let id = start(&mut peer, tool).await;
        let fetched = fetch(&mut peer, &id).await;
        assert_eq!(fetched["result"]["isError"], true, "{fetched}");
        assert_eq!(fetched["result"]["_meta"][RELATED]["taskId"], id.as_str());
        let seen = look(&mut peer, &id).await;
        assert_eq!(seen["status"], "failed");
        assert!(
            seen["statusMessage"].as_str().unwrap().contains(message),
            "{seen}"
        );
    }
    let id = start(&mut peer, "break").await;
    assert_eq!(
        fetch(&mut peer, &id).await["error"],
        json!({"code": -32050, "message": "It broke.", "data": {"where": "here"}})
    );
    let seen = look(&mut peer, &id).await;
    assert_eq!(
        (&seen["status"], &seen["statusMessage"]),
        (&json!("failed"), &json!("It broke."))
    );
    let id = start(&mut peer, "panic").await;
    assert_eq!(fetch(&mut peer, &id).await["error"]["code"], -32603);
    assert_eq!(
        look(&mut peer, &id).await["status"],
        "failed",
        "not for ever working"
    );
}

/// F11: a task that needs input says so; its question comes with the request for its result, names
/// the task, and the answer sets it going again.
#[tokio::test]
async fn a_task_asks_through_its_result() {
    let (mut peer, _) = connect(server().0).await;
    let id = start(&mut peer, "ask").await;
    let question = fetch(&mut peer, &id).await;
    assert_eq!(question["method"], "elicitation/create");
    assert_eq!(question["params"]["_meta"][RELATED], json!({"taskId": id}));
    assert_eq!(look(&mut peer, &id).await["status"], "input_required");
    peer.tell(&accept(&question)).await;
    let fetched = peer.hear().await;
    assert_eq!(fetched["result"]["content"][0]["text"], "It is \"Ann\".");
    assert_eq!(look(&mut peer, &id).await["status"], "completed");
}

/// F11: a question outlives the request that carried it, and a client that refuses to answer is
/// an answer, too.
#[tokio::test]
async fn a_question_is_not_lost() {
    let (mut peer, _) = connect(server().0).await;
    let id = start(&mut peer, "ask").await;
    let first = fetch(&mut peer, &id).await;
    assert_eq!(first["method"], "elicitation/create");
    let cancel =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 3}});
    peer.tell(&cancel).await;
    peer.tell(&request(4, "tasks/result", &json!({"taskId": id})))
        .await;
    let mut second = peer.hear().await;
    while second["method"] != "elicitation/create" {
        second = peer.hear().await;
    }
    assert_ne!(second["id"], first["id"]);
    peer.tell(
        &json!({"jsonrpc": "2.0", "id": second["id"], "error": {"code": -1, "message": "No."}}),
    )
    .await;
    let fetched = peer.hear().await;
    assert_eq!(
        (&fetched["id"], &fetched["result"]["isError"]),
        (&json!(4), &json!(true))
    );
    assert_eq!(look(&mut peer, &id).await["status"], "failed");
}

/// F11: a cancelled task stays cancelled, and what has ended cannot be cancelled.
#[tokio::test]
async fn a_cancelled_task_stays_so() {
    let (server, go_on) = server();
    let (mut peer, _) = connect(server).await;
    let id = start(&mut peer, "work").await;
    let cancelled = peer.ask(4, "tasks/cancel", json!({"taskId": id})).await;
    assert_eq!(cancelled["result"]["status"], "cancelled");
    go_on.add_permits(1);
    assert_eq!(look(&mut peer, &id).await["status"], "cancelled");
    assert_eq!(fetch(&mut peer, &id).await["error"]["code"], -32603);
    let ended = start(&mut peer, "fail").await;
    fetch(&mut peer, &ended).await;
    for id in [&id, &ended] {
        let refused = peer.ask(5, "tasks/cancel", json!({"taskId": id})).await;
        assert_eq!(refused["error"]["code"], -32602);
    }
    assert_eq!(look(&mut peer, &ended).await["status"], "failed");
}

/// F11: the tool decides whether it runs as a task, and what is malformed or unknown is refused.
#[tokio::test]
async fn what_does_not_fit_is_refused() {
    let (mut peer, _) = connect(server().0).await;
    for (method, params, code) in [
        ("tools/call", json!({"name": "plain", "task": {}}), -32601),
        ("tools/call", json!({"name": "fail"}), -32601),
        ("tools/call", json!({"name": "work", "task": 5}), -32602),
        (
            "tools/call",
            json!({"name": "work", "task": {"ttl": "long"}}),
            -32602,
        ),
        (
            "tools/call",
            json!({"name": "work", "task": {"ttl": -1}}),
            -32602,
        ),
        ("tasks/get", json!({"taskId": "0000"}), -32602),
        ("tasks/result", json!({"taskId": "0000"}), -32602),
        ("tasks/cancel", json!({"taskId": "0000"}), -32602),
        ("tasks/get", json!({}), -32602),
        ("tasks/list", json!({"cursor": "nonsense"}), -32602),
        ("tasks/update", json!({"taskId": "0000"}), -32601),
    ] {
        let refused = peer.ask(1, method, params.clone()).await;
        assert_eq!(refused["error"]["code"], code, "{method} {params}");
    }
}

/// F11: a server may take calls as tasks only.
#[tokio::test]
async fn a_server_may_demand_tasks() {
    let (server, go_on) = server();
    let (mut peer, _) =
        connect(server.settings(|s| s.task_requirement = TaskRequirement::Always)).await;
    let refused = peer.ask(1, "tools/call", json!({"name": "work"})).await;
    assert_eq!(refused["error"]["code"], -32600, "{refused}");
    go_on.add_permits(1);
    let id = start(&mut peer, "work").await;
    let fetched = fetch(&mut peer, &id).await;
    assert_eq!(fetched["result"]["content"][0]["text"], "worked");
}

/// F11: a server without tasks serves the call as if it had not been asked for one, and has no
/// methods for them.
#[tokio::test]
async fn a_server_without_tasks_ignores_the_wish() {
    let server =
        Server::new("t", "1").tool("plain", "Answers", |_: NoArgs, _| async { Ok("at once") });
    let (mut peer, opened) = connect(server).await;
    assert!(opened["capabilities"].get("tasks").is_none());
    let params = json!({"name": "plain", "task": {"ttl": 1}});
    let answered = peer.ask(1, "tools/call", params).await;
    assert_eq!(answered["result"]["content"][0]["text"], "at once");
    let refused = peer.ask(2, "tasks/get", json!({"taskId": "0000"})).await;
    assert_eq!(refused["error"]["code"], -32601);
}

/// F11: the list of tasks comes in pages, the oldest first.
#[tokio::test]
async fn tasks_are_listed_in_pages() {
    let (mut peer, _) = connect(server().0.settings(|s| s.page_size = 1)).await;
    let mut started = Vec::new();
    for _ in 0..3 {
        started.push(start(&mut peer, "work").await);
    }
    let (mut seen, mut params) = (Vec::new(), json!({}));
    loop {
        let page = peer.ask(2, "tasks/list", params).await["result"].clone();
        assert_eq!(page["tasks"].as_array().map(Vec::len), Some(1));
        seen.push(page["tasks"][0]["taskId"].as_str().unwrap().to_owned());
        match page.get("nextCursor") {
            Some(cursor) => params = json!({"cursor": cursor}),
            None => break,
        }
    }
    assert_eq!(seen, started);
}

/// F11: an expired task is removed.
#[tokio::test]
async fn a_task_is_forgotten_in_time() {
    let (mut peer, _) = connect(server().0).await;
    let params = json!({"name": "work", "task": {"ttl": 0}});
    let created = peer.ask(1, "tools/call", params).await;
    let id = &created["result"]["task"]["taskId"];
    assert_eq!(created["result"]["task"]["ttl"], 0);
    let gone = peer.ask(2, "tasks/get", json!({"taskId": id})).await;
    assert_eq!(gone["error"]["code"], -32602);
    let list = peer.ask(3, "tasks/list", json!({})).await;
    assert_eq!(list["result"]["tasks"], json!([]));
}
