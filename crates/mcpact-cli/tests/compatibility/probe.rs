//! Tests one feature.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use mcpact::client::{
    CallOptions, CancelToken, Change, Client, ClientError, Revision, TaskOptions, Watch,
};
use mcpact::model::{CompletionRef, LogLevel, Progress, ToolResult};
use mcpact_spec::Era;
use serde_json::{Map, Value, json};

use crate::Pair;
use crate::outcome::{Feature, Loss, Observed};
use crate::processes::{Running, Transport};

/// Timeout of one feature.
const TIMEOUT: Duration = Duration::from_secs(60);

const WATCHED: &str = "test://watched-resource";

/// Result of one test.
type Seen = Result<Observed, Wrong>;

/// Failure of one test.
enum Wrong {
    /// An error of the client.
    Error(ClientError),
    /// An unexpected result.
    Other(String),
}

impl From<ClientError> for Wrong {
    fn from(error: ClientError) -> Self {
        Self::Error(error)
    }
}

fn ensure(holds: bool, what: impl FnOnce() -> String) -> Result<(), Wrong> {
    if holds {
        Ok(())
    } else {
        Err(Wrong::Other(what()))
    }
}

pub(crate) async fn observe(feature: Feature, pair: Pair, running: &Running) -> Observed {
    match tokio::time::timeout(TIMEOUT, show(feature, pair, running)).await {
        Ok(Ok(seen)) => seen,
        Ok(Err(Wrong::Error(error @ (ClientError::Rpc(_) | ClientError::NotNegotiated(_))))) => {
            Observed::Refused(error.to_string())
        }
        Ok(Err(Wrong::Error(error))) => Observed::Broken(format!("{error:?}")),
        Ok(Err(Wrong::Other(what))) => Observed::Broken(what),
        Err(_) => Observed::Broken("nothing happened".to_owned()),
    }
}

async fn show(feature: Feature, pair: Pair, running: &Running) -> Seen {
    let client = &running.client;
    match feature {
        Feature::Tools => tools(client, pair).await,
        Feature::Resources => resources(client).await,
        Feature::Templates => templates(client).await,
        Feature::Prompts => prompts(client).await,
        Feature::Completion => completion(client).await,
        Feature::ElicitationForm => {
            let question = json!({"message": "Who are you?"});
            asked(client, "test_elicitation", question, "ada@example.org").await
        }
        Feature::ElicitationUrl => {
            asked(client, "test_url_elicitation", json!({}), "action=accept").await
        }
        Feature::Sampling => {
            let question = json!({"prompt": "The capital of France?"});
            asked(client, "test_sampling", question, "Paris").await
        }
        Feature::Roots => {
            let tool = "test_input_required_result_list_roots";
            asked(client, tool, json!({}), "file:///home/ada").await
        }
        Feature::Logging => logging(running).await,
        Feature::Progress => progress(client, pair).await,
        Feature::Cancellation => cancellation(client).await,
        Feature::Subscriptions => subscriptions(client).await,
        Feature::ListChanged => list_changed(client).await,
        Feature::Tasks => tasks(client, pair).await,
        Feature::Apps => app(client).await,
        Feature::Skills => skills(client).await,
        Feature::Pagination => pagination(client, pair).await,
        Feature::Errors => errors(client).await,
    }
}

async fn tools(client: &Client, pair: Pair) -> Seen {
    let tools = client.list_tools().await?;
    ensure(tools.iter().any(|tool| tool.name == "echo"), || {
        format!("no echo in {tools:?}")
    })?;
    let echoed = client.call_tool("echo", json!({"text": "hello"})).await?;
    ensure(echoed.all_text() == "hello", || format!("{echoed:?}"))?;
    let sum = client.call_tool("add", json!({"a": 2, "b": 3})).await?;
    let is_whole = sum.structured_content == Some(json!({"sum": 5.0}));
    let is_text = sum.structured_content.is_none() && sum.all_text().contains("sum");
    match pair.server < Revision::V2025_06_18 {
        // The server offers only text.
        true if is_text => Ok(Observed::Works),
        false if is_whole => Ok(Observed::Works),
        false if is_text => Ok(Observed::Degrades(Loss::StructuredContent)),
        true | false => Err(Wrong::Other(format!("{sum:?}"))),
    }
}

