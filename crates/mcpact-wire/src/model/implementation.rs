//! Name and version of a peer.

use alloc::string::{String, ToString};

use mcpact_spec::{Feature, Revision};

use super::fault::BodyFault;
use crate::raw::{JsonKind, Object, ObjectWriter};

/// A name and a version, and whatever else the peer tells, kept as it came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Implementation {
    name: String,
    version: String,
    raw: String,
}

impl Implementation {
    /// An implementation with nothing but its name and version.
    #[must_use]
    pub fn new(name: &str, version: &str) -> Self {
        Self {
            name: name.to_string(),
            version: version.to_string(),
            raw: ObjectWriter::new()
                .text("name", name)
                .text("version", version)
                .finish(),
        }
    }

    /// Reads an `Implementation` object that stands at `path`.
    ///
    /// # Errors
    /// It is not an object, or `name` or `version` is not a string.
    pub fn parse(path: &str, raw: Option<&str>) -> Result<Self, BodyFault> {
        let body = super::fault::object(path, raw)?;
        let text = |key: &str| {
            body.get_str(key).ok_or_else(|| {
                BodyFault::at(alloc::format!("{path}.{key}"), "a string", body.get(key))
            })
        };
        Ok(Self {
            name: text("name")?.into_owned(),
            version: text("version")?.into_owned(),
            raw: raw.unwrap_or("{}").to_string(),
        })
    }

    /// The name for machines.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The version of the implementation.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The object as it came.
    #[must_use]
    pub fn raw(&self) -> &str {
        &self.raw
    }

    /// The object without the members that the revision does not define; unknown members stay.
    #[must_use]
    pub fn encode(&self, revision: Revision) -> String {
        let Ok(body) = Object::parse(&self.raw) else {
            return self.raw.clone();
        };
        let is_sent = |key: &str| match key {
            "title" => revision.has(Feature::Titles),
            "description" | "icons" | "websiteUrl" => revision.has(Feature::Icons),
            _ => true,
        };
        let is_null = |raw| JsonKind::of(raw) == JsonKind::Null;
        let sent = body
            .iter()
            .filter(|(key, raw)| is_sent(key) && !is_null(raw));
        ObjectWriter::new().members(sent).finish()
    }
}
