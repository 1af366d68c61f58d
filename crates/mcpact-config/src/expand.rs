//! Variable expansion in the strings of a tree. It runs after parsing, so a value cannot become a key, a quote or
//! another argument.

use std::borrow::Cow;
use std::ffi::OsString;

use super::problem::{Findings, Problem};
use super::secret::Variable;
use super::source::{Source, Span};
use super::tree::{Node, Value};
use crate::local_host::HostEnvironment;

/// Syntax of variables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum VariableSyntax {
    /// `${NAME}` and the other native forms.
    Dollar,
    /// Also `{env:NAME}` and `{file:PATH}` (opencode).
    Braces,
    /// Also `$NAME` (Gemini CLI).
    Bare,
    /// Also `${{ secrets.NAME }}` (Continue).
    Secrets,
}

impl VariableSyntax {
    /// Valid forms, for hints.
    const fn forms(self) -> &'static str {
        match self {
            Self::Dollar => {
                "use `${NAME}`, `${NAME:-default}`, `${env:NAME}`, `${file:PATH}`, `${userHome}` or `${workspaceFolder}`; write `$${` for a literal `${`"
            }
            Self::Braces => "use `{env:NAME}` or `{file:PATH}`",
            Self::Bare => "use `$NAME` or `${NAME}`",
            Self::Secrets => "use `${{ secrets.NAME }}`",
        }
    }
}

/// Treatment of variables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ExpansionMode {
    /// Replaced by their values.
    Values(OnMissing),
    /// Kept, in native syntax.
    Names(TargetFolder),
}

/// Folder of the config that an unexpanded text is written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TargetFolder {
    /// Same folder as the original: relative paths stay valid.
    Same,
    /// Another folder: relative paths become absolute.
    Other,
}

/// Treatment of unset variables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnMissing {
    /// Error.
    Refuse,
    /// Kept as written, with a warning.
    Keep,
}

/// Expands variables.
pub(super) struct Expansion<'a> {
    pub(super) source: &'a Source,
    pub(super) host: &'a dyn HostEnvironment,
    pub(super) variable_syntax: VariableSyntax,
    pub(super) mode: ExpansionMode,
}

