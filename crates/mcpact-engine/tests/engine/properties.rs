//! Properties for every input.

use std::sync::Arc;

use mcpact_engine::capability::CapabilitySet;
use mcpact_engine::classify::{HeaderField, HttpFacts, SessionFact, TransportFacts};
use mcpact_engine::client::Input as ClientInput;
use mcpact_engine::policy::{Policy, Reading};
use mcpact_engine::revisions::{RevisionId, RevisionSet};
use mcpact_engine::version;
use mcpact_spec::{Capability, Revision, Side};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::*;

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[a-z\\PC]{0,6}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(any_key(), inner, 0..5)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// Keys that the tables know, and others.
fn any_key() -> impl Strategy<Value = String> {
    let known: Vec<String> = Capability::ALL
        .iter()
        .flat_map(|c| c.path().split('.'))
        .chain([
            "maxBatchSize",
            "supportedProtocolVersions",
            "levels",
            "params",
            "_meta",
            "id",
        ])
        .map(String::from)
        .collect();
    prop_oneof![3 => prop::sample::select(known), 1 => "[a-z]{1,5}"]
}

fn any_document() -> impl Strategy<Value = Value> {
    prop::collection::btree_map(any_key(), any_json(), 0..6)
        .prop_map(|map| Value::Object(map.into_iter().collect()))
}

fn any_revision() -> impl Strategy<Value = Revision> {
    prop::sample::select(Revision::ALL.to_vec())
}

