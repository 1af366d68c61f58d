//! Programs that run a script which their arguments name: who could have changed it counts as with a program.

use std::path::Path;

use super::super::problem::Findings;
use super::options::{Meaning, Options, Own, meaning};
use super::words::{self, Sort, sort};
use super::{Judge, Word};

/// A program that runs a script, and how it is told which one.
struct Interpreter {
    /// Its options; `scripts` are those by which it runs something else than a file: a text, or a module.
    options: Options,
    /// Words before the script that say what to do with it.
    verbs: &'static [&'static str],
    /// The option that says in which folder the script is looked for.
    folder: Option<&'static str>,
    /// What the name of a script may be written without.
    endings: &'static [&'static str],
}

const fn interpreter(
    of: &'static [&'static str],
    valued: &'static [&'static str],
    scripts: &'static [&'static str],
) -> Interpreter {
    Interpreter {
        options: Options {
            of,
            valued,
            scripts,
            own: Own::All,
        },
        verbs: &[],
        folder: None,
        endings: &[],
    }
}

const INTERPRETERS: &[Interpreter] = &[
    interpreter(
        &["python", "pythonw", "pypy", "py"],
        &["-W", "-X", "--check-hash-based-pycs"],
        &["-c", "-m"],
    ),
    Interpreter {
        endings: &[".js", ".ts"],
        ..interpreter(
            &["node", "nodejs", "tsx", "ts-node"],
            &[
                "-r",
                "--require",
                "--import",
                "--loader",
                "--experimental-loader",
                "-C",
                "--conditions",
                "--env-file",
                "--tsconfig",
                "-P",
                "--project",
            ],
            &["-e", "--eval", "-p", "--print"],
        )
    },
    Interpreter {
        verbs: &["run", "serve"],
        ..interpreter(
            &["deno"],
            &["-c", "--config", "--import-map", "--lock", "--env-file"],
            &["eval"],
        )
    },
    Interpreter {
        verbs: &["run"],
        folder: Some("--cwd"),
        endings: &[".js", ".ts"],
        ..interpreter(
            &["bun"],
            &["-r", "--preload", "-c", "--config", "--env-file", "--cwd"],
            &["-e", "--eval", "-p", "--print"],
        )
    },
    interpreter(&["ruby"], &["-r", "-I", "-C", "-E"], &["-e"]),
    interpreter(&["perl"], &["-I"], &["-e", "-E"]),
    interpreter(&["php"], &["-d", "-c", "-z"], &["-r", "-S"]),
    interpreter(&["lua", "luajit"], &["-l"], &["-e"]),
    interpreter(&["rscript"], &[], &["-e"]),
    interpreter(&["java"], &[], &["-m", "--module"]),
    Interpreter {
        verbs: &["exec"],
        ..interpreter(&["dotnet"], &[], &[])
    },
    Interpreter {
        verbs: &["run"],
        folder: Some("--directory"),
        ..interpreter(
            &["uv"],
            &[
                "-p",
                "--python",
                "-w",
                "--with",
                "--with-editable",
                "--with-requirements",
                "--project",
                "--directory",
                "--env-file",
                "--extra",
                "--group",
                "--index",
                "--default-index",
                "--config-file",
                "--cache-dir",
            ],
            &["-m", "--module"],
        )
    },
];

/// Any shell.
const SHELL: Interpreter =
    interpreter(&[], &["-o", "-O", "--rcfile", "--init-file"], &["-s", "-c"]);

/// How a program reads its arguments, if it runs scripts.
fn of(program: &str) -> Option<&'static Interpreter> {
    let name = words::name(program);
    // `python3.12` is one of many.
    let family = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    let row = INTERPRETERS
        .iter()
        .find(|row| row.options.of.contains(&family));
    row.or_else(|| (sort(program) == Sort::Shell).then_some(&SHELL))
}

impl Interpreter {
    /// The folder that this option says, by itself.
    fn folder_in<'t>(&self, option: &'t str) -> Option<&'t str> {
        let (name, folder) = option.split_once('=')?;
        (Some(name) == self.folder).then_some(folder)
    }

    /// Reads the words up to the script; `find` says where one is, from a folder on.
    fn told<'w, 't>(
        &self,
        args: &'w [Word<'t>],
        find: impl Fn(Option<&str>, &str) -> Option<String>,
    ) -> Told<'w, 't> {
        let mut told = Told::default();
        let mut before = "";
        for word in args {
            let value = word.value;
            let is_value = meaning(before, &self.options) == Meaning::TakesNext;
            if is_value {
                let is_folder = Some(before) == self.folder;
                told.folder = is_folder.then_some(value).or(told.folder);
            } else if meaning(value, &self.options) == Meaning::Script || value == "-" {
                break;
            } else if value.starts_with(['-', '+']) {
                told.folder = self.folder_in(value).or(told.folder);
            } else if !self.verbs.contains(&value) {
                told.script = find(told.folder, value).map(|path| (word, path));
                // Behind an option that is not known may stand its value.
                if told.script.is_some() || !before.starts_with('-') || before == "--" {
                    break;
                }
            }
            before = if is_value { "" } else { value };
        }
        told
    }
}

/// What an interpreter is told.
#[derive(Default)]
struct Told<'w, 't> {
    /// Where it is to look.
    folder: Option<&'t str>,
    /// The script, and where that is; none if something else is run, or nothing is found.
    script: Option<(&'w Word<'t>, String)>,
}

/// The folder that a program is told to look in, if it runs scripts.
pub(super) fn folder<'t>(program: &str, args: &[Word<'t>]) -> Option<&'t str> {
    of(program)?.told(args, |_, _| None).folder
}

impl Judge<'_> {
    /// The script that an interpreter is told to run: whoever may change it decides what is started.
    pub(super) fn scripted(self, program: &str, args: &[Word<'_>], findings: &mut Findings) {
        let Some(row) = of(program) else {
            return;
        };
        let machine = self.lookup.machine;
        let find = |folder: Option<&str>, script: &str| {
            let base = Path::new(self.lookup.folder.unwrap_or_default());
            let path = base.join(folder.unwrap_or_default()).join(script);
            let path = path.to_string_lossy();
            let endings = [""].iter().chain(row.endings);
            let mut ways = endings.map(|ending| format!("{path}{ending}"));
            ways.find(|way| machine.has_place(way))
        };
        let script = row.told(args, find).script;
        let open = script.and_then(|(word, path)| Some((word, machine.writable_by_all(&path)?)));
        if let Some((word, open)) = open {
            let message = format!(
                "everybody on this machine may change `{open}`, and so what `{}` does",
                word.written
            );
            let problem = findings.error(word.span, message);
            problem.remedy(format!("take that right away: `chmod o-w {open}`"));
        }
    }
}
