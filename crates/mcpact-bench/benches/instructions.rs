//! How many instructions the hot paths execute: the same on every run, whatever else the machine
//! does.

#![expect(
    missing_docs,
    reason = "what the macros make is public and has no docs"
)]

use std::hint::black_box;
use std::sync::Arc;

use gungraun::{library_benchmark, library_benchmark_group, main};
use mcpact_bench as input;
use mcpact_engine::classify::{CachedPact, TransportFacts, admit};
use mcpact_engine::effect::Step;
use mcpact_engine::pact::{Pact, Party};
use mcpact_engine::policy::Policy;
use mcpact_engine::server::{Input, Server};
use mcpact_engine::time::Moment;
use mcpact_spec::{Kind, Revision, Side};
use mcpact_wire::envelope::{Envelope, Request};
use serde_json::Value;

/// The request in a text that lives as long as the process.
fn request(text: String) -> Option<Request<'static>> {
    match Envelope::parse(text.leak().as_bytes()) {
        Ok(Envelope::Request(request)) => Some(request),
        Ok(Envelope::Notification(_) | Envelope::Response(_)) | Err(_) => None,
    }
}

/// What the gate looks at.
fn gated(text: String) -> (Pact, Option<Request<'static>>) {
    (input::legacy_pact(), request(text))
}

/// What the classification looks at.
struct Classified {
    request: Option<Request<'static>>,
    facts: TransportFacts<'static>,
    server: Party,
    policy: Policy,
    memory: Option<Arc<CachedPact>>,
}

fn classified(facts: TransportFacts<'static>) -> Classified {
    let (server, policy) = (input::server_party(), Policy::default());
    let request = request(input::modern_call());
    let mut memory = None;
    if let Some(request) = &request {
        // The first request of a client fills the memory; the measured one finds it.
        let _ = admit(request, &facts, &server, &policy, &mut memory);
    }
    Classified {
        request,
        facts,
        server,
        policy,
        memory,
    }
}

fn parties() -> (Party, Party) {
    (input::client_party(), input::server_party())
}

fn fresh_server() -> Server {
    Server::new(input::server_terms(), Moment::ZERO)
}

#[library_benchmark]
#[bench::call_legacy(input::legacy_call())]
#[bench::call_modern(input::modern_call())]
#[bench::result_blocks(input::result_with_blocks())]
#[bench::result_text(input::result_with_text())]
#[bench::result_quotes(input::result_with_quotes())]
fn envelope(text: String) -> (bool, String) {
    (Envelope::parse(black_box(text.as_bytes())).is_ok(), text)
}

#[library_benchmark]
#[bench::call_legacy(input::legacy_call())]
#[bench::call_modern(input::modern_call())]
#[bench::result_blocks(input::result_with_blocks())]
#[bench::result_text(input::result_with_text())]
#[bench::result_quotes(input::result_with_quotes())]
fn serde_value(text: String) -> (Option<Value>, String) {
    (
        serde_json::from_slice(black_box(text.as_bytes())).ok(),
        text,
    )
}

#[library_benchmark]
#[bench::by_name(input::legacy_pact())]
fn rule(pact: Pact) -> (bool, Pact) {
    let ruling = pact.rule(Side::Client, Kind::Request, black_box("tools/call"));
    (ruling.is_open(), pact)
}

#[library_benchmark]
#[bench::call(gated(input::legacy_call()))]
#[bench::call_with_task(gated(input::task_call()))]
fn gate(both: (Pact, Option<Request<'static>>)) -> (bool, (Pact, Option<Request<'static>>)) {
    let is_open = both
        .1
        .as_ref()
        .is_some_and(|request| input::gate(&both.0, request));
    (is_open, both)
}

#[library_benchmark]
#[bench::call_legacy(request(input::legacy_call()))]
fn ambiguity(request: Option<Request<'static>>) -> (bool, Option<Request<'static>>) {
    let is_clear = request.as_ref().is_some_and(input::is_unambiguous);
    (is_clear, request)
}

#[library_benchmark]
#[bench::stream(classified(TransportFacts::Stream))]
#[bench::http(classified(TransportFacts::Http(input::http_facts())))]
fn classify(mut all: Classified) -> (bool, Classified) {
    let is_admitted = all.request.as_ref().is_some_and(|request| {
        admit(
            request,
            &all.facts,
            &all.server,
            &all.policy,
            &mut all.memory,
        )
        .is_ok()
    });
    (is_admitted, all)
}

#[library_benchmark]
#[bench::from_bytes(fresh_server(), input::initialize().leak())]
fn initialize(server: Server, text: &'static str) -> Step<'static, Server> {
    let input = Input::Bytes {
        bytes: text.as_bytes(),
        facts: TransportFacts::Stream,
    };
    server.handle(black_box(input), Moment::ZERO)
}

#[library_benchmark]
#[bench::of_parties(parties())]
fn pact((client, server): (Party, Party)) -> Pact {
    Pact::new(Revision::V2025_11_25, client, server)
}

#[library_benchmark]
#[bench::mebibyte(input::line_stream())]
fn ndjson(stream: Vec<u8>) -> (usize, Vec<u8>) {
    (input::count_lines(black_box(&stream)), stream)
}

#[library_benchmark]
#[bench::mebibyte(input::event_stream())]
fn sse(stream: Vec<u8>) -> (usize, Vec<u8>) {
    (input::count_events(black_box(&stream)), stream)
}

library_benchmark_group!(
    name = hot_paths,
    benchmarks = [
        envelope,
        serde_value,
        rule,
        gate,
        ambiguity,
        classify,
        initialize,
        pact,
        ndjson,
        sse
    ]
);

main!(library_benchmark_groups = hot_paths);
