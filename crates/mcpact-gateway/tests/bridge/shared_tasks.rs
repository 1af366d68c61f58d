//! Tasks where the server sleeps when it is idle, and where clients share its session.

use std::sync::Arc;
use std::time::Duration;

use mcpact::client::{Client, ClientBuilder, TaskOptions};
use mcpact_gateway::catalog::{RunSettings, Strategy};
use mcpact_gateway::{Bridge, BridgeSettings, Local, Target};
use mcpact_spec::Revision;
use mcpact_transport::memory;
use serde_json::json;

use crate::middle::client;

use Revision::{V2025_11_25, V2026_07_28};

/// A time after which nobody has to be idle any longer.
const SHORT: Duration = Duration::from_millis(50);

const PATIENCE: Duration = Duration::from_secs(30);

/// A bridge that several clients share, to a server that is stopped as soon as it is idle.
fn bridge(server: Revision, strategy: Strategy) -> Arc<Bridge> {
    let target = Target::Local(Local(Arc::new(move || {
        let (ours, theirs) = memory::pair();
        let server = mcpact_everything::server(&[server]);
        tokio::spawn(async move { server.serve(theirs).await });
        ours
    })));
    let run = RunSettings {
        strategy,
        idle: SHORT,
        ..RunSettings::default()
    };
    let settings = BridgeSettings {
        run,
        ..BridgeSettings::default()
    };
    Bridge::new(target, settings).unwrap()
}

async fn connect(bridge: &Arc<Bridge>, revision: Revision) -> Client {
    let (ours, theirs) = memory::pair();
    let bridge = Arc::clone(bridge);
    tokio::spawn(async move { bridge.serve(theirs).await });
    let builder: ClientBuilder = match revision {
        V2026_07_28 => client(revision).tasks(),
        _ => client(revision),
    };
    builder.connect(ours).await.unwrap()
}

fn state(bridge: &Bridge) -> &'static str {
    bridge.status().state.as_str()
}

/// G10: a server in which a task runs is not idle, whoever hosts the task and although nobody asks for it; when the
/// task is over, it is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_stays_awake_for_a_task() {
    for (revision, server) in [
        (V2025_11_25, V2025_11_25),
        (V2025_11_25, V2026_07_28),
        (V2026_07_28, V2025_11_25),
        (V2026_07_28, V2026_07_28),
    ] {
        let what = format!("{revision} at {server}");
        let bridge = bridge(server, Strategy::Stateless);
        let connected = connect(&bridge, revision).await;
        // It is over when the test says so, however long anything else takes.
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

/// G1: clients of 2025-11-25 that share a session have tasks of their own there, also when they are over; to
/// others they do not exist.
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
