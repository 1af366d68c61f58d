//! A tool that may run as a task: the client gets a handle at once and the result later.
//!
//! `cargo run --example tasks` serves on standard input and output.

use std::time::Duration;

use mcpact::model::{TaskSupport, Tool};
use mcpact::server::Server;
use serde_json::{Value, json};

pub(crate) fn server() -> Server {
    let schema = json!({ "type": "object", "properties": { "what": { "type": "string" } } });
    let bake = Tool::new("bake", schema)
        .description("Takes a while")
        .task_support(TaskSupport::Optional);
    Server::new("bakery", "1.0.0").tool_with(bake, |arguments: Value, _| async move {
        tokio::time::sleep(Duration::from_millis(50)).await;
        let what = arguments["what"].as_str().unwrap_or("bread").to_owned();
        Ok(format!("{what} is ready"))
    })
}

#[tokio::main]
async fn main() -> Result<(), mcpact::Error> {
    server().serve_stdio().await
}
