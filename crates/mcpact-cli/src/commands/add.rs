//! `mcpact add` and `mcpact remove`: edit the servers of `mcpact.toml`.

mod server_json;

use std::io::{BufRead as _, Read as _};
use std::path::{Path, PathBuf};

use mcpact_config::{
    CatalogError, Entry, EntryChange, EntryValue, ServerName, Severity, entry_names,
    nearest_config, outline, remove_entry, set_entry,
};

use super::{approve, edit};
use crate::args::{AddArgs, RemoveArgs};
use crate::error::{CliError, EditError, Exit};
use crate::report;

/// Start of a new config.
const COMMENT: &str =
    "# Servers of mcpact: `mcpact check` checks this file, `mcpact serve` serves it.\n";

/// Name of the table of servers.
const SERVERS: &str = "servers";

/// Maximum length of an answer.
const MAX_ANSWER: u64 = 1 << 10;

pub(super) fn run(args: &AddArgs) -> Result<Exit, CliError> {
    let name = ServerName::parse(&args.name).map_err(|source| EditError::Name {
        given: args.name.clone(),
        source,
    })?;
    let mut server = NewServer::of(args, &name)?;
    server.set_variables(&args.env)?;
    let file = match config(args.config.as_deref())? {
        Some(file) => file,
        None => {
            let here = std::env::current_dir().map_err(CliError::CurrentDir)?;
            here.join("mcpact.toml")
        }
    };
    let before = edit::read(&file)?;
    let text = before.as_deref().unwrap_or(COMMENT);
    let path = file.display().to_string();
    if !args.force && has_server(&path, text, name.as_str()) {
        let name = name.to_string();
        return Err(EditError::ServerExists { name, file }.into());
    }
    // After the checks of the name, so that no answer is lost.
    server.ask_for_variables()?;
    let entry = server.entry();
    let edited = set_entry(&path, text, &[SERVERS], name.as_str(), &entry)
        .map_err(|problem| edit::refused(&file, text, problem))?;
    check(&file, text, &edited.text)?;
    if edited.change != EntryChange::Unchanged {
        edit::write(&file, &edited.text)?;
    }
    let done = match edited.change {
        EntryChange::Added => "added to",
        EntryChange::Replaced => "replaced in",
        EntryChange::Unchanged => "unchanged in",
    };
    report::print(&format!("`{name}` {done} {path}\n"))?;
    server.print_next_steps(&name);
    Ok(Exit::Ok)
}

/// Runs `mcpact remove`.
pub(super) fn remove(args: &RemoveArgs) -> Result<Exit, CliError> {
    let file = config(args.config.as_deref())?.ok_or(CliError::NoConfig)?;
    let path = file.display().to_string();
    let text = mcpact_config::read_config_text(&file)?;
    let rest = remove_entry(&path, &text, SERVERS, &args.name)
        .map_err(|problem| edit::refused(&file, &text, problem))?;
    let Some(rest) = rest else {
        let known = entry_names(&path, &text, &[SERVERS]);
        return Err(CliError::unknown("server", &args.name, "servers", known));
    };
    check(&file, &text, &rest)?;
    edit::write(&file, &rest)?;
    report::print(&format!("`{}` removed from {path}\n", args.name))?;
    Ok(Exit::Ok)
}

/// Returns the given config or the nearest one, which must be written in TOML.
fn config(given: Option<&Path>) -> Result<Option<PathBuf>, CliError> {
    let here = std::env::current_dir().map_err(CliError::CurrentDir)?;
    let given = given.map(std::path::absolute).transpose();
    let file = given.map_err(CliError::CurrentDir)?;
    let Some(file) = file.or_else(|| nearest_config(&here)) else {
        return Ok(None);
    };
    let extension = file.extension();
    match extension.is_some_and(|extension| extension.eq_ignore_ascii_case("toml")) {
        true => Ok(Some(file)),
        false => Err(EditError::NotToml(file).into()),
    }
}

/// Rejects a text that would not load. A config that was invalid before has its own hints.
fn check(file: &Path, before: &str, after: &str) -> Result<(), CliError> {
    let Err(error) = outline(file, after) else {
        return Ok(());
    };
    outline(file, before)?;
    let CatalogError::Refused { problems, .. } = error else {
        return Err(error.into());
    };
    let mut errors = problems.into_iter();
    let first = errors.find(|problem| problem.severity == Severity::Error);
    let first = first.map(|problem| (problem.message, problem.remedy));
    let (reason, remedy) = first.unwrap_or_default();
    let hint = remedy.unwrap_or_else(|| String::from("nothing was written"));
    Err(EditError::Value { reason, hint }.into())
}

fn has_server(path: &str, text: &str, name: &str) -> bool {
    let names = entry_names(path, text, &[SERVERS]);
    names.iter().any(|there| there == name)
}

