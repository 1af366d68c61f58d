//! What an incoming message is: the only place where the era of a message is decided.

pub mod facts;
pub mod modern;
pub mod param_headers;
pub mod route;

pub use facts::{CarrierFacts, HttpFacts, Seen, SessionFact, Verb};
pub use modern::{ModernCall, Remembered, Standing, admit};
pub use route::{Endpoint, LegacySessions, Route, route};
