//! Tools with questions: forms and URLs for the user, sampling, and roots. The code is the same for both eras: a
//! legacy client gets requests, a modern client gets results that ask for input, and the handler runs again with the
//! answers.
//!
//! `cargo run --example questions` serves on standard input and output.

use mcpact::model::{CreateMessageRequest, ElicitAction, ElicitRequest, SamplingMessage};
use mcpact::server::{Context, NoArgs, Server};
use serde_json::{Value, json};

pub(crate) fn server() -> Server {
    Server::new("curious", "1.0.0")
        .tool(
            "greet",
            "Greets by name",
            |_: NoArgs, context: Context| async move {
                let schema = json!({
                    "type": "object",
                    "properties": { "name": { "type": "string" } },
                    "required": ["name"],
                });
                let form = ElicitRequest::form("Who are you?", schema);
                let answer = context.elicit("who", form).await?;
                let content = answer.content.unwrap_or_default();
                let name = content.get("name").and_then(Value::as_str);
                Ok(format!("Hello, {}!", name.unwrap_or("stranger")))
            },
        )
        .tool(
            "sign_in",
            "Sends the user to a page",
            |_: NoArgs, context: Context| async move {
                let page = ElicitRequest::url("Please sign in", "https://example.com/sign-in");
                let answer = context.elicit("page", page).await?;
                Ok(match answer.action {
                    ElicitAction::Accept => "on the way",
                    ElicitAction::Decline | ElicitAction::Cancel => "another time",
                })
            },
        )
        .tool(
            "think",
            "Asks the client's model",
            |_: NoArgs, context: Context| async move {
                let question = SamplingMessage::user("What is the answer?");
                let request = CreateMessageRequest::new([question], 100);
                let answer = context.sample("answer", request).await?;
                Ok(answer.all_text())
            },
        )
        .tool(
            "look_around",
            "Lists the client's roots",
            |_: NoArgs, context: Context| async move {
                let roots = context.roots("roots").await?;
                let all: Vec<String> = roots.into_iter().map(|root| root.uri).collect();
                Ok(all.join(", "))
            },
        )
}

#[tokio::main]
async fn main() -> Result<(), mcpact::Error> {
    server().serve_stdio().await
}
