//! Search over tool definitions: BM25 over name, title, description and arguments. Pure.

use std::collections::HashMap;

use mcpact_wire::raw::{Object, elements};
use mcpact_wire::scan::text;

/// Saturation of repeated terms.
const K1: f32 = 1.2;

/// Influence of the length of a definition, which says little about a tool.
const B: f32 = 0.4;

/// Maximum number of characters of a description in a search result.
const SUMMARY: usize = 200;

/// Index of the tools of a list.
#[derive(Debug, Default)]
pub(crate) struct ToolIndex {
    /// Positions of the tools with a term, and its number of occurrences.
    postings: HashMap<String, Vec<(usize, f32)>>,
    /// Number of terms of each tool.
    lengths: Vec<f32>,
}

impl ToolIndex {
    /// Indexes raw tool definitions.
    pub(crate) fn of<'a>(tools: impl IntoIterator<Item = &'a str>) -> Self {
        let mut index = Self::default();
        for (at, tool) in tools.into_iter().enumerate() {
            let terms = terms(&searchable(&Object::parse(tool).unwrap_or_default()));
            index.lengths.push(terms.len() as f32);
            let mut counts: HashMap<String, f32> = HashMap::new();
            for term in terms {
                *counts.entry(term).or_default() += 1.0;
            }
            for (term, count) in counts {
                index.postings.entry(term).or_default().push((at, count));
            }
        }
        index
    }

    /// Returns the positions of the best matches, the best first; of equal ones the first listed.
    pub(crate) fn search(&self, query: &str, limit: usize) -> Vec<usize> {
        let count = self.lengths.len() as f32;
        let average = self.lengths.iter().sum::<f32>() / count.max(1.0);
        let mut terms = terms(query);
        terms.sort_unstable();
        terms.dedup();
        let mut scores: HashMap<usize, f32> = HashMap::new();
        for found in terms.iter().filter_map(|term| self.postings.get(term)) {
            let having = found.len() as f32;
            let rarity = (1.0 + (count - having + 0.5) / (having + 0.5)).ln();
            for (at, often) in found {
                let length = self.lengths.get(*at).copied().unwrap_or_default();
                let norm = K1 * (1.0 - B + B * length / average.max(1.0));
                *scores.entry(*at).or_default() += rarity * often * (K1 + 1.0) / (often + norm);
            }
        }
        let mut found: Vec<(usize, f32)> = scores.into_iter().collect();
        found.sort_by(|(at, score), (other, than)| than.total_cmp(score).then(at.cmp(other)));
        found.into_iter().take(limit).map(|(at, _)| at).collect()
    }
}

/// Returns the searchable text of a definition.
fn searchable(tool: &Object<'_>) -> String {
    let arguments = arguments(tool);
    let keys = ["name", "title", "description"].into_iter();
    let mut parts: Vec<_> = keys.filter_map(|key| tool.get_str(key)).collect();
    for (name, schema) in arguments.iter() {
        let schema = Object::parse(schema).unwrap_or_default();
        parts.push(name.into());
        parts.extend(schema.get_str("description"));
    }
    parts.join(" ")
}

fn arguments<'a>(tool: &Object<'a>) -> Object<'a> {
    let schema = tool.get("inputSchema").map(Object::parse);
    let schema = schema.and_then(Result::ok).unwrap_or_default();
    let properties = schema.get("properties").map(Object::parse);
    properties.and_then(Result::ok).unwrap_or_default()
}

/// Splits a text into words at punctuation and `camelCase`, in lower case and without plural endings.
fn terms(text: &str) -> Vec<String> {
    let mut terms = vec![String::new()];
    let mut after_lower = false;
    for c in text.chars() {
        let is_start = after_lower && c.is_uppercase();
        after_lower = c.is_lowercase() || c.is_ascii_digit();
        if is_start || !c.is_alphanumeric() {
            terms.push(String::new());
        }
        if let Some(term) = terms.last_mut().filter(|_| c.is_alphanumeric()) {
            term.extend(c.to_lowercase());
        }
    }
    terms.retain(|term| !term.is_empty() && !STOP_WORDS.contains(&term.as_str()));
    terms.iter_mut().for_each(singular);
    terms
}

/// Words of questions that say nothing about a tool.
const STOP_WORDS: [&str; 24] = [
    "a", "an", "and", "are", "as", "at", "be", "by", "do", "for", "from", "how", "i", "in", "is",
    "it", "my", "of", "on", "or", "the", "this", "to", "with",
];

