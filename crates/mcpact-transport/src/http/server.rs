//! The HTTP server side: safe by default, one handler, JSON or events.

pub mod answer;
mod body;
mod cors;
pub mod guard;
pub mod listener;
mod serving;
pub mod tls;
pub mod token;
mod upgrade;
mod watch;

pub use answer::{Answer, AnswerBody, Arrival};
pub use body::KEEP_ALIVE;
pub use guard::Guard;
pub use listener::{Endpoint, HttpServer, Limits};
pub use tls::TlsIdentity;
pub use token::Token;
