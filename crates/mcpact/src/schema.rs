//! JSON Schemas from untrusted sources: never fetched, limited in depth and cost.

use std::collections::HashMap;

use serde_json::Value;

/// Maximum nesting depth of a schema.
const DEPTH: usize = 64;

/// Maximum number of validation steps with every reference followed.
const STEPS: u64 = 100_000;

/// Keywords with arbitrary data as value.
const DATA: &[&str] = &["const", "enum", "default", "examples"];

/// Error of a schema that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SchemaError {
    /// It refers to an external definition; nothing is ever fetched.
    #[error("external reference `{0}`: put the definition under `$defs`")]
    External(String),
    /// It refers to a missing definition.
    #[error("missing definition `{0}`")]
    Dangling(String),
    /// It is nested too deeply.
    #[error("nested more than {DEPTH} levels deep")]
    TooDeep,
    /// Validation would be too expensive.
    #[error("validation would take more than {STEPS} steps")]
    TooCostly,
    /// It is not a valid schema of its dialect.
    #[error("{0}")]
    Invalid(String),
}

/// Checked and compiled schema. The dialect is the one it names, or 2020-12.
#[derive(Debug)]
pub struct Schema {
    validator: jsonschema::Validator,
    /// Maximum depth of a value, if each level multiplies the work.
    value_depth: Option<usize>,
}

impl Schema {
    /// Checks and compiles a schema.
    ///
    /// # Errors
    /// The schema cannot be used.
    pub fn compile(schema: &Value) -> Result<Self, SchemaError> {
        let mut cost = CostEstimate {
            root: schema,
            anchors: anchors(schema),
            costs: HashMap::new(),
            open: Vec::new(),
            loops: 0,
        };
        cost.estimate(schema, 0)?;
        let validator = jsonschema::options()
            .build(schema)
            .map_err(|error| SchemaError::Invalid(error.to_string()))?;
        let value_depth = (cost.loops > 1).then(|| STEPS.ilog(cost.loops) as usize);
        Ok(Self {
            validator,
            value_depth,
        })
    }

    /// Returns the first violation: JSON pointer and description.
    #[must_use]
    pub fn first_error(&self, value: &Value) -> Option<(String, String)> {
        if let Some(limit) = self.value_depth
            && depth(value) > limit
        {
            let text =
                format!("nested more than {limit} levels deep, which is too costly to validate");
            return Some((String::new(), text));
        }
        // `is_valid` is much cheaper than collecting errors, and almost always succeeds.
        if self.validator.is_valid(value) {
            return None;
        }
        let error = self.validator.iter_errors(value).next()?;
        Some((error.instance_path().to_string(), error.to_string()))
    }
}

/// Estimates the cost of validating a value.
struct CostEstimate<'s> {
    root: &'s Value,
    anchors: HashMap<&'s str, &'s Value>,
    costs: HashMap<&'s str, u64>,
    open: Vec<&'s str>,
    /// Number of recursive references.
    loops: u64,
}

