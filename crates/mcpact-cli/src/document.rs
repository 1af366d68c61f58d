//! What one side says about itself, read from a file in whatever shape it came.

mod shape;
mod source;
mod versions;

use mcpact_engine::negotiate::Offer;
use mcpact_engine::revisions::RevisionId;
use mcpact_spec::{Revision, Side};
use mcpact_wire::model::implementation::Implementation;
use serde::de::IgnoredAny;

use crate::error::CliError;

pub(crate) use shape::Misfit;
pub(crate) use source::{Place, Source};

/// The offer of one side, and where it was read.
#[derive(Debug)]
pub(crate) struct Document {
    side: Side,
    source: Source,
    versions: Vec<RevisionId>,
    basis: Basis,
    capabilities: Option<String>,
    info: Option<Implementation>,
}

/// How it is known which versions a side speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Basis {
    /// The document says so.
    Written,
    /// The document says what a client offers; that it speaks older ones, too, is assumed.
    Offered,
    /// The document names none, so that it may be all.
    Assumed,
    /// `--revision` says so, whatever the document says.
    Overridden,
}

impl Document {
    /// Reads the document of a side.
    ///
    /// # Errors
    /// It cannot be read, is not JSON, or declares nothing that can be recognised.
    pub(crate) fn read(side: Side, source: Source) -> Result<Self, CliError> {
        let text = source.read(side)?;
        match Self::parse(side, &text) {
            Ok(body) => Ok(Self { source, ..body }),
            Err(Unfit::NotJson { detail, place }) => Err(CliError::NotJson {
                origin: source,
                detail,
                place,
            }),
            Err(Unfit::Shape(shape::ShapeFault::Misfit(misfit))) => Err(CliError::Misfit {
                origin: source,
                misfit,
            }),
            Err(Unfit::Shape(shape::ShapeFault::Member(fault))) => Err(CliError::Member {
                origin: source,
                fault,
            }),
        }
    }

    fn parse(side: Side, text: &str) -> Result<Self, Unfit> {
        if let Err(error) = serde_json::from_str::<IgnoredAny>(text) {
            let place = Place {
                line: error.line(),
                column: error.column(),
            };
            return Err(Unfit::NotJson {
                detail: without_place(&error),
                place,
            });
        }
        let declaration = shape::recognise(side, text).map_err(Unfit::Shape)?;
        let basis = match (&declaration.protocol_version, &declaration.listed) {
            (_, Some(_)) => Basis::Written,
            (None, None) => Basis::Assumed,
            (Some(_), None) if side == Side::Client => Basis::Offered,
            (Some(_), None) => Basis::Written,
        };
        Ok(Self {
            basis,
            side,
            source: Source::Example,
            versions: versions::spoken(
                side,
                declaration.protocol_version.as_deref(),
                declaration.listed.as_deref(),
            ),
            capabilities: declaration.capabilities.map(compact),
            info: declaration.info,
        })
    }

    /// The same side, as if it spoke nothing but this revision.
    pub(crate) fn speaking_only(self, revision: Revision) -> Self {
        Self {
            versions: vec![RevisionId::Known(revision)],
            basis: Basis::Overridden,
            ..self
        }
    }

    /// What the side brings to the negotiation.
    pub(crate) fn offer(&self) -> Offer<'_> {
        Offer {
            versions: self.versions.clone(),
            capabilities: self.capabilities.as_deref(),
            info: self.info.clone(),
        }
    }

    /// Which side it is.
    pub(crate) const fn side(&self) -> Side {
        self.side
    }

    /// Where it was read.
    pub(crate) const fn source(&self) -> &Source {
        &self.source
    }

    /// Which versions it speaks; a client asks for the first one that fits the era.
    pub(crate) fn versions(&self) -> &[RevisionId] {
        &self.versions
    }

    /// How that is known.
    pub(crate) const fn basis(&self) -> Basis {
        self.basis
    }

    /// Its capability document, without the white space.
    pub(crate) fn capabilities(&self) -> Option<&str> {
        self.capabilities.as_deref()
    }

    /// Who it says it is.
    pub(crate) const fn info(&self) -> Option<&Implementation> {
        self.info.as_ref()
    }
}

/// Why a text is no document.
#[derive(Debug)]
enum Unfit {
    NotJson { detail: String, place: Place },
    Shape(shape::ShapeFault),
}

/// The text of an error without the place that it ends with.
fn without_place(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    text.strip_suffix(&place).unwrap_or(&text).to_owned()
}

/// Well-formed JSON without the white space between its tokens; every token stays as it came.
fn compact(raw: &str) -> String {
    let mut out = String::with_capacity(raw.len());
    let mut in_text = false;
    let mut is_escaped = false;
    for c in raw.chars() {
        if in_text {
            in_text = is_escaped || c != '"';
            is_escaped = c == '\\' && !is_escaped;
        } else if c.is_ascii_whitespace() {
            continue;
        } else {
            in_text = c == '"';
        }
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests;
