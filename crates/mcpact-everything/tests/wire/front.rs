//! Access by HTTP: tokens, CORS, TLS.

use mcpact::client::{Client, ClientError, HttpSettings};
use mcpact::server::{TlsIdentity, Token};
use mcpact_spec::Revision;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use serde_json::json;

use crate::http::{Raw, Reply, Running, modern};

const SECRET: &str = "a-token-for-these-tests";

async fn guarded() -> Running {
    let server = mcpact_everything::server(&Revision::ALL).settings(|settings| {
        settings.token = Some(Token::new(SECRET).unwrap());
        settings.guard = std::mem::take(&mut settings.guard).allow_origin("https://app.example");
        settings.http_sse = true;
    });
    Running::start(server).await
}

fn list() -> Raw {
    Raw::modern(&modern(1, "tools/list", json!({})))
}

/// T8: without the token nothing is served, on no verb and no path, and the answer says what is missing.
#[tokio::test]
async fn without_the_token_nothing_is_served() {
    let server = guarded().await;
    let refused = |reply: &Reply| {
        assert_eq!(reply.status, 401, "{reply:?}");
        reply.header("www-authenticate").unwrap().to_owned()
    };
    for path in ["/mcp", "/sse", "/messages", "/other"] {
        for verb in ["GET", "POST", "DELETE", "OPTIONS", "PUT"] {
            let reply = server.send(&Raw::new(verb, path)).await;
            assert_eq!(refused(&reply), "Bearer", "{verb} {path}");
        }
    }
    for wrong in ["Bearer a-token-for-these-testz", "Bearer a"] {
        let reply = server.send(&list().with("authorization", wrong)).await;
        let challenge = "Bearer error=\"invalid_token\", error_description=\"the token is wrong\"";
        assert_eq!(refused(&reply), challenge, "{wrong}");
    }
    let in_query = list().at(&format!("/mcp?access_token={SECRET}&token={SECRET}"));
    assert_eq!(refused(&server.send(&in_query).await), "Bearer");
    let shown = list().with("authorization", &format!("Bearer {SECRET}"));
    assert_eq!(server.send(&shown).await.status, 200);
}

/// T7, T8: a client sends the token as a header; without it, the error names the header.
#[tokio::test]
async fn a_client_shows_the_token() {
    let server = guarded().await;
    let refused = Client::builder("t", "1").connect(server.url.as_str()).await;
    let Err(ClientError::Auth { status, challenge }) = refused else {
        panic!("{refused:?}");
    };
    assert_eq!((status, challenge.as_deref()), (401, Some("Bearer")));
    let client = Client::builder("t", "1")
        .header("Authorization", format!("Bearer {SECRET}"))
        .connect(server.url.as_str())
        .await
        .unwrap();
    assert!(client.list_tools().await.unwrap().len() > 30);
}

/// T8, H1: a page that is let in may ask, send and read what the protocol needs; another may nothing.
#[tokio::test]
async fn pages_are_told_what_they_may() {
    let server = guarded().await;
    let preflight = |origin: &str| {
        Raw::new("OPTIONS", "/mcp")
            .with("origin", origin)
            .with("access-control-request-method", "DELETE")
            .with(
                "access-control-request-headers",
                "authorization,mcp-param-Region,x-evil",
            )
    };
    let names = |reply: &Reply, header: &str| -> Vec<String> {
        let value = reply.header(header).unwrap_or_default();
        value.split(", ").map(str::to_ascii_lowercase).collect()
    };
    let reply = server.send(&preflight("https://app.example")).await;
    assert_eq!(reply.status, 204, "no token goes with a preflight");
    assert_eq!(
        reply.header("access-control-allow-origin"),
        Some("https://app.example")
    );
    assert_eq!(reply.header("access-control-allow-credentials"), None);
    assert_eq!(reply.header("vary"), Some("Origin"));
    let verbs = names(&reply, "access-control-allow-methods");
    assert_eq!(verbs, ["post", "get", "delete"]);
    let allowed = names(&reply, "access-control-allow-headers");
    for name in [
        "authorization",
        "content-type",
        "last-event-id",
        "mcp-method",
        "mcp-name",
        "mcp-param-region",
        "mcp-protocol-version",
        "mcp-session-id",
        "traceparent",
        "tracestate",
        "baggage",
    ] {
        assert!(allowed.iter().any(|allowed| allowed == name), "{name}");
    }
    assert!(!allowed.iter().any(|allowed| allowed == "x-evil"));

    // Also a refusal must be readable, or a page cannot learn that it needs a token.
    let unauthorised = list().with("origin", "https://app.example");
    let authorised = list()
        .with("origin", "https://app.example")
        .with("authorization", &format!("Bearer {SECRET}"));
    for (raw, status) in [(unauthorised, 401), (authorised, 200)] {
        let reply = server.send(&raw).await;
        assert_eq!(reply.status, status);
        assert_eq!(
            reply.header("access-control-allow-origin"),
            Some("https://app.example")
        );
        let exposed = names(&reply, "access-control-expose-headers");
        assert!(
            exposed.contains(&"mcp-session-id".to_owned()),
            "{exposed:?}"
        );
    }
    for origin in ["https://evil.example", "null", "https://app.example.evil"] {
        let reply = server.send(&preflight(origin)).await;
        assert_eq!(reply.status, 403, "{origin}");
        assert_eq!(reply.header("access-control-allow-origin"), None);
    }
}