proptest! {
    /// N1: arbitrary bytes never make either machine panic, in any state.
    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), open in any::<bool>()) {
        let mut server = ServerRig::new(spec_policy(), json!({"tools": {}}));
        let mut client = ClientRig::new(spec_policy(), json!({}));
        client.open();
        if open {
            server.ready("2025-03-26", json!({}));
        }
        server.input(mcpact_engine::server::Input::Bytes { bytes: &bytes, facts: TransportFacts::Stream });
        client.input(ClientInput::Bytes { bytes: &bytes, http_status: None });
    }

    /// N1, N2: arbitrary JSON as any message never panics, and every request gets exactly one reply
    /// or is served.
    #[test]
    fn arbitrary_messages_never_panic(
        method in "initialize|ping|tools/list|server/discover|x",
        params in any_json(),
        version in "\\PC{0,12}",
        http in any::<bool>(),
    ) {
        let mut server = ServerRig::new(spec_policy(), json!({"tools": {}}));
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let text = message.to_string();
        let facts = HttpFacts { version: HeaderField::Once(&version), session: SessionFact::Absent, ..HttpFacts::BARE_POST };
        let facts = if http { TransportFacts::Http(facts) } else { TransportFacts::Stream };
        let out = server.bytes_with(&text, facts);
        let ends = out.iter().filter(|o| matches!(o, Out::Reply(..) | Out::Serve(_))).count();
        prop_assert_eq!(ends, 1, "{:?}", out);
    }

    /// N10: whatever is asked for, only a version that this build speaks is answered.
    #[test]
    fn no_unspeakable_version_is_ever_announced(
        requested in prop_oneof!["\\PC{0,12}", "20[0-9]{2}-[0-1][0-9]-[0-3][0-9]"],
        supported in prop::collection::vec(any_revision(), 0..5),
    ) {
        let mut policy = spec_policy();
        policy.version.supported = RevisionSet::of(&supported);
        let set = version::announced(&policy.version);
        for revision in set.iter() {
            prop_assert!(supported.contains(&revision));
        }
        if let Ok(selection) = version::select(&policy.version, Some(&RevisionId::parse(&requested))) {
            prop_assert!(supported.contains(&selection.revision));
            prop_assert_ne!(selection.revision, Revision::V2026_07_28);
        }
    }

    /// N18: a document goes through reading and writing without losing anything that it may keep.
    #[test]
    fn a_round_trip_keeps_unknown_members(document in any_document(), extra in "[a-z]{6,9}") {
        let mut document = document;
        document[&extra] = json!({"kept": [1, {"deep": null}]});
        let set = CapabilitySet::parse(Side::Server, Some(&document.to_string()), Reading::Lenient).unwrap();
        for revision in Revision::ALL {
            let sent = parse(&set.encode(revision, &spec_policy()).0);
            if Capability::parse(Side::Server, &extra).is_none() {
                prop_assert_eq!(&sent[&extra], &document[&extra]);
            }
        }
        prop_assert_eq!(parse(set.raw()), document);
    }

    /// N24: nothing that a revision does not define is ever sent under it.
    #[test]
    fn nothing_undefined_is_sent(document in any_document(), revision in any_revision(), client in any::<bool>()) {
        let owner = if client { Side::Client } else { Side::Server };
        let set = CapabilitySet::parse(owner, Some(&document.to_string()), Reading::Lenient).unwrap();
        let (sent, _) = set.encode(revision, &spec_policy());
        let again = CapabilitySet::parse(owner, Some(&sent), Reading::Lenient).unwrap();
        for row in again.declared().iter() {
            prop_assert!(row.presence(revision).may_be_sent(), "{} under {}", row, revision);
        }
    }

    /// N19: a lenient reading never fails, and a strict one fails exactly when there is a finding.
    #[test]
    fn lenient_reading_never_fails(document in any_json()) {
        let text = document.to_string();
        let lenient = CapabilitySet::parse(Side::Client, Some(&text), Reading::Lenient).unwrap();
        let strict = CapabilitySet::parse(Side::Client, Some(&text), Reading::Strict);
        prop_assert_eq!(strict.is_err(), !lenient.findings().is_empty());
    }

    /// L7: a refused handshake leaves the machine as it was.
    #[test]
    fn a_refused_handshake_leaves_no_trace(params in any_json()) {
        let policy: Policy = mcpact_engine::policy::Profile::McpvStrict.policy();
        let mut tried = ServerRig::new(policy.clone(), json!({"tools": {}}));
        let out = tried.request(1, "initialize", params);
        prop_assume!(matches!(&out[..], [Out::Reply(v, _)] if v.get("error").is_some()));
        let mut fresh = ServerRig::new(policy, json!({"tools": {}}));
        let again = |rig: &mut ServerRig| {
            let mut all = rig.initialize("2025-11-25", json!({"roots": {}}));
            all.extend(rig.notification("notifications/initialized", json!({})));
            all.extend(rig.request(2, "tools/list", json!({})));
            all
        };
        prop_assert_eq!(again(&mut tried), again(&mut fresh));
    }

    /// L11, L15: whatever a server declares, nothing undeclared ever leaves it.
    #[test]
    fn nothing_undeclared_is_ever_written(
        own in any_document(),
        theirs in any_document(),
        revision in any_revision(),
        method in prop::sample::select(mcpact_spec::Method::ALL.to_vec()),
    ) {
        prop_assume!(revision.era() == mcpact_spec::Era::Legacy);
        let own = CapabilitySet::parse(Side::Server, Some(&own.to_string()), Reading::Lenient).unwrap();
        let info = mcpact_wire::model::implementation::Implementation::new("s", "1");
        let terms = mcpact_engine::server::ServerTerms::new(info, own, legacy_only());
        let mut server = ServerRig::with(terms);
        server.ready(revision.as_str(), theirs);
        let pact = Arc::clone(server.machine().phase().pact().unwrap());
        let asked = server.ask(1, method.as_str(), json!({}));
        let told = server.notify(method.as_str(), json!({"level": "error"}));
        for (out, kind) in [(asked, mcpact_spec::Kind::Request), (told, mcpact_spec::Kind::Notification)] {
            let was_written = out.iter().any(|o| matches!(o, Out::Write(_)));
            if was_written {
                prop_assert!(pact.rule_on(Side::Server, kind, method).is_open());
            }
        }
    }
}
