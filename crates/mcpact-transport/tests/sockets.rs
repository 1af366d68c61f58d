//! TCP and WebSocket transports, and access to them.
#![expect(clippy::unwrap_used, reason = "a broken expectation is a failed test")]

use std::net::SocketAddr;
use std::sync::Arc;

use futures_util::{SinkExt, StreamExt};
use mcpact_transport::error::TransportError;
use mcpact_transport::http::client::HttpSettings;
use mcpact_transport::http::server::{
    Endpoint, Guard, HttpRequest, HttpResponse, HttpServer, TlsIdentity,
};
use mcpact_transport::http::server::{Limits, Token};
use mcpact_transport::link::Link;
use mcpact_transport::{tcp, websocket};
use mcpact_wire::frame::ndjson::{DEFAULT_LINE_LIMIT, Line};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::handshake::server::{ErrorResponse, Request, Response};

const SECRET: &str = "a-token-for-these-tests";

/// Endpoint that echoes messages on a WebSocket.
struct Echo;

impl Endpoint for Echo {
    async fn handle(&self, _: Box<HttpRequest>) -> HttpResponse {
        HttpResponse::socket(|link, _| {
            tokio::spawn(echo(link));
        })
    }
}

async fn echo(mut link: Link) {
    while link.source.fill().await.unwrap_or_default() {
        while let Some(line) = link.source.next_line() {
            if let Line::Json(bytes) = line {
                link.sink.push(std::str::from_utf8(bytes).unwrap());
            }
        }
        if link.sink.flush().await.is_err() {
            return;
        }
    }
    let _ = link.sink.close().await;
}

async fn serve(change: impl FnOnce(&mut HttpServer)) -> SocketAddr {
    let server = HttpServer::bind("127.0.0.1:0".parse().unwrap());
    let mut server = server.await.unwrap();
    change(&mut server);
    let address = server.address().unwrap();
    tokio::spawn(server.serve(Arc::new(Echo), std::future::pending()));
    address
}

async fn hear(link: &mut Link) -> Option<String> {
    loop {
        if let Some(Line::Json(bytes)) = link.source.next_line() {
            return Some(String::from_utf8(bytes.to_vec()).unwrap());
        }
        if !link.source.fill().await.unwrap() {
            return None;
        }
    }
}

async fn say(link: &mut Link, text: &str) {
    link.sink.push(text);
    link.sink.flush().await.unwrap();
}

/// T6: messages travel both ways on a WebSocket, with and without TLS and of any size, and closing is EOF.
#[tokio::test]
async fn websocket_carries_messages() {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let (chain, key) = (made.cert.pem(), made.signing_key.serialize_pem());
    let identity = TlsIdentity::from_pem(chain.as_bytes(), key.as_bytes()).unwrap();
    let plain = serve(|_| {}).await;
    let secure = serve(|server| server.tls = Some(identity)).await;
    let settings = HttpSettings::default().trust_pem(chain.as_bytes()).unwrap();
    for url in [
        format!("ws://localhost:{}/ws", plain.port()),
        format!("wss://localhost:{}/ws", secure.port()),
    ] {
        let mut link = websocket::connect(&url, &settings).await.unwrap();
        let large = format!("{{\"x\":\"{}\"}}", "y".repeat(1024 * 1024));
        for text in ["{\"a\":1}", &large, "[2]"] {
            say(&mut link, text).await;
            assert!(hear(&mut link).await.unwrap() == text);
        }
        link.sink.close().await.unwrap();
        assert_eq!(hear(&mut link).await, None);
    }
}

/// A body in a coding that the server does not know is refused, with the reason.
#[tokio::test]
async fn bodies_in_unknown_codings_are_refused() {
    let address = serve(|_| {}).await;
    let body = "2\r\n{}\r\n0\r\n\r\n";
    let chunked = "transfer-encoding: chunked";
    for (headers, status, reason) in [
        // The endpoint itself wants a WebSocket.
        (chunked.to_owned(), 426, "this is a websocket endpoint"),
        (format!("{chunked}\r\ncontent-encoding: identity"), 426, ""),
        (
            "transfer-encoding: gzip, chunked".to_owned(),
            501,
            "the only supported transfer-encoding is chunked",
        ),
        ("transfer-encoding: chunked, chunked".to_owned(), 501, ""),
        // Without `chunked` at the end, the length is unknown: RFC 9112, section 6.3.
        ("transfer-encoding: gzip".to_owned(), 400, ""),
        (
            format!("{chunked}\r\ncontent-encoding: gzip"),
            415,
            "content-encoding is not supported",
        ),
        (
            format!("{chunked}\r\ncontent-encoding: gzip, br"),
            415,
            "accept-encoding: identity",
        ),
    ] {
        let head = "host: localhost\r\ncontent-type: application/json\r\nconnection: close";
        let request = format!("POST /ws HTTP/1.1\r\n{head}\r\n{headers}\r\n\r\n{body}");
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer).await;
        let answer = String::from_utf8(answer).unwrap().to_ascii_lowercase();
        let expected = format!("http/1.1 {status} ");
        assert!(answer.starts_with(&expected), "{headers}: {answer}");
        assert!(answer.contains(reason), "{headers}: {answer}");
    }
}

