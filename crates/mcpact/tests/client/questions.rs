//! Questions that break a rule, and pages that nobody has agreed to visit.

use std::sync::{Arc, Mutex};

use mcpact::client::{Client, ClientError};
use mcpact::model::{
    CreateMessageRequest, CreateMessageResult, ElicitResult, FormRequest, UrlRequest, UrlWarning,
};
use serde_json::{Map, Value, json};
use tokio::net::TcpListener;

use crate::line_server::{Heard, error, legacy, modern, result};

/// Asks one question in the middle of a call, and answers the call once it is answered.
fn asking(method: &'static str, params: Value) -> (mcpact::client::Link, Heard) {
    let mut call = Value::Null;
    legacy("2025-11-25", json!({"tools": {}}), move |message| {
        if message["method"] == "tools/call" {
            call = message.clone();
            return vec![json!({"jsonrpc": "2.0", "id": "q", "method": method, "params": params})];
        }
        result(&call, json!({"content": []}))
    })
}

async fn answer_to(method: &'static str, params: Value) -> Value {
    let (link, heard) = asking(method, params);
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
    let mut answers = heard.all();
    answers.retain(|message| message["id"] == "q");
    answers.remove(0)
}

/// F9: a conversation whose calls and results do not fit, and a context that does not exist, are
/// -32602 before any handler sees them; one that fits is answered.
#[tokio::test]
async fn sampling_is_checked_before_it_is_answered() {
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
    let good = answer_to(sampling, ask(json!([text, call, give("1")]))).await;
    assert_eq!(good["result"]["model"], "m", "{good}");
}

/// F10, GA-02: a form that is not flat, a mode that was not declared and one that does not exist are
/// -32602.
#[tokio::test]
async fn forms_are_checked_before_they_are_shown() {
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
async fn roots_that_were_not_declared_are_not_found() {
    assert_eq!(
        answer_to("roots/list", json!({})).await["error"]["code"],
        -32601
    );
}

/// P23: a page is handed over whole, with what is suspicious about it, and never visited by itself.
#[tokio::test]
async fn a_page_is_never_visited_unasked() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/login?state=1#x", listener.local_addr().unwrap());
    let (link, heard) = asking(
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
    let warned = vec![UrlWarning::NotEncrypted, UrlWarning::Number];
    assert_eq!(*seen.lock().unwrap(), [(url, warned)]);
    assert!(
        heard
            .all()
            .iter()
            .any(|message| message["result"]["action"] == "accept")
    );
    let visitor =
        std::future::poll_fn(|cx| std::task::Poll::Ready(listener.poll_accept(cx).is_ready()))
            .await;
    assert!(!visitor, "nobody has come");
}

/// F10, F19: the pages of a -32042 are given as a list; other errors have none.
#[tokio::test]
async fn pages_to_visit_first_are_listed() {
    let listed = json!({"elicitations": [
        {"mode": "url", "message": "Log in", "url": "https://a.example", "elicitationId": "1"},
        {"mode": "form", "message": "no page"},
        7,
    ]});
    let (link, _) = legacy("2025-11-25", json!({"tools": {}}), move |message| {
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

/// F10: a person who can be sent to the pages of a -32042 is, and the call is sent once more, never
/// a third time; where they decline, or are asked again, the caller hears of it.
#[tokio::test]
async fn a_call_is_repeated_once_after_its_pages_were_visited() {
    let page = json!({"mode": "url", "message": "Log in", "url": "https://a.example", "elicitationId": "1"});
    for (refusals, consents, calls, succeeds) in [
        (1, true, 2, true),
        (2, true, 2, false),
        (1, false, 1, false),
    ] {
        let listed = json!({"elicitations": [page.clone()]});
        let mut left = refusals;
        let (link, heard) = legacy("2025-11-25", json!({"tools": {}}), move |message| {
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
        assert_eq!(heard.of("tools/call").len(), calls);
        assert_eq!(*visited.lock().unwrap(), ["https://a.example"]);
        if let Err(failed) = outcome {
            assert_eq!(failed.code(), Some(-32042));
        }
    }
}

/// F18, P14: nothing is kept from one answer to the next, whatever its hints allow: there is no cache
/// that could give one caller what belongs to another.
#[tokio::test]
async fn nothing_is_cached() {
    let (link, heard) = modern(json!({"tools": {}, "resources": {}}), |message| {
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
    assert_eq!(heard.of("tools/list").len(), 2);
    assert_eq!(heard.of("resources/read").len(), 2);
}
