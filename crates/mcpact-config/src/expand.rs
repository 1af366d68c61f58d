//! Fills variables into the texts of a tree. Parsing is over by then: a value cannot become a key, a
//! quote or another argument.

use std::borrow::Cow;
use std::ffi::OsString;

use super::problem::{Findings, Problem};
use super::secret::Filled;
use super::source::{Source, Span};
use super::surroundings::Surroundings;
use super::tree::{Node, Value};

/// How variables are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spelling {
    /// `${NAME}` and its like.
    Dollar,
    /// Also `{env:NAME}` and `{file:PATH}`, as opencode writes them.
    Braces,
    /// Also `$NAME`, as the Gemini CLI writes them.
    Bare,
    /// Also `${{ secrets.NAME }}`, as Continue writes them.
    Secrets,
}

impl Spelling {
    /// How variables are written there.
    const fn forms(self) -> &'static str {
        match self {
            Self::Dollar => {
                "`${NAME}`, `${NAME:-default}`, `${env:NAME}`, `${file:PATH}`, `${userHome}` and `${workspaceFolder}` are; write `$${` if none is meant"
            }
            Self::Braces => "`{env:NAME}` and `{file:PATH}` are",
            Self::Bare => "`$NAME` and `${NAME}` are",
            Self::Secrets => "`${{ secrets.NAME }}` is",
        }
    }
}

/// What becomes of variables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Filling {
    /// Their values take their place.
    Values(OnMissing),
    /// They stay, written the native way.
    Names(Shelf),
}

/// Where a text is put whose variables stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shelf {
    /// Beside the config that it comes from: what is relative means the same there.
    Same,
    /// Somewhere else: what starts at the folder of the config says where that is.
    Other,
}

/// What happens to a variable that is not set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnMissing {
    /// It is an error.
    Refuse,
    /// It stays as it is written, with a warning.
    Keep,
}

/// Fills in variables.
pub(super) struct Expansion<'a> {
    pub(super) source: &'a Source,
    pub(super) surroundings: &'a dyn Surroundings,
    pub(super) spelling: Spelling,
    pub(super) filling: Filling,
}

