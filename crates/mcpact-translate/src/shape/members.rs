//! Objects and arrays on their way to another revision. "None" means that nothing changes.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;

use mcpact_spec::{Object, Revision};
use mcpact_wire::raw::{self, JsonKind, ObjectWriter};
use mcpact_wire::scan::{quote, text};

use super::ShapeError;

/// The members of one object, and what becomes of some of them.
pub(crate) struct Members<'a> {
    object: raw::Object<'a>,
    edits: Vec<(&'static str, Option<String>)>,
    /// The member that comes before all others, if one must.
    first: Option<&'static str>,
}

impl<'a> Members<'a> {
    /// The members of a body, which must be an object.
    pub(crate) fn of_body(raw: &'a str) -> Result<Self, ShapeError> {
        Ok(Self::of_object(raw::Object::parse(raw)?))
    }

    /// The members of an object that came apart already.
    pub(crate) const fn of_object(object: raw::Object<'a>) -> Self {
        Self {
            object,
            edits: Vec::new(),
            first: None,
        }
    }

    /// The members of a value inside a body; none when it is not an object, which is then not
    /// ours to repair.
    pub(crate) fn of_value(raw: &'a str) -> Result<Option<Self>, ShapeError> {
        let is_object = JsonKind::of(raw) == JsonKind::Object;
        is_object.then(|| Self::of_body(raw)).transpose()
    }

    /// The value of a member as it stands after the edits so far.
    pub(crate) fn get(&self, key: &str) -> Option<&str> {
        match self.edits.iter().find(|(edited, _)| *edited == key) {
            Some((_, value)) => value.as_deref(),
            None => self.object.get(key),
        }
    }

    /// As [`get`](Self::get), where `null` counts as absent.
    pub(crate) fn get_present(&self, key: &str) -> Option<&str> {
        self.get(key)
            .filter(|raw| JsonKind::of(raw) != JsonKind::Null)
    }

    /// The text of a member that is a string.
    pub(crate) fn get_str(&self, key: &str) -> Option<Cow<'_, str>> {
        self.get(key).and_then(text)
    }

    /// The raw value of a member that is a string.
    pub(crate) fn get_raw_str(&self, key: &str) -> Option<&str> {
        self.get(key)
            .filter(|raw| JsonKind::of(raw) == JsonKind::String)
    }

    /// Gives a member this raw value.
    pub(crate) fn set(&mut self, key: &'static str, value: String) {
        self.edit(key, Some(value));
    }

    /// Gives a member this text.
    pub(crate) fn set_str(&mut self, key: &'static str, value: &str) {
        self.set(key, quote(value));
    }

    /// Gives a member this text, and the first place.
    pub(crate) fn begin_with(&mut self, key: &'static str, value: &str) {
        self.set_str(key, value);
        self.first = Some(key);
    }

    /// Takes a member away, if it is there.
    pub(crate) fn remove(&mut self, key: &'static str) {
        if self.get(key).is_some() {
            self.edit(key, None);
        }
    }

    fn edit(&mut self, key: &'static str, value: Option<String>) {
        match self.edits.iter_mut().find(|(edited, _)| *edited == key) {
            Some((_, edit)) => *edit = value,
            None => self.edits.push((key, value)),
        }
    }

    /// Takes away the members that the revision does not have.
    pub(crate) fn trim(&mut self, object: Object, to: Revision) {
        for field in object.absent_in(to) {
            self.remove(field);
        }
    }

    /// Rewrites the value of a member, if it is there.
    pub(crate) fn rewrite(
        &mut self,
        key: &'static str,
        rewrite: impl FnOnce(&str) -> Result<Option<String>, ShapeError>,
    ) -> Result<(), ShapeError> {
        let rewritten = self.get(key).map(rewrite).transpose()?.flatten();
        if let Some(value) = rewritten {
            self.set(key, value);
        }
        Ok(())
    }

    /// The object with its edits, in the order of its members, new ones last but for the one that begins.
    pub(crate) fn finish(self) -> Option<String> {
        if self.edits.is_empty() {
            return None;
        }
        let edit_of = |key: &str| self.edits.iter().find(|(edited, _)| *edited == key);
        let edited = self.edits.iter().filter_map(|(_, value)| value.as_deref());
        let room: usize = edited.map(|value| value.len() + 24).sum();
        let mut out = ObjectWriter::with_room(self.object.room() + room);
        let is_first = |key: &str| self.first == Some(key);
        for (key, value) in self.edits.iter().filter(|(key, _)| is_first(key)) {
            out = out.maybe_raw(key, value.as_deref());
        }
        for (key, raw) in self.object.iter().filter(|(key, _)| !is_first(key)) {
            out = match edit_of(key) {
                Some((_, value)) => out.maybe_raw(key, value.as_deref()),
                None => out.raw(key, raw),
            };
        }
        let is_new = |key: &str| self.object.get(key).is_none() && !is_first(key);
        for (key, value) in self.edits.iter().filter(|(key, _)| is_new(key)) {
            out = out.maybe_raw(key, value.as_deref());
        }
        Some(out.finish())
    }
}

