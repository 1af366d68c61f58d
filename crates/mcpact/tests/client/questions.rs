//! Invalid questions, and URLs without consent.

use std::sync::{Arc, Mutex};

use mcpact::client::{Client, ClientError};
use mcpact::model::{
    CreateMessageRequest, CreateMessageResult, ElicitResult, FormRequest, UrlRequest, UrlWarning,
};
use mcpact_sim::scripted::link_server::{LinkServer, error, result};
use serde_json::{Map, Value, json};
use tokio::net::TcpListener;

/// Server that asks one question during a call and answers the call afterwards.
fn asking(method: &'static str, params: Value) -> (mcpact::client::Link, LinkServer) {
    let mut call = Value::Null;
    LinkServer::legacy("2025-11-25", json!({"tools": {}}), move |message| {
        if message["method"] == "tools/call" {
            call = message.clone();
            return vec![json!({"jsonrpc": "2.0", "id": "q", "method": method, "params": params})];
        }
        result(&call, json!({"content": []}))
    })
}

async fn answer_to(method: &'static str, params: Value) -> Value {
    let (link, received) = asking(method, params);
    let client = Client::builder("t", "1")
        .on_sampling(|_: CreateMessageRequest| async { Ok(CreateMessageResult::new("m", "hi")) })
        .sampling_tools()
        .on_elicitation(
            |form: FormRequest| async move { Ok(form.accept_with_defaults(Map::new())) },
        )
        .connect(link)
        .await
        .unwrap();
    client.call_tool("t", Value::Null).await.unwrap();
    let mut answers = received.all();
    answers.retain(|message| message["id"] == "q");
    answers.remove(0)
}

/// F9: mismatched tool calls and results, and an unknown context, get -32602 before any handler runs; valid messages
/// and a boolean context are answered.
#[tokio::test]
async fn invalid_sampling_request_is_rejected() {
    let call = json!({"role": "assistant", "content": {"type": "tool_use", "id": "1", "name": "t", "input": {}}});
    let give = |id: &str| json!({"role": "user", "content": {"type": "tool_result", "toolUseId": id, "content": []}});
    let text = json!({"role": "user", "content": {"type": "text", "text": "?"}});
    let ask = |messages: Value| json!({"messages": messages, "maxTokens": 5});
    let sampling = "sampling/createMessage";
    for bad in [
        json!([call]),
        json!([call, text]),
        json!([call, give("2")]),
        json!([give("1")]),
    ] {
        let answer = answer_to(sampling, ask(bad.clone())).await;
        assert_eq!(answer["error"]["code"], -32602, "{bad}: {answer}");
    }
    let mut strange = ask(json!([text]));
    strange["includeContext"] = json!("everything");
    assert_eq!(answer_to(sampling, strange).await["error"]["code"], -32602);
    let mut context = ask(json!([text]));
    context["includeContext"] = json!(true);
    assert_eq!(answer_to(sampling, context).await["result"]["model"], "m");
    let good = answer_to(sampling, ask(json!([text, call, give("1")]))).await;
    assert_eq!(good["result"]["model"], "m", "{good}");
}

/// F10, GA-02: a nested form, an undeclared mode and an unknown mode get -32602.
#[tokio::test]
async fn invalid_form_is_rejected() {
    let ask = |properties: Value| json!({"message": "m", "requestedSchema": {"type": "object", "properties": properties}});
    let elicit = "elicitation/create";
    let nested = answer_to(elicit, ask(json!({"a": {"type": "object"}}))).await;
    assert_eq!(nested["error"]["code"], -32602, "{nested}");
    let url =
        json!({"mode": "url", "message": "m", "url": "https://a.example", "elicitationId": "1"});
    assert_eq!(answer_to(elicit, url).await["error"]["code"], -32602);
    let strange = json!({"mode": "dance", "message": "m"});
    assert_eq!(answer_to(elicit, strange).await["error"]["code"], -32602);
    let flat = answer_to(elicit, ask(json!({"a": {"type": "integer", "default": 3}}))).await;
    assert_eq!(
        flat["result"],
        json!({"action": "accept", "content": {"a": 3}})
    );
}

/// F8, GA-01: a client without roots does not know the method.
#[tokio::test]
async fn undeclared_roots_are_method_not_found() {
    assert_eq!(
        answer_to("roots/list", json!({})).await["error"]["code"],
        -32601
    );
}

