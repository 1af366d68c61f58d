//! YAML parser.

use std::collections::HashMap;

use granit_parser::{Event, Parser, ScalarStyle};

use super::broken;
use crate::problem::Problem;
use crate::source::Span;
use crate::tree::{Member, Node, Table, Value};

/// Maximum nesting depth.
const MAX_DEPTH: usize = 64;
/// Error for an invalid merge.
const MERGE: &str = "a merge requires a table (`<<: *name`) or a list of tables";
/// Maximum number of values, so that nested aliases cannot exhaust memory. A copied text counts by its length.
const MAX_VALUES: usize = 100_000;
/// Bytes of a copied text or key that count as one value.
const BYTES_PER_VALUE: usize = 64;

/// Parses a YAML document.
pub(super) fn parse(text: &str) -> Result<Node, Problem> {
    let mut reader = Reader {
        parser: Parser::new_from_str(text),
        anchors: HashMap::new(),
        values: 0,
    };
    let mut root = None;
    loop {
        let (event, span) = reader.next()?;
        match event {
            Event::StreamEnd => break,
            Event::StreamStart | Event::DocumentStart(..) | Event::DocumentEnd => {}
            event if root.is_none() => root = Some(reader.node(event, span, 0)?),
            _ => return Err(fail(span, "more than one document")),
        }
    }
    Ok(root.unwrap_or(Node::new(Span::default(), Value::Null)))
}

struct Reader<'t> {
    parser: Parser<'t, granit_parser::StrInput<'t>>,
    anchors: HashMap<usize, Node>,
    values: usize,
}

fn fail(span: Span, message: &str) -> Problem {
    broken(span, format!("invalid YAML: {message}"))
}

impl<'t> Reader<'t> {
    fn next(&mut self) -> Result<(Event<'t>, Span), Problem> {
        match self.parser.next() {
            None => Ok((Event::StreamEnd, Span::default())),
            Some(Ok((event, span))) => {
                let range = span.byte_range().unwrap_or_default();
                Ok((event, range.into()))
            }
            Some(Err(error)) => {
                let at = error.marker().byte_offset().unwrap_or_default();
                Err(fail(Span::new(at, at + 1), &error.info()))
            }
        }
    }

    fn count(&mut self, values: usize, span: Span) -> Result<(), Problem> {
        self.values += values;
        if self.values > MAX_VALUES {
            return Err(fail(span, "too many values"));
        }
        Ok(())
    }

    fn node(&mut self, event: Event<'t>, span: Span, depth: usize) -> Result<Node, Problem> {
        if depth > MAX_DEPTH {
            return Err(fail(span, "nested too deeply"));
        }
        self.count(1, span)?;
        let (value, anchor, end) = match event {
            Event::Scalar(text, style, anchor, tag) => {
                let is_text = style != ScalarStyle::Plain || tag.is_some();
                let value = if is_text {
                    Value::from(text.as_ref())
                } else {
                    plain(&text)
                };
                (value, anchor, span.end)
            }
            Event::SequenceStart(_, anchor, _) => {
                let (items, end) = self.list(depth)?;
                (Value::List(items), anchor, end)
            }
            Event::MappingStart(_, anchor, _) => {
                let (table, end) = self.table(depth)?;
                (Value::Table(table), anchor, end)
            }
            Event::Alias(anchor) => {
                let node = self.anchors.get(&anchor).cloned();
                let node = node.ok_or_else(|| fail(span, "recursive alias"))?;
                self.count(node.size(), span)?;
                return Ok(node);
            }
            _ => return Err(fail(span, "expected a value")),
        };
        let node = Node::new(Span::new(span.start, end.max(span.start)), value);
        if anchor != 0 {
            self.count(node.size(), span)?;
            self.anchors.insert(anchor, node.clone());
        }
        Ok(node)
    }

    fn list(&mut self, depth: usize) -> Result<(Vec<Node>, usize), Problem> {
        let mut items = Vec::new();
        loop {
            match self.next()? {
                (Event::SequenceEnd, span) => return Ok((items, span.end)),
                (event, span) => items.push(self.node(event, span, depth + 1)?),
            }
        }
    }

    fn table(&mut self, depth: usize) -> Result<(Table, usize), Problem> {
        let mut table = Table::default();
        let mut merged = Vec::new();
        loop {
            let (key, key_span) = match self.next()? {
                (Event::MappingEnd, span) => {
                    table.fill(merged);
                    return Ok((table, span.end));
                }
                (Event::Scalar(key, ..), span) => (key.into_owned(), span),
                (_, span) => return Err(fail(span, "keys must be strings")),
            };
            let (event, span) = self.next()?;
            let node = self.node(event, span, depth + 1)?;
            if key == "<<" {
                if !node.is_mergeable() {
                    return Err(fail(span, MERGE));
                }
                merged.push(node);
            } else if table.member(&key).is_some() {
                return Err(fail(key_span, &format!("duplicate key `{key}`")));
            } else {
                table.0.push(Member::new(key, key_span, node));
            }
        }
    }
}

impl Table {
    /// Adds members of merge keys that are not set.
    fn fill(&mut self, merged: Vec<Node>) {
        for node in merged {
            match node.value {
                Value::Table(other) => {
                    for member in other.0 {
                        if self.member(&member.key).is_none() {
                            self.0.push(member);
                        }
                    }
                }
                Value::List(items) => self.fill(items),
                _ => {}
            }
        }
    }
}

