//! Tools with typed arguments and results: schemas are derived, and invalid arguments are rejected before the handler
//! runs.
//!
//! `cargo run --example typed_tools` serves on standard input and output.

use mcpact::model::{Tool, ToolResult};
use mcpact::server::{Context, HandlerError, Server};
use schemars::{JsonSchema, schema_for};
use serde::{Deserialize, Serialize};
use serde_json::Value;

#[derive(Deserialize, JsonSchema)]
struct Journey {
    /// In kilometres.
    distance: f64,
    /// In hours.
    duration: f64,
}

#[derive(Serialize, JsonSchema)]
struct Pace {
    kilometres_per_hour: f64,
}

pub(crate) fn server() -> Server {
    let pace = Tool::new("pace", schema_for!(Journey).to_value())
        .description("How fast a journey is")
        .output_schema(schema_for!(Pace).to_value());
    Server::new("journeys", "1.0.0")
        .tool(
            "describe",
            "A journey in words",
            |journey: Journey, _: Context| async move {
                Ok(format!("{} km in {} h", journey.distance, journey.duration))
            },
        )
        .tool_with(pace, |arguments: Value, _| async move {
            let journey: Journey = serde_json::from_value(arguments)?;
            if journey.duration <= 0.0 {
                // The model reads this and can retry; `HandlerError::invalid_params` would be for programs.
                return Err(HandlerError::failed("a journey takes time"));
            }
            let kilometres_per_hour = journey.distance / journey.duration;
            let text = format!("{kilometres_per_hour} km/h");
            let pace = serde_json::to_value(Pace {
                kilometres_per_hour,
            })?;
            Ok(ToolResult::text(text).structured(pace))
        })
}

#[tokio::main]
async fn main() -> Result<(), mcpact::Error> {
    server().serve_stdio().await
}
