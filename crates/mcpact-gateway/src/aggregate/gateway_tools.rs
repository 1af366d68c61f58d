//! Search mode: clients see few tools, and find and call the others by three tools of the gateway.

use std::sync::Arc;

use mcpact::connection::RawResult;
use mcpact::server::backend::BackendRequest;
use mcpact_config::{ToolListing, ToolMode};
use mcpact_spec::{Era, ErrorCode, Method};
use mcpact_wire::envelope::Params;
use mcpact_wire::raw::{JsonKind, Object, ObjectWriter, member};
use mcpact_wire::scan::text;

use crate::aggregate::aggregator::Aggregator;
use crate::aggregate::list_kind::ListKind;
use crate::aggregate::merge::MergedList;
use crate::aggregate::not_found;
use crate::aggregate::tool_search::summary;
use crate::downstream::client::DownstreamClient;
use crate::error::ServeError;
use crate::exchange::refuse;
use crate::lists::merged::merged_list;

const SEARCH: &str = "search_tools";
const DESCRIBE: &str = "describe_tool";
const CALL: &str = "call_tool";

/// Names of the tools of the gateway; items of servers get other public names.
pub(crate) const NAMES: [&str; 3] = [SEARCH, DESCRIBE, CALL];

/// Number of results if the client sets none, and its maximum.
const LIMITS: [usize; 2] = [5, 50];

/// Definitions of the tools of the gateway.
pub(crate) const DEFINITIONS: [&str; 3] = [
    r#"{"name":"search_tools","description":"Search the tools of all connected servers. Returns one line per match: name, arguments (`?` marks optional ones) and description. Call a match with `call_tool`.","inputSchema":{"type":"object","properties":{"query":{"type":"string","description":"Words about the task, such as `read text file`"},"limit":{"type":"integer","minimum":1,"maximum":50,"default":5}},"required":["query"]}}"#,
    r#"{"name":"describe_tool","description":"Returns the full definition of a tool with its input schema, as JSON.","inputSchema":{"type":"object","properties":{"name":{"type":"string","description":"Name as returned by `search_tools`"}},"required":["name"]}}"#,
    r#"{"name":"call_tool","description":"Calls a tool that `search_tools` has found.","inputSchema":{"type":"object","properties":{"name":{"type":"string","description":"Name as returned by `search_tools`"},"arguments":{"type":"object","description":"Arguments of the tool"}},"required":["name"]}}"#,
];

/// Returns the list that clients are shown: in search mode the tools of the gateway and the pinned ones.
pub(crate) fn listed(
    tools: &ToolListing,
    kind: ListKind,
    list: Arc<MergedList>,
) -> Arc<MergedList> {
    match (tools.mode, kind) {
        (ToolMode::Search, ListKind::Tools) => list.reduced(&DEFINITIONS, &tools.pinned),
        _ => list,
    }
}

/// Returns the request with a direct call in place of `call_tool`.
pub(crate) fn unwrapped(tools: &ToolListing, mut request: BackendRequest) -> BackendRequest {
    let is_search = tools.mode == ToolMode::Search;
    let method = request.method.filter(|_| is_search);
    if method == Some(Method::ToolsCall)
        && let Some(params) = direct_call(&request.params)
    {
        request.params = params.into();
    }
    request
}

/// Returns the raw name in the parameters, or that in a `call_tool`.
pub(crate) fn called<'a>(tools: &ToolListing, params: &Params<'a>) -> Option<&'a str> {
    let name = params.name?;
    let is_wrapped = tools.mode == ToolMode::Search && text(name).is_some_and(|name| name == CALL);
    match is_wrapped {
        true => member(params.arguments?, "name"),
        false => Some(name),
    }
}

fn direct_call(params: &str) -> Option<String> {
    let params = Object::parse(params).ok()?;
    if params.get_str("name")? != CALL {
        return None;
    }
    let call = Object::parse(params.get("arguments")?).ok()?;
    let (name, arguments) = (call.get("name")?, call.get_present("arguments"));
    let is_object = |raw| JsonKind::of(raw) == JsonKind::Object;
    if JsonKind::of(name) != JsonKind::String || !arguments.is_none_or(is_object) {
        return None;
    }
    let rest = params.keep(|key| key != "name" && key != "arguments");
    let direct = rest.raw("name", name).maybe_raw("arguments", arguments);
    Some(direct.finish())
}

