//! Edits of config files. Every byte outside the edited entry stays: comments, formatting, line ends and byte order mark.

mod json;
#[cfg(test)]
mod tests;
mod toml;

use super::problem::{Problem, Severity};
use super::source::{Source, Span};
use super::syntax::Syntax;
use super::tree::{Node, Table, Value};

/// Byte order mark.
const MARK: char = '\u{feff}';

/// Members of an entry, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entry(Vec<(String, EntryValue)>);

/// Value of a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EntryValue {
    /// String.
    Text(String),
    /// List of strings.
    Texts(Vec<String>),
    /// Table.
    Table(Entry),
}

impl From<&str> for EntryValue {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for EntryValue {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl Entry {
    /// Adds a member at the end.
    #[must_use]
    pub fn with(mut self, key: impl Into<String>, value: impl Into<EntryValue>) -> Self {
        self.0.push((key.into(), value.into()));
        self
    }

    /// Returns true if there are no members.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns true if a table has all these members. It may have others, which the user or the client added.
    fn is_in(&self, table: &Table) -> bool {
        self.0.iter().all(|(key, value)| {
            let member = table.member(key);
            member.is_some_and(|member| value.is(&member.node))
        })
    }
}

impl EntryValue {
    fn is(&self, node: &Node) -> bool {
        match (self, &node.value) {
            (Self::Text(text), Value::Text(there)) => there.value() == text,
            (Self::Texts(texts), Value::List(items)) => {
                let is_same = |(text, item): (&String, &Node)| {
                    item.text().is_some_and(|there| there.value() == text)
                };
                texts.len() == items.len() && texts.iter().zip(items).all(is_same)
            }
            (Self::Table(entry), Value::Table(table)) => {
                entry.0.len() == table.0.len() && entry.is_in(table)
            }
            _ => false,
        }
    }
}

/// Effect of an edit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryChange {
    /// The entry was there already.
    Unchanged,
    /// There was no entry of this name.
    Added,
    /// Another entry had this name.
    Replaced,
}

/// Text after an edit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edited {
    /// The whole text.
    pub text: String,
    /// Effect of the edit.
    pub change: EntryChange,
}

/// Sets an entry in the table at a path of keys; missing tables are created. The extension of the file name decides
/// between TOML and JSON with comments.
///
/// # Errors
/// The text has a syntax error, or a key of the path has another value than a table.
pub fn set_entry(
    file: &str,
    text: &str,
    path: &[&str],
    name: &str,
    entry: &Entry,
) -> Result<Edited, Problem> {
    edited(file, text, |syntax, source| match syntax {
        Syntax::Toml => toml::set(source, path, name, entry),
        _ => json::set(source, path, name, entry),
    })
}

/// Removes a table from a table of a TOML text; `None` if there is none of this name.
///
/// # Errors
/// The text has a syntax error.
pub fn remove_entry(
    file: &str,
    text: &str,
    table: &str,
    name: &str,
) -> Result<Option<String>, Problem> {
    let (mark, source) = parts(file, text);
    let rest = toml::remove(&source, table, name)?;
    Ok(rest.map(|rest| format!("{mark}{rest}")))
}

/// Names of the entries in the table at a path of keys; none if the text has no such table or cannot be parsed.
#[must_use]
pub fn entry_names(file: &str, text: &str, path: &[&str]) -> Vec<String> {
    let (_, source) = parts(file, text);
    let Ok(root) = Syntax::of(&source).parse(&source) else {
        return Vec::new();
    };
    let table = path.iter().try_fold(&root, |node, key| {
        node.table()?.member(key).map(|member| &member.node)
    });
    let members = table.and_then(Node::table).map(|table| &table.0);
    let members = members.into_iter().flatten();
    members.map(|member| member.key.clone()).collect()
}

/// Edits the text after the byte order mark.
fn edited(
    file: &str,
    text: &str,
    edit: impl FnOnce(Syntax, &Source) -> Result<Edited, Problem>,
) -> Result<Edited, Problem> {
    let (mark, source) = parts(file, text);
    let Edited { text, change } = edit(Syntax::of(&source), &source)?;
    let text = format!("{mark}{text}");
    Ok(Edited { text, change })
}

fn parts<'t>(file: &str, text: &'t str) -> (&'t str, Source) {
    let rest = text.strip_prefix(MARK).unwrap_or(text);
    let mark = &text[..text.len() - rest.len()];
    (mark, Source::new(file, rest))
}

/// Line end of a text.
fn line_end(text: &str) -> &'static str {
    match text.contains("\r\n") {
        true => "\r\n",
        false => "\n",
    }
}

fn not_a_table(span: Span, key: &str, kind: &str) -> Problem {
    let what = match key {
        "" => String::from("the config"),
        key => format!("`{key}`"),
    };
    let message = format!("{what} must be a table, not {kind}");
    Problem::new(Severity::Error, span, message, None)
}
