//! The parameters of a request, as handlers get them.

use std::borrow::Cow;

use mcpact_wire::raw::visit;
use mcpact_wire::{scan, tree};
use serde_json::{Map, Value};

use crate::server::error::HandlerError;
use crate::server::raw_params::RawParams;

/// The parameters without their `_meta`: the engine has read that, and no handler needs it. They are raw
/// until somebody wants to have a tree.
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

    /// The raw value of a member; the last one counts, as for everybody who makes a tree of them.
    pub(super) fn get(&self, key: &str) -> Option<&'a str> {
        let mut members = self.members.iter().rev();
        members.find(|(name, _)| name == key).map(|(_, raw)| *raw)
    }

    /// The value of a member, where `null` counts as absent.
    pub(super) fn value(&self, key: &str) -> Result<Option<Value>, HandlerError> {
        let raw = self.get(key).filter(|raw| *raw != "null");
        raw.map(grown).transpose()
    }

    pub(super) fn text(&self, key: &str) -> Result<Cow<'a, str>, HandlerError> {
        self.get(key)
            .and_then(scan::text)
            .ok_or_else(|| HandlerError::invalid_params(format!("`{key}` must be a string")))
    }

    /// All of them.
    pub(super) fn tree(&self) -> Result<Map<String, Value>, HandlerError> {
        let mut tree = Map::with_capacity(self.members.len());
        for (key, raw) in &self.members {
            tree.insert(key.clone().into_owned(), grown(raw)?);
        }
        Ok(tree)
    }
}

fn grown(raw: &str) -> Result<Value, HandlerError> {
    tree::tree(raw).map_err(|error| unreadable(&error))
}

fn unreadable(error: &scan::ScanError) -> HandlerError {
    HandlerError::invalid_params(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_but_the_metadata_is_there() {
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
    fn of_two_members_with_one_name_the_last_counts() {
        let params = Params::parse(r#"{"name":"a","name":"b"}"#).unwrap();
        assert_eq!(params.text("name").unwrap(), "b");
        assert_eq!(params.tree().unwrap()["name"], "b");
    }
}
