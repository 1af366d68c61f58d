//! From the first byte to the last: slow, silent, dying and closing peers on a virtual clock.

#![expect(clippy::unwrap_used, reason = "tests")]

use std::time::Duration;

use mcpact_engine::client::{
    ClientTerms, EraVerdict, Failure, Input, Phase, ProbeFailure, TransportKind,
};
use mcpact_engine::effect::DropCause;
use mcpact_engine::outstanding::{OnProgress, RequestTimeout};
use mcpact_engine::refusal::ApiMisuse;
use mcpact_engine::revisions::RevisionSet;
use mcpact_engine::server::{Phase as ServerPhase, Scope};
use mcpact_engine::time::Moment;
use mcpact_sim::event::{Ended, Event};
use mcpact_sim::model::ledger::{LedgerState, no_writes_after_close, own_answers, settled_once};
use mcpact_sim::pair::{AnswerMode, Pair, Pause, ServerProcess, Setup, echo};
use mcpact_sim::peers::{self, FULL_CLIENT, FULL_SERVER, dual, exactly, legacy_only, modern_only};
use mcpact_sim::wire::{Faults, Order};
use mcpact_spec::{Revision, Side};
use mcpact_wire::id::Id;

const SECOND: Duration = Duration::from_secs(1);

fn at(seconds: u64) -> Moment {
    Moment::at(Duration::from_secs(seconds))
}

fn client(speaks: RevisionSet, carrier: TransportKind) -> ClientTerms {
    let mut terms = peers::client(speaks, FULL_CLIENT);
    terms.transport = carrier;
    terms
}

fn setup(client: ClientTerms, server: RevisionSet) -> Setup {
    Setup::new(client, peers::server(server, FULL_SERVER))
}

/// A pair after negotiation, which answers only on request of the test.
fn ready(client: ClientTerms, server: RevisionSet) -> Pair {
    let mut setup = setup(client, server);
    setup.client_answers = AnswerMode::WhenTold;
    setup.server_answers = AnswerMode::WhenTold;
    let mut pair = setup.open();
    assert_eq!(pair.run_until_quiet(), Pause::Quiet);
    assert!(pair.client().pact().is_some());
    pair
}

fn patience(seconds: u64) -> RequestTimeout {
    RequestTimeout {
        timeout: Duration::from_secs(seconds),
        ..RequestTimeout::default()
    }
}

fn agreed(pair: &Pair) -> Option<Revision> {
    pair.client().pact().map(|pact| pact.revision())
}

fn ends(pair: &Pair, of: Side) -> Vec<(String, Ended)> {
    let all = pair.events().iter();
    all.filter_map(|event| match event {
        Event::Settled { side, id, end, .. } if *side == of => {
            Some((id.raw().to_owned(), end.clone()))
        }
        _ => None,
    })
    .collect()
}

fn drops(pair: &Pair, of: Side) -> Vec<(String, DropCause)> {
    let all = pair.events().iter();
    all.filter_map(|event| match event {
        Event::Dropped { side, drop } if *side == of => Some((drop.what.to_string(), drop.why)),
        _ => None,
    })
    .collect()
}

fn remembered(pair: &Pair) -> Vec<EraVerdict> {
    let all = pair.events().iter();
    all.filter_map(|event| match event {
        Event::Remembered(verdict) => Some(*verdict),
        _ => None,
    })
    .collect()
}

fn respawns(pair: &Pair) -> usize {
    let all = pair.events().iter();
    all.filter(|event| matches!(event, Event::Respawned))
        .count()
}

fn last_written(pair: &Pair, by: Side) -> String {
    let all = pair.written().filter(|(from, _)| *from == by);
    all.last().map(|(_, text)| text.to_owned()).unwrap()
}

/// N13, L25: a server that is slower than the client's patience answers the probe after the client
/// has gone on to `initialize`; that answer is dropped and the handshake decides.
#[test]
fn a_late_answer_to_the_probe_is_ignored() {
    let mut setup = setup(client(dual(), TransportKind::Child), dual());
    setup.process = ServerProcess::Slow(at(12));
    let mut pair = setup.open();
    assert_eq!(pair.run_until_quiet(), Pause::Quiet);
    assert_eq!(
        pair.methods_written(Side::Client),
        ["server/discover", "initialize", "notifications/initialized"]
    );
    let late = ("\"mcpact-open-1\"".to_owned(), DropCause::UnknownAnswer);
    assert_eq!(drops(&pair, Side::Client), [late]);
    assert_eq!(agreed(&pair), Some(Revision::V2025_11_25));
}

