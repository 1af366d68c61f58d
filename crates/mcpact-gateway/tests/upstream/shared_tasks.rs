//! Tasks of servers that stop when idle, and of clients that share a session.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcpact::client::{Client, ClientBuilder, TaskOptions};
use mcpact_config::{RunSettings, Strategy};
use mcpact_gateway::{UpstreamServer, UpstreamSettings};
use mcpact_sim::scripted;
use mcpact_spec::Revision;
use mcpact_transport::memory;
use serde_json::json;
use tokio::task::AbortHandle;

use crate::pairs::client;
use crate::scene::Scene;
use crate::targets::{everything, in_memory};

use Revision::{V2025_11_25, V2026_07_28};

/// Idle time after which a server is stopped.
const SHORT: Duration = Duration::from_millis(50);

const PATIENCE: Duration = Duration::from_secs(30);

/// Upstream server that clients share, with the short idle time.
fn bridge(server: Revision, strategy: Strategy) -> Arc<UpstreamServer> {
    let run = RunSettings {
        strategy,
        idle: SHORT,
        ..RunSettings::default()
    };
    let settings = UpstreamSettings {
        run,
        ..UpstreamSettings::default()
    };
    UpstreamServer::new(everything(server), settings).unwrap()
}

async fn connect(bridge: &Arc<UpstreamServer>, revision: Revision) -> Client {
    let builder: ClientBuilder = match revision {
        V2026_07_28 => client(revision).tasks(),
        _ => client(revision),
    };
    builder.connect(scripted::connect(bridge)).await.unwrap()
}

/// Requests about a task go to the instance that runs it. After that instance has exited, they fail with a hint that the
/// task may have had its effect. Unknown task ids are rejected.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn task_requests_go_to_the_instance_that_runs_the_task() {
    let (bridge, programs) = programs();
    let (ann, bob) = (
        connect(&bridge, V2026_07_28).await,
        connect(&bridge, V2026_07_28).await,
    );
    let begin = async |client: &Client| {
        let slow = json!({"seconds": 50.0});
        let call = client.call_tool_as_task("slow_compute", slow, TaskOptions::new());
        let call = call.await.unwrap();
        let id = call.task().unwrap().task_id.clone();
        (call, id)
    };
    let (first, id) = begin(&ann).await;
    let busy = client(V2026_07_28)
        .connect(scripted::connect(&bridge))
        .await
        .unwrap();
    let busy = tokio::spawn(async move {
        let called = busy.call_tool("slow_compute", json!({"seconds": 50.0}));
        called.await.map(|_| ())
    });
    while bridge
        .status()
        .instances
        .iter()
        .all(|one| one.in_flight == 0)
    {
        tokio::time::sleep(SHORT / 10).await;
    }
    let (_second, other) = begin(&bob).await;
    assert_eq!(bridge.status().starts, 2);
    let instance = |id: &str| id.split_once('-').unwrap().0.to_owned();
    assert_ne!(instance(&id), instance(&other));
    busy.abort();
    let asked = async |client: &Client, id: &str| {
        let params = json!({ "taskId": id }).to_string();
        let asked = client.request("tasks/get", Some(&params));
        tokio::time::timeout(PATIENCE, asked).await.unwrap()
    };
    for _ in 0..4 {
        for (client, id) in [(&ann, &id), (&bob, &other)] {
            let shown = asked(client, id).await.unwrap();
            assert!(shown.contains("working"), "{shown}");
            assert!(shown.contains(id.as_str()), "{shown}");
        }
    }
    let (_, task) = id.split_once(':').unwrap();
    for (client, id) in [
        (&bob, id.clone()),
        (&ann, format!("{}:{task}", instance(&id))),
    ] {
        let error = asked(client, &id).await.unwrap_err();
        assert_eq!(error.code(), Some(-32602), "{id}: {error}");
    }
    first.cancel().await.unwrap();
    let shown = asked(&ann, &id).await.unwrap();
    assert!(shown.contains("cancelled"), "{shown}");
    for program in programs.lock().unwrap().drain(..) {
        program.abort();
    }
    // A server may answer once more before it ends.
    let gone = async {
        loop {
            match asked(&bob, &other).await {
                Ok(_) => tokio::time::sleep(SHORT / 10).await,
                // The connection closed before the request was written.
                Err(error) if error.to_string().contains("the call was not sent") => {}
                Err(error) => return error.to_string(),
            }
        }
    };
    let error = tokio::time::timeout(PATIENCE, gone).await.unwrap();
    assert!(error.contains("may have had its effect"), "{error}");
}

