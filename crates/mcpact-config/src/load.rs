//! From a file to a catalog: the only part that touches the disk.

use std::io;
use std::path::{Path, PathBuf};

use super::Catalog;
use super::machine::{Machine, is_writable_by_all, read_text};
use super::problem::{Problem, Severity};
use super::read::{Reading, read};
use super::source::{Source, Span};

/// No config is larger.
const MOST_BYTES: u64 = 4 << 20;

/// The files that are looked for when none is named.
const NAMES: [&str; 2] = ["mcpact.toml", ".mcp.json"];

/// Why there is no catalog.
#[derive(Debug, thiserror::Error)]
pub enum CatalogError {
    /// The file cannot be read.
    #[error("cannot read `{}`", .path.display())]
    Unreadable {
        /// Which file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The file is wrong.
    #[error("`{}` cannot be used:{}", .source_text.name, lines(.source_text, .problems))]
    Refused {
        /// What it says.
        source_text: Box<Source>,
        /// What is wrong with it, all of it.
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

/// A catalog with what should be known about it.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The catalog.
    pub catalog: Catalog,
    /// Where it was read.
    pub source: Source,
    /// Warnings and notes.
    pub problems: Vec<Problem>,
}

/// The text of a config.
///
/// # Errors
/// The file cannot be read.
pub fn read_source(path: &Path) -> Result<Source, CatalogError> {
    let text = read_text(path, MOST_BYTES).map_err(|source| unreadable(path, source))?;
    Ok(Source::new(path.display().to_string(), text))
}

fn unreadable(path: &Path, source: io::Error) -> CatalogError {
    CatalogError::Unreadable {
        path: path.to_owned(),
        source,
    }
}

/// Reads the config in a file, whatever is wrong with it.
///
/// # Errors
/// The file cannot be read.
pub fn inspect(path: &Path) -> Result<(Source, Reading), CatalogError> {
    let mut source = read_source(path)?;
    let machine = Machine::around(path).map_err(|source| unreadable(path, source))?;
    let mut reading = read(&source, &machine);
    source.files = machine.into_asked();
    if is_writable_by_all(path) {
        // Whoever may write it may run programs as whoever reads it.
        reading.catalog = None;
        reading.problems.insert(
            0,
            Problem {
                severity: Severity::Error,
                span: Span::default(),
                message: String::from("everybody on this machine may change this config"),
                remedy: Some(format!("take that right away: `chmod o-w {}`", source.name)),
            },
        );
    }
    reading.problems.extend(open_folder(path));
    Ok((source, reading))
}

/// A folder on the way to the config, or to where it really lies, in which everybody may put another in its place.
/// It is not refused: the volumes of containers look like that, though nobody else can reach them.
fn open_folder(path: &Path) -> Option<Problem> {
    let path = std::path::absolute(path).ok()?;
    let real = path.canonicalize().ok();
    let ways = path.ancestors().skip(1);
    let real_ways = real.iter().flat_map(|real| real.ancestors().skip(1));
    let mut ways = ways.chain(real_ways);
    let open = ways.find(|folder| is_writable_by_all(folder))?.display();
    Some(Problem {
        severity: Severity::Warning,
        span: Span::default(),
        message: format!(
            "everybody on this machine may change `{open}`, and so put another config there"
        ),
        remedy: Some(format!("take that right away: `chmod o-w {open}`")),
    })
}

/// Reads the config in a file.
///
/// # Errors
/// The file cannot be read, or something in it is wrong; then everything that is wrong is told.
pub fn load(path: &Path) -> Result<Loaded, CatalogError> {
    let (source, reading) = inspect(path)?;
    let problems = reading.problems;
    match reading.catalog {
        Some(catalog) => Ok(Loaded {
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

/// The nearest config: `mcpact.toml` or `.mcp.json` in a folder or in one above it.
#[must_use]
pub fn nearest_config(folder: &Path) -> Option<PathBuf> {
    folder.ancestors().find_map(|folder| {
        let paths = NAMES.iter().map(|name| folder.join(name));
        paths.into_iter().find(|path| path.is_file())
    })
}
