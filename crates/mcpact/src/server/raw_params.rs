//! Raw request parameters.

use std::borrow::Cow;
use std::ops::{Deref, Range};

use bytes::Bytes;
use bytestring::ByteString;
use mcpact_wire::envelope::Params;
use mcpact_wire::raw::Object;
use mcpact_wire::scan::{self, ScanError, push_quoted, utf8};

/// Checks that bytes are UTF-8, once.
pub(super) fn utf8_text(bytes: &Bytes) -> Result<ByteString, ScanError> {
    ByteString::try_from(bytes.clone()).or_else(|_| utf8(bytes).map(ByteString::from))
}

/// Raw parameters. Those of a plain call also hold the positions of name and arguments.
#[derive(Clone, Debug)]
pub struct RawParams {
    text: ByteString,
    call: Option<CallSpans>,
    is_clear: bool,
}

#[derive(Clone, Debug)]
struct CallSpans {
    name: Range<u32>,
    arguments: Range<u32>,
}

impl CallSpans {
    /// Finds the positions, if there are no other members but metadata.
    fn of(params: &Params<'_>) -> Option<Self> {
        if params.has_others || params.uri.is_some() || params.task_id.is_some() {
            return None;
        }
        let raw = params.raw?;
        let span = |part: &str| {
            let start = (part.as_ptr() as usize).checked_sub(raw.as_ptr() as usize)?;
            let end = u32::try_from(start + part.len()).ok()?;
            Some(u32::try_from(start).ok()?..end)
        };
        Some(Self {
            name: span(params.name?)?,
            arguments: span(params.arguments?)?,
        })
    }
}

impl RawParams {
    /// Takes the parameters of a message; `source` is its shared text.
    pub(super) fn of(params: &Params<'_>, source: Option<&ByteString>) -> Self {
        let text = match (params.raw, source) {
            (Some(raw), Some(source)) => source.slice_ref(raw),
            (Some(raw), None) => ByteString::from(raw),
            (None, _) => ByteString::from_static("{}"),
        };
        Self {
            text,
            call: CallSpans::of(params),
            is_clear: params.is_clear,
        }
    }

    /// Returns `true` if there are no members but name, arguments and metadata.
    #[must_use]
    pub const fn is_plain_call(&self) -> bool {
        self.call.is_some()
    }

    /// Returns `true` if the scan of the message has shown that all readers see the same members.
    #[must_use]
    pub const fn is_clear(&self) -> bool {
        self.is_clear
    }

    /// Returns the parameters of a plain call with another name.
    #[must_use]
    pub fn with_name(&self, name: &str) -> Option<Self> {
        let spans = self.call.as_ref()?;
        let (start, end) = (spans.name.start as usize, spans.name.end as usize);
        let mut text = String::with_capacity(self.text.len() + name.len());
        text.push_str(self.text.get(..start)?);
        push_quoted(&mut text, name);
        let new_end = text.len();
        text.push_str(self.text.get(end..)?);
        let moved = |at: u32| u32::try_from(at as usize + new_end - end).ok();
        let mut arguments = spans.arguments.clone();
        if arguments.start >= spans.name.end {
            arguments = moved(arguments.start)?..moved(arguments.end)?;
        }
        let name = spans.name.start..u32::try_from(new_end).ok()?;
        Some(Self {
            text: text.into(),
            call: Some(CallSpans { name, arguments }),
            is_clear: self.is_clear,
        })
    }

    /// Returns the name of the called tool or prompt.
    #[must_use]
    pub fn name(&self) -> Option<Cow<'_, str>> {
        match self.call() {
            Some((name, _)) => scan::text(name),
            None => Object::parse(&self.text).ok()?.get_str("name"),
        }
    }

    /// Returns raw name and raw arguments of a plain call.
    pub(super) fn call(&self) -> Option<(&str, &str)> {
        let spans = self.call.as_ref()?;
        let part = |span: &Range<u32>| self.text.get(span.start as usize..span.end as usize);
        Some((part(&spans.name)?, part(&spans.arguments)?))
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
            is_clear: false,
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
    fn plain_call_has_spans() {
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
    fn renamed_call_keeps_all_other_bytes() {
        for params in [
            r#"{"name":"a","arguments":{"b":[1]}}"#,
            r#"{"_meta":{"x":1}, "arguments" : {"b":[1]} ,"name" : "long\u0061" }"#,
        ] {
            for name in ["", "b", "another \" name"] {
                let raw = read(params).with_name(name).unwrap();
                assert_eq!(raw.name().unwrap(), name);
                assert_eq!(raw.call().unwrap().1, r#"{"b":[1]}"#);
                let back = raw.with_name("a").unwrap();
                let expected = params.replace(r#""long\u0061""#, r#""a""#);
                assert_eq!(**back, *expected);
            }
        }
    }

    #[test]
    fn other_params_have_no_spans() {
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
