//! The fields of JSON documents, as paths with types.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

/// Objects with names of servers, variables or capabilities as keys: all keys count as one.
const MAPS: &[&str] = &[
    "/readyz: servers",
    "explain: capabilities.client",
    "explain: capabilities.server",
    "probe: capabilities.client",
    "probe: capabilities.server",
    "status --bundle: config.servers",
    "status --bundle: config.servers.NAME.env",
    "status --bundle: config.servers.NAME.headers",
];

/// Documents of peers, which are passed on as they are.
const FOREIGN: &[&str] = &[
    "explain: client.declared",
    "explain: client.sent",
    "explain: experimental[].client",
    "explain: experimental[].server",
    "explain: extensions[].client",
    "explain: extensions[].server",
    "explain: refusal.data",
    "explain: server.declared",
    "explain: server.sent",
    "explain: trail[].capabilities",
    "probe: declared.client",
    "probe: declared.server",
    "probe: trail[].capabilities",
];

/// Documents inside of others: they are counted with those that the other command prints.
const EMBEDDED: &[(&str, &str)] = &[
    ("status: gateway.last_reload", "reload"),
    ("status --bundle: status", "status"),
    ("status --bundle: log[]", "logs"),
];

/// Every path that was seen, with the types of its values.
#[derive(Default)]
pub(super) struct Shapes(BTreeMap<String, BTreeSet<&'static str>>);

impl Shapes {
    /// Adds a document that a command printed.
    pub(super) fn add(&mut self, command: &str, document: &Value) {
        self.walk(&format!("{command}:"), document);
    }

    /// Adds a document as text.
    pub(super) fn add_text(&mut self, command: &str, text: &str) {
        let document = serde_json::from_str(text);
        assert!(document.is_ok(), "{command}: {text}");
        self.add(command, &document.unwrap());
    }

    fn walk(&mut self, path: &str, value: &Value) {
        let is_whole = path.ends_with(':');
        if !is_whole {
            let types = self.0.entry(path.to_owned()).or_default();
            types.insert(kind(value));
        }
        if FOREIGN.contains(&path) {
            return;
        }
        let embedded = EMBEDDED.iter().find(|(at, _)| *at == path);
        if let (Some((_, command)), Value::Object(_)) = (embedded, value) {
            return self.add(command, value);
        }
        let separator = if is_whole { ' ' } else { '.' };
        match value {
            Value::Object(members) => {
                for (name, inner) in members {
                    let name = if MAPS.contains(&path) { "NAME" } else { name };
                    self.walk(&format!("{path}{separator}{name}"), inner);
                }
            }
            Value::Array(items) => {
                let path = format!("{path}[]");
                items.iter().for_each(|item| self.walk(&path, item));
            }
            _ => {}
        }
    }

    /// One line for each path.
    pub(super) fn facts(&self) -> Vec<String> {
        let paths = self.0.iter();
        let facts = paths.map(|(path, types)| {
            let types: Vec<&str> = types.iter().copied().collect();
            format!("{path} = {}", types.join(" | "))
        });
        facts.collect()
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
