//! Client for the official conformance suite: `conformance_client URL`, with scenario and revision in the
//! environment. Authorization is not covered.

use std::process::ExitCode;

use mcpact::client::{Client, ClientError, EraMode, Method};
use mcpact::model::{FormRequest, Root, Tool};
use serde_json::{Map, Value, json};

#[tokio::main]
#[expect(
    clippy::print_stderr,
    reason = "the suite shows stderr of a failing client"
)]
async fn main() -> ExitCode {
    let Some(url) = std::env::args().nth(1) else {
        eprintln!("usage: conformance_client URL");
        return ExitCode::from(2);
    };
    match run(&url, &variable("SCENARIO")).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            let mut cause = std::error::Error::source(&error);
            while let Some(error) = cause {
                eprintln!("  because {error}");
                cause = error.source();
            }
            ExitCode::FAILURE
        }
    }
}

fn variable(name: &str) -> String {
    std::env::var(format!("MCP_CONFORMANCE_{name}")).unwrap_or_default()
}

async fn run(url: &str, scenario: &str) -> Result<(), ClientError> {
    let mode = match variable("PROTOCOL_VERSION").as_str() {
        "2026-07-28" => EraMode::Modern,
        "" => EraMode::Auto,
        _ => EraMode::Legacy,
    };
    let client = Client::builder("mcpact-conformance", "0.1.0")
        .mode(mode)
        .on_elicitation(
            |form: FormRequest| async move { Ok(form.accept_with_defaults(Map::new())) },
        )
        .roots(vec![Root::new("file:///tmp")])
        .connect(url)
        .await?;
    match scenario {
        "initialize" | "json-schema-ref-no-deref" | "request-metadata" => {
            if client.may(Method::ToolsList) {
                client.list_tools().await?;
            }
        }
        "tools_call" => {
            client.list_tools().await?;
            client
                .call_tool("add_numbers", json!({ "a": 5, "b": 3 }))
                .await?;
        }
        "elicitation-sep1034-client-defaults" => {
            client.list_tools().await?;
            client
                .call_tool("test_client_elicitation_defaults", json!({}))
                .await?;
        }
        "sse-retry" => {
            client.list_tools().await?;
            client.call_tool("test_reconnection", json!({})).await?;
        }
        "json-schema-2020-12-preservation" => echo_schema(&client).await?,
        "http-custom-headers" => custom_headers(&client).await?,
        "http-invalid-tool-headers" => {
            for tool in client.list_tools().await? {
                client.call_tool(&tool.name, sample(&tool)).await?;
            }
        }
        _ => everything(&client).await?,
    }
    client.close().await;
    Ok(())
}

/// Sends a schema back unchanged.
async fn echo_schema(client: &Client) -> Result<(), ClientError> {
    let tools = client.list_tools().await?;
    let subject = tools
        .iter()
        .find(|tool| tool.name == "json_schema_2020_12_tool");
    if let Some(tool) = subject {
        let arguments = json!({ "schema": tool.input_schema });
        client.call_tool("json_schema_echo", arguments).await?;
    }
    Ok(())
}

/// Repeats the calls named by the suite.
async fn custom_headers(client: &Client) -> Result<(), ClientError> {
    client.list_tools().await?;
    let context: Value = serde_json::from_str(&variable("CONTEXT")).unwrap_or_default();
    for call in context["toolCalls"].as_array().into_iter().flatten() {
        let name = call["name"].as_str().unwrap_or_default();
        client.call_tool(name, call["arguments"].clone()).await?;
    }
    Ok(())
}

/// Uses everything that the server offers.
async fn everything(client: &Client) -> Result<(), ClientError> {
    if client.may(Method::ToolsList) {
        for tool in client.list_tools().await? {
            client.call_tool(&tool.name, sample(&tool)).await?;
        }
    }
    if client.may(Method::ResourcesList) {
        for resource in client.list_resources().await? {
            client.read_resource(&resource.uri).await?;
        }
    }
    if client.may(Method::PromptsList) {
        for prompt in client.list_prompts().await? {
            client.get_prompt(&prompt.name, Map::new()).await?;
        }
    }
    Ok(())
}

/// Returns sample arguments for the required properties of a tool.
fn sample(tool: &Tool) -> Value {
    let required = tool.input_schema["required"]
        .as_array()
        .into_iter()
        .flatten();
    let arguments = required.filter_map(Value::as_str).map(|name| {
        let value = match tool.input_schema["properties"][name]["type"].as_str() {
            Some("number" | "integer") => json!(1),
            Some("boolean") => json!(true),
            Some("array") => json!([]),
            Some("object") => json!({}),
            Some(_) | None => json!("text"),
        };
        (name.to_owned(), value)
    });
    Value::Object(arguments.collect())
}
