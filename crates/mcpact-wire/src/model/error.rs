//! The error object of a failed request.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;

use crate::raw::{JsonKind, Object, ObjectWriter, elements};
use crate::scan::unquote;

/// An error object, read as far as it can be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorBody<'a> {
    /// The code; unknown codes are kept.
    pub code: i64,
    /// The text; empty when the peer left it out.
    pub message: Cow<'a, str>,
    /// The raw data.
    pub data: Option<&'a str>,
}

impl<'a> ErrorBody<'a> {
    /// Reads an error object; none when there is no integer code in it.
    #[must_use]
    pub fn parse(raw: &'a str) -> Option<Self> {
        let body = Object::parse(raw).ok()?;
        Some(Self {
            code: body.get("code")?.parse().ok()?,
            message: body.get_str("message").unwrap_or_default(),
            data: body.get("data"),
        })
    }

    /// The versions that a version error offers in `data.supported`.
    #[must_use]
    pub fn supported_versions(&self) -> Vec<Cow<'a, str>> {
        self.data
            .and_then(|raw| Object::parse(raw).ok())
            .and_then(|data| data.get("supported"))
            .and_then(|raw| elements(raw).ok())
            .unwrap_or_default()
            .into_iter()
            .filter(|raw| JsonKind::of(raw) == JsonKind::String)
            .map(unquote)
            .collect()
    }
}

/// Writes an error object.
#[must_use]
pub fn encode(code: i64, message: &str, data: Option<&str>) -> String {
    ObjectWriter::new()
        .raw("code", &alloc::format!("{code}"))
        .text("message", message)
        .maybe_raw("data", data)
        .finish()
}
