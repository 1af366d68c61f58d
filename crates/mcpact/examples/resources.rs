//! Resources, a template, and change notifications.
//!
//! `cargo run --example resources` serves on standard input and output.

use std::sync::{Arc, Mutex, PoisonError};

use mcpact::model::{Resource, ResourceContents, ResourceTemplate};
use mcpact::server::{Context, HandlerError, Server};
use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
struct Note {
    text: String,
}

pub(crate) fn server() -> Server {
    let board = Arc::new(Mutex::new(String::from("nothing yet")));
    let shown = Arc::clone(&board);
    Server::new("board", "1.0.0")
        .resource(
            Resource::new("board://today", "today").mime_type("text/plain"),
            move |uri: String, _| {
                let text = shown.lock().unwrap_or_else(PoisonError::into_inner).clone();
                async move { Ok(vec![ResourceContents::text(uri, text)]) }
            },
        )
        .template(
            ResourceTemplate::new("board://archive/{year}", "archive"),
            |(uri, found), _| async move {
                let year = found["year"].as_str().unwrap_or_default();
                if year.parse::<u16>().is_err() {
                    return Err(HandlerError::resource_not_found(uri));
                }
                let text = format!("the board of {year}");
                Ok(vec![ResourceContents::text(uri, text)])
            },
        )
        .tool(
            "write",
            "Writes on the board",
            move |note: Note, context: Context| {
                *board.lock().unwrap_or_else(PoisonError::into_inner) = note.text;
                async move {
                    // Notifies all subscribers, in the encoding of their revision.
                    context.resource_updated("board://today");
                    Ok("written")
                }
            },
        )
}

#[tokio::main]
async fn main() -> Result<(), mcpact::Error> {
    server().serve_stdio().await
}
