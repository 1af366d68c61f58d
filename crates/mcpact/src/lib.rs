//! Model Context Protocol servers and clients of every revision.
//!
//! A [`server::Server`] declares what it has by registering handlers and speaks all five revisions over
//! every standard transport. A [`client::Client`] finds out what its server speaks, and asks the pact
//! before it sends. Both are thin shells around `mcpact-engine`, which decides, and
//! `mcpact-transport`, which moves bytes.

pub mod client;
pub mod error;
pub mod log;
pub mod model;
pub mod schema;
pub mod server;

pub use error::Error;
