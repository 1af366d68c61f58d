//! Validation of messages against the official schemas.
//!
//! The schemas are not part of this library. They are read from a directory with `<revision>/schema.json`, such as
//! `schema` in the protocol's repository. The method selects the definition; a result is validated by the method of
//! its request. Methods of extensions are not in these schemas and are not validated.

mod revision_schemas;

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use mcpact_spec::{Era, Revision};
use serde_json::Value;

use self::revision_schemas::{MethodSchemas, RevisionSchemas};

pub use self::revision_schemas::SchemaLoadError;

/// Maximum number of violations reported for one message.
const MAX_VIOLATIONS: usize = 5;

/// Validation mode for messages.
///
/// The handshake is not validated: it is read before a revision is negotiated.
#[derive(Clone, Debug, Default)]
pub enum Validation {
    /// No validation, at no cost.
    #[default]
    Off,
    /// Violations are logged.
    Warn(Arc<Schemas>),
    /// Invalid messages are rejected: a request with -32602, a result with an error for the requester. An invalid
    /// notification is dropped.
    Refuse(Arc<Schemas>),
}

/// Compiled official schemas of all revisions.
#[derive(Debug)]
pub struct Schemas {
    /// In the order of [`Revision::ALL`].
    revisions: Vec<RevisionSchemas>,
}

impl Schemas {
    /// Reads `<revision>/schema.json` of every revision. Nothing else is read or fetched.
    ///
    /// # Errors
    /// A file is missing or is not an official schema.
    pub fn read(folder: &Path) -> Result<Self, SchemaLoadError> {
        let revisions: Result<Vec<RevisionSchemas>, SchemaLoadError> = Revision::ALL
            .into_iter()
            .map(|revision| {
                RevisionSchemas::read(&folder.join(revision.as_str()).join("schema.json"))
            })
            .collect();
        Ok(Self {
            revisions: revisions?,
        })
    }

    /// Returns the schemas of a method and of its revision.
    fn schemas_of(
        &self,
        revision: Revision,
        method: &str,
    ) -> Option<(&RevisionSchemas, &MethodSchemas)> {
        let schemas = self.revisions.get(revision.index())?;
        Some((schemas, schemas.method(method)?))
    }

    /// Validates the raw parameters of a request or notification.
    ///
    /// # Errors
    /// The parameters violate the schema.
    pub fn check_params(
        &self,
        revision: Revision,
        method: &str,
        params: Option<&str>,
    ) -> Result<(), ValidationError> {
        let Some((_, method_schemas)) = self.schemas_of(revision, method) else {
            return Ok(());
        };
        let value = parsed(params.unwrap_or("{}"));
        method_schemas.params.check(revision, &value, "/params")
    }

    /// Validates the raw result of a request with this method.
    ///
    /// # Errors
    /// The result violates the schema.
    pub fn check_result(
        &self,
        revision: Revision,
        method: &str,
        raw: &str,
    ) -> Result<(), ValidationError> {
        let Some((schemas, method_schemas)) = self.schemas_of(revision, method) else {
            return Ok(());
        };
        let value = parsed(raw);
        let mut definition = method_schemas.result.as_ref();
        if revision.era() == Era::Modern {
            match value.get("resultType").and_then(Value::as_str) {
                Some("input_required") => definition = schemas.input_required.as_ref(),
                // Other result types belong to extensions.
                Some(kind) if kind != "complete" => return Ok(()),
                Some(_) | None => {}
            }
        }
        if let Some(task) = &schemas.task
            && value.get("task").is_some()
            && task.check(revision, &value, "").is_ok()
        {
            return Ok(());
        }
        definition.map_or(Ok(()), |definition| {
            definition.check(revision, &value, "/result")
        })
    }
}

/// The engine has already checked that this is JSON.
fn parsed(raw: &str) -> Value {
    serde_json::from_str(raw).unwrap_or_default()
}

impl Validation {
    /// Validates parameters sent by `who`.
    pub(crate) fn params(
        &self,
        who: &'static str,
        revision: Revision,
        method: &str,
        params: Option<&str>,
    ) -> Result<(), ValidationError> {
        self.check(who, method, |all| {
            all.check_params(revision, method, params)
        })
    }

    /// Validates a result sent by `who`.
    pub(crate) fn result(
        &self,
        who: &'static str,
        revision: Revision,
        method: &str,
        raw: &str,
    ) -> Result<(), ValidationError> {
        self.check(who, method, |all| all.check_result(revision, method, raw))
    }

    fn check(
        &self,
        who: &'static str,
        method: &str,
        check: impl FnOnce(&Schemas) -> Result<(), ValidationError>,
    ) -> Result<(), ValidationError> {
        let (schemas, is_strict) = match self {
            Self::Off => return Ok(()),
            Self::Warn(schemas) => (schemas, false),
            Self::Refuse(schemas) => (schemas, true),
        };
        let Err(error) = check(schemas) else {
            return Ok(());
        };
        let method = crate::log::sanitize(method);
        let text = crate::log::sanitize(&error.to_string());
        tracing::warn!(who, method, "{text}");
        if is_strict { Err(error) } else { Ok(()) }
    }
}

/// Schema violations of one message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValidationError {
    /// Revision of the schema.
    pub revision: Revision,
    /// Definition in the schema.
    pub definition: String,
    /// First violations found.
    pub violations: Vec<Violation>,
}

/// One schema violation. It does not quote the message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// JSON pointer into the message.
    pub path: String,
    /// Description.
    pub text: String,
}

impl fmt::Display for ValidationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            revision,
            definition,
            violations,
        } = self;
        write!(f, "violates `{definition}` of {revision}")?;
        for (at, violation) in violations.iter().enumerate() {
            let lead = if at == 0 { ": " } else { "; " };
            write!(f, "{lead}`{}`: {}", violation.path, violation.text)?;
        }
        Ok(())
    }
}

impl std::error::Error for ValidationError {}
