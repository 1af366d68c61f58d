//! Exercises one feature after the other.
//!
//! Each function returns a note on success, and the deviation otherwise.

use std::sync::{Arc, Mutex, PoisonError};

use mcpact::client::{CallOptions, CancelToken, Change, Client, ClientError, Method};
use mcpact::model::{CompletionRef, Content, LogMessage, Progress, ToolResult};
use serde_json::{Map, Value};

use crate::feature::{Feature, Outcome};
use crate::peer::Peer;
use crate::script::{Call, Cancel, Complete, Log, Prompt, Read, Script, Subscribe};
use crate::with_causes;

/// Exercises a feature, unless the pact or the script excludes it.
pub(crate) async fn exercise(feature: Feature, script: &Script, peer: &Peer) -> Outcome {
    if let Some(why) = feature.excluded(&peer.client.pact()) {
        return Outcome::Absent(why);
    }
    match attempt(feature, script, peer).await {
        Some(Ok(remark)) => Outcome::Works(remark),
        Some(Err(why)) => Outcome::Fails(why),
        None => Outcome::Absent("the server has nothing that shows it".to_owned()),
    }
}

async fn attempt(feature: Feature, script: &Script, peer: &Peer) -> Option<Result<String, String>> {
    let client = &peer.client;
    Some(match feature {
        Feature::Negotiate => Ok(peer.revision()),
        Feature::List => list(client).await,
        Feature::Call => call(client, script.call.as_ref()?).await,
        Feature::Read => read(client, script.read.as_ref()?).await,
        Feature::Prompt => prompt(client, script.prompt.as_ref()?).await,
        Feature::Complete => complete(client, script.complete.as_ref()?).await,
        Feature::Progress => progress(client, script.progress.as_ref()?).await,
        Feature::Cancel => cancel(client, script.cancel.as_ref()?).await,
        // The result of the tool contains the answer of this client.
        Feature::Elicit => call(client, script.elicit.as_ref()?).await,
        Feature::Sample => call(client, script.sample.as_ref()?).await,
        Feature::Roots => call(client, script.roots.as_ref()?).await,
        Feature::Log => log(peer, script.log.as_ref()?).await,
        Feature::Subscribe => subscribe(client, script.subscribe.as_ref()?).await,
    })
}

async fn list(client: &Client) -> Result<String, String> {
    let tools = client.list_tools().await.map_err(with_causes)?.len();
    let mut counts = vec![format!("{tools} tools")];
    if client.may(Method::ResourcesList) {
        let resources = client.list_resources().await.map_err(with_causes)?.len();
        let templates = client
            .list_resource_templates()
            .await
            .map_err(with_causes)?
            .len();
        counts.push(format!("{resources} resources, {templates} templates"));
    }
    if client.may(Method::PromptsList) {
        let prompts = client.list_prompts().await.map_err(with_causes)?.len();
        counts.push(format!("{prompts} prompts"));
    }
    match tools {
        0 => Err("the server has no tools".to_owned()),
        _ => Ok(counts.join(", ")),
    }
}

async fn call(client: &Client, step: &Call) -> Result<String, String> {
    loop {
        let called = call_with(client, step, CallOptions::new()).await;
        if called.is_ok() || !step.eventually {
            return called;
        }
    }
}

async fn call_with(client: &Client, step: &Call, options: CallOptions) -> Result<String, String> {
    let arguments = Value::Object(step.arguments.clone());
    let calling = client.call_tool_with(&step.tool, arguments, options);
    let result: ToolResult = calling.await.map_err(with_causes)?;
    let text = result.all_text();
    match result.failed() {
        true => Err(format!("`{}` failed: {text}", step.tool)),
        false => contains(&text, &step.expect),
    }
}

fn contains(text: &str, expected: &str) -> Result<String, String> {
    match text.contains(expected) {
        true => Ok(String::new()),
        false => Err(format!("expected `{expected}` in `{text}`")),
    }
}

async fn read(client: &Client, step: &Read) -> Result<String, String> {
    let result = client.read_resource(&step.uri).await.map_err(with_causes)?;
    let texts = result.contents.into_iter().filter_map(|part| part.text);
    contains(&texts.collect::<Vec<_>>().join("\n"), &step.expect)
}

async fn prompt(client: &Client, step: &Prompt) -> Result<String, String> {
    let asking = client.get_prompt(&step.name, step.arguments.clone());
    let result = asking.await.map_err(with_causes)?;
    let texts = result.messages.iter().map(|message| &message.content);
    let texts: Vec<&str> = texts.filter_map(Content::as_text).collect();
    contains(&texts.join("\n"), &step.expect)
}

async fn complete(client: &Client, step: &Complete) -> Result<String, String> {
    let reference = CompletionRef::prompt(&step.prompt);
    let asking = client.complete(&reference, &step.argument, &step.value, Map::new());
    let values = asking.await.map_err(with_causes)?.values;
    match values.contains(&step.expect) {
        true => Ok(String::new()),
        false => Err(format!("expected `{}` among {values:?}", step.expect)),
    }
}

async fn progress(client: &Client, step: &Call) -> Result<String, String> {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&seen);
    let options = CallOptions::new().on_progress(move |progress: Progress| {
        let mut noted = noted.lock().unwrap_or_else(PoisonError::into_inner);
        noted.push(progress.progress);
    });
    call_with(client, step, options).await?;
    let seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
    match seen.len() >= 2 && seen.is_sorted_by(|before, after| before < after) {
        true => Ok(format!("{seen:?}")),
        false => Err(format!("two or more rising values expected, got {seen:?}")),
    }
}

/// The first progress shows that the call is running and can be cancelled.
async fn cancel(client: &Client, step: &Cancel) -> Result<String, String> {
    let token = CancelToken::new();
    let canceller = token.clone();
    let options = CallOptions::new()
        .cancel(token)
        .on_progress(move |_| canceller.cancel());
    let arguments = Value::Object(step.arguments.clone());
    match client.call_tool_with(&step.tool, arguments, options).await {
        Err(ClientError::Cancelled) => call(client, &step.then).await,
        Err(error) => Err(with_causes(error)),
        Ok(result) => Err(format!("it ended by itself: {}", result.all_text())),
    }
}

async fn log(peer: &Peer, step: &Log) -> Result<String, String> {
    let mut logged = peer.logged.lock().await;
    while logged.try_recv().is_ok() {}
    call(&peer.client, &step.call).await?;
    let mut others = Vec::new();
    while let Some(LogMessage { level, data, .. }) = logged.recv().await {
        if data.to_string().contains(&step.expect) {
            return Ok(format!("{}: {data}", level.as_str()));
        }
        others.push(data);
    }
    Err(format!("the connection ended after {others:?}"))
}

async fn subscribe(client: &Client, step: &Subscribe) -> Result<String, String> {
    let mut changes = client.subscribe(&step.uri).await.map_err(with_causes)?;
    call(client, &step.change).await?;
    match changes.next().await {
        Some(Change::Updated { uri }) if uri == step.uri => Ok(String::new()),
        Some(other) => Err(format!("another change came: {other:?}")),
        None => Err("the subscription ended".to_owned()),
    }
}
