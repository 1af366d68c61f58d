//! Nothing of one client is anything to another, whatever it shows.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use mcpact::server::PrincipalSource;
use mcpact_gateway::{Aggregator, AggregatorSettings};
use mcpact_spec::{Era, Revision};
use mcpact_transport::http::client::{ClientResponseBody, HttpClient, HttpSettings};
use serde_json::{Value, json};

use crate::in_process::everything;
use crate::scripted_process::ScriptedProcess;

/// A hub that believes a header; a token stands for it in real life.
async fn listening(members: Vec<Arc<mcpact_gateway::ServerEntry>>) -> String {
    let mut settings = AggregatorSettings::default();
    settings.front.principals =
        PrincipalSource::from_fn(|headers| Some(headers.get("x-user")?.to_str().ok()?.to_owned()));
    let hub = Aggregator::new(members, settings).unwrap();
    let front = hub.listen_at(([127, 0, 0, 1], 0).into()).await.unwrap();
    let url = front.url();
    tokio::spawn(front.run(std::future::pending()));
    url
}

/// HTTP client with the name of a user.
#[derive(Clone)]
struct User {
    http: HttpClient,
    facts: HeaderMap,
}

/// What came back: the status, and the messages without their ids.
type Told = (u16, Vec<Value>);

impl User {
    fn new(url: &str, name: &'static str) -> Self {
        let http = HttpClient::new(url, HttpSettings::default()).unwrap();
        Self {
            http,
            facts: HeaderMap::new(),
        }
        .with("x-user", name)
    }

    fn with(mut self, name: &'static str, value: &str) -> Self {
        let value = HeaderValue::from_str(value).unwrap();
        self.facts.insert(HeaderName::from_static(name), value);
        self
    }

    async fn post(&self, message: &Value) -> (HeaderMap, Told) {
        let body = Bytes::from(message.to_string());
        let answer = self.http.post(&self.facts, body).await.unwrap();
        let mut told = Vec::new();
        match answer.body {
            ClientResponseBody::Empty => {}
            ClientResponseBody::Json(bytes) => told.push(serde_json::from_slice(&bytes).unwrap()),
            ClientResponseBody::Other(text) => told.push(json!(text)),
            ClientResponseBody::Events(mut events) => {
                while let Some(event) = events.next().await {
                    let data = event.unwrap().data;
                    if !data.is_empty() {
                        told.push(serde_json::from_str(&data).unwrap());
                    }
                }
            }
        }
        (answer.headers, (answer.status, told))
    }

    async fn legacy(&self) -> Self {
        let params = json!({"protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "t", "version": "1"}});
        let (headers, _) = self.post(&request("initialize", params)).await;
        let session = headers["mcp-session-id"].to_str().unwrap().to_owned();
        let opened = self.clone().with("mcp-session-id", &session);
        let opened = opened.with("mcp-protocol-version", "2025-11-25");
        opened
            .post(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))
            .await;
        opened
    }

    fn session(&self) -> String {
        self.facts["mcp-session-id"].to_str().unwrap().to_owned()
    }

    async fn ask(&self, method: &'static str, params: Value) -> Told {
        self.post(&request(method, params)).await.1
    }

    async fn ask_modern(&self, method: &'static str, mut params: Value) -> Told {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities":
                {"elicitation": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}},
        });
        let user = self.clone().with("mcp-protocol-version", "2026-07-28");
        let mut user = user.with("mcp-method", method);
        for key in ["name", "taskId", "uri"] {
            if let Some(name) = params[key].as_str() {
                user = user.with("mcp-name", name);
            }
        }
        user.post(&request(method, params)).await.1
    }
}

fn request(method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
}

fn result(told: &Told) -> &Value {
    let last = told.1.last().unwrap();
    assert!(last.get("result").is_some(), "{told:?}");
    &last["result"]
}

