//! The subjects that stand between a client and a server and do no protocol at all: what comes in
//! goes on as it is.

use std::collections::HashMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::{Buf, Bytes, BytesMut};
use clap::Parser;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use mcpact_load::call;
use mcpact_load::error::LoadError;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::{ChildStdin, ChildStdout, Command};
use tokio::sync::{Mutex as AsyncMutex, mpsc, oneshot};

const CHUNK: usize = 64 * 1024;

/// Maximum number of queued lines.
const BACKLOG: usize = 1024;

#[derive(Debug, Parser)]
enum Between {
    /// HTTP behind: every client has a connection of its own there, too.
    Http {
        /// The port to listen on.
        port: u16,
        /// Target, `host:port`.
        target: String,
    },
    /// The pipes of a program behind; answers are known by their ids.
    Pipe {
        /// The port to listen on.
        port: u16,
        /// The program and its arguments.
        #[arg(required = true, trailing_var_arg = true)]
        command: Vec<String>,
    },
}

async fn listen(port: u16) -> Result<TcpListener, LoadError> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    Ok(TcpListener::bind(address).await?)
}

async fn http(port: u16, target: &str) -> Result<(), LoadError> {
    let listener = listen(port).await?;
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let behind = TcpStream::connect(target).await?;
        behind.set_nodelay(true)?;
        let (sender, connection) = handshake(TokioIo::new(behind)).await?;
        tokio::spawn(connection);
        let sender = Arc::new(AsyncMutex::new(sender));
        let service = service_fn(move |request| pass(Arc::clone(&sender), request));
        tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
    }
}

async fn pass(
    sender: Arc<AsyncMutex<SendRequest<Incoming>>>,
    request: Request<Incoming>,
) -> Result<Response<Incoming>, hyper::Error> {
    let mut sender = sender.lock().await;
    sender.ready().await?;
    sender.send_request(request).await
}

/// Callers waiting for a line, by id, and the channel to the writer.
struct Pipe {
    waiting: Mutex<HashMap<u64, oneshot::Sender<Bytes>>>,
    lines: mpsc::Sender<Bytes>,
}

async fn pipe(port: u16, command: &[String]) -> Result<(), LoadError> {
    let (program, arguments) = command.split_first().ok_or_else(nothing)?;
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let (input, output) = child
        .stdin
        .take()
        .zip(child.stdout.take())
        .ok_or_else(nothing)?;
    let (lines, waiting) = mpsc::channel(BACKLOG);
    let pipe = Arc::new(Pipe {
        waiting: Mutex::default(),
        lines,
    });
    tokio::spawn(write(input, waiting));
    tokio::spawn(read(output, Arc::clone(&pipe)));
    let listener = listen(port).await?;
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let pipe = Arc::clone(&pipe);
        let service = service_fn(move |request| through(Arc::clone(&pipe), request));
        tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
    }
}

fn nothing() -> LoadError {
    LoadError::Silent(String::from("a program without a name"))
}

async fn through(
    pipe: Arc<Pipe>,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, hyper::Error> {
    let body = request.into_body().collect().await?.to_bytes();
    let answer = call::id(&body).map(|id| {
        let (sender, answer) = oneshot::channel();
        let mut waiting = pipe.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.insert(id, sender);
        answer
    });
    // A writer that has gone leaves the answer out, which is noticed below.
    let _ = pipe.lines.send(body).await;
    let mut response = Response::new(Full::default());
    match answer {
        Some(answer) => *response.body_mut() = Full::new(answer.await.unwrap_or_default()),
        None => *response.status_mut() = StatusCode::ACCEPTED,
    }
    let kind = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    Ok(response)
}

/// Writes everything that waits in one go.
async fn write(mut input: ChildStdin, mut waiting: mpsc::Receiver<Bytes>) -> Result<(), LoadError> {
    let (mut lines, mut out) = (Vec::new(), Vec::new());
    while waiting.recv_many(&mut lines, BACKLOG).await > 0 {
        out.clear();
        for line in lines.drain(..) {
            out.extend_from_slice(&line);
            out.push(b'\n');
        }
        input.write_all(&out).await?;
    }
    Ok(())
}

async fn read(mut output: ChildStdout, pipe: Arc<Pipe>) -> Result<(), LoadError> {
    let mut heard = BytesMut::new();
    let mut scanned = 0;
    loop {
        heard.reserve(CHUNK);
        if output.read_buf(&mut heard).await? == 0 {
            return Ok(());
        }
        while let Some(end) = heard.iter().skip(scanned).position(|byte| *byte == b'\n') {
            let line = heard.split_to(scanned + end).freeze();
            heard.advance(1);
            scanned = 0;
            let mut waiting = pipe.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(sender) = call::id(&line).and_then(|id| waiting.remove(&id)) {
                // The caller may be gone.
                let _ = sender.send(line);
            }
        }
        scanned = heard.len();
    }
}

#[tokio::main]
async fn main() -> Result<(), LoadError> {
    match Between::parse() {
        Between::Http { port, target } => http(port, &target).await,
        Between::Pipe { port, command } => pipe(port, &command).await,
    }
}
