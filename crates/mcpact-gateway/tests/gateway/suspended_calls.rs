//! Suspended calls during a reload.

use std::time::Duration;

use mcpact::model::ElicitResult;
use mcpact_spec::Revision;
use serde_json::{Map, json};

use crate::harness::{catalog, client, gateway};

/// Time limit of each wait.
const PATIENCE: Duration = Duration::from_secs(60);

const ASKS: &str = "test_input_required_result_elicitation";

/// Returns the config of a legacy server, which asks questions during a call.
fn server(era: &str, drain: &str) -> String {
    format!("[servers.s]\nbuiltin = \"everything\"\nera = \"{era}\"\ndrain_seconds = {drain}\n")
}

/// Makes a call that is suspended by a question while a reload replaces its server; returns the outcome.
async fn asked(path: &str, drain: &str, next: &'static str) -> Result<String, String> {
    let (gateway, origin) = gateway(&server("2025-06-18", drain)).await;
    let is_given_time = drain != "0";
    let able = client(Revision::V2026_07_28).on_elicitation(move |_| {
        let gateway = gateway.clone();
        async move {
            gateway.change(catalog(next)).unwrap();
            let runs = || {
                let servers = gateway.status(None).unwrap().servers;
                servers.iter().any(|server| server.in_flight > 0)
            };
            while !is_given_time && runs() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            let answer = Map::from_iter([("name".to_owned(), json!("Ann"))]);
            Ok(ElicitResult::accept(answer))
        }
    });
    let able = able.connect(format!("{origin}{path}")).await.unwrap();
    let prefix = if path == "/mcp" { "s__" } else { "" };
    let tool = format!("{prefix}{ASKS}");
    let call = able.call_tool(&tool, json!({}));
    let called = tokio::time::timeout(PATIENCE, call).await.unwrap();
    called
        .map(|result| result.all_text())
        .map_err(|error| error.to_string())
}

const RESTARTED: &str = "[servers.s]\nbuiltin = \"everything\"\nera = \"2025-11-25\"\n";

/// BB-09: a suspended call of a replaced server resumes within the drain time; afterwards the client learns that the
/// call is lost.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn suspended_calls_resume_on_a_replaced_server() {
    for path in ["/mcp", "/servers/s/mcp"] {
        let answered = asked(path, "60", RESTARTED).await;
        assert_eq!(answered, Ok(String::from("Hello, Ann!")));
        let lost = asked(path, "0", RESTARTED).await.unwrap_err();
        for word in ["config reload", "may have had its effect", "call again"] {
            assert!(lost.contains(word), "{path}: {lost}");
        }
    }
}

/// BB-09: a suspended call of a removed server resumes within the drain time; afterwards the error does not claim that
/// the tool never existed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn suspended_calls_resume_on_a_removed_server() {
    let other = "[servers.other]\nbuiltin = \"everything\"\n";
    let answered = asked("/mcp", "60", other).await;
    assert_eq!(answered, Ok(String::from("Hello, Ann!")));
    let lost = asked("/mcp", "0", other).await.unwrap_err();
    for word in ["`s`", "config reload", "may have had its effect"] {
        assert!(lost.contains(word), "{lost}");
    }
}
