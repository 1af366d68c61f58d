//! Tasks as the extension of 2026-07-28.

use mcpact::server::{Context, NoArgs, PrincipalSource, Server};
use serde_json::{Value, json};

use super::{EXTENSION, server, with_tasks};
use crate::http::{Raw, Running, modern};
use crate::peer::Peer;
use crate::streams::Listener;

async fn ask(peer: &mut Peer, method: &str, params: Value) -> Value {
    peer.tell(&with_tasks(1, method, params)).await;
    peer.hear().await
}

/// Calls a tool that the server runs as a task.
async fn start(peer: &mut Peer, tool: &str) -> String {
    let started = ask(peer, "tools/call", json!({"name": tool})).await;
    assert_eq!(started["result"]["resultType"], "task", "{started}");
    started["result"]["taskId"].as_str().unwrap().to_owned()
}

/// Looks until the task stands there; each look lets the server work.
async fn look_for(peer: &mut Peer, task: &str, status: &str) -> Value {
    for _ in 0..1000 {
        let seen = ask(peer, "tasks/get", json!({"taskId": task})).await["result"].clone();
        assert_eq!(seen["resultType"], "complete", "{seen}");
        if seen["status"] == status {
            return seen;
        }
    }
    panic!("{task} never was {status}");
}

/// F12: `server/discover` declares the extension, and a call of a capable client is answered with a flat handle without
/// being requested.
#[tokio::test]
async fn a_handle_comes_unasked() {
    let (server, go_on) = server();
    let mut peer = Peer::of(server);
    let discovered = ask(&mut peer, "server/discover", json!({})).await;
    let capabilities = &discovered["result"]["capabilities"];
    assert_eq!(capabilities["extensions"][EXTENSION], json!({}));
    assert!(
        capabilities.get("tasks").is_none(),
        "that is the core feature"
    );
    let handle = ask(&mut peer, "tools/call", json!({"name": "work"})).await["result"].clone();
    assert_eq!(
        (&handle["resultType"], &handle["status"]),
        (&json!("task"), &json!("working"))
    );
    assert!(handle["ttlMs"].is_u64() && handle["pollIntervalMs"].is_u64());
    assert!(handle["createdAt"].is_string() && handle["lastUpdatedAt"].is_string());
    assert!(handle.get("task").is_none() && handle.get("ttl").is_none());
    let id = handle["taskId"].as_str().unwrap();
    let working = look_for(&mut peer, id, "working").await;
    assert!(working.get("result").is_none());
    go_on.add_permits(1);
    let done = look_for(&mut peer, id, "completed").await;
    assert_eq!(done["result"]["content"][0]["text"], "worked");
}

/// F12: a tool that failed has completed; a protocol error is a failed task with that error in it.
#[tokio::test]
async fn a_task_shows_how_it_ended() {
    let mut peer = Peer::of(server().0);
    let id = start(&mut peer, "fail").await;
    let done = look_for(&mut peer, &id, "completed").await;
    assert_eq!(done["result"]["isError"], true);
    let id = start(&mut peer, "break").await;
    let failed = look_for(&mut peer, &id, "failed").await;
    assert_eq!(
        failed["error"],
        json!({"code": -32050, "message": "It broke.", "data": {"where": "here"}})
    );
    assert_eq!(failed["statusMessage"], "It broke.");
}

/// F12: a task shows its questions, takes answers that fit by `tasks/update`, ignores others, and goes on.
#[tokio::test]
async fn a_task_is_answered_by_update() {
    let mut peer = Peer::of(server().0);
    let id = start(&mut peer, "ask").await;
    let asking = look_for(&mut peer, &id, "input_required").await;
    assert_eq!(
        asking["inputRequests"]["who"]["method"],
        "elicitation/create"
    );
    for answers in [
        json!({"unknown": {"action": "accept"}}),
        json!({"who": {"action": "sing"}}),
        json!({"who": {"action": "accept", "content": {"name": 7}}}),
    ] {
        let params = json!({"taskId": id, "inputResponses": answers});
        let ack = ask(&mut peer, "tasks/update", params).await;
        assert_eq!(ack["result"]["resultType"], "complete", "{ack}");
        let again = look_for(&mut peer, &id, "input_required").await;
        assert_eq!(again["inputRequests"], asking["inputRequests"]);
    }
    let answers = json!({"who": {"action": "accept", "content": {"name": "Ann"}}});
    let params = json!({"taskId": id, "inputResponses": answers});
    let ack = ask(&mut peer, "tasks/update", params).await;
    assert!(
        ack["result"].get("status").is_none(),
        "an acknowledgement only: {ack}"
    );
    let done = look_for(&mut peer, &id, "completed").await;
    assert_eq!(done["result"]["content"][0]["text"], "It is \"Ann\".");
    assert!(done.get("inputRequests").is_none());
}

