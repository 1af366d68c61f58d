//! Tests of the examples, in both eras.
#![expect(clippy::unwrap_used, reason = "a panic fails the test")]

#[expect(dead_code, reason = "`main` is not tested")]
#[path = "../../examples/client_with_handlers.rs"]
mod client_with_handlers;
#[expect(dead_code, reason = "`main` is not tested")]
#[path = "../../examples/client_with_subscriptions.rs"]
mod client_with_subscriptions;
#[expect(dead_code, reason = "`main` is not tested")]
#[path = "../../examples/http_server.rs"]
mod http_server;
#[expect(dead_code, reason = "`main` is not tested")]
#[path = "../../examples/in_memory.rs"]
mod in_memory;
#[expect(dead_code, reason = "`main` is not tested")]
#[path = "../../examples/progress.rs"]
mod progress;
#[expect(dead_code, reason = "`main` is not tested")]
#[path = "../../examples/prompts.rs"]
mod prompts;
#[expect(dead_code, reason = "`main` is not tested")]
#[path = "../../examples/questions.rs"]
mod questions;
#[expect(dead_code, reason = "`main` is not tested")]
#[path = "../../examples/resources.rs"]
mod resources;
#[expect(dead_code, reason = "`main` is not tested")]
#[path = "../../examples/tasks.rs"]
mod tasks;
#[expect(dead_code, reason = "`main` is not tested")]
#[path = "../../examples/typed_tools.rs"]
mod typed_tools;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcpact::client::{
    CallOptions, CancelToken, Client, ClientBuilder, ClientError, EraMode, Revision, TaskOptions,
};
use mcpact::model::{CompletionRef, LogLevel, LogMessage};
use mcpact::server::Server;
use mcpact_sim::scripted::serve;
use serde_json::{Map, json};

const ERAS: [Revision; 2] = [Revision::V2025_11_25, Revision::V2026_07_28];

/// Connects a client of this revision with the handlers of the builder.
async fn connect(builder: ClientBuilder, server: Server, revision: Revision) -> Client {
    let builder = builder.mode(EraMode::Pin(revision));
    builder.connect(serve(server)).await.unwrap()
}

fn plain() -> ClientBuilder {
    Client::builder("test", "1")
}

#[tokio::test]
async fn typed_tools_validate_and_structure() {
    for revision in ERAS {
        let client = connect(plain(), typed_tools::server(), revision).await;
        let journey = json!({ "distance": 90, "duration": 1.5 });
        let result = client.call_tool("describe", journey.clone()).await.unwrap();
        assert_eq!(result.all_text(), "90 km in 1.5 h");
        let pace = client.call_tool("pace", journey).await.unwrap();
        assert_eq!(
            pace.structured_content,
            Some(json!({ "kilometres_per_hour": 60.0 }))
        );
        let never = json!({ "distance": 1, "duration": 0 });
        assert!(client.call_tool("pace", never).await.unwrap().failed());
        let wrong = client
            .call_tool("describe", json!({ "distance": "far" }))
            .await;
        assert!(wrong.is_err() || wrong.unwrap().failed());
    }
}

#[tokio::test]
async fn resources_are_read_and_subscribed() {
    for revision in ERAS {
        let client = connect(plain(), resources::server(), revision).await;
        let write = async {
            client.call_tool("write", json!({ "text": "news" })).await?;
            Ok(())
        };
        let uri = "board://today";
        let texts = client_with_subscriptions::before_and_after(&client, uri, write).await;
        assert_eq!(texts.unwrap(), ["nothing yet", "news"]);
        let old = client.read_resource("board://archive/1999").await.unwrap();
        assert_eq!(old.contents[0].text.as_deref(), Some("the board of 1999"));
        assert!(client.read_resource("board://archive/soon").await.is_err());
    }
}

#[tokio::test]
async fn prompts_are_rendered_and_completed() {
    for revision in ERAS {
        let client = connect(plain(), prompts::server(), revision).await;
        let rust = Map::from_iter([("language".to_owned(), json!("rust"))]);
        let filled = client.get_prompt("review", rust).await.unwrap();
        let text = serde_json::to_string(&filled.messages).unwrap();
        assert!(text.contains("Please review this rust code."), "{text}");
        let review = CompletionRef::prompt("review");
        let fitting = client.complete(&review, "language", "ru", Map::new()).await;
        assert_eq!(fitting.unwrap().values, ["rust", "ruby"]);
    }
}

#[tokio::test]
async fn progress_log_and_cancellation() {
    for revision in ERAS {
        let logged = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&logged);
        let builder = plain()
            .log_level(LogLevel::Info)
            .on_notification(move |note| {
                if let Ok(message) = note.read::<LogMessage>() {
                    log.lock().unwrap().push(message.data);
                }
            });
        let client = connect(builder, progress::server(), revision).await;
        let steps = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&steps);
        let options =
            CallOptions::new().on_progress(move |step| seen.lock().unwrap().push(step.progress));
        let climb = client.call_tool_with("climb", json!({ "steps": 3 }), options);
        assert_eq!(climb.await.unwrap().all_text(), "up");
        assert_eq!(*steps.lock().unwrap(), [1.0, 2.0, 3.0]);
        assert_eq!(*logged.lock().unwrap(), [json!("arrived")]);

        let token = CancelToken::new();
        let cancel = token.clone();
        let options = CallOptions::new()
            .cancel(token)
            .on_progress(move |_| cancel.cancel());
        let endless = client.call_tool_with("climb", json!({ "steps": u32::MAX }), options);
        let given_up = endless.await.unwrap_err();
        assert!(matches!(given_up, ClientError::Cancelled), "{given_up:?}");
    }
}

#[tokio::test]
async fn questions_are_asked_and_answered_in_both_eras() {
    for revision in ERAS {
        let builder = client_with_handlers::builder();
        let client = connect(builder, questions::server(), revision).await;
        for (tool, text) in [
            ("greet", "Hello, Ann!"),
            ("sign_in", "on the way"),
            ("think", "forty-two"),
            ("look_around", "file:///home/ann"),
        ] {
            let answer = client.call_tool(tool, json!({})).await.unwrap();
            assert_eq!(answer.all_text(), text, "{tool} in {revision}");
        }
    }
}

#[tokio::test]
async fn task_returns_its_result_later() {
    for revision in ERAS {
        let client = connect(plain().tasks(), tasks::server(), revision).await;
        let options = TaskOptions::new().ttl(Duration::from_secs(60));
        let call = client
            .call_tool_as_task("bake", json!({ "what": "cake" }), options)
            .await
            .unwrap();
        assert_eq!(call.result().await.unwrap().all_text(), "cake is ready");
    }
}

#[tokio::test]
async fn one_url_serves_both_eras() {
    let listening = http_server::server()
        .listen(([127, 0, 0, 1], 0).into())
        .await
        .unwrap();
    let url = listening.url();
    let serving = tokio::spawn(listening.run(std::future::pending()));
    for revision in ERAS {
        let client = plain().mode(EraMode::Pin(revision)).connect(&url).await;
        let era = client.unwrap().call_tool("era", json!({})).await.unwrap();
        assert_eq!(era.all_text(), revision.era().as_str());
    }
    serving.abort();
}

#[tokio::test]
async fn server_and_client_connect_in_memory() {
    for revision in Revision::ALL {
        assert_eq!(in_memory::hello(revision).await.unwrap(), "hello");
    }
}
