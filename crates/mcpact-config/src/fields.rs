//! Typed access to the keys of a table. Problems are collected and replaced by the default, so that one pass finds all
//! of them.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::time::Duration;

use mcpact_spec::{Capability, Side};

use super::foreign::key_mapping::native;
use super::keys::{self, Key, Kind};
use super::problem::Findings;
use super::secret::ExpandedText;
use super::source::Span;
use super::tree::{Member, Node, Table, Value};
use crate::nearest::nearest;

/// A table of the config and its valid keys.
pub(super) struct Fields<'t, 'f> {
    table: &'t Table,
    keys: &'static [Key],
    pub(super) findings: &'f mut Findings,
}

/// A string with its position.
pub(super) struct Text<'t> {
    pub(super) filled: &'t ExpandedText,
    pub(super) span: Span,
}

impl<'t> Text<'t> {
    pub(super) fn value(&self) -> &'t str {
        self.filled.value()
    }
}

impl<'t, 'f> Fields<'t, 'f> {
    /// Wraps a table and reports unknown keys. `what` names the table in messages.
    pub(super) fn new(
        table: &'t Table,
        keys: &'static [Key],
        what: &str,
        findings: &'f mut Findings,
    ) -> Self {
        for member in &table.0 {
            if keys::find(keys, &member.key).is_none() {
                unknown(member, keys, what, findings);
            } else if member.node.value == Value::Null {
                empty(member, what, findings);
            }
        }
        Self {
            table,
            keys,
            findings,
        }
    }

