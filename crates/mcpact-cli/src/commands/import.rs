//! `mcpact import`: what other clients have configured, as a config of mcpact.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use mcpact_config::import::{CLIENTS, Client, Folders, Import};
use mcpact_config::{CatalogError, Machine, Problem, Severity, Surroundings as _, read_source};

use crate::args::Import as Args;
use crate::error::CliError;
use crate::exit::Exit;
use crate::report::{self, problems};

pub(super) fn run(args: &Args) -> Result<Exit, CliError> {
    let is_stdout = args.output.as_os_str() == "-";
    let folders = folders()?;
    let mut sources = Vec::new();
    for path in files(&args.from, &folders)? {
        sources.push((read_source(&path)?, project(&path, &folders)?));
    }
    if !is_stdout {
        refuse_output(args)?;
    }
    let mut import = match &args.output {
        _ if is_stdout => Import::default(),
        output => Import::into_folder(Machine::at(folder_of(output)?).folder()),
    };
    for (source, project) in sources {
        import.add(source, &Machine::at(project));
    }
    if !args.from.is_empty() {
        refuse_broken(&import)?;
    }
    for (source, found) in &import.reports {
        report::aside(&problems::list(source, found));
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
        let shown = args.output.display();
        let count = match import.servers.len() {
            1 => String::from("1 server"),
            count => format!("{count} servers"),
        };
        let names = import.servers.join(", ");
        report::print(&format!("{shown}: {count}: {names}\n"))?;
        report::hint(&format!(
            "see what they start, and what is missing: `mcpact check {shown}`"
        ));
    }
    Ok(Exit::Ok)
}

/// A file under another ending would not be read as what it is, and one that is there is not replaced unasked.
fn refuse_output(args: &Args) -> Result<(), CliError> {
    let ending = args.output.extension();
    if !ending.is_some_and(|ending| ending.eq_ignore_ascii_case("toml")) {
        return Err(CliError::OutputEnding(args.output.clone()));
    }
    match !args.force && args.output.exists() {
        true => Err(CliError::OutputExists(args.output.clone())),
        false => Ok(()),
    }
}

/// Of what was named, nothing may be missing: a file that cannot be used is told instead.
fn refuse_broken(import: &Import) -> Result<(), CliError> {
    let is_error = |problem: &Problem| problem.severity == Severity::Error;
    let mut reports = import.reports.iter();
    match reports.find(|(_, problems)| problems.iter().any(is_error)) {
        None => Ok(()),
        Some((source, problems)) => Err(CliError::Catalog(CatalogError::Refused {
            source_text: Box::new(source.clone()),
            problems: problems.clone(),
        })),
    }
}

fn folders() -> Result<Folders, CliError> {
    let project = std::env::current_dir().map_err(CliError::Here)?;
    let home = std::env::home_dir().unwrap_or_else(|| project.clone());
    let told = std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from);
    let told = told.filter(|path| path.is_absolute());
    Ok(Folders {
        configs: told.unwrap_or_else(|| home.join(".config")),
        home,
        project,
    })
}

/// The folder that a file lies in, whatever links lead there.
fn folder_of(file: &Path) -> Result<PathBuf, CliError> {
    let whole = std::path::absolute(file).map_err(CliError::Here)?;
    let folder = whole.parent().unwrap_or(&whole);
    Ok(folder.canonicalize().unwrap_or_else(|_| folder.to_owned()))
}

/// The folder that a config is about: the project if it is for all of them, else the one that it lies in.
fn project(config: &Path, folders: &Folders) -> Result<PathBuf, CliError> {
    let whole = std::path::absolute(config).map_err(CliError::Here)?;
    if folders.is_for_all_projects(&whole) {
        return Ok(folders.project.clone());
    }
    let machine = Machine::around(&whole).map_err(CliError::Here)?;
    let folder = PathBuf::from(machine.folder());
    Ok(folder.canonicalize().unwrap_or(folder))
}

/// The files that clients and paths stand for, those of the project first: what is nearer wins.
fn files(from: &[String], folders: &Folders) -> Result<Vec<PathBuf>, CliError> {
    let mut files = named_files(from, folders)?;
    files.sort_by_key(|path| {
        let whole = std::path::absolute(path);
        whole.is_ok_and(|whole| folders.is_for_all_projects(&whole))
    });
    Ok(files)
}

/// A file, or the files of a folder in the order of their names if `*` stands for them.
fn all_at(path: PathBuf) -> Vec<PathBuf> {
    let Some(folder) = path.parent().filter(|_| path.ends_with("*")) else {
        return vec![path];
    };
    let is_config = |path: &PathBuf| {
        let ending = path.extension().and_then(|ending| ending.to_str());
        matches!(ending, Some("yaml" | "yml" | "json"))
    };
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(is_config)
        .collect();
    files.sort();
    files
}

/// The files in the order in which they are named; of a client only those that are there.
fn named_files(from: &[String], folders: &Folders) -> Result<Vec<PathBuf>, CliError> {
    let of = |client: &Client| {
        let paths = client.paths(folders).flat_map(all_at);
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
                        looked: client.paths(folders).collect(),
                    });
                }
                files.extend(found);
            }
            None if !given.contains(['.', '/', '\\']) && !Path::new(given).is_file() => {
                return Err(CliError::UnknownClient {
                    given: given.clone(),
                });
            }
            None => files.push(PathBuf::from(given)),
        }
    }
    Ok(files)
}

/// Writes a file in one go, for nobody else to read: a reader sees the old one or the new one.
fn write(path: &Path, text: &str) -> std::io::Result<()> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".new");
    let beside = PathBuf::from(beside);
    let written = private(&beside).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.sync_all()
    });
    let moved = written.and_then(|()| std::fs::rename(&beside, path));
    if moved.is_err() {
        // What is half written is of no use to anybody.
        let _ = std::fs::remove_file(&beside);
    }
    moved
}

fn private(path: &Path) -> std::io::Result<File> {
    if let Err(error) = std::fs::remove_file(path)
        && error.kind() != ErrorKind::NotFound
    {
        return Err(error);
    }
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.mode(0o600);
    }
    options.open(path)
}
