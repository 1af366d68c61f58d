//! Raw JSON values that are looked into, and edited, without a tree.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;

use crate::scan::{Cursor, ScanError, ScanFault, push_quoted, text};

/// Kind of a raw JSON value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum JsonKind {
    /// `{…}`
    Object,
    /// `[…]`
    Array,
    /// `"…"`
    String,
    /// A number.
    Number,
    /// `true` or `false`.
    Boolean,
    /// `null`
    Null,
}

impl JsonKind {
    /// The kind of a well-formed value, told by its first byte.
    #[must_use]
    pub fn of(raw: &str) -> Self {
        match raw.trim_start().bytes().next() {
            Some(b'{') => Self::Object,
            Some(b'[') => Self::Array,
            Some(b'"') => Self::String,
            Some(b't' | b'f') => Self::Boolean,
            Some(b'-' | b'0'..=b'9') => Self::Number,
            _ => Self::Null,
        }
    }

    /// The word that JSON Schema uses.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Object => "object",
            Self::Array => "array",
            Self::String => "string",
            Self::Number => "number",
            Self::Boolean => "boolean",
            Self::Null => "null",
        }
    }
}

impl core::fmt::Display for JsonKind {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Up to this many members are compared each with each, which needs no memory.
const FEW: usize = 8;

/// Returns whether a name stands twice among the members.
fn has_twins(members: &[(Cow<'_, str>, &str)]) -> bool {
    if members.len() <= FEW {
        let mut rest = members.iter();
        return core::iter::from_fn(|| rest.next().map(|(key, _)| (key, rest.as_slice())))
            .any(|(key, rest)| rest.iter().any(|(other, _)| other == key));
    }
    let mut keys: Vec<&str> = members.iter().map(|(key, _)| key.as_ref()).collect();
    keys.sort_unstable();
    keys.windows(2).any(|pair| pair[0] == pair[1])
}

/// The members of a JSON object in their order, values raw.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Object<'a> {
    members: Vec<(Cow<'a, str>, &'a str)>,
}

impl<'a> Object<'a> {
    /// Splits an object into its members.
    ///
    /// # Errors
    /// The text is not one well-formed object, or it has the same member twice.
    pub fn parse(raw: &'a str) -> Result<Self, ScanError> {
        let mut cursor = Cursor::new(raw);
        let object = Self::read(&mut cursor, 0)?;
        cursor.end()?;
        Ok(object)
    }

    /// Splits the object at the cursor, which is at this depth.
    fn read(cursor: &mut Cursor<'a>, depth: u32) -> Result<Self, ScanError> {
        let mut members: Vec<(Cow<'a, str>, &'a str)> = Vec::new();
        cursor.members(depth, |cursor, key| {
            members.push((key, cursor.value(depth + 1)?));
            Ok(())
        })?;
        if has_twins(&members) {
            return cursor.fail(ScanFault::DuplicateMember);
        }
        Ok(Self { members })
    }

    /// The raw value of a member.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&'a str> {
        self.members.iter().find(|(k, _)| k == key).map(|(_, v)| *v)
    }

    /// The raw value of a member, where `null` counts as absent.
    #[must_use]
    pub fn get_present(&self, key: &str) -> Option<&'a str> {
        self.get(key).filter(|v| JsonKind::of(v) != JsonKind::Null)
    }

    /// The text of a member that is a string.
    #[must_use]
    pub fn get_str(&self, key: &str) -> Option<Cow<'a, str>> {
        self.get(key).and_then(text)
    }

    /// About how many bytes its members need when they are written again.
    #[must_use]
    pub fn room(&self) -> usize {
        let each = self.members.iter().map(|(key, raw)| key.len() + raw.len());
        each.map(|length| length + r#","":"#.len()).sum()
    }

    /// The start of a new object with those members that are kept.
    #[must_use]
    pub fn keep(&self, is_kept: impl Fn(&str) -> bool) -> ObjectWriter {
        ObjectWriter::new().members(self.iter().filter(|(key, _)| is_kept(key)))
    }

    /// The members in their order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &'a str)> {
        self.members.iter().map(|(k, v)| (k.as_ref(), *v))
    }

    /// Number of members.
    #[must_use]
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Returns whether there are no members.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }
}

