use std::fmt;
use std::io::Read;
use std::path::PathBuf;

use mcpact_spec::Side;

use super::DocumentFault;
use crate::error::CliError;

/// Size limit of a document.
const MAX_BYTES: u64 = 16 << 20;

const EXAMPLE_CLIENT: &str = include_str!("../../examples-data/client.json");
const EXAMPLE_SERVER: &str = include_str!("../../examples-data/server.json");

/// Source of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// A file.
    File(PathBuf),
    /// Stdin.
    Stdin,
    /// The bundled example.
    Example,
}

impl Source {
    /// Returns the name for output.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::File(path) => path.display().to_string(),
            Self::Stdin => String::from("stdin"),
            Self::Example => String::from("bundled example"),
        }
    }

    /// Reads the text, without a byte order mark.
    pub(super) fn read(&self, side: Side) -> Result<String, CliError> {
        let bytes = match (self, side) {
            (Self::Example, Side::Client) => return Ok(EXAMPLE_CLIENT.to_owned()),
            (Self::Example, Side::Server) => return Ok(EXAMPLE_SERVER.to_owned()),
            (Self::Stdin, _) => self.bytes(Ok(std::io::stdin().lock()))?,
            (Self::File(path), _) => self.bytes(std::fs::File::open(path))?,
        };
        match String::from_utf8(bytes) {
            Ok(text) => Ok(match text.strip_prefix('\u{feff}') {
                Some(rest) => rest.to_owned(),
                None => text,
            }),
            Err(error) => {
                let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
                Err(self.fault(DocumentFault::NotJson {
                    detail: String::from("invalid UTF-8"),
                    position: Position::after(valid),
                }))
            }
        }
    }

    /// Error for a document from this source.
    pub(super) fn fault(&self, fault: DocumentFault) -> CliError {
        let origin = self.clone();
        CliError::Document { origin, fault }
    }

    fn bytes(&self, opened: std::io::Result<impl Read>) -> Result<Vec<u8>, CliError> {
        let mut bytes = Vec::new();
        let read = opened.and_then(|file| file.take(MAX_BYTES + 1).read_to_end(&mut bytes));
        match read {
            Err(cause) => Err(CliError::ReadDocument {
                origin: self.clone(),
                cause,
            }),
            Ok(length) if length as u64 > MAX_BYTES => {
                Err(self.fault(DocumentFault::TooLarge { limit: MAX_BYTES }))
            }
            Ok(_) => Ok(bytes),
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(_) => write!(f, "`{}`", self.name()),
            Self::Stdin | Self::Example => f.write_str(&self.name()),
        }
    }
}

/// Position in a text, counted from one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Position {
    /// The line.
    pub(crate) line: usize,
    /// The column, in bytes.
    pub(crate) column: usize,
}

impl Position {
    /// Returns the position of the byte after these.
    fn after(bytes: &[u8]) -> Self {
        let last_line = bytes.rsplit(|b| *b == b'\n').next().unwrap_or_default();
        Self {
            line: bytes.iter().filter(|b| **b == b'\n').count() + 1,
            column: last_line.len() + 1,
        }
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}", self.line, self.column)
    }
}

#[cfg(test)]
mod tests {
    use super::Position;

    #[test]
    fn positions_are_counted_from_one() {
        let at = |bytes: &[u8]| (Position::after(bytes).line, Position::after(bytes).column);
        assert_eq!(at(b""), (1, 1));
        assert_eq!(at(b"ab"), (1, 3));
        assert_eq!(at(b"ab\n"), (2, 1));
        assert_eq!(at(b"ab\nc"), (2, 2));
    }
}
