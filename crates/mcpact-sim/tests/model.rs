//! The reference model against the machines, under random conversations on a faulty wire.
//!
//! A failing case is printed with its whole setting, seed included, and what was done in it.

#![expect(clippy::unwrap_used, reason = "tests")]

use std::sync::Arc;
use std::time::Duration;

use mcpact_engine::capability::CapabilitySet;
use mcpact_engine::client::TransportKind;
use mcpact_engine::pact::{Pact, Party};
use mcpact_engine::policy::Reading;
use mcpact_engine::revisions::RevisionSet;
use mcpact_sim::model::caps::Caps;
use mcpact_sim::model::{may_send, method_names};
use mcpact_sim::operations::run_operations;
use mcpact_sim::peers::every_set;
use mcpact_sim::trial::{Number, Operation, Reply, Setting, Trial};
use mcpact_sim::wire::{Faults, Order};
use mcpact_spec::{Kind, Revision, Side};
use proptest::prelude::*;

fn side() -> impl Strategy<Value = Side> {
    prop_oneof![Just(Side::Client), Just(Side::Server)]
}

fn revisions() -> impl Strategy<Value = RevisionSet> {
    let sets: Vec<_> = every_set().filter(|set| !set.is_empty()).collect();
    proptest::sample::select(sets)
}

/// Mostly rich documents: a poor one closes every gate and shows little.
fn caps(owner: Side) -> impl Strategy<Value = Caps> {
    (any::<u32>(), any::<u32>()).prop_map(move |(a, b)| Caps::of_bits(owner, a | b))
}

fn faults() -> impl Strategy<Value = Faults> {
    let order = prop_oneof![Just(Order::Fifo), Just(Order::Parallel)];
    let breaks = prop_oneof![4 => Just(None), 1 => (1_usize..30).prop_map(Some)];
    let lost = prop_oneof![3 => Just(0_u16), 1 => 0_u16..200];
    (order, 0_u64..300, 0_u16..400, lost, breaks).prop_map(
        |(order, delay, twice, lost, breaks_after)| Faults {
            order,
            delay: Duration::from_millis(delay),
            twice,
            lost,
            breaks_after,
        },
    )
}

fn settings() -> impl Strategy<Value = Setting> {
    let carrier = prop_oneof![
        Just(TransportKind::Child),
        Just(TransportKind::Stream),
        Just(TransportKind::Http)
    ];
    let who = (revisions(), revisions());
    let what = (caps(Side::Client), caps(Side::Server));
    let head_start = prop_oneof![1 => Just(0_u64), 4 => 1000_u64..20_000];
    (who, what, carrier, faults(), any::<u64>(), head_start).prop_map(
        |((client, server), (client_caps, server_caps), carrier, faults, seed, head_start)| {
            Setting {
                client,
                client_caps,
                server,
                server_caps,
                carrier,
                faults,
                seed,
                head_start: Duration::from_millis(head_start),
            }
        },
    )
}

fn operations() -> impl Strategy<Value = Vec<Operation>> {
    let number = prop_oneof![9 => Just(Number::Fresh), 1 => Just(Number::Again)];
    let with = prop_oneof![3 => Just(Reply::Echo), 1 => Just(Reply::Error)];
    let ask = (side(), any::<u8>(), any::<u8>(), number, 1_u16..60_000).prop_map(
        |(by, method, params, number, patience)| Operation::Ask {
            by,
            method,
            params,
            number,
            patience,
        },
    );
    let notify = (side(), any::<u8>(), any::<u8>(), any::<Option<u8>>()).prop_map(
        |(by, method, params, scope)| Operation::Notify {
            by,
            method,
            params,
            scope,
        },
    );
    let cancel = (side(), any::<u8>()).prop_map(|(by, which)| Operation::Cancel { by, which });
    let answer = (side(), any::<u8>(), with).prop_map(|(by, which, with)| Operation::Answer {
        by,
        which,
        with,
    });
    let wait = (0_u16..5000).prop_map(|ms| Operation::Wait { ms });
    let one = prop_oneof![
        40 => ask,
        20 => notify,
        4 => cancel,
        12 => answer,
        12 => wait,
        1 => Just(Operation::Close),
        1 => Just(Operation::Disconnect),
    ];
    proptest::collection::vec(one, 0..60)
}

fn hold(setting: Setting, operations: &[Operation]) -> Result<(), String> {
    let mut trial = Trial::open(setting)?;
    for operation in operations {
        trial.perform(operation)?;
    }
    trial.finish()
}

