//! Host and origin checks of a server, against DNS rebinding and cross-site requests.
//!
//! A browser sends requests of any page to `localhost`, and a hostile name can resolve to it. But a browser sets `Host`
//! and `Origin` truthfully.

use std::net::SocketAddr;

use http::HeaderMap;
use http::header::{HOST, ORIGIN};

/// Allowed host names and origins. By default, the host names are those of loopback, and the only origin is the
/// server's own on loopback.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Guard {
    hosts: Vec<String>,
    origins: Vec<String>,
    headers: Vec<String>,
    /// The `Host` value that most clients send, compared first.
    usual: Option<String>,
    /// Scheme with `://`, and port of the server.
    own: Option<(&'static str, u16)>,
}

/// Reason for rejecting a request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GuardError {
    /// `Host` is missing, repeated, or not a name of this server.
    #[error("the Host header names a host that this server does not answer to")]
    Host,
    /// `Origin` is repeated or not text.
    #[error("the Origin header is invalid")]
    InvalidOrigin,
    /// `Origin` is not allowed.
    #[error(
        "web pages of `{0}` may not call this server; if you trust them, add the origin to `allow_origins`"
    )]
    Origin(String),
}

/// Bytes of an origin in a message.
const SHOWN_ORIGIN: usize = 200;

/// Scheme of an origin without TLS.
pub(super) const HTTP: &str = "http://";

/// Scheme of an origin with TLS.
pub(super) const HTTPS: &str = "https://";

impl Guard {
    /// Allows a host name.
    #[must_use]
    pub fn allow_host(mut self, name: impl Into<String>) -> Self {
        self.hosts.push(name.into().to_ascii_lowercase());
        self
    }

    /// Allows an origin, such as `https://app.example`.
    #[must_use]
    pub fn allow_origin(mut self, origin: impl Into<String>) -> Self {
        self.origins.push(origin.into().to_ascii_lowercase());
        self
    }

    /// Allows pages to send a header, besides those of the protocol.
    #[must_use]
    pub fn allow_header(mut self, name: impl Into<String>) -> Self {
        self.headers.push(name.into().to_ascii_lowercase());
        self
    }

    /// Returns the additional headers that pages may send.
    pub(super) fn headers(&self) -> &[String] {
        &self.headers
    }

    /// Remembers the listen address as the usual `Host` value, and scheme and port as those of the own origin.
    pub(super) fn at(mut self, address: SocketAddr, scheme: &'static str) -> Self {
        self.usual = Some(address.to_string()).filter(|address| self.is_own_host(address));
        self.own = Some((scheme, address.port()));
        self
    }

    /// Checks `Host` and `Origin` before the rest of the request is read.
    ///
    /// # Errors
    /// The first header that is not allowed.
    pub fn check(&self, authority: Option<&str>, headers: &HeaderMap) -> Result<(), GuardError> {
        let host = single(headers, &HOST).map_err(|()| GuardError::Host)?;
        let names = [authority, host];
        if names.iter().all(Option::is_none) {
            return Err(GuardError::Host);
        }
        if !names.iter().flatten().all(|name| self.is_own_host(name)) {
            return Err(GuardError::Host);
        }
        let origin = single(headers, &ORIGIN).map_err(|()| GuardError::InvalidOrigin)?;
        match origin.filter(|origin| !self.is_allowed_origin(origin)) {
            Some(refused) => Err(GuardError::Origin(
                refused.chars().take(SHOWN_ORIGIN).collect(),
            )),
            None => Ok(()),
        }
    }

    fn is_own_host(&self, authority: &str) -> bool {
        if self.usual.as_deref() == Some(authority) {
            return true;
        }
        // `user@host` is invalid in a Host header and is used to confuse parsers.
        let Some((name, _)) = host_and_port(authority) else {
            return false;
        };
        is_loopback(name) || self.hosts.iter().any(|own| own.eq_ignore_ascii_case(name))
    }

    fn is_allowed_origin(&self, origin: &str) -> bool {
        let lower = origin.to_ascii_lowercase();
        if self.origins.contains(&lower) {
            return true;
        }
        // Another port of loopback may belong to another program, or to another user.
        let Some((scheme, own_port)) = self.own else {
            return false;
        };
        let default_port = if scheme == HTTPS { 443 } else { 80 };
        let rest = origin.strip_prefix(scheme).and_then(host_and_port);
        // Browsers send schemes and hosts in lower case; other spellings are forged.
        lower == origin
            && rest.is_some_and(|(name, port)| {
                is_loopback(name) && port.unwrap_or(default_port) == own_port
            })
    }
}

/// Returns the value of a header that may occur once.
fn single<'h>(headers: &'h HeaderMap, name: &http::HeaderName) -> Result<Option<&'h str>, ()> {
    let mut all = headers.get_all(name).iter();
    match (all.next(), all.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => value.to_str().map(Some).map_err(drop),
        (Some(_), Some(_)) => Err(()),
    }
}

