//! The command line that every subject understands.

/// Role of a subject.
#[derive(Debug, clap::Parser)]
pub enum Role {
    /// A server on HTTP; it says where it listens and serves until it is killed.
    Http {
        /// Treatment of legacy clients, if configurable.
        #[arg(long, value_enum, default_value = "session")]
        legacy: Legacy,
        /// The only era that it speaks, where it has a choice.
        #[arg(long, value_enum)]
        era: Option<Era>,
    },
    /// A server on standard input and output.
    Stdio {
        /// The only era that it speaks, where it has a choice.
        #[arg(long, value_enum)]
        era: Option<Era>,
        /// Number of tools, if configurable.
        #[arg(long, default_value = "2")]
        tools: usize,
    },
    /// A client that calls as often as it can, and then writes down how long each call took.
    Client {
        /// An address, or a program that is a subject.
        target: String,
        /// Revisions.
        #[arg(long, value_enum)]
        era: Era,
        /// Number of concurrent calls.
        #[arg(long)]
        open: usize,
        /// Duration in milliseconds.
        #[arg(long)]
        milliseconds: u64,
    },
}

/// Sessions for legacy clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Legacy {
    /// Each has its own.
    Session,
    /// Requests stand alone and are answered as JSON, as far as the library can do that.
    Stateless,
}

/// Protocol era.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Era {
    /// With a handshake.
    Legacy,
    /// Each request alone.
    Modern,
}

impl Era {
    /// The word of the command line.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Legacy => "legacy",
            Self::Modern => "modern",
        }
    }
}
