//! Which commands are refused, and which are looked at twice.
//!
//! There is no shell between the config and the program, so nothing in an argument can start anything
//! by itself. What is judged here is what a config asks for in the open: a shell, other rights, programs
//! that destroy or fetch, and programs that somebody else could have replaced.

mod options;
mod words;

use mcpact_transport::stdio::child::Obstacle;

use super::config::{CommandRules, ShellRule};
use super::fields::Text;
use super::problem::Findings;
use super::source::Span;
use super::surroundings::ProgramFacts;
pub(super) use words::name as program_name;
use words::{Sort, sort};

/// Options that name a package.
const NAMED: [&str; 3] = ["-p", "--package", "--from"];

/// Programs may start one another so often before that is suspicious by itself.
const MOST_WRAPPERS: usize = 4;

/// Judges a command.
pub(super) fn judge(
    program: &Text<'_>,
    args: &[Text<'_>],
    rules: &CommandRules,
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
    place(program, rules, facts, findings);
    let mut all: Vec<Word<'_>> = std::iter::once(program).chain(args).map(Word::of).collect();
    // Another name does not make it another program.
    if let Some(real) = facts
        .real
        .as_deref()
        .filter(|real| is_in_disguise(program, real))
    {
        all[0].value = real;
    }
    if started(&all, rules, findings, 0) == Reached::Shell {
        // It reads its arguments in its own way, which was judged already.
        return;
    }
    args.iter().for_each(|arg| argument(arg, findings));
    pairs(&all, findings);
}

/// What a command leads to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reached {
    Shell,
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

/// Whether a link to a program hides that it is one of those that are judged.
fn is_in_disguise(program: &Text<'_>, real: &str) -> bool {
    let is_judged = match sort(real) {
        Sort::Raiser | Sort::Destroyer | Sort::Fetcher | Sort::Pipe | Sort::Shell => true,
        Sort::Container | Sort::Wrapper | Sort::Runner(_) | Sort::Other => false,
    };
    is_judged && sort(program.filled.value()) == Sort::Other
}

fn is_one_word(program: &str) -> bool {
    !program.contains(|c: char| c.is_whitespace() || "&|;<>$`\"'(){}*?".contains(c))
}

/// Where the program lies, and who could have changed it.
fn place(program: &Text<'_>, rules: &CommandRules, facts: &ProgramFacts, findings: &mut Findings) {
    let value = program.filled.value();
    let shown = program.filled;
    if !rules.allow.is_empty() && !is_allowed(value, rules, facts) {
        let message = format!("`{shown}` is not among the programs that may be started");
        let problem = findings.error(program.span, message);
        problem.remedy("add it to `allow` in `[gateway.commands]`");
    }
    if let Some(path) = &facts.writable_by_all {
        let message =
            format!("everybody on this machine may change `{path}`, and so what `{shown}` does");
        let problem = findings.error(program.span, message);
        problem.remedy(format!("take that right away: `chmod o-w {path}`"));
    }
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

/// The program that is started, and whatever that starts in turn.
fn started(
    words: &[Word<'_>],
    rules: &CommandRules,
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
            && started(&args[at + 1..], rules, findings, depth + 1) == Reached::Shell;
        if is_reached {
            return Reached::Shell;
        }
    }
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
            shell(program, args, rules, findings);
            return Reached::Shell;
        }
        Sort::Wrapper => return started(behind(args), rules, findings, depth + 1),
        Sort::Container => openings(shown, args, findings),
        Sort::Runner(pin) => {
            unpinned(shown, args, pin, findings);
            return fetched(args, rules, findings, depth);
        }
        Sort::Other if words::runs_package(program.value, args.iter().map(|word| word.value)) => {
            return fetched(args, rules, findings, depth);
        }
        Sort::Other => {}
    }
    Reached::Program
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

/// What a runner of packages starts: a package, or any program with packages beside it.
fn fetched(
    args: &[Word<'_>],
    rules: &CommandRules,
    findings: &mut Findings,
    depth: usize,
) -> Reached {
    let at = words::run_by(args.iter().map(|word| word.value));
    match at.map(|at| &args[at..]) {
        Some(rest) if sort(rest[0].value) != Sort::Other => {
            started(rest, rules, findings, depth + 1)
        }
        Some(_) | None => Reached::Program,
    }
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

/// The command behind the options and variables of a wrapper such as `env`. What the options take is not
/// known here, so that the first word that is judged at all counts.
fn behind<'w, 't>(args: &'w [Word<'t>]) -> &'w [Word<'t>] {
    let is_own = |word: &Word<'_>| {
        let value = word.value;
        value.starts_with('-') || value.contains('=') || value.parse::<f64>().is_ok()
    };
    let own = args.iter().take_while(|word| is_own(word)).count();
    let judged = args.iter().position(|word| sort(word.value) != Sort::Other);
    &args[judged.unwrap_or(own)..]
}

