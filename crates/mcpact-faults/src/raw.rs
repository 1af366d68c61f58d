//! Requests byte by byte, for whatever no honest client would do.

use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::client::Client;
use crate::error::RowError;

/// Timeout of a response to malformed input.
const PATIENCE: Duration = Duration::from_secs(20);

/// The head of a POST with these lines in it, and the empty line behind it.
pub(crate) fn head(client: &Client, message: &Value, lines: &str) -> String {
    let mut text = format!("POST {} HTTP/1.1\r\n", client.path());
    for (name, value) in &client.all_headers(message) {
        text.push_str(&format!(
            "{name}: {}\r\n",
            String::from_utf8_lossy(value.as_bytes())
        ));
    }
    text.push_str(lines);
    text.push_str("\r\n");
    text
}

/// Sends a whole message, and leaves the answer on the connection.
pub(crate) async fn send(client: &Client, message: &Value) -> Result<TcpStream, RowError> {
    let body = message.to_string();
    let length = format!("content-length: {}\r\n", body.len());
    let mut stream = connect(client).await?;
    let head = head(client, message, &length);
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body.as_bytes()).await?;
    Ok(stream)
}

/// A connection on which nothing has been said.
pub(crate) async fn connect(client: &Client) -> Result<TcpStream, RowError> {
    let stream = TcpStream::connect(client.address()).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// The status of the answer; 0 if the connection ends without one.
pub(crate) async fn status(stream: &mut TcpStream) -> Result<u16, RowError> {
    status_of(&mut stream.split().0).await
}

/// As [`status`], where only this half of the connection is at hand.
pub(crate) async fn status_of(stream: &mut (impl AsyncRead + Unpin)) -> Result<u16, RowError> {
    let text = until(stream, b"\r\n").await?;
    let status = text.split(' ').nth(1).and_then(|word| word.parse().ok());
    Ok(status.unwrap_or_default())
}

/// The status line and the headers of the answer; empty if the connection ends without one.
pub(crate) async fn answer(stream: &mut TcpStream) -> Result<String, RowError> {
    until(stream, b"\r\n\r\n").await
}

async fn until(stream: &mut (impl AsyncRead + Unpin), end: &[u8]) -> Result<String, RowError> {
    let mut bytes = Vec::new();
    let reading = async {
        let mut buffer = [0; 1024];
        while !bytes.windows(end.len()).any(|window| window == end) {
            match stream.read(&mut buffer).await {
                Ok(count @ 1..) => bytes.extend_from_slice(buffer.get(..count).unwrap_or_default()),
                // A reset is an end like any other here.
                Ok(0) | Err(_) => break,
            }
        }
    };
    let read = tokio::time::timeout(PATIENCE, reading).await;
    read.map_err(|_| RowError::Patience("a status"))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
