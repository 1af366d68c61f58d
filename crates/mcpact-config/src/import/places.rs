//! Relative places, which mean something else beside another config.

use std::path::Path;

use crate::policy::program_name;
use crate::problem::Findings;
use crate::secret::Filled;
use crate::source::Span;
use crate::surroundings::Surroundings;
use crate::tree::{Member, Node, Table, Value};

/// The keys whose relative paths start at the folder of the config.
const PATHS: [&str; 2] = ["env_file", "cwd"];

/// Programs that run the script which is the first thing that they are told.
const INTERPRETERS: &[&str] = &[
    "node", "deno", "bun", "tsx", "ts-node", "python", "pypy", "uv", "ruby", "perl", "php", "lua",
    "bash", "sh", "zsh",
];

/// How names of scripts end.
const SCRIPTS: &[&str] = &[
    "js", "mjs", "cjs", "ts", "mts", "cts", "tsx", "py", "pyz", "rb", "pl", "php", "lua", "sh",
    "jar", "dll", "wasm",
];

/// Makes every place in the servers of a native tree one that is the same beside any config.
pub(super) fn settle(root: &mut Node, surroundings: &dyn Surroundings, findings: &mut Findings) {
    let Value::Table(root) = &mut root.value else {
        return;
    };
    let servers = root.0.iter_mut().filter(|member| member.key == "servers");
    for servers in servers {
        let Value::Table(servers) = &mut servers.node.value else {
            continue;
        };
        for server in &mut servers.0 {
            if let Value::Table(table) = &mut server.node.value {
                settle_server(&server.key, server.key_span, table, surroundings, findings);
            }
        }
    }
}

fn settle_server(
    name: &str,
    span: Span,
    server: &mut Table,
    surroundings: &dyn Surroundings,
    findings: &mut Findings,
) {
    let folder = surroundings.folder();
    for member in &mut server.0 {
        if PATHS.contains(&member.key.as_str())
            && let Value::Text(path) = &mut member.node.value
            && is_relative(path.value())
        {
            let whole = Path::new(&folder).join(path.value());
            *path = Filled::from(&*whole.to_string_lossy());
        }
    }
    let is_settled = server.member("cwd").is_some();
    if is_settled || !names_places(server, surroundings) {
        return;
    }
    let message = format!("server `{name}` names places that are relative: it runs in `{folder}`");
    findings.note(span, message);
    let node = Node::new(span, Value::Text(Filled::from(folder.as_str())));
    server.0.push(Member::new(String::from("cwd"), span, node));
}

/// Whether what a program is depends on where it runs, or what it is told.
fn names_places(server: &Table, surroundings: &dyn Surroundings) -> bool {
    let told = |key: &str| server.member(key).map(|member| &member.node);
    let program = told("command").and_then(Node::text);
    program.is_some_and(|program| {
        let program = program.value();
        program.contains('/') && is_relative(program)
    }) || told("args").is_some_and(|args| any(args, &|arg| is_place(arg, surroundings)))
        || names_script(&words(server))
        || told("env").is_some_and(|env| any(env, &|value| is_dotted(value)))
}

/// The program and its arguments.
fn words(server: &Table) -> Vec<&str> {
    let args = server.member("args").map(|args| &args.node.value);
    let args = match args {
        Some(Value::List(items)) => items.as_slice(),
        Some(_) | None => &[],
    };
    let program = server.member("command").map(|program| &program.node);
    let words = program.into_iter().chain(args);
    words
        .filter_map(|word| Some(word.text()?.value()))
        .collect()
}

/// Whether one of the words is a script at a relative place. It need not be there: many are built first.
fn names_script(words: &[&str]) -> bool {
    let is_path =
        |word: &str| is_relative(word) && !word.starts_with(['-', '@']) && !word.contains("://");
    let has_ending = |word: &str| {
        let ending = Path::new(word)
            .extension()
            .and_then(|ending| ending.to_str());
        ending.is_some_and(|ending| SCRIPTS.contains(&ending))
    };
    let run = words
        .iter()
        .enumerate()
        .filter(|(_, word)| is_interpreter(word));
    let mut run = run.filter_map(|(at, _)| {
        let mut behind = words[at + 1..].iter();
        behind.find(|word| !word.starts_with('-') && **word != "run")
    });
    words
        .iter()
        .skip(1)
        .any(|word| is_path(word) && has_ending(word))
        || run.any(|word| is_path(word) && word.contains('/'))
}

fn is_interpreter(word: &str) -> bool {
    let name = program_name(word);
    let name = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    INTERPRETERS.contains(&name)
}

fn any(node: &Node, is: &dyn Fn(&str) -> bool) -> bool {
    match &node.value {
        Value::Text(text) => is(text.value()),
        Value::List(items) => items.iter().any(|item| any(item, is)),
        Value::Table(table) => table.0.iter().any(|member| any(&member.node, is)),
        Value::Null | Value::Flag(_) | Value::Whole(_) | Value::Fraction(_) => false,
    }
}

/// Whether an argument is a place: by how it is written, or because something is there.
fn is_place(arg: &str, surroundings: &dyn Surroundings) -> bool {
    let value = match arg.split_once('=') {
        Some((option, value)) if option.starts_with('-') => value,
        Some(_) | None => arg,
    };
    let path = surroundings.path(value);
    is_dotted(value)
        || (!value.is_empty()
            && is_relative(value)
            && surroundings.has_place(&path.to_string_lossy()))
}

fn is_dotted(text: &str) -> bool {
    matches!(text.split('/').next(), Some("." | ".."))
}

/// Whether a path starts nowhere; a variable may be anything.
fn is_relative(path: &str) -> bool {
    Path::new(path).is_relative() && !path.starts_with("${")
}
