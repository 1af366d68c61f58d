//! The words that the policy knows.

/// What kind of program it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sort {
    /// Takes the rights of another user.
    Raiser,
    /// Destroys files.
    Destroyer,
    /// Moves files over the network.
    Fetcher,
    /// Leads to another machine.
    Pipe,
    Shell,
    /// Starts the program that its arguments name.
    Wrapper,
    /// Starts what is in an image, closed off from the machine as far as its options say.
    Container,
    /// Fetches a package and starts it; with the marks behind which a version stands.
    Runner(&'static [&'static str]),
    Other,
}

const SORTS: &[(Sort, &[&str])] = &[
    (
        Sort::Raiser,
        &[
            "sudo", "sudo-rs", "sudoedit", "doas", "opendoas", "su", "su-rs", "pkexec", "runas",
            "run0", "runuser", "gosu", "su-exec", "sg", "dzdo", "pfexec", "pbrun", "gksu",
            "gksudo", "kdesu", "kdesudo", "calife",
        ],
    ),
    (
        Sort::Destroyer,
        &[
            "rm", "rmdir", "unlink", "shred", "wipefs", "mke2fs", "dd", "mkfs", "del", "format",
            "shutdown", "reboot", "halt", "poweroff",
        ],
    ),
    (
        Sort::Fetcher,
        &[
            "curl", "wget", "wget2", "wcurl", "scp", "rcp", "ftp", "sftp", "lftp", "tftp", "ncftp",
            "rsync", "aria2c", "axel",
        ],
    ),
    (
        Sort::Pipe,
        &["nc", "ncat", "netcat", "socat", "ssh", "telnet"],
    ),
    (
        Sort::Shell,
        &[
            "sh",
            "bash",
            "dash",
            "ash",
            "zsh",
            "ksh",
            "mksh",
            "oksh",
            "lksh",
            "pdksh",
            "ksh93",
            "rbash",
            "yash",
            "posh",
            "elvish",
            "xonsh",
            "fish",
            "nu",
            "nushell",
            "murex",
            "osh",
            "ysh",
            "sash",
            "capsh",
            "csh",
            "tcsh",
            "cmd",
            "powershell",
            "pwsh",
        ],
    ),
    (Sort::Wrapper, WRAPPERS),
    (Sort::Container, &["docker", "podman", "nerdctl"]),
    (Sort::Runner(&["@"]), &["npx", "bunx", "pnpx"]),
    (Sort::Runner(&["==", "@"]), &["uvx", "pipx"]),
];

/// Programs that start the one that their arguments name: for the machine, for debugging, with secrets, or in the
/// surroundings of a language.
const WRAPPERS: &[&str] = &[
    "env",
    "nohup",
    "nice",
    "ionice",
    "timeout",
    "stdbuf",
    "time",
    "setsid",
    "xargs",
    "exec",
    "busybox",
    "toybox",
    "mcpact",
    "command",
    "unshare",
    "nsenter",
    "taskset",
    "setpriv",
    "chrt",
    "chroot",
    "prlimit",
    "strace",
    "ltrace",
    "tini",
    "dumb-init",
    "systemd-run",
    "script",
    "flock",
    "firejail",
    "setarch",
    "fakeroot",
    "faketime",
    "eatmydata",
    "rlwrap",
    "numactl",
    "direnv",
    "mise",
    "dotenvx",
    "doppler",
    "bwrap",
    "proxychains",
    "torsocks",
    "unbuffer",
    "uv",
    "poetry",
    "pipenv",
    "conda",
    "ld-linux",
    "watch",
    "dbus-run-session",
    "dbus-launch",
    "ssh-agent",
    "choom",
    "systemd-inhibit",
    "op",
    "infisical",
    "aws-vault",
    "chamber",
    "envchain",
    "envconsul",
    "summon",
    "vault",
    "dotenv",
    "cross-env",
    "env-cmd",
    "gdb",
    "gdbserver",
    "lldb",
    "valgrind",
    "heaptrack",
    "rr",
    "perf",
    "catchsegv",
    "proot",
    "cgexec",
    "catatonit",
    "chpst",
    "setuidgid",
    "envdir",
    "softlimit",
    "linux32",
    "linux64",
    "xvfb-run",
    "cpulimit",
    "trickle",
    "tsocks",
    "proxychains4",
    "caffeinate",
    "arch",
    "sandbox-exec",
    "winpty",
    "nix",
    "asdf",
    "pyenv",
    "rbenv",
    "nodenv",
    "bundle",
    "volta",
    "fnm",
    "pdm",
    "hatch",
    "rye",
    "pixi",
    "mamba",
    "micromamba",
    "entr",
    "watchexec",
    "mcp-proxy",
    "mcpo",
    "mcp-inspector",
    "screen",
    "dtach",
    "abduco",
    "zellij",
    "daemonize",
    "start-stop-daemon",
    "sshpass",
    "lxc-usernsexec",
    "rootlesskit",
    "s6-setuidgid",
    "runcon",
];

