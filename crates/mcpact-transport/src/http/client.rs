//! HTTP client: requests, event streams and the end of a session.
//!
//! It transports bodies and headers without interpreting them. An error status is not an error here; it is returned
//! with its body.

mod connection;
mod connector;
mod framing;
mod head;
mod headers;
mod pool;
mod proxy;
#[cfg(feature = "fuzzing")]
mod replay;
mod response;
#[cfg(test)]
mod tests;

use std::fmt::Debug;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use url::Url;

use crate::address::shown;
use crate::error::TransportError;
use crate::tap::{HttpExchange, Tap, Traffic};
use connection::{OutgoingRequest, RequestFailure};
use pool::{Pool, PooledConnection};
use response::{BodyReader, UnreadResponse};

pub(crate) use connector::Connector;

pub use headers::{StaticHeaders, is_reserved};
pub use proxy::{Proxy, ProxyMode};
#[cfg(feature = "fuzzing")]
pub use replay::{ReplayedResponse, replay};
pub use response::{ClientResponse, ClientResponseBody, EventStream};

const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";
const BOTH: &str = "application/json, text/event-stream";
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// Maximum backoff between connection attempts.
const MAX_BACKOFF: Duration = Duration::from_secs(2);

/// Maximum number of redirects within the same origin.
const MAX_REDIRECTS: usize = 3;

/// Limits and default headers of an HTTP client.
#[derive(Clone, Debug)]
pub struct HttpSettings {
    /// Maximum bytes of a body.
    pub body_limit: usize,
    /// Maximum bytes of an event.
    pub event_limit: usize,
    /// Timeout of a connection, including the TLS handshake.
    pub connect_timeout: Duration,
    /// Timeout of a response head. A response without a stream sends its head with its result, so this limits the
    /// longest call.
    pub head_timeout: Duration,
    /// Timeout between two reads of a body.
    pub idle_timeout: Duration,
    /// Timeout between two reads of an event stream; comments count.
    pub stream_idle_timeout: Duration,
    /// Trusted certificates, besides the system's.
    pub trusted: Vec<CertificateDer<'static>>,
    /// Headers of every request; see [`HttpSettings::header`].
    pub headers: StaticHeaders,
    /// Header computed for each request.
    pub request_header: Option<Arc<dyn RequestHeader>>,
    /// Use of a proxy.
    pub proxy: ProxyMode,
    /// Unix socket to connect to, whatever the host of the URL is.
    pub unix_socket: Option<PathBuf>,
    /// Number of connection retries, if the connection is refused or breaks before anything was sent. A request that
    /// may have arrived is never sent again.
    pub connect_retries: u32,
    /// First backoff between connection attempts; it doubles each time, up to two seconds.
    pub retry_pause: Duration,
    /// Observer of requests and responses.
    pub tap: Option<Arc<dyn Tap>>,
}

impl Default for HttpSettings {
    fn default() -> Self {
        Self {
            body_limit: 16 * 1024 * 1024,
            event_limit: 16 * 1024 * 1024,
            connect_timeout: Duration::from_secs(10),
            head_timeout: Duration::from_secs(660),
            idle_timeout: Duration::from_secs(60),
            stream_idle_timeout: Duration::from_secs(3600),
            trusted: Vec::new(),
            headers: StaticHeaders::default(),
            request_header: None,
            proxy: ProxyMode::default(),
            unix_socket: None,
            connect_retries: 2,
            retry_pause: Duration::from_millis(100),
            tap: None,
        }
    }
}

impl HttpSettings {
    /// Adds a header to every request. Its value is never shown.
    ///
    /// # Errors
    /// The header is reserved, or its name or value is invalid.
    pub fn header(mut self, name: &str, value: &str) -> Result<Self, TransportError> {
        self.headers.insert(name, value)?;
        Ok(self)
    }

    /// Trusts the certificates of a PEM text, besides the system's.
    ///
    /// # Errors
    /// The text is not PEM, or contains no certificate.
    pub fn trust_pem(mut self, pem: &[u8]) -> Result<Self, TransportError> {
        let refuse = |why| TransportError::Tls {
            what: "the trusted certificates".to_owned(),
            why,
        };
        let before = self.trusted.len();
        for certificate in CertificateDer::pem_slice_iter(pem) {
            let certificate = certificate.map_err(|error| refuse(error.to_string()))?;
            self.trusted.push(certificate);
        }
        if self.trusted.len() == before {
            return Err(refuse("no certificate found".to_owned()));
        }
        Ok(self)
    }
}

