//! The machines as their owner drives them.

mod properties;
mod questions;
mod rounds;
mod suspended;
mod tickets;

use std::sync::Arc;
use std::time::Duration;

use mcpact_engine::capability::CapabilitySet;
use mcpact_engine::pact::{Pact, Party};
use mcpact_engine::policy::Reading;
use mcpact_engine::time::Moment;
use mcpact_spec::{Method, Revision, Side};
use serde_json::Value;

use super::Binding;

/// A pact with a client that declares this document.
fn pact(revision: Revision, client: &str) -> Arc<Pact> {
    let party = |owner, raw| Party {
        info: None,
        capabilities: Arc::new(CapabilitySet::parse(owner, Some(raw), Reading::Strict).unwrap()),
    };
    let client = party(Side::Client, client);
    Arc::new(Pact::new(revision, client, party(Side::Server, "{}")))
}

fn json(raw: &str) -> Value {
    serde_json::from_str(raw).unwrap()
}

fn at(seconds: u64) -> Moment {
    Moment::at(Duration::from_secs(seconds))
}

/// A call of a tool.
fn binding(principal: u8, params: u8) -> Binding {
    Binding {
        principal: [principal; 32],
        method: Method::ToolsCall,
        params: [params; 32],
    }
}
