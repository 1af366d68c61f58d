//! The parameters of a request on their way to the server, and progress on its way back.

use alloc::borrow::Cow;
use alloc::string::String;

use mcpact_spec::tables::meta;
use mcpact_spec::{Feature, Method, Revision};
use mcpact_wire::raw::{JsonKind, Object};

use crate::shape::members::{Members, edit, edit_body, or_same};
use crate::shape::{ShapeError, adapt_params};

/// Keys of `_meta` that the protocol keeps for itself.
const RESERVED: &str = "io.modelcontextprotocol/";

/// Members of a request that cross only between revisions that both have the feature.
const MEMBERS: [(&str, Feature); 3] = [
    ("task", Feature::TasksCore),
    ("inputResponses", Feature::MultiRoundTrip),
    ("requestState", Feature::MultiRoundTrip),
];

/// The parameters of a client's request for the server.
///
/// Members that only one of the two sides understands are removed: the marks of a modern request, a
/// task, the continuation of a request that the server does not know to be one. A modern server's
/// stamp is not written here; the codec does that. Vendor keys, trace context and the progress
/// token stay.
///
/// # Errors
/// The parameters, or their `_meta`, are malformed.
pub fn request_params(
    method: Option<Method>,
    raw: &str,
    downstream: Revision,
    upstream: Revision,
) -> Result<Cow<'_, str>, ShapeError> {
    let mut params = Members::of_body(raw)?;
    if method.is_some_and(Method::may_ask_for_input) {
        for (member, feature) in MEMBERS {
            if !downstream.has(feature) || !upstream.has(feature) {
                params.remove(member);
            }
        }
    }
    params.rewrite("_meta", |raw| known_meta(raw, downstream, upstream))?;
    rename_version(&mut params, downstream, upstream)?;
    if params.get("_meta") == Some("{}") {
        params.remove("_meta");
    }
    let crossing = or_same(params.finish(), raw);
    let Some(Method::CompletionComplete) = method else {
        return Ok(crossing);
    };
    match crossing {
        Cow::Borrowed(raw) => adapt_params(Method::CompletionComplete, raw, upstream),
        Cow::Owned(raw) => {
            let adapted = adapt_params(Method::CompletionComplete, &raw, upstream)?;
            Ok(Cow::Owned(adapted.into_owned()))
        }
    }
}

/// Between two modern revisions the request names that of its server.
fn rename_version(
    params: &mut Members<'_>,
    downstream: Revision,
    upstream: Revision,
) -> Result<(), ShapeError> {
    let both_name = downstream.has(Feature::RequestMeta) && upstream.has(Feature::RequestMeta);
    if downstream == upstream || !both_name {
        return Ok(());
    }
    params.rewrite("_meta", |raw| {
        edit(raw, |keys| {
            if keys.get(meta::PROTOCOL_VERSION).is_some() {
                keys.set_str(meta::PROTOCOL_VERSION, upstream.as_str());
            }
            Ok(())
        })
    })
}

/// The keys of `_meta` that mean the same on both sides.
fn known_meta(
    raw: &str,
    downstream: Revision,
    upstream: Revision,
) -> Result<Option<String>, ShapeError> {
    if JsonKind::of(raw) != JsonKind::Object {
        return Ok(None);
    }
    let both = |feature| downstream.has(feature) && upstream.has(feature);
    let crosses = |key: &str| match key {
        meta::RELATED_TASK => both(Feature::TasksCore),
        _ => !key.starts_with(RESERVED) || both(Feature::RequestMeta),
    };
    let keys = Object::parse(raw)?;
    if keys.iter().all(|(key, _)| crosses(key)) {
        return Ok(None);
    }
    Ok(Some(keys.keep(crosses).finish()))
}

/// The parameters with this raw token: tokens are unique on one connection only.
///
/// # Errors
/// The parameters are malformed.
pub fn with_progress_token(raw: &str, token: &str) -> Result<String, ShapeError> {
    rewrite_meta(raw, meta::PROGRESS_TOKEN, Some(token)).map(Cow::into_owned)
}

/// The parameters without a token, for requests without a receiver of progress.
///
/// # Errors
/// The parameters are malformed.
pub fn without_progress_token(raw: &str) -> Result<Cow<'_, str>, ShapeError> {
    rewrite_meta(raw, meta::PROGRESS_TOKEN, None)
}

/// The parameters of a modern client's request with another raw declaration of what it can.
///
/// # Errors
/// The parameters are malformed.
pub fn with_capabilities(raw: &str, declared: &str) -> Result<String, ShapeError> {
    rewrite_meta(raw, meta::CLIENT_CAPABILITIES, Some(declared)).map(Cow::into_owned)
}

