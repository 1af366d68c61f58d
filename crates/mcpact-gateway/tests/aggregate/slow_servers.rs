//! Servers that keep everybody waiting.

use std::sync::Arc;
use std::time::{Duration, Instant};

use mcpact::client::{Client, Watch};
use mcpact_config::RunSettings;
use mcpact_gateway::{Aggregator, AggregatorSettings, Cache, ServerEntry};
use mcpact_spec::{Capability, Revision};
use serde_json::json;

use crate::house::{client, on_lines};
use crate::scripted::{PATIENCE, SHORT, Script, Speaks, until};
use crate::wire::Wire;

const CASES: [(Speaks, Revision); 2] = [
    (Speaks::Handshake, Revision::V2026_07_28),
    (Speaks::Discover, Revision::V2025_06_18),
];

async fn tools(client: &Client) -> Vec<String> {
    let tools = client.list_tools().await.unwrap();
    tools.iter().map(|tool| tool.name.clone()).collect()
}

/// A hub that does not wait long for lists, and for so long to know its servers.
fn impatient(members: Vec<Arc<ServerEntry>>, introduction_wait: Duration) -> Arc<Aggregator> {
    let settings = AggregatorSettings {
        introduction_wait,
        list_wait: SHORT,
        ..AggregatorSettings::default()
    };
    Aggregator::new(members, settings).unwrap()
}

/// A server whose calls and starts take as long as these.
fn member(script: &Script, call: Duration, start: Duration) -> Arc<ServerEntry> {
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

/// A list that does not come is not waited for with every list: the others are served, clients are told what is
/// missing, and told again when it comes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_that_comes_late_is_announced() {
    for (era, revision) in CASES {
        let quick = Script::new(era, &json!({"tools": {}}));
        let late = Script::new(era, &json!({"tools": {}}));
        late.put("tools-list", "silence");
        let members = vec![quick.member("quick"), member(&late, HOUR, HOUR)];
        let hub = impatient(members.clone(), PATIENCE);
        let connected = on_lines(&hub, client(revision)).await;
        let mut changes = connected.watch(Watch::new().lists()).await.unwrap();
        let listed = async || while tools(&connected).await != ["quick__one"] {};
        let listed = tokio::time::timeout(PATIENCE, listed()).await;
        assert!(listed.is_ok(), "{era:?}");
        until("it is noted", || !members[1].lacking().is_empty()).await;
        let later = on_lines(&hub, client(revision)).await;
        let told = later.instructions().unwrap_or_default();
        assert!(told.contains("`late`"), "{told}");
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

/// A server that never says what it has is not asked again by everybody who comes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_that_never_comes_is_not_asked_for_again_at_once() {
    for (era, revision) in CASES {
        let late = Script::new(era, &json!({"tools": {}}));
        late.put("tools-list", "never");
        let member = member(&late, SHORT, HOUR);
        let hub = impatient(vec![member.clone()], PATIENCE);
        let connected = on_lines(&hub, client(revision)).await;
        let since = Instant::now();
        assert_eq!(tools(&connected).await, [""; 0], "{era:?}");
        let is_missing = || {
            member
                .lacking()
                .iter()
                .any(|what| what.contains("is missing"))
        };
        until("it was given up", is_missing).await;
        for _ in 0..5 {
            assert_eq!(tools(&connected).await, [""; 0], "{era:?}");
        }
        // At most once per pause, however slow the machine is.
        let pauses = since.elapsed().as_secs() / PAUSE.as_secs();
        let heard = late.heard("tools/list").len() as u64;
        assert!((1..=1 + pauses).contains(&heard), "{era:?}: {heard}");
    }
}

/// What a server has that nobody has met is not promised, and not waited for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_promised_for_a_server_that_was_never_met() {
    for (era, revision) in CASES {
        let there = Script::new(era, &json!({"tools": {}}));
        let never = Script::new(era, &json!({"tools": {}, "resources": {}, "logging": {}}));
        never.put("hold", "");
        let members = vec![there.member("there"), member(&never, HOUR, HOUR)];
        let hub = impatient(members.clone(), SHORT);
        until("it is known", || members[0].failure().is_none()).await;
        let connected = on_lines(&hub, client(revision)).await;
        for unknown in [
            Capability::Logging,
            Capability::Completions,
            Capability::ResourcesSubscribe,
        ] {
            assert!(!connected.pact().declares(unknown), "{era:?} {unknown:?}");
        }
        let reading = connected.read_resource("x:nobody");
        let read = tokio::time::timeout(PATIENCE, reading).await.unwrap();
        let told = read.unwrap_err().to_string();
        assert!(
            told.contains("`late` (it has not answered yet)"),
            "{era:?}: {told}"
        );
        let listed = async || while tools(&connected).await != ["there__one"] {};
        let listed = tokio::time::timeout(PATIENCE, listed()).await;
        assert!(listed.is_ok(), "{era:?}");
        never.remove("hold");
    }
}

/// What names a thing of one server waits for no other one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_does_not_wait_for_other_servers() {
    for (era, _) in CASES {
        let there = Script::new(era, &json!({"tools": {}, "resources": {}}));
        let contents = json!({"contents": [{"uri": "x:1", "text": "x"}], "resultType": "complete", "ttlMs": 0, "cacheScope": "private"});
        there.answers("resources-read", &contents);
        let never = Script::new(era, &json!({"tools": {}, "resources": {}}));
        never.put("hold", "");
        let settings = |introduction_wait| AggregatorSettings {
            introduction_wait,
            list_wait: HOUR,
            ..AggregatorSettings::default()
        };
        let hub = |introduction_wait| {
            let members = vec![there.member("there"), member(&never, HOUR, HOUR)];
            Aggregator::new(members, settings(introduction_wait)).unwrap()
        };
        let used = async {
            let modern = Wire::modern(&hub(HOUR), &json!({}));
            let legacy = Wire::legacy(&hub(SHORT), &json!({})).await;
            for mut wire in [modern, legacy] {
                let call = json!({"name": "there__one", "arguments": {}});
                let read = json!({"uri": "mcpact://there/x:1"});
                for (method, params) in [("tools/call", call), ("resources/read", read)] {
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

/// Clients that come wait once in all for a server that does not say what it is, not each of them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_waits_again_for_a_server_that_does_not_introduce_itself() {
    let wait = PATIENCE / 20;
    let there = Script::new(Speaks::Handshake, &json!({"tools": {}}));
    let never = Script::new(Speaks::Handshake, &json!({"tools": {}}));
    never.put("hold", "");
    let members = vec![there.member("there"), member(&never, HOUR, HOUR)];
    let hub = impatient(members, wait);
    let come = async {
        for _ in 0..20 {
            Wire::legacy(&hub, &json!({})).await;
            let mut modern = Wire::modern(&hub, &json!({}));
            let answer = modern.ask("server/discover", json!({})).await;
            assert!(answer["result"].is_object(), "{answer}");
        }
    };
    let come = tokio::time::timeout(PATIENCE, come).await;
    assert!(come.is_ok(), "each of them has waited");
    never.remove("hold");
}
