//! JSON schemas that somebody else may have written: never fetched, never without a budget.

use std::collections::HashMap;

use serde_json::Value;

/// How deep a schema may be nested.
const DEPTH: usize = 64;

/// How many steps one look at a value may cost, with every reference followed.
const STEPS: u64 = 100_000;

/// Keywords whose values are data, whatever they look like.
const DATA: &[&str] = &["const", "enum", "default", "examples"];

/// Why a schema cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SchemaFault {
    /// It refers to something outside of itself, and nothing is ever fetched.
    #[error("it refers to `{0}`, which is not part of it: put the definition under `$defs`")]
    Outside(String),
    /// It refers to nothing.
    #[error("it refers to `{0}`, which is not there")]
    Dangling(String),
    /// It is nested too deep.
    #[error("it is nested more than {DEPTH} deep")]
    Deep,
    /// It would take too long to hold a value against it.
    #[error("it takes more than {STEPS} steps to hold a value against it")]
    Costly,
    /// It is not a schema of its dialect.
    #[error("{0}")]
    Invalid(String),
}

/// A schema that was found harmless and is ready to be used. Its dialect is the one that it names, or
/// 2020-12.
#[derive(Debug)]
pub struct Schema {
    validator: jsonschema::Validator,
    /// How deep a value may be, where a step into it multiplies the work.
    value_depth: Option<usize>,
}

impl Schema {
    /// Checks a schema and makes it ready.
    ///
    /// # Errors
    /// It cannot be used.
    pub fn compile(schema: &Value) -> Result<Self, SchemaFault> {
        let mut scale = Scale {
            root: schema,
            anchors: anchors(schema),
            known: HashMap::new(),
            open: Vec::new(),
            loops: 0,
        };
        scale.weigh(schema, 0)?;
        let validator = jsonschema::options()
            .build(schema)
            .map_err(|error| SchemaFault::Invalid(error.to_string()))?;
        let value_depth = (scale.loops > 1).then(|| STEPS.ilog(scale.loops) as usize);
        Ok(Self {
            validator,
            value_depth,
        })
    }

    /// The first thing that the schema has against a value: where, and what.
    #[must_use]
    pub fn problem(&self, value: &Value) -> Option<(String, String)> {
        if let Some(limit) = self.value_depth
            && depth(value) > limit
        {
            let text = format!("nested more than {limit} deep, which the schema makes too costly");
            return Some((String::new(), text));
        }
        // A plain yes or no costs a fraction of a list of errors, which is nearly always empty.
        if self.validator.is_valid(value) {
            return None;
        }
        let error = self.validator.iter_errors(value).next()?;
        Some((error.instance_path().to_string(), error.to_string()))
    }
}

/// Counts what a look at a value costs.
struct Scale<'s> {
    root: &'s Value,
    anchors: HashMap<&'s str, &'s Value>,
    known: HashMap<&'s str, u64>,
    open: Vec<&'s str>,
    /// How many references lead back to where they came from.
    loops: u64,
}

impl<'s> Scale<'s> {
    fn weigh(&mut self, schema: &'s Value, depth: usize) -> Result<u64, SchemaFault> {
        if depth > DEPTH {
            return Err(SchemaFault::Deep);
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
                        _ => self.weigh(value, depth + 1)?,
                    };
                }
            }
            Value::Array(all) => {
                for value in all {
                    steps += self.weigh(value, depth + 1)?;
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return Ok(0),
        }
        if steps > STEPS {
            return Err(SchemaFault::Costly);
        }
        Ok(steps)
    }

    fn follow(&mut self, to: &'s str, depth: usize) -> Result<u64, SchemaFault> {
        let Some(place) = to.strip_prefix('#') else {
            return Err(SchemaFault::Outside(to.to_owned()));
        };
        if self.open.contains(&place) || place.is_empty() {
            self.loops += 1;
            return Ok(1);
        }
        if let Some(steps) = self.known.get(place) {
            return Ok(*steps);
        }
        let found = match place.starts_with('/') {
            true => self.root.pointer(&percent_decoded(place)),
            false => self.anchors.get(place).copied(),
        };
        let target = found.ok_or_else(|| SchemaFault::Dangling(to.to_owned()))?;
        self.open.push(place);
        let steps = self.weigh(target, depth + 1);
        self.open.pop();
        let steps = steps?;
        self.known.insert(place, steps);
        Ok(steps)
    }
}

/// A pointer in a fragment is written in the letters of an address.
fn percent_decoded(place: &str) -> String {
    let mut out = Vec::with_capacity(place.len());
    let mut rest = place.as_bytes();
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

/// Every place with a name of its own, found level by level.
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

    /// H22: whatever a schema refers to outside of itself, it is refused and not made permissive.
    #[test]
    fn nothing_outside_is_referred_to() {
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
                    matches!(refused, Err(SchemaFault::Outside(_))),
                    "{key} {to}"
                );
            }
        }
        let dangling = json!({"$ref": "#/$defs/none"});
        assert!(matches!(
            Schema::compile(&dangling),
            Err(SchemaFault::Dangling(_))
        ));
        let data = json!({"properties": {"$ref": {"type": "string"}}, "default": {"$ref": "x"}});
        assert!(Schema::compile(&data).is_ok(), "data is no reference");
    }

    /// H23: schemas that blow up are refused before anything is held against them.
    #[test]
    fn bombs_are_refused() {
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
        assert!(matches!(Schema::compile(&bomb), Err(SchemaFault::Costly)));
        let mut deep = json!({"type": "string"});
        for _ in 0..100 {
            deep = json!({"properties": {"a": deep}});
        }
        assert!(matches!(Schema::compile(&deep), Err(SchemaFault::Deep)));
        let many: Vec<Value> = (0..60_000)
            .map(|n| json!({"const": n, "not": {}}))
            .collect();
        let wide = json!({ "anyOf": many });
        assert!(matches!(Schema::compile(&wide), Err(SchemaFault::Costly)));
    }

    /// H23: a schema that leads back to itself in many ways takes only values of some depth.
    #[test]
    fn values_of_recursive_schemas_have_a_depth() {
        let tree = json!({"type": "object", "properties": {"next": {"$ref": "#"}}});
        let twice = json!({"anyOf": [
            {"properties": {"next": {"$ref": "#"}}, "required": ["x"]},
            {"properties": {"next": {"$ref": "#"}}, "required": ["x"]},
        ]});
        let value = |levels: usize| (0..levels).fold(json!({}), |value, _| json!({"next": value}));
        let tree = Schema::compile(&tree).unwrap();
        assert_eq!(tree.problem(&value(60)), None, "one way back costs nothing");
        let twice = Schema::compile(&twice).unwrap();
        let (_, problem) = twice.problem(&value(60)).unwrap();
        assert!(problem.contains("too costly"), "{problem}");
    }

    #[test]
    fn names_and_pointers_are_followed() {
        let schema = json!({
            "$defs": {"a b": {"$anchor": "here", "type": "integer"}},
            "properties": {"x": {"$ref": "#here"}, "y": {"$ref": "#/$defs/a%20b"}},
        });
        let schema = Schema::compile(&schema).unwrap();
        assert!(schema.problem(&json!({"x": 1, "y": 2})).is_none());
        let (place, _) = schema.problem(&json!({"x": 1, "y": "z"})).unwrap();
        assert_eq!(place, "/y");
    }
}
