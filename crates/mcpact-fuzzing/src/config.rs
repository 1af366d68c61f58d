use mcpact_config::import::Import;
use mcpact_config::{
    HostEnvironment, Problem, ProgramFacts, ProgramLookup, Severity, Source, expand_text, read,
};

/// File names of every syntax and of clients whose configs are converted.
const NAMES: &[&str] = &[
    "mcpact.toml",
    ".mcp.json",
    "config.yaml",
    "config",
    ".vscode/settings.json",
    "opencode.jsonc",
    ".gemini/settings.json",
    ".codex/config.toml",
    ".continue/mcpServers/a.yaml",
];

/// Value of every variable and file, which is a secret.
const SECRET: &str = "hunter2-never-shown";

/// Maximum bytes of an imported config per byte of its source, above a fixed number: a bomb needs more.
const GROWTH: usize = 64;

/// Host with one variable and one file.
struct FakeHost;

impl HostEnvironment for FakeHost {
    fn variable(&self, name: &str) -> Option<String> {
        (name == "A").then(|| SECRET.to_owned())
    }

    fn folder(&self) -> String {
        String::from("/project")
    }

    fn file(&self, path: &str) -> Result<String, String> {
        match path.ends_with('a') {
            true => Ok(SECRET.to_owned()),
            false => Err(String::from("not found")),
        }
    }

    fn has_folder(&self, path: &str) -> bool {
        path.len().is_multiple_of(2)
    }

    fn exists(&self, path: &str) -> bool {
        path.len().is_multiple_of(3)
    }

    fn writable_by_all(&self, _: &str) -> Option<String> {
        None
    }

    fn program(&self, lookup: &ProgramLookup<'_>) -> ProgramFacts {
        ProgramFacts {
            path: (!lookup.program.is_empty()).then(|| format!("/bin/{}", lookup.program)),
            ..ProgramFacts::default()
        }
    }
}

/// Configs are read, expanded and imported without a panic, problems have a place in the text and show no secrets, and
/// what is imported can be read.
///
/// The first byte selects the file name, the rest is the text.
///
/// # Panics
/// An invariant is broken.
pub fn config(data: &[u8]) {
    let Some((name, text)) = data.split_first() else {
        return;
    };
    let Ok(text) = core::str::from_utf8(text) else {
        return;
    };
    let source = Source::new(NAMES[usize::from(*name) % NAMES.len()], text);
    let outcome = read(&source, &FakeHost);
    placed(&outcome.problems, &source);
    let has_errors = has_errors(&outcome.problems);
    match &outcome.catalog {
        // Errors of single servers of another client's config leave these servers out.
        Some(catalog) => assert!(!has_errors || !catalog.wrong.is_empty(), "{outcome:?}"),
        None => assert!(has_errors, "{outcome:?}"),
    }
    imported(source);
    let problems: Vec<Problem> = expand_text(text, &FakeHost).err().into_iter().collect();
    let mut source = Source::new("", "");
    // With its byte order mark, because it is no file.
    text.clone_into(&mut source.text);
    placed(&problems, &source);
}

fn has_errors(problems: &[Problem]) -> bool {
    let mut problems = problems.iter();
    problems.any(|problem| problem.severity == Severity::Error)
}

fn placed(problems: &[Problem], source: &Source) {
    for problem in problems {
        let span = problem.span;
        assert!(
            source.text.get(span.start..span.end).is_some(),
            "{problem:?}"
        );
        let line = problem.in_one_line(source);
        assert!(
            !line.contains(SECRET) || source.text.contains(SECRET),
            "{line}"
        );
    }
}

fn imported(source: Source) {
    let limit = GROWTH * source.text.len() + (8 << 20);
    let mut import = Import::default();
    import.add(source, &FakeHost);
    for (source, problems) in &import.reports {
        placed(problems, source);
    }
    assert!(import.text.len() <= limit, "{} bytes", import.text.len());
    let native = Source::new("mcpact.toml", import.text);
    let outcome = read(&native, &FakeHost);
    let is_broken = |problem: &&Problem| problem.message.starts_with("invalid TOML");
    let broken = outcome.problems.iter().find(is_broken);
    assert!(broken.is_none(), "{broken:?}: {}", native.text);
    if let Some(catalog) = outcome.catalog {
        assert_eq!(catalog.servers.len(), import.servers.len());
    }
}
