//! `mcpact call`, `read`, `prompt` and `complete`: requests to a server.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use mcpact::model::{CompletionRef, Prompt, TaskSupport, Tool, ToolResult};
use serde_json::{Map, Value};

use super::block_on_this_thread;
use crate::args::{CallArgs, CompleteArgs, PromptArgs, ReadArgs};
use crate::client::arguments::{self, ArgumentError, Given};
use crate::client::{self, ClientFailure, Session, Tasks, output};
use crate::error::{CliError, Exit};
use crate::report::content::{self, BinaryNote};
use crate::report::{self, items};
use crate::target;

/// Calls a tool and prints its result.
pub(super) fn call(args: &CallArgs) -> Result<Exit, CliError> {
    let (given, rest) = target::split(&args.words, &args.client.connect);
    let [name, words @ ..] = rest else {
        return Err(ClientFailure::MissingWord("tool name").into());
    };
    let base = args.args.as_deref().map(read_args).transpose()?;
    let base = base.unwrap_or_default();
    // Syntax errors are found before the server is started.
    for word in words {
        arguments::split(word).map_err(ClientFailure::from)?;
    }
    let tasks = match args.task {
        true => Tasks::Declared,
        false => Tasks::Undeclared,
    };
    block_on_this_thread(client::run(&args.client, given, tasks, async |session| {
        let tool = find_tool(session, name).await?;
        let arguments = arguments::of_tool(name, &tool.input_schema, base, words, &read_text)
            .map_err(ClientFailure::from)?;
        let is_task = args.task || tool.supports_tasks() == TaskSupport::Required;
        let result = match is_task {
            true => session.call_as_task(name, arguments).await?,
            false => session.call(name, arguments).await?,
        };
        session.finish_progress();
        show_result(&result, args.client.json, args.out.as_deref())
    }))
}

async fn find_tool(session: &Session, name: &str) -> Result<Tool, ClientFailure> {
    let tools = session.tools().await?;
    if let Some(tool) = tools.iter().find(|tool| tool.name == name) {
        return Ok(tool.clone());
    }
    let known = tools.into_iter().map(|tool| tool.name).collect();
    Err(session.not_found("tool", name, known))
}

/// Prints a result: on stderr if the tool failed.
pub(super) fn show_result(
    result: &ToolResult,
    is_json: bool,
    out: Option<&Path>,
) -> Result<Exit, CliError> {
    if let Some(path) = out
        && !result.failed()
    {
        let binaries = content::binaries(&result.content);
        match binaries.is_empty() {
            true => output::save_text(path, &content::tool_result(result, BinaryNote::None))?,
            false => output::save_all(path, &binaries)?,
        }
        return Ok(Exit::Ok);
    }
    match (is_json, result.failed()) {
        (true, _) => report::print(&report::json(result))?,
        (false, false) => {
            report::print_content(&content::tool_result(result, BinaryNote::CanBeSaved))?;
        }
        (false, true) => {
            report::eprint_content(&content::tool_result(result, BinaryNote::None));
        }
    }
    Ok(match result.failed() {
        true => Exit::Tool,
        false => Exit::Ok,
    })
}

/// Reads `--args`: JSON, `@FILE`, or `-` for stdin.
fn read_args(given: &str) -> Result<Map<String, Value>, ClientFailure> {
    let (path, text) = match given.strip_prefix('@') {
        Some(file) => (file, File::open(file).and_then(text_of)),
        None if given == "-" => (given, text_of(io::stdin().lock())),
        None => return Ok(arguments::object(given)?),
    };
    let text = text.map_err(|source| ClientFailure::ReadFile {
        path: path.into(),
        source,
    })?;
    Ok(arguments::object(&text)?)
}

fn read_text(file: &str) -> Result<String, String> {
    let text = File::open(file).and_then(text_of);
    text.map_err(|error| error.to_string())
}

/// Reads a text of limited size.
fn text_of(source: impl Read) -> io::Result<String> {
    /// Maximum size in bytes, as for messages over HTTP.
    const MAX_BYTES: u64 = 16 << 20;
    let mut text = String::new();
    let read = source.take(MAX_BYTES + 1).read_to_string(&mut text)?;
    match read as u64 > MAX_BYTES {
        true => Err(io::Error::other(format!("larger than {MAX_BYTES} bytes"))),
        false => Ok(text),
    }
}

