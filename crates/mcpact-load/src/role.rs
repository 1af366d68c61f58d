//! The command line that every subject understands.

/// What a subject shall be.
#[derive(Debug, clap::Parser)]
pub enum Role {
    /// A server on HTTP; it says where it listens and serves until it is killed.
    Http {
        /// How it treats legacy clients, where it has a choice.
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
        /// How many tools it has, where it has a choice.
        #[arg(long, default_value = "2")]
        tools: usize,
    },
    /// A client that calls as often as it can, and then writes down how long each call took.
    Client {
        /// An address, or a program that is a subject.
        target: String,
        /// Which revisions it speaks.
        #[arg(long, value_enum)]
        era: Era,
        /// How many calls are open at a time.
        #[arg(long)]
        open: usize,
        /// How long it calls, in milliseconds.
        #[arg(long)]
        milliseconds: u64,
    },
}

/// Whether legacy clients get a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Legacy {
    /// Each has its own.
    Session,
    /// Requests stand alone and are answered as JSON, as far as the library can do that.
    Stateless,
}

/// Which half of the protocol is spoken.
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
