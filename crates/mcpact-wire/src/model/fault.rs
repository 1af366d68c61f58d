//! Faults in a body, with their path.

use alloc::borrow::Cow;
use alloc::string::String;

use crate::raw::{JsonKind, Object};
use crate::scan::unquote;

/// A member that is missing or of the wrong kind.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{path}` must be {expected}, found {}", found.map_or("nothing", JsonKind::as_str))]
pub struct BodyFault {
    /// The dotted path of the member.
    pub path: String,
    /// Expected value.
    pub expected: &'static str,
    /// Value found, if any.
    pub found: Option<JsonKind>,
}

impl BodyFault {
    /// A fault at this path.
    #[must_use]
    pub fn at(path: impl Into<String>, expected: &'static str, raw: Option<&str>) -> Self {
        Self {
            path: path.into(),
            expected,
            found: raw.map(JsonKind::of),
        }
    }
}

/// Splits a body that must be an object.
pub(crate) fn object<'a>(path: &str, raw: Option<&'a str>) -> Result<Object<'a>, BodyFault> {
    raw.and_then(|raw| Object::parse(raw).ok())
        .ok_or_else(|| BodyFault::at(path, "an object", raw))
}

/// A member that may be absent or null and must otherwise be a string.
pub(crate) fn optional_text<'a>(
    body: &Object<'a>,
    key: &'static str,
) -> Result<Option<Cow<'a, str>>, BodyFault> {
    match body.get_present(key) {
        None => Ok(None),
        Some(raw) if JsonKind::of(raw) == JsonKind::String => Ok(Some(unquote(raw))),
        Some(raw) => Err(BodyFault::at(key, "a string", Some(raw))),
    }
}
