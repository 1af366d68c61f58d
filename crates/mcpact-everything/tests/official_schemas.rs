//! Validates all messages of the reference server and the client against the official schemas.
//!
//! `cargo xtask oracle DIR` sets [`DIR`] to check other schemas than the vendored ones.

use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use mcpact::client::{CallOptions, Client, ClientError, EraMode};
use mcpact::model::{CreateMessageResult, FormRequest, LogLevel, Root};
use mcpact::validation::{Schemas, Validation};
use mcpact_spec::Revision;
use serde_json::{Map, Value, json};

/// Directory with `<revision>/schema.json`.
const DIR: &str = "MCPACT_SCHEMAS";
const VENDORED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../mcpact-spec/schemas");

/// Timeout of a tool call; some tools wait until they are cancelled.
const TIMEOUT: Duration = Duration::from_secs(3);

/// Arguments of the tools that need some.
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

/// Values for all required fields of a form.
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

/// Counts of one session, with the messages that violate a schema.
#[derive(Default)]
struct Report {
    answered: usize,
    violations: Vec<String>,
}

impl Report {
    /// Records the outcome of a request. An error is fine unless a schema check caused it.
    fn record<T>(&mut self, request: &str, outcome: Result<T, ClientError>) -> Option<T> {
        let error = match outcome {
            Ok(value) => {
                self.answered += 1;
                return Some(value);
            }
            Err(error) => error,
        };
        let mut text = error.to_string();
        let mut cause = error.source();
        while let Some(source) = cause {
            text = format!("{text}: {source}");
            cause = source.source();
        }
        if text.contains("violates") {
            self.violations.push(format!("{request}: {text}"));
        }
        None
    }
}

async fn connect(revision: Revision, schemas: Schemas) -> Result<Client, ClientError> {
    let validation = Validation::Refuse(Arc::new(schemas));
    let client_validation = validation.clone();
    let server = mcpact_everything::server(&[revision])
        .settings(|settings| settings.validation = validation);
    let (near, far) = mcpact::memory::pair();
    tokio::spawn(server.serve(far));
    Client::builder("official schemas", "1")
        .mode(EraMode::Pin(revision))
        .validation(client_validation)
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

/// Uses every tool, resource and prompt of the server.
async fn use_everything(client: &Client) -> Report {
    let mut report = Report::default();
    let tools = report.record("tools/list", client.list_tools().await);
    for tool in tools.into_iter().flatten() {
        let options = CallOptions::new().timeout(TIMEOUT).on_progress(|_| {});
        let called = client.call_tool_with(&tool.name, arguments(&tool.name), options);
        report.record(&tool.name, called.await);
    }
    let resources = report.record("resources/list", client.list_resources().await);
    for resource in resources.into_iter().flatten() {
        report.record(&resource.uri, client.read_resource(&resource.uri).await);
    }
    let templates = client.list_resource_templates().await;
    report.record("resources/templates/list", templates);
    let prompts = report.record("prompts/list", client.list_prompts().await);
    for prompt in prompts.into_iter().flatten() {
        let given = prompt.arguments.iter().flatten();
        let given = given.map(|argument| (argument.name.clone(), json!("x")));
        let got = client.get_prompt(&prompt.name, given.collect()).await;
        report.record(&prompt.name, got);
    }
    report
}

async fn check(revision: Revision) -> Result<(), Box<dyn Error>> {
    let dir = std::env::var_os(DIR).map_or_else(|| PathBuf::from(VENDORED), PathBuf::from);
    let client = connect(revision, Schemas::read(&dir)?).await?;
    let report = use_everything(&client).await;
    client.close().await;
    assert_eq!(report.violations, [""; 0]);
    assert!(report.answered > 30, "{} answers", report.answered);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn messages_of_2024_11_05_fit() -> Result<(), Box<dyn Error>> {
    check(Revision::V2024_11_05).await
}

#[tokio::test(start_paused = true)]
async fn messages_of_2025_03_26_fit() -> Result<(), Box<dyn Error>> {
    check(Revision::V2025_03_26).await
}

#[tokio::test(start_paused = true)]
async fn messages_of_2025_06_18_fit() -> Result<(), Box<dyn Error>> {
    check(Revision::V2025_06_18).await
}

#[tokio::test(start_paused = true)]
async fn messages_of_2025_11_25_fit() -> Result<(), Box<dyn Error>> {
    check(Revision::V2025_11_25).await
}

#[tokio::test(start_paused = true)]
async fn messages_of_2026_07_28_fit() -> Result<(), Box<dyn Error>> {
    check(Revision::V2026_07_28).await
}
