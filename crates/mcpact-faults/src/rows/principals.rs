//! Two callers of one gateway: what one holds does not exist for the other.

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method};
use serde_json::{Value, json};

use super::Effort;
use crate::client::{Client, Era, Reply, SESSION, read};
use crate::error::RowError;
use crate::figure::Figures;
use crate::gateway::{Gateway, GatewaySetup, path};

const NAME: HeaderName = HeaderName::from_static("mcp-name");

/// Servers of both eras.
const SERVERS: [(&str, &str); 2] = [("late", "2025-11-25"), ("new", "2026-07-28")];

/// Tool that asks for a name.
const ASKS: &str = "test_input_required_result_elicitation";

/// Caller with a header that says who it is.
#[derive(Debug)]
struct Caller<'a> {
    gateway: &'a Gateway,
    evidence: (HeaderName, HeaderValue),
}

impl<'a> Caller<'a> {
    fn new(gateway: &'a Gateway, name: &'static str, value: &str) -> Result<Self, RowError> {
        let value = HeaderValue::from_str(value).map_err(http::Error::from)?;
        let evidence = (HeaderName::from_static(name), value);
        Ok(Self { gateway, evidence })
    }

    fn client(&self, path: &str, era: Era) -> Result<Client, RowError> {
        let mut client = Client::new(&self.gateway.address, path, era)?;
        let (name, value) = self.evidence.clone();
        client.headers.insert(name, value);
        Ok(client.declaring(json!({
            "elicitation": {},
            "extensions": {"io.modelcontextprotocol/tasks": {}},
        })))
    }

    /// Sends a modern request about a handle.
    async fn ask(&self, path: &str, method: &str, params: Value) -> Result<Reply, RowError> {
        let mut client = self.client(path, Era::Modern)?;
        for key in ["taskId", "uri"] {
            if let Some(handle) = params[key].as_str() {
                let handle = HeaderValue::from_str(handle).map_err(http::Error::from)?;
                client.headers.insert(NAME, handle);
            }
        }
        let message = client.request(&json!(1), method, params);
        client.post(&message).await
    }

    async fn call(&self, path: &str, tool: &str, arguments: Value) -> Result<Value, RowError> {
        let params = json!({"name": tool, "arguments": arguments});
        result(&self.ask(path, "tools/call", params).await?)
    }
}

fn result(reply: &Reply) -> Result<Value, RowError> {
    let result = reply
        .answers()
        .last()
        .map(|answer| answer["result"].clone());
    result
        .filter(|result| !result.is_null())
        .ok_or_else(|| RowError::stage(format!("no result: {reply:?}")))
}

fn text(value: &Value) -> Result<String, RowError> {
    let text = value.as_str().map(str::to_owned);
    text.ok_or_else(|| RowError::stage(format!("no handle in {value}")))
}

/// Returns a handle that was never issued.
fn made_up(handle: &str) -> String {
    let start: String = handle
        .chars()
        .take(handle.len().saturating_sub(1))
        .collect();
    let last = if handle.ends_with('0') { '1' } else { '0' };
    format!("{start}{last}")
}

/// What a thief has tried.
#[derive(Debug, Default)]
struct Tries {
    handles: usize,
    let_in: usize,
    told_apart: usize,
}

impl Tries {
    /// Compares the answer for a stolen handle with that for one that was never issued.
    fn note(&mut self, handle: &str, stolen: &Reply, unknown: &Reply) {
        let plain = |reply: &Reply| {
            let said = json!(reply.messages).to_string();
            let said = said.replace(handle, "").replace(&made_up(handle), "");
            // The rest lists what exists, the most similar first.
            let said = said.split(" Available: ").next().map(str::to_owned);
            (reply.status, said)
        };
        let is_refused = |reply: &Reply| {
            let mut answers = reply.answers().into_iter();
            reply.status >= 400 || answers.all(|answer| answer.get("error").is_some())
        };
        self.handles += 1;
        self.let_in += usize::from(!is_refused(stolen));
        self.told_apart += usize::from(plain(stolen) != plain(unknown));
    }
}

