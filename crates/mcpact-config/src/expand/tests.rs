use super::*;
use crate::problem::Severity;
use crate::surroundings::{ProgramFacts, Sought};

struct Desk;

impl Surroundings for Desk {
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

    fn has_place(&self, path: &str) -> bool {
        self.has_folder(path)
    }

    fn writable_by_all(&self, _: &str) -> Option<String> {
        None
    }

    fn program(&self, _: &Sought<'_>) -> ProgramFacts {
        ProgramFacts::default()
    }
}

/// The text with its variables filled in, and what was found.
fn expanded(
    text: &str,
    spelling: Spelling,
    missing: OnMissing,
) -> (Filled, Vec<String>, Option<Severity>) {
    let source = Source::new("a", format!("x = \"{text}\""));
    let mut node = Node::new(
        Span::new(4, source.text.len()),
        Value::Text(Filled::from(text)),
    );
    let mut findings = Findings::default();
    let expansion = Expansion {
        source: &source,
        surroundings: &Desk,
        spelling,
        filling: Filling::Values(missing),
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

/// Every spelling that configs use.
#[test]
fn variables_are_filled_in() {
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
        let (filled, found, _) = expanded(text, Spelling::Dollar, OnMissing::Refuse);
        assert_eq!(filled.value(), expected, "{text}");
        assert_eq!(filled.written(), text);
        assert!(found.is_empty(), "{found:?}");
    }
}

#[test]
fn clients_with_a_spelling_of_their_own_are_understood() {
    let (filled, ..) = expanded(
        "{env:TOKEN} ${TOKEN} {x}",
        Spelling::Braces,
        OnMissing::Refuse,
    );
    assert_eq!(filled.value(), "hunter2 hunter2 {x}");
    let (filled, ..) = expanded("{file:~/key}", Spelling::Braces, OnMissing::Refuse);
    assert_eq!(filled.value(), "from home");
    let (filled, ..) = expanded("$TOKEN/${TOKEN} $5 $", Spelling::Bare, OnMissing::Refuse);
    assert_eq!(filled.value(), "hunter2/hunter2 $5 $");
    let (filled, ..) = expanded("pa$$TOKEN $${TOKEN} $$", Spelling::Bare, OnMissing::Refuse);
    assert_eq!(filled.value(), "pa$hunter2 $hunter2 $$");
}

/// What is missing or wrong is an error with its place, and nothing that a variable holds is shown.
#[test]
fn what_is_missing_is_told_with_its_place() {
    for (text, expected) in [
        (
            "ab ${NOPE}",
            "a:1:9: error: the variable `NOPE` is not set; set it, or write `${NOPE:-default}`",
        ),
        (
            "${env:NOPE}",
            "a:1:6: error: the variable `NOPE` is not set",
        ),
        ("${input:key}", "a:1:6: error: `${input:key}` asks a person"),
        (
            "${file:/nope}",
            "a:1:6: error: `/nope` cannot be read: no such file",
        ),
        ("${a b}", "a:1:6: error: `a b` is no variable"),
        ("${}", "a:1:6: error: `` is no variable"),
        (
            "${TOKEN:-a${NOPE}b}",
            "a:1:6: error: a variable cannot stand in another one; write a plain default",
        ),
        (
            "x ${TOKEN",
            "a:1:8: error: this variable has no closing brace",
        ),
    ] {
        let (_, found, worst) = expanded(text, Spelling::Dollar, OnMissing::Refuse);
        assert_eq!(worst, Some(Severity::Error), "{text}");
        assert!(found[0].starts_with(expected), "{found:?}");
    }
    let (filled, _, worst) = expanded("${NOPE}", Spelling::Dollar, OnMissing::Keep);
    assert_eq!(
        (filled.value(), worst),
        ("${NOPE}", Some(Severity::Warning))
    );
}

/// What a variable holds is a value and nothing else, and is not expanded again.
#[test]
fn values_cannot_become_anything_else() {
    let (filled, found, _) = expanded("${EVIL}", Spelling::Dollar, OnMissing::Refuse);
    assert_eq!(filled.value(), "a\", \"b\": \"${TOKEN}");
    assert_eq!(format!("{filled} {filled:?}"), "${EVIL} \"${EVIL}\"");
    assert!(found.is_empty());
}

/// An import keeps the names of variables, not their values.
#[test]
fn names_may_be_kept_in_the_native_spelling() {
    for (text, spelling, expected) in [
        (
            "a ${TOKEN} ${NOPE:-x} $${b}",
            Spelling::Dollar,
            "a ${TOKEN} ${NOPE:-x} $${b}",
        ),
        (
            "{env:TOKEN} {file:/a} {file:~/a}",
            Spelling::Braces,
            "${env:TOKEN} ${file:/a} ${file:/home/ada/a}",
        ),
        ("$TOKEN-${userHome}", Spelling::Bare, "${TOKEN}-${userHome}"),
        ("${input:api-key}", Spelling::Dollar, "${API_KEY}"),
    ] {
        let source = Source::new("a", text);
        let mut node = Node::new(Span::default(), Value::Text(Filled::from(text)));
        let expansion = Expansion {
            source: &source,
            surroundings: &Desk,
            spelling,
            filling: Filling::Names(Shelf::Same),
        };
        expansion.run(&mut node, &mut Findings::default());
        assert_eq!(node.text().unwrap().value(), expected);
    }
}

/// What to do about a variable is said in the words of the client whose config it is.
#[test]
fn remedies_name_what_the_client_understands() {
    for (text, spelling, remedy, not) in [
        (
            "${NOPE}",
            Spelling::Dollar,
            "write `${NOPE:-default}`",
            "import",
        ),
        (
            "$NOPE",
            Spelling::Bare,
            "`mcpact import` this config",
            "or write",
        ),
        (
            "{env:NOPE}",
            Spelling::Braces,
            "`mcpact import` this config",
            "or write",
        ),
        (
            "${a b}",
            Spelling::Bare,
            "`$NAME` and `${NAME}` are",
            "userHome",
        ),
        (
            "{env:a b}",
            Spelling::Braces,
            "`{env:NAME}` and `{file:PATH}` are",
            "userHome",
        ),
        ("${A", Spelling::Bare, "close it", "$${"),
    ] {
        let (_, told, _) = expanded(text, spelling, OnMissing::Refuse);
        assert!(told[0].contains(remedy), "{text}: {told:?}");
        assert!(!told[0].contains(not), "{text}: {told:?}");
    }
}

/// A variable that is set but is no text is told as that, and no default takes its place.
#[cfg(unix)]
#[test]
fn what_is_no_text_is_not_taken_for_unset() {
    for text in ["${BYTES}", "${BYTES:-default}", "${env:BYTES}"] {
        for missing in [OnMissing::Refuse, OnMissing::Keep] {
            let (_, told, worst) = expanded(text, Spelling::Dollar, missing);
            assert_eq!(worst, Some(Severity::Error), "{text}");
            let expected =
                "the variable `BYTES` is set, but is no UTF-8 text; set it to a text in UTF-8";
            assert!(told[0].ends_with(expected), "{text}: {told:?}");
        }
    }
}
