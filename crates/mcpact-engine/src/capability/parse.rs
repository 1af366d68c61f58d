use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use mcpact_spec::{Capability, LogLevel, Shape, Side};
use mcpact_wire::model::fault::BodyFault;
use mcpact_wire::raw::{JsonKind, elements, visit};
use mcpact_wire::scan::text;

use super::bits::CapabilityBits;
use super::set::CapabilitySet;
use super::vendor::VendorExtras;

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

impl CapabilitySet {
    /// Reads a document; what is not of the kind that its path needs counts as absent.
    #[must_use]
    pub fn lenient(owner: Side, raw: Option<&str>) -> Self {
        let document = raw.filter(|raw| JsonKind::of(raw) == JsonKind::Object);
        let mut set = Self {
            owner,
            raw: Box::from(document.unwrap_or("{}")),
            declared: CapabilityBits::NONE,
            experimental: Vec::new(),
            extensions: Vec::new(),
            unknown: Vec::new(),
            extras: VendorExtras::default(),
            findings: Vec::new(),
        };
        match document {
            Some(document) => {
                // The text was scanned with its message; a second fault cannot appear here.
                let _ = visit(document, |key, value| set.member(&[&key], value));
            }
            None => set.finding("", "an object", raw),
        }
        set
    }

    fn finding(&mut self, path: &str, expected: &'static str, raw: Option<&str>) {
        let full = if path.is_empty() {
            String::from("capabilities")
        } else {
            alloc::format!("capabilities.{path}")
        };
        self.findings.push(BodyFault::at(full, expected, raw));
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
            _ => match texts() {
                Some(all) if *path == ["supportedProtocolVersions"] => {
                    self.extras.supported_versions = all.into_iter().map(Box::from).collect();
                }
                Some(all) => {
                    let levels = all.iter().filter_map(|level| LogLevel::parse(level));
                    self.extras.log_levels = levels.collect();
                }
                None => self.finding(&dotted(path), "an array of strings", Some(raw)),
            },
        }
    }
}
