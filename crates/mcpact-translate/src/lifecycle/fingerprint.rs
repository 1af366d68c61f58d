use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use mcpact_engine::capability::CapabilitySet;
use mcpact_spec::{Capability, Side};
use mcpact_wire::raw::{JsonKind, Object, elements};
use mcpact_wire::scan::{push_quoted, text};

use super::capabilities::opaque_keys;

/// Canonical form of the client capabilities that can change the behaviour of a server.
///
/// Two clients with the same fingerprint may be declared to a server in the same words; whether
/// they may share a session is another question.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint(Box<str>);

impl Fingerprint {
    /// The fingerprint of a declaration: its rows with what they imply, its extensions, and the keys
    /// that no table knows.
    #[must_use]
    pub fn of(client: &CapabilitySet) -> Self {
        // What an empty `elicitation` implies is spelled out.
        let rows = client.declared().expanded();
        let rows = rows.iter().filter(|row| {
            row.owner() == Side::Client
                && !matches!(
                    row,
                    Capability::ClientExperimental | Capability::ClientExtensions
                )
        });
        let mut out = String::new();
        for row in rows {
            separate(&mut out);
            out.push_str(row.path());
        }
        let document = Object::parse(client.raw()).unwrap_or_default();
        let opaque: Vec<_> = opaque_keys(client, &document).collect();
        for (mark, mut settings) in [("", client.extensions().collect()), ("other ", opaque)] {
            settings.sort_unstable();
            for (id, raw) in settings {
                separate(&mut out);
                out.push_str(mark);
                push_quoted(&mut out, id);
                out.push('=');
                push(&mut out, raw);
            }
        }
        Self(out.into_boxed_str())
    }

    /// Returns whether nothing is declared.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

fn separate(out: &mut String) {
    if !out.is_empty() {
        out.push(' ');
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str("nothing");
        }
        f.write_str(&self.0)
    }
}

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
    use mcpact_engine::policy::Reading;

    fn of(raw: &str) -> Fingerprint {
        Fingerprint::of(&CapabilitySet::parse(Side::Client, Some(raw), Reading::Lenient).unwrap())
    }

    #[test]
    fn equal_declarations_have_one_fingerprint() {
        let cells = [
            (r#"{"elicitation":{}}"#, r#"{"elicitation":{"form":{}}}"#),
            (
                r#"{"roots":{},"sampling":{"tools":{}}}"#,
                r#"{ "sampling" : { "tools": {} }, "roots": { } }"#,
            ),
            (
                r#"{"extensions":{"a/b":{"x":1,"y":["\u0061"]},"c/d":{}}}"#,
                r#"{"extensions":{"c/d":{},"a/b":{"y":["a"], "x":1}}}"#,
            ),
            (
                r#"{"experimental":{"x":{},"y":{}},"vendor":{}}"#,
                r#"{"vendor":{},"experimental":{"y":{},"x":{}}}"#,
            ),
        ];
        for (one, other) in cells {
            assert_eq!(of(one), of(other), "{one}");
        }
    }

    #[test]
    fn what_changes_a_server_changes_the_fingerprint() {
        let all = [
            "{}",
            r#"{"roots":{}}"#,
            r#"{"roots":{"listChanged":true}}"#,
            r#"{"sampling":{}}"#,
            r#"{"sampling":{"tools":{}}}"#,
            r#"{"elicitation":{}}"#,
            r#"{"elicitation":{"url":{}}}"#,
            r#"{"elicitation":{"form":{},"url":{}}}"#,
            r#"{"extensions":{"a/b":{}}}"#,
            r#"{"extensions":{"a/b":{"x":1}}}"#,
            r#"{"a/b":{"x":1}}"#,
            r#"{"experimental":{"x":{}}}"#,
        ];
        for (at, one) in all.iter().enumerate() {
            for other in &all[at + 1..] {
                assert_ne!(of(one), of(other), "{one} and {other}");
            }
        }
    }

    #[test]
    fn people_can_read_it() {
        assert_eq!(alloc::format!("{}", of("{}")), "nothing");
        let text = alloc::format!("{}", of(r#"{"elicitation":{},"extensions":{"a/b":{}}}"#));
        assert_eq!(text, r#"elicitation elicitation.form "a/b"={}"#);
    }
}

#[cfg(test)]
mod canonical_tests {
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
