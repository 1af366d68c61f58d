//! Messages that mean one thing to the gateway and another to the server.

use std::time::{Duration, Instant};

use bytes::Bytes;
use http::Method;
use serde_json::json;

use super::Effort;
use crate::background_clients::BackgroundClients;
use crate::client::{Client, Era, read};
use crate::error::RowError;
use crate::figure::Figures;
use crate::gateway::{Gateway, GatewaySetup, path};
use crate::journal::Entry;
use crate::ledger::Ledger;

/// Server whose requests are judged.
const GUARDED: &str = "guarded";

/// Filter that lets everything pass.
const FILTER: &str = r#"while IFS= read -r line; do
  printf '{"id":%s}\n' "$(printf '%s' "$line" | sed -n 's/^{"id":\([0-9]*\),.*/\1/p')"
done
"#;

/// Attacks: members of the params behind `_meta`, with the name of the tool and the number of the call.
const ATTACKS: &[&str] = &[
    r#""name":"TOOL","Name":"die","arguments":{"nonce":NONCE}"#,
    r#""NAME":"die","name":"TOOL","arguments":{"nonce":NONCE}"#,
    r#""name":"TOOL","n\u0041me":"die","arguments":{"nonce":NONCE}"#,
    r#""name":"TOOL","name":"die","arguments":{"nonce":NONCE}"#,
    r#""name":"TOOL","n\u0061me":"die","arguments":{"nonce":NONCE}"#,
    r#""name":"TOOL","arguments":{"nonce":NONCE},"Arguments":{"path":"/etc/shadow"}"#,
    r#""name":"TOOL","arguments":{"nonce":NONCE},"argument\u017f":{"path":"/etc/shadow"}"#,
    r#""name":"TOOL","arguments":{"nonce":NONCE},"arguments":{"nonce":NONCE}"#,
    r#""name":"TOOL","arguments":{"nonce":NONCE,"path":"/etc/shadow","path":"/safe"}"#,
    r#""name":"TOOL","arguments":{"nonce":NONCE,"path":"/etc/shadow","p\u0061th":"/safe"}"#,
    r#""name":"TOOL","arguments":{"nonce":NONCE,"a":[{"b":{"path":1,"path":2}}]}"#,
    r#""name":"TOOL","arguments":{"nonce":NONCE,"\ud800":1,"\uD800":2}"#,
    r#""name":"TOOL","arguments":{"nonce":NONCE},"_Meta":{"progressToken":1}"#,
    r#""name":"TOOL","arguments":{"nonce":NONCE},"tas\u212a":{}"#,
];

/// Calls that mean the same to every reader. Those with lone surrogates, which the scripted server cannot read, are tests
/// of the gateway.
const INNOCENT: &[&str] = &[
    r#""name":"TOOL","arguments":{"nonce":NONCE}"#,
    r#""n\u0061me":"TOOL","arguments":{"nonce":NONCE,"name":1,"Name":2,"NAME":3}"#,
    r#""name":"TOOL","arguments":{"nonce":NONCE,"Arguments":{"uri":1,"Uri":2},"a":[{"b":1},{"b":1}]}"#,
];

/// Endpoint with the name of the tool there.
struct Endpoint {
    path: String,
    tool: &'static str,
}

fn endpoints() -> Vec<Endpoint> {
    let endpoint = |path: &str, tool| Endpoint {
        path: path.to_owned(),
        tool,
    };
    vec![
        endpoint("/mcp", "guarded__echo"),
        endpoint("/tags/judged/mcp", "guarded__echo"),
        endpoint(&path(GUARDED), "echo"),
    ]
}

/// A gateway with a rule or a filter.
async fn gateway(has_filter: bool) -> Result<Gateway, RowError> {
    let setup = GatewaySetup::new()?;
    let (setup, keys) = match has_filter {
        true => {
            let program = setup.shell("filter", FILTER)?;
            let filter =
                format!("[filters.f]\ncommand = {program:?}\nmethods = [\"tools/call\"]\n");
            (setup.setting(&filter), "tags = [\"judged\"]\n")
        }
        false => (setup, "tags = [\"judged\"]\nhidden_tools = [\"die\"]\n"),
    };
    setup.scripted(GUARDED, &[], keys)?.serve().await
}

/// Outcome of a call.
struct Outcome {
    code: Option<i64>,
    key: Option<String>,
    is_answered: bool,
    is_seen: bool,
}

struct Attacker<'a> {
    gateway: &'a Gateway,
    client: Client,
    era: Era,
    tool: &'static str,
}

