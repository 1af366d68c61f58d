//! Insertion and replacement of object members in JSON with comments, by byte offsets.
//!
//! The editors on crates.io rebuild the object around a member: `jsonc-parser` breaks one-line objects into lines and
//! drops blank lines. Splicing text at an offset changes nothing else.

use super::{Edited, Entry, EntryChange, EntryValue, line_end, not_a_table};
use crate::problem::Problem;
use crate::source::{Source, Span};
use crate::syntax::Syntax;
use crate::tree::Table;

/// Sets a member of the object at a path of keys.
pub(super) fn set(
    source: &Source,
    path: &[&str],
    name: &str,
    entry: &Entry,
) -> Result<Edited, Problem> {
    let text = &source.text;
    if skip_trivia(text, 0) == text.len() {
        // No document yet, perhaps comments.
        let gap = match text.is_empty() || text.ends_with('\n') {
            true => "",
            false => line_end(text),
        };
        let text = format!("{text}{gap}{{}}{}", line_end(text));
        return set(&Source::new(&*source.name, text), path, name, entry);
    }
    let root = Syntax::Json.parse(source)?;
    let style = Style::of(text, root.table().into_iter().flat_map(|table| &table.0));
    let keys: Vec<&str> = path.iter().copied().chain([name]).collect();
    let (mut node, mut parent) = (&root, "");
    for (at, key) in keys.iter().enumerate() {
        let Some(table) = node.table() else {
            return Err(not_a_table(node.span, parent, node.kind()));
        };
        match table.member(key) {
            None => {
                let inner = keys[at + 1..].iter().rev();
                let entry = inner.fold(EntryValue::Table(entry.clone()), |value, key| {
                    EntryValue::Table(Entry::default().with(*key, value))
                });
                return Ok(Edited {
                    text: style.insert(text, node.span, table, (*key, &entry)),
                    change: EntryChange::Added,
                });
            }
            Some(member) if at + 1 < keys.len() => (node, parent) = (&member.node, *key),
            Some(member) => {
                let there = member.node.table();
                if there.is_some_and(|there| entry.is_in(there)) {
                    return Ok(Edited {
                        text: text.clone(),
                        change: EntryChange::Unchanged,
                    });
                }
                let value = EntryValue::Table(entry.clone());
                let written = match own_line(text, member.key_span.start) {
                    Some(indent) => style.lines(&value, indent),
                    None => inline(&value),
                };
                let Span { start, end } = member.node.span;
                return Ok(Edited {
                    text: [&text[..start], &written, &text[end..]].concat(),
                    change: EntryChange::Replaced,
                });
            }
        }
    }
    // The path has at least the name, which returns above.
    Ok(Edited {
        text: text.clone(),
        change: EntryChange::Unchanged,
    })
}

/// Line end and indentation of a document.
struct Style {
    line_end: &'static str,
    unit: String,
}

