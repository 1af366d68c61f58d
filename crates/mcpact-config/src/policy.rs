//! Command policy: which programs a config may start.
//!
//! No shell stands between the config and the program, so an argument cannot start anything by itself. The policy looks
//! at the program of a command, and at the program behind a known launcher such as `env` or `npx`. It does not analyse
//! scripts or arguments: approval by digest (`approvals.rs`) is the boundary.

pub(crate) mod interpreters;
pub(crate) mod tables;

use std::path::Path;

use mcpact_transport::stdio::child::LaunchProblem;

use self::tables::{Behind, Kind, Launcher, Pin};
use super::config::{CommandRules, ShellRule};
use super::fields::Text;
use super::problem::Findings;
use super::source::Span;
use crate::local_host::{HostEnvironment, ProgramFacts, ProgramLookup};

pub(super) use self::tables::{has, runs_scripts};

/// Longest chain of launchers.
const MAX_LAUNCHERS: usize = 4;

/// Rules of the config, and the environment in which the child looks up programs.
#[derive(Clone)]
pub(super) struct Policy<'a> {
    pub(super) rules: &'a CommandRules,
    pub(super) host: &'a dyn HostEnvironment,
    /// `PATH` of the child, if it is not that of the gateway.
    pub(super) path: Option<&'a str>,
    /// Working directory of the child, if it is configured.
    pub(super) folder: Option<String>,
}

/// Treatment of the arguments of a command.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Arguments {
    /// Plain words for the program.
    Plain,
    /// Input of a shell, which gives operators and substitutions a meaning.
    Script,
}

/// A word of the command.
#[derive(Clone, Copy)]
struct Word<'t> {
    value: &'t str,
    /// The word without the values of variables, for messages.
    written: &'t str,
    span: Span,
}

impl<'t> Word<'t> {
    fn of(text: &Text<'t>) -> Self {
        Self {
            value: text.filled.value(),
            written: text.filled.written(),
            span: text.span,
        }
    }
}

