//! Capability document of one side, in any of the supported shapes.

mod shape;
mod source;

use mcpact_engine::capability::CapabilitySet;
use mcpact_engine::negotiate::Offer;
use mcpact_engine::revisions::RevisionId;
use mcpact_spec::{Era, Revision, Side};
use mcpact_wire::model::implementation::Implementation;
use mcpact_wire::raw::compact;
use serde::de::IgnoredAny;

use crate::error::CliError;

pub(crate) use shape::DocumentFault;
pub(crate) use source::{Position, Source};

/// The offer of one side, with its source.
#[derive(Debug)]
pub(crate) struct Document {
    pub(crate) side: Side,
    pub(crate) source: Source,
    /// Supported versions, preferred first.
    pub(crate) versions: Vec<RevisionId>,
    pub(crate) basis: VersionBasis,
    /// The capability object without whitespace.
    pub(crate) capabilities: Option<String>,
    /// Name and version of the implementation.
    pub(crate) info: Option<Implementation>,
}

/// Basis for the supported versions of a side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum VersionBasis {
    /// The document lists them.
    Declared,
    /// The document has the offered version of a client; older ones are assumed.
    Offered,
    /// The document names no version; all are assumed.
    Assumed,
    /// `--revision` overrides the document.
    Overridden,
}

impl Document {
    /// Reads the document of a side.
    ///
    /// # Errors
    /// The source cannot be read, is not JSON, or is not a capability document.
    pub(crate) fn read(side: Side, source: Source) -> Result<Self, CliError> {
        let text = source.read(side)?;
        match Self::parse(side, &text) {
            Ok(body) => Ok(Self { source, ..body }),
            Err(fault) => Err(source.fault(fault)),
        }
    }

    fn parse(side: Side, text: &str) -> Result<Self, DocumentFault> {
        if let Err(error) = serde_json::from_str::<IgnoredAny>(text) {
            let position = Position {
                line: error.line(),
                column: error.column(),
            };
            return Err(DocumentFault::NotJson {
                detail: without_position(&error),
                position,
            });
        }
        let mut declaration = shape::parse(side, text)?;
        if declaration.listed.is_none() && side == Side::Server {
            declaration.listed = vendor_versions(declaration.capabilities);
        }
        let basis = match (&declaration.protocol_version, &declaration.listed) {
            (_, Some(_)) => VersionBasis::Declared,
            (None, None) => VersionBasis::Assumed,
            (Some(_), None) if side == Side::Client => VersionBasis::Offered,
            (Some(_), None) => VersionBasis::Declared,
        };
        Ok(Self {
            basis,
            side,
            source: Source::Example,
            versions: supported(
                side,
                declaration.protocol_version.as_deref(),
                declaration.listed.as_deref(),
            ),
            capabilities: declaration.capabilities.map(compact),
            info: declaration.info,
        })
    }

    /// Returns the same document limited to one revision.
    pub(crate) fn limited_to(self, revision: Revision) -> Self {
        Self {
            versions: vec![RevisionId::Known(revision)],
            basis: VersionBasis::Overridden,
            ..self
        }
    }

    /// Returns the offer for the negotiation.
    pub(crate) fn offer(&self) -> Offer<'_> {
        Offer {
            versions: self.versions.clone(),
            capabilities: self.capabilities.as_deref(),
            info: self.info.clone(),
        }
    }
}

/// Strips the position from the text of an error.
fn without_position(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let position = format!(" at line {} column {}", error.line(), error.column());
    text.strip_suffix(&position).unwrap_or(&text).to_owned()
}

#[cfg(test)]
mod tests;

/// Returns the vendor extra `supportedProtocolVersions` of a server, if its capabilities have it.
fn vendor_versions(capabilities: Option<&str>) -> Option<Vec<String>> {
    let set = CapabilitySet::lenient(Side::Server, capabilities);
    let listed = set.extras().supported_versions.iter();
    let listed: Vec<String> = listed.map(ToString::to_string).collect();
    (!listed.is_empty()).then_some(listed)
}

