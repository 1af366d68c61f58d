//! Files and directories that a sandboxed child can use.

use std::ffi::{OsStr, OsString};
use std::fs::{self, DirBuilder, File};
use std::io::{self, Read as _, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use super::Sandbox;

/// Readable system paths. Of processes outside the sandbox, `/proc` shows only what every user can see: Landlock denies
/// their environment, memory and open files.
const SYSTEM: &[&str] = &[
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/etc",
    "/opt",
    "/nix/store",
    "/gnu/store",
    "/home/linuxbrew/.linuxbrew",
    "/proc",
    "/sys/devices/system",
    "/sys/fs/cgroup",
    "/sys/kernel/mm/transparent_hugepage",
    "/dev/random",
    "/dev/urandom",
    "/run/current-system",
    // Targets of links in /etc.
    "/run/systemd/resolve",
    "/run/resolvconf",
    "/run/NetworkManager/resolv.conf",
    "/var/lib/ca-certificates",
];

/// Writable devices. Terminals are missing: a process can type into one.
const DEVICES: &[&str] = &["/dev/null", "/dev/zero", "/dev/full"];

/// Readable directories of the home directory: runtimes and installed programs.
const RUNTIMES: &[&str] = &[
    ".nvm",
    ".volta",
    ".fnm",
    ".local/share/fnm",
    ".local/share/mise",
    ".asdf",
    ".pyenv",
    ".rbenv",
    ".local/share/uv",
    ".local/share/pipx",
    ".local/pipx",
    ".local/share/pnpm",
    ".cache/node",
    ".local/bin",
    ".local/lib",
    ".npm-global",
    ".bun",
    ".deno",
    ".cargo/bin",
    "go/bin",
    ".nix-profile",
    "miniconda3",
    "miniforge3",
    "anaconda3",
];

/// Package runners, and the directories of the home directory that they write: caches only. Runtimes and installed
/// programs, which the user runs outside the sandbox, stay read-only.
const RUNNERS: &[(&[&str], &[&str])] = &[
    (
        &["npx", "npm", "pnpm", "pnpx", "yarn"],
        &[
            ".npm",
            ".local/share/pnpm/store",
            ".cache/pnpm",
            ".cache/yarn",
        ],
    ),
    (&["uvx", "uv"], &[".cache/uv"]),
    (&["pipx"], &[".cache/pipx", ".cache/pip"]),
    (&["bunx", "bun"], &[".bun/install/cache"]),
    (&["deno"], &[".cache/deno"]),
];

/// Directory of the tools that the user installed with `uv`.
const UV_TOOLS: &str = ".local/share/uv/tools";

/// Directories of the home directory with files of many programs. None of them, and no directory around them, becomes
/// readable because a program or script is in it.
const SHARED: &[&str] = &[
    ".aws",
    ".cache",
    ".config",
    ".docker",
    ".gnupg",
    ".kube",
    ".local/share",
    ".local/state",
    ".ssh",
];

/// Variables with such directories.
const SHARED_VARIABLES: &[&str] = &[
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_RUNTIME_DIR",
    "XDG_STATE_HOME",
];

/// Maximum size of `/etc/passwd`.
const MAX_PASSWD: u64 = 16 << 20;

/// Programs whose first file argument is a script.
const INTERPRETERS: &[&str] = &[
    "python", "pypy", "node", "deno", "bun", "ruby", "perl", "php", "sh", "bash", "dash",
];

/// Options after which an interpreter takes no script.
const CODE_OPTIONS: &[&str] = &["-c", "-e", "-m", "-p", "--eval", "--print"];

/// Entries of the root of a package or virtual environment.
const PACKAGE_FILES: &[&str] = &["package.json", "pyproject.toml", "pyvenv.cfg"];

/// Readable and writable paths.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Paths {
    /// Readable files and directories; they can be executed as well.
    pub(super) read: Vec<PathBuf>,
    /// Writable files and directories.
    pub(super) write: Vec<PathBuf>,
}

/// Command of a child and what its meaning depends on.
pub(super) struct Launch<'a> {
    /// Path of the program, or a name to look up.
    pub(super) program: &'a OsStr,
    /// Arguments.
    pub(super) args: &'a [OsString],
    /// Value of `PATH`.
    pub(super) path: OsString,
    /// Home directory.
    pub(super) home: Option<PathBuf>,
    /// Directories that are readable only if the config allows it, and so are those around them.
    pub(super) shared: Vec<PathBuf>,
    /// Working directory.
    pub(super) cwd: PathBuf,
}

