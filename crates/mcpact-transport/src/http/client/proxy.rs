//! Proxy selection.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use http::{HeaderValue, Uri};
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use url::Url;

use super::Forwarding;
use crate::address::shown;
use crate::error::TransportError;

/// Default port of SOCKS proxies.
const SOCKS_PORT: u16 = 1080;

/// Use of a proxy.
#[derive(Clone, Debug, Default)]
pub enum ProxyMode {
    /// By `HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY`; loopback is always reached directly.
    System,
    /// This proxy.
    Custom(Proxy),
    /// No proxy, regardless of the environment.
    Disabled,
    /// As the parent setting; at the top level, as `System`.
    #[default]
    Inherit,
}

impl ProxyMode {
    /// Resolves the mode against the parent setting.
    #[must_use]
    pub fn below(&self, parent: &Self) -> Self {
        match self {
            Self::Inherit => parent.clone(),
            Self::System | Self::Custom(_) | Self::Disabled => self.clone(),
        }
    }
}

/// A proxy and its exceptions. Its credentials are never shown.
#[derive(Clone)]
pub struct Proxy {
    address: Url,
    exceptions: String,
}

impl Proxy {
    /// Creates a proxy from an `http://`, `https://` or `socks5://` URL, which may contain credentials. The proxy
    /// resolves names.
    ///
    /// # Errors
    /// The URL has another scheme.
    pub fn new(address: &str) -> Result<Self, TransportError> {
        let refuse = |why| TransportError::address(shown(address), why);
        let url = Url::parse(address).map_err(|_| refuse("not a URL"))?;
        let is_known = matches!(url.scheme(), "http" | "https" | "socks5" | "socks5h");
        if !is_known || url.host_str().is_none_or(str::is_empty) {
            return Err(refuse("use an `http://`, `https://` or `socks5://` URL"));
        }
        Ok(Self {
            address: url,
            exceptions: String::new(),
        })
    }

    /// Reaches these directly: host names with their subdomains, addresses, and networks such as `10.0.0.0/8`,
    /// separated by commas.
    #[must_use]
    pub fn except(mut self, list: &str) -> Self {
        self.exceptions = list.to_owned();
        self
    }
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Proxy")
            .field("address", &shown(self.address.as_str()))
            .field("exceptions", &self.exceptions)
            .finish()
    }
}

/// Selects the route to a server.
#[derive(Clone, Debug)]
pub(crate) struct ProxyRouter {
    matcher: Option<Arc<Matcher>>,
    /// True if loopback is reached directly.
    skips_loopback: bool,
}

/// Route to a server.
#[derive(Clone, Debug)]
pub(super) enum ProxyRoute {
    /// No proxy.
    Direct,
    /// The proxy forwards the request.
    Forwarded {
        proxy: Uri,
        auth: Option<HeaderValue>,
    },
    /// Tunnel by `CONNECT`.
    Tunnel {
        proxy: Uri,
        auth: Option<HeaderValue>,
    },
    /// Tunnel by SOCKS5.
    Socks {
        proxy: Uri,
        auth: Option<(String, String)>,
    },
}

impl ProxyRouter {
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
            skips_loopback: !matches!(mode, ProxyMode::Custom(_)),
        }
    }

    /// Selects the route to a server.
    ///
    /// # Errors
    /// The system configures an unsupported kind of proxy.
    pub(super) fn route(&self, target: &Uri) -> Result<ProxyRoute, TransportError> {
        let Some(found) = self.intercept(target) else {
            return Ok(ProxyRoute::Direct);
        };
        let proxy = found.uri().clone();
        let auth = found.basic_auth().cloned();
        match proxy.scheme_str() {
            Some("http" | "https") if target.scheme_str() == Some("http") => {
                Ok(ProxyRoute::Forwarded { proxy, auth })
            }
            Some("http" | "https") => Ok(ProxyRoute::Tunnel { proxy, auth }),
            Some("socks5" | "socks5h") => Ok(ProxyRoute::Socks {
                proxy: socks_address(&proxy)?,
                auth: found
                    .raw_auth()
                    .map(|(user, password)| (user.to_owned(), password.to_owned())),
            }),
            Some(_) | None => Err(unusable(&proxy)),
        }
    }

    /// Returns the forwarding proxy for a target.
    pub(super) fn forwarding(&self, target: &Uri) -> Forwarding {
        match self.route(target) {
            Ok(ProxyRoute::Forwarded { auth, .. }) => Forwarding::Proxy(auth),
            _ => Forwarding::None,
        }
    }

    fn intercept(&self, target: &Uri) -> Option<Intercept> {
        let is_spared = self.skips_loopback && target.host().is_some_and(is_loopback);
        let matcher = self.matcher.as_ref().filter(|_| !is_spared)?;
        matcher.intercept(target)
    }
}

