//! Isolation of clients, as a property of random runs.
//!
//! Every client has a mark, such as `@2@`. Its calls and answers carry the mark, and all messages that a scripted server
//! sends because of them carry it, too. So a client must never receive the mark of another one. Shared messages, such as
//! changed lists, carry no mark.
//!
//! `MCPACT_CASES` sets the number of runs, `MCPACT_SEED` the only one.

mod server;
mod visitor;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use mcpact_gateway::Gateway;
use mcpact_sim::seed::Seed;
use mcpact_spec::{Era, Revision};
use serde_json::Value;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::client::Address;
use crate::rig::{catalog, gateway_of};
use crate::scripted_server::ScriptedServer;

use self::server::Script;
use self::visitor::{Place, Visitor};

/// Mark of a client.
fn mark(number: usize) -> String {
    format!("@{number}@")
}

/// Marks in a text.
fn marks(text: &str) -> BTreeSet<String> {
    let parts = text.split('@');
    let numbers = parts.filter(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()));
    numbers.map(|number| format!("@{number}@")).collect()
}

/// Events of a run, and violations.
#[derive(Debug, Default)]
struct Ledger {
    leaks: Mutex<Vec<String>>,
    counts: Mutex<BTreeMap<&'static str, usize>>,
    trace: Mutex<Vec<String>>,
    /// Task ids and states of clients, for others to try.
    carried: Mutex<Vec<Carried>>,
    /// The last mark.
    last: Mutex<usize>,
}

/// A request that only one client may make.
#[derive(Clone, Debug)]
struct Carried {
    owner: String,
    place: Place,
    is_http: bool,
    method: &'static str,
    params: Value,
}

impl Ledger {
    fn next_mark(&self) -> String {
        let mut last = self.last.lock().unwrap();
        *last += 1;
        mark(*last)
    }

    fn count(&self, what: &'static str) {
        *self.counts.lock().unwrap().entry(what).or_default() += 1;
    }

    fn note(&self, line: String) {
        self.trace.lock().unwrap().push(line);
    }

    /// Checks that a message belongs to its receiver.
    fn check(&self, receiver: &str, message: &Value) {
        let text = message.to_string();
        if marks(&text).iter().any(|mark| mark != receiver) {
            self.leak(format!("{receiver} received {text}"));
        }
    }

    fn leak(&self, what: String) {
        self.note(format!("LEAK {what}"));
        self.leaks.lock().unwrap().push(what);
    }
}

/// Clock of a run. Sockets need the real clock, so waits must be short there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Clock {
    Paused,
    Real,
}

/// Parameters of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Case {
    clock: Clock,
    server: Revision,
    is_http: bool,
    strategy: &'static str,
    max_instances: u64,
    max_concurrent: u64,
    clients: u64,
}

impl Case {
    fn draw(seed: &mut Seed, clock: Clock) -> Self {
        let servers = [
            Revision::V2025_06_18,
            Revision::V2025_11_25,
            Revision::V2026_07_28,
        ];
        let strategies = ["stateless", "stateful", "persistent", "singleton"];
        Self {
            clock,
            is_http: clock == Clock::Real && seed.happens(600),
            server: pick(seed, &servers),
            strategy: pick(seed, &strategies),
            max_instances: match clock {
                Clock::Paused => pick(seed, &[1, 2, 4, 8]),
                Clock::Real => 8,
            },
            max_concurrent: pick(seed, &[1, 8]),
            clients: 2 + seed.below(4),
        }
    }

    /// Returns `true` if a client has instances that no other client uses.
    fn is_apart(&self) -> bool {
        self.strategy == "stateful" && !(self.is_http && self.server.era() == Era::Modern)
    }

    /// Returns `true` if the config shares server state among clients.
    fn is_common(&self) -> bool {
        self.strategy == "singleton"
    }

    fn config(&self, launch: &str) -> String {
        let Self {
            strategy,
            max_instances,
            max_concurrent,
            ..
        } = self;
        let sharing = match *strategy {
            "singleton" => String::from("declare = [\"elicitation\", \"roots\", \"sampling\"]"),
            _ => format!("max_instances = {max_instances}"),
        };
        format!(
            "[gateway]\nlisten = \"127.0.0.1:0\"\n[servers.s]\n{launch}\nhealth = \"off\"\nstrategy = \"{strategy}\"\n\
             {sharing}\nmax_concurrent = {max_concurrent}\nqueue_seconds = 3\nbackoff_seconds = 0.05\n\
             backoff_max_seconds = 0.05\nfailures = 1000\n"
        )
    }
}

fn pick<T: Copy>(seed: &mut Seed, of: &[T]) -> T {
    let at = usize::try_from(seed.below(of.len() as u64)).unwrap();
    of[at]
}

