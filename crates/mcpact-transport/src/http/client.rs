//! The asking side of HTTP: posts, event streams and the end of a session.
//!
//! It moves bodies and header facts and knows nothing about what they mean. A status is not an
//! error here: it is passed on with whatever body came with it.

mod answer;
mod certificate;
mod connector;
mod escort;
mod events;
mod framing;
mod head;
mod headers;
mod open;
mod pipe;
mod pool;
mod proxy;
mod request;
mod source;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::LOCATION;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use url::Url;

use crate::address::shown;
use crate::error::DoorError;
use answer::Unread;
use head::Head;
use open::Unanswered;
use pool::{Loan, Pool};
use request::Outgoing;
use source::Source;

pub use answer::{Answer, AnswerBody};
pub(crate) use connector::Connector;
pub use escort::Escort;
pub use events::EventStream;
pub use headers::{StaticHeaders, is_reserved};
pub use proxy::{Proxy, ProxyMode};

const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";
const BOTH: &str = "application/json, text/event-stream";
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

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
    /// Who goes along with every request.
    pub escort: Option<Arc<dyn Escort>>,
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
            escort: None,
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
    pool: Arc<Pool>,
    endpoint: Arc<Url>,
    /// The same, read once.
    address: Arc<Address>,
    settings: Arc<HttpSettings>,
    proxy: Forwarding,
}

/// Whether a proxy forwards requests.
#[derive(Clone, Debug)]
enum Forwarding {
    /// The connection leads to the server itself.
    None,
    /// It must be told where a request goes, and may want to see who sends it.
    Proxy(Option<HeaderValue>),
}

/// Where a request goes.
#[derive(Clone, Debug)]
struct Address {
    /// Whom to connect to.
    server: Uri,
    /// What every request says of it: the rest of the first line, and the host.
    line: String,
}

