//! From an address to an open connection, in bounded time.

use std::error::Error;
use std::io::ErrorKind;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use http::Uri;
use hyper::rt::{Read, Write};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder, MaybeHttpsStream};
use hyper_util::client::legacy::connect::proxy::{SocksV5, Tunnel};
use hyper_util::client::legacy::connect::{Connection, HttpConnector};
use rustls::{ClientConfig, RootCertStore};
use tower_service::Service;

use super::pipe::Pipe;
use super::proxy::{Router, Way};
use super::{HttpSettings, certificate};
use crate::error::{CONNECTING, DoorError};
use crate::vigil;

/// TCP and, where the address wants it, TLS, through a proxy where there is one; all within one time
/// limit.
#[derive(Clone)]
pub(crate) struct Connector {
    direct: HttpsConnector<HttpConnector>,
    tls: Arc<ClientConfig>,
    router: Router,
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

/// The limit was reached.
#[derive(Debug, thiserror::Error)]
#[error("connecting took too long")]
struct TooSlow;

/// The proxy, or what is behind it, could not be reached.
#[derive(Debug, thiserror::Error)]
#[error("through the proxy `{proxy}`")]
struct ProxyFailed {
    proxy: String,
    source: Box<dyn Error + Send + Sync>,
}

impl Connector {
    pub(crate) fn new(settings: &HttpSettings) -> Result<Self, DoorError> {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        // Messages are small and wait for answers: a delayed segment is a delayed call.
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
            router: Router::new(&settings.proxy),
            limit: settings.connect_timeout,
        })
    }

    pub(super) const fn router(&self) -> &Router {
        &self.router
    }

    /// Connects for HTTP requests.
    pub(super) async fn connect(&self, address: Uri) -> Result<Pipe, Box<dyn Error + Send + Sync>> {
        let way = self.router.way(&address)?;
        let connecting = tokio::time::timeout(self.limit, self.clone().go(way, address));
        connecting.await.unwrap_or_else(|_| Err(TooSlow.into()))
    }

    /// Connects for another use than HTTP requests, which no proxy can forward.
    pub(crate) async fn tunnel(self, address: Uri) -> Result<Pipe, DoorError> {
        let way = match self.router.way(&address)? {
            Way::Forwarded { proxy } => Way::Tunnel {
                proxy,
                auth: self.router.forwarded_auth(&address),
            },
            way @ (Way::Direct | Way::Tunnel { .. } | Way::Socks { .. }) => way,
        };
        self.go(way, address)
            .await
            .map_err(|error| explain(&*error))
    }

    async fn go(mut self, way: Way, address: Uri) -> Result<Pipe, Box<dyn Error + Send + Sync>> {
        let name = |proxy: &Uri| proxy.authority().map(ToString::to_string);
        match way {
            Way::Direct => {
                let io = self.direct.call(address).await?;
                // What is near needs no TLS.
                if let MaybeHttpsStream::Http(tcp) = &io {
                    vigil::over(tcp.inner());
                }
                Ok(Pipe::new(io))
            }
            Way::Forwarded { proxy } => match self.direct.call(proxy.clone()).await {
                Ok(io) => Ok(Pipe::new(io)),
                Err(source) => Err(proxy_failed(name(&proxy), source)),
            },
            Way::Tunnel { proxy, auth } => {
                let name = name(&proxy);
                let mut tunnel = Tunnel::new(proxy, self.direct);
                if let Some(auth) = auth {
                    tunnel = tunnel.with_auth(auth);
                }
                within(tunnel, self.tls, address)
                    .await
                    .map_err(|source| proxy_failed(name, source))
            }
            Way::Socks { proxy, auth } => {
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

/// Connects by what a proxy gives, with TLS inside where the address wants it.
async fn within<C>(
    proxy: C,
    tls: Arc<ClientConfig>,
    address: Uri,
) -> Result<Pipe, Box<dyn Error + Send + Sync>>
where
    C: Service<Uri, Error: Into<Box<dyn Error + Send + Sync>>, Future: Send + 'static>,
    C::Response: Connection + Read + Write + Send + Unpin + 'static,
{
    let address = with_port(address)?;
    let io = HttpsConnector::from((proxy, tls)).call(address).await?;
    Ok(Pipe::new(io))
}

/// A proxy must be told the port; what it would assume depends on its kind.
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

/// Whom everybody trusts. Read once: it takes longer than to open a session, of which there are many.
static ROOTS: LazyLock<Arc<RootCertStore>> = LazyLock::new(|| {
    let mut roots = RootCertStore::empty();
    // The machine's own list first, so that a company's certificates count; a bare container has
    // none, and then the public list stands in.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    }
    Arc::new(roots)
});

fn tls(settings: &HttpSettings) -> Result<ClientConfig, DoorError> {
    let failed = |error: rustls::Error| DoorError::Http(format!("TLS cannot be set up: {error}"));
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

/// Whether a connection was not made for a reason that may pass. Nothing was sent then.
pub(super) fn may_pass(error: &(dyn Error + 'static)) -> bool {
    let mut causes = std::iter::successors(Some(error), |error| (*error).source());
    causes.any(|cause| cause.downcast_ref().is_some_and(passes))
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
    // What one error wraps is not among its sources.
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref());
    is_passing || inner.is_some_and(passes)
}

/// The whole chain of causes: what hyper says alone is only that something failed.
pub(super) fn explain(error: &(dyn Error + 'static)) -> DoorError {
    if error.is::<TooSlow>() {
        return DoorError::Timeout(CONNECTING);
    }
    if let Some(fault) = certificate::fault(error) {
        return fault;
    }
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        if error.is::<TooSlow>() {
            return DoorError::Timeout(CONNECTING);
        }
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    DoorError::Unconnected(text)
}