/// Uses everything that one caller holds at one server in the name of the other.
async fn steal(
    tries: &mut Tries,
    server: &str,
    owner: &Caller<'_>,
    thief: &Caller<'_>,
) -> Result<(), RowError> {
    let path = path(server);
    let session = owner.client(&path, Era::Legacy)?.greet().await?;
    let id = session.headers.get(SESSION).cloned();
    let id = id.ok_or_else(|| RowError::stage("no session"))?;
    let id = id.to_str().unwrap_or_default();
    for method in [Method::POST, Method::GET, Method::DELETE] {
        let mut seen = Vec::new();
        for id in [id.to_owned(), made_up(id)] {
            let mut client = thief.client(&path, Era::Legacy)?;
            client.headers.extend([
                (
                    SESSION,
                    HeaderValue::from_str(&id).map_err(http::Error::from)?,
                ),
                (
                    HeaderName::from_static("last-event-id"),
                    HeaderValue::from_static("0/1"),
                ),
            ]);
            let message = client.request(&json!(1), "tools/list", json!({}));
            let body = match method {
                Method::POST => Bytes::from(message.to_string()),
                _ => Bytes::new(),
            };
            let (_connection, response) = client.send(method.clone(), body, &message).await?;
            seen.push(read(response).await?);
        }
        if let [stolen, unknown] = &seen[..] {
            tries.note(id, stolen, unknown);
        }
    }
    let started = owner.call(&path, "slow_compute", json!({"seconds": 20}));
    let task = text(&started.await?["taskId"])?;
    let asked = owner.call(&path, ASKS, json!({})).await?;
    let state = text(&asked["requestState"])?;
    let questions = asked["inputRequests"].as_object();
    let key = questions.and_then(|all| all.keys().next().cloned());
    let key = key.ok_or_else(|| RowError::stage("no question"))?;
    let long = owner
        .call(&path, "echo", json!({"text": "a".repeat(4000)}))
        .await?;
    let long = long.to_string();
    let uri = long.find("mcpact://results/").and_then(|at| long.get(at..));
    let uri = uri.and_then(|uri| uri.split([']', '"', '\\']).next());
    let uri = uri.ok_or_else(|| RowError::stage("no text was kept"))?;
    let answers = json!({&key: {"action": "accept", "content": {"name": "Eve"}}});
    let returned = |state: String| json!({"name": ASKS, "arguments": {}, "requestState": state, "inputResponses": answers});
    let of_task = |task: String| json!({"taskId": task, "inputResponses": {}});
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        let stolen = thief.ask(&path, method, of_task(task.clone())).await?;
        let unknown = thief.ask(&path, method, of_task(made_up(&task))).await?;
        tries.note(&task, &stolen, &unknown);
    }
    let stolen = thief
        .ask(&path, "tools/call", returned(state.clone()))
        .await?;
    let unknown = thief
        .ask(&path, "tools/call", returned(made_up(&state)))
        .await?;
    tries.note(&state, &stolen, &unknown);
    let read = |uri: String| json!({"uri": uri});
    let stolen = thief
        .ask(&path, "resources/read", read(uri.to_owned()))
        .await?;
    let unknown = thief
        .ask(&path, "resources/read", read(made_up(uri)))
        .await?;
    tries.note(uri, &stolen, &unknown);
    // The owner goes on with everything.
    result(
        &session
            .post(&session.request(&json!(2), "tools/list", json!({})))
            .await?,
    )?;
    result(&owner.ask(&path, "tasks/cancel", of_task(task)).await?)?;
    result(&owner.ask(&path, "tools/call", returned(state)).await?)?;
    result(
        &owner
            .ask(&path, "resources/read", read(uri.to_owned()))
            .await?,
    )?;
    Ok(())
}

/// Every handle of one caller in the hands of another, with tokens and with keys.
pub(super) async fn handles(effort: Effort, figures: &mut Figures) -> Result<(), RowError> {
    let names = ["ada", "bob"];
    let token = |name: &str| format!("0123456789-token-of-{name}");
    let tokens = names.map(|name| format!("{name} = {:?}", token(name)));
    let tokens = format!("tokens = {{ {} }}\n", tokens.join(", "));
    let mut tries = Tries::default();
    for (settings, header) in [(tokens.as_str(), "authorization"), ("", "mcpact-key")] {
        let mut setup = GatewaySetup::new()?.setting(settings);
        for (name, revision) in SERVERS {
            let keys = format!("era = {revision:?}\nmax_result_bytes = 2048\n");
            setup = setup.builtin(name, &keys);
        }
        let gateway = setup.serve().await?;
        let caller = |name: &str| match header {
            "authorization" => Caller::new(&gateway, header, &format!("Bearer {}", token(name))),
            _ => Caller::new(&gateway, header, name),
        };
        let [ada, bob] = [caller("ada")?, caller("bob")?];
        for _ in 0..effort.of(5, 200) {
            for (server, _) in SERVERS {
                steal(&mut tries, server, &ada, &bob).await?;
                steal(&mut tries, server, &bob, &ada).await?;
            }
        }
        gateway.close().await?;
    }
    figures.at_least("stolen handles", tries.handles, 1);
    figures.none("let in", tries.let_in);
    figures.none(
        "told apart from a handle that does not exist",
        tries.told_apart,
    );
    Ok(())
}