impl Paths {
    /// Returns the paths for a child. Creates the cache of its package runner.
    pub(super) fn of(sandbox: &Sandbox, launch: &Launch<'_>, temporary: &Path) -> Self {
        let mut read: Vec<PathBuf> = SYSTEM.iter().map(PathBuf::from).collect();
        let mut write: Vec<PathBuf> = DEVICES.iter().map(PathBuf::from).collect();
        write.push(temporary.to_owned());
        if let Some(home) = &launch.home {
            let runtimes = RUNTIMES.iter().map(|path| home.join(path));
            read.extend(runtimes.filter(|path| is_own_folder(path)));
            write.extend(launch.caches(home));
        }
        for file in launch.program_file().into_iter().chain(launch.script()) {
            let real = file.canonicalize().ok();
            let files = [Some(file), real].into_iter().flatten();
            read.extend(files.map(|file| launch.root_of(file)));
        }
        let folder = sandbox.folder.iter();
        read.extend(folder.filter(|folder| !launch.is_too_wide(folder)).cloned());
        read.extend(sandbox.read.iter().cloned());
        write.extend(sandbox.write.iter().cloned());
        Self { read, write }
    }
}

impl Launch<'_> {
    /// Returns the caches of the package runner.
    fn caches(&self, home: &Path) -> Vec<PathBuf> {
        let name = Path::new(self.program).file_name();
        let name = name.and_then(OsStr::to_str).unwrap_or_default();
        let Some((_, caches)) = RUNNERS.iter().find(|(names, _)| names.contains(&name)) else {
            return Vec::new();
        };
        let mut caches: Vec<PathBuf> = caches.iter().map(|path| home.join(path)).collect();
        if let Some(first) = caches.first() {
            // If this fails, the runner reports it.
            let _ = create_folder(first);
        }
        caches.retain(|path| is_own_folder(path));
        if matches!(name, "uvx" | "uv") {
            caches.extend(create_lock(home));
        }
        caches
    }

    fn program_file(&self) -> Option<PathBuf> {
        let program = Path::new(self.program);
        if program.components().count() > 1 || program.has_root() {
            return Some(self.cwd.join(program));
        }
        let folders = std::env::split_paths(&self.path);
        let mut candidates = folders.map(|folder| self.cwd.join(folder).join(program));
        candidates.find(|path| path.is_file())
    }

    /// Returns the script of an interpreter.
    fn script(&self) -> Option<PathBuf> {
        let name = Path::new(self.program).file_name()?.to_str()?;
        let name = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
        if !INTERPRETERS.contains(&name) {
            return None;
        }
        let is_code = |arg: &&OsString| CODE_OPTIONS.iter().any(|option| **arg == *option);
        let mut files = self.args.iter().take_while(|arg| !is_code(arg));
        files.find_map(|arg| {
            let path = self.cwd.join(arg);
            path.is_file().then_some(path)
        })
    }

    /// Returns the package of a file, or its directory, or the file itself where those are too wide.
    fn root_of(&self, file: PathBuf) -> PathBuf {
        let modules = file
            .ancestors()
            .filter(|path| path.ends_with("node_modules") && !self.is_too_wide(path));
        if let Some(modules) = modules.last() {
            return modules.to_owned();
        }
        let folders = file.ancestors().skip(1);
        let folders = folders.take_while(|folder| !self.is_too_wide(folder));
        let folders: Vec<&Path> = folders.collect();
        let package = folders.iter().find(|folder| {
            let is_prefix = file.starts_with(folder.join("bin")) && folder.join("lib").is_dir();
            is_prefix || PACKAGE_FILES.iter().any(|name| folder.join(name).is_file())
        });
        let root = package
            .or(folders.first())
            .map(|folder| PathBuf::from(*folder));
        root.unwrap_or(file)
    }

    /// Returns whether a directory contains files of many programs: it is, or contains, a home directory, one of its
    /// shared directories, or that of temporary files.
    fn is_too_wide(&self, folder: &Path) -> bool {
        let is_wide = |folder: &Path| {
            let is_home = folder
                .parent()
                .is_none_or(|parent| parent == Path::new("/home"));
            is_home || self.shared.iter().any(|path| path.starts_with(folder))
        };
        // Links and `..` lead to the same directory.
        is_wide(folder) || folder.canonicalize().is_ok_and(|real| is_wide(&real))
    }
}

