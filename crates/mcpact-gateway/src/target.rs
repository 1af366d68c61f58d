//! What a bridge leads to.

use std::fmt;

use mcpact_transport::http::client::HttpSettings;
use mcpact_transport::link::Link;
use mcpact_transport::stdio::child::ChildCommand;

/// The server behind a bridge.
#[derive(Clone, Debug)]
pub enum Target {
    /// A program that is started, and spoken to on its pipes.
    Command(ChildCommand),
    /// A server that is reached by HTTP.
    Url {
        /// Its address.
        url: String,
        /// How it is reached.
        settings: Box<HttpSettings>,
    },
    /// Servers in this very process: called for a link to a new one.
    Local(Local),
}

/// Makes links to servers in this process.
#[derive(Clone)]
pub struct Local(pub std::sync::Arc<dyn Fn() -> Link + Send + Sync>);

impl fmt::Debug for Local {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Local(..)")
    }
}

impl Target {
    /// A server at this address, reached in the usual way.
    #[must_use]
    pub fn url(url: impl Into<String>) -> Self {
        Self::Url {
            url: url.into(),
            settings: Box::default(),
        }
    }

    /// The key under which a verdict about its era is kept.
    #[must_use]
    pub fn key(&self) -> String {
        match self {
            Self::Command(command) => format!("command {} {:?}", command.name, command.args),
            Self::Url { url, .. } => format!("url {url}"),
            Self::Local(_) => String::from("local"),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Command(command) => write!(f, "`{}`", command.name),
            Self::Url { url, .. } => write!(f, "`{url}`"),
            Self::Local(_) => f.write_str("a server in this process"),
        }
    }
}
