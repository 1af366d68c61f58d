//! The asking side of HTTP: posts, event streams and the end of a session.
//!
//! It moves bodies and header facts and knows nothing about what they mean. A status is not an
//! error here: it is passed on with whatever body came with it.

mod answer;
mod connector;
mod events;
mod headers;
mod pipe;
mod proxy;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, LOCATION, PROXY_AUTHORIZATION};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, Uri};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use url::Url;

use crate::address::shown;
use crate::error::DoorError;

pub use answer::{Answer, AnswerBody};
pub(crate) use connector::Connector;
pub use events::EventStream;
pub use headers::{StaticHeaders, is_reserved};
pub use proxy::{Proxy, ProxyMode};

const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";
const BOTH: &str = "application/json, text/event-stream";

/// How many idle connections are kept: fewer than calls in flight would mean to connect anew all the time.
const MAX_IDLE: usize = 256;

/// The longest pause before a connection is tried again.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// How often a redirect inside the same origin is followed.
const MAX_REDIRECTS: usize = 3;

/// What an HTTP client will put up with, and what it always sends.
#[derive(Clone, Debug)]
pub struct HttpSettings {
    /// How many bytes a body may have.
    pub body_limit: usize,
    /// How many bytes an event may have.
    pub event_limit: usize,
    /// How long a connection may take, with its TLS handshake.
    pub connect_timeout: Duration,
    /// How long the head of an answer may take. A call that is answered without a stream sends its
    /// head with its result, so this is the longest call.
    pub head_timeout: Duration,
    /// How long a body may be silent.
    pub idle_timeout: Duration,
    /// How long an event stream may be silent; comments count as a sign of life.
    pub stream_idle_timeout: Duration,
    /// Certificates that are trusted besides the usual ones.
    pub trusted: Vec<CertificateDer<'static>>,
    /// Headers that go with every request; see [`HttpSettings::header`].
    pub headers: StaticHeaders,
    /// Whether requests go through a proxy.
    pub proxy: ProxyMode,
    /// How often connecting is tried again when nobody listens or the connection breaks before
    /// anything was sent. A request that may have arrived is never sent again.
    pub connect_retries: u32,
    /// The pause before connecting is tried again; it doubles each time, up to two seconds.
    pub retry_pause: Duration,
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
            proxy: ProxyMode::default(),
            connect_retries: 2,
            retry_pause: Duration::from_millis(100),
        }
    }
}

impl HttpSettings {
    /// The same with a header that goes with every request. Its value is never shown.
    ///
    /// # Errors
    /// The name belongs to the protocol or to HTTP itself, or name or value cannot be sent.
    pub fn header(mut self, name: &str, value: &str) -> Result<Self, DoorError> {
        self.headers.insert(name, value)?;
        Ok(self)
    }

    /// The same with the certificates of a PEM text trusted besides the usual ones.
    ///
    /// # Errors
    /// The text is not PEM, or has no certificate in it.
    pub fn trust_pem(mut self, pem: &[u8]) -> Result<Self, DoorError> {
        let refuse = |why| DoorError::Tls {
            what: "the trusted certificates".to_owned(),
            why,
        };
        let before = self.trusted.len();
        for certificate in CertificateDer::pem_slice_iter(pem) {
            let certificate = certificate.map_err(|error| refuse(error.to_string()))?;
            self.trusted.push(certificate);
        }
        if self.trusted.len() == before {
            return Err(refuse("there is none in the text".to_owned()));
        }
        Ok(self)
    }
}

/// One server that is reached by HTTP; copies share its connections.
#[derive(Clone, Debug)]
pub struct HttpClient {
    pool: Client<Connector, Full<Bytes>>,
    endpoint: Arc<Url>,
    /// The same, read once.
    address: Uri,
    settings: Arc<HttpSettings>,
    /// What a proxy that forwards requests wants to see.
    proxy_auth: Option<HeaderValue>,
}

impl HttpClient {
    /// A client for this address; nothing is sent yet.
    ///
    /// # Errors
    /// The address is not an `http` or `https` URL, or TLS cannot be set up.
    pub fn new(address: &str, settings: HttpSettings) -> Result<Self, DoorError> {
        let refuse = |why| DoorError::Address {
            address: shown(address),
            why,
        };
        let mut endpoint = Url::parse(address).map_err(|_| refuse("it is not a URL"))?;
        if !matches!(endpoint.scheme(), "http" | "https") || endpoint.host_str().is_none() {
            return Err(refuse(
                "only `http://` and `https://` addresses are possible",
            ));
        }
        if !endpoint.username().is_empty() || endpoint.password().is_some() {
            return Err(refuse(
                "credentials belong into a header, not into the address",
            ));
        }
        endpoint.set_fragment(None);
        let connector = Connector::new(&settings)?;
        let target = uri(&endpoint)?;
        let proxy_auth = connector.router().forwarded_auth(&target);
        let pool = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(Duration::from_secs(30))
            .pool_max_idle_per_host(MAX_IDLE)
            .build(connector);
        Ok(Self {
            pool,
            endpoint: Arc::new(endpoint),
            address: target,
            settings: Arc::new(settings),
            proxy_auth,
        })
    }

    /// Where requests go.
    #[must_use]
    pub fn endpoint(&self) -> &Url {
        &self.endpoint
    }

