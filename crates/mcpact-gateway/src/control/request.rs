//! What a gateway can be asked.

use serde::{Deserialize, Serialize};

/// How many lines of a log can be asked for at a time.
pub const MOST_LINES: usize = 100_000;

/// A request to a gateway.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// How it and its servers are.
    Status {
        /// Only this server.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        server: Option<String>,
    },
    /// What happened lately.
    Logs {
        /// Only to this server.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        server: Option<String>,
        /// How many of the last entries.
        lines: usize,
        /// Whether entries are sent as they come, until the asker hangs up.
        follow: bool,
    },
    /// Reads its config anew.
    Reload {},
    /// Agrees to what servers say about their tools now.
    AgreeToTools {
        /// Only these servers; without any, all.
        servers: Vec<String>,
    },
    /// Everything that helps to find out what is wrong.
    Bundle {},
}

impl Request {
    /// Reads a request.
    ///
    /// # Errors
    /// It is none; the text says why.
    pub fn parse(line: &[u8]) -> Result<Self, String> {
        serde_json::from_slice(line).map_err(|error| error.to_string())
    }

    /// The request as one line.
    #[must_use]
    pub fn encode(&self) -> String {
        // Only texts and numbers: there is nothing that could not be written.
        serde_json::to_string(self).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_read_as_they_are_written() {
        let server = Some(String::from("files"));
        for request in [
            Request::Status { server: None },
            Request::Status {
                server: server.clone(),
            },
            Request::Logs {
                server,
                lines: 3,
                follow: true,
            },
            Request::Reload {},
            Request::AgreeToTools {
                servers: vec![String::from("files")],
            },
            Request::Bundle {},
        ] {
            let line = request.encode();
            assert!(!line.contains('\n'));
            assert_eq!(Request::parse(line.as_bytes()), Ok(request));
        }
    }

    #[test]
    fn anything_else_is_refused() {
        for line in [
            "",
            "{}",
            "[]",
            "{\"ask\":\"stop\"}",
            "{\"ask\":\"reload\",\"now\":1}",
        ] {
            assert!(Request::parse(line.as_bytes()).is_err(), "{line}");
        }
    }
}
