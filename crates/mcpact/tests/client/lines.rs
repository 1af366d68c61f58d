//! Line-based connections.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcpact::client::{
    AnswerError, CallOptions, CancelToken, Client, ClientError, Era, EraMode, Failure,
};
use mcpact::model::{CreateMessageRequest, CreateMessageResult, FormRequest, LogLevel, Root};
use mcpact_sim::scripted::link_server::{LinkServer, error, result};
use mcpact_sim::scripted::message::initialize_result;
use mcpact_transport::error::TransportError;
use mcpact_wire::frame::ndjson::DEFAULT_LINE_LIMIT;
use serde_json::{Map, Value, json};

fn tools() -> Value {
    json!({ "tools": {} })
}

fn text(text: &str) -> Value {
    json!({ "content": [{ "type": "text", "text": text }] })
}

/// T1: every legacy revision is negotiated by the same code, after one probe.
#[tokio::test]
async fn every_legacy_revision_is_negotiated() {
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let (link, received) = LinkServer::legacy(version, tools(), |message| {
            result(
                message,
                json!({ "tools": [{ "name": "t", "inputSchema": {} }] }),
            )
        });
        let client = Client::connect(link).await.unwrap();
        assert_eq!(client.pact().revision().as_str(), version);
        assert_eq!(client.server_info().unwrap().name(), "scripted");
        assert_eq!(client.instructions().as_deref(), Some("be kind"));
        assert!(!client.transcript().events().is_empty());
        assert_eq!(client.list_tools().await.unwrap()[0].name, "t");
        assert_eq!(
            received.methods(),
            [
                "server/discover",
                "initialize",
                "notifications/initialized",
                "tools/list"
            ]
        );
    }
}

/// T1: a modern server is negotiated by one request, and every request carries its metadata.
#[tokio::test]
async fn modern_server_needs_no_handshake() {
    let (link, received) = LinkServer::modern(tools(), |message| {
        result(message, json!({ "resultType": "complete", "tools": [] }))
    });
    let client = Client::connect(link).await.unwrap();
    assert_eq!(client.pact().era(), Era::Modern);
    assert_eq!(client.instructions().as_deref(), Some("be kind"));
    client.list_tools().await.unwrap();
    assert_eq!(received.methods(), ["server/discover", "tools/list"]);
    for message in received.all() {
        let meta = &message["params"]["_meta"];
        assert_eq!(
            meta["io.modelcontextprotocol/protocolVersion"],
            "2026-07-28"
        );
        assert!(meta["io.modelcontextprotocol/clientCapabilities"].is_object());
        assert_eq!(meta["io.modelcontextprotocol/clientInfo"]["name"], "mcpact");
    }
}

/// A server that answers with a version that was not offered is refused, with a reason.
#[tokio::test]
async fn version_that_was_not_offered_is_refused() {
    let (link, received) = LinkServer::legacy("1999-01-01", tools(), |_| Vec::new());
    let failed = Client::connect(link).await.unwrap_err();
    let ClientError::Refused {
        failure,
        transcript,
        ..
    } = failed
    else {
        panic!("{failed:?}");
    };
    assert!(matches!(failure, Failure::Refused(_)));
    assert!(!transcript.events().is_empty());
    assert!(
        !received
            .methods()
            .contains(&"notifications/initialized".to_owned())
    );
}

/// A floor prevents a fallback.
#[tokio::test]
async fn modern_only_client_does_not_fall_back() {
    let (link, received) = LinkServer::legacy("2025-11-25", tools(), |_| Vec::new());
    let builder = Client::builder("t", "1").mode(EraMode::Modern);
    let failed = builder.connect(link).await.unwrap_err();
    assert!(matches!(failed, ClientError::Refused { .. }), "{failed:?}");
    assert!(!received.methods().contains(&"initialize".to_owned()));
}

/// P6: a server that does not answer the probe counts as legacy.
#[tokio::test(start_paused = true)]
async fn silent_server_counts_as_legacy() {
    let (link, _) = LinkServer::start(|message| match message["method"].as_str() {
        Some("initialize") => result(message, initialize_result("2025-06-18", tools())),
        _ => Vec::new(),
    });
    let client = Client::connect(link).await.unwrap();
    assert_eq!(client.pact().revision().as_str(), "2025-06-18");
}