/// A piece of a text.
#[derive(Debug, PartialEq, Eq)]
enum Piece<'t> {
    Plain(&'t str),
    /// What stands in the braces, and the whole of it.
    Variable {
        inner: &'t str,
        whole: &'t str,
    },
    /// An opening that is never closed.
    Open(&'t str),
}

/// Why there is no value.
enum Fault {
    Missing(String),
    Wrong { message: String, remedy: String },
}

impl Expansion<'_> {
    /// Fills in every text of a tree.
    pub(super) fn run(&self, node: &mut Node, findings: &mut Findings) {
        match &mut node.value {
            Value::Text(text) => {
                if let Some((filled, sources)) = self.text(text.value(), node.span, findings) {
                    *text = Filled::new(filled, text.written()).taken_from(sources);
                }
            }
            Value::List(items) => items.iter_mut().for_each(|item| self.run(item, findings)),
            Value::Table(table) => {
                let members = table.0.iter_mut();
                members.for_each(|member| self.run(&mut member.node, findings));
            }
            Value::Null | Value::Flag(_) | Value::Whole(_) | Value::Fraction(_) => {}
        }
    }

    /// The text with its variables filled in, and what they are; `None` if there are none.
    fn text(
        &self,
        text: &str,
        span: Span,
        findings: &mut Findings,
    ) -> Option<(String, Vec<String>)> {
        let pieces = pieces(text, self.spelling);
        if pieces == [Piece::Plain(text)] {
            return None;
        }
        let (mut filled, mut sources) = (String::new(), Vec::new());
        for piece in pieces {
            match piece {
                Piece::Plain(plain) => match self.filling {
                    Filling::Names(_) => append(&mut filled, native_plain(plain)),
                    Filling::Values(_) => filled.push_str(plain),
                },
                Piece::Variable { inner, whole } => {
                    let inner = &*self.with_home(inner);
                    match self.filling {
                        Filling::Names(shelf) => {
                            let at = self.place(whole, span);
                            append(&mut filled, &self.native(inner, shelf, at, findings));
                        }
                        Filling::Values(_) => match self.value(inner) {
                            Ok(value) => {
                                filled.push_str(&value);
                                sources.push(self.source_of(inner));
                            }
                            Err(fault) => {
                                self.tell(fault, whole, span, findings);
                                filled.push_str(whole);
                            }
                        },
                    }
                }
                Piece::Open(rest) => {
                    let at = self.place(rest, span);
                    let problem = findings.error(at, "this variable has no closing brace");
                    problem.remedy(match self.spelling {
                        Spelling::Dollar => "write `$${` if no variable is meant",
                        Spelling::Braces | Spelling::Bare | Spelling::Secrets => "close it",
                    });
                    filled.push_str(rest);
                }
            }
        }
        Some((filled, sources))
    }

    /// opencode knows that `~` is the home folder.
    fn with_home<'t>(&self, inner: &'t str) -> Cow<'t, str> {
        let path = inner.strip_prefix("file:~/");
        match path
            .filter(|_| self.spelling == Spelling::Braces)
            .zip(self.home().ok())
        {
            Some((path, home)) => Cow::Owned(format!("file:{home}/{path}")),
            None => Cow::Borrowed(inner),
        }
    }

    /// Which variable or file a value comes from, however it is spelled.
    fn source_of(&self, inner: &str) -> String {
        match inner.strip_prefix("file:") {
            // The same words mean another file beside another config.
            Some(path) => {
                let path = self.surroundings.path(path);
                format!("${{file:{}}}", path.display())
            }
            None => format!("${{{inner}}}"),
        }
    }

    /// A variable that means in any folder what it means in this one.
    fn settled(&self, inner: &str) -> String {
        match self.of_folder(inner) {
            Some(text) => text.replace("${", "$${"),
            None => self.source_of(inner),
        }
    }

    /// What is taken from the name of the folder.
    fn of_folder(&self, inner: &str) -> Option<String> {
        let folder = self.surroundings.folder();
        match inner {
            "workspaceFolder" => Some(folder),
            "workspaceFolderBasename" => {
                let last = folder.rsplit(['/', '\\']).next();
                last.map(str::to_owned)
            }
            _ => None,
        }
    }

    /// Where a piece stands: within its text if it can be found there, for escapes may hide it.
    fn place(&self, piece: &str, span: Span) -> Span {
        let written = self.source.text.get(span.start..span.end);
        match written.and_then(|written| written.find(piece)) {
            Some(at) => Span::new(span.start + at, span.start + at + piece.len()),
            None => span,
        }
    }

    /// Whether a piece of a text stands there as it is; other clients name variables in other ways, too.
    fn is_written(&self, piece: &str, span: Span) -> bool {
        let written = self.source.text.get(span.start..span.end);
        written.is_some_and(|written| written.contains(piece))
    }

    fn tell(&self, fault: Fault, whole: &str, span: Span, findings: &mut Findings) {
        let at = self.place(whole, span);
        match fault {
            Fault::Wrong { message, remedy } => findings.error(at, message).remedy(remedy),
            Fault::Missing(name) => {
                let message = format!("the variable `{name}` is not set");
                match self.filling {
                    Filling::Values(OnMissing::Refuse) => {
                        let remedy = match (self.is_written(whole, span), self.spelling) {
                            (true, Spelling::Dollar) => {
                                format!("set it, or write `${{{name}:-default}}`")
                            }
                            (true, Spelling::Braces | Spelling::Bare | Spelling::Secrets) => {
                                format!(
                                    "set it, or `mcpact import` this config and write `${{{name}:-default}}` there"
                                )
                            }
                            // Its name alone stands there, where no default can.
                            (false, _) => String::from("set it"),
                        };
                        findings.error(at, message).remedy(remedy);
                    }
                    Filling::Values(OnMissing::Keep) | Filling::Names(_) => {
                        let message = format!("{message} and stays as it is written");
                        findings.warning(at, message).remedy("set it");
                    }
                }
            }
        }
    }

    /// The native way to write a variable.
    fn native(&self, inner: &str, shelf: Shelf, at: Span, findings: &mut Findings) -> String {
        let Some(id) = inner.strip_prefix("input:") else {
            return match shelf {
                Shelf::Same => format!("${{{inner}}}"),
                Shelf::Other => self.settled(inner),
            };
        };
        let usual = id.chars().map(|c| {
            if c.is_ascii_alphanumeric() {
                c.to_ascii_uppercase()
            } else {
                '_'
            }
        });
        let name: String = usual.collect();
        let message =
            format!("nobody is there to answer `${{input:{id}}}`: it becomes `${{{name}}}`");
        findings.note(at, message).remedy("set the variable");
        format!("${{{name}}}")
    }

    fn value(&self, inner: &str) -> Result<String, Fault> {
        if let Some(text) = self.of_folder(inner) {
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
            Some(("input", id)) => Err(Fault::Wrong {
                message: format!("`${{input:{id}}}` asks a person, and nobody is there to answer"),
                remedy: String::from("put the value into a variable and write `${NAME}`"),
            }),
            Some(_) | None => self.variable(inner),
        }
    }

    /// `NAME`, or `NAME:-default` for a variable that is not set or empty.
    fn variable(&self, inner: &str) -> Result<String, Fault> {
        let (name, default) = match inner.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (inner, None),
        };
        if inner.contains("${") {
            return Err(Fault::Wrong {
                message: String::from("a variable cannot stand in another one"),
                remedy: String::from(
                    "write a plain default, or put the whole value into one variable",
                ),
            });
        }
        if !is_name(name) {
            return Err(Fault::Wrong {
                message: format!("`{inner}` is no variable"),
                remedy: String::from(self.spelling.forms()),
            });
        }
        match (self.set(name)?, default) {
            (Some(value), None) => Ok(value),
            (Some(value), Some(_)) if !value.is_empty() => Ok(value),
            (_, Some(default)) => Ok(default.to_owned()),
            (None, None) => Err(Fault::Missing(name.to_owned())),
        }
    }

    fn home(&self) -> Result<String, Fault> {
        let home = match self.set("HOME")? {
            Some(home) => Some(home),
            None => self.set("USERPROFILE")?,
        };
        home.ok_or_else(|| Fault::Missing(String::from("HOME")))
    }

    /// The value of a variable, if it is set.
    fn set(&self, name: &str) -> Result<Option<String>, Fault> {
        let raw = self.surroundings.raw_variable(name);
        let value = raw.map(OsString::into_string).transpose();
        value.map_err(|_| Fault::Wrong {
            message: format!("the variable `{name}` is set, but is no UTF-8 text"),
            remedy: String::from("set it to a text in UTF-8"),
        })
    }

    fn file(&self, path: &str) -> Result<String, Fault> {
        let text = self.surroundings.file(path);
        let text = text.map_err(|why| Fault::Wrong {
            message: format!("`{path}` cannot be read: {why}"),
            remedy: String::from("a small text file is expected, in UTF-8"),
        })?;
        // One line end alone: lines that are empty belong to the text.
        let ends = ["\r\n", "\n"];
        let cut = ends.iter().find_map(|end| text.strip_suffix(end));
        Ok(cut.unwrap_or(&text).to_owned())
    }
}

