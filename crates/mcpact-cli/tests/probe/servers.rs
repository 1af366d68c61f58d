//! Verdicts, starts and exit codes.

use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::harness::{
    MCPACT, everything, http_server, mcpact, probe, response, run, run_in, without_times,
};

const LEGACY: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

/// Verdicts of the revisions, newest first.
fn verdicts(seen: &super::harness::Seen) -> Vec<String> {
    seen.texts("revisions", "verdict")
}

#[test]
fn server_of_both_eras_accepts_both_handshakes_and_starts_twice() {
    let seen = probe(&["--", MCPACT, "everything"]);
    let json = seen.json();
    assert_eq!(seen.code, 0, "{}", seen.stdout);
    assert_eq!(json["revision"], "2026-07-28");
    assert_eq!(json["starts"], 2);
    assert_eq!(verdicts(&seen)[..2], ["accepted", "accepted"]);
    assert_eq!(json["violations"], serde_json::json!([]));
    assert_eq!(json["server"]["name"], "mcpact-everything");
}

#[test]
fn legacy_server_is_started_once() {
    for revision in LEGACY {
        let seen = probe(&["--", MCPACT, "everything", "--revisions", revision]);
        let json = seen.json();
        assert_eq!(seen.code, 0, "{}", seen.stdout);
        assert_eq!(json["revision"], revision);
        assert_eq!(json["starts"], 1);
        assert_eq!(json["violations"], serde_json::json!([]), "{revision}");
        let newest = if revision == "2025-11-25" {
            "accepted"
        } else {
            "counter-offered"
        };
        assert_eq!(verdicts(&seen)[..2], ["refused", newest], "{revision}");
    }
}

#[test]
fn modern_server_refuses_the_handshake() {
    let seen = probe(&["--", MCPACT, "everything", "--revisions", "2026-07-28"]);
    let json = seen.json();
    assert_eq!((seen.code, &json["revision"]), (0, &"2026-07-28".into()));
    assert_eq!(json["starts"], 2);
    assert_eq!(verdicts(&seen)[..2], ["accepted", "refused"]);
}

#[test]
fn http_servers_of_both_eras() {
    for (revisions, negotiated) in [
        (&[][..], "2026-07-28"),
        (&["--revisions", "2025-06-18"], "2025-06-18"),
        (&["--revisions", "2026-07-28"], "2026-07-28"),
    ] {
        let (_server, url) = everything(revisions);
        let seen = probe(&[&url]);
        let json = seen.json();
        assert_eq!((seen.code, &json["revision"]), (0, &negotiated.into()));
        assert_eq!(
            (&json["transport"], &json["starts"]),
            (&"http".into(), &0.into())
        );
        assert_eq!(json["violations"], serde_json::json!([]), "{negotiated}");
    }
}

/// Starts are counted truly, and never overlap.
#[test]
fn starts_are_counted_and_do_not_overlap() {
    let script = r#"mkdir "$D/running" || touch "$D/overlap"; echo start >> "$D/starts"
        "$SERVER" everything; rmdir "$D/running""#;
    for (args, most) in [(&["--json"][..], 2), (&["--json", "--matrix"], 6)] {
        let folder = tempfile::tempdir().unwrap();
        let args: Vec<&str> = ["probe"]
            .iter()
            .chain(args)
            .copied()
            .chain(["--", "sh", "-c", script])
            .collect();
        let seen = run_in(&args, folder.path());
        let starts = std::fs::read_to_string(folder.path().join("starts")).unwrap();
        let starts = starts.lines().count();
        assert_eq!(seen.json()["starts"], starts, "{}", seen.stderr);
        assert!(starts <= most, "{starts}");
        assert!(!folder.path().join("overlap").exists());
    }
}

#[test]
fn matrix_tries_every_revision_and_announces_the_starts() {
    let target = ["everything", "--revisions", "2025-03-26,2025-06-18"];
    let args: Vec<&str> = ["--matrix", "--", MCPACT]
        .iter()
        .chain(&target)
        .copied()
        .collect();
    let seen = probe(&args);
    let expected = [
        "refused",
        "counter-offered",
        "accepted",
        "accepted",
        "counter-offered",
    ];
    assert_eq!(verdicts(&seen), expected);
    assert_eq!(seen.json()["starts"], 4);
    assert!(
        seen.stderr.contains("starts the server up to"),
        "{}",
        seen.stderr
    );
}