/// F3: responses are matched by id, in any order.
#[tokio::test]
async fn responses_are_matched_by_id() {
    let mut held = Vec::new();
    let (link, _) = LinkServer::legacy("2025-11-25", tools(), move |message| {
        let name = message["params"]["name"].as_str().unwrap();
        held.extend(result(message, text(name)));
        match held.len() {
            20 => held.drain(..).rev().collect(),
            _ => Vec::new(),
        }
    });
    let client = Client::connect(link).await.unwrap();
    let calls = (0..20).map(|at| {
        let client = client.clone();
        tokio::spawn(async move {
            let name = format!("tool-{at}");
            let answer = client.call_tool(&name, Value::Null).await.unwrap();
            (name, answer.all_text())
        })
    });
    for call in calls.collect::<Vec<_>>() {
        let (name, answer) = call.await.unwrap();
        assert_eq!(name, answer);
    }
}

/// A request that was not negotiated is not sent, and the error names the missing capability.
#[tokio::test]
async fn unnegotiated_request_is_not_sent() {
    let (link, received) = LinkServer::legacy("2025-11-25", tools(), |_| Vec::new());
    let client = Client::connect(link).await.unwrap();
    let refused = client.list_prompts().await.unwrap_err();
    assert!(
        matches!(refused, ClientError::NotNegotiated(_)),
        "{refused:?}"
    );
    assert!(refused.to_string().contains("prompts"), "{refused}");
    assert!(!received.methods().contains(&"prompts/list".to_owned()));
}

/// F3 F14: cursors are followed and sent back unchanged; a repeated cursor is an error.
#[tokio::test]
async fn cursors_are_followed_and_loops_detected() {
    let (link, received) = LinkServer::legacy("2025-11-25", tools(), |message| {
        let tool = |name| json!({ "name": name, "inputSchema": { "type": "object" } });
        let page = match message["params"]["cursor"].as_str() {
            None => json!({ "tools": [tool("a")], "nextCursor": "\u{e9} 2" }),
            Some("\u{e9} 2") => json!({ "tools": [tool("b")], "nextCursor": null }),
            Some(other) => panic!("{other}"),
        };
        result(message, page)
    });
    let client = Client::connect(link).await.unwrap();
    let tools = client.list_tools().await.unwrap();
    let names: Vec<_> = tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["a", "b"]);
    assert_eq!(received.received("tools/list").len(), 2);

    let (link, _) = LinkServer::legacy("2025-11-25", json!({ "tools": {} }), |message| {
        result(message, json!({ "tools": [], "nextCursor": "again" }))
    });
    let client = Client::connect(link).await.unwrap();
    let refused = client.list_tools().await.unwrap_err();
    assert!(
        matches!(refused, ClientError::ProtocolViolation(_)),
        "{refused:?}"
    );

    let mut page = 0;
    let (link, _) = LinkServer::legacy("2025-11-25", json!({ "tools": {} }), move |message| {
        page += 1;
        result(
            message,
            json!({ "tools": [], "nextCursor": page.to_string() }),
        )
    });
    let builder = Client::builder("t", "1").page_limit(3);
    let refused = builder
        .connect(link)
        .await
        .unwrap()
        .list_tools()
        .await
        .unwrap_err();
    assert!(
        matches!(refused, ClientError::Limit { limit: 3, .. }),
        "{refused:?}"
    );
}

/// F13: progress comes before the result, in order, and only to its own call.
#[tokio::test]
async fn progress_arrives_before_the_result() {
    let (link, _) = LinkServer::legacy("2025-11-25", tools(), |message| {
        let token = &message["params"]["_meta"]["progressToken"];
        let progress = |at: f64| {
            let params = json!({ "progressToken": token, "progress": at, "total": 2 });
            json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": params })
        };
        let mut all = vec![progress(1.0), progress(2.0)];
        all.extend(result(message, text("done")));
        all
    });
    let client = Client::connect(link).await.unwrap();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&seen);
    let options =
        CallOptions::new().on_progress(move |progress| log.lock().unwrap().push(progress.progress));
    let answer = client
        .call_tool_with("t", json!({}), options)
        .await
        .unwrap();
    assert_eq!(answer.all_text(), "done");
    assert_eq!(*seen.lock().unwrap(), [1.0, 2.0]);
}

