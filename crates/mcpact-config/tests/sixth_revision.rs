//! A revision that is added to the tables is a value of the config keys and of the JSON Schema.
//!
//! The feature `pretend-revision` adds a sixth, modern revision.

use std::path::PathBuf;

use mcpact_config::{LocalHost, Source, json_schema, read};
use mcpact_engine::client::EraMode;
use mcpact_engine::revisions::RevisionSet;
use mcpact_spec::Revision;
use serde_json::Value;

const SIXTH: Revision = Revision::V2099_01_01;

#[test]
fn config_accepts_the_sixth_revision() {
    let text = "[gateway]\nrevisions = [\"2099-01-01\", \"2025-06-18\"]\n\
                [servers.a]\nbuiltin = \"everything\"\nera = \"2099-01-01\"\n";
    let source = Source::new("mcpact.toml", text.to_owned());
    let outcome = read(&source, &LocalHost::at(PathBuf::from("/")));
    let catalog = outcome.catalog.unwrap();
    let both = RevisionSet::of(&[SIXTH, Revision::V2025_06_18]);
    assert_eq!(catalog.gateway.policy.version.supported, both);
    let server = catalog.servers.values().next().unwrap();
    assert_eq!(server.era, EraMode::Pin(SIXTH));
}

#[test]
fn unknown_revision_suggests_the_sixth() {
    let source = Source::new(
        "mcpact.toml",
        "[gateway]\nrevisions = [\"2099-01-02\"]\n".to_owned(),
    );
    let outcome = read(&source, &LocalHost::at(PathBuf::from("/")));
    assert!(outcome.catalog.is_none());
    let told: String = outcome
        .problems
        .iter()
        .map(|p| p.in_one_line(&source))
        .collect();
    assert!(told.contains("2099-01-01"), "{told}");
}

#[test]
fn schema_lists_the_sixth_revision() {
    let schema: Value = serde_json::from_str(&json_schema()).unwrap();
    let keys = &schema["properties"];
    let revisions = keys["gateway"]["properties"]["revisions"].to_string();
    let era = keys["servers"].to_string();
    for name in Revision::NAMES {
        assert!(revisions.contains(name), "{name} in {revisions}");
        assert!(era.contains(name), "{name} in {era}");
    }
}