/// Modern server with instances that take one call at a time, and their jobs.
fn programs() -> (Arc<UpstreamServer>, Arc<Mutex<Vec<AbortHandle>>>) {
    let programs = Arc::<Mutex<Vec<AbortHandle>>>::default();
    let started = Arc::clone(&programs);
    let target = in_memory(move || {
        let (near, far) = memory::pair();
        let server = mcpact_everything::server(&[V2026_07_28]);
        let program = tokio::spawn(async move { server.serve(far).await });
        started.lock().unwrap().push(program.abort_handle());
        near
    });
    let run = RunSettings {
        strategy: Strategy::Stateless,
        max_concurrent: 1,
        max_instances: 2,
        ..RunSettings::default()
    };
    let settings = UpstreamSettings {
        run,
        ..UpstreamSettings::default()
    };
    (UpstreamServer::new(target, settings).unwrap(), programs)
}

fn state(bridge: &UpstreamServer) -> &'static str {
    bridge.status().state.as_str()
}

/// A server is not idle while a task runs on it, without requests for the task too; afterwards it is stopped.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn server_is_not_idle_while_a_task_runs() {
    for (revision, server) in [
        (V2025_11_25, V2025_11_25),
        (V2025_11_25, V2026_07_28),
        (V2026_07_28, V2025_11_25),
        (V2026_07_28, V2026_07_28),
    ] {
        let what = format!("{revision} at {server}");
        let bridge = bridge(server, Strategy::Stateless);
        let connected = connect(&bridge, revision).await;
        // It ends when the test cancels it.
        let slow = json!({"seconds": 50});
        let call = connected.call_tool_as_task("slow_compute", slow, TaskOptions::new());
        let call = call.await.unwrap();
        assert!(call.task().is_some(), "{what}");
        let starts = bridge.status().starts;
        tokio::time::sleep(SHORT * 4).await;
        assert_ne!(state(&bridge), "asleep", "{what}");
        assert_eq!(bridge.status().starts, starts, "{what}");
        call.cancel().await.unwrap();
        let ended = call.result().await;
        assert!(ended.is_err(), "{what}: {ended:?}");
        let asleep = async {
            while state(&bridge) != "asleep" {
                tokio::time::sleep(SHORT / 10).await;
            }
        };
        let asleep = tokio::time::timeout(PATIENCE, asleep).await;
        assert!(asleep.is_ok(), "{what}");
    }
}

/// Clients of 2025-11-25 that share a session have separate tasks, finished ones included; others cannot use them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tasks_in_a_shared_session_belong_to_their_client() {
    for strategy in [Strategy::Stateless, Strategy::Singleton] {
        let bridge = bridge(V2025_11_25, strategy);
        let (ann, bob) = (
            connect(&bridge, V2025_11_25).await,
            connect(&bridge, V2025_11_25).await,
        );
        let begin = async |client: &Client, seconds: f64| {
            let slow = json!({ "seconds": seconds });
            let call = client.call_tool_as_task("slow_compute", slow, TaskOptions::new());
            let call = call.await.unwrap();
            let id = call.task().unwrap().task_id.clone();
            (call, json!({ "taskId": id }).to_string())
        };
        let (running, long) = begin(&ann, 50.0).await;
        let (_over, short) = begin(&ann, 0.0).await;
        let (other, own) = begin(&bob, 0.0).await;
        assert_eq!(bridge.status().starts, 1, "{strategy:?}: it is shared");
        let text = ann.request("tasks/result", Some(&short)).await.unwrap();
        assert!(text.contains("Computed for 0"), "{strategy:?}");
        for params in [&long, &short] {
            for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
                let asked = bob.request(method, Some(params));
                let asked = tokio::time::timeout(PATIENCE, asked).await.unwrap();
                let error = asked.unwrap_err();
                assert_eq!(error.code(), Some(-32602), "{strategy:?} {method}: {error}");
            }
        }
        assert!(ann.request("tasks/get", Some(&own)).await.is_err());
        assert!(other.result().await.is_ok(), "{strategy:?}");
        running.cancel().await.unwrap();
    }
}

/// BB-25: calls before the first tool list wait for it, so that none is sent as a plain call to a tool that runs only as a
/// task. The list is read once.
#[tokio::test]
async fn first_calls_wait_for_the_tool_list() {
    let capabilities = json!({"tools": {}, "tasks": {"requests": {"tools": {"call": {}}}}});
    let call = || json!({"name": "job", "arguments": {}});
    let mut scene = Scene::new(V2025_11_25);
    let first = (1, "tools/call", call());
    let (mut client, mut server) = scene.modern_pair(capabilities, first, json!({})).await;
    let list = server.expect("tools/list").await;
    client
        .request_modern_with(2, "tools/call", call(), json!({}))
        .await;
    client
        .request_modern_with(3, "tools/call", call(), json!({}))
        .await;
    // A later request is answered, so the calls have been received.
    client
        .request_modern_with(4, "server/discover", json!({}), json!({}))
        .await;
    client.result(4).await;
    let tool = json!({"name": "job", "inputSchema": {"type": "object"}, "execution": {"taskSupport": "required"}});
    server.answer(&list, json!({"tools": [tool]})).await;
    for _ in 0..3 {
        let called = server.expect("tools/call").await;
        assert!(called["params"].get("task").is_some(), "{called}");
    }
}
