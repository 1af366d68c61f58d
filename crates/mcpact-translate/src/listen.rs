//! Changes of lists and resources, between peers that subscribe and peers that listen.
//!
//! A legacy client subscribes to resources one by one and is told about lists unasked; a modern
//! server tells only on a stream that asked. [`Wishes`] turns the one into the other for the
//! session of a legacy client. [`Registry`] is the way back: it holds the streams of modern
//! clients over the session of a legacy server. Between two legacy peers everything crosses as it is;
//! [`Standing`] remembers it for a session that takes the place of a lost one.

pub mod registry;
mod standing;
mod tag;
#[cfg(test)]
mod tests;
pub mod wishes;

pub use registry::Registry;
pub use standing::Standing;
pub use tag::tagged;
pub use wishes::Wishes;