    /// Member with this key, unless it is null.
    pub(super) fn member(&self, name: &str) -> Option<&'t Member> {
        debug_assert!(keys::find(self.keys, name).is_some(), "`{name}` is no key");
        let member = self.table.member(name)?;
        (member.node.value != Value::Null).then_some(member)
    }

    fn kind(&self, name: &str) -> Option<Kind> {
        keys::find(self.keys, name).map(|key| key.kind)
    }

    /// Key as written in the file.
    fn written<'n>(&self, name: &'n str) -> &'n str
    where
        't: 'n,
    {
        self.table.member(name).map_or(name, Member::written)
    }

    fn mismatch(&mut self, name: &str, node: &Node, wanted: &str) {
        let name = self.written(name);
        let message = format!("`{name}` must be {wanted}, not {}", node.kind());
        self.findings.error(node.span, message);
    }

    /// Reports an invalid string.
    pub(super) fn reject(&mut self, text: &Text<'_>, fault: &str, remedy: &str) {
        let message = format!("`{}` {fault}", text.filled);
        self.findings.error(text.span, message).remedy(remedy);
    }

    /// Reports a problem at the value of a key, if it is set.
    pub(super) fn reject_key(&mut self, name: &str, message: impl Into<String>, remedy: &str) {
        if let Some(member) = self.member(name) {
            let span = member.node.span;
            self.findings.error(span, message).remedy(remedy);
        }
    }

    /// Optional string.
    pub(super) fn text(&mut self, name: &str) -> Option<Text<'t>> {
        let node = &self.member(name)?.node;
        let Some(filled) = node.text() else {
            self.mismatch(name, node, "a string");
            return None;
        };
        if filled.value().is_empty() {
            let name = self.written(name);
            let problem = self.findings.error(node.span, format!("`{name}` is empty"));
            problem.remedy("set a value or remove the key");
            return None;
        }
        let span = node.span;
        Some(self.checked(name, Text { filled, span }))
    }

    /// Reports NUL characters.
    fn checked(&mut self, name: &str, text: Text<'t>) -> Text<'t> {
        if text.value().contains('\0') {
            let name = self.written(name);
            let message = format!("`{name}` contains a NUL character");
            let problem = self.findings.error(text.span, message);
            problem.remedy("remove it: programs and servers cannot receive it");
        }
        text
    }

    /// String with a default.
    pub(super) fn text_or_default(&mut self, name: &str) -> String {
        match (self.text(name), self.kind(name)) {
            (Some(text), _) => text.value().to_owned(),
            (None, Some(Kind::Text(Some(default)))) => default.to_owned(),
            (None, _) => String::new(),
        }
    }

    /// List of strings.
    pub(super) fn texts(&mut self, name: &str) -> Vec<Text<'t>> {
        match self.member(name) {
            Some(member) => self.list(name, &member.node),
            None => Vec::new(),
        }
    }

    fn list(&mut self, name: &str, node: &'t Node) -> Vec<Text<'t>> {
        let Value::List(items) = &node.value else {
            self.mismatch(name, node, "a list of strings");
            return Vec::new();
        };
        let mut texts = Vec::new();
        for item in items {
            match item.text() {
                Some(filled) => {
                    let span = item.span;
                    texts.push(self.checked(name, Text { filled, span }));
                }
                None => {
                    let name = self.written(name);
                    let message = format!(
                        "`{name}` must be a list of strings, but contains {}",
                        item.kind()
                    );
                    self.findings
                        .error(item.span, message)
                        .remedy("put it in quotes");
                }
            }
        }
        texts
    }

    /// List of users, as names or ids.
    pub(super) fn users(&mut self, name: &str) -> Vec<(String, Span)> {
        let Some(member) = self.member(name) else {
            return Vec::new();
        };
        let Value::List(items) = &member.node.value else {
            self.mismatch(name, &member.node, "a list of user names and ids");
            return Vec::new();
        };
        let mut users = Vec::new();
        for item in items {
            match (item.text(), whole(item)) {
                (Some(text), _) => users.push((text.value().to_owned(), item.span)),
                (None, Some(id)) => users.push((id.to_string(), item.span)),
                (None, None) => {
                    let kind = item.kind();
                    let message = format!(
                        "`{name}` must be a list of user names and ids, but contains {kind}"
                    );
                    self.findings.error(item.span, message);
                }
            }
        }
        users
    }

    /// List of strings without positions.
    pub(super) fn words(&mut self, name: &str) -> Vec<String> {
        let texts = self.texts(name).into_iter();
        texts.map(|text| text.value().to_owned()).collect()
    }

    /// List of strings; `problem` returns the hint for an invalid one.
    pub(super) fn checked_words(
        &mut self,
        name: &str,
        fault: &str,
        problem: impl Fn(&str) -> Option<&'static str>,
    ) -> Vec<String> {
        let texts = self.texts(name);
        for text in &texts {
            if let Some(remedy) = problem(text.value()) {
                self.reject(text, fault, remedy);
            }
        }
        texts.iter().map(|text| text.value().to_owned()).collect()
    }

    /// List of capabilities of one side.
    pub(super) fn capabilities(&mut self, name: &str, owner: Side) -> Vec<String> {
        let texts = self.texts(name);
        self.declarable(&texts, owner)
    }

    /// Table of lists of client capabilities.
    pub(super) fn capability_table(&mut self, name: &str) -> Vec<(String, Vec<Capability>)> {
        let Some(table) = self.table(name) else {
            return Vec::new();
        };
        let mut rows = Vec::new();
        for Member { key, node, .. } in &table.0 {
            let texts = self.list(&format!("{name}.{key}"), node);
            let paths = self.declarable(&texts, Side::Client);
            let known = paths.iter();
            let known = known.filter_map(|path| Capability::parse(Side::Client, path));
            rows.push((key.clone(), known.collect()));
        }
        rows
    }

    fn declarable(&mut self, texts: &[Text<'t>], owner: Side) -> Vec<String> {
        let known: Vec<&str> = Capability::of(owner).map(Capability::path).collect();
        for text in texts {
            let given = text.value();
            let is_open = given.starts_with("experimental.") || given.starts_with("extensions.");
            if !is_open && !known.contains(&given) {
                let message = format!("unknown {owner} capability `{}`", text.filled);
                self.findings
                    .error_with(text.span, message, one_of(given, &known));
            }
        }
        texts.iter().map(|text| text.value().to_owned()).collect()
    }

    /// Table of strings.
    pub(super) fn text_table(&mut self, name: &str) -> BTreeMap<&'t str, Text<'t>> {
        let Some(member) = self.member(name) else {
            return BTreeMap::new();
        };
        let Value::Table(table) = &member.node.value else {
            self.mismatch(name, &member.node, "a table of strings");
            return BTreeMap::new();
        };
        let mut texts = BTreeMap::new();
        for Member {
            key,
            key_span,
            node,
            ..
        } in &table.0
        {
            match node.text() {
                Some(filled) => {
                    // The values may be secrets, so problems are shown at their keys.
                    let span = *key_span;
                    let text = self.checked(&format!("{name}.{key}"), Text { filled, span });
                    texts.insert(key.as_str(), text);
                }
                None => {
                    let name = self.written(name);
                    let message = format!("`{name}.{key}` must be a string, not {}", node.kind());
                    let remedy = match node.value {
                        Value::List(_) | Value::Table(_) => "write one string",
                        _ => "put it in quotes",
                    };
                    self.findings.error_with(node.span, message, remedy);
                }
            }
        }
        texts
    }

    /// Boolean.
    pub(super) fn flag(&mut self, name: &str) -> bool {
        if let Some(member) = self.member(name) {
            if let Value::Flag(flag) = member.node.value {
                return flag;
            }
            self.mismatch(name, &member.node, "true or false");
        }
        matches!(self.kind(name), Some(Kind::Flag(true)))
    }

    /// Integer within its limits.
    pub(super) fn count(&mut self, name: &str) -> u32 {
        match self.kind(name) {
            Some(Kind::Count(limits, default)) => {
                self.number(name, whole, "an integer", limits, default)
            }
            _ => 0,
        }
    }

    /// List of integers within their limits.
    pub(super) fn counts(&mut self, name: &str) -> Vec<u32> {
        let (Some(member), Some(Kind::Counts([least, most]))) =
            (self.member(name), self.kind(name))
        else {
            return Vec::new();
        };
        let Value::List(items) = &member.node.value else {
            self.mismatch(name, &member.node, "a list of integers");
            return Vec::new();
        };
        let mut counts = Vec::new();
        for item in items {
            match whole(item).filter(|given| (least..=most).contains(given)) {
                Some(given) => counts.push(given),
                None => {
                    let name = self.written(name);
                    let message = format!("`{name}` must contain integers from {least} to {most}");
                    self.findings.error(item.span, message);
                }
            }
        }
        counts
    }

    /// Duration within its limits.
    pub(super) fn seconds(&mut self, name: &str) -> Duration {
        let seconds = match self.kind(name) {
            Some(Kind::Seconds(limits, default)) => {
                self.number(name, seconds, "a number of seconds", limits, default)
            }
            _ => 0.0,
        };
        Duration::try_from_secs_f64(seconds).unwrap_or_default()
    }

    fn number<T: Copy + PartialOrd + Display>(
        &mut self,
        name: &str,
        parse: fn(&Node) -> Option<T>,
        wanted: &str,
        [least, most]: [T; 2],
        default: T,
    ) -> T {
        let Some(member) = self.member(name) else {
            return default;
        };
        let parsed = match &member.node.value {
            // Some clients allow variables in numbers.
            Value::Text(text) if member.theirs.is_some() && text.has_variables() => {
                parse(&Node::new(member.node.span, number_in(text.value())))
            }
            _ => parse(&member.node),
        };
        match parsed {
            Some(given) if (least..=most).contains(&given) => given,
            Some(_) | None => {
                let name = self.written(name);
                let message = format!("`{name}` must be {wanted} from {least} to {most}");
                let problem = self.findings.error(member.node.span, message);
                problem.remedy(format!("the default is {default}"));
                default
            }
        }
    }

    /// One of the possible values.
    pub(super) fn choice(&mut self, name: &str) -> &'static str {
        let Some(Kind::Choice(of, default)) = self.kind(name) else {
            return "";
        };
        match self.text(name) {
            None => default,
            Some(text) => self.one_of(name, &text, of).unwrap_or(default),
        }
    }

    /// List of possible values.
    pub(super) fn choices(&mut self, name: &str) -> Vec<&'static str> {
        let Some(Kind::Choices(of)) = self.kind(name) else {
            return Vec::new();
        };
        let texts = self.texts(name);
        let known = texts.iter().filter_map(|text| self.one_of(name, text, of));
        known.collect()
    }

    /// Matches a string against the possible values.
    pub(super) fn one_of(
        &mut self,
        name: &str,
        text: &Text<'_>,
        of: &'static [&'static str],
    ) -> Option<&'static str> {
        let given = text.value();
        let known = of.iter().copied().find(|word| *word == given);
        if known.is_none() {
            let name = self.written(name);
            let message = format!("unknown value `{}` for `{name}`", text.filled);
            self.findings
                .error_with(text.span, message, one_of(given, of));
        }
        known
    }

    /// Nested table.
    pub(super) fn table(&mut self, name: &str) -> Option<&'t Table> {
        let member = self.member(name)?;
        match member.node.table() {
            Some(table) => Some(table),
            None => {
                self.mismatch(name, &member.node, "a table");
                None
            }
        }
    }
}

