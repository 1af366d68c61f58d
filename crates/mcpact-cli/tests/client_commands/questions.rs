//! Questions of a server without a terminal: declined, or answered from a file.

use crate::harness::Harness;

#[test]
fn question_without_a_terminal_is_declined_with_a_note() {
    let harness = Harness::new();
    harness.everywhere("call", &["test_elicitation", "message=Who?"], |seen| {
        let note = seen.stderr.clone();
        assert!(
            note.starts_with("warning: declined a question of "),
            "{note}"
        );
        assert!(
            note.contains("Who?") && note.contains("--answer FILE"),
            "{note}"
        );
        assert_eq!(seen.ok(), "User response: action=decline, content=null\n");
    });
}

#[test]
fn questions_are_answered_from_a_file() {
    let harness = Harness::new();
    harness.write("one.json", r#"{"username": "ada", "email": "a@b.example"}"#);
    let call = ["test_elicitation", "message=Who?", "--answer", "one.json"];
    harness.everywhere("call", &call, |seen| {
        assert_eq!(seen.stderr, "");
        let expected = "User response: action=accept, content={\"username\":\"ada\",\"email\":\"a@b.example\"}\n";
        assert_eq!(seen.ok(), expected);
    });
    harness.write("two.json", r#"[{"name": "Ada"}, {"color": "red"}]"#);
    let call = [
        "test_input_required_result_multi_round",
        "--answer",
        "two.json",
    ];
    harness.everywhere("call", &call, |seen| {
        let out = seen.ok();
        assert!(out.contains("Ada") && out.contains("red"), "{out}");
    });
    harness.write("short.json", r#"[{"action": "cancel"}]"#);
    let call = [
        "call",
        "test_elicitation",
        "message=Who?",
        "--answer",
        "short.json",
    ];
    let out = harness.at_stdio(&call).ok();
    assert_eq!(out, "User response: action=cancel, content=null\n");
}

/// Defaults of the form fill the rest.
#[test]
fn missing_answers_have_the_defaults_of_the_form() {
    let harness = Harness::new();
    harness.write("a.json", r#"{"age": 7}"#);
    let call = [
        "call",
        "test_elicitation_sep1034_defaults",
        "--answer",
        "a.json",
    ];
    let out = harness.at_stdio(&call).ok();
    assert!(
        out.contains("\"name\":\"John Doe\"") && out.contains("\"age\":7"),
        "{out}"
    );
}

/// Exit code 2: the answer is not sent.
#[test]
fn answers_that_do_not_fit_are_reported() {
    let harness = Harness::new();
    harness.write("wrong.json", r#"{"username": 7}"#);
    let call = ["test_elicitation", "message=Who?", "--answer", "wrong.json"];
    harness.everywhere("call", &call, |seen| {
        let stderr = seen.failed(2);
        assert!(
            stderr.starts_with("error: cannot answer from `wrong.json`: "),
            "{stderr}"
        );
    });
    harness.write("no.json", "yes");
    for (file, expected) in [
        ("no.json", "cannot answer from `no.json`"),
        ("missing.json", "failed to read `missing.json`"),
    ] {
        let call = ["call", "test_elicitation", "message=a", "--answer", file];
        let stderr = harness.at_stdio(&call).failed(2);
        assert!(stderr.contains(expected), "{stderr}");
    }
}

/// Values of a form are no consent to visit a URL; only an explicit answer is.
#[test]
fn url_is_shown_and_declined_unless_the_file_accepts_it() {
    let harness = Harness::new();
    harness.write("form.json", r#"{"name": "Ada"}"#);
    harness.write("accept.json", r#"{"action": "accept"}"#);
    for (answers, expected) in [
        (&[][..], "decline"),
        (&["--answer", "form.json"], "decline"),
        (&["--answer", "accept.json"], "accept"),
    ] {
        let call = [&["test_url_elicitation"], answers].concat();
        harness.everywhere("call", &call, |seen| {
            let shown = "  URL:  https://sign-in.example/\n  host: sign-in.example\n";
            assert!(seen.stderr.contains(shown), "{}", seen.shown());
            assert_eq!(
                seen.ok(),
                format!("User response: action={expected}, content=null\n")
            );
        });
    }
}

/// Sampling is not declared: the server can tell, and the user gets a hint.
#[test]
fn sampling_is_refused_with_a_hint() {
    let harness = Harness::new();
    harness.everywhere("call", &["test_sampling", "prompt=x"], |seen| {
        let stderr = seen.failed(5);
        assert!(
            stderr.contains("hint: this command has no language model"),
            "{stderr}"
        );
    });
}

/// Roots are offered only on request.
#[test]
fn roots_are_offered_on_request() {
    let harness = Harness::new();
    let folder = harness.path().canonicalize().unwrap();
    let tool = "test_input_required_result_list_roots";
    harness.everywhere("call", &[tool, "--root", "."], |seen| {
        assert_eq!(seen.ok(), format!("1 roots: file://{}\n", folder.display()));
    });
    harness.everywhere("call", &[tool], |seen| drop(seen.failed(5)));
    let missing = harness
        .at_stdio(&["call", tool, "--root", "missing"])
        .failed(2);
    assert!(missing.contains("`missing` is not a folder"), "{missing}");
}
