use super::*;
use crate::local_host::{ProgramFacts, ProgramLookup};
use crate::problem::Severity;
use crate::secret::ExpandedText;

struct TestHost;

impl HostEnvironment for TestHost {
    fn variable(&self, name: &str) -> Option<String> {
        let set = [
            ("HOME", "/home/ada"),
            ("TOKEN", "hunter2"),
            ("EMPTY", ""),
            ("EVIL", "a\", \"b\": \"${TOKEN}"),
        ];
        set.iter()
            .find(|(set, _)| *set == name)
            .map(|(_, value)| (*value).to_owned())
    }

    #[cfg(unix)]
    fn raw_variable(&self, name: &str) -> Option<OsString> {
        use std::os::unix::ffi::OsStringExt as _;
        match name {
            "BYTES" => Some(OsString::from_vec(vec![b'a', 0xff])),
            name => self.variable(name).map(OsString::from),
        }
    }

    fn folder(&self) -> String {
        String::from("/work/shop")
    }

    fn file(&self, path: &str) -> Result<String, String> {
        match path {
            "/run/key" => Ok(String::from("s3cret\n")),
            "/home/ada/key" => Ok(String::from("from home")),
            _ => Err(String::from("no such file")),
        }
    }

    fn has_folder(&self, path: &str) -> bool {
        path.starts_with("/work/shop")
    }

    fn exists(&self, path: &str) -> bool {
        self.has_folder(path)
    }

    fn writable_by_all(&self, _: &str) -> Option<String> {
        None
    }

    fn program(&self, _: &ProgramLookup<'_>) -> ProgramFacts {
        ProgramFacts::default()
    }
}

/// Expands a text and returns the problems.
fn expanded(
    text: &str,
    variable_syntax: VariableSyntax,
    missing: OnMissing,
) -> (ExpandedText, Vec<String>, Option<Severity>) {
    let source = Source::new("a", format!("x = \"{text}\""));
    let mut node = Node::new(
        Span::new(4, source.text.len()),
        Value::Text(ExpandedText::from(text)),
    );
    let mut findings = Findings::default();
    let expansion = Expansion {
        source: &source,
        host: &TestHost,
        variable_syntax,
        mode: ExpansionMode::Values(missing),
    };
    expansion.run(&mut node, &mut findings);
    let problems = findings.finish();
    let lines = problems
        .iter()
        .map(|problem| problem.in_one_line(&source))
        .collect();
    let worst = problems.iter().map(|problem| problem.severity).max();
    (node.text().unwrap().clone(), lines, worst)
}

/// All native forms.
#[test]
fn variables_are_expanded() {
    for (text, expected) in [
        ("plain", "plain"),
        ("Bearer ${TOKEN}!", "Bearer hunter2!"),
        ("${env:TOKEN}${TOKEN}", "hunter2hunter2"),
        ("${NOPE:-x y}", "x y"),
        ("${EMPTY:-x}", "x"),
        ("${EMPTY}", ""),
        ("${env:NOPE:-}", ""),
        ("${userHome}/docs", "/home/ada/docs"),
        ("${workspaceFolder}/a", "/work/shop/a"),
        ("${workspaceFolderBasename}", "shop"),
        ("${file:/run/key}", "s3cret"),
        ("a${$}${TOKEN}${$}{x}", "a$hunter2${x}"),
        (
            "$${TOKEN} $HOME %HOME% {env:HOME} $",
            "${TOKEN} $HOME %HOME% {env:HOME} $",
        ),
    ] {
        let (filled, found, _) = expanded(text, VariableSyntax::Dollar, OnMissing::Refuse);
        assert_eq!(filled.value(), expected, "{text}");
        assert_eq!(filled.written(), text);
        assert!(found.is_empty(), "{found:?}");
    }
}

#[test]
fn syntaxes_of_other_clients_are_expanded() {
    let (filled, ..) = expanded(
        "{env:TOKEN} ${TOKEN} {x}",
        VariableSyntax::Braces,
        OnMissing::Refuse,
    );
    assert_eq!(filled.value(), "hunter2 hunter2 {x}");
    let (filled, ..) = expanded("{file:~/key}", VariableSyntax::Braces, OnMissing::Refuse);
    assert_eq!(filled.value(), "from home");
    let (filled, ..) = expanded(
        "$TOKEN/${TOKEN} $5 $",
        VariableSyntax::Bare,
        OnMissing::Refuse,
    );
    assert_eq!(filled.value(), "hunter2/hunter2 $5 $");
    let (filled, ..) = expanded(
        "pa$$TOKEN $${TOKEN} $$",
        VariableSyntax::Bare,
        OnMissing::Refuse,
    );
    assert_eq!(filled.value(), "pa$hunter2 $hunter2 $$");
}

