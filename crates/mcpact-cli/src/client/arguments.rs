//! Arguments of a tool from `key=value` words, typed by its input schema. Pure; the caller reads files.

use mcpact::schema::Schema;
use mcpact_config::nearest;
use serde_json::{Map, Number, Value};

use super::input_schema::{Kind, is_open, kinds, parameters, resolved, usage};

/// Error of an argument, found before anything is sent.
#[derive(Debug, PartialEq, thiserror::Error)]
pub(crate) enum ArgumentError {
    /// A word is not an argument.
    #[error("`{0}` is not an argument of the form `key=value`")]
    NotAPair(String),
    /// A key is given twice.
    #[error("argument `{0}` is given twice")]
    Twice(String),
    /// The schema has no such key.
    #[error("unknown argument `{path}`")]
    Unknown { path: String, known: Vec<String> },
    /// The value has another type.
    #[error("argument `{key}`: expected {expected}, got `{given}`")]
    Type {
        key: String,
        expected: String,
        given: String,
    },
    /// The value is not JSON.
    #[error("argument `{key}`: invalid JSON: {reason}")]
    Json { key: String, reason: String },
    /// The value is none of the allowed ones.
    #[error("argument `{key}`: `{given}` is not an allowed value")]
    Choice {
        key: String,
        given: String,
        choices: Vec<String>,
    },
    /// The file of a value cannot be read.
    #[error("argument `{key}`: cannot read `{file}`: {reason}")]
    File {
        key: String,
        file: String,
        reason: String,
    },
    /// `--args` is not a JSON object.
    #[error("`--args` is not a JSON object: {0}")]
    NotAnObject(String),
    /// Required arguments are missing.
    #[error("missing required {}: {}", if .names.len() == 1 { "argument" } else { "arguments" }, quoted(.names))]
    Missing { names: Vec<String>, usage: String },
    /// A value violates the schema.
    #[error("{}: {reason}", match .path.as_str() {
        "" => String::from("invalid arguments"),
        path => format!("argument `{path}`"),
    })]
    Invalid { path: String, reason: String },
}

impl ArgumentError {
    /// Returns the hints.
    pub(crate) fn hints(&self) -> Vec<String> {
        let one = |hint: &str| vec![String::from(hint)];
        match self {
            Self::NotAPair(word) => vec![format!(
                "for example `text={word}`; the name of the tool comes before its arguments"
            )],
            Self::Twice(_) => one("for a list, pass JSON: `key:='[\"a\", \"b\"]'`"),
            Self::Unknown { path, known } => {
                let last = path.rsplit('.').next().unwrap_or(path);
                let known: Vec<&str> = known.iter().map(String::as_str).collect();
                let similar = nearest(last, &known).map(|near| format!("did you mean `{near}`?"));
                let all = match known.is_empty() {
                    true => String::from("the tool has no arguments"),
                    false => format!("arguments: {}", quoted(&known)),
                };
                similar.into_iter().chain([all]).collect()
            }
            Self::Type { key, expected, .. } if expected.contains("list") => {
                vec![format!("pass JSON: `{key}='[…]'`")]
            }
            Self::Type { key, expected, .. } if expected.contains("object") => {
                vec![format!("pass JSON: `{key}='{{…}}'`")]
            }
            Self::Json { .. } => one("quote JSON for the shell: `key:='{\"a\": 1}'`"),
            Self::Choice { given, choices, .. } => {
                let known: Vec<&str> = choices.iter().map(String::as_str).collect();
                let similar = nearest(given, &known).map(|near| format!("did you mean `{near}`?"));
                let all = format!("allowed values: {}", quoted(choices));
                similar.into_iter().chain([all]).collect()
            }
            Self::NotAnObject(_) => {
                one("for example `--args '{\"path\": \"x\"}'`, `--args @file.json`, or `--args -`")
            }
            Self::Missing { usage, .. } => vec![format!("usage: {usage}")],
            Self::Type { .. } | Self::File { .. } | Self::Invalid { .. } => Vec::new(),
        }
    }
}

fn quoted(names: &[impl AsRef<str>]) -> String {
    let quoted: Vec<String> = names
        .iter()
        .map(|name| format!("`{}`", name.as_ref()))
        .collect();
    quoted.join(", ")
}

