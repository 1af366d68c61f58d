//! To which trace a request belongs.

use alloc::boxed::Box;
use alloc::string::String;

use mcpact_spec::tables::meta;

use crate::raw::Object;
use crate::scan::ScanError;

/// Longest `tracestate`; W3C Trace Context requires this much to be passed on.
const LONGEST_STATE: usize = 512;

/// A place in a trace, as W3C Trace Context writes it.
///
/// `2026-07-28 basic#meta`: `traceparent` and `tracestate` stand in the `_meta` of a request. Over HTTP
/// they may stand in headers as well.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceContext {
    parent: Box<str>,
    state: Option<Box<str>>,
}

impl TraceContext {
    /// A place that is written as it must be; a state that is not is left out.
    #[must_use]
    pub fn new(parent: &str, state: Option<&str>) -> Option<Self> {
        is_parent(parent).then(|| Self {
            parent: Box::from(parent),
            state: state.filter(|state| is_state(state)).map(Box::from),
        })
    }

    /// The place that a raw `_meta` names.
    #[must_use]
    pub fn of_meta(raw: &str) -> Option<Self> {
        let keys = Object::parse(raw).ok()?;
        let parent = keys.get_str(meta::TRACE_PARENT)?;
        Self::new(&parent, keys.get_str(meta::TRACE_STATE).as_deref())
    }

    /// `traceparent`
    #[must_use]
    pub const fn parent(&self) -> &str {
        &self.parent
    }

    /// `tracestate`
    #[must_use]
    pub fn state(&self) -> Option<&str> {
        self.state.as_deref()
    }

    /// Id of the trace.
    #[must_use]
    pub fn trace_id(&self) -> &str {
        self.parent.get(3..35).unwrap_or_default()
    }

    /// `params` with this place in its `_meta`, in the stead of any other; everything else keeps its bytes
    /// and order.
    ///
    /// # Errors
    /// `params` or its `_meta` is not an object.
    pub fn apply(&self, params: &str) -> Result<String, ScanError> {
        let body = Object::parse(params)?;
        let known = Object::parse(body.get("_meta").unwrap_or("{}"))?;
        let others = |key: &str| key != meta::TRACE_PARENT && key != meta::TRACE_STATE;
        let inner = known
            .keep(others)
            .text(meta::TRACE_PARENT, &self.parent)
            .maybe_text(meta::TRACE_STATE, self.state());
        let out = body
            .keep(|key| key != "_meta")
            .raw("_meta", &inner.finish());
        Ok(out.finish())
    }
}

/// `version-trace-parent-flags` in small hexadecimal digits. A later version may say more behind that.
fn is_parent(text: &str) -> bool {
    let mut parts = text.splitn(5, '-');
    let mut part = |length: usize| {
        let hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        let part = parts.next().unwrap_or_default();
        (part.len() == length && part.bytes().all(hex)).then_some(part)
    };
    let (Some(version), Some(trace), Some(parent), Some(_)) =
        (part(2), part(32), part(16), part(2))
    else {
        return false;
    };
    let is_something = |digits: &str| digits.bytes().any(|digit| digit != b'0');
    let has_more = parts.next().is_some();
    let is_known = match version {
        "ff" => false,
        "00" => !has_more,
        _ => true,
    };
    is_known && text.len() <= LONGEST_STATE && is_something(trace) && is_something(parent)
}

/// Checks that a header may hold the text; its content belongs to vendors.
fn is_state(text: &str) -> bool {
    let is_fit = |byte: u8| (b' '..=b'~').contains(&byte);
    !text.is_empty() && text.len() <= LONGEST_STATE && text.bytes().all(is_fit)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01";

    #[test]
    fn only_what_is_written_as_it_must_be_is_a_place_in_a_trace() {
        let later = alloc::format!("cc{}-what-the-future-brings", &PARENT[2..]);
        for good in [PARENT, &later] {
            assert!(TraceContext::new(good, None).is_some(), "{good}");
        }
        let long = alloc::format!("cc{}-{}", &PARENT[2..], "x".repeat(600));
        let cells = [
            "",
            "00-1",
            &PARENT.to_uppercase(),
            &PARENT.replace("0af7651916cd43dd8448eb211c80319c", &"0".repeat(32)),
            &PARENT.replace("00f067aa0ba902b7", &"0".repeat(16)),
            &alloc::format!("ff{}", &PARENT[2..]),
            &alloc::format!("{PARENT}-more"),
            &alloc::format!("{PARENT}\r\nx: y"),
            &long,
        ];
        for bad in cells {
            assert_eq!(TraceContext::new(bad, None), None, "{bad}");
        }
    }

    /// The trace context goes into `_meta`; nothing else there changes.
    #[test]
    fn a_place_is_put_beside_what_is_there() {
        let place = TraceContext::new(PARENT, Some("a=1")).unwrap();
        assert_eq!(place.trace_id(), "0af7651916cd43dd8448eb211c80319c");
        assert_eq!(
            place.apply(r#"{"n":1e400,"_meta":{"x/y": 2,"tracestate":"old=1"},"z":0}"#),
            Ok(alloc::format!(
                r#"{{"n":1e400,"z":0,"_meta":{{"x/y":2,"traceparent":"{PARENT}","tracestate":"a=1"}}}}"#
            ))
        );
        let bare = TraceContext::new(PARENT, Some("a=\n1")).unwrap();
        let params = bare.apply("{}").unwrap();
        let meta = Object::parse(&params).unwrap().get("_meta").unwrap();
        assert_eq!(TraceContext::of_meta(meta), Some(bare));
    }
}
