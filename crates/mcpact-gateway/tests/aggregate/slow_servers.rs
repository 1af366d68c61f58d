//! Servers that are slow to start or to list.

use std::sync::Arc;
use std::time::{Duration, Instant};

use mcpact::client::{Client, Watch};
use mcpact_config::{RunSettings, ToolListing, ToolMode};
use mcpact_gateway::{Aggregator, AggregatorSettings, Cache, ServerEntry};
use mcpact_spec::{Capability, Era, Revision};
use serde_json::json;

use crate::in_process::{client, on_stdio};
use crate::scripted_process::{PATIENCE, SHORT, ScriptedProcess, until};
use crate::wire::Wire;

const CASES: [(Era, Revision); 2] = [
    (Era::Legacy, Revision::V2026_07_28),
    (Era::Modern, Revision::V2025_06_18),
];

async fn tools(client: &Client) -> Vec<String> {
    let tools = client.list_tools().await.unwrap();
    tools.iter().map(|tool| tool.name.clone()).collect()
}

/// Aggregator with a short wait for lists, and this wait for server information.
fn impatient(members: Vec<Arc<ServerEntry>>, introduction_wait: Duration) -> Arc<Aggregator> {
    let settings = AggregatorSettings {
        introduction_wait,
        list_wait: SHORT,
        ..AggregatorSettings::default()
    };
    Aggregator::new(members, settings).unwrap()
}

/// Server with these timeouts for calls and starts.
fn member(script: &ScriptedProcess, call: Duration, start: Duration) -> Arc<ServerEntry> {
    let run = RunSettings {
        call_timeout: call,
        start_timeout: start,
        ..RunSettings::default()
    };
    script.member_run("late", &Cache::disabled(), run)
}

/// Shortest time between two requests for a list that does not come.
const PAUSE: Duration = Duration::from_secs(5);

const HOUR: Duration = Duration::from_secs(3600);

/// A late list does not delay the others: the instructions report the missing one, and clients are notified when it
/// arrives.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn late_list_is_announced() {
    for (era, revision) in CASES {
        let quick = ScriptedProcess::new(era, &json!({"tools": {}}));
        let late = ScriptedProcess::new(era, &json!({"tools": {}}));
        late.put("tools-list", "silence");
        let members = vec![quick.member("quick"), member(&late, HOUR, HOUR)];
        let aggregator = impatient(members.clone(), PATIENCE);
        let connected = on_stdio(&aggregator, client(revision)).await;
        let mut changes = connected.watch(Watch::new().lists()).await.unwrap();
        let listed = async || while tools(&connected).await != ["quick__one"] {};
        let listed = tokio::time::timeout(PATIENCE, listed()).await;
        assert!(listed.is_ok(), "{era:?}");
        until("the missing list is reported", || {
            !members[1].lacking().is_empty()
        })
        .await;
        let later = on_stdio(&aggregator, client(revision)).await;
        let text = later.instructions().unwrap_or_default();
        assert!(text.contains("`late`"), "{text}");
        late.tools(&["two"]);
        let joined = async {
            while tools(&connected).await != ["quick__one", "late__two"] {
                assert!(changes.next().await.is_some());
            }
        };
        let joined = tokio::time::timeout(PATIENCE, joined).await;
        assert!(joined.is_ok(), "{era:?}");
        assert_eq!(members[1].lacking(), Vec::<String>::new(), "{era:?}");
    }
}

/// A list that timed out is requested again after a pause, not for each client.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn list_that_timed_out_is_requested_again_after_a_pause() {
    for (era, revision) in CASES {
        let late = ScriptedProcess::new(era, &json!({"tools": {}}));
        late.put("tools-list", "never");
        let member = member(&late, SHORT, HOUR);
        let aggregator = impatient(vec![member.clone()], PATIENCE);
        let connected = on_stdio(&aggregator, client(revision)).await;
        let since = Instant::now();
        assert_eq!(tools(&connected).await, [""; 0], "{era:?}");
        let is_missing = || {
            member
                .lacking()
                .iter()
                .any(|what| what.contains("`tools/list` failed"))
        };
        until("the list timed out", is_missing).await;
        for _ in 0..5 {
            assert_eq!(tools(&connected).await, [""; 0], "{era:?}");
        }
        // At most once per pause.
        let pauses = since.elapsed().as_secs() / PAUSE.as_secs();
        let received = late.received("tools/list").len() as u64;
        assert!((1..=1 + pauses).contains(&received), "{era:?}: {received}");
    }
}

