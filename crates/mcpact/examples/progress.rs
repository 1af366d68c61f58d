//! A slow tool: it reports progress, logs, and stops when the client cancels.
//!
//! `cargo run --example progress` serves on standard input and output.

use std::time::Duration;

use mcpact::model::LogLevel;
use mcpact::server::{Context, Server};
use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
struct Climb {
    steps: u32,
}

pub(crate) fn server() -> Server {
    Server::new("stairs", "1.0.0").logging().tool(
        "climb",
        "Climbs stairs, step by step",
        |climb: Climb, context: Context| async move {
            let total = f64::from(climb.steps);
            for step in 1..=climb.steps {
                // Cancellation drops this future: it ends at the next `await`.
                tokio::time::sleep(Duration::from_millis(1)).await;
                context.progress(f64::from(step), Some(total), None).await?;
                let text = format!("on step {step}");
                context.log(LogLevel::Debug, text).await?;
            }
            context.log(LogLevel::Info, "arrived").await?;
            Ok("up")
        },
    )
}

#[tokio::main]
async fn main() -> Result<(), mcpact::Error> {
    server().serve_stdio().await
}
