//! A revision that is added to the tables is negotiated, classified and served without other changes.
//!
//! The feature `pretend-revision` adds a sixth, modern revision: the fifth with the method
//! `tools/describe`, without `icons` of tools, and with -32002 for missing resources.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

use std::collections::VecDeque;
use std::sync::Arc;

use mcpact_engine::capability::CapabilitySet;
use mcpact_engine::classify::{HeaderField, HttpFacts, TransportFacts};
use mcpact_engine::client::{self, Client, ClientTerms, Phase, TransportKind};
use mcpact_engine::effect::Effect;
use mcpact_engine::negotiate::{Offer, negotiate};
use mcpact_engine::policy::{Policy, Reading};
use mcpact_engine::revisions::{RevisionId, RevisionSet};
use mcpact_engine::server::{self, Server, ServerTerms};
use mcpact_engine::time::Moment;
use mcpact_spec::{Era, Method, Revision, Side};
use mcpact_wire::model::implementation::Implementation;
use serde_json::{Value, json};

const SIXTH: Revision = Revision::V2099_01_01;

fn supporting(revisions: RevisionSet) -> Policy {
    let mut policy = Policy::default();
    policy.version.supported = revisions;
    policy
}

/// Every set of revisions.
fn sets() -> impl Iterator<Item = RevisionSet> {
    (0..1_u8 << Revision::COUNT).map(|bits| {
        let members = Revision::ALL
            .into_iter()
            .filter(|r| bits >> r.index() & 1 == 1);
        members.fold(RevisionSet::NONE, RevisionSet::with)
    })
}

fn without_sixth(set: RevisionSet) -> RevisionSet {
    set.iter()
        .filter(|r| *r != SIXTH)
        .fold(RevisionSet::NONE, RevisionSet::with)
}

