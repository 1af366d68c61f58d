//! Targets of a connection.

use mcpact_transport::address::shown;
use mcpact_transport::link::Link;
#[cfg(unix)]
use mcpact_transport::stdio::child::ChildCommand;

/// Target of a connection: URL, command or open connection.
#[derive(Debug)]
#[non_exhaustive]
pub enum Target {
    /// URL: `http://`, `https://`, `ws://`, `wss://`, or `tcp://` for line-based connections.
    Url(String),
    /// Command to start. It is restarted if it exits on the first modern request.
    #[cfg(unix)]
    Child(ChildCommand),
    /// Open line-based connection, such as a socket or memory.
    Link(Link),
}

/// Transport of a URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scheme {
    /// HTTP; unknown schemes are rejected there.
    Http,
    /// WebSocket.
    WebSocket,
    /// Lines over TCP.
    Tcp,
}

impl Scheme {
    pub(super) fn of(url: &str) -> Self {
        match url.split_once("://") {
            Some(("ws" | "wss", _)) => Self::WebSocket,
            Some(("tcp", _)) => Self::Tcp,
            Some(_) | None => Self::Http,
        }
    }
}

impl Target {
    /// Returns the name for errors and logs.
    pub(super) fn name(&self) -> String {
        match self {
            Self::Url(url) => format!("`{}`", shown(url)),
            #[cfg(unix)]
            Self::Child(command) => format!("`{}`", command.name),
            Self::Link(_) => "the server".to_owned(),
        }
    }
}

impl From<&str> for Target {
    fn from(url: &str) -> Self {
        Self::Url(url.to_owned())
    }
}

impl From<String> for Target {
    fn from(url: String) -> Self {
        Self::Url(url)
    }
}

impl From<&String> for Target {
    fn from(url: &String) -> Self {
        Self::Url(url.clone())
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
