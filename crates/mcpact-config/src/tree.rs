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
