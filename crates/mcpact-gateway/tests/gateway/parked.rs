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

/// How a call fares during whose question the config is read anew, and the server is started in another way.
async fn asked(path: &str, drain: &str) -> Result<String, String> {
    let (gateway, origin) = gateway(&server("2025-06-18", drain)).await;
    let is_given_time = drain != "0";
    let able = client(Revision::V2026_07_28).on_elicitation(move |_| {
        let gateway = gateway.clone();
        async move {
            gateway.change(catalog(&server("2025-11-25", "0"))).unwrap();
            let runs = || gateway.status(None).unwrap().servers[0].in_flight > 0;
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

/// G19, BB-09: whoever comes back with answers for a call of a server that was ended meanwhile goes on with it for as long as
/// its calls have time to end, and is told afterwards what became of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_was_asked_goes_on_with_a_server_that_is_ended() {
    for path in ["/mcp", "/servers/s/mcp"] {
        assert_eq!(asked(path, "60").await, Ok(String::from("Hello, Ann!")));
        let lost = asked(path, "0").await.unwrap_err();
        for word in [
            "the config was read anew",
            "may have had its effect",
            "call it again",
        ] {
            assert!(lost.contains(word), "{path}: {lost}");
        }
    }
}
