//! Names that the command policy knows, and the option syntax of launchers.

/// Kind of a program that is refused or warned of by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Runs a program as another user.
    Privilege,
    /// Destroys data, or stops the machine.
    Destructive,
    /// Copies files over the network.
    Transfer,
    /// Connects to another host.
    Remote,
    Shell,
}

impl Kind {
    /// Reason and hint of a refusal; none for programs that are only warned of, or depend on a key of the config.
    pub(super) const fn refusal(self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::Privilege => Some((
                "runs programs as another user",
                "start the server with your own permissions",
            )),
            Self::Destructive => Some((
                "destroys data and is not an MCP server",
                "start the server itself",
            )),
            Self::Transfer => Some((
                "copies files over the network and is not an MCP server",
                "start the server itself",
            )),
            Self::Remote | Self::Shell => None,
        }
    }
}

const KINDS: &[(Kind, &str)] = &[
    (
        Kind::Privilege,
        "sudo sudo-rs sudoedit doas opendoas su su-rs pkexec runas run0 runuser gosu su-exec sg dzdo pfexec \
         pbrun gksu gksudo kdesu kdesudo calife",
    ),
    (
        Kind::Destructive,
        "rm rmdir unlink shred wipefs mke2fs dd mkfs del format shutdown reboot halt poweroff",
    ),
    (
        Kind::Transfer,
        "curl wget wget2 wcurl scp rcp ftp sftp lftp tftp ncftp rsync aria2c axel",
    ),
    (Kind::Remote, "nc ncat netcat socat ssh telnet"),
    (
        Kind::Shell,
        "sh bash dash ash zsh ksh mksh oksh lksh pdksh ksh93 rbash yash posh elvish xonsh fish nu nushell murex \
         osh ysh sash capsh csh tcsh cmd powershell pwsh",
    ),
];

/// Position of the program that a launcher starts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Behind {
    /// The first operand is a program.
    Program,
    /// The first operand is a package, or a program with packages beside it.
    Package,
    /// The first operand is a program if the child finds it, otherwise a script or a package.
    Perhaps,
}

/// A program that starts another one. Lists are separated by spaces.
pub(super) struct Launcher {
    names: &'static str,
    /// Subcommands before the program; if there are any, one of them is required.
    verbs: &'static str,
    /// Options that take a value.
    valued: &'static str,
    /// Options that take a package, so that the first operand is a program.
    packages: &'static str,
    /// Options that take a shell script.
    scripts: &'static str,
    /// Operands before the program.
    operands: usize,
    pub(super) behind: Behind,
    /// Marks between the name of a package and its version.
    pub(super) pins: &'static [&'static str],
}

const fn wrapper(names: &'static str, operands: usize, valued: &'static str) -> Launcher {
    Launcher {
        names,
        verbs: "",
        valued,
        packages: "",
        scripts: "",
        operands,
        behind: Behind::Program,
        pins: &[],
    }
}

const fn runner(
    names: &'static str,
    verbs: &'static str,
    valued: &'static str,
    packages: &'static str,
    pins: &'static [&'static str],
) -> Launcher {
    Launcher {
        verbs,
        packages,
        behind: Behind::Package,
        pins,
        ..wrapper(names, 0, valued)
    }
}

const ENV: &str = "env";

const NPM: &str = "-w --workspace --registry --cache --prefix --userconfig --loglevel";

const NPM_PACKAGE: &str = "-p --package";

const UV: &str = "--with -w --with-editable --with-requirements -p --python --index --default-index \
                  --index-url -i --extra-index-url --project --directory --env-file --extra --group \
                  --config-file --cache-dir";