/// Returns the directories that a program or script in them does not make readable. `HOME` may be missing or set by the
/// config, so that the home directory in `/etc/passwd` counts as well.
pub(super) fn shared_folders(home: Option<&Path>) -> Vec<PathBuf> {
    let homes = home.map(Path::to_owned).into_iter().chain(passwd_home());
    let mut all: Vec<PathBuf> = homes
        .flat_map(|home| {
            let inner: Vec<PathBuf> = SHARED.iter().map(|path| home.join(path)).collect();
            std::iter::once(home).chain(inner)
        })
        .collect();
    let variables = SHARED_VARIABLES.iter().filter_map(std::env::var_os);
    all.extend(variables.map(PathBuf::from));
    all.push(std::env::temp_dir());
    all.retain(|path| path.is_absolute());
    let real: Vec<PathBuf> = all
        .iter()
        .filter_map(|path| path.canonicalize().ok())
        .collect();
    all.extend(real);
    all
}

/// Returns the home directory of this user in `/etc/passwd`.
fn passwd_home() -> Option<PathBuf> {
    let mut text = Vec::new();
    let file = File::open("/etc/passwd").ok()?;
    file.take(MAX_PASSWD).read_to_end(&mut text).ok()?;
    let user = rustix::process::geteuid().as_raw().to_string();
    let mut lines = text.split(|byte| *byte == b'\n');
    lines.find_map(|line| {
        let mut fields = line.split(|byte| *byte == b':').skip(2);
        let is_user = fields.next() == Some(user.as_bytes());
        let home = fields.nth(2).filter(|_| is_user)?;
        Some(PathBuf::from(OsStr::from_bytes(home)))
    })
}

fn create_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Returns the file that `uvx` locks in [`UV_TOOLS`]. Creates what `uvx` otherwise creates there.
fn create_lock(home: &Path) -> io::Result<PathBuf> {
    let tools = home.join(UV_TOOLS);
    create_folder(&tools)?;
    match File::create_new(tools.join(".gitignore")) {
        Ok(mut file) => file.write_all(b"*")?,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(error),
    }
    let path = tools.join(".lock");
    match File::create_new(&path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(path),
    }
}