#[test]
fn silent_server_does_not_hang() {
    let begin = Instant::now();
    for script in ["cat > /dev/null", "exec sleep 60"] {
        let seen = probe(&["--timeout", "1", "--", "sh", "-c", script]);
        let json = seen.json();
        assert_eq!((seen.code, &json["outcome"]), (4, &"unreachable".into()));
        assert_eq!(json["failure"]["reason"], "silence");
        assert_eq!(json["starts"], 1);
    }
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp", silent.local_addr().unwrap());
    let seen = probe(&["--timeout", "1", &url]);
    assert_eq!(seen.code, 4, "{}", seen.stdout);
    assert!(begin.elapsed() < Duration::from_secs(40));
}

#[test]
fn server_that_exits_is_reported_with_its_stderr() {
    let seen = probe(&["--", "sh", "-c", "echo 'API_KEY is not set' >&2; exit 3"]);
    let json = seen.json();
    assert_eq!(seen.code, 4);
    assert_eq!(json["failure"]["reason"], "exited");
    assert_eq!(json["failure"]["stderr"], "API_KEY is not set");
    assert!(json["starts"].as_u64().unwrap() <= 2);
}

#[test]
fn unreachable_servers() {
    let closed = TcpListener::bind("127.0.0.1:0").unwrap();
    let unused = format!("http://{}/mcp", closed.local_addr().unwrap());
    drop(closed);
    let seen = probe(&[&unused]);
    assert_eq!(
        (seen.code, &seen.json()["failure"]["reason"]),
        (4, &"unreachable".into())
    );
    let seen = probe(&["--", "no-such-program-4711"]);
    assert_eq!(
        (seen.code, &seen.json()["failure"]["reason"]),
        (4, &"not-started".into())
    );
    let page = http_server(|_| response("404 Not Found", "", "nope"));
    let seen = probe(&[&page]);
    assert_eq!(
        (seen.code, &seen.json()["failure"]["reason"]),
        (4, &"no-endpoint".into())
    );
}

#[test]
fn server_with_a_token() {
    let folder = tempfile::tempdir().unwrap();
    let token = folder.path().join("token");
    std::fs::write(&token, "a-token-that-is-not-guessed\n").unwrap();
    let file = token.to_str().unwrap();
    let (_server, url) = everything(&["--token-file", file]);
    let seen = probe(&[&url]);
    assert_eq!(
        (seen.code, &seen.json()["outcome"]),
        (3, &"authentication-needed".into())
    );
    assert!(
        seen.json()["failure"]["remedies"][0]
            .as_str()
            .unwrap()
            .contains("--bearer")
    );
    let seen = probe(&["--bearer", &format!("file:{file}"), &url]);
    assert_eq!(seen.code, 0, "{}", seen.stdout);
    assert!(!seen.stdout.contains("a-token-that"), "{}", seen.stdout);
}

#[test]
fn refused_revision() {
    let target = ["--", MCPACT, "everything", "--revisions", "2024-11-05"];
    let args: Vec<&str> = ["--revision", "2026-07-28"]
        .iter()
        .chain(&target)
        .copied()
        .collect();
    let seen = probe(&args);
    let json = seen.json();
    assert_eq!((seen.code, &json["outcome"]), (6, &"refused".into()));
    assert_eq!(json["starts"], 1);
    let args: Vec<&str> = ["--revision", "2025-06-18"]
        .iter()
        .chain(&target)
        .copied()
        .collect();
    let seen = probe(&args);
    assert_eq!(
        (seen.code, &verdicts(&seen)[2]),
        (6, &String::from("counter-offered"))
    );
    assert_eq!(seen.json()["revisions"][2]["counterOffer"], "2024-11-05");
}

