//! Error objects between the eras.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use mcpact_spec::{Era, ErrorCode, Feature, Method, Revision};
use mcpact_wire::raw::{JsonKind, Object, ObjectWriter, elements};

use super::ShapeError;
use super::members::{Members, or_same};

/// The codes that 2026-07-28 reserves for itself; older revisions leave them to implementations.
const RESERVED: core::ops::RangeInclusive<i64> = -32099..=-32020;

/// An error of a server that speaks `from`, for a client that speaks `to`.
///
/// `params` are the raw parameters of the request that failed.
///
/// # Errors
/// The error is malformed.
pub fn error<'a>(
    method: Option<Method>,
    raw: &'a str,
    params: &str,
    from: Revision,
    to: Revision,
) -> Result<Cow<'a, str>, ShapeError> {
    let params = || Object::parse(params).unwrap_or_default();
    match (from.era(), to.era()) {
        _ if from == to => Ok(Cow::Borrowed(raw)),
        (Era::Modern, Era::Modern) => {
            let mut error = Members::of_body(raw)?;
            adapt_not_found(&mut error, method, params().get_str("uri").as_deref(), to);
            Ok(or_same(error.finish(), raw))
        }
        (Era::Legacy, Era::Modern) => error_to_modern(raw, to),
        (Era::Legacy | Era::Modern, Era::Legacy) => {
            error_to_legacy(method, raw, params().get_str("uri").as_deref(), to)
        }
    }
}

/// A server's error for a client that speaks the older revision `to`.
///
/// `uri` is the resource that the client asked for, if it asked for one: only with it can "no such
/// resource" be told from other bad parameters.
///
/// # Errors
/// The error is malformed.
pub fn error_to_legacy<'a>(
    method: Option<Method>,
    raw: &'a str,
    uri: Option<&str>,
    to: Revision,
) -> Result<Cow<'a, str>, ShapeError> {
    let mut error = Members::of_body(raw)?;
    adapt_not_found(&mut error, method, uri, to);
    let code = code_of(&error).and_then(ErrorCode::parse);
    match code {
        // Between gateway and server only; the client can do nothing about either.
        Some(code @ (ErrorCode::HeaderMismatch | ErrorCode::UnsupportedVersion))
            if !code.emitted_in(to) =>
        {
            set_code(&mut error, ErrorCode::InternalError);
        }
        Some(code @ ErrorCode::UrlElicitationRequired) if !code.emitted_in(to) => {
            name_urls(&mut error)?;
            set_code(&mut error, ErrorCode::InternalError);
        }
        Some(code @ ErrorCode::MissingClientCapability) if !code.emitted_in(to) => {
            name_missing(&mut error);
        }
        Some(_) | None => {}
    }
    Ok(or_same(error.finish(), raw))
}

/// A legacy server's error for a client that speaks the newer revision `to`.
///
/// # Errors
/// The error is malformed.
pub fn error_to_modern(raw: &str, to: Revision) -> Result<Cow<'_, str>, ShapeError> {
    let mut error = Members::of_body(raw)?;
    let Some(code) = code_of(&error).filter(|_| to.has(Feature::RequestMeta)) else {
        return Ok(Cow::Borrowed(raw));
    };
    if code == ErrorCode::ResourceNotFound.code() {
        adapt_not_found(&mut error, None, None, to);
    } else if code == ErrorCode::InvalidParams.code() && names_capabilities(&error) {
        // A legacy server has no code of its own for a client that lacks something.
        set_code(&mut error, ErrorCode::MissingClientCapability);
    } else if RESERVED.contains(&code) {
        let data = ObjectWriter::new()
            .raw("upstreamCode", &code.to_string())
            .maybe_raw("upstreamData", error.get("data"))
            .finish();
        error.set("data", data);
        set_code(&mut error, ErrorCode::InternalError);
    }
    Ok(or_same(error.finish(), raw))
}

/// Gives "no such resource" the code that it has in the revision `to`.
fn adapt_not_found(
    error: &mut Members<'_>,
    method: Option<Method>,
    uri: Option<&str>,
    to: Revision,
) {
    let has_code = ErrorCode::ResourceNotFound.emitted_in(to);
    match code_of(error).and_then(ErrorCode::parse) {
        // 2026-07-28 server/resources#error-handling
        Some(ErrorCode::ResourceNotFound) if !has_code => {
            set_code(error, ErrorCode::InvalidParams);
        }
        Some(ErrorCode::InvalidParams)
            if has_code && method == Some(Method::ResourcesRead) && is_not_found(error, uri) =>
        {
            set_code(error, ErrorCode::ResourceNotFound);
        }
        Some(_) | None => {}
    }
}

