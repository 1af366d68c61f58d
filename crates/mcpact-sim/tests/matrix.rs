//! Every set of revisions against every other, on every carrier.

#![expect(clippy::panic, reason = "tests")]

use mcpact_engine::client::{EraMode, Failure, Phase, ProbeFailure, TransportKind};
use mcpact_engine::refusal::{Incompatible, Refusal};
use mcpact_engine::revisions::RevisionSet;
use mcpact_sim::model::ledger::honest_versions;
use mcpact_sim::model::{Outcome, expected_outcome};
use mcpact_sim::pair::{Pair, Pause, Setup};
use mcpact_sim::peers::{
    self, FULL_CLIENT, FULL_SERVER, dual, every_set, exactly, legacy_only, legacy_up_to,
    modern_only,
};
use mcpact_sim::{event::Event, pair};
use mcpact_spec::{Era, Revision, Side};

const CARRIERS: [TransportKind; 3] = [
    TransportKind::Child,
    TransportKind::Stream,
    TransportKind::Http,
];

fn meet(client: RevisionSet, server: RevisionSet, carrier: TransportKind) -> Pair {
    let mut terms = peers::client(client, FULL_CLIENT);
    terms.transport = carrier;
    let mut pair = Setup::new(terms, peers::server(server, FULL_SERVER)).open();
    assert_eq!(pair.run_until_quiet(), Pause::Quiet);
    pair
}

fn outcome(pair: &Pair) -> Outcome {
    match pair.client().phase() {
        Phase::Ready(pact) => Outcome::Agreed(pact.revision()),
        Phase::Failed(_) => Outcome::Failed,
        other => panic!("neither agreed nor failed: {other:?}"),
    }
}

fn failure(pair: &Pair) -> Failure {
    match pair.client().phase() {
        Phase::Failed(failure) => failure.clone(),
        other => panic!("not failed: {other:?}"),
    }
}

/// Checks that both sides agree on the state of the conversation.
fn both_agree(pair: &Pair, label: &str) {
    let Outcome::Agreed(revision) = outcome(pair) else {
        return;
    };
    let methods = pair.methods_written(Side::Client);
    match revision.era() {
        Era::Modern => assert!(!methods.contains(&"initialize".to_owned()), "{label}"),
        Era::Legacy => {
            let server = pair.server().phase().pact().map(|pact| pact.revision());
            assert_eq!(server, Some(revision), "{label}");
            assert_eq!(
                methods.last().map(String::as_str),
                Some("notifications/initialized"),
                "{label}"
            );
        }
    }
}

fn check(client: RevisionSet, server: RevisionSet, carrier: TransportKind) {
    let label = format!("client [{client}] server [{server}] {carrier:?}");
    let pair = meet(client, server, carrier);
    assert_eq!(outcome(&pair), expected_outcome(client, server), "{label}");
    both_agree(&pair, &label);
    assert_eq!(
        honest_versions(pair.events(), client, server),
        Ok(()),
        "{label}"
    );
}

/// N15, N13, N14, N10: all 32 sets of revisions against all 32, on all three transports, end as in the compatibility
/// matrix of 2026-07-28 and the version negotiation of 2025-11-25, and no side announces a version that it does not
/// support.
#[test]
fn every_set_of_revisions_meets_every_other() {
    for client in every_set() {
        for server in every_set() {
            for carrier in CARRIERS {
                check(client, server, carrier);
            }
        }
    }
}

/// N15: the five single revisions against each other agree exactly on the diagonal.
#[test]
fn single_revisions_agree_with_themselves_only() {
    for ours in Revision::ALL {
        for theirs in Revision::ALL {
            for carrier in CARRIERS {
                let pair = meet(exactly(ours), exactly(theirs), carrier);
                let expected = if ours == theirs {
                    Outcome::Agreed(ours)
                } else {
                    Outcome::Failed
                };
                assert_eq!(outcome(&pair), expected, "{ours} {theirs} {carrier:?}");
            }
        }
    }
}

/// N15, N13, N14, N3, N4: the seven rows of the compatibility matrix, with the newest version that
/// both speak wherever it works.
#[test]
fn the_rows_of_the_compatibility_matrix() {
    for carrier in CARRIERS {
        let end = |client, server| outcome(&meet(client, server, carrier));
        let modern = Outcome::Agreed(Revision::V2026_07_28);
        assert_eq!(end(modern_only(), modern_only()), modern);
        assert_eq!(end(modern_only(), legacy_only()), Outcome::Failed);
        assert_eq!(end(dual(), modern_only()), modern);
        assert_eq!(end(legacy_only(), modern_only()), Outcome::Failed);
        for newest in legacy_only().iter() {
            let legacy = Outcome::Agreed(newest);
            assert_eq!(end(dual(), legacy_up_to(newest)), legacy);
            assert_eq!(end(dual(), exactly(newest)), legacy);
            assert_eq!(end(legacy_up_to(newest), dual()), legacy);
            assert_eq!(end(exactly(newest), dual()), legacy);
            assert_eq!(end(legacy_only(), legacy_up_to(newest)), legacy);
            assert_eq!(end(legacy_up_to(newest), legacy_only()), legacy);
        }
    }
}

