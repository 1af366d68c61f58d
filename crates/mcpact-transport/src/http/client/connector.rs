//! From an address to an open connection, in bounded time.

use std::error::Error;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::Uri;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder, MaybeHttpsStream};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioIo;
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tower_service::Service;

use super::HttpSettings;
use crate::error::DoorError;

/// TCP and, where the address wants it, TLS; both within one time limit.
#[derive(Clone)]
pub(super) struct Connector {
    inner: HttpsConnector<HttpConnector>,
    limit: Duration,
}

impl std::fmt::Debug for Connector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connector")
            .field("limit", &self.limit)
            .finish_non_exhaustive()
    }
}

/// The limit was reached.
#[derive(Debug, thiserror::Error)]
#[error("connecting took too long")]
struct TooSlow;

impl Service<Uri> for Connector {
    type Response = MaybeHttpsStream<TokioIo<TcpStream>>;
    type Error = Box<dyn Error + Send + Sync>;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, address: Uri) -> Self::Future {
        let connecting = tokio::time::timeout(self.limit, self.inner.call(address));
        Box::pin(async move { connecting.await.unwrap_or_else(|_| Err(TooSlow.into())) })
    }
}

pub(super) fn connector(settings: &HttpSettings) -> Result<Connector, DoorError> {
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    // Messages are small and wait for answers: a delayed segment is a delayed call.
    tcp.set_nodelay(true);
    tcp.set_keepalive(Some(Duration::from_secs(60)));
    let inner = HttpsConnectorBuilder::new()
        .with_tls_config(tls(settings)?)
        .https_or_http()
        .enable_http1()
        .wrap_connector(tcp);
    Ok(Connector {
        inner,
        limit: settings.connect_timeout,
    })
}

fn tls(settings: &HttpSettings) -> Result<ClientConfig, DoorError> {
    let failed = |error: rustls::Error| DoorError::Http(format!("TLS cannot be set up: {error}"));
    let mut roots = RootCertStore::empty();
    // The machine's own list first, so that a company's certificates count; a bare container has
    // none, and then the public list stands in.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    }
    for certificate in &settings.trusted {
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

/// The whole chain of causes: what hyper says alone is only that something failed.
pub(super) fn explain(error: &(dyn Error + 'static)) -> DoorError {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        if error.is::<TooSlow>() {
            return DoorError::Timeout("connecting");
        }
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    DoorError::Http(text)
}
