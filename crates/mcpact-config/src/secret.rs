//! Texts that must not be shown, and texts that are shown as they were written.

use std::ffi::{OsStr, OsString};
use std::fmt;

/// A text that nobody sees: `Debug` and `Display` are masked.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secret {
    text: String,
    /// What it really is, if that is no text.
    raw: Option<OsString>,
}

impl Secret {
    /// Hides a text.
    pub fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            raw: None,
        }
    }

    /// Hides the value of a variable, which need not be a text.
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

    /// The text itself, for whoever must send it; of what is none, what comes nearest.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.text
    }

    /// The value of a variable, as it is.
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

/// A text whose variables were filled in. What is shown is what was written: the value of a variable
/// may be a secret.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Filled {
    value: String,
    written: String,
    sources: Vec<String>,
}

impl Filled {
    /// A text and how it was written.
    pub fn new(value: impl Into<String>, written: impl Into<String>) -> Self {
        Self {
            value: value.into(),
            written: written.into(),
            sources: Vec::new(),
        }
    }

    /// The same, with the variables and files that parts of it come from.
    #[must_use]
    pub fn taken_from(mut self, sources: Vec<String>) -> Self {
        self.sources = sources;
        self
    }

    /// The variables and files that parts of it come from, such as `${TOKEN}`.
    #[must_use]
    pub fn sources(&self) -> &[String] {
        &self.sources
    }

    /// The text, variables filled in.
    #[must_use]
    pub fn value(&self) -> &str {
        &self.value
    }

    /// What stands in the place of its variables.
    #[must_use]
    pub fn fillings(&self) -> Vec<&str> {
        let mut found = Vec::new();
        let mut value = self.value.as_str();
        let mut pieces = self.written.split("${");
        value = value
            .strip_prefix(pieces.next().unwrap_or_default())
            .unwrap_or(value);
        let mut pieces = pieces.peekable();
        while let Some(piece) = pieces.next() {
            let literal = piece.split_once('}').map_or("", |(_, literal)| literal);
            // The last literal ends the text; one between two variables is where it comes first.
            let at = match (literal, pieces.peek()) {
                (literal, None) if value.ends_with(literal) => Some(value.len() - literal.len()),
                ("", _) => None,
                (literal, _) => value.find(literal),
            };
            let Some(at) = at else {
                found.push(value);
                break;
            };
            found.push(&value[..at]);
            value = &value[at + literal.len()..];
        }
        found
    }

    /// The text as it was written, which may be shown.
    #[must_use]
    pub fn written(&self) -> &str {
        &self.written
    }
}

impl From<&str> for Filled {
    fn from(text: &str) -> Self {
        Self::new(text, text)
    }
}

impl fmt::Debug for Filled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.written, f)
    }
}

impl fmt::Display for Filled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.written)
    }
}

/// These values, and each of their words: a peer may repeat only the token of `Bearer abc`.
#[must_use]
pub fn with_words(mut values: Vec<String>) -> Vec<String> {
    let words = values.iter().flat_map(|text| text.split_whitespace());
    let words: Vec<String> = words.map(str::to_owned).collect();
    values.extend(words);
    values
}

/// The query of a URL, as a whole and each value of it.
pub fn query_values(url: &str) -> impl Iterator<Item = &str> {
    let query = url.split_once('?').map(|(_, query)| query);
    query.into_iter().flat_map(|query| {
        let values = query.split(['&', '#', ';']);
        let values = values.map(|part| part.split_once('=').map_or(part, |(_, value)| value));
        std::iter::once(query).chain(values)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_variables_stand_for_is_found() {
        for (value, written, expected) in [
            ("plain", "plain", &[][..]),
            ("secret", "${A}", &["secret"]),
            ("--key=secret!", "--key=${A}!", &["secret"]),
            ("one/two", "${A}/${B}", &["one", "two"]),
            ("onetwo", "${A}${B}", &["onetwo"]),
        ] {
            assert_eq!(
                Filled::new(value, written).fillings(),
                expected,
                "{written}"
            );
        }
    }
}