/// The name of a program: the last part of its path, without what only Windows wants to see.
pub(crate) fn name(program: &str) -> String {
    let last = program.rsplit(['/', '\\']).next().unwrap_or(program);
    let mut name = last.to_ascii_lowercase();
    let end = [".exe", ".cmd", ".bat"]
        .iter()
        .find(|end| name.ends_with(**end));
    name.truncate(name.len() - end.map_or(0, |end| end.len()));
    let script = SCRIPTS.iter().find(|(script, _)| *script == name);
    script.map_or(name, |(_, program)| (*program).to_owned())
}

/// Files that links of package managers lead to.
const SCRIPTS: &[(&str, &str)] = &[
    ("npx-cli.js", "npx"),
    ("npm-cli.js", "npm"),
    ("pnpm.cjs", "pnpm"),
    ("pnpx.cjs", "pnpx"),
    ("yarn.js", "yarn"),
    // What the package is called, and what its program is.
    ("inspector", "mcp-inspector"),
];

/// Whether something is known about a program of this name.
pub(super) fn is_known(program: &str) -> bool {
    let is_manager = matches!(&*name(program), "npm" | "pnpm" | "yarn" | "bun");
    is_manager || sort(program) != Sort::Other || super::options::is_known(program)
}

/// Whether a package stands behind this option.
pub(super) fn names_package(option: &str) -> bool {
    option.starts_with("--") && VALUED.contains(&option)
}

/// What kind of program it is.
pub(super) fn sort(program: &str) -> Sort {
    let name = &*name(program);
    // `mkfs.ext4` is one of many, and so is `ld-linux-x86-64.so.2`.
    let family = ["mkfs.", "ld-linux"]
        .iter()
        .find(|one| name.starts_with(**one));
    let name = family.map_or(name, |one| one.trim_end_matches('.'));
    let row = SORTS.iter().find(|(_, names)| names.contains(&name));
    row.map_or(Sort::Other, |(sort, _)| *sort)
}

/// Words that only a shell understands.
pub(super) const OPERATORS: &[&str] = &[
    "&&", "||", ";", "|", "&", ">", ">>", "<", "<<", "2>&1", "&>", "|&",
];

/// Marks that a shell would put something in the place of, or end a command at.
pub(super) const SUBSTITUTIONS: &[&str] = &["$(", "`", "&&", "||", "; ", " | "];

/// Where secrets are kept.
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

/// Whether an option makes a shell run the text that follows.
pub(super) fn takes_script(option: &str) -> bool {
    let lower = option.to_ascii_lowercase();
    let is_cluster = option.strip_prefix('-').is_some_and(|letters| {
        letters.len() <= 4
            && letters.contains('c')
            && letters.chars().all(|c| c.is_ascii_alphabetic())
    });
    is_cluster
        || matches!(
            lower.as_str(),
            "/c" | "/k" | "-command" | "--command" | "-encodedcommand" | "-enc"
        )
        || lower.starts_with("--command=")
}