impl Style {
    /// Indentation of the first member that begins a line, or two spaces.
    fn of<'m>(text: &str, members: impl Iterator<Item = &'m crate::tree::Member>) -> Self {
        let mut indents = members.filter_map(|member| own_line(text, member.key_span.start));
        let unit = indents.find(|indent| !indent.is_empty()).unwrap_or("  ");
        Self {
            line_end: line_end(text),
            unit: unit.to_owned(),
        }
    }

    /// Inserts a member at the end of an object.
    fn insert(
        &self,
        text: &str,
        object: Span,
        table: &Table,
        (key, value): (&str, &EntryValue),
    ) -> String {
        let (start, end) = (object.start + 1, object.end - 1);
        let Some((first, last)) = table.0.first().zip(table.0.last()) else {
            let outer = indent_of_line(text, object.start);
            let member = self.member(key, value, &format!("{outer}{}", self.unit));
            // After comments, and before the line of the closing brace.
            let trimmed = start + text[start..end].trim_end().len();
            let (at, close) = match text[trimmed..end].contains('\n') {
                true => (trimmed, String::new()),
                false => (end, format!("{}{outer}", self.line_end)),
            };
            return [&text[..at], &member, &close, &text[at..]].concat();
        };
        let value_end = last.node.span.end;
        let after = skip_trivia(text, value_end);
        let has_comma = text[after..].starts_with(',');
        let (before, behind) = match has_comma {
            true => ("", ","),
            false => (",", ""),
        };
        let value_end = if has_comma { after + 1 } else { value_end };
        if !text[start..first.key_span.start].contains('\n') {
            let member = format!(" {}: {}", quoted(key), inline(value));
            return [
                &text[..value_end],
                before,
                &member,
                behind,
                &text[value_end..],
            ]
            .concat();
        }
        let indent = [last, first]
            .into_iter()
            .find_map(|member| own_line(text, member.key_span.start));
        let indent = indent.unwrap_or_else(|| indent_of_line(text, first.key_span.start));
        let member = self.member(key, value, indent);
        let at = end_of_comments(text, value_end);
        [
            &text[..value_end],
            before,
            &text[value_end..at],
            &member,
            behind,
            &text[at..],
        ]
        .concat()
    }

    /// Formats a member on lines of its own, with the line end before it.
    fn member(&self, key: &str, value: &EntryValue, indent: &str) -> String {
        let value = self.lines(value, indent);
        format!("{}{indent}{}: {value}", self.line_end, quoted(key))
    }

    /// Formats a value with a line for each member of a table.
    fn lines(&self, value: &EntryValue, indent: &str) -> String {
        match value {
            EntryValue::Table(Entry(members)) if !members.is_empty() => {
                let inner = format!("{indent}{}", self.unit);
                let members = members.iter();
                let members = members.map(|(key, value)| self.member(key, value, &inner));
                let members: Vec<String> = members.collect();
                format!("{{{}{}{indent}}}", members.join(","), self.line_end)
            }
            value => inline(value),
        }
    }
}

/// Formats a value on one line.
fn inline(value: &EntryValue) -> String {
    match value {
        EntryValue::Text(text) => quoted(text),
        EntryValue::Texts(texts) => {
            let texts: Vec<String> = texts.iter().map(|text| quoted(text)).collect();
            format!("[{}]", texts.join(", "))
        }
        EntryValue::Table(Entry(members)) if members.is_empty() => String::from("{}"),
        EntryValue::Table(Entry(members)) => {
            let members = members.iter();
            let members = members.map(|(key, value)| format!("{}: {}", quoted(key), inline(value)));
            let members: Vec<String> = members.collect();
            format!("{{ {} }}", members.join(", "))
        }
    }
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// The text of a line before an offset.
fn line_before(text: &str, at: usize) -> &str {
    let start = text[..at].rfind('\n').map_or(0, |end| end + 1);
    &text[start..at]
}

/// Indentation of a key that begins a line.
fn own_line(text: &str, key: usize) -> Option<&str> {
    let before = line_before(text, key);
    before.trim().is_empty().then_some(before)
}

/// Indentation of the line with an offset.
fn indent_of_line(text: &str, at: usize) -> &str {
    let line = line_before(text, at);
    &line[..line.len() - line.trim_start().len()]
}

/// Offset after whitespace and comments.
fn skip_trivia(text: &str, mut at: usize) -> usize {
    loop {
        let rest = &text[at..];
        let trimmed = rest.trim_start();
        at += rest.len() - trimmed.len();
        at += match comment(trimmed) {
            Some(comment) => comment.len(),
            None => return at,
        };
    }
}

/// Offset after the comments on the rest of a line.
fn end_of_comments(text: &str, at: usize) -> usize {
    let mut end = at;
    let mut rest = text[at..].trim_start_matches([' ', '\t']);
    while let Some(comment) = comment(rest).filter(|comment| !comment.contains('\n')) {
        rest = &rest[comment.len()..];
        end = text.len() - rest.len();
        rest = rest.trim_start_matches([' ', '\t']);
    }
    end
}

/// The comment that a text starts with, without the line end.
fn comment(text: &str) -> Option<&str> {
    if text.starts_with("//") {
        let line = text.lines().next()?;
        return Some(line);
    }
    let inner = text.strip_prefix("/*")?;
    let end = inner.find("*/")?;
    Some(&text[..end + 4])
}
