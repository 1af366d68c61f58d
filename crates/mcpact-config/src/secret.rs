//! Secret strings, and strings shown as written in the config.

use std::ffi::{OsStr, OsString};
use std::fmt;

/// A secret string: `Debug` and `Display` are masked.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secret {
    text: String,
    /// The value, if it is not UTF-8.
    raw: Option<OsString>,
}

impl Secret {
    /// Creates a secret.
    pub fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            raw: None,
        }
    }

    /// Creates a secret of the value of a variable, which may not be UTF-8.
    #[must_use]
    pub fn of_variable(value: OsString) -> Self {
        match value.into_string() {
            Ok(text) => Self::new(text),
            Err(raw) => Self {
                text: raw.to_string_lossy().into_owned(),
                raw: Some(raw),
            },
        }
    }

    /// Returns the secret; lossy if it is not UTF-8.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.text
    }

    /// Returns the exact value.
    #[must_use]
    pub fn reveal_raw(&self) -> &OsStr {
        self.raw.as_deref().unwrap_or(OsStr::new(&self.text))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// Value of an environment variable of a server, and where it comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnvValue {
    value: Secret,
    pub(super) origin: EnvOrigin,
}

/// Origin of the value of a variable: the part of it that an approval covers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum EnvOrigin {
    /// Written in the config.
    Literal,
    /// A reference, an inherited variable or a file, by name.
    Named(String),
    /// Literal text and references, as written and by name.
    Mixed(Secret),
}

impl EnvValue {
    /// Creates a value that is written in the config.
    pub fn literal(value: impl Into<String>) -> Self {
        Self {
            value: Secret::new(value),
            origin: EnvOrigin::Literal,
        }
    }

    /// Creates a value with an origin that an approval covers by name.
    pub(super) const fn named(value: Secret, origin: String) -> Self {
        Self {
            value,
            origin: EnvOrigin::Named(origin),
        }
    }

    /// Creates the value of a text of the config.
    pub(super) fn of_text(text: &ExpandedText) -> Self {
        let origin = match text.variables.as_slice() {
            [] => EnvOrigin::Literal,
            [only] if only.value == text.value => EnvOrigin::Named(only.reference()),
            _ => EnvOrigin::Mixed(Secret::new(text.reference())),
        };
        Self {
            value: Secret::new(text.value()),
            origin,
        }
    }

    /// Returns the value; lossy if it is not UTF-8.
    #[must_use]
    pub fn reveal(&self) -> &str {
        self.value.reveal()
    }

    /// Returns the exact value.
    #[must_use]
    pub fn reveal_raw(&self) -> &OsStr {
        self.value.reveal_raw()
    }
}

/// A string with expanded variables. It is shown as written, because values may be secrets.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct ExpandedText {
    value: String,
    written: String,
    variables: Vec<Variable>,
}

/// A variable or file in a string.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Variable {
    /// Its canonical name, such as `${TOKEN}`.
    pub(super) source: String,
    pub(super) value: String,
}

impl Variable {
    /// References that are facts about the location of the config, not values that rotate.
    const BY_VALUE: [&str; 5] = [
        "${workspaceFolder}",
        "${workspaceFolderBasename}",
        "${userHome}",
        "${pathSeparator}",
        "${/}",
    ];

    /// Part of the variable that an approval covers: its name, and the value of a folder.
    fn reference(&self) -> String {
        match Self::BY_VALUE.contains(&&*self.source) {
            true => format!("{}={}", self.source, self.value),
            false => self.source.clone(),
        }
    }
}

impl ExpandedText {
    /// Part of the string that an approval covers if its references count by name.
    pub(super) fn reference(&self) -> String {
        match self.variables.as_slice() {
            [] => self.value.clone(),
            variables => {
                let references = variables.iter().map(Variable::reference);
                let all = std::iter::once(self.written.clone()).chain(references);
                all.collect::<Vec<_>>().join("\0")
            }
        }
    }

    /// Creates a string from its value and its written form.
    pub fn new(value: impl Into<String>, written: impl Into<String>) -> Self {
        Self {
            value: value.into(),
            written: written.into(),
            variables: Vec::new(),
        }
    }

    /// Sets the value and the variables that parts of it come from.
    pub(super) fn expand(&mut self, value: String, variables: Vec<Variable>) {
        self.value = value;
        self.variables = variables;
    }

    /// Replaces the value, and keeps what is shown and masked.
    pub(super) fn with_value(&self, value: impl Into<String>) -> Self {
        Self {
            value: value.into(),
            ..self.clone()
        }
    }

    /// Variables and files that parts of it come from, such as `${TOKEN}`.
    pub(super) fn sources(&self) -> impl Iterator<Item = &str> {
        self.variables.iter().map(|variable| &*variable.source)
    }

    /// Returns whether parts of it come from variables or files.
    pub(super) const fn has_variables(&self) -> bool {
        !self.variables.is_empty()
    }

    /// Expanded value.
    #[must_use]
    pub fn value(&self) -> &str {
        &self.value
    }

    /// Values of its variables.
    pub(super) fn variable_values(&self) -> impl Iterator<Item = &str> {
        self.variables.iter().map(|variable| &*variable.value)
    }

    /// Text as written in the config; safe to show.
    #[must_use]
    pub fn written(&self) -> &str {
        &self.written
    }
}

impl From<&str> for ExpandedText {
    fn from(text: &str) -> Self {
        Self::new(text, text)
    }
}

impl fmt::Debug for ExpandedText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.written, f)
    }
}

impl fmt::Display for ExpandedText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.written)
    }
}

/// Adds the single words of each value: a peer may repeat only the token of `Bearer abc`.
#[must_use]
pub fn with_words(mut values: Vec<String>) -> Vec<String> {
    let words = values.iter().flat_map(|text| text.split_whitespace());
    let words: Vec<String> = words.map(str::to_owned).collect();
    values.extend(words);
    values
}

/// Query of a URL, as a whole and each value.
pub fn query_values(url: &str) -> impl Iterator<Item = &str> {
    let query = url.split_once('?').map(|(_, query)| query);
    query.into_iter().flat_map(|query| {
        let values = query.split(['&', '#', ';']);
        let values = values.map(|part| part.split_once('=').map_or(part, |(_, value)| value));
        std::iter::once(query).chain(values)
    })
}
