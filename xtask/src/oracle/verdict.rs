use super::comparison::{Comparison, Difference};
use super::exceptions::Exception;
use crate::failure::Failure;

/// Differences without an exception, and exceptions without a difference.
pub(super) struct Verdict<'a> {
    uncovered: Vec<&'a Difference>,
    stale: Vec<&'a Exception>,
}

impl<'a> Verdict<'a> {
    pub(super) fn new(comparisons: &'a [Comparison], exceptions: &[&'a Exception]) -> Self {
        let differences = || comparisons.iter().flat_map(Comparison::differences);
        let covers = |exception: &Exception, difference: &Difference| {
            exception.revision == difference.revision && exception.fact == difference.fact
        };
        let uncovered = differences().filter(|d| !exceptions.iter().any(|e| covers(e, d)));
        let stale = exceptions
            .iter()
            .filter(|e| !differences().any(|d| covers(e, d)));
        Self {
            uncovered: uncovered.collect(),
            stale: stale.copied().collect(),
        }
    }

    /// `Ok` if nothing is left; otherwise a table of it.
    pub(super) fn into_result(self) -> Result<(), Failure> {
        let uncovered = self.uncovered.into_iter().map(|d| {
            let said = format!("table: {}, schema: {}", d.table, d.schema);
            [d.revision.as_str().to_owned(), d.fact.clone(), said]
        });
        let stale = self.stale.into_iter().map(|e| {
            let said = format!("table and schema agree; stale exception: {}", e.reason);
            [e.revision.as_str().to_owned(), e.fact.to_owned(), said]
        });
        let rows: Vec<_> = uncovered.chain(stale).collect();
        Failure::unless_clean(
            "oracle",
            aligned(&rows),
            "correct the table in mcpact-spec, or explain the difference in \
             xtask/src/oracle/exceptions.rs; remove stale exceptions",
        )
    }
}

fn aligned(rows: &[[String; 3]]) -> Vec<String> {
    let width = rows
        .iter()
        .map(|[_, fact, _]| fact.chars().count())
        .max()
        .unwrap_or(0);
    rows.iter()
        .map(|[revision, fact, said]| format!("{revision}  {fact:<width$}  {said}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use mcpact_spec::Revision;

    use super::Verdict;
    use crate::oracle::comparison::Comparison;
    use crate::oracle::exceptions::Exception;

    const MEANT: Exception = Exception {
        revision: Revision::V2025_03_26,
        fact: "fact b",
        reason: "because",
    };

    fn comparison(facts: &[&str]) -> Comparison {
        let mut comparison = Comparison::new(Revision::V2025_03_26);
        facts
            .iter()
            .for_each(|fact| comparison.record(fact, "yes", "no"));
        comparison.record("fact that agrees", "yes", "yes");
        comparison
    }

    #[test]
    fn a_difference_without_exception_fails_with_both_sides() {
        let comparisons = [comparison(&["fact a", "fact b"])];
        let failure = Verdict::new(&comparisons, &[&MEANT])
            .into_result()
            .unwrap_err()
            .to_string();
        assert!(
            failure.contains("2025-03-26  fact a  table: yes, schema: no"),
            "{failure}"
        );
        assert!(!failure.contains("fact b"), "{failure}");
    }

    #[test]
    fn an_exception_without_difference_is_stale() {
        let comparisons = [comparison(&[])];
        let failure = Verdict::new(&comparisons, &[&MEANT])
            .into_result()
            .unwrap_err()
            .to_string();
        assert!(failure.contains("stale exception: because"), "{failure}");
    }

    #[test]
    fn differences_that_are_all_explained_pass() {
        let comparisons = [comparison(&["fact b"])];
        assert!(Verdict::new(&comparisons, &[&MEANT]).into_result().is_ok());
    }
}
