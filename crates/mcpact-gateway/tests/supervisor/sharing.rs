//! Sharing of instances, and limits of calls and instances.

use std::collections::BTreeSet;
use std::time::Duration;

use mcpact_config::{RunSettings, Strategy};
use mcpact_engine::client::EraMode;
use mcpact_spec::Revision;

use crate::fixture::{Fixture, call, error_text, spawn_call};

fn with_strategy(strategy: Strategy) -> RunSettings {
    RunSettings {
        strategy,
        ..RunSettings::default()
    }
}

async fn answering_pids(fixture: &Fixture, revisions: &[Revision]) -> BTreeSet<u32> {
    let mut answered = BTreeSet::new();
    let mut clients = Vec::new();
    for revision in revisions {
        let client = fixture.connect(*revision).await;
        answered.insert(call(&client, "pid").await.unwrap());
        clients.push(client);
    }
    answered
}

const CLIENTS: [Revision; 4] = [
    Revision::V2024_11_05,
    Revision::V2025_11_25,
    Revision::V2025_11_25,
    Revision::V2026_07_28,
];

/// A stateless server shares one instance among clients with the same capabilities; a stateful one has one per session.
#[tokio::test]
async fn strategy_decides_about_sharing() {
    let stateless = Fixture::new(with_strategy(Strategy::Stateless));
    assert_eq!(answering_pids(&stateless, &CLIENTS).await.len(), 1);
    assert_eq!(stateless.started().len(), 1);
    let stateful = Fixture::new(with_strategy(Strategy::Stateful));
    assert_eq!(answering_pids(&stateful, &CLIENTS).await.len(), 4);
    assert_eq!(stateful.started().len(), 4);
}

/// A 2026-07-28 client with its own connection has its own instance. All its calls go there, and it stops with the client.
#[tokio::test]
async fn modern_client_on_its_own_connection_has_its_own_instance() {
    let run = RunSettings {
        max_concurrent: 1,
        max_instances: 2,
        queue: 1,
        ..with_strategy(Strategy::Stateful)
    };
    let fixture = Fixture::new(run);
    let first = fixture.connect(Revision::V2026_07_28).await;
    let second = fixture.connect(Revision::V2026_07_28).await;
    let mine = call(&first, "pid").await.unwrap();
    assert_ne!(call(&second, "pid").await.unwrap(), mine);
    second.close().await;
    fixture
        .until_status(|status| status.instances.len() == 1)
        .await;
    let slow = spawn_call(&first, "slow");
    fixture.until_state("busy busy").await;
    let next = spawn_call(&first, "pid");
    fixture.until_status(|status| status.queued == 1).await;
    fixture.put("go");
    for call in [slow, next] {
        assert_eq!(call.await.unwrap().unwrap(), mine);
    }
    assert_eq!(fixture.started().len(), 2);
}

/// A singleton has one instance, which is offered only capabilities that all clients have.
#[tokio::test]
async fn singleton_has_one_instance() {
    let fixture = Fixture::new(with_strategy(Strategy::Singleton));
    let mut pids = answering_pids(&fixture, &CLIENTS).await;
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let client = fixture.connect_with_elicitation(revision).await;
        pids.insert(call(&client, "pid").await.unwrap());
    }
    assert_eq!((pids.len(), fixture.started().len()), (1, 1));
    let handshakes = fixture.handshakes();
    assert_eq!(handshakes.len(), 1);
    assert!(!handshakes[0].contains("elicitation"), "{handshakes:?}");
}

#[tokio::test]
async fn clients_with_other_capabilities_do_not_share() {
    let fixture = Fixture::new(with_strategy(Strategy::Stateless));
    let mut pids = answering_pids(&fixture, &CLIENTS).await;
    for _ in 0..2 {
        let client = fixture
            .connect_with_elicitation(Revision::V2025_11_25)
            .await;
        pids.insert(call(&client, "pid").await.unwrap());
    }
    assert_eq!(pids.len(), 2);
    let declared = fixture.handshakes();
    let with = declared.iter().filter(|one| one.contains("elicitation"));
    assert_eq!((declared.len(), with.count()), (2, 1));
}

/// Calls above the limit of an instance start another one, then they wait, then they are refused with advice. This holds for
/// servers and clients of both eras.
#[tokio::test]
async fn calls_above_all_limits_are_refused() {
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
        ..with_strategy(Strategy::Stateless)
    };
    let fixture = Fixture::with(run, mode, files);
    let client = fixture.connect(revision).await;
    let in_flight = |fixture: &Fixture| -> usize {
        let status = fixture.bridge.status();
        status.instances.iter().map(|one| one.in_flight).sum()
    };
    let mut calls = Vec::new();
    for count in 1..=4 {
        calls.push(spawn_call(&client, "slow"));
        fixture.until(|fixture| in_flight(fixture) == count).await;
    }
    assert_eq!(fixture.started().len(), 2);
    calls.push(spawn_call(&client, "slow"));
    fixture.until_status(|status| status.queued == 1).await;
    let refused = error_text(&call(&client, "pid").await.unwrap_err());
    for word in [
        "busy",
        "`sh`",
        "`max_instances`",
        "`max_concurrent`",
        "`queue`",
    ] {
        assert!(refused.contains(word), "{refused}");
    }
    fixture.put("go");
    let mut answered = BTreeSet::new();
    for call in calls {
        answered.insert(call.await.unwrap().unwrap());
    }
    assert_eq!(answered, fixture.alive());
    assert_eq!(
        (in_flight(&fixture), fixture.bridge.status().queued),
        (0, 0)
    );
}