/// P23: a URL is passed on unchanged with its warnings, and never opened by the client.
#[tokio::test]
async fn urls_are_never_opened_by_the_client() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/login?state=1#x", listener.local_addr().unwrap());
    let (link, received) = asking(
        "elicitation/create",
        json!({"mode": "url", "message": "Log in", "url": url, "elicitationId": "1"}),
    );
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&seen);
    let client = Client::builder("t", "1")
        .on_url_elicitation(move |request: UrlRequest| {
            log.lock()
                .unwrap()
                .push((request.url.clone(), request.warnings()));
            async { Ok(ElicitResult::consent()) }
        })
        .connect(link)
        .await
        .unwrap();
    client.call_tool("t", Value::Null).await.unwrap();
    client.close().await;
    let warned = vec![UrlWarning::NotEncrypted, UrlWarning::IpAddress];
    assert_eq!(*seen.lock().unwrap(), [(url, warned)]);
    assert!(
        received
            .all()
            .iter()
            .any(|message| message["result"]["action"] == "accept")
    );
    let was_opened =
        std::future::poll_fn(|cx| std::task::Poll::Ready(listener.poll_accept(cx).is_ready()))
            .await;
    assert!(!was_opened, "no connection was made");
}

/// F10, F19: the URLs of a -32042 are listed; other errors have none.
#[tokio::test]
async fn pending_urls_are_listed() {
    let listed = json!({"elicitations": [
        {"mode": "url", "message": "Log in", "url": "https://a.example", "elicitationId": "1"},
        {"mode": "form", "message": "no page"},
        7,
    ]});
    let (link, _) = LinkServer::legacy("2025-11-25", json!({"tools": {}}), move |message| {
        let code = if message["params"]["name"] == "visit" {
            -32042
        } else {
            -32603
        };
        error(message, code, listed.clone())
    });
    let client = Client::connect(link).await.unwrap();
    for (name, pages) in [("visit", vec!["https://a.example"]), ("other", vec![])] {
        let failed = client.call_tool(name, Value::Null).await.unwrap_err();
        let ClientError::Rpc(failed) = failed else {
            panic!("{failed:?}");
        };
        let found: Vec<String> = failed
            .pending_urls()
            .into_iter()
            .map(|page| page.url)
            .collect();
        assert_eq!(found, pages, "{name}");
    }
}

/// F10: after the user visited the URLs of a -32042 the call is repeated once, never twice; if the user declines or
/// the error repeats, the caller gets it.
#[tokio::test]
async fn call_is_repeated_once_after_visiting_urls() {
    let page = json!({"mode": "url", "message": "Log in", "url": "https://a.example", "elicitationId": "1"});
    for (refusals, consents, calls, succeeds) in [
        (1, true, 2, true),
        (2, true, 2, false),
        (1, false, 1, false),
    ] {
        let listed = json!({"elicitations": [page.clone()]});
        let mut left = refusals;
        let (link, received) =
            LinkServer::legacy("2025-11-25", json!({"tools": {}}), move |message| {
                if left == 0 {
                    return result(message, json!({"content": []}));
                }
                left -= 1;
                error(message, -32042, listed.clone())
            });
        let visited = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&visited);
        let client = Client::builder("t", "1")
            .on_url_elicitation(move |request: UrlRequest| {
                log.lock().unwrap().push(request.url);
                async move {
                    Ok(match consents {
                        true => ElicitResult::consent(),
                        false => ElicitResult::decline(),
                    })
                }
            })
            .connect(link)
            .await
            .unwrap();
        let outcome = client.call_tool("t", Value::Null).await;
        assert_eq!(outcome.is_ok(), succeeds, "{outcome:?}");
        assert_eq!(received.received("tools/call").len(), calls);
        assert_eq!(*visited.lock().unwrap(), ["https://a.example"]);
        if let Err(failed) = outcome {
            assert_eq!(failed.code(), Some(-32042));
        }
    }
}

/// F18, P14: results are never cached, whatever their hints allow, so that callers cannot see each other's data.
#[tokio::test]
async fn results_are_never_cached() {
    let (link, received) = LinkServer::modern(json!({"tools": {}, "resources": {}}), |message| {
        let mut body = json!({"resultType": "complete", "ttlMs": 3600000, "cacheScope": "public"});
        body["tools"] = json!([]);
        body["contents"] = json!([]);
        result(message, body)
    });
    let client = Client::connect(link).await.unwrap();
    for _ in 0..2 {
        let list = client.list_tools().await.unwrap();
        assert_eq!(list.ttl_ms, Some(3600000));
        assert_eq!(list.cache_scope.as_deref(), Some("public"));
        let read = client.read_resource("a:b").await.unwrap();
        assert_eq!(read.ttl_ms, Some(3600000));
        assert_eq!(read.cache_scope.as_deref(), Some("public"));
    }
    assert_eq!(received.received("tools/list").len(), 2);
    assert_eq!(received.received("resources/read").len(), 2);
}
