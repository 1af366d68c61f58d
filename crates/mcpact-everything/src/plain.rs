//! Tools that need no client capabilities.

use std::time::Duration;

use mcpact::model::{Content, LogLevel, ResourceContents, Tool, ToolResult};
use mcpact::server::{Context, HandlerError, NoArgs, Server};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::media::{PIXEL, SILENCE};
use crate::resources::WATCHED;

const STEP: Duration = Duration::from_millis(50);

/// Two numbers.
#[derive(Debug, Deserialize, JsonSchema)]
struct Pair {
    /// The first number.
    a: f64,
    /// The second number.
    b: f64,
}

/// Some text.
#[derive(Debug, Deserialize, JsonSchema)]
struct Echo {
    /// Text to echo.
    text: String,
}

pub(crate) fn register(server: Server) -> Server {
    server
        .tool("echo", "Echoes its argument", |args: Echo, _| async move {
            Ok(args.text)
        })
        .tool("add", "Adds two numbers", |args: Pair, _| async move {
            let sum = args.a + args.b;
            Ok(ToolResult::text(sum.to_string()).structured(json!({ "sum": sum })))
        })
        .tool("test_simple_text", "Gives a text", |_: NoArgs, _| async {
            Ok("This is a simple text response for testing.")
        })
        .tool(
            "test_image_content",
            "Gives a picture",
            |_: NoArgs, _| async { Ok(ToolResult::new([Content::image(PIXEL, "image/png")])) },
        )
        .tool(
            "test_audio_content",
            "Gives a sound",
            |_: NoArgs, _| async { Ok(ToolResult::new([Content::audio(SILENCE, "audio/wav")])) },
        )
        .tool(
            "test_embedded_resource",
            "Gives a resource",
            |_: NoArgs, _| async {
                let contents = ResourceContents::text(
                    "test://embedded-resource",
                    "This is an embedded resource content.",
                );
                Ok(ToolResult::new([Content::resource(
                    contents.mime_type("text/plain"),
                )]))
            },
        )
        .tool(
            "test_multiple_content_types",
            "Gives text, a picture and a resource",
            |_: NoArgs, _| async {
                let contents = ResourceContents::text(
                    "test://mixed-content-resource",
                    json!({"test": "data", "value": 123}).to_string(),
                );
                Ok(ToolResult::new([
                    Content::text("Multiple content types test:"),
                    Content::image(PIXEL, "image/png"),
                    Content::resource(contents.mime_type("application/json")),
                ]))
            },
        )
        .tool("test_error_handling", "Fails", |_: NoArgs, _| async {
            Err::<ToolResult, _>(HandlerError::failed(
                "This tool intentionally returns an error for testing",
            ))
        })
        .tool(
            "test_tool_with_progress",
            "Tells how far it has come",
            |_: NoArgs, context: Context| async move {
                for done in [0.0, 50.0, 100.0] {
                    context
                        .progress(
                            done,
                            Some(100.0),
                            Some(&format!("Completed step {done} of 100")),
                        )
                        .await?;
                    sleep(STEP).await;
                }
                Ok("The work is done.")
            },
        )
        .tool(
            "test_tool_with_logging",
            "Logs while it works",
            |_: NoArgs, context: Context| async move {
                for message in [
                    "Tool execution started",
                    "Tool processing data",
                    "Tool execution completed",
                ] {
                    context.log(LogLevel::Info, message).await?;
                    sleep(STEP).await;
                }
                Ok("The work is done.")
            },
        )
        .tool(
            "test_logging_tool",
            "Logs, if the request asks for it",
            |_: NoArgs, context: Context| async move {
                context.log(LogLevel::Info, "a log message").await?;
                Ok("Logged.")
            },
        )
        .tool(
            "test_reconnection",
            "Lets go of its stream and finishes later",
            |_: NoArgs, context: Context| async move {
                context.release_stream(Duration::from_millis(500)).await?;
                sleep(Duration::from_millis(200)).await;
                Ok("Reconnection test completed.")
            },
        )
        .tool(
            "test_trigger_tool_change",
            "Tells that the tools have changed",
            |_: NoArgs, context: Context| async move {
                context.tools_changed();
                Ok("Told.")
            },
        )
        .tool(
            "test_trigger_prompt_change",
            "Tells that the prompts have changed",
            |_: NoArgs, context: Context| async move {
                context.prompts_changed();
                Ok("Told.")
            },
        )
        .tool(
            "test_trigger_resource_update",
            "Tells that the watched resource has changed",
            |_: NoArgs, context: Context| async move {
                context.resource_updated(WATCHED);
                Ok("Told.")
            },
        )
        .tool_with(schema_tool(), |_: Value, _| async {
            Ok("The schema was honoured.")
        })
        .tool_with(header_tool(), |arguments: Value, _| async move {
            Ok(format!(
                "region: {}",
                arguments["region"].as_str().unwrap_or("none")
            ))
        })
}

/// A schema with every keyword that must reach the client as it is.
fn schema_tool() -> Tool {
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {
                "$anchor": "addressDef",
                "type": "object",
                "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
            },
        },
        "properties": {
            "name": {"type": "string"},
            "address": {"$ref": "#/$defs/address"},
            "contactMethod": {"type": "string", "enum": ["phone", "email"]},
            "phone": {"type": "string"},
            "email": {"type": "string"},
        },
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
        "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
        "then": {"required": ["phone"]},
        "else": {"required": ["email"]},
        "additionalProperties": false,
    });
    Tool::new("json_schema_2020_12_tool", schema).description("Has a schema of every kind")
}

fn header_tool() -> Tool {
    let schema = json!({
        "type": "object",
        "properties": {
            "region": {"type": "string", "description": "Where to run", "x-mcp-header": "Region"},
        },
    });
    Tool::new("test_x_mcp_header", schema)
        .description("Has a parameter that is mirrored into a header")
}
