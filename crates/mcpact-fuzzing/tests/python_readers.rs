//! The rule about ambiguous messages, compared with the JSON readers of Python.

use std::io::{self, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::{fs, thread};

use mcpact_spec::{Method, ProtocolKeys};
use mcpact_wire::ambiguity::check;
use mcpact_wire::scan;
use serde_json::{Value, json};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/readers.py");

/// Returns a table as an object: each key with the table below it.
fn table(keys: &'static ProtocolKeys) -> Value {
    let row = |name| (name, keys.find(name).flatten());
    let rows = keys.names().map(row);
    rows.map(|(name, below)| (name.to_owned(), below.map_or(Value::Null, shallow)))
        .collect()
}

/// Tables of results contain themselves; two levels are enough here.
fn shallow(keys: &'static ProtocolKeys) -> Value {
    let below = |name| keys.find(name).flatten().map_or(Value::Null, names);
    keys.names()
        .map(|name| (name.to_owned(), below(name)))
        .collect()
}

fn names(keys: &'static ProtocolKeys) -> Value {
    keys.names()
        .map(|name| (name.to_owned(), Value::Null))
        .collect()
}

/// Well-formed texts of the corpora, and the parameters in those that are requests.
fn texts() -> io::Result<Vec<String>> {
    let corpora = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    let mut all = Vec::new();
    for corpus in ["ambiguity", "envelope", "scanner"] {
        for entry in fs::read_dir(corpora.join(corpus))? {
            let Ok(text) = String::from_utf8(fs::read(entry?.path())?) else {
                continue;
            };
            if scan::check(&text).is_ok() {
                let params = mcpact_wire::raw::member(&text, "params").map(str::to_owned);
                all.push(text);
                all.extend(params);
            }
        }
    }
    Ok(all)
}

/// Python's readers disagree about nothing that the rule lets pass, and it refuses nothing else.
#[test]
fn python_agrees_about_every_text_of_the_corpora() -> io::Result<()> {
    let texts = texts()?;
    let keys = Method::ToolsCall.param_keys();
    let tasks: Vec<String> = texts
        .iter()
        .map(|text| json!({"text": text, "keys": table(keys)}).to_string())
        .collect();
    let mut python = Command::new("python3")
        .arg(SCRIPT)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let stdin = python.stdin.take();
    let writer = thread::spawn(move || -> io::Result<()> {
        match stdin {
            Some(mut stdin) => stdin.write_all((tasks.join("\n") + "\n").as_bytes()),
            None => Ok(()),
        }
    });
    let output = python.wait_with_output()?;
    assert!(writer.join().is_ok_and(|written| written.is_ok()));
    let verdicts = String::from_utf8_lossy(&output.stdout).into_owned();
    let verdicts: Vec<&str> = verdicts.lines().collect();
    assert_eq!(verdicts.len(), texts.len());
    let mut compared = 0;
    for (text, verdict) in texts.iter().zip(verdicts) {
        let expected = match check(text, keys) {
            Ok(()) => "clear",
            Err(_) => "ambiguous",
        };
        // Python reads no deeper than its stack, and no numbers of many thousand digits.
        if verdict != "unreadable" {
            assert_eq!(verdict, expected, "{text}");
            compared += 1;
        }
    }
    assert!(compared > 60, "{compared}");
    Ok(())
}
