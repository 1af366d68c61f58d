//! Request parameters for handlers.

use std::borrow::Cow;

use mcpact_wire::raw::visit;
use mcpact_wire::{scan, tree};
use serde_json::{Map, Value};

use crate::server::handler_error::HandlerError;
use crate::server::raw_params::RawParams;

/// Parameters without `_meta`, which the engine has read. Values stay raw until a tree is needed.
#[derive(Debug, Default)]
pub(super) struct Params<'a> {
    members: Vec<(Cow<'a, str>, &'a str)>,
}

impl<'a> Params<'a> {
    pub(super) fn of(raw: &'a RawParams) -> Result<Self, HandlerError> {
        match raw.call() {
            Some((name, arguments)) => Ok(Self {
                members: vec![
                    (Cow::Borrowed("name"), name),
                    (Cow::Borrowed("arguments"), arguments),
                ],
            }),
            None => Self::parse(raw),
        }
    }

    fn parse(raw: &'a str) -> Result<Self, HandlerError> {
        let mut members = Vec::with_capacity(4);
        visit(raw, |key, value| {
            if key != "_meta" {
                members.push((key, value));
            }
        })
        .map_err(|error| unreadable(&error))?;
        Ok(Self { members })
    }

    /// Returns the raw value of a member; of duplicate names the last one counts, as in a parsed tree.
    pub(super) fn get(&self, key: &str) -> Option<&'a str> {
        let mut members = self.members.iter().rev();
        members.find(|(name, _)| name == key).map(|(_, raw)| *raw)
    }

    /// Returns the value of a member; `null` counts as absent.
    pub(super) fn value(&self, key: &str) -> Result<Option<Value>, HandlerError> {
        let raw = self.get(key).filter(|raw| *raw != "null");
        raw.map(parse_tree).transpose()
    }

    pub(super) fn text(&self, key: &str) -> Result<Cow<'a, str>, HandlerError> {
        self.get(key)
            .and_then(scan::text)
            .ok_or_else(|| HandlerError::invalid_params(format!("`{key}` must be a string")))
    }

    /// Parses all members.
    pub(super) fn tree(&self) -> Result<Map<String, Value>, HandlerError> {
        let mut tree = Map::with_capacity(self.members.len());
        for (key, raw) in &self.members {
            tree.insert(key.clone().into_owned(), parse_tree(raw)?);
        }
        Ok(tree)
    }
}

fn parse_tree(raw: &str) -> Result<Value, HandlerError> {
    tree::tree(raw).map_err(|error| unreadable(&error))
}

fn unreadable(error: &scan::ScanError) -> HandlerError {
    HandlerError::invalid_params(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn params_omit_metadata() {
        let raw = r#"{"name":"a\"b","_meta":{"a":[1,{"b":2}]},"arguments":{"_meta":1},"n":null}"#;
        let params = Params::parse(raw).unwrap();
        let expected = serde_json::json!({"name": "a\"b", "arguments": {"_meta": 1}, "n": null});
        assert_eq!(Value::Object(params.tree().unwrap()), expected);
        assert_eq!(params.text("name").unwrap(), "a\"b");
        assert_eq!(
            params.value("arguments").unwrap().as_ref(),
            expected.get("arguments")
        );
        assert_eq!(params.value("n").unwrap(), None);
        assert!(params.text("n").is_err() && params.text("x").is_err());
        assert!(Params::parse("[]").is_err());
    }

    #[test]
    fn last_duplicate_member_counts() {
        let params = Params::parse(r#"{"name":"a","name":"b"}"#).unwrap();
        assert_eq!(params.text("name").unwrap(), "b");
        assert_eq!(params.tree().unwrap()["name"], "b");
    }
}