impl<'s> CostEstimate<'s> {
    fn estimate(&mut self, schema: &'s Value, depth: usize) -> Result<u64, SchemaError> {
        if depth > DEPTH {
            return Err(SchemaError::TooDeep);
        }
        let mut steps: u64 = 1;
        match schema {
            Value::Object(members) => {
                for (key, value) in members {
                    steps += match value {
                        Value::String(to) if key.ends_with("Ref") || key == "$ref" => {
                            self.follow(to, depth)?
                        }
                        _ if DATA.contains(&key.as_str()) => 0,
                        _ => self.estimate(value, depth + 1)?,
                    };
                }
            }
            Value::Array(all) => {
                for value in all {
                    steps += self.estimate(value, depth + 1)?;
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return Ok(0),
        }
        if steps > STEPS {
            return Err(SchemaError::TooCostly);
        }
        Ok(steps)
    }

    fn follow(&mut self, to: &'s str, depth: usize) -> Result<u64, SchemaError> {
        let Some(fragment) = to.strip_prefix('#') else {
            return Err(SchemaError::External(to.to_owned()));
        };
        if self.open.contains(&fragment) || fragment.is_empty() {
            self.loops += 1;
            return Ok(1);
        }
        if let Some(steps) = self.costs.get(fragment) {
            return Ok(*steps);
        }
        let found = match fragment.starts_with('/') {
            true => self.root.pointer(&percent_decoded(fragment)),
            false => self.anchors.get(fragment).copied(),
        };
        let target = found.ok_or_else(|| SchemaError::Dangling(to.to_owned()))?;
        self.open.push(fragment);
        let steps = self.estimate(target, depth + 1);
        self.open.pop();
        let steps = steps?;
        self.costs.insert(fragment, steps);
        Ok(steps)
    }
}

/// Decodes the percent-encoding of a pointer in a URI fragment.
fn percent_decoded(fragment: &str) -> String {
    let mut out = Vec::with_capacity(fragment.len());
    let mut rest = fragment.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        let code = tail.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        let code = code.and_then(|hex| u8::from_str_radix(hex, 16).ok());
        match code.filter(|_| *first == b'%') {
            Some(byte) => {
                out.push(byte);
                rest = tail.get(2..).unwrap_or_default();
            }
            None => {
                out.push(*first);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// Finds every named anchor.
fn anchors(schema: &Value) -> HashMap<&str, &Value> {
    let mut found = HashMap::new();
    let mut open = vec![schema];
    while let Some(next) = open.pop() {
        match next {
            Value::Object(members) => {
                for key in ["$anchor", "$dynamicAnchor"] {
                    if let Some(Value::String(name)) = members.get(key) {
                        found.insert(name.as_str(), next);
                    }
                }
                open.extend(members.values());
            }
            Value::Array(all) => open.extend(all),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    found
}

fn depth(value: &Value) -> usize {
    let below = |all: &mut dyn Iterator<Item = &Value>| all.map(depth).max().unwrap_or(0) + 1;
    match value {
        Value::Object(members) => below(&mut members.values()),
        Value::Array(all) => below(&mut all.iter()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};

    use super::*;

    /// H22: external references are rejected, not ignored.
    #[test]
    fn external_references_are_rejected() {
        for to in [
            "http://127.0.0.1:1/x",
            "https://example.com/x",
            "file:///etc/passwd",
            "//example.com/x",
            "other.json#/x",
        ] {
            for key in ["$ref", "$dynamicRef"] {
                let schema = json!({"type": "object", "properties": {"a": {key: to}}});
                let refused = Schema::compile(&schema);
                assert!(
                    matches!(refused, Err(SchemaError::External(_))),
                    "{key} {to}"
                );
            }
        }
        let dangling = json!({"$ref": "#/$defs/none"});
        assert!(matches!(
            Schema::compile(&dangling),
            Err(SchemaError::Dangling(_))
        ));
        let data = json!({"properties": {"$ref": {"type": "string"}}, "default": {"$ref": "x"}});
        assert!(Schema::compile(&data).is_ok(), "data is no reference");
    }

    /// H23: schemas with exponential cost are rejected before use.
    #[test]
    fn expensive_schemas_are_rejected() {
        let mut defs = Map::new();
        for level in 0..18 {
            let next = format!("#/$defs/l{}", level + 1);
            defs.insert(
                format!("l{level}"),
                json!({"anyOf": [{"$ref": next}, {"$ref": next}]}),
            );
        }
        defs.insert("l18".to_owned(), json!({"type": "integer"}));
        let bomb = json!({"$defs": defs, "$ref": "#/$defs/l0"});
        assert!(matches!(
            Schema::compile(&bomb),
            Err(SchemaError::TooCostly)
        ));
        let mut deep = json!({"type": "string"});
        for _ in 0..100 {
            deep = json!({"properties": {"a": deep}});
        }
        assert!(matches!(Schema::compile(&deep), Err(SchemaError::TooDeep)));
        let many: Vec<Value> = (0..60_000)
            .map(|n| json!({"const": n, "not": {}}))
            .collect();
        let wide = json!({ "anyOf": many });
        assert!(matches!(
            Schema::compile(&wide),
            Err(SchemaError::TooCostly)
        ));
    }

    /// H23: values of a schema with several recursive references are limited in depth.
    #[test]
    fn values_of_recursive_schemas_are_limited_in_depth() {
        let tree = json!({"type": "object", "properties": {"next": {"$ref": "#"}}});
        let twice = json!({"anyOf": [
            {"properties": {"next": {"$ref": "#"}}, "required": ["x"]},
            {"properties": {"next": {"$ref": "#"}}, "required": ["x"]},
        ]});
        let value = |levels: usize| (0..levels).fold(json!({}), |value, _| json!({"next": value}));
        let tree = Schema::compile(&tree).unwrap();
        assert_eq!(
            tree.first_error(&value(60)),
            None,
            "one way back costs nothing"
        );
        let twice = Schema::compile(&twice).unwrap();
        let (_, problem) = twice.first_error(&value(60)).unwrap();
        assert!(problem.contains("too costly"), "{problem}");
    }

    #[test]
    fn anchors_and_pointers_are_resolved() {
        let schema = json!({
            "$defs": {"a b": {"$anchor": "here", "type": "integer"}},
            "properties": {"x": {"$ref": "#here"}, "y": {"$ref": "#/$defs/a%20b"}},
        });
        let schema = Schema::compile(&schema).unwrap();
        assert!(schema.first_error(&json!({"x": 1, "y": 2})).is_none());
        let (fragment, _) = schema.first_error(&json!({"x": 1, "y": "z"})).unwrap();
        assert_eq!(fragment, "/y");
    }
}
