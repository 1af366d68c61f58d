//! The hot paths allocate nothing.

use std::hint::black_box;

use allocation_counter::measure;
use mcpact_bench::{initialize, legacy_call, legacy_pact, modern_call, task_call};
use mcpact_spec::{Kind, Side};
use mcpact_wire::envelope::Envelope;

#[test]
fn ruling_on_a_message_allocates_nothing() {
    let pact = legacy_pact();
    for sender in [Side::Client, Side::Server] {
        for method in ["tools/call", "sampling/createMessage", "no/such/method", ""] {
            let info = measure(|| {
                let _ = black_box(pact.rule(sender, Kind::Request, black_box(method)));
            });
            assert_eq!(info.count_total, 0, "{method}");
        }
    }
}

#[test]
fn parsing_a_request_allocates_nothing() {
    for text in [legacy_call(), modern_call(), task_call(), initialize()] {
        let info = measure(|| {
            let parsed = Envelope::parse(black_box(text.as_bytes()));
            assert!(matches!(black_box(parsed), Ok(Envelope::Request(_))));
        });
        assert_eq!(info.count_total, 0, "{text}");
    }
}

/// The counter counts: a check of the check.
#[test]
fn an_allocation_would_be_seen() {
    let info = measure(|| drop(black_box(String::from(black_box("text")))));
    assert_eq!(info.count_total, 1);
}
