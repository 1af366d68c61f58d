//! Confidentiality.

use std::fs;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{HeaderValue, Method};
use serde_json::{Value, json};

use super::Effort;
use super::ending::must_answer;
use super::network::peer;
use crate::client::{Client, Era, read};
use crate::error::RowError;
use crate::figure::Figures;
use crate::gateway::{GatewaySetup, path};
use crate::ledger::Ledger;
use crate::process;

/// A secret that nothing else looks like.
fn canary(of: &str) -> String {
    format!("canary-{of}-{}-zq7", Ledger::mint())
}

/// No secret is in the log at its most talkative, nor in anything that the gateway says.
pub(super) async fn redaction(_: Effort, figures: &mut Figures) -> Result<(), RowError> {
    let [variable, header, token, argument, query] =
        ["variable", "header", "token", "argument", "query"].map(canary);
    let (_peer, address) = peer("2025-11-25", None).await?;
    let keys = "env = { SECRET = \"${CANARY_VARIABLE}\" }\n";
    let remote = format!("http://{address}/mcp?key={query}");
    let remote_keys = "headers = { X-Api-Key = \"${CANARY_HEADER}\" }\n";
    let gone = format!("http://127.0.0.1:9/mcp?key={query}");
    let setup = GatewaySetup::new()?
        .setting("token = \"${CANARY_TOKEN}\"\n")
        .variable("CANARY_VARIABLE", &variable)
        .variable("CANARY_HEADER", &header)
        .variable("CANARY_TOKEN", &token)
        .variable("MCPACT_LOG", "trace")
        .scripted("local", &[], keys)?
        .url("remote", &remote, remote_keys)
        .url("gone", &gone, remote_keys);
    let gateway = setup.serve().await?;
    let mut said = String::new();
    let bearer = HeaderValue::from_str(&format!("Bearer {token}")).map_err(http::Error::from)?;
    let ledger = Ledger::default();
    for era in [Era::Legacy, Era::Modern] {
        for server in ["local", "remote", "gone"] {
            let mut client = Client::new(&gateway.address, &path(server), era)?;
            client.headers.insert("authorization", bearer.clone());
            let Ok(client) = client.greet().await else {
                continue;
            };
            let closed = ledger
                .call(&client, "echo", json!({"secret": argument}))
                .await;
            said.push_str(&format!("{closed:?}\n"));
        }
    }
    for place in ["/metrics", "/healthz", "/readyz", "/servers/none/mcp"] {
        let mut client = Client::new(&gateway.address, place, Era::Legacy)?;
        client.headers.insert("authorization", bearer.clone());
        let (_, response) = client.send(Method::GET, Bytes::new(), &Value::Null).await?;
        let body = http_body_util::BodyExt::collect(response.into_body())
            .await?
            .to_bytes();
        said.push_str(&String::from_utf8_lossy(&body));
    }
    let words = fs::read(format!("/proc/{}/cmdline", gateway.id()))?;
    said.push_str(&String::from_utf8_lossy(&words));
    let log = gateway.log();
    figures.at_least("bytes in the log", log.len(), 1000);
    for secret in [&variable, &header, &token, &argument, &query] {
        let name = secret.split('-').nth(1).unwrap_or_default();
        figures.none(
            format!("`{name}` in the log"),
            log.matches(secret.as_str()).count(),
        );
        let elsewhere = said.matches(secret.as_str()).count();
        figures.none(format!("`{name}` elsewhere"), elsewhere);
    }
    Ok(())
}

/// Status and body of a request with a foreign session id.
async fn knock(client: &Client, method: &Method) -> Result<(u16, Vec<Value>), RowError> {
    let message = client.request(&json!(1), "ping", json!({}));
    let body = if *method == Method::POST {
        Bytes::from(message.to_string())
    } else {
        Bytes::new()
    };
    let (_connection, response) = client.send(method.clone(), body, &message).await?;
    let reply = read(response).await?;
    Ok((reply.status, reply.messages))
}

/// A session is not accessible without the token, and its existence is not revealed.
///
/// Callers that have a token each are in [`principals`](super::principals).
pub(super) async fn hijack(effort: Effort, figures: &mut Figures) -> Result<(), RowError> {
    let token = canary("token");
    let setup = GatewaySetup::new()?
        .setting("token = \"${CANARY_TOKEN}\"\n")
        .variable("CANARY_TOKEN", &token);
    let gateway = setup.scripted("mine", &[], "")?.serve().await?;
    let mut owner = Client::new(&gateway.address, &path("mine"), Era::Legacy)?;
    let bearer = HeaderValue::from_str(&format!("Bearer {token}")).map_err(http::Error::from)?;
    owner.headers.insert("authorization", bearer);
    let owner = owner.greet().await?;
    let ledger = Ledger::default();
    must_answer(&ledger, &owner, "echo").await?;
    let (mut let_in, mut told) = (0, 0);
    let (mut real, mut made_up) = (Vec::new(), Vec::new());
    for turn in 0..effort.of(20, 500) {
        for method in [Method::POST, Method::GET, Method::DELETE] {
            let mut thief = Client::new(&gateway.address, &path("mine"), Era::Legacy)?;
            thief.headers.clone_from(&owner.headers);
            if turn % 2 == 0 {
                thief.headers.remove("authorization");
            } else {
                let wrong = HeaderValue::from_static("Bearer wrong-token-of-some-length");
                thief.headers.insert("authorization", wrong);
            }
            let begin = Instant::now();
            let seen = knock(&thief, &method).await?;
            real.push(begin.elapsed());
            thief
                .headers
                .insert("mcp-session-id", HeaderValue::from_static("made-up"));
            let begin = Instant::now();
            let unseen = knock(&thief, &method).await?;
            made_up.push(begin.elapsed());
            let_in += usize::from(seen.0 != 401);
            told += usize::from(seen != unseen);
        }
    }
    figures.none("let in", let_in);
    figures.none("told apart from a session that does not exist", told);
    let middle = |times: &mut Vec<Duration>| {
        times.sort_unstable();
        times.get(times.len() / 2).copied().unwrap_or_default()
    };
    let apart = middle(&mut real).abs_diff(middle(&mut made_up));
    figures.within(
        "difference in time, median",
        apart,
        Duration::from_millis(1),
    );
    must_answer(&ledger, &owner, "echo").await?;
    figures.none("processes left", {
        let family = process::descendants(gateway.id());
        gateway.close().await?;
        family.iter().filter(|id| process::is_alive(**id)).count()
    });
    Ok(())
}