/// Options that let out of a container what it is there to hold.
fn openings(program: &str, args: &[Word<'_>], findings: &mut Findings) {
    for (at, word) in args.iter().enumerate() {
        let (option, value) = words::container_option(word.value);
        let next = args.get(at + 1).map(|word| word.value);
        if let Some(risk) = words::opening(option, value.or(next)) {
            let message = format!("`{program} … {option}` {risk}");
            let problem = findings.warning(word.span, message);
            problem.remedy("leave it out unless you trust the image with this machine");
        }
    }
}

fn shell(program: &Word<'_>, args: &[Word<'_>], rules: &CommandRules, findings: &mut Findings) {
    let script = args.iter().position(|word| words::takes_script(word.value));
    let Some(at) = script else {
        let message = format!(
            "`{}` is a shell: what it runs is not seen here",
            program.written
        );
        findings
            .warning(program.span, message)
            .remedy("start the server itself");
        return;
    };
    let rest = &args[at + 1..];
    let text: Vec<&str> = rest.iter().map(|word| word.value).collect();
    let text = text.join(" ");
    let span = rest.first().map_or(program.span, |word| word.span);
    let danger = words::danger_in(&text);
    if let Some(danger) = danger {
        let problem = findings.error(span, format!("this script {danger}"));
        problem.remedy("start the server itself");
        return;
    }
    let message = format!("`{}` is a shell and runs a script", program.written);
    let remedy =
        "start the server itself: put the program into `command` and its arguments into `args`";
    match rules.shells {
        ShellRule::Refuse => findings.error(program.span, message).remedy(format!(
            "{remedy}; or say `shells = \"warn\"` in `[gateway.commands]`"
        )),
        ShellRule::Warn => findings.warning(program.span, message).remedy(remedy),
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

/// One argument, which reaches the program as it is.
fn argument(arg: &Text<'_>, findings: &mut Findings) {
    let value = arg.filled.value();
    if words::OPERATORS.contains(&value) {
        let message = format!(
            "`{}` means something to a shell, and there is none",
            arg.filled
        );
        let problem = findings.error(arg.span, message);
        problem.remedy("leave it out, with what follows it");
    } else if words::SUBSTITUTIONS.iter().any(|mark| value.contains(mark)) {
        let message = format!(
            "nothing is put in the place of what `{}` would mean to a shell",
            arg.filled
        );
        findings
            .warning(arg.span, message)
            .remedy("write what is meant, or a `${VARIABLE}`");
    } else if value.starts_with("~/") {
        let message = format!(
            "`{}` stays as it is: only a shell knows that `~` is your home",
            arg.filled
        );
        findings
            .warning(arg.span, message)
            .remedy("write `${userHome}/…`");
    } else if let Some(place) = words::SECRET_PLACES
        .iter()
        .find(|place| value.contains(*place))
    {
        let message = format!("the server is led to `{place}`, where secrets are kept");
        findings.warning(arg.span, message);
    }
}

/// Words that are harmless alone.
fn pairs(words: &[Word<'_>], findings: &mut Findings) {
    for pair in words.windows(2) {
        if sort(pair[0].value) == Sort::Destroyer
            && words::is_force(pair[1].value)
            && pair[0].span != words[0].span
        {
            let message = format!(
                "`{} {}` destroys what is there",
                pair[0].written, pair[1].written
            );
            findings.error(pair[0].span, message).remedy("leave it out");
        }
    }
}

#[cfg(test)]
mod tests;
