//! Comparable form of a tool definition.

use mcpact_wire::raw::{JsonKind, Object, elements, visit};
use mcpact_wire::scan::text;
use sha2::{Digest as _, Sha256};

use crate::target::hex;

/// Maximum nesting that is compared.
const MAX_DEPTH: usize = 64;

/// Returns the digest of a tool definition. The order of members does not matter.
pub(super) fn digest(tool: &str) -> String {
    let mut out = String::with_capacity(tool.len());
    canonical(tool, 0, &mut out);
    hex(&Sha256::digest(out))
}

fn canonical(raw: &str, depth: usize, out: &mut String) {
    match JsonKind::of(raw) {
        JsonKind::Object if depth < MAX_DEPTH => {
            // With a duplicate key, every byte counts: readers disagree about what the object means.
            let Ok(object) = Object::parse(raw) else {
                return out.push_str(raw);
            };
            let mut members: Vec<(&str, &str)> = object.iter().collect();
            // `_meta` is not part of the definition.
            members.retain(|(key, _)| depth > 0 || *key != "_meta");
            members.sort_unstable();
            out.push('{');
            for (key, value) in members {
                out.push_str(&format!("{key:?}:"));
                canonical(value, depth + 1, out);
                out.push(',');
            }
            out.push('}');
        }
        JsonKind::Array if depth < MAX_DEPTH => {
            out.push('[');
            for element in elements(raw).unwrap_or_default() {
                canonical(element, depth + 1, out);
                out.push(',');
            }
            out.push(']');
        }
        // The same string can be escaped in several ways.
        JsonKind::String => match text(raw) {
            Some(text) => out.push_str(&format!("{text:?}")),
            None => out.push_str(raw),
        },
        _ => out.push_str(raw),
    }
}

/// Returns the first character that users do not see but models read.
pub(super) fn invisible_char(tool: &str) -> Option<char> {
    let is_invisible = |char: &char| {
        matches!(
            char,
            '\u{200b}'..='\u{200f}'
                | '\u{202a}'..='\u{202e}'
                | '\u{2066}'..='\u{2069}'
                | '\u{e0000}'..='\u{e007f}'
                | '\u{1b}'
        )
    };
    let mut texts = String::new();
    collect_texts(tool, 0, &mut texts);
    texts.chars().find(is_invisible)
}

/// Appends all keys and strings of a value.
fn collect_texts(raw: &str, depth: usize, out: &mut String) {
    if depth > MAX_DEPTH {
        return;
    }
    match JsonKind::of(raw) {
        JsonKind::Object => {
            // Also of duplicate keys.
            let _ = visit(raw, |key, value| {
                out.push_str(&key);
                collect_texts(value, depth + 1, out);
            });
        }
        JsonKind::Array => {
            for element in elements(raw).unwrap_or_default() {
                collect_texts(element, depth + 1, out);
            }
        }
        JsonKind::String => out.push_str(&text(raw).unwrap_or_default()),
        _ => {}
    }
}
