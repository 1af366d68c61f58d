//! Client and server of this library, in every revision over every transport.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcpact::client::{CallOptions, Change, Client, Revision, Watch};
use mcpact::model::{
    CreateMessageRequest, CreateMessageResult, ElicitRequest, FormRequest, LogLevel, Prompt,
    PromptMessage, PromptResult, Resource, ResourceContents, Root, SamplingMessage, Tool,
    ToolResult,
};
use mcpact::server::{HandlerError, Server};
use mcpact_transport::memory;
use serde_json::{Map, Value, json};

fn server(revision: Revision) -> Server {
    let object = || json!({ "type": "object" });
    Server::new("own", "1")
        .revisions(&[revision])
        .logging()
        .tool_with(
            Tool::new("echo", object()).description("e"),
            |arguments: Value, _| async move { Ok(ToolResult::text(arguments.to_string())) },
        )
        .tool_with(
            Tool::new("count", object()).description("c"),
            |_, context| async move {
                for at in [1.0, 2.0, 3.0] {
                    context.progress(at, Some(3.0), None).await?;
                }
                context.log(LogLevel::Info, "counted").await?;
                Ok("3")
            },
        )
        .tool_with(
            Tool::new("touch", object()).description("t"),
            |_, context| async move {
                context.resource_updated("own:text");
                Ok("touched")
            },
        )
        .tool_with(
            Tool::new("ask", object()).description("a"),
            |_, context| async move {
                let request = CreateMessageRequest::new([SamplingMessage::user("hi")], 10);
                let said = context.sample("model", request).await?.all_text();
                let roots = context.roots("roots").await?;
                Ok(format!("{said} {}", roots[0].uri))
            },
        )
        .tool_with(
            Tool::new("form", object()).description("f"),
            |_, context| async move {
                let schema = json!({ "type": "object", "properties": {
                "name": { "type": "string", "default": "Ann" } } });
                let answer = context
                    .elicit("who", ElicitRequest::form("who?", schema))
                    .await?;
                Ok(Value::Object(answer.content.unwrap_or_default()).to_string())
            },
        )
        .resource(
            Resource::new("own:text", "text"),
            |uri: String, _| async move { Ok(vec![ResourceContents::text(uri, "hello")]) },
        )
        .prompt(Prompt::new("greet"), |_, _| async move {
            Ok(PromptResult::new([PromptMessage::user("hi")]))
        })
}

/// T1 T3 T4 T6: the same program works in every revision over memory and HTTP, with questions, progress, log and
/// subscriptions.
#[tokio::test]
async fn every_revision_works_over_every_transport() {
    for revision in Revision::ALL {
        let (near, far) = memory::pair();
        let serving = tokio::spawn(server(revision).serve(far));
        converse(revision, near.into()).await;
        serving.await.unwrap().unwrap();

        if revision == Revision::V2024_11_05 {
            continue;
        }
        let listening = server(revision)
            .listen(([127, 0, 0, 1], 0).into())
            .await
            .unwrap();
        let url = listening.url();
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let serving = tokio::spawn(listening.run(async move {
            let _ = stopped.await;
        }));
        converse(revision, url.into()).await;
        drop(stop);
        serving.await.unwrap().unwrap();
    }
}

/// L26: a call in flight at the shutdown of its server gets an error response, in every revision.
#[tokio::test]
async fn call_in_flight_at_shutdown_gets_an_error() {
    for revision in Revision::ALL {
        if revision == Revision::V2024_11_05 {
            continue;
        }
        let (called, mut calls) = tokio::sync::mpsc::channel(1);
        let listening = Server::new("slow", "1")
            .revisions(&[revision])
            .settings(|settings| settings.limits.drain = Duration::from_millis(10))
            .tool_with(
                Tool::new("wait", json!({ "type": "object" })),
                move |_: Value, _| {
                    let called = called.clone();
                    async move {
                        let _ = called.send(()).await;
                        std::future::pending::<Result<ToolResult, HandlerError>>().await
                    }
                },
            )
            .listen(([127, 0, 0, 1], 0).into())
            .await
            .unwrap();
        let client = Client::builder("t", "1");
        let (url, (stop, stopped)) = (listening.url(), tokio::sync::oneshot::channel::<()>());
        let serving = tokio::spawn(listening.run(async move {
            let _ = stopped.await;
        }));
        let client = client.connect(url).await.unwrap();
        let calling = tokio::spawn(async move { client.call_tool("wait", json!({})).await });
        calls.recv().await.unwrap();
        drop(stop);
        let error = calling.await.unwrap().unwrap_err().to_string();
        assert!(
            error.contains("the server shut down"),
            "{revision}: {error}"
        );
        serving.await.unwrap().unwrap();
    }
}

async fn converse(revision: Revision, target: mcpact::client::Target) {
    let logged = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&logged);
    let client = Client::builder("t", "1")
        .log_level(LogLevel::Debug)
        .on_sampling(|_| async { Ok(CreateMessageResult::new("model", "hello")) })
        .on_elicitation(
            |form: FormRequest| async move { Ok(form.accept_with_defaults(Map::new())) },
        )
        .roots(vec![Root::new("file:///work")])
        .on_notification(move |note| log.lock().unwrap().push(note.method.clone()))
        .connect(target)
        .await
        .unwrap();
    assert_eq!(client.pact().revision(), revision);
    assert_eq!(client.list_tools().await.unwrap().len(), 5);
    assert_eq!(client.list_resources().await.unwrap().len(), 1);
    assert_eq!(client.list_prompts().await.unwrap().len(), 1);
    client.ping().await.unwrap();
    let text = "caf\u{e9} \u{2028} \"quoted\"".repeat(1000);
    let answer = client
        .call_tool("echo", json!({ "text": text }))
        .await
        .unwrap();
    assert_eq!(answer.all_text(), json!({ "text": text }).to_string());
    let read = client.read_resource("own:text").await.unwrap();
    assert_eq!(read.contents[0].text.as_deref(), Some("hello"));
    let prompt = client.get_prompt("greet", Map::new()).await.unwrap();
    assert_eq!(prompt.messages.len(), 1);
    assert!(client.call_tool("nothing", Value::Null).await.is_err());

    let asked = client.call_tool("ask", json!({})).await.unwrap();
    assert_eq!(asked.all_text(), "hello file:///work", "{revision:?}");
    if revision >= Revision::V2025_06_18 {
        let asked = client.call_tool("form", json!({})).await.unwrap();
        // Strings have defaults only since 2025-11-25; before that the server omits them.
        let filled = match revision {
            Revision::V2025_06_18 => "{}",
            _ => r#"{"name":"Ann"}"#,
        };
        assert_eq!(asked.all_text(), filled, "{revision:?}");
    }

    let seen = Arc::new(Mutex::new(Vec::new()));
    let progress = Arc::clone(&seen);
    let options = CallOptions::new()
        .on_progress(move |report| progress.lock().unwrap().push(report.progress));
    client
        .call_tool_with("count", json!({}), options)
        .await
        .unwrap();
    assert_eq!(*seen.lock().unwrap(), [1.0, 2.0, 3.0], "{revision:?}");
    assert!(
        logged
            .lock()
            .unwrap()
            .contains(&"notifications/message".to_owned())
    );

    let mut changes = client
        .watch(Watch::new().resource("own:text"))
        .await
        .unwrap();
    client.call_tool("touch", json!({})).await.unwrap();
    let uri = "own:text".to_owned();
    assert_eq!(
        changes.next().await,
        Some(Change::Updated { uri }),
        "{revision:?}"
    );
    drop(changes);
    client.close().await;
}