/// Answers a call of a tool of the gateway.
pub(crate) async fn answer(
    aggregator: &Arc<Aggregator>,
    client: &Arc<DownstreamClient>,
    request: &BackendRequest,
) -> Option<Result<RawResult, ServeError>> {
    if aggregator.settings.tools.mode == ToolMode::All || request.method != Some(Method::ToolsCall)
    {
        return None;
    }
    let params = Object::parse(&request.params).ok()?;
    let name = params.get_str("name")?;
    let tool = NAMES.into_iter().find(|tool| *tool == name)?;
    Some(call(aggregator, client, request, tool, &params).await)
}

async fn call(
    aggregator: &Arc<Aggregator>,
    client: &Arc<DownstreamClient>,
    request: &BackendRequest,
    tool: &str,
    params: &Object<'_>,
) -> Result<RawResult, ServeError> {
    let revision = request.pact.revision();
    if params.get_present("task").is_some() {
        let why = format!("`{tool}` cannot be called as a task");
        return Err(refuse(ErrorCode::MethodNotFound, why, revision));
    }
    let arguments = params.get("arguments").map(Object::parse);
    let arguments = arguments.and_then(Result::ok).unwrap_or_default();
    let key = if tool == SEARCH { "query" } else { "name" };
    let is_error = |text: &str| result(revision.era(), text, true);
    let Some(given) = arguments.get_str(key).filter(|_| tool != CALL) else {
        let needed = match tool {
            // Valid calls do not get here.
            CALL => "`name`, a tool of a server, and optionally the object `arguments`",
            DESCRIBE => "the string `name`",
            _ => "the string `query`",
        };
        return Ok(is_error(&format!("`{tool}` needs {needed}")));
    };
    let kind = ListKind::Tools;
    let list = merged_list(aggregator, client, kind, revision).await?;
    if tool == DESCRIBE {
        let found = list.item(kind, &given);
        let not_found = || not_found::not_found(aggregator, kind, &given, &list, revision);
        return Ok(result(revision.era(), found.ok_or_else(not_found)?, false));
    }
    let [usual, most] = LIMITS;
    let limit = match arguments.get_present("limit").map(str::parse::<usize>) {
        None => usual,
        Some(Ok(limit)) if (1..=most).contains(&limit) => limit,
        Some(_) => {
            return Ok(is_error(&format!(
                "`limit` must be an integer from 1 to {most}"
            )));
        }
    };
    let found: Vec<String> = list.search(&given, limit).map(summary).collect();
    let text = match found.as_slice() {
        [] => String::from("No tool matches; try other words"),
        found => found.join("\n"),
    };
    Ok(result(revision.era(), &text, false))
}

fn result(era: Era, text: &str, is_error: bool) -> RawResult {
    let content = ObjectWriter::new().text("type", "text").text("text", text);
    let result = match era {
        Era::Legacy => ObjectWriter::new(),
        Era::Modern => ObjectWriter::new().text("resultType", "complete"),
    };
    let result = result.raw("content", &format!("[{}]", content.finish()));
    let is_error = is_error.then_some("true");
    result.maybe_raw("isError", is_error).finish().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A call by `call_tool` becomes a direct call; everything else of the request stays.
    #[test]
    fn wrapped_calls_become_direct_calls() {
        let cells = [
            (
                r#"{"name":"call_tool","arguments":{"name":"a__b","arguments":{"x": 1}},"_meta":{"progressToken":1}}"#,
                Some(r#"{"_meta":{"progressToken":1},"name":"a__b","arguments":{"x": 1}}"#),
            ),
            (
                r#"{"name":"call_tool","arguments":{"name":"call_tool"},"task":{}}"#,
                Some(r#"{"task":{},"name":"call_tool"}"#),
            ),
            (
                r#"{"name":"call_tool","arguments":{"name":"a","arguments":"{}"}}"#,
                None,
            ),
            (r#"{"name":"call_tool","arguments":{"name":1}}"#, None),
            (r#"{"name":"call_tool"}"#, None),
            (r#"{"name":"a","arguments":{"name":"call_tool"}}"#, None),
        ];
        for (params, expected) in cells {
            assert_eq!(direct_call(params).as_deref(), expected, "{params}");
        }
    }

    #[test]
    fn definitions_have_the_names() {
        let names = DEFINITIONS.map(|tool| Object::parse(tool).unwrap().get_str("name").unwrap());
        assert_eq!(names, NAMES);
    }
}
