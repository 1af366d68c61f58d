//! Syntax-independent tree of a config, with source positions.

use super::secret::ExpandedText;
use super::source::Span;

/// A value with its position.
#[derive(Clone, PartialEq)]
pub(super) struct Node {
    pub(super) span: Span,
    pub(super) value: Value,
}

/// A value.
#[derive(Clone, PartialEq)]
pub(super) enum Value {
    Null,
    Flag(bool),
    Whole(i64),
    Fraction(f64),
    Text(ExpandedText),
    List(Vec<Node>),
    Table(Table),
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(ExpandedText::from(text))
    }
}

/// Members in source order.
#[derive(Clone, Default, PartialEq)]
pub(super) struct Table(pub(super) Vec<Member>);

/// A key with its value.
#[derive(Clone, PartialEq)]
pub(super) struct Member {
    pub(super) key: String,
    /// Key in the file, if it is another client's synonym.
    pub(super) theirs: Option<String>,
    pub(super) key_span: Span,
    pub(super) node: Node,
}

impl Member {
    pub(super) const fn new(key: String, key_span: Span, node: Node) -> Self {
        Self {
            key,
            theirs: None,
            key_span,
            node,
        }
    }

    /// Key as written in the file.
    pub(super) fn written(&self) -> &str {
        self.theirs.as_deref().unwrap_or(&self.key)
    }
}

impl Node {
    pub(super) const fn new(span: Span, value: Value) -> Self {
        Self { span, value }
    }

    pub(super) fn table(&self) -> Option<&Table> {
        match &self.value {
            Value::Table(table) => Some(table),
            _ => None,
        }
    }

    pub(super) fn text(&self) -> Option<&ExpandedText> {
        match &self.value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Kind of the value, for messages.
    pub(super) const fn kind(&self) -> &'static str {
        match self.value {
            Value::Null => "null",
            Value::Flag(_) => "a boolean",
            Value::Whole(_) | Value::Fraction(_) => "a number",
            Value::Text(_) => "a string",
            Value::List(_) => "a list",
            Value::Table(_) => "a table",
        }
    }
}

impl Table {
    pub(super) fn member(&self, key: &str) -> Option<&Member> {
        self.0.iter().find(|member| member.key == key)
    }
}

/// A value of this host that a server receives.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SharedValue {
    /// Part of the message that contains the value.
    pub location: SharedIn,
    /// Variable or file, such as `${TOKEN}`.
    pub source: String,
}

/// Part of a message that contains a value.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SharedIn {
    /// Header.
    Header(String),
    /// URL.
    Url,
    /// Key of the config, such as `answers.sampling`.
    Key(String),
}

/// Collects the shared values of a table, except for some of its keys. `path` is the prefix of the keys.
///
/// All other keys count: a list of keys that reach the server could miss one and leak a secret.
pub(super) fn shared_values(table: &Table, path: &str, except: &[&str]) -> Vec<SharedValue> {
    let mut found = Vec::new();
    for Member { key, node, .. } in &table.0 {
        if !except.contains(&key.as_str()) {
            collect(node, &format!("{path}{key}"), &mut found);
        }
    }
    // The order of keys is irrelevant.
    found.sort();
    found.dedup();
    found
}

fn collect(node: &Node, path: &str, found: &mut Vec<SharedValue>) {
    match &node.value {
        Value::Text(text) => {
            found.extend(text.sources().map(|source| SharedValue {
                location: SharedIn::at(path),
                source: source.to_owned(),
            }));
        }
        Value::List(items) => items.iter().for_each(|item| collect(item, path, found)),
        Value::Table(table) => {
            for Member { key, node, .. } in &table.0 {
                collect(node, &format!("{path}.{key}"), found);
            }
        }
        _ => {}
    }
}

impl SharedIn {
    fn at(path: &str) -> Self {
        match (path, path.strip_prefix("headers.")) {
            ("url", _) => Self::Url,
            (_, Some(header)) => Self::Header(header.to_owned()),
            (key, None) => Self::Key(key.to_owned()),
        }
    }

    /// Description for the user.
    pub(crate) fn shown(&self, source: &str) -> String {
        match self {
            Self::Header(header) => format!("{source} as `{header}`"),
            Self::Url => format!("{source} in the address"),
            Self::Key(key) => format!("{source} by `{key}`"),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::Launch;
    use crate::read::tests::taken_from;

    fn of(gateway: &str, server: &str) -> Vec<String> {
        let text = format!("{gateway}\n[servers.a]\n{server}");
        let catalog = taken_from("mcpact.toml", &text);
        let shared_values = match &catalog.servers["a"].launch {
            Launch::Url(url) => url.shared_values.clone(),
            Launch::Command(command) => command.shared_values.clone(),
            Launch::Builtin(_) => Vec::new(),
        };
        let shown = shared_values
            .iter()
            .map(|shared_values| shared_values.location.shown(&shared_values.source));
        shown.collect()
    }

    /// Variables count in any key of a server, and in gateway keys that reach the server.
    #[test]
    fn variables_in_any_key_count() {
        const URL: &str = "url = \"https://a.example/\"\n";
        const COMMAND: &str = "command = \"npx\"\nargs = [\"${TOKEN}\"]\n";
        const ANSWERS: &str = "[gateway.answers]\nsampling = \"${TOKEN}\"";
        for (gateway, server, expected) in [
            ("", URL.to_owned(), &[][..]),
            (
                "",
                String::from(
                    "url = \"https://a.example/${TOKEN}\"\nheaders = { X = \"${TOKEN}\" }",
                ),
                &["${TOKEN} as `X`", "${TOKEN} in the address"],
            ),
            (
                "",
                format!("{URL}answers = {{ sampling = \"a ${{TOKEN}}\" }}"),
                &["${TOKEN} by `answers.sampling`"],
            ),
            (
                "",
                format!("{URL}answers = {{ roots = [\"file:///x\", \"file:///${{TOKEN}}\"] }}"),
                &["${TOKEN} by `answers.roots`"],
            ),
            (
                "",
                format!("{URL}health = \"tool:${{TOKEN}}\""),
                &["${TOKEN} by `health`"],
            ),
            (
                "",
                format!("{URL}tags = [\"${{TOKEN}}\"]"),
                &["${TOKEN} by `tags`"],
            ),
            (
                ANSWERS,
                URL.to_owned(),
                &["${TOKEN} by `gateway.answers.sampling`"],
            ),
            (ANSWERS, format!("{URL}answers = {{}}"), &[]),
            (
                "[gateway]\ntoken = \"${TOKEN}-0123456789\"",
                URL.to_owned(),
                &[],
            ),
            // Arguments are part of the approved command.
            ("", COMMAND.to_owned(), &[]),
            (
                "",
                format!("{COMMAND}health = \"resource:x://${{TOKEN}}\""),
                &["${TOKEN} by `health`"],
            ),
            (
                ANSWERS,
                COMMAND.to_owned(),
                &["${TOKEN} by `gateway.answers.sampling`"],
            ),
        ] {
            assert_eq!(of(gateway, &server), expected, "{gateway} {server}");
        }
    }
}
