//! `mcpact explain`: output and exit code.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::io::Write as _;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

const REVISIONS: [&str; 5] = [
    "2024-11-05",
    "2025-03-26",
    "2025-06-18",
    "2025-11-25",
    "2026-07-28",
];

/// The binary with an empty environment, in the directory of the test documents.
fn mcpact(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mcpact"));
    command
        .args(args)
        .env_clear()
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/documents"));
    command
}

fn run(args: &[&str]) -> Output {
    mcpact(args).stdin(Stdio::null()).output().unwrap()
}

fn run_with_stdin(args: &[&str], input: &str) -> Output {
    let mut child = mcpact(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(input.as_bytes()).unwrap();
    drop(stdin);
    child.wait_with_output().unwrap()
}

/// Exit code, stdout and stderr as one text.
fn seen(output: &Output) -> String {
    format!(
        "exit code {}\n--- stdout\n{}--- stderr\n{}",
        output.status.code().unwrap(),
        String::from_utf8(output.stdout.clone()).unwrap(),
        String::from_utf8(output.stderr.clone()).unwrap(),
    )
}

fn json(args: &[&str]) -> Value {
    serde_json::from_slice(&run(args).stdout).unwrap()
}

macro_rules! snapshots {
    ($($(#[$doc:meta])* $name:ident: $($arg:literal)*;)+) => {
        $(
            $(#[$doc])*
            #[test]
            fn $name() {
                insta::assert_snapshot!(seen(&run(&[$($arg),*])));
            }
        )+
    };
}

snapshots! {
    help_without_a_command: ;
    help_mcpact: "--help";
    help_explain: "explain" "--help";
    unknown_command: "explian";

    examples: "explain";
    examples_with_all_methods: "explain" "--all";
    examples_as_json: "explain" "--json";
    examples_limited_to_a_revision: "explain" "--revision" "2024-11-05";
    modern_pair: "explain" "--client" "modern-request.json" "--server" "discover-result.json";
    bare_capabilities: "explain" "--client" "bare-client.json" "--server" "discover-result.json";
    wrong_types_are_ignored: "explain" "--server" "wrongly-typed.json";
    profile_requires_capabilities:
        "explain" "--profile" "erlmcp" "--revision" "2025-06-18" "--client" "bare-client.json";
}

// U5: each refusal shows both offers, the cause and possible fixes.
snapshots! {
    refused_between_eras: "explain" "--client" "modern-only.json";
    refused_between_eras_as_json: "explain" "--server" "modern-only.json" "--json";
    refused_unknown_client_version: "explain" "--client" "future.json";
    refused_unknown_server_version: "explain" "--server" "future.json";
    refused_by_version_range: "explain" "--profile" "erlmcp";
    refused_by_exact_version: "explain" "--profile" "mcpv-strict";
    refused_wrong_type: "explain" "--server" "wrongly-typed.json" "--strict";
}

snapshots! {
    missing_document: "explain" "--client" "missing.json";
    document_not_json: "explain" "--server" "not-json.json";
    document_is_an_array: "explain" "--server" "array.json";
    document_is_a_config: "explain" "--client" "other-config.json";
    document_with_invalid_field: "explain" "--client" "wrong-member.json";
    document_is_an_error_response: "explain" "--server" "error-response.json";
    swapped_documents: "explain" "--client" "discover-result.json" "--server" "modern-request.json";
    both_documents_from_stdin: "explain" "--client" "-" "--server" "-";
    misspelled_revision: "explain" "--revision" "2025-06-81";
    unknown_revision: "explain" "--revision" "latest";
    unknown_profile: "explain" "--profile" "strict";
}

#[test]
fn version_is_the_package_version() {
    let output = run(&["--version"]);
    let version = concat!("mcpact ", env!("CARGO_PKG_VERSION"), "\n");
    assert_eq!(output.stdout, version.as_bytes());
}

#[test]
fn document_is_read_from_stdin() {
    let output = run_with_stdin(&["explain", "--client", "-"], r#"{"roots": {}}"#);
    insta::assert_snapshot!(seen(&output));
}

#[test]
fn invalid_document_on_stdin_is_rejected() {
    let output = run_with_stdin(&["explain", "--server", "-"], "{\"tools\": }");
    insta::assert_snapshot!(seen(&output));
}

/// N23, C13: a server that lists its versions in the capabilities speaks only these.
#[test]
fn vendor_extra_limits_the_versions_of_a_server() {
    let server = r#"{"supportedProtocolVersions": ["2024-11-05"], "maxBatchSize": 10,
        "logging": {"levels": ["debug", "info", "warn", "error"]}, "prompts": {"listChanged": true}}"#;
    for document in [
        server.to_owned(),
        format!(r#"{{"capabilities": {server}}}"#),
    ] {
        let output = run_with_stdin(
            &[
                "explain",
                "--json",
                "--server",
                "-",
                "--client",
                "bare-client.json",
            ],
            &document,
        );
        let told: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(told["revision"], "2024-11-05", "{told}");
        assert_eq!(told["server"]["speaks"], serde_json::json!(["2024-11-05"]));
    }
}

#[test]
fn byte_order_mark_is_ignored() {
    let output = run_with_stdin(&["explain", "--client", "-"], "\u{feff}{}");
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn invalid_utf8_is_reported_with_its_position() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("latin.json");
    std::fs::write(&file, b"{\n \"\xe9\": 1}").unwrap();
    let output = run(&["explain", "--client", file.to_str().unwrap()]);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stderr.contains("invalid UTF-8 at line 2, column 3"),
        "{stderr}"
    );
}

#[test]
fn output_to_a_pipe_has_no_colour() {
    let usual = run(&["explain"]);
    let colourless = mcpact(&["explain"]).env("NO_COLOR", "1").output().unwrap();
    assert_eq!(usual.stdout, colourless.stdout);
    assert!(!usual.stdout.contains(&0x1b));
}

#[test]
fn width_follows_columns() {
    let narrow = mcpact(&["explain"]).env("COLUMNS", "60").output().unwrap();
    let wide = mcpact(&["explain"]).env("COLUMNS", "100").output().unwrap();
    let widest = |output: &Output| {
        let text = String::from_utf8(output.stdout.clone()).unwrap();
        text.lines().map(|line| line.chars().count()).max().unwrap()
    };
    assert!(widest(&narrow) < widest(&wide));
    assert!(widest(&wide) <= 100);
}

#[test]
fn control_characters_in_names_are_escaped() {
    let output = run(&["explain", "--client", "escape.json"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("evil\\u{1b}[2J 1"));
    assert!(!text.contains('\u{1b}'));
}

#[test]
fn closed_stdout_is_not_an_error() {
    let mut child = mcpact(&["explain", "--json", "--client", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The program waits for its document, so stdout closes before anything is written.
    drop(child.stdout.take());
    child.stdin.take().unwrap().write_all(b"{}").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(output.stderr.is_empty());
}

#[cfg(target_os = "linux")]
#[test]
fn full_disk_is_an_error() {
    let full = std::fs::File::create("/dev/full").unwrap();
    let output = mcpact(&["explain"])
        .stdin(Stdio::null())
        .stdout(full)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
        .wait_with_output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(
        stderr.starts_with("error: failed to write the output\n"),
        "{stderr}"
    );
}

/// N33, U1: the trail has both declarations, the selected version, every dropped capability with its
/// reason, and the result. The report has the trimmed capabilities.
#[test]
fn trail_records_the_negotiation() {
    let report = json(&["explain", "--json"]);
    let events = report["trail"].as_array().unwrap();
    let of = |name: &str| -> Vec<&Value> {
        let named = events.iter().filter(|event| event["event"] == name);
        named.collect()
    };
    let declared = of("declared");
    assert_eq!(declared[0]["side"], "client");
    assert_eq!(declared[0]["versions"][0], "2025-11-25");
    assert_eq!(declared[0]["capabilities"], report["client"]["declared"]);
    assert_eq!(declared[1]["side"], "server");
    assert_eq!(declared[1]["capabilities"], report["server"]["declared"]);
    assert_eq!(of("selected")[0]["revision"], "2025-06-18");
    assert_eq!(of("selected")[0]["how"], "counter-offered");
    let dropped: Vec<&str> = of("dropped")
        .iter()
        .map(|event| {
            assert!(!event["why"].as_str().unwrap().is_empty());
            event["path"].as_str().unwrap()
        })
        .collect();
    for path in ["sampling.tools", "elicitation.url", "tasks"] {
        assert!(dropped.contains(&path), "{path}");
    }
    assert_eq!(events.last().unwrap()["event"], "agreed");
    let trimmed = report["trimmed"]["client"].as_array().unwrap();
    assert!(trimmed.iter().any(|one| one["path"] == "sampling.tools"));
    assert!(report["client"]["sent"]["sampling"]["tools"].is_null());
}

/// In every revision.
#[test]
fn every_denied_method_has_reason_remedy_and_page() {
    let mut closed = 0;
    for revision in REVISIONS {
        let report = json(&["explain", "--json", "--revision", revision]);
        for row in report["methods"].as_array().unwrap() {
            if row["verdict"] == "open" {
                assert!(row["remedy"].is_null(), "{row}");
                continue;
            }
            closed += 1;
            for member in ["reason", "explanation", "remedy", "page"] {
                assert!(!row[member].as_str().unwrap().is_empty(), "{row}");
            }
            if row["reason"] == "undeclared" {
                let explanation = row["explanation"].as_str().unwrap();
                let capability = row["capability"].as_str().unwrap();
                assert!(explanation.contains(capability), "{row}");
                assert!(
                    explanation.contains("client") || explanation.contains("server"),
                    "{row}"
                );
            }
        }
    }
    assert!(closed > 0);
}

/// U5: in JSON as in text.
#[test]
fn every_refusal_has_reason_explanation_and_remedy() {
    let runs: [&[&str]; 5] = [
        &["--client", "modern-only.json"],
        &["--client", "future.json"],
        &["--server", "future.json"],
        &["--profile", "mcpv-strict"],
        &["--server", "wrongly-typed.json", "--strict"],
    ];
    for args in runs {
        let output = run(&[&["explain", "--json"], args].concat());
        assert_eq!(output.status.code(), Some(6), "{args:?}");
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(report["outcome"], "refused");
        let refusal = &report["refusal"];
        for member in ["reason", "explanation"] {
            assert!(!refusal[member].as_str().unwrap().is_empty(), "{args:?}");
        }
        assert!(!refusal["remedies"].as_array().unwrap().is_empty());
        assert!(refusal["code"].is_i64());
        assert_eq!(
            report["trail"].as_array().unwrap().last().unwrap()["event"],
            "refused"
        );
    }
}

#[test]
fn agreed_and_refused_reports_have_the_same_fields() {
    let names =
        |report: &Value| -> Vec<String> { report.as_object().unwrap().keys().cloned().collect() };
    let agreed = json(&["explain", "--json"]);
    let refused = json(&["explain", "--json", "--profile", "mcpv-strict"]);
    assert_eq!(names(&agreed), names(&refused));
}

/// Returns arguments and output of each `console` block of a manual page.
fn shown_runs(manual: &str) -> Vec<(Vec<&str>, &str)> {
    let blocks = manual.split("```console\n$ mcpact ").skip(1);
    blocks
        .map(|block| {
            let (block, _) = block.split_once("```").unwrap();
            let (args, shown) = block.split_once('\n').unwrap();
            (args.split(' ').collect(), shown)
        })
        .collect()
}

#[test]
fn manual_examples_match_the_output() {
    let manual = include_str!("../../../docs/manual/explain.md");
    let runs = shown_runs(manual);
    assert!(!runs.is_empty());
    for (args, shown) in runs {
        let output = run(&args);
        let mut rest = std::str::from_utf8(&output.stdout).unwrap();
        for part in shown.split("…\n") {
            let at = rest
                .find(part)
                .unwrap_or_else(|| panic!("`mcpact {}` does not print\n{part}", args.join(" ")));
            rest = &rest[at + part.len()..];
        }
    }
}
