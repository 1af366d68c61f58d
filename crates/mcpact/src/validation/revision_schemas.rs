//! Compiled schema of one revision, by method.

use std::collections::HashMap;
use std::path::Path;

use jsonschema::{Registry, Validator};
use mcpact_spec::Revision;
use serde_json::{Value, json};

use super::{MAX_VIOLATIONS, ValidationError, Violation};

/// Base URI of a schema and its definitions; nothing is fetched from it.
const BASE: &str = "urn:mcpact:schema";

/// Corrections of generated schemas that are narrower than their TypeScript source: numbers became integers, and
/// `null` was lost. Pointers that do not resolve belong to another revision.
const CORRECTIONS: &[(&str, &[&str])] = &[
    (
        "/definitions/ElicitResult/properties/content/additionalProperties/type",
        &["string", "number", "boolean"],
    ),
    (
        "/$defs/ElicitResult/properties/content/additionalProperties/anyOf/1/type",
        &["string", "number", "boolean"],
    ),
    (
        "/$defs/JSONValue/anyOf/2/type",
        &["string", "number", "boolean", "null"],
    ),
];

/// Failure to load the official schemas.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SchemaLoadError {
    /// A file cannot be read.
    #[error(
        "cannot read `{path}`: the folder must hold `<revision>/schema.json` of every revision"
    )]
    Unreadable {
        /// The file.
        path: String,
        /// Cause.
        #[source]
        source: std::io::Error,
    },
    /// A file is not JSON.
    #[error("`{path}` is not JSON")]
    NotJson {
        /// The file.
        path: String,
        /// Cause.
        #[source]
        source: serde_json::Error,
    },
    /// A file is not a protocol schema.
    #[error("`{path}` is not an official schema: {why}")]
    NotASchema {
        /// The file.
        path: String,
        /// Cause.
        why: String,
    },
}

/// Compiled schema of one revision.
#[derive(Debug)]
pub(super) struct RevisionSchemas {
    methods: HashMap<String, MethodSchemas>,
    /// `InputRequiredResult`, if the revision defines it.
    pub(super) input_required: Option<Definition>,
    /// `CreateTaskResult`, if the revision defines it.
    pub(super) task: Option<Definition>,
}

/// Schemas of one method.
#[derive(Debug)]
pub(super) struct MethodSchemas {
    pub(super) params: Definition,
    /// None for notifications.
    pub(super) result: Option<Definition>,
}

/// Compiled definition of a schema.
#[derive(Debug)]
pub(super) struct Definition {
    name: String,
    validator: Validator,
}

impl Definition {
    /// Validates a value at this JSON pointer of its message. The error does not quote the message.
    pub(super) fn check(
        &self,
        revision: Revision,
        value: &Value,
        root: &str,
    ) -> Result<(), ValidationError> {
        // `is_valid` is much cheaper than collecting errors, and almost always succeeds.
        if self.validator.is_valid(value) {
            return Ok(());
        }
        let errors = self.validator.iter_errors(value).take(MAX_VIOLATIONS);
        let violations = errors.map(|error| Violation {
            path: format!("{root}{}", error.instance_path()),
            text: error.masked().to_string(),
        });
        Err(ValidationError {
            revision,
            definition: self.name.clone(),
            violations: violations.collect(),
        })
    }
}

impl RevisionSchemas {
    pub(super) fn read(path: &Path) -> Result<Self, SchemaLoadError> {
        let path_text = || path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|source| SchemaLoadError::Unreadable {
            path: path_text(),
            source,
        })?;
        let document = serde_json::from_str(&text).map_err(|source| SchemaLoadError::NotJson {
            path: path_text(),
            source,
        })?;
        SchemaCompiler::new(document)
            .and_then(|compiler| compiler.compile())
            .map_err(|why| SchemaLoadError::NotASchema {
                path: path_text(),
                why,
            })
    }

    pub(super) fn method(&self, method: &str) -> Option<&MethodSchemas> {
        self.methods.get(method)
    }
}

/// Compiles the definitions of a schema document.
struct SchemaCompiler {
    document: Value,
    registry: Registry<'static>,
    /// `$defs`, or `definitions` in the older dialect.
    root: &'static str,
}

impl SchemaCompiler {
    fn new(mut document: Value) -> Result<Self, String> {
        for (pointer, kinds) in CORRECTIONS {
            if let Some(target) = document.pointer_mut(pointer) {
                *target = json!(kinds);
            }
        }
        let root = ["$defs", "definitions"]
            .into_iter()
            .find(|root| document.get(root).is_some_and(Value::is_object))
            .ok_or("it has no definitions")?;
        let registry = Registry::new()
            .add(BASE, document.clone())
            .and_then(jsonschema::RegistryBuilder::prepare)
            .map_err(|error| error.to_string())?;
        Ok(Self {
            document,
            registry,
            root,
        })
    }

    fn compile(self) -> Result<RevisionSchemas, String> {
        let mut methods = HashMap::new();
        for (name, definition) in self.definitions() {
            // A union of one member looks like that member.
            let is_union = name.starts_with("Client") || name.starts_with("Server");
            let method = definition.pointer("/properties/method/const");
            let Some(method) = method.and_then(Value::as_str).filter(|_| !is_union) else {
                continue;
            };
            if let Some(method_schemas) = self.method(name, definition)? {
                methods.insert(method.to_owned(), method_schemas);
            }
        }
        if methods.is_empty() {
            return Err(String::from("it defines no method"));
        }
        Ok(RevisionSchemas {
            methods,
            input_required: self.optional("InputRequiredResult")?,
            task: self.optional("CreateTaskResult")?,
        })
    }

    fn definitions(&self) -> impl Iterator<Item = (&String, &Value)> {
        self.document
            .get(self.root)
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
    }

    /// Compiles the schemas of a method from the definition of its request or notification. The result of `XRequest`
    /// is `XResult`, or `EmptyResult` if that does not exist.
    fn method(&self, name: &str, definition: &Value) -> Result<Option<MethodSchemas>, String> {
        if definition.pointer("/properties/params").is_none() {
            return Ok(None);
        }
        let result = match name.strip_suffix("Request") {
            Some(stem) => match self.optional(&format!("{stem}Result"))? {
                Some(result) => Some(result),
                None => self.optional("EmptyResult")?,
            },
            None => None,
        };
        Ok(Some(MethodSchemas {
            params: self.definition(name, "/properties/params")?,
            result,
        }))
    }

    fn optional(&self, name: &str) -> Result<Option<Definition>, String> {
        let exists = self.definitions().any(|(known, _)| known == name);
        exists.then(|| self.definition(name, "")).transpose()
    }

    fn definition(&self, name: &str, below: &str) -> Result<Definition, String> {
        let mut schema = json!({ "$ref": format!("{BASE}#/{}/{name}{below}", self.root) });
        if let Some(dialect) = self.document.get("$schema") {
            schema["$schema"] = dialect.clone();
        }
        let validator = jsonschema::options()
            .offline()
            .should_validate_formats(false)
            .with_registry(&self.registry)
            .build(&schema)
            .map_err(|error| format!("`{name}`: {error}"))?;
        Ok(Definition {
            name: name.to_owned(),
            validator,
        })
    }
}