fn new_server(revisions: RevisionSet) -> Server {
    let info = Implementation::new("server", "1");
    let tools = CapabilitySet::parse(Side::Server, Some(r#"{"tools":{}}"#), Reading::Strict);
    let terms = ServerTerms::new(info, tools.unwrap(), supporting(revisions));
    Server::new(Arc::new(terms), Moment::ZERO)
}

fn new_client(revisions: RevisionSet) -> Client {
    let info = Implementation::new("client", "1");
    let set = CapabilitySet::empty(Side::Client);
    let mut terms = ClientTerms::new(info, set, supporting(revisions));
    terms.transport = TransportKind::Stream;
    Client::new(Arc::new(terms))
}

/// Lets a client and a server negotiate over a stream; none if they do not agree.
fn agreed(client: RevisionSet, server: RevisionSet) -> Option<Revision> {
    let (mut client, mut server) = (new_client(client), new_server(server));
    let mut to_server = VecDeque::new();
    for input in [client::Input::Open, client::Input::Connected] {
        let step = client.handle(input, Moment::ZERO);
        to_server.extend(step.effects.into_iter().filter_map(written));
        client = step.next;
    }
    while let Some(text) = to_server.pop_front() {
        let bytes = text.as_bytes();
        let facts = TransportFacts::Stream;
        let step = server.handle(server::Input::Bytes { bytes, facts }, Moment::ZERO);
        server = step.next;
        for answer in step.effects.into_iter().filter_map(written) {
            let bytes = answer.as_bytes();
            let http_status = None;
            let step = client.handle(client::Input::Bytes { bytes, http_status }, Moment::ZERO);
            to_server.extend(step.effects.into_iter().filter_map(written));
            client = step.next;
        }
    }
    match client.phase() {
        Phase::Ready(pact) => Some(pact.revision()),
        Phase::Failed(_) => None,
        phase => panic!("the client still waits: {phase:?}"),
    }
}

fn written(effect: Effect<'_>) -> Option<String> {
    match effect {
        Effect::Write(text) | Effect::Reply { text, .. } => Some(text),
        _ => None,
    }
}

#[test]
fn two_peers_of_six_revisions_agree_on_the_sixth() {
    assert_eq!(Revision::ALL.len(), 6);
    assert_eq!(Revision::newest(Era::Modern), SIXTH);
    assert_eq!(agreed(RevisionSet::ALL, RevisionSet::ALL), Some(SIXTH));
}

/// A peer that does not know the sixth revision gets the agreement that it got before.
#[test]
fn peers_of_five_revisions_agree_as_before() {
    let mut pairs = 0;
    for one in sets() {
        for other in sets().filter(|set| !set.contains(SIXTH)) {
            let before = without_sixth(one);
            let expected = Some(before).filter(|set| !set.is_empty());
            let as_client = expected.and_then(|before| agreed(before, other));
            assert_eq!(
                agreed(one, other),
                as_client,
                "client {one}, server {other}"
            );
            let as_server = expected.and_then(|before| agreed(other, before));
            assert_eq!(
                agreed(other, one),
                as_server,
                "client {other}, server {one}"
            );
            pairs += 1;
        }
    }
    assert_eq!(pairs, 64 * 32);
    let five = without_sixth(RevisionSet::ALL);
    assert_eq!(agreed(RevisionSet::ALL, five), Some(Revision::V2026_07_28));
}

#[test]
fn documents_negotiate_like_the_machines() {
    let offer = |set: RevisionSet| Offer {
        versions: set.iter().map(RevisionId::Known).collect(),
        capabilities: Some("{}"),
        info: None,
    };
    let all = RevisionSet::ALL;
    let five = without_sixth(all);
    for (client, server, expected) in [
        (all, all, SIXTH),
        (all, five, Revision::V2026_07_28),
        (five, all, Revision::V2026_07_28),
    ] {
        let outcome = negotiate(&offer(client), &offer(server), &Policy::default());
        assert_eq!(outcome.pact.unwrap().revision(), expected);
    }
}

fn request(version: &str, method: Method) -> String {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": version,
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let params = json!({"name": "t", "_meta": meta});
    json!({"jsonrpc": "2.0", "id": 1, "method": method.as_str(), "params": params}).to_string()
}

fn http(version: &str) -> TransportFacts<'_> {
    TransportFacts::Http(HttpFacts {
        version: HeaderField::Once(version),
        method: HeaderField::Once(Method::ToolsCall.as_str()),
        name: HeaderField::Once("t"),
        ..HttpFacts::BARE_POST
    })
}

#[test]
fn a_request_of_the_sixth_revision_is_served() {
    let text = request("2099-01-01", Method::ToolsCall);
    for facts in [TransportFacts::Stream, http("2099-01-01")] {
        let bytes = text.as_bytes();
        let input = server::Input::Bytes { bytes, facts };
        let step = new_server(RevisionSet::ALL).handle(input, Moment::ZERO);
        let served = step.effects.into_iter().find_map(|effect| match effect {
            Effect::Serve(call) => Some(call),
            _ => None,
        });
        let call = served.unwrap();
        assert_eq!(call.pact.revision(), SIXTH);
        assert_eq!(call.method, Some(Method::ToolsCall));
    }
}

#[test]
fn the_new_method_is_served_under_the_sixth_revision_only() {
    for (version, code) in [("2099-01-01", None), ("2026-07-28", Some(-32601))] {
        let text = request(version, Method::ToolsDescribe);
        let input = server::Input::Bytes {
            bytes: text.as_bytes(),
            facts: TransportFacts::Stream,
        };
        let step = new_server(RevisionSet::ALL).handle(input, Moment::ZERO);
        let mut effects = step.effects.into_iter();
        let refused = effects.find_map(|effect| match effect {
            Effect::Serve(call) => {
                assert_eq!(call.method, Some(Method::ToolsDescribe));
                Some(None)
            }
            Effect::Reply { text, .. } => {
                let error: Value = serde_json::from_str(&text).unwrap();
                Some(error["error"]["code"].as_i64())
            }
            _ => None,
        });
        assert_eq!(refused.unwrap(), code, "{version}");
    }
}

#[test]
fn an_unsupported_version_is_refused_with_all_six() {
    let five = without_sixth(RevisionSet::ALL);
    for (server, version, newest) in [
        (RevisionSet::ALL, "2100-01-01", "2099-01-01"),
        (five, "2099-01-01", "2026-07-28"),
    ] {
        let text = request(version, Method::ToolsCall);
        let input = server::Input::Bytes {
            bytes: text.as_bytes(),
            facts: http(version),
        };
        let step = new_server(server).handle(input, Moment::ZERO);
        let reply = step.effects.into_iter().find_map(|effect| match effect {
            Effect::Reply {
                text, http_status, ..
            } => Some((text, http_status)),
            _ => None,
        });
        let (text, status) = reply.unwrap();
        let error: Value = serde_json::from_str(&text).unwrap();
        assert_eq!((&error["error"]["code"], status), (&json!(-32022), 400));
        let supported = &error["error"]["data"]["supported"];
        assert_eq!(*supported, json!(server.names()));
        assert_eq!(supported[0], newest);
    }
}
