//! Two peers that have agreed on something.

use std::sync::Arc;

use mcpact_engine::capability::CapabilitySet;
use mcpact_engine::classify::{HeaderField, HttpFacts};
use mcpact_engine::pact::{Pact, Party};
use mcpact_engine::policy::{Policy, Reading};
use mcpact_engine::server::ServerTerms;
use mcpact_spec::{Kind, Method, Revision, Side};
use mcpact_wire::ambiguity;
use mcpact_wire::envelope::Request;
use mcpact_wire::model::implementation::Implementation;

const CLIENT: &str = r#"{"roots":{"listChanged":true},"sampling":{"tools":{},"context":{}},"elicitation":{"form":{},"url":{}},"experimental":{"vendor":{"x":1}}}"#;
const SERVER: &str = r#"{"logging":{},"completions":{},"prompts":{"listChanged":true},"resources":{"subscribe":true,"listChanged":true},"tools":{"listChanged":true},"tasks":{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}},"extensions":{"io.modelcontextprotocol/tasks":{}},"experimental":{"vendor":{"x":1}}}"#;

fn party(side: Side, raw: &str) -> Party {
    let capabilities = CapabilitySet::parse(side, Some(raw), Reading::Lenient)
        .unwrap_or_else(|_| CapabilitySet::empty(side));
    Party {
        info: Some(Arc::new(Implementation::new("bench", "1.0.0"))),
        capabilities: Arc::new(capabilities),
    }
}

/// A client that declares much.
#[must_use]
pub fn client_party() -> Party {
    party(Side::Client, CLIENT)
}

/// A server that declares everything.
#[must_use]
pub fn server_party() -> Party {
    party(Side::Server, SERVER)
}

/// What the two agree on in the newest revision with a handshake.
#[must_use]
pub fn legacy_pact() -> Pact {
    Pact::new(Revision::V2025_11_25, client_party(), server_party())
}

/// The terms of such a server.
#[must_use]
pub fn server_terms() -> Arc<ServerTerms> {
    let info = Implementation::new("bench", "1.0.0");
    let capabilities = CapabilitySet::parse(Side::Server, Some(SERVER), Reading::Lenient)
        .unwrap_or_else(|_| CapabilitySet::empty(Side::Server));
    Arc::new(ServerTerms::new(info, capabilities, Policy::default()))
}

/// The headers of a modern `tools/call`.
#[must_use]
pub const fn http_facts() -> HttpFacts<'static> {
    HttpFacts {
        version: HeaderField::Once("2026-07-28"),
        method: HeaderField::Once("tools/call"),
        name: HeaderField::Once("search_issues"),
        ..HttpFacts::BARE_POST
    }
}

/// The whole check of one request: its method by name, then its parameters.
#[must_use]
pub fn gate(pact: &Pact, request: &Request<'_>) -> bool {
    let ruling = pact.rule(Side::Client, Kind::Request, &request.method);
    let misused = ruling
        .method
        .and_then(|method| pact.rule_on_params(method, request.params.raw));
    ruling.is_open() && misused.is_none()
}

/// The check of the parameters of a `tools/call` for keys that readers understand differently.
#[must_use]
pub fn is_unambiguous(request: &Request<'_>) -> bool {
    let raw = request.params.raw.unwrap_or("{}");
    ambiguity::check(raw, Method::ToolsCall.param_keys()).is_ok()
}
