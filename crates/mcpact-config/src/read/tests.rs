use std::time::Duration;

use mcpact_engine::client::EraMode;
use mcpact_spec::Revision;
use mcpact_transport::http::client::ProxyMode;

use super::*;
use crate::config::{Launch, Probe, ProxyConfig, Strategy};
use crate::local_host::{ProgramFacts, ProgramLookup};
use crate::{ApprovalSubject, Approvals};

/// A host with a few variables.
pub(crate) struct TestHost;

impl HostEnvironment for TestHost {
    fn variable(&self, name: &str) -> Option<String> {
        let set = [("HOME", "/home/ada"), ("TOKEN", "hunter2"), ("SEVEN", "7")];
        let found = set.iter().find(|(set, _)| *set == name);
        found.map(|(_, value)| (*value).to_owned())
    }

    fn folder(&self) -> String {
        String::from("/work/shop")
    }

    fn file(&self, path: &str) -> Result<String, String> {
        match path {
            "key" | "/work/shop/key" => Ok(String::from("k")),
            ".env" | "/work/shop/.env" => Ok(String::from("# a\nA=1\nexport B=\"2 3\"\n\nC='4'\n")),
            _ => Err(String::from("no such file")),
        }
    }

    fn has_folder(&self, path: &str) -> bool {
        path.starts_with("/work/shop")
    }

    fn exists(&self, path: &str) -> bool {
        path == "/work/shop/docs"
    }

    fn writable_by_all(&self, _: &str) -> Option<String> {
        None
    }

    fn program(&self, lookup: &ProgramLookup<'_>) -> ProgramFacts {
        let program = lookup.program;
        ProgramFacts {
            path: Some(format!("/usr/bin/{program}")),
            launch_problem: None,
            folder: lookup.folder.map(str::to_owned),
            real: Some(format!("/usr/bin/{program}")),
            writable_by_all: None,
        }
    }
}

pub(crate) fn found_in(name: &str, text: &str) -> Vec<String> {
    let source = Source::new(name, text);
    let problems = read(&source, &TestHost).problems;
    let lines = problems.iter().map(|found| found.in_one_line(&source));
    lines.collect()
}

