//! Model Context Protocol servers and clients of every revision.
//!
//! A [`server::Server`] declares what it has by registering handlers and speaks all five revisions over
//! every standard transport. A [`client::Client`] finds out what its server speaks, and asks the pact
//! before it sends. Both are thin shells around `mcpact-engine`, which decides, and
//! `mcpact-transport`, which moves bytes.
//!
//! The guide is `docs/manual/library.md`. The folder `examples` has one program for each feature:
//!
//! | example | shows |
//! |---|---|
//! | `smallest_server`, `smallest_client` | the least that is useful |
//! | `typed_tools` | arguments and results that are types |
//! | `resources` | resources, templates, subscriptions |
//! | `prompts` | prompts and completion |
//! | `progress` | progress, logging, cancellation |
//! | `questions` | forms, pages, sampling and roots, written once for both eras |
//! | `tasks` | a tool that runs as a task |
//! | `http_server` | both eras at one address |
//! | `client_with_handlers` | answering what servers ask |
//! | `client_with_subscriptions` | waiting for changes |
//! | `in_memory` | a server and its client in one process, for tests |

pub mod client;
pub mod conformity;
pub mod error;
pub mod log;
pub mod model;
pub mod schema;
pub mod server;

pub use error::Error;
pub use mcpact_transport::memory;

/// The programs of the guide are tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/manual/library.md")]
mod guide {}