/// Visits the members of an object without collecting them.
///
/// # Errors
/// The text is not one well-formed object.
pub fn visit<'a>(
    raw: &'a str,
    mut each: impl FnMut(Cow<'a, str>, &'a str),
) -> Result<(), ScanError> {
    let mut cursor = Cursor::new(raw);
    cursor.skip_space();
    cursor.members(0, |cursor, key| {
        each(key, cursor.value(1)?);
        Ok(())
    })?;
    cursor.end()
}

/// The raw value of a member of an object that is known to be well-formed; what stands behind it is not
/// looked at.
#[must_use]
pub fn member<'a>(raw: &'a str, key: &str) -> Option<&'a str> {
    let mut found = None;
    let mut cursor = Cursor::new(raw);
    // Finding it ends the walk with an error that is not reported.
    let _ = cursor.members(0, |cursor, name| {
        let value = cursor.value(1)?;
        if name == key {
            found = Some(value);
            return cursor.fail(ScanFault::Trailing);
        }
        Ok(())
    });
    found
}

/// The elements of a raw array.
///
/// # Errors
/// The text is not one well-formed array.
pub fn elements(raw: &str) -> Result<Vec<&str>, ScanError> {
    let mut found = Vec::new();
    let mut cursor = Cursor::new(raw);
    cursor.skip_space();
    cursor.elements(|cursor| {
        found.push(cursor.value(1)?);
        Ok(())
    })?;
    cursor.end()?;
    Ok(found)
}

/// The elements of a raw array, and the members of those that are objects.
///
/// # Errors
/// The text is not one well-formed array, or an object in it has the same member twice.
pub fn objects(raw: &str) -> Result<Vec<(&str, Option<Object<'_>>)>, ScanError> {
    let mut all = Vec::new();
    let mut cursor = Cursor::new(raw);
    cursor.elements(|cursor| {
        if cursor.next_byte()? == b'{' {
            let start = cursor.at();
            let object = Object::read(cursor, 1)?;
            all.push((cursor.since(start), Some(object)));
        } else {
            all.push((cursor.value(1)?, None));
        }
        Ok(())
    })?;
    cursor.end()?;
    Ok(all)
}

/// Writes an object member by member.
#[derive(Clone, Debug)]
pub struct ObjectWriter {
    out: String,
}

impl Default for ObjectWriter {
    fn default() -> Self {
        Self::new()
    }
}

impl ObjectWriter {
    /// An object without members yet.
    #[must_use]
    pub fn new() -> Self {
        Self::with_room(64)
    }

    /// The same for members that need about so many bytes.
    #[must_use]
    pub fn with_room(bytes: usize) -> Self {
        let mut out = String::with_capacity(bytes + 2);
        out.push('{');
        Self { out }
    }

    fn key(&mut self, key: &str) {
        if self.out.len() > 1 {
            self.out.push(',');
        }
        push_quoted(&mut self.out, key);
        self.out.push(':');
    }

    /// Adds a member with a raw JSON value.
    #[must_use]
    pub fn raw(mut self, key: &str, value: &str) -> Self {
        self.key(key);
        self.out.push_str(value);
        self
    }

    /// Adds a string member.
    #[must_use]
    pub fn text(mut self, key: &str, value: &str) -> Self {
        self.key(key);
        push_quoted(&mut self.out, value);
        self
    }

