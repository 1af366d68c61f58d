//! Checks of results: lists, their items and pages, and members of every modern result.

use std::collections::BTreeSet;

use mcpact_spec::{Era, ErrorCode, Method, Side};
use serde_json::Value;

use super::super::dialogue::Dialogue;
use super::{excerpt, kind, wrong};

/// Key of the items of a list, and the members that each item needs.
const LISTS: &[(Method, &str, &[&str])] = &[
    (Method::ToolsList, "tools", &["name"]),
    (Method::PromptsList, "prompts", &["name"]),
    (Method::ResourcesList, "resources", &["uri", "name"]),
    (
        Method::ResourceTemplatesList,
        "resourceTemplates",
        &["uriTemplate", "name"],
    ),
];

/// Longest tool name and characters of `2025-11-25 server/tools#tool-names`.
const MAX_TOOL_NAME: usize = 128;

fn row(method: Method) -> Option<&'static (Method, &'static str, &'static [&'static str])> {
    LISTS.iter().find(|(list, ..)| *list == method)
}

/// Returns the items of all pages of a list.
fn items<'d>(dialogue: &'d Dialogue<'_>, method: Method) -> Vec<&'d Value> {
    let results = dialogue.results().filter(|(asked, _)| *asked == method);
    let key = row(method).map_or("", |(_, key, _)| *key);
    results
        .filter_map(|(_, result)| result.get(key)?.as_array())
        .flatten()
        .collect()
}

fn is_modern(dialogue: &Dialogue<'_>) -> bool {
    dialogue.pact.is_some_and(|pact| pact.era() == Era::Modern)
}

pub(super) fn result_type(dialogue: &Dialogue<'_>) -> Vec<String> {
    if !is_modern(dialogue) {
        return Vec::new();
    }
    let modern = dialogue
        .results()
        .filter(|(method, _)| *method != Method::Initialize);
    let faults = modern.filter_map(|(method, result)| {
        let value = result.get("resultType");
        let is_text = value.is_some_and(Value::is_string);
        (!is_text).then(|| format!("the result of `{method}` {}", wrong("resultType", value)))
    });
    faults.collect()
}

pub(super) fn cache_hints(dialogue: &Dialogue<'_>) -> Vec<String> {
    if !is_modern(dialogue) {
        return Vec::new();
    }
    let cacheable = dialogue
        .results()
        .filter(|(method, _)| method.is_cacheable());
    let faults = cacheable.filter_map(|(method, result)| {
        let (ttl, scope) = (result.get("ttlMs"), result.get("cacheScope"));
        let fault = if !ttl.is_some_and(Value::is_number) {
            wrong("ttlMs", ttl)
        } else if !scope.is_some_and(Value::is_string) {
            wrong("cacheScope", scope)
        } else {
            return None;
        };
        Some(format!("the result of `{method}` {fault}"))
    });
    faults.collect()
}

/// Only methods that the pact allows are called. Templates are optional.
pub(super) fn declared_not_found(dialogue: &Dialogue<'_>) -> Vec<String> {
    let Some(pact) = dialogue.pact else {
        return Vec::new();
    };
    let missing = dialogue.responses().filter_map(|(method, message)| {
        row(method).filter(|_| method != Method::ResourceTemplatesList)?;
        let code = message.get("error")?.get("code")?.as_i64()?;
        let is_missing = ErrorCode::parse(code) == Some(ErrorCode::MethodNotFound);
        is_missing.then(|| {
            let capability = method.gate(pact.revision()).capability(Side::Client);
            match capability {
                Some(capability) => {
                    format!("the server declares `{capability}`, but `{method}` is not found")
                }
                None => format!("`{method}` is not found"),
            }
        })
    });
    missing.collect()
}

pub(super) fn ping_result(dialogue: &Dialogue<'_>) -> Vec<String> {
    let pings = dialogue
        .responses()
        .filter(|(method, _)| *method == Method::Ping);
    let faults = pings.filter_map(|(_, message)| match message.get("result") {
        Some(Value::Object(result)) if result.keys().all(|key| key == "_meta") => None,
        Some(_) => Some(String::from("the result of `ping` is not empty")),
        None => {
            let error = message.get("error").map(ToString::to_string);
            Some(format!(
                "`ping` fails: {}",
                excerpt(&error.unwrap_or_default())
            ))
        }
    });
    faults.collect()
}

