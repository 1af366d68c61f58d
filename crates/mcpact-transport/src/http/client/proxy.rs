//! Which way requests take to their server.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use http::{HeaderValue, Uri};
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use url::Url;

use super::Forwarding;
use crate::error::DoorError;

/// Where SOCKS proxies listen that do not say otherwise.
const SOCKS_PORT: u16 = 1080;

/// Whether requests go through a proxy.
#[derive(Clone, Debug, Default)]
pub enum ProxyMode {
    /// As `HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY` say; this machine is always reached
    /// directly.
    System,
    /// Through this one.
    Custom(Proxy),
    /// Through none, whatever the variables say.
    Disabled,
    /// As whoever stands above says; on top, as the system says.
    #[default]
    Inherit,
}

impl ProxyMode {
    /// What the mode means below another.
    #[must_use]
    pub fn below(&self, parent: &Self) -> Self {
        match self {
            Self::Inherit => parent.clone(),
            Self::System | Self::Custom(_) | Self::Disabled => self.clone(),
        }
    }
}

/// A proxy and what does not go through it. Its credentials are never shown.
#[derive(Clone)]
pub struct Proxy {
    address: Url,
    exceptions: String,
}

impl Proxy {
    /// A proxy at an `http://`, `https://` or `socks5://` address, which may have a user and a password.
    /// Names are looked up by the proxy.
    ///
    /// # Errors
    /// The address is of another kind.
    pub fn new(address: &str) -> Result<Self, DoorError> {
        let refuse = |why| DoorError::Address {
            address: without_credentials(address),
            why,
        };
        let url = Url::parse(address).map_err(|_| refuse("it is not a URL"))?;
        let is_known = matches!(url.scheme(), "http" | "https" | "socks5" | "socks5h");
        if !is_known || url.host_str().is_none_or(str::is_empty) {
            return Err(refuse(
                "a proxy has an `http://`, `https://` or `socks5://` address",
            ));
        }
        Ok(Self {
            address: url,
            exceptions: String::new(),
        })
    }

    /// Reaches these directly: names, which stand for what is below them, too, addresses and networks
    /// such as `10.0.0.0/8`, separated by commas.
    #[must_use]
    pub fn except(mut self, list: &str) -> Self {
        self.exceptions = list.to_owned();
        self
    }
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Proxy")
            .field("address", &without_credentials(self.address.as_str()))
            .field("exceptions", &self.exceptions)
            .finish()
    }
}

/// An address as it may be shown: a part before an `@` may be a secret.
fn without_credentials(address: &str) -> String {
    let (scheme, rest) = address.split_once("://").unwrap_or(("", address));
    match rest.rsplit_once('@') {
        Some((_, host)) => format!("{scheme}://…@{host}"),
        None => address.to_owned(),
    }
}

/// Finds the way to an address.
#[derive(Clone, Debug)]
pub(crate) struct Router {
    matcher: Option<Arc<Matcher>>,
    /// Whether this machine is reached directly.
    spares_loopback: bool,
}

/// The way to an address.
#[derive(Clone, Debug)]
pub(super) enum Way {
    /// Straight.
    Direct,
    /// The proxy is sent the whole request.
    Forwarded { proxy: Uri },
    /// The proxy is asked by CONNECT for a connection.
    Tunnel {
        proxy: Uri,
        auth: Option<HeaderValue>,
    },
    /// The proxy is asked by SOCKS5 for a connection.
    Socks {
        proxy: Uri,
        auth: Option<(String, String)>,
    },
}

impl Router {
    pub(super) fn new(mode: &ProxyMode) -> Self {
        let matcher = match mode {
            ProxyMode::System | ProxyMode::Inherit => Some(Matcher::from_system()),
            ProxyMode::Custom(proxy) => Some(
                Matcher::builder()
                    .all(proxy.address.as_str())
                    .no(proxy.exceptions.as_str())
                    .build(),
            ),
            ProxyMode::Disabled => None,
        };
        Self {
            matcher: matcher.map(Arc::new),
            spares_loopback: !matches!(mode, ProxyMode::Custom(_)),
        }
    }

    /// The way to an address.
    ///
    /// # Errors
    /// The system names a proxy of a kind that is not possible here.
    pub(super) fn way(&self, target: &Uri) -> Result<Way, DoorError> {
        let Some(found) = self.intercept(target) else {
            return Ok(Way::Direct);
        };
        let proxy = found.uri().clone();
        match proxy.scheme_str() {
            Some("http" | "https") if target.scheme_str() == Some("http") => {
                Ok(Way::Forwarded { proxy })
            }
            Some("http" | "https") => Ok(Way::Tunnel {
                auth: found.basic_auth().cloned(),
                proxy,
            }),
            Some("socks5" | "socks5h") => Ok(Way::Socks {
                proxy: socks_address(&proxy)?,
                auth: found
                    .raw_auth()
                    .map(|(user, password)| (user.to_owned(), password.to_owned())),
            }),
            Some(_) | None => Err(unusable(&proxy)),
        }
    }

