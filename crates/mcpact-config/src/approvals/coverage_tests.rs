//! Coverage of an approval as the user sees it: scripts, code without a file, packages without a version.

use super::command_tests::{Stage, server};
use super::*;

#[test]
fn subject_shows_scripts_and_what_is_not_covered() {
    let stage = Stage::new();
    let subject = stage.subject(&server(
        "python3",
        &["server.py"],
        "env = { A = \"hunter2\", PATH = \"BIN\" }",
    ));
    let path = |name: &str| stage.path(name).display().to_string();
    let shown = [
        ("program", path("bin/python3")),
        ("script", path("server.py")),
    ];
    assert_eq!(subject.lines[..2], shown);
    assert!(!format!("{subject:?}").contains("hunter2"), "{subject:?}");
    assert_eq!(
        subject.notes,
        ["imported modules and the contents of packages are not covered"]
    );
    assert_eq!(subject.unpinned, None);
    let notes = stage
        .subject(&server("python3", &["-m", "installed"], ""))
        .notes;
    assert_eq!(
        notes[0],
        "no file found for `installed`: its code is not covered"
    );
    for (line, note) in [
        ("npm start", "no file found for what `npm` runs"),
        ("yarn serve", "no file found for what `yarn` runs"),
        ("pnpm exec serve", "no file found for `serve`"),
        ("bun run serve", "no file found for `serve`"),
        ("uv run tickets", "no file found for `tickets`"),
        ("uv run -m installed", "no file found for `installed`"),
        (
            "uvx --from ./tickets tickets",
            "no file found for `./tickets`",
        ),
        ("env tickets", "no file found for `tickets`"),
        (
            "docker run -i tickets",
            "no file found for what `docker` runs",
        ),
        ("go run ./cmd", "no file found for `./cmd`"),
        ("deno run npm:tickets", "no file found for `npm:tickets`"),
        ("uv run mcp run server.py", ""),
        ("npx -y tickets@1.2.3", ""),
        ("env A=1 BIN/server", ""),
    ] {
        let mut words = line.split(' ');
        let command = words.next().unwrap();
        let args: Vec<&str> = words.collect();
        let notes = stage.subject(&server(command, &args, "")).notes;
        assert_eq!(notes.len(), if note.is_empty() { 1 } else { 2 }, "{line}");
        assert!(notes[0].starts_with(note), "{line}: {notes:?}");
    }
    let indexed = |addresses: &str| {
        let keys = format!("env = {{ UV_EXTRA_INDEX_URL = \"{addresses}\" }}");
        stage.subject(&server("server", &[], &keys))
    };
    let index = indexed("https://a.example/@x https://ada:hunter3@b.example/simple");
    let variable = "UV_EXTRA_INDEX_URL=https://a.example/@x https://…@b.example/simple";
    assert!(
        index.lines.contains(&("variable", variable.to_owned())),
        "{:?}",
        index.lines
    );
}

/// A package without an exact version is named, with its pin if a version can follow it.
#[test]
fn packages_without_a_version_are_named() {
    let stage = Stage::new();
    let commit = "0123456789abcdef0123456789abcdef01234567";
    let git = format!("uvx --from git+https://a.example/t@{commit} t");
    let github = format!("npx github:a/tickets#{commit}");
    for (line, expected) in [
        ("npx -y @a/tickets", Some("@a/tickets@")),
        ("npx -y tickets@latest x", Some("tickets@")),
        ("npx tickets@next", Some("tickets@")),
        ("npx @a/tickets@^1", Some("@a/tickets@")),
        ("npx tickets@1", Some("tickets@")),
        ("npx tickets@1.2.3", None),
        ("npx tickets@1.2.3-next.1", None),
        ("npx ./tickets", None),
        ("npx a/tickets", Some("")),
        (&github, None),
        ("npx --package=tickets serve", Some("--package=tickets@")),
        ("npx -p tickets serve", Some("tickets@")),
        ("npx tsx server.ts", Some("tsx@")),
        ("npm exec tickets", Some("tickets@")),
        ("npm run tickets", None),
        ("pnpm dlx tickets", Some("tickets@")),
        ("pnpm exec tickets", None),
        ("yarn dlx tickets", Some("tickets@")),
        ("bun x tickets", Some("tickets@")),
        ("bun run server.ts", None),
        ("uvx tickets", Some("tickets==")),
        ("uvx tickets[x]", Some("tickets[x]==")),
        ("uvx tickets@latest", Some("tickets==")),
        ("uvx tickets@1.2", None),
        ("uvx tickets==1", None),
        ("uvx tickets==1.*", Some("")),
        ("uvx tickets>=1", Some("")),
        ("uvx --from=tickets serve", Some("--from=tickets==")),
        ("uvx --from git+https://a.example/t serve", Some("")),
        ("uvx --from git+https://a.example/t@main serve", Some("")),
        (&git, None),
        ("uv tool run tickets", Some("tickets==")),
        ("uv run server.py", None),
        ("pipx run tickets", Some("tickets==")),
    ] {
        let mut words = line.split(' ');
        let command = words.next().unwrap();
        let args: Vec<&str> = words.collect();
        let found = stage.subject(&server(command, &args, "")).unpinned;
        let pin =
            |found: UnpinnedPackage| found.pin.map_or(String::new(), |pin| pin.before_version);
        assert_eq!(found.map(pin).as_deref(), expected, "{line}");
    }
    let referred = stage.subject(&server("npx", &["${file:key}"], ""));
    assert_eq!(referred.unpinned.unwrap().pin, None);
}

/// Runners and interpreters that only root can change count by path, so that an upgrade asks nothing.
#[test]
fn interpreters_of_the_system_count_by_path() {
    let stage = Stage::new();
    let shell = Path::new("/bin/sh");
    let state = file::FileState::of(shell).unwrap();
    assert!(state.is_protected, "{state:?}");
    let config = server("server", &["server.sh"], "").replace("BIN/server", "/bin/sh");
    let code = Code::of(&stage.launch(&config).found()).unwrap();
    let by_path: Vec<bool> = code
        .files
        .iter()
        .map(|file| file.contents.is_none())
        .collect();
    assert_eq!(by_path, [true, false], "{code:?}");
    // A link of another user leads elsewhere at any time, and so does a folder that others can write.
    stage.link("bin/sh", "/bin/sh");
    let linked = file::FileState::of(&stage.path("bin/sh")).unwrap();
    assert!(!linked.is_protected);
    assert_eq!(linked.real, shell.canonicalize().unwrap());
    // The contents of other programs count everywhere.
    let config = server("server", &[], "").replace("BIN/server", "/bin/cat");
    let code = Code::of(&stage.launch(&config).found()).unwrap();
    assert!(code.files[0].contents.is_some());
}

/// The files of a project count by their contents, also if root owns them.
#[test]
fn only_locations_of_the_system_count_by_path() {
    for (path, folder, expected) in [
        ("/usr/bin/node", "/home/ada/shop", true),
        ("/opt/node/bin/node", "/root/shop", true),
        ("/usr/bin/node", "/", true),
        ("/usr/bin/node", "/usr", true),
        ("/nix/store/x/bin/node", "/srv/shop", true),
        ("/srv/shop/bin/npx", "/srv/shop", false),
        ("/srv/node/bin/node", "/srv/shop", false),
        ("/opt/shop/bin/npx", "/opt/shop", false),
        ("/usr/src/app/node", "/usr/src/app/sub", false),
        ("/usrlocal/node", "/srv", false),
    ] {
        let found = file::is_system(Path::new(path), Path::new(folder));
        assert_eq!(found, expected, "{path} in {folder}");
    }
}