/// Errors carry a position and never show the value of a variable.
#[test]
fn errors_have_a_position() {
    for (text, expected) in [
        (
            "ab ${NOPE}",
            "a:1:9: error: variable `NOPE` is not set; set it, or write `${NOPE:-default}`",
        ),
        ("${env:NOPE}", "a:1:6: error: variable `NOPE` is not set"),
        (
            "${input:key}",
            "a:1:6: error: `${input:key}` prompts the user",
        ),
        (
            "${file:/nope}",
            "a:1:6: error: cannot read `/nope`: no such file",
        ),
        ("${a b}", "a:1:6: error: `a b` is not a variable"),
        ("${}", "a:1:6: error: `` is not a variable"),
        (
            "${TOKEN:-a${NOPE}b}",
            "a:1:6: error: variables cannot be nested; write a plain default",
        ),
        ("x ${TOKEN", "a:1:8: error: missing closing brace"),
    ] {
        let (_, found, worst) = expanded(text, VariableSyntax::Dollar, OnMissing::Refuse);
        assert_eq!(worst, Some(Severity::Error), "{text}");
        assert!(found[0].starts_with(expected), "{found:?}");
    }
    let (filled, _, worst) = expanded("${NOPE}", VariableSyntax::Dollar, OnMissing::Keep);
    assert_eq!(
        (filled.value(), worst),
        ("${NOPE}", Some(Severity::Warning))
    );
}

/// The value of a variable is not expanded again.
#[test]
fn values_are_not_expanded_again() {
    let (filled, found, _) = expanded("${EVIL}", VariableSyntax::Dollar, OnMissing::Refuse);
    assert_eq!(filled.value(), "a\", \"b\": \"${TOKEN}");
    assert_eq!(format!("{filled} {filled:?}"), "${EVIL} \"${EVIL}\"");
    assert!(found.is_empty());
}

/// An import keeps the names of variables.
#[test]
fn names_are_converted_to_the_native_syntax() {
    for (text, variable_syntax, expected) in [
        (
            "a ${TOKEN} ${NOPE:-x} $${b}",
            VariableSyntax::Dollar,
            "a ${TOKEN} ${NOPE:-x} $${b}",
        ),
        (
            "{env:TOKEN} {file:/a} {file:~/a}",
            VariableSyntax::Braces,
            "${env:TOKEN} ${file:/a} ${file:/home/ada/a}",
        ),
        (
            "$TOKEN-${userHome}",
            VariableSyntax::Bare,
            "${TOKEN}-${userHome}",
        ),
        ("${input:api-key}", VariableSyntax::Dollar, "${API_KEY}"),
    ] {
        let source = Source::new("a", text);
        let mut node = Node::new(Span::default(), Value::Text(ExpandedText::from(text)));
        let expansion = Expansion {
            source: &source,
            host: &TestHost,
            variable_syntax,
            mode: ExpansionMode::Names(TargetFolder::Same),
        };
        expansion.run(&mut node, &mut Findings::default());
        assert_eq!(node.text().unwrap().value(), expected);
    }
}

/// Hints use the syntax of the client.
#[test]
fn hints_use_the_syntax_of_the_client() {
    for (text, variable_syntax, remedy, not) in [
        (
            "${NOPE}",
            VariableSyntax::Dollar,
            "write `${NOPE:-default}`",
            "import",
        ),
        (
            "$NOPE",
            VariableSyntax::Bare,
            "`mcpact import` this config",
            "or write",
        ),
        (
            "{env:NOPE}",
            VariableSyntax::Braces,
            "`mcpact import` this config",
            "or write",
        ),
        (
            "${a b}",
            VariableSyntax::Bare,
            "use `$NAME` or `${NAME}`",
            "userHome",
        ),
        (
            "{env:a b}",
            VariableSyntax::Braces,
            "use `{env:NAME}` or `{file:PATH}`",
            "userHome",
        ),
        ("${A", VariableSyntax::Bare, "add `}`", "$${"),
    ] {
        let (_, told, _) = expanded(text, variable_syntax, OnMissing::Refuse);
        assert!(told[0].contains(remedy), "{text}: {told:?}");
        assert!(!told[0].contains(not), "{text}: {told:?}");
    }
}

/// A variable that is not UTF-8 is an error, even with a default.
#[cfg(unix)]
#[test]
fn non_utf8_variables_are_errors() {
    for text in ["${BYTES}", "${BYTES:-default}", "${env:BYTES}"] {
        for missing in [OnMissing::Refuse, OnMissing::Keep] {
            let (_, told, worst) = expanded(text, VariableSyntax::Dollar, missing);
            assert_eq!(worst, Some(Severity::Error), "{text}");
            let expected = "variable `BYTES` is not valid UTF-8; set it to a UTF-8 value";
            assert!(told[0].ends_with(expected), "{text}: {told:?}");
        }
    }
}

#[test]
fn values_of_variables_are_recorded() {
    for (written, expected) in [
        ("plain", &[][..]),
        ("${TOKEN}", &["hunter2"]),
        ("--key=${TOKEN}!", &["hunter2"]),
        ("${TOKEN}/${NOPE:-two}", &["hunter2", "two"]),
        ("${TOKEN}${HOME}", &["hunter2", "/home/ada"]),
    ] {
        let text = format!("[servers.a]\ncommand = \"a\"\nargs = [\"{written}\"]");
        let catalog = crate::read::tests::taken_from("mcpact.toml", &text);
        let crate::Launch::Command(command) = &catalog.servers["a"].launch else {
            panic!("no command");
        };
        let values: Vec<&str> = command.args[0].variable_values().collect();
        assert_eq!(values, expected, "{written}");
    }
}
