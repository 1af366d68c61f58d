//! The variables of a server: from the gateway, from a file, and from the config, which wins.

use std::collections::BTreeMap;
use std::ffi::OsStr;

use mcpact_transport::stdio::child::INHERITED;

use crate::fields::{Fields, Text};
use crate::loaders::loads_code;
use crate::secret::Secret;
use crate::source::Span;
use crate::surroundings::Surroundings;

/// All of them; without a machine, those that the config itself names.
pub(super) fn read(
    machine: Option<&dyn Surroundings>,
    fields: &mut Fields<'_, '_>,
) -> BTreeMap<String, Secret> {
    let mut env = BTreeMap::new();
    let inherited = inherited(fields);
    let file = fields.text("env_file");
    if let Some(machine) = machine {
        for name in inherited {
            if let Some(value) = machine
                .raw_variable(name)
                .filter(|value| is_new(name, value))
            {
                env.insert(name.to_owned(), Secret::of_variable(value));
            }
        }
        if let Some(text) = file {
            from_file(machine, &text, fields, &mut env);
        }
    }
    for (name, text) in fields.text_table("env") {
        if name.is_empty() || name.contains(['=', '\0']) {
            let message = format!("`{name}` is no name of a variable");
            fields.findings.error(text.span, message);
        }
        warn_of(name, text.span, fields);
        env.insert(name.to_owned(), Secret::new(text.filled.value()));
    }
    env
}

/// Whether a variable must be passed on. What every program gets and is no text reaches it as it is, and nothing that is
/// looked up by it is looked up by what merely comes near.
fn is_new(name: &str, value: &OsStr) -> bool {
    value.to_str().is_some() || !INHERITED.contains(&name)
}

/// The names of the variables that come from the gateway.
fn inherited<'t>(fields: &mut Fields<'t, '_>) -> Vec<&'t str> {
    let texts = fields.texts("inherit");
    let mut names = Vec::new();
    for Text { filled, span } in texts {
        let name = filled.value();
        let is_name = !name.is_empty()
            && !name.contains(|c: char| !c.is_ascii_graphic() || "=*?".contains(c));
        if !is_name {
            let message = format!("`{filled}` is no name of a variable");
            let problem = fields.findings.error(span, message);
            problem.remedy("name each variable that the server needs; nothing stands for several");
        }
        names.push(name);
    }
    names
}

/// Told of variables that decide which code runs, wherever they are set.
fn warn_of(name: &str, span: Span, fields: &mut Fields<'_, '_>) {
    if loads_code(name) {
        let message = format!("`{name}` lets other code into the program");
        let problem = fields.findings.warning(span, message);
        problem.remedy("leave it out, unless you know that code");
    }
}

fn from_file(
    machine: &dyn Surroundings,
    path: &Text<'_>,
    fields: &mut Fields<'_, '_>,
    env: &mut BTreeMap<String, Secret>,
) {
    let lines = match machine.file(path.filled.value()) {
        Ok(text) => text,
        Err(why) => {
            let message = format!("`{}` cannot be read: {why}", path.filled);
            let problem = fields.findings.error(path.span, message);
            problem.remedy("a file with lines `NAME=value` is expected");
            return;
        }
    };
    for (line, number) in lines.lines().zip(1..) {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let line = line.strip_prefix("export ").unwrap_or(line);
        match line.split_once('=') {
            Some((name, value)) if !name.trim().is_empty() && !line.contains('\0') => {
                warn_of(name.trim(), path.span, fields);
                env.insert(name.trim().to_owned(), Secret::new(unquoted(value.trim())));
            }
            Some(_) | None => {
                let message = format!("line {number} of `{}` is no `NAME=value`", path.filled);
                fields.findings.error(path.span, message);
            }
        }
    }
}

fn unquoted(value: &str) -> &str {
    ['"', '\'']
        .into_iter()
        .find_map(|quote| value.strip_prefix(quote)?.strip_suffix(quote))
        .unwrap_or(value)
}
