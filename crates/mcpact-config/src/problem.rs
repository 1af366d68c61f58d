//! Problems of a config.

use super::source::{Source, Span};

/// Severity of a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Information only.
    Note,
    /// The config works, but should be changed.
    Warning,
    /// The config is invalid.
    Error,
}

impl Severity {
    /// Lower-case name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// A problem with its position, cause and remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Severity.
    pub severity: Severity,
    /// Source position.
    pub span: Span,
    /// Description. Contains no values of variables and no secrets.
    pub message: String,
    /// Hint for the user.
    pub remedy: Option<String>,
}

impl Problem {
    pub(super) fn new(
        severity: Severity,
        span: Span,
        message: impl Into<String>,
        remedy: Option<String>,
    ) -> Self {
        Self {
            severity,
            span,
            message: message.into(),
            remedy,
        }
    }

    /// Formats the problem in one line: file, line, column, message, hint.
    #[must_use]
    pub fn in_one_line(&self, source: &Source) -> String {
        let position = source.position(self.span.start);
        let severity = self.severity.as_str();
        let mut line = format!("{}:{position}: {severity}: {}", source.name, self.message);
        if let Some(remedy) = &self.remedy {
            line.push_str("; ");
            line.push_str(remedy);
        }
        line
    }
}

/// Collector of problems.
#[derive(Debug, Default)]
pub(super) struct Findings {
    found: Vec<Problem>,
    /// Errors that disable only a part of the config.
    forgiven: Vec<Problem>,
}

impl Findings {
    pub(super) fn error(&mut self, span: Span, message: impl Into<String>) -> &mut Problem {
        self.add(Severity::Error, span, message.into())
    }

    pub(super) fn warning(&mut self, span: Span, message: impl Into<String>) -> &mut Problem {
        self.add(Severity::Warning, span, message.into())
    }

    pub(super) fn note(&mut self, span: Span, message: impl Into<String>) -> &mut Problem {
        self.add(Severity::Note, span, message.into())
    }

    /// Adds an error with its hint.
    pub(super) fn error_with(
        &mut self,
        span: Span,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        self.error(span, message).remedy(remedy);
    }

    /// Adds a warning with its hint.
    pub(super) fn warning_with(
        &mut self,
        span: Span,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        self.warning(span, message).remedy(remedy);
    }

    /// Adds problems found elsewhere.
    pub(super) fn extend(&mut self, problems: Vec<Problem>) {
        self.found.extend(problems);
    }

    fn add(&mut self, severity: Severity, span: Span, message: String) -> &mut Problem {
        let at = self.found.len();
        self.found.push(Problem::new(severity, span, message, None));
        &mut self.found[at]
    }

    pub(super) fn has_errors(&self) -> bool {
        self.found
            .iter()
            .any(|found| found.severity == Severity::Error)
    }

    /// Number of problems so far.
    pub(super) const fn count(&self) -> usize {
        self.found.len()
    }

    /// Moves errors found after the first `after` problems to the forgiven ones, and returns them.
    pub(super) fn forgive(&mut self, after: usize) -> &[Problem] {
        let is_error = |found: &Problem| found.severity == Severity::Error;
        let late = self.found.split_off(after);
        let (errors, others): (Vec<_>, Vec<_>) = late.into_iter().partition(is_error);
        self.found.extend(others);
        let at = self.forgiven.len();
        self.forgiven.extend(errors);
        &self.forgiven[at..]
    }

    /// Turns warnings found after the first `after` problems into notes.
    pub(super) fn soften(&mut self, after: usize) {
        let late = self.found.iter_mut().skip(after);
        for problem in late.filter(|found| found.severity == Severity::Warning) {
            problem.severity = Severity::Note;
        }
    }

    /// Replaces the hints of the problems after the first `after`.
    pub(super) fn remedy(&mut self, after: usize, text: &str) {
        let late = self.found.iter_mut().skip(after);
        late.for_each(|problem| problem.remedy(text));
    }

    /// All problems in source order, without duplicates.
    pub(super) fn finish(self) -> Vec<Problem> {
        let mut all = self.found;
        all.extend(self.forgiven);
        all.sort_by_key(|found| found.span.start);
        all.dedup();
        all
    }
}

impl Problem {
    /// Sets the hint.
    pub(super) fn remedy(&mut self, text: impl Into<String>) {
        self.remedy = Some(text.into());
    }
}
