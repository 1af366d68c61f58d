//! Model Context Protocol servers and clients of every revision.
//!
//! A [`server::Server`] derives its capabilities from registered handlers and speaks all five revisions over every
//! standard transport. A [`client::Client`] detects the revision of its server and sends only what was negotiated.
//! Both are thin layers on `mcpact-engine` (protocol without IO) and `mcpact-transport` (IO).
//!
//! The guide is `docs/manual/library.md`. The directory `examples` has one program for each feature:
//!
//! | example | shows |
//! |---|---|
//! | `smallest_server`, `smallest_client` | minimal programs |
//! | `typed_tools` | typed arguments and results |
//! | `resources` | resources, templates, subscriptions |
//! | `prompts` | prompts and completion |
//! | `progress` | progress, logging, cancellation |
//! | `questions` | forms, URLs, sampling and roots, with the same code for both eras |
//! | `tasks` | a tool that runs as a task |
//! | `http_server` | both eras at one URL |
//! | `client_with_handlers` | answering requests of servers |
//! | `client_with_subscriptions` | change notifications |
//! | `in_memory` | server and client in one process, for tests |

mod byte_budget;
pub mod client;
pub mod connection;
pub mod error;
pub mod log;
pub mod model;
pub mod schema;
pub mod server;
pub mod validation;

pub use error::Error;
pub use mcpact_transport::memory;

/// Compiles the code of the guide as tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/manual/library.md")]
mod guide {}

/// Locks a mutex. The data stays valid even if a holder panicked.
fn lock<T>(mutex: &std::sync::Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}
