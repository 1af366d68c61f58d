//! Property tests: any input yields a catalog or problems with positions.

use mcpact_config::import::Import;
use mcpact_config::{LocalHost, Severity, Source, read};
use proptest::prelude::*;

const EXAMPLES: [(&str, &str); 4] = [
    (
        "a.toml",
        "[gateway]\nlisten = \"127.0.0.1:1\"\n[servers.a]\ncommand = \"sleep\"\nargs = [\"${HOME}\", \"x\"]\nenv = { A = \"${B:-c}\" }\nidle_seconds = 1.5\n",
    ),
    (
        "a.json",
        "{ // c\n \"mcpServers\": {\"é\": {\"command\": [\"sleep\", \"1\"], \"env\": {\"K\": 1}, \"disabled\": true}, \"b\": {\"url\": \"https://b/\"},}, }",
    ),
    (
        "a.yaml",
        "servers:\n  - &x {name: a, cmd: [sleep, \"1\"], idleSeconds: 3}\n  - {<<: *x, name: b}\n",
    ),
    (
        "a",
        "{\"mcp\": {\"a\": {\"type\": \"local\", \"command\": [\"sleep\"], \"environment\": {\"K\": \"{env:HOME}\"}}}}",
    ),
];

/// An example with pieces removed, duplicated or replaced.
fn damaged() -> impl Strategy<Value = (&'static str, String)> {
    let cuts = proptest::collection::vec(
        (any::<proptest::sample::Index>(), 0..6_usize, ".{0,3}"),
        0..6,
    );
    (0..EXAMPLES.len(), cuts).prop_map(|(which, cuts)| {
        let (name, text) = EXAMPLES[which];
        let mut chars: Vec<char> = text.chars().collect();
        for (at, length, put) in cuts {
            let at = at.index(chars.len() + 1).min(chars.len());
            let end = (at + length).min(chars.len());
            chars.splice(at..end, put.chars());
        }
        (name, chars.into_iter().collect())
    })
}

proptest! {
    /// No input panics; a config with an error is rejected, or skips a server.
    #[test]
    fn any_input_is_handled((name, text) in damaged()) {
        let source = Source::new(name, text);
        let host = LocalHost::at(std::path::PathBuf::from("/"));
        let outcome = read(&source, &host);
        let has_errors = outcome.problems.iter().any(|found| found.severity == Severity::Error);
        let skips = outcome.catalog.as_ref().map(|catalog| !catalog.wrong.is_empty());
        prop_assert!(skips.unwrap_or(true) || !has_errors);
        prop_assert!(has_errors || outcome.catalog.is_some());
        for found in &outcome.problems {
            prop_assert!(found.span.start <= source.text.len());
            prop_assert!(!found.in_one_line(&source).is_empty());
        }
    }

    /// An import is always syntactically valid.
    #[test]
    fn import_is_always_valid((name, text) in damaged()) {
        let mut import = Import::default();
        let host = LocalHost::at(std::path::PathBuf::from("/"));
        import.add(Source::new(name, text), &host);
        let table = toml::from_str::<toml::Table>(&import.text);
        prop_assert!(table.is_ok(), "{:?}\n{}", table, import.text);
    }
}
