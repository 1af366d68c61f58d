//! HTTP server: secure defaults, one handler, JSON or event streams.

mod body;
mod cors;
pub mod guard;
mod idle;
pub mod listener;
pub mod message;
pub mod peer;
mod rejections;
mod request;
pub mod tls;
pub mod token;
mod upgrade;

pub use body::KEEP_ALIVE;
pub use guard::Guard;
pub use idle::SocketUsage;
pub use listener::{Endpoint, HttpServer, Limits};
pub use message::{HttpRequest, HttpResponse, HttpResponseBody};
pub use peer::LocalUsers;
pub use rejections::rejections;
pub use tls::TlsIdentity;
pub use token::{Token, Tokens};
