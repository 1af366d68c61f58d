//! Calls that wait for input while the config is read anew.

use std::time::Duration;

use mcpact::model::ElicitResult;
use mcpact_spec::Revision;
use serde_json::{Map, json};

use crate::place::{catalog, client, gateway};

/// How long anything may take before the test has failed.
const PATIENCE: Duration = Duration::from_secs(60);

const ASKS: &str = "test_input_required_result_elicitation";

/// A legacy server, which asks while its call is open.
fn server(era: &str, drain: &str) -> String {
    format!("[servers.s]\nbuiltin = \"everything\"\nera = \"{era}\"\ndrain_seconds = {drain}\n")
}

/// How a call fares during whose question the config is read anew, and the server becomes another one.
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

/// BB-09: whoever comes back with answers for a call of a server that was ended meanwhile goes on with it for as long as
/// its calls have time to end, and is told afterwards what became of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_was_asked_goes_on_with_a_server_that_is_ended() {
    for path in ["/mcp", "/servers/s/mcp"] {
        let answered = asked(path, "60", RESTARTED).await;
        assert_eq!(answered, Ok(String::from("Hello, Ann!")));
        let lost = asked(path, "0", RESTARTED).await.unwrap_err();
        for word in [
            "the config was read anew",
            "may have had its effect",
            "call it again",
        ] {
            assert!(lost.contains(word), "{path}: {lost}");
        }
    }
}

/// BB-09: the same where the server has left the config: its call goes on while it may, and nobody is told that there was
/// never such a tool.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_was_asked_goes_on_with_a_server_that_has_left() {
    let other = "[servers.other]\nbuiltin = \"everything\"\n";
    let answered = asked("/mcp", "60", other).await;
    assert_eq!(answered, Ok(String::from("Hello, Ann!")));
    let lost = asked("/mcp", "0", other).await.unwrap_err();
    for word in ["`s`", "the config was read anew", "may have had its effect"] {
        assert!(lost.contains(word), "{lost}");
    }
}
