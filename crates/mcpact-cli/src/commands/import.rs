//! `mcpact import`: creates a config from the configs of other clients.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use mcpact_config::import::{CLIENTS, Client, Folders, Import};
use mcpact_config::{
    CatalogError, HostEnvironment as _, LocalHost, Problem, Severity, inspect, read_source,
};
use tempfile::NamedTempFile;

use crate::args::ImportArgs;
use crate::error::{CliError, Exit};
use crate::report::{self, problems};

pub(super) fn run(args: &ImportArgs) -> Result<Exit, CliError> {
    let is_stdout = args.output.as_os_str() == "-";
    let folders = folders()?;
    let mut sources = Vec::new();
    for path in files(&args.from, &folders)? {
        sources.push((read_source(&path)?, project(&path, &folders)?));
    }
    if !is_stdout {
        check_output(args)?;
    }
    let mut import = match &args.output {
        _ if is_stdout => Import::default(),
        output => Import::into_folder(LocalHost::at(folder_of(output)?).folder()),
    };
    for (source, project) in sources {
        import.add(source, &LocalHost::at(project));
    }
    if !args.from.is_empty() {
        reject_errors(&import)?;
    }
    for (source, found) in &import.reports {
        report::eprint(&problems::list(source, found));
    }
    if import.servers.is_empty() {
        return Err(CliError::NothingToImport);
    }
    if is_stdout {
        report::print(&import.text)?;
    } else {
        write(&args.output, &import.text).map_err(|source| CliError::Write {
            path: args.output.clone(),
            source,
        })?;
        let output = args.output.display();
        let count = report::count(import.servers.len(), "server");
        let names = import.servers.join(", ");
        report::print(&format!("{output}: {count}: {names}\n"))?;
        // Only variables can be missing: the import refused everything else.
        let (source, mut outcome) = inspect(&args.output)?;
        outcome.problems.retain(is_error);
        for problem in &mut outcome.problems {
            problem.severity = Severity::Warning;
            problem.message += ": the config is invalid until it is";
        }
        report::eprint(&problems::list(&source, &outcome.problems));
        report::hint(&format!("run `mcpact check {output}` to review them"));
    }
    Ok(Exit::Ok)
}

/// Requires the extension `.toml`, and `--force` to overwrite.
fn check_output(args: &ImportArgs) -> Result<(), CliError> {
    let extension = args.output.extension();
    if !extension.is_some_and(|extension| extension.eq_ignore_ascii_case("toml")) {
        return Err(CliError::OutputNotToml(args.output.clone()));
    }
    match !args.force && args.output.exists() {
        true => Err(CliError::OutputExists(args.output.clone())),
        false => Ok(()),
    }
}

/// Rejects the import if a source that was given explicitly has errors.
fn reject_errors(import: &Import) -> Result<(), CliError> {
    let mut reports = import.reports.iter();
    match reports.find(|(_, problems)| problems.iter().any(is_error)) {
        None => Ok(()),
        Some((source, problems)) => Err(CliError::Catalog(CatalogError::Refused {
            source_text: Box::new(source.clone()),
            problems: problems.clone(),
        })),
    }
}

fn is_error(problem: &Problem) -> bool {
    problem.severity == Severity::Error
}

/// Returns the folders in which clients keep their configs.
pub(super) fn folders() -> Result<Folders, CliError> {
    let project = std::env::current_dir().map_err(CliError::CurrentDir)?;
    let home = std::env::home_dir().unwrap_or_else(|| project.clone());
    let configs = std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from);
    let configs = configs.filter(|path| path.is_absolute());
    Ok(Folders {
        configs: configs.unwrap_or_else(|| home.join(".config")),
        home,
        project,
    })
}

/// Returns the canonical directory of a file.
fn folder_of(file: &Path) -> Result<PathBuf, CliError> {
    let whole = std::path::absolute(file).map_err(CliError::CurrentDir)?;
    let folder = whole.parent().unwrap_or(&whole);
    Ok(folder.canonicalize().unwrap_or_else(|_| folder.to_owned()))
}

/// Returns the project of a config: the current one for user-wide configs, else the directory of the config.
fn project(config: &Path, folders: &Folders) -> Result<PathBuf, CliError> {
    let whole = std::path::absolute(config).map_err(CliError::CurrentDir)?;
    if folders.is_for_all_projects(&whole) {
        return Ok(folders.project.clone());
    }
    let host = LocalHost::around(&whole).map_err(CliError::CurrentDir)?;
    let folder = PathBuf::from(host.folder());
    Ok(folder.canonicalize().unwrap_or(folder))
}

/// Resolves clients and paths to files. Files of the project come first and take precedence.
fn files(from: &[String], folders: &Folders) -> Result<Vec<PathBuf>, CliError> {
    let mut files = named_files(from, folders)?;
    files.sort_by_key(|path| {
        let whole = std::path::absolute(path);
        whole.is_ok_and(|whole| folders.is_for_all_projects(&whole))
    });
    Ok(files)
}

/// Expands a final `*` to the config files of the directory, sorted by name.
fn expand_wildcard(path: PathBuf) -> Vec<PathBuf> {
    let Some(folder) = path.parent().filter(|_| path.ends_with("*")) else {
        return vec![path];
    };
    let is_config = |path: &PathBuf| {
        let extension = path.extension().and_then(|extension| extension.to_str());
        matches!(extension, Some("yaml" | "yml" | "json"))
    };
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(is_config)
        .collect();
    files.sort();
    files
}

/// Resolves the arguments in order; of a client only the files that exist.
fn named_files(from: &[String], folders: &Folders) -> Result<Vec<PathBuf>, CliError> {
    let of = |client: &Client| {
        let paths = client.paths(folders).flat_map(expand_wildcard);
        paths.filter(|path| path.is_file()).collect::<Vec<_>>()
    };
    if from.is_empty() {
        return Ok(CLIENTS.iter().flat_map(of).collect());
    }
    let mut files = Vec::new();
    for given in from {
        match Client::named(given) {
            Some(client) => {
                let found = of(client);
                if found.is_empty() {
                    return Err(CliError::ClientWithoutConfig {
                        client: client.name,
                        searched: client.paths(folders).collect(),
                    });
                }
                files.extend(found);
            }
            None if !given.contains(['.', '/', '\\']) && !Path::new(given).is_file() => {
                let known = CLIENTS.iter().map(|client| client.name);
                return Err(CliError::unknown("client or file", given, "clients", known));
            }
            None => files.push(PathBuf::from(given)),
        }
    }
    Ok(files)
}

/// Writes a file atomically, readable only by its owner.
fn write(path: &Path, text: &str) -> std::io::Result<()> {
    let whole = std::path::absolute(path)?;
    let mut file = NamedTempFile::new_in(whole.parent().unwrap_or(&whole))?;
    file.write_all(text.as_bytes())?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    Ok(())
}
