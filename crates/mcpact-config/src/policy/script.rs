//! Shells, and what their scripts do.

use super::super::config::ShellRule;
use super::super::problem::Findings;
use super::words::{self, Sort, is_force, sort};
use super::{Judge, Word, options, split};

impl Judge<'_> {
    /// A shell, and what it runs as far as that is seen.
    pub(super) fn shell(self, program: &Word<'_>, args: &[Word<'_>], findings: &mut Findings) {
        let script = args.iter().position(|word| words::takes_script(word.value));
        let Some(at) = script else {
            if self.scripts > 0 {
                return;
            }
            let message = format!(
                "`{}` is a shell: what it runs is not seen here",
                program.written
            );
            findings
                .warning(program.span, message)
                .remedy("start the server itself");
            return;
        };
        let span = args.get(at + 1).map_or(program.span, |word| word.span);
        let words: Vec<&str> = args[at..].iter().map(|word| word.value).collect();
        if let Some(danger) = danger_in(&text_behind(program.value, &words)) {
            let problem = findings.error(span, format!("this script {danger}"));
            problem.remedy("start the server itself");
            return;
        }
        let message = format!("`{}` is a shell and runs a script", program.written);
        let remedy =
            "start the server itself: put the program into `command` and its arguments into `args`";
        match self.rules.shells {
            ShellRule::Refuse => findings.error(program.span, message).remedy(format!(
                "{remedy}; or say `shells = \"warn\"` in `[gateway.commands]`"
            )),
            ShellRule::Warn => findings.warning(program.span, message).remedy(remedy),
        }
    }

    /// Arguments that would do as a script what no server does: any program may be one that runs its arguments, whether
    /// its name is known or not.
    pub(super) fn runnable(self, args: &[Word<'_>], findings: &mut Findings) {
        for arg in args {
            let mut texts = runnable_in(arg.value);
            let found = texts.find_map(|text| Some((text, self.danger_in_text(text)?)));
            let Some((text, danger)) = found else {
                continue;
            };
            let message = format!("run as a script, this argument {danger}");
            let problem = match begins_with_command(text) {
                true => findings.error(arg.span, message),
                false => findings.warning(arg.span, message),
            };
            problem.remedy("leave it out, or start the server itself");
        }
    }

    fn danger_in_text(self, text: &str) -> Option<&'static str> {
        let mut deeds = Deeds {
            reading: Reading::Text,
            ..Deeds::default()
        };
        deeds.read(text, 0);
        let runs_shell = deeds.scripts && self.rules.shells == ShellRule::Refuse;
        let shell = runs_shell.then_some("starts a shell");
        deeds.danger().or(shell)
    }
}

/// Words of a shell that begin a command and are no programs.
const BUILTINS: &[&str] = &[
    ".", "[", "[[", "cd", "echo", "eval", "exec", "export", "for", "if", "printf", "read", "set",
    "source", "test", "trap", "true", "until", "while",
];

/// Whether a text reads like a script from its first word on, rather than like words for people.
fn begins_with_command(text: &str) -> bool {
    let mut words = text.split_whitespace();
    let first = words.find(|word| !word.contains('=')).unwrap_or_default();
    let first = first.trim_start_matches(['(', '{', '!', '"', '\'']);
    let first = first.trim_end_matches([';', '&', '|']);
    let is_known = sort(first) != Sort::Other && first == first.to_lowercase();
    let is_command = is_known || BUILTINS.contains(&first) || first.contains('/');
    // Nobody writes that to people.
    is_command || first.starts_with('$') || text.contains("$(")
}

/// The texts of several words in an argument that a program may run: the whole of it, or what stands behind an option or
/// a key, as in `--exec=TEXT`, `-cTEXT` and `EXEC:TEXT`. Editors and git want to see `!` before it.
fn runnable_in(arg: &str) -> impl Iterator<Item = &str> {
    let behind = |text: &str| {
        let at = text.find(['=', ':'])? + 1;
        let is_key = !text[..at].contains(char::is_whitespace);
        let is_joined = !text[at..].starts_with(char::is_whitespace);
        (is_key && is_joined).then_some(at)
    };
    let parts = std::iter::successors(Some(arg), move |text| Some(&text[behind(text)?..]));
    let is_letter = |option: &&str| option.chars().nth(1).is_some_and(char::is_alphabetic);
    let option = Some(arg)
        .filter(|arg| arg.starts_with('-'))
        .filter(is_letter);
    let short = option.and_then(|option| option.get(2..));
    parts
        .chain(short)
        .map(|text| text.trim_start_matches([':', '!']))
        .filter(|text| text.trim().contains(char::is_whitespace))
}

/// Shells start one another, and commands stand in one another, so often before it is no longer read.
const MOST_NESTED: usize = 4;

/// Words before which no program stands, and behind which one does.
const LEADS: &[&str] = &[
    "if", "then", "elif", "else", "while", "until", "do", "!", "time", "builtin",
];

/// Commands of a shell that read their words as a script.
const READERS: &[&str] = &["eval", "trap"];

/// Commands whose words a shell behind them may read as a script.
const SPEAKERS: &[&str] = &["echo", "printf"];

/// What a script does that no server does.
fn danger_in(script: &str) -> Option<&'static str> {
    let mut deeds = Deeds::default();
    deeds.read(script, 0);
    deeds.danger()
}