/// Number in the value of a variable; null if there is none.
pub(super) fn number_in(text: &str) -> Value {
    let text = text.trim();
    let whole = text.parse().map(Value::Whole);
    whole
        .or_else(|_| text.parse().map(Value::Fraction))
        .unwrap_or(Value::Null)
}

/// Integer; `5.0` is one as well, as in JSON Schema.
fn whole(node: &Node) -> Option<u32> {
    match node.value {
        Value::Whole(given) => u32::try_from(given).ok(),
        Value::Fraction(given) if given.fract() == 0.0 => given.to_string().parse().ok(),
        _ => None,
    }
}

fn seconds(node: &Node) -> Option<f64> {
    match node.value {
        Value::Whole(given) => u32::try_from(given).ok().map(f64::from),
        Value::Fraction(given) => Some(given),
        _ => None,
    }
}

fn unknown(member: &Member, keys: &'static [Key], what: &str, findings: &mut Findings) {
    let names: Vec<&str> = keys.iter().map(|key| key.name).collect();
    let message = format!("unknown key `{}` in {what}", member.key);
    let problem = findings.error(member.key_span, message);
    let meant = native(&member.key).filter(|native| names.contains(native));
    problem.remedy(match meant.or_else(|| nearest(&member.key, &names)) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("known keys: {}", quoted(&names)),
    });
}

