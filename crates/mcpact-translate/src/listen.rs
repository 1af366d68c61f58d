//! Changes of lists and resources, between peers that subscribe and peers that listen.
//!
//! A legacy client subscribes to resources one by one and gets list changes unasked; a modern
//! server sends changes only on a stream that asked for them. [`LegacySubscriptions`] serves a legacy
//! client from a modern server. [`ListenRegistry`] serves the streams of modern clients from the
//! session of a legacy server. Between two legacy peers all messages are forwarded unchanged;
//! [`SessionSettings`] records them to restore a lost session.

pub mod legacy_subscriptions;
pub mod registry;
mod session_settings;
#[cfg(test)]
mod tests;

use alloc::borrow::Cow;
use alloc::string::String;

use mcpact_spec::tables::meta;
use mcpact_spec::{Method, Revision};
use mcpact_wire::id::Id;
use mcpact_wire::raw::Object;

use crate::shape::ShapeError;
use crate::shape::members::edit_body;
use crate::shape::meta::{put, strip};

pub use legacy_subscriptions::LegacySubscriptions;
pub use registry::ListenRegistry;
pub use session_settings::SessionSettings;

/// Notifications of changed lists.
const LISTS: [Method; 3] = [
    Method::ToolsListChanged,
    Method::PromptsListChanged,
    Method::ResourcesListChanged,
];

/// The parameters of a notification on the stream that this listen request opened.
///
/// `2026-07-28 basic/patterns/subscriptions`: the id is the client's own, a number if it was one.
///
/// # Errors
/// The parameters are malformed.
pub fn tagged(params: Option<&str>, listen: &Id) -> Result<String, ShapeError> {
    let tag = listen.raw();
    edit_body(params.unwrap_or("{}"), |body| {
        put(body, meta::SUBSCRIPTION_ID, tag)
    })
    .map(Cow::into_owned)
}

/// The parameters of a notification for a legacy client, which knows no streams.
fn untagged(params: &str, client: Revision) -> Result<Cow<'_, str>, ShapeError> {
    edit_body(params, |body| strip(body, client))
}

/// The resource that parameters name.
fn uri_in(params: Option<&str>) -> Option<Cow<'_, str>> {
    Object::parse(params?).ok()?.get_str("uri")
}

#[cfg(test)]
mod tag_tests {
    use super::*;
    use Revision::V2025_06_18;

    #[test]
    fn tags_keep_the_type_of_the_id_and_go_again() {
        let cells = [
            (
                None,
                Id::number(7),
                r#"{"_meta":{"io.modelcontextprotocol/subscriptionId":7}}"#,
            ),
            (
                Some(r#"{"uri":"a:b","_meta":{"x/y":1}}"#),
                Id::text("7"),
                r#"{"uri":"a:b","_meta":{"x/y":1,"io.modelcontextprotocol/subscriptionId":"7"}}"#,
            ),
            (
                Some(r#"{"_meta":{"io.modelcontextprotocol/subscriptionId":"other"}}"#),
                Id::number(7),
                r#"{"_meta":{"io.modelcontextprotocol/subscriptionId":7}}"#,
            ),
        ];
        for (params, id, expected) in cells {
            let tagged = tagged(params, &id).unwrap();
            assert_eq!(tagged, expected);
            let plain = untagged(&tagged, V2025_06_18).unwrap();
            assert!(!plain.contains("subscriptionId"), "{plain}");
        }
    }
}
