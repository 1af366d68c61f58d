//! Classification of incoming messages: the only place that decides the era of a message.

pub mod facts;
pub mod modern;
pub mod param_headers;
pub mod route;

pub use facts::{HeaderField, HttpFacts, SessionFact, TransportFacts, Verb};
pub use modern::{CachedPact, ModernCall, PactSource, admit};
pub use route::{Endpoint, LegacySessions, Route, route};
