//! What a client can connect to.

use mcpact_transport::address::shown;
use mcpact_transport::link::Link;
#[cfg(unix)]
use mcpact_transport::stdio::child::ChildCommand;

/// What a client can connect to: an address, a program to start, or anything that carries lines.
#[derive(Debug)]
#[non_exhaustive]
pub enum Target {
    /// An address: `http://`, `https://`, `ws://`, `wss://`, or `tcp://` for lines.
    Url(String),
    /// A program that is started, and started anew if it dies of the first question.
    #[cfg(unix)]
    Child(ChildCommand),
    /// A carrier that is open already: a socket, a piece of memory.
    Link(Link),
}

/// How an address is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scheme {
    /// By requests; what has another scheme is told so there.
    Http,
    /// By one socket.
    WebSocket,
    /// By lines on one connection.
    Tcp,
}

impl Scheme {
    pub(super) fn of(address: &str) -> Self {
        match address.split_once("://") {
            Some(("ws" | "wss", _)) => Self::WebSocket,
            Some(("tcp", _)) => Self::Tcp,
            Some(_) | None => Self::Http,
        }
    }
}

impl Target {
    /// What errors and the log call it.
    pub(super) fn name(&self) -> String {
        match self {
            Self::Url(address) => format!("`{}`", shown(address)),
            #[cfg(unix)]
            Self::Child(command) => format!("`{}`", command.name),
            Self::Link(_) => "the server".to_owned(),
        }
    }
}

impl From<&str> for Target {
    fn from(address: &str) -> Self {
        Self::Url(address.to_owned())
    }
}

impl From<String> for Target {
    fn from(address: String) -> Self {
        Self::Url(address)
    }
}

impl From<&String> for Target {
    fn from(address: &String) -> Self {
        Self::Url(address.clone())
    }
}

impl From<Link> for Target {
    fn from(link: Link) -> Self {
        Self::Link(link)
    }
}

#[cfg(unix)]
impl From<ChildCommand> for Target {
    fn from(command: ChildCommand) -> Self {
        Self::Child(command)
    }
}
