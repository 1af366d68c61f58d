//! `mcpact call`, `read`, `prompt`, `complete` and `tasks`.

use std::io::Write as _;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::harness::{Harness, MCPACT, REVISIONS, Seen};

#[test]
fn arguments_are_typed_by_the_schema() {
    let harness = Harness::new();
    harness.write("text.txt", "from a file\n");
    for (args, expected) in [
        (&["add", "a=1", "b=2.5"][..], "3.5\n"),
        (&["echo", "text=5"], "5\n"),
        (&["echo", "text=@text.txt"], "from a file\n"),
        (&["echo", "text:=\"@x\""], "@x\n"),
        (&["add", "--args", "{\"a\": 1, \"b\": 2}"], "3\n"),
        (&["add", "--args", "{\"a\": 1, \"b\": 2}", "b=5"], "6\n"),
    ] {
        harness.everywhere("call", args, |seen| assert_eq!(seen.ok(), expected));
    }
}

#[test]
fn arguments_are_read_from_a_file_and_stdin() {
    let harness = Harness::new();
    harness.write("args.json", "{\"text\": \"hello\"}");
    let args = ["call", "echo", "--args", "@args.json"];
    assert_eq!(harness.at_stdio(&args).ok(), "hello\n");
    let args = ["call", "echo", "--args", "-", "--", MCPACT, "everything"];
    let mut command = harness.command(&args);
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut process = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut input = process.stdin.take().unwrap();
    input.write_all(b"{\"text\": \"piped\"}").unwrap();
    drop(input);
    assert_eq!(
        Seen::of(&process.wait_with_output().unwrap()).ok(),
        "piped\n"
    );
}

/// Exit code 2, before anything is sent.
#[test]
fn wrong_arguments_are_not_sent() {
    let harness = Harness::new();
    let all = [
        &["add", "a=1"][..],
        &["add", "a=1", "b=two"],
        &["add", "a=1", "c=2"],
        &["add", "a=1", "a=2"],
        &["add", "a"],
        &["echo", "text=@missing.txt"],
        &["json_schema_2020_12_tool", "address={\"town\": 1}"],
        &["json_schema_2020_12_tool", "contactMethod=fax"],
        &["json_schema_2020_12_tool", "name=x"],
        &["add", "--args", "[1]"],
        &["add", "--args", "@missing.json"],
    ];
    let shown = all.map(|args| {
        let seen = harness.at_stdio(&[&["call"], args].concat());
        assert_eq!(seen.code, 2, "{}", seen.shown());
        format!("$ mcpact call {}\n{}", args.join(" "), seen.stderr)
    });
    insta::assert_snapshot!(shown.join("\n"));
}

/// Exit code 5; stdout stays empty for scripts.
#[test]
fn failed_tool_is_shown_on_stderr() {
    let harness = Harness::new();
    harness.everywhere("call", &["test_error_handling"], |seen| {
        assert_eq!(seen.stdout, "");
        let stderr = seen.failed(5);
        assert_eq!(
            stderr,
            "This tool intentionally returns an error for testing\n"
        );
    });
    let seen = harness.at_stdio(&["call", "test_error_handling", "--json"]);
    let result: Value = serde_json::from_str(&seen.stdout).unwrap();
    assert_eq!((seen.code, &result["isError"]), (5, &json!(true)));
}

#[test]
fn content_of_every_kind_is_shown() {
    let harness = Harness::new();
    harness.everywhere("call", &["test_multiple_content_types"], |seen| {
        insta::allow_duplicates! { insta::assert_snapshot!(seen.ok()); }
    });
    let seen = harness.at_stdio(&["call", "add", "a=1", "b=2", "--json"]);
    let result: Value = serde_json::from_str(&seen.ok()).unwrap();
    assert_eq!(result["structuredContent"], json!({"sum": 3.0}));
}

#[test]
fn results_are_saved() {
    let harness = Harness::new();
    let png = b"\x89PNG";
    let saved = |args: &[&str], file: &str| {
        let seen = harness.at_stdio(args);
        assert!(seen.stderr.starts_with("saved "), "{}", seen.shown());
        assert_eq!(seen.ok(), "");
        harness.read(file)
    };
    let image = saved(&["call", "test_image_content", "--out", "a.png"], "a.png");
    assert!(image.starts_with(png));
    let read = saved(&["read", "test://static-binary", "--out", "b.png"], "b.png");
    assert!(read.starts_with(png));
    let text = saved(&["read", "test://static-text", "--out", "c.txt"], "c.txt");
    assert_eq!(text, b"This is the content of the static text resource.");
    let text = saved(&["call", "echo", "text=x", "--out", "a.png"], "a.png");
    assert_eq!(text, b"x\n", "an existing file is replaced");
    let missing = ["call", "test_image_content", "--out", "no/folder/a.png"];
    let stderr = harness.at_stdio(&missing).failed(1);
    assert!(
        stderr.contains("failed to write `no/folder/a.png`"),
        "{stderr}"
    );
    // Nothing but the files that were asked for.
    let files = std::fs::read_dir(harness.path()).unwrap();
    let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.filter(|name| name != ".home").collect();
    names.sort();
    assert_eq!(names, ["a.png", "b.png", "c.txt"]);
}

