//! Programs that look at requests and results.

use std::time::Duration;

use super::config::{CommandLaunch, matches};
use super::name::ServerName;

/// A program that looks at requests, results, or both.
#[derive(Clone, Debug, PartialEq)]
pub struct FilterConfig {
    /// Its name.
    pub name: ServerName,
    /// How it is started.
    pub command: CommandLaunch,
    /// Smaller ones are asked first.
    pub order: u32,
    /// What it is shown; empty means everything.
    pub stages: Vec<Stage>,
    /// The methods that it is asked about; empty means all.
    pub methods: Vec<String>,
    /// Whether nothing passes without it.
    pub required: bool,
    /// How long it may take.
    pub patience: Duration,
}

/// What a filter is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The parameters of a request, before anything is done about it.
    Request,
    /// The result, before the client gets it.
    Response,
}

impl Stage {
    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Request => "request",
            Self::Response => "response",
        }
    }

    /// What it is called that is shown.
    #[must_use]
    pub const fn body(self) -> &'static str {
        match self {
            Self::Request => "params",
            Self::Response => "result",
        }
    }
}

impl FilterConfig {
    /// Whether it is asked.
    #[must_use]
    pub fn wants(&self, stage: Stage, method: &str) -> bool {
        let any = |pattern: &String| matches(pattern, method);
        (self.stages.is_empty() || self.stages.contains(&stage))
            && (self.methods.is_empty() || self.methods.iter().any(any))
    }
}