/// Part of a text.
#[derive(Debug, PartialEq, Eq)]
enum Segment<'t> {
    Plain(&'t str),
    /// Content of the braces, and the whole reference.
    Variable {
        inner: &'t str,
        whole: &'t str,
    },
    /// Unterminated reference.
    Open(&'t str),
}

/// Failure to expand a variable.
enum VariableError {
    Missing(String),
    Wrong { message: String, remedy: String },
}

fn wrong(message: impl Into<String>, remedy: impl Into<String>) -> VariableError {
    VariableError::Wrong {
        message: message.into(),
        remedy: remedy.into(),
    }
}

impl Expansion<'_> {
    /// Expands all strings of a tree.
    pub(super) fn run(&self, node: &mut Node, findings: &mut Findings) {
        match &mut node.value {
            Value::Text(text) => {
                if let Some((filled, variables)) = self.text(text.value(), node.span, findings) {
                    text.expand(filled, variables);
                }
            }
            Value::List(items) => items.iter_mut().for_each(|item| self.run(item, findings)),
            Value::Table(table) => {
                let members = table.0.iter_mut();
                members.for_each(|member| self.run(&mut member.node, findings));
            }
            _ => {}
        }
    }

    /// Expands a text and returns its variables; `None` if it contains no variables.
    fn text(
        &self,
        text: &str,
        span: Span,
        findings: &mut Findings,
    ) -> Option<(String, Vec<Variable>)> {
        let segments = segments(text, self.variable_syntax);
        if segments == [Segment::Plain(text)] {
            return None;
        }
        let (mut filled, mut variables) = (String::new(), Vec::new());
        for segment in segments {
            match segment {
                Segment::Plain(plain) => match self.mode {
                    ExpansionMode::Names(_) => append(&mut filled, native_plain(plain)),
                    ExpansionMode::Values(_) => filled.push_str(plain),
                },
                Segment::Variable { inner, whole } => {
                    let inner = &*self.with_home(inner);
                    match self.mode {
                        ExpansionMode::Names(target) => {
                            let at = self.reference_span(whole, span);
                            append(&mut filled, &self.native(inner, target, at, findings));
                        }
                        ExpansionMode::Values(_) => match self.value(inner) {
                            Ok(value) => {
                                filled.push_str(&value);
                                let source = self.source_of(inner);
                                variables.push(Variable { source, value });
                            }
                            Err(fault) => {
                                self.report(fault, whole, span, findings);
                                filled.push_str(whole);
                            }
                        },
                    }
                }
                Segment::Open(rest) => {
                    let at = self.reference_span(rest, span);
                    let problem = findings.error(at, "missing closing brace");
                    problem.remedy(match self.variable_syntax {
                        VariableSyntax::Dollar => "write `$${` for a literal `${`",
                        _ => "add `}`",
                    });
                    filled.push_str(rest);
                }
            }
        }
        Some((filled, variables))
    }

    /// opencode expands `~` in file references.
    fn with_home<'t>(&self, inner: &'t str) -> Cow<'t, str> {
        let path = inner.strip_prefix("file:~/");
        match path
            .filter(|_| self.variable_syntax == VariableSyntax::Braces)
            .zip(self.home().ok())
        {
            Some((path, home)) => Cow::Owned(format!("file:{home}/{path}")),
            None => Cow::Borrowed(inner),
        }
    }

    /// Canonical name of the variable or file behind a value.
    fn source_of(&self, inner: &str) -> String {
        match inner.strip_prefix("file:") {
            // Absolute, because the same relative path means another file in another config.
            Some(path) => {
                let path = self.host.path(path);
                format!("${{file:{}}}", path.display())
            }
            None => format!("${{{inner}}}"),
        }
    }

    /// Reference that means the same in any folder.
    fn absolute_reference(&self, inner: &str) -> String {
        match self.folder_value(inner) {
            Some(text) => text.replace("${", "$${"),
            None => self.source_of(inner),
        }
    }

    /// Value of variables for the project folder.
    fn folder_value(&self, inner: &str) -> Option<String> {
        let folder = self.host.folder();
        match inner {
            "workspaceFolder" => Some(folder),
            "workspaceFolderBasename" => {
                let last = folder.rsplit(['/', '\\']).next();
                last.map(str::to_owned)
            }
            _ => None,
        }
    }

    /// Span of a reference within its text, or of the whole text if escapes hide it.
    fn reference_span(&self, segment: &str, span: Span) -> Span {
        match self.offset(segment, span) {
            Some(at) => Span::new(span.start + at, span.start + at + segment.len()),
            None => span,
        }
    }

    /// Offset of a reference in its text; `None` if it is not written literally, because some clients write only the
    /// name.
    fn offset(&self, segment: &str, span: Span) -> Option<usize> {
        let written = self.source.text.get(span.start..span.end)?;
        written.find(segment)
    }

    fn report(&self, fault: VariableError, whole: &str, span: Span, findings: &mut Findings) {
        let at = self.reference_span(whole, span);
        let name = match fault {
            VariableError::Missing(name) => name,
            VariableError::Wrong { message, remedy } => {
                return findings.error(at, message).remedy(remedy);
            }
        };
        let message = format!("variable `{name}` is not set");
        if self.mode != ExpansionMode::Values(OnMissing::Refuse) {
            let message = format!("{message} and is kept as written");
            return findings.warning(at, message).remedy("set it");
        }
        let remedy = if self.offset(whole, span).is_none() {
            // Only the name is written, so no default is possible.
            String::from("set it")
        } else if self.variable_syntax == VariableSyntax::Dollar {
            format!("set it, or write `${{{name}:-default}}`")
        } else {
            format!("set it, or `mcpact import` this config and write `${{{name}:-default}}` there")
        };
        findings.error(at, message).remedy(remedy);
    }

    /// Native syntax of a variable.
    fn native(
        &self,
        inner: &str,
        target: TargetFolder,
        at: Span,
        findings: &mut Findings,
    ) -> String {
        let Some(id) = inner.strip_prefix("input:") else {
            return match target {
                TargetFolder::Same => format!("${{{inner}}}"),
                TargetFolder::Other => self.absolute_reference(inner),
            };
        };
        let name = id.to_ascii_uppercase();
        let name = name.replace(|c: char| !c.is_ascii_alphanumeric(), "_");
        let message =
            format!("`${{input:{id}}}` is converted to `${{{name}}}`: mcpact does not prompt");
        findings.note(at, message).remedy("set the variable");
        format!("${{{name}}}")
    }

    fn value(&self, inner: &str) -> Result<String, VariableError> {
        if let Some(text) = self.folder_value(inner) {
            return Ok(text);
        }
        match inner {
            "userHome" => return self.home(),
            "pathSeparator" | "/" => return Ok(std::path::MAIN_SEPARATOR.to_string()),
            _ => {}
        }
        match inner.split_once(':') {
            Some(("env", rest)) => self.variable(rest),
            Some(("file", path)) => self.file(path),
            Some(("input", id)) => Err(wrong(
                format!("`${{input:{id}}}` prompts the user, which mcpact does not do"),
                "use a variable, such as `${NAME}`",
            )),
            Some(_) | None => self.variable(inner),
        }
    }

    /// `NAME`, or `NAME:-default` if the variable may be unset or empty.
    fn variable(&self, inner: &str) -> Result<String, VariableError> {
        let (name, default) = match inner.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (inner, None),
        };
        if inner.contains("${") {
            return Err(wrong(
                "variables cannot be nested",
                "write a plain default or use one variable for the whole value",
            ));
        }
        if !is_name(name) {
            let message = format!("`{inner}` is not a variable");
            return Err(wrong(message, self.variable_syntax.forms()));
        }
        match (self.set(name)?, default) {
            (Some(value), None) => Ok(value),
            (Some(value), Some(_)) if !value.is_empty() => Ok(value),
            (_, Some(default)) => Ok(default.to_owned()),
            (None, None) => Err(VariableError::Missing(name.to_owned())),
        }
    }

    fn home(&self) -> Result<String, VariableError> {
        let home = match self.set("HOME")? {
            Some(home) => Some(home),
            None => self.set("USERPROFILE")?,
        };
        home.ok_or_else(|| VariableError::Missing(String::from("HOME")))
    }

    /// Value of a variable, if set.
    fn set(&self, name: &str) -> Result<Option<String>, VariableError> {
        let raw = self.host.raw_variable(name);
        let value = raw.map(OsString::into_string).transpose();
        let message = || format!("variable `{name}` is not valid UTF-8");
        value.map_err(|_| wrong(message(), "set it to a UTF-8 value"))
    }

    fn file(&self, path: &str) -> Result<String, VariableError> {
        let text = self.host.file(path);
        let message = |why| format!("cannot read `{path}`: {why}");
        let text = text.map_err(|why| wrong(message(why), "use a small UTF-8 text file"))?;
        // Only one line ending is removed; empty lines belong to the value.
        let ends = ["\r\n", "\n"];
        let cut = ends.iter().find_map(|end| text.strip_suffix(end));
        Ok(cut.unwrap_or(&text).to_owned())
    }
}