#[test]
fn resources_prompts_and_completions_are_printed() {
    let harness = Harness::new();
    let template = "test://template/{id}/data";
    for (command, args, expected) in [
        (
            "read",
            &["test://static-text"][..],
            "This is the content of the static text resource.\n",
        ),
        (
            "read",
            &["test://static-binary"],
            "[resource test://static-binary, image/png, 70 bytes; save it with `--out PATH`]\n",
        ),
        (
            "prompt",
            &["test_simple_prompt"],
            "user:\nThis is a simple prompt for testing.\n",
        ),
        (
            "prompt",
            &["test_prompt_with_arguments", "arg1=1", "arg2=b"],
            "user:\nPrompt with arguments: arg1='1', arg2='b'\n",
        ),
        (
            "complete",
            &["prompt:test_prompt_with_arguments", "arg1=t"],
            "test1\ntest2\n",
        ),
        ("complete", &[template, "id=al"], "alpha\n"),
    ] {
        harness.everywhere(command, args, |seen| assert_eq!(seen.ok(), expected));
    }
    let stderr = harness
        .at_stdio(&["prompt", "test_prompt_with_arguments", "arg1=1"])
        .failed(2);
    assert!(
        stderr.contains("missing required argument: `arg2`"),
        "{stderr}"
    );
    let stderr = harness.at_stdio(&["read", "test://missing"]).failed(5);
    assert!(stderr.contains("Resource not found"), "{stderr}");
}

#[test]
fn server_logs_are_shown_on_request() {
    let harness = Harness::new();
    harness.everywhere("call", &["test_tool_with_logging", "--log-level", "info"], |seen| {
        assert_eq!(seen.stderr, "info: Tool execution started\ninfo: Tool processing data\ninfo: Tool execution completed\n");
        assert_eq!(seen.ok(), "The work is done.\n");
    });
    let seen = harness.at_stdio(&["call", "test_tool_with_logging"]);
    assert_eq!((seen.code, &*seen.stderr), (0, ""));
}

#[test]
fn tool_runs_as_a_task() {
    let harness = Harness::new();
    let (_process, url) = harness.serve();
    for revision in REVISIONS {
        let call = [
            "call",
            &url,
            "--task",
            "slow_compute",
            "seconds=0.1",
            "--era",
            revision,
        ];
        let seen = harness.run(&call);
        let id = seen.stderr.split(' ').nth(1).unwrap().to_owned();
        assert_eq!(seen.stderr, format!("task {id} started\n"));
        assert_eq!(seen.ok(), "Computed for 0.1 seconds.\n");
        let shown = harness
            .run(&["tasks", &url, "get", &id, "--era", revision])
            .ok();
        assert!(
            shown.starts_with(&id) && shown.contains("completed"),
            "{shown}"
        );
        let result = harness
            .run(&["tasks", &url, "result", &id, "--era", revision])
            .ok();
        assert_eq!(result, "Computed for 0.1 seconds.\n");
        let unknown = ["tasks", &url, "get", "no-such-task", "--era", revision];
        harness.run(&unknown).failed(5);
    }
    let list = harness
        .run(&["tasks", &url, "--json", "--era", "2025-11-25"])
        .ok();
    let list: Value = serde_json::from_str(&list).unwrap();
    assert_eq!(list["tasks"].as_array().unwrap().len(), 2, "{list}");
    let missing = harness
        .at_stdio(&["call", "failing_job", "--era", "2026-07-28"])
        .failed(5);
    assert!(missing.contains("hint: pass `--task`"), "{missing}");
}

/// Exit code 4, and the server is told.
#[test]
fn call_times_out() {
    let harness = Harness::new();
    harness.everywhere(
        "call",
        &["slow_compute", "seconds=30", "--timeout", "1"],
        |seen| {
            let stderr = seen.failed(4);
            assert!(stderr.contains("did not answer within 1 s"), "{stderr}");
        },
    );
}

/// Output that is cut off by its reader is no error.
#[test]
fn closed_pipe_is_no_error() {
    let harness = Harness::new();
    let script =
        format!("{MCPACT} tools -- {MCPACT} everything | head -1; exit ${{PIPESTATUS[0]}}");
    let mut command = std::process::Command::new("bash");
    let output = command
        .args(["-c", &script])
        .current_dir(harness.path())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
}

/// Exit code 1, without a half-written file.
#[test]
fn full_disk_is_reported() {
    let harness = Harness::new();
    let args = ["tools", "--", MCPACT, "everything"];
    let full = std::fs::File::options()
        .write(true)
        .open("/dev/full")
        .unwrap();
    let mut command = harness.command(&args);
    let output = command
        .stdout(full)
        .stderr(Stdio::piped())
        .output()
        .unwrap();
    let stderr = Seen::of(&output).failed(1);
    assert!(stderr.contains("failed to write the output"), "{stderr}");
}
