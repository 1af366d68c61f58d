//! Tasks of each form with servers of the other form, and with clients without tasks.

use mcpact::client::{Client, ClientBuilder, ClientError, TaskOptions};
use mcpact::model::{ElicitResult, TaskStatus};
use mcpact::server::PrincipalSource;
use mcpact_gateway::{UpstreamServer, UpstreamSettings};
use mcpact_sim::scripted::{self, listen};
use mcpact_spec::Revision;
use serde_json::{Map, json};

use crate::pairs::{Transport, client, connect_as};
use crate::targets::{everything, upstream};

use Revision::{V2025_11_25, V2026_07_28};

/// Client that accepts every elicitation.
fn agreeing(revision: Revision) -> ClientBuilder {
    client(revision).on_elicitation(|_| async {
        let answers = [("confirm", json!(true)), ("name", json!("Ann"))];
        let answers = answers.map(|(key, value)| (key.to_owned(), value));
        Ok(ElicitResult::accept(Map::from_iter(answers)))
    })
}

async fn each_transport(
    builder: impl Fn() -> ClientBuilder,
    server: Revision,
    check: impl AsyncFn(&Client, &str),
) {
    for front in Transport::ALL {
        for back in Transport::ALL {
            let what = format!("{front:?} before {server} on {back:?}");
            let connected = connect_as(builder(), front, back, server).await;
            let connected = connected
                .map_err(|error| format!("{what}: {error}"))
                .unwrap();
            check(&connected, &what).await;
            connected.close().await;
        }
    }
}

/// Runs a tool as a task and waits for it.
async fn run(
    client: &Client,
    tool: &str,
    arguments: serde_json::Value,
) -> Result<String, ClientError> {
    let call = client
        .call_tool_as_task(tool, arguments, TaskOptions::new())
        .await?;
    let task = call.task().ok_or(tool).unwrap();
    assert_eq!(task.status, TaskStatus::Working, "{tool}");
    Ok(call.result().await?.all_text())
}

async fn walk(client: &Client, what: &str) {
    let slow = json!({"seconds": 0.05});
    let computed = run(client, "slow_compute", slow).await;
    assert_eq!(computed.unwrap(), "Computed for 0.05 seconds.", "{what}");
    let file = json!({"filename": "a.txt"});
    let deleted = run(client, "confirm_delete", file).await;
    assert_eq!(deleted.unwrap(), "Deleted a.txt.", "{what}");
    let asked_twice = run(client, "multi_input", json!({})).await;
    assert_eq!(asked_twice.unwrap(), "2 answers", "{what}");
    let named = run(client, "test_tool_with_task", json!({})).await;
    assert_eq!(named.unwrap(), "The task is done, Ann.", "{what}");
    let failed = run(client, "failing_job", json!({})).await;
    assert_eq!(failed.unwrap(), "The job failed.", "{what}");
    let broken = run(client, "protocol_error_job", json!({})).await;
    let broken = broken.unwrap_err().to_string();
    assert!(broken.contains("The job broke."), "{what}: {broken}");
    cancel(client, what).await;
    unknown(client, what).await;
}

/// Checks that a cancelled task stays cancelled.
async fn cancel(client: &Client, what: &str) {
    let slow = json!({"seconds": 50});
    let options = TaskOptions::new();
    let call = client
        .call_tool_as_task("slow_compute", slow, options)
        .await;
    let mut call = call.unwrap();
    call.cancel().await.unwrap();
    let status = call.refresh().await.unwrap().map(|task| task.status);
    assert_eq!(status, Some(TaskStatus::Cancelled), "{what}");
}

async fn unknown(client: &Client, what: &str) {
    let asked = client
        .request("tasks/get", Some(r#"{"taskId":"unknown"}"#))
        .await;
    let error = asked.unwrap_err();
    assert_eq!(error.code(), Some(-32602), "{what}: {error}");
}

/// BA-22, BA-23: a client of 2025-11-25 runs tools of a modern server as tasks, with questions before and during them,
/// and errors of its own revision.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn core_tasks_run_on_a_server_with_the_extension() {
    let builder = || agreeing(V2025_11_25);
    each_transport(builder, V2026_07_28, async |client, what| {
        walk(client, what).await;
        let tools = client.list_tools().await.unwrap();
        let is_offered = |tool: &mcpact::model::Tool| {
            tool.supports_tasks() == mcpact::model::TaskSupport::Optional
        };
        assert!(tools.iter().all(is_offered), "{what}");
        let greeted = run(client, "greet", json!({"name": "Bob"})).await;
        assert_eq!(
            greeted.unwrap(),
            "Hello, Bob!",
            "{what}: a call without a task"
        );
    })
    .await;
}

/// BB-25: a client of the extension runs tools of a server of 2025-11-25 as tasks.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn extension_tasks_run_on_a_server_with_core_tasks() {
    let builder = || agreeing(V2026_07_28).tasks();
    each_transport(builder, V2025_11_25, async |client, what| {
        walk(client, what).await;
        let greeted = client.call_tool("greet", json!({"name": "Bob"})).await;
        assert_eq!(greeted.unwrap().all_text(), "Hello, Bob!", "{what}");
    })
    .await;
}

