//! A client that answers questions of servers: forms, URLs, sampling and roots. The declared capabilities follow from
//! the handlers.
//!
//! `cargo run --example client_with_handlers -- http://127.0.0.1:6273/mcp greet` calls a tool.

use mcpact::client::{Client, ClientBuilder, ClientError};
use mcpact::model::{CreateMessageResult, ElicitResult, Root};
use serde_json::{Map, Value, json};

pub(crate) fn builder() -> ClientBuilder {
    Client::builder("answering", "1.0.0")
        .on_elicitation(|form| async move {
            // A real client shows the form; this one fills in a name and keeps the defaults.
            let filled_in = Map::from_iter([(String::from("name"), Value::from("Ann"))]);
            Ok(form.accept_with_defaults(filled_in))
        })
        .on_url_elicitation(|request| async move {
            // A real client shows the whole URL and asks before it opens anything.
            Ok(match request.url.starts_with("https://example.com/") {
                true => ElicitResult::consent(),
                false => ElicitResult::decline(),
            })
        })
        .on_sampling(|_| async move { Ok(CreateMessageResult::new("a-model", "forty-two")) })
        .roots(vec![Root::new("file:///home/ann").name("home")])
}

#[tokio::main]
#[expect(clippy::print_stdout, reason = "prints its result")]
async fn main() -> Result<(), ClientError> {
    let mut args = std::env::args().skip(1);
    let url = args.next().unwrap_or_default();
    let tool = args.next().unwrap_or_default();
    let client = builder().connect(url).await?;
    println!("{}", client.call_tool(&tool, json!({})).await?.all_text());
    Ok(())
}