/// F13, P3, P7: a request that times out is cancelled with a notification, in both eras.
#[tokio::test(start_paused = true)]
async fn timed_out_request_is_cancelled() {
    for (link, received) in [
        LinkServer::legacy("2025-11-25", tools(), |_| Vec::new()),
        LinkServer::modern(tools(), |_| Vec::new()),
    ] {
        let client = Client::connect(link).await.unwrap();
        let options = CallOptions::new().timeout(Duration::from_secs(5));
        let failed = client
            .call_tool_with("t", json!({}), options)
            .await
            .unwrap_err();
        assert!(matches!(failed, ClientError::Timeout { .. }), "{failed:?}");
        client.close().await;
        let call = &received.received("tools/call")[0];
        let cancelled = &received.received("notifications/cancelled")[0];
        assert_eq!(cancelled["params"]["requestId"], call["id"]);
    }
}

/// Answers the first call after its cancellation, and any other at once.
fn answers_late() -> impl FnMut(&Value) -> Vec<Value> + Send + 'static {
    let mut is_first = true;
    let answer = |id: &Value, text: &str| {
        let content = json!([{"type": "text", "text": text}]);
        let result = json!({"resultType": "complete", "content": content});
        vec![json!({"jsonrpc": "2.0", "id": id, "result": result})]
    };
    move |message| match message["method"].as_str() {
        Some("tools/call") if std::mem::take(&mut is_first) => Vec::new(),
        Some("tools/call") => answer(&message["id"], "second"),
        Some("notifications/cancelled") => answer(&message["params"]["requestId"], "late"),
        _ => Vec::new(),
    }
}

/// P3: a response after the cancellation of its request is dropped.
#[tokio::test(start_paused = true)]
async fn late_response_is_dropped() {
    for (link, received) in [
        LinkServer::legacy("2025-11-25", tools(), answers_late()),
        LinkServer::modern(tools(), answers_late()),
    ] {
        let client = Client::connect(link).await.unwrap();
        let options = CallOptions::new().timeout(Duration::from_secs(5));
        let failed = client.call_tool_with("t", json!({}), options).await;
        assert!(matches!(failed, Err(ClientError::Timeout { .. })));
        let second = client.call_tool("t", json!({})).await.unwrap();
        assert_eq!(second.all_text(), "second");
        let calls = received.received("tools/call");
        assert_ne!(calls[0]["id"], calls[1]["id"]);
    }
}

/// F13: a token and a dropped future both cancel a request.
#[tokio::test]
async fn token_and_drop_cancel_a_request() {
    let (link, received) = LinkServer::legacy("2025-11-25", tools(), |_| Vec::new());
    let client = Client::connect(link).await.unwrap();
    let token = CancelToken::new();
    let options = CallOptions::new().cancel(token.clone());
    let (outcome, ()) = tokio::join!(client.call_tool_with("t", json!({}), options), async {
        while received.received("tools/call").is_empty() {
            tokio::task::yield_now().await;
        }
        token.cancel();
    });
    assert!(
        matches!(outcome, Err(ClientError::Cancelled)),
        "{outcome:?}"
    );

    let other = client.clone();
    let call = tokio::spawn(async move { other.call_tool("t", json!({})).await });
    while received.received("tools/call").len() < 2 {
        tokio::task::yield_now().await;
    }
    call.abort();
    while received.received("notifications/cancelled").len() < 2 {
        tokio::task::yield_now().await;
    }
    let ids = |method| -> Vec<Value> {
        let all = received.received(method);
        all.iter()
            .map(|message| match method {
                "tools/call" => message["id"].clone(),
                _ => message["params"]["requestId"].clone(),
            })
            .collect()
    };
    assert_eq!(ids("tools/call"), ids("notifications/cancelled"));
}