/// What is done in a script.
#[derive(Default)]
struct Deeds {
    reading: Reading,
    raises: bool,
    destroys: bool,
    fetches: bool,
    shells: bool,
    /// A shell is given a script of its own.
    scripts: bool,
    hides: bool,
}

/// How sure it is that a text is a script.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Reading {
    /// It is one.
    #[default]
    Script,
    /// It may be words for people, in which programs are merely named.
    Text,
}

impl Deeds {
    const fn danger(&self) -> Option<&'static str> {
        if self.raises {
            Some("takes the rights of another user")
        } else if self.destroys {
            Some("destroys what is there")
        } else if self.fetches && self.shells {
            Some("runs what it fetches from the network")
        } else if self.fetches && matches!(self.reading, Reading::Script) {
            Some("moves files over the network")
        } else if self.hides {
            Some("hides what it does: too many scripts stand in one another")
        } else {
            None
        }
    }

    fn read(&mut self, script: &str, depth: usize) {
        if depth > MOST_NESTED {
            self.hides = true;
            return;
        }
        let commands = split::commands(script, MOST_NESTED);
        for command in &commands {
            let words: Vec<&str> = command.iter().map(|word| &**word).collect();
            self.command(&words, depth);
        }
        if self.shells {
            let spoken = commands.iter().filter_map(|words| words.split_first());
            for (_, words) in spoken.filter(|(name, _)| SPEAKERS.contains(&name.as_str())) {
                self.read(&words.join(" "), depth + 1);
            }
        }
    }

    fn command(&mut self, words: &[&str], depth: usize) {
        if depth > MOST_NESTED {
            self.hides = true;
            return;
        }
        // What a shell within the text is given is a script.
        let is_text = self.reading == Reading::Text && depth == 0;
        let mut pairs = words.windows(2).filter(|_| !is_text);
        self.destroys |= pairs.any(|pair| sort(pair[0]) == Sort::Destroyer && is_force(pair[1]));
        // In a list for people `-` stands before each item.
        let is_before =
            |word: &&str| is_before_program(word) && !(is_text && word.starts_with('-'));
        let start = words.iter().position(|word| !is_before(word));
        let Some((program, args)) = start.and_then(|at| words[at..].split_first()) else {
            return;
        };
        match sort(program) {
            Sort::Raiser => self.raises = true,
            Sort::Destroyer => {
                self.destroys |=
                    args.iter().any(|arg| is_force(arg)) || words::ruins(program, args);
            }
            Sort::Fetcher => self.fetches = true,
            Sort::Shell => {
                self.shells = true;
                self.scripts |= args.iter().any(|arg| words::takes_script(arg));
            }
            Sort::Wrapper => self.wrapped(args, depth),
            // `"$@"` may be any of the words that follow.
            Sort::Other if program.starts_with('$') => self.wrapped(args, depth),
            Sort::Pipe | Sort::Container | Sort::Runner(_) | Sort::Other => {}
        }
        self.destroys |= args.iter().any(|arg| words::destroys(program, arg));
        let for_each = args.split(|arg| options::starts_for_each(program, arg));
        for started in for_each.skip(1) {
            self.command(started, depth + 1);
        }
        self.texts(program, args, depth);
    }

    fn wrapped(&mut self, args: &[&str], depth: usize) {
        if let Some(at) = args.iter().position(|arg| sort(arg) != Sort::Other) {
            self.command(&args[at..], depth + 1);
        }
    }

    /// The words that the program reads as a script of their own.
    fn texts(&mut self, program: &str, args: &[&str], depth: usize) {
        if READERS.contains(&program) || options::runs_text(program, args.iter().copied()) {
            self.read(&args.join(" "), depth + 1);
        }
        let is_shell = sort(program) == Sort::Shell;
        let takes_text = |arg: &&str| {
            options::hides_command(program, arg) || is_shell && words::takes_script(arg)
        };
        if let Some(at) = args.iter().position(takes_text) {
            self.read(&text_behind(program, &args[at..]), depth + 1);
        } else if is_shell {
            // The text of `sh <<< TEXT`.
            self.read(&args.join(" "), depth + 1);
        }
    }
}

/// The text that an option of a program takes, with the words behind it: `-c TEXT`, `--command=TEXT` or `-STEXT`.
fn text_behind(program: &str, words: &[&str]) -> String {
    let option = words.first().copied().unwrap_or_default();
    let joined = match option.split_once('=') {
        Some((_, value)) if option.starts_with("--") => value,
        _ if option.contains(char::is_whitespace) => option.get(2..).unwrap_or_default(),
        _ => "",
    };
    let rest = words.iter().copied().skip(1);
    let text = std::iter::once(joined)
        .chain(rest)
        .collect::<Vec<_>>()
        .join(" ");
    match &*words::name(program) {
        // There it stands between the parts of a path.
        "cmd" | "powershell" | "pwsh" => text.replace('\\', "/"),
        _ => text,
    }
}

/// Whether a word can stand before the program: a variable, a word of the shell, an option of what came before.
fn is_before_program(word: &str) -> bool {
    let is_name = |name: &str| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let sets = word.split_once('=').is_some_and(|(name, _)| is_name(name));
    sets || word.starts_with('-') || LEADS.contains(&word)
}