/// Way to reach a server.
#[derive(Debug, PartialEq, Eq)]
enum Launch {
    Command(Vec<String>),
    Url(String),
}

/// A server that is going to be written.
#[derive(Debug)]
struct NewServer {
    launch: Launch,
    /// Variables of a command, or headers of a URL.
    values: Vec<(String, String)>,
    /// Values that the server needs.
    required: Vec<Required>,
    /// Variables that the server also reads.
    optional: Vec<String>,
}

/// Value that a server needs.
#[derive(Debug, PartialEq, Eq)]
struct Required {
    /// Variable of the server, or header.
    name: String,
    /// Variable to suggest.
    variable: String,
    /// Value around the reference; `*` stands for it.
    form: String,
    is_secret: bool,
}

impl NewServer {
    const fn new(launch: Launch) -> Self {
        Self {
            launch,
            values: Vec::new(),
            required: Vec::new(),
            optional: Vec::new(),
        }
    }

    fn of(args: &AddArgs, name: &ServerName) -> Result<Self, CliError> {
        let Some(given) = &args.source else {
            return Ok(Self::new(Launch::Command(args.command.clone())));
        };
        let invalid = || {
            let given = given.clone();
            CliError::Edit(EditError::Source { given })
        };
        if let Some((kind, package)) = given.split_once(':')
            && let Some(kind) = PackageKind::named(kind)
        {
            let package = Some(package).filter(|package| is_package(package));
            let package = package.ok_or_else(invalid)?;
            return Ok(Self::new(Launch::Command(kind.command(&[], package))));
        }
        if given.starts_with("http://") || given.starts_with("https://") {
            reject_credentials(given)?;
            return Ok(Self::new(Launch::Url(given.clone())));
        }
        let file = Path::new(given);
        match file
            .extension()
            .is_some_and(|extension| extension == "json")
            || file.is_file()
        {
            true => server_json::read(file, name),
            false => Err(invalid()),
        }
    }

    /// Sets the variables of `--env`.
    fn set_variables(&mut self, given: &[String]) -> Result<(), EditError> {
        if matches!(self.launch, Launch::Url(_)) && !given.is_empty() {
            return Err(EditError::Value {
                reason: String::from("`--env` is for commands, and the server is a URL"),
                hint: String::from(
                    "write a header into the config: `headers = { Authorization = \"Bearer ${TOKEN}\" }`",
                ),
            });
        }
        for text in given {
            let (name, value) = match text.split_once('=') {
                Some((name, value)) => (name, value.to_owned()),
                None => (&**text, format!("${{{text}}}")),
            };
            check_variable(name)?;
            let mut required = self.required.iter();
            let is_marked = required.any(|one| one.name == name && one.is_secret);
            let is_secret = is_secret(name) || is_marked;
            if is_secret && !value.contains("${") {
                return Err(EditError::Value {
                    reason: format!("the value of `{name}` may be a secret and is not written"),
                    hint: format!("set the variable, and pass `--env {name}` without a value"),
                });
            }
            self.required.retain(|one| one.name != name);
            self.values.retain(|(known, _)| known != name);
            self.values.push((name.to_owned(), value));
        }
        Ok(())
    }

    /// Asks for the names of variables; without a terminal, the suggestions are used.
    fn ask_for_variables(&mut self) -> Result<(), EditError> {
        for Required {
            name,
            variable,
            form,
            ..
        } in self.required.drain(..)
        {
            let answer = match approve::is_interactive() {
                true => ask(&name, &variable),
                false => String::new(),
            };
            let variable = match answer.is_empty() {
                true => variable,
                false => answer,
            };
            check_variable(&variable)?;
            let value = form.replace('*', &format!("${{{variable}}}"));
            self.values.push((name, value));
        }
        Ok(())
    }

    fn entry(&self) -> Entry {
        let values = self.values.iter();
        let values = values.fold(Entry::default(), |entry, (name, value)| {
            entry.with(name, value.as_str())
        });
        let (entry, key) = match &self.launch {
            Launch::Url(url) => (Entry::default().with("url", url.as_str()), "headers"),
            Launch::Command(words) => {
                let (program, args) = words.split_first().unzip();
                let entry = Entry::default().with("command", program.cloned().unwrap_or_default());
                let args = args.unwrap_or_default();
                let entry = match args.is_empty() {
                    true => entry,
                    false => entry.with("args", EntryValue::Texts(args.to_vec())),
                };
                (entry, "env")
            }
        };
        match values.is_empty() {
            true => entry,
            false => entry.with(key, EntryValue::Table(values)),
        }
    }

