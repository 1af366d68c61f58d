//! What the process tells whoever started it.

/// An exit code, with one meaning for every command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Done.
    Ok,
    /// Something that should not happen, such as a full disk.
    Unexpected,
    /// The arguments or a document cannot be used.
    Usage,
    /// Nobody answers where the command looked.
    Unreachable,
    /// The two sides cannot work together.
    Refused,
    /// A check found something.
    Problems,
    /// What the program said that stood under guard.
    #[cfg(target_os = "linux")]
    Child(u8),
}

impl From<Exit> for std::process::ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Ok => 0,
            Exit::Unexpected => 1,
            Exit::Usage => 2,
            Exit::Unreachable => 4,
            Exit::Refused => 6,
            Exit::Problems => 7,
            #[cfg(target_os = "linux")]
            Exit::Child(status) => status,
        })
    }
}