/// F12: cancelling is acknowledged, even if there is nothing to cancel.
#[tokio::test]
async fn cancelling_is_acknowledged() {
    let mut peer = Peer::of(server().0);
    for (tool, status) in [
        ("work", "cancelled"),
        ("fail", "completed"),
        ("ask", "cancelled"),
    ] {
        let id = start(&mut peer, tool).await;
        if tool == "fail" {
            look_for(&mut peer, &id, status).await;
        }
        let ack = ask(&mut peer, "tasks/cancel", json!({"taskId": id})).await;
        assert_eq!(ack["result"]["resultType"], "complete", "{ack}");
        assert!(ack["result"].get("status").is_none(), "{ack}");
        let seen = look_for(&mut peer, &id, status).await;
        assert!(seen.get("inputRequests").is_none(), "{seen}");
    }
}

/// F12: a client that did not declare the extension gets no handle: a tool that can do without
/// answers itself, one that cannot is refused, and so is everything else about tasks.
#[tokio::test]
async fn without_the_extension_there_are_no_tasks() {
    let (server, go_on) = server();
    go_on.add_permits(1);
    let mut peer = Peer::of(server);
    peer.tell(&modern(1, "tools/call", json!({"name": "work"})))
        .await;
    let plain = peer.hear().await;
    assert_eq!(plain["result"]["resultType"], "complete");
    assert_eq!(plain["result"]["content"][0]["text"], "worked");
    let listen = json!({"notifications": {"taskIds": ["0000"], "toolsListChanged": true}});
    for (method, params) in [
        ("tools/call", json!({"name": "fail"})),
        ("tasks/get", json!({"taskId": "0000"})),
        (
            "tasks/update",
            json!({"taskId": "0000", "inputResponses": {}}),
        ),
        ("tasks/cancel", json!({"taskId": "0000"})),
        ("subscriptions/listen", listen),
    ] {
        peer.tell(&modern(1, method, params)).await;
        let refused = peer.hear().await;
        assert_eq!(refused["error"]["code"], -32021, "{method}: {refused}");
        assert_eq!(
            refused["error"]["data"]["requiredCapabilities"],
            json!({"extensions": { EXTENSION: {} }}),
            "{method}"
        );
    }
}

/// F12: what belongs to the core feature is gone or ignored, and what is unknown is refused.
#[tokio::test]
async fn the_core_feature_has_no_part_in_it() {
    let mut peer = Peer::of(server().0);
    for (method, params, code) in [
        ("tasks/result", json!({"taskId": "0000"}), -32601),
        ("tasks/list", json!({}), -32601),
        ("tasks/get", json!({"taskId": "0000"}), -32602),
        (
            "tasks/update",
            json!({"taskId": "0000", "inputResponses": {}}),
            -32602,
        ),
        ("tasks/cancel", json!({"taskId": "0000"}), -32602),
    ] {
        let refused = ask(&mut peer, method, params).await;
        assert_eq!(refused["error"]["code"], code, "{method}: {refused}");
    }
    let params = json!({"name": "plain", "task": {"ttl": 5}});
    let plain = ask(&mut peer, "tools/call", params).await;
    assert_eq!(plain["result"]["content"][0]["text"], "at once");
    let params = json!({"name": "work", "task": "nonsense"});
    let handle = ask(&mut peer, "tools/call", params).await;
    assert_eq!(handle["result"]["resultType"], "task", "{handle}");
}

