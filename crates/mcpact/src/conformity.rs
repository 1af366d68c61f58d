//! Messages held against the official schemas.
//!
//! The schemas are not part of this library: they are read from a folder that holds
//! `<revision>/schema.json`, as the folder `schema` of the protocol's own repository does. What a
//! message is held against follows from its method, and for a result from the method of its request.
//! Methods of extensions are not in these schemas and pass.

mod book;

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use mcpact_spec::{Era, Revision};
use serde_json::Value;

use self::book::{Book, Page};

pub use self::book::SchemasError;

/// How many faults of one message are told.
const TOLD: usize = 5;

/// Whether messages are held against the official schemas, and what becomes of those that do not fit.
///
/// The handshake itself is not: it is read before there is a revision whose schema would count.
#[derive(Clone, Debug, Default)]
pub enum Validation {
    /// They are not; it costs nothing.
    #[default]
    Off,
    /// They are, and the log is told of misfits.
    Warn(Arc<Schemas>),
    /// They are, and misfits are refused: a request by -32602, a result by an error for whoever waits
    /// for it. A notification that does not fit is dropped.
    Refuse(Arc<Schemas>),
}

/// The official schemas of all revisions, ready to be used.
#[derive(Debug)]
pub struct Schemas {
    /// In the order of the revisions.
    books: Vec<Book>,
}

impl Schemas {
    /// Reads `<revision>/schema.json` of every revision. Nothing else is ever read or fetched.
    ///
    /// # Errors
    /// A file is missing, or is not such a schema.
    pub fn read(folder: &Path) -> Result<Self, SchemasError> {
        let books: Result<Vec<Book>, SchemasError> = Revision::ALL
            .into_iter()
            .map(|revision| Book::read(&folder.join(revision.as_str()).join("schema.json")))
            .collect();
        Ok(Self { books: books? })
    }

    /// What is said about a method, and where.
    fn look_up(&self, revision: Revision, method: &str) -> Option<(&Book, &Page)> {
        let book = self.books.get(revision.index())?;
        Some((book, book.page(method)?))
    }

    /// Holds the raw parameters of a request or a notification against the schema of its method.
    ///
    /// # Errors
    /// They do not fit.
    pub fn check_params(
        &self,
        revision: Revision,
        method: &str,
        params: Option<&str>,
    ) -> Result<(), Misfit> {
        let Some((_, page)) = self.look_up(revision, method) else {
            return Ok(());
        };
        let value = parsed(params.unwrap_or("{}"));
        page.params
            .faults(&value, "/params")
            .map_err(|faults| Misfit {
                revision,
                definition: page.params.name.clone(),
                faults,
            })
    }

    /// Holds the raw result of a request with this method against the schema.
    ///
    /// # Errors
    /// It does not fit.
    pub fn check_result(&self, revision: Revision, method: &str, raw: &str) -> Result<(), Misfit> {
        let Some((book, page)) = self.look_up(revision, method) else {
            return Ok(());
        };
        let value = parsed(raw);
        let mut definition = page.result.as_ref();
        if revision.era() == Era::Modern {
            match value.get("resultType").and_then(Value::as_str) {
                Some("input_required") => definition = book.input_required.as_ref(),
                // Other kinds of results are those of extensions.
                Some(kind) if kind != "complete" => return Ok(()),
                Some(_) | None => {}
            }
        }
        if let Some(task) = &book.task
            && value.get("task").is_some()
            && task.faults(&value, "").is_ok()
        {
            return Ok(());
        }
        let Some(definition) = definition else {
            return Ok(());
        };
        definition
            .faults(&value, "/result")
            .map_err(|faults| Misfit {
                revision,
                definition: definition.name.clone(),
                faults,
            })
    }
}

/// The engine has found it to be JSON before.
fn parsed(raw: &str) -> Value {
    serde_json::from_str(raw).unwrap_or_default()
}

impl Validation {
    /// Judges the parameters of something that `who` says.
    pub(crate) fn params(
        &self,
        who: &'static str,
        revision: Revision,
        method: &str,
        params: Option<&str>,
    ) -> Result<(), Misfit> {
        self.judge(who, method, |all| {
            all.check_params(revision, method, params)
        })
    }

    /// Judges a result that `who` gives.
    pub(crate) fn result(
        &self,
        who: &'static str,
        revision: Revision,
        method: &str,
        raw: &str,
    ) -> Result<(), Misfit> {
        self.judge(who, method, |all| all.check_result(revision, method, raw))
    }

    fn judge(
        &self,
        who: &'static str,
        method: &str,
        check: impl FnOnce(&Schemas) -> Result<(), Misfit>,
    ) -> Result<(), Misfit> {
        let (schemas, is_strict) = match self {
            Self::Off => return Ok(()),
            Self::Warn(schemas) => (schemas, false),
            Self::Refuse(schemas) => (schemas, true),
        };
        let Err(misfit) = check(schemas) else {
            return Ok(());
        };
        let method = crate::log::legible(method);
        let text = crate::log::legible(&misfit.to_string());
        tracing::warn!(who, method, "{text}");
        if is_strict { Err(misfit) } else { Ok(()) }
    }
}

/// Why a message does not fit the schema of its revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misfit {
    /// Whose schema it was held against.
    pub revision: Revision,
    /// The definition in that schema.
    pub definition: String,
    /// What is wrong, the first few of it.
    pub faults: Vec<Fault>,
}

/// One thing that is wrong with a message. It does not repeat what the message says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Where: a JSON pointer into the message.
    pub path: String,
    /// What.
    pub text: String,
}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            revision,
            definition,
            faults,
        } = self;
        write!(f, "does not fit `{definition}` of {revision}")?;
        for (at, fault) in faults.iter().enumerate() {
            let lead = if at == 0 { ": " } else { "; " };
            write!(f, "{lead}`{}`: {}", fault.path, fault.text)?;
        }
        Ok(())
    }
}

impl std::error::Error for Misfit {}
