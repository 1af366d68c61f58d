use std::time::Duration;

use mcpact_engine::client::EraMode;
use mcpact_spec::Revision;

use super::*;
use crate::config::{Launch, Probe, Strategy};
use crate::surroundings::{ProgramFacts, Sought};

/// A machine with a few variables.
pub(crate) struct Machine;

impl Surroundings for Machine {
    fn variable(&self, name: &str) -> Option<String> {
        let set = [("HOME", "/home/ada"), ("TOKEN", "hunter2")];
        let found = set.iter().find(|(set, _)| *set == name);
        found.map(|(_, value)| (*value).to_owned())
    }

    fn folder(&self) -> String {
        String::from("/work/shop")
    }

    fn file(&self, path: &str) -> Result<String, String> {
        match path {
            "/work/shop/.env" => Ok(String::from("# a\nA=1\nexport B=\"2 3\"\n\nC='4'\n")),
            _ => Err(String::from("no such file")),
        }
    }

    fn has_folder(&self, path: &str) -> bool {
        path.starts_with("/work/shop")
    }

    fn has_place(&self, path: &str) -> bool {
        path == "/work/shop/docs"
    }

    fn writable_by_all(&self, _: &str) -> Option<String> {
        None
    }

    fn program(&self, sought: &Sought<'_>) -> ProgramFacts {
        let program = sought.program;
        ProgramFacts {
            path: Some(format!("/usr/bin/{program}")),
            obstacle: None,
            folder: sought.folder.map(str::to_owned),
            real: Some(format!("/usr/bin/{program}")),
            writable_by_all: None,
        }
    }
}

pub(crate) fn found_in(name: &str, text: &str) -> Vec<String> {
    let source = Source::new(name, text);
    let problems = read(&source, &Machine).problems;
    let lines = problems.iter().map(|found| found.in_one_line(&source));
    lines.collect()
}

pub(crate) fn taken_from(name: &str, text: &str) -> Catalog {
    let reading = read(&Source::new(name, text), &Machine);
    let problems = reading.problems;
    reading.catalog.unwrap_or_else(|| panic!("{problems:?}"))
}

fn found(text: &str) -> Vec<String> {
    found_in("mcpact.toml", text)
}

fn taken(text: &str) -> Catalog {
    taken_from("mcpact.toml", text)
}

const EXAMPLE: &str = r#"
[gateway]
listen = "127.0.0.1:6272"

[servers.files]
command = "npx"
args = ["-y", "@modelcontextprotocol/server-filesystem@2026.1.14", "docs"]
strategy = "stateful"
idle_seconds = 0.5
max_concurrent = 2
max_instances = 3
min_ready = 1
era = "2025-06-18"
env = { TOKEN = "hunter2" }
health = "tool:echo"

[servers.tickets]
url = "https://tickets.example/mcp"
headers = { Authorization = "Bearer hunter2" }
enabled = false
"#;

/// The native file, with everything where it belongs.
#[test]
fn the_native_file_is_read() {
    let catalog = taken(EXAMPLE);
    let files = &catalog.servers["files"];
    let Launch::Command(command) = &files.launch else {
        panic!("{files:?}");
    };
    assert_eq!(command.program.value(), "npx");
    assert_eq!(command.args.len(), 3);
    assert_eq!(command.env["TOKEN"].reveal(), "hunter2");
    assert_eq!(files.era, EraMode::Pin(Revision::V2025_06_18));
    assert_eq!(files.run.strategy, Strategy::Stateful);
    assert_eq!(files.run.idle, Duration::from_millis(500));
    assert_eq!(files.run.health.probe, Probe::Tool("echo".into()));
    let tickets = &catalog.servers["tickets"];
    assert!(!tickets.enabled);
    assert_eq!(tickets.run, RunSettings::default());
}

/// Neither `Debug` of a catalog nor a problem shows what stands in variables and headers.
#[test]
fn no_secret_is_shown() {
    let shown = format!("{:?}", taken(EXAMPLE));
    assert!(!shown.contains("hunter2"), "{shown}");
    let wrong = found(
        "[gateway]\ntoken = \"hunter2\"\n[servers.a]\nurl = \"http://a/\"\nheaders = { A = \"hunter2\\u0001\" }",
    );
    assert_eq!(wrong.len(), 2);
    assert!(!wrong.concat().contains("hunter2"), "{wrong:?}");
}

/// What is not said has a safe default.
#[test]
fn defaults_are_safe() {
    let gateway = Catalog::default().gateway;
    assert!(gateway.listen.ip().is_loopback());
    assert!(!gateway.allow_remote);
    assert_eq!(gateway.listen, "127.0.0.1:6272".parse().unwrap());
    let run = RunSettings::default();
    assert_eq!(
        (run.max_instances, run.max_concurrent, run.min_ready),
        (4, 8, 0)
    );
    assert_eq!(run.idle, Duration::from_secs(300));
}