/// Returns the versions that a side supports, the one that a client requests first.
///
/// A list is taken as is. A single version of a server or a modern client is the only one; a legacy
/// client offers its latest and can fall back to older ones
/// (`2025-11-25 basic/lifecycle#version-negotiation`). Without a version, all are assumed.
fn supported(side: Side, single: Option<&str>, listed: Option<&[String]>) -> Vec<RevisionId> {
    let single = single.map(RevisionId::parse);
    let others = match (&single, listed) {
        (_, Some(listed)) => newest_first(listed),
        (None, None) => Revision::ALL
            .into_iter()
            .rev()
            .map(RevisionId::Known)
            .collect(),
        (Some(RevisionId::Known(offered)), None) if side == Side::Client => fallbacks(*offered),
        (Some(_), None) => Vec::new(),
    };
    let rest = others.into_iter().filter(|v| Some(v) != single.as_ref());
    single.clone().into_iter().chain(rest).collect()
}

/// Returns the legacy revisions before a legacy revision, newest first.
fn fallbacks(offered: Revision) -> Vec<RevisionId> {
    if offered.era() == Era::Modern {
        return Vec::new();
    }
    let older = Revision::ALL.into_iter().take_while(|r| *r != offered);
    let mut older: Vec<RevisionId> = older.map(RevisionId::Known).collect();
    older.reverse();
    older
}

/// Sorts known revisions newest first, then unknown ones in their order, without duplicates.
fn newest_first(listed: &[String]) -> Vec<RevisionId> {
    let names = |r: &Revision| listed.iter().any(|text| text == r.as_str());
    let known = Revision::ALL.into_iter().rev().filter(names);
    let mut all: Vec<RevisionId> = known.map(RevisionId::Known).collect();
    for text in listed {
        let version = RevisionId::parse(text);
        if !all.contains(&version) {
            all.push(version);
        }
    }
    all
}

#[cfg(test)]
mod version_tests {
    use super::*;

    fn supported_by(side: Side, single: Option<&str>, listed: Option<&[&str]>) -> String {
        let listed: Option<Vec<String>> =
            listed.map(|all| all.iter().map(|v| (*v).to_owned()).collect());
        let all = supported(side, single, listed.as_deref());
        let names: Vec<&str> = all.iter().map(RevisionId::as_str).collect();
        names.join(" ")
    }

    #[test]
    fn single_version_depends_on_side_and_era() {
        let client = |v| supported_by(Side::Client, Some(v), None);
        let server = |v| supported_by(Side::Server, Some(v), None);
        assert_eq!(client("2025-06-18"), "2025-06-18 2025-03-26 2024-11-05");
        assert_eq!(client("2024-11-05"), "2024-11-05");
        assert_eq!(client("2026-07-28"), "2026-07-28");
        assert_eq!(client("2099-01-01"), "2099-01-01");
        assert_eq!(server("2025-06-18"), "2025-06-18");
        assert_eq!(server("2026-07-28"), "2026-07-28");
    }

    #[test]
    fn missing_version_means_all_versions() {
        assert_eq!(
            supported_by(Side::Client, None, None),
            "2026-07-28 2025-11-25 2025-06-18 2025-03-26 2024-11-05"
        );
    }

    #[test]
    fn list_is_sorted_with_the_single_version_first() {
        let listed: &[&str] = &["2024-11-05", "draft", "2025-11-25", "draft"];
        assert_eq!(
            supported_by(Side::Client, None, Some(listed)),
            "2025-11-25 2024-11-05 draft"
        );
        assert_eq!(
            supported_by(Side::Client, Some("2024-11-05"), Some(listed)),
            "2024-11-05 2025-11-25 draft"
        );
        assert_eq!(supported_by(Side::Server, None, Some(&[])), "");
    }
}
