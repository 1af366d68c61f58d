use std::fmt;

use mcpact_spec::{Method, ProtocolKeys};
use mcpact_wire::ambiguity::check;
use mcpact_wire::envelope::Envelope;
use mcpact_wire::raw::Object;
use mcpact_wire::scan;
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

/// A body is accepted exactly if no object has a key twice, and none with protocol keys has another spelling of one.
/// Then all readers see the same protocol members: ours, `serde_json`, one that takes the first of equal keys, and two
/// that ignore case.
///
/// The input is a request, or the parameters of `tools/call`.
///
/// # Panics
/// An invariant is broken.
pub fn ambiguity(data: &[u8]) {
    let Ok(text) = scan::utf8(data) else {
        assert!(Envelope::parse(data).is_err(), "{data:?}");
        return;
    };
    let (raw, method) = match Envelope::read(text) {
        Ok(Envelope::Request(request)) => {
            let method = Method::parse(&request.method);
            let raw = request.params.raw.unwrap_or("{}");
            if let (true, Some(method)) = (request.params.is_clear, method) {
                assert_eq!(check(raw, method.param_keys()), Ok(()), "{raw:?}");
            }
            (raw, method)
        }
        Ok(Envelope::Notification(_) | Envelope::Response(_)) | Err(_) => {
            (text, Some(Method::ToolsCall))
        }
    };
    if scan::check(raw).is_err() {
        // Only well-formed bodies get here; others must do no harm.
        let _ = check(raw, ProtocolKeys::OF_ANY_PARAMS);
        return;
    }
    let tables = match method {
        Some(method) => [method.param_keys(), method.result_keys()],
        None => [ProtocolKeys::OF_ANY_PARAMS, ProtocolKeys::OF_ANY_RESULT],
    };
    for keys in tables {
        judge(raw, keys);
    }
}

fn judge(raw: &str, keys: &'static ProtocolKeys) {
    let ours = check(raw, keys);
    if let Err(error) = &ours {
        let text = error.to_string();
        assert!(text.len() < 4_000, "{text}");
    }
    // Lone surrogates and numbers beyond a float are beyond the reference.
    let Ok(tree) = serde_json::from_str::<Tree>(raw) else {
        return;
    };
    assert_eq!(
        ours.is_err(),
        tree.is_ambiguous(Some(keys)),
        "{raw:?}: {ours:?}"
    );
    if ours.is_ok()
        && raw
            .trim_start_matches([' ', '\n', '\r', '\t'])
            .starts_with('{')
    {
        same_members(raw, &tree, keys);
    }
}

fn same_members(raw: &str, tree: &Tree, keys: &'static ProtocolKeys) {
    let ours = Object::parse(raw).unwrap_or_else(|error| panic!("{raw:?}: {error}"));
    let theirs: Value =
        serde_json::from_str(raw).unwrap_or_else(|error| panic!("{raw:?}: {error}"));
    for name in keys.names() {
        let seen = ours.get(name).map(|raw| match serde_json::from_str(raw) {
            Ok(value) => value,
            Err(error) => panic!("{raw:?}: {error}"),
        });
        assert_eq!(seen.as_ref(), theirs.get(name), "{raw:?}: {name}");
        let is_name = |key: &str| key == name;
        let is_folded = |key: &str| fold(key) == fold(name);
        for reader in [
            tree.member(&is_name, Wins::First),
            tree.member(&is_folded, Wins::First),
            tree.member(&is_folded, Wins::Last),
        ] {
            assert_eq!(reader.as_ref(), seen.as_ref(), "{raw:?}: {name}");
        }
    }
}

/// Full case folding by the standard library, with both Turkish letters as `i`.
fn fold(text: &str) -> String {
    let text = text.replace('\u{130}', "i");
    text.to_lowercase().to_uppercase().to_lowercase()
}

/// Choice of a reader among equal keys.
#[derive(Clone, Copy)]
enum Wins {
    First,
    Last,
}

/// A value with all its members.
enum Tree {
    Object(Vec<(String, Self)>),
    Array(Vec<Self>),
    Leaf(Value),
}

impl Tree {
    fn is_ambiguous(&self, keys: Option<&'static ProtocolKeys>) -> bool {
        match self {
            Self::Leaf(_) => false,
            Self::Array(all) => all.iter().any(|one| one.is_ambiguous(keys)),
            Self::Object(members) => {
                let mut names: Vec<&str> = members.iter().map(|(key, _)| key.as_str()).collect();
                names.sort_unstable();
                let is_twice = names.windows(2).any(|pair| pair[0] == pair[1]);
                let is_bad = |(key, value): &(String, Self)| {
                    let mut known = keys.into_iter().flat_map(ProtocolKeys::names);
                    let is_spelled = known.any(|name| name != key && fold(name) == fold(key));
                    let below = keys.and_then(|keys| keys.find(key)).flatten();
                    is_spelled || value.is_ambiguous(below)
                };
                is_twice || members.iter().any(is_bad)
            }
        }
    }

    fn member(&self, is_it: &dyn Fn(&str) -> bool, wins: Wins) -> Option<Value> {
        let Self::Object(members) = self else {
            return None;
        };
        let mut found = members.iter().filter(|(key, _)| is_it(key));
        let found = match wins {
            Wins::First => found.next(),
            Wins::Last => found.next_back(),
        };
        found.map(|(_, value)| value.value())
    }

    fn value(&self) -> Value {
        match self {
            Self::Leaf(value) => value.clone(),
            Self::Array(all) => all.iter().map(Self::value).collect(),
            Self::Object(members) => members
                .iter()
                .map(|(key, value)| (key.clone(), value.value()))
                .collect(),
        }
    }
}

impl<'de> Deserialize<'de> for Tree {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TreeVisitor)
    }
}

struct TreeVisitor;

impl<'de> Visitor<'de> for TreeVisitor {
    type Value = Tree;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a JSON value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Tree, E> {
        Ok(Tree::Leaf(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Tree, E> {
        Ok(Tree::Leaf(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Tree, E> {
        Ok(Tree::Leaf(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Tree, E> {
        Ok(Tree::Leaf(value.into()))
    }

    fn visit_str<E>(self, value: &str) -> Result<Tree, E> {
        Ok(Tree::Leaf(value.into()))
    }

    fn visit_unit<E>(self) -> Result<Tree, E> {
        Ok(Tree::Leaf(Value::Null))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Tree, A::Error> {
        let mut all = Vec::new();
        while let Some(item) = items.next_element()? {
            all.push(item);
        }
        Ok(Tree::Array(all))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Tree, A::Error> {
        let mut all = Vec::new();
        while let Some(member) = members.next_entry()? {
            all.push(member);
        }
        Ok(Tree::Object(all))
    }
}
