//! Who shares an instance, and how many calls it takes.

use std::collections::BTreeSet;
use std::time::Duration;

use mcpact::model::ElicitResult;
use mcpact_config::{RunSettings, Strategy};
use mcpact_engine::client::EraMode;
use mcpact_spec::Revision;
use serde_json::Map;

use crate::house::{House, call, calling, told};

fn keeping(strategy: Strategy) -> RunSettings {
    RunSettings {
        strategy,
        ..RunSettings::default()
    }
}

async fn answering(house: &House, revisions: &[Revision]) -> BTreeSet<u32> {
    let mut answered = BTreeSet::new();
    let mut clients = Vec::new();
    for revision in revisions {
        let client = house.connect(*revision).await;
        answered.insert(call(&client, "who").await.unwrap());
        clients.push(client);
    }
    answered
}

const CROWD: [Revision; 4] = [
    Revision::V2024_11_05,
    Revision::V2025_11_25,
    Revision::V2025_11_25,
    Revision::V2026_07_28,
];

/// A stateless server serves everybody who declares the same by one instance; a stateful one has one
/// for each session.
#[tokio::test]
async fn who_shares_an_instance() {
    let stateless = House::new(keeping(Strategy::Stateless));
    assert_eq!(answering(&stateless, &CROWD).await.len(), 1);
    assert_eq!(stateless.started().len(), 1);
    let stateful = House::new(keeping(Strategy::Stateful));
    assert_eq!(answering(&stateful, &CROWD).await.len(), 4);
    assert_eq!(stateful.started().len(), 4);
}

/// A client of 2026-07-28 has an instance for itself where it has a connection for itself; all of its calls
/// go there, it is not taken away for another client, and it goes with the client.
#[tokio::test]
async fn a_connection_has_an_instance() {
    let run = RunSettings {
        max_concurrent: 1,
        max_instances: 2,
        queue: 1,
        ..keeping(Strategy::Stateful)
    };
    let house = House::new(run);
    let first = house.connect(Revision::V2026_07_28).await;
    let second = house.connect(Revision::V2026_07_28).await;
    let mine = call(&first, "who").await.unwrap();
    assert_ne!(call(&second, "who").await.unwrap(), mine);
    second.close().await;
    house
        .until("one has gone", |house| {
            house.bridge.status().instances.len() == 1
        })
        .await;
    let slow = calling(&first, "slow");
    house
        .until("it works", |house| house.state() == "busy busy")
        .await;
    let next = calling(&first, "who");
    house
        .until("one waits", |house| house.bridge.status().queued == 1)
        .await;
    house.put("go");
    for call in [slow, next] {
        assert_eq!(call.await.unwrap().unwrap(), mine);
    }
    assert_eq!(house.started().len(), 2);
}

/// Of a singleton there is one, whoever comes; it is told of nothing that not everybody can do.
#[tokio::test]
async fn a_singleton_is_alone() {
    let house = House::new(keeping(Strategy::Singleton));
    let mut pids = answering(&house, &CROWD).await;
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let builder = house
            .builder(revision)
            .on_elicitation(|_| async { Ok(ElicitResult::accept(Map::new())) });
        let client = house.try_connect(builder).await.unwrap();
        pids.insert(call(&client, "who").await.unwrap());
    }
    assert_eq!((pids.len(), house.started().len()), (1, 1));
    let handshakes = house.handshakes();
    assert_eq!(handshakes.len(), 1);
    assert!(!handshakes[0].contains("elicitation"), "{handshakes:?}");
}

/// Those who declare something else have an instance of their own, which is told of it.
#[tokio::test]
async fn who_declares_something_else_does_not_share() {
    let house = House::new(keeping(Strategy::Stateless));
    let mut pids = answering(&house, &CROWD).await;
    for _ in 0..2 {
        let builder = house
            .builder(Revision::V2025_11_25)
            .on_elicitation(|_| async { Ok(ElicitResult::accept(Map::new())) });
        let client = house.try_connect(builder).await.unwrap();
        pids.insert(call(&client, "who").await.unwrap());
    }
    assert_eq!(pids.len(), 2);
    let declared = house.handshakes();
    let with = declared.iter().filter(|one| one.contains("elicitation"));
    assert_eq!((declared.len(), with.count()), (2, 1));
}

/// Calls that an instance has no room for get another one, as many as there may be, then they wait, as
/// many as may, and the rest is refused at once, with what to do about it. That holds for servers and clients of
/// both eras.
#[tokio::test]
async fn full_instances() {
    for (mode, files) in [
        (EraMode::Legacy, [].as_slice()),
        (EraMode::Modern, &["modern"]),
    ] {
        for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
            fill(mode, files, revision).await;
        }
    }
}

async fn fill(mode: EraMode, files: &[&str], revision: Revision) {
    let run = RunSettings {
        max_concurrent: 2,
        max_instances: 2,
        queue: 1,
        ..keeping(Strategy::Stateless)
    };
    let house = House::with(run, mode, files);
    let client = house.connect(revision).await;
    let in_flight = |house: &House| -> usize {
        let status = house.bridge.status();
        status.instances.iter().map(|one| one.in_flight).sum()
    };
    let mut calls = Vec::new();
    for count in 1..=4 {
        calls.push(calling(&client, "slow"));
        house
            .until("another call", |house| in_flight(house) == count)
            .await;
    }
    assert_eq!(house.started().len(), 2);
    calls.push(calling(&client, "slow"));
    house
        .until("one waits", |house| house.bridge.status().queued == 1)
        .await;
    let refused = told(&call(&client, "who").await.unwrap_err());
    for word in [
        "busy",
        "`sh`",
        "`max_instances`",
        "`max_concurrent`",
        "`queue`",
    ] {
        assert!(refused.contains(word), "{refused}");
    }
    house.put("go");
    let mut answered = BTreeSet::new();
    for call in calls {
        answered.insert(call.await.unwrap().unwrap());
    }
    assert_eq!(answered, house.alive());
    assert_eq!((in_flight(&house), house.bridge.status().queued), (0, 0));
}