pub(super) fn list_array(dialogue: &Dialogue<'_>) -> Vec<String> {
    let faults = dialogue.results().filter_map(|(method, result)| {
        let (_, key, _) = row(method)?;
        let list = result.get(key);
        let is_array = list.is_some_and(Value::is_array);
        (!is_array).then(|| format!("the result of `{method}` {}", wrong(key, list)))
    });
    faults.collect()
}

pub(super) fn list_item(dialogue: &Dialogue<'_>) -> Vec<String> {
    let faults = LISTS.iter().flat_map(|(method, _, required)| {
        items(dialogue, *method)
            .into_iter()
            .filter_map(move |item| {
                if !item.is_object() {
                    return Some(format!("an item of `{method}` is {}", kind(item)));
                }
                required.iter().find_map(|key| {
                    let value = item.get(key);
                    let is_text = value.is_some_and(Value::is_string);
                    (!is_text)
                        .then(|| format!("{} of `{method}` {}", name(item), wrong(key, value)))
                })
            })
    });
    faults.collect()
}

pub(super) fn duplicate_name(dialogue: &Dialogue<'_>) -> Vec<String> {
    // A cursor that is returned again leads to the same page.
    if !cursor_loop(dialogue).is_empty() {
        return duplicates(first_page(dialogue));
    }
    duplicates(items(dialogue, Method::ToolsList))
}

fn first_page<'d>(dialogue: &'d Dialogue<'_>) -> Vec<&'d Value> {
    let mut pages = dialogue.results();
    let page = pages.find(|(method, _)| *method == Method::ToolsList);
    let tools = page.and_then(|(_, result)| result.get("tools")?.as_array());
    tools.into_iter().flatten().collect()
}

fn duplicates(tools: Vec<&Value>) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let names = tools
        .into_iter()
        .filter_map(|tool| tool.get("name")?.as_str());
    let repeated = names.filter(|name| !seen.insert(*name));
    repeated
        .map(|name| format!("two tools are named {}", excerpt(name)))
        .collect()
}

pub(super) fn tool_name(dialogue: &Dialogue<'_>) -> Vec<String> {
    let tools = items(dialogue, Method::ToolsList).into_iter();
    let names = tools.filter_map(|tool| tool.get("name")?.as_str());
    let faults = names.filter_map(|name| {
        let is_usual = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
        if name.is_empty() {
            return Some(String::from("a tool has an empty name"));
        }
        if name.chars().count() > MAX_TOOL_NAME {
            return Some(format!(
                "the tool name {} has more than {MAX_TOOL_NAME} characters",
                excerpt(name)
            ));
        }
        let unusual = name.chars().find(|c| !is_usual(*c))?;
        Some(format!(
            "the tool name {} contains {unusual:?}",
            excerpt(name)
        ))
    });
    faults.collect()
}

pub(super) fn input_schema(dialogue: &Dialogue<'_>) -> Vec<String> {
    let tools = items(dialogue, Method::ToolsList).into_iter();
    let faults = tools.filter(|tool| tool.is_object()).filter_map(|tool| {
        let schema = tool.get("inputSchema");
        let Some(Value::Object(members)) = schema else {
            return Some(format!("{} {}", name(tool), wrong("inputSchema", schema)));
        };
        match members.get("type").and_then(Value::as_str) {
            Some("object") => None,
            _ => Some(format!(
                "{} has an `inputSchema` without `\"type\": \"object\"`",
                name(tool)
            )),
        }
    });
    faults.collect()
}

pub(super) fn cursor_type(dialogue: &Dialogue<'_>) -> Vec<String> {
    let faults = dialogue.results().filter_map(|(method, result)| {
        row(method)?;
        let cursor = result.get("nextCursor")?;
        (!cursor.is_string()).then(|| {
            format!(
                "the result of `{method}` {}",
                wrong("nextCursor", Some(cursor))
            )
        })
    });
    faults.collect()
}

pub(super) fn cursor_loop(dialogue: &Dialogue<'_>) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let cursors = dialogue.results().filter_map(|(method, result)| {
        row(method)?;
        Some((method.as_str(), result.get("nextCursor")?.as_str()?))
    });
    let repeated = cursors.filter(|cursor| !seen.insert(*cursor));
    repeated
        .map(|(method, cursor)| format!("`{method}` returns the cursor {} twice", excerpt(cursor)))
        .collect()
}

/// Returns the name of an item for a finding.
fn name(item: &Value) -> String {
    let name = ["name", "uri"]
        .iter()
        .find_map(|key| item.get(key)?.as_str());
    name.map_or_else(|| String::from("an item"), excerpt)
}
