//! HTTP client through proxies, with connection retries.
#![expect(clippy::unwrap_used, reason = "a broken expectation is a failed test")]

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use mcpact_transport::error::TransportError;
use mcpact_transport::http::client::{
    ClientResponseBody, HttpClient, HttpSettings, Proxy, ProxyMode,
};
use mcpact_transport::http::server::{
    Endpoint, HttpRequest, HttpResponse, HttpServer, TlsIdentity,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};

/// Echo server.
struct Echo;

impl Endpoint for Echo {
    async fn handle(&self, request: Box<HttpRequest>) -> HttpResponse {
        HttpResponse::json(200, request.body)
    }
}

/// A server, and the client settings with which it can be reached.
async fn target(scheme: &str) -> (String, HttpSettings) {
    let mut server = HttpServer::bind("127.0.0.1:0".parse().unwrap())
        .await
        .unwrap();
    let mut settings = HttpSettings::default();
    if scheme == "https" {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let (chain, key) = (made.cert.pem(), made.signing_key.serialize_pem());
        server.tls = Some(TlsIdentity::from_pem(chain.as_bytes(), key.as_bytes()).unwrap());
        settings = settings.trust_pem(chain.as_bytes()).unwrap();
    }
    let url = format!(
        "{scheme}://localhost:{}/mcp",
        server.address().unwrap().port()
    );
    tokio::spawn(server.serve(Arc::new(Echo), std::future::pending()));
    (url, settings)
}

async fn post(url: &str, settings: HttpSettings) -> Result<String, TransportError> {
    let client = HttpClient::new(url, settings)?;
    let answer = client
        .post(&HeaderMap::new(), Bytes::from_static(b"[7]"))
        .await?;
    match answer.body {
        ClientResponseBody::Json(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
        ClientResponseBody::Empty
        | ClientResponseBody::Events(_)
        | ClientResponseBody::Other(_) => Ok(format!("status {}", answer.status)),
    }
}

/// Targets that a proxy was asked for.
#[derive(Clone, Default)]
struct Targets(Arc<Mutex<Vec<String>>>);

async fn head(stream: &mut TcpStream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).await.unwrap();
        head.push(byte[0]);
    }
    String::from_utf8(head).unwrap()
}

/// Resolves names, as a proxy does.
async fn dial(authority: &str) -> TcpStream {
    let port = authority.rsplit(':').next().unwrap();
    TcpStream::connect(format!("127.0.0.1:{port}"))
        .await
        .unwrap()
}

/// HTTP proxy that tunnels and forwards requests with the right credentials.
async fn http_proxy() -> (SocketAddr, Targets) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let asked = Targets::default();
    let heard = asked.clone();
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            let head = head(&mut client).await;
            let line = head.lines().next().unwrap().to_owned();
            heard.0.lock().unwrap().push(line.clone());
            // `ann:secret`
            if !head
                .to_lowercase()
                .contains("proxy-authorization: basic yw5uonnly3jlda==")
            {
                let refused = "HTTP/1.1 407 No\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
                client.write_all(refused.as_bytes()).await.unwrap();
                continue;
            }
            let mut words = line.split(' ');
            let (verb, to) = (words.next().unwrap(), words.next().unwrap());
            let mut server = if verb == "CONNECT" {
                let server = dial(to).await;
                client.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
                server
            } else {
                let rest = to.strip_prefix("http://").unwrap();
                let (authority, path) = rest.split_once('/').unwrap();
                let mut server = dial(authority).await;
                let head = head.replacen(to, &format!("/{path}"), 1);
                server.write_all(head.as_bytes()).await.unwrap();
                server
            };
            tokio::spawn(async move { copy_bidirectional(&mut client, &mut server).await });
        }
    });
    (address, asked)
}

/// SOCKS5 proxy: RFC 1928 and 1929, as far as the client needs them.
async fn socks_proxy() -> (SocketAddr, Targets) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let asked = Targets::default();
    let heard = asked.clone();
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            let [_, count] = array(&mut client).await;
            let methods = text(&mut client, count).await;
            if !methods.contains('\u{2}') {
                client.write_all(&[5, 0xff]).await.unwrap();
                continue;
            }
            client.write_all(&[5, 2]).await.unwrap();
            let [_, count] = array(&mut client).await;
            let user = text(&mut client, count).await;
            let [count] = array(&mut client).await;
            let password = text(&mut client, count).await;
            let is_right = (user.as_str(), password.as_str()) == ("ann", "secret");
            client.write_all(&[1, u8::from(!is_right)]).await.unwrap();
            if !is_right {
                continue;
            }
            let [_, _, _, kind, count] = array(&mut client).await;
            assert_eq!(kind, 3, "a name is passed on as a name");
            let name = text(&mut client, count).await;
            let port = u16::from_be_bytes(array(&mut client).await);
            heard.0.lock().unwrap().push(format!("{name}:{port}"));
            let mut server = dial(&format!(":{port}")).await;
            let done = [5, 0, 0, 1, 127, 0, 0, 1, 0, 1];
            client.write_all(&done).await.unwrap();
            tokio::spawn(async move { copy_bidirectional(&mut client, &mut server).await });
        }
    });
    (address, asked)
}

async fn array<const N: usize>(stream: &mut TcpStream) -> [u8; N] {
    let mut bytes = [0; N];
    stream.read_exact(&mut bytes).await.unwrap();
    bytes
}

async fn text(stream: &mut TcpStream, count: u8) -> String {
    let mut bytes = vec![0; usize::from(count)];
    stream.read_exact(&mut bytes).await.unwrap();
    String::from_utf8(bytes).unwrap()
}

