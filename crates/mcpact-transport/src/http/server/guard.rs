//! Host and origin checks of a server, against DNS rebinding and cross-site requests.
//!
//! A browser sends requests of any page to `localhost`, and a hostile name can resolve to it. But a browser sets `Host`
//! and `Origin` truthfully.

use std::net::SocketAddr;

use http::HeaderMap;
use http::header::{HOST, ORIGIN};

/// Allowed host names and origins. The default is loopback only.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Guard {
    hosts: Vec<String>,
    origins: Vec<String>,
    headers: Vec<String>,
    /// The `Host` value that most clients send, compared first.
    usual: Option<String>,
}

/// Reason for rejecting a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GuardError {
    /// `Host` is missing, repeated, or not a name of this server.
    #[error("the Host header names a host that this server does not answer to")]
    Host,
    /// `Origin` is repeated or not allowed.
    #[error("the Origin header names a page that may not call this server")]
    Origin,
}

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

    /// Remembers the listen address as the usual `Host` value.
    pub(super) fn at(mut self, address: SocketAddr) -> Self {
        self.usual = Some(address.to_string()).filter(|address| self.is_own_host(address));
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
        match single(headers, &ORIGIN) {
            Ok(origin) if origin.is_none_or(|origin| self.is_allowed_origin(origin)) => Ok(()),
            Ok(_) | Err(()) => Err(GuardError::Origin),
        }
    }

    fn is_own_host(&self, authority: &str) -> bool {
        if self.usual.as_deref() == Some(authority) {
            return true;
        }
        // `user@host` is invalid in a Host header and is used to confuse parsers.
        let Some(name) = host_name(authority) else {
            return false;
        };
        is_loopback(name) || self.hosts.iter().any(|own| own.eq_ignore_ascii_case(name))
    }

    fn is_allowed_origin(&self, origin: &str) -> bool {
        let lower = origin.to_ascii_lowercase();
        if self.origins.contains(&lower) {
            return true;
        }
        // Browsers send schemes and hosts in lower case; other spellings are forged.
        let rest = origin
            .strip_prefix("http://")
            .or_else(|| origin.strip_prefix("https://"));
        rest.and_then(host_name).is_some_and(is_loopback) && lower == origin
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

/// Returns the host of `host[:port]`, without a trailing dot.
fn host_name(authority: &str) -> Option<&str> {
    let is_foreign = |b| matches!(b, b'@' | b'/' | b'\\' | b' ' | b'?' | b'#');
    if authority.bytes().any(is_foreign) {
        return None;
    }
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => {
            let (inside, after) = rest.split_once(']')?;
            let port = after.strip_prefix(':');
            (inside, port.or(after.is_empty().then_some("0"))?)
        }
        None => authority.split_once(':').unwrap_or((authority, "0")),
    };
    let is_port = !port.is_empty() && port.len() <= 5 && port.bytes().all(|b| b.is_ascii_digit());
    let host = host.strip_suffix('.').unwrap_or(host);
    (is_port && !host.is_empty()).then_some(host)
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
            let guard = Guard::default().at(address.parse().unwrap());
            assert_eq!(judge(&guard, address, &[]).is_ok(), is_own, "{address}");
            assert_eq!(judge(&guard, "localhost", &[]), Ok(()));
            assert!(judge(&guard, "evil.example", &[]).is_err());
        }
        let own = Guard::default().allow_host("Gateway.example");
        assert_eq!(judge(&own, "gateway.example:443", &[]), Ok(()));
    }

    /// T8: only origins of this host are accepted, unless others are configured.
    #[test]
    fn foreign_origins_are_rejected() {
        let guard = Guard::default();
        let of = |origins: &[&str]| judge(&guard, "localhost", origins);
        assert_eq!(of(&[]), Ok(()));
        for good in [
            "http://localhost:3000",
            "http://127.0.0.1",
            "https://[::1]:8443",
        ] {
            assert_eq!(of(&[good]), Ok(()), "{good}");
        }
        for bad in [
            "http://evil.example",
            "null",
            "http://localhost.evil.example",
            "http://127.0.0.1@evil",
            "HTTP://LOCALHOST",
            "file://",
            "http://",
            "http://localhost/x",
            "chrome-extension://abc",
        ] {
            assert_eq!(of(&[bad]), Err(GuardError::Origin), "{bad}");
        }
        assert_eq!(
            of(&["http://localhost", "http://localhost"]),
            Err(GuardError::Origin)
        );
        let open = Guard::default().allow_origin("https://app.example");
        assert_eq!(judge(&open, "localhost", &["https://app.example"]), Ok(()));
    }
}
