//! Relative places, which mean something else beside another config.

use std::path::Path;

use crate::catalog::problem::Findings;
use crate::catalog::secret::Filled;
use crate::catalog::source::Span;
use crate::catalog::surroundings::Surroundings;
use crate::catalog::tree::{Member, Node, Table, Value};

/// The keys whose relative paths start at the folder of the config.
const PATHS: [&str; 2] = ["env_file", "cwd"];

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
    server.0.push(Member {
        key: String::from("cwd"),
        key_span: span,
        node: Node::new(span, Value::Text(Filled::from(folder.as_str()))),
    });
}

/// Whether what a program is depends on where it runs, or what it is told.
fn names_places(server: &Table, surroundings: &dyn Surroundings) -> bool {
    let told = |key: &str| server.member(key).map(|member| &member.node);
    let program = told("command").and_then(Node::text);
    program.is_some_and(|program| {
        let program = program.value();
        program.contains('/') && is_relative(program)
    }) || told("args").is_some_and(|args| any(args, &|arg| is_place(arg, surroundings)))
        || told("env").is_some_and(|env| any(env, &|value| is_dotted(value)))
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
    let path = Path::new(&surroundings.folder()).join(value);
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
