//! Server requests: only to capable clients, and only in valid form.

use mcpact::model::{
    Completion, Content, CreateMessageRequest, ElicitRequest, IncludeContext, Prompt, PromptResult,
    Resource, ResourceContents, SamplingMessage, ToolResult, UrlRequest,
};
use mcpact::server::{Context, HandlerError, NoArgs, Question, Server};
use mcpact_spec::{Era, Revision};
use serde_json::{Map, Value, json};

use crate::http::{Raw, Running, modern, request};
use crate::peer::Peer;

/// A server with one tool that asks this.
fn asking<F, Fut>(ask: F) -> Server
where
    F: Fn(Context) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<ToolResult, HandlerError>> + Send + 'static,
{
    Server::new("t", "1").tool("ask", "Asks", move |_: NoArgs, context: Context| {
        ask(context)
    })
}

fn form(properties: Value) -> ElicitRequest {
    ElicitRequest::form(
        "Please",
        json!({"type": "object", "properties": properties}),
    )
}

/// Asks the client's model `text` under `key` and returns its answer.
async fn sample(context: &Context, key: &str, text: &str) -> Result<String, HandlerError> {
    let messages = [SamplingMessage::user(Content::text(text))];
    let request = CreateMessageRequest::new(messages, 10);
    Ok(context.sample(key, request).await?.all_text())
}

