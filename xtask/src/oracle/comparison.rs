use std::fmt::Display;

use mcpact_spec::Revision;

/// A fact on which table and schema do not agree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Difference {
    pub(super) revision: Revision,
    pub(super) fact: String,
    pub(super) table: String,
    pub(super) schema: String,
}

/// The facts of one revision, counted, with those that differ.
pub(super) struct Comparison {
    revision: Revision,
    facts: usize,
    differences: Vec<Difference>,
}

impl Comparison {
    pub(super) fn new(revision: Revision) -> Self {
        Self {
            revision,
            facts: 0,
            differences: Vec::new(),
        }
    }

    pub(super) fn revision(&self) -> Revision {
        self.revision
    }

    pub(super) fn facts(&self) -> usize {
        self.facts
    }

    pub(super) fn differences(&self) -> &[Difference] {
        &self.differences
    }

    /// Records what both sides say about a fact.
    pub(super) fn record(&mut self, fact: impl Display, table: impl Display, schema: impl Display) {
        self.facts += 1;
        let (table, schema) = (table.to_string(), schema.to_string());
        if table != schema {
            let fact = fact.to_string();
            self.differences.push(Difference {
                revision: self.revision,
                fact,
                table,
                schema,
            });
        }
    }
}

#[cfg(test)]
impl Comparison {
    /// The names of the facts that differ.
    pub(super) fn differing(&self) -> Vec<&str> {
        self.differences
            .iter()
            .map(|difference| difference.fact.as_str())
            .collect()
    }
}

/// Text of a boolean.
pub(super) fn yes_no(yes: bool) -> &'static str {
    if yes { "yes" } else { "no" }
}
