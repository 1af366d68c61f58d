//! Servers that crash or fail to start.

use std::time::Duration;

use mcpact_config::{Restarts, RunSettings, Strategy};
use mcpact_gateway::{InstanceState, ServerState};
use mcpact_spec::Revision;

use crate::fixture::{Fixture, call, error_text, freeze, kill, spawn_call};

fn short_backoff() -> RunSettings {
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

/// P5: in-flight calls of a killed server fail with its exit status, and the next call starts another instance.
#[tokio::test]
async fn killed_server_is_replaced() {
    let fixture = Fixture::new(short_backoff());
    let client = fixture.connect(Revision::V2025_11_25).await;
    let first = call(&client, "pid").await.unwrap();
    let calls: Vec<_> = (0..8).map(|_| spawn_call(&client, "slow")).collect();
    fixture
        .until_status(|status| status.instances[0].in_flight == 8)
        .await;
    kill(first);
    let by_signal = "the server process ended (signal: 9 (SIGKILL))";
    for call in calls {
        let error = error_text(&call.await.unwrap().unwrap_err());
        assert!(error.contains(by_signal), "{error}");
    }
    let second = call(&client, "pid").await.unwrap();
    assert_ne!(first, second);
    let status = fixture.bridge.status();
    let why = String::from(by_signal);
    assert_eq!(
        status.ended[0].state,
        InstanceState::Failed { why: why.into() }
    );
    assert_eq!((status.starts, status.failures), (2, 0));
    let error = error_text(&call(&client, "die").await.unwrap_err());
    assert!(error.contains("(exit status: 5)"), "{error}");
}

/// P5: a server that fails to start is suspended. Calls are refused at once with the cause, until the failures are reset.
#[tokio::test]
async fn crash_loop_suspends_the_server() {
    let fixture = Fixture::with(
        short_backoff(),
        mcpact_engine::client::EraMode::Legacy,
        &["broken"],
    );
    let connect = || fixture.try_connect(fixture.builder(Revision::V2025_11_25));
    for _ in 0..3 {
        let error = error_text(&connect().await.unwrap_err());
        assert!(error.contains("it is broken"), "{error}");
    }
    let starts = fixture.started().len();
    for _ in 0..50 {
        let error = error_text(&connect().await.unwrap_err());
        assert!(error.contains("failed 3 times"), "{error}");
    }
    assert_eq!(fixture.started().len(), starts);
    assert!(matches!(
        fixture.bridge.status().state,
        ServerState::Suspended { .. }
    ));
    fixture.remove("broken");
    fixture.bridge.forgive();
    let client = connect().await.unwrap();
    call(&client, "pid").await.unwrap();
}

#[tokio::test]
async fn concurrent_clients_share_one_failed_start() {
    let fixture = Fixture::with(
        short_backoff(),
        mcpact_engine::client::EraMode::Legacy,
        &["broken"],
    );
    let connecting = (0..20).map(|_| fixture.try_connect(fixture.builder(Revision::V2025_11_25)));
    for connected in futures_util::future::join_all(connecting).await {
        let error = error_text(&connected.unwrap_err());
        assert!(error.contains("it is broken"), "{error}");
    }
    assert_eq!(fixture.bridge.status().starts, 1);
}

#[tokio::test]
async fn slow_start_times_out_and_stops_the_process() {
    let run = RunSettings {
        start_timeout: Duration::from_millis(200),
        ..short_backoff()
    };
    // The server does not answer `server/discover`.
    let fixture = Fixture::with(run, mcpact_engine::client::EraMode::Modern, &[]);
    let connected = fixture
        .try_connect(fixture.builder(Revision::V2025_11_25))
        .await;
    let error = error_text(&connected.unwrap_err());
    assert!(error.contains("`start_seconds`"), "{error}");
    fixture.until(|fixture| fixture.alive().is_empty()).await;
}

/// After a crash, the error of a call that was not written says so; a written call may have run.
#[tokio::test]
async fn error_says_if_a_call_was_not_sent() {
    let fixture = Fixture::new(short_backoff());
    let client = fixture.connect(Revision::V2025_11_25).await;
    let first = call(&client, "pid").await.unwrap();
    freeze(first);
    let in_flight = |number| {
        move |fixture: &Fixture| {
            let status = fixture.bridge.status();
            status
                .instances
                .first()
                .is_some_and(|one| one.in_flight == number)
        }
    };
    // Fills the pipe, so that later calls wait in the gateway.
    let filling = client.clone();
    let long = serde_json::json!({"text": "x".repeat(1 << 20)});
    let filling = tokio::spawn(async move { filling.call_tool("pid", long).await });
    fixture.until(in_flight(1)).await;
    let waiting = spawn_call(&client, "pid");
    fixture.until(in_flight(2)).await;
    kill(first);
    let error = error_text(&filling.await.unwrap().unwrap_err());
    assert!(!error.contains("not sent"), "{error}");
    let error = error_text(&waiting.await.unwrap().unwrap_err());
    assert!(
        error.contains("the call was not sent to the server"),
        "{error}"
    );
}

/// A server that ends with every call is suspended, although each instance lists its tools.
#[tokio::test]
async fn server_that_dies_on_every_call_is_suspended() {
    let fixture = Fixture::new(short_backoff());
    let client = fixture.connect(Revision::V2025_11_25).await;
    for _ in 0..3 {
        let tools = client.list_tools().await.unwrap();
        assert!(!tools.is_empty());
        let error = error_text(&call(&client, "die").await.unwrap_err());
        assert!(error.contains("(exit status: 5)"), "{error}");
    }
    let error = error_text(&call(&client, "die").await.unwrap_err());
    assert!(error.contains("failed 3 times"), "{error}");
    assert_eq!(fixture.bridge.status().starts, 3);
}

/// A server that answers is replaced at once whenever it ends, more often than `failures` would suspend it.
#[tokio::test]
async fn working_server_is_never_suspended() {
    let mut run = short_backoff();
    (run.restarts.backoff, run.restarts.backoff_max) =
        (Duration::from_secs(600), Duration::from_secs(600));
    let fixture = Fixture::new(run);
    let client = fixture.connect(Revision::V2025_11_25).await;
    for _ in 0..6 {
        call(&client, "pid").await.unwrap();
        let error = error_text(&call(&client, "die").await.unwrap_err());
        assert!(error.contains("(exit status: 5)"), "{error}");
    }
    let status = fixture.bridge.status();
    assert_eq!((status.starts, status.failures), (6, 0));
}

/// A call during a backoff waits for the restart if that comes within `queue_seconds`.
#[tokio::test]
async fn call_waits_for_the_end_of_the_backoff() {
    let mut run = short_backoff();
    let backoff = Duration::from_secs(5);
    (run.restarts.backoff, run.restarts.backoff_max) = (backoff, backoff);
    let fixture = Fixture::new(run);
    let client = fixture.connect(Revision::V2025_11_25).await;
    call(&client, "die").await.unwrap_err();
    fixture.until_status(|status| status.failures == 1).await;
    call(&client, "pid").await.unwrap();
    assert_eq!(fixture.bridge.status().starts, 2);
}

/// With a full queue, a call during the backoff gets the cause of the failure instead of the queue limit.
#[tokio::test]
async fn call_during_backoff_reports_the_failure() {
    let second = Duration::from_secs(1);
    let mut run = RunSettings {
        queue: 0,
        ..short_backoff()
    };
    (run.restarts.backoff, run.restarts.backoff_max) = (second * 2, second * 2);
    let fixture = Fixture::new(run);
    let client = fixture.connect(Revision::V2025_11_25).await;
    call(&client, "die").await.unwrap_err();
    fixture.until_status(|status| status.failures == 1).await;
    let error = error_text(&call(&client, "pid").await.unwrap_err());
    assert!(error.contains("the server failed: "), "{error}");
}
