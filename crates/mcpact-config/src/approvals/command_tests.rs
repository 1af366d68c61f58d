//! Changes of a command, and whether they need a new approval. Files are real, in a folder of their own.

use std::collections::BTreeMap;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use mcpact_transport::stdio::child::LaunchProblem;
use tempfile::TempDir;

use super::*;
use crate::{Catalog, HostEnvironment, LocalHost, ProgramFacts, ProgramLookup, Source, read};

/// A folder with a program, scripts and variables.
pub(super) struct Stage {
    folder: TempDir,
    variables: BTreeMap<String, String>,
}

/// The local host with the variables of a stage.
struct StageHost<'a>(LocalHost, &'a BTreeMap<String, String>);

impl HostEnvironment for StageHost<'_> {
    fn variable(&self, name: &str) -> Option<String> {
        self.1.get(name).cloned()
    }

    fn folder(&self) -> String {
        self.0.folder()
    }

    fn file(&self, path: &str) -> Result<String, String> {
        self.0.file(path)
    }

    fn has_folder(&self, path: &str) -> bool {
        self.0.has_folder(path)
    }

    fn exists(&self, path: &str) -> bool {
        self.0.exists(path)
    }

    fn writable_by_all(&self, path: &str) -> Option<String> {
        self.0.writable_by_all(path)
    }

    fn program(&self, lookup: &ProgramLookup<'_>) -> ProgramFacts {
        self.0.program(lookup)
    }
}

impl Stage {
    pub(super) fn new() -> Self {
        let stage = Self {
            folder: tempfile::tempdir().unwrap(),
            variables: [
                ("TOKEN", "hunter2"),
                ("OPTIONS", "--require=/a.js"),
                ("HOME", "/home/ada"),
            ]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into(),
        };
        for program in [
            "server", "python3", "node", "deno", "bun", "tsx", "ruby", "perl", "sh", "env", "npx",
            "uvx", "uv", "fastmcp", "npm", "yarn", "pnpm", "go", "docker", "pipx",
        ] {
            stage.program(program, "one");
        }
        for script in [
            "server.py",
            "server.js",
            "hook.js",
            "server.ts",
            "server.rb",
            "server.pl",
            "server.sh",
            "other/server.py",
            "pkg/__init__.py",
            "pkg/__main__.py",
            "pkg/run.py",
            "lib/mod.py",
            "app/dist/main.js",
            "main.go",
            "package.json",
            "deno.json",
        ] {
            stage.write(script, "one");
        }
        stage.write("app/package.json", r#"{"main": "dist/main"}"#);
        stage.write("key", "k1");
        stage.write("vars", "SECRET=s1\nPYTHONSTARTUP=a.py\n");
        stage.link("linked.py", "server.py");
        stage
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn program(&self, name: &str, text: &str) {
        let name = format!("bin/{name}");
        self.write(&name, text);
        fs::set_permissions(self.path(&name), fs::Permissions::from_mode(0o700)).unwrap();
    }

    pub(super) fn link(&self, name: &str, target: &str) {
        let _ = fs::remove_file(self.path(name));
        symlink(target, self.path(name)).unwrap();
    }

    fn variable(&mut self, name: &str, value: &str) {
        self.variables.insert(name.to_owned(), value.to_owned());
    }

    fn approvals(&self) -> Approvals {
        Approvals::in_file(self.path("state/approvals"))
    }

    fn catalog(&self, config: &str) -> Catalog {
        let text = config.replace("BIN", &self.path("bin").to_string_lossy());
        let text = text.replace("HERE", &self.path("").to_string_lossy());
        let host = StageHost(LocalHost::at(self.path("")), &self.variables);
        let outcome = read(&Source::new("mcpact.toml", text), &host);
        outcome
            .catalog
            .unwrap_or_else(|| panic!("{:?}", outcome.problems))
    }

    pub(super) fn launch(&self, config: &str) -> CommandLaunch {
        match self
            .catalog(config)
            .servers
            .into_values()
            .next()
            .unwrap()
            .launch
        {
            Launch::Command(command) => command,
            other => panic!("{other:?}"),
        }
    }

    pub(super) fn subject(&self, config: &str) -> ApprovalSubject {
        let launch = Launch::Command(self.launch(config));
        ApprovalSubject::of(&launch, &self.approvals())
            .unwrap()
            .unwrap()
    }
}

/// A server of these keys, in the folder of the stage.
pub(super) fn server(command: &str, args: &[&str], keys: &str) -> String {
    format!("[servers.a]\ncommand = \"BIN/{command}\"\nargs = {args:?}\ncwd = \"HERE\"\n{keys}\n")
}

/// The same server in a folder below.
fn replaced_folder(config: &str) -> String {
    config.replace("cwd = \"HERE\"", "cwd = \"HERE/other\"")
}

/// Expected effect of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Effect {
    Asks,
    AsksNothing,
}
use Effect::{Asks, AsksNothing};

/// A change: its name, the config before, the change of the stage, the config after, and its effect.
struct Change<'a>(&'static str, &'a str, fn(&mut Stage), &'a str, Effect);