fn rewrite_meta<'a>(
    raw: &'a str,
    key: &'static str,
    value: Option<&str>,
) -> Result<Cow<'a, str>, ShapeError> {
    let mut params = Members::of_body(raw)?;
    let existing = params.get_present("_meta").unwrap_or("{}");
    let mut meta = Members::of_body(existing)?;
    match value {
        Some(value) => meta.set(key, String::from(value)),
        None => meta.remove(key),
    }
    let rewritten = meta.finish();
    match rewritten.as_deref() {
        None => {}
        Some("{}") => params.remove("_meta"),
        Some(meta) => params.set("_meta", String::from(meta)),
    }
    Ok(or_same(params.finish(), raw))
}

/// The parameters of `notifications/progress` under the token that the receiver gave.
///
/// # Errors
/// The parameters are malformed.
pub fn with_reported_token(raw: &str, token: &str) -> Result<String, ShapeError> {
    let params = edit_body(raw, |params| {
        params.set(meta::PROGRESS_TOKEN, String::from(token));
        Ok(())
    })?;
    Ok(params.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use Revision::{V2024_11_05, V2025_03_26, V2025_06_18, V2025_11_25, V2026_07_28};

    /// XR-08, BB-02: what one side does not understand is not sent to it, and the rest is.
    #[test]
    fn parameters_lose_what_does_not_cross() {
        let call = Some(Method::ToolsCall);
        let modern = r#"{"name":"t","arguments":{"n":1e400},"inputResponses":{},"requestState":"s","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/logLevel":"info","progressToken":1,"traceparent":"00-1","x/y":2}}"#;
        let stripped = r#"{"name":"t","arguments":{"n":1e400},"_meta":{"progressToken":1,"traceparent":"00-1","x/y":2}}"#;
        let task = r#"{"name":"t","task":{"ttl":1},"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"1"}}}"#;
        let complete = r#"{"ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"a","value":""},"context":{"arguments":{}}}"#;
        let bare = r#"{"ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"a","value":""}}"#;
        let completion = Some(Method::CompletionComplete);
        let cells = [
            (
                "to a legacy server",
                call,
                modern,
                V2026_07_28,
                V2025_11_25,
                stripped,
            ),
            (
                "among modern peers",
                call,
                modern,
                V2026_07_28,
                V2026_07_28,
                modern,
            ),
            (
                "smuggled by a legacy client",
                call,
                modern,
                V2025_11_25,
                V2026_07_28,
                stripped,
            ),
            (
                "smuggled among legacy peers",
                call,
                modern,
                V2025_06_18,
                V2025_06_18,
                stripped,
            ),
            (
                "a task that is known",
                call,
                task,
                V2025_11_25,
                V2025_11_25,
                task,
            ),
            (
                "a task for the future",
                call,
                task,
                V2025_11_25,
                V2026_07_28,
                r#"{"name":"t"}"#,
            ),
            (
                "a task for the past",
                call,
                task,
                V2025_11_25,
                V2025_06_18,
                r#"{"name":"t"}"#,
            ),
            (
                "context",
                completion,
                complete,
                V2026_07_28,
                V2025_03_26,
                bare,
            ),
            (
                "context, earlier",
                completion,
                complete,
                V2025_06_18,
                V2024_11_05,
                bare,
            ),
            (
                "context is known",
                completion,
                complete,
                V2026_07_28,
                V2025_06_18,
                complete,
            ),
            (
                "an argument that is called task",
                Some(Method::PromptsList),
                r#"{"task":1}"#,
                V2026_07_28,
                V2024_11_05,
                r#"{"task":1}"#,
            ),
            (
                "nothing but a stamp",
                None,
                r#"{"_meta":{"io.modelcontextprotocol/clientInfo":{}}}"#,
                V2026_07_28,
                V2024_11_05,
                "{}",
            ),
        ];
        for (name, method, raw, downstream, upstream, expected) in cells {
            let crossing = request_params(method, raw, downstream, upstream).unwrap();
            assert_eq!(crossing, expected, "{name}");
            let is_same = matches!(crossing, Cow::Borrowed(_));
            assert_eq!(is_same, raw == expected, "{name}");
        }
    }

    #[test]
    fn tokens_are_replaced_and_restored() {
        let raw = r#"{"name":"t","_meta":{"progressToken":"mine", "a": 1}}"#;
        let up = with_progress_token(raw, "7").unwrap();
        assert_eq!(up, r#"{"name":"t","_meta":{"progressToken":7,"a":1}}"#);
        let bare = with_progress_token("{}", "7").unwrap();
        assert_eq!(bare, r#"{"_meta":{"progressToken":7}}"#);
        assert_eq!(without_progress_token(&bare).unwrap(), "{}");
        assert!(matches!(
            without_progress_token("{}"),
            Ok(Cow::Borrowed("{}"))
        ));
        let report = r#"{"progressToken":7,"progress":0.10,"message":"m"}"#;
        let told = with_reported_token(report, r#""mine""#).unwrap();
        assert_eq!(
            told,
            r#"{"progressToken":"mine","progress":0.10,"message":"m"}"#
        );
    }
}