/// F8 F9 F10: handlers answer the requests of the server; requests without a handler are refused.
#[tokio::test]
async fn server_requests_are_answered_by_handlers() {
    let asked = json!([
        ["sampling/createMessage", {
            "messages": [{ "role": "user", "content": { "type": "text", "text": "hi" } }],
            "maxTokens": 10,
        }],
        ["elicitation/create", {
            "message": "who?",
            "requestedSchema": { "type": "object", "properties": {
                "name": { "type": "string", "default": "Ann" },
            } },
        }],
        ["roots/list", {}],
        ["tasks/list", {}],
    ]);
    let (link, received) = LinkServer::legacy("2025-11-25", tools(), move |message| {
        if message["method"] != "tools/call" {
            return Vec::new();
        }
        let mut all = Vec::new();
        for (at, question) in asked.as_array().unwrap().iter().enumerate() {
            let id = format!("q{at}");
            let (method, params) = (&question[0], &question[1]);
            all.push(json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        }
        all
    });
    let client = Client::builder("t", "1")
        .on_sampling(|request: CreateMessageRequest| async move {
            assert_eq!(request.max_tokens, 10);
            Ok(CreateMessageResult::new("model", "hello"))
        })
        .on_elicitation(
            |form: FormRequest| async move { Ok(form.accept_with_defaults(Map::new())) },
        )
        .roots(vec![Root::new("file:///work")])
        .connect(link)
        .await
        .unwrap();
    let declared = &received.received("initialize")[0]["params"]["capabilities"];
    assert_eq!(
        *declared,
        json!({ "roots": { "listChanged": true }, "sampling": {}, "elicitation": { "form": {} } })
    );
    let call = tokio::spawn(async move { client.call_tool("t", json!({})).await });
    let answer = |id: &str| {
        received
            .all()
            .into_iter()
            .find(|message| message["id"] == id)
    };
    while (0..4).any(|at| answer(&format!("q{at}")).is_none()) {
        tokio::task::yield_now().await;
    }
    assert_eq!(answer("q0").unwrap()["result"]["content"]["text"], "hello");
    assert_eq!(answer("q1").unwrap()["result"]["content"]["name"], "Ann");
    assert_eq!(
        answer("q2").unwrap()["result"]["roots"][0]["uri"],
        "file:///work"
    );
    assert_eq!(answer("q3").unwrap()["error"]["code"], -32601);
    call.abort();
}

/// A failing handler answers with its own code, and a panicking one with an error.
#[tokio::test]
async fn failing_handler_answers_with_an_error() {
    let (link, received) = LinkServer::legacy("2025-11-25", tools(), |message| {
        if message["method"] != "tools/call" {
            return Vec::new();
        }
        let params = json!({ "messages": [], "maxTokens": 1 });
        let ask =
            |id, method| json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        vec![ask("a", "sampling/createMessage"), ask("b", "roots/list")]
    });
    let client = Client::builder("t", "1")
        .on_sampling(|_| async { Err(AnswerError::rejected("not today")) })
        .on_roots(|| async { panic!("a handler that panics") })
        .connect(link)
        .await
        .unwrap();
    let call = tokio::spawn(async move { client.call_tool("t", json!({})).await });
    let answer = |id: &str| {
        received
            .all()
            .into_iter()
            .find(|message| message["id"] == id)
    };
    while answer("a").is_none() || answer("b").is_none() {
        tokio::task::yield_now().await;
    }
    assert_eq!(answer("a").unwrap()["error"]["code"], -1);
    assert_eq!(answer("b").unwrap()["error"]["code"], -32603);
    call.abort();
}

/// F6: the log level is a request to a legacy server and a member of every request to a modern one.
#[tokio::test]
async fn log_level_is_sent_per_era() {
    let capabilities = json!({ "tools": {}, "logging": {} });
    let (link, received) = LinkServer::legacy("2025-11-25", capabilities.clone(), |message| {
        result(message, json!({}))
    });
    let client = Client::connect(link).await.unwrap();
    client.set_log_level(LogLevel::Warning).await.unwrap();
    assert_eq!(
        received.received("logging/setLevel")[0]["params"]["level"],
        "warning"
    );

    let (link, received) = LinkServer::modern(capabilities, |message| {
        result(message, json!({ "resultType": "complete", "tools": [] }))
    });
    let builder = Client::builder("t", "1").log_level(LogLevel::Debug);
    let client = builder.connect(link).await.unwrap();
    client.list_tools().await.unwrap();
    let meta = &received.received("tools/list")[0]["params"]["_meta"];
    assert_eq!(meta["io.modelcontextprotocol/logLevel"], "debug");
    assert!(received.received("logging/setLevel").is_empty());
}

/// F19: an error of the server keeps its code, text and data.
#[tokio::test]
async fn errors_keep_code_and_data() {
    let (link, _) = LinkServer::legacy("2025-11-25", tools(), |message| {
        error(message, -31337, json!({ "why": [1, 2] }))
    });
    let client = Client::connect(link).await.unwrap();
    let failed = client.call_tool("t", json!({})).await.unwrap_err();
    let ClientError::Rpc(error) = failed else {
        panic!("{failed:?}");
    };
    assert_eq!(
        (error.code, error.data),
        (-31337, Some(json!({ "why": [1, 2] })))
    );
}

/// T9: an oversized response fails its call at once with the limit, wherever its id stands, and without an id if it
/// is the only call; other calls are answered.
#[tokio::test]
async fn oversized_response_fails_its_call() {
    for place in ["first", "last", "nowhere"] {
        let (link, _) = LinkServer::legacy("2025-11-25", tools(), move |message| {
            let name = message["params"]["name"].as_str().unwrap_or_default();
            if name != "long" {
                return result(message, json!({ "content": [] }));
            }
            let text = "x".repeat(DEFAULT_LINE_LIMIT);
            // The order of members matters here.
            let id = &message["id"];
            let line = match place {
                "first" => format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"x":"{text}"}}}}"#),
                "last" => format!(r#"{{"jsonrpc":"2.0","result":{{"x":"{text}"}},"id":{id}}}"#),
                _ => format!(
                    r#"{{"jsonrpc":"2.0","result":{{"x":"{text}"}},"id":{id} , "z":{{}} }}"#
                ),
            };
            vec![Value::String(line)]
        });
        let client = Client::connect(link).await.unwrap();
        let failed = client.call_tool("long", json!({})).await.unwrap_err();
        let ClientError::Transport(TransportError::TooLarge { limit }) = failed else {
            panic!("{place}: {failed:?}");
        };
        assert_eq!(limit, DEFAULT_LINE_LIMIT);
        client.call_tool("short", json!({})).await.unwrap();
    }
}