/// Returns whether the error says what the client would have had to declare.
fn names_capabilities(error: &Members<'_>) -> bool {
    let data = error.get("data").and_then(|raw| Object::parse(raw).ok());
    let required = data.and_then(|data| data.get("requiredCapabilities"));
    required.is_some_and(|raw| JsonKind::of(raw) == JsonKind::Object)
}

fn code_of(error: &Members<'_>) -> Option<i64> {
    error.get("code")?.parse().ok()
}

fn set_code(error: &mut Members<'_>, code: ErrorCode) {
    error.set("code", code.code().to_string());
}

fn is_not_found(error: &Members<'_>, uri: Option<&str>) -> bool {
    let data = error.get("data").and_then(|raw| Object::parse(raw).ok());
    let named = data.and_then(|data| data.get_str("uri"));
    let is_named = named.is_some_and(|named| Some(named.as_ref()) == uri);
    let message = error.get_str("message").unwrap_or_default();
    is_named || message.to_ascii_lowercase().contains("not found")
}

/// A client that cannot be sent to a URL can still show it; the user has to open it.
fn name_urls(error: &mut Members<'_>) -> Result<(), ShapeError> {
    let data = error.get("data").and_then(|raw| Object::parse(raw).ok());
    let listed = data
        .and_then(|data| data.get("elicitations"))
        .filter(|raw| JsonKind::of(raw) == JsonKind::Array);
    let mut message = String::from(error.get_str("message").unwrap_or_default());
    for elicitation in elements(listed.unwrap_or("[]"))? {
        if let Some(members) = Members::of_value(elicitation)?
            && let Some(url) = members.get_str("url")
        {
            message = format!("{message} ({url})");
        }
    }
    error.set_str("message", &message);
    Ok(())
}

/// A legacy client has never seen this code; its user can still read what is missing.
fn name_missing(error: &mut Members<'_>) {
    let data = error.get("data").and_then(|raw| Object::parse(raw).ok());
    let required = data.and_then(|data| data.get("requiredCapabilities"));
    let mut paths = Vec::new();
    if let Some(required) = required {
        leaves("", required, &mut paths);
    }
    if paths.is_empty() {
        return;
    }
    let message = error.get_str("message").unwrap_or_default();
    let note = format!("(the client did not declare `{}`)", paths.join("`, `"));
    if !message.ends_with(&note) {
        let message = format!("{message} {note}");
        error.set_str("message", message.trim_start());
    }
}

