//! Names that the command policy knows, and the option syntax of launchers.

/// Kind of a program that is refused or warned of by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
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
pub(crate) enum Behind {
    /// The first operand is a program.
    Program,
    /// The first operand is a package, or a program with packages beside it.
    Package,
    /// The first operand is a program if the child finds it, otherwise a script or a package.
    Perhaps,
}

/// A program that starts another one. Lists are separated by spaces.
pub(crate) struct Launcher {
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
    pub(crate) behind: Behind,
    /// Subcommands whose first operand is a package of a registry, if not all are.
    package_verbs: &'static str,
    /// Options that make the first operand a Python module.
    module: &'static str,
    /// Files of a project that decide what runs if the arguments name no program.
    pub(crate) manifests: &'static [&'static str],
    /// Mark between the name of a package and its version; none if packages are not pinned in the arguments.
    pub(crate) pin: Option<Pin>,
}

/// Syntax of the version of a package.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pin {
    /// `package@1.2.3`.
    Npm,
    /// `package==1.2.3`.
    Python,
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
        package_verbs: "",
        module: "",
        manifests: &[],
        pin: None,
    }
}

const fn runner(
    names: &'static str,
    verbs: &'static str,
    valued: &'static str,
    packages: &'static str,
    pin: Option<Pin>,
) -> Launcher {
    Launcher {
        verbs,
        packages,
        behind: Behind::Package,
        pin,
        ..wrapper(names, 0, valued)
    }
}

const ENV: &str = "env";

const NPM: &str =
    "-w --workspace --registry --cache --prefix --userconfig --loglevel -C --dir --cwd --filter -F";

const MANIFEST: &[&str] = &["package.json"];

const NPM_PACKAGE: &str = "-p --package";

const UV: &str = "--with -w --with-editable --with-requirements -p --python --index --default-index \
                  --index-url -i --extra-index-url --project --directory --env-file --extra --group \
                  --config-file --cache-dir --package --only-group --no-group --no-extra --find-links -f \
                  --exclude-newer --resolution --prerelease --index-strategy --link-mode --color";

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
        ..runner("npx pnpx", "", NPM, NPM_PACKAGE, Some(Pin::Npm))
    },
    Launcher {
        scripts: "-c --call --shell-mode",
        package_verbs: "exec x",
        manifests: MANIFEST,
        ..runner("npm", "exec x", NPM, NPM_PACKAGE, Some(Pin::Npm))
    },
    Launcher {
        scripts: "-c --call --shell-mode",
        package_verbs: "dlx",
        manifests: MANIFEST,
        ..runner("pnpm", "exec x dlx", NPM, NPM_PACKAGE, Some(Pin::Npm))
    },
    runner("bunx", "", NPM, NPM_PACKAGE, Some(Pin::Npm)),
    Launcher {
        package_verbs: "dlx",
        manifests: MANIFEST,
        ..runner("yarn", "exec x dlx", NPM, NPM_PACKAGE, Some(Pin::Npm))
    },
    Launcher {
        package_verbs: "x",
        ..runner("bun", "exec x", NPM, NPM_PACKAGE, Some(Pin::Npm))
    },
    runner("uvx", "", UV, "--from", Some(Pin::Python)),
    Launcher {
        package_verbs: "run",
        ..runner(
            "pipx",
            "run",
            "--python --index-url -i --pip-args",
            "--spec",
            Some(Pin::Python),
        )
    },
    Launcher {
        behind: Behind::Perhaps,
        package_verbs: "tool",
        module: "-m --module",
        ..runner("uv", "run tool", UV, "--from", Some(Pin::Python))
    },
    Launcher {
        behind: Behind::Perhaps,
        ..runner(
            "poetry pipenv pdm hatch rye pixi",
            "run",
            "-C --directory -P --project -m --manifest-path -e --environment",
            "",
            None,
        )
    },
    Launcher {
        behind: Behind::Perhaps,
        ..runner(
            "conda mamba micromamba",
            "run",
            "-n --name -p --prefix --cwd",
            "",
            None,
        )
    },
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
pub(crate) fn program_name(program: &str) -> String {
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
pub(crate) fn package_name(word: &str) -> &str {
    let last = word.rsplit('/').next().unwrap_or(word);
    let end = last.find(['@', '=', '[', '<', '>', '~', '!']);
    &last[..end.unwrap_or(last.len())]
}

/// Package without an exact version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MissingPin {
    /// Length of the package without its tag or range; none if a version cannot follow it.
    pub(crate) name: Option<usize>,
    pub(crate) pin: Pin,
}