/// What is to be sent.
#[derive(Clone, Debug)]
struct Order<'a> {
    method: Method,
    facts: &'a HeaderMap,
    accept: &'static str,
    last_event_id: Option<HeaderValue>,
    /// What the escort says.
    said: Option<(HeaderName, HeaderValue)>,
    body: Bytes,
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
        let proxy = connector.router().forwarding(&uri(&endpoint)?);
        let address = Address::new(&endpoint, &proxy)?;
        Ok(Self {
            pool: Pool::new(connector),
            endpoint: Arc::new(endpoint),
            address: Arc::new(address),
            settings: Arc::new(settings),
            proxy,
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
            address: Arc::new(Address::new(&endpoint, &self.proxy)?),
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
        let order = Order {
            body: message,
            ..Order::new(Method::POST, facts, BOTH)
        };
        answer::read(self.send(order).await?, &self.settings).await
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
        let value = |id| headers::value("Last-Event-ID", id);
        let order = Order {
            last_event_id: last_event_id.map(value).transpose()?,
            ..Order::new(Method::GET, facts, EVENTS)
        };
        answer::read(self.send(order).await?, &self.settings).await
    }

    /// Ends the session that the facts name and gives the status of the answer.
    ///
    /// # Errors
    /// As for [`post`](Self::post).
    pub async fn delete(&self, facts: &HeaderMap) -> Result<u16, DoorError> {
        let order = Order::new(Method::DELETE, facts, BOTH);
        Ok(self.send(order).await?.status.as_u16())
    }

    async fn send(&self, mut order: Order<'_>) -> Result<Unread, DoorError> {
        let escort = self.settings.escort.as_deref();
        order.said = escort.and_then(Escort::header);
        let answer = self.exchange(&order, &self.address).await?;
        let answer = match answer.status.is_redirection() {
            // In a box: what is rare makes every request larger otherwise.
            true => Box::pin(self.follow(&order, answer)).await?,
            false => answer,
        };
        if let Some(escort) = escort {
            escort.answered(answer.status, &answer.headers);
        }
        Ok(answer)
    }

    /// Sends a request to where the server points, for as long as it does.
    async fn follow(&self, order: &Order<'_>, mut answer: Unread) -> Result<Unread, DoorError> {
        let mut place = Cow::Borrowed(&*self.endpoint);
        for _ in 0..MAX_REDIRECTS {
            let location = answer.headers.get(LOCATION);
            let Some(location) = location.and_then(|value| value.to_str().ok()) else {
                return Ok(answer);
            };
            let next = self.resolve(&place, location)?;
            // Only these keep method and body, and only the same origin may see our headers.
            let keeps = matches!(
                answer.status,
                StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT
            );
            if !keeps && next == *place {
                break;
            }
            if !keeps {
                return Err(DoorError::Redirect {
                    location: next.to_string(),
                });
            }
            let address = Address::new(&next, &self.proxy)?;
            answer = self.exchange(order, &address).await?;
            if !answer.status.is_redirection() {
                return Ok(answer);
            }
            place = Cow::Owned(next);
        }
        Err(DoorError::RedirectLoop {
            location: place.to_string(),
        })
    }

    /// Sends one request, and sends it again only while it was not sent.
    async fn exchange(&self, order: &Order<'_>, address: &Address) -> Result<Unread, DoorError> {
        let chosen = self.settings.headers.all();
        let mut request = Outgoing::new(order, address, chosen, &self.proxy);
        loop {
            let mut loan = match self.pool.take() {
                Some(loan) => loan,
                // In a box: what is rare makes every request larger otherwise.
                None => Box::pin(self.connection(address)).await?,
            };
            let sending = loan.open.send(&mut request);
            match tokio::time::timeout(self.settings.head_timeout, sending).await {
                Ok(Ok(head)) => return Ok(unread(head, loan)),
                // The server has closed a connection that was waiting; there are not many of them.
                Ok(Err(Unanswered { is_unsent, .. })) if is_unsent && loan.is_used => {}
                Ok(Err(Unanswered { why, .. })) => return Err(why),
                Err(_) => {
                    return Err(DoorError::Timeout("waiting for the head of an HTTP answer"));
                }
            }
        }
    }

    /// A new connection. Making one is tried again where that may help: nothing was sent yet.
    async fn connection(&self, address: &Address) -> Result<Loan, DoorError> {
        let mut pause = self.settings.retry_pause;
        let mut tries_left = self.settings.connect_retries;
        loop {
            let error = match self.pool.connect(&address.server).await {
                Ok(loan) => return Ok(loan),
                Err(error) => error,
            };
            if tries_left == 0 || !connector::may_pass(&*error) {
                return Err(connector::explain(&*error));
            }
            tracing::debug!(tries_left, "no connection yet");
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
            tries_left -= 1;
        }
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

impl Address {
    fn new(place: &Url, proxy: &Forwarding) -> Result<Self, DoorError> {
        let unusable = || DoorError::Address {
            address: shown(place.as_str()),
            why: "it is not a URL that HTTP can carry",
        };
        let server = uri(place)?;
        let target = match (proxy, server.path_and_query()) {
            (Forwarding::Proxy(_), _) | (Forwarding::None, None) => server.clone(),
            (Forwarding::None, Some(path)) => Uri::from(path.clone()),
        };
        // A port that goes without saying is not part of it.
        let host = match (server.host(), place.port()) {
            (Some(host), None) => host.to_owned(),
            (Some(host), Some(port)) => format!("{host}:{port}"),
            (None, _) => return Err(unusable()),
        };
        let line = format!(" {target} HTTP/1.1\r\nhost: {host}\r\n");
        Ok(Self { server, line })
    }
}

fn unread(head: Head, loan: Loan) -> Unread {
    Unread {
        status: head.status,
        headers: head.headers,
        body: Source::new(head.framing, head.keeps_open, loan),
    }
}

impl<'a> Order<'a> {
    const fn new(method: Method, facts: &'a HeaderMap, accept: &'static str) -> Self {
        Self {
            method,
            facts,
            accept,
            last_event_id: None,
            said: None,
            body: Bytes::new(),
        }
    }
}