#[test]
fn client_capabilities_decide_what_the_server_may_send() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("caps.json"), r#"{"roots":{}}"#).unwrap();
    let target = ["--", MCPACT, "everything", "--revisions", "2025-11-25"];
    let verdict = |options: &[&str]| {
        let args: Vec<&str> = ["probe", "--json"]
            .iter()
            .chain(options)
            .chain(&target)
            .copied()
            .collect();
        let json = run_in(&args, folder.path()).json();
        let methods = json["methods"].as_array().unwrap();
        let sampling = methods.iter().find(|method| {
            method["method"] == "sampling/createMessage" && method["from"] == "server"
        });
        sampling.unwrap()["verdict"].clone()
    };
    assert_eq!(verdict(&[]), "open");
    assert_eq!(verdict(&["--client-caps", "caps.json"]), "closed");
}

#[test]
fn usage_errors() {
    for args in [
        &["probe"][..],
        &[
            "probe",
            "--revision",
            "2025-06-19",
            "http://127.0.0.1:9/mcp",
        ],
        &[
            "probe",
            "--revision",
            "2025-06-18",
            "--matrix",
            "http://127.0.0.1:9/mcp",
        ],
        &["probe", "--timeout", "0", "http://127.0.0.1:9/mcp"],
        &[
            "probe",
            "--client-caps",
            "absent.json",
            "http://127.0.0.1:9/mcp",
        ],
        &["probe", "no-such-server"],
    ] {
        let seen = run(args);
        assert_eq!(seen.code, 2, "{args:?} {}", seen.stdout);
        assert!(seen.stdout.is_empty());
    }
}

#[test]
fn help_of_both_commands() {
    insta::assert_snapshot!("help_probe", run(&["probe", "--help"]).shown());
    insta::assert_snapshot!("help_doctor", run(&["doctor", "--help"]).shown());
}

/// The report for people: 80 columns, no colours in a pipe.
#[test]
fn reports_as_text() {
    // The path of the program differs between machines.
    let server =
        |revisions| format!("exec \"$SERVER\" everything --revisions {revisions} 2>/dev/null");
    for (name, script) in [
        ("text_modern", server("2026-07-28")),
        ("text_legacy", server("2025-06-18")),
        (
            "text_exits",
            String::from("echo 'API_KEY is not set' >&2; exit 3"),
        ),
    ] {
        let seen = run(&["probe", "--", "sh", "-c", &script]);
        assert!(
            seen.stdout.lines().all(|line| line.chars().count() <= 80),
            "{}",
            seen.stdout
        );
        assert!(!seen.stdout.contains('\u{1b}'));
        insta::assert_snapshot!(name, seen.shown());
    }
    let closed = TcpListener::bind("127.0.0.1:0").unwrap();
    let unused = format!("http://{}/mcp", closed.local_addr().unwrap());
    drop(closed);
    insta::assert_snapshot!("text_unreachable", run(&["probe", &unused]).shown());
    let refused = ["probe", "--revision", "2026-07-28", "--", "sh", "-c"];
    let script = server("2024-11-05");
    let args: Vec<&str> = refused.iter().copied().chain([&*script]).collect();
    insta::assert_snapshot!("text_refused", run(&args).shown());
}

/// The console blocks of the manual page, without times.
#[test]
fn manual_examples_match_the_output() {
    let manual = include_str!("../../../../docs/manual/probe.md");
    let folder = tempfile::tempdir().unwrap();
    let own = Path::new(MCPACT).parent().unwrap();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let paths = [own.to_owned()]
        .into_iter()
        .chain(std::env::split_paths(&path));
    let path = std::env::join_paths(paths).unwrap();
    let blocks = manual.split("```console\n$ ").skip(1);
    let mut count = 0;
    for block in blocks {
        let (block, _) = block.split_once("```").unwrap();
        let (line, shown) = block.split_once('\n').unwrap();
        let mut shell = mcpact(&[], folder.path());
        shell.env("PATH", &path);
        let mut command = Command::new("sh");
        command
            .args(["-c", line])
            .current_dir(folder.path())
            .env_clear();
        command.envs(
            shell
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        );
        let output = command.stdin(Stdio::null()).output().unwrap();
        let printed = without_times(&String::from_utf8(output.stdout).unwrap());
        let mut rest = &*printed;
        let shown = without_times(shown);
        for part in shown.split("…\n") {
            let at = rest.find(part);
            assert!(
                at.is_some(),
                "`{line}` does not print\n{part}\nbut\n{printed}"
            );
            rest = &rest[at.unwrap() + part.len()..];
        }
        count += 1;
    }
    assert_eq!(count, 2);
}
