//! What the process tells whoever started it.

/// An exit code, with one meaning for every command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Done.
    Ok = 0,
    /// Something that should not happen, such as a full disk.
    Unexpected = 1,
    /// The arguments or a document cannot be used.
    Usage = 2,
    /// The two sides cannot work together.
    Refused = 6,
}

impl From<Exit> for std::process::ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}