/// Calls the tool of [`asking`], answers every question with its text in upper case, and returns the questions of each
/// round and the text of the result. A legacy call has one round; withdrawn questions do not count.
async fn conversation(server: Server, revision: Revision) -> (Vec<Vec<String>>, String) {
    let asked = |params: &Value| {
        let content = &params["messages"][0]["content"];
        content["text"].as_str().unwrap().to_owned()
    };
    let answer = |text: &str| {
        let content = json!({"type": "text", "text": text.to_uppercase()});
        json!({"role": "assistant", "model": "m", "content": content})
    };
    let mut peer = Peer::of(server);
    let mut rounds = Vec::new();
    if revision.era() == Era::Legacy {
        peer.open(revision.as_str(), json!({"sampling": {}})).await;
        let mut open: Vec<(Value, String)> = Vec::new();
        let call = request(1, "tools/call", &json!({"name": "ask"}));
        peer.tell(&call).await;
        loop {
            let message = peer.hear().await;
            if message["method"] == "sampling/createMessage" {
                let text = asked(&message["params"]);
                let result = answer(&text);
                open.push((message["id"].clone(), text));
                let reply = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
                peer.tell(&reply).await;
            } else if message["method"] == "notifications/cancelled" {
                open.retain(|(id, _)| *id != message["params"]["requestId"]);
            } else {
                let text = message["result"]["content"][0]["text"].as_str();
                rounds.push(open.into_iter().map(|(_, text)| text).collect());
                return (rounds, text.unwrap_or_default().to_owned());
            }
        }
    }
    let mut params = json!({"name": "ask"});
    for id in 1.. {
        let mut call = modern(id, "tools/call", params.clone());
        call["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] =
            json!({"sampling": {}});
        peer.tell(&call).await;
        let result = peer.hear().await["result"].take();
        if result["resultType"] != "input_required" {
            let text = result["content"][0]["text"].as_str();
            return (rounds, text.unwrap_or_default().to_owned());
        }
        let questions = result["inputRequests"].as_object().unwrap();
        let texts = questions
            .values()
            .map(|question| asked(&question["params"]));
        let texts: Vec<_> = texts.collect();
        let answers = questions.keys().zip(&texts);
        let answers: Map<_, _> = answers
            .map(|(key, text)| (key.clone(), answer(text)))
            .collect();
        params["inputResponses"] = Value::Object(answers);
        params["requestState"] = result["requestState"].clone();
        rounds.push(texts);
    }
    unreachable!("every conversation ends");
}

/// F16: a question means the same in every revision, however the handler awaits it.
#[tokio::test]
async fn questions_mean_the_same_in_every_revision() {
    let used = "the key `a` was used for a question before";
    // Rule, handler, questions of each modern round, text of the result.
    type Rule = (
        &'static str,
        fn() -> Server,
        &'static [&'static [&'static str]],
        &'static str,
    );
    let rules: [Rule; 10] = [
        (
            "the answer is returned",
            || asking(|c| async move { Ok(ToolResult::text(sample(&c, "a", "x").await?)) }),
            &[&["x"]],
            "X",
        ),
        (
            "`.ok()` waits for the answer",
            || {
                asking(|c| async move {
                    let answer = sample(&c, "a", "x").await.ok();
                    Ok(ToolResult::text(answer.unwrap_or("default".to_owned())))
                })
            },
            &[&["x"]],
            "X",
        ),
        (
            "`match` with a default waits for the answer",
            || {
                asking(|c| async move {
                    let text = match sample(&c, "a", "x").await {
                        Ok(text) => text,
                        Err(_) => "default".to_owned(),
                    };
                    Ok(ToolResult::text(text))
                })
            },
            &[&["x"]],
            "X",
        ),
        (
            "questions are asked one after another",
            || {
                asking(|c| async move {
                    let first = sample(&c, "a", "x").await?;
                    let second = sample(&c, "b", &format!("{first}y")).await?;
                    Ok(ToolResult::text(second))
                })
            },
            &[&["x"], &["Xy"]],
            "XY",
        ),
        (
            "`join!` asks its questions together",
            || {
                asking(|c| async move {
                    let (a, b) = tokio::join!(sample(&c, "a", "x"), sample(&c, "b", "y"));
                    Ok(ToolResult::text(a.ok().unwrap() + &b?))
                })
            },
            &[&["x", "y"]],
            "XY",
        ),
        (
            "a question of a spawned job is asked",
            || {
                asking(|c| async move {
                    let job = tokio::spawn(async move {
                        tokio::task::yield_now().await;
                        sample(&c, "a", "x").await
                    });
                    Ok(ToolResult::text(job.await??))
                })
            },
            &[&["x"]],
            "X",
        ),
        (
            "a dropped question is withdrawn",
            || {
                asking(|c| async move {
                    tokio::select! {
                        biased;
                        _ = sample(&c, "a", "x") => {}
                        () = async {} => {}
                    }
                    Ok(ToolResult::text(sample(&c, "b", "y").await?))
                })
            },
            &[&["y"]],
            "Y",
        ),
        (
            "another question under a used key is an error",
            || {
                asking(|c| async move {
                    sample(&c, "a", "x").await?;
                    Ok(ToolResult::text(sample(&c, "a", "y").await?))
                })
            },
            &[&["x"]],
            used,
        ),
        (
            "the same question under a used key is an error",
            || {
                asking(|c| async move {
                    let (a, b) = tokio::join!(sample(&c, "a", "x"), sample(&c, "a", "x"));
                    a?;
                    Ok(ToolResult::text(b?))
                })
            },
            &[&["x"]],
            used,
        ),
        (
            "two questions of one round under one key are an error",
            || {
                asking(|c| async move {
                    let question = |text: &str| {
                        let messages = [SamplingMessage::user(Content::text(text))];
                        Question::sample(CreateMessageRequest::new(messages, 10))
                    };
                    let questions = ["x", "y"].map(|text| ("a".to_owned(), question(text)));
                    Ok(ToolResult::text(format!(
                        "{:?}",
                        c.ask_all(questions).await?
                    )))
                })
            },
            &[],
            used,
        ),
    ];
    for (rule, server, expected, text) in rules {
        for revision in Revision::ALL {
            let (rounds, result) = conversation(server(), revision).await;
            assert_eq!(result, text, "{rule}: {revision}");
            match revision.era() {
                Era::Legacy => assert_eq!(rounds.concat(), expected.concat(), "{rule}: {revision}"),
                Era::Modern => assert_eq!(rounds, expected, "{rule}: {revision}"),
            }
        }
    }
}

/// F9: tools, their choice and the wanted context reach a client that declared them, and parallel
/// calls come back; a client that did not declare tools is not asked.
#[tokio::test]
async fn sampling_carries_tools() {
    let server = || {
        asking(|context| async move {
            let mut request =
                CreateMessageRequest::new([SamplingMessage::user(Content::text("?"))], 10);
            request.tools = Some(vec![
                json!({"name": "t", "inputSchema": {"type": "object"}}),
            ]);
            request.tool_choice = Some(json!({"mode": "required"}));
            request.include_context = Some(IncludeContext::None);
            let answer = context.sample("a", request).await?;
            let calls = answer
                .content
                .0
                .iter()
                .filter(|block| matches!(block, Content::ToolUse(_)));
            Ok(ToolResult::text(format!("{} calls", calls.count())))
        })
    };
    let mut peer = Peer::of(server());
    peer.open("2025-11-25", json!({"sampling": {"tools": {}}}))
        .await;
    let question = peer.ask(1, "tools/call", json!({"name": "ask"})).await;
    assert_eq!(question["method"], "sampling/createMessage");
    assert_eq!(question["params"]["tools"][0]["name"], "t");
    assert_eq!(question["params"]["toolChoice"]["mode"], "required");
    assert_eq!(question["params"]["includeContext"], "none");
    let call = |id: &str| json!({"type": "tool_use", "id": id, "name": "t", "input": {}});
    peer.tell(&json!({"jsonrpc": "2.0", "id": question["id"], "result": {"role": "assistant", "model": "m",
        "stopReason": "toolUse", "content": [call("1"), call("2")]}})).await;
    assert_eq!(peer.hear().await["result"]["content"][0]["text"], "2 calls");
    for (version, capabilities) in [
        ("2025-11-25", json!({"sampling": {}})),
        ("2025-06-18", json!({"sampling": {}})),
        ("2025-11-25", json!({})),
    ] {
        let mut peer = Peer::of(server());
        peer.open(version, capabilities).await;
        let refused = peer.ask(1, "tools/call", json!({"name": "ask"})).await;
        assert_eq!(refused["id"], 1, "nothing was asked: {refused}");
        assert!(
            refused.get("error").is_some() || refused["result"]["isError"] == true,
            "{refused}"
        );
    }
}

/// F9: a conversation with calls but without their results is not sent.
#[tokio::test]
async fn a_broken_conversation_is_not_sent() {
    let server = asking(|context| async move {
        let call = json!({"type": "tool_use", "id": "1", "name": "t", "input": {}});
        let call: Content = serde_json::from_value(call)?;
        let turns = [
            SamplingMessage::user(Content::text("?")),
            SamplingMessage::assistant(call),
        ];
        context
            .sample("a", CreateMessageRequest::new(turns, 10))
            .await?;
        Ok(ToolResult::text("asked"))
    });
    let mut peer = Peer::of(server);
    peer.open("2025-11-25", json!({"sampling": {"tools": {}}}))
        .await;
    let failed = peer.ask(1, "tools/call", json!({"name": "ask"})).await;
    assert_eq!(failed["result"]["isError"], true, "{failed}");
    assert_eq!(
        failed["result"]["content"][0]["text"],
        "Tool result missing in request"
    );
}

/// F10: the user may accept, decline or go away; what was filled in must fit the form.
#[tokio::test]
async fn every_answer_to_a_form_is_taken() {
    let server = || {
        asking(|context| async move {
            let answer = context
                .elicit("a", form(json!({"age": {"type": "integer"}})))
                .await?;
            Ok(ToolResult::text(serde_json::to_string(&answer)?))
        })
    };
    for (answer, expected) in [
        (
            json!({"action": "accept", "content": {"age": 7}}),
            Some(r#"{"action":"accept","content":{"age":7}}"#),
        ),
        (
            json!({"action": "decline"}),
            Some(r#"{"action":"decline"}"#),
        ),
        (json!({"action": "cancel"}), Some(r#"{"action":"cancel"}"#)),
        (json!({"action": "accept", "content": {"age": "old"}}), None),
        (json!({"action": "dance"}), None),
    ] {
        let mut peer = Peer::of(server());
        peer.open("2025-06-18", json!({"elicitation": {}})).await;
        let question = peer.ask(1, "tools/call", json!({"name": "ask"})).await;
        assert_eq!(question["method"], "elicitation/create");
        assert_eq!(
            question["params"].get("mode"),
            None,
            "2025-06-18 has no modes"
        );
        peer.tell(&json!({"jsonrpc": "2.0", "id": question["id"], "result": answer}))
            .await;
        let done = peer.hear().await;
        match expected {
            Some(text) => assert_eq!(done["result"]["content"][0]["text"], text),
            None => assert_eq!(done["result"]["isError"], true, "{done}"),
        }
    }
}

/// F10, P24: forms that are not flat, and forms that ask for secrets, are not sent in either era.
#[tokio::test]
async fn forms_are_flat_and_ask_for_no_secrets() {
    for properties in [
        json!({"a": {"type": "object", "properties": {}}}),
        json!({"password": {"type": "string"}}),
        json!({"x": {"type": "string", "title": "Your API key"}}),
    ] {
        let asked = properties.clone();
        let server = move || {
            let asked = asked.clone();
            asking(move |context| {
                let question = form(asked.clone());
                async move {
                    context.elicit("a", question).await?;
                    Ok(ToolResult::text("asked"))
                }
            })
        };
        let mut peer = Peer::of(server());
        peer.open("2025-11-25", json!({"elicitation": {}})).await;
        let failed = peer.ask(1, "tools/call", json!({"name": "ask"})).await;
        assert_eq!(failed["result"]["isError"], true, "{properties}: {failed}");
        let running = Running::start(server()).await;
        let mut call = modern(1, "tools/call", json!({"name": "ask"}));
        call["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] =
            json!({"elicitation": {}});
        let failed = running.send(&Raw::modern(&call)).await.json();
        assert_eq!(failed["result"]["isError"], true, "{properties}: {failed}");
    }
}

/// F10: pages to visit first are an error with their list, and their completion a notification, in
/// 2025-11-25 and in no other revision.
#[tokio::test]
async fn pages_to_visit_have_their_own_code() {
    let page = UrlRequest {
        message: "Log in".to_owned(),
        url: "https://example.com/login".to_owned(),
        elicitation_id: Some("e1".to_owned()),
        ..UrlRequest::default()
    };
    let server = move || {
        let page = page.clone();
        asking(move |context| {
            let page = page.clone();
            async move {
                context.elicitation_complete("e1").await?;
                Err(HandlerError::url_elicitation_required(&[page]))
            }
        })
    };
    let mut peer = Peer::of(server());
    peer.open("2025-11-25", json!({"elicitation": {"url": {}}}))
        .await;
    let heard = peer.follow(1, "tools/call", json!({"name": "ask"})).await;
    assert_eq!(heard[0]["method"], "notifications/elicitation/complete");
    assert_eq!(heard[0]["params"]["elicitationId"], "e1");
    assert_eq!(heard[1]["error"]["code"], -32042);
    let listed = &heard[1]["error"]["data"]["elicitations"][0];
    assert_eq!(
        *listed,
        json!({"mode": "url", "message": "Log in", "url": "https://example.com/login", "elicitationId": "e1"})
    );
    for version in ["2024-11-05", "2025-03-26", "2025-06-18"] {
        let mut peer = Peer::of(server());
        peer.open(version, json!({})).await;
        let heard = peer.follow(1, "tools/call", json!({"name": "ask"})).await;
        assert_eq!(heard.len(), 1, "{version}: {heard:?}");
        assert_eq!(heard[0]["error"]["code"], -32603, "{version}");
        assert!(
            heard[0]["error"]["message"]
                .as_str()
                .unwrap()
                .contains("https://example.com/login")
        );
    }
    let running = Running::start(server()).await;
    let reply = running
        .send(&Raw::modern(&modern(
            1,
            "tools/call",
            json!({"name": "ask"}),
        )))
        .await;
    assert_eq!(reply.code(), -32603, "{reply:?}");
}

/// F8: a client with roots is asked for them and may tell that they changed; one without is not asked.
#[tokio::test]
async fn roots_are_asked_of_those_who_have_them() {
    let mut peer = Peer::start(&Revision::ALL);
    peer.open("2025-06-18", json!({"roots": {"listChanged": true}}))
        .await;
    let name = json!({"name": "test_input_required_result_list_roots"});
    let question = peer.ask(1, "tools/call", name.clone()).await;
    assert_eq!(question["method"], "roots/list");
    let roots = json!({"roots": [{"uri": "file:///work", "name": "Work"}]});
    peer.tell(&json!({"jsonrpc": "2.0", "id": question["id"], "result": roots}))
        .await;
    assert_eq!(
        peer.hear().await["result"]["content"][0]["text"],
        "1 roots: file:///work"
    );
    peer.tell(&json!({"jsonrpc": "2.0", "method": "notifications/roots/list_changed"}))
        .await;
    assert_eq!(
        peer.ask(2, "ping", json!({})).await["id"],
        2,
        "heard without a word"
    );
    let mut without = Peer::start(&Revision::ALL);
    without.open("2025-06-18", json!({})).await;
    let refused = without.ask(1, "tools/call", name).await;
    assert_eq!(refused["id"], 1, "{refused}");
}

/// P13, GA-11, MR-11: input is asked by results of calls, prompts and reads only, and only of a client
/// that declared it.
#[tokio::test]
async fn input_is_asked_only_where_it_may_be() {
    let ask = |context: Context| async move {
        context
            .elicit("a", form(json!({"x": {"type": "string"}})))
            .await
    };
    let server = asking(move |context| async move {
        ask(context).await?;
        Ok(ToolResult::text("asked"))
    })
    .prompt(
        Prompt::new("p"),
        move |_: Map<String, Value>, context| async move {
            ask(context).await?;
            Ok(PromptResult::new([]))
        },
    )
    .resource(
        Resource::new("test://a", "a"),
        move |uri, context| async move {
            ask(context).await?;
            Ok(vec![ResourceContents::text(uri, "a")])
        },
    )
    .completion(move |_, context| async move {
        ask(context).await?;
        Ok(Completion::new(["x"]))
    });
    let server = Running::start(server).await;
    let send = async |method: &str, params: Value, capabilities: Value| {
        let mut message = modern(1, method, params);
        message["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] = capabilities;
        server.send(&Raw::modern(&message)).await
    };
    let able = json!({"elicitation": {}});
    for (method, params) in [
        ("tools/call", json!({"name": "ask"})),
        ("prompts/get", json!({"name": "p"})),
        ("resources/read", json!({"uri": "test://a"})),
    ] {
        let asked = send(method, params.clone(), able.clone()).await.json();
        assert_eq!(
            asked["result"]["resultType"], "input_required",
            "{method}: {asked}"
        );
        assert_eq!(
            asked["result"]["inputRequests"]["a"]["method"],
            "elicitation/create"
        );
        for other in [
            json!({}),
            json!({"sampling": {}}),
            json!({"elicitation": {"url": {}}}),
        ] {
            let refused = send(method, params.clone(), other).await;
            assert_eq!((refused.code(), refused.status), (-32021, 400), "{method}");
            assert!(
                refused.json()["error"]["data"]["requiredCapabilities"]["elicitation"].is_object()
            );
        }
    }
    let params =
        json!({"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "a", "value": ""}});
    let completed = send("completion/complete", params, able).await;
    assert_eq!(completed.code(), -32603, "{completed:?}");
}

/// F16, MR-08: answers that are missing or do not fit are asked for again, not refused.
#[tokio::test]
async fn missing_answers_are_asked_for_again() {
    let server = Running::everything(&Revision::ALL).await;
    let call = |extra: Value| {
        let mut params = json!({"name": "test_input_required_result_elicitation"});
        params
            .as_object_mut()
            .unwrap()
            .extend(extra.as_object().unwrap().clone());
        let mut message = modern(1, "tools/call", params);
        message["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] =
            json!({"elicitation": {}});
        Raw::modern(&message)
    };
    let first = server.send(&call(json!({}))).await.json();
    let state = &first["result"]["requestState"];
    for answers in [
        json!({}),
        json!({"other": {"action": "accept"}}),
        json!({"user_name": {"action": "accept", "content": {"name": 7}}}),
        json!({"user_name": 7}),
    ] {
        let again = server
            .send(&call(
                json!({"requestState": state, "inputResponses": answers}),
            ))
            .await
            .json();
        assert_eq!(
            again["result"]["resultType"], "input_required",
            "{answers}: {again}"
        );
    }
}

/// F13: progress goes to the request that wants it and to no other, and a notification that cancels
/// something unknown or finished does nothing.
#[tokio::test]
async fn progress_and_cancellation_find_their_request() {
    let mut peer = Peer::start(&Revision::ALL);
    peer.open("2025-11-25", json!({})).await;
    let call = |token: Value| json!({"name": "test_tool_with_progress", "_meta": {"progressToken": token}});
    let heard = peer.follow(1, "tools/call", call(json!("a"))).await;
    assert_eq!(heard.len(), 4, "{heard:?}");
    let values: Vec<_> = heard[..3]
        .iter()
        .map(|note| note["params"]["progress"].as_f64().unwrap())
        .collect();
    assert!(values.is_sorted(), "{values:?}");
    assert!(
        heard[..3]
            .iter()
            .all(|note| note["params"]["progressToken"] == "a")
    );
    let silent = peer
        .follow(2, "tools/call", json!({"name": "test_tool_with_progress"}))
        .await;
    assert_eq!(silent.len(), 1, "{silent:?}");
    for id in [json!(1), json!(99), json!("x"), json!(null), json!({})] {
        peer.tell(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}})).await;
    }
    peer.tell(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled"}))
        .await;
    assert_eq!(peer.ask(3, "ping", json!({})).await["id"], 3);
    let slow = json!({"name": "slow_compute", "arguments": {"seconds": 30}});
    peer.tell(&request(4, "tools/call", &slow)).await;
    peer.tell(
        &json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 4}}),
    )
    .await;
    assert_eq!(
        peer.ask(5, "ping", json!({})).await["id"],
        5,
        "4 is not answered"
    );
}
