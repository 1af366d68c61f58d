//! Capability document of one side, in any of the supported shapes.

mod shape;
mod source;
mod versions;

use mcpact_engine::negotiate::Offer;
use mcpact_engine::revisions::RevisionId;
use mcpact_spec::{Revision, Side};
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
        let declaration = shape::parse(side, text)?;
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
            versions: versions::supported(
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
