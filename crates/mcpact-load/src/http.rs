//! Load over HTTP: each worker has a connection of its own.

use std::time::{Duration, Instant};

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, HOST};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::call::{self, Size};
use crate::error::LoadError;
use crate::process::own_cpu;
use crate::raw::RawCaller;
use crate::role::Era;
use crate::sample::{Stretch, WARM_UP};

const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");

/// One connection and what is sent with every request on it.
#[derive(Debug)]
pub struct Caller {
    sender: SendRequest<Full<Bytes>>,
    path: http::Uri,
    headers: HeaderMap,
}

/// Target and shape of a load.
#[derive(Clone, Copy, Debug)]
pub struct LoadSpec<'a> {
    /// `host:port`
    pub address: &'a str,
    /// The path behind it.
    pub path: &'a str,
    /// Era of the workers.
    pub era: Era,
    /// Number of workers.
    pub workers: usize,
    /// Sharing of sessions.
    pub sessions: Sessions,
    /// Tool to call and length of its text.
    pub size: Size,
    /// Name of the tool here.
    pub tool: &'a str,
    /// Duration.
    pub duration: Duration,
}

/// Sharing of sessions among workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sessions {
    /// Each has a session of its own.
    Own,
    /// They are one client with many calls at a time.
    Shared,
}

/// One response in so many is compared with its request.
const SAMPLED: usize = 256;

/// The path of our own servers.
pub const PATH: &str = "/mcp";

impl Caller {
    /// Connects to `host:port`.
    ///
    /// # Errors
    /// The connection is refused.
    pub async fn connect(address: &str, path: &str) -> Result<Self, LoadError> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let (sender, connection) = handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        let mut headers = HeaderMap::new();
        let host = HeaderValue::from_str(address).map_err(http::Error::from)?;
        headers.insert(HOST, host);
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let both = HeaderValue::from_static("application/json, text/event-stream");
        headers.insert(ACCEPT, both);
        let path = path.parse().map_err(http::Error::from)?;
        Ok(Self {
            sender,
            path,
            headers,
        })
    }

    /// Opens a session of this era, for calls of one tool. A floor knows no sessions.
    ///
    /// # Errors
    /// The server refuses.
    pub async fn open(&mut self, era: Era, tool: &str) -> Result<(), LoadError> {
        match era {
            Era::Modern => {
                let modern = HeaderValue::from_static(call::MODERN);
                self.headers.insert(VERSION, modern);
                self.headers
                    .insert(METHOD, HeaderValue::from_static("tools/call"));
                let name = HeaderValue::from_str(tool).map_err(http::Error::from)?;
                self.headers.insert(NAME, name);
            }
            Era::Legacy => {
                let response = self.post(call::initialize().into()).await?;
                let session = response.headers().get(SESSION_ID).cloned();
                accepted(response).await?;
                if let Some(session) = session {
                    self.headers.insert(SESSION_ID, session);
                }
                let legacy = HeaderValue::from_static(call::LEGACY);
                self.headers.insert(VERSION, legacy);
                accepted(self.post(call::INITIALIZED.into()).await?).await?;
            }
        }
        Ok(())
    }

    /// Leaves the conversation without a word and opens another.
    ///
    /// # Errors
    /// The server refuses.
    pub async fn renew(&mut self, era: Era) -> Result<(), LoadError> {
        for header in [SESSION_ID, VERSION, METHOD, NAME] {
            self.headers.remove(header);
        }
        self.open(era, call::TOOL).await
    }

    /// Ends a session, if there is one; a server may refuse that.
    ///
    /// # Errors
    /// The connection broke off.
    pub async fn close(&mut self) -> Result<(), LoadError> {
        if self.headers.contains_key(SESSION_ID) {
            let response = self.send(Method::DELETE, Bytes::new()).await?;
            response.into_body().collect().await?;
        }
        Ok(())
    }

    async fn send(&mut self, method: Method, body: Bytes) -> Result<Response<Incoming>, LoadError> {
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = method;
        *request.uri_mut() = self.path.clone();
        *request.headers_mut() = self.headers.clone();
        self.sender.ready().await?;
        Ok(self.sender.send_request(request).await?)
    }

    /// Bytes of a POST request with this body.
    #[must_use]
    pub fn request(&self, body: &str) -> Vec<u8> {
        let mut request = format!("POST {} HTTP/1.1\r\n", self.path.path()).into_bytes();
        for (name, value) in &self.headers {
            for part in [name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"] {
                request.extend_from_slice(part);
            }
        }
        let length = format!("content-length: {}\r\n\r\n", body.len());
        request.extend_from_slice(length.as_bytes());
        request.extend_from_slice(body.as_bytes());
        request
    }

    async fn post(&mut self, body: Bytes) -> Result<Response<Incoming>, LoadError> {
        self.send(Method::POST, body).await
    }

    /// Opens the stream of the session that belongs to no request; it stays open as long as the
    /// answer lives.
    ///
    /// # Errors
    /// The server refuses.
    pub async fn listen(&mut self) -> Result<Response<Incoming>, LoadError> {
        let response = self.send(Method::GET, Bytes::new()).await?;
        let status = response.status().as_u16();
        match status {
            200 => Ok(response),
            _ => Err(LoadError::wrong(status, b"")),
        }
    }

    /// Opens a second connection in the same session.
    ///
    /// # Errors
    /// The connection is refused.
    pub async fn twin(&self, address: &str) -> Result<Self, LoadError> {
        let mut twin = Self::connect(address, self.path.path()).await?;
        twin.headers = self.headers.clone();
        Ok(twin)
    }

    /// The names of all tools, page by page.
    ///
    /// # Errors
    /// The server refuses, or answers something else.
    pub async fn tools(&mut self) -> Result<Vec<String>, LoadError> {
        let mut names = Vec::new();
        let mut cursor: Option<String> = None;
        loop {
            let response = self.post(call::list(cursor.as_deref()).into()).await?;
            let status = response.status().as_u16();
            let body = response.into_body().collect().await?.to_bytes();
            let page = call::page(&body).ok_or_else(|| LoadError::wrong(status, &body))?;
            names.extend(page.names);
            match page.next {
                Some(next) => cursor = Some(next),
                None => return Ok(names),
            }
        }
    }

    /// Requests for all pages of the list of tools, each with the length of its response.
    ///
    /// # Errors
    /// The server refuses, or answers something else.
    pub async fn pages(&mut self) -> Result<Vec<(Vec<u8>, usize)>, LoadError> {
        let mut pages = Vec::new();
        let mut cursor: Option<String> = None;
        loop {
            let list = call::list(cursor.as_deref());
            let request = self.request(&list);
            let response = self.post(list.into()).await?;
            let status = response.status().as_u16();
            let body = response.into_body().collect().await?.to_bytes();
            let page = call::page(&body).ok_or_else(|| LoadError::wrong(status, &body))?;
            pages.push((request, body.len()));
            match page.next {
                Some(next) => cursor = Some(next),
                None => return Ok(pages),
            }
        }
    }

    /// One call of a tool that echoes, under the name that it has here.
    ///
    /// # Errors
    /// The server refuses, or answers something else.
    pub async fn echo(&mut self, tool: &str) -> Result<(), LoadError> {
        let body = call::legacy(1).replacen(call::TOOL, tool, 1);
        let answer = self.call(&body.into(), Size::Small).await?;
        if Size::Small.is_answer(&answer) {
            return Ok(());
        }
        Err(LoadError::wrong(200, &answer))
    }

    /// Sends one call and reads its answer.
    ///
    /// # Errors
    /// The connection breaks, or the server answers something else.
    pub async fn call(&mut self, body: &Bytes, size: Size) -> Result<Bytes, LoadError> {
        let response = self.post(body.clone()).await?;
        let status = response.status().as_u16();
        let answer = response.into_body().collect().await?.to_bytes();
        if status == 200 && size.fits(answer.len()) {
            return Ok(answer);
        }
        Err(LoadError::wrong(status, &answer))
    }
}

