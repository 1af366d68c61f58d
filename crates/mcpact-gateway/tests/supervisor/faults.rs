//! Servers that die, and servers that never live.

use std::time::Duration;

use mcpact_config::{Restarts, RunSettings, Strategy};
use mcpact_gateway::{InstanceState, ServerState};
use mcpact_spec::Revision;

use crate::house::{House, call, calling, freeze, kill, told};

fn quick() -> RunSettings {
    RunSettings {
        strategy: Strategy::Stateless,
        restarts: Restarts {
            backoff: Duration::from_millis(20),
            backoff_max: Duration::from_millis(40),
            failures: 3,
            window: Duration::from_secs(600),
            suspend: Duration::from_secs(600),
        },
        ..RunSettings::default()
    }
}

/// P5: whoever has a call on a server that is killed is told, nobody else notices,
/// and the next call has another server. How it ended is told to callers and to those who look.
#[tokio::test]
async fn a_killed_server_is_replaced() {
    let house = House::new(quick());
    let client = house.connect(Revision::V2025_11_25).await;
    let first = call(&client, "who").await.unwrap();
    let calls: Vec<_> = (0..8).map(|_| calling(&client, "slow")).collect();
    house
        .until("all are under way", |house| {
            house.bridge.status().instances[0].in_flight == 8
        })
        .await;
    kill(first);
    let by_signal = "the server process ended (signal: 9 (SIGKILL))";
    for call in calls {
        let error = told(&call.await.unwrap().unwrap_err());
        assert!(error.contains(by_signal), "{error}");
    }
    let second = call(&client, "who").await.unwrap();
    assert_ne!(first, second);
    let status = house.bridge.status();
    let why = String::from(by_signal);
    assert_eq!(
        status.over[0].state,
        InstanceState::Failed { why: why.into() }
    );
    assert_eq!((status.starts, status.failures), (2, 1));
    let error = told(&call(&client, "die").await.unwrap_err());
    assert!(error.contains("(exit status: 5)"), "{error}");
}

/// P5: a server that does not start is tried a few times, then left alone; whoever
/// calls meanwhile is told at once why, and for how long. A person may have it tried again.
#[tokio::test]
async fn a_crash_loop_suspends_the_server() {
    let house = House::with(quick(), mcpact_engine::client::EraMode::Legacy, &["broken"]);
    let visit = || house.try_connect(house.builder(Revision::V2025_11_25));
    for _ in 0..3 {
        let error = told(&visit().await.unwrap_err());
        assert!(error.contains("it is broken"), "{error}");
    }
    let starts = house.started().len();
    for _ in 0..50 {
        let error = told(&visit().await.unwrap_err());
        assert!(error.contains("failed 3 times"), "{error}");
    }
    assert_eq!(house.started().len(), starts);
    assert!(matches!(
        house.bridge.status().state,
        ServerState::Suspended { .. }
    ));
    house.remove("broken");
    house.bridge.forgive();
    let client = visit().await.unwrap();
    call(&client, "who").await.unwrap();
}

/// Many who wait for a start that fails fail with it; it is not tried once for each.
#[tokio::test]
async fn all_who_wait_for_a_failing_start_fail() {
    let house = House::with(quick(), mcpact_engine::client::EraMode::Legacy, &["broken"]);
    let visits = (0..20).map(|_| house.try_connect(house.builder(Revision::V2025_11_25)));
    for visit in futures_util::future::join_all(visits).await {
        let error = told(&visit.unwrap_err());
        assert!(error.contains("it is broken"), "{error}");
    }
    assert_eq!(house.bridge.status().starts, 1);
}

/// A server that takes too long to start is given up, and nothing of it is left.
#[tokio::test]
async fn a_slow_start_has_an_end() {
    let run = RunSettings {
        start_timeout: Duration::from_millis(200),
        ..quick()
    };
    // It never answers the question about its era.
    let house = House::with(run, mcpact_engine::client::EraMode::Modern, &[]);
    let visit = house
        .try_connect(house.builder(Revision::V2025_11_25))
        .await;
    let error = told(&visit.unwrap_err());
    assert!(error.contains("`start_seconds`"), "{error}");
    house
        .until("it is gone", |house| house.alive().is_empty())
        .await;
}

/// A call that was not written before its server died is told so; one that was written may have run.
#[tokio::test]
async fn a_call_that_was_not_written_is_told_so() {
    let house = House::new(quick());
    let client = house.connect(Revision::V2025_11_25).await;
    let first = call(&client, "who").await.unwrap();
    freeze(first);
    let in_flight = |number| {
        move |house: &House| {
            let status = house.bridge.status();
            status
                .instances
                .first()
                .is_some_and(|one| one.in_flight == number)
        }
    };
    // More than a pipe holds, so that whatever comes later waits here.
    let filling = client.clone();
    let long = serde_json::json!({"text": "x".repeat(1 << 20)});
    let filling = tokio::spawn(async move { filling.call_tool("who", long).await });
    house.until("it is being written", in_flight(1)).await;
    let waiting = calling(&client, "who");
    house.until("it waits", in_flight(2)).await;
    kill(first);
    let error = told(&filling.await.unwrap().unwrap_err());
    assert!(!error.contains("has not seen"), "{error}");
    let error = told(&waiting.await.unwrap().unwrap_err());
    assert!(
        error.contains("the server has not seen this call"),
        "{error}"
    );
}

/// Who may not wait while a failed server is left alone is told of the failure, not that there is no room.
#[tokio::test]
async fn who_may_not_wait_is_told_what_for() {
    let second = Duration::from_secs(1);
    let mut run = RunSettings {
        queue: 0,
        ..quick()
    };
    (run.restarts.backoff, run.restarts.backoff_max) = (second * 2, second * 2);
    let house = House::new(run);
    let client = house.connect(Revision::V2025_11_25).await;
    kill(call(&client, "who").await.unwrap());
    house
        .until("it is noted", |house| house.bridge.status().failures == 1)
        .await;
    let error = told(&call(&client, "who").await.unwrap_err());
    assert!(error.contains("the server failed once, because"), "{error}");
}
