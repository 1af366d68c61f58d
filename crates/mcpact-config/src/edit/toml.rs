//! Edits of TOML with `toml_edit`. It writes line feeds only, so unchanged lines are taken from the original text.

use toml_edit::{Array, DocumentMut, InlineTable, Item, Table, TableLike, Value};

use super::{Edited, Entry, EntryChange, EntryValue, line_end, not_a_table};
use crate::problem::{Problem, Severity};
use crate::source::{Source, Span};
use crate::syntax::Syntax;
use crate::tree::Node;

/// Sets an entry of the table at a path of keys.
pub(super) fn set(
    source: &Source,
    path: &[&str],
    name: &str,
    entry: &Entry,
) -> Result<Edited, Problem> {
    let text = &source.text;
    let root = Syntax::Toml.parse(source)?;
    let mut doc = document(text)?;
    let mut table: &mut dyn TableLike = doc.as_table_mut();
    let mut node = Some(&root);
    for key in path {
        node = member(node, key);
        let item = table.entry(key).or_insert_with(|| Item::Table(implicit()));
        let Some(inner) = item.as_table_like_mut() else {
            let kind = node.map_or("another value", Node::kind);
            let span = node.map_or_else(Span::default, |node| node.span);
            return Err(not_a_table(span, key, kind));
        };
        table = inner;
    }
    let there = member(node, name);
    if there
        .and_then(Node::table)
        .is_some_and(|there| entry.is_in(there))
    {
        return Ok(Edited {
            text: text.clone(),
            change: EntryChange::Unchanged,
        });
    }
    let mut new = as_table(entry);
    if let Some(Item::Table(old)) = table.get(name) {
        *new.decor_mut() = old.decor().clone();
        new.set_position(old.position());
    }
    let alone = alone(path, name, new.clone());
    table.insert(name, Item::Table(new));
    let trailing = doc.trailing().as_str().unwrap_or_default().to_owned();
    let rendered = doc.to_string();
    let change = match there {
        None => EntryChange::Added,
        Some(_) => EntryChange::Replaced,
    };
    let is_last = rendered.ends_with(&format!("{alone}{trailing}"));
    if there.is_none() && is_last && !trailing.trim().is_empty() {
        // Comments at the end stay before the new entry.
        let lines = format!("{}\n{alone}", ended(text));
        return Ok(Edited {
            text: merged(text, &lines),
            change,
        });
    }
    Ok(Edited {
        text: merged(text, &rendered),
        change,
    })
}

/// Removes an entry of a table, with the comment lines right above it.
pub(super) fn remove(source: &Source, table: &str, name: &str) -> Result<Option<String>, Problem> {
    let text = &source.text;
    Syntax::Toml.parse(source)?;
    let mut doc = document(text)?;
    let servers = doc.get_mut(table).and_then(Item::as_table_like_mut);
    if servers.and_then(|servers| servers.remove(name)).is_none() {
        return Ok(None);
    }
    let rendered = doc.to_string();
    let (start, end, _) = changed_lines(text, &rendered);
    let all = lines(text);
    let removed = all[start..end].iter();
    let removed: Vec<&str> = removed.map(|line| line.trim()).collect();
    // Comments above a blank line are about the file, or about several entries.
    let header = removed.iter().position(|line| line.starts_with('['));
    let kept = header.and_then(|header| removed[..header].iter().rposition(|line| line.is_empty()));
    let rest = [&all[..start + kept.unwrap_or(0)], &all[end..]].concat();
    Ok(Some(rest.concat()))
}

fn document(text: &str) -> Result<DocumentMut, Problem> {
    text.parse().map_err(|error: toml_edit::TomlError| {
        let span = error.span().map_or_else(Span::default, Span::from);
        let message = format!("invalid TOML: {}", error.message());
        Problem::new(Severity::Error, span.within(text), message, None)
    })
}

fn member<'n>(node: Option<&'n Node>, key: &str) -> Option<&'n Node> {
    let member = node?.table()?.member(key)?;
    Some(&member.node)
}

/// A table without a header of its own.
fn implicit() -> Table {
    let mut table = Table::new();
    table.set_implicit(true);
    table
}

fn as_table(entry: &Entry) -> Table {
    let members = entry.0.iter();
    members
        .map(|(key, value)| (key.as_str(), Item::Value(as_value(value))))
        .collect()
}

fn as_value(value: &EntryValue) -> Value {
    match value {
        EntryValue::Text(text) => text.as_str().into(),
        EntryValue::Texts(texts) => texts.iter().map(String::as_str).collect::<Array>().into(),
        EntryValue::Table(entry) => {
            let members = entry.0.iter();
            members
                .map(|(key, value)| (key.as_str(), as_value(value)))
                .collect::<InlineTable>()
                .into()
        }
    }
}

/// Formats the entry as the only one of a document.
fn alone(path: &[&str], name: &str, entry: Table) -> String {
    let inner = path.iter().skip(1).rev();
    let mut table = implicit();
    table.insert(name, Item::Table(entry));
    let table = inner.fold(table, |table, key| {
        let mut outer = implicit();
        outer.insert(key, Item::Table(table));
        outer
    });
    let mut doc = DocumentMut::new();
    if let Some(first) = path.first() {
        doc.insert(first, Item::Table(table));
    }
    doc.to_string()
}

fn ended(text: &str) -> String {
    match text.ends_with('\n') {
        true => text.to_owned(),
        false => format!("{text}\n"),
    }
}

fn lines(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

fn bare(line: &str) -> &str {
    line.trim_end_matches(['\r', '\n'])
}

fn is_same((old, new): &(&&str, &&str)) -> bool {
    bare(old) == bare(new)
}

/// Range of the lines that differ in the first text, and the end of the range in the second one.
fn changed_lines(old: &str, new: &str) -> (usize, usize, usize) {
    let (old, new) = (lines(old), lines(new));
    let start = old.iter().zip(&new).take_while(is_same).count();
    let (old, new) = (&old[start..], &new[start..]);
    let same = old.iter().rev().zip(new.iter().rev());
    let same = same.take_while(is_same).count();
    (start, start + old.len() - same, start + new.len() - same)
}

/// Replaces the lines that differ, with the line end of the old text.
fn merged(old: &str, new: &str) -> String {
    let (start, end, new_end) = changed_lines(old, new);
    let line_end = line_end(old);
    let mut text = lines(old)[..start].concat();
    let between = &lines(new)[start..new_end];
    if !between.is_empty() && !text.is_empty() && !text.ends_with('\n') {
        text.push_str(line_end);
    }
    for line in between {
        text.push_str(bare(line));
        text.push_str(line_end);
    }
    text.push_str(&lines(old)[end..].concat());
    text
}
