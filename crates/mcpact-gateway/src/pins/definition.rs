//! What a tool says about itself, in a form that can be compared.

use mcpact_wire::raw::{JsonKind, Object, elements};
use mcpact_wire::scan::text;
use sha2::{Digest as _, Sha256};

/// Nothing that a model reads is nested deeper.
const DEPTH: usize = 64;

/// What stands for everything that a tool says; the order of members does not matter.
pub(super) fn digest(tool: &str) -> String {
    let mut out = String::with_capacity(tool.len());
    canonical(tool, 0, &mut out);
    let digest = Sha256::digest(out);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn canonical(raw: &str, depth: usize, out: &mut String) {
    match JsonKind::of(raw) {
        JsonKind::Object if depth < DEPTH => {
            let object = Object::parse(raw).unwrap_or_default();
            let mut members: Vec<(&str, &str)> = object.iter().collect();
            // What a client is told besides is not about the tool.
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
        JsonKind::Array if depth < DEPTH => {
            out.push('[');
            for element in elements(raw).unwrap_or_default() {
                canonical(element, depth + 1, out);
                out.push(',');
            }
            out.push(']');
        }
        // The same text can be written in several ways.
        JsonKind::String => match text(raw) {
            Some(text) => out.push_str(&format!("{text:?}")),
            None => out.push_str(raw),
        },
        _ => out.push_str(raw),
    }
}

/// A letter that people do not see and models do, wherever it stands.
pub(super) fn hidden_letter(tool: &str) -> Option<char> {
    let is_hidden = |letter: &char| {
        matches!(
            letter,
            '\u{200b}'..='\u{200f}'
                | '\u{202a}'..='\u{202e}'
                | '\u{2066}'..='\u{2069}'
                | '\u{e0000}'..='\u{e007f}'
                | '\u{1b}'
        )
    };
    let mut plain = String::new();
    canonical_text(tool, 0, &mut plain);
    plain.chars().find(is_hidden)
}

/// All names and texts of a value, one after the other.
fn canonical_text(raw: &str, depth: usize, out: &mut String) {
    if depth > DEPTH {
        return;
    }
    match JsonKind::of(raw) {
        JsonKind::Object => {
            for (key, value) in Object::parse(raw).unwrap_or_default().iter() {
                out.push_str(key);
                canonical_text(value, depth + 1, out);
            }
        }
        JsonKind::Array => {
            for element in elements(raw).unwrap_or_default() {
                canonical_text(element, depth + 1, out);
            }
        }
        JsonKind::String => out.push_str(&text(raw).unwrap_or_default()),
        _ => {}
    }
}