/// Checks a command. `facts` describe its program.
pub(super) fn check(
    program: &Text<'_>,
    args: &[Text<'_>],
    facts: &ProgramFacts,
    policy: &Policy<'_>,
    findings: &mut Findings,
) {
    if facts.path.is_none() && !is_one_word(program.filled.value()) {
        let message = format!(
            "`{}` is not a program: commands do not run in a shell",
            program.filled
        );
        let problem = findings.error(program.span, message);
        problem.remedy("put the first word into `command` and the others into `args`");
        return;
    }
    let words: Vec<Word<'_>> = std::iter::once(program).chain(args).map(Word::of).collect();
    policy.check_file(&words[0], words[0].value, facts, findings);
    check_location(program, facts, findings);
    if policy.check_command(&words, facts, 0, findings) == Arguments::Plain {
        args.iter().for_each(|arg| check_argument(arg, findings));
    }
}

fn is_one_word(program: &str) -> bool {
    !program.contains(|c: char| c.is_whitespace() || "&|;<>$`\"'(){}*?".contains(c))
}

fn check_location(program: &Text<'_>, facts: &ProgramFacts, findings: &mut Findings) {
    let value = program.filled.value();
    let shown = program.filled;
    let is_refused = tables::kind(value).is_some_and(|kind| kind.refusal().is_some());
    if let Some(launch_problem) = facts.launch_problem.as_ref().filter(|_| !is_refused) {
        let (message, remedy) = match launch_problem {
            LaunchProblem::Missing => (
                format!("program `{shown}` not found"),
                "install it, or give its absolute path",
            ),
            launch_problem => (
                format!("cannot start `{shown}`: {launch_problem}"),
                launch_problem.remedy(),
            ),
        };
        findings.warning(program.span, message).remedy(remedy);
    }
}

/// Checks one argument, which the program receives unchanged.
fn check_argument(arg: &Text<'_>, findings: &mut Findings) {
    let value = arg.filled.value();
    let shown = arg.filled;
    if tables::OPERATORS.contains(&value) {
        let message = format!("`{shown}` is a shell operator, but commands do not run in a shell");
        findings.error_with(arg.span, message, "remove it and the words after it");
    } else if tables::SUBSTITUTIONS
        .iter()
        .any(|mark| value.contains(mark))
    {
        let message = format!("`{shown}` is passed unchanged: commands do not run in a shell");
        findings.warning_with(
            arg.span,
            message,
            "write the value itself, or use `${VARIABLE}`",
        );
    } else if value.starts_with("~/") {
        let message = format!("`{shown}` is passed unchanged: only a shell expands `~`");
        findings.warning_with(arg.span, message, "write `${userHome}/…`");
    } else if let Some(place) = tables::SECRET_PLACES
        .iter()
        .find(|place| value.contains(*place))
    {
        let message = format!("the server is given `{place}`, which holds credentials");
        findings.warning(arg.span, message);
    }
}

impl<'a> Policy<'a> {
    /// Checks the file of a program: the allow-list knows it as `listed_as`, and only its owner may change it.
    fn check_file(
        &self,
        program: &Word<'_>,
        listed_as: &str,
        facts: &ProgramFacts,
        findings: &mut Findings,
    ) {
        let shown = program.written;
        if !self.rules.allow.is_empty() && !is_allowed(listed_as, self.rules, facts) {
            let message = format!("`{shown}` is not in the list of allowed programs");
            findings.error_with(
                program.span,
                message,
                "add it to `allow` in [gateway.commands]",
            );
        }
        if let Some(path) = &facts.writable_by_all {
            let problem = findings.error(program.span, world_writable(path, shown));
            problem.remedy(format!("run `chmod o-w {path}`"));
        }
    }

    /// Checks a program, and the one that it starts if it is a launcher.
    fn check_command(
        &self,
        words: &[Word<'a>],
        facts: &ProgramFacts,
        depth: usize,
        findings: &mut Findings,
    ) -> Arguments {
        let Some((program, args)) = words.split_first() else {
            return Arguments::Plain;
        };
        if depth > MAX_LAUNCHERS {
            let message = format!("more than {MAX_LAUNCHERS} launchers in a row");
            findings.error_with(program.span, message, "start the server itself");
            return Arguments::Plain;
        }
        let shown = program.written;
        // A link to a known program counts as that program.
        let real = facts.real.as_deref().unwrap_or_default();
        let kind = tables::kind(program.value).or_else(|| tables::kind(real));
        match kind {
            Some(Kind::Shell) => {
                self.check_shell(program, args, findings);
                return Arguments::Script;
            }
            Some(Kind::Remote) => {
                let message = format!("`{shown}` connects to another host, which is then trusted");
                findings.warning(program.span, message);
            }
            Some(kind) => {
                let (reason, remedy) = kind.refusal().unwrap_or_default();
                findings.error_with(program.span, format!("`{shown}` {reason}"), remedy);
                return Arguments::Plain;
            }
            None => {}
        }
        let launcher = tables::launcher(program.value).or_else(|| tables::linked_launcher(real));
        match launcher {
            Some(launcher) => self.check_launcher(launcher, program, args, depth, findings),
            None => {
                self.check_interpreter(program, args, findings);
                self.check_after_dashes(args, depth, findings)
            }
        }
    }

    fn check_launcher(
        &self,
        launcher: &Launcher,
        program: &Word<'a>,
        args: &[Word<'a>],
        depth: usize,
        findings: &mut Findings,
    ) -> Arguments {
        let shown = program.written;
        let found = launcher.read(&args.iter().map(|word| word.value).collect::<Vec<_>>());
        if let Some(option) = found.script.map(|at| &args[at]) {
            let message = format!("`{shown} {}` runs a shell script", option.written);
            findings.error_with(option.span, message, "start the server itself");
            return Arguments::Script;
        }
        if let (Some(package), Some(pin)) = (found.package, launcher.pin) {
            let word = args[package.at];
            // The package may be joined to an option.
            let written = match word.written == word.value {
                true => package.value,
                false => word.written,
            };
            let value = package.value;
            note_unpinned(
                shown,
                &Word {
                    value,
                    written,
                    ..word
                },
                pin,
                findings,
            );
        }
        let Some(rest) = found.program.map(|at| &args[at..]) else {
            self.check_interpreter(program, args, findings);
            return self.check_after_dashes(args, depth, findings);
        };
        let folder = found.folder.map(|folder| self.in_folder(folder));
        let inner = Policy {
            path: found.path.or(self.path),
            folder: folder.or_else(|| self.folder.clone()),
            ..self.clone()
        };
        let is_program = match launcher.behind {
            Behind::Program => true,
            Behind::Package => inner.is_program(&rest[0]),
            Behind::Perhaps => {
                inner.is_program(&rest[0]) || inner.facts(rest[0].value, inner.path).path.is_some()
            }
        };
        if is_program {
            return inner.check_behind(rest, depth, findings);
        }
        if launcher.behind == Behind::Perhaps {
            inner.check_script(program, rest, findings);
        }
        // A package is not a local file, but may be a launcher or an interpreter.
        let value = tables::package_name(rest[0].value);
        if tables::kind(value).is_some() {
            return Arguments::Plain;
        }
        let words = [&[Word { value, ..rest[0] }], &rest[1..]].concat();
        inner.check_command(&words, &ProgramFacts::default(), depth + 1, findings)
    }

    /// Checks a program that a launcher starts, as the child finds it.
    fn check_behind(&self, words: &[Word<'a>], depth: usize, findings: &mut Findings) -> Arguments {
        let program = &words[0];
        let facts = self.facts(program.value, self.path);
        // A name in the allow-list means the program that the gateway itself finds.
        let usual = self.facts(program.value, None).path;
        let other = facts
            .path
            .as_deref()
            .filter(|path| Some(*path) != usual.as_deref());
        self.check_file(program, other.unwrap_or(program.value), &facts, findings);
        self.check_command(words, &facts, depth + 1, findings)
    }

    /// Checks a program after `--`, which many launchers start.
    fn check_after_dashes(
        &self,
        args: &[Word<'a>],
        depth: usize,
        findings: &mut Findings,
    ) -> Arguments {
        let dashes = args.iter().position(|word| word.value == "--");
        match dashes.map(|at| &args[at + 1..]) {
            Some(rest) if rest.first().is_some_and(|word| self.is_program(word)) => {
                self.check_behind(rest, depth, findings)
            }
            Some(_) | None => Arguments::Plain,
        }
    }

    /// Returns whether a word is a program rather than a package or a plain argument.
    fn is_program(&self, word: &Word<'_>) -> bool {
        let value = word.value;
        let is_known = tables::kind(value).is_some() || tables::launcher(value).is_some();
        is_known || value.contains('/') && self.facts(value, self.path).path.is_some()
    }

    fn check_shell(&self, shell: &Word<'_>, args: &[Word<'_>], findings: &mut Findings) {
        let shown = shell.written;
        let Some(option) = args.iter().find(|word| tables::takes_script(word.value)) else {
            let message = format!("`{shown}` is a shell, and its script is not checked");
            findings.warning_with(shell.span, message, "start the server itself");
            self.check_script(shell, args, findings);
            return;
        };
        let message = format!("`{shown} {}` runs a shell script", option.written);
        let remedy = "start the program itself, with each argument as a string of its own";
        match self.rules.shells {
            ShellRule::Refuse => findings.error(shell.span, message).remedy(format!(
                "{remedy}; or add the server to a `mcpact.toml` with `shells = \"warn\"` in [gateway.commands]"
            )),
            ShellRule::Warn => findings.warning(shell.span, message).remedy(remedy),
        }
    }

    fn check_interpreter(&self, program: &Word<'_>, args: &[Word<'_>], findings: &mut Findings) {
        let Some(inline) = interpreters::inline_options(program.value) else {
            return;
        };
        let is_own =
            |word: &&Word<'_>| word.value.starts_with('-') || tables::has(inline, word.value);
        let mut own = args.iter().take_while(is_own);
        if let Some(option) = own.find(|word| tables::is_option(word.value, inline)) {
            let message = format!(
                "`{} {}` runs inline code, which is not checked",
                program.written, option.written
            );
            findings.warning_with(option.span, message, "put the code into a file");
        } else {
            self.check_script(program, args, findings);
        }
    }

    /// Warns if every user can change the script that an interpreter runs: its first operand.
    fn check_script(&self, program: &Word<'_>, args: &[Word<'_>], findings: &mut Findings) {
        let is_operand = |word: &&Word<'_>| !word.value.starts_with('-') && word.value != "run";
        let Some(script) = args.iter().find(is_operand) else {
            return;
        };
        let path = self.in_folder(script.value);
        if self.host.exists(&path)
            && let Some(open) = self.host.writable_by_all(&path)
        {
            let message = world_writable(&open, program.written);
            findings.warning_with(script.span, message, format!("run `chmod o-w {open}`"));
        }
    }

    fn facts(&self, program: &str, path: Option<&str>) -> ProgramFacts {
        self.host.program(&ProgramLookup {
            program,
            path,
            folder: self.folder.as_deref(),
        })
    }

    fn in_folder(&self, path: &str) -> String {
        let whole = Path::new(self.folder.as_deref().unwrap_or_default()).join(path);
        whole.to_string_lossy().into_owned()
    }
}

fn world_writable(path: &str, program: &str) -> String {
    format!("`{path}` is world-writable: every local user can change what `{program}` runs")
}

fn is_allowed(program: &str, rules: &CommandRules, facts: &ProgramFacts) -> bool {
    let path = facts.path.as_deref().unwrap_or_default();
    let real = facts.real.as_deref().unwrap_or_default();
    rules.allow.iter().any(|allowed| {
        if allowed.ends_with('/') {
            real.starts_with(allowed.as_str())
        } else {
            allowed == program || allowed == path
        }
    })
}

/// Notes a package without a version.
fn note_unpinned(runner: &str, package: &Word<'_>, pin: Pin, findings: &mut Findings) {
    let Some(missing) = pin.missing(package.value) else {
        return;
    };
    let written = package.written;
    let message = format!("`{runner}` runs the latest version of `{written}`");
    let name = missing.name.filter(|_| written == package.value);
    let remedy = match name {
        Some(name) => {
            let (name, mark) = (&written[..name], pin.mark());
            format!("pin a version, such as `{name}{mark}1.2.3`")
        }
        None => String::from("name an exact version, or the full commit of a repository"),
    };
    findings.note(package.span, message).remedy(remedy);
}

#[cfg(test)]
mod tests;

/// Name prefixes of variables that select code.
const FAMILIES: &[&str] = &[
    "LD_",
    "DYLD_",
    "BASH_FUNC_",
    "GIT_CONFIG",
    "CORECLR_",
    "COR_",
];

/// Single variables that select code, separated by spaces, by the program that reads them.
const NAMES: &[&str] = &[
    // Program lookup.
    "PATH",
    // Settings, and user packages of languages.
    "HOME XDG_CONFIG_HOME XDG_DATA_HOME XDG_CONFIG_DIRS XDG_DATA_DIRS GCONV_PATH GLIBC_TUNABLES OPENSSL_CONF \
     OPENSSL_MODULES",
    // Shells.
    "BASH_ENV ENV SHELLOPTS BASHOPTS PROMPT_COMMAND PS4 ZDOTDIR",
    // Python.
    "PYTHONPATH PYTHONHOME PYTHONSTARTUP PYTHONUSERBASE PYTHONEXECUTABLE PYTHONPLATLIBDIR \
     PYTHONBREAKPOINT PYTHONWARNINGS VIRTUAL_ENV CONDA_PREFIX",
    // Python package runners and indexes.
    "UV_INDEX UV_INDEX_URL UV_DEFAULT_INDEX UV_EXTRA_INDEX_URL UV_FIND_LINKS UV_CONFIG_FILE UV_PYTHON UV_PROJECT \
     UV_WORKING_DIRECTORY UV_OVERRIDE UV_CONSTRAINT UV_ENV_FILE UV_TOOL_DIR \
     PIP_INDEX_URL PIP_EXTRA_INDEX_URL PIP_FIND_LINKS PIP_CONFIG_FILE PIPX_HOME PIPX_DEFAULT_PYTHON",
    // Node, Bun and Deno.
    "NODE_OPTIONS NODE_PATH NODE_REPL_EXTERNAL_MODULE NPM_CONFIG_SCRIPT_SHELL \
     NPM_CONFIG_NODE_OPTIONS NPM_CONFIG_USERCONFIG NPM_CONFIG_GLOBALCONFIG NPM_CONFIG_PREFIX \
     NPM_CONFIG_REGISTRY COREPACK_NPM_REGISTRY YARN_RC_FILENAME YARN_REGISTRY \
     YARN_NPM_REGISTRY_SERVER BUN_OPTIONS BUN_INSTALL BUN_CONFIG_REGISTRY DENO_DIR DENO_INSTALL_ROOT \
     TS_NODE_PROJECT",
    // Perl, Ruby, PHP and Lua.
    "PERL5OPT PERL5LIB PERLLIB PERL5DB RUBYOPT RUBYLIB GEM_HOME GEM_PATH BUNDLE_GEMFILE PHPRC \
     PHP_INI_SCAN_DIR LUA_INIT LUA_PATH LUA_CPATH",
    // Java and .NET.
    "CLASSPATH JAVA_HOME JAVA_TOOL_OPTIONS _JAVA_OPTIONS JDK_JAVA_OPTIONS DOTNET_STARTUP_HOOKS \
     DOTNET_ADDITIONAL_DEPS DOTNET_ROOT",
    // Git.
    "GIT_EXEC_PATH GIT_SSH GIT_SSH_COMMAND GIT_ASKPASS GIT_EDITOR GIT_PAGER GIT_EXTERNAL_DIFF GIT_PROXY_COMMAND \
     GIT_TEMPLATE_DIR SSH_ASKPASS",
];

/// Returns whether a variable decides which code a program runs. npm ignores the case of names.
pub(crate) fn loads_code(name: &str) -> bool {
    let upper = name.to_ascii_uppercase();
    let known = if upper.starts_with("NPM_CONFIG_") {
        &upper
    } else {
        name
    };
    NAMES.iter().any(|names| has(names, known))
        || FAMILIES.iter().any(|family| name.starts_with(family))
}

#[cfg(test)]
mod loader_variables_tests {
    use super::loads_code;

    #[test]
    fn variables_that_load_code_are_detected() {
        for name in [
            "PATH",
            "LD_PRELOAD",
            "LD_LIBRARY_PATH",
            "DYLD_INSERT_LIBRARIES",
            "BASH_ENV",
            "PYTHONPATH",
            "PYTHONSTARTUP",
            "NODE_OPTIONS",
            "PERL5OPT",
            "RUBYOPT",
            "npm_config_script_shell",
            "HOME",
            "XDG_CONFIG_HOME",
            "XDG_DATA_HOME",
            "UV_INDEX_URL",
            "UV_DEFAULT_INDEX",
            "UV_EXTRA_INDEX_URL",
            "PIP_INDEX_URL",
            "PIP_EXTRA_INDEX_URL",
        ] {
            assert!(loads_code(name), "{name}");
        }
        for name in [
            "TOKEN",
            "HOMEPAGE",
            "UV_INDEX_MAIN_PASSWORD",
            "path",
            "MY_LD_X",
            "NODE_ENV",
            "NPM_CONFIG_X",
        ] {
            assert!(!loads_code(name), "{name}");
        }
    }
}
