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
mod tag;
#[cfg(test)]
mod tests;

use mcpact_spec::Method;

pub use legacy_subscriptions::LegacySubscriptions;
pub use registry::ListenRegistry;
pub use session_settings::SessionSettings;
pub use tag::tagged;

/// Notifications of changed lists.
const LISTS: [Method; 3] = [
    Method::ToolsListChanged,
    Method::PromptsListChanged,
    Method::ResourcesListChanged,
];