    /// Adds members with raw JSON values.
    #[must_use]
    pub fn members<'m>(self, all: impl IntoIterator<Item = (&'m str, &'m str)>) -> Self {
        all.into_iter()
            .fold(self, |out, (key, raw)| out.raw(key, raw))
    }

    /// Adds a string member if there is a text.
    #[must_use]
    pub fn maybe_text(self, key: &str, value: Option<&str>) -> Self {
        match value {
            Some(value) => self.text(key, value),
            None => self,
        }
    }

    /// Adds a member if there is a value.
    #[must_use]
    pub fn maybe_raw(self, key: &str, value: Option<&str>) -> Self {
        match value {
            Some(value) => self.raw(key, value),
            None => self,
        }
    }

    /// Adds an array of strings.
    #[must_use]
    pub fn texts<'t>(mut self, key: &str, values: impl IntoIterator<Item = &'t str>) -> Self {
        self.key(key);
        self.out.push('[');
        for (at, value) in values.into_iter().enumerate() {
            if at > 0 {
                self.out.push(',');
            }
            push_quoted(&mut self.out, value);
        }
        self.out.push(']');
        self
    }

    /// The finished object.
    #[must_use]
    pub fn finish(mut self) -> String {
        self.out.push('}');
        self.out
    }
}

/// The value without white space between its tokens.
#[must_use]
pub fn compact(raw: &str) -> String {
    let mut out = String::with_capacity(raw.len());
    let (mut in_text, mut escaped) = (false, false);
    for c in raw.chars() {
        if in_text {
            in_text = escaped || c != '"';
            escaped = !escaped && c == '\\';
        } else if c == '"' {
            in_text = true;
        } else if c.is_ascii_whitespace() {
            continue;
        }
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_keep_their_order_and_bytes() {
        let raw = r#"{"b": 1e400 , "a":{"x":[1, 2]},"c\u0041":"\u00e9"}"#;
        let object = Object::parse(raw).unwrap();
        let members: Vec<_> = object.iter().collect();
        assert_eq!(
            members,
            [
                ("b", "1e400"),
                ("a", r#"{"x":[1, 2]}"#),
                ("cA", r#""\u00e9""#)
            ]
        );
        assert_eq!(object.get_str("cA").as_deref(), Some("é"));
    }

    #[test]
    fn the_same_member_twice_is_refused_even_in_disguise() {
        let error = Object::parse(r#"{"a":1,"\u0061":2}"#).unwrap_err();
        assert_eq!(error.fault, ScanFault::DuplicateMember);
    }

    #[test]
    fn the_same_member_twice_is_refused_among_few_and_many() {
        for count in [2, FEW, FEW + 1, 40] {
            let keys = |last: usize| {
                let all = (0..count - 1)
                    .chain([last])
                    .map(|n| alloc::format!("\"k{n}\":{n}"));
                alloc::format!("{{{}}}", all.collect::<Vec<_>>().join(","))
            };
            assert!(Object::parse(&keys(count)).is_ok(), "{count}");
            assert!(Object::parse(&keys(0)).is_err(), "{count}");
            assert!(Object::parse(&keys(count - 2)).is_err(), "{count}");
        }
    }

    #[test]
    fn objects_come_apart_with_their_array() {
        let raw = r#" [ {"a":[1]} , 7,{ "b" : {} }] "#;
        let seen = objects(raw).unwrap();
        let apart = |(raw, object): &(&str, Option<Object<'_>>)| {
            assert_eq!(object.as_ref(), Object::parse(raw).ok().as_ref());
            alloc::string::String::from(*raw)
        };
        let texts: Vec<_> = seen.iter().map(apart).collect();
        assert_eq!(texts, elements(raw).unwrap());
        for bad in ["{}", "[{]", r#"[{"a":1,"a":2}]"#, "[] x"] {
            assert!(objects(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_member_is_found_without_looking_further() {
        let raw = r#"{"a":{"b":1},"\u0062":2,"c":3"#;
        assert_eq!(member(raw, "b"), Some("2"));
        assert_eq!(member("{}", "b"), None);
        assert_eq!(member("7", "b"), None);
    }

    #[test]
    fn writer_and_reader_agree() {
        let written = ObjectWriter::new()
            .text("a", "quote \" and \u{1}")
            .raw("b", "[1]")
            .maybe_raw("c", None)
            .texts("d", ["x", "y"])
            .finish();
        let object = Object::parse(&written).unwrap();
        assert_eq!(object.get_str("a").as_deref(), Some("quote \" and \u{1}"));
        assert_eq!(object.get("d"), Some(r#"["x","y"]"#));
        assert_eq!(object.len(), 3);
    }
}
