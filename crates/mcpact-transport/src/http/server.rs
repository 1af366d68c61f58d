//! The HTTP server side: safe by default, one handler, JSON or events.

pub mod answer;
mod body;
pub mod guard;
pub mod listener;

pub use answer::{Answer, AnswerBody, Arrival};
pub use guard::Guard;
pub use listener::{Endpoint, HttpServer, Limits};