/// F12: a subscriber of a task gets every change, with the same content as `tasks/get`.
#[tokio::test]
async fn a_listener_hears_of_its_task() {
    let (server, go_on) = server();
    let mut peer = Peer::of(server);
    let (id, other) = (
        start(&mut peer, "work").await,
        start(&mut peer, "work").await,
    );
    let listen = json!({"notifications": {"taskIds": [id]}});
    peer.tell(&with_tasks(7, "subscriptions/listen", listen.clone()))
        .await;
    let ack = peer.hear().await;
    assert_eq!(ack["params"]["notifications"], listen["notifications"]);
    peer.tell(&with_tasks(8, "tasks/cancel", json!({"taskId": other})))
        .await;
    assert_eq!(peer.hear().await["id"], 8, "of its own task only");
    go_on.add_permits(1);
    let mut note = peer.hear().await;
    assert_eq!(note["method"], "notifications/tasks");
    let meta = note["params"].as_object_mut().unwrap().remove("_meta");
    assert_eq!(
        meta,
        Some(json!({"io.modelcontextprotocol/subscriptionId": 7}))
    );
    assert_eq!(note["params"]["status"], "completed");
    let mut seen = look_for(&mut peer, &id, "completed").await;
    seen.as_object_mut()
        .unwrap()
        .retain(|key, _| key != "resultType" && key != "_meta");
    assert_eq!(note["params"], seen);
}

/// F12: a listener hears the questions of a task, that they were answered, and the end.
#[tokio::test]
async fn a_listener_hears_of_questions() {
    let mut peer = Peer::of(server().0);
    let id = start(&mut peer, "ask").await;
    look_for(&mut peer, &id, "input_required").await;
    let listen = json!({"notifications": {"taskIds": [id]}});
    peer.tell(&with_tasks(7, "subscriptions/listen", listen))
        .await;
    peer.hear().await;
    let answers = json!({"who": {"action": "decline"}});
    let params = json!({"taskId": id, "inputResponses": answers});
    peer.tell(&with_tasks(8, "tasks/update", params)).await;
    let mut told = Vec::new();
    while told.last() != Some(&json!("completed")) {
        let message = peer.hear().await;
        if message["method"] == "notifications/tasks" {
            told.push(message["params"]["status"].clone());
        }
    }
    assert_eq!(told, ["working", "completed"]);
}

/// F12, P22: a subscriber gets no events about tasks of other principals.
#[tokio::test]
async fn tasks_of_others_are_not_reported() {
    let (server, go_on) = server();
    let server: Server = server
        .tool(
            "change",
            "Tells a change",
            |_: NoArgs, context: Context| async move {
                context.tools_changed();
                Ok("changed")
            },
        )
        .settings(|s| {
            s.principals = PrincipalSource::from_fn(|headers| {
                let told = headers.get("x-user")?;
                told.to_str().ok().map(str::to_owned)
            });
        });
    let server = Running::start(server).await;
    let by = |user: &str, method: &str, params: Value| {
        Raw::modern(&with_tasks(1, method, params)).with("x-user", user)
    };
    let started = server
        .send(&by("ann", "tools/call", json!({"name": "work"})))
        .await
        .json();
    let id = started["result"]["taskId"].clone();
    let wanted = json!({"notifications": {"taskIds": [id], "toolsListChanged": true}});
    let open = |user: &'static str| by(user, "subscriptions/listen", wanted.clone());
    let mut ann = Listener::open(&server, &open("ann")).await;
    let mut bob = Listener::open(&server, &open("bob")).await;
    for listener in [&mut ann, &mut bob] {
        listener.until(|seen| seen.contains("acknowledged")).await;
    }
    go_on.add_permits(1);
    ann.until(|seen| seen.contains("notifications/tasks\"") && seen.contains("worked"))
        .await;
    server
        .send(&by("ann", "tools/call", json!({"name": "change"})))
        .await;
    let seen = bob.until(|seen| seen.contains("list_changed")).await;
    assert!(!seen.contains("notifications/tasks"), "{seen}");
}