impl Attacker<'_> {
    async fn call(
        &self,
        members: &str,
        change: impl Fn(String) -> Vec<u8>,
    ) -> Result<Outcome, RowError> {
        let nonce = Ledger::mint();
        let members = members.replace("TOOL", self.tool);
        let members = members.replace("NONCE", &nonce.to_string());
        let message = json!({"method": "tools/call", "params": {"name": self.tool}});
        let plain = self.client.request(&json!(nonce), "tools/call", json!({}));
        let meta = match self.era {
            Era::Legacy => json!({}),
            Era::Modern => plain["params"]["_meta"].clone(),
        };
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":{nonce},"method":"tools/call","params":{{"_meta":{meta},{members}}}}}"#
        );
        let body = Bytes::from(change(body));
        let (_connection, response) = self.client.send(Method::POST, body, &message).await?;
        let reply = read(response).await?;
        let error = reply
            .messages
            .iter()
            .find_map(|message| message.get("error"));
        let key = error.and_then(|error| error["data"]["key"].as_str());
        let text = json!({"type": "text", "text": nonce.to_string()});
        let mut answers = reply.answers().into_iter();
        Ok(Outcome {
            code: error.and_then(|error| error["code"].as_i64()),
            key: key.map(str::to_owned),
            is_answered: answers.any(|answer| answer["result"]["content"][0] == text),
            is_seen: self.gateway.journal(GUARDED).has(Entry::Call, nonce),
        })
    }
}

/// No ambiguous request passes a rule, a filter or routing by name; unusual ones do.
pub(super) async fn ambiguous(effort: Effort, figures: &mut Figures) -> Result<(), RowError> {
    let (mut attacks, mut passed, mut unnamed, mut innocent, mut refused) = (0, 0, 0, 0, 0);
    let mut slowest = Duration::ZERO;
    let keys: Vec<String> = (0..effort.of(100_000, 1_000_000))
        .map(|n| format!("\"k{n}\":0"))
        .collect();
    let wide = format!(
        r#""name":"TOOL","arguments":{{"nonce":NONCE,{}}}"#,
        keys.join(",")
    );
    for has_filter in [false, true] {
        let gateway = gateway(has_filter).await?;
        let background_clients = BackgroundClients::begin(&gateway).await?;
        for endpoint in endpoints() {
            for era in [Era::Legacy, Era::Modern] {
                let attacker = Attacker {
                    client: Client::open(&gateway.address, &endpoint.path, era).await?,
                    gateway: &gateway,
                    era,
                    tool: endpoint.tool,
                };
                for members in ATTACKS {
                    let outcome = attacker.call(members, String::into_bytes).await?;
                    attacks += 1;
                    passed += usize::from(outcome.is_seen);
                    unnamed += usize::from(outcome.code != Some(-32602) || outcome.key.is_none());
                }
                let broken = |body: String| {
                    body.replace("BYTE", "\u{1}")
                        .bytes()
                        .map(not_utf8)
                        .collect()
                };
                let members = r#""name":"TOOL","arguments":{"nonce":NONCE,"path":"BYTE"}"#;
                let outcome = attacker.call(members, broken).await?;
                attacks += 1;
                passed += usize::from(outcome.is_seen);
                unnamed += usize::from(outcome.code != Some(-32700));
                for members in INNOCENT {
                    let outcome = attacker.call(members, String::into_bytes).await?;
                    innocent += 1;
                    refused += usize::from(!outcome.is_answered || !outcome.is_seen);
                }
                // The filter, a shell, reads byte by byte.
                if !has_filter {
                    let begin = Instant::now();
                    let outcome = attacker.call(&wide, String::into_bytes).await?;
                    slowest = slowest.max(begin.elapsed());
                    innocent += 1;
                    refused += usize::from(!outcome.is_answered);
                }
            }
        }
        background_clients.end(figures).await?;
    }
    figures.shown(
        "attacks at six endpoints, in both eras",
        f64::from(attacks),
        "",
    );
    figures.none("attacks that reached the server", passed);
    figures.none("attacks whose error does not name the key", unnamed);
    figures.shown(
        "unusual calls that are not ambiguous",
        f64::from(innocent),
        "",
    );
    figures.none("refused of these", refused);
    figures.within(
        "slowest call with many keys in one object",
        slowest,
        Duration::from_secs(10),
    );
    Ok(())
}

/// Makes one byte of a text one that UTF-8 never has.
const fn not_utf8(byte: u8) -> u8 {
    match byte {
        1 => 0xff,
        other => other,
    }
}
