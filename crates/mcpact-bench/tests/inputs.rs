//! The inputs are what the benchmarks say they are.

use mcpact_bench::{
    count_events, count_lines, event_stream, gate, initialize, is_unambiguous, legacy_call,
    legacy_pact, line_stream, modern_call, result_with_blocks, result_with_quotes,
    result_with_text, task_call,
};
use mcpact_wire::envelope::Envelope;

const MEBIBYTE: usize = 1024 * 1024;

#[test]
fn messages_have_the_sizes_that_are_promised() {
    assert_eq!(legacy_call().len(), 400);
    for text in [
        result_with_blocks(),
        result_with_text(),
        result_with_quotes(),
    ] {
        assert!((MEBIBYTE..MEBIBYTE + 4096).contains(&text.len()));
        assert!(matches!(
            Envelope::parse(text.as_bytes()),
            Ok(Envelope::Response(_))
        ));
    }
}

#[test]
fn calls_are_requests_that_pass_the_gate() {
    let pact = legacy_pact();
    for text in [legacy_call(), task_call(), modern_call()] {
        let Ok(Envelope::Request(request)) = Envelope::parse(text.as_bytes()) else {
            unreachable!("{text}");
        };
        assert!(gate(&pact, &request) && is_unambiguous(&request), "{text}");
    }
    assert!(Envelope::parse(initialize().as_bytes()).is_ok());
}

#[test]
fn streams_are_read_to_their_end() {
    let (lines, events) = (line_stream(), event_stream());
    assert_eq!(count_lines(&lines), lines.len() / (legacy_call().len() + 1));
    assert!(count_events(&events) > 2000);
}