/// BB-25: a client without tasks can call tools that run only as tasks; the call waits for the result.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn client_without_tasks_calls_tools_that_require_them() {
    for server in [V2025_11_25, V2026_07_28] {
        // A client of the revision of the server gets the error of the server instead.
        for revision in Revision::ALL.into_iter().filter(|r| *r != server) {
            let builder = || agreeing(revision);
            each_transport(builder, server, async |client, what| {
                let what = format!("{revision} {what}");
                let failed = client.call_tool("failing_job", json!({})).await.unwrap();
                assert_eq!(failed.all_text(), "The job failed.", "{what}");
                let broken = client.call_tool("protocol_error_job", json!({})).await;
                let broken = broken.unwrap_err().to_string();
                assert!(broken.contains("The job broke."), "{what}: {broken}");
                if mcpact_spec::Capability::Elicitation
                    .presence(revision)
                    .counts()
                {
                    let file = json!({"filename": "a.txt"});
                    let deleted = client.call_tool("confirm_delete", file).await.unwrap();
                    assert_eq!(deleted.all_text(), "Deleted a.txt.", "{what}");
                    let asked = client.call_tool("multi_input", json!({})).await.unwrap();
                    assert_eq!(asked.all_text(), "2 answers", "{what}");
                }
            })
            .await;
        }
    }
}

/// A principal can list its tasks, and other principals cannot use them. Clients without a principal get no list.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tasks_belong_to_their_principal() {
    let mut settings = UpstreamSettings::default();
    // Otherwise the principal of a client is the user of its process.
    settings.front.allow_remote = true;
    settings.front.principals = PrincipalSource::from_fn(|headers| {
        let name = headers.get("x-name")?.to_str().ok()?;
        Some(name.to_owned())
    });
    let bridge = UpstreamServer::new(everything(V2026_07_28), settings).unwrap();
    let url = listen(&bridge).await;
    let named = async |name: &str| {
        let builder = agreeing(V2025_11_25).header("x-name", name);
        builder.connect(url.clone()).await.unwrap()
    };
    let (ann, bob) = (named("ann").await, named("bob").await);
    let slow = json!({"seconds": 50});
    let call = ann.call_tool_as_task("slow_compute", slow, TaskOptions::new());
    let call = call.await.unwrap();
    let id = call.task().unwrap().task_id.clone();
    let ids = async |client: &Client| {
        let tasks = client.list_tasks().await.unwrap();
        Vec::from_iter(tasks.into_iter().map(|task| task.task_id))
    };
    assert_eq!(ids(&ann).await, [id.as_str()]);
    assert!(ids(&bob).await.is_empty());
    let params = json!({ "taskId": id }).to_string();
    for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
        let error = bob.request(method, Some(&params)).await.unwrap_err();
        assert_eq!(error.code(), Some(-32602), "{method}: {error}");
    }
    call.cancel().await.unwrap();
    let anonymous = agreeing(V2025_11_25).connect(url.clone()).await.unwrap();
    assert!(anonymous.list_tasks().await.is_err(), "no principal");
}

/// Each stdio client has its own tasks, although clients on stdio have no principal.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stdio_clients_have_separate_tasks() {
    for (revision, server) in [(V2025_11_25, V2026_07_28), (V2026_07_28, V2025_11_25)] {
        let bridge = upstream(everything(server));
        let connect = async || {
            let builder = match revision {
                V2026_07_28 => agreeing(revision).tasks(),
                _ => agreeing(revision),
            };
            builder.connect(scripted::connect(&bridge)).await.unwrap()
        };
        let (ann, bob) = (connect().await, connect().await);
        let slow = json!({"seconds": 50});
        let call = ann.call_tool_as_task("slow_compute", slow, TaskOptions::new());
        let call = call.await.unwrap();
        let id = call.task().unwrap().task_id.clone();
        let params = json!({ "taskId": id }).to_string();
        for method in ["tasks/get", "tasks/cancel"] {
            let error = bob.request(method, Some(&params)).await.unwrap_err();
            assert_eq!(error.code(), Some(-32602), "{revision} {method}: {error}");
        }
        assert!(ann.request("tasks/get", Some(&params)).await.is_ok());
        call.cancel().await.unwrap();
    }
}
