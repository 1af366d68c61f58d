//! Resolution of relative paths in imported servers.

use std::path::Path;

use crate::local_host::HostEnvironment;
use crate::policy::runs_scripts;
use crate::problem::Findings;
use crate::secret::ExpandedText;
use crate::source::Span;
use crate::tree::{Member, Node, Table, Value};

/// Keys with paths relative to the config.
const PATHS: [&str; 2] = ["env_file", "cwd"];

/// Extensions of scripts.
const SCRIPTS: &[&str] = &[
    "js", "mjs", "cjs", "ts", "mts", "cts", "tsx", "py", "pyz", "rb", "pl", "php", "lua", "sh",
    "jar", "dll", "wasm",
];

/// Makes all paths of a native tree independent of the folder of the config.
pub(super) fn resolve(root: &mut Node, host: &dyn HostEnvironment, findings: &mut Findings) {
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
                resolve_server(&server.key, server.key_span, table, host, findings);
            }
        }
    }
}

fn resolve_server(
    name: &str,
    span: Span,
    server: &mut Table,
    host: &dyn HostEnvironment,
    findings: &mut Findings,
) {
    let folder = host.folder();
    for member in &mut server.0 {
        if PATHS.contains(&member.key.as_str())
            && let Value::Text(path) = &mut member.node.value
            && is_relative(path.value())
        {
            let whole = Path::new(&folder).join(path.value());
            *path = ExpandedText::from(&*whole.to_string_lossy());
        }
    }
    let is_settled = server.member("cwd").is_some();
    if is_settled || !uses_relative_paths(server, host) {
        return;
    }
    let message = format!("server `{name}` uses relative paths: `cwd` is set to `{folder}`");
    findings.note(span, message);
    let node = Node::new(span, Value::Text(ExpandedText::from(folder.as_str())));
    server.0.push(Member::new(String::from("cwd"), span, node));
}

/// Returns whether the program, its arguments or its variables depend on the working directory.
fn uses_relative_paths(server: &Table, host: &dyn HostEnvironment) -> bool {
    let texts = |key: &str| match server.member(key).map(|member| &member.node.value) {
        Some(Value::Text(text)) => vec![text.value()],
        Some(Value::List(items)) => items.iter().filter_map(text_of).collect(),
        Some(Value::Table(table)) => {
            let members = table.0.iter();
            members.filter_map(|member| text_of(&member.node)).collect()
        }
        _ => Vec::new(),
    };
    let (program, args) = (texts("command"), texts("args"));
    program
        .iter()
        .any(|word| word.contains('/') && is_relative(word))
        || args.iter().any(|arg| is_relative_path(arg, host))
        || has_script(&[program, args].concat())
        || texts("env").iter().any(|value| is_dotted(value))
}

fn text_of(node: &Node) -> Option<&str> {
    Some(node.text()?.value())
}

/// Returns whether an argument is a relative script path. The file may not exist yet.
fn has_script(words: &[&str]) -> bool {
    let is_path =
        |word: &str| is_relative(word) && !word.starts_with(['-', '@']) && !word.contains("://");
    let has_ending = |word: &str| {
        let ending = Path::new(word).extension().and_then(|end| end.to_str());
        ending.is_some_and(|ending| SCRIPTS.contains(&ending))
    };
    let is_run = |at: usize| {
        let is_option = |word: &str| word.starts_with('-') || word == "run";
        let mut before = words[..at].iter().rev();
        before
            .find(|word| !is_option(word))
            .is_some_and(|word| runs_scripts(word))
    };
    let mut args = words.iter().enumerate().skip(1);
    args.any(|(at, word)| is_path(word) && (has_ending(word) || word.contains('/') && is_run(at)))
}

/// Returns whether an argument is a relative path: by its form, or because the file exists.
fn is_relative_path(arg: &str, host: &dyn HostEnvironment) -> bool {
    let value = match arg.split_once('=') {
        Some((option, value)) if option.starts_with('-') => value,
        Some(_) | None => arg,
    };
    let path = host.path(value);
    is_dotted(value)
        || (!value.is_empty() && is_relative(value) && host.exists(&path.to_string_lossy()))
}

fn is_dotted(text: &str) -> bool {
    matches!(text.split('/').next(), Some("." | ".."))
}

/// Returns whether a path is relative. Paths with variables are not.
fn is_relative(path: &str) -> bool {
    Path::new(path).is_relative() && !path.starts_with("${")
}
