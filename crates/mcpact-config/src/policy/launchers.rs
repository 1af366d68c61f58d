//! Programs that start a command of their arguments without being wrappers by name: behind `--`, or as a text.

use super::super::problem::Findings;
use super::super::surroundings::ProgramFacts;
use super::words::{self, Sort, sort};
use super::{Judge, Reached, Word, options, split};

/// A program, or a package, and how it is told what to start.
struct Launcher {
    of: &'static [&'static str],
    /// Options that take a command as one text, and how many words behind them it stands.
    texts: &'static [(&'static str, usize)],
}

const LAUNCHERS: &[Launcher] = &[
    Launcher {
        of: &["supergateway"],
        texts: &[("--stdio", 1)],
    },
    Launcher {
        of: &["mcp-proxy"],
        texts: &[("--named-server", 2)],
    },
    Launcher {
        of: &["nodemon"],
        texts: &[("--exec", 1), ("-x", 1)],
    },
    Launcher {
        of: &["doppler"],
        texts: &[("--command", 1)],
    },
];

/// The name of a package, without its scope, its extras and its version.
fn package(word: &str) -> &str {
    let last = word.rsplit('/').next().unwrap_or(word);
    let end = last.find(['@', '=', '[', '<', '>', '~', '!']);
    &last[..end.unwrap_or(last.len())]
}

/// The texts among these words that a program starts as commands.
fn texts<'t>(program: &str, args: &[Word<'t>]) -> Vec<Word<'t>> {
    let name = &*words::name(program);
    let row = LAUNCHERS.iter().find(|row| row.of.contains(&name));
    let options = row.map_or(&[][..], |row| row.texts);
    let found = args.iter().enumerate().filter_map(|(at, word)| {
        let (option, value) = match word.value.split_once('=') {
            Some((option, value)) => (option, Some(value)),
            None => (word.value, None),
        };
        let (_, behind) = options.iter().find(|(known, _)| *known == option)?;
        match value {
            Some(value) if *behind == 1 => Some(Word { value, ..*word }),
            Some(_) => args.get(at + behind - 1).copied(),
            None => args.get(at + behind).copied(),
        }
    });
    found.collect()
}

impl<'a> Judge<'a> {
    /// What a package starts in turn, if it is known to, or if a command seems to stand behind `--`.
    pub(super) fn launched_by_package(
        self,
        words: &[Word<'a>],
        findings: &mut Findings,
        depth: usize,
    ) -> Reached {
        let Some((named, args)) = words.split_first() else {
            return Reached::Program;
        };
        let value = package(named.value);
        let starts = match sort(value) {
            Sort::Wrapper | Sort::Runner(_) => true,
            Sort::Other => options::is_known(value),
            Sort::Raiser
            | Sort::Destroyer
            | Sort::Fetcher
            | Sort::Pipe
            | Sort::Shell
            | Sort::Container => false,
        };
        if starts {
            let words = [&[Word { value, ..*named }], args].concat();
            return self.started(&words, &ProgramFacts::default(), findings, depth + 1);
        }
        self.texted(value, args, findings, depth);
        self.scripted(value, args, findings);
        self.behind_dashes(args, findings, depth)
    }

    /// What is given to a program as a text to start.
    pub(super) fn texted(
        self,
        program: &str,
        args: &[Word<'a>],
        findings: &mut Findings,
        depth: usize,
    ) {
        for text in texts(program, args) {
            for command in split::commands(text.value, depth) {
                let words = command.iter().map(|value| Word { value, ..text });
                let words = words.collect::<Vec<_>>();
                let before = findings.count();
                let reached = self.started_behind(&words, findings, depth);
                if reached != Reached::Container && !findings.has_errors_after(before) {
                    self.runnable(&words[1..], findings);
                }
            }
        }
    }

    /// What any program starts that takes a command behind `--`.
    pub(super) fn behind_dashes(
        self,
        args: &[Word<'a>],
        findings: &mut Findings,
        depth: usize,
    ) -> Reached {
        let dashes = args.iter().position(|word| word.value == "--");
        match dashes.map(|at| &args[at + 1..]) {
            Some(rest) if rest.first().is_some_and(|word| self.is_program(word)) => {
                self.started_behind(rest, findings, depth)
            }
            Some(_) | None => Reached::Program,
        }
    }

    /// Whether a word that may be anything is a program.
    pub(super) fn is_program(self, word: &Word<'_>) -> bool {
        let is_place = word.value.contains('/');
        self.lookup.is_judged(word) || is_place && self.lookup.facts(word.value).path.is_some()
    }
}