/// Client of one HTTP server. Clones share its connections.
#[derive(Clone, Debug)]
pub struct HttpClient {
    pool: Arc<Pool>,
    endpoint: Arc<Endpoint>,
    /// Endpoint that the server redirected to. Requests that must not be repeated go there at once.
    moved: Arc<OnceLock<Endpoint>>,
    settings: Arc<HttpSettings>,
    proxy: Forwarding,
}

/// Use of a forwarding proxy.
#[derive(Clone, Debug)]
enum Forwarding {
    /// The connection leads to the server itself.
    None,
    /// Requests name the full URL, with this `Proxy-Authorization`.
    Proxy(Option<HeaderValue>),
}

/// URL of requests.
#[derive(Debug)]
struct Endpoint {
    url: Url,
    /// The URL in the form that requests need.
    address: Address,
}

/// Target of a request.
#[derive(Clone, Debug)]
struct Address {
    /// URI to connect to.
    server: Uri,
    /// Rest of the request line, and the `Host` header.
    line: String,
}

/// Treatment of a redirect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Redirects {
    /// The request is sent again to the new URL, within the origin.
    Follow,
    /// Error: the request may have had its effect.
    Refuse,
}

/// Content of a request.
#[derive(Clone, Debug)]
struct RequestSpec<'a> {
    method: Method,
    protocol_headers: &'a HeaderMap,
    accept: &'static str,
    last_event_id: Option<HeaderValue>,
    /// Header of [`HttpSettings::request_header`].
    request_header: Option<(HeaderName, HeaderValue)>,
    body: Bytes,
}

impl HttpClient {
    /// Creates a client for a URL; nothing is sent yet.
    ///
    /// # Errors
    /// The text is not an `http` or `https` URL, or TLS cannot be set up.
    pub fn new(address: &str, settings: HttpSettings) -> Result<Self, TransportError> {
        let refuse = |why| TransportError::address(shown(address), why);
        let mut endpoint = Url::parse(address).map_err(|_| refuse("not a URL"))?;
        if !matches!(endpoint.scheme(), "http" | "https") || endpoint.host_str().is_none() {
            return Err(refuse("use an `http://` or `https://` URL"));
        }
        if !endpoint.username().is_empty() || endpoint.password().is_some() {
            return Err(refuse("put credentials into a header, not into the URL"));
        }
        endpoint.set_fragment(None);
        let connector = Connector::new(&settings)?;
        let proxy = connector.router().forwarding(&uri(&endpoint)?);
        let endpoint = Endpoint::new(endpoint, &proxy)?;
        Ok(Self {
            pool: Pool::new(connector),
            endpoint: Arc::new(endpoint),
            moved: Arc::default(),
            settings: Arc::new(settings),
            proxy,
        })
    }

    /// Returns a client for another URL of the same origin, absolute or relative.
    ///
    /// # Errors
    /// The text is not a URL, or has another origin.
    pub fn at(&self, address: &str) -> Result<Self, TransportError> {
        let url = self.resolve(&self.endpoint.url, address)?;
        Ok(Self {
            endpoint: Arc::new(Endpoint::new(url, &self.proxy)?),
            moved: Arc::default(),
            ..self.clone()
        })
    }

    /// Sends one message and waits for the response: for its head if it is a stream, otherwise for all of it.
    ///
    /// # Errors
    /// The server cannot be reached, times out, sends too much or redirects to another origin.
    pub async fn post(
        &self,
        protocol_headers: &HeaderMap,
        message: Bytes,
    ) -> Result<ClientResponse, TransportError> {
        let spec = RequestSpec::message(protocol_headers, message.clone());
        let response = self.send(spec, Redirects::Follow).await?;
        self.read(&Method::POST, &message, response).await
    }

