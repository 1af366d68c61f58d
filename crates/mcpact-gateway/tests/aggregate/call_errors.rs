//! Errors of failed calls.

use std::time::Duration;

use mcpact_config::RunSettings;
use mcpact_gateway::Cache;
use mcpact_spec::Era;
use serde_json::{Value, json};

use crate::in_process::aggregator;
use crate::scripted_process::ScriptedProcess;
use crate::wire::Wire;

/// Calls the tool of a server with this answer; returns the error.
async fn failed(answer: &str, call_timeout: Duration) -> Value {
    let script = ScriptedProcess::new(Era::Legacy, &json!({"tools": {}}));
    script.put("tools-call", answer);
    let run = RunSettings {
        call_timeout,
        ..RunSettings::default()
    };
    let aggregator = aggregator(vec![script.member_run("shop", &Cache::disabled(), run)]);
    let mut wire = Wire::modern(&aggregator, &json!({}));
    let params = json!({"name": "shop__one", "arguments": {}});
    wire.ask("tools/call", params).await["error"].clone()
}

/// The error of a failed call names the server, the cause and a remedy.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn error_of_a_failed_call_names_server_cause_and_remedy() {
    let minute = Duration::from_secs(60);
    let twice = r#"{"content":[],"content":[]}"#;
    let cells = [
        (
            failed("never", Duration::from_millis(200)).await,
            "upstream_timeout",
            "`shop`: the server did not answer within 200ms; hint: raise `call_seconds`",
        ),
        (
            failed(twice, minute).await,
            "upstream_unfit",
            "`shop`: the server's result cannot be translated for a client of revision 2026-07-28: ",
        ),
        (
            failed("[]", minute).await,
            "upstream_misbehaved",
            "`shop`: protocol violation by the server: the result of `tools/call` must be an object",
        ),
    ];
    for (error, reason, words) in cells {
        assert_eq!(error["data"]["reason"], reason, "{error}");
        let message = error["message"].as_str().unwrap_or_default();
        assert!(message.starts_with(words), "{error}");
    }
}
