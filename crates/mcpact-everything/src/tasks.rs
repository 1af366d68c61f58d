//! Tools that run as tasks.

use std::time::Duration;

use mcpact::model::{ElicitAction, ElicitRequest, TaskSupport, Tool, ToolResult};
use mcpact::server::{Context, HandlerError, Question, Server};
use serde_json::{Value, json};
use tokio::time::sleep;

/// Maximum duration of a tool.
const LONGEST: Duration = Duration::from_secs(60);

fn tool(name: &str, description: &str, properties: Value, support: TaskSupport) -> Tool {
    let schema = json!({"type": "object", "properties": properties});
    Tool::new(name, schema)
        .description(description)
        .task_support(support)
}

pub(crate) fn register(server: Server) -> Server {
    let none = || json!({});
    server
        .tool_with(
            tool("greet", "Greets at once", json!({"name": {"type": "string"}}), TaskSupport::Forbidden),
            |arguments, _| async move {
                Ok(format!("Hello, {}!", arguments["name"].as_str().unwrap_or("World")))
            },
        )
        .tool_with(
            tool("slow_compute", "Works for a while", json!({"seconds": {"type": "number"}}), TaskSupport::Optional),
            |arguments, _| async move {
                let seconds = arguments["seconds"].as_f64().unwrap_or(1.0);
                sleep(Duration::try_from_secs_f64(seconds).unwrap_or(LONGEST).min(LONGEST)).await;
                Ok(format!("Computed for {seconds} seconds."))
            },
        )
        .tool_with(
            tool("failing_job", "Fails as a task", none(), TaskSupport::Required),
            |_, _| async {
                sleep(Duration::from_millis(100)).await;
                Err::<ToolResult, _>(HandlerError::failed("The job failed."))
            },
        )
        .tool_with(
            tool("protocol_error_job", "Ends in a protocol error", none(), TaskSupport::Required),
            |_, _| async {
                sleep(Duration::from_millis(100)).await;
                Err::<ToolResult, _>(HandlerError::rpc(-32603, "The job broke."))
            },
        )
        .tool_with(
            tool("confirm_delete", "Asks before it deletes", json!({"filename": {"type": "string"}}), TaskSupport::Required),
            |arguments, context: Context| async move {
                let name = arguments["filename"].as_str().unwrap_or("the file").to_owned();
                let answer = context.elicit("confirm", confirm(&format!("Delete {name}?"))).await?;
                Ok(match answer.action {
                    ElicitAction::Accept => format!("Deleted {name}."),
                    ElicitAction::Decline | ElicitAction::Cancel => format!("Kept {name}."),
                })
            },
        )
        .tool_with(
            tool("multi_input", "Asks two things", none(), TaskSupport::Required),
            |_, context: Context| async move {
                let answers = context
                    .ask_all([
                        ("first".to_owned(), Question::elicit(confirm("The first?"))),
                        ("second".to_owned(), Question::elicit(confirm("The second?"))),
                    ])
                    .await?;
                Ok(format!("{} answers", answers.len()))
            },
        )
        .tool_in_two_steps(
            tool("test_tool_with_task", "Asks for a name, then works as a task", none(), TaskSupport::Required),
            |_, context: Context| async move {
                let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]});
                let request = ElicitRequest::form("What is your name?", schema);
                let answer = context.elicit("user_name", request).await?;
                Ok(answer.content.map_or(Value::Null, Value::Object))
            },
            |gathered, _| async move {
                sleep(Duration::from_millis(200)).await;
                Ok(format!("The task is done, {}.", gathered["name"].as_str().unwrap_or("unknown")))
            },
        )
}

fn confirm(message: &str) -> ElicitRequest {
    let schema = json!({
        "type": "object",
        "properties": {"confirm": {"type": "boolean"}},
        "required": ["confirm"],
    });
    ElicitRequest::form(message, schema)
}
