//! Changes of lists and resources, between peers that subscribe and peers that listen.
//!
//! A legacy client subscribes to resources one by one and gets list changes unasked; a modern
//! server tells only on a stream that asked. [`LegacySubscriptions`] turns the one into the other for the
//! session of a legacy client. [`ListenRegistry`] is the way back: it holds the streams of modern
//! clients over the session of a legacy server. Between two legacy peers everything crosses as it is;
//! [`SessionSettings`] remembers it for a session that takes the place of a lost one.

pub mod legacy_subscriptions;
pub mod registry;
mod session_settings;
mod tag;
#[cfg(test)]
mod tests;

pub use legacy_subscriptions::LegacySubscriptions;
pub use registry::ListenRegistry;
pub use session_settings::SessionSettings;
pub use tag::tagged;
