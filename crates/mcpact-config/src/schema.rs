//! JSON Schema of the native config, derived from the table of keys.

use serde_json::{Map, Value, json};

use super::keys::{self, Key, Kind};

/// Returns the JSON Schema.
#[must_use]
pub fn json_schema() -> String {
    let mut schema = table(keys::ROOT);
    schema.insert(
        "$schema".into(),
        json!("https://json-schema.org/draft/2020-12/schema"),
    );
    schema.insert("title".into(), json!("The config of mcpact"));
    let mut text = format!("{:#}", Value::Object(schema));
    text.push('\n');
    text
}

fn table(keys: &[Key]) -> Map<String, Value> {
    let properties: Map<String, Value> = keys
        .iter()
        .map(|key| (key.name.to_owned(), property(key)))
        .collect();
    let mut schema = Map::new();
    schema.insert("type".into(), json!("object"));
    schema.insert("properties".into(), Value::Object(properties));
    schema.insert("additionalProperties".into(), json!(false));
    schema
}

fn property(key: &Key) -> Value {
    let mut schema = kind(&key.kind);
    schema.insert("description".into(), json!(key.about));
    Value::Object(schema)
}

fn kind(kind: &Kind) -> Map<String, Value> {
    let value = match kind {
        Kind::Text(None) => json!({"type": "string", "minLength": 1}),
        Kind::Text(Some(default)) => json!({"type": "string", "minLength": 1, "default": default}),
        Kind::Texts => json!({"type": "array", "items": {"type": "string"}, "default": []}),
        Kind::Users => {
            let id = json!({"type": "integer", "minimum": 0, "maximum": u32::MAX});
            json!({"type": "array", "items": {"anyOf": [{"type": "string"}, id]}, "default": []})
        }
        Kind::TextTable => {
            json!({"type": "object", "additionalProperties": {"type": "string"}, "default": {}})
        }
        Kind::TextsTable => {
            let texts = json!({"type": "array", "items": {"type": "string"}});
            json!({"type": "object", "additionalProperties": texts, "default": {}})
        }
        Kind::Flag(default) => json!({"type": "boolean", "default": default}),
        Kind::Count([least, most], default) => {
            json!({"type": "integer", "minimum": least, "maximum": most, "default": default})
        }
        Kind::Counts([least, most]) => {
            let item = json!({"type": "integer", "minimum": least, "maximum": most});
            json!({"type": "array", "items": item, "default": []})
        }
        Kind::Seconds([least, most], default) => {
            json!({"type": "number", "minimum": least, "maximum": most, "default": default})
        }
        Kind::Choice(of, default) => json!({"anyOf": words(of), "default": default}),
        Kind::Choices(of) => {
            json!({"type": "array", "items": {"anyOf": words(of)}, "default": []})
        }
        Kind::Table(keys) => Value::Object(table(keys)),
        Kind::Commands(keys) => commands(keys),
        Kind::Named(keys) => named(keys),
    };
    match value {
        Value::Object(schema) => schema,
        _ => Map::new(),
    }
}

/// Schema of possible values: one of them, or a string with a variable.
fn words(of: &[&str]) -> Value {
    json!([{"enum": of}, {"type": "string", "pattern": r"\$\{"}])
}

fn named(keys: &[Key]) -> Value {
    let mut server = table(keys);
    let launches = ["command", "url", "builtin"].map(|key| json!({"required": [key]}));
    server.insert("oneOf".into(), json!(launches));
    tables(server)
}

fn commands(keys: &[Key]) -> Value {
    let mut one = table(keys);
    one.insert("required".into(), json!(["command"]));
    tables(one)
}

fn tables(each: Map<String, Value>) -> Value {
    json!({
        "type": "object",
        "propertyNames": {"pattern": "^[A-Za-z0-9_-]{1,40}$"},
        "additionalProperties": each,
    })
}