const LAUNCHERS: &[Launcher] = &[
    Launcher {
        scripts: "-S --split-string",
        ..wrapper(ENV, 0, "-u --unset -C --chdir -a --argv0 -P -L -U")
    },
    wrapper("nohup setsid busybox toybox dumb-init", 0, ""),
    wrapper("nice", 0, "-n --adjustment"),
    wrapper("ionice", 0, "-c --class -n --classdata"),
    wrapper("timeout", 1, "-k --kill-after -s --signal"),
    wrapper("stdbuf", 0, "-i --input -o --output -e --error"),
    wrapper("time", 0, "-f --format -o --output"),
    wrapper("taskset", 1, ""),
    wrapper("tini", 0, "-p -e"),
    wrapper(
        "xargs",
        0,
        "-a --arg-file -d --delimiter -E -I -L --max-lines -n --max-args -P --max-procs -s --max-chars \
         --process-slot-var",
    ),
    Launcher {
        scripts: "-c --command",
        ..wrapper("flock", 1, "-w --wait --timeout -E --conflict-exit-code")
    },
    Launcher {
        verbs: "bridge",
        ..wrapper(
            "mcpact",
            0,
            "--listen --era --header --bearer --token-file --tls-cert --tls-key --allow-host --allow-origin",
        )
    },
    Launcher {
        scripts: "-c --call --shell-mode",
        ..runner("npx pnpx", "", NPM, NPM_PACKAGE, &["@"])
    },
    Launcher {
        scripts: "-c --call --shell-mode",
        ..runner("npm pnpm", "exec x dlx", NPM, NPM_PACKAGE, &[])
    },
    runner("bunx", "", NPM, NPM_PACKAGE, &["@"]),
    runner("yarn bun", "exec x dlx", NPM, NPM_PACKAGE, &[]),
    runner("uvx", "", UV, "--from", &["==", "@"]),
    runner(
        "pipx",
        "run",
        "--python --index-url -i --pip-args",
        "--spec",
        &["==", "@"],
    ),
    Launcher {
        behind: Behind::Perhaps,
        ..runner("uv", "run tool", UV, "--from", &[])
    },
    Launcher {
        behind: Behind::Perhaps,
        ..runner(
            "poetry pipenv pdm hatch rye pixi",
            "run",
            "-C --directory -P --project -m --manifest-path -e --environment",
            "",
            &[],
        )
    },
    Launcher {
        behind: Behind::Perhaps,
        ..runner(
            "conda mamba micromamba",
            "run",
            "-n --name -p --prefix --cwd",
            "",
            &[],
        )
    },
];

/// Interpreters, and the options or subcommands that take code.
const INTERPRETERS: &[(&str, &str)] = &[
    ("python pythonw pypy py", "-c"),
    ("node nodejs tsx ts-node bun", "-e --eval -p --print"),
    ("deno", "eval"),
    ("perl", "-e -E"),
    ("ruby lua luajit rscript osascript", "-e"),
    ("php", "-r"),
];

/// Words that only a shell understands.
pub(super) const OPERATORS: &[&str] = &[
    "&&", "||", ";", "|", "&", ">", ">>", "<", "<<", "2>&1", "&>", "|&",
];

/// Marks that a shell would replace, or end a command at.
pub(super) const SUBSTITUTIONS: &[&str] = &["$(", "`", "&&", "||", "; ", " | "];

/// Locations of credentials.
pub(super) const SECRET_PLACES: &[&str] = &[
    "/.ssh",
    "/.aws",
    "/.gnupg",
    "/.netrc",
    "/.kube",
    "/.docker/config.json",
    "/etc/shadow",
    "id_rsa",
    "id_ed25519",
];

/// Scripts that links of package managers lead to, and the program they are.
const MANAGERS: &[(&str, &str)] = &[
    ("npx-cli.js", "npx"),
    ("npm-cli.js", "npm"),
    ("pnpm.cjs", "pnpm"),
    ("pnpx.cjs", "pnpx"),
    ("yarn.js", "yarn"),
];

/// Returns whether a space-separated list contains a name.
pub(crate) fn has(list: &str, name: &str) -> bool {
    list.split(' ').any(|one| one == name)
}

/// Name of a program: the last part of its path in lower case, without an extension of Windows.
fn program_name(program: &str) -> String {
    let last = program.rsplit(['/', '\\']).next().unwrap_or(program);
    let name = last.to_ascii_lowercase();
    let ends = [".exe", ".cmd", ".bat"];
    let name = ends
        .iter()
        .find_map(|end| name.strip_suffix(end))
        .unwrap_or(&name);
    let script = MANAGERS.iter().find(|(script, _)| *script == name);
    script.map_or(name, |(_, program)| program).to_owned()
}

/// Name of a package, without its scope, extras and version.
pub(super) fn package_name(word: &str) -> &str {
    let last = word.rsplit('/').next().unwrap_or(word);
    let end = last.find(['@', '=', '[', '<', '>', '~', '!']);
    &last[..end.unwrap_or(last.len())]
}

pub(super) fn kind(program: &str) -> Option<Kind> {
    let name = program_name(program);
    // `mkfs.ext4` is one of many.
    let name = if name.starts_with("mkfs.") {
        "mkfs"
    } else {
        &name
    };
    let row = KINDS.iter().find(|(_, names)| has(names, name));
    row.map(|(kind, _)| *kind)
}

pub(super) fn launcher(program: &str) -> Option<&'static Launcher> {
    let name = program_name(program);
    LAUNCHERS.iter().find(|launcher| has(launcher.names, &name))
}