    /// The same server at another address of the same origin, given absolutely or relatively.
    ///
    /// # Errors
    /// The address is not a URL or belongs to another origin.
    pub fn at(&self, address: &str) -> Result<Self, DoorError> {
        let endpoint = self.resolve(&self.endpoint, address)?;
        Ok(Self {
            address: uri(&endpoint)?,
            endpoint: Arc::new(endpoint),
            ..self.clone()
        })
    }

    /// Sends one message and waits for the head of the answer, or for all of it when it is not a
    /// stream.
    ///
    /// # Errors
    /// The server cannot be reached, takes too long, sends too much or points elsewhere.
    pub async fn post(&self, facts: &HeaderMap, message: Bytes) -> Result<Answer, DoorError> {
        let mut headers = self.headers(facts, BOTH);
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
        let response = self.send(Method::POST, headers, message).await?;
        answer::read(response, &self.settings).await
    }

    /// Opens an event stream; `last_event_id` resumes one.
    ///
    /// # Errors
    /// As for [`post`](Self::post), and when the id cannot stand in a header.
    pub async fn listen(
        &self,
        facts: &HeaderMap,
        last_event_id: Option<&str>,
    ) -> Result<Answer, DoorError> {
        let mut headers = self.headers(facts, EVENTS);
        if let Some(id) = last_event_id {
            let name = HeaderName::from_static("last-event-id");
            headers.insert(name, headers::value("Last-Event-ID", id)?);
        }
        let response = self.send(Method::GET, headers, Bytes::new()).await?;
        answer::read(response, &self.settings).await
    }

    /// Ends the session that the facts name and gives the status of the answer.
    ///
    /// # Errors
    /// As for [`post`](Self::post).
    pub async fn delete(&self, facts: &HeaderMap) -> Result<u16, DoorError> {
        let headers = self.headers(facts, BOTH);
        let response = self.send(Method::DELETE, headers, Bytes::new()).await?;
        Ok(response.status().as_u16())
    }

    fn headers(&self, facts: &HeaderMap, accept: &'static str) -> HeaderMap {
        let mut all = facts.clone();
        for (name, value) in self.settings.headers.all() {
            all.entry(name).or_insert_with(|| value.clone());
        }
        all.insert(ACCEPT, HeaderValue::from_static(accept));
        if let Some(auth) = &self.proxy_auth {
            all.insert(PROXY_AUTHORIZATION, auth.clone());
        }
        all
    }

    async fn send(
        &self,
        method: Method,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<http::Response<Incoming>, DoorError> {
        let mut place = Cow::Borrowed(&*self.endpoint);
        let mut address = self.address.clone();
        for _ in 0..=MAX_REDIRECTS {
            let response = self.exchange(&method, &address, &headers, &body).await?;
            if !response.status().is_redirection() {
                return Ok(response);
            }
            let location = response.headers().get(LOCATION);
            let Some(location) = location.and_then(|value| value.to_str().ok()) else {
                return Ok(response);
            };
            let next = self.resolve(&place, location)?;
            // Only these keep method and body, and only the same origin may see our headers.
            let keeps = matches!(
                response.status(),
                StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT
            );
            if !keeps {
                return Err(DoorError::Redirect {
                    location: next.to_string(),
                });
            }
            address = uri(&next)?;
            place = Cow::Owned(next);
        }
        Err(DoorError::Redirect {
            location: place.to_string(),
        })
    }

    /// Sends one request, and tries again only while no connection was made.
    async fn exchange(
        &self,
        method: &Method,
        address: &Uri,
        headers: &HeaderMap,
        body: &Bytes,
    ) -> Result<http::Response<Incoming>, DoorError> {
        let mut pause = self.settings.retry_pause;
        for tries_left in (0..=self.settings.connect_retries).rev() {
            let mut request = Request::new(Full::new(body.clone()));
            *request.method_mut() = method.clone();
            *request.uri_mut() = address.clone();
            *request.headers_mut() = headers.clone();
            let sending = self.pool.request(request);
            let error = match tokio::time::timeout(self.settings.head_timeout, sending).await {
                Ok(Ok(response)) => return Ok(response),
                Ok(Err(error)) => error,
                Err(_) => {
                    return Err(DoorError::Timeout("waiting for the head of an HTTP answer"));
                }
            };
            if tries_left == 0 || !error.is_connect() || !connector::may_pass(&error) {
                return Err(connector::explain(&error));
            }
            tracing::debug!(tries_left, "no connection yet");
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
        Err(DoorError::Timeout("connecting"))
    }

    fn resolve(&self, base: &Url, address: &str) -> Result<Url, DoorError> {
        let target = base.join(address).map_err(|_| DoorError::Address {
            address: address.to_owned(),
            why: "it is not a URL",
        })?;
        if target.origin() == self.endpoint.origin() {
            Ok(target)
        } else {
            Err(DoorError::Redirect {
                location: target.to_string(),
            })
        }
    }
}

/// An address as requests carry it.
fn uri(endpoint: &Url) -> Result<Uri, DoorError> {
    endpoint.as_str().parse().map_err(|_| DoorError::Address {
        address: shown(endpoint.as_str()),
        why: "it is not a URL that HTTP can carry",
    })
}
