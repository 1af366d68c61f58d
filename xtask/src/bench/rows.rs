//! Measured operations, under the names that both benchmarks use.

/// One operation.
#[derive(Debug)]
pub(super) struct Row {
    /// The folder below `criterion/`, from `crates/mcpact-bench/benches/time.rs`.
    pub(super) time: &'static str,
    /// The folder below `gungraun/`, from `crates/mcpact-bench/benches/instructions.rs`.
    pub(super) instructions: &'static str,
    /// Description of the operation.
    pub(super) what: &'static str,
}

/// A row and its numbers.
#[derive(Debug)]
pub(super) struct Measured {
    pub(super) row: &'static Row,
    /// The median of the samples: what a caller will see on this machine.
    pub(super) median: f64,
    /// The fastest sample: what the operation costs when nothing else disturbs it.
    pub(super) fastest: f64,
    /// Bytes that it reads, where that matters.
    pub(super) bytes: Option<f64>,
    pub(super) instructions: Option<f64>,
}

const fn row(time: &'static str, instructions: &'static str, what: &'static str) -> Row {
    Row {
        time,
        instructions,
        what,
    }
}

/// All rows, in the order of the report.
pub(super) const ROWS: &[Row] = &[
    row(
        "call-legacy/envelope",
        "envelope.call_legacy",
        "envelope of a legacy `tools/call`, 400 B",
    ),
    row(
        "call-legacy/serde-value",
        "serde_value.call_legacy",
        "the same bytes as `serde_json::Value`",
    ),
    row(
        "call-modern/envelope",
        "envelope.call_modern",
        "envelope of a modern `tools/call` with `_meta`",
    ),
    row(
        "call-modern/serde-value",
        "serde_value.call_modern",
        "the same bytes as `serde_json::Value`",
    ),
    row(
        "result-blocks/envelope",
        "envelope.result_blocks",
        "envelope of a 1 MiB result, many blocks",
    ),
    row(
        "result-blocks/serde-value",
        "serde_value.result_blocks",
        "the same bytes as `serde_json::Value`",
    ),
    row(
        "result-text/envelope",
        "envelope.result_text",
        "envelope of a 1 MiB result, one text",
    ),
    row(
        "result-text/serde-value",
        "serde_value.result_text",
        "the same bytes as `serde_json::Value`",
    ),
    row(
        "result-quotes/envelope",
        "envelope.result_quotes",
        "envelope of a 1 MiB result, one text with escaped quotes",
    ),
    row(
        "result-quotes/serde-value",
        "serde_value.result_quotes",
        "the same bytes as `serde_json::Value`",
    ),
    row("gate/rule", "rule.by_name", "gate: `tools/call` by name"),
    row("gate/call", "gate.call", "gate: name and parameters"),
    row(
        "gate/call-with-task",
        "gate.call_with_task",
        "gate: name and parameters, one of them gated",
    ),
    row(
        "ambiguity/call-legacy",
        "ambiguity.call_legacy",
        "ambiguous keys of a legacy `tools/call`",
    ),
    row(
        "classify/stream",
        "classify.stream",
        "modern classification on a stream, client seen before",
    ),
    row(
        "classify/http",
        "classify.http",
        "modern classification over HTTP, client seen before",
    ),
    row(
        "negotiate/initialize",
        "initialize.from_bytes",
        "`initialize`, from bytes to the reply",
    ),
    row("negotiate/pact", "pact.of_parties", "pact of two parties"),
    row(
        "frame/ndjson",
        "ndjson.mebibyte",
        "1 MiB of lines, in chunks of 64 KiB",
    ),
    row(
        "frame/sse",
        "sse.mebibyte",
        "1 MiB of events, in chunks of 64 KiB",
    ),
];
