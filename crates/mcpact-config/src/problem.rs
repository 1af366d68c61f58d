//! What is wrong with a config, and what to do about it.

use super::source::{Source, Span};

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Nothing to do, but good to know.
    Note,
    /// It works, and should be looked at.
    Warning,
    /// The config cannot be used.
    Error,
}

impl Severity {
    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// One thing that is wrong, with its place, its cause and its remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// How bad it is.
    pub severity: Severity,
    /// Where it stands.
    pub span: Span,
    /// What is wrong. No value of a variable and no secret stands in it.
    pub message: String,
    /// What to do.
    pub remedy: Option<String>,
}

impl Problem {
    /// One line: file, line, column, what is wrong and what to do.
    #[must_use]
    pub fn in_one_line(&self, source: &Source) -> String {
        let place = source.place(self.span.start);
        let severity = self.severity.as_str();
        let mut line = format!("{}:{place}: {severity}: {}", source.name, self.message);
        if let Some(remedy) = &self.remedy {
            line.push_str("; ");
            line.push_str(remedy);
        }
        line
    }
}

/// Problems as they are found.
#[derive(Debug, Default)]
pub(super) struct Findings {
    found: Vec<Problem>,
    /// Those that leave out a part of the config, not all of it.
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

    fn add(&mut self, severity: Severity, span: Span, message: String) -> &mut Problem {
        let at = self.found.len();
        self.found.push(Problem {
            severity,
            span,
            message,
            remedy: None,
        });
        &mut self.found[at]
    }

    pub(super) fn has_errors(&self) -> bool {
        self.found
            .iter()
            .any(|found| found.severity == Severity::Error)
    }

    /// How many there are so far.
    pub(super) const fn count(&self) -> usize {
        self.found.len()
    }

    /// Forgives the errors that were found after so many, and tells them.
    pub(super) fn forgive(&mut self, after: usize) -> &[Problem] {
        let is_error = |found: &Problem| found.severity == Severity::Error;
        let late = self.found.split_off(after);
        let (errors, others): (Vec<_>, Vec<_>) = late.into_iter().partition(is_error);
        self.found.extend(others);
        let at = self.forgiven.len();
        self.forgiven.extend(errors);
        &self.forgiven[at..]
    }

    /// Makes warnings that were found after so many to notes: nobody has to look at them.
    pub(super) fn soften(&mut self, after: usize) {
        let late = self.found.iter_mut().skip(after);
        for problem in late.filter(|found| found.severity == Severity::Warning) {
            problem.severity = Severity::Note;
        }
    }

    /// All of them, in the order of the text. What was found in two ways is told once.
    pub(super) fn finish(self) -> Vec<Problem> {
        let mut all = self.found;
        all.extend(self.forgiven);
        all.sort_by_key(|found| found.span.start);
        all.dedup();
        all
    }
}

impl Problem {
    /// Says what to do.
    pub(super) fn remedy(&mut self, text: impl Into<String>) {
        self.remedy = Some(text.into());
    }
}
