use std::sync::Arc;
use std::time::Duration;

use mcpact::connection::DropReason;
use mcpact_engine::refusal::WireError;
use mcpact_spec::{Method, Revision};

use mcpact_transport::stdio::child::Masks;

use super::*;
use crate::error::{ServeError, UpstreamError, UpstreamErrorKind};

fn written(metrics: &Metrics) -> String {
    let mut out = Exposition::default();
    metrics.write(&mut out);
    out.finish()
}

fn upstream(kind: UpstreamErrorKind) -> ServeError {
    ServeError::from(UpstreamError {
        target: String::from("`x`"),
        kind,
        masks: Masks::default(),
    })
}

/// Error response of a server that claims one of the gateway's reasons.
fn response(data: &str) -> ServeError {
    ServeError::response(WireError {
        code: -32603,
        message: String::from("x"),
        data: Some(data.to_owned()),
        http_status: 200,
    })
}

#[test]
fn outcome_follows_the_kind_of_error_and_not_its_data() {
    let limit = Duration::from_secs(1);
    let cells = [
        (response(r#"{"reason":"upstream_busy"}"#), "error"),
        (response(r#"{"reason":"upstream_gone"}"#), "error"),
        (
            upstream(UpstreamErrorKind::TimeoutBeforeSend { limit }),
            "busy",
        ),
        (
            upstream(UpstreamErrorKind::ConnectionLost("x".into())),
            "lost",
        ),
        (
            upstream(UpstreamErrorKind::CallTimeout { limit }),
            "timeout",
        ),
        (upstream(UpstreamErrorKind::Retired), "unavailable"),
        (
            upstream(UpstreamErrorKind::Shared(Arc::new(
                UpstreamErrorKind::SessionLost,
            ))),
            "lost",
        ),
    ];
    for (error, expected) in cells {
        assert_eq!(error.outcome().as_str(), expected, "{error:?}");
    }
    assert_eq!(Outcome::Ok.as_str(), "ok");
}

/// Calls are counted by method and outcome with their duration; a dropped call counts as cancelled.
#[test]
fn calls_are_counted_by_method_and_outcome() {
    let metrics = Metrics::default();
    let server = metrics.server("a \"b\"\\");
    let _ = server
        .start_call(Some(Method::ToolsCall))
        .finish(Outcome::Ok);
    drop(server.start_call(Some(Method::ToolsCall)));
    let _ = server.start_call(None).finish(Outcome::Lost);
    server.translated(
        Revision::V2024_11_05,
        Revision::V2026_07_28,
        Plan::NewerServer,
    );
    let text = written(&metrics);
    for line in [
        r#"mcpact_requests_total{server="a \"b\"\\",method="tools/call",outcome="ok"} 1"#,
        r#"mcpact_requests_total{server="a \"b\"\\",method="tools/call",outcome="cancelled"} 1"#,
        r#"mcpact_requests_total{server="a \"b\"\\",method="other",outcome="lost"} 1"#,
        r#"mcpact_request_duration_seconds_bucket{server="a \"b\"\\",method="tools/call",le="+Inf"} 2"#,
        r#"mcpact_request_duration_seconds_count{server="a \"b\"\\",method="other"} 1"#,
        r#"mcpact_translations_total{server="a \"b\"\\",client_revision="2024-11-05",server_revision="2026-07-28",kind="raise"} 1"#,
    ] {
        assert!(text.lines().any(|found| found == line), "{line}\n{text}");
    }
}

/// The metrics of a removed server are dropped; a reconfigured server keeps its counters.
#[test]
fn only_metrics_of_removed_servers_are_dropped() {
    let metrics = Metrics::default();
    metrics.server("a").dropped(DropReason::LateAnswer.as_str());
    metrics.server("b").dropped(DropReason::LateAnswer.as_str());
    metrics.server("a").dropped(DropReason::LateAnswer.as_str());
    metrics.keep_only(|name| name == "a");
    let text = written(&metrics);
    let row = r#"mcpact_dropped_total{side="server",server="a",reason="late_answer"} 2"#;
    assert!(text.contains(row), "{text}");
    assert!(!text.contains("server=\"b\""), "{text}");
}

/// Counting a call allocates only at the first call of a method.
#[test]
fn counting_a_call_allocates_nothing() {
    let server = ServerMetrics::default();
    let call = || {
        server.translated(
            Revision::V2025_06_18,
            Revision::V2026_07_28,
            Plan::NewerServer,
        );
        let timer = server.start_call(Some(Method::ToolsCall));
        let _ = timer.finish(Outcome::Ok);
    };
    call();
    let measured = allocation_counter::measure(call);
    assert_eq!(measured.count_total, 0);
}

/// The arrays of `calls` are indexed by the discriminants.
#[test]
fn discriminants_are_positions_in_all() {
    for (at, method) in Method::ALL.iter().enumerate() {
        assert_eq!(*method as usize, at, "{method}");
    }
    for (at, revision) in Revision::ALL.into_iter().enumerate() {
        assert_eq!(revision as usize, at, "{revision}");
    }
}