/// Response head of a raw upgrade request.
async fn open(address: SocketAddr, headers: &[(&str, &str)]) -> String {
    let mut request = "GET /ws HTTP/1.1\r\n".to_owned();
    let usual = [
        ("host", "localhost"),
        ("upgrade", "websocket"),
        ("connection", "keep-alive, Upgrade"),
        ("sec-websocket-version", "13"),
        ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
        ("sec-websocket-protocol", "other, mcp"),
    ];
    for (name, value) in usual {
        let given = headers.iter().find(|(other, _)| *other == name);
        let value = given.map_or(value, |(_, value)| value);
        if !value.is_empty() {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
    }
    for (name, value) in headers {
        if !usual.iter().any(|(other, _)| other == name) {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
    }
    request.push_str("\r\n");
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    String::from_utf8(head).unwrap().to_ascii_lowercase()
}

/// T6, T8: a WebSocket is opened as in RFC 6455, with the subprotocol, behind the same guard and token as other
/// requests.
#[tokio::test]
async fn websocket_is_guarded() {
    let address = serve(|server| {
        server.guard = Guard::default().allow_origin("https://app.example");
        server.tokens.add("token", Token::new(SECRET).unwrap());
    })
    .await;
    let bearer = format!("Bearer {SECRET}");
    let token = ("authorization", bearer.as_str());
    let opened = open(address, &[token]).await;
    assert!(opened.starts_with("http/1.1 101"), "{opened}");
    assert!(
        opened.contains("sec-websocket-protocol: mcp\r\n"),
        "{opened}"
    );
    let accept = "sec-websocket-accept: s3pplmbitxaq9kygzzhzrbk+xoo=\r\n";
    assert!(opened.contains(accept), "the example of RFC 6455: {opened}");
    for (name, headers, status) in [
        ("no token", &[][..], 401),
        ("a page", &[token, ("origin", "https://app.example")], 101),
        (
            "another page",
            &[token, ("origin", "https://evil.example")],
            403,
        ),
        ("no origin at all", &[token, ("origin", "null")], 403),
        ("another host", &[token, ("host", "evil.example")], 403),
        ("no upgrade", &[token, ("upgrade", "")], 426),
        ("another upgrade", &[token, ("upgrade", "h2c")], 426),
        ("no connection", &[token, ("connection", "close")], 426),
        (
            "another version",
            &[token, ("sec-websocket-version", "8")],
            426,
        ),
        (
            "no subprotocol",
            &[token, ("sec-websocket-protocol", "")],
            400,
        ),
        (
            "another subprotocol",
            &[token, ("sec-websocket-protocol", "x")],
            400,
        ),
        ("no version", &[token, ("sec-websocket-version", "")], 426),
        ("no key", &[token, ("sec-websocket-key", "")], 400),
        (
            "short key",
            &[token, ("sec-websocket-key", "c2hvcnQ=")],
            400,
        ),
        (
            "not Base64",
            &[token, ("sec-websocket-key", "dGhlIHNhbXBsZSBub25j!!==")],
            400,
        ),
        (
            "two keys",
            &[token, ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==")],
            400,
        ),
    ] {
        let answer = open(address, headers).await;
        let expected = format!("http/1.1 {status} ");
        assert!(answer.starts_with(&expected), "{name}: {answer}");
    }
    let url = format!("ws://{address}/ws");
    let refused = websocket::connect(&url, &HttpSettings::default()).await;
    let told = refused.unwrap_err().to_string();
    assert!(told.contains("status 401"), "{told}");
    let settings = HttpSettings::default().header("Authorization", &bearer);
    let mut link = websocket::connect(&url, &settings.unwrap()).await.unwrap();
    say(&mut link, "{}").await;
    assert_eq!(hear(&mut link).await.as_deref(), Some("{}"));
}

/// A socket that is closed at shutdown.
struct Leaving(watch::Receiver<bool>);

impl Endpoint for Leaving {
    async fn handle(&self, _: Box<HttpRequest>) -> HttpResponse {
        let mut leaving = self.0.clone();
        HttpResponse::socket(move |mut link, _| {
            tokio::spawn(async move {
                let _ = leaving.wait_for(|is| *is).await;
                let _ = link.sink.close().await;
            });
        })
    }
}

/// L26: a server sends close frames at shutdown, and waits for them.
#[tokio::test]
async fn shutdown_sends_close_frames() {
    let server = HttpServer::bind("127.0.0.1:0".parse().unwrap());
    let server = server.await.unwrap();
    let address = server.address().unwrap();
    let (leave, leaving) = watch::channel(false);
    let mut stop = leaving.clone();
    let stop = async move { drop(stop.wait_for(|is| *is).await) };
    let serving = tokio::spawn(server.serve(Arc::new(Leaving(leaving)), stop));
    let mut socket = open_socket(address).await;
    leave.send_replace(true);
    let Some(Ok(Message::Close(Some(frame)))) = socket.next().await else {
        panic!("it must be closed");
    };
    assert_eq!(u16::from(frame.code), 1001);
    // tungstenite replies when the next frame is read.
    assert!(socket.next().await.is_none());
    serving.await.unwrap().unwrap();
}

async fn open_socket(address: SocketAddr) -> WebSocketStream<TcpStream> {
    let mut request = format!("ws://{address}/ws").into_client_request().unwrap();
    let protocol = "mcp".parse().unwrap();
    request
        .headers_mut()
        .insert("sec-websocket-protocol", protocol);
    let stream = TcpStream::connect(address).await.unwrap();
    let opened = tokio_tungstenite::client_async(request, stream).await;
    opened.unwrap().0
}

/// T6, T9: a message of several lines is one message; binary and oversized messages close the socket with their code.
#[tokio::test]
async fn invalid_messages_close_the_websocket() {
    let address = serve(|server| server.limits = Limits::default()).await;
    let socket = || open_socket(address);
    let mut other = socket().await;
    let mut lines = socket().await;
    let pretty = "{\n  \"a\": 1,\r\n  \"b\": 2\n}";
    lines.send(Message::text(pretty)).await.unwrap();
    let said = lines.next().await.unwrap().unwrap();
    let said = said.to_text().unwrap();
    assert_eq!(
        said.split_whitespace().collect::<String>(),
        r#"{"a":1,"b":2}"#
    );

    for (message, code) in [
        (Message::binary(b"{}".to_vec()), 1003),
        (Message::text("x".repeat(DEFAULT_LINE_LIMIT + 1)), 1009),
    ] {
        let mut socket = socket().await;
        // The server may close before everything is written.
        let _ = socket.send(message).await;
        let Some(Ok(Message::Close(Some(frame)))) = socket.next().await else {
            panic!("it must be closed with {code}");
        };
        assert_eq!(u16::from(frame.code), code);
        let limit = DEFAULT_LINE_LIMIT.to_string();
        assert_eq!(frame.reason.contains(&limit), code == 1009, "{frame:?}");
    }
    other.send(Message::text("[1]")).await.unwrap();
    assert_eq!(other.next().await.unwrap().unwrap(), Message::text("[1]"));
}

/// Opens a WebSocket with the MCP subprotocol.
#[expect(
    clippy::result_large_err,
    reason = "the callback's error is the library's"
)]
fn agree(_: &Request, mut response: Response) -> Result<Response, ErrorResponse> {
    let protocol = "mcp".parse().unwrap();
    let headers = response.headers_mut();
    headers.insert("sec-websocket-protocol", protocol);
    Ok(response)
}

/// T9: the error of an oversized message contains the limit.
#[tokio::test]
async fn oversized_message_error_contains_the_limit() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("ws://{}/ws", listener.local_addr().unwrap());
    let server = tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let mut socket = tokio_tungstenite::accept_hdr_async(stream, agree)
            .await
            .unwrap();
        socket.send(Message::text("{}")).await.unwrap();
        // The client may close before everything is written.
        let long = Message::text("x".repeat(DEFAULT_LINE_LIMIT + 1));
        let _ = socket.send(long).await;
        while let Some(Ok(_)) = socket.next().await {}
    });
    let mut link = websocket::connect(&url, &HttpSettings::default())
        .await
        .unwrap();
    assert_eq!(
        hear(&mut link).await.as_deref(),
        Some("{}"),
        "what came before is heard"
    );
    let limit = loop {
        match link.source.fill().await {
            Ok(true) => {}
            Ok(false) => panic!("it just ended"),
            Err(TransportError::TooLarge { limit }) => break limit,
            Err(error) => panic!("{error}"),
        }
    };
    assert_eq!(limit, DEFAULT_LINE_LIMIT);
    drop(link);
    server.await.unwrap();
}