/// Closing waits for requests in flight; a disconnecting server fails them.
#[tokio::test]
async fn close_waits_and_disconnect_fails_requests() {
    let (link, received) =
        LinkServer::legacy("2025-11-25", tools(), |message| result(message, text("x")));
    let client = Client::connect(link).await.unwrap();
    let other = client.clone();
    let call = tokio::spawn(async move { other.call_tool("t", json!({})).await });
    while received.received("tools/call").is_empty() {
        tokio::task::yield_now().await;
    }
    client.clone().close().await;
    assert_eq!(call.await.unwrap().unwrap().all_text(), "x");
    let late = client.call_tool("t", json!({})).await;
    assert!(matches!(late, Err(ClientError::Closed)), "{late:?}");

    let (link, mut far) = mcpact_transport::memory::pair();
    let builder = Client::builder("t", "1").mode(EraMode::Legacy);
    let server = async move {
        far.source.fill().await.unwrap();
        let answer = json!({
            "jsonrpc": "2.0", "id": "mcpact-open-1",
            "result": initialize_result("2025-11-25", json!({ "tools": {} })),
        });
        far.sink.push(&answer.to_string());
        far.sink.flush().await.unwrap();
        while far.source.next_line().is_some() {}
        far.source.fill().await.unwrap();
        far
    };
    let (client, far) = tokio::join!(builder.connect(link), server);
    let client = client.unwrap();
    let (outcome, ()) = tokio::join!(client.call_tool("t", json!({})), async move {
        drop(far);
    });
    assert!(matches!(outcome, Err(ClientError::Closed)), "{outcome:?}");
}

/// Arguments other than objects are not sent.
#[tokio::test]
async fn non_object_arguments_are_not_sent() {
    let (link, received) =
        LinkServer::legacy("2025-11-25", tools(), |message| result(message, text("x")));
    let client = Client::connect(link).await.unwrap();
    let refused = client.call_tool("t", json!([1])).await;
    assert!(
        matches!(refused, Err(ClientError::Arguments)),
        "{refused:?}"
    );
    client.call_tool("t", Value::Null).await.unwrap();
    assert!(
        received.received("tools/call")[0]["params"]
            .get("arguments")
            .is_none()
    );
}