/// Whether what follows the options is a package, with options of its own.
pub(super) fn starts_packages(program: &str) -> bool {
    matches!(sort(program), Sort::Runner(_)) || matches!(&*name(program), "npm" | "pnpm")
}

/// Whether a manager of packages starts one, or any program. What `npm run` names is a script of the package.
pub(super) fn runs_package<'a>(program: &str, args: impl IntoIterator<Item = &'a str>) -> bool {
    let mut args = args.into_iter().peekable();
    match &*name(program) {
        "npm" | "pnpm" => args.peek().is_some_and(|verb| *verb != "run"),
        "yarn" | "bun" => args
            .next()
            .is_some_and(|verb| verb != "run" && is_verb(verb)),
        _ => false,
    }
}

/// Options of runners that never take a value.
const FLAGS: &[&str] = &[
    "-y",
    "--yes",
    "-n",
    "--no",
    "--no-install",
    "-q",
    "--quiet",
    "-v",
    "--verbose",
    "--silent",
    "--offline",
    "--prefer-offline",
    "--isolated",
    "--no-cache",
    "--refresh",
    "--",
];

/// Options of runners that take the next word.
const VALUED: &[&str] = &[
    "-p",
    "--package",
    "--from",
    "--spec",
    "-w",
    "--with",
    "--workspace",
    "--python",
    "--registry",
    "--cache",
    "--prefix",
    "--index",
    "--index-url",
    "--default-index",
    "--extra-index-url",
];

/// Where the name of what a runner starts stands. Behind an option that is not known may stand its value, which
/// counts only if it is a program that is judged.
pub(super) fn run_by<'a>(args: impl IntoIterator<Item = &'a str>) -> Option<usize> {
    let mut before = "--";
    for (at, arg) in args.into_iter().enumerate() {
        let is_option = arg.starts_with('-');
        let may_be_value = before.starts_with('-') && !before.contains('=') && !is_flag(before);
        if !is_option {
            let is_value = VALUED.contains(&before);
            let is_unsure = may_be_value && sort(arg) == Sort::Other;
            if !is_value && !is_unsure && !is_verb(arg) {
                return Some(at);
            }
        }
        before = if is_option { arg } else { "--" };
    }
    None
}

/// Whether an option of a runner never takes a value, even if it is several letters in one.
fn is_flag(option: &str) -> bool {
    let letters = option.strip_prefix('-').unwrap_or_default();
    let is_cluster = !letters.is_empty() && letters.chars().all(|letter| "ynqv".contains(letter));
    is_cluster || FLAGS.contains(&option)
}

/// What a runner or a manager of packages calls running one.
pub(super) fn is_verb(word: &str) -> bool {
    matches!(word, "dlx" | "exec" | "x" | "run" | "tool")
}

/// Whether an option of this program makes it destroy what it finds.
pub(super) fn destroys(program: &str, option: &str) -> bool {
    &*name(program) == "find" && option == "-delete"
}

/// Whether a program ruins what it is given, whatever its other options are.
pub(super) fn ruins(program: &str, args: &[&str]) -> bool {
    match &*name(program) {
        "shred" | "wipefs" | "mke2fs" | "mkfs" => !args.is_empty(),
        "dd" => args.iter().any(|arg| {
            let target = arg.strip_prefix("of=/dev/");
            target.is_some_and(|target| target != "null")
        }),
        other => other.starts_with("mkfs.") && !args.is_empty(),
    }
}

/// Whether an option makes `rm` take everything without a question.
pub(super) fn is_force(option: &str) -> bool {
    matches!(option, "--recursive" | "--force" | "--no-preserve-root")
        || option.strip_prefix('-').is_some_and(|letters| {
            letters.chars().all(|c| "rRfiIv".contains(c)) && letters.contains(['r', 'R', 'f'])
        })
}
