//! What a server is called.

mod letters;

use std::fmt;

use letters::in_ascii;

/// The longest name of a server: the names of its tools start with it and may have 64 characters.
const LONGEST: usize = 40;

/// The name of a server: ASCII letters, digits, `-` and `_`, because it stands in paths and in names of tools.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServerName(String);

/// Why a text is no name of a server.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameFault {
    /// There is nothing in it.
    #[error("a server needs a name")]
    Empty,
    /// It is longer than a name may be.
    #[error("a name has at most {LONGEST} characters")]
    Long,
    /// It has a character that paths or names of tools cannot have.
    #[error("`{0}` cannot stand in the name of a server")]
    Character(char),
}

impl ServerName {
    /// The name in this text.
    ///
    /// # Errors
    /// It is empty or too long, or has other characters than letters, digits, `-` and `_`.
    pub fn parse(text: &str) -> Result<Self, NameFault> {
        let strange = text.chars().find(|c| !is_usual(*c));
        match strange {
            Some(strange) => Err(NameFault::Character(strange)),
            None if text.is_empty() => Err(NameFault::Empty),
            None if text.len() > LONGEST => Err(NameFault::Long),
            None => Ok(Self(text.to_owned())),
        }
    }

    /// The nearest name to what another client calls a server.
    #[must_use]
    pub fn near(text: &str) -> Self {
        let text = in_ascii(text);
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

    /// Whether every letter and digit of what another client calls the server is in its name.
    pub(super) fn is_like(&self, text: &str) -> bool {
        let kept = self.0.chars().filter(char::is_ascii_alphanumeric);
        let text = in_ascii(text);
        kept.eq(text.chars().filter(|c| c.is_alphanumeric()))
    }

    /// The same with a number behind it, for another server.
    #[must_use]
    pub fn numbered(&self, number: usize) -> Self {
        let end = format!("-{number}");
        let room = LONGEST.saturating_sub(end.len());
        // A name is ASCII.
        let start = &self.0[..self.0.len().min(room)];
        Self(format!("{start}{end}"))
    }

    /// The name as text.
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
    fn names_stand_in_paths_and_in_names_of_tools() {
        assert_eq!(
            ServerName::parse("my-files_2").map(|n| n.0),
            Ok("my-files_2".into())
        );
        assert_eq!(ServerName::parse(""), Err(NameFault::Empty));
        assert_eq!(ServerName::parse("a/b"), Err(NameFault::Character('/')));
        assert_eq!(ServerName::parse(&"a".repeat(41)), Err(NameFault::Long));
    }

    #[test]
    fn names_of_other_clients_are_made_to_fit() {
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
