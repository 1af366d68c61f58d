//! Findings about a config file.

use std::path::Path;

use mcpact_config::{ConfigDigest, ReadOutcome, Severity, Source, is_readable_by_all};

use super::{Finding, Subject};

/// Examines a config file: its problems and permissions, and those of the files that it takes values from.
pub(crate) fn examine(file: &Path, source: &Source, outcome: &ReadOutcome) -> Vec<Finding> {
    let mut findings = vec![permissions(file)];
    let digest = ConfigDigest::of(source);
    let values = digest.files().filter(|path| is_readable_by_all(path));
    findings.extend(values.map(|path| {
        let path = path.display();
        Finding::warning(
            Subject::Permissions,
            format!(
                "every user of this machine can read `{path}`, whose text is a value of the config"
            ),
            format!("run `chmod 600 {path}`"),
        )
    }));
    for problem in &outcome.problems {
        let line = source.position(problem.span.start).line;
        let text = format!("line {line}: {}", problem.message);
        let remedy = problem.remedy.clone();
        let remedy = remedy.unwrap_or_else(|| String::from("run `mcpact check` to see the line"));
        match problem.severity {
            Severity::Note => {}
            Severity::Warning => findings.push(Finding::warning(Subject::Config, text, remedy)),
            Severity::Error => findings.push(Finding::problem(Subject::Config, text, remedy)),
        }
    }
    if findings
        .iter()
        .all(|finding| finding.subject != Subject::Config)
    {
        findings.push(Finding::ok(Subject::Config, "valid"));
    }
    findings
}

/// Other users who can write the file can choose what is started.
#[cfg(unix)]
fn permissions(file: &Path) -> Finding {
    use std::os::unix::fs::PermissionsExt as _;

    let mode = std::fs::metadata(file).map(|found| found.permissions().mode() & 0o777);
    match mode {
        Ok(mode) if mode & 0o002 != 0 => Finding::problem(
            Subject::Permissions,
            format!("every user of this machine can write the file (mode {mode:o})"),
            format!("run `chmod o-w {}`", file.display()),
        ),
        Ok(mode) if mode & 0o020 != 0 => Finding::ok(
            Subject::Permissions,
            format!("you and your group can write the file (mode {mode:o})"),
        ),
        Ok(mode) => Finding::ok(
            Subject::Permissions,
            format!("only you can write the file (mode {mode:o})"),
        ),
        Err(error) => Finding::warning(
            Subject::Permissions,
            format!("the permissions are unknown: {error}"),
            "check that the file exists",
        ),
    }
}

#[cfg(not(unix))]
fn permissions(_: &Path) -> Finding {
    Finding::ok(Subject::Permissions, "not checked on this system")
}
