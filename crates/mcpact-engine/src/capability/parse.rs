use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use mcpact_spec::{Capability, LogLevel, Shape, Side};
use mcpact_wire::model::fault::BodyFault;
use mcpact_wire::raw::{JsonKind, elements, visit};
use mcpact_wire::scan::text;

use super::bits::CapabilityBits;
use super::vendor::VendorExtras;
use crate::policy::Reading;

/// Something in a capability document that is not as the schema wants it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Owner of the document.
    pub owner: Side,
    /// Path and value.
    pub fault: BodyFault,
}

impl core::fmt::Display for Finding {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{}: {}", self.owner, self.fault)
    }
}

/// Results of a walk over a document.
pub(super) struct Reader {
    pub(super) owner: Side,
    pub(super) declared: CapabilityBits,
    pub(super) experimental: Vec<(Box<str>, Box<str>)>,
    pub(super) extensions: Vec<(Box<str>, Box<str>)>,
    pub(super) unknown: Vec<Box<str>>,
    pub(super) extras: VendorExtras,
    pub(super) findings: Vec<Finding>,
}

/// Reads a document, gathering findings; a strict reading ends with the first one.
pub(super) fn read(owner: Side, raw: Option<&str>, reading: Reading) -> Result<Reader, BodyFault> {
    let mut reader = Reader {
        owner,
        declared: CapabilityBits::NONE,
        experimental: Vec::new(),
        extensions: Vec::new(),
        unknown: Vec::new(),
        extras: VendorExtras::default(),
        findings: Vec::new(),
    };
    let is_object = raw.is_some_and(|raw| JsonKind::of(raw) == JsonKind::Object);
    match raw {
        Some(raw) if is_object => {
            // The text was scanned with its message; a second fault cannot appear here.
            let _ = visit(raw, |key, value| reader.member(&[&key], value));
        }
        Some(_) | None => reader.finding("", "an object", raw),
    }
    match (reading, reader.findings.first()) {
        (Reading::Strict, Some(finding)) => Err(finding.fault.clone()),
        (Reading::Strict | Reading::Lenient, _) => Ok(reader),
    }
}

/// Joins the segments of a path below `capabilities`.
fn dotted(path: &[&str]) -> String {
    path.join(".")
}

/// Rest of a row's path after these segments.
fn after<'a>(row: &'a str, path: &[&str]) -> Option<&'a str> {
    let (first, others) = path.split_first()?;
    let mut rest = row.strip_prefix(first)?;
    for own in others {
        rest = rest.strip_prefix('.')?.strip_prefix(own)?;
    }
    // A key with a dot in it is one segment, not two.
    path.iter().all(|own| !own.contains('.')).then_some(rest)
}

fn is_at(row: &str, path: &[&str]) -> bool {
    after(row, path).is_some_and(str::is_empty)
}

fn is_above(row: &str, path: &[&str]) -> bool {
    after(row, path).is_some_and(|rest| rest.starts_with('.'))
}

impl Reader {
    fn finding(&mut self, path: &str, expected: &'static str, raw: Option<&str>) {
        let full = if path.is_empty() {
            String::from("capabilities")
        } else {
            alloc::format!("capabilities.{path}")
        };
        self.findings.push(Finding {
            owner: self.owner,
            fault: BodyFault::at(full, expected, raw),
        });
    }

    /// Reads one member; absent and `null` mean the same: not enabled.
    fn member(&mut self, path: &[&str], raw: &str) {
        let kind = JsonKind::of(raw);
        if kind == JsonKind::Null {
            return;
        }
        if let Some(row) = Capability::of(self.owner).find(|row| is_at(row.path(), path)) {
            return self.row(row, path, raw, kind);
        }
        if Capability::of(self.owner).any(|row| is_above(row.path(), path)) {
            return self.below(path, raw, kind);
        }
        if self.owner == Side::Server && VendorExtras::PATHS.iter().any(|row| is_at(row, path)) {
            return self.extra(path, raw);
        }
        if let [key] = path {
            self.unknown.push(Box::from(*key));
        }
    }

    fn row(&mut self, row: Capability, path: &[&str], raw: &str, kind: JsonKind) {
        match (row.shape(), kind) {
            (Shape::Flag, JsonKind::Boolean) => {
                if raw == "true" {
                    self.declared = self.declared.with(row);
                }
            }
            (Shape::Object, JsonKind::Object) => {
                self.declared = self.declared.with(row);
                self.below(path, raw, kind);
            }
            (Shape::OpenMap, JsonKind::Object) => {
                self.declared = self.declared.with(row);
                let _ = visit(raw, |key, value| {
                    self.experimental.push((Box::from(key), Box::from(value)));
                });
            }
            (Shape::SettingsMap, JsonKind::Object) => {
                self.declared = self.declared.with(row);
                let _ = visit(raw, |key, value| self.settings(&key, value));
            }
            (Shape::Flag, _) => self.finding(&dotted(path), "a boolean", Some(raw)),
            (Shape::Object | Shape::OpenMap | Shape::SettingsMap, _) => {
                self.finding(&dotted(path), "an object", Some(raw));
            }
        }
    }

    fn below(&mut self, path: &[&str], raw: &str, kind: JsonKind) {
        if kind != JsonKind::Object {
            return self.finding(&dotted(path), "an object", Some(raw));
        }
        let _ = visit(raw, |key, value| {
            // The deepest row has four segments.
            match *path {
                [a] => self.member(&[a, &key], value),
                [a, b] => self.member(&[a, b, &key], value),
                [a, b, c] => self.member(&[a, b, c, &key], value),
                _ => {}
            }
        });
    }

    fn settings(&mut self, id: &str, raw: &str) {
        if JsonKind::of(raw) == JsonKind::Object {
            self.extensions.push((Box::from(id), Box::from(raw)));
        } else {
            self.finding(&alloc::format!("extensions.{id}"), "an object", Some(raw));
        }
    }

    fn extra(&mut self, path: &[&str], raw: &str) {
        let texts = || {
            elements(raw)
                .ok()
                .and_then(|all| all.into_iter().map(text).collect::<Option<Vec<_>>>())
        };
        match path {
            ["maxBatchSize"] => match raw.parse() {
                Ok(size) => self.extras.max_batch_size = Some(size),
                Err(_) => self.finding("maxBatchSize", "a whole number", Some(raw)),
            },
            ["supportedProtocolVersions"] => match texts() {
                Some(all) => {
                    self.extras.supported_versions =
                        all.iter().map(|v| Box::from(v.as_ref())).collect();
                }
                None => self.finding(&dotted(path), "an array of strings", Some(raw)),
            },
            _ => match texts() {
                Some(all) => {
                    self.extras.log_levels = all
                        .iter()
                        .filter_map(|level| LogLevel::parse(level))
                        .collect();
                }
                None => self.finding(&dotted(path), "an array of strings", Some(raw)),
            },
        }
    }
}
