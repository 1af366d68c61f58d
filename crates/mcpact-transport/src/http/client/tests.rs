//! Tests of the HTTP client: timeouts, limits, connection reuse, certificates.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::*;

const SHORT: Duration = Duration::from_millis(50);

/// A server that reads once, writes this text and keeps the connection open.
async fn serve(text: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            tokio::spawn(async move {
                let _ = socket.read(&mut [0; 4096]).await;
                let _ = socket.write_all(text.as_bytes()).await;
                let _ = socket.read(&mut [0; 4096]).await;
            });
        }
    });
    format!("http://{address}/mcp")
}

async fn post(url: &str, settings: HttpSettings) -> Result<ClientResponse, TransportError> {
    let client = HttpClient::new(url, settings)?;
    client
        .post(&HeaderMap::new(), Bytes::from_static(b"{}"))
        .await
}

/// T9: missing heads, stalled bodies and silent streams time out.
#[tokio::test]
async fn every_wait_times_out() {
    let settings = HttpSettings {
        head_timeout: SHORT,
        idle_timeout: SHORT,
        stream_idle_timeout: SHORT,
        ..HttpSettings::default()
    };
    let url = serve("").await;
    let failed = post(&url, settings.clone()).await.unwrap_err();
    assert!(matches!(failed, TransportError::Timeout(_)), "{failed:?}");

    let url =
        serve("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{")
            .await;
    let failed = post(&url, settings.clone()).await.unwrap_err();
    assert!(matches!(failed, TransportError::Timeout(_)), "{failed:?}");

    let url = serve("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: 1\n\n").await;
    let ClientResponseBody::Events(mut events) = post(&url, settings).await.unwrap().body else {
        panic!("it is a stream");
    };
    assert_eq!(events.next().await.unwrap().unwrap().data, "1");
    let failed = events.next().await.unwrap().unwrap_err();
    assert!(matches!(failed, TransportError::Timeout(_)), "{failed:?}");
    assert!(events.next().await.is_none());
}

/// A connection closed by the server while idle is replaced, and the request succeeds.
#[tokio::test]
async fn closed_idle_connection_is_replaced() {
    const ANSWER: &str =
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}";
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let (close, closing) = std::sync::mpsc::channel::<()>();
    let (closed, mut seen) = tokio::sync::mpsc::unbounded_channel();
    std::thread::spawn(move || {
        for socket in listener.incoming() {
            let mut socket = socket.unwrap();
            let _ = std::io::Read::read(&mut socket, &mut [0; 4096]);
            std::io::Write::write_all(&mut socket, ANSWER.as_bytes()).unwrap();
            if closing.recv().is_err() {
                return;
            }
            drop(socket);
            let _ = closed.send(());
        }
    });
    let other = serve(ANSWER).await;
    let client = HttpClient::new(&url, HttpSettings::default()).unwrap();
    for _ in 0..5 {
        let message = Bytes::from_static(b"{}");
        let response = client.post(&HeaderMap::new(), message).await.unwrap();
        assert_eq!(response.status, 200);
        close.send(()).unwrap();
        seen.recv().await.unwrap();
        // Once another socket was polled, this one was polled too.
        post(&other, HttpSettings::default()).await.unwrap();
    }
}

/// A server that sends this response to every request; returns the number of connections.
async fn answering(text: &'static str) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            counted.fetch_add(1, Ordering::Relaxed);
            tokio::spawn(async move {
                while socket.read(&mut [0; 4096]).await.is_ok_and(|read| read > 0) {
                    let _ = socket.write_all(text.as_bytes()).await;
                }
            });
        }
    });
    (url, count)
}

/// T7: a connection is reused after a complete response, unless the server closes it or sends unexpected data.
#[tokio::test]
async fn connections_are_reused() {
    const LENGTH: &str =
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}";
    const CHUNKS: &str = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\
        Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n1\r\n}\r\n0\r\n\r\n";
    const CLOSE: &str = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\
        Content-Length: 2\r\n\r\n{}";
    const MORE: &str = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n\
        {}HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1\r\n\r\n7";
    const NOTHING: &str = "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n";
    for (text, body, connections) in [
        (LENGTH, "{}", 1),
        (CHUNKS, "{}", 1),
        (CLOSE, "{}", 3),
        (MORE, "{}", 3),
        (NOTHING, "", 1),
    ] {
        let (url, count) = answering(text).await;
        let client = HttpClient::new(&url, HttpSettings::default()).unwrap();
        for _ in 0..3 {
            let message = Bytes::from_static(b"{}");
            let response = client.post(&HeaderMap::new(), message).await.unwrap();
            let read = match response.body {
                ClientResponseBody::Json(bytes) => String::from_utf8(bytes.into()).unwrap(),
                ClientResponseBody::Empty => String::new(),
                other => panic!("{other:?}"),
            };
            assert_eq!(read, body, "{text}");
        }
        assert_eq!(count.load(Ordering::Relaxed), connections, "{text}");
    }
}