/// N13: a server that exits on the probe is restarted once without probe, and the verdict is stored, so that the next
/// connection does not probe.
#[test]
fn server_that_exits_on_the_probe_is_restarted_once() {
    let mut setup = setup(client(dual(), TransportKind::Child), legacy_only());
    setup.process = ServerProcess::DiesOnProbe;
    let mut pair = setup.clone().open();
    assert_eq!(pair.run_until_quiet(), Pause::Quiet);
    assert_eq!(respawns(&pair), 1);
    assert_eq!(
        pair.methods_written(Side::Client),
        ["server/discover", "initialize", "notifications/initialized"]
    );
    assert_eq!(remembered(&pair), [EraVerdict::LegacyDiesOnProbe]);
    assert_eq!(agreed(&pair), Some(Revision::V2025_11_25));

    setup.client.prior = Some(EraVerdict::LegacyDiesOnProbe);
    let mut again = setup.open();
    assert_eq!(again.run_until_quiet(), Pause::Quiet);
    assert_eq!(respawns(&again), 0);
    assert_eq!(
        again.methods_written(Side::Client),
        ["initialize", "notifications/initialized"]
    );
    assert_eq!(agreed(&again), Some(Revision::V2025_11_25));
}

/// N13: only a child process with a legacy side is restarted.
#[test]
fn only_a_child_with_a_legacy_side_is_restarted() {
    for (speaks, carrier) in [
        (dual(), TransportKind::Stream),
        (dual(), TransportKind::Http),
        (modern_only(), TransportKind::Child),
    ] {
        let mut setup = setup(client(speaks, carrier), legacy_only());
        setup.process = ServerProcess::DiesOnProbe;
        let mut pair = setup.open();
        assert_eq!(pair.run_until_quiet(), Pause::Quiet);
        assert_eq!(respawns(&pair), 0, "{carrier:?}");
        assert!(matches!(
            pair.client().phase(),
            Phase::Failed(Failure::Probe(
                ProbeFailure::Closed | ProbeFailure::Incompatible(_)
            ))
        ));
    }
}

/// N13: the time for the probe counts from the first sign of life, so a server that is still being
/// installed does not pass for a silent one.
#[test]
fn a_slow_start_is_not_silence() {
    let mut setup = setup(client(dual(), TransportKind::Child), modern_only());
    setup.process = ServerProcess::Slow(at(11));
    let mut pair = setup.open();
    assert_eq!(pair.run_for(9 * SECOND), Pause::TimeUp);
    pair.tell_client(Input::FirstByte);
    assert_eq!(pair.run_until_quiet(), Pause::Quiet);
    assert_eq!(pair.methods_written(Side::Client), ["server/discover"]);
    assert_eq!(agreed(&pair), Some(Revision::V2026_07_28));
}

/// N13: a legacy server that needs most of a minute to start, without a sign of life, is reached
/// all the same, and so is a modern one.
#[test]
fn a_very_slow_start_is_survived() {
    let legacy = legacy_only().iter().map(exactly);
    for server in legacy.chain([modern_only(), dual()]) {
        let mut setup = setup(client(dual(), TransportKind::Child), server);
        setup.process = ServerProcess::Slow(at(50));
        let mut pair = setup.open();
        assert_eq!(pair.run_until_quiet(), Pause::Quiet);
        let newest_legacy = server.iter().find(|r| *r != Revision::V2026_07_28);
        let expected = newest_legacy.or(Some(Revision::V2026_07_28));
        assert_eq!(agreed(&pair), expected, "[{server}]");
    }
}

/// L25: when the connection closes, every pending request fails once, on both sides; later answers and cancellations
/// are ignored.
#[test]
fn closed_connection_fails_pending_requests() {
    let mut pair = ready(client(dual(), TransportKind::Stream), legacy_only());
    for id in 1..=5 {
        pair.ask(Side::Client, id, "tools/list", None, patience(60));
        pair.ask(Side::Server, id, "roots/list", None, patience(60));
    }
    assert_eq!(pair.run_for(SECOND), Pause::TimeUp);
    pair.disconnect();
    for side in [Side::Client, Side::Server] {
        let expected: Vec<_> = (1..=5)
            .map(|id| (id.to_string(), Ended::ConnectionClosed))
            .collect();
        assert_eq!(ends(&pair, side), expected);
    }
    let before = pair.written().count();
    pair.answer(Side::Server, Id::number(1), Ok("{}".to_owned()));
    pair.answer(Side::Client, Id::number(1), Ok("{}".to_owned()));
    pair.cancel(Side::Client, 2);
    pair.cancel(Side::Server, 2);
    assert_eq!(pair.run_until_quiet(), Pause::Quiet);
    assert_eq!(pair.written().count(), before);
    assert_eq!(settled_once(pair.events(), LedgerState::Closed), Ok(()));
    assert!(matches!(pair.client().phase(), Phase::Closed));
    assert!(matches!(pair.server().phase(), ServerPhase::Closed));
}