/// The launcher that a link leads to. A link to `busybox` is the applet that the link is named after.
pub(super) fn linked_launcher(real: &str) -> Option<&'static Launcher> {
    let is_multi_call = matches!(&*program_name(real), "busybox" | "toybox");
    launcher(real).filter(|_| !is_multi_call)
}

/// Options by which an interpreter takes code; none for other programs.
pub(super) fn inline_options(program: &str) -> Option<&'static str> {
    let name = program_name(program);
    // `python3.12` is one of many.
    let family = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    let row = INTERPRETERS.iter().find(|(names, _)| has(names, family));
    row.map(|(_, options)| *options)
}

/// Returns whether a program runs the script that is its first operand.
pub(crate) fn runs_scripts(program: &str) -> bool {
    let is_shell = kind(program) == Some(Kind::Shell);
    is_shell || inline_options(program).is_some() || program_name(program) == "uv"
}

/// Returns whether an option makes a shell run the text that follows.
pub(super) fn takes_script(option: &str) -> bool {
    let lower = option.to_ascii_lowercase();
    let is_windows = has("/c /k -command -encodedcommand -enc", &lower);
    is_windows || is_option(option, "-c --command")
}

/// Returns whether a word is one of these options. Long options may be abbreviated and carry a value; short ones may be
/// combined.
pub(super) fn is_option(word: &str, options: &str) -> bool {
    let name = word.split_once('=').map_or(word, |(name, _)| name);
    let is_short_for =
        |option: &str| name.len() > 2 && name.starts_with("--") && option.starts_with(name);
    let mut letters = name.strip_prefix('-').unwrap_or_default().chars();
    let is_cluster = name.len() <= 5 && letters.clone().all(|c| c.is_ascii_alphabetic());
    has(options, name)
        || options.split(' ').any(is_short_for)
        || is_cluster && letters.any(|letter| has(options, &format!("-{letter}")))
}

/// Arguments of a launcher; numbers are positions.
#[derive(Default)]
pub(super) struct Found<'t> {
    /// The option that takes a shell script.
    pub(super) script: Option<usize>,
    /// `PATH` of the program.
    pub(super) path: Option<&'t str>,
    /// Working directory of the program.
    pub(super) folder: Option<&'t str>,
    /// The package without a version check of its own: the value of an option, or the first operand.
    pub(super) package: Option<usize>,
    pub(super) program: Option<usize>,
}

impl Launcher {
    /// Reads the arguments up to the program.
    pub(super) fn read<'t>(&self, args: &[&'t str]) -> Found<'t> {
        let mut found = Found::default();
        let (mut needs_verb, mut operands) = (!self.verbs.is_empty(), self.operands);
        let mut names_package = false;
        let mut at = 0;
        while let Some(word) = args.get(at) {
            if let Some((name, joined)) = self.option(word) {
                if has(self.scripts, name) {
                    found.script = Some(at);
                    return found;
                }
                at += usize::from(joined.is_none());
                let value = joined.or_else(|| args.get(at).copied());
                if matches!(name, "-C" | "--chdir" | "--directory") {
                    found.folder = value;
                } else if has(self.packages, name) {
                    names_package = true;
                    found.package = joined.is_none().then_some(at);
                }
            } else if word.starts_with('-') {
                // A flag, or `--`.
            } else if needs_verb {
                if !has(self.verbs, word) {
                    return found;
                }
                needs_verb = false;
            } else if self.names == ENV && word.contains('=') {
                found.path = word.strip_prefix("PATH=").or(found.path);
            } else if operands > 0 {
                operands -= 1;
            } else if !has(self.verbs, word) {
                found.program = Some(at);
                break;
            }
            at += 1;
        }
        if !names_package {
            found.package = found.program;
        }
        found
    }

    /// A known option with a value, and the value if it is joined. Letters may be joined as well, as in `-iu NAME`.
    fn option<'t>(&self, word: &'t str) -> Option<(&'static str, Option<&'t str>)> {
        let lists = [self.scripts, self.valued, self.packages];
        let mut known = lists.iter().flat_map(|list| list.split(' '));
        if word.starts_with("--") {
            let (name, joined) = match word.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (word, None),
            };
            let option = known.find(|option| name.len() > 2 && option.starts_with(name))?;
            return Some((option, joined));
        }
        let letters = word.strip_prefix('-')?;
        letters.char_indices().find_map(|(at, letter)| {
            let is_it =
                |option: &&str| option.strip_prefix('-') == Some(letter.encode_utf8(&mut [0; 4]));
            let option = known.clone().find(is_it)?;
            let joined = &letters[at + letter.len_utf8()..];
            Some((option, Some(joined).filter(|joined| !joined.is_empty())))
        })
    }
}
