//! A server and its client in one process, connected in memory: the fastest way to test either.
//!
//! `cargo run --example in_memory` runs the same test against every revision.

use mcpact::client::{Client, EraMode, Revision};
use mcpact::memory;
use mcpact::server::{NoArgs, Server};
use serde_json::json;

fn server() -> Server {
    Server::new("tested", "1.0.0").tool("hello", "Says hello", |_: NoArgs, _| async { Ok("hello") })
}

/// Calls the tool as a client of this revision.
pub(crate) async fn hello(revision: Revision) -> Result<String, Box<dyn std::error::Error>> {
    let (near, far) = memory::pair();
    let serving = tokio::spawn(server().serve(far));
    let builder = Client::builder("test", "1.0.0").mode(EraMode::Pin(revision));
    let client = builder.connect(near).await?;
    let text = client.call_tool("hello", json!({})).await?.all_text();
    client.close().await;
    serving.await??;
    Ok(text)
}

#[tokio::main]
#[expect(clippy::print_stdout, reason = "prints its result")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    for revision in Revision::ALL {
        println!("{revision}: {}", hello(revision).await?);
    }
    Ok(())
}
