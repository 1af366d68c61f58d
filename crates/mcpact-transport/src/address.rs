//! URLs without secrets, for logs and messages, and addresses of listeners.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

/// Address of an HTTP listener, such as `127.0.0.1:6272` or `unix:/run/user/1000/mcpact.sock`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListenAddress {
    /// IP address and port.
    Tcp(SocketAddr),
    /// Path of a Unix socket.
    Unix(PathBuf),
}

/// A text is not a listen address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected an IP address and a port, such as 127.0.0.1:0, or unix:PATH")]
pub struct InvalidListenAddress;

/// Scheme of a Unix socket.
const UNIX: &str = "unix:";

impl ListenAddress {
    /// Returns the IP address and port.
    #[must_use]
    pub const fn tcp(&self) -> Option<SocketAddr> {
        match self {
            Self::Tcp(address) => Some(*address),
            Self::Unix(_) => None,
        }
    }

    /// Returns true if only processes of this machine can connect.
    #[must_use]
    pub const fn is_local(&self) -> bool {
        match self {
            Self::Tcp(address) => address.ip().is_loopback(),
            Self::Unix(_) => true,
        }
    }
}

impl From<SocketAddr> for ListenAddress {
    fn from(address: SocketAddr) -> Self {
        Self::Tcp(address)
    }
}

impl FromStr for ListenAddress {
    type Err = InvalidListenAddress;

    fn from_str(text: &str) -> Result<Self, InvalidListenAddress> {
        match text.strip_prefix(UNIX) {
            Some(path) if cfg!(unix) && !path.is_empty() => Ok(Self::Unix(PathBuf::from(path))),
            Some(_) => Err(InvalidListenAddress),
            None => text
                .parse()
                .map(Self::Tcp)
                .map_err(|_| InvalidListenAddress),
        }
    }
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(path) => write!(f, "{UNIX}{}", path.display()),
        }
    }
}

/// Returns a URL without what may be secret: credentials, query and fragment.
#[must_use]
pub fn shown(address: &str) -> String {
    let (place, rest) = match address.find(['?', '#']) {
        Some(at) => (&address[..at], "?…"),
        None => (address, ""),
    };
    let (scheme, place) = place.split_once("://").unwrap_or(("", place));
    let host_end = place.find('/').unwrap_or(place.len());
    let place = match place[..host_end].rfind('@') {
        Some(at) => format!("…{}", &place[at..]),
        None => place.to_owned(),
    };
    match scheme {
        "" => format!("{place}{rest}"),
        scheme => format!("{scheme}://{place}{rest}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listen_addresses_are_parsed_and_displayed() {
        for text in ["127.0.0.1:6272", "[::1]:0"] {
            let address: ListenAddress = text.parse().unwrap();
            assert_eq!(
                (address.to_string(), address.is_local()),
                (text.to_owned(), true)
            );
            assert!(address.tcp().is_some());
        }
        for text in ["", "localhost:1", "127.0.0.1", "unix:"] {
            assert_eq!(
                text.parse::<ListenAddress>(),
                Err(InvalidListenAddress),
                "{text}"
            );
        }
        let unix = "unix:/run/a.sock".parse::<ListenAddress>();
        assert_eq!(unix.is_ok(), cfg!(unix));
        assert!(unix.is_ok_and(|it| it.is_local() && it.to_string() == "unix:/run/a.sock"));
    }

    /// Credentials and the query are removed.
    #[test]
    fn secrets_of_an_address_are_left_out() {
        assert_eq!(shown("http://127.0.0.1:1/mcp"), "http://127.0.0.1:1/mcp");
        assert_eq!(
            shown("https://me:pw@host/a@b?key=s#f"),
            "https://…@host/a@b?…"
        );
        assert_eq!(shown("https://host?key=s"), "https://host?…");
        assert_eq!(shown("me:pw@host"), "…@host");
        assert_eq!(shown(""), "");
    }
}