/// T7: a server may respond before it has read the request; the connection is not reused.
#[tokio::test]
async fn early_response_is_read() {
    let text = "HTTP/1.1 413 Content Too Large\r\nContent-Length: 0\r\n\r\n";
    let client = HttpClient::new(&serve(text).await, HttpSettings::default()).unwrap();
    let message = Bytes::from(vec![b' '; 32 * 1024 * 1024]);
    let response = client.post(&HeaderMap::new(), message).await.unwrap();
    assert_eq!(response.status, 413);
    assert!(client.pool.take().is_none());
}

/// T9: a truncated body is an error.
#[tokio::test]
async fn truncated_body_is_an_error() {
    for text in [
        "",
        "HTTP/1.1 200 OK\r\nContent-",
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{}",
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n",
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        tokio::spawn(async move {
            let (mut socket, _) = listener.accept().await.unwrap();
            let _ = socket.read(&mut [0; 4096]).await;
            let _ = socket.write_all(text.as_bytes()).await;
        });
        let failed = post(&url, HttpSettings::default()).await.unwrap_err();
        let told = failed.to_string();
        assert!(told.contains("the connection was closed"), "{text}: {told}");
    }
}

/// Connections and handshakes without response time out.
#[tokio::test]
async fn connecting_times_out() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}/mcp", listener.local_addr().unwrap());
    let settings = HttpSettings {
        connect_timeout: SHORT,
        ..HttpSettings::default()
    };
    let failed = post(&url, settings).await.unwrap_err();
    assert!(
        matches!(failed, TransportError::Timeout("connecting")),
        "{failed:?}"
    );
}

/// T9: announced and actual body sizes are limited.
#[tokio::test]
async fn bodies_are_limited() {
    let settings = HttpSettings {
        body_limit: 8,
        ..HttpSettings::default()
    };
    for text in [
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n9\r\n123456789\r\n",
    ] {
        let failed = post(&serve(text).await, settings.clone())
            .await
            .unwrap_err();
        assert!(
            matches!(failed, TransportError::TooLarge { limit: 8 }),
            "{failed:?}"
        );
    }
}

/// A TLS server with this certificate; returns its port.
async fn secured(certificate: CertificateDer<'static>, key: &rcgen::KeyPair) -> u16 {
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            let Ok(mut stream) = acceptor.accept(socket).await else {
                continue;
            };
            let _ = stream.read(&mut [0; 4096]).await;
            let response = "HTTP/1.1 202 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
            let _ = stream.write_all(response.as_bytes()).await;
            let _ = stream.shutdown().await;
        }
    });
    port
}

/// Untrusted and invalid certificates are rejected with an explanation and a hint.
#[tokio::test]
async fn certificates_are_checked() {
    let names = || rcgen::CertificateParams::new(["localhost".to_owned()]).unwrap();
    let mut of_authority = names();
    of_authority.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let mut expired = names();
    expired.not_after = rcgen::date_time_ymd(2001, 1, 1);
    let accepted = || Ok(202);
    for (params, host, is_trusted, expected) in [
        (names(), "localhost", true, accepted()),
        (
            names(),
            "localhost",
            false,
            Err("signed by an unknown authority"),
        ),
        (
            names(),
            "127.0.0.1",
            true,
            Err("not valid for the host name"),
        ),
        (of_authority, "localhost", true, Err("a CA certificate")),
        (expired, "localhost", true, Err("it has expired")),
    ] {
        let key = rcgen::KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap().der().clone();
        let port = secured(certificate.clone(), &key).await;
        let settings = HttpSettings {
            trusted: Vec::from_iter(is_trusted.then_some(certificate)),
            ..HttpSettings::default()
        };
        let response = post(&format!("https://{host}:{port}/mcp"), settings).await;
        match (response, expected) {
            (Ok(response), Ok(status)) => assert_eq!(response.status, status),
            (Err(TransportError::Certificate { why, .. }), Err(words)) => {
                assert!(why.contains(words), "{words}: {why}");
            }
            (response, expected) => panic!("{expected:?}: {response:?}"),
        }
    }
}

/// T7: custom headers are secret and cannot be protocol headers.
#[test]
fn custom_headers_are_hidden() {
    let settings = HttpSettings::default()
        .header("Authorization", "Bearer hunter2")
        .unwrap();
    assert!(!format!("{settings:?}").contains("hunter2"));
    for name in [
        "Content-Length",
        "mcp-session-id",
        "MCP-Param-x",
        "Last-Event-ID",
    ] {
        assert!(HttpSettings::default().header(name, "x").is_err(), "{name}");
    }
    assert!(HttpSettings::default().header("X", "a\nb").is_err());
}
