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

impl Exit {
    /// Every code that mcpact chooses itself.
    #[cfg(test)]
    pub(crate) const ALL: [Self; 6] = [
        Self::Ok,
        Self::Unexpected,
        Self::Usage,
        Self::Unreachable,
        Self::Refused,
        Self::Problems,
    ];

    /// The number.
    pub(crate) const fn code(self) -> u8 {
        match self {
            Self::Ok => 0,
            Self::Unexpected => 1,
            Self::Usage => 2,
            Self::Unreachable => 4,
            Self::Refused => 6,
            Self::Problems => 7,
            #[cfg(target_os = "linux")]
            Self::Child(status) => status,
        }
    }
}

impl From<Exit> for std::process::ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}
