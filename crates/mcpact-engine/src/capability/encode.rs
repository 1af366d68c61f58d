use alloc::string::{String, ToString};
use alloc::vec::Vec;

use mcpact_spec::{Capability, Extension, Feature, LogLevel, Revision, Shape, Side};
use mcpact_wire::raw::{JsonKind, Object, ObjectWriter};

use super::set::CapabilitySet;
use super::vendor::VendorExtras;
use crate::policy::{Extras, Policy, Trim};
use crate::version;

/// A path that was left out of what we sent, and why.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Trimmed {
    /// The dotted path.
    pub path: String,
    /// The reason, for people.
    pub why: &'static str,
}

const NOT_IN_REVISION: &str = "the negotiated revision does not define it";
const ONLY_URL: &str = "it would promise forms to a revision that knows no other mode";
const NOT_AN_OBJECT: &str = "experimental values must be objects on the wire";
const MISTYPED: &str = "it has the wrong type and counts as absent";
const VENDOR: &str = "vendor extras are announced only when configured";

impl CapabilitySet {
    /// The document for a peer that speaks `revision`: only what that revision defines, and every
    /// unknown key as it came.
    ///
    /// Vendor extras describe the connection to their sender. They are never passed on; a policy that
    /// announces extras writes its own.
    #[must_use]
    pub fn encode(&self, revision: Revision, policy: &Policy) -> (String, Vec<Trimmed>) {
        let mut walk = Walk {
            owner: self.owner(),
            revision,
            policy,
            offers_form: self.declared().expanded().has(Capability::ElicitationForm),
            trimmed: Vec::new(),
        };
        let out = walk.object("", self.raw());
        (out, walk.trimmed)
    }
}

struct Walk<'p> {
    owner: Side,
    revision: Revision,
    policy: &'p Policy,
    offers_form: bool,
    trimmed: Vec<Trimmed>,
}

impl Walk<'_> {
    fn object(&mut self, prefix: &str, raw: &str) -> String {
        let Ok(members) = Object::parse(raw) else {
            return String::from(raw);
        };
        let mut out = ObjectWriter::new();
        for (key, raw) in members.iter() {
            let path = if prefix.is_empty() {
                String::from(key)
            } else {
                alloc::format!("{prefix}.{key}")
            };
            if JsonKind::of(raw) == JsonKind::Null {
                continue;
            }
            if let Some(why) = self.reason_to_drop(&path, JsonKind::of(raw)) {
                self.trimmed.push(Trimmed { path, why });
                continue;
            }
            if path == Capability::ServerExperimental.path() {
                out = out.raw(key, &self.experimental(raw));
            } else if path == Capability::ServerExtensions.path() {
                if let Some(extensions) = self.extensions(raw) {
                    out = out.raw(key, &extensions);
                }
            } else if self.has_rows_below(&path) && JsonKind::of(raw) == JsonKind::Object {
                out = out.raw(key, &self.object(&path, raw));
            } else {
                out = out.raw(key, raw);
            }
        }
        self.extras(prefix, out).finish()
    }

    /// Adds the extras of the policy that stand directly below `prefix`.
    fn extras(&self, prefix: &str, out: ObjectWriter) -> ObjectWriter {
        if self.owner == Side::Client || self.policy.extras == Extras::Hide {
            return out;
        }
        if prefix == Capability::Logging.path() {
            return out.texts("levels", LogLevel::ALL.map(LogLevel::as_str));
        }
        if !prefix.is_empty() {
            return out;
        }
        let versions = version::announced(&self.policy.version).names();
        let out = out.texts("supportedProtocolVersions", versions);
        if self.revision.has(Feature::Batching) {
            return out.raw("maxBatchSize", &self.policy.batch_limit.to_string());
        }
        out
    }

    fn has_rows_below(&self, path: &str) -> bool {
        let is_below = |row: &str| row.strip_prefix(path).is_some_and(|r| r.starts_with('.'));
        Capability::of(self.owner).any(|row| is_below(row.path()))
            || VendorExtras::PATHS.iter().any(|row| is_below(row))
    }

    fn reason_to_drop(&self, path: &str, kind: JsonKind) -> Option<&'static str> {
        if self.owner == Side::Server && VendorExtras::PATHS.contains(&path) {
            return Some(VENDOR);
        }
        if self.policy.trim == Trim::Keep {
            return None;
        }
        let row = Capability::parse(self.owner, path);
        let expected = match row.map(Capability::shape) {
            Some(Shape::Flag) => JsonKind::Boolean,
            Some(Shape::Object | Shape::OpenMap | Shape::SettingsMap) => JsonKind::Object,
            None if self.has_rows_below(path) => JsonKind::Object,
            None => return None,
        };
        if kind != expected {
            return Some(MISTYPED);
        }
        let row = row?;
        if !row.presence(self.revision).may_be_sent() {
            return Some(NOT_IN_REVISION);
        }
        let knows_modes = Capability::ElicitationForm
            .presence(self.revision)
            .may_be_sent();
        if row == Capability::Elicitation && !knows_modes && !self.offers_form {
            return Some(ONLY_URL);
        }
        None
    }

    /// Extensions that mean something else than a feature of the revision itself; none if no other is left.
    fn extensions(&mut self, raw: &str) -> Option<String> {
        let revision = self.revision;
        let is_strange = |id: &str| {
            let known = Extension::parse(id);
            known.is_some_and(|extension| !extension.in_force(revision))
        };
        let members = Object::parse(raw).ok();
        let members = members.filter(|_| self.policy.trim != Trim::Keep);
        let Some(members) = members.filter(|members| members.iter().any(|(id, _)| is_strange(id)))
        else {
            return Some(String::from(raw));
        };
        let mut out = None;
        for (id, raw) in members.iter() {
            if is_strange(id) {
                self.trimmed.push(Trimmed {
                    path: alloc::format!("extensions.{id}"),
                    why: NOT_IN_REVISION,
                });
            } else {
                let written = out.unwrap_or_else(ObjectWriter::new);
                out = Some(written.raw(id, raw));
            }
        }
        out.map(ObjectWriter::finish)
    }

    /// `true` becomes `{}` and `false` goes: strict peers refuse whole handshakes over a boolean.
    fn experimental(&mut self, raw: &str) -> String {
        let Ok(members) = Object::parse(raw) else {
            return String::from(raw);
        };
        let mut out = ObjectWriter::new();
        for (key, raw) in members.iter() {
            match (JsonKind::of(raw), raw) {
                (JsonKind::Object, _) => out = out.raw(key, raw),
                (JsonKind::Boolean, "true") => out = out.raw(key, "{}"),
                (JsonKind::Boolean | JsonKind::Null, _) => {}
                (JsonKind::Array | JsonKind::String | JsonKind::Number, _) => {
                    self.trimmed.push(Trimmed {
                        path: alloc::format!("experimental.{key}"),
                        why: NOT_AN_OBJECT,
                    });
                }
            }
        }
        out.finish()
    }
}
