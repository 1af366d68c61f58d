//! Facts that the transport knows about a message beside its bytes.

use mcpact_spec::Revision;

/// Transport of a message, with its headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransportFacts<'a> {
    /// On a pipe, a socket with lines, or in memory.
    Stream,
    /// In an HTTP request.
    Http(HttpFacts<'a>),
}

impl<'a> TransportFacts<'a> {
    /// The HTTP facts, if it was HTTP.
    #[must_use]
    pub const fn http(&self) -> Option<&HttpFacts<'a>> {
        match self {
            Self::Stream => None,
            Self::Http(facts) => Some(facts),
        }
    }
}

/// The verbs that the protocol knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Carries a message.
    Post,
    /// Opens a stream.
    Get,
    /// Ends a session.
    Delete,
    /// Anything else.
    Other,
}

/// A header that should stand once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HeaderField<'a> {
    /// It is not there.
    #[default]
    Absent,
    /// Its value, as it came.
    Once(&'a str),
    /// It stands there more than once.
    Repeated,
}

/// Meaning of the session header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SessionFact {
    /// There is none.
    #[default]
    Absent,
    /// It names a session that negotiated this revision.
    Live(Revision),
    /// It names no session that lives.
    Unknown,
}

/// An HTTP request, as far as the protocol reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HttpFacts<'a> {
    /// GET, POST or DELETE.
    pub verb: Verb,
    /// `MCP-Protocol-Version`
    pub version: HeaderField<'a>,
    /// `Mcp-Method`
    pub method: HeaderField<'a>,
    /// `Mcp-Name`
    pub name: HeaderField<'a>,
    /// `Mcp-Session-Id`
    pub session: SessionFact,
}

impl HttpFacts<'_> {
    /// A POST without any of the headers.
    pub const BARE_POST: Self = Self {
        verb: Verb::Post,
        version: HeaderField::Absent,
        method: HeaderField::Absent,
        name: HeaderField::Absent,
        session: SessionFact::Absent,
    };
}
