//! Code that a command runs, as far as it is found without running it: the program, programs behind launchers, and the
//! script of an interpreter.

use std::io;
use std::path::{Path, PathBuf};

use mcpact_transport::stdio::child::LaunchProblem;

use super::file::{FileState, exchanged, is_system};
use crate::local_host::{ProgramLookup, program, read_text};
use crate::policy::interpreters::{Interpreter, Main, interpreter};
use crate::policy::tables::{self, Behind, Launcher, MissingPin};
use crate::{CommandLaunch, EnvValue, ExpandedText};

/// Longest chain of launchers; the command policy refuses longer ones.
const MAX_LAUNCHERS: usize = 5;

/// Maximum number of files of one command.
const MAX_FILES: usize = 64;

/// Maximum size of a `package.json`.
const MAX_MANIFEST: u64 = 1 << 20;

/// Code of a command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Code {
    /// The program, then the other files.
    pub(super) files: Vec<CodeFile>,
    /// Number of leading arguments that select code.
    pub(super) selecting: usize,
    /// Code without a file.
    pub(super) missing: Option<MissingCode>,
    /// Package that a runner starts without a version.
    pub(super) unpinned: Option<Unpinned>,
}

/// A file with code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CodeFile {
    /// Label for the user.
    pub(super) role: &'static str,
    pub(super) path: PathBuf,
    pub(super) state: FileState,
    /// Digest of the contents; `None` for runners and interpreters that only root can change.
    pub(super) contents: Option<[u8; 32]>,
}

/// Code that is found in no file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum MissingCode {
    /// The argument at this position names it.
    Argument(usize),
    /// The program with this name decides.
    Program(String),
}

/// A package without a version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Unpinned {
    /// Position of its argument.
    pub(super) at: usize,
    /// Length of the option before it in the argument.
    pub(super) option: usize,
    /// Name of the runner.
    pub(super) runner: String,
    pub(super) missing: MissingPin,
}

/// Environment in which a program is looked up.
#[derive(Clone)]
struct Place<'a> {
    folder: Option<String>,
    path: Option<&'a str>,
}

impl Place<'_> {
    fn join(&self, path: &str) -> PathBuf {
        let whole = Path::new(self.folder.as_deref().unwrap_or_default()).join(path);
        std::path::absolute(&whole).unwrap_or(whole)
    }

    fn program(&self, name: &str) -> Option<PathBuf> {
        program(&ProgramLookup {
            program: name,
            path: self.path,
            folder: self.folder.as_deref(),
        })
    }
}

/// Search for the code of a command.
struct Search<'a> {
    args: Vec<&'a str>,
    python_path: Option<&'a str>,
    code: Code,
}

impl Code {
    /// Code of a launch with the absolute path of its program.
    ///
    /// # Errors
    /// A file cannot be read, or changes meanwhile. The error is a [`LaunchProblem`] if the program cannot be started.
    pub(super) fn of(launch: &CommandLaunch) -> io::Result<Self> {
        let env = |name: &str| launch.env.get(name).map(EnvValue::reveal);
        let mut search = Search {
            args: launch.args.iter().map(ExpandedText::value).collect(),
            python_path: env("PYTHONPATH"),
            code: Self::default(),
        };
        let place = Place {
            folder: launch.cwd.as_ref().map(|cwd| cwd.value().to_owned()),
            path: env("PATH"),
        };
        let path = Path::new(launch.program.value());
        search.program(path, 0, &place, 0).map_err(|error| {
            let is_exchanged = LaunchProblem::of(&error).is_some();
            let found = LaunchProblem::at(&[path.to_owned()]).filter(|_| !is_exchanged);
            found.map_or(error, io::Error::other)
        })?;
        Ok(search.code)
    }

    /// Compares the code with the current files.
    ///
    /// # Errors
    /// [`LaunchProblem::Exchanged`]: a file differs.
    pub(super) fn verify(&self, launch: &CommandLaunch) -> io::Result<()> {
        let now = Self::of(launch)?;
        if now == *self {
            return Ok(());
        }
        let mut both = self.files.iter().zip(&now.files);
        let different = both.find(|(before, now)| before != now);
        let path = different.map(|(before, _)| before).or(self.files.last());
        Err(exchanged(path.map_or(Path::new(""), |file| &file.path)))
    }
}

