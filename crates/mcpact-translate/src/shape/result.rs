//! Results of a server for a client of another revision.

use alloc::borrow::Cow;

use mcpact_spec::{Era, Feature, Method, Object, Revision, Role};
use mcpact_wire::raw::JsonKind;

use super::content::{self, ContentPosition};
use super::members::{Members, each_element, each_object, edit_body, or_same, trim};
use super::{ShapeError, list_items, meta, structured};

const COMPLETE: &str = "complete";

/// A result of a server that speaks `from`, for a client that speaks `to`.
///
/// `server_info` is the raw `Implementation` that the result of a legacy server names for a modern
/// client.
///
/// # Errors
/// The result or `server_info` is malformed, or a legacy client gets a result that is not complete.
pub fn result<'a>(
    method: Method,
    raw: &'a str,
    from: Revision,
    to: Revision,
    server_info: Option<&str>,
) -> Result<Cow<'a, str>, ShapeError> {
    match (from.era(), to.era()) {
        _ if from == to => Ok(Cow::Borrowed(raw)),
        (Era::Legacy, Era::Modern) => result_to_modern(method, raw, to, server_info),
        (Era::Legacy | Era::Modern, Era::Legacy) | (Era::Modern, Era::Modern) => {
            result_to_legacy(method, raw, to)
        }
    }
}

/// A server's result for a client that speaks the older revision `to`.
///
/// Results of methods that look alike in every revision come back as they are.
///
/// # Errors
/// The result is malformed, or toward a legacy client it is not a complete one.
pub fn result_to_legacy(
    method: Method,
    raw: &str,
    to: Revision,
) -> Result<Cow<'_, str>, ShapeError> {
    let Some(object) = result_of(method) else {
        return Ok(Cow::Borrowed(raw));
    };
    edit_body(raw, |result| {
        if !to.has(Feature::ResultType) {
            refuse_unfinished(result)?;
        }
        adapt_body(object, result, to)?;
        result.trim(object, to);
        meta::strip(result, to)
    })
}

/// A legacy server's result for a client that speaks the newer revision `to`.
///
/// The result is a complete one whatever it says itself. `server_info` is the raw `Implementation`
/// that it shall name. Answers of a client, and
/// revisions in which results have no type, need nothing of this.
///
/// # Errors
/// The result or `server_info` is malformed.
pub fn result_to_modern<'a>(
    method: Method,
    raw: &'a str,
    to: Revision,
    server_info: Option<&str>,
) -> Result<Cow<'a, str>, ShapeError> {
    if !to.has(Feature::ResultType) || method.role(to) != Role::ClientRequest {
        return Ok(Cow::Borrowed(raw));
    }
    let mut result = Members::of_body(raw)?;
    if result_of(method) == Some(Object::ListToolsResult) {
        result.rewrite("tools", |raw| {
            each_element(raw, |raw| trim(raw, Object::Tool, to))
        })?;
    }
    // To a legacy server the word means nothing; to the client it could mean a question or a task.
    if result.get_str("resultType").as_deref() != Some(COMPLETE) {
        // In the first place it is seen without looking further.
        result.begin_with("resultType", COMPLETE);
    }
    if method.is_cacheable() && to.has(Feature::CacheHints) {
        add_cache_hints(&mut result);
    }
    meta::strip(&mut result, to)?;
    if let Some(server_info) = server_info {
        meta::sign(&mut result, server_info)?;
    }
    Ok(or_same(result.finish(), raw))
}

/// The results that differ between revisions.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "every other result is the same everywhere, or not a server's"
)]
fn result_of(method: Method) -> Option<Object> {
    match method {
        Method::ToolsList => Some(Object::ListToolsResult),
        Method::ToolsCall => Some(Object::CallToolResult),
        Method::PromptsList => Some(Object::ListPromptsResult),
        Method::PromptsGet => Some(Object::GetPromptResult),
        Method::ResourcesList => Some(Object::ListResourcesResult),
        Method::ResourceTemplatesList => Some(Object::ListResourceTemplatesResult),
        Method::ResourcesRead => Some(Object::ReadResourceResult),
        Method::CompletionComplete => Some(Object::CompleteResult),
        _ => None,
    }
}

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "only the objects that `result_of` names arrive, and the last has nothing inside"
)]
fn adapt_body(object: Object, result: &mut Members<'_>, to: Revision) -> Result<(), ShapeError> {
    match object {
        Object::ListToolsResult => result.rewrite("tools", |raw| {
            each_element(raw, |raw| list_items::adapt_tool(raw, to))
        }),
        Object::CallToolResult => {
            result.rewrite("content", |raw| {
                each_object(raw, |block| {
                    content::adapt_block(block, ContentPosition::ToolResult, to)
                })
            })?;
            structured::adapt(result, to)
        }
        Object::ListPromptsResult => result.rewrite("prompts", |raw| {
            each_element(raw, |raw| list_items::adapt_prompt(raw, to))
        }),
        Object::GetPromptResult => result.rewrite("messages", |raw| {
            each_element(raw, |raw| list_items::adapt_prompt_message(raw, to))
        }),
        Object::ListResourcesResult => result.rewrite("resources", |raw| {
            each_element(raw, |raw| {
                list_items::adapt_resource(raw, Object::Resource, to)
            })
        }),
        Object::ListResourceTemplatesResult => result.rewrite("resourceTemplates", |raw| {
            each_element(raw, |raw| {
                list_items::adapt_resource(raw, Object::ResourceTemplate, to)
            })
        }),
        Object::ReadResourceResult => result.rewrite("contents", |raw| {
            each_element(raw, |raw| list_items::adapt_contents(raw, to))
        }),
        _ => Ok(()),
    }
}

/// Without its type a question, or a task, would look like an empty answer.
fn refuse_unfinished(result: &Members<'_>) -> Result<(), ShapeError> {
    match result.get_str("resultType") {
        Some(kind) if kind != COMPLETE => Err(ShapeError::Unfinished),
        Some(_) | None => Ok(()),
    }
}

/// A legacy server promises nothing, so nothing may be kept or shared.
fn add_cache_hints(result: &mut Members<'_>) {
    if kind_of(result, "ttlMs") != Some(JsonKind::Number) {
        result.set("ttlMs", "0".into());
    }
    if kind_of(result, "cacheScope") != Some(JsonKind::String) {
        result.set_str("cacheScope", "private");
    }
}

fn kind_of(result: &Members<'_>, key: &str) -> Option<JsonKind> {
    result.get(key).map(JsonKind::of)
}

#[cfg(test)]
mod tests;