/// Endpoints of a run.
struct Addresses {
    gateway: Arc<Gateway>,
    origin: Option<String>,
}

impl Addresses {
    fn draw(&self, seed: &mut Seed) -> (Place, Address) {
        let Some(origin) = &self.origin else {
            return (Place::All, Address::Link);
        };
        match seed.below(3) {
            0 => (Place::All, Address::Link),
            1 => (Place::All, Address::Url(format!("{origin}/mcp"))),
            _ => (
                Place::Single,
                Address::Url(format!("{origin}/servers/s/mcp")),
            ),
        }
    }
}

/// Runs one case. Returns the counts of events.
async fn run(number: u64, clock: Clock) -> BTreeMap<&'static str, usize> {
    let mut seed = Seed::new(number);
    let case = Case::draw(&mut seed, clock);
    let role = server::role(case.server);
    let stage = match case.is_http {
        true => ScriptedServer::http(role).await,
        false => ScriptedServer::lines(role),
    };
    let target = stage.target.clone();
    let ledger = Arc::<Ledger>::default();
    Script::start(case, stage, &ledger);
    let gateway = gateway_of(&target, |launch| catalog(&case.config(launch)));
    let origin = match clock {
        Clock::Real => {
            let site = gateway.listen().await.unwrap();
            let origin = site.origin();
            tokio::spawn(site.run(std::future::pending()));
            Some(origin)
        }
        Clock::Paused => None,
    };
    let addresses = Arc::new(Addresses {
        gateway: Arc::clone(&gateway),
        origin,
    });
    let (done, all_done) = watch::channel(false);
    let mut visitors = JoinSet::new();
    let (finish, mut finished) = tokio::sync::mpsc::unbounded_channel();
    for _ in 0..case.clients {
        let seed = Seed::new(seed.draw());
        let (addresses, ledger) = (Arc::clone(&addresses), Arc::clone(&ledger));
        let (finish, all_done) = (finish.clone(), all_done.clone());
        visitors.spawn(async move {
            let visit = Visitor::run(addresses, case, seed, ledger, finish, all_done);
            visit.await;
        });
    }
    let what = format!("seed {number}: {case:?}");
    drop(finish);
    let mut left = case.clients;
    while left > 0 {
        tokio::select! {
            Some(()) = finished.recv() => left -= 1,
            Some(ended) = visitors.join_next() => {
                let trace = ledger.trace.lock().unwrap();
                panic!("{what}: a client ended early: {ended:?}\n{}", trace.join("\n"));
            }
        }
    }
    let _ = done.send(true);
    while let Some(ended) = visitors.join_next().await {
        ended.unwrap_or_else(|why| panic!("{what}: {why}"));
    }
    let leaks = ledger.leaks.lock().unwrap();
    let trace = ledger.trace.lock().unwrap();
    assert!(
        leaks.is_empty(),
        "{what}\n{}\n\n{}",
        leaks.join("\n"),
        trace.join("\n")
    );
    drop(gateway);
    ledger.counts.lock().unwrap().clone()
}

/// Returns the seeds to run.
fn chosen(usual: u64) -> Vec<u64> {
    let number = |name: &str| std::env::var(name).ok()?.parse::<u64>().ok();
    match (number("MCPACT_SEED"), number("MCPACT_CASES")) {
        (Some(seed), _) => vec![seed],
        (None, cases) => (0..cases.unwrap_or(usual)).collect(),
    }
}

async fn run_all(usual: u64, clock: Clock, expected: &[&str]) {
    let seeds = chosen(usual);
    let mut counts = BTreeMap::<&str, usize>::new();
    for seed in &seeds {
        for (what, count) in run(*seed, clock).await {
            *counts.entry(what).or_default() += count;
        }
    }
    // The property must not hold vacuously.
    let is_whole = seeds.len() as u64 >= usual;
    for what in expected.iter().filter(|_| is_whole) {
        let count = counts.get(what).copied().unwrap_or_default();
        assert!(count > 0, "no {what}: {counts:?}");
    }
}

/// Events that must occur in enough runs.
const EXPECTED: [&str; 12] = [
    "answer",
    "cancelled",
    "elicitation",
    "kept",
    "list",
    "log",
    "progress",
    "roots",
    "sampling",
    "stolen",
    "task",
    "update",
];

/// Clients and servers in memory.
#[tokio::test(start_paused = true)]
async fn no_client_receives_what_belongs_to_another() {
    run_all(60, Clock::Paused, &EXPECTED).await;
}

/// Clients and servers on stdio and HTTP, at every address of the gateway.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_client_receives_what_belongs_to_another_on_http() {
    run_all(20, Clock::Real, &EXPECTED).await;
}