/// Capabilities of a server that never answered are not declared, and clients do not wait for it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_declared_for_a_server_that_never_answered() {
    for (era, revision) in CASES {
        let there = ScriptedProcess::new(era, &json!({"tools": {}}));
        let never =
            ScriptedProcess::new(era, &json!({"tools": {}, "resources": {}, "logging": {}}));
        never.put("hold", "");
        let members = vec![there.member("there"), member(&never, HOUR, HOUR)];
        let aggregator = impatient(members.clone(), SHORT);
        until("the first server has answered", || {
            members[0].failure().is_none()
        })
        .await;
        let connected = on_stdio(&aggregator, client(revision)).await;
        for unknown in [
            Capability::Logging,
            Capability::Completions,
            Capability::ResourcesSubscribe,
        ] {
            assert!(!connected.pact().declares(unknown), "{era:?} {unknown:?}");
        }
        let reading = connected.read_resource("x:unknown");
        let read = tokio::time::timeout(PATIENCE, reading).await.unwrap();
        let text = read.unwrap_err().to_string();
        assert!(text.contains("`late` (no answer yet)"), "{era:?}: {text}");
        let listed = async || while tools(&connected).await != ["there__one"] {};
        let listed = tokio::time::timeout(PATIENCE, listed()).await;
        assert!(listed.is_ok(), "{era:?}");
        never.remove("hold");
    }
}

/// A call of a tool of one server does not wait for others.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn call_does_not_wait_for_other_servers() {
    for (era, _) in CASES {
        let there = ScriptedProcess::new(era, &json!({"tools": {}, "resources": {}}));
        let contents = json!({"contents": [{"uri": "x:1", "text": "x"}], "resultType": "complete", "ttlMs": 0, "cacheScope": "private"});
        there.answers("resources-read", &contents);
        let never = ScriptedProcess::new(era, &json!({"tools": {}, "resources": {}}));
        never.put("hold", "");
        let settings = |introduction_wait| AggregatorSettings {
            introduction_wait,
            list_wait: HOUR,
            tools: ToolListing {
                mode: ToolMode::Search,
                pinned: Vec::new(),
            },
            ..AggregatorSettings::default()
        };
        let aggregator = |introduction_wait| {
            let members = vec![there.member("there"), member(&never, HOUR, HOUR)];
            Aggregator::new(members, settings(introduction_wait)).unwrap()
        };
        let used = async {
            let modern = Wire::modern(&aggregator(HOUR), &json!({}));
            let legacy = Wire::legacy(&aggregator(SHORT), &json!({})).await;
            for mut wire in [modern, legacy] {
                let call = json!({"name": "there__one", "arguments": {}});
                let indirect = json!({"name": "call_tool", "arguments": call});
                let read = json!({"uri": "mcpact://there/x:1"});
                for (method, params) in [
                    ("tools/call", indirect),
                    ("tools/call", call),
                    ("resources/read", read),
                ] {
                    let answer = wire.ask(method, params).await;
                    assert!(answer["result"].is_object(), "{era:?}: {answer}");
                }
            }
        };
        let used = tokio::time::timeout(PATIENCE, used).await;
        assert!(used.is_ok(), "{era:?}");
        never.remove("hold");
    }
}

/// Only the first client waits for a server that does not answer the handshake.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn later_clients_do_not_wait_for_an_unresponsive_server() {
    let wait = PATIENCE / 20;
    let there = ScriptedProcess::new(Era::Legacy, &json!({"tools": {}}));
    let never = ScriptedProcess::new(Era::Legacy, &json!({"tools": {}}));
    never.put("hold", "");
    let members = vec![there.member("there"), member(&never, HOUR, HOUR)];
    let aggregator = impatient(members, wait);
    let come = async {
        for _ in 0..20 {
            Wire::legacy(&aggregator, &json!({})).await;
            let mut modern = Wire::modern(&aggregator, &json!({}));
            let answer = modern.ask("server/discover", json!({})).await;
            assert!(answer["result"].is_object(), "{answer}");
        }
    };
    let come = tokio::time::timeout(PATIENCE, come).await;
    assert!(come.is_ok(), "each client has waited");
    never.remove("hold");
}