/// H17: a session of one principal is to another what a session is that never was: at every verb, with
/// the place in its stream, for what it subscribes to and for its tasks; and it goes on undisturbed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_is_nobody_elses() {
    let url = listening(vec![
        everything("old", Revision::V2025_11_25),
        everything("new", Revision::V2026_07_28),
    ])
    .await;
    let ann = User::new(&url, "ann").legacy().await;
    let bob = User::new(&url, "bob");
    let task = ann
        .ask(
            "tools/call",
            json!({"name": "new__echo", "arguments": {"text": "hi"}, "task": {"ttl": 60000}}),
        )
        .await;
    let task = result(&task)["task"]["taskId"].clone();
    let requests = [
        ("tools/list", json!({})),
        (
            "tools/call",
            json!({"name": "old__echo", "arguments": {"text": "hi"}}),
        ),
        (
            "resources/subscribe",
            json!({"uri": "mcpact://old/test://watched-resource"}),
        ),
        ("tasks/get", json!({"taskId": task})),
    ];
    let shown = |id: &str| {
        let shown = bob.clone().with("mcp-session-id", id);
        shown.with("mcp-protocol-version", "2025-11-25")
    };
    let (stolen, made_up) = (shown(&ann.session()), shown("0123456789abcdef"));
    for (method, params) in requests {
        let (told, unknown) = (
            stolen.ask(method, params.clone()).await,
            made_up.ask(method, params).await,
        );
        assert_eq!(told, unknown, "{method}");
        assert_eq!(told.0, 404, "{method}");
    }
    for place in [None, Some("1"), Some("0/1")] {
        for user in [&stolen, &made_up] {
            let told = user.http.listen(&user.facts, place).await.unwrap();
            assert_eq!(told.status, 404, "GET {place:?}");
        }
    }
    assert_eq!(stolen.http.delete(&stolen.facts).await.unwrap(), 404);
    // With a session of one's own, another's task is one that never was.
    let own = bob.legacy().await;
    let (server, _) = task.as_str().unwrap().split_once(':').unwrap();
    let made_up_task = format!("{server}:0123456789abcdef");
    for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
        let mut told = own.ask(method, json!({"taskId": task})).await;
        let mut unknown = own.ask(method, json!({"taskId": made_up_task})).await;
        for told in [&mut told, &mut unknown] {
            let error = &mut told.1.last_mut().unwrap()["error"];
            assert_eq!(error["code"], -32602, "{method} {error}");
            let words = error["message"].as_str().unwrap();
            let words = words.replace(task.as_str().unwrap(), "ID");
            error["message"] = json!(words.replace(&made_up_task, "ID"));
        }
        assert_eq!(told, unknown, "{method}");
    }
    let listed = own.ask("tasks/list", json!({})).await;
    assert!(!json!(listed.1).to_string().contains(task.as_str().unwrap()));
    let goes_on = ann
        .ask(
            "tools/call",
            json!({"name": "old__echo", "arguments": {"text": "hi"}}),
        )
        .await;
    assert_eq!(result(&goes_on)["content"][0]["text"], "hi");
    let fetched = ann.ask("tasks/result", json!({"taskId": task})).await;
    assert_eq!(result(&fetched)["content"][0]["text"], "hi");
}

/// What a modern client carries is worth nothing in the hands of another: neither the state of a question
/// nor the name of a task.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_client_carries_is_nobody_elses() {
    for server in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let url = listening(vec![everything("one", server)]).await;
        let (ann, bob) = (User::new(&url, "ann"), User::new(&url, "bob"));
        let tool = json!({"name": "one__test_input_required_result_elicitation", "arguments": {}});
        let asked = ann.ask_modern("tools/call", tool.clone()).await;
        let asked = result(&asked).clone();
        let key = asked["inputRequests"].as_object().unwrap().keys().next();
        let key = key.unwrap().clone();
        let back = |state: &Value| {
            let mut back = tool.clone();
            back["requestState"] = state.clone();
            back["inputResponses"] =
                json!({&key: {"action": "accept", "content": {"name": "Eve"}}});
            back
        };
        let state = &asked["requestState"];
        let stolen = bob.ask_modern("tools/call", back(state)).await;
        let made_up = bob.ask_modern("tools/call", back(&json!("never"))).await;
        assert_eq!(stolen, made_up, "{server}");
        assert_eq!(stolen.1[0]["error"]["code"], -32602, "{server} {stolen:?}");
        let own = ann.ask_modern("tools/call", back(state)).await;
        assert_eq!(
            result(&own)["content"][0]["text"],
            "Hello, Eve!",
            "{server}"
        );
    }
}

