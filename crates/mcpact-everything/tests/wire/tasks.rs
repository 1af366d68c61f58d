//! Tasks on the wire: the core feature of 2025-11-25 and the extension of 2026-07-28.

mod core;
mod extension;

use std::sync::Arc;

use mcpact::model::{ElicitAction, ElicitRequest, TaskSupport, Tool, ToolResult};
use mcpact::server::{Context, HandlerError, Server};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::http::modern;

const RELATED: &str = "io.modelcontextprotocol/related-task";
const EXTENSION: &str = "io.modelcontextprotocol/tasks";

fn tool(name: &str, support: TaskSupport) -> Tool {
    Tool::new(name, json!({"type": "object"})).task_support(support)
}

/// A server with work that ends on a signal, so that tests do not depend on time.
fn server() -> (Server, Arc<Semaphore>) {
    let go_on = Arc::new(Semaphore::new(0));
    let gate = Arc::clone(&go_on);
    let server = Server::new("t", "1")
        .tool_with(tool("work", TaskSupport::Optional), move |_, _| {
            let gate = Arc::clone(&gate);
            async move {
                gate.acquire().await?.forget();
                Ok("worked")
            }
        })
        .tool_with(tool("plain", TaskSupport::Forbidden), |_, _| async {
            Ok("at once")
        })
        .tool_with(tool("fail", TaskSupport::Required), |_, _| async {
            Err::<ToolResult, _>(HandlerError::failed("It did not work."))
        })
        .tool_with(tool("break", TaskSupport::Required), |_, _| async {
            let error = HandlerError::rpc(-32050, "It broke.");
            Err::<ToolResult, _>(error.with_data(json!({"where": "here"})))
        })
        .tool_with(tool("panic", TaskSupport::Required), |_, _| async {
            assert!(std::hint::black_box(false), "as it must");
            Ok("never")
        })
        .tool_with(
            tool("promise", TaskSupport::Required).output_schema(json!({
                "type": "object", "properties": {"n": {"type": "number"}}, "required": ["n"],
            })),
            |_, _| async { Ok(ToolResult::text("one").structured(json!({"n": "one"}))) },
        )
        .tool_with(
            tool("ask", TaskSupport::Required),
            |_, context: Context| async move {
                let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}});
                let answer = context
                    .elicit("who", ElicitRequest::form("Who?", schema))
                    .await?;
                Ok(match (answer.action, answer.content) {
                    (ElicitAction::Accept, Some(content)) => format!("It is {}.", content["name"]),
                    _ => "Unknown.".to_owned(),
                })
            },
        );
    (server, go_on)
}

/// A modern request of a client that knows tasks and can be asked.
fn with_tasks(id: i64, method: &str, params: Value) -> Value {
    let mut message = modern(id, method, params);
    message["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] =
        json!({"elicitation": {}, "extensions": { EXTENSION: {} }});
    message
}