/// Value of a word, before it is typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Given<'a> {
    /// `key=value`.
    Text(&'a str),
    /// `key:=JSON`.
    Json(&'a str),
    /// `key=@file`.
    File(&'a str),
}

/// Splits `key=value`, `key:=JSON` or `key=@file`.
pub(crate) fn split(word: &str) -> Result<(&str, Given<'_>), ArgumentError> {
    let not_a_pair = || ArgumentError::NotAPair(word.to_owned());
    let (key, value) = word.split_once('=').ok_or_else(not_a_pair)?;
    let (key, given) = match (key.strip_suffix(':'), value.strip_prefix('@')) {
        (Some(key), _) => (key, Given::Json(value)),
        (None, Some(file)) => (key, Given::File(file)),
        (None, None) => (key, Given::Text(value)),
    };
    match key {
        "" => Err(not_a_pair()),
        key => Ok((key, given)),
    }
}

/// Builds and checks the arguments of a tool: those of `--args`, and the words, which take precedence.
pub(crate) fn of_tool(
    tool: &str,
    schema: &Value,
    base: Map<String, Value>,
    words: &[String],
    read_file: &dyn Fn(&str) -> Result<String, String>,
) -> Result<Map<String, Value>, ArgumentError> {
    check_keys(
        &Value::Object(base.clone()),
        schema,
        schema,
        "",
        Extra::AsDeclared,
    )?;
    let mut typed_words = Map::new();
    for word in words {
        let (key, given) = split(word)?;
        let value = value(key, given, schema, read_file)?;
        if typed_words.insert(key.to_owned(), value).is_some() {
            return Err(ArgumentError::Twice(key.to_owned()));
        }
    }
    let typed_words = Value::Object(typed_words);
    check_keys(&typed_words, schema, schema, "", Extra::Rejected)?;
    let mut all = base;
    if let Value::Object(members) = typed_words {
        all.extend(members);
    }
    let required = parameters(schema).into_iter().filter(|one| one.is_required);
    let missing = required.filter(|one| !all.contains_key(&one.name));
    let names: Vec<String> = missing.map(|one| one.name).collect();
    if !names.is_empty() {
        let usage = format!("{tool} {}", usage(schema));
        return Err(ArgumentError::Missing { names, usage });
    }
    let all = Value::Object(all);
    // The server judges a schema that cannot be compiled.
    if let Ok(schema) = Schema::compile(schema)
        && let Some((path, reason)) = schema.first_error(&all)
    {
        let path = path.trim_start_matches('/').replace('/', ".");
        return Err(ArgumentError::Invalid { path, reason });
    }
    match all {
        Value::Object(all) => Ok(all),
        _ => Ok(Map::new()),
    }
}

/// Parses the JSON object of `--args`.
pub(crate) fn object(text: &str) -> Result<Map<String, Value>, ArgumentError> {
    serde_json::from_str(text).map_err(|error| ArgumentError::NotAnObject(error.to_string()))
}

fn value(
    key: &str,
    given: Given<'_>,
    schema: &Value,
    read_file: &dyn Fn(&str) -> Result<String, String>,
) -> Result<Value, ArgumentError> {
    let none = Value::Null;
    let property = schema.pointer("/properties");
    let property = property.and_then(|all| all.get(key)).unwrap_or(&none);
    match given {
        Given::Json(text) => serde_json::from_str(text).map_err(|error| ArgumentError::Json {
            key: key.to_owned(),
            reason: error.to_string(),
        }),
        Given::File(file) => match read_file(file) {
            Ok(text) => Ok(Value::String(text)),
            Err(reason) => Err(ArgumentError::File {
                key: key.to_owned(),
                file: file.to_owned(),
                reason,
            }),
        },
        Given::Text(text) => {
            let allowed = kinds(property, schema);
            let value = typed(text, &allowed).ok_or_else(|| ArgumentError::Type {
                key: key.to_owned(),
                expected: expected(&allowed),
                given: text.to_owned(),
            })?;
            check_choice(key, &value, resolved(property, schema))?;
            Ok(value)
        }
    }
}

/// Converts a text to the first type that fits; a string fits last.
fn typed(text: &str, allowed: &[Kind]) -> Option<Value> {
    let is_allowed = |kind: Kind| allowed.contains(&kind);
    let parsed: Option<Value> = serde_json::from_str(text).ok();
    match parsed {
        Some(parsed) if allowed.is_empty() => return Some(parsed),
        Some(value @ Value::Bool(_)) if is_allowed(Kind::Boolean) => return Some(value),
        Some(value @ Value::Array(_)) if is_allowed(Kind::Array) => return Some(value),
        Some(value @ Value::Object(_)) if is_allowed(Kind::Object) => return Some(value),
        Some(Value::Number(number)) => {
            let is_integer = number.is_i64() || number.is_u64();
            if is_allowed(Kind::Number) || (is_integer && is_allowed(Kind::Integer)) {
                return Some(Value::Number(number));
            }
        }
        Some(Value::Null) if is_allowed(Kind::Null) && !is_allowed(Kind::String) => {
            return Some(Value::Null);
        }
        _ => {}
    }
    if is_allowed(Kind::Number)
        && let Some(number) = text.parse().ok().and_then(Number::from_f64)
    {
        return Some(Value::Number(number));
    }
    let is_text = allowed.is_empty() || is_allowed(Kind::String);
    is_text.then(|| Value::String(text.to_owned()))
}

fn expected(allowed: &[Kind]) -> String {
    let names: Vec<&str> = allowed.iter().map(|kind| kind.noun()).collect();
    names.join(" or ")
}

fn check_choice(key: &str, value: &Value, property: &Value) -> Result<(), ArgumentError> {
    match property.get("enum").and_then(Value::as_array) {
        Some(choices) if !choices.contains(value) => Err(ArgumentError::Choice {
            key: key.to_owned(),
            given: plain(value),
            choices: choices.iter().map(plain).collect(),
        }),
        Some(_) | None => Ok(()),
    }
}

/// Returns a string as it is, and anything else as JSON.
fn plain(value: &Value) -> String {
    let text = value.as_str().map(str::to_owned);
    text.unwrap_or_else(|| value.to_string())
}

/// Treatment of keys that a schema neither names nor mentions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Extra {
    /// An error, because it is probably mistyped.
    Rejected,
    /// An error only if the schema says so.
    AsDeclared,
}

/// Checks the keys of an object and of the objects in it.
fn check_keys(
    value: &Value,
    schema: &Value,
    root: &Value,
    path: &str,
    extra: Extra,
) -> Result<(), ArgumentError> {
    let schema = resolved(schema, root);
    let (Value::Object(members), Some(known)) =
        (value, schema.get("properties").and_then(Value::as_object))
    else {
        return match schema.get("additionalProperties") {
            Some(Value::Bool(false)) => check_empty(value, path),
            _ => Ok(()),
        };
    };
    let is_closed = schema.get("additionalProperties") == Some(&Value::Bool(false));
    for (key, member) in members {
        let path = match path {
            "" => key.clone(),
            path => format!("{path}.{key}"),
        };
        match known.get(key) {
            Some(inner) => check_keys(member, inner, root, &path, extra)?,
            None if is_closed || (extra == Extra::Rejected && !is_open(schema)) => {
                let known = known.keys().cloned().collect();
                return Err(ArgumentError::Unknown { path, known });
            }
            None => {}
        }
    }
    Ok(())
}

/// Checks an object whose schema allows no members.
fn check_empty(value: &Value, path: &str) -> Result<(), ArgumentError> {
    let first = value.as_object().and_then(|members| members.keys().next());
    match first {
        Some(key) => Err(ArgumentError::Unknown {
            path: match path {
                "" => key.clone(),
                path => format!("{path}.{key}"),
            },
            known: Vec::new(),
        }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schema() -> Value {
        json!({
            "type": "object",
            "$defs": {"place": {
                "type": "object",
                "properties": {"city": {"type": "string"}},
                "additionalProperties": false,
            }},
            "properties": {
                "text": {"type": "string"},
                "count": {"type": "integer", "minimum": 1},
                "ratio": {"type": "number"},
                "all": {"type": "boolean"},
                "tags": {"type": "array", "items": {"type": "string"}},
                "place": {"$ref": "#/$defs/place"},
                "maybe": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
                "either": {"type": ["integer", "string"]},
                "mode": {"enum": ["fast", "slow"]},
                "any": {},
            },
        })
    }

    fn built(words: &[&str]) -> Result<Value, ArgumentError> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let read = |file: &str| match file {
            "note.txt" => Ok(String::from("from a file")),
            _ => Err(String::from("no such file")),
        };
        of_tool("t", &schema(), Map::new(), &words, &read).map(Value::Object)
    }

    #[test]
    fn values_are_typed_by_the_schema() {
        for (word, expected) in [
            ("text=5", json!({"text": "5"})),
            ("text=", json!({"text": ""})),
            ("text=a=b", json!({"text": "a=b"})),
            ("text=@note.txt", json!({"text": "from a file"})),
            ("text:=\"@x\"", json!({"text": "@x"})),
            ("count=5", json!({"count": 5})),
            ("ratio=5", json!({"ratio": 5})),
            ("ratio=.5", json!({"ratio": 0.5})),
            ("ratio=1e3", json!({"ratio": 1000.0})),
            ("all=true", json!({"all": true})),
            ("tags=[\"a\"]", json!({"tags": ["a"]})),
            (
                "place={\"city\": \"Rome\"}",
                json!({"place": {"city": "Rome"}}),
            ),
            ("maybe=null", json!({"maybe": null})),
            ("maybe=3", json!({"maybe": 3})),
            ("either=3", json!({"either": 3})),
            ("either=x", json!({"either": "x"})),
            ("mode=fast", json!({"mode": "fast"})),
            ("any=[1]", json!({"any": [1]})),
            ("any=word", json!({"any": "word"})),
        ] {
            assert_eq!(built(&[word]).unwrap(), expected, "{word}");
        }
    }

    #[test]
    fn wrong_values_are_rejected_with_key_and_reason() {
        for (word, expected) in [
            ("text", "`text` is not an argument of the form `key=value`"),
            ("=x", "`=x` is not an argument of the form `key=value`"),
            (
                "count=five",
                "argument `count`: expected an integer, got `five`",
            ),
            (
                "count=1.5",
                "argument `count`: expected an integer, got `1.5`",
            ),
            (
                "ratio=nan",
                "argument `ratio`: expected a number, got `nan`",
            ),
            (
                "all=yes",
                "argument `all`: expected true or false, got `yes`",
            ),
            ("tags=a", "argument `tags`: expected a list, got `a`"),
            (
                "maybe=x",
                "argument `maybe`: expected an integer or null, got `x`",
            ),
            (
                "mode=fsat",
                "argument `mode`: `fsat` is not an allowed value",
            ),
            ("txt=a", "unknown argument `txt`"),
            ("place={\"stadt\": 1}", "unknown argument `place.stadt`"),
            (
                "text=@gone",
                "argument `text`: cannot read `gone`: no such file",
            ),
            (
                "count=0",
                "argument `count`: 0 is less than the minimum of 1",
            ),
            ("tags=[1]", "argument `tags.0`: 1 is not of type \"string\""),
        ] {
            assert_eq!(built(&[word]).unwrap_err().to_string(), expected, "{word}");
        }
        let twice = built(&["text=a", "text=b"]).unwrap_err();
        assert_eq!(twice.to_string(), "argument `text` is given twice");
        let json = built(&["any:={"]).unwrap_err().to_string();
        assert!(json.starts_with("argument `any`: invalid JSON: "), "{json}");
    }

    #[test]
    fn unknown_keys_have_a_suggestion() {
        let hints = |words: &[&str]| built(words).unwrap_err().hints();
        assert_eq!(hints(&["txet=a"])[0], "did you mean `text`?");
        assert_eq!(
            hints(&["place={\"ctiy\": \"a\"}"])[0],
            "did you mean `city`?"
        );
        assert_eq!(hints(&["mode=fsat"])[0], "did you mean `fast`?");
    }

    #[test]
    fn additional_properties_are_accepted_if_the_schema_allows_them() {
        let none = |_: &str| Err(String::new());
        let words = [String::from("other=1")];
        for (schema, is_accepted) in [
            (json!({}), true),
            (
                json!({"properties": {"a": {}}, "additionalProperties": true}),
                true,
            ),
            (
                json!({"properties": {"a": {}}, "additionalProperties": {"type": "integer"}}),
                true,
            ),
            (
                json!({"properties": {"a": {}}, "patternProperties": {"^o": {}}}),
                true,
            ),
            (json!({"properties": {"a": {}}}), false),
            (json!({"additionalProperties": false}), false),
        ] {
            let built = of_tool("t", &schema, Map::new(), &words, &none);
            assert_eq!(built.is_ok(), is_accepted, "{schema}");
        }
        // An object that was written out is not taken for a mistake.
        let base = object("{\"other\": 1}").unwrap();
        let schema = json!({"properties": {"a": {}}});
        assert!(of_tool("t", &schema, base, &[], &none).is_ok());
    }

    #[test]
    fn missing_required_arguments_are_listed_together() {
        let schema = json!({
            "properties": {"a": {"type": "string"}, "b": {"type": "integer"}, "c": {}},
            "required": ["a", "b"],
        });
        let none = |_: &str| Err(String::new());
        let error = of_tool("t", &schema, Map::new(), &[], &none).unwrap_err();
        assert_eq!(error.to_string(), "missing required arguments: `a`, `b`");
        assert_eq!(
            error.hints(),
            ["usage: t a=<string> b=<integer> [c=<value>]"]
        );
    }
}
