//! One spelling for equal JSON values.

use alloc::string::String;
use alloc::vec::Vec;

use mcpact_wire::raw::{JsonKind, Object, elements};
use mcpact_wire::scan::{push_quoted, text};

/// The one spelling of a JSON value, for digests.
#[must_use]
pub fn canonical(raw: &str) -> String {
    let mut out = String::with_capacity(raw.len());
    push(&mut out, raw);
    out
}

/// Appends the value with sorted members, plain escapes and no white space. Numbers keep their
/// digits; what is not JSON is kept as it is.
pub(super) fn push(out: &mut String, raw: &str) {
    match JsonKind::of(raw) {
        JsonKind::Object => push_object(out, raw),
        JsonKind::Array => push_array(out, raw),
        JsonKind::String => match text(raw) {
            Some(text) if is_exact(&text) => push_quoted(out, &text),
            Some(_) | None => out.push_str(raw),
        },
        JsonKind::Number | JsonKind::Boolean | JsonKind::Null => out.push_str(raw.trim()),
    }
}

fn push_object(out: &mut String, raw: &str) {
    let Ok(object) = Object::parse(raw) else {
        return out.push_str(raw);
    };
    if !object.iter().all(|(key, _)| is_exact(key)) {
        return out.push_str(raw);
    }
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

/// Half of a surrogate pair is read as a replacement character: two that differ would look alike.
fn is_exact(text: &str) -> bool {
    !text.contains(char::REPLACEMENT_CHARACTER)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spelled(raw: &str) -> String {
        let mut out = String::new();
        push(&mut out, raw);
        out
    }

    #[test]
    fn equal_values_have_one_spelling_and_others_another() {
        let plain = r#"{"a":[1,"é",{"x":null,"y":true}],"b":{}}"#;
        let cells = [
            plain,
            r#" { "b" : { } , "a" : [ 1 , "\u00e9" , { "y" : true , "x" : null } ] } "#,
            r#"{"\u0062":{},"a":[1,"é",{"x":null,"y":true}]}"#,
        ];
        for raw in cells {
            assert_eq!(spelled(raw), plain, "{raw}");
        }
        let different = [
            "1",
            "1.0",
            r#""1""#,
            r#""\ud800""#,
            r#""\ud801""#,
            r#"{"\ud800":1}"#,
            r#"{"\ud801":1}"#,
            "[1,2]",
            "[2,1]",
            "[[1],2]",
        ];
        for (at, one) in different.iter().enumerate() {
            for other in &different[at + 1..] {
                assert_ne!(spelled(one), spelled(other), "{one} and {other}");
            }
        }
    }
}
