//! A prompt with an argument and its completion.
//!
//! `cargo run --example prompts` serves on standard input and output.

use mcpact::model::{Completion, Prompt, PromptArgument, PromptMessage, PromptResult};
use mcpact::server::{CompletionRequest, HandlerError, Server};

const LANGUAGES: [&str; 4] = ["c", "python", "rust", "ruby"];

pub(crate) fn server() -> Server {
    let language = PromptArgument::new("language")
        .description("Of the code")
        .required();
    let review = Prompt::new("review")
        .description("Reviews code")
        .argument(language);
    Server::new("reviewer", "1.0.0")
        .prompt(review, |arguments, _| async move {
            let language = arguments.get("language").and_then(|value| value.as_str());
            let language =
                language.ok_or_else(|| HandlerError::invalid_params("`language` is missing"))?;
            let text = format!("Please review this {language} code.");
            Ok(PromptResult::new([PromptMessage::user(text)]))
        })
        .completion(|request: CompletionRequest, _| async move {
            let fits = |language: &&str| language.starts_with(&request.value);
            Ok(Completion::new(LANGUAGES.into_iter().filter(fits)))
        })
}

#[tokio::main]
async fn main() -> Result<(), mcpact::Error> {
    server().serve_stdio().await
}
