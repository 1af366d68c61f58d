//! Failed connections, explained.

use std::error::Error as _;

use mcpact::connection::ConnectError;
use mcpact_engine::client::{Failure, ProbeFailure};
use mcpact_transport::error::TransportError;
use mcpact_transport::stdio::child::LaunchProblem;

/// A failed connection, explained.
#[derive(Debug)]
pub(crate) struct Explained {
    /// Stable reason.
    pub(crate) reason: &'static str,
    /// The cause. It may contain text of the server.
    pub(crate) cause: String,
    /// Possible fixes, best first.
    pub(crate) fixes: Vec<String>,
}

mcpact_spec::stable_strings! {
    /// Reason of a failed connection: `failure.reason` in `mcpact probe --json`, besides those of the negotiation.
    pub(crate) enum FailureReason {
        /// The certificate of the server is not trusted.
        Certificate = "certificate",
        /// The process exited during startup.
        Exited = "exited",
        /// The server answers with an HTTP status that does not depend on the revision.
        HttpStatus = "http-status",
        /// The credentials are missing or wrong.
        LoginNeeded = "login-needed",
        /// The URL is no MCP endpoint.
        NoEndpoint = "no-endpoint",
        /// The program cannot be started.
        NotStarted = "not-started",
        /// The server cannot be reached.
        Unreachable = "unreachable",
    }
}

/// Explains a failed connection.
pub(crate) fn explain(error: &ConnectError) -> Explained {
    match error {
        ConnectError::Transport(source) => transport(source),
        ConnectError::NotMcp { status, .. } => Explained {
            reason: FailureReason::NoEndpoint.as_str(),
            cause: format!("no MCP endpoint at this URL (HTTP status {status})"),
            fixes: vec![String::from(
                "check the path of the URL; MCP servers often listen at `/mcp`",
            )],
        },
        ConnectError::HttpStatus(refusal) => match refusal.status {
            401 | 403 => login(refusal.status, refusal.challenge.as_deref()),
            429 => Explained {
                reason: FailureReason::HttpStatus.as_str(),
                cause: String::from("too many requests (HTTP status 429)"),
                fixes: vec![match &refusal.retry_after {
                    Some(seconds) => format!("try again in {seconds} s"),
                    None => String::from("try again later"),
                }],
            },
            status => Explained {
                reason: FailureReason::HttpStatus.as_str(),
                cause: format!("the server answers with HTTP status {status}"),
                fixes: vec![String::from(
                    "check the URL and any proxy in front of the server",
                )],
            },
        },
        ConnectError::Exited { status, .. } => Explained {
            reason: FailureReason::Exited.as_str(),
            cause: format!("the server exited during startup ({status})"),
            fixes: vec![String::from(
                "run the command in a terminal; it may need arguments or variables",
            )],
        },
        ConnectError::Negotiation { failure, .. } => match failure {
            Failure::Probe(ProbeFailure::Authentication(status)) => login(*status, None),
            failure => Explained {
                reason: failure.status(),
                cause: failure.to_string(),
                fixes: vec![failure.advice()],
            },
        },
    }
}

fn login(status: u16, challenge: Option<&str>) -> Explained {
    let cause = match (status, challenge) {
        (403, _) => String::from("the server forbids access (HTTP status 403)"),
        (_, Some(_)) => String::from("the server requires authentication (HTTP status 401)"),
        (_, None) => format!("the server requires authentication (HTTP status {status})"),
    };
    Explained {
        reason: FailureReason::LoginNeeded.as_str(),
        cause,
        fixes: vec![
            String::from("pass a token: `--bearer env:TOKEN` or `--bearer file:PATH`"),
            String::from("or another header: `--header 'Name: ${VARIABLE}'`"),
        ],
    }
}

fn transport(error: &TransportError) -> Explained {
    let (reason, fix) = match error {
        TransportError::Spawn { source, .. } => (
            FailureReason::NotStarted,
            LaunchProblem::of(source).map_or("check the program", LaunchProblem::remedy),
        ),
        TransportError::Sandbox(_) => (
            FailureReason::NotStarted,
            "choose another `sandbox` level in the config",
        ),
        TransportError::Certificate { remedy, .. } => (FailureReason::Certificate, *remedy),
        TransportError::Address { .. } => (
            FailureReason::Unreachable,
            "use an `http://` or `https://` URL",
        ),
        _ => (
            FailureReason::Unreachable,
            "check that the server runs, and that the URL is right",
        ),
    };
    let mut cause = error.to_string();
    if let Some(source) = error.source() {
        let source = source.to_string();
        if !cause.contains(&source) {
            cause = format!("{cause}: {source}");
        }
    }
    Explained {
        reason: reason.as_str(),
        cause,
        fixes: vec![String::from(fix)],
    }
}
