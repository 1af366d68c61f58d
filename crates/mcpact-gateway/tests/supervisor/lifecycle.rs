//! Lifecycle of instances: start, idle stop, health checks, shutdown.

use std::sync::Arc;
use std::time::Duration;

use mcpact_config::{Health, Probe, RunSettings, Strategy};
use mcpact_engine::client::EraMode;
use mcpact_gateway::{InstanceState, StartCause, StopCause};
use mcpact_spec::Revision;

use crate::fixture::{Fixture, TIMEOUT, call, error_text, freeze, kill, spawn_call, thaw};

const SHORT: Duration = Duration::from_millis(50);

fn short_idle() -> RunSettings {
    RunSettings {
        idle: SHORT,
        ..RunSettings::default()
    }
}

/// The server starts with the first call and stops when idle. The client stays connected, and its next call starts another
/// instance.
#[tokio::test]
async fn idle_server_stops_and_the_next_call_starts_it() {
    let fixture = Fixture::new(short_idle());
    assert_eq!(fixture.state(), "asleep");
    assert_eq!(fixture.started().len(), 0);
    let client = fixture.connect(Revision::V2025_11_25).await;
    for round in 1..=3 {
        let answered = call(&client, "pid").await.unwrap();
        assert_eq!(fixture.started()[round - 1], answered);
        fixture.until_state("asleep").await;
        assert_eq!(
            fixture.alive().len(),
            0,
            "asleep after the process has exited"
        );
        let last = &fixture.bridge.status().ended[0];
        let cause = StopCause::Idle;
        assert_eq!(last.state, InstanceState::Stopped { cause });
        assert_eq!(last.cause, StartCause::Request);
        assert_eq!(last.revision, Some(Revision::V2025_11_25));
    }
    assert_eq!(fixture.bridge.status().failures, 0);
}

#[tokio::test]
async fn instance_with_a_long_call_is_not_idle() {
    let fixture = Fixture::new(short_idle());
    let client = fixture.connect(Revision::V2025_06_18).await;
    let slow = spawn_call(&client, "slow");
    fixture.until_state("busy busy").await;
    tokio::time::sleep(SHORT * 4).await;
    assert_eq!(fixture.state(), "busy busy");
    fixture.put("go");
    slow.await.unwrap().unwrap();
    assert_eq!(fixture.started().len(), 1);
}

/// Returns settings with frequent health checks, of which so many may fail in a row.
fn checked_often(failures: u32) -> RunSettings {
    RunSettings {
        health: Health {
            probe: Probe::Auto,
            interval: SHORT,
            failures,
            errors_fail: false,
        },
        ..RunSettings::default()
    }
}

/// An unresponsive instance may finish its calls, while other calls go to a new instance.
#[tokio::test]
async fn calls_avoid_an_unresponsive_instance() {
    let fixture = Fixture::new(checked_often(1000));
    let client = fixture.connect(Revision::V2025_11_25).await;
    let mine = call(&client, "pid").await.unwrap();
    let slow = spawn_call(&client, "slow");
    fixture.until_state("busy busy").await;
    freeze(mine);
    fixture
        .until_status(|status| status.instances[0].unresponsive.is_some())
        .await;
    assert_ne!(call(&client, "pid").await.unwrap(), mine);
    fixture.put("go");
    thaw(mine);
    assert_eq!(slow.await.unwrap().unwrap(), mine);
    assert_eq!(fixture.bridge.status().failures, 0);
}

/// An abandoned call does not show that its instance is healthy: the next call goes to another one, and the first is
/// stopped.
#[tokio::test]
async fn unresponsive_instance_without_calls_is_replaced() {
    let fixture = Fixture::new(checked_often(2));
    let client = fixture.connect(Revision::V2025_11_25).await;
    let frozen = call(&client, "pid").await.unwrap();
    let slow = spawn_call(&client, "slow");
    fixture.until_state("busy busy").await;
    freeze(frozen);
    fixture
        .until_status(|status| status.instances[0].unresponsive.is_some())
        .await;
    slow.abort();
    fixture
        .until_status(|status| status.instances.iter().all(|one| one.in_flight == 0))
        .await;
    let next = tokio::time::timeout(TIMEOUT, call(&client, "pid"));
    assert_ne!(next.await.unwrap().unwrap(), frozen);
    fixture
        .until(|fixture| !fixture.alive().contains(&frozen))
        .await;
}