/// Takes away the members of an object that the revision does not have.
pub(crate) fn trim(raw: &str, object: Object, to: Revision) -> Result<Option<String>, ShapeError> {
    edit(raw, |members| {
        members.trim(object, to);
        Ok(())
    })
}

/// Edits the members of a value inside a body; a value that is not an object stays.
pub(crate) fn edit<'a>(
    raw: &'a str,
    change: impl FnOnce(&mut Members<'a>) -> Result<(), ShapeError>,
) -> Result<Option<String>, ShapeError> {
    let Some(mut members) = Members::of_value(raw)? else {
        return Ok(None);
    };
    change(&mut members)?;
    Ok(members.finish())
}

/// Edits the members of a body, which must be an object.
pub(crate) fn edit_body<'a>(
    raw: &'a str,
    change: impl FnOnce(&mut Members<'a>) -> Result<(), ShapeError>,
) -> Result<Cow<'a, str>, ShapeError> {
    let mut members = Members::of_body(raw)?;
    change(&mut members)?;
    Ok(or_same(members.finish(), raw))
}

/// Rewrites each element of an array; anything else stays.
pub(crate) fn each_element(
    raw: &str,
    mut rewrite: impl FnMut(&str) -> Result<Option<String>, ShapeError>,
) -> Result<Option<String>, ShapeError> {
    if JsonKind::of(raw) != JsonKind::Array {
        return Ok(None);
    }
    let mut elements = Vec::new();
    for element in raw::elements(raw)? {
        elements.push((element, rewrite(element)?));
    }
    Ok(rewritten(&elements))
}

/// Rewrites each element of an array that is an object; anything else stays.
pub(crate) fn each_object(
    raw: &str,
    mut rewrite: impl FnMut(Members<'_>) -> Result<Option<String>, ShapeError>,
) -> Result<Option<String>, ShapeError> {
    if JsonKind::of(raw) != JsonKind::Array {
        return Ok(None);
    }
    let mut elements = Vec::new();
    for (raw, object) in raw::objects(raw)? {
        let members = object.map(Members::of_object);
        elements.push((raw, members.map(&mut rewrite).transpose()?.flatten()));
    }
    Ok(rewritten(&elements))
}

fn rewritten(elements: &[(&str, Option<String>)]) -> Option<String> {
    let changed = elements.iter().any(|(_, rewritten)| rewritten.is_some());
    let now = elements
        .iter()
        .map(|(raw, new)| new.as_deref().unwrap_or(raw));
    changed.then(|| array(now))
}

/// Rewrites the value of each member of an object; anything else stays.
pub(crate) fn each_value(
    raw: &str,
    mut rewrite: impl FnMut(&str) -> Result<Option<String>, ShapeError>,
) -> Result<Option<String>, ShapeError> {
    if JsonKind::of(raw) != JsonKind::Object {
        return Ok(None);
    }
    let object = raw::Object::parse(raw)?;
    let mut changed = false;
    let mut out = ObjectWriter::with_room(object.room());
    for (key, raw) in object.iter() {
        let rewritten = rewrite(raw)?;
        changed |= rewritten.is_some();
        out = out.raw(key, rewritten.as_deref().unwrap_or(raw));
    }
    Ok(changed.then(|| out.finish()))
}

/// An array of these raw values.
pub(crate) fn array<'t>(values: impl IntoIterator<Item = &'t str>) -> String {
    let mut out = String::from("[");
    for (at, value) in values.into_iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        out.push_str(value);
    }
    out.push(']');
    out
}

/// The rewritten body, or the one that came.
pub(crate) fn or_same(rewritten: Option<String>, raw: &str) -> Cow<'_, str> {
    rewritten.map_or(Cow::Borrowed(raw), Cow::Owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn untouched_objects_are_not_written_again() {
        let raw = r#"{ "a" : 1 }"#;
        let mut members = Members::of_body(raw).unwrap();
        members.remove("b");
        members.rewrite("a", |_| Ok(None)).unwrap();
        assert_eq!(members.finish(), None);
    }

    #[test]
    fn edits_keep_order_and_bytes_of_the_rest() {
        let mut members = Members::of_body(r#"{"a": 1e400, "b":2, "c": [1, 2]}"#).unwrap();
        members.set("d", String::from("4"));
        members.set_str("b", "two");
        members.remove("a");
        assert_eq!(members.finish().unwrap(), r#"{"b":"two","c":[1, 2],"d":4}"#);
    }

    #[test]
    fn one_member_may_begin() {
        for raw in [r#"{"a":1}"#, r#"{"a":1,"b":2}"#] {
            let mut members = Members::of_body(raw).unwrap();
            members.begin_with("b", "two");
            assert_eq!(members.finish().unwrap(), r#"{"b":"two","a":1}"#);
        }
    }

    #[test]
    fn white_space_goes_only_between_tokens() {
        let raw = " { \"a b\" : [ 1 , \"x \\\" y\" ] } ";
        assert_eq!(raw::compact(raw), r#"{"a b":[1,"x \" y"]}"#);
    }
}