impl Pin {
    /// Mark before a version.
    pub(crate) const fn mark(self) -> &'static str {
        match self {
            Self::Npm => "@",
            Self::Python => "==",
        }
    }

    /// Returns the version that a package lacks; none if it has an exact one, names a full commit, or is a local path.
    pub(crate) fn missing(self, package: &str) -> Option<MissingPin> {
        let is_commit = |part: &str| {
            matches!(part.len(), 40 | 64) && part.bytes().all(|byte| byte.is_ascii_hexdigit())
        };
        let is_scoped = self == Self::Npm && package.starts_with('@');
        let is_remote = package.contains(':') || package.contains('/') && !is_scoped;
        if is_local(package) || is_remote && package.split(['@', '#']).any(is_commit) {
            return None;
        }
        let missing = |name| Some(MissingPin { name, pin: self });
        if is_remote {
            return missing(None);
        }
        let from = usize::from(is_scoped);
        let end = package[from..].find(['@', '=', '<', '>', '~', '!', ';', ',', ' ']);
        let end = end.map_or(package.len(), |end| end + from);
        let rest = &package[end..];
        match self {
            Self::Npm if rest.strip_prefix('@').is_some_and(is_exact_npm) => None,
            Self::Npm => missing(Some(end)),
            Self::Python if rest.is_empty() || rest == "@latest" => missing(Some(end)),
            Self::Python => {
                let version = rest.strip_prefix("==").or_else(|| rest.strip_prefix('@'));
                match version.is_some_and(is_exact_python) {
                    true => None,
                    false => missing(None),
                }
            }
        }
    }
}

/// Returns true for `1.2.3` and `1.2.3-next.1`. Everything else is a range or tag.
fn is_exact_npm(version: &str) -> bool {
    let core = version.split(['-', '+']).next().unwrap_or_default();
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    core.split('.').count() == 3 && core.split('.').all(is_number)
}

/// Returns true for a version without wildcard and further conditions.
fn is_exact_python(version: &str) -> bool {
    let version = version.strip_prefix('=').unwrap_or(version);
    let is_part = |c: char| c.is_ascii_alphanumeric() || ".+-!_".contains(c);
    version.starts_with(|c: char| c.is_ascii_digit()) && version.chars().all(is_part)
}

/// Returns whether a package is a path of this machine.
pub(crate) fn is_local(package: &str) -> bool {
    package.starts_with(['.', '/', '~']) || package.starts_with("file:")
}

pub(crate) fn kind(program: &str) -> Option<Kind> {
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

pub(crate) fn launcher(program: &str) -> Option<&'static Launcher> {
    let name = program_name(program);
    LAUNCHERS.iter().find(|launcher| has(launcher.names, &name))
}

/// The launcher that a link leads to. A link to `busybox` is the applet that the link is named after.
pub(crate) fn linked_launcher(real: &str) -> Option<&'static Launcher> {
    let is_multi_call = matches!(&*program_name(real), "busybox" | "toybox");
    launcher(real).filter(|_| !is_multi_call)
}

/// Returns whether a program runs the script that is its first operand.
pub(crate) fn runs_scripts(program: &str) -> bool {
    let is_shell = kind(program) == Some(Kind::Shell);
    is_shell
        || super::interpreters::inline_options(program).is_some()
        || program_name(program) == "uv"
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
pub(crate) struct Found<'t> {
    /// The option that takes a shell script.
    pub(crate) script: Option<usize>,
    /// `PATH` of the program.
    pub(crate) path: Option<&'t str>,
    /// Working directory of the program.
    pub(crate) folder: Option<&'t str>,
    /// The package of a registry: the value of an option, or the first operand.
    pub(crate) package: Option<Package<'t>>,
    pub(crate) program: Option<usize>,
    /// The program is a Python module.
    pub(crate) is_module: bool,
}

/// A package in the arguments of a launcher.
#[derive(Clone, Copy)]
pub(crate) struct Package<'t> {
    /// Position of its argument.
    pub(crate) at: usize,
    /// Package, without the option that it may be joined to.
    pub(crate) value: &'t str,
}

impl Launcher {
    /// Reads the arguments up to the program.
    pub(crate) fn read<'t>(&self, args: &[&'t str]) -> Found<'t> {
        let mut found = Found::default();
        let (mut needs_verb, mut operands) = (!self.verbs.is_empty(), self.operands);
        let (mut names_package, mut is_package) = (false, self.verbs.is_empty());
        let mut at = 0;
        while let Some(word) = args.get(at) {
            if let Some((name, joined)) = self.option(word) {
                if has(self.scripts, name) {
                    found.script = Some(at);
                    return found;
                }
                at += usize::from(joined.is_none());
                let value = joined.or_else(|| args.get(at).copied());
                let is_folder = has("-C --chdir --directory --cwd --dir", name);
                if is_folder || name == "--prefix" && !self.manifests.is_empty() {
                    found.folder = value;
                } else if has(self.packages, name) {
                    names_package = true;
                    found.package = value.map(|value| Package { at, value });
                }
            } else if word.starts_with('-') {
                // A flag, or `--`.
                found.is_module |= has(self.module, word);
            } else if needs_verb {
                if !has(self.verbs, word) {
                    return found;
                }
                needs_verb = false;
                is_package = has(self.package_verbs, word);
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
        if !names_package && is_package {
            let program = found.program;
            found.package = program.map(|at| Package {
                at,
                value: args[at],
            });
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