/// A server that is stopped while it starts ends as soon as the start has finished, without waiting for calls.
#[tokio::test]
async fn shutdown_during_a_start_stops_the_server() {
    const HOUR: Duration = Duration::from_secs(3600);
    let run = RunSettings {
        drain: HOUR,
        start_timeout: HOUR,
        ..RunSettings::default()
    };
    let fixture = Fixture::with(run, EraMode::Legacy, &["late"]);
    let builder = fixture.builder(Revision::V2025_11_25);
    let connecting = fixture.try_connect(builder);
    let ending = async {
        fixture
            .until(|fixture| fixture.handshakes().len() == 1)
            .await;
        let closing = Arc::clone(&fixture.bridge).close();
        let agreeing = async {
            fixture
                .until(|fixture| fixture.state().contains("draining"))
                .await;
            fixture.remove("late");
        };
        let closed = async { tokio::join!(closing, agreeing) };
        let closed = tokio::time::timeout(Duration::from_secs(60), closed).await;
        assert!(closed.is_ok(), "{}", fixture.state());
    };
    let (_refused, ()) = tokio::join!(connecting, ending);
    assert_eq!(fixture.alive().len(), 0);
}

/// A persistent server starts without a call, does not stop when idle, and restarts after a crash.
#[tokio::test]
async fn persistent_server_always_runs() {
    let run = RunSettings {
        strategy: Strategy::Persistent,
        ..short_idle()
    };
    let fixture = Fixture::new(run);
    fixture.until_state("ready ready").await;
    assert_eq!(
        fixture.bridge.status().instances[0].cause,
        StartCause::Persistent
    );
    let client = fixture.connect(Revision::V2025_11_25).await;
    let first = call(&client, "pid").await.unwrap();
    tokio::time::sleep(SHORT * 4).await;
    assert_eq!(call(&client, "pid").await.unwrap(), first);
    kill(first);
    fixture
        .until(|fixture| fixture.started().len() == 2 && fixture.state() == "ready ready")
        .await;
    assert_ne!(call(&client, "pid").await.unwrap(), first);
}

#[tokio::test]
async fn min_ready_instances_are_kept_running() {
    let run = RunSettings {
        min_ready: 2,
        ..short_idle()
    };
    let fixture = Fixture::new(run);
    fixture.until_state("ready ready ready").await;
    tokio::time::sleep(SHORT * 4).await;
    assert_eq!(fixture.started().len(), 2);
}

/// An instance that fails its health checks is stopped, and the next call starts another one.
#[tokio::test]
async fn unhealthy_instance_is_replaced() {
    let fixture = Fixture::new(checked_often(2));
    let client = fixture.connect(Revision::V2025_11_25).await;
    let first = call(&client, "pid").await.unwrap();
    fixture.put("deaf");
    fixture.until(|fixture| fixture.alive().is_empty()).await;
    fixture.remove("deaf");
    let second = call(&client, "pid").await.unwrap();
    assert_ne!(first, second);
    let status = fixture.bridge.status();
    let cause = StopCause::Unhealthy;
    assert_eq!(status.ended[0].state, InstanceState::Stopped { cause });
    assert!(
        status
            .last_error
            .unwrap()
            .why
            .cause
            .contains("health checks failed")
    );
}

/// A legacy server that exits on the era probe is started again for the handshake, and never probed again.
#[tokio::test]
async fn server_that_exits_on_the_era_probe_is_remembered() {
    let fixture = Fixture::with(short_idle(), EraMode::Auto, &["brittle"]);
    let client = fixture.connect(Revision::V2025_11_25).await;
    call(&client, "pid").await.unwrap();
    assert_eq!(fixture.started().len(), 2);
    fixture.until_state("asleep").await;
    call(&client, "pid").await.unwrap();
    assert_eq!(fixture.started().len(), 3);
}

#[tokio::test]
async fn closed_bridge_stops_all_instances_and_starts_none() {
    let fixture = Fixture::new(RunSettings::default());
    let client = fixture.connect(Revision::V2025_11_25).await;
    call(&client, "pid").await.unwrap();
    std::sync::Arc::clone(&fixture.bridge).close().await;
    assert_eq!(fixture.alive().len(), 0);
    let error = error_text(&call(&client, "pid").await.unwrap_err());
    assert!(error.contains("was removed or is shutting down"), "{error}");
    assert_eq!(fixture.started().len(), 1);
}

/// A server that has closed its stdout gets no calls, although its process still runs.
#[tokio::test]
async fn server_with_closed_stdout_gets_no_calls() {
    for (mode, files) in [(EraMode::Legacy, &[][..]), (EraMode::Modern, &["modern"])] {
        let fixture = Fixture::with(RunSettings::default(), mode, files);
        let client = fixture.connect(Revision::V2025_11_25).await;
        let first = call(&client, "hush").await.unwrap();
        fixture.until(|fixture| fixture.has("hushed")).await;
        let next = call(&client, "pid").await.unwrap();
        assert_ne!(next, first);
        assert_eq!(fixture.started(), [first, next]);
    }
}