impl Search<'_> {
    fn select(&mut self, count: usize) {
        self.code.selecting = self.code.selecting.max(count.min(self.args.len()));
    }

    fn add(&mut self, role: &'static str, path: PathBuf) -> io::Result<()> {
        let state = FileState::of(&path)?;
        let contents = Some(state.contents()?);
        self.push(CodeFile {
            role,
            path,
            state,
            contents,
        })
    }

    fn push(&mut self, file: CodeFile) -> io::Result<()> {
        if self.code.files.len() >= MAX_FILES {
            return Err(io::Error::other(format!(
                "more than {MAX_FILES} files of code"
            )));
        }
        self.code.files.push(file);
        Ok(())
    }

    /// Adds a program and what it runs. `at` is the position of its first argument.
    fn program(
        &mut self,
        path: &Path,
        at: usize,
        place: &Place<'_>,
        depth: usize,
    ) -> io::Result<()> {
        let state = FileState::of(path)?;
        let (name, real) = (
            path.to_string_lossy(),
            state.real.to_string_lossy().into_owned(),
        );
        let launcher = tables::launcher(&name).or_else(|| tables::linked_launcher(&real));
        let interpreter = interpreter(&name).or_else(|| interpreter(&real));
        let is_runner = launcher.is_some() || interpreter.is_some();
        let folder = place.join(".");
        let by_path = is_runner
            && state.is_protected
            && [path, &state.real]
                .iter()
                .all(|path| is_system(path, &folder));
        let contents = match by_path {
            true => None,
            false => Some(state.contents()?),
        };
        self.push(CodeFile {
            role: if depth == 0 { "program" } else { "starts" },
            path: path.to_owned(),
            state,
            contents,
        })?;
        self.behind(&name, (launcher, interpreter), at, place, depth)
    }

    /// Adds what a launcher or interpreter runs.
    fn behind(
        &mut self,
        name: &str,
        (launcher, interpreter): (Option<&Launcher>, Option<&'static Interpreter>),
        at: usize,
        place: &Place<'_>,
        depth: usize,
    ) -> io::Result<()> {
        if depth >= MAX_LAUNCHERS {
            self.select(self.args.len());
            return Ok(());
        }
        if let Some(launcher) = launcher
            && self.launcher(name, launcher, at, place, depth)?
        {
            return Ok(());
        }
        if let Some(interpreter) = interpreter {
            return self.interpreter(name, interpreter, at, place);
        }
        if launcher.is_some() {
            self.select(self.args.len());
        }
        // Many launchers start the program after `--`.
        let dashes = self.args[at..].iter().position(|word| *word == "--");
        let Some(next) = dashes.map(|dashes| at + dashes + 1) else {
            return Ok(());
        };
        match self.args.get(next).copied() {
            Some(word) if word.contains('/') || is_known(word) => {
                self.code.missing = None;
                self.select(next + 1);
                self.named(word, next + 1, place, depth)
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Adds a program that is looked up by its name; if there is none, only what a known program of this name runs.
    fn named(&mut self, word: &str, at: usize, place: &Place<'_>, depth: usize) -> io::Result<()> {
        match place.program(word) {
            Some(path) => self.program(&path, at, place, depth + 1),
            None => {
                let name = tables::package_name(word);
                let known = (tables::launcher(name), interpreter(name));
                if matches!(known, (None, None)) && !word.contains("://") {
                    self.code.missing = Some(MissingCode::Argument(at - 1));
                }
                self.behind(name, known, at, place, depth + 1)
            }
        }
    }

    /// Adds what a launcher starts. Returns false if its arguments name no program.
    fn launcher(
        &mut self,
        name: &str,
        launcher: &Launcher,
        at: usize,
        place: &Place<'_>,
        depth: usize,
    ) -> io::Result<bool> {
        let args = self.args[at..].to_vec();
        let found = launcher.read(&args);
        if let (Some(package), Some(pin)) = (found.package, launcher.pin)
            && let Some(missing) = pin.missing(package.value)
        {
            self.code.unpinned = Some(Unpinned {
                at: at + package.at,
                option: args[package.at].len() - package.value.len(),
                runner: tables::program_name(name),
                missing,
            });
        }
        let place = Place {
            folder: match found.folder {
                Some(folder) => Some(place.join(folder).to_string_lossy().into_owned()),
                None => place.folder.clone(),
            },
            path: found.path.or(place.path),
        };
        if found.script.is_some() {
            return Ok(false);
        }
        let Some(next) = found.program else {
            if launcher.behind != Behind::Program {
                self.code.missing = Some(MissingCode::Program(tables::program_name(name)));
                self.project(launcher.manifests, &place)?;
            }
            return Ok(false);
        };
        let word = args[next];
        let next = at + next + 1;
        self.select(next);
        if found.is_module {
            let files = self.module_files(word, &place);
            self.scripts(files, next)?;
            return Ok(true);
        }
        // Without a package, the program is one of the project or the system.
        let behind = match (launcher.behind, found.package) {
            (Behind::Program, _) => Behind::Program,
            (Behind::Package | Behind::Perhaps, Some(_)) => Behind::Package,
            (Behind::Package | Behind::Perhaps, None) => Behind::Perhaps,
        };
        let is_script = || behind == Behind::Perhaps && place.join(word).is_file();
        if place.program(word).is_none() && is_script() {
            self.add("script", place.join(word))?;
            return Ok(true);
        }
        let is_program = match behind {
            Behind::Program | Behind::Perhaps => true,
            Behind::Package => word.contains('/') && place.program(word).is_some(),
        };
        if is_program {
            self.named(word, next, &place, depth)?;
        } else {
            if let Some(package) = found.package.filter(|one| tables::is_local(one.value)) {
                self.code.missing = Some(MissingCode::Argument(at + package.at));
            }
            let name = tables::package_name(word);
            let known = (tables::launcher(name), interpreter(name));
            self.behind(name, known, next, &place, depth + 1)?;
        }
        Ok(true)
    }

    /// Adds the files that decide what a project runs, from the nearest folder with one.
    fn project(&mut self, names: &[&str], place: &Place<'_>) -> io::Result<()> {
        let folder = place.join(".");
        let files = folder.ancestors().map(|folder| {
            let files = names.iter().map(|name| folder.join(name));
            files.filter(|path| path.is_file()).collect::<Vec<_>>()
        });
        let mut found = files.filter(|files| !files.is_empty());
        let files = found.next().into_iter().flatten();
        files
            .into_iter()
            .try_for_each(|path| self.add("loads", path))
    }

    /// Adds the files of the script or module that is named before this position.
    fn scripts(&mut self, files: Vec<PathBuf>, next: usize) -> io::Result<()> {
        if files.is_empty() {
            self.code.missing = Some(MissingCode::Argument(next - 1));
        }
        files
            .into_iter()
            .try_for_each(|path| self.add("script", path))
    }

    fn interpreter(
        &mut self,
        name: &str,
        interpreter: &Interpreter,
        at: usize,
        place: &Place<'_>,
    ) -> io::Result<()> {
        self.code.missing = None;
        let args = self.args[at..].to_vec();
        let is_file = |word: &str| !script_files(interpreter, &place.join(word)).is_empty();
        let found = interpreter.read(&args, is_file);
        let place = match found.folder {
            Some(folder) => Place {
                folder: Some(place.join(folder).to_string_lossy().into_owned()),
                ..place.clone()
            },
            None => place.clone(),
        };
        let files = |word: &str| {
            let word = word.strip_prefix("file://").unwrap_or(word);
            script_files(interpreter, &place.join(word))
        };
        for path in found.loaded.iter().flat_map(|word| files(word)) {
            self.add("loads", path)?;
        }
        let (count, files) = match found.main {
            Main::Nothing => {
                if found.loaded.is_empty() {
                    self.code.missing = Some(MissingCode::Program(tables::program_name(name)));
                }
                self.select(self.args.len());
                return Ok(());
            }
            Main::Inline(count) => {
                self.select(at + count);
                return Ok(());
            }
            Main::Script(count, word) => (count, files(word)),
            Main::Module(count, name) => (count, self.module_files(name, &place)),
        };
        self.select(at + count);
        if files.is_empty() {
            self.project(interpreter.manifests, &place)?;
        }
        self.scripts(files, at + count)
    }

    /// Files of a Python module in the working directory or `PYTHONPATH`.
    fn module_files(&self, name: &str, place: &Place<'_>) -> Vec<PathBuf> {
        let other = self.python_path.map(std::env::split_paths);
        let other = other.into_iter().flatten();
        let other = other.map(|folder| place.join(&folder.to_string_lossy()));
        let mut all = Vec::new();
        for base in std::iter::once(place.join(".")).chain(other) {
            let mut packages = Vec::new();
            let mut path = base;
            for part in name.split('.') {
                path.push(part);
                packages.push(path.join("__init__.py"));
            }
            let main = [path.with_added_extension("py"), path.join("__main__.py")];
            if main.iter().any(|path| path.is_file()) {
                all.extend(packages.into_iter().chain(main));
            }
        }
        all.retain(|path| path.is_file());
        all
    }
}

/// Returns true for the name of a launcher or interpreter.
fn is_known(word: &str) -> bool {
    tables::launcher(word).is_some() || interpreter(word).is_some()
}

/// Files that an interpreter runs for a script; also for `server.py:app`, which names an object in it.
fn script_files(interpreter: &Interpreter, script: &Path) -> Vec<PathBuf> {
    let files = files_at(interpreter, script);
    let text = script.to_string_lossy();
    match text.rsplit_once(':').filter(|_| files.is_empty()) {
        Some((file, _)) => files_at(interpreter, Path::new(file)),
        None => files,
    }
}

fn files_at(interpreter: &Interpreter, script: &Path) -> Vec<PathBuf> {
    let file = |script: &Path| {
        let mut paths = interpreter.endings.iter().map(|ending| {
            let mut path = script.as_os_str().to_owned();
            path.push(ending);
            PathBuf::from(path)
        });
        paths.find(|path| path.is_file())
    };
    if let Some(path) = file(script) {
        return vec![path];
    }
    let manifest = script.join("package.json");
    if interpreter.endings.len() > 1
        && let Some(main) = main_of(&manifest)
    {
        let main = file(&script.join(main));
        return std::iter::once(manifest).chain(main).collect();
    }
    let mut indexes = interpreter.indexes.iter().map(|index| script.join(index));
    indexes.find(|path| path.is_file()).into_iter().collect()
}

/// Main file in a `package.json`.
fn main_of(manifest: &Path) -> Option<String> {
    let text = read_text(manifest, MAX_MANIFEST).ok()?;
    let manifest: serde_json::Value = serde_json::from_str(&text).ok()?;
    Some(manifest.get("main")?.as_str()?.to_owned())
}
