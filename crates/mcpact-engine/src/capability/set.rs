use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use mcpact_spec::{Capability, Extension, Revision, Shape, Side};
use mcpact_wire::model::fault::BodyFault;
use mcpact_wire::raw::{Object, ObjectWriter};

use super::bits::CapabilityBits;
use super::vendor::VendorExtras;
use crate::policy::Reading;

/// Declaration of one side: the document as received, and its rows in the tables.
///
/// Immutable: a new declaration is a new set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CapabilitySet {
    pub(super) owner: Side,
    pub(super) raw: Box<str>,
    pub(super) declared: CapabilityBits,
    pub(super) experimental: Vec<(Box<str>, Box<str>)>,
    pub(super) extensions: Vec<(Box<str>, Box<str>)>,
    pub(super) unknown: Vec<Box<str>>,
    pub(super) extras: VendorExtras,
    pub(super) findings: Vec<BodyFault>,
}

/// The three states of a capability path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State<'a> {
    /// Not declared; `null` and `false` count as that.
    Absent,
    /// Declared, and nothing more is said.
    Present,
    /// Declared, with this raw value.
    With(&'a str),
}

impl State<'_> {
    /// Returns whether the path was declared at all.
    #[must_use]
    pub const fn is_present(self) -> bool {
        !matches!(self, Self::Absent)
    }
}

impl CapabilitySet {
    /// Declares nothing.
    #[must_use]
    pub fn empty(owner: Side) -> Self {
        Self::declaring(owner, core::iter::empty())
    }

    /// Reads the document of one side.
    ///
    /// # Errors
    /// In a strict reading, the first value that is not of the kind that its path needs.
    pub fn parse(owner: Side, raw: Option<&str>, reading: Reading) -> Result<Self, BodyFault> {
        let set = Self::lenient(owner, raw);
        match (reading, set.findings.first()) {
            (Reading::Strict, Some(fault)) => Err(fault.clone()),
            (Reading::Strict | Reading::Lenient, _) => Ok(set),
        }
    }

    /// Declares exactly these rows and the parents that they need.
    ///
    /// Other rows are left out; nothing is ever declared as an empty object by accident.
    #[must_use]
    pub fn declaring(owner: Side, rows: impl IntoIterator<Item = Capability>) -> Self {
        let rows: CapabilityBits = rows
            .into_iter()
            .filter(|row| row.owner() == owner)
            .collect();
        let rows: Vec<_> = rows.iter().map(|c| (c.path(), c.shape())).collect();
        Self::lenient(owner, Some(&document(&rows, "")))
    }

    /// Side that declares the capabilities.
    #[must_use]
    pub const fn owner(&self) -> Side {
        self.owner
    }

    /// The document as it came.
    #[must_use]
    pub fn raw(&self) -> &str {
        &self.raw
    }

    /// Every row that was declared, whatever the revision.
    #[must_use]
    pub const fn declared(&self) -> CapabilityBits {
        self.declared
    }

    /// The entries of `experimental`, raw.
    pub fn experimental(&self) -> impl Iterator<Item = (&str, &str)> {
        self.experimental.iter().map(|(k, v)| (&**k, &**v))
    }

    /// The entries of `extensions`, raw.
    pub fn extensions(&self) -> impl Iterator<Item = (&str, &str)> {
        self.extensions.iter().map(|(k, v)| (&**k, &**v))
    }

    /// The settings of an extension that was declared and is in force under the revision.
    #[must_use]
    pub fn extension(&self, extension: Extension, revision: Revision) -> Option<Object<'_>> {
        let mut declared = self.extensions();
        let (_, raw) =
            declared.find(|(id, _)| *id == extension.id() && extension.in_force(revision))?;
        Some(Object::parse(raw).unwrap_or_default())
    }

    /// Returns true if an extension with methods outside the tables was declared.
    #[must_use]
    pub fn has_unknown_extension(&self) -> bool {
        self.extensions()
            .any(|(id, _)| Extension::parse(id).is_none())
    }

    /// Top-level keys that no table knows.
    pub fn unknown(&self) -> impl Iterator<Item = &str> {
        self.unknown.iter().map(|k| &**k)
    }

    /// Vendor extras.
    #[must_use]
    pub const fn extras(&self) -> &VendorExtras {
        &self.extras
    }

    /// Faults that a lenient reading ignored.
    #[must_use]
    pub fn findings(&self) -> &[BodyFault] {
        &self.findings
    }

    /// The state of any dotted path, known to the tables or not.
    #[must_use]
    pub fn state(&self, path: &str) -> State<'_> {
        let mut raw: &str = &self.raw;
        for segment in path.split('.') {
            match Object::parse(raw)
                .ok()
                .and_then(|object| object.get_present(segment))
            {
                Some(value) => raw = value,
                None => return State::Absent,
            }
        }
        match raw {
            "false" => State::Absent,
            "true" => State::Present,
            _ if Object::parse(raw).is_ok_and(|object| object.is_empty()) => State::Present,
            _ => State::With(raw),
        }
    }

    /// Returns whether a dotted path was declared; malformed values of known paths count as absent.
    #[must_use]
    pub fn has(&self, path: &str) -> bool {
        match Capability::parse(self.owner, path) {
            Some(row) => self.declared.has(row),
            None => self.state(path).is_present(),
        }
    }

    /// The boolean at a dotted path, or `default` when there is none.
    #[must_use]
    pub fn flag_or(&self, path: &str, default: bool) -> bool {
        let Some((parent, key)) = path.rsplit_once('.') else {
            return default;
        };
        let State::With(raw) = self.state(parent) else {
            return default;
        };
        match Object::parse(raw).ok().and_then(|object| object.get(key)) {
            Some("true") => true,
            Some("false") => false,
            Some(_) | None => default,
        }
    }
}

/// Writes the rows below `prefix` as an object.
fn document(rows: &[(&'static str, Shape)], prefix: &str) -> String {
    let mut out = ObjectWriter::new();
    let mut written: Vec<&str> = Vec::new();
    for (path, shape) in rows {
        let Some(rest) = below(path, prefix) else {
            continue;
        };
        let key = rest.split('.').next().unwrap_or(rest);
        if written.contains(&key) {
            continue;
        }
        written.push(key);
        if rest == key && *shape == Shape::Flag {
            out = out.raw(key, "true");
        } else {
            let inner = if prefix.is_empty() {
                String::from(key)
            } else {
                alloc::format!("{prefix}.{key}")
            };
            out = out.raw(key, &document(rows, &inner));
        }
    }
    out.finish()
}

fn below<'p>(path: &'p str, prefix: &str) -> Option<&'p str> {
    if prefix.is_empty() {
        return Some(path);
    }
    path.strip_prefix(prefix)?.strip_prefix('.')
}