impl Node {
    /// Returns whether a merge key accepts this value.
    fn is_mergeable(&self) -> bool {
        match &self.value {
            Value::Table(_) => true,
            Value::List(items) => items.iter().all(|item| item.table().is_some()),
            _ => false,
        }
    }

    /// Number of values that a copy counts as.
    fn size(&self) -> usize {
        let member = |member: &Member| member.key.len() / BYTES_PER_VALUE + member.node.size();
        1 + match &self.value {
            Value::List(items) => items.iter().map(Self::size).sum(),
            Value::Table(table) => table.0.iter().map(member).sum(),
            Value::Text(text) => text.value().len() / BYTES_PER_VALUE,
            _ => 0,
        }
    }
}

/// Plain scalar by the YAML 1.2 core schema.
fn plain(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" => Value::Flag(true),
        "false" | "False" | "FALSE" => Value::Flag(false),
        _ => number(text).unwrap_or_else(|| Value::from(text)),
    }
}

fn number(text: &str) -> Option<Value> {
    let is_number = text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '-' | '+' | '.'))
        && text.contains(|c: char| c.is_ascii_digit())
        && !text.contains(|c: char| c.is_alphabetic() && !matches!(c, 'e' | 'E'));
    if !is_number {
        return None;
    }
    let whole = text.parse().ok().map(Value::Whole);
    whole.or_else(|| text.parse().ok().map(Value::Fraction))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Source;

    fn told(text: &str) -> String {
        parse(text)
            .err()
            .map(|problem| problem.message)
            .unwrap_or_default()
    }

    #[test]
    fn values_are_read_by_the_core_schema() {
        let text =
            "a: 1\nb: 1.5\nc: yes\nd: \"2\"\ne: [x, ~, true]\nf: 2025-11-25\ng: {h: \"é\"}\n";
        let root = parse(text).ok().unwrap();
        let table = root.table().unwrap();
        let at = |key: &str| &table.member(key).unwrap().node;
        assert!(matches!(at("a").value, Value::Whole(1)));
        assert!(matches!(at("b").value, Value::Fraction(_)));
        assert_eq!(at("c").text().unwrap().value(), "yes");
        assert_eq!(at("d").text().unwrap().value(), "2");
        assert_eq!(at("f").text().unwrap().value(), "2025-11-25");
        assert_eq!(&text[at("d").span.start..at("d").span.end], "\"2\"");
        let Value::List(items) = &at("e").value else {
            panic!("no list");
        };
        assert_eq!(items.len(), 3);
    }

    #[test]
    fn anchors_and_merge_keys_are_followed() {
        let root = parse("base: &b {x: 1, y: 2}\nmore:\n  <<: *b\n  y: 3\n")
            .ok()
            .unwrap();
        let more = root
            .table()
            .unwrap()
            .member("more")
            .unwrap()
            .node
            .table()
            .unwrap();
        assert!(matches!(
            more.member("x").unwrap().node.value,
            Value::Whole(1)
        ));
        assert!(matches!(
            more.member("y").unwrap().node.value,
            Value::Whole(3)
        ));
    }

    #[test]
    fn errors_are_precise() {
        assert!(told("a: 1\na: 2\n").contains("duplicate key `a`"));
        assert!(told("a: [1\n").contains("invalid YAML"));
        assert!(told("a: 1\n---\nb: 2\n").contains("more than one document"));
        assert!(told("[1]: 2\n").contains("keys must be strings"));
        assert!(told("a: *b\n").contains("invalid YAML"));
    }

    /// An invalid merge is an error at its value.
    #[test]
    fn merge_requires_tables() {
        for (text, at) in [
            ("safe: &safe {x: 1}\na:\n  <<: safe\n", "3:7"),
            ("a:\n  <<: 5\n", "2:7"),
            ("\"<<\": 3\n", "1:7"),
            ("b: &b 1\na:\n  <<: *b\n", "3:7"),
            ("b: &b {x: 1}\na:\n  <<: [*b, c]\n", "3:7"),
            ("a:\n  <<: ~\n", "2:7"),
        ] {
            let problem = parse(text).err().unwrap();
            assert!(
                problem.message.contains("requires a table (`<<: *name`)"),
                "{text}"
            );
            let place = Source::new("a.yaml", text).position(problem.span.start);
            assert_eq!(place.to_string(), at, "{text}");
        }
        assert_eq!(told("b: &b {x: 1}\na:\n  <<: [*b, {y: 2}]\n"), "");
    }

    /// Deep nesting and alias bombs are rejected.
    #[test]
    fn nesting_and_alias_bombs_are_rejected() {
        assert!(told(&"[".repeat(1000)).contains("invalid YAML"));
        let mut laughs = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
        for level in 1..12 {
            let below = level - 1;
            laughs.push_str(&format!("a{level}: &a{level} [*a{below}, *a{below}, *a{below}, *a{below}, *a{below}, *a{below}, *a{below}, *a{below}, *a{below}]\n"));
        }
        assert!(told(&laughs).contains("too many values"));
    }

    /// A few aliases of a long text need as much memory as many of a short one.
    #[test]
    fn copies_of_long_texts_are_limited() {
        let long = "x".repeat(100_000);
        for anchor in [format!("&a {long}"), format!("&a {{? {long} : 1}}")] {
            let few = format!("a: {anchor}\nb: [{}]\n", "*a, ".repeat(10));
            assert_eq!(told(&few), "");
            let many = format!("a: {anchor}\nb: [{}]\n", "*a, ".repeat(1000));
            assert!(told(&many).contains("too many values"));
        }
    }
}
