//! One spelling for equal JSON values.

use alloc::string::String;
use alloc::vec::Vec;

use mcpact_wire::raw::{JsonKind, Object, elements};
use mcpact_wire::scan::{push_quoted, text};

/// Appends the value with sorted members, plain escapes and no white space. Numbers keep their
/// digits; what is not JSON is kept as it is.
pub(super) fn push(out: &mut String, raw: &str) {
    match JsonKind::of(raw) {
        JsonKind::Object => push_object(out, raw),
        JsonKind::Array => push_array(out, raw),
        JsonKind::String => match text(raw) {
            Some(text) => push_quoted(out, &text),
            None => out.push_str(raw),
        },
        JsonKind::Number | JsonKind::Boolean | JsonKind::Null => out.push_str(raw.trim()),
    }
}

fn push_object(out: &mut String, raw: &str) {
    let Ok(object) = Object::parse(raw) else {
        return out.push_str(raw);
    };
    let mut members: Vec<_> = object.iter().collect();
    members.sort_unstable();
    out.push('{');
    for (at, (key, raw)) in members.into_iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        push_quoted(out, key);
        out.push(':');
        push(out, raw);
    }
    out.push('}');
}

fn push_array(out: &mut String, raw: &str) {
    let Ok(elements) = elements(raw) else {
        return out.push_str(raw);
    };
    out.push('[');
    for (at, raw) in elements.into_iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        push(out, raw);
    }
    out.push(']');
}
