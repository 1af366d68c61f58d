//! Comparison of the tables of mcpact-spec with the official schemas.
//!
//! Every fact in a schema is compared with the tables as text. Each difference needs an entry in
//! [`exceptions`]; an entry without a difference is stale. One file per kind of fact.

mod capabilities;
mod comparison;
mod content_kinds;
mod error_codes;
mod exceptions;
mod features;
mod fields;
mod log_levels;
mod meta_keys;
mod methods;
mod protocol_keys;
mod results;
mod schema;
mod tasks_extension;
mod verdict;

use std::path::Path;

use mcpact_spec::Revision;

use crate::checkout::Checkout;
use crate::failure::Failure;
use crate::process::{cargo, run as run_program};
use crate::report;
use comparison::Comparison;
use exceptions::TasksSchema;
use fields::KnownFields;
use schema::Schema;
use verdict::Verdict;

/// Vendored copies of the official schemas.
const VENDORED: &str = "crates/mcpact-spec/schemas";

/// Test that validates the messages of the reference server and the client, and its variable for other schemas.
const MESSAGES: [&str; 4] = ["test", "--workspace", "--test", "official_schemas"];
const MESSAGES_DIR: &str = "MCPACT_SCHEMAS";

/// Compares the tables and the messages of the reference server and the client with `dir/<revision>/schema.json`.
pub(crate) fn run(checkout: &Checkout, dir: Option<&Path>) -> Result<(), Failure> {
    let dir = dir.map_or_else(|| checkout.path(VENDORED), Path::to_owned);
    compare_tables(&dir)?;
    let mut messages = cargo(checkout);
    messages.env(
        MESSAGES_DIR,
        std::path::absolute(&dir).map_err(Failure::file(&dir))?,
    );
    run_program(messages.args(MESSAGES))
}

/// Compares the tables with the vendored schemas; the messages are part of the tests.
pub(crate) fn check_tables(checkout: &Checkout) -> Result<(), Failure> {
    compare_tables(&checkout.path(VENDORED))
}

fn compare_tables(dir: &Path) -> Result<(), Failure> {
    let tasks = tasks_extension::read(dir)?;
    let mut schemas = Vec::new();
    for revision in Revision::ALL {
        let schema = Schema::read(&dir.join(revision.as_str()).join("schema.json"))?;
        schemas.push((revision, schema));
    }
    let known = KnownFields::of(schemas.iter().map(|(_, schema)| schema));
    let mut comparisons = Vec::new();
    for (revision, schema) in &schemas {
        let mut comparison = compare(*revision, schema, tasks.as_ref());
        fields::compare(&mut comparison, schema, &known);
        comparisons.push(comparison);
    }
    let tasks_schema = if tasks.is_some() {
        TasksSchema::AtHand
    } else {
        TasksSchema::Missing
    };
    let exceptions = exceptions::in_force(tasks_schema);
    Verdict::new(&comparisons, &exceptions).into_result()?;
    report::say(summary(&comparisons, exceptions.len()));
    Ok(())
}

fn compare(revision: Revision, schema: &Schema, tasks: Option<&Schema>) -> Comparison {
    let mut comparison = Comparison::new(revision);
    methods::compare(&mut comparison, schema, tasks);
    results::compare(&mut comparison, schema);
    protocol_keys::compare(&mut comparison, schema);
    capabilities::compare(&mut comparison, schema);
    features::compare(&mut comparison, schema);
    error_codes::compare(&mut comparison, schema);
    log_levels::compare(&mut comparison, schema);
    meta_keys::compare(&mut comparison, schema);
    content_kinds::compare(&mut comparison, schema);
    comparison
}

fn summary(comparisons: &[Comparison], exceptions: usize) -> String {
    let facts: Vec<String> = comparisons
        .iter()
        .map(|comparison| format!("{} {}", comparison.revision(), comparison.facts()))
        .collect();
    format!(
        "oracle: facts compared: {}; exceptions: {exceptions}",
        facts.join(", ")
    )
}
