//! Settings of a server.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use mcpact_engine::effect::{DropCause, Refused};
use mcpact_engine::negotiation::Negotiation;
use mcpact_engine::policy::Policy;
use mcpact_engine::refusal::ApiMisuse;
use mcpact_engine::task_rule::TaskRequirement;
use mcpact_spec::Method;
use mcpact_transport::http::server::{Guard, Limits, TlsIdentity, Token};

use super::principal::PrincipalSource;
use super::seal::SealKeys;
use crate::validation::Validation;

/// Settings of a server, besides its handlers.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Policy of the engine, with the supported revisions.
    pub policy: Policy,
    /// Number of items on a page of a list.
    pub page_size: usize,
    /// Lifetime of a question to a modern client.
    pub input_timeout: Duration,
    /// Keys for the state that modern clients carry between the rounds of a question; random by default. Servers
    /// behind one URL need the same keys.
    pub seal_keys: Option<SealKeys>,
    /// Rule for task calls by clients of 2025-11-25. The server declares tasks only if a tool supports them.
    pub task_requirement: TaskRequirement,
    /// Maximum number of legacy HTTP sessions.
    pub session_limit: usize,
    /// Idle time after which a legacy HTTP session without open streams ends.
    pub session_idle: Duration,
    /// Path of the MCP endpoint.
    pub path: String,
    /// Serves the HTTP+SSE transport of 2024-11-05 at `/sse`.
    pub http_sse: bool,
    /// Serves WebSockets at `/ws`.
    pub websocket: bool,
    /// Host names and origins accepted besides loopback.
    pub guard: Guard,
    /// Bearer token required from HTTP clients; needed on every address but loopback.
    pub token: Option<Token>,
    /// Allows other addresses than loopback without a token: everyone who can reach the server can use it.
    pub allow_remote: bool,
    /// Certificate for HTTPS.
    pub tls: Option<TlsIdentity>,
    /// Source of the principal of HTTP requests.
    pub principals: PrincipalSource,
    /// Limits of the HTTP server.
    pub limits: Limits,
    /// Validation of messages against the official schemas.
    pub validation: Validation,
    /// Observer of negotiations, refusals and dropped messages.
    pub observer: Option<Arc<dyn DecisionObserver>>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            policy: Policy::default(),
            page_size: 1000,
            input_timeout: Duration::from_secs(600),
            seal_keys: None,
            task_requirement: TaskRequirement::ByTool,
            session_limit: 10_000,
            session_idle: Duration::from_secs(30 * 60),
            path: String::from("/mcp"),
            http_sse: false,
            websocket: false,
            guard: Guard::default(),
            token: None,
            allow_remote: false,
            tls: None,
            principals: PrincipalSource::default(),
            limits: Limits::default(),
            validation: Validation::Off,
            observer: None,
        }
    }
}

/// Observes decisions about messages. Called on the message path: must not block.
pub trait DecisionObserver: Debug + Send + Sync {
    /// A negotiation with a client ended.
    fn negotiated(&self, negotiation: &Negotiation);

    /// A request was refused before it reached a backend.
    fn refused(&self, refused: Refused);

    /// A message was not sent to a client.
    fn withheld(&self, misuse: &ApiMisuse);

    /// A slow client missed a notification.
    fn missed(&self, method: Method);

    /// A message of a client was not forwarded.
    fn dropped(&self, why: DropCause);
}
