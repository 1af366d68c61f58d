//! The result of `server/discover`.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;

use mcpact_spec::tables::meta;

use super::fault::{BodyFault, object, optional_text};
use super::implementation::Implementation;
use crate::raw::{JsonKind, ObjectWriter, elements};
use crate::scan::unquote;

/// Caches that may keep a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CacheScope {
    /// Only the caller that got it.
    Private,
    /// Anybody.
    Public,
}

impl CacheScope {
    /// The word on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Private => "private",
            Self::Public => "public",
        }
    }
}

/// Result of `server/discover`, as a client reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiscoverResult<'a> {
    /// Every version that it serves, modern or legacy.
    pub supported_versions: Vec<Cow<'a, str>>,
    /// The raw capability document, of whatever kind it is.
    pub capabilities: Option<&'a str>,
    /// A hint for the model.
    pub instructions: Option<Cow<'a, str>>,
    /// Name and version of the server, if given.
    pub server_info: Option<Implementation>,
    /// For how long the answer holds; servers in the field leave it out.
    pub ttl_ms: Option<u64>,
}

impl<'a> DiscoverResult<'a> {
    /// Reads a discover result.
    ///
    /// Missing `resultType`, `ttlMs` or `cacheScope` are forgiven: they change nothing about what
    /// the server can do.
    ///
    /// # Errors
    /// `supportedVersions` is missing or of the wrong kind.
    pub fn parse(result: &'a str) -> Result<Self, BodyFault> {
        let body = object("result", Some(result))?;
        let list = body.get("supportedVersions");
        let versions = list
            .and_then(|raw| elements(raw).ok())
            .filter(|all| all.iter().all(|raw| JsonKind::of(raw) == JsonKind::String))
            .ok_or_else(|| BodyFault::at("supportedVersions", "an array of strings", list))?;
        let server_info = body
            .get("_meta")
            .and_then(|raw| crate::raw::Object::parse(raw).ok())
            .and_then(|m| Implementation::parse(meta::SERVER_INFO, m.get(meta::SERVER_INFO)).ok());
        Ok(Self {
            supported_versions: versions.into_iter().map(unquote).collect(),
            capabilities: body.get("capabilities"),
            instructions: optional_text(&body, "instructions")?,
            server_info,
            ttl_ms: body.get("ttlMs").and_then(|raw| raw.parse().ok()),
        })
    }
}

/// Result of `server/discover`, as a server writes it.
#[derive(Clone, Copy, Debug)]
pub struct DiscoverAnswer<'a> {
    /// Every version that it serves.
    pub supported_versions: &'a [&'a str],
    /// The raw capability document.
    pub capabilities: &'a str,
    /// The raw `Implementation` object.
    pub server_info: &'a str,
    /// A hint for the model.
    pub instructions: Option<&'a str>,
    /// For how long the answer holds.
    pub ttl_ms: u64,
    /// Caches that may keep it.
    pub cache_scope: CacheScope,
}

impl DiscoverAnswer<'_> {
    /// The result body.
    #[must_use]
    pub fn encode(&self) -> String {
        let meta = ObjectWriter::new().raw(meta::SERVER_INFO, self.server_info);
        ObjectWriter::new()
            .text("resultType", "complete")
            .texts("supportedVersions", self.supported_versions.iter().copied())
            .raw("capabilities", self.capabilities)
            .maybe_text("instructions", self.instructions)
            .raw("ttlMs", &alloc::format!("{}", self.ttl_ms))
            .text("cacheScope", self.cache_scope.as_str())
            .raw("_meta", &meta.finish())
            .finish()
    }
}
