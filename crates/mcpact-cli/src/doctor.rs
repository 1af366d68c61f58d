//! Examination of a server: everything that can keep it from working, each with cause and remedy.
//!
//! [`program`] and [`files`] look at this machine; [`session`] derives findings from a probe; [`tools`] judges names.

pub(crate) mod files;
mod program;
mod session;
mod tools;

use mcpact_config::ServerName;
use mcpact_gateway::Target;
use serde::Serialize;

use crate::probe::{ProbeSettings, probe};

mcpact_spec::stable_strings! {
    /// Level of a finding: `findings[].level` in `mcpact doctor --json`.
    pub(crate) enum Level {
        /// Nothing is wrong.
        Ok = "ok",
        /// It works, but not everywhere or not for long.
        Warning = "warning",
        /// It does not work.
        Problem = "problem",
    }
}

mcpact_spec::stable_strings! {
    /// Subject of a finding: `findings[].check` in `mcpact doctor --json`.
    pub(crate) enum Subject {
        /// Approval of the launch.
        Approval = "approval",
        /// Credentials.
        Authentication = "authentication",
        /// The config file.
        Config = "config",
        /// Negotiation of a revision.
        Negotiation = "negotiation",
        /// Name resolution and connection.
        Network = "network",
        /// Permissions of files.
        Permissions = "permissions",
        /// The program of the server.
        Program = "program",
        /// Rules of the specification.
        Protocol = "protocol",
        /// Interpreter or package runner of the program.
        Runtime = "runtime",
        /// Start of the program and its time.
        Start = "start",
        /// Output on stdout that is no message.
        Stdout = "stdout",
        /// Certificate.
        Tls = "tls",
        /// Names of tools.
        Tools = "tools",
    }
}

/// A finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    pub(crate) subject: Subject,
    pub(crate) level: Level,
    /// What was found. It may contain text of the server.
    pub(crate) text: String,
    /// What to do.
    pub(crate) remedy: Option<String>,
}

impl Finding {
    pub(crate) fn ok(subject: Subject, text: impl Into<String>) -> Self {
        Self {
            subject,
            level: Level::Ok,
            text: text.into(),
            remedy: None,
        }
    }

    pub(crate) fn warning(
        subject: Subject,
        text: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self {
            level: Level::Warning,
            remedy: Some(remedy.into()),
            ..Self::ok(subject, text)
        }
    }

    pub(crate) fn problem(
        subject: Subject,
        text: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self {
            level: Level::Problem,
            remedy: Some(remedy.into()),
            ..Self::ok(subject, text)
        }
    }
}

/// Findings about one server or file.
#[derive(Debug)]
pub(crate) struct Examination {
    /// Name of the server or file.
    pub(crate) name: String,
    /// Number of processes that were started.
    pub(crate) starts: u32,
    pub(crate) findings: Vec<Finding>,
}

impl Examination {
    /// Returns the findings of a level.
    pub(crate) fn count(&self, level: Level) -> usize {
        let all = self.findings.iter();
        all.filter(|finding| finding.level == level).count()
    }
}

/// Examines a server that may be started or connected to.
pub(crate) async fn examine(
    target: &Target,
    label: String,
    name: Option<&ServerName>,
    settings: &ProbeSettings,
) -> Examination {
    let mut findings = match target {
        Target::Command(command) => program::examine(command).await,
        Target::Url { .. } | Target::Local(_) => Vec::new(),
    };
    // A missing program cannot be started.
    let is_missing = findings
        .iter()
        .any(|finding| finding.subject == Subject::Program && finding.level == Level::Problem);
    let mut starts = 0;
    if !is_missing {
        let result = probe(target, label.clone(), settings).await;
        starts = result.starts();
        findings.extend(session::findings(&result, target, name));
    }
    Examination {
        name: label,
        starts,
        findings,
    }
}

/// Finding in the JSON output.
#[derive(Serialize)]
pub(crate) struct FindingFields<'f> {
    check: &'static str,
    level: &'static str,
    text: &'f str,
    remedy: Option<&'f str>,
}

impl<'f> From<&'f Finding> for FindingFields<'f> {
    fn from(finding: &'f Finding) -> Self {
        Self {
            check: finding.subject.as_str(),
            level: finding.level.as_str(),
            text: &finding.text,
            remedy: finding.remedy.as_deref(),
        }
    }
}
