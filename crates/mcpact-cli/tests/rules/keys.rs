//! Keys of the config do what the manual says.

use mcpact::client::ClientBuilder;
use mcpact::model::ElicitResult;
use mcpact_spec::Revision;
use serde_json::json;

use crate::place::{Place, client};

async fn is_served(builder: ClientBuilder, url: &str) -> bool {
    match builder.connect(url.to_owned()).await {
        Ok(connected) => connected.list_tools().await.is_ok(),
        Err(_) => false,
    }
}

/// K2: what clients may speak and must have, what servers must have, and which tools are served, as the
/// config says it.
#[tokio::test(flavor = "multi_thread")]
async fn negotiation_follows_the_config() {
    let place = Place::new();
    place.configure(
        "own.toml",
        "[gateway]\nrevisions = [\"2025-06-18\", \"2025-11-25\"]\nrequire = [\"elicitation\"]\n\
         [servers.fit]\ncommand = \"SERVER\"\nrequire = [\"tools\"]\nhidden_tools = [\"add*\"]\n\
         [servers.unfit]\ncommand = \"SERVER\"\nrequire = [\"experimental.magic\"]\n",
    );
    let running = place.serve(&["--config", "own.toml"]);
    let able =
        |revision| client(revision).on_elicitation(|_| async { Ok(ElicitResult::decline()) });
    for refused in [Revision::V2024_11_05, Revision::LATEST] {
        assert!(!is_served(able(refused), &running.url).await, "{refused}");
    }
    let bare = client(Revision::V2025_11_25);
    assert!(!is_served(bare, &running.url).await, "without elicitation");
    let connected = able(Revision::V2025_11_25)
        .connect(running.url.clone())
        .await;
    let connected = connected.unwrap();
    let tools = connected.list_tools().await.unwrap();
    let has = |start: &str| tools.iter().any(|tool| tool.name.starts_with(start));
    assert!(has("fit__echo") && !has("fit__add") && !has("unfit__"));
    let refused = connected
        .call_tool("unfit__echo", json!({"text": "x"}))
        .await;
    let why = refused.unwrap_err().to_string();
    assert!(why.contains("experimental.magic"), "{why}");
}
