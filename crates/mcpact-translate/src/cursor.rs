//! Cursors between eras.
//!
//! A legacy cursor is valid in its session only, and a modern client has none; so the session goes
//! into the cursor. An empty cursor is a cursor in 2026-07-28 and easily taken for none by older
//! clients; no client ever gets one.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::String;

use mcpact_engine::refusal::WireError;
use mcpact_spec::{ErrorCode, Revision};
use mcpact_wire::scan::text;

use crate::shape::ShapeError;
use crate::shape::members::{Members, or_same};
use crate::wire_error::wire_error;

/// Prefix of our cursors.
const MARK: &str = "mcpact:";

/// Owner of a cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CursorOwner<'a> {
    /// A legacy session; the name must not contain a colon.
    Session(&'a str),
    /// The server, for all clients.
    Server,
}

/// A page for the client: its `nextCursor` names its keeper where it has to.
///
/// # Errors
/// The result is malformed.
pub fn result<'a>(raw: &'a str, keeper: CursorOwner<'_>) -> Result<Cow<'a, str>, ShapeError> {
    let mut page = Members::of_body(raw)?;
    let wrapped = page
        .get_str("nextCursor")
        .and_then(|cursor| wrap(&cursor, keeper));
    if let Some(wrapped) = wrapped {
        page.set_str("nextCursor", &wrapped);
    }
    Ok(or_same(page.finish(), raw))
}

fn wrap(cursor: &str, keeper: CursorOwner<'_>) -> Option<String> {
    match keeper {
        CursorOwner::Session(session) => Some(format!("{MARK}{session}:{cursor}")),
        // One of the server's own that looks like ours would be unwrapped on its way back.
        CursorOwner::Server if cursor.is_empty() || cursor.starts_with(MARK) => {
            Some(format!("{MARK}:{cursor}"))
        }
        CursorOwner::Server => None,
    }
}

/// The parameters of a request for a page, with the cursor as its keeper gave it.
///
/// # Errors
/// The cursor is of another keeper, most likely of a session that has ended: the client begins
/// again with the first page. Or the parameters are malformed.
pub fn request_params<'a>(
    raw: &'a str,
    keeper: CursorOwner<'_>,
    client: Revision,
) -> Result<Cow<'a, str>, WireError> {
    let malformed = |error: ShapeError| {
        let message = format!("the parameters cannot be read: {error}");
        wire_error(ErrorCode::InvalidParams, message, client)
    };
    let mut params = Members::of_body(raw).map_err(malformed)?;
    let Some(cursor) = params.get("cursor").and_then(text) else {
        return Ok(Cow::Borrowed(raw));
    };
    let foreign = || {
        let message = "the cursor is not known, or the session that it belongs to has ended; \
                       begin again without a cursor";
        wire_error(ErrorCode::InvalidParams, message, client)
    };
    let unwrapped = match (unwrap(&cursor), keeper) {
        (Some((session, own)), CursorOwner::Session(current)) if session == current => own,
        (Some(("", own)), CursorOwner::Server) => own,
        (None, CursorOwner::Server) => return Ok(Cow::Borrowed(raw)),
        (Some(_) | None, CursorOwner::Session(_) | CursorOwner::Server) => return Err(foreign()),
    };
    let unwrapped = String::from(unwrapped);
    drop(cursor);
    params.set_str("cursor", &unwrapped);
    Ok(or_same(params.finish(), raw))
}

/// The session and the cursor in one of ours.
fn unwrap(cursor: &str) -> Option<(&str, &str)> {
    cursor.strip_prefix(MARK)?.split_once(':')
}

#[cfg(test)]
mod tests {
    use super::*;
    use CursorOwner::{Server, Session};
    use Revision::V2026_07_28;

    #[test]
    fn cursors_come_back_as_they_were_given_and_are_never_empty() {
        let cells = [
            (
                "of a session",
                r#""a:b""#,
                Session("s1"),
                r#""mcpact:s1:a:b""#,
            ),
            (
                "empty, of a session",
                r#""""#,
                Session("s1"),
                r#""mcpact:s1:""#,
            ),
            ("of a server", r#""a:b""#, Server, r#""a:b""#),
            ("empty, of a server", r#""""#, Server, r#""mcpact::""#),
            (
                "in disguise",
                r#""mcpact:s1:a""#,
                Server,
                r#""mcpact::mcpact:s1:a""#,
            ),
        ];
        for (name, cursor, keeper, expected) in cells {
            let page = format!(r#"{{"tools":[],"nextCursor":{cursor}}}"#);
            let down = result(&page, keeper).unwrap();
            let shown = format!(r#"{{"tools":[],"nextCursor":{expected}}}"#);
            assert_eq!(down, shown, "{name}");
            let asked = format!(r#"{{"cursor":{expected}}}"#);
            let up = request_params(&asked, keeper, V2026_07_28).unwrap();
            assert_eq!(up, format!(r#"{{"cursor":{cursor}}}"#), "{name}");
        }
        for last in [r#"{"tools":[]}"#, r#"{"tools":[],"nextCursor":null}"#] {
            assert_eq!(result(last, Session("s1")).unwrap(), last);
        }
        assert_eq!(
            request_params("{}", Session("s1"), V2026_07_28).unwrap(),
            "{}"
        );
    }

    #[test]
    fn a_cursor_of_another_session_is_refused() {
        let cells = [
            (r#"{"cursor":"mcpact:s1:a"}"#, Session("s2")),
            (r#"{"cursor":"a"}"#, Session("s2")),
            (r#"{"cursor":""}"#, Session("s2")),
            (r#"{"cursor":"mcpact:s1:a"}"#, Server),
            ("[]", Server),
        ];
        for (params, keeper) in cells {
            let error = request_params(params, keeper, V2026_07_28).unwrap_err();
            assert_eq!(error.code, -32602, "{params}");
        }
    }
}