    /// Prints what is left to do.
    fn print_next_steps(&self, name: &ServerName) {
        let unset = self.values.iter().flat_map(|(_, value)| variables(value));
        let unset = unset.filter(|variable| std::env::var_os(variable).is_none());
        let unset: Vec<String> = unset.map(|variable| format!("`{variable}`")).collect();
        if !unset.is_empty() {
            report::hint(&format!(
                "set {} in the environment of the gateway",
                unset.join(", ")
            ));
        }
        if !self.optional.is_empty() {
            let names: Vec<String> = self
                .optional
                .iter()
                .map(|name| format!("`{name}`"))
                .collect();
            report::hint(&format!(
                "the server also reads {}: add them with `--force --env NAME`",
                names.join(", ")
            ));
        }
        report::hint(&format!(
            "run `mcpact approve {name}`; a running gateway reloads by itself"
        ));
    }
}

/// Registry of packages with a runner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PackageKind {
    Npm,
    Pypi,
}

impl PackageKind {
    fn named(name: &str) -> Option<Self> {
        match name {
            "npm" => Some(Self::Npm),
            "pypi" => Some(Self::Pypi),
            _ => None,
        }
    }

    /// Mark between name and version.
    const fn mark(self) -> &'static str {
        match self {
            Self::Npm => "@",
            Self::Pypi => "==",
        }
    }

    /// Returns the command that downloads and runs a package.
    fn command(self, options: &[String], package: &str) -> Vec<String> {
        let runner = match self {
            Self::Npm => &["npx", "-y"][..],
            Self::Pypi => &["uvx"],
        };
        let runner = runner.iter().map(|word| String::from(*word));
        let options = options.iter().filter(|option| *option != "-y").cloned();
        let package = std::iter::once(package.to_owned());
        runner.chain(options).chain(package).collect()
    }
}

/// Returns true for the name of a package, with or without a version, that is not an option of the runner.
fn is_package(text: &str) -> bool {
    let is_usual = |c: char| c.is_ascii_alphanumeric() || "@/._-=<>!~+[],^".contains(c);
    !text.is_empty() && !text.starts_with('-') && text.chars().all(is_usual)
}

/// Rejects a URL with a password.
fn reject_credentials(url: &str) -> Result<(), EditError> {
    let authority = url.split("://").nth(1).unwrap_or_default();
    let authority = authority.split(['/', '?', '#']).next().unwrap_or_default();
    match authority.contains('@') {
        false => Ok(()),
        true => Err(EditError::Value {
            reason: String::from("the URL contains a user name or password"),
            hint: String::from(
                "write a header into the config: `headers = { Authorization = \"Basic ${LOGIN}\" }`",
            ),
        }),
    }
}

/// Words in the names of secrets.
const SECRETS: &[&str] = &[
    "KEY",
    "TOKEN",
    "SECRET",
    "PASSWORD",
    "PASSWD",
    "PASSPHRASE",
    "CREDENTIAL",
    "AUTH",
];

fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    SECRETS.iter().any(|word| name.contains(word))
}

/// Rejects anything but the name of a variable. The text is not shown: it may be a secret.
fn check_variable(name: &str) -> Result<(), EditError> {
    let is_usual = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let is_name = name.chars().all(is_usual) && !name.starts_with(|c: char| c.is_ascii_digit());
    match is_name && !name.is_empty() {
        true => Ok(()),
        false => Err(EditError::Value {
            reason: String::from("not the name of a variable"),
            hint: String::from("use letters, digits and `_`; give the name, not the value"),
        }),
    }
}

/// Variables that a value refers to.
fn variables(value: &str) -> impl Iterator<Item = &str> {
    let parts = value.split("${").skip(1);
    let names = parts.filter_map(|part| part.split_once('}').map(|(name, _)| name));
    let names = names.map(|name| name.strip_prefix("env:").unwrap_or(name));
    names.filter(|name| check_variable(name).is_ok())
}

/// Asks for the name of a variable on the terminal.
fn ask(name: &str, suggestion: &str) -> String {
    report::eprint(&format!(
        "variable with the value of `{name}` [{suggestion}]: "
    ));
    let mut answer = String::new();
    let input = std::io::stdin()
        .lock()
        .take(MAX_ANSWER)
        .read_line(&mut answer);
    match input {
        Ok(_) => answer.trim().to_owned(),
        Err(_) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_have_no_options() {
        for good in ["a", "@a/b", "@a/b@1.2.3", "a==1.0", "a[x]>=1,<2"] {
            assert!(is_package(good), "{good}");
        }
        for bad in ["", "-y", "a b", "a;b", "a\n"] {
            assert!(!is_package(bad), "{bad}");
        }
    }

    #[test]
    fn references_are_found() {
        let found: Vec<&str> = variables("Bearer ${A}${env:B} ${file:c} ${D:-x} $E").collect();
        assert_eq!(found, ["A", "B"]);
    }

    #[test]
    fn secrets_are_recognised_by_name() {
        for (name, expected) in [
            ("API_KEY", true),
            ("github_token", true),
            ("LOG_LEVEL", false),
        ] {
            assert_eq!(is_secret(name), expected, "{name}");
        }
    }
}