#[test]
fn every_change_asks_or_does_not() {
    const ENV: &str = "env = { KEY = \"one\", REF = \"${TOKEN}\", FILE = \"${file:key}\", MIX = \"a-${TOKEN}\", \
                       NODE_OPTIONS = \"${OPTIONS}\" }";
    let plain = &*server("server", &["a", "b c"], "");
    let env = &*server("server", &[], ENV);
    let inherit = &*server("server", &[], "inherit = [\"TOKEN\", \"NODE_OPTIONS\"]");
    let env_file = &*server("server", &[], "env_file = \"vars\"");
    let by_reference = &*server("server", &["--token", "${TOKEN}", "${file:key}"], "");
    let python = &*server("python3", &["-u", "server.py", "x"], "");
    let linked = &*server("python3", &["linked.py"], "");
    let module = &*server("python3", &["-m", "pkg"], "");
    let module_elsewhere = &*server("python3", &["-m", "mod"], "env = { PYTHONPATH = \"lib\" }");
    let node = &*server("node", &["--import", "./hook.js", "server.js", "key"], "");
    let node_folder = &*server("node", &["app"], "");
    let deno = &*server("deno", &["run", "--allow-net", "server.ts"], "");
    let bun = &*server("bun", &["run", "server.ts"], "");
    let tsx = &*server("tsx", &["server.ts"], "");
    let npx_tsx = &*server("npx", &["-y", "tsx@4.0.0", "server.ts"], "");
    let ruby = &*server("ruby", &["-rjson", "server.rb"], "");
    let perl = &*server("perl", &["-w", "server.pl"], "");
    let shell = &*server("sh", &["-e", "server.sh"], "");
    let behind = &*server("env", &["A=1", "BIN/python3", "server.py"], "");
    let behind_folder = &*server("env", &["-C", "other", "BIN/python3", "server.py"], "");
    let assigned = &*server("env", &["KEY=${TOKEN}", "BIN/server"], "");
    let uv = &*server("uv", &["run", "server.py"], "");
    let uv_mcp = &*server(
        "uv",
        &["run", "--with", "mcp[cli]", "mcp", "run", "server.py"],
        "",
    );
    let uv_module = &*server("uv", &["run", "-m", "pkg"], "");
    let uv_package = &*server("uv", &["run", "--package", "a", "server.py"], "");
    let fastmcp = &*server("fastmcp", &["run", "server.py:app", "--port", "1"], "");
    let uvx_fastmcp = &*server("uvx", &["fastmcp@2.0.0", "run", "server.py"], "");
    let npm_start = &*server("npm", &["start"], "");
    let npm_run = &*server("npm", &["--prefix", "app", "run", "serve"], "");
    let npm_above = &*replaced_folder(npm_start);
    let yarn = &*server("yarn", &["serve"], "");
    let bun_run = &*server("bun", &["run", "serve"], "");
    let deno_task = &*server("deno", &["task", "serve"], "");
    let go_file = &*server("go", &["run", "-race", "main.go"], "");
    let go_folder = &*server("go", &["run", "-C", ".", "."], "");
    let npx = &*server("npx", &["-y", "tickets@1.2.3", "${TOKEN}"], "");
    let package = &*server("npx", &["-y", "${file:key}"], "");
    let replaced = |config: &str, from: &str, to: &str| {
        assert!(config.contains(from), "{config}");
        config.replace(from, to)
    };
    let other_arg = &*replaced(plain, "b c", "b d");
    let split_arg = &*replaced(plain, "b c", "b\", \"c");
    let fewer_args = &*server("server", &["a"], "");
    let other_path = &*replaced(plain, "BIN/server", "BIN/copy");
    let other_folder = &*replaced(plain, "cwd = \"HERE\"", "cwd = \"HERE/other\"");
    let renamed = &*replaced(plain, "servers.a", "servers.b");
    let other_value = &*replaced(env, "\"one\"", "\"two\"");
    let other_name = &*replaced(env, "KEY", "KEY2");
    let other_reference = &*replaced(env, "REF = \"${TOKEN}\"", "REF = \"${HOME}\"");
    let literal_part = &*replaced(env, "a-${TOKEN}", "b-${TOKEN}");
    let written_out = &*replaced(env, "REF = \"${TOKEN}\"", "REF = \"hunter2\"");
    let other_order = &*replaced(
        env,
        "KEY = \"one\", REF = \"${TOKEN}\"",
        "REF = \"${TOKEN}\", KEY = \"one\"",
    );
    let git = &*server("server", &[], "inherit = [\"GIT_CONFIG_VALUE_0\"]");
    let fewer_inherited = &*replaced(inherit, "\"TOKEN\", ", "");
    let other_pin = &*replaced(npx, "1.2.3", "1.2.4");
    let shared = &*format!("{plain}answers = {{ sampling = \"${{TOKEN}}\" }}\n");
    let sandboxed = &*server("server", &[], "sandbox = \"strict\"\nallow_ports = [443]");
    let weaker = &*replaced(sandboxed, "strict\"\nallow_ports = [443]", "standard\"");
    let unconfined = &*server("server", &[], "");
    let other_port = &*replaced(sandboxed, "443", "22");
    let readable = &*format!("{sandboxed}allow_read = [\"HERE/other\"]\n");
    let nothing = |_: &mut Stage| {};
    let changes = [
        Change("sandbox weaker", sandboxed, nothing, weaker, Asks),
        Change("sandbox removed", sandboxed, nothing, unconfined, Asks),
        Change("port of the sandbox", sandboxed, nothing, other_port, Asks),
        Change("path of the sandbox", sandboxed, nothing, readable, Asks),
        Change("nothing", plain, nothing, plain, AsksNothing),
        Change(
            "program content",
            plain,
            |stage| stage.program("server", "two"),
            plain,
            Asks,
        ),
        Change(
            "program written again",
            plain,
            |stage| stage.program("server", "one"),
            plain,
            AsksNothing,
        ),
        Change(
            "program path",
            plain,
            |stage| stage.program("copy", "one"),
            other_path,
            Asks,
        ),
        Change("argument", plain, nothing, other_arg, Asks),
        Change("argument split", plain, nothing, split_arg, Asks),
        Change("argument removed", plain, nothing, fewer_args, Asks),
        Change("folder", plain, nothing, other_folder, Asks),
        Change("server renamed", plain, nothing, renamed, AsksNothing),
        Change("shared value added", plain, nothing, shared, Asks),
        Change(
            "file beside the program",
            plain,
            |stage| stage.write("server.py", "two"),
            plain,
            AsksNothing,
        ),
        Change("literal value", env, nothing, other_value, Asks),
        Change("name of a variable", env, nothing, other_name, Asks),
        Change("order of variables", env, nothing, other_order, AsksNothing),
        Change(
            "variable rotated",
            env,
            |stage| stage.variable("TOKEN", "hunter3"),
            env,
            AsksNothing,
        ),
        Change(
            "file rotated",
            env,
            |stage| stage.write("key", "k2"),
            env,
            AsksNothing,
        ),
        Change("another reference", env, nothing, other_reference, Asks),
        Change("reference written out", env, nothing, written_out, Asks),
        Change("literal part", env, nothing, literal_part, Asks),
        Change(
            "selecting reference",
            env,
            |stage| stage.variable("OPTIONS", "--require=/b.js"),
            env,
            Asks,
        ),
        Change(
            "inherited value",
            inherit,
            |stage| stage.variable("TOKEN", "hunter3"),
            inherit,
            AsksNothing,
        ),
        Change(
            "inherited selecting value",
            inherit,
            |stage| stage.variable("NODE_OPTIONS", "x"),
            inherit,
            Asks,
        ),
        Change(
            "inherited Git setting",
            git,
            |stage| stage.variable("GIT_CONFIG_VALUE_0", "x"),
            git,
            Asks,
        ),
        Change(
            "inherited name removed",
            inherit,
            nothing,
            fewer_inherited,
            Asks,
        ),
        Change(
            "secret in env_file",
            env_file,
            |stage| stage.write("vars", "SECRET=s2\nPYTHONSTARTUP=a.py\n"),
            env_file,
            AsksNothing,
        ),
        Change(
            "selecting value in env_file",
            env_file,
            |stage| stage.write("vars", "SECRET=s1\nPYTHONSTARTUP=b.py\n"),
            env_file,
            Asks,
        ),
        Change(
            "references in arguments rotated",
            by_reference,
            |stage| {
                stage.variable("TOKEN", "x");
                stage.write("key", "k2")
            },
            by_reference,
            AsksNothing,
        ),
        Change(
            "python script",
            python,
            |stage| stage.write("server.py", "two"),
            python,
            Asks,
        ),
        Change(
            "python interpreter at home",
            python,
            |stage| stage.program("python3", "two"),
            python,
            Asks,
        ),
        Change(
            "target of a link",
            linked,
            |stage| stage.write("server.py", "two"),
            linked,
            Asks,
        ),
        Change(
            "link retargeted",
            linked,
            |stage| stage.link("linked.py", "other/server.py"),
            linked,
            Asks,
        ),
        Change(
            "python module",
            module,
            |stage| stage.write("pkg/__main__.py", "two"),
            module,
            Asks,
        ),
        Change(
            "python package",
            module,
            |stage| stage.write("pkg/__init__.py", "two"),
            module,
            Asks,
        ),
        Change(
            "imported module",
            module,
            |stage| stage.write("pkg/run.py", "two"),
            module,
            AsksNothing,
        ),
        Change(
            "module in PYTHONPATH",
            module_elsewhere,
            |stage| stage.write("lib/mod.py", "two"),
            module_elsewhere,
            Asks,
        ),
        Change(
            "module before PYTHONPATH",
            module_elsewhere,
            |stage| stage.write("mod.py", "one"),
            module_elsewhere,
            Asks,
        ),
        Change(
            "node script",
            node,
            |stage| stage.write("server.js", "two"),
            node,
            Asks,
        ),
        Change(
            "node import",
            node,
            |stage| stage.write("hook.js", "two"),
            node,
            Asks,
        ),
        Change(
            "file given to a script",
            node,
            |stage| stage.write("key", "k2"),
            node,
            AsksNothing,
        ),
        Change(
            "main of a node folder",
            node_folder,
            |stage| stage.write("app/dist/main.js", "two"),
            node_folder,
            Asks,
        ),
        Change(
            "deno script",
            deno,
            |stage| stage.write("server.ts", "two"),
            deno,
            Asks,
        ),
        Change(
            "bun script",
            bun,
            |stage| stage.write("server.ts", "two"),
            bun,
            Asks,
        ),
        Change(
            "tsx script",
            tsx,
            |stage| stage.write("server.ts", "two"),
            tsx,
            Asks,
        ),
        Change(
            "tsx script behind npx",
            npx_tsx,
            |stage| stage.write("server.ts", "two"),
            npx_tsx,
            Asks,
        ),
        Change(
            "ruby script",
            ruby,
            |stage| stage.write("server.rb", "two"),
            ruby,
            Asks,
        ),
        Change(
            "perl script",
            perl,
            |stage| stage.write("server.pl", "two"),
            perl,
            Asks,
        ),
        Change(
            "shell script",
            shell,
            |stage| stage.write("server.sh", "two"),
            shell,
            Asks,
        ),
        Change(
            "script behind env",
            behind,
            |stage| stage.write("server.py", "two"),
            behind,
            Asks,
        ),
        Change(
            "interpreter behind env",
            behind,
            |stage| stage.program("python3", "two"),
            behind,
            Asks,
        ),
        Change(
            "script in the folder of env",
            behind_folder,
            |stage| stage.write("other/server.py", "two"),
            behind_folder,
            Asks,
        ),
        Change(
            "reference assigned by env",
            assigned,
            |stage| stage.variable("TOKEN", "x"),
            assigned,
            AsksNothing,
        ),
        Change(
            "script behind uv",
            uv,
            |stage| stage.write("server.py", "two"),
            uv,
            Asks,
        ),
        Change(
            "script removed",
            python,
            |stage| fs::remove_file(stage.path("server.py")).unwrap(),
            python,
            Asks,
        ),
        Change(
            "runner at home",
            npx,
            |stage| stage.program("npx", "two"),
            npx,
            Asks,
        ),
        Change(
            "script of mcp behind uv",
            uv_mcp,
            |stage| stage.write("server.py", "two"),
            uv_mcp,
            Asks,
        ),
        Change(
            "module of uv",
            uv_module,
            |stage| stage.write("pkg/__main__.py", "two"),
            uv_module,
            Asks,
        ),
        Change(
            "script behind an option of uv",
            uv_package,
            |stage| stage.write("server.py", "two"),
            uv_package,
            Asks,
        ),
        Change(
            "script of fastmcp",
            fastmcp,
            |stage| stage.write("server.py", "two"),
            fastmcp,
            Asks,
        ),
        Change(
            "script of fastmcp behind uvx",
            uvx_fastmcp,
            |stage| stage.write("server.py", "two"),
            uvx_fastmcp,
            Asks,
        ),
        Change(
            "manifest of npm start",
            npm_start,
            |stage| stage.write("package.json", "two"),
            npm_start,
            Asks,
        ),
        Change(
            "manifest of npm run",
            npm_run,
            |stage| stage.write("app/package.json", "two"),
            npm_run,
            Asks,
        ),
        Change(
            "another manifest",
            npm_run,
            |stage| stage.write("package.json", "two"),
            npm_run,
            AsksNothing,
        ),
        Change(
            "manifest above the folder",
            npm_above,
            |stage| stage.write("package.json", "two"),
            npm_above,
            Asks,
        ),
        Change(
            "nearer manifest",
            npm_above,
            |stage| stage.write("other/package.json", "two"),
            npm_above,
            Asks,
        ),
        Change(
            "manifest of yarn",
            yarn,
            |stage| stage.write("package.json", "two"),
            yarn,
            Asks,
        ),
        Change(
            "manifest of bun",
            bun_run,
            |stage| stage.write("package.json", "two"),
            bun_run,
            Asks,
        ),
        Change(
            "manifest beside a bun script",
            bun,
            |stage| stage.write("package.json", "two"),
            bun,
            AsksNothing,
        ),
        Change(
            "tasks of deno",
            deno_task,
            |stage| stage.write("deno.json", "two"),
            deno_task,
            Asks,
        ),
        Change(
            "go file",
            go_file,
            |stage| stage.write("main.go", "two"),
            go_file,
            Asks,
        ),
        Change(
            "go folder",
            go_folder,
            |stage| stage.write("main.go", "two"),
            go_folder,
            Asks,
        ),
        Change(
            "manifest of a pinned package",
            npx,
            |stage| stage.write("package.json", "two"),
            npx,
            AsksNothing,
        ),
        Change("pin", npx, nothing, other_pin, Asks),
        Change(
            "reference for a package",
            npx,
            |stage| stage.variable("TOKEN", "x"),
            npx,
            AsksNothing,
        ),
        Change(
            "reference that names the package",
            package,
            |stage| stage.write("key", "k2"),
            package,
            Asks,
        ),
    ];
    assert!(changes.len() >= 65);
    for Change(name, before, change, after, expected) in changes {
        let mut stage = Stage::new();
        let first = stage.subject(before).digest;
        change(&mut stage);
        let second = stage.subject(after).digest;
        let effect = if first == second { AsksNothing } else { Asks };
        assert_eq!(effect, expected, "{name}");
    }
}

