//! Connection setup with a timeout.

use std::error::Error;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use http::Uri;
use hyper::rt::{Read, Write};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::proxy::{SocksV5, Tunnel};
use hyper_util::client::legacy::connect::{Connection, HttpConnector};
#[cfg(unix)]
use hyper_util::rt::TokioIo;
use rustls::{CertificateError, ClientConfig, RootCertStore};
use tower_service::Service;

use super::HttpSettings;
use super::proxy::{ProxyRoute, ProxyRouter};
use crate::error::{CONNECTING, TransportError};

/// Connects by TCP, TLS and proxies, within one timeout.
#[derive(Clone)]
pub(crate) struct Connector {
    direct: HttpsConnector<HttpConnector>,
    tls: Arc<ClientConfig>,
    router: ProxyRouter,
    unix_socket: Option<PathBuf>,
    limit: Duration,
}

impl std::fmt::Debug for Connector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connector")
            .field("router", &self.router)
            .field("limit", &self.limit)
            .finish_non_exhaustive()
    }
}

/// The timeout was reached.
#[derive(Debug, thiserror::Error)]
#[error("connecting timed out")]
struct TooSlow;

/// The proxy, or the server behind it, could not be reached.
#[derive(Debug, thiserror::Error)]
#[error("through the proxy `{proxy}`")]
struct ProxyFailed {
    proxy: String,
    source: Box<dyn Error + Send + Sync>,
}

impl Connector {
    pub(crate) fn new(settings: &HttpSettings) -> Result<Self, TransportError> {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        // Messages are small and wait for responses; a delayed segment delays the call.
        tcp.set_nodelay(true);
        tcp.set_keepalive(Some(Duration::from_secs(60)));
        let tls = tls(settings)?;
        let direct = HttpsConnectorBuilder::new()
            .with_tls_config(tls.clone())
            .https_or_http()
            .enable_http1()
            .wrap_connector(tcp);
        Ok(Self {
            direct,
            tls: Arc::new(tls),
            router: ProxyRouter::new(&settings.proxy),
            unix_socket: settings.unix_socket.clone(),
            limit: settings.connect_timeout,
        })
    }

    pub(super) const fn router(&self) -> &ProxyRouter {
        &self.router
    }

    /// Connects for HTTP requests.
    pub(super) async fn connect(
        &self,
        address: Uri,
    ) -> Result<ClientStream, Box<dyn Error + Send + Sync>> {
        let route = self.router.route(&address)?;
        let connecting = tokio::time::timeout(self.limit, self.clone().go(route, address));
        connecting.await.unwrap_or_else(|_| Err(TooSlow.into()))
    }

    /// Connects for other uses than HTTP requests, which no proxy can forward.
    pub(crate) async fn tunnel(self, address: Uri) -> Result<ClientStream, TransportError> {
        let route = match self.router.route(&address)? {
            ProxyRoute::Forwarded { proxy, auth } => ProxyRoute::Tunnel { proxy, auth },
            route @ (ProxyRoute::Direct | ProxyRoute::Tunnel { .. } | ProxyRoute::Socks { .. }) => {
                route
            }
        };
        self.go(route, address)
            .await
            .map_err(|error| explain(&*error))
    }

    async fn go(
        mut self,
        route: ProxyRoute,
        address: Uri,
    ) -> Result<ClientStream, Box<dyn Error + Send + Sync>> {
        #[cfg(unix)]
        if let Some(path) = self.unix_socket {
            let stream = tokio::net::UnixStream::connect(path).await?;
            return Ok(Box::new(TokioIo::new(stream)));
        }
        let name = |proxy: &Uri| proxy.authority().map(ToString::to_string);
        match route {
            ProxyRoute::Direct => Ok(Box::new(self.direct.call(address).await?)),
            ProxyRoute::Forwarded { proxy, .. } => match self.direct.call(proxy.clone()).await {
                Ok(io) => Ok(Box::new(io)),
                Err(source) => Err(proxy_failed(name(&proxy), source)),
            },
            ProxyRoute::Tunnel { proxy, auth } => {
                let name = name(&proxy);
                let mut tunnel = Tunnel::new(proxy, self.direct);
                if let Some(auth) = auth {
                    tunnel = tunnel.with_auth(auth);
                }
                within(tunnel, self.tls, address)
                    .await
                    .map_err(|source| proxy_failed(name, source))
            }
            ProxyRoute::Socks { proxy, auth } => {
                let name = name(&proxy);
                let mut socks = SocksV5::new(proxy, self.direct);
                if let Some((user, password)) = auth {
                    socks = socks.with_auth(user, password);
                }
                within(socks, self.tls, address)
                    .await
                    .map_err(|source| proxy_failed(name, source))
            }
        }
    }
}

/// Connects through a proxy, with TLS inside if the URL requires it.
async fn within<C>(
    proxy: C,
    tls: Arc<ClientConfig>,
    address: Uri,
) -> Result<ClientStream, Box<dyn Error + Send + Sync>>
where
    C: Service<Uri, Error: Into<Box<dyn Error + Send + Sync>>, Future: Send + 'static>,
    C::Response: Connection + Read + Write + Send + Unpin + 'static,
{
    let address = with_port(address)?;
    let io = HttpsConnector::from((proxy, tls)).call(address).await?;
    Ok(Box::new(io))
}

