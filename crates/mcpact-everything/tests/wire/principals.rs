//! Isolation of principals.

use mcpact::server::{PrincipalSource, SealKeys};
use mcpact_spec::Revision;
use serde_json::{Value, json};

use crate::http::{Raw, Reply, Running, modern, request};

/// A server that believes a header; a token stands for it in real life.
async fn server() -> Running {
    let by_header = PrincipalSource::from_fn(|headers| {
        let told = headers.get("x-user")?;
        told.to_str().ok().map(str::to_owned)
    });
    let server = mcpact_everything::server(&Revision::ALL).settings(|s| {
        s.principals = by_header;
        // Otherwise the principal of a client is the user of its process.
        s.allow_remote = true;
        s.http_sse = true;
    });
    Running::start(server).await
}

fn by(user: &str, raw: Raw) -> Raw {
    raw.with("x-user", user)
}

async fn session(server: &Running, user: &str) -> String {
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": {"name": "t", "version": "1"}});
    let opened = server
        .send(&by(user, Raw::post(&request(0, "initialize", &params))))
        .await;
    opened.header("mcp-session-id").unwrap().to_owned()
}

/// H17: a session belongs to the principal that opened it; for others its id is unknown, on every verb.
#[tokio::test]
async fn a_session_belongs_to_its_principal() {
    let server = server().await;
    let id = session(&server, "ann").await;
    let post = || Raw::post(&request(1, "tools/list", &json!({})));
    for verb in ["POST", "GET", "DELETE"] {
        let raw = || {
            if verb == "POST" {
                post()
            } else {
                Raw::new(verb, "/mcp")
            }
        };
        let foreign = server
            .send(&by("bob", raw().with("mcp-session-id", &id)))
            .await;
        let unknown = server
            .send(&by("bob", raw().with("mcp-session-id", "0123")))
            .await;
        assert_eq!(
            (foreign.status, &foreign.body),
            (404, &unknown.body),
            "{verb}"
        );
        let anonymous = server.send(&raw().with("mcp-session-id", &id)).await;
        assert_eq!(anonymous.status, 404, "{verb} without a name");
    }
    let own = server
        .send(&by("ann", post().with("mcp-session-id", &id)))
        .await;
    assert_eq!(own.status, 200, "it still lives");
}