#[tokio::test]
async fn queued_call_times_out() {
    let run = RunSettings {
        max_concurrent: 1,
        max_instances: 1,
        queue_wait: Duration::from_millis(50),
        ..with_strategy(Strategy::Stateless)
    };
    let fixture = Fixture::new(run);
    let client = fixture.connect(Revision::V2025_11_25).await;
    let slow = spawn_call(&client, "slow");
    fixture.until_state("busy busy").await;
    let late = error_text(&call(&client, "pid").await.unwrap_err());
    assert!(
        late.contains("busy") && late.contains("`queue_seconds`"),
        "{late}"
    );
    fixture.put("go");
    slow.await.unwrap().unwrap();
}

/// Calls of clients with elicitation take turns on an instance. The limits of the queue apply to them.
#[tokio::test]
async fn call_that_waits_for_its_turn_is_limited_by_the_queue() {
    for (wait, is_late) in [(60_000, false), (50, true)] {
        let run = RunSettings {
            max_instances: 1,
            queue: 1,
            queue_wait: Duration::from_millis(wait),
            ..with_strategy(Strategy::Stateless)
        };
        let fixture = Fixture::new(run);
        let client = fixture
            .connect_with_elicitation(Revision::V2026_07_28)
            .await;
        let slow = spawn_call(&client, "slow");
        fixture.until_state("busy busy").await;
        let next = spawn_call(&client, "pid");
        if is_late {
            let late = error_text(&next.await.unwrap().unwrap_err());
            assert!(
                late.contains("turns") && late.contains("`queue_seconds`"),
                "{late}"
            );
        } else {
            fixture.until_status(|status| status.queued == 1).await;
            let refused = error_text(&call(&client, "pid").await.unwrap_err());
            assert!(
                refused.contains("turns") && refused.contains("`queue`"),
                "{refused}"
            );
            fixture.put("go");
            next.await.unwrap().unwrap();
        }
        fixture.put("go");
        slow.await.unwrap().unwrap();
        assert_eq!(fixture.bridge.status().queued, 0);
    }
}

/// `max_instances` holds for all sessions. An exclusive instance is not stopped for another client; its capacity is free
/// after its client has disconnected.
#[tokio::test]
async fn number_of_instances_is_limited() {
    let run = RunSettings {
        max_instances: 2,
        queue: 0,
        ..with_strategy(Strategy::Stateful)
    };
    let fixture = Fixture::new(run);
    let first = fixture.connect(Revision::V2025_11_25).await;
    let second = fixture.connect(Revision::V2025_11_25).await;
    let refused = fixture
        .try_connect(fixture.builder(Revision::V2025_11_25))
        .await;
    let refused = error_text(&refused.unwrap_err());
    assert!(refused.contains("2 instances"), "{refused}");
    let kept = call(&first, "pid").await.unwrap();
    second.close().await;
    fixture
        .until_status(|status| status.instances.len() == 1)
        .await;
    let third = fixture.connect(Revision::V2025_11_25).await;
    assert_ne!(call(&third, "pid").await.unwrap(), kept);
    assert_eq!(call(&first, "pid").await.unwrap(), kept);
}

/// Clients that cannot share replace each other's instance only after it has served the call that started it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn instance_serves_the_call_that_started_it() {
    let run = RunSettings {
        max_instances: 1,
        ..with_strategy(Strategy::Stateless)
    };
    let fixture = Fixture::new(run);
    let revision = Revision::V2026_07_28;
    let clients = [
        fixture.connect(revision).await,
        fixture.connect_with_elicitation(revision).await,
    ];
    let before = fixture.started().len();
    let calls: Vec<_> = (0..6)
        .map(|at| spawn_call(&clients[at % 2], "pid"))
        .collect();
    for call in &mut calls.into_iter() {
        call.await.unwrap().unwrap();
    }
    let starts = fixture.started().len() - before;
    assert!(starts <= 6, "{starts} starts for 6 calls");
}

#[tokio::test]
async fn concurrent_clients_wait_for_the_same_start() {
    let run = RunSettings {
        max_concurrent: 20,
        ..with_strategy(Strategy::Stateless)
    };
    let fixture = Fixture::new(run);
    let connecting = (0..20).map(|_| fixture.connect(Revision::V2025_11_25));
    let clients = futures_util::future::join_all(connecting).await;
    let calls = clients.iter().map(|client| call(client, "pid"));
    let answered = futures_util::future::join_all(calls).await;
    let answered: BTreeSet<u32> = answered.into_iter().map(Result::unwrap).collect();
    assert_eq!((answered.len(), fixture.started().len()), (1, 1));
}
