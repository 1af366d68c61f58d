//! Long conversations by chance: clients and a server of every era that answer late, twice or never,
//! ask, cancel, leave and die, with a bridge between them.
//!
//! What the server did is written down; [`Record`] says from it what a client may hear. A failing
//! conversation is printed with its setting, seed included, and is repeated by it.

mod client;
mod record;
mod server;

use std::sync::Arc;
use std::time::Duration;

use mcpact_gateway::{Bridge, BridgeSettings};
use mcpact_sim::seed::Seed;
use mcpact_spec::Revision;
use mcpact_translate::input::{RoundLimits, SuspendLimits};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use self::client::Visitor;
use self::record::Record;
use crate::stage::{Role, Stage};

/// How long a client thinks at most before the bridge gives it up.
pub(super) const THINKING: Duration = Duration::from_secs(10);

/// Who talks.
#[derive(Clone, Debug)]
struct Setting {
    server: Revision,
    clients: Vec<Revision>,
    /// How much each client does.
    deeds: u32,
    /// Whether the server may die.
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

fn bridge_settings() -> BridgeSettings {
    let mut run = BridgeSettings::default().run;
    run.call_timeout = Duration::from_secs(120);
    run.max_instances = 32;
    BridgeSettings {
        run,
        parks: SuspendLimits {
            ttl: THINKING,
            per_principal: 5,
            total: 6,
            ..SuspendLimits::default()
        },
        rounds: RoundLimits {
            total: Duration::from_secs(100),
            ..RoundLimits::default()
        },
        ..BridgeSettings::default()
    }
}

async fn converse(setting: &Setting) -> Result<(), String> {
    let mut seed = Seed::new(setting.seed);
    let stage = Stage::lines(Role::new(setting.server));
    let connections = stage.connections();
    let record = Arc::new(Record::default());
    let bridge = Bridge::new(stage.target.clone(), bridge_settings()).unwrap();
    let server = server::Server {
        record: Arc::clone(&record),
        era: setting.server.era(),
        is_mortal: setting.is_mortal,
        seed: Seed::new(seed.draw()),
    };
    let serving = tokio::spawn(server.run(stage));
    let visits: Vec<_> = (0..)
        .zip(&setting.clients)
        .map(|(number, revision)| {
            let visitor = Visitor {
                number,
                revision: *revision,
                record: Arc::clone(&record),
                seed: Seed::new(seed.draw()),
            };
            tokio::spawn(visitor.visit(Arc::clone(&bridge), setting.deeds))
        })
        .collect();
    for visit in visits {
        visit.await.map_err(|panic| panic.to_string())??;
    }
    // Longer than anything may last that nobody waits for.
    tokio::time::sleep(Duration::from_secs(600)).await;
    let holders = Arc::strong_count(&bridge);
    if holders != 1 {
        return Err(format!("{holders} hold the bridge when nobody is there"));
    }
    record.is_over()?;
    drop(bridge);
    tokio::time::sleep(Duration::from_secs(60)).await;
    serving.abort();
    let _ = serving.await;
    match Arc::strong_count(&connections) - 1 {
        0 => Ok(()),
        left => Err(format!("{left} connections are left")),
    }
}

/// How many conversations are held; more on request.
fn cases() -> u32 {
    let asked = std::env::var("MCPACT_CONVERSATIONS").ok();
    asked.and_then(|asked| asked.parse().ok()).unwrap_or(48)
}

/// The usual ones are always the same, so that a change is judged by what it changes; whoever asks for
/// more looks for what nobody has seen.
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

    /// Whatever clients and server do: every request has one outcome, which is the server's for that
    /// very request or a failure that has a cause; nobody hears of another's calls; no tool runs
    /// twice; and nothing is left when all have gone.
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