/// Reads a resource and prints its content.
pub(super) fn read(args: &ReadArgs) -> Result<Exit, CliError> {
    let (given, rest) = target::split(&args.words, &args.client.connect);
    let [uri, rest @ ..] = rest else {
        return Err(ClientFailure::MissingWord("resource URI").into());
    };
    target::no_more(rest)?;
    block_on_this_thread(client::run(
        &args.client,
        given,
        Tasks::Undeclared,
        async |session| {
            let result = session.wait(session.client.read_resource(uri)).await?;
            if args.client.json {
                return report::print(&report::json(&result));
            }
            let Some(path) = &args.out else {
                return report::print_content(&content::read_result(
                    &result,
                    BinaryNote::CanBeSaved,
                ));
            };
            let binaries: Vec<_> = result.contents.iter().filter_map(content::blob).collect();
            match binaries.is_empty() {
                true => {
                    let texts = result.contents.iter().filter_map(|one| one.text.as_deref());
                    output::save_text(path, &texts.collect::<String>())
                }
                false => output::save_all(path, &binaries),
            }
        },
    ))?;
    Ok(Exit::Ok)
}

/// Gets a prompt and prints its messages.
pub(super) fn prompt(args: &PromptArgs) -> Result<Exit, CliError> {
    let (given, rest) = target::split(&args.words, &args.client.connect);
    let [name, words @ ..] = rest else {
        return Err(ClientFailure::MissingWord("prompt name").into());
    };
    block_on_this_thread(client::run(
        &args.client,
        given,
        Tasks::Undeclared,
        async |session| {
            let prompts = session.wait(session.client.list_prompts()).await?.items;
            let Some(prompt) = prompts.iter().find(|prompt| prompt.name == *name) else {
                let known = prompts.into_iter().map(|prompt| prompt.name).collect();
                return Err(session.not_found("prompt", name, known).into());
            };
            let arguments = prompt_arguments(prompt, words).map_err(ClientFailure::from)?;
            let result = session
                .wait(session.client.get_prompt(name, arguments))
                .await?;
            match args.client.json {
                true => report::print(&report::json(&result)),
                false => report::print_content(&content::prompt_result(&result)),
            }
        },
    ))?;
    Ok(Exit::Ok)
}

fn prompt_arguments(
    prompt: &Prompt,
    words: &[String],
) -> Result<Map<String, Value>, ArgumentError> {
    let schema = items::prompt_schema(prompt);
    arguments::of_tool(&prompt.name, &schema, Map::new(), words, &read_text)
}

/// Completes an argument and prints the values, one per line.
pub(super) fn complete(args: &CompleteArgs) -> Result<Exit, CliError> {
    let (given, rest) = target::split(&args.words, &args.client.connect);
    let [reference, word, others @ ..] = rest else {
        return Err(
            ClientFailure::MissingWord("`prompt:NAME` or URI template, and `key=start`").into(),
        );
    };
    let reference = match reference.strip_prefix("prompt:") {
        Some(name) => CompletionRef::prompt(name),
        None => CompletionRef::resource(reference),
    };
    let (argument, start) = text_pair(word)?;
    let others = others.iter().map(|word| {
        let (key, value) = text_pair(word)?;
        Ok((key.to_owned(), Value::from(value)))
    });
    let others: Map<String, Value> = others.collect::<Result<_, ClientFailure>>()?;
    block_on_this_thread(client::run(
        &args.client,
        given,
        Tasks::Undeclared,
        async |session| {
            let client = &session.client;
            let completing = client.complete(&reference, argument, start, others);
            let completion = session.wait(completing).await?;
            if args.client.json {
                return report::print(&report::json(&completion));
            }
            let lines = completion.values.iter().map(|value| format!("{value}\n"));
            report::print_content(&lines.collect::<String>())?;
            if completion.has_more == Some(true) {
                report::hint("the server has more values; type more of the start");
            }
            Ok(())
        },
    ))?;
    Ok(Exit::Ok)
}

fn text_pair(word: &str) -> Result<(&str, &str), ClientFailure> {
    match arguments::split(word)? {
        (key, Given::Text(value)) => Ok((key, value)),
        (_, Given::Json(_) | Given::File(_)) => {
            Err(ArgumentError::NotAPair(word.to_owned()).into())
        }
    }
}
