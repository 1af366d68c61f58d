//! The reference server and the library's own client, with every message of both held against the
//! official schemas: `cargo xtask oracle` runs it.
//!
//! ```text
//! official_schemas DIR
//! ```
//!
//! What does not fit is refused by whichever side sees it, and named here.

use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use mcpact::client::{CallOptions, Client, ClientError, EraMode};
use mcpact::conformity::{Schemas, Validation};
use mcpact::model::{CreateMessageResult, FormRequest, LogLevel, Root};
use mcpact_spec::Revision;
use serde_json::{Map, Value, json};

/// How long a tool may take; some wait to be cancelled.
const PATIENCE: Duration = Duration::from_secs(3);

/// Tools that need arguments to get far.
fn arguments(tool: &str) -> Value {
    match tool {
        "echo" => json!({"text": "hello"}),
        "add" => json!({"a": 1, "b": 2}),
        "greet" => json!({"name": "Ann"}),
        "slow_compute" => json!({"seconds": 0.1}),
        "confirm_delete" => json!({"filename": "f"}),
        "test_sampling" => json!({"prompt": "hello"}),
        "test_elicitation" => json!({"message": "hello"}),
        _ => json!({}),
    }
}

/// Something for every field that must be filled.
fn filled(form: &FormRequest) -> Map<String, Value> {
    let required = form.requested_schema.get("required");
    let required = required.and_then(Value::as_array).into_iter().flatten();
    required
        .filter_map(Value::as_str)
        .map(|name| {
            let field = form
                .requested_schema
                .pointer(&format!("/properties/{name}"));
            let kind = field.and_then(|field| field.get("type")?.as_str());
            let value = match kind {
                Some("boolean") => json!(true),
                Some("number" | "integer") => json!(1),
                Some(_) | None => json!("x"),
            };
            (name.to_owned(), value)
        })
        .collect()
}

/// What was asked, and what of it did not fit.
#[derive(Default)]
struct Tally {
    asked: usize,
    failed: usize,
    misfits: Vec<String>,
}

impl Tally {
    /// Failures are part of the show; a misfit is not, whoever has found it.
    fn count<T>(&mut self, what: &str, outcome: Result<T, ClientError>) -> Option<T> {
        self.asked += 1;
        let error = match outcome {
            Ok(value) => return Some(value),
            Err(error) => error,
        };
        self.failed += 1;
        let mut text = error.to_string();
        let mut cause = error.source();
        while let Some(source) = cause {
            text = format!("{text}: {source}");
            cause = source.source();
        }
        if text.contains("does not fit") {
            self.misfits.push(format!("{what}: {text}"));
        }
        None
    }
}

async fn connect(revision: Revision, schemas: &Arc<Schemas>) -> Result<Client, ClientError> {
    let validation = Validation::Refuse(Arc::clone(schemas));
    let ours = validation.clone();
    let server = mcpact_everything::server(&[revision])
        .settings(|settings| settings.validation = validation);
    let (near, far) = mcpact::memory::pair();
    tokio::spawn(server.serve(far));
    Client::builder("official schemas", "1")
        .mode(EraMode::Pin(revision))
        .validation(ours)
        .log_level(LogLevel::Debug)
        .tasks()
        .sampling_tools()
        .on_sampling(|_| async { Ok(CreateMessageResult::new("model", "hello")) })
        .on_elicitation(|form: FormRequest| async move {
            let filled = filled(&form);
            Ok(form.accept_with_defaults(filled))
        })
        .roots(vec![Root::new("file:///work")])
        .connect(near)
        .await
}

async fn walk(client: &Client) -> Tally {
    let mut tally = Tally::default();
    let tools = tally.count("tools/list", client.list_tools().await);
    for tool in tools.into_iter().flatten() {
        let options = CallOptions::new().timeout(PATIENCE).on_progress(|_| {});
        let called = client.call_tool_with(&tool.name, arguments(&tool.name), options);
        tally.count(&tool.name, called.await);
    }
    let resources = tally.count("resources/list", client.list_resources().await);
    for resource in resources.into_iter().flatten() {
        tally.count(&resource.uri, client.read_resource(&resource.uri).await);
    }
    let templates = client.list_resource_templates().await;
    tally.count("resources/templates/list", templates);
    let prompts = tally.count("prompts/list", client.list_prompts().await);
    for prompt in prompts.into_iter().flatten() {
        let given = prompt.arguments.iter().flatten();
        let given = given.map(|argument| (argument.name.clone(), json!("x")));
        let got = client.get_prompt(&prompt.name, given.collect()).await;
        tally.count(&prompt.name, got);
    }
    tally
}

#[tokio::main(flavor = "current_thread")]
#[expect(clippy::print_stdout, reason = "its output is what it is for")]
async fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args_os().nth(1).map(PathBuf::from);
    let folder = folder.ok_or("usage: official_schemas DIR")?;
    let schemas = Arc::new(Schemas::read(&folder)?);
    let mut misfits = Vec::new();
    for revision in Revision::ALL {
        let client = connect(revision, &schemas).await?;
        let tally = walk(&client).await;
        let (asked, failed) = (tally.asked, tally.failed);
        println!("{revision}: {asked} requests fit, {failed} of them answered by an error");
        let named = tally.misfits.iter();
        misfits.extend(named.map(|misfit| format!("{revision} {misfit}")));
        client.close().await;
    }
    if misfits.is_empty() {
        return Ok(());
    }
    Err(misfits.join("\n").into())
}