/// Returns the host of `host[:port]`, without a trailing dot, and the port.
fn host_and_port(authority: &str) -> Option<(&str, Option<u16>)> {
    let is_foreign = |b| matches!(b, b'@' | b'/' | b'\\' | b' ' | b'?' | b'#');
    if authority.bytes().any(is_foreign) {
        return None;
    }
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => {
            let (inside, after) = rest.split_once(']')?;
            let port = after.strip_prefix(':').map(Some);
            (inside, port.or(after.is_empty().then_some(None))?)
        }
        None => match authority.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        },
    };
    let is_number = |port: &str| port.len() <= 5 && port.bytes().all(|b| b.is_ascii_digit());
    let port = match port {
        Some(port) if is_number(port) => Some(port.parse().ok()?),
        Some(_) => return None,
        None => None,
    };
    let host = host.strip_suffix('.').unwrap_or(host);
    (!host.is_empty()).then_some((host, port))
}

fn is_loopback(name: &str) -> bool {
    name.eq_ignore_ascii_case("localhost")
        || name
            .parse::<std::net::IpAddr>()
            .is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judge(guard: &Guard, host: &str, origins: &[&str]) -> Result<(), GuardError> {
        let mut headers = HeaderMap::new();
        headers.insert(HOST, host.parse().unwrap());
        for origin in origins {
            headers.append(ORIGIN, origin.parse().unwrap());
        }
        guard.check(None, &headers)
    }

    /// T8: only loopback names are accepted by default.
    #[test]
    fn foreign_hosts_are_rejected() {
        let guard = Guard::default();
        for good in [
            "localhost",
            "localhost:6272",
            "127.0.0.1:1",
            "127.9.9.9",
            "[::1]:80",
            "[::1]",
            "LOCALHOST.",
            "localhost.:80",
        ] {
            assert_eq!(judge(&guard, good, &[]), Ok(()), "{good}");
        }
        for bad in [
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1@evil.example",
            "127.0.0.1.evil.example",
            "evil.example:6272",
            "10.0.0.1",
            "[::2]",
            "localhost:port",
            "",
            "[::1",
            "localhost:",
            "0.0.0.0",
        ] {
            assert_eq!(judge(&guard, bad, &[]), Err(GuardError::Host), "{bad}");
        }
        assert_eq!(guard.check(None, &HeaderMap::new()), Err(GuardError::Host));
        for (address, is_own) in [("127.0.0.1:80", true), ("10.0.0.1:80", false)] {
            let guard = Guard::default().at(address.parse().unwrap(), HTTP);
            assert_eq!(judge(&guard, address, &[]).is_ok(), is_own, "{address}");
            assert_eq!(judge(&guard, "localhost", &[]), Ok(()));
            assert!(judge(&guard, "evil.example", &[]).is_err());
        }
        let own = Guard::default().allow_host("Gateway.example");
        assert_eq!(judge(&own, "gateway.example:443", &[]), Ok(()));
    }

    /// T8: only the server's own origin on loopback is accepted, unless others are configured.
    #[test]
    fn foreign_origins_are_rejected() {
        let at = |address: &str, scheme| Guard::default().at(address.parse().unwrap(), scheme);
        let (plain, secure) = (at("127.0.0.1:6272", HTTP), at("[::1]:443", HTTPS));
        assert_eq!(judge(&plain, "localhost", &[]), Ok(()));
        for (guard, good) in [
            (&plain, "http://localhost:6272"),
            (&plain, "http://127.0.0.1:6272"),
            (&plain, "http://[::1]:6272"),
            (&secure, "https://localhost"),
            (&secure, "https://[::1]:443"),
            (&at("127.0.0.1:80", HTTP), "http://localhost"),
        ] {
            assert_eq!(judge(guard, "localhost", &[good]), Ok(()), "{good}");
        }
        for bad in [
            "http://localhost:3000",
            "http://localhost",
            "http://localhost:06272:",
            "https://localhost:6272",
            "http://evil.example",
            "http://evil.example:6272",
            "null",
            "http://localhost.evil.example:6272",
            "http://127.0.0.1@evil:6272",
            "HTTP://LOCALHOST:6272",
            "file://",
            "http://",
            "http://localhost:6272/x",
            "chrome-extension://abc",
        ] {
            let refused = judge(&plain, "localhost", &[bad]);
            assert_eq!(refused, Err(GuardError::Origin(bad.to_owned())), "{bad}");
        }
        let twice = ["http://localhost:6272", "http://localhost:6272"];
        assert_eq!(
            judge(&plain, "localhost", &twice),
            Err(GuardError::InvalidOrigin)
        );
        // A Unix socket has no origin.
        let unix = Guard::default();
        assert!(judge(&unix, "localhost", &["http://localhost"]).is_err());
        let open = plain.allow_origin("http://localhost:6274");
        assert_eq!(
            judge(&open, "localhost", &["http://localhost:6274"]),
            Ok(())
        );
        let text = judge(&open, "localhost", &["http://localhost:3000"]);
        assert_eq!(
            text.unwrap_err().to_string(),
            "web pages of `http://localhost:3000` may not call this server; if you trust them, add the origin to `allow_origins`"
        );
    }
}