/// N15, N13: a modern client meets a legacy server, fails for a reason that has a type, and never
/// writes `initialize`.
#[test]
fn a_modern_client_fails_at_a_legacy_server_without_a_handshake() {
    for newest in legacy_only().iter() {
        for carrier in CARRIERS {
            let pair = meet(modern_only(), legacy_up_to(newest), carrier);
            assert_eq!(pair.methods_written(Side::Client), ["server/discover"]);
            let failure = failure(&pair);
            assert!(
                matches!(
                    failure,
                    Failure::Probe(ProbeFailure::Incompatible(
                        Incompatible::NoCommonVersion { .. }
                    ))
                ),
                "{failure:?}"
            );
            assert!(!pair.is_up(), "the client hangs up");
        }
    }
}

/// N15: a legacy client meets a modern server; the error that it gets names the versions that it
/// could have had.
#[test]
fn a_legacy_client_is_told_the_versions_of_a_modern_server() {
    for ours in legacy_only().iter() {
        for carrier in CARRIERS {
            let pair = meet(legacy_up_to(ours), modern_only(), carrier);
            assert_eq!(pair.methods_written(Side::Client), ["initialize"]);
            let answers: Vec<serde_json::Value> = pair
                .written()
                .filter(|(from, _)| *from == Side::Server)
                .map(|(_, text)| serde_json::from_str(text).unwrap())
                .collect();
            assert_eq!(answers.len(), 1);
            assert_eq!(
                answers[0]["error"]["data"]["supported"],
                serde_json::json!(["2026-07-28"])
            );
            assert!(matches!(failure(&pair), Failure::Rejected { code, .. } if code < 0));
        }
    }
}

/// N9: a client that cannot speak the server's answer leaves without confirming, and knows both
/// what was answered and what it speaks itself.
#[test]
fn unsupported_version_in_the_answer_ends_the_connection() {
    for ours in legacy_only().iter() {
        for theirs in legacy_only().iter().filter(|r| *r != ours) {
            let pair = meet(exactly(ours), exactly(theirs), TransportKind::Stream);
            assert_eq!(pair.methods_written(Side::Client), ["initialize"]);
            let failure = failure(&pair);
            let Failure::Refused(Refusal::PeerIncompatible(Incompatible::Answered {
                answered,
                ours: spoken,
            })) = failure
            else {
                panic!("{failure:?}");
            };
            assert_eq!(answered.known(), Some(theirs));
            assert_eq!(spoken, exactly(ours));
            assert!(!pair.is_up(), "the client hangs up");
        }
    }
}

/// N13: mode and floor narrow what a client speaks, and the matrix holds for what is left.
#[test]
fn modes_and_floors_only_narrow_the_matrix() {
    let pins = Revision::ALL.map(EraMode::Pin);
    let modes = [EraMode::Auto, EraMode::Legacy, EraMode::Modern];
    let floors = Revision::ALL.map(Some).into_iter().chain([None]);
    for (floor, server) in floors.flat_map(|f| every_set().map(move |s| (f, s))) {
        for mode in modes.into_iter().chain(pins) {
            let mut terms = peers::client(dual(), FULL_CLIENT);
            (terms.mode, terms.floor) = (mode, floor);
            let left = dual()
                .iter()
                .filter(|r| match mode {
                    EraMode::Auto => true,
                    EraMode::Legacy => *r != Revision::V2026_07_28,
                    EraMode::Modern => *r == Revision::V2026_07_28,
                    EraMode::Pin(only) => *r == only,
                })
                .filter(|r| floor.is_none_or(|floor| *r >= floor))
                .fold(RevisionSet::NONE, RevisionSet::with);
            let mut pair = Setup::new(terms, peers::server(server, FULL_SERVER)).open();
            assert_eq!(pair.run_until_quiet(), Pause::Quiet);
            assert_eq!(
                outcome(&pair),
                expected_outcome(left, server),
                "{mode:?} {floor:?} [{server}]"
            );
        }
    }
}

/// N14: a dual server serves a modern request beside a legacy conversation on the same connection,
/// and neither changes the other.
#[test]
fn a_dual_server_serves_both_eras_at_once() {
    let mut pair = meet(legacy_only(), dual(), TransportKind::Stream);
    let pact = pair.server().phase().pact().cloned();
    let modern = br#"{"jsonrpc":"2.0","id":"m","method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;
    pair.deliver(Side::Server, modern, None);
    let patience = mcpact_engine::outstanding::RequestTimeout::default();
    pair.ask(Side::Client, 1, "tools/list", None, patience);
    assert_eq!(pair.run_until_quiet(), pair::Pause::Quiet);
    let served: Vec<_> = pair
        .events()
        .iter()
        .filter_map(|event| match event {
            Event::Served { id, revision, .. } => Some((id.raw().to_owned(), *revision)),
            _ => None,
        })
        .collect();
    assert_eq!(
        served,
        [
            ("\"m\"".to_owned(), Revision::V2026_07_28),
            ("1".to_owned(), Revision::V2025_11_25)
        ]
    );
    assert_eq!(pair.server().phase().pact().cloned(), pact);
}
