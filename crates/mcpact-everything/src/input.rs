//! Tools that request input from the client; one handler serves both eras.

use mcpact::model::{
    Content, CreateMessageRequest, ElicitAction, ElicitRequest, ElicitResult, SamplingMessage,
    ToolResult,
};
use mcpact::server::{Context, HandlerError, NoArgs, Question, Server};
use mcpact_spec::Capability;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Debug, Deserialize, JsonSchema)]
struct Prompt {
    /// Prompt for the model.
    prompt: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Message {
    /// Message for the user.
    message: String,
}

fn form(message: &str, properties: Value, required: &[&str]) -> ElicitRequest {
    ElicitRequest::form(
        message,
        json!({"type": "object", "properties": properties, "required": required}),
    )
}

fn name_form(message: &str) -> ElicitRequest {
    form(
        message,
        json!({"name": {"type": "string", "description": "Your name"}}),
        &["name"],
    )
}

fn sampling(text: &str) -> CreateMessageRequest {
    CreateMessageRequest::new([SamplingMessage::user(Content::text(text))], 100)
}

fn field(answer: &ElicitResult, key: &str) -> String {
    let content = answer.content.as_ref();
    let value = content
        .and_then(|content| content.get(key))
        .and_then(Value::as_str);
    value.unwrap_or("unknown").to_owned()
}

/// Describes the user's action and input.
fn describe(answer: &ElicitResult) -> String {
    let action = match answer.action {
        ElicitAction::Accept => "accept",
        ElicitAction::Decline => "decline",
        ElicitAction::Cancel => "cancel",
    };
    let content = answer.content.clone().map_or(Value::Null, Value::Object);
    format!("action={action}, content={content}")
}

pub(crate) fn register(server: Server) -> Server {
    forms(rounds(server))
        .tool(
            "test_sampling",
            "Asks the client's model",
            |args: Prompt, context: Context| async move {
                let answer = context.sample("answer", sampling(&args.prompt)).await?;
                Ok(format!("LLM response: {}", answer.all_text()))
            },
        )
        .tool(
            "test_missing_capability",
            "Works only for clients that sample",
            |_: NoArgs, context: Context| async move {
                let answer = context.sample("answer", sampling("Say hello.")).await?;
                Ok(answer.all_text())
            },
        )
}

/// Forms of every kind.
fn forms(server: Server) -> Server {
    server
        .tool("test_elicitation", "Asks the user", |args: Message, context: Context| async move {
            let properties = json!({
                "username": {"type": "string", "description": "User's response"},
                "email": {"type": "string", "description": "User's email address"},
            });
            let request = form(&args.message, properties, &["username", "email"]);
            let answer = context.elicit("user", request).await?;
            Ok(format!("User response: {}", describe(&answer)))
        })
        .tool("test_url_elicitation", "Asks the user to visit a page", |_: NoArgs, context: Context| async move {
            let request = ElicitRequest::url("Please sign in", "https://sign-in.example/");
            let answer = context.elicit("page", request).await?;
            Ok(format!("User response: {}", describe(&answer)))
        })
        .tool("test_streaming_elicitation", "Asks the user, if it can", greet)
        .tool("test_elicitation_sep1034_defaults", "Asks with defaults", |_: NoArgs, context: Context| async move {
            let properties = json!({
                "name": {"type": "string", "default": "John Doe"},
                "age": {"type": "integer", "default": 30},
                "score": {"type": "number", "default": 95.5},
                "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
                "verified": {"type": "boolean", "default": true},
            });
            let answer = context.elicit("form", form("Please review the form", properties, &[])).await?;
            Ok(format!("Elicitation completed: {}", describe(&answer)))
        })
        .tool("test_elicitation_sep1330_enums", "Asks for choices", |_: NoArgs, context: Context| async move {
            let titled = json!([
                {"const": "value1", "title": "First Option"},
                {"const": "value2", "title": "Second Option"},
                {"const": "value3", "title": "Third Option"},
            ]);
            let properties = json!({
                "untitledSingle": {"type": "string", "enum": ["option1", "option2", "option3"]},
                "titledSingle": {"type": "string", "oneOf": titled},
                "legacyEnum": {"type": "string", "enum": ["opt1", "opt2", "opt3"],
                    "enumNames": ["Option One", "Option Two", "Option Three"]},
                "untitledMulti": {"type": "array", "items": {"type": "string", "enum": ["option1", "option2", "option3"]}},
                "titledMulti": {"type": "array", "items": {"anyOf": titled}},
            });
            let answer = context.elicit("form", form("Please choose", properties, &[])).await?;
            Ok(format!("Elicitation completed: {}", describe(&answer)))
        })
}

/// Requests over one or more rounds.
fn rounds(server: Server) -> Server {
    server
        .tool(
            "test_input_required_result_elicitation",
            "Asks for a name",
            greet,
        )
        .tool(
            "test_input_required_result_sampling",
            "Asks the model",
            |_: NoArgs, context: Context| async move {
                let answer = context
                    .sample("capital", sampling("What is the capital of France?"))
                    .await?;
                Ok(answer.all_text())
            },
        )
        .tool(
            "test_input_required_result_list_roots",
            "Asks for the roots",
            |_: NoArgs, context: Context| async move {
                let roots = context.roots("roots").await?;
                Ok(format!(
                    "{} roots: {}",
                    roots.len(),
                    roots
                        .iter()
                        .map(|r| r.uri.as_str())
                        .collect::<Vec<_>>()
                        .join(", ")
                ))
            },
        )
        .tool(
            "test_input_required_result_request_state",
            "Keeps state between rounds",
            confirm,
        )
        .tool(
            "test_input_required_result_tampered_state",
            "Refuses state that is not its own",
            confirm,
        )
        .tool(
            "test_input_required_result_multiple_inputs",
            "Asks three things at once",
            |_: NoArgs, context: Context| async move {
                let roots = ("client_roots".to_owned(), Question::Roots);
                let questions = name_and_greeting("user_name").into_iter().chain([roots]);
                let answers = context.ask_all(questions).await?;
                Ok(format!("{} answers", answers.len()))
            },
        )
        .tool(
            "test_input_required_result_multi_round",
            "Asks twice",
            |_: NoArgs, context: Context| async move {
                let name = context
                    .elicit("step1", name_form("Step 1: what is your name?"))
                    .await?;
                let colour = form(
                    "Step 2: what is your favourite colour?",
                    json!({"color": {"type": "string"}}),
                    &["color"],
                );
                let colour = context.elicit("step2", colour).await?;
                Ok(format!(
                    "{} likes {}",
                    field(&name, "name"),
                    field(&colour, "color")
                ))
            },
        )
        .tool(
            "test_input_required_result_capabilities",
            "Asks only what the client can answer",
            |_: NoArgs, context: Context| async move { capabilities(&context).await },
        )
}

async fn greet(_: NoArgs, context: Context) -> Result<String, HandlerError> {
    let form = name_form("What is your name?");
    let answer = context.elicit("user_name", form).await?;
    Ok(format!("Hello, {}!", field(&answer, "name")))
}

async fn confirm(_: NoArgs, context: Context) -> Result<&'static str, HandlerError> {
    let properties = json!({"ok": {"type": "boolean"}});
    let form = form("Please confirm", properties, &["ok"]);
    context.elicit("confirm", form).await?;
    Ok("state-ok")
}

/// Questions for the user and for the client's model.
fn name_and_greeting(name: &str) -> [(String, Question); 2] {
    let user = Question::elicit(name_form("What is your name?"));
    let model = Question::sample(sampling("Generate a greeting"));
    [(name.to_owned(), user), (String::from("greeting"), model)]
}

/// Requests everything that the client declared, in one round.
async fn capabilities(context: &Context) -> Result<ToolResult, HandlerError> {
    let has = |capability| context.pact().declares(capability);
    let mut questions = Vec::new();
    let [name, greeting] = name_and_greeting("name");
    questions.extend(Some(name).filter(|_| has(Capability::ElicitationForm)));
    questions.extend(Some(greeting).filter(|_| has(Capability::Sampling)));
    if has(Capability::Roots) {
        questions.push(("roots".to_owned(), Question::Roots));
    }
    let answers = context.ask_all(questions).await?;
    Ok(ToolResult::text(format!("{} answers", answers.len())))
}