/// Unknown keys are refused with their place and the nearest known key; everything is found at once.
#[test]
fn everything_that_is_wrong_is_told_at_once() {
    let text = "\
[gatway]
[gateway]
listn = \"127.0.0.1:1\"
[servers.a]
comand = \"npx\"
[servers.b]
command = \"node\"
max_concurent = 3
max_instances = 0
era = \"modrn\"
args = [\"a\", 1]
[servers.c]
builtin = \"evrything\"
";
    let found = found(text);
    let expected = [
        "mcpact.toml:1:2: error: unknown key `gatway` in the config; did you mean `gateway`?",
        "mcpact.toml:3:1: error: unknown key `listn` in `[gateway]`; did you mean `listen`?",
        "mcpact.toml:4:10: error: server `a` has neither `command` nor `url` nor `builtin`",
        "mcpact.toml:5:1: error: unknown key `comand` in server `a`; did you mean `command`?",
        "mcpact.toml:8:1: error: unknown key `max_concurent` in server `b`; did you mean `max_concurrent`?",
        "mcpact.toml:9:17: error: `max_instances` should be a whole number from 1 to 1000",
        "mcpact.toml:10:7: error: `modrn` is unknown as `era`; did you mean `modern`?",
        "mcpact.toml:11:14: error: `args` has a number in it",
        "mcpact.toml:13:11: error: `evrything` is unknown as `builtin`; did you mean `everything`?",
    ];
    assert_eq!(found.len(), expected.len(), "{found:#?}");
    for (found, expected) in found.iter().zip(expected) {
        assert!(found.starts_with(expected), "{found}");
    }
}

/// What is possible for each key alone, but not together.
#[test]
fn contradictions_are_found() {
    let sheet: &[(&str, &str)] = &[
        (
            "command = \"a\"\nurl = \"http://a/\"",
            "has both `command` and `url`",
        ),
        ("url = \"a b\"", "`url` is no address"),
        ("url = \"ftp://a/\"", "does not start with `http://`"),
        ("url = \"http:///x\"", "no address"),
        ("url = \"http://u:p@a/\"", "has a password in it"),
        (
            "url = \"http://a/\"\nargs = [\"a\"]",
            "`args` means nothing beside `url`",
        ),
        (
            "command = \"a\"\nmin_ready = 5",
            "5 instances cannot be ready: at most 4 may run",
        ),
        (
            "command = \"a\"\nstrategy = \"singleton\"\nmin_ready = 2",
            "at most 1 may run",
        ),
        (
            "command = \"a\"\nstrategy = \"singleton\"\nmax_instances = 2",
            "a `singleton` has one instance",
        ),
        (
            "command = \"a\"\nidle_seconds = 0",
            "`idle_seconds` should be a number of seconds",
        ),
        (
            "command = \"a\"\nqueue = -1",
            "`queue` should be a whole number",
        ),
        (
            "command = \"a\"\nbackoff_seconds = 9\nbackoff_max_seconds = 3",
            "shorter than the first",
        ),
        ("command = \"\"", "`command` is empty"),
        ("command = 1", "`command` is a number, but should be a text"),
        (
            "command = \"a\"\nhealth = \"tool:\"",
            "`tool:` is unknown as `health`",
        ),
        (
            "command = \"a\"\nprefix = \"a b\"",
            "` ` cannot stand in the name",
        ),
        (
            "command = \"a\"\ntags = [\"my tag\"]",
            "nobody can choose servers by the tag `my tag`",
        ),
        (
            "command = \"a\"\ntags = [\"ü\"]",
            "nobody can choose servers by the tag `ü`; a tag has ASCII letters, digits, `-`, `_`, `.` and `:`",
        ),
        (
            "command = \"a\"\ntags = [\"a,b\"]",
            "nobody can choose servers by the tag `a,b`",
        ),
        (
            "command = \"a\"\ntags = [\"\"]",
            "nobody can choose servers by the tag ``",
        ),
        ("command = \"a\"\nenv = { A = 1 }", "`env.A` is a number"),
        (
            "command = \"a\"\nenv = { \"A=B\" = \"1\" }",
            "`A=B` is no name of a variable",
        ),
        (
            "url = \"http://a/\"\nheaders = { \"A B\" = \"1\" }",
            "the name is not a header name",
        ),
        (
            "url = \"http://a/\"\nheaders = { X-Key = \"1\", x-key = \"2\" }",
            "the header `x-key` is there twice",
        ),
        (
            "url = \"http://a:65536/\"",
            "has a port that is no number from 1 to 65535",
        ),
        (
            "url = \"http://a:0/mcp\"",
            "has a port that is no number from 1 to 65535",
        ),
        (
            "command = \"a\"\nargs = [\"b\", \"c\\u0000\"]",
            "`args` has a NUL character in it",
        ),
        (
            "command = \"a\"\nenv = { A = \"\\u0000\" }",
            "`env.A` has a NUL character in it",
        ),
        (
            "command = \"a\"\ninherit = [\"A\", \"*\"]",
            "`*` is no name of a variable",
        ),
        (
            "command = \"a\"\ninherit = [\"A B\"]",
            "`A B` is no name of a variable",
        ),
        (
            "command = \"a\"\ninherit = [\"\"]",
            "`` is no name of a variable",
        ),
        ("strategy = \"stateless\"", "has neither `command`"),
        (
            "command = \"a\"\nenabled = \"no\"",
            "`enabled` is a text, but should be true or false",
        ),
    ];
    for (body, expected) in sheet {
        let found = found(&format!("[servers.x]\n{body}\n"));
        assert!(
            found.len() == 1 && found[0].contains(expected),
            "{body}: {found:?}"
        );
        assert!(found[0].starts_with("mcpact.toml:"), "{found:?}");
    }
    let tagged = taken("[servers.x]\ncommand = \"a\"\ntags = [\"Team-A_1.b:c\"]\n");
    assert!(tagged.servers["x"].tags.contains("Team-A_1.b:c"));
}

/// Whoever writes a key as another client has it is told how it is called here.
#[test]
fn keys_of_other_clients_are_told_by_their_own_names() {
    for (theirs, ours) in [
        ("env_vars = [\"A\"]", "inherit"),
        ("disabled = true", "enabled"),
        ("bearer_token_env_var = \"A\"", "headers"),
        ("workingDirectory = \"x\"", "cwd"),
    ] {
        let found = found(&format!("[servers.x]\ncommand = \"a\"\n{theirs}\n"));
        let expected = format!("did you mean `{ours}`?");
        assert!(
            found.len() == 1 && found[0].ends_with(&expected),
            "{found:?}"
        );
    }
}

/// Ports of addresses that are possible.
#[test]
fn addresses_have_possible_ports() {
    for url in ["http://a", "http://a:/", "https://[::1]:65535/mcp"] {
        taken(&format!("[servers.x]\nurl = \"{url}\"\n"));
    }
    let found = found("[gateway]\nlisten = \"127.0.0.1:70000\"");
    assert!(
        found[0].contains("a port from 0 to 65535 are needed"),
        "{found:?}"
    );
}

/// H3: a name that no client can send is refused where it stands, with what to write instead.
#[test]
fn names_are_written_as_clients_send_them() {
    let text = "[gateway]\nallow_hosts = [\"a.example\", \"b\u{fc}cher.example\"]\nallow_origins = [\"https://b\u{fc}cher.example\"]\n";
    let told = found(text);
    let errors: Vec<&String> = told
        .iter()
        .filter(|line| line.contains(": error: "))
        .collect();
    assert_eq!(errors.len(), 2, "{told:?}");
    for (error, at) in errors.iter().zip(["2:29", "3:18"]) {
        assert!(error.contains(&format!(":{at}: ")), "{error}");
        assert!(error.contains("such as `xn--bcher-kva.example`"), "{error}");
    }
}

/// A gateway that others can reach needs a token or a word that this is meant.
#[test]
fn reaching_beyond_loopback_is_said() {
    let found = |text: &str| {
        let mut told = found(text);
        told.retain(|line| !line.contains(": note: "));
        told
    };
    let open = found("[gateway]\nlisten = \"0.0.0.0:1\"");
    assert!(open[0].contains("there is no token"), "{open:?}");
    let fine = ["allow_remote = true", "token = \"0123456789abcdef\""];
    for line in fine {
        let text = format!("[gateway]\nlisten = \"0.0.0.0:1\"\n{line}\n");
        taken(&text);
        let warned = found(&text);
        assert!(
            warned[0].contains("get 403 without `allow_hosts`"),
            "{warned:?}"
        );
        let named = found(&format!("{text}allow_hosts = [\"mcp.example\"]"));
        assert!(named.is_empty(), "{named:?}");
        let wrong = found(&format!("{text}allow_hosts = [\"mcp.example:443\"]"));
        assert!(
            wrong[0].ends_with("`mcp.example:443` is no host; a name or an IP address alone is needed, such as `mcp.example`"),
            "{wrong:?}"
        );
    }
}

#[test]
fn names_that_do_not_fit_are_told_with_one_that_does() {
    let found = found("[servers.\"my files\"]\ncommand = \"a\"");
    assert!(found[0].contains("call it `my-files`"), "{found:?}");
}

#[test]
fn what_is_no_toml_is_told_with_its_place() {
    let found = found("[gateway]\nlisten = \n");
    assert!(found[0].starts_with("mcpact.toml:2:"), "{found:?}");
    let twice = "[servers.a]\ncommand = \"a\"\n[servers.a]\ncommand = \"b\"";
    assert!(
        self::found(twice)[0].contains("duplicate"),
        "{:?}",
        self::found(twice)
    );
}
