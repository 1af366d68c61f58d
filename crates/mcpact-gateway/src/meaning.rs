//! One meaning per message: refuses requests and results that two JSON readers understand differently.
//!
//! A rule, a filter or routing by name judges what the gateway reads; the receiver gets the same bytes. A receiver that
//! takes the first of two equal keys, or ignores their case, would act on something that was not judged.

use bytestring::ByteString;
use mcpact::server::backend::BackendRequest;
use mcpact_config::Stage;
use mcpact_engine::refusal::WireError;
use mcpact_spec::{ErrorCode, Method, ProtocolKeys, Revision};
use mcpact_wire::ambiguity::{self, AmbiguityKind, AmbiguousKey};
use mcpact_wire::raw::{ObjectWriter, elements};

use crate::aggregate::list_kind::ListKind;
use crate::aggregate::rewrite::edit;
use crate::error::wire_error;
use crate::metrics::Metrics;
use crate::reason::{LogEvent, Reason};

/// Returns the protocol keys of a body at this stage.
fn keys(stage: Stage, method: Option<Method>) -> &'static ProtocolKeys {
    match (stage, method) {
        (Stage::Request, Some(method)) => method.param_keys(),
        (Stage::Request, None) => ProtocolKeys::OF_ANY_PARAMS,
        (Stage::Response, Some(method)) => method.result_keys(),
        (Stage::Response, None) => ProtocolKeys::OF_ANY_RESULT,
    }
}

/// Checks the body of a message at this stage.
pub(crate) fn check(
    stage: Stage,
    method: Option<Method>,
    body: &str,
) -> Result<(), Box<AmbiguousKey>> {
    ambiguity::check(body, keys(stage, method)).map_err(Box::new)
}

/// Refuses a request whose parameters are ambiguous.
pub(crate) fn check_request(metrics: &Metrics, request: &BackendRequest) -> Result<(), WireError> {
    if request.params.is_clear() {
        return Ok(());
    }
    let revision = request.pact.revision();
    check(Stage::Request, request.method, &request.params)
        .map_err(|found| refused(metrics, request, &found, revision))
}

#[cold]
fn refused(
    metrics: &Metrics,
    request: &BackendRequest,
    found: &AmbiguousKey,
    revision: Revision,
) -> WireError {
    let reason = Reason::RequestAmbiguous;
    metrics.filtered(request.method, reason);
    let (event, method) = (LogEvent::AmbiguousMessage.as_str(), &*request.name);
    tracing::info!(event, method, "ambiguous request refused");
    let data = ObjectWriter::new()
        .text("reason", reason.as_str())
        .text("key", &found.key)
        .text("path", &found.path);
    let why = match found.kind {
        AmbiguityKind::TooMany => format!("too many keys to compare: {found}"),
        AmbiguityKind::Duplicate | AmbiguityKind::Folded(_) => format!(
            "ambiguous params: {found}; hint: send every key once, and protocol keys in their exact spelling"
        ),
    };
    let code = ErrorCode::InvalidParams.code();
    wire_error(code, why, Some(data.finish()), revision)
}

/// Returns a result that a filter may judge. Ambiguous items of a list are left out: they must not hide those of other
/// servers.
pub(crate) fn judged_result(
    metrics: &Metrics,
    method: Option<Method>,
    raw: ByteString,
) -> Result<ByteString, Box<AmbiguousKey>> {
    let Err(found) = check(Stage::Response, method, &raw) else {
        return Ok(raw);
    };
    metrics.filtered(method, Reason::UpstreamAmbiguous);
    let event = LogEvent::AmbiguousMessage.as_str();
    let name = method.map_or("other", Method::as_str);
    tracing::warn!(event, method = name, "ambiguous result withheld");
    let kept = method.and_then(ListKind::of).and_then(|kind| {
        let keys = keys(Stage::Response, method).find(kind.member()).flatten();
        let keys = keys.unwrap_or(ProtocolKeys::OF_ANY_RESULT);
        edit(&raw, kind.member(), |items| {
            let items = elements(items).ok()?.into_iter();
            let clear: Vec<&str> = items
                .filter(|item| ambiguity::check(item, keys).is_ok())
                .collect();
            Some(format!("[{}]", clear.join(",")))
        })
    });
    match kept {
        Some(kept) => {
            check(Stage::Response, method, &kept)?;
            Ok(kept.into())
        }
        None => Err(found),
    }
}

/// Refuses an ambiguous result that no single server has sent.
pub(crate) fn refused_result(found: &AmbiguousKey, client: Revision) -> WireError {
    let reason = Reason::UpstreamAmbiguous.as_str();
    let data = ObjectWriter::new().text("reason", reason).finish();
    let why = format!("ambiguous result: {found}");
    let code = ErrorCode::InternalError.code();
    wire_error(code, why, Some(data), client)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(method: Method, raw: &'static str) -> Result<String, String> {
        let result = judged_result(&Metrics::default(), Some(method), raw.into());
        let result = result.map(|raw| raw.to_string());
        result.map_err(|found| found.path)
    }

    /// One bad item does not hide the others; anything else ambiguous withholds the result.
    #[test]
    fn ambiguous_items_of_lists_are_left_out() {
        let list = r#"{"tools":[{"name":"a","inputSchema":{"x":1,"x":2}},{"name":"b","Name":"c"},{"name":"d"}]}"#;
        let kept = r#"{"tools":[{"name":"d"}]}"#;
        assert_eq!(judged(Method::ToolsList, list), Ok(kept.to_owned()));
        for (method, raw, path) in [
            (Method::ToolsList, r#"{"tools":[],"tools":[]}"#, "tools"),
            (Method::ToolsList, r#"{"tools":[],"Tools":[]}"#, "Tools"),
            (
                Method::ToolsCall,
                r#"{"content":[],"CONTENT":[]}"#,
                "CONTENT",
            ),
        ] {
            assert_eq!(judged(method, raw), Err(path.to_owned()), "{raw}");
        }
    }
}