fn is_loopback(host: &str) -> bool {
    let inside = host.trim_start_matches('[').trim_end_matches(']');
    host.eq_ignore_ascii_case("localhost")
        || inside.parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
}

fn unusable(proxy: &Uri) -> TransportError {
    let why = "use an `http://`, `https://` or `socks5://` proxy";
    TransportError::address(proxy.to_string(), why)
}

/// Address of a SOCKS proxy; the connector only accepts HTTP schemes.
fn socks_address(proxy: &Uri) -> Result<Uri, TransportError> {
    let host = proxy.host().unwrap_or_default();
    let port = proxy.port_u16().unwrap_or(SOCKS_PORT);
    format!("http://{host}:{port}/")
        .parse()
        .map_err(|_| unusable(proxy))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn route(mode: &ProxyMode, target: &str) -> String {
        let route = ProxyRouter::new(mode)
            .route(&target.parse().unwrap())
            .unwrap();
        match route {
            ProxyRoute::Direct => "direct".to_owned(),
            ProxyRoute::Forwarded { proxy, .. } => format!("forwarded {proxy}"),
            ProxyRoute::Tunnel { proxy, .. } => format!("tunnel {proxy}"),
            ProxyRoute::Socks { proxy, .. } => format!("socks {proxy}"),
        }
    }

    fn custom(address: &str) -> ProxyMode {
        ProxyMode::Custom(Proxy::new(address).unwrap())
    }

    /// T7: TLS is tunnelled, plain HTTP forwarded, and SOCKS carries both.
    #[test]
    fn route_depends_on_proxy_and_target() {
        let http = custom("http://proxy:3128");
        assert_eq!(route(&http, "http://a/mcp"), "forwarded http://proxy:3128/");
        assert_eq!(route(&http, "https://a/mcp"), "tunnel http://proxy:3128/");
        let socks = custom("socks5://proxy");
        assert_eq!(route(&socks, "http://a/mcp"), "socks http://proxy:1080/");
        assert_eq!(route(&socks, "https://a/mcp"), "socks http://proxy:1080/");
        assert_eq!(route(&ProxyMode::Disabled, "https://a/mcp"), "direct");
        let except = Proxy::new("http://proxy").unwrap().except("a, 10.0.0.0/8");
        let except = ProxyMode::Custom(except);
        assert_eq!(route(&except, "https://a/"), "direct");
        assert_eq!(route(&except, "https://10.1.2.3/"), "direct");
        assert_eq!(route(&except, "https://b/"), "tunnel http://proxy/");
    }

    /// T7: the system proxy is not used for loopback.
    #[test]
    fn system_proxy_is_not_used_for_loopback() {
        for target in [
            "http://localhost:1/",
            "http://127.0.0.1/",
            "http://[::1]:2/",
        ] {
            assert_eq!(route(&ProxyMode::System, target), "direct", "{target}");
        }
    }

    /// T7: an inherited mode is that of the parent.
    #[test]
    fn modes_are_inherited() {
        let above = custom("http://above");
        let inherited = ProxyMode::Inherit.below(&above);
        assert_eq!(route(&inherited, "https://a/"), "tunnel http://above/");
        let disabled = ProxyMode::Disabled.below(&above);
        assert_eq!(route(&disabled, "https://a/"), "direct");
    }

    #[test]
    fn other_schemes_are_rejected_and_credentials_hidden() {
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