/// Nobody waits too long, and is told what the server does meanwhile.
#[tokio::test]
async fn waiting_has_an_end() {
    let run = RunSettings {
        max_concurrent: 1,
        max_instances: 1,
        queue_wait: Duration::from_millis(50),
        ..keeping(Strategy::Stateless)
    };
    let house = House::new(run);
    let client = house.connect(Revision::V2025_11_25).await;
    let slow = calling(&client, "slow");
    house
        .until("it works", |house| house.state() == "busy busy")
        .await;
    let late = told(&call(&client, "who").await.unwrap_err());
    assert!(
        late.contains("busy") && late.contains("`queue_seconds`"),
        "{late}"
    );
    house.put("go");
    slow.await.unwrap().unwrap();
}

/// Calls of clients that can be asked something take turns at an instance. Whoever waits for its turn is counted
/// among those who wait: not too many do, and nobody too long.
#[tokio::test]
async fn waiting_for_a_turn_has_an_end() {
    for (wait, is_late) in [(60_000, false), (50, true)] {
        let run = RunSettings {
            max_instances: 1,
            queue: 1,
            queue_wait: Duration::from_millis(wait),
            ..keeping(Strategy::Stateless)
        };
        let house = House::new(run);
        let builder = house
            .builder(Revision::V2026_07_28)
            .on_elicitation(|_| async { Ok(ElicitResult::accept(Map::new())) });
        let client = house.try_connect(builder).await.unwrap();
        let slow = calling(&client, "slow");
        house
            .until("it works", |house| house.state() == "busy busy")
            .await;
        let next = calling(&client, "who");
        if is_late {
            let late = told(&next.await.unwrap().unwrap_err());
            assert!(
                late.contains("turns") && late.contains("`queue_seconds`"),
                "{late}"
            );
        } else {
            house
                .until("one waits", |house| house.bridge.status().queued == 1)
                .await;
            let refused = told(&call(&client, "who").await.unwrap_err());
            assert!(
                refused.contains("turns") && refused.contains("`queue`"),
                "{refused}"
            );
            house.put("go");
            next.await.unwrap().unwrap();
        }
        house.put("go");
        slow.await.unwrap().unwrap();
        assert_eq!(house.bridge.status().queued, 0);
    }
}

/// There are never more instances than there may be, over all sessions; what a client has in its own
/// is not taken away for another one, and when a client leaves there is room.
#[tokio::test]
async fn no_more_instances_than_there_may_be() {
    let run = RunSettings {
        max_instances: 2,
        queue: 0,
        ..keeping(Strategy::Stateful)
    };
    let house = House::new(run);
    let first = house.connect(Revision::V2025_11_25).await;
    let second = house.connect(Revision::V2025_11_25).await;
    let refused = house
        .try_connect(house.builder(Revision::V2025_11_25))
        .await;
    let refused = told(&refused.unwrap_err());
    assert!(refused.contains("2 instances"), "{refused}");
    let kept = call(&first, "who").await.unwrap();
    second.close().await;
    house
        .until("one has gone", |house| {
            house.bridge.status().instances.len() == 1
        })
        .await;
    let third = house.connect(Revision::V2025_11_25).await;
    assert_ne!(call(&third, "who").await.unwrap(), kept);
    assert_eq!(call(&first, "who").await.unwrap(), kept);
}

/// Clients that declare different things, and so cannot share, take an instance from one another when it has served
/// the call that it was started for, and not before.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_waited_for_a_start_is_served_by_it() {
    let run = RunSettings {
        max_instances: 1,
        ..keeping(Strategy::Stateless)
    };
    let house = House::new(run);
    let mut clients = Vec::new();
    for can_be_asked in [false, true] {
        let mut builder = house.builder(Revision::V2026_07_28);
        if can_be_asked {
            builder = builder.on_elicitation(|_| async { Ok(ElicitResult::accept(Map::new())) });
        }
        clients.push(house.try_connect(builder).await.unwrap());
    }
    let before = house.started().len();
    let calls: Vec<_> = (0..6).map(|at| calling(&clients[at % 2], "who")).collect();
    for call in &mut calls.into_iter() {
        call.await.unwrap().unwrap();
    }
    let starts = house.started().len() - before;
    assert!(starts <= 6, "{starts} starts for 6 calls");
}

/// Many who come at once wait for the same start.
#[tokio::test]
async fn one_start_for_all_who_wait() {
    let run = RunSettings {
        max_concurrent: 20,
        ..keeping(Strategy::Stateless)
    };
    let house = House::new(run);
    let connecting = (0..20).map(|_| house.connect(Revision::V2025_11_25));
    let clients = futures_util::future::join_all(connecting).await;
    let calls = clients.iter().map(|client| call(client, "who"));
    let answered = futures_util::future::join_all(calls).await;
    let answered: BTreeSet<u32> = answered.into_iter().map(Result::unwrap).collect();
    assert_eq!((answered.len(), house.started().len()), (1, 1));
}
