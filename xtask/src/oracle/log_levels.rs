//! The names of the log levels.

use std::collections::BTreeSet;

use mcpact_spec::LogLevel;
use serde_json::Value;

use super::comparison::{Comparison, yes_no};
use super::schema::Schema;

/// Compares the levels as a set: the schemas list them by alphabet, not by severity.
pub(super) fn compare(comparison: &mut Comparison, schema: &Schema) {
    let listed = schema
        .definition("LoggingLevel")
        .and_then(|level| level.get("enum"));
    let listed = listed.and_then(Value::as_array).into_iter().flatten();
    let listed: BTreeSet<&str> = listed.filter_map(Value::as_str).collect();
    let known: BTreeSet<&str> = LogLevel::ALL.into_iter().map(LogLevel::as_str).collect();
    for level in known.union(&listed) {
        let (table, schema) = (known.contains(level), listed.contains(level));
        comparison.record(
            format_args!("log level {level}"),
            yes_no(table),
            yes_no(schema),
        );
    }
}
