//! Random runs: clients and a server of every era that answer late, twice or never, ask, cancel, disconnect and die, with
//! a gateway between them.
//!
//! [`Record`] keeps the actions of the server and decides which outcomes a client may see. A failing run prints its
//! setting with the seed, which reproduces it.

mod client;
mod record;
mod server;

use std::sync::Arc;
use std::time::Duration;

use mcpact_gateway::{UpstreamServer, UpstreamSettings};
use mcpact_sim::seed::Seed;
use mcpact_spec::Revision;
use mcpact_translate::input::{RoundLimits, SuspendLimits};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use self::client::Visitor;
use self::record::Record;
use crate::scripted_server::{Role, ScriptedServer};

/// Time limit of the gateway for an answer of a client.
pub(super) const THINKING: Duration = Duration::from_secs(10);

/// Parameters of one random run.
#[derive(Clone, Debug)]
struct Setting {
    server: Revision,
    clients: Vec<Revision>,
    /// Number of actions of each client.
    deeds: u32,
    /// True if the server may die.
    is_mortal: bool,
    seed: u64,
}

fn settings() -> impl Strategy<Value = Setting> {
    let revision = || proptest::sample::select(Revision::ALL.to_vec());
    let clients = proptest::collection::vec(revision(), 1..5);
    (revision(), clients, 5_u32..40, any::<bool>(), any::<u64>()).prop_map(
        |(server, clients, deeds, is_mortal, seed)| Setting {
            server,
            clients,
            deeds,
            is_mortal,
            seed,
        },
    )
}

fn upstream_settings() -> UpstreamSettings {
    let mut run = UpstreamSettings::default().run;
    run.call_timeout = Duration::from_secs(120);
    run.max_instances = 32;
    UpstreamSettings {
        run,
        suspend_limits: SuspendLimits {
            ttl: THINKING,
            per_principal: 5,
            total: 6,
            ..SuspendLimits::default()
        },
        rounds: RoundLimits {
            total: Duration::from_secs(100),
            ..RoundLimits::default()
        },
        ..UpstreamSettings::default()
    }
}

async fn converse(setting: &Setting) -> Result<(), String> {
    let mut seed = Seed::new(setting.seed);
    let scripted = ScriptedServer::lines(Role::new(setting.server));
    let connections = scripted.connections();
    let record = Arc::new(Record::default());
    let upstream = UpstreamServer::new(scripted.target.clone(), upstream_settings()).unwrap();
    let server = server::Server {
        record: Arc::clone(&record),
        era: setting.server.era(),
        is_mortal: setting.is_mortal,
        seed: Seed::new(seed.draw()),
    };
    let serving = tokio::spawn(server.run(scripted));
    let visits: Vec<_> = (0..)
        .zip(&setting.clients)
        .map(|(number, revision)| {
            let visitor = Visitor {
                number,
                revision: *revision,
                record: Arc::clone(&record),
                seed: Seed::new(seed.draw()),
            };
            tokio::spawn(visitor.visit(Arc::clone(&upstream), setting.deeds))
        })
        .collect();
    for visit in visits {
        visit.await.map_err(|panic| panic.to_string())??;
    }
    // Longer than any background work may last.
    tokio::time::sleep(Duration::from_secs(600)).await;
    let holders = Arc::strong_count(&upstream);
    if holders != 1 {
        return Err(format!(
            "{holders} hold the gateway after all clients disconnected"
        ));
    }
    record.is_over()?;
    drop(upstream);
    tokio::time::sleep(Duration::from_secs(60)).await;
    serving.abort();
    let _ = serving.await;
    match Arc::strong_count(&connections) - 1 {
        0 => Ok(()),
        left => Err(format!("{left} connections are left")),
    }
}

/// Returns the number of runs; more on request.
fn cases() -> u32 {
    let asked = std::env::var("MCPACT_CONVERSATIONS").ok();
    asked.and_then(|asked| asked.parse().ok()).unwrap_or(48)
}

/// Returns a fixed seed by default, so that a change is comparable; a random one if more runs are requested.
fn seed() -> RngSeed {
    match std::env::var_os("MCPACT_CONVERSATIONS") {
        Some(_) => RngSeed::Random,
        None => RngSeed::Fixed(20_260_728),
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: cases(),
        rng_seed: seed(),
        failure_persistence: None,
        max_shrink_iters: 64,
        ..ProptestConfig::default()
    })]

    /// Every request has exactly one outcome: that of the server for this request, or a failure with a cause. No client
    /// sees the calls of another, no tool runs twice, and nothing is left when all clients disconnected.
    #[test]
    fn every_request_has_one_outcome(setting in settings()) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            .build()
            .unwrap();
        let outcome = runtime.block_on(converse(&setting));
        prop_assert_eq!(outcome, Ok(()));
    }
}
