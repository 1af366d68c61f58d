//! Names of servers.

mod transliteration;

use std::fmt;

use transliteration::to_ascii;

/// Maximum length of a server name. Tool names start with it and may have 64 characters.
const LONGEST: usize = 40;

/// Name of a server: ASCII letters, digits, `-` and `_`, because it is part of URL paths and tool names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServerName(String);

/// Invalid server name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// The name is empty.
    #[error("the server name is empty")]
    Empty,
    /// The name is too long.
    #[error("the server name is longer than {LONGEST} characters")]
    Long,
    /// The name contains an invalid character.
    #[error("`{0}` is not valid in a server name")]
    Character(char),
}

impl ServerName {
    /// Parses a name.
    ///
    /// # Errors
    /// The text is empty, too long, or contains other characters than ASCII letters, digits, `-` and `_`.
    pub fn parse(text: &str) -> Result<Self, NameError> {
        let strange = text.chars().find(|c| !is_usual(*c));
        match strange {
            Some(strange) => Err(NameError::Character(strange)),
            None if text.is_empty() => Err(NameError::Empty),
            None if text.len() > LONGEST => Err(NameError::Long),
            None => Ok(Self(text.to_owned())),
        }
    }

    /// Nearest valid name to the name used by another client.
    #[must_use]
    pub fn near(text: &str) -> Self {
        let text = to_ascii(text);
        let usual = text.chars().map(|c| if is_usual(c) { c } else { '-' });
        let mut name = String::new();
        for c in usual.take(LONGEST) {
            if c != '-' || !(name.is_empty() || name.ends_with('-')) {
                name.push(c);
            }
        }
        let trimmed = name.trim_matches('-');
        Self(
            if trimmed.is_empty() {
                "server"
            } else {
                trimmed
            }
            .to_owned(),
        )
    }

    /// Returns whether the name keeps all letters and digits of the original.
    pub(super) fn is_like(&self, text: &str) -> bool {
        let kept = self.0.chars().filter(char::is_ascii_alphanumeric);
        let text = to_ascii(text);
        kept.eq(text.chars().filter(|c| c.is_alphanumeric()))
    }

    /// This name, or with the first numeric suffix that makes it free.
    pub(super) fn first_free(&self, is_free: impl Fn(&Self) -> bool) -> Self {
        let numbered = (2..).map(|number| self.numbered(number));
        let mut names = std::iter::once(self.clone()).chain(numbered);
        names.find(is_free).unwrap_or_else(|| self.clone())
    }

    /// The name with a numeric suffix.
    fn numbered(&self, number: usize) -> Self {
        let end = format!("-{number}");
        let room = LONGEST.saturating_sub(end.len());
        // Names are ASCII.
        let start = &self.0[..self.0.len().min(room)];
        Self(format!("{start}{end}"))
    }

    /// The name as a string.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

const fn is_usual(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_')
}

impl fmt::Display for ServerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::borrow::Borrow<str> for ServerName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_names_are_rejected() {
        assert_eq!(
            ServerName::parse("my-files_2").map(|n| n.0),
            Ok("my-files_2".into())
        );
        assert_eq!(ServerName::parse(""), Err(NameError::Empty));
        assert_eq!(ServerName::parse("a/b"), Err(NameError::Character('/')));
        assert_eq!(ServerName::parse(&"a".repeat(41)), Err(NameError::Long));
    }

    #[test]
    fn names_of_other_clients_are_converted() {
        for (theirs, ours) in [
            ("My Server", "My-Server"),
            ("@upstash/context7", "upstash-context7"),
            ("github.com/a/b", "github-com-a-b"),
            ("Été à Łódź", "Ete-a-Lodz"),
            ("--", "server"),
            ("", "server"),
        ] {
            let near = ServerName::near(theirs);
            assert_eq!(near.as_str(), ours, "{theirs}");
            assert_eq!(near.is_like(theirs), ours != "server", "{theirs}");
        }
        for lossy in ["é".repeat(100), String::from("文件 2"), String::from("я")] {
            let near = ServerName::near(&lossy);
            assert!(ServerName::parse(near.as_str()).is_ok());
            assert!(!near.is_like(&lossy), "{near}");
        }
    }
}