/// Adds the default port: defaults of proxies differ.
fn with_port(address: Uri) -> Result<Uri, http::Error> {
    if address.port().is_some() {
        return Ok(address);
    }
    let port = match address.scheme_str() {
        Some("https") => 443,
        Some(_) | None => 80,
    };
    let authority = format!("{}:{port}", address.host().unwrap_or_default());
    let mut parts = address.into_parts();
    parts.authority = Some(authority.parse()?);
    Ok(Uri::from_parts(parts)?)
}

fn proxy_failed(
    proxy: Option<String>,
    source: Box<dyn Error + Send + Sync>,
) -> Box<dyn Error + Send + Sync> {
    let proxy = proxy.unwrap_or_default();
    Box::new(ProxyFailed { proxy, source })
}

/// Trusted root certificates. Loaded once, because it takes longer than opening a session.
static ROOTS: LazyLock<Arc<RootCertStore>> = LazyLock::new(|| {
    let mut roots = RootCertStore::empty();
    // System certificates first, so that company certificates count. A bare container has none; then the public list is
    // used.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    }
    Arc::new(roots)
});

fn tls(settings: &HttpSettings) -> Result<ClientConfig, TransportError> {
    let failed =
        |error: rustls::Error| TransportError::Http(format!("TLS cannot be set up: {error}"));
    let mut roots = Arc::clone(&ROOTS);
    for certificate in &settings.trusted {
        let roots = Arc::make_mut(&mut roots);
        roots.add(certificate.clone()).map_err(failed)?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(failed)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(config)
}

/// Returns an error and its causes.
fn causes<'e>(error: &'e (dyn Error + 'static)) -> impl Iterator<Item = &'e (dyn Error + 'static)> {
    std::iter::successors(Some(error), |error| (*error).source())
}

/// Returns whether a failed connection attempt may succeed later. Nothing was sent.
pub(super) fn is_transient(error: &(dyn Error + 'static)) -> bool {
    causes(error).any(|cause| cause.downcast_ref().is_some_and(passes))
}

fn passes(error: &std::io::Error) -> bool {
    let is_passing = matches!(
        error.kind(),
        ErrorKind::ConnectionRefused
            | ErrorKind::ConnectionReset
            | ErrorKind::ConnectionAborted
            | ErrorKind::HostUnreachable
            | ErrorKind::NetworkUnreachable
            | ErrorKind::UnexpectedEof
    );
    // An error wrapped by `io::Error` is not among its sources.
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref());
    is_passing || inner.is_some_and(passes)
}

/// Joins the chain of causes: hyper's own message does not contain the cause.
pub(super) fn explain(error: &(dyn Error + 'static)) -> TransportError {
    let causes = || causes(error);
    if causes().any(|cause| cause.is::<TooSlow>()) {
        return TransportError::Timeout(CONNECTING);
    }
    let certificate = causes().find_map(invalid_certificate);
    if let Some(fault) = certificate.and_then(certificate_explanation) {
        return fault;
    }
    let texts: Vec<String> = causes().map(ToString::to_string).collect();
    TransportError::Unconnected(texts.join(": "))
}

const UNTRUSTED: TransportError = TransportError::Certificate {
    why: "it is signed by an unknown authority",
    remedy: "add the certificate of the authority to the system's trusted certificates, or set `SSL_CERT_FILE` to a PEM file with all \
             trusted certificates",
};

const OF_AUTHORITY: TransportError = TransportError::Certificate {
    why: "it is a CA certificate, not a server certificate",
    remedy: "install a server certificate, for example from `openssl req -x509 -addext basicConstraints=critical,CA:FALSE`",
};

const OTHER_NAME: TransportError = TransportError::Certificate {
    why: "it is not valid for the host name in the URL",
    remedy: "use a host name of the certificate in the URL, or install a certificate for this name",
};

const EXPIRED: TransportError = TransportError::Certificate {
    why: "it has expired",
    remedy: "renew it on the server, and check the clock of this host",
};

const TOO_YOUNG: TransportError = TransportError::Certificate {
    why: "it is not valid yet",
    remedy: "check the clocks of the server and this host",
};

/// Finds the certificate error in a chain of errors. An error wrapped by [`io::Error`] is not among its sources.
fn invalid_certificate<'e>(error: &'e (dyn Error + 'static)) -> Option<&'e CertificateError> {
    if let Some(rustls::Error::InvalidCertificate(fault)) = error.downcast_ref() {
        return Some(fault);
    }
    let inner = error.downcast_ref::<std::io::Error>()?.get_ref()?;
    invalid_certificate(inner)
}

fn certificate_explanation(fault: &CertificateError) -> Option<TransportError> {
    use CertificateError as Fault;
    match fault {
        Fault::UnknownIssuer | Fault::BadSignature => Some(UNTRUSTED),
        Fault::NotValidForName | Fault::NotValidForNameContext { .. } => Some(OTHER_NAME),
        Fault::Expired | Fault::ExpiredContext { .. } => Some(EXPIRED),
        Fault::NotValidYet | Fault::NotValidYetContext { .. } => Some(TOO_YOUNG),
        // rustls has no variant for it.
        Fault::Other(other) if format!("{other:?}").contains("CaUsedAsEndEntity") => {
            Some(OF_AUTHORITY)
        }
        _ => None,
    }
}

/// Bidirectional byte stream.
pub(crate) trait Duplex: Read + Write + Send + Unpin {}

impl<T: Read + Write + Send + Unpin> Duplex for T {}

/// Connection to a server or proxy, plain or TLS.
pub(crate) type ClientStream = Box<dyn Duplex>;
