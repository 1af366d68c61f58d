//! Parameters of requests and notifications for a peer of another revision.

use alloc::borrow::Cow;

use mcpact_spec::{Method, Object, Revision};

use super::members::{edit, edit_body, or_same};
use super::shape_error::ShapeError;
use super::{elicitation, sampling};

/// The parameters of a request or notification for a peer that speaks the revision `to`.
///
/// Members that `to` took away go as well as those that it does not have yet. Parameters that look
/// alike in every revision come back as they are; the reserved keys of their `_meta` belong to the
/// codec.
///
/// # Errors
/// The parameters are malformed, or `to` has no way to ask this.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "every other method has the same parameters everywhere"
)]
pub fn adapt_params(method: Method, raw: &str, to: Revision) -> Result<Cow<'_, str>, ShapeError> {
    match method {
        Method::ElicitationCreate => Ok(or_same(elicitation::adapt(raw, to)?, raw)),
        Method::SamplingCreateMessage => Ok(or_same(sampling::adapt(raw, to)?, raw)),
        Method::CompletionComplete => edit_body(raw, |params| {
            params.trim(Object::CompleteRequestParams, to);
            params.rewrite("ref", |raw| {
                edit(raw, |reference| {
                    if reference.get_str("type").as_deref() == Some("ref/prompt") {
                        reference.trim(Object::PromptReference, to);
                    }
                    Ok(())
                })
            })
        }),
        Method::Progress => edit_body(raw, |params| {
            params.trim(Object::ProgressNotificationParams, to);
            Ok(())
        }),
        _ => Ok(Cow::Borrowed(raw)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Revision::{V2024_11_05, V2025_03_26, V2025_06_18};

    /// XR-08, XR-09: what an older peer does not read is not sent to it.
    #[test]
    fn parameters_follow_the_revision() {
        let completion = r#"{"ref":{"type":"ref/prompt","name":"p","title":"P"},"argument":{"name":"a","value":""},"context":{"arguments":{}}}"#;
        let plain =
            r#"{"ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"a","value":""}}"#;
        let progress = r#"{"progressToken":1,"progress":0.5,"total": 1.0,"message":"half"}"#;
        let silent = r#"{"progressToken":1,"progress":0.5,"total":1.0}"#;
        let cells = [
            (Method::CompletionComplete, completion, V2024_11_05, plain),
            (Method::CompletionComplete, completion, V2025_03_26, plain),
            (
                Method::CompletionComplete,
                completion,
                V2025_06_18,
                completion,
            ),
            (Method::Progress, progress, V2024_11_05, silent),
            (Method::Progress, progress, V2025_03_26, progress),
            (
                Method::ToolsCall,
                "not looked at",
                V2024_11_05,
                "not looked at",
            ),
        ];
        for (method, raw, to, expected) in cells {
            let adapted = adapt_params(method, raw, to).unwrap();
            assert_eq!(adapted, expected, "{method} to {to}");
        }
    }
}
