//! Minimal client: `cargo run --example smallest_client -- http://127.0.0.1:6272/mcp`.

use mcpact::client::{Client, ClientError};

#[tokio::main]
#[expect(clippy::print_stdout, reason = "prints its result")]
async fn main() -> Result<(), ClientError> {
    let url = std::env::args().nth(1).unwrap_or_default();
    let client = Client::connect(url).await?;
    for tool in client.list_tools().await? {
        println!("{}\t{}", tool.name, tool.description.unwrap_or_default());
    }
    Ok(())
}
