//! Minimal server on stdin and stdout.

use mcpact::server::{Context, Server};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Add {
    a: f64,
    b: f64,
}

#[tokio::main]
async fn main() -> Result<(), mcpact::Error> {
    let add = |args: Add, _: Context| async move { Ok((args.a + args.b).to_string()) };
    Server::new("adder", "1.0.0")
        .tool("add", "Adds two numbers", add)
        .serve_stdio()
        .await
}