    /// Whether requests to an address go to a proxy as a whole.
    pub(super) fn forwarding(&self, target: &Uri) -> Forwarding {
        match self.way(target) {
            Ok(Way::Forwarded { .. }) => Forwarding::Proxy(self.forwarded_auth(target)),
            Ok(Way::Direct | Way::Tunnel { .. } | Way::Socks { .. }) | Err(_) => Forwarding::None,
        }
    }

    /// What a forwarding proxy wants to see in `Proxy-Authorization`.
    pub(super) fn forwarded_auth(&self, target: &Uri) -> Option<HeaderValue> {
        match self.way(target) {
            Ok(Way::Forwarded { .. }) => self.intercept(target)?.basic_auth().cloned(),
            Ok(Way::Direct | Way::Tunnel { .. } | Way::Socks { .. }) | Err(_) => None,
        }
    }

    fn intercept(&self, target: &Uri) -> Option<Intercept> {
        let is_spared = self.spares_loopback && target.host().is_some_and(is_loopback);
        let matcher = self.matcher.as_ref().filter(|_| !is_spared)?;
        matcher.intercept(target)
    }
}

fn is_loopback(host: &str) -> bool {
    let inside = host.trim_start_matches('[').trim_end_matches(']');
    host.eq_ignore_ascii_case("localhost")
        || inside.parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
}

fn unusable(proxy: &Uri) -> DoorError {
    DoorError::Address {
        address: proxy.to_string(),
        why: "only `http://`, `https://` and `socks5://` proxies are possible",
    }
}

/// Where to connect for SOCKS; the connector knows only the schemes of HTTP.
fn socks_address(proxy: &Uri) -> Result<Uri, DoorError> {
    let host = proxy.host().unwrap_or_default();
    let port = proxy.port_u16().unwrap_or(SOCKS_PORT);
    format!("http://{host}:{port}/")
        .parse()
        .map_err(|_| unusable(proxy))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn way(mode: &ProxyMode, target: &str) -> String {
        let way = Router::new(mode).way(&target.parse().unwrap()).unwrap();
        match way {
            Way::Direct => "direct".to_owned(),
            Way::Forwarded { proxy } => format!("forwarded {proxy}"),
            Way::Tunnel { proxy, .. } => format!("tunnel {proxy}"),
            Way::Socks { proxy, .. } => format!("socks {proxy}"),
        }
    }

    fn custom(address: &str) -> ProxyMode {
        ProxyMode::Custom(Proxy::new(address).unwrap())
    }

    /// T7: what is encrypted is tunnelled, what is not is forwarded, SOCKS carries both.
    #[test]
    fn the_way_follows_from_proxy_and_target() {
        let http = custom("http://proxy:3128");
        assert_eq!(way(&http, "http://a/mcp"), "forwarded http://proxy:3128/");
        assert_eq!(way(&http, "https://a/mcp"), "tunnel http://proxy:3128/");
        let socks = custom("socks5://proxy");
        assert_eq!(way(&socks, "http://a/mcp"), "socks http://proxy:1080/");
        assert_eq!(way(&socks, "https://a/mcp"), "socks http://proxy:1080/");
        assert_eq!(way(&ProxyMode::Disabled, "https://a/mcp"), "direct");
        let except = Proxy::new("http://proxy").unwrap().except("a, 10.0.0.0/8");
        let except = ProxyMode::Custom(except);
        assert_eq!(way(&except, "https://a/"), "direct");
        assert_eq!(way(&except, "https://10.1.2.3/"), "direct");
        assert_eq!(way(&except, "https://b/"), "tunnel http://proxy/");
    }

    /// T7: this machine is not looked for behind the system's proxy.
    #[test]
    fn the_system_proxy_is_not_asked_for_this_machine() {
        for target in [
            "http://localhost:1/",
            "http://127.0.0.1/",
            "http://[::1]:2/",
        ] {
            assert_eq!(way(&ProxyMode::System, target), "direct", "{target}");
        }
    }

    /// T7: a mode that inherits is the one above, any other is itself.
    #[test]
    fn modes_are_inherited() {
        let above = custom("http://above");
        let inherited = ProxyMode::Inherit.below(&above);
        assert_eq!(way(&inherited, "https://a/"), "tunnel http://above/");
        let disabled = ProxyMode::Disabled.below(&above);
        assert_eq!(way(&disabled, "https://a/"), "direct");
    }

    #[test]
    fn other_kinds_are_refused_and_credentials_not_shown() {
        for bad in ["ftp://proxy", "socks4://proxy", "proxy:3128", ""] {
            assert!(Proxy::new(bad).is_err(), "{bad}");
        }
        let told = Proxy::new("ftp://ann:hunter2@proxy")
            .unwrap_err()
            .to_string();
        let shown = format!("{:?}", custom("socks5://ann:hunter2@proxy"));
        assert!(!told.contains("hunter2") && !shown.contains("hunter2"));
    }
}
