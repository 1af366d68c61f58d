//! The parameters of a request, as handlers get them.

use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::{Map, Value};

/// The parameters without their `_meta`: the engine has read that, and no handler needs it as a tree.
#[derive(Debug, Default)]
pub(super) struct Params(pub(super) Map<String, Value>);

impl<'de> Deserialize<'de> for Params {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Members)
    }
}

struct Members;

impl<'de> Visitor<'de> for Members {
    type Value = Params;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Params, A::Error> {
        let mut params = Map::new();
        while let Some(key) = members.next_key::<String>()? {
            if key == "_meta" {
                members.next_value::<IgnoredAny>()?;
            } else {
                params.insert(key, members.next_value()?);
            }
        }
        Ok(Params(params))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_but_the_metadata_is_there() {
        let raw = r#"{"name":"t","_meta":{"a":[1,{"b":2}]},"arguments":{"_meta":1}}"#;
        let Params(params) = serde_json::from_str(raw).unwrap();
        let expected = serde_json::json!({"name": "t", "arguments": {"_meta": 1}});
        assert_eq!(Value::Object(params), expected);
        assert!(serde_json::from_str::<Params>("[]").is_err());
    }
}