/// Expands the variables of a text.
///
/// # Errors
/// A variable is unset or invalid.
pub fn expand_text(text: &str, host: &dyn HostEnvironment) -> Result<String, Problem> {
    let expansion = Expansion {
        source: &Source::new("", text),
        host,
        variable_syntax: VariableSyntax::Dollar,
        mode: ExpansionMode::Values(OnMissing::Refuse),
    };
    let mut findings = Findings::default();
    let filled = expansion.text(text, Span::new(0, text.len()), &mut findings);
    match findings.finish().into_iter().next() {
        Some(problem) => Err(problem),
        None => Ok(filled.map_or_else(|| text.to_owned(), |(filled, _)| filled)),
    }
}

fn is_name(text: &str) -> bool {
    !text.is_empty()
        && !text.starts_with(|c: char| c.is_ascii_digit())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// An escaped dollar sign.
const DOLLAR: &str = "${$}";

/// Native syntax of a literal part.
fn native_plain(plain: &str) -> &str {
    match plain {
        "${" => "$${",
        "$" => DOLLAR,
        other => other,
    }
}

/// Appends a part in native syntax. Dollar signs before it are escaped, or `$${` would be read.
fn append(filled: &mut String, segment: &str) {
    if segment.starts_with("${") || segment.starts_with('{') {
        let kept = filled.trim_end_matches('$').len();
        let dollars = DOLLAR.repeat(filled.len() - kept);
        filled.truncate(kept);
        filled.push_str(&dollars);
    }
    filled.push_str(segment);
}

/// Splits a text into literals and variables.
fn segments(text: &str, variable_syntax: VariableSyntax) -> Vec<Segment<'_>> {
    let mut segments = Vec::new();
    let mut rest = text;
    while let Some((start, length, segment)) = next(rest, variable_syntax) {
        if start > 0 {
            segments.push(Segment::Plain(&rest[..start]));
        }
        segments.push(segment);
        rest = &rest[start + length..];
    }
    if !rest.is_empty() {
        segments.push(Segment::Plain(rest));
    }
    segments
}

