//! What clients are told of calls that a server does not serve as it should.

use std::time::Duration;

use mcpact_config::RunSettings;
use mcpact_gateway::Cache;
use serde_json::{Value, json};

use crate::house::hub;
use crate::scripted::{Script, Speaks};
use crate::wire::Wire;

/// Calls the tool of a server that answers like this, and gives back the error.
async fn failed(answer: &str, call_timeout: Duration) -> Value {
    let script = Script::new(Speaks::Handshake, &json!({"tools": {}}));
    script.put("tools-call", answer);
    let run = RunSettings {
        call_timeout,
        ..RunSettings::default()
    };
    let hub = hub(vec![script.member_run("shop", &Cache::disabled(), run)]);
    let mut wire = Wire::modern(&hub, &json!({}));
    let params = json!({"name": "shop__one", "arguments": {}});
    wire.ask("tools/call", params).await["error"].clone()
}

/// A failed call names the server, the cause and what helps.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_call_names_server_cause_and_remedy() {
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
            "`shop`: protocol violation by the server: its answer to `tools/call` should be `object`",
        ),
    ];
    for (error, reason, words) in cells {
        assert_eq!(error["data"]["reason"], reason, "{error}");
        let message = error["message"].as_str().unwrap_or_default();
        assert!(message.starts_with(words), "{error}");
    }
}
