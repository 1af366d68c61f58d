//! Corner cases of the machines.

use std::sync::Arc;
use std::time::Duration;

use mcpact_engine::client::{Client, EraVerdict, Input, Phase, TransportKind};
use mcpact_engine::effect::Effect;
use mcpact_engine::outstanding::RequestTimeout;
use mcpact_engine::revisions::RevisionSet;
use mcpact_engine::server::{Input as ServerInput, Scope, Server};
use mcpact_engine::time::Moment;
use mcpact_sim::event::{Ended, Event};
use mcpact_sim::model::ledger::{LedgerState, settled_once};
use mcpact_sim::pair::{AnswerMode, Pair, Pause, ServerProcess, Setup};
use mcpact_sim::peers::{
    self, FULL_CLIENT, FULL_SERVER, NOTHING, dual, exactly, legacy_only, modern_only,
};
use mcpact_spec::{Kind, Revision, Side};
use mcpact_wire::id::Id;

fn patience(seconds: u64) -> RequestTimeout {
    RequestTimeout {
        timeout: Duration::from_secs(seconds),
        ..RequestTimeout::default()
    }
}

/// A pair after negotiation, which answers only on request of the test.
fn ready(client: RevisionSet, server: RevisionSet, carrier: TransportKind) -> Pair {
    let mut terms = peers::client(client, FULL_CLIENT);
    terms.transport = carrier;
    let mut setup = Setup::new(terms, peers::server(server, FULL_SERVER));
    setup.client_answers = AnswerMode::WhenTold;
    setup.server_answers = AnswerMode::WhenTold;
    let mut pair = setup.open();
    assert_eq!(pair.run_until_quiet(), Pause::Quiet);
    assert!(pair.client().pact().is_some());
    pair
}

/// N24, L14: a client that only opens URLs does not declare `elicitation` to a revision that has
/// only forms; both sides then hold that it may not be asked.
#[test]
fn url_only_elicitation_is_none_to_a_revision_with_forms_only() {
    let url_only = r#"{"elicitation":{"url":{}}}"#;
    let revision = Revision::V2025_06_18;
    // The server of the second pair has seen the document of a newer revision.
    for speaks in [exactly(revision), legacy_only()] {
        let client = peers::client(speaks, url_only);
        let mut pair = Setup::new(client, peers::server(exactly(revision), NOTHING)).open();
        assert_eq!(pair.run_until_quiet(), Pause::Quiet);
        let rule = |pact: &mcpact_engine::pact::Pact| {
            pact.rule(Side::Server, Kind::Request, "elicitation/create")
                .is_open()
        };
        let client = pair.client().pact().map(|pact| rule(pact));
        let server = pair.server().phase().pact().map(|pact| rule(pact));
        assert_eq!((client, server), (Some(false), Some(false)), "[{speaks}]");
    }
}

/// L23: there is no ping in the modern era, so a server that serves a modern client sends none,
/// even where it could serve a legacy one.
#[test]
fn a_dual_server_does_not_ping_a_modern_client() {
    let mut pair = ready(modern_only(), dual(), TransportKind::Stream);
    pair.ask(Side::Client, 1, "tools/list", None, patience(60));
    pair.run_for(Duration::from_secs(1));
    assert_eq!(pair.server().in_flight(), 1);
    pair.ask(Side::Server, 1, "ping", None, patience(5));
    assert_eq!(pair.methods_written(Side::Server), [""; 0]);
}

/// L25: the ids of pings before the handshake count like all others, so that no answer can belong
/// to two requests.
#[test]
fn a_ping_before_the_handshake_uses_up_its_id() {
    let client = peers::client(legacy_only(), NOTHING);
    let mut pair = Setup::new(client, peers::server(legacy_only(), NOTHING)).build();
    pair.ask(Side::Server, 5, "ping", None, patience(5));
    pair.deliver(
        Side::Server,
        br#"{"jsonrpc":"2.0","id":5,"result":{}}"#,
        None,
    );
    pair.ask(Side::Server, 5, "ping", None, patience(5));
    pair.ask(Side::Server, 4, "ping", None, patience(5));
    assert_eq!(pair.methods_written(Side::Server), ["ping"]);
}

/// Parameters that are no object are not written, whatever the message belongs to.
#[test]
fn only_objects_are_written_as_parameters() {
    let client = peers::client(legacy_only(), NOTHING);
    let mut early = Setup::new(client, peers::server(legacy_only(), NOTHING)).build();
    early.ask(Side::Server, 1, "ping", Some("[1]"), patience(5));
    assert_eq!(early.written().count(), 0);

    let mut pair = ready(modern_only(), modern_only(), TransportKind::Stream);
    pair.ask(Side::Client, 1, "tools/list", None, patience(60));
    pair.run_for(Duration::from_secs(1));
    let scope = Scope::Request(Id::number(1));
    let garbage = Some("}, not json");
    pair.notify(Side::Server, scope, "notifications/progress", garbage);
    assert_eq!(pair.methods_written(Side::Server), [""; 0]);
    let noise = pair.written().filter(|(_, text)| text.contains("not json"));
    assert_eq!(noise.count(), 0);
}