/// Reads an answer to its end and looks at nothing but its status.
async fn accepted(response: Response<Incoming>) -> Result<(), LoadError> {
    let status = response.status();
    let body = response.into_body().collect().await?.to_bytes();
    if status.is_success() {
        return Ok(());
    }
    Err(LoadError::wrong(status.as_u16(), &body))
}

/// Loads a server.
///
/// # Errors
/// A worker failed, or got an answer that is not its echo.
pub async fn load(spec: LoadSpec<'_>) -> Result<Stretch, LoadError> {
    let LoadSpec { address, era, .. } = spec;
    let mut callers: Vec<Caller> = Vec::new();
    let mut workers = Vec::new();
    for id in (1..).take(spec.workers) {
        if callers.is_empty() || spec.sessions == Sessions::Own {
            let mut caller = Caller::connect(address, spec.path).await?;
            caller.open(era, spec.tool).await?;
            callers.push(caller);
        }
        let body = call::request(era, id, spec.size).replacen(spec.size.tool(), spec.tool, 1);
        let request = callers.last().map(|caller| caller.request(&body));
        let connection = RawCaller::connect(address).await?;
        workers.push((connection, request.unwrap_or_default()));
    }
    let (start, cpu) = (Instant::now(), own_cpu());
    let mut running = JoinSet::new();
    for (connection, request) in workers {
        running.spawn(work(connection, request, spec.size, spec.duration));
    }
    let mut all = Stretch::default();
    while let Some(ended) = running.join_next().await {
        all.join(ended.map_err(std::io::Error::from)??);
    }
    let used = own_cpu().saturating_sub(cpu);
    all.generator = used.as_secs_f64() / start.elapsed().as_secs_f64();
    for caller in &callers {
        // The connection that opened the session was idle since, and may be closed.
        caller.twin(address).await?.close().await?;
    }
    Ok(all)
}

async fn work(
    mut connection: RawCaller,
    request: Vec<u8>,
    size: Size,
    duration: Duration,
) -> Result<Stretch, LoadError> {
    called(&mut connection, &request, size).await?;
    if !size.is_answer(&connection.body()) {
        return Err(connection.wrong());
    }
    let mut stretch = Stretch::default();
    let start = Instant::now();
    while start.elapsed() < WARM_UP {
        called(&mut connection, &request, size).await?;
        stretch.uncounted += 1;
    }
    let start = Instant::now();
    let mut before = start;
    while before.duration_since(start) < duration {
        called(&mut connection, &request, size).await?;
        let after = Instant::now();
        stretch
            .latencies
            .push(Stretch::nanoseconds(after.duration_since(before)));
        before = after;
        // A large echo would cost more than the call.
        let is_sampled = stretch.latencies.len() % SAMPLED == 0 && size == Size::Small;
        if is_sampled && !size.is_answer(&connection.body()) {
            return Err(connection.wrong());
        }
    }
    stretch.elapsed = Stretch::nanoseconds(before.duration_since(start));
    Ok(stretch)
}

/// One call; only status and length of the response are checked.
async fn called(connection: &mut RawCaller, request: &[u8], size: Size) -> Result<(), LoadError> {
    let reply = connection.call(request).await?;
    match reply.status == 200 && size.fits(reply.length) {
        true => Ok(()),
        false => Err(connection.wrong()),
    }
}
