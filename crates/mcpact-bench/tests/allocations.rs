//! The hot paths allocate nothing.

use std::hint::black_box;

use allocation_counter::measure;
use mcpact_bench::{initialize, legacy_call, legacy_pact, modern_call, task_call};
use mcpact_spec::{Kind, Method, Side};
use mcpact_wire::ambiguity::{MAX_KEYS, check};
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

/// Texts that cost other readers much memory. Comparing keys needs at most 18 bytes for each.
#[test]
fn hostile_messages_need_little_memory() {
    const LENGTH: usize = 10_000_000;
    let message = |value: String| {
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{value}}}"#)
    };
    let repeat = |part: &str| part.repeat(LENGTH / part.len());
    let keys: Vec<String> = (0..1_000_000).map(|key| format!("\"{key}\":0")).collect();
    for (name, value) in [
        ("nesting", repeat("[")),
        ("string", format!(r#"{{"name":"{}"}}"#, repeat("a"))),
        ("escapes", format!(r#"{{"name":"{}"}}"#, repeat("\\\""))),
        (
            "invalid escapes",
            format!(r#"{{"name":"{}"}}"#, repeat("\\x")),
        ),
        ("keys", format!("{{{}}}", keys.join(","))),
        (
            "duplicate keys",
            format!("{{{}\"a\":0}}", repeat(r#""a":0,"#)),
        ),
    ] {
        let text = message(value);
        let scanned = measure(|| drop(black_box(Envelope::parse(black_box(text.as_bytes())))));
        let params = text.split_once(r#""params":"#).map(|(_, params)| params);
        let params = params.and_then(|params| params.strip_suffix('}')).unwrap();
        let judged = measure(|| drop(black_box(check(params, Method::ToolsCall.param_keys()))));
        assert_eq!(scanned.bytes_max, 0, "{name}");
        let limit = if name.contains("keys") {
            MAX_KEYS * 18
        } else {
            text.len() / 10
        };
        let limit = u64::try_from(limit).unwrap();
        assert!(
            judged.bytes_max <= limit,
            "{name}: {} bytes",
            judged.bytes_max
        );
    }
}

/// The counter counts: a check of the check.
#[test]
fn an_allocation_would_be_seen() {
    let info = measure(|| drop(black_box(String::from(black_box("text")))));
    assert_eq!(info.count_total, 1);
}
