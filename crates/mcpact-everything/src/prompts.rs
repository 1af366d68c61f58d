//! Prompts.

use mcpact::model::{
    Content, ElicitRequest, Prompt, PromptArgument, PromptMessage, PromptResult, ResourceContents,
};
use mcpact::server::Server;
use serde_json::{Map, Value, json};

use crate::media::PIXEL;

fn text<'a>(arguments: &'a Map<String, Value>, key: &str) -> &'a str {
    arguments
        .get(key)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

pub(crate) fn register(server: Server) -> Server {
    server
        .prompt(
            Prompt::new("test_simple_prompt").description("A prompt without arguments"),
            |_, _| async {
                Ok(PromptResult::new([PromptMessage::user(
                    "This is a simple prompt for testing.",
                )]))
            },
        )
        .prompt(
            Prompt::new("test_prompt_with_arguments")
                .description("A prompt with two arguments")
                .argument(
                    PromptArgument::new("arg1")
                        .description("First test argument")
                        .required(),
                )
                .argument(
                    PromptArgument::new("arg2")
                        .description("Second test argument")
                        .required(),
                ),
            |arguments, _| async move {
                let (one, two) = (text(&arguments, "arg1"), text(&arguments, "arg2"));
                let message = format!("Prompt with arguments: arg1='{one}', arg2='{two}'");
                Ok(PromptResult::new([PromptMessage::user(message.as_str())]))
            },
        )
        .prompt(
            Prompt::new("test_prompt_with_embedded_resource")
                .description("A prompt with a resource in it")
                .argument(
                    PromptArgument::new("resourceUri")
                        .description("Address of the resource")
                        .required(),
                ),
            |arguments, _| async move {
                let contents = ResourceContents::text(
                    text(&arguments, "resourceUri"),
                    "Embedded resource content for testing.",
                );
                Ok(PromptResult::new([
                    PromptMessage::user(Content::resource(contents.mime_type("text/plain"))),
                    PromptMessage::user("Please process the embedded resource above."),
                ]))
            },
        )
        .prompt(
            Prompt::new("test_prompt_with_image").description("A prompt with a picture in it"),
            |_, _| async {
                Ok(PromptResult::new([
                    PromptMessage::user(Content::image(PIXEL, "image/png")),
                    PromptMessage::user("Please analyze the image above."),
                ]))
            },
        )
        .prompt(
            Prompt::new("test_input_required_result_prompt")
                .description("A prompt that asks first"),
            |_, context| async move {
                let schema = json!({
                    "type": "object",
                    "properties": {"context": {"type": "string"}},
                    "required": ["context"],
                });
                let request = ElicitRequest::form("What context should the prompt use?", schema);
                let answer = context.elicit("user_context", request).await?;
                let content = answer.content.unwrap_or_default();
                let message = format!("Use this context: {}", text(&content, "context"));
                Ok(PromptResult::new([PromptMessage::user(message.as_str())]))
            },
        )
}