/// Files that are exchanged after the check are found, also if they come back or are as long as before.
#[test]
fn exchanged_files_are_found() {
    struct Exchange(&'static str, fn(&Stage));
    let exchanges = [
        Exchange("written", |stage| stage.write("server.py", "two")),
        Exchange("replaced", |stage| {
            stage.write("new", "one");
            fs::rename(stage.path("new"), stage.path("server.py")).unwrap();
        }),
        Exchange("moved away and back", |stage| {
            fs::rename(stage.path("server.py"), stage.path("kept")).unwrap();
            stage.write("server.py", "two");
            fs::rename(stage.path("kept"), stage.path("server.py")).unwrap();
        }),
        Exchange("link retargeted and back", |stage| {
            stage.link("linked.py", "other/server.py");
            stage.link("linked.py", "server.py");
        }),
        Exchange("folder", |stage| {
            fs::rename(stage.path("other"), stage.path("kept")).unwrap();
            fs::create_dir(stage.path("other")).unwrap();
        }),
        Exchange("program", |stage| stage.program("python3", "two")),
        Exchange("removed", |stage| {
            fs::remove_file(stage.path("linked.py")).unwrap()
        }),
    ];
    for Exchange(name, exchange) in exchanges {
        let stage = Stage::new();
        stage.link("linked.py", "other/../server.py");
        let launch = stage.launch(&server("python3", &["linked.py"], ""));
        let approvals = stage.approvals();
        let approval = Approval {
            launch: Launch::Command(launch),
            approvals: approvals.clone(),
        };
        let ApprovalState::Missing(subject) = approval.check().unwrap() else {
            panic!("approved");
        };
        approvals.add(&subject.digest, "a").unwrap();
        let ApprovalState::Approved(Some(check)) = approval.check().unwrap() else {
            panic!("not approved");
        };
        check.run().unwrap();
        exchange(&stage);
        let error = check.run().unwrap_err();
        let problem = LaunchProblem::of(&error);
        assert!(
            matches!(problem, Some(LaunchProblem::Exchanged(_))),
            "{name}: {error}"
        );
    }
}

/// The stored digest depends on a key of the user that only the user can read.
#[test]
fn literal_values_are_hashed_with_a_private_key() {
    let (one, other) = (Stage::new(), Stage::new());
    let with_value =
        |value: &str| format!("[servers.a]\ncommand = \"/bin/cat\"\nenv = {{ A = \"{value}\" }}\n");
    let (literal, reference) = (with_value("one"), with_value("${TOKEN}"));
    assert_eq!(
        one.subject(&reference).digest,
        other.subject(&reference).digest
    );
    assert!(!one.path("state/approvals.key").exists());
    assert_ne!(one.subject(&literal).digest, other.subject(&literal).digest);
    assert_eq!(one.subject(&literal).digest, one.subject(&literal).digest);
    let key = one.path("state/approvals.key");
    assert_eq!(key.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::read_dir(one.path("state")).unwrap().count(), 1);
    assert!(!format!("{:?}", one.launch(&literal).env).contains("one"));
    fs::write(&key, "short").unwrap();
    let launch = Launch::Command(one.launch(&literal));
    let error = ApprovalSubject::of(&launch, &one.approvals()).unwrap_err();
    assert!(error.to_string().contains("is not a key"), "{error}");
}
