//! Which commands are refused, and which are looked at twice.
//!
//! There is no shell between the config and the program, so nothing in an argument can start anything
//! by itself. What is judged here is what a config asks for in the open: a shell, other rights, programs
//! that destroy or fetch, and programs that somebody else could have replaced.

mod arguments;
mod chain;
mod containers;
mod interpreters;
mod launchers;
mod options;
mod script;
mod split;
mod words;

use mcpact_transport::stdio::child::Obstacle;

use super::config::CommandRules;
use super::fields::Text;
use super::problem::Findings;
use super::source::Span;
use super::surroundings::ProgramFacts;
pub(super) use chain::Lookup;
use chain::Start;
pub(super) use words::name as program_name;
use words::{Sort, sort};

/// Options that name a package.
const NAMED: [&str; 3] = ["-p", "--package", "--from"];

/// Programs may start one another so often before that is suspicious by itself.
const MOST_WRAPPERS: usize = 4;

/// Linux follows the `#!` lines of scripts so often.
const MOST_INTERPRETERS: usize = 4;

/// Judges a command.
pub(super) fn judge(
    program: &Text<'_>,
    args: &[Text<'_>],
    judge: Judge<'_>,
    facts: &ProgramFacts,
    findings: &mut Findings,
) {
    if facts.path.is_none() && !is_one_word(program.filled.value()) {
        let message = format!(
            "`{}` is no program: there is no shell that would take it apart",
            program.filled
        );
        let problem = findings.error(program.span, message);
        problem.remedy("put the first word into `command` and the others into `args`");
        return;
    }
    let all: Vec<Word<'_>> = std::iter::once(program).chain(args).map(Word::of).collect();
    let value = all[0].value;
    judge.trusted(&all[0], value, facts, findings);
    place(program, facts, findings);
    let before = findings.count();
    let reached = judge.started(&all, facts, findings, 0);
    if reached != Reached::Container && !findings.has_errors_after(before) {
        judge.runnable(&all[1..], findings);
    }
    if reached == Reached::Shell {
        // It reads its arguments in its own way, which was judged already.
        return;
    }
    args.iter()
        .for_each(|arg| arguments::argument(arg, findings));
    arguments::pairs(&all, findings);
}

/// What commands are judged by.
#[derive(Clone, Copy)]
pub(super) struct Judge<'a> {
    rules: &'a CommandRules,
    lookup: Lookup<'a>,
    /// How many `#!` lines of scripts have led here.
    scripts: usize,
}

/// What a command leads to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reached {
    Shell,
    /// What runs in it is closed off from the machine.
    Container,
    Program,
}

/// A word of the command.
#[derive(Clone, Copy)]
struct Word<'t> {
    value: &'t str,
    /// How it is shown.
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

fn is_one_word(program: &str) -> bool {
    !program.contains(|c: char| c.is_whitespace() || "&|;<>$`\"'(){}*?".contains(c))
}

