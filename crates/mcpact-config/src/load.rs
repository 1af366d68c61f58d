//! Loading of config files. Only this module and `local_host` touch the disk.

use std::io;
use std::path::{Path, PathBuf};

use super::Catalog;
use super::local_host::{LocalHost, Placeholders, is_writable_by_all, read_text};
use super::policy_settings::PolicySettings;
use super::problem::{Problem, Severity};
use super::read::{ReadOutcome, read_with};
use super::source::{Source, Span};

/// Maximum size of a config.
const MAX_BYTES: u64 = 4 << 20;

/// Default file names, in order of preference.
const NAMES: [&str; 2] = ["mcpact.toml", ".mcp.json"];

/// Failure to load a config.
#[derive(Debug, thiserror::Error)]
pub enum CatalogError {
    /// The file cannot be read.
    #[error("cannot read `{}`", .path.display())]
    Unreadable {
        /// Path of the file.
        path: PathBuf,
        /// Cause.
        #[source]
        source: io::Error,
    },
    /// The config is invalid.
    #[error("invalid config `{}`:{}", .source_text.name, lines(.source_text, .problems))]
    Refused {
        /// Text of the config.
        source_text: Box<Source>,
        /// All problems.
        problems: Vec<Problem>,
    },
}

fn lines(source: &Source, problems: &[Problem]) -> String {
    let errors = problems
        .iter()
        .filter(|problem| problem.severity == Severity::Error);
    let lines = errors.map(|problem| format!("\n  {}", problem.in_one_line(source)));
    lines.collect()
}

/// A config that was loaded, with its warnings.
#[derive(Clone, Debug)]
pub struct LoadedConfig {
    /// The validated config.
    pub catalog: Catalog,
    /// Text and name of the file.
    pub source: Source,
    /// Warnings and notes.
    pub problems: Vec<Problem>,
}

/// Reads the text of a config.
///
/// # Errors
/// The file cannot be read.
pub fn read_source(path: &Path) -> Result<Source, CatalogError> {
    let text = read_text(path, MAX_BYTES).map_err(|source| unreadable(path, source))?;
    Ok(Source::new(path.display().to_string(), text))
}

/// Reads the text of a config as it is, with its byte order mark.
///
/// # Errors
/// The file cannot be read.
pub fn read_config_text(path: &Path) -> Result<String, CatalogError> {
    read_text(path, MAX_BYTES).map_err(|source| unreadable(path, source))
}

/// Validates a text as the content of a config file. A variable or file that is missing counts as set, so that a config
/// can be edited where its secrets are not available.
///
/// # Errors
/// The config is invalid. The error lists all problems.
pub fn outline(path: &Path, text: &str) -> Result<Catalog, CatalogError> {
    let source = Source::new(path.display().to_string(), text);
    let host = LocalHost::around(path).map_err(|source| unreadable(path, source))?;
    let outcome = read_with(&source, &Placeholders(&host), &PolicySettings::default());
    let problems = outcome.problems;
    outcome.catalog.ok_or_else(|| CatalogError::Refused {
        source_text: Box::new(source),
        problems,
    })
}

fn unreadable(path: &Path, source: io::Error) -> CatalogError {
    CatalogError::Unreadable {
        path: path.to_owned(),
        source,
    }
}

/// Reads and validates a config file; problems are part of the outcome.
///
/// # Errors
/// The file cannot be read.
pub fn inspect(path: &Path) -> Result<(Source, ReadOutcome), CatalogError> {
    inspect_with(path, &PolicySettings::default())
}

fn inspect_with(
    path: &Path,
    settings: &PolicySettings,
) -> Result<(Source, ReadOutcome), CatalogError> {
    let mut source = read_source(path)?;
    let host = LocalHost::around(path).map_err(|source| unreadable(path, source))?;
    let mut outcome = read_with(&source, &host, settings);
    source.files = host.into_read_files();
    if is_writable_by_all(path) {
        // Write access to the config allows running programs as its reader.
        outcome.catalog = None;
        let message = "this config is world-writable";
        let problem = world_writable(Severity::Error, message, &source.name);
        outcome.problems.insert(0, problem);
    }
    outcome.problems.extend(open_folder(path));
    Ok((source, outcome))
}

/// Warns if the config is in a world-writable folder, where others can replace it. Not an error, because container
/// volumes often look like that.
fn open_folder(path: &Path) -> Option<Problem> {
    let path = std::path::absolute(path).ok()?;
    let real = path.canonicalize().ok();
    let ways = path.ancestors().skip(1);
    let real_ways = real.iter().flat_map(|real| real.ancestors().skip(1));
    let mut ways = ways.chain(real_ways);
    let open = ways.find(|folder| is_writable_by_all(folder))?;
    let open = open.display().to_string();
    let message = format!("`{open}` is world-writable: anyone can replace the config");
    Some(world_writable(Severity::Warning, message, &open))
}

fn world_writable(severity: Severity, message: impl Into<String>, path: &str) -> Problem {
    let remedy = Some(format!("run `chmod o-w {path}`"));
    Problem::new(severity, Span::default(), message, remedy)
}

/// Loads a config file.
///
/// # Errors
/// The file cannot be read or is invalid. The error lists all problems.
pub fn load(path: &Path) -> Result<LoadedConfig, CatalogError> {
    load_with(path, &PolicySettings::default())
}

/// Loads a config file; the settings replace keys of its `[gateway]`.
///
/// # Errors
/// The file cannot be read, or it is invalid with these settings. The error lists all problems.
pub fn load_with(path: &Path, settings: &PolicySettings) -> Result<LoadedConfig, CatalogError> {
    let (source, outcome) = inspect_with(path, settings)?;
    let problems = outcome.problems;
    match outcome.catalog {
        Some(catalog) => Ok(LoadedConfig {
            catalog,
            source,
            problems,
        }),
        None => Err(CatalogError::Refused {
            source_text: Box::new(source),
            problems,
        }),
    }
}

/// Finds `mcpact.toml` or `.mcp.json` in a folder or the nearest parent folder.
#[must_use]
pub fn nearest_config(folder: &Path) -> Option<PathBuf> {
    folder.ancestors().find_map(|folder| {
        let paths = NAMES.iter().map(|name| folder.join(name));
        paths.into_iter().find(|path| path.is_file())
    })
}
