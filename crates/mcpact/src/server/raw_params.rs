//! The parameters of a request as they came.

use std::borrow::Cow;
use std::ops::{Deref, Range};

use bytes::Bytes;
use bytestring::ByteString;
use mcpact_wire::envelope::Params;
use mcpact_wire::raw::Object;
use mcpact_wire::scan::{self, ScanError, utf8};

/// What arrived as text, which is looked through for that once.
pub(super) fn text_of(bytes: &Bytes) -> Result<ByteString, ScanError> {
    ByteString::try_from(bytes.clone()).or_else(|_| utf8(bytes).map(ByteString::from))
}

/// Raw parameters; those of a call know where its two members stand, so that nobody has to look for them
/// again.
#[derive(Clone, Debug)]
pub struct RawParams {
    text: ByteString,
    call: Option<CallPlaces>,
}

#[derive(Clone, Debug)]
struct CallPlaces {
    name: Range<u32>,
    arguments: Range<u32>,
}

impl CallPlaces {
    /// Where they are, if nothing else is there but metadata.
    fn of(params: &Params<'_>) -> Option<Self> {
        if params.has_others || params.uri.is_some() || params.task_id.is_some() {
            return None;
        }
        let raw = params.raw?;
        let place = |part: &str| {
            let start = (part.as_ptr() as usize).checked_sub(raw.as_ptr() as usize)?;
            let end = u32::try_from(start + part.len()).ok()?;
            Some(u32::try_from(start).ok()?..end)
        };
        Some(Self {
            name: place(params.name?)?,
            arguments: place(params.arguments?)?,
        })
    }
}

impl RawParams {
    /// Those of a message; `source` is where its text lies, if that is shared.
    pub(super) fn of(params: &Params<'_>, source: Option<&ByteString>) -> Self {
        let text = match (params.raw, source) {
            (Some(raw), Some(source)) => source.slice_ref(raw),
            (Some(raw), None) => ByteString::from(raw),
            (None, _) => ByteString::from_static("{}"),
        };
        Self {
            text,
            call: CallPlaces::of(params),
        }
    }

    /// Whether they name what is called and its arguments, and wish for nothing besides.
    #[must_use]
    pub const fn is_plain_call(&self) -> bool {
        self.call.is_some()
    }

    /// The name of what is called.
    pub(super) fn name(&self) -> Option<Cow<'_, str>> {
        match self.call() {
            Some((name, _)) => scan::text(name),
            None => Object::parse(&self.text).ok()?.get_str("name"),
        }
    }

    /// The raw name and the raw arguments, if these are all there is.
    pub(super) fn call(&self) -> Option<(&str, &str)> {
        let places = self.call.as_ref()?;
        let part = |place: &Range<u32>| self.text.get(place.start as usize..place.end as usize);
        Some((part(&places.name)?, part(&places.arguments)?))
    }
}

impl Deref for RawParams {
    type Target = ByteString;

    fn deref(&self) -> &ByteString {
        &self.text
    }
}

impl From<String> for RawParams {
    fn from(text: String) -> Self {
        Self {
            text: text.into(),
            call: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use mcpact_wire::envelope::Envelope;

    use super::*;

    fn read(params: &str) -> RawParams {
        let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#);
        let source = ByteString::from(text);
        let envelope = Envelope::read(&source).unwrap();
        RawParams::of(envelope.params().unwrap(), Some(&source))
    }

    #[test]
    fn a_call_knows_its_parts() {
        for params in [
            r#"{"name":"a","arguments":{"b":[1]}}"#,
            r#"{"_meta":{"x":1}, "arguments" : {"b":[1]} ,"name":"a"}"#,
        ] {
            let raw = read(params);
            assert_eq!(raw.call(), Some((r#""a""#, r#"{"b":[1]}"#)));
            assert_eq!(**raw, *params);
        }
    }

    #[test]
    fn whatever_has_more_is_looked_through() {
        for params in [
            "{}",
            r#"{"name":"a"}"#,
            r#"{"name":"a","arguments":{},"task":{}}"#,
            r#"{"name":"a","arguments":{},"uri":"b"}"#,
        ] {
            assert_eq!(read(params).call(), None, "{params}");
        }
        let other = RawParams::from(String::from(r#"{"name":"a","arguments":{}}"#));
        assert_eq!(other.call(), None);
    }
}
