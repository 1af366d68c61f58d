//! Search mode: size of the lists, and recall of the search compared with that of fastmcp over the same tools.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::tools::Tools;
use crate::checkout::Checkout;
use crate::failure::Failure;
use crate::interop::pair::limited;
use crate::python;
use crate::report;

/// Questions with the tools that answer them.
const QUESTIONS: &str = "interop/questions.json";
/// Client program.
const CLIENT: &str = "search.mjs";
/// The search of fastmcp.
const OTHER: &str = "interop/relays/fastmcp_search.py";
/// Timeout of each program.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Question and the tools that answer it.
#[derive(Deserialize)]
struct Question(String, Vec<String>);

/// Output of the client.
#[derive(Deserialize)]
struct Searched {
    /// Bytes of the list of all tools, and of that in search mode.
    bytes: [usize; 2],
    found: Vec<Vec<String>>,
}

/// Prints sizes and recall at 5; returns a finding if fastmcp finds more.
pub(super) fn compare(
    checkout: &Checkout,
    tools: &Tools,
    folder: &Path,
    url: &str,
) -> Result<Option<String>, Failure> {
    let questions = checkout.path(QUESTIONS);
    let listed = folder.join("tools.json");
    let mut client = Command::new(&tools.node);
    client.arg(tools.client(CLIENT));
    client.args(["--mode", "modern", "--url", url]);
    client.arg(&questions).arg(&listed);
    let ours: Searched = output(client, folder, "search")?;
    let pins = [String::from(python::FASTMCP)];
    let home = checkout.path(python::RELAYS);
    let mut other = Command::new(python::environment(checkout, &home, &pins)?);
    other.arg("-B").arg(checkout.path(OTHER));
    other.arg(&questions).arg(&listed);
    let theirs: Vec<Vec<String>> = output(other, folder, "fastmcp")?;
    let questions: Vec<Question> = parsed(&questions)?;
    let [all, few] = ours.bytes;
    let missed = missed(&questions, &ours.found);
    let (count, other) = (questions.len(), self::missed(&questions, &theirs).len());
    report::say(format_args!(
        "tools/list: {all} bytes, {few} in search mode; recall at 5: {} of {count}, fastmcp {} of {count}",
        count - missed.len(),
        count - other,
    ));
    let is_worse = missed.len() > other || few >= all;
    Ok(is_worse.then(|| {
        format!(
            "search is worse than fastmcp; missed: {}",
            missed.join(", ")
        )
    }))
}

fn missed<'a>(questions: &'a [Question], found: &[Vec<String>]) -> Vec<&'a str> {
    let all = questions.iter().enumerate();
    let missed = all.filter(|(at, Question(_, wanted))| {
        let found = found.get(*at);
        !found.is_some_and(|found| found.iter().any(|tool| wanted.contains(tool)))
    });
    missed.map(|(_, Question(text, _))| text.as_str()).collect()
}

/// Runs a program and parses what it prints.
fn output<T: DeserializeOwned>(command: Command, folder: &Path, name: &str) -> Result<T, Failure> {
    let output = folder.join(format!("{name}.out"));
    let ended = limited(
        command,
        TIMEOUT,
        &output,
        &folder.join(format!("{name}.log")),
    )?;
    match ended.success() {
        true => parsed(&output),
        false => Err(Failure::Findings {
            check: "crowd",
            lines: vec![format!("{name} failed ({ended})")],
            hint: "the logs are in `target/interop/crowd`",
        }),
    }
}

fn parsed<T: DeserializeOwned>(path: &Path) -> Result<T, Failure> {
    let text = fs::read_to_string(path).map_err(Failure::file(path))?;
    serde_json::from_str(&text).map_err(|source| Failure::Json {
        path: path.to_owned(),
        source,
    })
}