/// Returns whether a path is a directory of this user.
fn is_own_folder(path: &Path) -> bool {
    let user = rustix::process::geteuid().as_raw();
    fs::metadata(path).is_ok_and(|found| found.is_dir() && found.uid() == user)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use tempfile::TempDir;

    use super::*;

    /// A home directory with these files in a directory of its own.
    fn home(files: &[&str]) -> (TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().join("home");
        for file in files {
            let path = home.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        (folder, home)
    }

    fn paths(home: &Path, sandbox: &Sandbox, words: &[&str]) -> Paths {
        let args: Vec<OsString> = words[1..].iter().map(OsString::from).collect();
        let launch = Launch {
            program: OsStr::new(words[0]),
            args: &args,
            path: home.join(".local/bin").into_os_string(),
            shared: shared_folders(Some(home)),
            home: Some(home.to_owned()),
            cwd: home.join("work"),
        };
        let mut paths = Paths::of(sandbox, &launch, Path::new("/temporary"));
        paths.read.retain(|path| path.starts_with(home));
        paths.write.retain(|path| path.starts_with(home));
        paths
    }

    #[test]
    fn server_can_read_its_own_package() {
        let (_folder, home) = home(&[
            "alone.py",
            ".config/alone.py",
            ".config/own/server.py",
            ".local/lib/python3/module.py",
            ".local/bin/installed",
            ".local/share/keyrings/login",
            "bin/tool",
            "lib/x",
            "work/server.py",
            "work/private.txt",
            "project/package.json",
            "project/dist/index.js",
            "venv/pyvenv.cfg",
            "venv/bin/server",
            "modules/node_modules/a/node_modules/b/x.js",
        ]);
        symlink(&home, home.join("work/home")).unwrap();
        symlink(home.join("venv/bin/server"), home.join(".local/bin/linked")).unwrap();
        let full = |name: &str| home.join(name).display().to_string();
        let (alone, tool) = (full("alone.py"), full("bin/tool"));
        let modules = full("modules/node_modules/a/node_modules/b/x.js");
        let (server, index) = (full("venv/bin/server"), full("project/dist/index.js"));
        let private = full("work/private.txt");
        for (words, expected) in [
            (vec!["python3", "server.py"], vec!["work"]),
            (vec!["python3.11", "-u", "server.py"], vec!["work"]),
            (vec!["python3", "-m", "server.py"], vec![]),
            (vec!["server", private.as_str()], vec![]),
            (vec!["python3", alone.as_str()], vec!["alone.py"]),
            (vec![tool.as_str()], vec!["bin"]),
            (vec![server.as_str()], vec!["venv"]),
            (vec!["linked"], vec![".local/bin", "venv"]),
            (vec!["installed"], vec![".local/bin"]),
            (
                vec!["python3", "../.config/alone.py"],
                vec!["work/../.config/alone.py", ".config/alone.py"],
            ),
            (
                vec!["python3", "../.config/own/server.py"],
                vec!["work/../.config/own", ".config/own"],
            ),
            (
                vec!["python3", "../alone.py"],
                vec!["work/../alone.py", "alone.py"],
            ),
            (
                vec!["python3", "home/alone.py"],
                vec!["work/home/alone.py", "alone.py"],
            ),
            (vec!["node", index.as_str()], vec!["project"]),
            (vec!["node", modules.as_str()], vec!["modules/node_modules"]),
        ] {
            let mut read = paths(&home, &Sandbox::default(), &words).read;
            // Two of the runtimes.
            read.drain(..2);
            read.dedup();
            let expected: Vec<PathBuf> = expected.iter().map(|path| home.join(path)).collect();
            assert_eq!(read, expected, "{words:?}");
        }
    }

    #[test]
    fn working_directory_is_readable_unless_it_contains_files_of_many_programs() {
        let (_folder, home) = home(&["work/x", ".local/state/x", ".config/x"]);
        for (folder, is_readable) in [
            (home.join("work"), true),
            (home.clone(), false),
            (home.join("work/.."), false),
            (home.join(".local"), false),
            (home.join(".local/state"), false),
            (home.join(".config"), false),
        ] {
            let sandbox = Sandbox {
                folder: Some(folder.clone()),
                ..Sandbox::default()
            };
            let read = paths(&home, &sandbox, &["server"]).read;
            assert_eq!(read.contains(&folder), is_readable, "{folder:?}");
        }
    }

    /// `HOME` of a server may be missing or set by its config.
    #[test]
    fn home_directory_of_the_user_is_never_readable_as_a_whole() {
        let user = passwd_home().unwrap();
        for home in [None, Some(Path::new("/srv/x"))] {
            let launch = Launch {
                program: OsStr::new("python3"),
                args: &[],
                path: OsString::new(),
                home: home.map(Path::to_owned),
                shared: shared_folders(home),
                cwd: PathBuf::from("/"),
            };
            for folder in [&user, &user.join(".local"), Path::new("/home/ada")] {
                let script = folder.join("server.py");
                assert_eq!(launch.root_of(script.clone()), script, "{home:?}");
            }
        }
    }

    #[test]
    fn only_a_package_runner_can_write_and_only_its_cache() {
        let (_folder, home) = home(&[
            ".npm/x",
            ".cache/node/corepack/x",
            ".local/share/pnpm/pnpm",
            ".local/share/pnpm/store/x",
            ".local/share/uv/tools/x",
            ".cache/uv/x",
            ".local/share/pipx/venvs/x",
            ".bun/bin/bun",
        ]);
        for (program, expected) in [
            ("npx", vec![".npm", ".local/share/pnpm/store"]),
            ("uvx", vec![".cache/uv", ".local/share/uv/tools/.lock"]),
            ("pipx", vec![".cache/pipx"]),
            ("bunx", vec![".bun/install/cache"]),
            ("/usr/bin/node", vec![]),
        ] {
            let write = paths(&home, &Sandbox::default(), &[program]).write;
            let expected: Vec<PathBuf> = expected.iter().map(|path| home.join(path)).collect();
            assert_eq!(write, expected, "{program}");
        }
    }
}
