//! What any of the syntaxes says, with the place of everything.

use super::secret::Filled;
use super::source::Span;

/// A value and where it stands.
#[derive(Clone, PartialEq)]
pub(super) struct Node {
    pub(super) span: Span,
    pub(super) value: Value,
}

/// A value of any of the syntaxes.
#[derive(Clone, PartialEq)]
pub(super) enum Value {
    Null,
    Flag(bool),
    Whole(i64),
    Fraction(f64),
    Text(Filled),
    List(Vec<Node>),
    Table(Table),
}

/// Members in the order of the text.
#[derive(Clone, Default, PartialEq)]
pub(super) struct Table(pub(super) Vec<Member>);

/// A key with its value.
#[derive(Clone, PartialEq)]
pub(super) struct Member {
    pub(super) key: String,
    /// The key that stands in the file, if it is another client's word for this one.
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

    /// The key as people find it in the file.
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
            Value::Null
            | Value::Flag(_)
            | Value::Whole(_)
            | Value::Fraction(_)
            | Value::Text(_)
            | Value::List(_) => None,
        }
    }

    pub(super) fn text(&self) -> Option<&Filled> {
        match &self.value {
            Value::Text(text) => Some(text),
            Value::Null
            | Value::Flag(_)
            | Value::Whole(_)
            | Value::Fraction(_)
            | Value::List(_)
            | Value::Table(_) => None,
        }
    }

    /// What kind of value it is, for people.
    pub(super) const fn kind(&self) -> &'static str {
        match self.value {
            Value::Null => "nothing",
            Value::Flag(_) => "true or false",
            Value::Whole(_) | Value::Fraction(_) => "a number",
            Value::Text(_) => "a text",
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