/// One text with its variables filled in, as a catalog has them.
///
/// # Errors
/// A variable is not set, or is none.
pub fn fill(text: &str, surroundings: &dyn Surroundings) -> Result<String, Problem> {
    let expansion = Expansion {
        source: &Source::new("", text),
        surroundings,
        spelling: Spelling::Dollar,
        filling: Filling::Values(OnMissing::Refuse),
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

/// A dollar sign that belongs to nothing that follows it.
const DOLLAR: &str = "${$}";

/// The native way to write a plain piece.
fn native_plain(plain: &str) -> &str {
    match plain {
        "${" => "$${",
        "$" => DOLLAR,
        other => other,
    }
}

/// Appends a piece that is written the native way. Together with it, dollar signs before it would be read as `$${`.
fn append(filled: &mut String, piece: &str) {
    if piece.starts_with("${") || piece.starts_with('{') {
        let kept = filled.trim_end_matches('$').len();
        let dollars = DOLLAR.repeat(filled.len() - kept);
        filled.truncate(kept);
        filled.push_str(&dollars);
    }
    filled.push_str(piece);
}

/// Cuts a text at its variables.
fn pieces(text: &str, spelling: Spelling) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some((start, length, piece)) = next(rest, spelling) {
        if start > 0 {
            pieces.push(Piece::Plain(&rest[..start]));
        }
        pieces.push(piece);
        rest = &rest[start + length..];
    }
    if !rest.is_empty() {
        pieces.push(Piece::Plain(rest));
    }
    pieces
}

/// The next variable, where it starts and how long it is. `$${` is a plain `${`, and `${$}` a plain `$`, but not for the
/// Gemini CLI: there a dollar sign before a variable is one.
fn next(text: &str, spelling: Spelling) -> Option<(usize, usize, Piece<'_>)> {
    text.char_indices().find_map(|(start, _)| {
        let rest = &text[start..];
        let is_bare = spelling == Spelling::Bare;
        let (length, piece) = if rest.starts_with("$${") && !is_bare {
            (3, Piece::Plain(&rest[1..3]))
        } else if rest.starts_with(DOLLAR) && !is_bare {
            (DOLLAR.len(), Piece::Plain(&rest[..1]))
        } else if spelling == Spelling::Secrets
            && let Some(found) = secret(rest)
        {
            found
        } else if rest.starts_with("${") {
            braced(rest, 2)
        } else if spelling == Spelling::Braces
            && (rest.starts_with("{env:") || rest.starts_with("{file:"))
        {
            braced(rest, 1)
        } else if is_bare && rest.starts_with('$') {
            bare(rest)?
        } else {
            return None;
        };
        Some((start, length, piece))
    })
}

fn braced(text: &str, opening: usize) -> (usize, Piece<'_>) {
    match text.find('}') {
        None => (text.len(), Piece::Open(text)),
        Some(end) => {
            let inner = &text[opening..end];
            let whole = &text[..=end];
            (whole.len(), Piece::Variable { inner, whole })
        }
    }
}

/// `${{ secrets.NAME }}`
fn secret(text: &str) -> Option<(usize, Piece<'_>)> {
    let (inner, _) = text.strip_prefix("${{")?.split_once("}}")?;
    let whole = &text[..inner.len() + "${{}}".len()];
    let inner = inner.trim().strip_prefix("secrets.")?;
    Some((whole.len(), Piece::Variable { inner, whole }))
}

fn bare(text: &str) -> Option<(usize, Piece<'_>)> {
    let name = &text[1..];
    let end = name.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    let inner = &name[..end.unwrap_or(name.len())];
    let whole = &text[..=inner.len()];
    is_name(inner).then_some((whole.len(), Piece::Variable { inner, whole }))
}

#[cfg(test)]
mod tests;
