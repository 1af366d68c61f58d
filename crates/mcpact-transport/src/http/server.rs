//! HTTP server: secure defaults, one handler, JSON or event streams.

mod body;
mod cors;
pub mod guard;
mod idle;
pub mod listener;
pub mod message;
mod request;
pub mod tls;
pub mod token;
mod upgrade;

pub use body::KEEP_ALIVE;
pub use guard::Guard;
pub use listener::{Endpoint, HttpServer, Limits};
pub use message::{HttpRequest, HttpResponse, HttpResponseBody};
pub use tls::TlsIdentity;
pub use token::Token;
