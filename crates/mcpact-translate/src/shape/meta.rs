//! The keys of a result's `_meta` that the protocol reserves for itself.

use alloc::string::String;

use mcpact_spec::tables::meta;
use mcpact_spec::{Feature, Revision};
use mcpact_wire::raw::{JsonKind, Object};

use super::ShapeError;
use super::members::Members;

const RESERVED: &str = "io.modelcontextprotocol/";
/// Message for the model while a task of 2025-11-25 runs.
const IMMEDIATE_RESPONSE: &str = "io.modelcontextprotocol/model-immediate-response";

/// Takes away the reserved keys that the revision does not know; a `_meta` that is empty then
/// goes too.
pub(crate) fn strip(result: &mut Members<'_>, to: Revision) -> Result<(), ShapeError> {
    let Some(raw) = result.get("_meta").filter(|raw| is_object(raw)) else {
        return Ok(());
    };
    let keys = Object::parse(raw)?;
    if keys.iter().all(|(key, _)| is_known(key, to)) {
        return Ok(());
    }
    match keys.keep(|key| is_known(key, to)).finish() {
        none if none == "{}" => result.remove("_meta"),
        kept => result.set("_meta", kept),
    }
    Ok(())
}

/// Says who the server is.
pub(crate) fn sign(result: &mut Members<'_>, server_info: &str) -> Result<(), ShapeError> {
    Object::parse(server_info)?;
    put(result, meta::SERVER_INFO, server_info)
}

/// Gives a key of `_meta` this raw value, in a `_meta` of its own if there is none.
pub(crate) fn put(
    body: &mut Members<'_>,
    key: &'static str,
    value: &str,
) -> Result<(), ShapeError> {
    let raw = body.get("_meta").filter(|raw| is_object(raw));
    let mut keys = Members::of_body(raw.unwrap_or("{}"))?;
    if keys.get(key) == Some(value) {
        return Ok(());
    }
    keys.set(key, String::from(value));
    if let Some(keys) = keys.finish() {
        body.set("_meta", keys);
    }
    Ok(())
}

fn is_object(raw: &str) -> bool {
    JsonKind::of(raw) == JsonKind::Object
}

fn is_known(key: &str, to: Revision) -> bool {
    let of_tasks = key == meta::RELATED_TASK || key == IMMEDIATE_RESPONSE;
    if to.has(Feature::RequestMeta) {
        key != meta::RELATED_TASK
    } else {
        !key.starts_with(RESERVED) || (of_tasks && to.has(Feature::TasksCore))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Revision::{V2025_06_18, V2025_11_25, V2026_07_28};

    #[test]
    fn reserved_keys_stay_only_where_they_are_known() {
        let task = r#"{"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"1"},"x/y":1}}"#;
        let server = r#"{"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s"}}}"#;
        let vendor = r#"{"_meta":{"x/y":1}}"#;
        let cells = [
            ("tasks are known", task, V2025_11_25, None),
            ("tasks are unknown", task, V2025_06_18, Some(vendor)),
            (
                "tasks moved to an extension",
                task,
                V2026_07_28,
                Some(vendor),
            ),
            ("identity is modern", server, V2026_07_28, None),
            ("nothing else is left", server, V2025_11_25, Some("{}")),
            ("vendors keep theirs", vendor, V2025_06_18, None),
            ("not an object", r#"{"_meta":[1]}"#, V2025_06_18, None),
        ];
        for (name, raw, to, expected) in cells {
            let mut result = Members::of_body(raw).unwrap();
            strip(&mut result, to).unwrap();
            assert_eq!(result.finish().as_deref(), expected, "{name}");
        }
    }
}