/// The dotted paths of what a document declares.
fn leaves(path: &str, raw: &str, out: &mut Vec<String>) {
    let inner = Object::parse(raw).unwrap_or_default();
    if inner.is_empty() && !path.is_empty() {
        out.push(String::from(path));
    }
    for (key, raw) in inner.iter() {
        if path.is_empty() {
            leaves(key, raw, out);
        } else {
            leaves(&format!("{path}.{key}"), raw, out);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Revision::{V2024_11_05, V2025_06_18, V2025_11_25, V2026_07_28};

    /// BA-04, BA-19: a legacy client hears of a resource that is not there in its own words, and of
    /// what it did not declare in any.
    #[test]
    fn errors_for_legacy_clients_depend_on_code_and_method() {
        let named = r#"{"code":-32602,"message":"no","data":{"uri":"a:b"}}"#;
        let adapted = r#"{"code":-32002,"message":"no","data":{"uri":"a:b"}}"#;
        let url = r#"{"code":-32042,"message":"go","data":{"elicitations":[{"url":"https://a"}]}}"#;
        let read = Method::ResourcesRead;
        let cells = [
            ("no such resource", read, named, V2025_11_25, adapted),
            (
                "the same to a modern client",
                read,
                named,
                V2026_07_28,
                named,
            ),
            (
                "another method",
                Method::ToolsCall,
                named,
                V2025_11_25,
                named,
            ),
            (
                "another resource",
                read,
                r#"{"code":-32602,"message":"no","data":{"uri":"c:d"}}"#,
                V2024_11_05,
                r#"{"code":-32602,"message":"no","data":{"uri":"c:d"}}"#,
            ),
            (
                "told in the message",
                read,
                r#"{"code":-32602,"message":"Resource not found"}"#,
                V2024_11_05,
                r#"{"code":-32002,"message":"Resource not found"}"#,
            ),
            (
                "a matter of the gateway",
                Method::ToolsCall,
                r#"{"code":-32020,"message":"header"}"#,
                V2025_11_25,
                r#"{"code":-32603,"message":"header"}"#,
            ),
            (
                "a missing capability is passed on",
                Method::ToolsCall,
                r#"{"code":-32021,"message":"m"}"#,
                V2025_11_25,
                r#"{"code":-32021,"message":"m"}"#,
            ),
            (
                "the message names what is missing",
                Method::ToolsCall,
                r#"{"code":-32021,"message":"m","data":{"requiredCapabilities":{"elicitation":{"url":{}},"roots":{}}}}"#,
                V2025_11_25,
                r#"{"code":-32021,"message":"m (the client did not declare `elicitation.url`, `roots`)","data":{"requiredCapabilities":{"elicitation":{"url":{}},"roots":{}}}}"#,
            ),
            (
                "a modern client knows",
                Method::ToolsCall,
                r#"{"code":-32021,"message":"m","data":{"requiredCapabilities":{"roots":{}}}}"#,
                V2026_07_28,
                r#"{"code":-32021,"message":"m","data":{"requiredCapabilities":{"roots":{}}}}"#,
            ),
            (
                "a version is a matter of the gateway",
                Method::ToolsCall,
                r#"{"code":-32022,"message":"m"}"#,
                V2024_11_05,
                r#"{"code":-32603,"message":"m"}"#,
            ),
            (
                "a code of the server's own",
                Method::ToolsCall,
                r#"{"code":-32055,"message":"m"}"#,
                V2025_11_25,
                r#"{"code":-32055,"message":"m"}"#,
            ),
            (
                "a URL in words",
                Method::ToolsCall,
                url,
                V2025_06_18,
                r#"{"code":-32603,"message":"go (https://a)","data":{"elicitations":[{"url":"https://a"}]}}"#,
            ),
            ("a URL", Method::ToolsCall, url, V2025_11_25, url),
            (
                "no code",
                read,
                r#"{"code":"x"}"#,
                V2024_11_05,
                r#"{"code":"x"}"#,
            ),
        ];
        for (name, method, raw, to, expected) in cells {
            let adapted = error_to_legacy(Some(method), raw, Some("a:b"), to).unwrap();
            assert_eq!(adapted, expected, "{name}");
            let again = error_to_legacy(Some(method), &adapted, Some("a:b"), to).unwrap();
            assert_eq!(again, adapted, "{name}: twice is once");
        }
    }

    /// BB-29: what a legacy server says about a client that lacks something has a code of its own.
    #[test]
    fn missing_capabilities_have_their_own_code() {
        let raw =
            r#"{"code":-32602,"message":"m","data":{"requiredCapabilities":{"sampling":{}}}}"#;
        let adapted = error_to_modern(raw, V2026_07_28).unwrap();
        assert_eq!(adapted, raw.replace("-32602", "-32021"));
    }

    /// BB-16, BB-17: no code reaches a modern client that its revision keeps for something else.
    #[test]
    fn errors_for_modern_clients_depend_on_the_code() {
        let cells = [
            (
                r#"{"code":-32002,"message":"m","data":{"uri":"u"}}"#,
                r#"{"code":-32602,"message":"m","data":{"uri":"u"}}"#,
            ),
            (
                r#"{"code":-32055,"message":"m","data":[1, 2]}"#,
                r#"{"code":-32603,"message":"m","data":{"upstreamCode":-32055,"upstreamData":[1, 2]}}"#,
            ),
            (
                r#"{"code":-32022,"message":"m"}"#,
                r#"{"code":-32603,"message":"m","data":{"upstreamCode":-32022}}"#,
            ),
            (
                r#"{"code":-32000, "message":"m"}"#,
                r#"{"code":-32000, "message":"m"}"#,
            ),
        ];
        for (raw, expected) in cells {
            assert_eq!(error_to_modern(raw, V2026_07_28).unwrap(), expected);
            assert_eq!(error_to_modern(raw, V2025_11_25).unwrap(), raw);
        }
    }
}
