//! HTTP server: secure defaults, one handler, JSON or event streams.

pub mod answer;
mod body;
mod cors;
pub mod guard;
mod idle;
pub mod listener;
mod request;
pub mod tls;
pub mod token;
mod upgrade;

pub use answer::{Answer, AnswerBody, Arrival};
pub use body::KEEP_ALIVE;
pub use guard::Guard;
pub use listener::{Endpoint, HttpServer, Limits};
pub use tls::TlsIdentity;
pub use token::Token;
