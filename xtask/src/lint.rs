use crate::checkout::{Checkout, SourceFile};
use crate::failure::Failure;
use crate::report;
use crate::source_text::SourceText;

/// Maximum length of a source file without its tests.
const MOST_LINES: usize = 800;

/// Code that must not be committed. Comments and strings are not checked.
const LEFTOVERS: &[&str] = &["todo!(", "#[ignore", "dbg!("];

/// Checks file lengths and leftovers.
pub(crate) fn run(checkout: &Checkout) -> Result<(), Failure> {
    let files = checkout.rust_files(&["crates", "interop", "xtask", "fuzz", "tests"])?;
    let findings = files.iter().flat_map(findings_in).collect();
    Failure::unless_clean(
        "lint",
        findings,
        "split long files by content; remove leftovers",
    )?;
    report::say(format_args!("lint: {} files checked", files.len()));
    Ok(())
}

fn findings_in(file: &SourceFile) -> Vec<String> {
    let source = SourceText::split(&file.text);
    let lines = source.lines_above_tests();
    let mut findings = Vec::new();
    if is_source(file) && lines > MOST_LINES {
        findings.push(format!(
            "{}: {lines} lines, at most {MOST_LINES}",
            file.path
        ));
    }
    for (line, number) in source.code.lines().zip(1..) {
        let left = LEFTOVERS
            .iter()
            .filter(|leftover| line.contains(**leftover));
        findings.extend(left.map(|leftover| format!("{}:{number}: `{leftover}`", file.path)));
    }
    findings
}

fn is_source(file: &SourceFile) -> bool {
    file.path.contains("/src/") && !file.is_test_module()
}

#[cfg(test)]
mod tests {
    use super::findings_in;
    use crate::checkout::SourceFile;

    fn found(path: &str, text: String) -> Vec<String> {
        findings_in(&SourceFile {
            path: path.to_owned(),
            text,
        })
    }

    #[test]
    fn long_sources_are_findings_and_long_tests_are_not() {
        assert_eq!(found("crates/a/src/b.rs", "\n".repeat(801)).len(), 1);
        assert!(found("crates/a/src/b.rs", "\n".repeat(800)).is_empty());
        assert!(found("crates/a/tests/b.rs", "\n".repeat(801)).is_empty());
        assert!(found("crates/a/src/b/tests.rs", "\n".repeat(801)).is_empty());
        let tests = format!("#[cfg(test)]\nmod tests {{{}}}", "\n".repeat(900));
        assert!(found("crates/a/src/b.rs", tests).is_empty());
    }

    #[test]
    fn leftovers_are_found_in_code_only() {
        let text = "// todo!()\nlet a = \"dbg!(\";\nfn b() { todo!() }".to_owned();
        assert_eq!(
            found("crates/a/src/b.rs", text),
            ["crates/a/src/b.rs:3: `todo!(`"]
        );
    }
}
