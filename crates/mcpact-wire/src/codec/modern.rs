//! The modern shape: every request says in `_meta` what it speaks, who sends it and what for.

use alloc::borrow::Cow;
use alloc::string::String;

use mcpact_spec::tables::meta;

use crate::raw::{Object, ObjectWriter};
use crate::scan::ScanError;

/// Members that a modern client writes into the `_meta` of each request.
#[derive(Clone, Copy, Debug)]
pub struct Stamp<'a> {
    /// The version in use.
    pub version: &'a str,
    /// The raw capability document.
    pub capabilities: &'a str,
    /// The raw `Implementation` object.
    pub client_info: Option<&'a str>,
    /// The lowest level of log messages wanted.
    pub log_level: Option<&'a str>,
}

const STAMPED: [&str; 4] = [
    meta::PROTOCOL_VERSION,
    meta::CLIENT_CAPABILITIES,
    meta::CLIENT_INFO,
    meta::LOG_LEVEL,
];

impl Stamp<'_> {
    /// `params` with this stamp in its `_meta`; other members keep their bytes and order.
    ///
    /// # Errors
    /// `params` or its `_meta` is not an object.
    pub fn apply(&self, params: Option<&str>) -> Result<String, ScanError> {
        let body = Object::parse(params.unwrap_or("{}"))?;
        let meta = self.meta(body.get("_meta"))?;
        let out = ObjectWriter::with_room(body.room() + meta.len() + r#","_meta":"#.len())
            .members(body.iter().filter(|(key, _)| *key != "_meta"))
            .raw("_meta", &meta);
        Ok(out.finish())
    }

    fn meta(&self, existing: Option<&str>) -> Result<String, ScanError> {
        let existing = Object::parse(existing.unwrap_or("{}"))?;
        let keys: usize = STAMPED.iter().map(|key| key.len() + 24).sum();
        let values = self.capabilities.len() + self.client_info.map_or(0, str::len);
        let out = ObjectWriter::with_room(existing.room() + keys + values)
            .text(meta::PROTOCOL_VERSION, self.version)
            .raw(meta::CLIENT_CAPABILITIES, self.capabilities)
            .maybe_raw(meta::CLIENT_INFO, self.client_info)
            .maybe_text(meta::LOG_LEVEL, self.log_level)
            .members(existing.iter().filter(|(key, _)| !STAMPED.contains(key)));
        Ok(out.finish())
    }
}

/// Start of a complete result that says so first; it need not be searched.
pub const COMPLETE: &str = r#"{"resultType":"complete""#;

/// A result with `resultType`, unless it has one already.
///
/// # Errors
/// The result is not an object.
pub fn complete(result: &str) -> Result<Cow<'_, str>, ScanError> {
    if result.starts_with(COMPLETE) {
        return Ok(Cow::Borrowed(result));
    }
    let body = Object::parse(result)?;
    if body.get("resultType").is_some() {
        return Ok(Cow::Borrowed(result));
    }
    let room = body.room() + COMPLETE.len();
    let out = ObjectWriter::with_room(room).text("resultType", "complete");
    Ok(Cow::Owned(out.members(body.iter()).finish()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAMP: Stamp<'_> = Stamp {
        version: "2026-07-28",
        capabilities: "{}",
        client_info: None,
        log_level: Some("info"),
    };

    #[test]
    fn a_stamp_replaces_only_its_own_members() {
        let params = r#"{"name":"t","_meta":{"traceparent":"00-1","io.modelcontextprotocol/protocolVersion":"1999"},"arguments":{"big":123456789012345678901234567890}}"#;
        assert_eq!(
            STAMP.apply(Some(params)).unwrap(),
            concat!(
                r#"{"name":"t","arguments":{"big":123456789012345678901234567890},"_meta":{"#,
                r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","#,
                r#""io.modelcontextprotocol/clientCapabilities":{},"#,
                r#""io.modelcontextprotocol/logLevel":"info","traceparent":"00-1"}}"#
            )
        );
    }

    #[test]
    fn stamping_twice_is_stamping_once() {
        let once = STAMP.apply(None).unwrap();
        assert_eq!(STAMP.apply(Some(&once)).unwrap(), once);
    }

    #[test]
    fn complete_marks_a_result_once() {
        assert_eq!(complete("{}").unwrap(), r#"{"resultType":"complete"}"#);
        let first = r#"{"resultType":"complete","content":[]}"#;
        assert_eq!(complete(first).unwrap(), first);
        let asked = r#"{"resultType":"input_required"}"#;
        assert_eq!(complete(asked).unwrap(), asked);
    }
}