/// L25: answers that come in another order than the requests, and twice, reach their own requests
/// once; string and integer ids of the same look are different.
#[test]
fn answers_out_of_order_find_their_requests() {
    let mut setup = setup(client(dual(), TransportKind::Http), dual());
    setup.faults = Faults {
        order: Order::Parallel,
        delay: Duration::from_millis(500),
        twice: 1000,
        ..Faults::NONE
    };
    setup.seed = 11;
    let mut pair = setup.open();
    assert_eq!(pair.run_until_quiet(), Pause::Quiet);
    for id in 1..=30 {
        pair.ask(Side::Client, id, "tools/list", None, patience(60));
    }
    pair.deliver(
        Side::Client,
        br#"{"jsonrpc":"2.0","id":"1","result":{}}"#,
        None,
    );
    assert_eq!(pair.run_until_quiet(), Pause::Quiet);
    let ends = ends(&pair, Side::Client);
    let order: Vec<_> = ends.iter().map(|(id, _)| id.clone()).collect();
    let asked: Vec<_> = (1..=30).map(|id: i64| id.to_string()).collect();
    assert_ne!(order, asked, "the wire changed the order");
    let mut sorted = order;
    sorted.sort_by_key(|id| id.parse::<i64>().unwrap());
    assert_eq!(sorted, asked);
    assert_eq!(settled_once(pair.events(), LedgerState::Closed), Ok(()));
    assert_eq!(own_answers(pair.events()), Ok(()));
    let stray = ("\"1\"".to_owned(), DropCause::UnknownAnswer);
    assert!(drops(&pair, Side::Client).contains(&stray));
}

