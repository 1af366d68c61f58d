//! From the first call to the idle stop, and again.

use std::sync::Arc;
use std::time::Duration;

use mcpact_config::{Health, Probe, RunSettings, Strategy};
use mcpact_engine::client::EraMode;
use mcpact_gateway::{InstanceState, StartCause, StopCause};
use mcpact_spec::Revision;

use crate::house::{House, PATIENCE, call, calling, freeze, kill, thaw, told};

const SHORT: Duration = Duration::from_millis(50);

fn restless() -> RunSettings {
    RunSettings {
        idle: SHORT,
        ..RunSettings::default()
    }
}

/// Nothing runs before somebody asks; it is stopped when nobody has asked for a while,
/// although the client stays, which notices nothing: its next call starts another one.
#[tokio::test]
async fn a_server_sleeps_while_its_clients_stay() {
    let house = House::new(restless());
    assert_eq!(house.state(), "asleep");
    assert_eq!(house.started().len(), 0);
    let client = house.connect(Revision::V2025_11_25).await;
    for round in 1..=3 {
        let answered = call(&client, "who").await.unwrap();
        assert_eq!(house.started()[round - 1], answered);
        house
            .until("it sleeps", |house| house.state() == "asleep")
            .await;
        assert_eq!(house.alive().len(), 0, "it is asleep only when it is gone");
        let last = &house.bridge.status().over[0];
        let cause = StopCause::Idle;
        assert_eq!(last.state, InstanceState::Stopped { cause });
        assert_eq!(last.cause, StartCause::Request);
        assert_eq!(last.revision, Some(Revision::V2025_11_25));
    }
    assert_eq!(house.bridge.status().failures, 0);
}

/// Who is in the middle of a call is not idle.
#[tokio::test]
async fn a_long_call_is_not_interrupted() {
    let house = House::new(restless());
    let client = house.connect(Revision::V2025_06_18).await;
    let slow = calling(&client, "slow");
    house
        .until("it works", |house| house.state() == "busy busy")
        .await;
    tokio::time::sleep(SHORT * 4).await;
    assert_eq!(house.state(), "busy busy");
    house.put("go");
    slow.await.unwrap().unwrap();
    assert_eq!(house.started().len(), 1);
}

/// Asked all the time whether it is well; so many bad answers make it failed.
fn asked_often(failures: u32) -> RunSettings {
    RunSettings {
        health: Health {
            probe: Probe::Auto,
            interval: SHORT,
            failures,
        },
        ..RunSettings::default()
    }
}

/// A server that does not answer while it has calls is left to finish them, and seen
/// meanwhile; another call does not wait behind them where there may be another instance.
#[tokio::test]
async fn who_is_silent_while_it_works_is_passed_by() {
    let house = House::new(asked_often(1000));
    let client = house.connect(Revision::V2025_11_25).await;
    let mine = call(&client, "who").await.unwrap();
    let slow = calling(&client, "slow");
    house
        .until("it works", |house| house.state() == "busy busy")
        .await;
    freeze(mine);
    house
        .until("it is silent", |house| {
            house.bridge.status().instances[0].silent.is_some()
        })
        .await;
    assert_ne!(call(&client, "who").await.unwrap(), mine);
    house.put("go");
    thaw(mine);
    assert_eq!(slow.await.unwrap().unwrap(), mine);
    assert_eq!(house.bridge.status().failures, 0);
}

/// A call that nobody waits for any more does not show that its server is well: the next one goes elsewhere,
/// and the server is ended.
#[tokio::test]
async fn who_is_silent_after_its_calls_is_replaced() {
    let house = House::new(asked_often(2));
    let client = house.connect(Revision::V2025_11_25).await;
    let frozen = call(&client, "who").await.unwrap();
    let slow = calling(&client, "slow");
    house
        .until("it works", |house| house.state() == "busy busy")
        .await;
    freeze(frozen);
    house
        .until("it is silent", |house| {
            house.bridge.status().instances[0].silent.is_some()
        })
        .await;
    slow.abort();
    house
        .until("nobody waits", |house| {
            let status = house.bridge.status();
            status.instances.iter().all(|one| one.in_flight == 0)
        })
        .await;
    let next = tokio::time::timeout(PATIENCE, call(&client, "who"));
    assert_ne!(next.await.unwrap().unwrap(), frozen);
    house
        .until("it is ended", |house| !house.alive().contains(&frozen))
        .await;
}

