//! Failures of requests, with exit code and hints.

use std::path::PathBuf;

use mcpact::client::{ClientError, Failure, RpcError};
use mcpact::error::with_causes;
use mcpact_engine::client::ProbeFailure;
use mcpact_spec::ErrorCode;
use mcpact_transport::error::TransportError;
use mcpact_transport::stdio::child::{LaunchProblem, Masks};

use super::arguments::ArgumentError;
use crate::error::{Exit, suggestions};

/// Failure of a command that acts as a client.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ClientFailure {
    /// A positional argument is missing.
    #[error("missing {0}")]
    MissingWord(&'static str),
    /// An argument is invalid.
    #[error(transparent)]
    Argument(#[from] ArgumentError),
    /// A file of the command line cannot be read.
    #[error("failed to read `{}`", .path.display())]
    ReadFile {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    /// The answers of `--answer` do not fit.
    #[error("cannot answer from `{}`: {reason}", .path.display())]
    Answer { path: PathBuf, reason: String },
    /// A folder of `--root` does not exist.
    #[error("`{}` is not a folder", .0.display())]
    NotAFolder(PathBuf),
    /// The server has no such tool, prompt, resource or task.
    #[error("`{server}` has no {what} `{given}`")]
    NotFound {
        server: String,
        what: &'static str,
        given: String,
        known: Vec<String>,
    },
    /// A request failed.
    #[error("{message}")]
    Request {
        message: String,
        hints: Vec<String>,
        exit: Exit,
    },
    /// The server does not answer.
    #[error("`{server}` did not answer within {seconds} s; the request was cancelled")]
    TimedOut { server: String, seconds: u64 },
    /// The user interrupted the command.
    #[error("interrupted; the request was cancelled")]
    Interrupted,
}

impl ClientFailure {
    /// Returns the exit code.
    pub(crate) const fn exit(&self) -> Exit {
        match self {
            Self::MissingWord(_)
            | Self::Argument(_)
            | Self::ReadFile { .. }
            | Self::Answer { .. }
            | Self::NotAFolder(_) => Exit::Usage,
            Self::NotFound { .. } => Exit::Tool,
            Self::Request { exit, .. } => *exit,
            Self::TimedOut { .. } => Exit::Unreachable,
            Self::Interrupted => Exit::Unexpected,
        }
    }

    /// Returns the hints.
    pub(crate) fn hints(&self) -> Vec<String> {
        let one = |hint: &str| vec![String::from(hint)];
        match self {
            Self::MissingWord(_) => one("run the command with `--help` to see its arguments"),
            Self::Argument(error) => error.hints(),
            Self::NotFound { what, known, .. } if known.is_empty() => {
                vec![format!("the server lists no {what}s")]
            }
            Self::NotFound {
                what, given, known, ..
            } => similar(what, given, known),
            Self::Answer { .. } => one(
                "the file has the values of the form: `{\"name\": \"Ada\"}`, or a list with one \
                 answer for each question",
            ),
            Self::Request { hints, .. } => hints.clone(),
            Self::TimedOut { .. } => {
                one("raise the limit with `--timeout SECONDS`, or see the server's log with `-v`")
            }
            Self::ReadFile { .. } | Self::NotAFolder(_) | Self::Interrupted => Vec::new(),
        }
    }
}

/// Returns the nearest name, and all names or the command that lists them.
fn similar(what: &str, given: &str, known: &[String]) -> Vec<String> {
    /// Maximum number of listed names.
    const LISTED: usize = 12;
    let mut hints = suggestions(given, known, &format!("{what}s"));
    if known.len() > LISTED {
        hints.pop();
        hints.push(format!("`mcpact {what}s` lists all {}", known.len()));
    }
    hints
}

/// Server of a request, for messages.
#[derive(Clone, Debug)]
pub(super) struct Peer {
    /// Name for output.
    pub(super) label: String,
    /// True if the server is from a config.
    pub(super) is_configured: bool,
    /// Values to mask in its messages.
    pub(super) masks: Masks,
}

impl Peer {
    /// Converts an error of the library.
    pub(super) fn failure(&self, error: &ClientError) -> ClientFailure {
        let (message, hint, exit) = self.describe(error);
        ClientFailure::Request {
            message: self.masks.cover(message),
            hints: hint.into_iter().collect(),
            exit,
        }
    }

    fn describe_rpc(&self, error: &RpcError) -> (String, Option<String>, Exit) {
        let server = &self.label;
        let lines: Vec<&str> = error.message.lines().collect();
        let message = format!(
            "`{server}` returned error {}: {}",
            error.code,
            lines.join(" | ")
        );
        let data = error
            .data
            .as_ref()
            .map(ToString::to_string)
            .unwrap_or_default();
        let is_about = |word: &str| data.contains(word) || error.message.contains(word);
        let is_missing = ErrorCode::parse(error.code) == Some(ErrorCode::MissingClientCapability);
        let hint = if is_about("sampling") {
            Some("this command has no language model to sample; use a client that has one")
        } else if is_missing && is_about("tasks") {
            Some("pass `--task`")
        } else if is_missing && is_about("roots") {
            Some("pass `--root PATH`")
        } else {
            None
        };
        (message, hint.map(String::from), Exit::Tool)
    }

    fn describe(&self, error: &ClientError) -> (String, Option<String>, Exit) {
        let server = &self.label;
        let said = |hint: &str| Some(String::from(hint));
        match error {
            ClientError::Unreachable { stderr, .. } if !stderr.is_empty() => {
                let message = format!("`{server}` exited during startup{}", stderr_lines(stderr));
                (message, None, Exit::Unreachable)
            }
            ClientError::Unreachable { source, .. } => {
                let message = format!("cannot reach `{server}`: {}", with_causes(source));
                (message, launch_hint(source), Exit::Unreachable)
            }
            ClientError::Auth { status, challenge } => {
                let challenge = challenge.as_ref();
                if challenge.is_some_and(|text| text.contains("invalid_token")) {
                    let message = format!("`{server}` rejected the token (HTTP {status})");
                    let hint = "check its value, and whether it has expired";
                    return (message, said(hint), Exit::Auth);
                }
                let challenge = challenge.map(|text| format!("; challenge: `{text}`"));
                let challenge = challenge.unwrap_or_default();
                let message =
                    format!("`{server}` requires authentication (HTTP {status}){challenge}");
                let hint = match self.is_configured {
                    true => "set `headers.Authorization` of the server in the config",
                    false => "pass a token with `--bearer env:NAME` or `--header`",
                };
                (message, said(hint), Exit::Auth)
            }
            ClientError::Refused { failure, .. } => self.describe_refusal(failure),
            ClientError::Http { status, .. } => {
                let message = format!("`{server}` responded with HTTP {status}");
                (message, None, Exit::Unreachable)
            }
            ClientError::NotNegotiated(misuse) => {
                let hint = format!("run `mcpact probe {server}` to see what it offers");
                let hint = self.is_configured.then_some(hint);
                (misuse.to_string(), hint, Exit::Refused)
            }
            ClientError::Rpc(error) => self.describe_rpc(error),
            ClientError::Timeout { method } => {
                let message = format!("`{server}` did not answer `{method}` in time");
                (
                    message,
                    said("raise the limit with `--timeout SECONDS`"),
                    Exit::Unreachable,
                )
            }
            ClientError::NoHandler { method } => (
                format!("`{server}` asks for `{method}`, which this command does not support"),
                said("use a client with a language model, or `--root PATH` for `roots/list`"),
                Exit::Refused,
            ),
            ClientError::Closed | ClientError::SessionLost | ClientError::Transport(_) => {
                let message = format!("connection to `{server}` lost: {}", with_causes(error));
                (
                    message,
                    said("see the server's log with `-v`"),
                    Exit::Unreachable,
                )
            }
            other => {
                let message = format!("request to `{server}` failed: {}", with_causes(other));
                (message, None, Exit::Unexpected)
            }
        }
    }

    fn describe_refusal(&self, failure: &Failure) -> (String, Option<String>, Exit) {
        let server = &self.label;
        let advice = Some(failure.advice());
        match failure {
            Failure::ConnectionClosed | Failure::Probe(ProbeFailure::Closed) => (
                format!("`{server}` exited during startup"),
                Some(String::from("see its log with `-v`")),
                Exit::Unreachable,
            ),
            Failure::InitTimeout
            | Failure::Probe(
                ProbeFailure::Silence
                | ProbeFailure::NotMcp(_)
                | ProbeFailure::ServerTrouble(_)
                | ProbeFailure::TooManyRequests,
            ) => (
                format!("cannot reach `{server}`: {failure}"),
                advice,
                Exit::Unreachable,
            ),
            Failure::Probe(ProbeFailure::Authentication(status)) => (
                format!("`{server}` requires authentication (HTTP {status})"),
                advice,
                Exit::Auth,
            ),
            // A server in trouble, or a gateway whose server is.
            Failure::Rejected { code, message }
                if ErrorCode::parse(*code) == Some(ErrorCode::InternalError) =>
            {
                let (message, hint) = match message.split_once("; hint: ") {
                    Some((message, hint)) => (message, Some(hint.to_owned())),
                    None => (message.as_str(), advice),
                };
                let message = format!("cannot use `{server}`: {message}");
                (message, hint, Exit::Unreachable)
            }
            refused => (
                format!("negotiation with `{server}` failed: {refused}"),
                advice,
                Exit::Refused,
            ),
        }
    }
}

/// Returns the last lines of a log.
fn stderr_lines(stderr: &str) -> String {
    /// Maximum number of shown lines.
    const SHOWN: usize = 5;
    let lines: Vec<&str> = stderr
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    let last = &lines[lines.len().saturating_sub(SHOWN)..];
    last.iter()
        .map(|line| format!("\n  stderr: {line}"))
        .collect()
}

fn launch_hint(source: &TransportError) -> Option<String> {
    match source {
        TransportError::Spawn { source, .. } => {
            LaunchProblem::of(source).map(|problem| problem.remedy().to_owned())
        }
        TransportError::Certificate { remedy, .. } => Some((*remedy).to_owned()),
        TransportError::Io(_) => None,
        _ => Some(String::from(
            "check that it is running and that the URL is right",
        )),
    }
}

#[cfg(test)]
mod tests {
    use mcpact::client::ClientError;

    use super::*;

    fn peer() -> Peer {
        Peer {
            label: String::from("files"),
            is_configured: true,
            masks: Masks::new([String::from("canary-4711")]),
        }
    }

    #[test]
    fn errors_have_the_exit_code_of_their_cause() {
        let auth = |status| ClientError::Auth {
            status,
            challenge: None,
        };
        let timeout = ClientError::Timeout {
            method: String::from("tools/call"),
        };
        for (error, exit) in [
            (auth(401), Exit::Auth),
            (auth(403), Exit::Auth),
            (timeout, Exit::Unreachable),
            (ClientError::Closed, Exit::Unreachable),
            (ClientError::Arguments, Exit::Unexpected),
        ] {
            assert_eq!(peer().failure(&error).exit(), exit, "{error}");
        }
    }

    #[test]
    fn failed_server_of_a_gateway_is_unreachable() {
        let failure = Failure::Rejected {
            code: ErrorCode::InternalError.code(),
            message: String::from("`crash`: exited; hint: set API_KEY; next start in 8 s"),
        };
        let (message, hint, exit) = peer().describe_refusal(&failure);
        assert_eq!(message, "cannot use `files`: `crash`: exited");
        assert_eq!(hint.as_deref(), Some("set API_KEY; next start in 8 s"));
        assert_eq!(exit, Exit::Unreachable);
        let failure = Failure::Rejected {
            code: ErrorCode::InvalidParams.code(),
            message: String::from("unsupported version"),
        };
        assert_eq!(peer().describe_refusal(&failure).2, Exit::Refused);
    }

    #[test]
    fn rejected_token_is_not_called_missing() {
        let error = ClientError::Auth {
            status: 401,
            challenge: Some(String::from("Bearer error=\"invalid_token\"")),
        };
        let failure = peer().failure(&error);
        assert_eq!(failure.to_string(), "`files` rejected the token (HTTP 401)");
        assert_eq!(failure.exit(), Exit::Auth);
    }

    #[test]
    fn secrets_are_masked_in_messages_of_the_server() {
        let error = ClientError::Auth {
            status: 401,
            challenge: Some(String::from("Bearer canary-4711")),
        };
        let message = peer().failure(&error).to_string();
        assert!(
            message.contains("401") && !message.contains("canary"),
            "{message}"
        );
    }

    #[test]
    fn last_lines_of_the_log_are_shown() {
        let log: String = (0..9).map(|line| format!("line {line}\n")).collect();
        let shown = stderr_lines(&log);
        assert_eq!(shown.lines().count(), 6);
        assert!(shown.ends_with("stderr: line 8"), "{shown}");
    }
}