/// P14, P15: a list that was fetched for one principal is shown to no other: the server is asked
/// again for each.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_is_kept_for_its_principal() {
    for speaks in [Era::Legacy, Era::Modern] {
        let script = ScriptedProcess::new(speaks, &json!({"tools": {}}));
        let list = |tool: &str| {
            let tools = json!([{"name": tool, "inputSchema": {"type": "object"}}]);
            let scope = json!({"resultType": "complete", "ttlMs": 60000, "cacheScope": "public"});
            let mut list = scope;
            list["tools"] = tools;
            script.answers("tools-list", &list);
        };
        let url = listening(vec![script.member("s")]).await;
        // The change is not announced, so a user with a new list did not get a cached one.
        for (user, tool) in [("ann", "first"), ("bob", "second"), ("eve", "third")] {
            list(tool);
            let listed = User::new(&url, user)
                .ask_modern("tools/list", json!({}))
                .await;
            let listed = result(&listed);
            assert_eq!(listed["tools"][0]["name"], format!("s__{tool}"), "{user}");
            assert_eq!(listed["cacheScope"], "private", "{speaks:?}");
        }
    }
}

/// AG-08: an address that was shown to one principal does not lead to another server because another
/// principal was shown it there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_does_not_lead_anothers_addresses_elsewhere() {
    for speaks in [Era::Legacy, Era::Modern] {
        let complete =
            |member: &str, value: Value| json!({"resultType": "complete", member: value});
        let scripts = ["a", "b"].map(|text| {
            let script = ScriptedProcess::new(speaks, &json!({"tools": {}, "resources": {}}));
            let contents = json!([{"uri": "note://x", "text": text}]);
            script.answers("resources-read", &complete("contents", contents));
            script.answers(
                "resources-templates-list",
                &complete("resourceTemplates", json!([])),
            );
            script
        });
        let list = |script: &ScriptedProcess, uris: &[&str]| {
            let items = uris.iter().map(|uri| json!({"uri": uri, "name": uri}));
            let items = Value::Array(items.collect());
            script.answers("resources-list", &complete("resources", items));
        };
        // They do not sleep: one that wakes is asked again what it has for those who were there before.
        let members = ["a", "b"].into_iter().zip(&scripts);
        let members = members.map(|(name, script)| script.member_called(name, name));
        let url = listening(members.collect()).await;
        let (ann, bob) = (User::new(&url, "ann"), User::new(&url, "bob"));
        let asks = async |user: &User, method, params| user.ask_modern(method, params).await;
        for (user, [one, other], shown) in [
            (&ann, [&["note://x"][..], &[]], "note://x"),
            (&bob, [&[], &["note://x"]], "mcpact://b/note://x"),
        ] {
            list(&scripts[0], one);
            list(&scripts[1], other);
            let listed = asks(user, "resources/list", json!({})).await;
            assert_eq!(result(&listed)["resources"][0]["uri"], shown, "{speaks:?}");
        }
        let refused = asks(&ann, "resources/read", json!({"uri": "note://x"})).await;
        let error = refused.1.last().unwrap()["error"]["message"].to_string();
        for (server, user) in [("a", &ann), ("b", &bob)] {
            let named = format!("mcpact://{server}/note://x");
            assert!(error.contains(&named), "{refused:?}");
            let read = asks(user, "resources/read", json!({"uri": named})).await;
            assert_eq!(result(&read)["contents"][0]["text"], server, "{speaks:?}");
        }
    }
}
