//! Settings of filter programs.

use std::time::Duration;

use super::config::{CommandLaunch, matches};
use super::name::ServerName;

/// A program that inspects requests, results, or both.
#[derive(Clone, Debug, PartialEq)]
pub struct FilterConfig {
    /// Name.
    pub name: ServerName,
    /// Command of the program.
    pub command: CommandLaunch,
    /// Position; smaller numbers run first.
    pub order: u32,
    /// Inspected stages; empty means all.
    pub stages: Vec<Stage>,
    /// Inspected methods; empty means all.
    pub methods: Vec<String>,
    /// Rejects requests if the filter is not available.
    pub required: bool,
    /// Timeout of one decision.
    pub timeout: Duration,
}

/// Stage at which a filter runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Request parameters, before the request is handled.
    Request,
    /// Result, before it is sent to the client.
    Response,
}

impl Stage {
    /// Name of the stage.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Request => "request",
            Self::Response => "response",
        }
    }

    /// JSON field with the inspected value.
    #[must_use]
    pub const fn body(self) -> &'static str {
        match self {
            Self::Request => "params",
            Self::Response => "result",
        }
    }
}

impl FilterConfig {
    /// Returns whether the filter inspects this method at this stage.
    #[must_use]
    pub fn wants(&self, stage: Stage, method: &str) -> bool {
        let any = |pattern: &String| matches(pattern, method);
        (self.stages.is_empty() || self.stages.contains(&stage))
            && (self.methods.is_empty() || self.methods.iter().any(any))
    }
}