/// A server that shall end while it is started ends as soon as it is there, and nobody waits for calls that
/// it never had.
#[tokio::test]
async fn who_shall_go_while_it_starts_goes() {
    const HOUR: Duration = Duration::from_secs(3600);
    let run = RunSettings {
        drain: HOUR,
        start_timeout: HOUR,
        ..RunSettings::default()
    };
    let house = House::with(run, EraMode::Legacy, &["late"]);
    let builder = house.builder(Revision::V2025_11_25);
    let connecting = house.try_connect(builder);
    let ending = async {
        house
            .until("it is asked", |house| house.handshakes().len() == 1)
            .await;
        let closing = Arc::clone(&house.bridge).close();
        let agreeing = async {
            house
                .until("it shall go", |house| house.state().contains("draining"))
                .await;
            house.remove("late");
        };
        let closed = async { tokio::join!(closing, agreeing) };
        let closed = tokio::time::timeout(Duration::from_secs(60), closed).await;
        assert!(closed.is_ok(), "{}", house.state());
    };
    let (_refused, ()) = tokio::join!(connecting, ending);
    assert_eq!(house.alive().len(), 0);
}

/// A persistent server is there before anybody asks, is never stopped, and comes back by itself when
/// it dies.
#[tokio::test]
async fn a_persistent_server_is_always_there() {
    let run = RunSettings {
        strategy: Strategy::Persistent,
        ..restless()
    };
    let house = House::new(run);
    house
        .until("it is there", |house| house.state() == "ready ready")
        .await;
    assert_eq!(
        house.bridge.status().instances[0].cause,
        StartCause::Persistent
    );
    let client = house.connect(Revision::V2025_11_25).await;
    let first = call(&client, "who").await.unwrap();
    tokio::time::sleep(SHORT * 4).await;
    assert_eq!(call(&client, "who").await.unwrap(), first);
    kill(first);
    house
        .until("it is back", |house| {
            house.started().len() == 2 && house.state() == "ready ready"
        })
        .await;
    assert_ne!(call(&client, "who").await.unwrap(), first);
}

/// So many are kept ready.
#[tokio::test]
async fn so_many_are_ready() {
    let run = RunSettings {
        min_ready: 2,
        ..restless()
    };
    let house = House::new(run);
    house
        .until("two are there", |house| {
            house.state() == "ready ready ready"
        })
        .await;
    tokio::time::sleep(SHORT * 4).await;
    assert_eq!(house.started().len(), 2);
}

/// A server that does not answer when asked whether it is well is ended, and the next call starts
/// another one.
#[tokio::test]
async fn an_unwell_server_is_replaced() {
    let house = House::new(asked_often(2));
    let client = house.connect(Revision::V2025_11_25).await;
    let first = call(&client, "who").await.unwrap();
    house.put("deaf");
    house
        .until("it is ended", |house| house.alive().is_empty())
        .await;
    house.remove("deaf");
    let second = call(&client, "who").await.unwrap();
    assert_ne!(first, second);
    let status = house.bridge.status();
    let cause = StopCause::Unhealthy;
    assert_eq!(status.over[0].state, InstanceState::Stopped { cause });
    assert!(
        status
            .last_error
            .unwrap()
            .why
            .cause
            .contains("health checks failed")
    );
}

/// A legacy server that dies of the question about its era is started again for the handshake, and
/// never asked that question again.
#[tokio::test]
async fn a_server_that_dies_of_the_probe_is_remembered() {
    let house = House::with(restless(), EraMode::Auto, &["brittle"]);
    let client = house.connect(Revision::V2025_11_25).await;
    call(&client, "who").await.unwrap();
    assert_eq!(house.started().len(), 2);
    house
        .until("it sleeps", |house| house.state() == "asleep")
        .await;
    call(&client, "who").await.unwrap();
    assert_eq!(house.started().len(), 3);
}

/// When the bridge is closed nothing runs any more, and nothing is started.
#[tokio::test]
async fn nothing_is_left_when_it_is_closed() {
    let house = House::new(RunSettings::default());
    let client = house.connect(Revision::V2025_11_25).await;
    call(&client, "who").await.unwrap();
    std::sync::Arc::clone(&house.bridge).close().await;
    assert_eq!(house.alive().len(), 0);
    let error = told(&call(&client, "who").await.unwrap_err());
    assert!(error.contains("not served any more"), "{error}");
    assert_eq!(house.started().len(), 1);
}

/// A server that has ended its output is sent no call, although its process lives on: the call goes to the next
/// one.
#[tokio::test]
async fn no_call_goes_to_a_server_that_has_hushed() {
    for (mode, files) in [(EraMode::Legacy, &[][..]), (EraMode::Modern, &["modern"])] {
        let house = House::with(RunSettings::default(), mode, files);
        let client = house.connect(Revision::V2025_11_25).await;
        let first = call(&client, "hush").await.unwrap();
        house
            .until("it has hushed", |house| house.has("hushed"))
            .await;
        let next = call(&client, "who").await.unwrap();
        assert_ne!(next, first);
        assert_eq!(house.started(), [first, next]);
    }
}
