//! Environment of a server: inherited variables, `env_file` and `env`. Later ones win.

use std::collections::BTreeMap;
use std::ffi::OsStr;

use mcpact_transport::stdio::child::INHERITED;

use crate::fields::{Fields, Text};
use crate::local_host::HostEnvironment;
use crate::policy::loads_code;
use crate::secret::{EnvValue, Secret};
use crate::source::Span;

/// Reads all variables; without a host, only those of `env`.
pub(super) fn read(
    host: Option<&dyn HostEnvironment>,
    fields: &mut Fields<'_, '_>,
) -> BTreeMap<String, EnvValue> {
    let mut env = BTreeMap::new();
    let inherited = inherited(fields);
    let file = fields.text("env_file");
    if let Some(host) = host {
        for name in inherited {
            let value = host.raw_variable(&name);
            if let Some(value) = value.filter(|value| is_new(&name, value)) {
                let value = Secret::of_variable(value);
                env.insert(name, EnvValue::named(value, String::from("inherited")));
            }
        }
        if let Some(text) = file {
            from_file(host, &text, fields, &mut env);
        }
    }
    for (name, text) in fields.text_table("env") {
        if name.is_empty() || name.contains(['=', '\0']) {
            let message = format!("`{name}` is not a variable name");
            fields.findings.error(text.span, message);
        }
        warn_of(name, text.span, fields);
        env.insert(name.to_owned(), EnvValue::of_text(text.filled));
    }
    env
}

/// Returns whether an inherited variable must be passed explicitly. Non-UTF-8 values of variables that every program
/// inherits are passed on by the system unchanged.
fn is_new(name: &str, value: &OsStr) -> bool {
    value.to_str().is_some() || !INHERITED.contains(&name)
}

/// Names in `inherit`.
fn inherited(fields: &mut Fields<'_, '_>) -> Vec<String> {
    fields.checked_words("inherit", "is not a variable name", |name| {
        let is_name = !name.is_empty()
            && !name.contains(|c: char| !c.is_ascii_graphic() || "=*?".contains(c));
        (!is_name).then_some("list each variable by name; wildcards are not supported")
    })
}

/// Warns of variables that decide which code runs.
fn warn_of(name: &str, span: Span, fields: &mut Fields<'_, '_>) {
    if loads_code(name) {
        let message = format!("`{name}` makes the program load other code");
        fields
            .findings
            .warning_with(span, message, "remove it unless you trust that code");
    }
}

fn from_file(
    host: &dyn HostEnvironment,
    path: &Text<'_>,
    fields: &mut Fields<'_, '_>,
    env: &mut BTreeMap<String, EnvValue>,
) {
    let origin = format!("file {}", host.path(path.value()).display());
    let lines = match host.file(path.value()) {
        Ok(text) => text,
        Err(why) => {
            let message = format!("cannot read `{}`: {why}", path.filled);
            fields
                .findings
                .error_with(path.span, message, "use a file with lines `NAME=value`");
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
                let value = Secret::new(unquoted(value.trim()));
                let value = EnvValue::named(value, origin.clone());
                env.insert(name.trim().to_owned(), value);
            }
            Some(_) | None => {
                let message = format!("line {number} of `{}` is not `NAME=value`", path.filled);
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