/// Where the program lies, and whether it can be started.
fn place(program: &Text<'_>, facts: &ProgramFacts, findings: &mut Findings) {
    let value = program.filled.value();
    let shown = program.filled;
    let is_refused = matches!(sort(value), Sort::Raiser | Sort::Destroyer | Sort::Fetcher);
    if let Some(obstacle) = facts.obstacle.as_ref().filter(|_| !is_refused) {
        let (message, remedy) = match obstacle {
            Obstacle::Missing => (
                format!("`{shown}` is not found on this machine"),
                "install it, or give its whole path",
            ),
            obstacle => (
                format!("`{shown}` cannot be started: {obstacle}"),
                obstacle.remedy(),
            ),
        };
        findings.warning(program.span, message).remedy(remedy);
    } else if value.contains('/') && !value.starts_with('/') && facts.folder.is_none() {
        let message = format!("where `{shown}` lies depends on where the gateway is started");
        findings
            .warning(program.span, message)
            .remedy("give its whole path, or a `cwd`");
    }
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

impl<'a> Judge<'a> {
    pub(super) const fn new(rules: &'a CommandRules, lookup: Lookup<'a>) -> Self {
        Self {
            rules,
            lookup,
            scripts: 0,
        }
    }

    /// Whether the program may be started, and who could have changed it. A list knows it under a name of its own.
    fn trusted(
        self,
        program: &Word<'_>,
        listed_as: &str,
        facts: &ProgramFacts,
        findings: &mut Findings,
    ) {
        let shown = program.written;
        let allow = &self.rules.allow;
        if !allow.is_empty() && !is_allowed(listed_as, self.rules, facts) {
            let message = format!("`{shown}` is not among the programs that may be started");
            let problem = findings.error(program.span, message);
            problem.remedy("add it to `allow` in `[gateway.commands]`");
        }
        if let Some(path) = &facts.writable_by_all {
            let message = format!(
                "everybody on this machine may change `{path}`, and so what `{shown}` does"
            );
            let problem = findings.error(program.span, message);
            problem.remedy(format!("take that right away: `chmod o-w {path}`"));
        }
        if let Some(line) = &facts.interpreter {
            self.interpreted(program.span, line, findings);
        }
    }

    /// What the system starts to run a script is judged as if the config named it, but for the list of programs:
    /// a script that is in it brings its interpreter along. That a shell runs it is no fault of a script.
    fn interpreted(self, span: Span, line: &str, findings: &mut Findings) {
        if self.scripts >= MOST_INTERPRETERS {
            return;
        }
        let rules = CommandRules {
            allow: Vec::new(),
            ..self.rules.clone()
        };
        let words = chain::interpreter(line).map(|value| Word {
            value,
            written: line,
            span,
        });
        let judge = Judge {
            rules: &rules,
            scripts: self.scripts + 1,
            ..self
        };
        judge.started_behind(&words.collect::<Vec<_>>(), findings, 0);
    }

    /// A program that another one starts is found and trusted like the first.
    fn trusted_behind(self, program: &Word<'_>, findings: &mut Findings) -> ProgramFacts {
        let facts = self.lookup.facts(program.value);
        let path = facts.path.as_deref();
        // A list of names means the programs that the gateway itself finds under them.
        let is_usual = path == self.lookup.usual_path(program.value).as_deref();
        let listed_as = path.filter(|_| !is_usual).unwrap_or(program.value);
        self.trusted(program, listed_as, &facts, findings);
        facts
    }

    fn started_behind(self, words: &[Word<'a>], findings: &mut Findings, depth: usize) -> Reached {
        let Some(program) = words.first() else {
            return Reached::Program;
        };
        let facts = self.trusted_behind(program, findings);
        self.started(words, &facts, findings, depth + 1)
    }

    /// What a wrapper such as `env` starts. Where its options are not known, the first word that is judged at all
    /// counts, too.
    fn wrapped(
        self,
        wrapper: &str,
        args: &[Word<'a>],
        findings: &mut Findings,
        depth: usize,
    ) -> Reached {
        let folder = self.lookup.folder_behind(wrapper, args);
        let lookup = Lookup {
            folder: folder.as_deref().or(self.lookup.folder),
            ..self.lookup.behind(wrapper, args)
        };
        let judge = Judge { lookup, ..self };
        let judged = lookup.first_judged(wrapper, args);
        match (chain::start(wrapper, args, &lookup), judged) {
            (Start::At(at), Some(judged)) if at < judged => {
                judge.trusted_behind(&args[at], findings);
                let rest = &args[judged..];
                judge.started(rest, &lookup.facts(rest[0].value), findings, depth + 1)
            }
            (Start::Perhaps(at), Some(judged)) if at < judged => {
                judge.trusted_behind(&args[at], findings);
                judge.started_behind(&args[judged..], findings, depth)
            }
            (_, Some(at)) | (Start::At(at) | Start::Perhaps(at), None) => {
                judge.started_behind(&args[at..], findings, depth)
            }
            (Start::Unknown(at), None) => {
                judge.started(&args[at..], &ProgramFacts::default(), findings, depth + 1)
            }
        }
    }

    /// What a runner of packages starts: a package, or any program with packages beside it.
    fn fetched(self, args: &[Word<'a>], findings: &mut Findings, depth: usize) -> Reached {
        let at = words::run_by(args.iter().map(|word| word.value));
        match at.map(|at| &args[at..]) {
            Some(rest) if self.is_program(&rest[0]) => self.started_behind(rest, findings, depth),
            Some(rest) => self.launched_by_package(rest, findings, depth),
            None => Reached::Program,
        }
    }

    /// The program that is started, and whatever that starts in turn.
    fn started(
        self,
        words: &[Word<'a>],
        facts: &ProgramFacts,
        findings: &mut Findings,
        depth: usize,
    ) -> Reached {
        let Some((program, args)) = words.split_first() else {
            return Reached::Program;
        };
        if depth > MOST_WRAPPERS {
            findings.error(program.span, "too many programs start one another here");
            return Reached::Program;
        }
        // Another name does not make it another program.
        let value = chain::disguised(program.value, facts).unwrap_or(program.value);
        let program = &Word { value, ..*program };
        let shown = program.written;
        if let Some(option) = hidden(program, args) {
            let message = format!("`{shown} {}` hides what is done", option.written);
            let problem = findings.error(option.span, message);
            problem.remedy("start the server itself");
            return Reached::Shell;
        }
        let destroying = args
            .iter()
            .find(|word| words::destroys(program.value, word.value));
        if let Some(option) = destroying {
            let message = format!("`{shown} {}` destroys what it finds", option.written);
            findings.error(option.span, message);
            return Reached::Program;
        }
        for (at, word) in args.iter().enumerate() {
            let is_reached = options::starts_for_each(program.value, word.value)
                && self.started_behind(&args[at + 1..], findings, depth) == Reached::Shell;
            if is_reached {
                return Reached::Shell;
            }
        }
        self.texted(program.value, args, findings, depth);
        self.scripted(program.value, args, findings);
        match sort(program.value) {
            Sort::Raiser => {
                let problem = findings.error(
                    program.span,
                    format!("`{shown}` takes the rights of another user"),
                );
                problem.remedy("run the server with your own rights");
            }
            Sort::Destroyer => {
                findings.error(
                    program.span,
                    format!("`{shown}` destroys what is there, and is no server"),
                );
            }
            Sort::Fetcher => {
                findings.error(
                    program.span,
                    format!("`{shown}` moves files over the network, and is no server"),
                );
            }
            Sort::Pipe => {
                let message = format!("`{shown}` leads to another machine, which is trusted then");
                findings.warning(program.span, message);
            }
            Sort::Shell => {
                self.shell(program, args, findings);
                return Reached::Shell;
            }
            Sort::Wrapper => return self.wrapped(program.value, args, findings, depth),
            Sort::Container => {
                openings(shown, args, findings);
                return Reached::Container;
            }
            Sort::Runner(pin) => {
                unpinned(shown, args, pin, findings);
                return self.fetched(args, findings, depth);
            }
            Sort::Other
                if words::runs_package(program.value, args.iter().map(|word| word.value)) =>
            {
                return self.fetched(args, findings, depth);
            }
            Sort::Other => return self.behind_dashes(args, findings, depth),
        }
        Reached::Program
    }
}

/// The word by which the program is handed a text to run, if it is.
fn hidden<'w, 't>(program: &Word<'_>, args: &'w [Word<'t>]) -> Option<&'w Word<'t>> {
    let own = own_options(program.value, args);
    let option = own
        .iter()
        .find(|word| options::hides_command(program.value, word.value));
    let is_text = options::runs_text(program.value, own.iter().map(|word| word.value));
    option.or_else(|| args.first().filter(|_| is_text))
}

/// The words that can be options of the program itself: behind a package stand those of the package.
fn own_options<'w, 't>(program: &str, args: &'w [Word<'t>]) -> &'w [Word<'t>] {
    if let Some(own) = options::own_words(program, args.iter().map(|word| word.value)) {
        return &args[..own];
    }
    if !words::starts_packages(program) {
        return args;
    }
    let end = words::run_by(args.iter().map(|word| word.value));
    &args[..end.unwrap_or(args.len())]
}

/// Options that let out of a container what it is there to hold.
fn openings(program: &str, args: &[Word<'_>], findings: &mut Findings) {
    for (at, word) in args.iter().enumerate() {
        let (option, value) = containers::option(word.value);
        let next = args.get(at + 1).map(|word| word.value);
        if let Some(risk) = containers::opening(option, value.or(next)) {
            let message = format!("`{program} … {option}` {risk}");
            let problem = findings.warning(word.span, message);
            problem.remedy("leave it out unless you trust the image with this machine");
        }
    }
}

/// A package that is fetched when it is started, in whatever version is the newest.
fn unpinned(runner: &str, args: &[Word<'_>], pin: &[&str], findings: &mut Findings) {
    let after = args
        .iter()
        .position(|word| NAMED.contains(&word.value))
        .map(|at| at + 1);
    let package = match after {
        Some(at) => args.get(at),
        None => words::run_by(args.iter().map(|word| word.value))
            .and_then(|at| args.get(at))
            .or_else(|| {
                let mut words = args.iter();
                words.find(|word| !word.value.starts_with('-') && !words::is_verb(word.value))
            }),
    };
    let Some(package) = package else {
        return;
    };
    let name = package.value;
    let is_pinned = pin
        .iter()
        .any(|pin| name.get(1..).is_some_and(|name| name.contains(pin)));
    let is_local = name.starts_with(['.', '/']);
    let is_newest = name.ends_with("@latest");
    if (!is_pinned || is_newest) && !is_local {
        let message = format!(
            "`{runner}` starts whatever version of `{}` is the newest",
            package.written
        );
        let alone = package.written.strip_suffix("@latest");
        let alone = alone.unwrap_or(package.written);
        let example = format!("name a version, such as `{alone}{}1.2.3`", pin[0]);
        findings.note(package.span, message).remedy(example);
    }
}

#[cfg(test)]
mod tests;
