//! Programs that start one another: where each of them lies, and what it really is.

use std::path::Path;

use super::super::surroundings::{ProgramFacts, Sought, Surroundings};
use super::words::{self, Sort, sort};
use super::{Word, interpreters, options};

/// How the programs are found that a command starts by way of another.
#[derive(Clone, Copy)]
pub(crate) struct Lookup<'a> {
    /// The machine that the child is started on.
    pub(crate) machine: &'a dyn Surroundings,
    /// The `PATH` that the child is given, if it is not that of the gateway.
    pub(crate) path: Option<&'a str>,
    /// Where the child runs, if that is said.
    pub(crate) folder: Option<&'a str>,
}

impl<'a> Lookup<'a> {
    /// What is known about a program, as the child finds it.
    pub(super) fn facts(&self, program: &str) -> ProgramFacts {
        self.machine.program(&Sought {
            program,
            path: self.path,
            folder: self.folder,
        })
    }

    /// Where the gateway itself finds a program of this name.
    pub(super) fn usual_path(&self, program: &str) -> Option<String> {
        let sought = Sought {
            path: None,
            folder: self.folder,
            ..Sought::here(program)
        };
        self.machine.program(&sought).path
    }

    /// The same behind `env PATH=…`, which looks the program up in that.
    pub(super) fn behind(self, wrapper: &str, args: &[Word<'a>]) -> Self {
        let own = own_words(wrapper, args).unwrap_or(args.len());
        let mut set = args[..own].iter().rev();
        let path = set.find_map(|word| word.value.strip_prefix("PATH="));
        Self {
            path: path.or(self.path),
            ..self
        }
    }

    /// The folder that a wrapper such as `env -C …` starts the program in, if it is told one.
    pub(super) fn folder_behind(&self, wrapper: &str, args: &[Word<'_>]) -> Option<String> {
        let own = own_words(wrapper, args).unwrap_or_default();
        let folder = options::folder(wrapper, args[..own].iter().map(|word| word.value));
        let folder = folder.or_else(|| interpreters::folder(wrapper, args))?;
        let whole = Path::new(self.folder.unwrap_or_default()).join(folder);
        Some(whole.to_string_lossy().into_owned())
    }

    /// Where the first program stands behind a wrapper that is judged at all.
    pub(super) fn first_judged(&self, wrapper: &str, args: &[Word<'_>]) -> Option<usize> {
        let verb = verb(wrapper, args);
        (0..args.len()).find(|at| verb != Some(*at) && self.is_judged(&args[*at]))
    }

    /// Whether a word is a program that is judged, by its name or by what it leads to.
    pub(super) fn is_judged(&self, word: &Word<'_>) -> bool {
        let value = word.value;
        sort(value) != Sort::Other
            || can_be_program(value) && disguised(value, &self.facts(value)).is_some()
    }
}

/// Where the program stands that a wrapper starts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Start {
    /// There, by the options of the wrapper.
    At(usize),
    /// There stands the first word that is a program of this machine; what the options take is not known.
    Perhaps(usize),
    /// None of the words is a program of this machine; there the options seem to end.
    Unknown(usize),
}

/// Wrappers whose first word says what they do, such as `run` or `exec`, and is no program even if there is one of
/// that name.
const VERBED: &[&str] = &[
    "mcpact",
    "uv",
    "poetry",
    "pipenv",
    "conda",
    "mamba",
    "micromamba",
    "pdm",
    "hatch",
    "rye",
    "pixi",
    "mise",
    "asdf",
    "pyenv",
    "rbenv",
    "nodenv",
    "volta",
    "fnm",
    "nix",
    "direnv",
    "bundle",
    "op",
    "infisical",
    "doppler",
    "dotenvx",
    "aws-vault",
    "chamber",
    "perf",
    "rr",
];

/// Finds what a wrapper starts.
pub(super) fn start(wrapper: &str, args: &[Word<'_>], lookup: &Lookup<'_>) -> Start {
    if let Some(own) = own_words(wrapper, args).filter(|own| *own < args.len()) {
        return Start::At(own);
    }
    let verb = verb(wrapper, args);
    let is_program = |at: usize| {
        let before = at.checked_sub(1).map_or("", |before| args[before].value);
        let value = args[at].value;
        can_be_program(value)
            && verb != Some(at)
            && !words::names_package(before)
            && lookup.facts(value).path.is_some()
    };
    let is_own =
        |word: &&Word<'_>| !can_be_program(word.value) || word.value.parse::<f64>().is_ok();
    match (0..args.len()).find(|at| is_program(*at)) {
        Some(at) => Start::Perhaps(at),
        None => Start::Unknown(args.iter().take_while(is_own).count()),
    }
}

/// The words of a `#!` line. Whether the system takes what follows the program apart, or `env -S` does, makes no
/// difference to what is started.
pub(super) fn interpreter(line: &str) -> impl Iterator<Item = &str> {
    let words = line.trim_start_matches("#!").split_whitespace();
    let splits = |word: &&str| matches!(*word, "-S" | "-vS" | "--split-string");
    words
        .enumerate()
        .filter(move |(at, word)| *at != 1 || !splits(word))
        .map(|(_, word)| word)
}

/// Where the word stands that says what a wrapper does.
fn verb(wrapper: &str, args: &[Word<'_>]) -> Option<usize> {
    let first = args.iter().position(|word| can_be_program(word.value));
    first.filter(|_| VERBED.contains(&&*words::name(wrapper)))
}

/// How many words are the wrapper's own, with the dashes that end them.
fn own_words(wrapper: &str, args: &[Word<'_>]) -> Option<usize> {
    let own = options::own_words(wrapper, args.iter().map(|word| word.value))?;
    let ends = args.get(own).is_some_and(|word| word.value == "--");
    Some(own + usize::from(ends))
}

/// Neither an option nor a variable.
fn can_be_program(word: &str) -> bool {
    !word.is_empty() && !word.starts_with('-') && !word.contains('=')
}

/// What a program really is, if a link to it hides that it is one of those that are judged.
pub(super) fn disguised<'f>(program: &str, facts: &'f ProgramFacts) -> Option<&'f str> {
    let real = facts.real.as_deref()?;
    let is_worse = match sort(real) {
        Sort::Raiser | Sort::Destroyer | Sort::Fetcher | Sort::Pipe | Sort::Shell => {
            sort(real) != sort(program)
        }
        Sort::Container | Sort::Wrapper | Sort::Runner(_) | Sort::Other => false,
    };
    let is_hidden = words::is_known(real) && !words::is_known(program);
    ((is_worse || is_hidden) && !goes_by_its_name(real)).then_some(real)
}

/// Whether a program is many in one, so that a link to it means what the link is called.
fn goes_by_its_name(program: &str) -> bool {
    matches!(
        &*words::name(program),
        "busybox" | "toybox" | "mise" | "firejail" | "nix"
    )
}
