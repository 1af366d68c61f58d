use std::sync::Arc;
use std::time::Duration;

use mcpact_engine::refusal::WireError;
use mcpact_spec::{Method, Revision};

use mcpact_transport::stdio::child::Masks;

use super::*;
use crate::error::{ServeError, Trouble, UpstreamError};

fn written(figures: &Figures) -> String {
    let mut out = Exposition::default();
    figures.write(&mut out);
    out.finish()
}

fn upstream(kind: Trouble) -> ServeError {
    ServeError::from(UpstreamError {
        target: String::from("`x`"),
        kind,
        masks: Masks::default(),
    })
}

/// Error response of a server that claims one of the gateway's reasons.
fn response(data: &str) -> ServeError {
    ServeError::Response(WireError {
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
        (upstream(Trouble::Unseen { limit }), "busy"),
        (upstream(Trouble::Gone("x".into())), "lost"),
        (upstream(Trouble::Silent { limit }), "timeout"),
        (upstream(Trouble::Closed), "unavailable"),
        (
            upstream(Trouble::Same(Arc::new(Trouble::Forgotten))),
            "lost",
        ),
    ];
    for (error, expected) in cells {
        assert_eq!(Outcome::of(Err(&error)).as_str(), expected, "{error:?}");
    }
    assert_eq!(Outcome::of(Ok(())).as_str(), "ok");
}

/// Calls are counted by method and outcome, with the time that they took; who goes away is counted,
/// too.
#[test]
fn calls_are_counted() {
    let figures = Figures::default();
    let server = figures.server("a \"b\"\\");
    server.routed(Some(Method::ToolsCall)).ended(Outcome::Ok);
    drop(server.routed(Some(Method::ToolsCall)));
    server.routed(None).ended(Outcome::Lost);
    server.crosses(
        Revision::V2024_11_05,
        Revision::V2026_07_28,
        Plan::NewerServer,
    );
    let text = written(&figures);
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

/// A server that is not served any more is not told of; one that is configured anew counts on.
#[test]
fn figures_follow_the_servers() {
    let figures = Figures::default();
    figures.server("a").dropped(DropReason::LateAnswer);
    figures.server("b").dropped(DropReason::LateAnswer);
    figures.server("a").dropped(DropReason::LateAnswer);
    figures.keep_only(|name| name == "a");
    let text = written(&figures);
    let row = r#"mcpact_dropped_total{side="server",server="a",reason="late_answer"} 2"#;
    assert!(text.contains(row), "{text}");
    assert!(!text.contains("server=\"b\""), "{text}");
}

/// What every call passes is counted without anything being allocated, once a method is known.
#[test]
fn counting_a_call_allocates_nothing() {
    let server = ServerFigures::default();
    let call = || {
        server.crosses(
            Revision::V2025_06_18,
            Revision::V2026_07_28,
            Plan::NewerServer,
        );
        let mut routed = server.routed(Some(Method::ToolsCall));
        routed.ended(Outcome::of(Ok(())));
    };
    call();
    let measured = allocation_counter::measure(call);
    assert_eq!(measured.count_total, 0);
}

/// A method is counted under its own name.
#[test]
fn methods_have_their_places() {
    for (at, method) in Method::ALL.iter().enumerate() {
        assert_eq!(*method as usize, at, "{method}");
    }
    for (at, revision) in Revision::ALL.into_iter().enumerate() {
        assert_eq!(revision as usize, at, "{revision}");
    }
}
