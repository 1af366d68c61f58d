//! Writing of messages. The envelope is the same in both eras; the content of `params` and `result`
//! is not; the modern members have their own file.

pub mod modern;

use alloc::string::String;

use crate::id::IdRef;
use crate::scan::push_quoted;

const HEAD: &str = r#"{"jsonrpc":"2.0""#;

fn message(id: Option<IdRef<'_>>, room: usize) -> String {
    let mut out = String::with_capacity(room + 64);
    out.push_str(HEAD);
    if let Some(id) = id {
        out.push_str(r#","id":"#);
        out.push_str(id.raw());
    }
    out
}

fn member(out: &mut String, key: &str, raw: Option<&str>) {
    if let Some(raw) = raw {
        out.push_str(",\"");
        out.push_str(key);
        out.push_str("\":");
        out.push_str(raw);
    }
}

/// A request (with an id) or a notification (without).
#[must_use]
pub fn call(id: Option<IdRef<'_>>, method: &str, params: Option<&str>) -> String {
    let mut out = message(id, method.len() + params.map_or(0, str::len));
    out.push_str(r#","method":"#);
    push_quoted(&mut out, method);
    member(&mut out, "params", params);
    out.push('}');
    out
}

/// A successful answer.
#[must_use]
pub fn result(id: IdRef<'_>, result: &str) -> String {
    let mut out = message(Some(id), result.len());
    member(&mut out, "result", Some(result));
    out.push('}');
    out
}

/// A failed answer; without an id when the request's could not be read.
#[must_use]
pub fn error(id: Option<IdRef<'_>>, error: &str) -> String {
    let mut out = message(id, error.len());
    member(&mut out, "error", Some(error));
    out.push('}');
    out
}

/// An error for a request without a readable id, for revisions in which an answer must
/// have an id: JSON-RPC writes `null` there.
#[must_use]
pub fn error_with_null_id(error: &str) -> String {
    let mut out = message(None, error.len());
    member(&mut out, "id", Some("null"));
    member(&mut out, "error", Some(error));
    out.push('}');
    out
}
