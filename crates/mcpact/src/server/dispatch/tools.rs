//! Tool calls, plain or as tasks.

use std::sync::Arc;

use mcpact_engine::task_rule::{self, CallMode};
use mcpact_spec::{Era, ErrorCode, Extension, Feature};
use serde_json::{Value, json};

use super::{Core, Params, Served};
use crate::model::{TaskSupport, ToolResult};
use crate::schema::Schema;
use crate::server::context::Context;
use crate::server::handler_error::{HandlerError, Kind};
use crate::server::registry::ToolEntry;

impl Core {
    pub(super) async fn call_tool(
        self: &Arc<Self>,
        params: &Params<'_>,
        context: &Context,
    ) -> Result<Served, HandlerError> {
        let arguments = params.value("arguments")?.unwrap_or_else(|| json!({}));
        let name = &*params.text("name")?;
        let Some(entry) = self.registry.tool(name) else {
            return Err(HandlerError::invalid_params(format!(
                "Unknown tool: {name}"
            )));
        };
        if let Some(problem) = first_violation(&entry.input, &arguments) {
            let is_result = context
                .pact()
                .revision()
                .has(Feature::ArgumentErrorsAreResults);
            let text = format!("Invalid arguments for tool {name}: {problem}");
            return if is_result {
                self.tool_result(&ToolResult::error(text), context)
            } else {
                Err(HandlerError::invalid_params(text))
            };
        }
        let is_task = self.is_task(entry, params, context)?;
        let arguments = match &entry.gather {
            // A core task is answered at once, so its questions belong to the task.
            Some(gather) if !is_task || context.pact().era() == Era::Modern => {
                gather.call(arguments, context.clone()).await?
            }
            Some(_) | None => arguments,
        };
        if is_task {
            let (core, name) = (Arc::clone(self), name.to_owned());
            let gathers_inside = context.pact().era() == Era::Legacy;
            let work = move |context: Context| {
                let work = async move {
                    let Some(entry) = core.registry.tool(&name) else {
                        return Err(HandlerError::internal());
                    };
                    let arguments = match entry.gather.as_ref().filter(|_| gathers_inside) {
                        Some(gather) => gather.call(arguments, context.clone()).await?,
                        None => arguments,
                    };
                    run_tool(entry, arguments, context).await
                };
                Box::pin(work) as _
            };
            return self
                .tasks
                .start(&params.tree()?, context, work)
                .map(Served::Final);
        }
        let result = run_tool(entry, arguments, context.clone()).await?;
        self.tool_result(&result, context)
    }

    fn tool_result(&self, result: &ToolResult, context: &Context) -> Result<Served, HandlerError> {
        Served::of_tool(result, context.pact().revision(), &self.server_info)
    }

    /// Returns `true` if this call runs as a task.
    pub(super) fn is_task(
        &self,
        entry: &ToolEntry,
        params: &Params<'_>,
        context: &Context,
    ) -> Result<bool, HandlerError> {
        let pact = context.pact();
        let support = entry.tool.supports_tasks();
        if pact.era() == Era::Modern {
            // In the extension the server decides: a client that declares it accepts tasks.
            let has_extension = pact.lacking(Extension::Tasks).is_none();
            return match (support, has_extension) {
                (TaskSupport::Forbidden, _) | (TaskSupport::Optional, false) => Ok(false),
                (TaskSupport::Optional | TaskSupport::Required, true) => Ok(true),
                (TaskSupport::Required, false) => {
                    let required = json!({"extensions": { Extension::Tasks.id(): {} }});
                    Err(HandlerError::rpc(
                        ErrorCode::MissingClientCapability.code(),
                        "Missing required client capability",
                    )
                    .with_data(json!({ "requiredCapabilities": required })))
                }
            };
        }
        let support = match support {
            TaskSupport::Forbidden => task_rule::TaskSupport::Forbidden,
            TaskSupport::Optional => task_rule::TaskSupport::Optional,
            TaskSupport::Required => task_rule::TaskSupport::Required,
        };
        let mode = match params.get("task") {
            Some(_) => CallMode::Task,
            None => CallMode::Plain,
        };
        task_rule::judge(pact, support, mode, self.settings.task_requirement)
            .map(|mode| mode == CallMode::Task)
            .map_err(|refusal| HandlerError(Kind::Refused(Box::new(refusal))))
    }
}

async fn run_tool(
    entry: &ToolEntry,
    arguments: Value,
    context: Context,
) -> Result<ToolResult, HandlerError> {
    let result = match entry.run.call(arguments, context).await {
        Ok(result) => result,
        Err(HandlerError(Kind::Failed(text))) => return Ok(ToolResult::error(text)),
        Err(other) => return Err(other),
    };
    if result.failed() {
        return Ok(result);
    }
    let structured = result.structured_content.as_ref();
    match (&entry.output, structured) {
        (Some(_), None) => Ok(ToolResult::error(
            "the tool returned no structured content, but its output schema requires it",
        )),
        (Some(schema), Some(value)) => Ok(match first_violation(schema, value) {
            Some(problem) => ToolResult::error(format!(
                "the tool's result violates its output schema: {problem}"
            )),
            None => result,
        }),
        (None, _) => Ok(result),
    }
}

/// Returns the first violation of a schema.
fn first_violation(schema: &Schema, value: &Value) -> Option<String> {
    let (location, problem) = schema.first_error(value)?;
    let location = if location.is_empty() {
        String::from("the arguments")
    } else {
        format!("`{location}`")
    };
    Some(format!("{location}: {problem}"))
}
