//! Exit codes.

/// Exit code, with the same meaning for every command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Success.
    Ok,
    /// Unexpected error, such as a full disk.
    Unexpected,
    /// Invalid arguments, input or config.
    Usage,
    /// No answer from a gateway.
    Unreachable,
    /// Negotiation refused.
    Refused,
    /// A check found problems.
    Problems,
    /// Exit status of the guarded program.
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
