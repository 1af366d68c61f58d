//! Several servers, seen as one: names, addresses, lists, capabilities, and the messages that carry them.
//!
//! Everything here is pure: what the servers said goes in, what a client is shown comes out, and the way
//! back from a name or an address to the server that it belongs to.

pub(crate) mod capabilities;
pub(crate) mod flaws;
pub(crate) mod given;
pub(crate) mod instructions;
pub(crate) mod kind;
pub(crate) mod merge;
pub(crate) mod names;
pub(crate) mod rewrite;
pub(crate) mod tasks;
pub(crate) mod uris;