/// L24: a request that takes too long is cancelled with `notifications/cancelled`, in both
/// directions; the receiver then does not answer, and an answer that was under way is dropped.
#[test]
fn request_that_takes_too_long_is_cancelled() {
    for (by, method) in [(Side::Client, "tools/list"), (Side::Server, "roots/list")] {
        let mut pair = ready(client(legacy_only(), TransportKind::Stream), legacy_only());
        pair.ask(by, 1, method, None, patience(2));
        assert_eq!(pair.run_until_quiet(), Pause::Quiet);
        assert_eq!(pair.now(), at(2));
        assert_eq!(ends(&pair, by), [("1".to_owned(), Ended::TimedOut)]);
        assert_eq!(
            last_written(&pair, by),
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#
        );
        let before = pair.written().count();
        pair.answer(by.peer(), Id::number(1), Ok("{}".to_owned()));
        assert_eq!(pair.written().count(), before);
        let cancelled = ("1".to_owned(), DropCause::Cancelled);
        assert_eq!(drops(&pair, by.peer()), [cancelled]);
        pair.deliver(by, br#"{"jsonrpc":"2.0","id":1,"result":{}}"#, None);
        let late = ("1".to_owned(), DropCause::UnknownAnswer);
        assert_eq!(drops(&pair, by), [late]);
    }
}

/// L24: a modern client gives up with a notification on a pipe, and by closing the stream on HTTP.
#[test]
fn a_modern_client_cancels_in_the_way_of_its_carrier() {
    let mut pipe = ready(client(modern_only(), TransportKind::Child), modern_only());
    pipe.ask(Side::Client, 1, "tools/list", None, patience(2));
    assert_eq!(pipe.run_until_quiet(), Pause::Quiet);
    assert!(last_written(&pipe, Side::Client).contains("notifications/cancelled"));

    let mut http = ready(client(modern_only(), TransportKind::Http), modern_only());
    http.ask(Side::Client, 1, "tools/list", None, patience(2));
    assert_eq!(http.run_until_quiet(), Pause::Quiet);
    let abandoned = |event: &Event| matches!(event, Event::Abandoned(id) if id.raw() == "1");
    assert!(http.events().iter().any(abandoned));
    assert!(!last_written(&http, Side::Client).contains("notifications/cancelled"));
    assert_eq!(
        ends(&http, Side::Client),
        [("1".to_owned(), Ended::TimedOut)]
    );
}

/// L24: progress keeps a request alive if its owner wants that, but never beyond its maximum.
#[test]
fn progress_extends_a_timeout_up_to_its_maximum() {
    for (on_progress, expected) in [(OnProgress::Extend, 7), (OnProgress::Ignore, 3)] {
        let mut pair = ready(client(legacy_only(), TransportKind::Stream), legacy_only());
        let patience = RequestTimeout {
            timeout: 3 * SECOND,
            maximum: 7 * SECOND,
            on_progress,
        };
        let params = Some(r#"{"_meta":{"progressToken":"p"}}"#);
        pair.ask(Side::Client, 1, "tools/list", params, patience);
        while pair.client().waiting() > 0 && pair.now() < at(60) {
            pair.run_for(SECOND);
            let progress = Some(r#"{"progressToken":"p","progress":1}"#);
            let scope = Scope::Request(Id::number(1));
            pair.notify(Side::Server, scope, "notifications/progress", progress);
        }
        assert_eq!(
            ends(&pair, Side::Client),
            [("1".to_owned(), Ended::TimedOut)]
        );
        assert_eq!(pair.now(), at(expected), "{on_progress:?}");
    }
}

/// L27: a server that never answers `initialize` is given up after the client's time, and one that
/// is never spoken to hangs up after its own.
#[test]
fn waiting_for_a_handshake_times_out() {
    for speaks in [legacy_only(), dual()] {
        let mut setup = setup(client(speaks, TransportKind::Stream), legacy_only());
        setup.process = ServerProcess::Mute;
        setup.server.open_timeout = Duration::from_secs(1000);
        let mut pair = setup.open();
        assert_eq!(pair.run_until_quiet(), Pause::Quiet);
        assert!(matches!(
            pair.client().phase(),
            Phase::Failed(Failure::InitTimeout)
        ));
        let probe = if speaks == dual() { 10 } else { 0 };
        assert_eq!(pair.now(), at(60 + probe));
        assert!(!pair.is_up());
    }
    let mut silent = setup(client(dual(), TransportKind::Stream), dual()).build();
    assert_eq!(silent.run_until_quiet(), Pause::Quiet);
    assert_eq!(silent.now(), at(30));
    let hung_up = |event: &Event| matches!(event, Event::HungUp(Side::Server));
    assert!(silent.events().iter().any(hung_up));
    assert!(matches!(silent.server().phase(), ServerPhase::Closed));
}

/// L10: between its result and the client's confirmation a server sends pings and log messages,
/// and nothing else; a request that comes early is served.
#[test]
fn before_the_confirmation_a_server_only_pings_and_logs() {
    let mut setup = setup(client(legacy_only(), TransportKind::Stream), legacy_only());
    setup.server_answers = AnswerMode::WhenTold;
    let mut pair = setup.build();
    let initialize = br#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"roots":{}},"clientInfo":{"name":"c","version":"1"}}}"#;
    pair.deliver(Side::Server, initialize, None);
    assert!(matches!(
        pair.server().phase(),
        ServerPhase::AwaitInitialized(_)
    ));
    pair.ask(Side::Server, 1, "roots/list", None, patience(60));
    pair.ask(Side::Server, 2, "ping", None, patience(60));
    let changed = "notifications/tools/list_changed";
    pair.notify(Side::Server, Scope::Connection, changed, None);
    let level = Some(r#"{"level":"info","data":1}"#);
    pair.notify(
        Side::Server,
        Scope::Connection,
        "notifications/message",
        level,
    );
    assert_eq!(
        pair.methods_written(Side::Server),
        ["ping", "notifications/message"]
    );
    let not_ready = |event: &&Event| {
        matches!(
            event,
            Event::Withheld {
                misuse: ApiMisuse::NotReady { .. },
                ..
            }
        )
    };
    assert_eq!(pair.events().iter().filter(not_ready).count(), 2);
    let early = br#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    pair.deliver(Side::Server, early, None);
    assert_eq!(pair.server().in_flight(), 1);
    let confirm = br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    pair.deliver(Side::Server, confirm, None);
    pair.ask(Side::Server, 3, "roots/list", None, patience(60));
    assert_eq!(
        pair.methods_written(Side::Server),
        ["ping", "notifications/message", "roots/list"]
    );
}

/// L1: a client that wants to end waits for what is in flight, starts nothing new, and then
/// hangs up.
#[test]
fn a_closing_client_lets_its_requests_end() {
    let mut pair = ready(client(dual(), TransportKind::Stream), dual());
    pair.ask(Side::Client, 1, "tools/list", None, patience(60));
    pair.ask(Side::Client, 2, "tools/list", None, patience(60));
    assert_eq!(pair.run_for(SECOND), Pause::TimeUp);
    pair.tell_client(Input::Close);
    pair.ask(Side::Client, 3, "tools/list", None, patience(60));
    for id in [2, 1] {
        assert!(pair.is_up());
        let id = Id::number(id);
        let result = echo(Side::Server, &id, "tools/list");
        pair.answer(Side::Server, id, Ok(result));
        assert_eq!(pair.run_for(SECOND).eq(&Pause::Quiet), !pair.is_up());
    }
    assert!(!pair.is_up());
    assert_eq!(ends(&pair, Side::Client).len(), 2);
    assert_eq!(own_answers(pair.events()), Ok(()));
    assert_eq!(no_writes_after_close(pair.events()), Ok(()));
    assert!(matches!(pair.client().phase(), Phase::Closed));
}
