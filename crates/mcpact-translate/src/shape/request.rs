//! Parameters of requests and notifications for a peer of another revision.

use alloc::borrow::Cow;
use alloc::string::String;

use mcpact_spec::{Feature, Method, Object, Revision, Role};

use super::members::{Members, edit, edit_body, or_same};
use super::{ShapeError, Unrepresentable, form, sampling};

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
        Method::ElicitationCreate => Ok(or_same(adapt_elicitation(raw, to)?, raw)),
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

const ID: &str = "elicitationId";

/// The parameters of `elicitation/create` for a client of another revision.
pub(super) fn adapt_elicitation(raw: &str, to: Revision) -> Result<Option<String>, ShapeError> {
    if Method::ElicitationCreate.role(to) == Role::Absent {
        return Err(Unrepresentable::Elicitation.to(to));
    }
    let mut params = Members::of_body(raw)?;
    // 2025-11-25 client/elicitation#elicitation-requests: without a mode it is a form.
    match params.get_str("mode").as_deref() {
        None | Some("form") => {
            params.trim(Object::ElicitRequestFormParams, to);
            params.rewrite("requestedSchema", |raw| form::adapt(raw, to))?;
        }
        Some("url") if to.has(Feature::ElicitationUrl) => {
            params.trim(Object::ElicitRequestUrlParams, to);
            let wants_id = Object::ElicitRequestUrlParams.has(ID, to) == Some(true);
            if wants_id && params.get_str(ID).is_none() {
                return Err(ShapeError::NoElicitationId);
            }
        }
        Some(_) => return Err(Unrepresentable::ElicitationMode.to(to)),
    }
    Ok(params.finish())
}

/// The parameters of a URL elicitation with this id, unless they have one; those of a form as they
/// are.
///
/// 2026-07-28 has no such id and 2025-11-25 requires one; the sender of the request chooses it.
///
/// # Errors
/// The parameters are malformed.
pub fn with_elicitation_id<'a>(raw: &'a str, id: &str) -> Result<Cow<'a, str>, ShapeError> {
    edit_body(raw, |params| {
        if params.get_str("mode").as_deref() == Some("url") && params.get_str(ID).is_none() {
            params.set_str(ID, id);
        }
        Ok(())
    })
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

#[cfg(test)]
mod elicitation_tests {
    use super::*;
    use Revision::{V2024_11_05, V2025_03_26, V2025_06_18, V2025_11_25, V2026_07_28};

    const FORM: &str = r#"{"mode":"form","message":"m","requestedSchema":{"$schema":"s","type":"object","properties":{}},"task":{}}"#;
    const URL: &str = r#"{"mode":"url","message":"m","url":"https://a","elicitationId":"1"}"#;
    const NO_ID: &str = r#"{"mode":"url","message":"m","url":"https://a"}"#;

    #[test]
    fn questions_follow_the_revision() {
        let cells = [
            (
                "a form without a name for its mode",
                FORM,
                V2025_06_18,
                Ok(r#"{"message":"m","requestedSchema":{"type":"object","properties":{}}}"#),
            ),
            ("a form as it is", FORM, V2025_11_25, Ok(FORM)),
            (
                "an embedded form has no task",
                FORM,
                V2026_07_28,
                Ok(
                    r#"{"mode":"form","message":"m","requestedSchema":{"$schema":"s","type":"object","properties":{}}}"#,
                ),
            ),
            (
                "no URL",
                URL,
                V2025_06_18,
                Err(Unrepresentable::ElicitationMode.to(V2025_06_18)),
            ),
            ("a URL", URL, V2025_11_25, Ok(URL)),
            ("a URL without id", URL, V2026_07_28, Ok(NO_ID)),
            (
                "a URL that lacks its id",
                NO_ID,
                V2025_11_25,
                Err(ShapeError::NoElicitationId),
            ),
            (
                "no elicitation",
                FORM,
                V2025_03_26,
                Err(Unrepresentable::Elicitation.to(V2025_03_26)),
            ),
            (
                "no elicitation either",
                FORM,
                V2024_11_05,
                Err(Unrepresentable::Elicitation.to(V2024_11_05)),
            ),
            (
                "an unknown mode",
                r#"{"mode":"dream"}"#,
                V2025_11_25,
                Err(Unrepresentable::ElicitationMode.to(V2025_11_25)),
            ),
        ];
        for (name, raw, to, expected) in cells {
            let adapted = adapt_elicitation(raw, to)
                .map(|new| crate::shape::members::or_same(new, raw).into_owned());
            assert_eq!(adapted.as_deref().map_err(|e| *e), expected, "{name}");
        }
    }

    #[test]
    fn an_id_is_written_once_and_only_for_a_url() {
        let written = with_elicitation_id(NO_ID, "1").unwrap();
        assert_eq!(written, URL);
        assert_eq!(with_elicitation_id(&written, "2").unwrap(), URL);
        assert_eq!(with_elicitation_id(FORM, "1").unwrap(), FORM);
    }
}