/// L1: a client that wants to end hangs up when its last request has ended, also when that took too
/// long or was given up.
#[test]
fn a_closing_client_hangs_up_however_its_last_request_ends() {
    for cancels in [None, Some(1)] {
        let mut pair = ready(dual(), dual(), TransportKind::Stream);
        pair.ask(Side::Client, 1, "tools/list", None, patience(5));
        pair.tell_client(Input::Close);
        if let Some(id) = cancels {
            pair.cancel(Side::Client, id);
        }
        assert_eq!(pair.run_until_quiet(), Pause::Quiet);
        assert_eq!(pair.client().waiting(), 0);
        assert!(matches!(pair.client().phase(), Phase::Closed));
        assert!(!pair.is_up());
    }
}

/// L24: over modern HTTP a request is given up by closing its stream, also while the client ends.
#[test]
fn a_closing_client_still_cancels_in_the_way_of_its_era() {
    let mut pair = ready(modern_only(), modern_only(), TransportKind::Http);
    pair.ask(Side::Client, 1, "tools/list", None, patience(5));
    pair.tell_client(Input::Close);
    pair.run_until_quiet();
    let methods = pair.methods_written(Side::Client);
    assert_eq!(methods, ["server/discover", "tools/list"]);
    let abandoned = |event: &Event| matches!(event, Event::Abandoned(id) if id.raw() == "1");
    assert!(pair.events().iter().any(abandoned));
}

/// L25, L27: a server that closes an idle connection ends its own requests as well.
#[test]
fn a_server_that_gives_up_waiting_ends_its_requests() {
    let client = peers::client(legacy_only(), NOTHING);
    let mut pair = Setup::new(client, peers::server(legacy_only(), NOTHING)).build();
    pair.ask(Side::Server, 1, "ping", None, patience(60));
    pair.run_until_quiet();
    pair.tell_server(ServerInput::Closed);
    assert_eq!(settled_once(pair.events(), LedgerState::Closed), Ok(()));
    let closed = |event: &Event| {
        matches!(
            event,
            Event::Settled {
                end: Ended::ConnectionClosed,
                ..
            }
        )
    };
    assert!(pair.events().iter().any(closed));
}

/// A closed machine has no deadline, so that its driver can stop.
#[test]
fn a_closed_server_has_no_deadline() {
    let terms = Arc::new(peers::server(dual(), FULL_SERVER));
    let mut server = Server::new(terms, Moment::ZERO);
    server = server.handle(ServerInput::Closed, Moment::ZERO).next;
    assert_eq!(server.next_deadline(), None);
}

/// N9: a failed client sends nothing, not even the answer to a ping in flight.
#[test]
fn a_failed_client_is_silent() {
    let mut client = peers::client(exactly(Revision::V2024_11_05), NOTHING);
    client.transport = TransportKind::Child;
    let server = peers::server(exactly(Revision::V2025_11_25), NOTHING);
    let mut pair = Setup::new(client, server).open();
    assert_eq!(pair.run_until_quiet(), Pause::Quiet);
    assert!(matches!(pair.client().phase(), Phase::Failed(_)));
    let before = pair.written().count();
    let ping = br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    pair.deliver(Side::Client, ping, None);
    assert_eq!(pair.written().count(), before);
}

/// N13: a connection without a probe teaches nothing new about probes, so it does not overwrite
/// what is known about a server that dies of them.
#[test]
fn a_fragile_server_stays_known_as_fragile() {
    let mut client = peers::client(dual(), NOTHING);
    client.transport = TransportKind::Child;
    client.prior = Some(EraVerdict::LegacyDiesOnProbe);
    let mut setup = Setup::new(client, peers::server(legacy_only(), NOTHING));
    setup.process = ServerProcess::DiesOnProbe;
    let mut pair = setup.open();
    assert_eq!(pair.run_until_quiet(), Pause::Quiet);
    let forgotten = |event: &Event| matches!(event, Event::Remembered(EraVerdict::Legacy));
    assert!(!pair.events().iter().any(forgotten));
}

/// N13: a server that was reached over the transport of 2024-11-05 did not die of a probe, and is
/// not remembered as if it had.
#[test]
fn another_transport_is_not_a_death() {
    let mut terms = peers::client(dual(), NOTHING);
    terms.transport = TransportKind::Http;
    let mut client = Client::new(Arc::new(terms));
    let result = br#"{"jsonrpc":"2.0","id":"mcpact-open-3","result":{"protocolVersion":"2024-11-05","capabilities":{},"serverInfo":{"name":"s","version":"1"}}}"#;
    let inputs = [
        Input::Open,
        Input::Connected,
        Input::Status(404),
        Input::Status(404),
        Input::Connected,
        Input::Bytes {
            bytes: result,
            http_status: None,
        },
    ];
    let mut remembered = Vec::new();
    for input in inputs {
        let step = client.handle(input, Moment::ZERO);
        client = step.next;
        remembered.extend(step.effects.iter().filter_map(|effect| match effect {
            Effect::Remember(verdict) => Some(*verdict),
            _ => None,
        }));
    }
    assert!(matches!(client.phase(), Phase::Ready(_)));
    assert_eq!(remembered, [EraVerdict::Legacy]);
}