    /// Like [`post`](Self::post), for a message with an effect: it is not sent again if the server redirects it.
    ///
    /// # Errors
    /// As for [`post`](Self::post), and if the server redirects the request.
    pub async fn post_once(
        &self,
        protocol_headers: &HeaderMap,
        message: Bytes,
    ) -> Result<ClientResponse, TransportError> {
        let spec = RequestSpec::message(protocol_headers, message.clone());
        let response = self.send(spec, Redirects::Refuse).await?;
        self.read(&Method::POST, &message, response).await
    }

    /// Opens an event stream; `last_event_id` resumes one.
    ///
    /// # Errors
    /// As for [`post`](Self::post), and if the id is not valid in a header.
    pub async fn listen(
        &self,
        protocol_headers: &HeaderMap,
        last_event_id: Option<&str>,
    ) -> Result<ClientResponse, TransportError> {
        let value = |id| headers::value("Last-Event-ID", id);
        let spec = RequestSpec {
            last_event_id: last_event_id.map(value).transpose()?,
            ..RequestSpec::new(Method::GET, protocol_headers, EVENTS)
        };
        let response = self.send(spec, Redirects::Follow).await?;
        self.read(&Method::GET, &[], response).await
    }

    /// Reads a response and shows it to the tap.
    async fn read(
        &self,
        method: &Method,
        request: &[u8],
        response: UnreadResponse,
    ) -> Result<ClientResponse, TransportError> {
        let response = response::read(response, &self.settings).await?;
        if let Some(tap) = &self.settings.tap {
            tap.record(Traffic::Response(HttpExchange {
                method,
                request,
                status: response.status,
                headers: &response.headers,
                body: match &response.body {
                    ClientResponseBody::Empty | ClientResponseBody::Events(_) => &[],
                    ClientResponseBody::Json(bytes) => bytes,
                    ClientResponseBody::Other(text) => text.as_bytes(),
                },
            }));
        }
        Ok(response)
    }

    /// Ends the session named in the headers and returns the status.
    ///
    /// # Errors
    /// As for [`post`](Self::post).
    pub async fn delete(&self, protocol_headers: &HeaderMap) -> Result<u16, TransportError> {
        let spec = RequestSpec::new(Method::DELETE, protocol_headers, BOTH);
        let response = self.send(spec, Redirects::Follow).await?;
        Ok(response.status.as_u16())
    }

    async fn send(
        &self,
        mut spec: RequestSpec<'_>,
        redirects: Redirects,
    ) -> Result<UnreadResponse, TransportError> {
        let request_header = self.settings.request_header.as_deref();
        spec.request_header = request_header.and_then(RequestHeader::header);
        let endpoint = self.moved.get().unwrap_or(&self.endpoint);
        let response = self.exchange(&spec, &endpoint.address).await?;
        match redirects {
            _ if !response.status.is_redirection() => Ok(response),
            // Boxed: redirects are rare and would enlarge the future of every request.
            Redirects::Follow => Box::pin(self.follow(&spec, &endpoint.url, response)).await,
            Redirects::Refuse => match response.location().map(|to| endpoint.url.join(to)) {
                None => Ok(response),
                Some(target) => Err(TransportError::RedirectedCall {
                    location: target.map_or_else(|_| String::from("no URL"), String::from),
                }),
            },
        }
    }

    /// Follows redirects from a URL.
    async fn follow(
        &self,
        spec: &RequestSpec<'_>,
        from: &Url,
        mut response: UnreadResponse,
    ) -> Result<UnreadResponse, TransportError> {
        let mut place = from.clone();
        for _ in 0..MAX_REDIRECTS {
            let Some(location) = response.location() else {
                return Ok(response);
            };
            let next = self.resolve(&place, location)?;
            // Only these keep method and body. Headers are sent to the same origin only.
            let keeps = matches!(
                response.status,
                StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT
            );
            if !keeps && next == place {
                break;
            }
            if !keeps {
                return Err(TransportError::Redirect {
                    location: next.to_string(),
                });
            }
            let next = Endpoint::new(next, &self.proxy)?;
            response = self.exchange(spec, &next.address).await?;
            if !response.status.is_redirection() {
                // The first one counts, for as long as this client lives.
                let _ = self.moved.set(next);
                return Ok(response);
            }
            place = next.url;
        }
        Err(TransportError::RedirectLoop {
            location: place.to_string(),
        })
    }