fn through(settings: HttpSettings, proxy: &str) -> HttpSettings {
    HttpSettings {
        proxy: ProxyMode::Custom(Proxy::new(proxy).unwrap()),
        ..settings
    }
}

/// T7: an HTTP proxy forwards plain HTTP and tunnels TLS, with credentials.
#[tokio::test]
async fn http_proxies_forward_and_tunnel() {
    let (proxy, asked) = http_proxy().await;
    let with = format!("http://ann:secret@{proxy}");
    let (plain, settings) = target("http").await;
    let said = post(&plain, through(settings.clone(), &with)).await;
    assert_eq!(said.unwrap(), "[7]");
    let (secure, trusting) = target("https").await;
    let said = post(&secure, through(trusting.clone(), &with)).await;
    assert_eq!(said.unwrap(), "[7]");
    let authority = secure
        .trim_start_matches("https://")
        .trim_end_matches("/mcp");
    assert_eq!(
        *asked.0.lock().unwrap(),
        [
            format!("POST {plain} HTTP/1.1"),
            format!("CONNECT {authority} HTTP/1.1"),
        ]
    );

    let without = format!("http://{proxy}");
    let said = post(&plain, through(settings, &without)).await;
    assert_eq!(said.unwrap(), "status 407");
    let failed = post(&secure, through(trusting, &without)).await;
    let told = failed.unwrap_err().to_string();
    assert!(
        told.contains(&format!("through the proxy `{proxy}`")),
        "{told}"
    );
    assert!(told.contains("authorization required"), "{told}");
}

/// T7: a SOCKS5 proxy carries both, resolves names, and gets credentials.
#[tokio::test]
async fn socks_proxies_carry_everything() {
    let (proxy, asked) = socks_proxy().await;
    let with = format!("socks5://ann:secret@{proxy}");
    for scheme in ["http", "https"] {
        let (url, settings) = target(scheme).await;
        let said = post(&url, through(settings, &with)).await;
        assert_eq!(said.unwrap(), "[7]", "{scheme}");
        let authority = url
            .trim_start_matches(&format!("{scheme}://"))
            .trim_end_matches("/mcp")
            .to_owned();
        assert_eq!(asked.0.lock().unwrap().pop(), Some(authority));
    }
    for wrong in [
        format!("socks5://{proxy}"),
        format!("socks5://ann:no@{proxy}"),
    ] {
        let (url, settings) = target("http").await;
        let told = post(&url, through(settings, &wrong)).await.unwrap_err();
        assert!(told.to_string().contains("through the proxy"), "{told}");
    }
}

/// T7: without a proxy, or for an exception, the server is reached directly.
#[tokio::test]
async fn proxies_can_be_avoided() {
    let (url, settings) = target("http").await;
    let unreachable = Proxy::new("http://127.0.0.1:1").unwrap();
    for proxy in [
        ProxyMode::Disabled,
        ProxyMode::Inherit.below(&ProxyMode::Disabled),
        ProxyMode::Custom(unreachable.clone().except("localhost")),
    ] {
        let settings = HttpSettings {
            proxy,
            ..settings.clone()
        };
        assert_eq!(post(&url, settings).await.unwrap(), "[7]");
    }
    let settings = HttpSettings {
        proxy: ProxyMode::Custom(unreachable),
        connect_retries: 0,
        ..settings
    };
    let told = post(&url, settings).await.unwrap_err().to_string();
    assert!(told.contains("through the proxy `127.0.0.1:1`"), "{told}");
}

/// Port of a server that breaks the first connections before any data.
async fn breaking(times: usize, server: u16) -> (u16, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let count = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&count);
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            if counter.fetch_add(1, Ordering::SeqCst) < times {
                continue;
            }
            let mut server = TcpStream::connect(("127.0.0.1", server)).await.unwrap();
            tokio::spawn(async move { copy_bidirectional(&mut client, &mut server).await });
        }
    });
    (port, count)
}

/// T7: a connection that breaks before anything was sent is retried up to the limit.
#[tokio::test]
async fn connecting_is_retried() {
    let (url, settings) = target("https").await;
    let server = url.rsplit(':').next().unwrap().trim_end_matches("/mcp");
    let settings = HttpSettings {
        connect_retries: 2,
        retry_pause: Duration::from_millis(1),
        ..settings
    };
    for (broken, works) in [(2, true), (3, false)] {
        let (port, count) = breaking(broken, server.parse().unwrap()).await;
        let url = format!("https://localhost:{port}/mcp");
        let said = post(&url, settings.clone()).await;
        assert_eq!(said.is_ok(), works, "{said:?}");
        assert_eq!(count.load(Ordering::SeqCst), 3);
    }
}

/// T7: a request that may have arrived is never sent again, on new and reused connections.
#[tokio::test]
async fn request_is_sent_at_most_once() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let count = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&count);
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            loop {
                head(&mut client).await;
                array::<3>(&mut client).await;
                let number = counter.fetch_add(1, Ordering::SeqCst);
                if number != 1 {
                    break;
                }
                let answer = "HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n";
                client.write_all(answer.as_bytes()).await.unwrap();
            }
        }
    });
    let client = HttpClient::new(&url, HttpSettings::default()).unwrap();
    let message = || Bytes::from_static(b"[7]");
    for (sent, works) in [(1, false), (2, true), (3, false)] {
        let said = client.post(&HeaderMap::new(), message()).await;
        assert_eq!(said.is_ok(), works, "{said:?}");
        assert_eq!(count.load(Ordering::SeqCst), sent);
    }
}
