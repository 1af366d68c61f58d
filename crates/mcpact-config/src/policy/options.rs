//! How programs that start others read their own options.

use super::words::name;

/// Which words are a program's own, before those of the command that it starts.
#[derive(Clone, Copy)]
pub(super) enum Own {
    /// It cannot be told: all of them may be.
    All,
    /// Those before the first `--`.
    BeforeDashes,
    /// Options, with so many other words.
    Beside(usize),
}

/// The options of a program that starts others.
pub(super) struct Options {
    pub(super) of: &'static [&'static str],
    /// Those that take a value.
    pub(super) valued: &'static [&'static str],
    /// Those by which a text is run, as a shell would.
    pub(super) scripts: &'static [&'static str],
    pub(super) own: Own,
}

const OPTIONS: &[Options] = &[
    Options {
        of: &["npx", "npm", "pnpm", "pnpx"],
        valued: &[],
        scripts: &["-c", "--call", "--shell-mode"],
        own: Own::All,
    },
    Options {
        of: &["script"],
        valued: &["-E", "-I", "-B", "-O", "-T", "-m", "-o"],
        scripts: &["-c", "--command"],
        own: Own::All,
    },
    Options {
        of: &["flock"],
        valued: &["-w", "--wait", "--timeout", "-E", "--conflict-exit-code"],
        scripts: &["-c", "--command"],
        own: Own::Beside(1),
    },
    Options {
        of: &["env"],
        valued: &[
            "-u", "--unset", "-C", "--chdir", "-a", "--argv0", "-P", "-L", "-U",
        ],
        scripts: &["-S", "--split-string"],
        own: Own::Beside(0),
    },
    Options {
        of: &["nohup", "setsid"],
        valued: &[],
        scripts: &[],
        own: Own::Beside(0),
    },
    Options {
        of: &["nice"],
        valued: &["-n", "--adjustment"],
        scripts: &[],
        own: Own::Beside(0),
    },
    Options {
        of: &["ionice"],
        valued: &["-c", "--class", "-n", "--classdata"],
        scripts: &[],
        own: Own::Beside(0),
    },
    Options {
        of: &["timeout"],
        valued: &["-k", "--kill-after", "-s", "--signal"],
        scripts: &[],
        own: Own::Beside(1),
    },
    Options {
        of: &["stdbuf"],
        valued: &["-i", "--input", "-o", "--output", "-e", "--error"],
        scripts: &[],
        own: Own::Beside(0),
    },
    Options {
        of: &["time"],
        valued: &["-f", "--format", "-o", "--output"],
        scripts: &[],
        own: Own::Beside(0),
    },
    Options {
        of: &["xargs"],
        valued: &[
            "-a",
            "--arg-file",
            "-d",
            "--delimiter",
            "-E",
            "-I",
            "-L",
            "--max-lines",
            "-n",
            "--max-args",
            "-P",
            "--max-procs",
            "-s",
            "--max-chars",
            "--process-slot-var",
        ],
        scripts: &[],
        own: Own::Beside(0),
    },
    Options {
        of: &["watch"],
        valued: &["-n", "--interval", "-q", "--equexit", "-s", "--shotsdir"],
        scripts: &[],
        own: Own::Beside(0),
    },
    Options {
        of: &["expect"],
        valued: &["-f"],
        scripts: &["-c"],
        own: Own::Beside(0),
    },
    Options {
        of: &["gdb"],
        valued: &["-x", "-p", "-s", "-e", "-d"],
        scripts: &[
            "-ex",
            "--ex",
            "-iex",
            "--iex",
            "-eval-command",
            "--eval-command",
            "--init-eval-command",
        ],
        own: Own::Beside(0),
    },
    Options {
        of: &["mise"],
        valued: &["-C", "--cd", "-j", "--jobs"],
        scripts: &["-c", "--command"],
        own: Own::BeforeDashes,
    },
    Options {
        of: &["nix-shell"],
        valued: &["-p", "-A", "-I"],
        scripts: &["--run", "--command"],
        own: Own::All,
    },
];

/// Programs that start others in another folder, and the option that says in which.
const FOLDERS: &[(&str, &str, char)] = &[("env", "--chdir", 'C'), ("mise", "--cd", 'C')];

/// Programs that run what they find, and the options behind which that command stands.
const FINDERS: &[(&[&str], &[&str])] = &[
    (&["find", "gfind"], &["-exec", "-execdir", "-ok", "-okdir"]),
    (&["fd", "fdfind"], &["-x", "-X", "--exec", "--exec-batch"]),
];

/// What one word means to the program.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    /// A text is run.
    Script,
    /// The next word is its value.
    TakesNext,
    /// It stands for itself.
    Alone,
}

fn of(program: &str) -> Option<&'static Options> {
    let name = &*name(program);
    OPTIONS.iter().find(|row| row.of.contains(&name))
}