async fn resources(client: &Client) -> Seen {
    let resources = client.list_resources().await?;
    ensure(resources.len() == 6, || format!("{resources:?}"))?;
    let text = client.read_resource("test://static-text").await?;
    let has_text = |read: &str| read.contains("static text resource");
    let is_text = text
        .contents
        .iter()
        .any(|part| part.text.as_deref().is_some_and(has_text));
    ensure(is_text, || format!("{text:?}"))?;
    let binary = client.read_resource("test://static-binary").await?;
    ensure(
        binary.contents.iter().any(|part| part.blob.is_some()),
        || format!("{binary:?}"),
    )?;
    Ok(Observed::Works)
}

async fn templates(client: &Client) -> Seen {
    let templates = client.list_resource_templates().await?;
    ensure(templates.len() == 1, || format!("{templates:?}"))?;
    let read = client.read_resource("test://template/123/data").await?;
    let has_id = |text: &str| text.contains("123");
    let is_read = read
        .contents
        .iter()
        .any(|part| part.text.as_deref().is_some_and(has_id));
    ensure(is_read, || format!("{read:?}"))?;
    Ok(Observed::Works)
}

async fn prompts(client: &Client) -> Seen {
    let prompts = client.list_prompts().await?;
    ensure(!prompts.is_empty(), || "no prompts".to_owned())?;
    let arguments = json!({"arg1": "one", "arg2": "two"});
    let arguments: Map<String, Value> = serde_json::from_value(arguments).unwrap_or_default();
    let prompt = client
        .get_prompt("test_prompt_with_arguments", arguments)
        .await?;
    let text = format!("{:?}", prompt.messages);
    ensure(text.contains("arg1='one', arg2='two'"), || text.clone())?;
    Ok(Observed::Works)
}

async fn completion(client: &Client) -> Seen {
    let reference = CompletionRef::prompt("test_prompt_with_arguments");
    let completed = client
        .complete(&reference, "arg1", "te", Map::new())
        .await?;
    ensure(completed.values == ["test1", "test2"], || {
        format!("{completed:?}")
    })?;
    Ok(Observed::Works)
}

/// Calls a tool that queries the client and returns the answer.
async fn asked(client: &Client, tool: &str, arguments: Value, expected: &str) -> Seen {
    let told = client.call_tool(tool, arguments).await?;
    let text = told.all_text();
    if told.failed() {
        return Ok(Observed::Refused(text));
    }
    ensure(text.contains(expected), || text.clone())?;
    Ok(Observed::Works)
}

async fn logging(running: &Running) -> Seen {
    let mut logged = running.logged.lock().await;
    let mut counts = Vec::new();
    for level in [LogLevel::Warning, LogLevel::Info] {
        running.client.set_log_level(level).await?;
        running
            .client
            .call_tool("test_tool_with_logging", json!({}))
            .await?;
        // Messages of a call arrive before its response.
        counts.push(std::iter::from_fn(|| logged.try_recv().ok()).count());
    }
    ensure(counts == [0, 3], || format!("{counts:?} messages"))?;
    Ok(Observed::Works)
}

async fn progress(client: &Client, pair: Pair) -> Seen {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&seen);
    let options = CallOptions::new().on_progress(move |progress: Progress| {
        let mut noted = noted.lock().unwrap_or_else(PoisonError::into_inner);
        noted.push((progress.progress, progress.message.is_some()));
    });
    client
        .call_tool_with("test_tool_with_progress", json!({}), options)
        .await?;
    let seen = seen.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let has_messages = seen.iter().all(|(_, has_message)| *has_message);
    let values: Vec<f64> = seen.iter().map(|(value, _)| *value).collect();
    ensure(values == [0.0, 50.0, 100.0], || format!("{seen:?}"))?;
    match has_messages || pair.server < Revision::V2025_03_26 {
        true => Ok(Observed::Works),
        false => Ok(Observed::Degrades(Loss::ProgressMessage)),
    }
}

