//! What goes wrong with an upstream server.

use mcpact_engine::client::Failure;
use mcpact_engine::refusal::WireError;
use mcpact_transport::error::DoorError;
use mcpact_wire::raw::ObjectWriter;

/// Why an upstream server cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{target}: {kind}")]
pub struct UpstreamError {
    /// The server, as people know it.
    pub target: String,
    /// What happened.
    #[source]
    pub kind: Trouble,
}

/// What happened.
#[derive(Debug, thiserror::Error)]
pub enum Trouble {
    /// It cannot be reached or started.
    #[error("the server cannot be reached")]
    Door(#[from] DoorError),
    /// It was reached, and there is no agreement.
    #[error("no agreement with the server{}", hint(.stderr))]
    Failure {
        /// Why.
        #[source]
        failure: Failure,
        /// The end of its log.
        stderr: String,
    },
    /// It wants to know who asks, or does not want to be asked now.
    #[error("the server answered with status {status}")]
    Status {
        /// The HTTP status.
        status: u16,
    },
    /// The connection ended.
    #[error("the server went away{}", hint(.stderr))]
    Gone {
        /// The end of its log.
        stderr: String,
    },
    /// It said something that it must not.
    #[error("the server broke a rule: {0}")]
    Misbehaved(String),
    /// It crashed too often lately.
    #[error("the server failed {tries} times in a row, last because {why}")]
    Suspended {
        /// How often.
        tries: u32,
        /// Until it is tried again.
        wait: std::time::Duration,
        /// The last failure.
        why: String,
    },
}

fn hint(stderr: &str) -> String {
    match stderr.trim() {
        "" => String::new(),
        text => format!("; its log ends with: {text}"),
    }
}

impl Trouble {
    /// With its causes, in one line.
    pub(crate) fn told(&self) -> String {
        chain(self)
    }
}

/// The whole chain of causes in one line.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let cause_text = cause.to_string();
        if !text.ends_with(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        next = cause.source();
    }
    text
}

impl UpstreamError {
    /// What a client is told.
    #[must_use]
    pub fn on_wire(&self) -> WireError {
        let reason = match &self.kind {
            Trouble::Door(_) => "upstream_unreachable",
            Trouble::Failure { .. } => "upstream_no_agreement",
            Trouble::Status { .. } => "upstream_status",
            Trouble::Gone { .. } => "upstream_gone",
            Trouble::Misbehaved(_) => "upstream_misbehaved",
            Trouble::Suspended { .. } => "upstream_suspended",
        };
        WireError {
            code: -32603,
            message: chain(self),
            data: Some(ObjectWriter::new().text("reason", reason).finish()),
            http_status: 200,
        }
    }
}