fn with_input(params: Value) -> Value {
    let mut call = modern(1, "tools/call", params);
    call["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] =
        json!({"elicitation": {}});
    call
}

/// P11, P24, MR-05, MR-07: state is good only unchanged, for the same principal, method and arguments, and in time.
#[tokio::test]
async fn state_is_good_only_for_what_it_was_made() {
    let server = server().await;
    let name = "test_input_required_result_elicitation";
    let send =
        async |user: &str, message: &Value| server.send(&by(user, Raw::modern(message))).await;
    let first = send("ann", &with_input(json!({"name": name, "arguments": {}}))).await;
    let state = first.json()["result"]["requestState"]
        .as_str()
        .unwrap()
        .to_owned();
    let retry = |state: &str| {
        let answer = json!({"user_name": {"action": "accept", "content": {"name": "Ann"}}});
        with_input(
            json!({"name": name, "arguments": {}, "requestState": state, "inputResponses": answer}),
        )
    };
    let refused = |reply: &Reply, why: &str| assert_eq!(reply.code(), -32602, "{why}");
    refused(&send("bob", &retry(&state)).await, "another principal");
    for at in (0..state.len()).step_by(7) {
        let mut bytes = state.clone().into_bytes();
        bytes[at] = if bytes[at] == b'A' { b'B' } else { b'A' };
        let flipped = String::from_utf8(bytes).unwrap();
        refused(&send("ann", &retry(&flipped)).await, "changed");
        refused(&send("ann", &retry(&state[..at])).await, "cut off");
    }
    let mut other = retry(&state);
    other["params"]["arguments"] = json!({"x": 1});
    refused(&send("ann", &other).await, "other arguments");
    other = retry(&state);
    other["params"]["name"] = json!("test_streaming_elicitation");
    refused(&send("ann", &other).await, "another tool");
    other = retry(&state);
    other["method"] = json!("prompts/get");
    refused(&send("ann", &other).await, "another method");
    let done = send("ann", &retry(&state)).await;
    assert_eq!(done.json()["result"]["content"][0]["text"], "Hello, Ann!");
}

/// P11: state is not good for ever.
#[tokio::test]
async fn state_runs_out() {
    let server = mcpact_everything::server(&Revision::ALL)
        .settings(|s| s.input_timeout = std::time::Duration::ZERO);
    let server = Running::start(server).await;
    let name = "test_input_required_result_elicitation";
    let first = server
        .send(&Raw::modern(&with_input(json!({"name": name}))))
        .await;
    let state = first.json()["result"]["requestState"].clone();
    let retry = with_input(json!({"name": name, "requestState": state,
        "inputResponses": {"user_name": {"action": "cancel"}}}));
    assert_eq!(server.send(&Raw::modern(&retry)).await.code(), -32602);
}

/// P11: state outlives its server and a change of keys, as long as the key that sealed it is known.
#[tokio::test]
async fn state_outlives_a_change_of_keys() {
    let start = async |keys: Option<SealKeys>| {
        let server = mcpact_everything::server(&Revision::ALL).settings(|s| s.seal_keys = keys);
        Running::start(server).await
    };
    let (old, new) = ([1; 32], [2; 32]);
    let name = "test_input_required_result_elicitation";
    let asked = start(Some(SealKeys::new(old))).await;
    let first = asked
        .send(&Raw::modern(&with_input(json!({"name": name}))))
        .await;
    drop(asked);
    let state = first.json()["result"]["requestState"].clone();
    let retry = with_input(json!({"name": name, "requestState": state,
        "inputResponses": {"user_name": {"action": "accept", "content": {"name": "Ann"}}}}));
    for (keys, is_good) in [
        (Some(SealKeys::new(old)), true),
        (Some(SealKeys::new(new).with_previous(old)), true),
        (Some(SealKeys::new(new)), false),
        (None, false),
    ] {
        let server = start(keys.clone()).await;
        let reply = server.send(&Raw::modern(&retry)).await.json();
        let text = &reply["result"]["content"][0]["text"];
        assert_eq!(text == "Hello, Ann!", is_good, "{keys:?}: {reply}");
        assert_eq!(reply["error"]["code"] == -32602, !is_good, "{keys:?}");
    }
}

/// P22: a task can be seen, fetched and cancelled only by the principal that started it, in both eras.
#[tokio::test]
async fn a_task_belongs_to_its_principal() {
    let server = server().await;
    let (ann, bob) = (session(&server, "ann").await, session(&server, "bob").await);
    let ask = async |user: &str, id: &str, method: &str, params: Value| {
        let raw = Raw::post(&request(1, method, &params)).with("mcp-session-id", id);
        server.send(&by(user, raw)).await.json()
    };
    let start =
        json!({"name": "slow_compute", "arguments": {"seconds": 30}, "task": {"ttl": 60000}});
    let started = ask("ann", &ann, "tools/call", start).await;
    let task = started["result"]["task"]["taskId"]
        .as_str()
        .unwrap_or_else(|| panic!("{started}"));
    for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
        let foreign = ask("bob", &bob, method, json!({"taskId": task})).await;
        let unknown = ask("bob", &bob, method, json!({"taskId": "0000"})).await;
        assert_eq!(foreign["error"]["code"], -32602, "{method}");
        assert_eq!(unknown["error"]["code"], -32602, "{method}");
    }
    let list = ask("bob", &bob, "tasks/list", json!({})).await;
    assert_eq!(list["result"]["tasks"], json!([]));
    let own = ask("ann", &ann, "tasks/list", json!({})).await;
    assert_eq!(own["result"]["tasks"][0]["taskId"], task);
    let tasks = json!({"extensions": {"io.modelcontextprotocol/tasks": {}}});
    for (user, method, code) in [
        ("bob", "tasks/get", true),
        ("bob", "tasks/cancel", true),
        ("ann", "tasks/get", false),
    ] {
        let mut message = modern(1, method, json!({"taskId": task}));
        message["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] = tasks.clone();
        let reply = server.send(&by(user, Raw::modern(&message))).await.json();
        assert_eq!(
            reply["error"]["code"] == json!(-32602),
            code,
            "{user} {method}: {reply}"
        );
    }
}

/// `2025-11-25 basic/utilities/tasks#task-isolation-and-access-control`: clients that cannot be told apart get no list of
/// tasks; one with a principal lists its own in every session.
#[tokio::test]
async fn tasks_are_listed_for_principals_only() {
    let server = server().await;
    let opened = async |headers: &[(&'static str, &'static str)]| {
        let with = |raw: Raw, (name, value): &(&'static str, &'static str)| raw.with(name, value);
        let params = json!({"protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "t", "version": "1"}});
        let raw = Raw::post(&request(0, "initialize", &params));
        let reply = server.send(&headers.iter().fold(raw, with)).await;
        let id = reply.header("mcp-session-id").unwrap().to_owned();
        let declared = reply.json()["result"]["capabilities"]["tasks"].clone();
        let list = Raw::post(&request(1, "tasks/list", &json!({}))).with("mcp-session-id", &id);
        let listed = server.send(&headers.iter().fold(list, with)).await.json();
        (declared, listed)
    };
    let (declared, refused) = opened(&[]).await;
    assert!(declared["cancel"].is_object() && declared.get("list").is_none());
    assert_eq!(refused["error"]["code"], -32601, "{refused}");
    for evidence in [("x-user", "ann"), ("mcpact-key", "a-key")] {
        let (declared, listed) = opened(&[evidence]).await;
        assert!(declared["list"].is_object(), "{declared}");
        assert_eq!(listed["result"]["tasks"], json!([]), "{evidence:?}");
    }
}