async fn cancellation(client: &Client) -> Seen {
    let token = CancelToken::new();
    let canceller = token.clone();
    // The first progress notification shows that the call is running.
    let options = CallOptions::new()
        .cancel(token)
        .on_progress(move |_| canceller.cancel());
    let key = json!({"key": "compatibility"});
    match client
        .call_tool_with("test_cancellation", key.clone(), options)
        .await
    {
        Err(ClientError::Cancelled) => {}
        Err(error) => return Err(error.into()),
        Ok(result) => return Err(Wrong::Other(format!("it ended: {result:?}"))),
    }
    // Another connection does not know the call.
    for _ in 0..3 {
        let seen = client
            .call_tool("test_cancellation_seen", key.clone())
            .await?;
        if seen.all_text().contains("was cancelled") {
            return Ok(Observed::Works);
        }
    }
    Err(Wrong::Other("the server did not notice".to_owned()))
}

async fn subscriptions(client: &Client) -> Seen {
    let mut changes = client.subscribe(WATCHED).await?;
    client
        .call_tool("test_trigger_resource_update", json!({}))
        .await?;
    let change = changes.next().await;
    let is_it = matches!(&change, Some(Change::Updated { uri }) if uri == WATCHED);
    ensure(is_it, || format!("{change:?}"))?;
    Ok(Observed::Works)
}

async fn list_changed(client: &Client) -> Seen {
    let mut changes = client.watch(Watch::new().tools()).await?;
    client
        .call_tool("test_trigger_tool_change", json!({}))
        .await?;
    let change = changes.next().await;
    ensure(change == Some(Change::Tools), || format!("{change:?}"))?;
    Ok(Observed::Works)
}

async fn tasks(client: &Client, pair: Pair) -> Seen {
    if pair.client < Revision::V2025_11_25 {
        return without_tasks(client, pair).await;
    }
    let (tool, work) = ("slow_compute", json!({"seconds": 0.05}));
    let options = TaskOptions::new();
    let call = match client.call_tool_as_task(tool, work.clone(), options).await {
        Err(ClientError::NotNegotiated(_)) => {
            computed(&client.call_tool(tool, work).await?)?;
            return Ok(Observed::Degrades(Loss::TaskAtOnce));
        }
        call => call?,
    };
    let is_task = call.task().is_some();
    computed(&call.result().await?)?;
    match is_task {
        true => Ok(Observed::Works),
        false => Ok(Observed::Degrades(Loss::TaskAtOnce)),
    }
}

fn computed(result: &ToolResult) -> Result<(), Wrong> {
    let is_done = result.all_text().contains("Computed");
    ensure(is_done, || format!("{result:?}"))
}

/// A client without tasks calls a tool that requires one.
async fn without_tasks(client: &Client, pair: Pair) -> Seen {
    let result: ToolResult = client.call_tool("failing_job", json!({})).await?;
    let is_done = result.failed() && result.all_text().contains("The job failed.");
    ensure(is_done, || format!("{result:?}"))?;
    match pair.server < Revision::V2025_11_25 {
        true => Ok(Observed::Degrades(Loss::TaskAtOnce)),
        false => Ok(Observed::Degrades(Loss::TaskWaitedFor)),
    }
}

async fn app(client: &Client) -> Seen {
    let tools = client.list_tools().await?;
    let tool = tools.iter().find(|tool| tool.name == "test_app");
    let meta = tool.and_then(|tool| tool.meta.as_ref());
    let called = client.call_tool("test_app", json!({})).await?;
    ensure(called.all_text() == "It is noon.", || format!("{called:?}"))?;
    let Some(uri) = meta.and_then(|meta| meta["ui"]["resourceUri"].as_str()) else {
        return Ok(Observed::Degrades(Loss::AppAsText));
    };
    let read = client.read_resource(uri).await?;
    let view = read.contents.first();
    let is_view = view.is_some_and(|view| {
        view.uri == uri && view.mime_type.as_deref() == Some("text/html;profile=mcp-app")
    });
    ensure(is_view, || format!("{read:?}"))?;
    Ok(Observed::Works)
}