/// T6: messages travel both ways over TCP, and closing is EOF.
#[tokio::test]
async fn tcp_carries_messages() {
    let listener = tcp::listen("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let address = listener.address().to_string();
    tokio::spawn(async move { echo(listener.accept().await.unwrap()).await });
    let mut link = tcp::connect(&address).await.unwrap();
    for text in ["{\"a\":1}", "[2]"] {
        say(&mut link, text).await;
        assert_eq!(hear(&mut link).await.as_deref(), Some(text));
    }
    link.sink.close().await.unwrap();
    assert_eq!(hear(&mut link).await, None);
}

/// T6, T8: plain TCP is limited to loopback, and HTTP requests of browsers are rejected.
#[tokio::test]
async fn tcp_rejects_other_hosts_and_browsers() {
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:0"] {
        let refused = tcp::listen(address.parse().unwrap()).await.unwrap_err();
        assert!(
            matches!(refused, TransportError::Address { .. }),
            "{refused}"
        );
    }
    let listener = tcp::listen("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let mut browser = TcpStream::connect(listener.address()).await.unwrap();
    let posted = "POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 3\r\n\r\n{}\n";
    browser.write_all(posted.as_bytes()).await.unwrap();
    let mut link = listener.accept().await.unwrap();
    assert!(link.source.fill().await.is_err());
    assert_eq!(link.source.next_line(), None, "nothing of it is a message");
}