fn pact(revision: Revision, client: &Caps, server: &Caps) -> Pact {
    let party = |owner, caps: &Caps| Party {
        info: None,
        capabilities: Arc::new(
            CapabilitySet::parse(owner, Some(&caps.document()), Reading::Strict).unwrap(),
        ),
    };
    Pact::new(
        revision,
        party(Side::Client, client),
        party(Side::Server, server),
    )
}

/// All possible messages, with the verdict on each.
fn verdicts(pact: &Pact) -> Vec<(Side, Kind, &'static str, bool)> {
    let mut all = Vec::new();
    for method in method_names() {
        for sender in [Side::Client, Side::Server] {
            for kind in [Kind::Request, Kind::Notification] {
                let is_open = pact.rule(sender, kind, method).is_open();
                all.push((sender, kind, method, is_open));
            }
        }
    }
    all
}

fn revision() -> impl Strategy<Value = Revision> {
    proptest::sample::select(Revision::ALL.to_vec())
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(1000)
    })]

    /// L11, L15, L14, L25, N10: in any conversation on any wire the machines write exactly the messages that the model
    /// allows. Undeclared capabilities are never used on the wire. Every written request ends exactly once and with its
    /// own answer, regardless of duplicates and order. No side announces a version that it does not support.
    #[test]
    fn machines_and_model_agree(setting in settings(), operations in operations()) {
        let held = hold(setting, &operations);
        prop_assert_eq!(held, Ok(()));
    }

    /// L25: messages that all arrive twice, in any order, end no request twice and reach no other.
    #[test]
    fn copies_change_nothing(setting in settings(), operations in operations()) {
        let faults = Faults { twice: 1000, lost: 0, breaks_after: None, ..setting.faults };
        let held = hold(Setting { faults, ..setting }, &operations);
        prop_assert_eq!(held, Ok(()));
    }

    /// N10: with stray bytes on the wire, no side announces a version that it does not support, and the invariants
    /// hold.
    #[test]
    fn stray_bytes_keep_the_invariants(bytes in proptest::collection::vec(any::<u8>(), 30..400)) {
        prop_assert_eq!(run_operations(&bytes), Ok(()));
    }

    /// L11, L14, L15: a pact rules on every message as the model does.
    #[test]
    fn pacts_and_model_agree(
        revision in revision(),
        client in caps(Side::Client),
        server in caps(Side::Server),
    ) {
        for (sender, kind, method, is_open) in verdicts(&pact(revision, &client, &server)) {
            let expected = may_send(revision, &client, &server, sender, kind, method);
            prop_assert_eq!(is_open, expected, "{} {} {:?} `{}`", revision, sender, kind, method);
        }
    }

    /// N21: toggling one capability changes no verdict on a message that is gated by another.
    #[test]
    fn capabilities_are_independent(
        revision in revision(),
        client in caps(Side::Client),
        server in caps(Side::Server),
        owner in side(),
        which in any::<proptest::sample::Index>(),
    ) {
        let path = *which.get(&Caps::paths_of(owner));
        let (other_client, other_server) = match owner {
            Side::Client => (client.toggled(path), server.clone()),
            Side::Server => (client.clone(), server.toggled(path)),
        };
        let before = verdicts(&pact(revision, &client, &server));
        let after = verdicts(&pact(revision, &other_client, &other_server));
        for (before, after) in before.iter().zip(&after) {
            if before.3 != after.3 {
                prop_assert!(is_gated_by(before.2, owner, path), "{path} changed {before:?}");
            }
        }
    }
}

/// Returns whether the verdict on a method may depend on a path: because it needs the path, or one above or below it.
/// One row per family, from the text of the specification.
fn is_gated_by(method: &str, owner: Side, path: &str) -> bool {
    let family = path.split('.').next().unwrap_or(path);
    match (owner, family) {
        (Side::Client, "roots") => method.contains("roots/"),
        (Side::Client, "sampling") => method == "sampling/createMessage",
        (Side::Client, "elicitation") => method.contains("elicitation/"),
        (_, "tasks") => method.contains("tasks"),
        (Side::Server, "logging") => {
            matches!(method, "logging/setLevel" | "notifications/message")
        }
        (Side::Server, "completions") => method == "completion/complete",
        // 2024-11-05 has completion without a capability of its own.
        (Side::Server, "prompts" | "resources") => {
            method.contains(&format!("{family}/")) || method == "completion/complete"
        }
        (Side::Server, "tools") => method.contains("tools/"),
        _ => false,
    }
}