/// Next variable with its offset and length. `$${` is a literal `${` and `${$}` a literal `$`, except in the syntax of
/// the Gemini CLI.
fn next(text: &str, variable_syntax: VariableSyntax) -> Option<(usize, usize, Segment<'_>)> {
    text.char_indices().find_map(|(start, _)| {
        let rest = &text[start..];
        let is_bare = variable_syntax == VariableSyntax::Bare;
        let (length, segment) = if rest.starts_with("$${") && !is_bare {
            (3, Segment::Plain(&rest[1..3]))
        } else if rest.starts_with(DOLLAR) && !is_bare {
            (DOLLAR.len(), Segment::Plain(&rest[..1]))
        } else if variable_syntax == VariableSyntax::Secrets
            && let Some(found) = secret(rest)
        {
            found
        } else if rest.starts_with("${") {
            braced(rest, 2)
        } else if variable_syntax == VariableSyntax::Braces
            && (rest.starts_with("{env:") || rest.starts_with("{file:"))
        {
            braced(rest, 1)
        } else if is_bare && rest.starts_with('$') {
            bare(rest)?
        } else {
            return None;
        };
        Some((start, length, segment))
    })
}

fn braced(text: &str, opening: usize) -> (usize, Segment<'_>) {
    match text.find('}') {
        None => (text.len(), Segment::Open(text)),
        Some(end) => {
            let inner = &text[opening..end];
            let whole = &text[..=end];
            (whole.len(), Segment::Variable { inner, whole })
        }
    }
}

/// `${{ secrets.NAME }}`
fn secret(text: &str) -> Option<(usize, Segment<'_>)> {
    let (inner, _) = text.strip_prefix("${{")?.split_once("}}")?;
    let whole = &text[..inner.len() + "${{}}".len()];
    let inner = inner.trim().strip_prefix("secrets.")?;
    Some((whole.len(), Segment::Variable { inner, whole }))
}

fn bare(text: &str) -> Option<(usize, Segment<'_>)> {
    let name = &text[1..];
    let end = name.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    let inner = &name[..end.unwrap_or(name.len())];
    let whole = &text[..=inner.len()];
    is_name(inner).then_some((whole.len(), Segment::Variable { inner, whole }))
}

#[cfg(test)]
mod tests;
