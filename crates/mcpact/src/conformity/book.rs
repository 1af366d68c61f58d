//! The schema of one revision, by method.

use std::collections::HashMap;
use std::path::Path;

use jsonschema::{Registry, Validator};
use serde_json::{Value, json};

use super::{Fault, TOLD};

/// The name of a schema among itself and its definitions; nothing is fetched from there.
const BASE: &str = "urn:mcpact:schema";

/// Where the generated schemas are narrower than the source that they are generated from: numbers
/// became integers, and `null` was lost. A pointer that is not there belongs to another revision.
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

/// Why the official schemas cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SchemasError {
    /// A file cannot be read.
    #[error(
        "cannot read `{path}`: the folder must hold `<revision>/schema.json` of every revision"
    )]
    Unreadable {
        /// The file.
        path: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A file is not JSON.
    #[error("`{path}` is not JSON")]
    NoJson {
        /// The file.
        path: String,
        /// Why.
        #[source]
        source: serde_json::Error,
    },
    /// A file is no schema of the protocol.
    #[error("`{path}` is not an official schema: {why}")]
    NoSchema {
        /// The file.
        path: String,
        /// Why.
        why: String,
    },
}

/// The schema of one revision.
#[derive(Debug)]
pub(super) struct Book {
    pages: HashMap<String, Page>,
    /// A result that asks, where the revision has such.
    pub(super) input_required: Option<Definition>,
    /// A result that is a task, where the revision has such.
    pub(super) task: Option<Definition>,
}

/// What a schema says about one method.
#[derive(Debug)]
pub(super) struct Page {
    pub(super) params: Definition,
    /// None for notifications.
    pub(super) result: Option<Definition>,
}

/// One definition of a schema, ready to be used.
#[derive(Debug)]
pub(super) struct Definition {
    pub(super) name: String,
    validator: Validator,
}

impl Definition {
    /// The first few faults, told without what the message says.
    pub(super) fn faults(&self, value: &Value, root: &str) -> Result<(), Vec<Fault>> {
        // A plain yes or no costs a fraction of a list of errors, which is nearly always empty.
        if self.validator.is_valid(value) {
            return Ok(());
        }
        let errors = self.validator.iter_errors(value).take(TOLD);
        Err(errors
            .map(|error| Fault {
                path: format!("{root}{}", error.instance_path()),
                text: error.masked().to_string(),
            })
            .collect())
    }
}

impl Book {
    pub(super) fn read(path: &Path) -> Result<Self, SchemasError> {
        let shown = || path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|source| SchemasError::Unreadable {
            path: shown(),
            source,
        })?;
        let document = serde_json::from_str(&text).map_err(|source| SchemasError::NoJson {
            path: shown(),
            source,
        })?;
        Binder::new(document)
            .and_then(|binder| binder.bind())
            .map_err(|why| SchemasError::NoSchema { path: shown(), why })
    }

    pub(super) fn page(&self, method: &str) -> Option<&Page> {
        self.pages.get(method)
    }
}

/// A schema whose definitions are being made ready.
struct Binder {
    document: Value,
    registry: Registry<'static>,
    /// `$defs`, or `definitions` in the older dialect.
    root: &'static str,
}

impl Binder {
    fn new(mut document: Value) -> Result<Self, String> {
        for (pointer, kinds) in CORRECTIONS {
            if let Some(place) = document.pointer_mut(pointer) {
                *place = json!(kinds);
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

    fn bind(self) -> Result<Book, String> {
        let mut pages = HashMap::new();
        for (name, definition) in self.definitions() {
            // Unions of one member look like that member.
            let is_union = name.starts_with("Client") || name.starts_with("Server");
            let method = definition.pointer("/properties/method/const");
            let Some(method) = method.and_then(Value::as_str).filter(|_| !is_union) else {
                continue;
            };
            if let Some(page) = self.page(name, definition)? {
                pages.insert(method.to_owned(), page);
            }
        }
        if pages.is_empty() {
            return Err(String::from("it defines no method"));
        }
        Ok(Book {
            pages,
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

    /// What is said about a method by the definition of its request or notification. The result of
    /// `XRequest` is `XResult`, and an empty one where there is none of that name.
    fn page(&self, name: &str, definition: &Value) -> Result<Option<Page>, String> {
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
        Ok(Some(Page {
            params: self.definition(name, "/properties/params")?,
            result,
        }))
    }

    fn optional(&self, name: &str) -> Result<Option<Definition>, String> {
        let is_there = self.definitions().any(|(known, _)| known == name);
        is_there.then(|| self.definition(name, "")).transpose()
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