async fn skills(client: &Client) -> Seen {
    let ask = async |method: &str, params: Value| {
        let answer = client.request(method, Some(&params.to_string())).await?;
        Ok::<Value, ClientError>(serde_json::from_str(&answer).unwrap_or_default())
    };
    let listed = match ask("skills/list", json!({})).await {
        Err(ClientError::NotNegotiated(_)) => return skill_as_resource(client).await,
        listed => listed?,
    };
    let skills = listed["skills"].as_array().cloned().unwrap_or_default();
    ensure(skills.len() == 2, || format!("{listed}"))?;
    let uri = skills[0]["uri"].as_str().unwrap_or_default();
    let got = ask("skills/get", json!({"uri": uri})).await?;
    ensure(got["skill"] == skills[0], || format!("{got}"))?;
    for file in skills[0]["resources"].as_array().into_iter().flatten() {
        let read = client
            .read_resource(file["uri"].as_str().unwrap_or_default())
            .await?;
        let size = read
            .contents
            .first()
            .and_then(|file| Some(file.text.as_ref()?.len()));
        ensure(json!(size) == file["size"], || format!("{read:?}"))?;
    }
    let directory = uri.trim_end_matches("/SKILL.md");
    let children = ask("resources/directory/read", json!({"uri": directory})).await?;
    let children = &children["resources"];
    ensure(children[0]["uri"] == uri, || format!("{children}"))?;
    Ok(Observed::Works)
}

async fn skill_as_resource(client: &Client) -> Seen {
    let resources = client.list_resources().await?;
    let mut skills = resources
        .iter()
        .filter(|of| of.uri.ends_with("/git-workflow/SKILL.md"));
    let (first, second) = (skills.next(), skills.next());
    ensure(second.is_none(), || format!("{resources:?}"))?;
    let read = client
        .read_resource(first.map_or("", |skill| &skill.uri))
        .await?;
    ensure(!read.contents.is_empty(), || format!("{read:?}"))?;
    Ok(Observed::Degrades(Loss::SkillAsResource))
}

async fn pagination(client: &Client, pair: Pair) -> Seen {
    let mut names = BTreeSet::new();
    let mut sizes = Vec::new();
    let mut cursor = None;
    loop {
        let params = cursor.map(|cursor: Value| json!({"cursor": cursor}).to_string());
        let page = client.request("tools/list", params.as_deref()).await?;
        let page: Value = serde_json::from_str(&page).unwrap_or_default();
        let tools = page["tools"].as_array().cloned().unwrap_or_default();
        sizes.push(tools.len());
        names.extend(tools.iter().map(|tool| tool["name"].to_string()));
        match &page["nextCursor"] {
            Value::Null => break,
            next => cursor = Some(next.clone()),
        }
    }
    let is_paged = sizes.len() > 2 && sizes.iter().rev().skip(1).all(|size| *size == 10);
    let is_paged = is_paged || (pair.front == Transport::Gateway && sizes.len() == 1);
    ensure(
        is_paged && names.len() == sizes.iter().sum::<usize>(),
        || format!("pages of {sizes:?}"),
    )?;
    Ok(Observed::Works)
}

async fn errors(client: &Client) -> Seen {
    let unknown_resource = match client.pact().era() {
        Era::Legacy => -32002,
        Era::Modern => -32602,
    };
    let tool = client.call_tool("no_such_tool", json!({})).await.err();
    let resource = client.read_resource("test://nowhere").await.err();
    let prompt = client.get_prompt("no_such_prompt", Map::new()).await.err();
    let codes = [tool, resource, prompt].map(|error| match error {
        Some(ClientError::Rpc(error)) => Ok(error.code),
        other => Err(format!("{other:?}")),
    });
    let expected = [-32602, unknown_resource, -32602].map(Ok);
    ensure(codes == expected, || format!("{codes:?}"))?;
    Ok(Observed::Works)
}
