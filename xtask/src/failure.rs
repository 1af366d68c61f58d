use std::path::{Path, PathBuf};

/// Error of an xtask command; the exit code is 1.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// The current folder is not inside a checkout.
    #[error("no checkout of mcpact here or above (looked for `xtask/Cargo.toml`)")]
    NoCheckout,
    /// A file or folder could not be read or written.
    #[error("`{}` cannot be accessed", path.display())]
    File {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    /// A JSON file is not JSON.
    #[error("`{}` is not JSON", path.display())]
    Json {
        path: PathBuf,
        #[source]
        source: serde_json::Error,
    },
    /// A TOML file is not TOML, or not of the expected form.
    #[error("`{}` is not the TOML that was expected", path.display())]
    Toml {
        path: PathBuf,
        #[source]
        source: toml::de::Error,
    },
    /// A program could not be started.
    #[error("`{command}` could not be started")]
    NotStarted {
        command: String,
        #[source]
        source: std::io::Error,
    },
    /// A program ended with an error of its own.
    #[error("`{command}` failed ({status})")]
    Program {
        command: String,
        status: std::process::ExitStatus,
    },
    /// A check found something; each line is one finding.
    #[error("{check}: {}\n{}\n\nhint: {hint}", count(.lines), indented(.lines))]
    Findings {
        check: &'static str,
        lines: Vec<String>,
        hint: &'static str,
    },
    /// A step of `cargo xtask test` failed.
    #[error("step `{step}` failed; run it alone with `{command}`")]
    Step {
        step: &'static str,
        command: &'static str,
        #[source]
        source: Box<Failure>,
    },
}

impl Failure {
    /// An access to `path` failed; for use in `map_err`.
    pub(crate) fn file(path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::File { path, source }
    }

    /// `Ok` when there are no findings.
    pub(crate) fn unless_clean(
        check: &'static str,
        lines: Vec<String>,
        hint: &'static str,
    ) -> Result<(), Self> {
        if lines.is_empty() {
            return Ok(());
        }
        Err(Self::Findings { check, lines, hint })
    }
}

fn count(lines: &[String]) -> String {
    match lines.len() {
        1 => "1 finding".to_owned(),
        n => format!("{n} findings"),
    }
}

fn indented(lines: &[String]) -> String {
    let lines: Vec<String> = lines.iter().map(|line| format!("  {line}")).collect();
    lines.join("\n")
}