/// T8: an address that others can reach needs a token or an explicit word, also when it is "all".
#[tokio::test]
async fn addresses_of_others_need_a_token() {
    for address in ["0.0.0.0:0", "[::]:0", "[::ffff:0.0.0.0]:0", "192.0.2.1:0"] {
        let server = mcpact_everything::server(&Revision::ALL);
        let refused = server.listen(address.parse().unwrap()).await.unwrap_err();
        assert!(
            matches!(refused, mcpact::Error::NotLoopback(_)),
            "{address}: {refused}"
        );
    }
    let token = Some(Token::new(SECRET).unwrap());
    let guarded = mcpact_everything::server(&Revision::ALL).settings(|s| s.token = token);
    let open = mcpact_everything::server(&Revision::ALL).settings(|s| s.allow_remote = true);
    for server in [guarded, open] {
        let listening = server.listen("0.0.0.0:0".parse().unwrap()).await.unwrap();
        assert!(listening.address().ip().is_unspecified());
    }
}

/// An authority, and the chain and key of a server that it vouches for, as PEM.
fn certificates() -> (String, String, String) {
    let mut authority = CertificateParams::new(Vec::new()).unwrap();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority_key = KeyPair::generate().unwrap();
    let root = authority.self_signed(&authority_key).unwrap();
    let issuer = Issuer::new(authority, authority_key);
    let server = CertificateParams::new(["127.0.0.1".to_owned()]).unwrap();
    let key = KeyPair::generate().unwrap();
    let leaf = server.signed_by(&key, &issuer).unwrap();
    (root.pem(), leaf.pem(), key.serialize_pem())
}

/// T8: the whole protocol goes over TLS, for clients that trust who vouches for the server and no
/// other; without TLS there is no answer.
#[tokio::test]
async fn everything_goes_over_tls() {
    let (root, chain, key) = certificates();
    let identity = TlsIdentity::from_pem(chain.as_bytes(), key.as_bytes()).unwrap();
    let server = mcpact_everything::server(&Revision::ALL)
        .settings(|settings| settings.tls = Some(identity));
    let running = Running::start(server).await;
    assert!(
        running.url.starts_with("https://127.0.0.1:"),
        "{}",
        running.url
    );

    let trusting = HttpSettings::default().trust_pem(root.as_bytes()).unwrap();
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let client = Client::builder("t", "1")
            .http(trusting.clone())
            .mode(mcpact::client::EraMode::Pin(revision))
            .connect(running.url.as_str())
            .await
            .unwrap();
        let echoed = client.call_tool("echo", json!({"text": "hi"})).await;
        assert_eq!(echoed.unwrap().all_text(), "hi");
        client.close().await;
    }

    let doubting = Client::builder("t", "1")
        .connect(running.url.as_str())
        .await;
    let Err(ClientError::Unreachable { source, .. }) = doubting else {
        panic!("{doubting:?}");
    };
    assert!(source.to_string().contains("certificate"), "{source}");
    let (other, ..) = certificates();
    let misled = HttpSettings::default().trust_pem(other.as_bytes()).unwrap();
    let misled = Client::builder("t", "1").http(misled);
    assert!(misled.connect(running.url.as_str()).await.is_err());

    let plain = running.send(&list()).await;
    assert_eq!(plain.status, 0, "no HTTP is spoken: {plain:?}");
    assert!(HttpSettings::default().trust_pem(b"nothing").is_err());
}