/// Reports a null value. In native configs it is an error, because `allow = null` must not allow every program; keys of
/// other clients are ignored, as there.
fn empty(member: &Member, what: &str, findings: &mut Findings) {
    if member.theirs.is_some() {
        let subject = format!("`{}`", member.written());
        return warn_of_null(&subject, member.key_span, what, findings);
    }
    let message = format!("`{}` has no value in {what}", member.key);
    findings.error_with(member.key_span, message, "set a value or remove the key");
}

/// Warns of a null value.
fn warn_of_null(subject: &str, at: Span, what: &str, findings: &mut Findings) {
    let message = format!("{subject} has no value in {what} and is ignored");
    findings.warning_with(at, message, "set a value or remove the key");
}

/// Warns of all null values in a table, also inside of used keys.
pub(super) fn warn_of_nulls(
    table: &Table,
    is_used: impl Fn(&str) -> bool,
    what: &str,
    findings: &mut Findings,
) {
    for member in &table.0 {
        if member.node.value == Value::Null || is_used(&member.key) {
            warn_of_nulls_in(&member.key, member, what, findings);
        }
    }
}

fn warn_of_nulls_in(path: &str, member: &Member, what: &str, findings: &mut Findings) {
    match &member.node.value {
        Value::Null => warn_of_null(&format!("`{path}`"), member.key_span, what, findings),
        Value::List(items) => {
            for item in items.iter().filter(|item| item.value == Value::Null) {
                warn_of_null(&format!("an item of `{path}`"), item.span, what, findings);
            }
        }
        Value::Table(table) => {
            for inner in &table.0 {
                warn_of_nulls_in(&format!("{path}.{}", inner.key), inner, what, findings);
            }
        }
        _ => {}
    }
}

/// Hint with the nearest possible value, or all of them.
pub(super) fn one_of(given: &str, all: &[&str]) -> String {
    match nearest(given, all) {
        Some(near) => format!("did you mean `{near}`? possible values: {}", quoted(all)),
        None => format!("possible values: {}", quoted(all)),
    }
}

fn quoted(words: &[&str]) -> String {
    let words: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
    words.join(", ")
}