/// Reads a word as getopt does: a long option may be shortened, and letters may stand together until one that
/// takes a value, which is the rest or the next word.
pub(super) fn meaning(word: &str, options: &Options) -> Meaning {
    let (name, value) = match word.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (word, None),
    };
    let is_long = name.starts_with("--");
    let is_one_of = |known: &[&str]| {
        known
            .iter()
            .any(|known| *known == name || is_short_for(name, known))
    };
    if is_one_of(options.scripts) {
        return Meaning::Script;
    }
    if is_long {
        let takes_next = value.is_none() && is_one_of(options.valued);
        return if takes_next {
            Meaning::TakesNext
        } else {
            Meaning::Alone
        };
    }
    let has = |known: &[&str], letter: char| {
        let mut letters = known.iter().filter_map(|known| known.strip_prefix('-'));
        letters.any(|known| known.chars().eq([letter]))
    };
    let mut letters = name.strip_prefix('-').unwrap_or_default().chars();
    while let Some(letter) = letters.next() {
        if has(options.scripts, letter) {
            return Meaning::Script;
        }
        if has(options.valued, letter) {
            let is_last = letters.as_str().is_empty() && value.is_none();
            return if is_last {
                Meaning::TakesNext
            } else {
                Meaning::Alone
            };
        }
    }
    Meaning::Alone
}

/// The folder in which a program starts another, out of its own words.
pub(super) fn folder<'a>(program: &str, own: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let (_, long, short) = FOLDERS.iter().find(|(of, ..)| *of == name(program))?;
    let options = of(program)?;
    let (mut own, mut found) = (own.into_iter(), None);
    while let Some(word) = own.next() {
        let (option, value) = match word.split_once('=') {
            Some((option, value)) => (option, Some(value)),
            None => (word, None),
        };
        let takes_next = meaning(word, options) == Meaning::TakesNext;
        let next = takes_next.then(|| own.next()).flatten();
        if option == *long || is_short_for(option, long) {
            found = value.or(next);
        } else if let Some(letters) = word.strip_prefix('-').filter(|word| !word.starts_with('-')) {
            let is_valued = |c: char| options.valued.contains(&&*format!("-{c}"));
            let at = letters.find(is_valued);
            if let Some(letters) = at.and_then(|at| letters[at..].strip_prefix(*short)) {
                found = next.or(Some(letters));
            }
        }
    }
    found
}

/// Whether a long option is this one, or as much of it as tells it from others.
fn is_short_for(option: &str, known: &str) -> bool {
    option.len() > 2 && option.starts_with("--") && known.starts_with(option)
}

/// Whether something is known about how this program starts others.
pub(super) fn is_known(program: &str) -> bool {
    let name = &*name(program);
    let finds = FINDERS.iter().any(|(names, _)| names.contains(&name));
    finds || of(name).is_some() || runs_text(name, [])
}

/// Whether an option of this program makes it run a text.
pub(super) fn hides_command(program: &str, option: &str) -> bool {
    of(program).is_some_and(|options| meaning(option, options) == Meaning::Script)
}

/// How many of these words are the program's own, and not of a command that it starts; none if that cannot be
/// told.
pub(super) fn own_words<'a>(
    program: &str,
    args: impl IntoIterator<Item = &'a str>,
) -> Option<usize> {
    let options = of(program)?;
    let mut args = args.into_iter();
    let mut left = match options.own {
        Own::All => return None,
        Own::BeforeDashes => return Some(args.take_while(|arg| *arg != "--").count()),
        Own::Beside(left) => left,
    };
    let (mut is_value, mut own) = (false, 0);
    for arg in args.by_ref() {
        let is_option = is_value || arg.starts_with('-') || arg.contains('=');
        if !is_option {
            if left == 0 {
                break;
            }
            left -= 1;
        }
        is_value = !is_value && meaning(arg, options) == Meaning::TakesNext;
        own += 1;
    }
    Some(own)
}

/// Whether what follows is handed to a shell as one text, without an option that says so. These are the program's
/// own words.
pub(super) fn runs_text<'a>(program: &str, own: impl IntoIterator<Item = &'a str>) -> bool {
    let mut own = own.into_iter();
    match &*name(program) {
        "watch" => !own.any(|option| matches!(option, "-x" | "--exec")),
        "sops" => own.any(|verb| matches!(verb, "exec-env" | "exec-file")),
        "parallel" | "sem" | "hyperfine" | "concurrently" | "cross-env-shell" | "tmux"
        | "byobu" => true,
        _ => false,
    }
}

/// Whether behind this option stands a command that is started for what the program finds.
pub(super) fn starts_for_each(program: &str, option: &str) -> bool {
    let name = &*name(program);
    let row = FINDERS.iter().find(|(names, _)| names.contains(&name));
    row.is_some_and(|(_, options)| options.contains(&option))
}
