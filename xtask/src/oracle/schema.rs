use std::fs;
use std::path::Path;

use serde_json::{Map, Value};

use crate::failure::Failure;

/// The definitions of a JSON schema.
pub(super) struct Schema {
    definitions: Map<String, Value>,
}

impl Schema {
    /// Reads a schema file.
    pub(super) fn read(path: &Path) -> Result<Self, Failure> {
        let text = fs::read_to_string(path).map_err(Failure::file(path))?;
        Self::parse(&text).map_err(|source| Failure::Json {
            path: path.to_owned(),
            source,
        })
    }

    /// Parse a schema; older ones keep their definitions under `definitions`, newer under `$defs`.
    pub(super) fn parse(text: &str) -> Result<Self, serde_json::Error> {
        let mut document: Map<String, Value> = serde_json::from_str(text)?;
        let definitions = document
            .remove("$defs")
            .or_else(|| document.remove("definitions"));
        serde_json::from_value(definitions.unwrap_or_default())
            .map(|definitions| Self { definitions })
    }

    /// Every definition with its name.
    pub(super) fn definitions(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.definitions
            .iter()
            .map(|(name, value)| (name.as_str(), value))
    }

    /// The definition with this name.
    pub(super) fn definition(&self, name: &str) -> Option<&Value> {
        self.definitions.get(name)
    }

    /// Value at `Name/pointer/into/it`.
    pub(super) fn find(&self, pointer: &str) -> Option<&Value> {
        let (name, inside) = pointer.split_once('/').unwrap_or((pointer, ""));
        let inside = if inside.is_empty() {
            String::new()
        } else {
            format!("/{inside}")
        };
        self.definition(name)?.pointer(&inside)
    }

    /// Returns `true` if `Name/pointer/into/it` exists.
    pub(super) fn has(&self, pointer: &str) -> bool {
        self.find(pointer).is_some()
    }

    /// Target of a reference; any other value is returned as it is.
    pub(super) fn resolve<'a>(&'a self, value: &'a Value) -> &'a Value {
        reference(value)
            .and_then(|name| self.definition(name))
            .unwrap_or(value)
    }

    /// The members of a union, by name.
    ///
    /// A union of one is written as its member itself (`ClientNotification` of 2026-07-28); it
    /// then goes by the name of the union.
    pub(super) fn members<'a>(&'a self, union: &'a str) -> Vec<(&'a str, &'a Value)> {
        let Some(definition) = self.definition(union) else {
            return Vec::new();
        };
        let Some(members) = definition.get("anyOf").and_then(Value::as_array) else {
            return vec![(union, definition)];
        };
        let named = members.iter().filter_map(reference);
        named
            .filter_map(|name| Some((name, self.definition(name)?)))
            .collect()
    }
}

/// The name in a `$ref` to a definition of the same document.
pub(super) fn reference(value: &Value) -> Option<&str> {
    let target = value.get("$ref")?.as_str()?;
    target
        .strip_prefix("#/$defs/")
        .or_else(|| target.strip_prefix("#/definitions/"))
}

/// The schemas that an object combines: itself, and what it lists under `allOf`.
pub(super) fn parts(value: &Value) -> impl Iterator<Item = &Value> {
    let all = value.get("allOf").and_then(Value::as_array);
    std::iter::once(value).chain(all.into_iter().flatten())
}

/// The constant `method` of a request or notification.
pub(super) fn method_name(message: &Value) -> Option<&str> {
    parts(message).find_map(|part| part.pointer("/properties/method/const")?.as_str())
}

#[cfg(test)]
mod tests {
    use super::{Schema, method_name};

    #[test]
    fn both_places_of_definitions_are_read() {
        for key in ["$defs", "definitions"] {
            let schema = Schema::parse(&format!(r#"{{"{key}": {{"A": {{"type": "object"}}}}}}"#));
            assert!(schema.unwrap().has("A/type"), "{key}");
        }
        assert!(Schema::parse("{}").is_err());
    }

    #[test]
    fn a_union_of_one_is_its_own_member() {
        let text = r##"{"$defs": {
            "A": {"properties": {"method": {"const": "a"}}},
            "Many": {"anyOf": [{"$ref": "#/$defs/A"}]},
            "One": {"allOf": [{}, {"properties": {"method": {"const": "b"}}}]}
        }}"##;
        let schema = Schema::parse(text).unwrap();
        let names = |union| -> Vec<_> {
            schema
                .members(union)
                .into_iter()
                .map(|(name, m)| (name, method_name(m)))
                .collect()
        };
        assert_eq!(names("Many"), [("A", Some("a"))]);
        assert_eq!(names("One"), [("One", Some("b"))]);
        assert!(names("None").is_empty());
    }
}
