//! The subject that does no protocol at all: what comes in goes out again.

use std::convert::Infallible;
use std::net::Ipv4Addr;
use std::process::ExitCode;

use bytes::Bytes;
use clap::Parser;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use mcpact_load::caller::announce;
use mcpact_load::error::LoadError;
use mcpact_load::role::Role;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::net::unix::pipe;

const CHUNK: usize = 64 * 1024;

async fn echo(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let body = request.into_body().collect().await;
    let body = body.map_or_else(|_| Bytes::new(), |body| body.to_bytes());
    let mut response = Response::new(Full::new(body));
    let kind = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    Ok(response)
}

async fn http() -> Result<(), LoadError> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    announce(&format!("http://{}/mcp", listener.local_addr()?))?;
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let connection = http1::Builder::new();
        tokio::spawn(connection.serve_connection(TokioIo::new(stream), service_fn(echo)));
    }
}

async fn pump(
    mut input: impl AsyncRead + Unpin + Send,
    mut output: impl AsyncWrite + Unpin + Send,
) -> Result<(), LoadError> {
    let mut chunk = vec![0; CHUNK];
    loop {
        let count = input.read(&mut chunk).await?;
        let Some(bytes) = chunk.get(..count).filter(|bytes| !bytes.is_empty()) else {
            return Ok(());
        };
        output.write_all(bytes).await?;
        output.flush().await?;
    }
}

/// The pipes without a helper thread: as bare as it gets.
async fn stdio() -> Result<(), LoadError> {
    let input = pipe::OpenOptions::new().open_receiver("/dev/stdin")?;
    let output = pipe::OpenOptions::new().open_sender("/dev/stdout")?;
    // In a task: what `main` awaits is woken across threads.
    let pumping = tokio::spawn(pump(input, output));
    pumping.await.map_err(std::io::Error::from)?
}

#[tokio::main]
async fn main() -> Result<ExitCode, LoadError> {
    match Role::parse() {
        Role::Http { .. } => http().await?,
        Role::Stdio { .. } => stdio().await?,
        // Without negotiation there is no client baseline.
        Role::Client { .. } => return Ok(ExitCode::FAILURE),
    }
    Ok(ExitCode::SUCCESS)
}