/// Removes the ending of an English plural.
fn singular(term: &mut String) {
    let ends = |endings: &[&str]| endings.iter().any(|end| term.ends_with(end));
    if term.len() < 4 || !ends(&["s"]) || ends(&["ss", "us", "is"]) {
        return;
    }
    term.pop();
    if term.ends_with("ie") {
        term.truncate(term.len() - 2);
        term.push('y');
    } else if ["sse", "xe", "che", "she"]
        .iter()
        .any(|end| term.ends_with(end))
    {
        term.pop();
    }
}

/// Returns one line about a tool: name, arguments (`?` marks the optional ones) and the start of the description.
pub(crate) fn summary(tool: &str) -> String {
    let tool = Object::parse(tool).unwrap_or_default();
    let schema = tool.get("inputSchema").map(Object::parse);
    let schema = schema.and_then(Result::ok).unwrap_or_default();
    let required = schema.get("required").map(elements);
    let required = required.and_then(Result::ok).unwrap_or_default();
    let required: Vec<_> = required.into_iter().filter_map(text).collect();
    let arguments = arguments(&tool);
    let arguments = arguments.iter().map(|(name, _)| {
        let is_required = required.iter().any(|required| *required == name);
        format!("{name}{}", if is_required { "" } else { "?" })
    });
    let arguments = arguments.collect::<Vec<_>>().join(", ");
    let name = tool.get_str("name").unwrap_or_default();
    let about = tool.get_str("description").unwrap_or_default();
    let about = about.split_whitespace().collect::<Vec<_>>().join(" ");
    let start: String = about.chars().take(SUMMARY).collect();
    let rest = if start.len() < about.len() { "…" } else { "" };
    format!("{name}({arguments}): {start}{rest}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOOLS: [&str; 6] = [
        r#"{"name":"files__read_text_file","description":"Read a file as text","inputSchema":{"type":"object","properties":{"path":{},"head":{}},"required":["path"]}}"#,
        r#"{"name":"files__list-directories","description":"Show the content of a folder"}"#,
        r#"{"name":"mail__sendMessage","title":"Post","inputSchema":{"properties":{"recipientAddress":{"description":"Whom to write"}}}}"#,
        r#"{"name":"db.query","description":"Run SQL queries against the boxes"}"#,
        r#"{"name":"git__status","description":"Status of the working tree; read this first"}"#,
        "not an object",
    ];

    #[test]
    fn words_are_split_lowered_and_singular() {
        let cells: [(&str, &[&str]); 7] = [
            ("read_text-file.now", &["read", "text", "file", "now"]),
            ("getHTTPStatus v2Beta", &["get", "httpstatus", "v2", "beta"]),
            ("Queries of boxes, classes", &["query", "box", "class"]),
            (
                "class status gas databases",
                &["class", "status", "gas", "database"],
            ),
            ("Größen übersetzen", &["größen", "übersetzen"]),
            ("the __ ", &[]),
            ("", &[]),
        ];
        for (text, expected) in cells {
            assert_eq!(terms(text), expected, "{text}");
        }
    }

    #[test]
    fn best_match_is_first() {
        let index = ToolIndex::of(TOOLS);
        let cells: [(&str, &[usize]); 9] = [
            ("read file", &[0, 1, 4]),
            ("directory", &[1]),
            ("messages", &[2]),
            ("recipient", &[2]),
            ("write", &[2]),
            ("POST", &[2]),
            ("a query", &[3]),
            ("status", &[4]),
            ("nothing at all", &[]),
        ];
        for (query, expected) in cells {
            assert_eq!(index.search(query, 5), expected, "{query}");
        }
        assert_eq!(index.search("read file", 1), [0]);
        assert!(ToolIndex::of([]).search("read", 5).is_empty());
    }

    #[test]
    fn summary_names_the_arguments() {
        let expected = "files__read_text_file(path, head?): Read a file as text";
        assert_eq!(summary(TOOLS[0]), expected);
        let long = format!(r#"{{"name":"x","description":"{}"}}"#, "ä ".repeat(300));
        let summary = summary(&long);
        assert!(summary.starts_with("x(): ä ä") && summary.ends_with('…'));
        assert!(summary.chars().count() < 220, "{summary}");
    }
}
