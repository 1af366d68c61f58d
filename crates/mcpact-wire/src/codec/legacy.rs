//! The legacy shape: nothing about the version is in the message.

use alloc::string::String;

use mcpact_spec::tables::meta;

use crate::raw::{Object, ObjectWriter};
use crate::scan::ScanError;

/// Members of `_meta` that only a modern peer understands.
const MODERN_ONLY: [&str; 6] = [
    meta::PROTOCOL_VERSION,
    meta::CLIENT_CAPABILITIES,
    meta::CLIENT_INFO,
    meta::LOG_LEVEL,
    meta::SERVER_INFO,
    meta::SUBSCRIPTION_ID,
];

/// `params` or `result` without the members of `_meta` that only a modern peer understands. An
/// empty `_meta` goes too; everything else keeps its bytes.
///
/// # Errors
/// The body is not an object.
pub fn strip(body: &str) -> Result<String, ScanError> {
    let members = Object::parse(body)?;
    let mut out = ObjectWriter::new();
    for (key, raw) in members.iter() {
        if key != "_meta" {
            out = out.raw(key, raw);
            continue;
        }
        let kept = Object::parse(raw)?
            .keep(|key| !MODERN_ONLY.contains(&key))
            .finish();
        if kept != "{}" {
            out = out.raw(key, &kept);
        }
    }
    Ok(out.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modern_members_go_and_the_rest_stays() {
        let body = r#"{"name":"x","_meta":{"progressToken":1,"io.modelcontextprotocol/protocolVersion":"2026-07-28"},"arguments":{"n":1e400}}"#;
        assert_eq!(
            strip(body).unwrap(),
            r#"{"name":"x","_meta":{"progressToken":1},"arguments":{"n":1e400}}"#
        );
        let only = r#"{"_meta":{"io.modelcontextprotocol/logLevel":"info"}}"#;
        assert_eq!(strip(only).unwrap(), "{}");
    }
}