    /// Sends one request; retries on another connection only if nothing was sent.
    async fn exchange(
        &self,
        spec: &RequestSpec<'_>,
        address: &Address,
    ) -> Result<UnreadResponse, TransportError> {
        let static_headers = self.settings.headers.all();
        let mut request = OutgoingRequest::new(spec, address, static_headers, &self.proxy);
        loop {
            let mut connection = match self.pool.take() {
                Some(connection) => connection,
                // Boxed: connecting is rare and would enlarge the future of every request.
                None => Box::pin(self.connection(address)).await?,
            };
            let sending = connection.io.send(&mut request);
            match tokio::time::timeout(self.settings.head_timeout, sending).await {
                Ok(Ok(head)) => {
                    return Ok(UnreadResponse {
                        status: head.status,
                        headers: head.headers,
                        body: BodyReader::new(head.framing, head.keeps_open, connection),
                    });
                }
                // The server closed an idle connection.
                Ok(Err(RequestFailure { is_unsent, .. })) if is_unsent && connection.is_used => {}
                Ok(Err(RequestFailure { why, .. })) => return Err(why),
                Err(_) => {
                    return Err(TransportError::Timeout("waiting for an HTTP response"));
                }
            }
        }
    }

    /// Opens a connection, with retries: nothing was sent yet.
    async fn connection(&self, address: &Address) -> Result<PooledConnection, TransportError> {
        let mut pause = self.settings.retry_pause;
        let mut tries_left = self.settings.connect_retries;
        loop {
            let error = match self.pool.connect(&address.server).await {
                Ok(connection) => return Ok(connection),
                Err(error) => error,
            };
            if tries_left == 0 || !connector::is_transient(&*error) {
                return Err(connector::explain(&*error));
            }
            tracing::debug!(tries_left, "connection attempt failed");
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(MAX_BACKOFF);
            tries_left -= 1;
        }
    }

    fn resolve(&self, base: &Url, address: &str) -> Result<Url, TransportError> {
        let joined = base.join(address);
        let target = joined.map_err(|_| TransportError::address(address, "not a URL"))?;
        if target.origin() == self.endpoint.url.origin() {
            Ok(target)
        } else {
            Err(TransportError::Redirect {
                location: target.to_string(),
            })
        }
    }
}

/// Converts a URL for requests.
fn uri(endpoint: &Url) -> Result<Uri, TransportError> {
    endpoint.as_str().parse().map_err(|_| unusable(endpoint))
}

fn unusable(endpoint: &Url) -> TransportError {
    TransportError::address(shown(endpoint.as_str()), "not a valid HTTP URL")
}

impl Endpoint {
    fn new(url: Url, proxy: &Forwarding) -> Result<Self, TransportError> {
        let address = Address::new(&url, proxy)?;
        Ok(Self { url, address })
    }
}

impl Address {
    fn new(place: &Url, proxy: &Forwarding) -> Result<Self, TransportError> {
        let server = uri(place)?;
        let target = match (proxy, server.path_and_query()) {
            (Forwarding::Proxy(_), _) | (Forwarding::None, None) => server.clone(),
            (Forwarding::None, Some(path)) => Uri::from(path.clone()),
        };
        // A default port is left out.
        let host = match (server.host(), place.port()) {
            (Some(host), None) => host.to_owned(),
            (Some(host), Some(port)) => format!("{host}:{port}"),
            (None, _) => return Err(unusable(place)),
        };
        let line = format!(" {target} HTTP/1.1\r\nhost: {host}\r\n");
        Ok(Self { server, line })
    }
}

impl<'a> RequestSpec<'a> {
    const fn new(method: Method, protocol_headers: &'a HeaderMap, accept: &'static str) -> Self {
        Self {
            method,
            protocol_headers,
            accept,
            last_event_id: None,
            request_header: None,
            body: Bytes::new(),
        }
    }

    fn message(protocol_headers: &'a HeaderMap, body: Bytes) -> Self {
        Self {
            body,
            ..Self::new(Method::POST, protocol_headers, BOTH)
        }
    }
}

/// Provides a header for each request to a server.
pub trait RequestHeader: Debug + Send + Sync {
    /// Returns the header of the next request.
    fn header(&self) -> Option<(HeaderName, HeaderValue)>;
}