pub(crate) fn taken_from(name: &str, text: &str) -> Catalog {
    let outcome = read(&Source::new(name, text), &TestHost);
    let problems = outcome.problems;
    outcome.catalog.unwrap_or_else(|| panic!("{problems:?}"))
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

/// A native config with all kinds of keys.
#[test]
fn native_config_is_read() {
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

/// Neither `Debug` nor problems show values of variables and headers.
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

/// Defaults are safe.
#[test]
fn defaults_are_safe() {
    let gateway = Catalog::default().gateway;
    assert!(gateway.listen.is_local());
    assert!(!gateway.allow_remote);
    assert_eq!(gateway.listen, "127.0.0.1:6272".parse().unwrap());
    let run = RunSettings::default();
    assert_eq!(
        (run.max_instances, run.max_concurrent, run.min_ready),
        (4, 8, 0)
    );
    assert_eq!(run.idle, Duration::from_secs(300));
}

/// Unknown keys are rejected with a suggestion, and all problems are reported at once.
#[test]
fn all_problems_are_reported_at_once() {
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
        "mcpact.toml:9:17: error: `max_instances` must be an integer from 1 to 1000",
        "mcpact.toml:10:7: error: unknown value `modrn` for `era`; did you mean `modern`?",
        "mcpact.toml:11:14: error: `args` must be a list of strings, but contains a number",
        "mcpact.toml:13:11: error: unknown value `evrything` for `builtin`; did you mean `everything`?",
    ];
    assert_eq!(found.len(), expected.len(), "{found:#?}");
    for (found, expected) in found.iter().zip(expected) {
        assert!(found.starts_with(expected), "{found}");
    }
}

/// Invalid values and combinations.
#[test]
fn invalid_values_and_combinations_are_rejected() {
    let sheet: &[(&str, &str)] = &[
        (
            "command = \"a\"\nurl = \"http://a/\"",
            "has both `command` and `url`",
        ),
        ("url = \"a b\"", "`url` is not a URL"),
        ("url = \"ftp://a/\"", "does not start with `http://`"),
        ("url = \"http:///x\"", "not a URL"),
        ("url = \"http://u:p@a/\"", "contains a password"),
        (
            "url = \"http://a/\"\nargs = [\"a\"]",
            "`args` has no effect with `url`",
        ),
        (
            "command = \"a\"\nmin_ready = 5",
            "`min_ready` is 5, but at most 4 instances may run",
        ),
        (
            "command = \"a\"\nstrategy = \"singleton\"\nmin_ready = 2",
            "at most 1 instances may run",
        ),
        (
            "command = \"a\"\nstrategy = \"singleton\"\nmax_instances = 2",
            "a `singleton` has one instance",
        ),
        (
            "command = \"a\"\nidle_seconds = -1",
            "`idle_seconds` must be a number of seconds",
        ),
        ("command = \"a\"\nqueue = -1", "`queue` must be an integer"),
        (
            "command = \"a\"\nbackoff_seconds = 9\nbackoff_max_seconds = 3",
            "is less than `backoff_seconds`",
        ),
        ("command = \"\"", "`command` is empty"),
        ("command = 1", "`command` must be a string, not a number"),
        (
            "command = \"a\"\nhealth = \"tool:\"",
            "unknown value `tool:` for `health`",
        ),
        (
            "command = \"a\"\nprefix = \"a b\"",
            "` ` is not valid in a server name",
        ),
        (
            "command = \"a\"\ntags = [\"my tag\"]",
            "invalid tag `my tag`",
        ),
        (
            "command = \"a\"\ntags = [\"ü\"]",
            "invalid tag `ü`; use ASCII letters, digits, `-`, `_`, `.` and `:`",
        ),
        ("command = \"a\"\ntags = [\"a,b\"]", "invalid tag `a,b`"),
        ("command = \"a\"\ntags = [\"\"]", "invalid tag ``"),
        (
            "command = \"a\"\nenv = { A = 1 }",
            "`env.A` must be a string, not a number",
        ),
        (
            "command = \"a\"\nenv = { \"A=B\" = \"1\" }",
            "`A=B` is not a variable name",
        ),
        (
            "url = \"http://a/\"\nheaders = { \"A B\" = \"1\" }",
            "invalid header name",
        ),
        (
            "url = \"http://a/\"\nheaders = { X-Key = \"1\", x-key = \"2\" }",
            "duplicate header `x-key`",
        ),
        (
            "url = \"http://a:65536/\"",
            "has an invalid port; use 1 to 65535",
        ),
        (
            "url = \"http://a:0/mcp\"",
            "has an invalid port; use 1 to 65535",
        ),
        (
            "command = \"a\"\nargs = [\"b\", \"c\\u0000\"]",
            "`args` contains a NUL character",
        ),
        (
            "command = \"a\"\nenv = { A = \"\\u0000\" }",
            "`env.A` contains a NUL character",
        ),
        (
            "command = \"a\"\ninherit = [\"A\", \"*\"]",
            "`*` is not a variable name",
        ),
        (
            "command = \"a\"\ninherit = [\"A B\"]",
            "`A B` is not a variable name",
        ),
        (
            "command = \"a\"\ninherit = [\"\"]",
            "`` is not a variable name",
        ),
        ("strategy = \"stateless\"", "has neither `command`"),
        (
            "command = \"a\"\nenabled = \"no\"",
            "`enabled` must be true or false, not a string",
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

/// Keys of other clients suggest the native key.
#[test]
fn keys_of_other_clients_suggest_the_native_key() {
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

/// Ports of URLs and listen addresses.
#[test]
fn ports_are_checked() {
    for url in ["http://a", "http://a:/", "https://[::1]:65535/mcp"] {
        taken(&format!("[servers.x]\nurl = \"{url}\"\n"));
    }
    let found = found("[gateway]\nlisten = \"127.0.0.1:70000\"");
    assert!(found[0].contains("a port from 0 to 65535"), "{found:?}");
}

/// H3: a host name that no client can send is rejected, with the ASCII form as hint.
#[test]
fn non_ascii_host_names_are_rejected() {
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

/// Each named token is strong, has a valid name, and is that of one name; no problem shows it.
#[test]
fn named_tokens_are_checked() {
    let (one, two) = ("0123456789abcdef", "fedcba9876543210");
    let read = |tokens: &str| {
        let mut lines = found(&format!("[gateway]\n{tokens}\n"));
        lines.retain(|line| !line.contains(": note: "));
        assert!(lines.iter().all(|line| !line.contains(one)), "{lines:?}");
        lines
    };
    let fine =
        format!("token = \"{one}\"\ntokens = {{ ada = \"{two}\", \"b.c-d_1\" = \"{one}x\" }}");
    assert!(read(&fine).is_empty());
    let config = taken(&format!("[gateway]\n{fine}")).gateway;
    let names: Vec<&str> = config.tokens.keys().map(String::as_str).collect();
    assert_eq!(names, ["ada", "b.c-d_1"]);
    assert!(config.requires_token() && !format!("{config:?}").contains(two));
    for (tokens, problem) in [
        (String::from("tokens = { ada = \"short\" }"), "too weak"),
        (
            format!("tokens = {{ \"a b\" = \"{one}\" }}"),
            "not a name for a token",
        ),
        (
            format!("tokens = {{ token = \"{one}\" }}"),
            "not a name for a token",
        ),
        (
            format!("tokens = {{ \"\" = \"{one}\" }}"),
            "not a name for a token",
        ),
        (
            format!("tokens = {{ ada = \"{one}\", bob = \"{one}\" }}"),
            "also that of another name",
        ),
        (
            format!("token = \"{one}\"\ntokens = {{ ada = \"{one}\" }}"),
            "also that of another name",
        ),
        (
            String::from("tokens = [\"0123456789abcdef\"]"),
            "must be a table",
        ),
    ] {
        let lines = read(&tokens);
        assert!(lines[0].contains(problem), "{tokens}: {lines:?}");
    }
}

/// Listening beyond loopback requires a token or `allow_remote`.
#[test]
fn listening_beyond_loopback_requires_a_token() {
    let found = |text: &str| {
        let mut told = found(text);
        told.retain(|line| !line.contains(": note: "));
        told
    };
    let open = found("[gateway]\nlisten = \"0.0.0.0:1\"");
    assert!(open[0].contains("no token is set"), "{open:?}");
    let fine = [
        "allow_remote = true",
        "token = \"0123456789abcdef\"",
        "tokens = { ada = \"0123456789abcdef\" }",
    ];
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
            wrong[0].ends_with("`mcp.example:443` is not a host; use a host name or IP address without port, such as `mcp.example`"),
            "{wrong:?}"
        );
    }
}

#[test]
fn invalid_server_name_suggests_a_valid_one() {
    let found = found("[servers.\"my files\"]\ncommand = \"a\"");
    assert!(found[0].contains("rename it to `my-files`"), "{found:?}");
}

#[test]
fn toml_errors_have_a_position() {
    let found = found("[gateway]\nlisten = \n");
    assert!(found[0].starts_with("mcpact.toml:2:"), "{found:?}");
    let twice = "[servers.a]\ncommand = \"a\"\n[servers.a]\ncommand = \"b\"";
    assert!(
        self::found(twice)[0].contains("duplicate"),
        "{:?}",
        self::found(twice)
    );
}

/// K3: the proxy of a server is the system's, none, or a URL.
#[test]
fn proxies_are_read() {
    let proxy = |keys: &str| {
        let text = format!("[servers.a]\nurl = \"https://a.example/\"\n{keys}");
        match &taken(&text).servers["a"].launch {
            Launch::Url(url) => url.clone(),
            other => panic!("{other:?}"),
        }
    };
    for keys in ["", "proxy = \"system\""] {
        let url = proxy(keys);
        assert_eq!(url.proxy, ProxyConfig::System);
        assert!(matches!(url.settings().unwrap().proxy, ProxyMode::System));
    }
    let disabled = proxy("proxy = \"disabled\"").settings().unwrap();
    assert!(matches!(disabled.proxy, ProxyMode::Disabled));
    let custom = proxy(
        "proxy = \"http://ann:${TOKEN}@proxy.example:3128\"\nno_proxy = [\"b.example\", \"10.0.0.0/8\"]",
    );
    let shown = format!("{custom:?} {:?}", custom.settings().unwrap().proxy);
    assert!(!shown.contains("hunter2"), "{shown}");
    assert!(shown.contains("b.example,10.0.0.0/8"), "{shown}");
    assert!(
        Launch::Url(custom.clone())
            .secrets()
            .contains(&String::from("hunter2"))
    );
    let approvals = Approvals::in_file("unused".into());
    let subject = ApprovalSubject::of(&Launch::Url(custom), &approvals)
        .unwrap()
        .unwrap();
    assert!(
        subject
            .lines
            .contains(&("through", String::from("http://…@proxy.example:3128"))),
        "{subject:?}"
    );
    for (launch, keys, expected) in [
        (
            "url = \"https://a.example/\"",
            "proxy = \"ftp://b\"",
            "use `system`, `disabled`, or a URL",
        ),
        (
            "url = \"https://a.example/\"",
            "no_proxy = [\"b\"]",
            "works only with the URL of a proxy",
        ),
        (
            "command = \"a\"",
            "proxy = \"disabled\"",
            "`proxy` has no effect with `command`",
        ),
    ] {
        let found = found(&format!("[servers.a]\n{launch}\n{keys}"));
        assert!(found[0].contains(expected), "{found:?}");
    }
}

/// An unset variable or a prompt disables only its server, unless strict reading is asked for.
#[test]
fn foreign_server_without_its_variable_is_skipped() {
    use crate::{InvalidServers, PolicySettings};
    let text = r#"{"mcpServers": {
        "good": {"command": "sleep"},
        "unset": {"command": "sleep", "env": {"KEY": "${NOBODY_SETS_THIS}"}},
        "prompt": {"command": "sleep", "args": ["${input:token}"]}
    }}"#;
    let source = crate::Source::new("x.json", text);
    let host = crate::LocalHost::at(std::path::PathBuf::from("/"));
    let read = |settings| crate::read::read_with(&source, &host, &settings).catalog;
    let default = PolicySettings::default();
    let strict = default.clone().with_invalid_servers(InvalidServers::Refuse);
    let catalog = read(default).unwrap();
    assert!(catalog.servers.contains_key("good") && catalog.servers.len() == 1);
    for (name, reason) in [
        ("unset", "variable `NOBODY_SETS_THIS` is not set"),
        ("prompt", "`${input:token}` prompts the user"),
    ] {
        let (_, why) = catalog
            .wrong
            .iter()
            .find(|(of, _)| of.as_str() == name)
            .unwrap();
        assert!(why.contains(reason) && why.starts_with("x.json:"), "{why}");
    }
    assert!(read(strict).is_none());
}

/// A relative program is the same wherever the gateway is started; `cwd` is its folder if it is set.
#[test]
fn relative_program_starts_at_the_folder_of_the_config() {
    for (keys, expected) in [
        ("command = \"bin/run\"", "/work/shop/bin/run"),
        ("command = \"bin/run\"\ncwd = \"/tmp\"", "bin/run"),
        ("command = \"run\"", "run"),
        ("command = \"/bin/run\"", "/bin/run"),
    ] {
        let catalog = taken_from("mcpact.toml", &format!("[servers.a]\n{keys}\n"));
        let crate::Launch::Command(command) = &catalog.servers["a"].launch else {
            panic!("{keys}");
        };
        assert_eq!(command.program.value(), expected, "{keys}");
    }
}
