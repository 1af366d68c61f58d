//! How long the hot paths take.

use std::hint::black_box;
use std::sync::Arc;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use mcpact_bench as input;
use mcpact_engine::classify::{TransportFacts, admit};
use mcpact_engine::pact::Pact;
use mcpact_engine::policy::Policy;
use mcpact_engine::server::{Input, Server};
use mcpact_engine::time::Moment;
use mcpact_spec::{Kind, Revision, Side};
use mcpact_wire::envelope::{Envelope, Request};

fn length(bytes: &[u8]) -> Throughput {
    Throughput::Bytes(bytes.len() as u64)
}

fn request(text: &str) -> Option<Request<'_>> {
    match Envelope::parse(text.as_bytes()) {
        Ok(Envelope::Request(request)) => Some(request),
        Ok(Envelope::Notification(_) | Envelope::Response(_)) | Err(_) => None,
    }
}

/// The envelope, and a whole tree from the same bytes.
fn parse(c: &mut Criterion) {
    for (name, text) in [
        ("call-legacy", input::legacy_call()),
        ("call-modern", input::modern_call()),
        ("result-blocks", input::result_with_blocks()),
        ("result-text", input::result_with_text()),
        ("result-quotes", input::result_with_quotes()),
    ] {
        let bytes = text.as_bytes();
        let mut group = c.benchmark_group(name);
        group.throughput(length(bytes));
        group.bench_function("envelope", |b| {
            b.iter(|| Envelope::parse(black_box(bytes)).is_ok());
        });
        group.bench_function("serde-value", |b| {
            b.iter(|| serde_json::from_slice::<serde_json::Value>(black_box(bytes)));
        });
        group.finish();
    }
}

fn gate(c: &mut Criterion) {
    let pact = input::legacy_pact();
    let mut group = c.benchmark_group("gate");
    group.bench_function("rule", |b| {
        b.iter(|| black_box(&pact).rule(Side::Client, Kind::Request, black_box("tools/call")));
    });
    for (name, text) in [
        ("call", input::legacy_call()),
        ("call-with-task", input::task_call()),
    ] {
        let Some(request) = request(&text) else {
            continue;
        };
        group.bench_function(name, |b| {
            b.iter(|| input::gate(black_box(&pact), black_box(&request)));
        });
    }
    group.finish();
}

fn ambiguity(c: &mut Criterion) {
    let text = input::legacy_call();
    let Some(request) = request(&text) else {
        return;
    };
    let mut group = c.benchmark_group("ambiguity");
    group.bench_function("call-legacy", |b| {
        b.iter(|| input::is_unambiguous(black_box(&request)));
    });
    group.finish();
}

fn classify(c: &mut Criterion) {
    let text = input::modern_call();
    let Some(request) = request(&text) else {
        return;
    };
    let (server, policy) = (input::server_party(), Policy::default());
    let mut group = c.benchmark_group("classify");
    for (name, facts) in [
        ("stream", TransportFacts::Stream),
        ("http", TransportFacts::Http(input::http_facts())),
    ] {
        // A client says the same about itself in every request, and a connection remembers.
        let mut memory = None;
        group.bench_function(name, |b| {
            b.iter(|| {
                admit(
                    black_box(&request),
                    black_box(&facts),
                    &server,
                    &policy,
                    &mut memory,
                )
            });
        });
    }
    group.bench_function("first", |b| {
        let facts = TransportFacts::Stream;
        b.iter(|| {
            admit(
                black_box(&request),
                black_box(&facts),
                &server,
                &policy,
                &mut None,
            )
        });
    });
    group.finish();
}

fn negotiate(c: &mut Criterion) {
    let terms = input::server_terms();
    let text = input::initialize();
    let mut group = c.benchmark_group("negotiate");
    group.bench_function("initialize", |b| {
        b.iter_batched(
            || Server::new(Arc::clone(&terms), Moment::ZERO),
            |server| {
                let input = Input::Bytes {
                    bytes: black_box(text.as_bytes()),
                    facts: TransportFacts::Stream,
                };
                server.handle(input, Moment::ZERO)
            },
            BatchSize::SmallInput,
        );
    });
    let (client, server) = (input::client_party(), input::server_party());
    group.bench_function("pact", |b| {
        b.iter(|| Pact::new(Revision::V2025_11_25, client.clone(), server.clone()));
    });
    group.finish();
}

fn frame(c: &mut Criterion) {
    let (lines, events) = (input::line_stream(), input::event_stream());
    let mut group = c.benchmark_group("frame");
    group.throughput(length(&lines));
    group.bench_function("ndjson", |b| {
        b.iter(|| input::count_lines(black_box(&lines)))
    });
    group.throughput(length(&events));
    group.bench_function("sse", |b| {
        b.iter(|| input::count_events(black_box(&events)))
    });
    group.finish();
}

criterion_group!(benches, parse, gate, ambiguity, classify, negotiate, frame);
criterion_main!(benches);
