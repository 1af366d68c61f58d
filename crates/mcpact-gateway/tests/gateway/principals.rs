//! Two callers and every kind of handle: what one caller holds does not exist for the other.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use mcpact::server::Settings;
use mcpact::server::router::{HttpRouter, RouteDecision, RoutedServer};
use mcpact_gateway::Gateway;
use mcpact_spec::Revision;
use mcpact_transport::http::client::{ClientResponseBody, EventStream, HttpClient, HttpSettings};
use mcpact_transport::http::server::HttpRequest;
use serde_json::{Value, json};

use crate::harness;

const TOKENS: &str = "tokens = { ada = \"0123456789-token-of-ada\", bob = \"0123456789-token-of-bob\" }\n\
    token = \"0123456789-token-of-all\"\n";

/// Servers of both eras, in this process and on a socket.
const SERVERS: [&str; 4] = ["late", "new", "remote", "session"];

/// Router that takes the user id of the caller from a header.
#[derive(Debug)]
struct WithUid(Arc<Gateway>);

impl HttpRouter for WithUid {
    fn settings(&self) -> &Settings {
        self.0.settings()
    }

    fn route(&self, request: &mut HttpRequest) -> RouteDecision {
        let uid = request.header("x-uid").and_then(|uid| uid.parse().ok());
        request.peer_uid = uid;
        self.0.route(request)
    }

    fn stop(&self) {
        self.0.stop();
    }

    fn cut_off(&self) {
        self.0.cut_off();
    }
}

/// Starts a server of this revision on a socket; returns its URL.
async fn remote(revision: Revision) -> String {
    let server = mcpact_everything::server(&[revision]);
    let server = server.listen(([127, 0, 0, 1], 0).into()).await.unwrap();
    let url = server.url().to_string();
    tokio::spawn(server.run(std::future::pending()));
    url
}

/// Starts a gateway with these settings; returns its origin.
async fn gateway(settings: &str) -> String {
    let url = remote(Revision::V2026_07_28).await;
    let legacy = remote(Revision::V2025_11_25).await;
    let limit = "max_result_bytes = 2048";
    let text = format!(
        "{settings}\nsse = true\n\
         [servers.late]\nbuiltin = \"everything\"\nera = \"2025-11-25\"\n{limit}\n\
         [servers.new]\nbuiltin = \"everything\"\nera = \"2026-07-28\"\n{limit}\n\
         [servers.remote]\nurl = \"{url}\"\nera = \"2026-07-28\"\n{limit}\n\
         [servers.session]\nurl = \"{legacy}\"\nera = \"2025-11-25\"\nstrategy = \"stateful\"\nmax_instances = 400\n{limit}\n"
    );
    let (gateway, _) = harness::gateway(&text).await;
    with_uid(gateway).await
}

/// Serves a gateway that takes user ids from a header; returns the origin.
async fn with_uid(gateway: Arc<Gateway>) -> String {
    let router = Arc::new(WithUid(gateway));
    let server = RoutedServer::bind(router, SocketAddr::from(([127, 0, 0, 1], 0)).into());
    let server = server.await.unwrap();
    let origin = server.origin();
    tokio::spawn(server.run(std::future::pending()));
    origin
}

/// Header with evidence of an identity.
struct Evidence(&'static str, String);

/// Status of a response, and its messages.
#[derive(Debug, PartialEq)]
struct Answer(u16, Vec<Value>);

/// HTTP client with evidence of its identity in the headers.
#[derive(Clone)]
struct Caller {
    http: HttpClient,
    headers: HeaderMap,
}

impl Caller {
    fn new(url: &str, evidence: &[Evidence]) -> Self {
        let http = HttpClient::new(url, HttpSettings::default()).unwrap();
        let headers = HeaderMap::new();
        let start = Self { http, headers };
        let with = |caller: Self, Evidence(name, value): &Evidence| caller.with(name, value);
        evidence.iter().fold(start, with)
    }

    fn with(mut self, name: &'static str, value: &str) -> Self {
        let value = HeaderValue::from_str(value).unwrap();
        self.headers.insert(HeaderName::from_static(name), value);
        self
    }

    async fn post(&self, message: &Value) -> (HeaderMap, u16, ClientResponseBody) {
        self.post_text(message.to_string()).await
    }

    async fn post_text(&self, message: String) -> (HeaderMap, u16, ClientResponseBody) {
        let body = Bytes::from(message);
        let response = self.http.post(&self.headers, body).await.unwrap();
        (response.headers, response.status, response.body)
    }

    async fn ask(&self, message: &Value) -> Answer {
        let (_, status, body) = self.post(message).await;
        let mut messages = Vec::new();
        match body {
            ClientResponseBody::Empty => {}
            ClientResponseBody::Json(bytes) => {
                messages.push(serde_json::from_slice(&bytes).unwrap())
            }
            ClientResponseBody::Other(text) => messages.push(json!(text)),
            ClientResponseBody::Events(mut events) => {
                while let Some(event) = events.next().await {
                    let data = event.unwrap().data;
                    if !data.is_empty() {
                        messages.push(serde_json::from_str(&data).unwrap());
                    }
                }
            }
        }
        Answer(status, messages)
    }

    /// Opens a session of 2025-11-25.
    async fn session(&self) -> (Self, Value) {
        let params = json!({"protocolVersion": "2025-11-25", "capabilities": {"elicitation": {}},
            "clientInfo": {"name": "t", "version": "1"}});
        let (headers, _, body) = self.post(&request("initialize", params)).await;
        let opened = match body {
            ClientResponseBody::Json(opened) => serde_json::from_slice(&opened).ok(),
            _ => None,
        };
        let opened: Value = opened.unwrap();
        let session = headers["mcp-session-id"].to_str().unwrap();
        let caller = self.in_session(session);
        let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        caller.post(&initialized).await;
        (caller, opened["result"]["capabilities"].clone())
    }

    fn in_session(&self, id: &str) -> Self {
        let caller = self.clone().with("mcp-session-id", id);
        caller.with("mcp-protocol-version", "2025-11-25")
    }

    fn session_id(&self) -> String {
        self.headers["mcp-session-id"].to_str().unwrap().to_owned()
    }

    async fn legacy(&self, method: &str, params: Value) -> Answer {
        self.ask(&request(method, params)).await
    }

    /// Returns the caller with the headers of this modern request, and the request.
    fn prepared(&self, method: &'static str, mut params: Value) -> (Self, Value) {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities":
                {"elicitation": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}},
        });
        let mut caller = self.clone().with("mcp-protocol-version", "2026-07-28");
        caller = caller.with("mcp-method", method);
        for key in ["name", "taskId", "uri"] {
            if let Some(name) = params[key].as_str() {
                caller = caller.with("mcp-name", name);
            }
        }
        (caller, request(method, params))
    }

    async fn modern(&self, method: &'static str, params: Value) -> Answer {
        let (caller, request) = self.prepared(method, params);
        caller.ask(&request).await
    }

    /// Returns the first message of a subscription.
    async fn listen(&self, notifications: Value) -> Value {
        let params = json!({"notifications": notifications});
        let (caller, request) = self.prepared("subscriptions/listen", params);
        let (.., body) = caller.post(&request).await;
        let mut events = streamed(body).unwrap();
        serde_json::from_str(&events.next().await.unwrap().unwrap().data).unwrap()
    }
}

/// Returns the events of a response.
fn streamed(body: ClientResponseBody) -> Option<Box<EventStream>> {
    match body {
        ClientResponseBody::Events(events) => Some(events),
        _ => None,
    }
}

fn request(method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params})
}

fn result(answer: &Answer) -> &Value {
    let last = answer.1.last().unwrap();
    assert!(last.get("result").is_some(), "{answer:?}");
    &last["result"]
}

/// Returns an unknown handle: the same text with another last character.
fn made_up(handle: &str) -> String {
    let (start, last) = handle.split_at(handle.len() - 1);
    format!("{start}{}", if last == "0" { "1" } else { "0" })
}

/// Two callers at one endpoint.
struct Pair {
    what: String,
    ada: Caller,
    bob: Caller,
    /// Prefix of tool names.
    prefix: String,
}

impl Pair {
    fn tool(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    /// Asserts that both answers are the same, apart from the handle.
    fn assert_unknown(&self, what: &str, [foreign, unknown]: [&Answer; 2], handle: &str) {
        // A server has no prefix in its own error.
        let inner = handle.split_once(':').map_or(handle, |(_, inner)| inner);
        let plain = |answer: &Answer| {
            let text = json!(answer.1).to_string();
            let text = text.replace(inner, "ID").replace(&made_up(inner), "ID");
            // What exists is listed by its likeness to the handle.
            let text = text.split(" Available: ").next().unwrap().to_owned();
            (answer.0, text)
        };
        let (foreign, unknown) = (plain(foreign), plain(unknown));
        assert_eq!(foreign, unknown, "{}: {what}", self.what);
        assert!(
            foreign.0 >= 400 || foreign.1.contains("\"error\""),
            "{}: {what}: {foreign:?}",
            self.what
        );
    }

    /// A session, its stream and the place in it.
    async fn sessions(&self) {
        let (ada, _) = self.ada.session().await;
        let id = ada.session_id();
        let (stolen, unknown) = (self.bob.in_session(&id), self.bob.in_session(&made_up(&id)));
        for (method, params) in [
            ("tools/list", json!({})),
            ("tasks/list", json!({})),
            (
                "tools/call",
                json!({"name": self.tool("echo"), "arguments": {"text": "hi"}}),
            ),
        ] {
            let foreign = stolen.legacy(method, params.clone()).await;
            let unknown = unknown.legacy(method, params).await;
            self.assert_unknown(method, [&foreign, &unknown], &id);
            assert_eq!(foreign.0, 404, "{}", self.what);
        }
        let answered = json!({"jsonrpc": "2.0", "id": 1, "result": {"action": "accept"}});
        let [foreign, unknown_answer] = [stolen.ask(&answered).await, unknown.ask(&answered).await];
        assert_eq!(foreign, unknown_answer, "{}: answer", self.what);
        for last in [None, Some("0/1"), Some("1")] {
            for caller in [&stolen, &unknown] {
                let streamed = caller.http.listen(&caller.headers, last).await.unwrap();
                assert_eq!(streamed.status, 404, "{}: {last:?}", self.what);
            }
        }
        for caller in [&stolen, &unknown] {
            let ended = caller.http.delete(&caller.headers).await.unwrap();
            assert_eq!(ended, 404, "{}", self.what);
        }
        let alive = ada.legacy("tools/list", json!({})).await;
        assert!(result(&alive)["tools"].is_array(), "{}", self.what);
    }

    /// A question in a session, the request that it belongs to, and the answer.
    async fn questions(&self) {
        let ((ada, _), (bob, _)) = (self.ada.session().await, self.bob.session().await);
        let name = self.tool("test_input_required_result_elicitation");
        let call = request(
            "tools/call",
            json!({"name": name, "arguments": {},
            "_meta": {"progressToken": 7}}),
        );
        let (.., body) = ada.post(&call).await;
        let mut events = streamed(body).unwrap();
        let mut next = async || loop {
            let data = events.next().await.unwrap().unwrap().data;
            if !data.is_empty() {
                return serde_json::from_str::<Value>(&data).unwrap();
            }
        };
        let question = next().await;
        assert_eq!(question["method"], "elicitation/create", "{}", self.what);
        let answer = |name: &str| {
            json!({"jsonrpc": "2.0", "id": question["id"],
                "result": {"action": "accept", "content": {"name": name}}})
        };
        bob.ask(&answer("Eve")).await;
        for (method, params) in [
            ("notifications/cancelled", json!({"requestId": 7})),
            (
                "notifications/progress",
                json!({"progressToken": 7, "progress": 1}),
            ),
        ] {
            bob.ask(&json!({"jsonrpc": "2.0", "method": method, "params": params}))
                .await;
        }
        ada.ask(&answer("Ada")).await;
        let mut last = next().await;
        while last.get("method").is_some() {
            last = next().await;
        }
        let text = &last["result"]["content"][0]["text"];
        assert_eq!(text, "Hello, Ada!", "{}: {last}", self.what);
    }

    /// A task that was started in a session.
    async fn legacy_tasks(&self) {
        let ((ada, _), (bob, _)) = (self.ada.session().await, self.bob.session().await);
        let call = json!({"name": self.tool("slow_compute"), "arguments": {"seconds": 30},
            "task": {"ttl": 60000}});
        let started = ada.legacy("tools/call", call).await;
        let task = result(&started)["task"]["taskId"].as_str().unwrap();
        for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
            let foreign = bob.legacy(method, json!({"taskId": task})).await;
            let unknown = bob.legacy(method, json!({"taskId": made_up(task)})).await;
            self.assert_unknown(method, [&foreign, &unknown], task);
        }
        let listed = bob.legacy("tasks/list", json!({})).await;
        assert!(!json!(listed.1).to_string().contains(task), "{}", self.what);
        // The task is bound to the principal, not to the session.
        let (again, _) = self.ada.session().await;
        let found = again.legacy("tasks/get", json!({"taskId": task})).await;
        assert_eq!(result(&found)["status"], "working", "{}", self.what);
        let ended = again.legacy("tasks/cancel", json!({"taskId": task})).await;
        assert_eq!(result(&ended)["status"], "cancelled", "{}", self.what);
    }

    /// A task that was started by a self-contained request.
    async fn modern_tasks(&self) {
        let call = json!({"name": self.tool("slow_compute"), "arguments": {"seconds": 30}});
        let started = self.ada.modern("tools/call", call).await;
        let task = result(&started)["taskId"].as_str().unwrap();
        for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
            let params = |task: &str| json!({"taskId": task, "inputResponses": {}});
            let foreign = self.bob.modern(method, params(task)).await;
            let unknown = self.bob.modern(method, params(&made_up(task))).await;
            self.assert_unknown(method, [&foreign, &unknown], task);
        }
        for (caller, is_own) in [(&self.ada, true), (&self.bob, false)] {
            let granted = caller.listen(json!({"taskIds": [task]})).await;
            assert_eq!(
                granted["method"],
                "notifications/subscriptions/acknowledged"
            );
            let is_granted = granted.to_string().contains(task);
            assert_eq!(is_granted, is_own, "{}: {granted}", self.what);
        }
        let found = self.ada.modern("tasks/get", json!({"taskId": task})).await;
        assert_eq!(result(&found)["status"], "working", "{}", self.what);
        self.ada
            .modern("tasks/cancel", json!({"taskId": task}))
            .await;
    }

    /// The state of a suspended call, or of a modern server.
    async fn states(&self) {
        let name = self.tool("test_input_required_result_elicitation");
        let call = json!({"name": name, "arguments": {}});
        let asked = self.ada.modern("tools/call", call.clone()).await;
        let asked = result(&asked).clone();
        let key = asked["inputRequests"].as_object().unwrap().keys().next();
        let key = key.unwrap().clone();
        let returned = |state: &str| {
            let mut call = call.clone();
            call["requestState"] = json!(state);
            call["inputResponses"] =
                json!({&key: {"action": "accept", "content": {"name": "Eve"}}});
            call
        };
        let state = asked["requestState"].as_str().unwrap();
        let foreign = self.bob.modern("tools/call", returned(state)).await;
        let unknown = self
            .bob
            .modern("tools/call", returned(&made_up(state)))
            .await;
        self.assert_unknown("state", [&foreign, &unknown], state);
        // No spelling of the key of an identified client passes unjudged.
        let is_identified = !self.bob.headers.is_empty();
        let (bob, request) = self.bob.prepared("tools/call", returned(state));
        for hidden in [
            r#""x":1,"x":2,"requestState":"#,
            r#""RequestState":"#,
            r#""request\u017ftate":"#,
        ]
        .into_iter()
        .filter(|_| is_identified)
        {
            let text = request.to_string().replace(r#""requestState":"#, hidden);
            let (.., body) = bob.post_text(text).await;
            let answer: Option<Value> = match body {
                ClientResponseBody::Json(answer) => serde_json::from_slice(&answer).ok(),
                _ => None,
            };
            let answer = answer.unwrap();
            let reason = &answer["error"]["data"]["reason"];
            assert_eq!(reason, "request_ambiguous", "{}: {answer}", self.what);
        }
        let own = self.ada.modern("tools/call", returned(state)).await;
        let text = &result(&own)["content"][0]["text"];
        assert_eq!(text, "Hello, Eve!", "{}", self.what);
    }

    /// The text of a cut result.
    async fn texts(&self) {
        let call = json!({"name": self.tool("echo"), "arguments": {"text": "a".repeat(4000)}});
        let ((ada, _), (bob, _)) = (self.ada.session().await, self.bob.session().await);
        let uri = |answer: &Answer| {
            let text = result(answer).to_string();
            let start = text.find("mcpact://results/").unwrap();
            text[start..]
                .split([']', '"', '\\'])
                .next()
                .unwrap()
                .to_owned()
        };
        let read = |uri: &str| json!({"uri": uri});
        let cut = uri(&ada.legacy("tools/call", call.clone()).await);
        let foreign = bob.legacy("resources/read", read(&cut)).await;
        let unknown = bob.legacy("resources/read", read(&made_up(&cut))).await;
        self.assert_unknown("text in a session", [&foreign, &unknown], &cut);
        let own = ada.legacy("resources/read", read(&cut)).await;
        assert!(result(&own)["contents"][0]["text"].is_string());
        let cut = uri(&self.ada.modern("tools/call", call).await);
        let foreign = self.bob.modern("resources/read", read(&cut)).await;
        let unknown = self
            .bob
            .modern("resources/read", read(&made_up(&cut)))
            .await;
        self.assert_unknown("text", [&foreign, &unknown], &cut);
        let own = self.ada.modern("resources/read", read(&cut)).await;
        assert!(result(&own)["contents"][0]["text"].is_string());
    }
}

/// Asserts that a session of the transport of 2024-11-05 takes messages of its own client only.
async fn assert_separate_sse(origin: &str, ada: &[Evidence], bob: &[Evidence]) {
    let ada = Caller::new(&format!("{origin}/sse"), ada);
    let opened = ada.http.listen(&ada.headers, None).await.unwrap();
    let mut events = streamed(opened.body).unwrap();
    let endpoint = events.next().await.unwrap().unwrap().data;
    let ping = request("ping", json!({}));
    let mut refused = Vec::new();
    for path in [endpoint.clone(), made_up(&endpoint)] {
        let bob = Caller::new(&format!("{origin}{path}"), bob);
        refused.push(bob.ask(&ping).await);
    }
    assert_eq!(refused[0], refused[1]);
    assert_eq!(refused[0].0, 404);
}

/// Asserts that two callers with this evidence have no access to anything of each other.
async fn assert_separate(origin: &str, what: &str, ada: &[Evidence], bob: &[Evidence]) {
    assert_separate_sse(origin, ada, bob).await;
    for server in SERVERS {
        for (path, prefix) in [
            (String::from("/mcp"), format!("{server}__")),
            (format!("/servers/{server}/mcp"), String::new()),
        ] {
            let url = format!("{origin}{path}");
            let pair = Pair {
                what: format!("{what}, {path}, {server}"),
                ada: Caller::new(&url, ada),
                bob: Caller::new(&url, bob),
                prefix,
            };
            pair.sessions().await;
            pair.questions().await;
            pair.legacy_tasks().await;
            pair.modern_tasks().await;
            pair.states().await;
            pair.texts().await;
        }
    }
}

fn bearer(name: &str) -> Evidence {
    Evidence(
        "authorization",
        format!("Bearer 0123456789-token-of-{name}"),
    )
}

fn key(key: &str) -> Evidence {
    Evidence("mcpact-key", key.to_owned())
}

fn uid(uid: u32) -> Evidence {
    Evidence("x-uid", uid.to_string())
}

/// Holders of different tokens, and of one token with different keys, have nothing in common.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn holders_of_tokens_are_separate() {
    let origin = gateway(TOKENS).await;
    assert_separate(&origin, "names", &[bearer("ada")], &[bearer("bob")]).await;
    assert_separate(&origin, "single", &[bearer("all")], &[bearer("ada")]).await;
    let keyed = [bearer("ada"), key("k")];
    assert_separate(&origin, "key of a token", &keyed, &[bearer("ada")]).await;
    let other = [bearer("bob"), key("k")];
    assert_separate(&origin, "one key", &keyed, &other).await;
    // A token tells more than the user, whose programs share the id.
    let (ada, bob) = ([bearer("ada"), uid(1)], [bearer("bob"), uid(1)]);
    assert_separate(&origin, "tokens of one user", &ada, &bob).await;
}

/// Clients with different keys have nothing in common, and neither have users.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_and_users_are_separate() {
    let origin = gateway("").await;
    assert_separate(&origin, "keys", &[key("ada")], &[key("bob")]).await;
    assert_separate(&origin, "key and none", &[key("ada")], &[]).await;
    let own = mcpact_transport::own_uid().unwrap_or_default();
    assert_separate(&origin, "users", &[uid(own)], &[uid(own + 1)]).await;
    assert_separate(&origin, "user and other", &[uid(own + 1)], &[uid(own)]).await;
    let keyed = [uid(own), key("k")];
    assert_separate(&origin, "key of a user", &keyed, &[uid(own)]).await;
}

/// Tasks are listed only for clients that can be told apart, and each sees its own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_identified_clients_list_tasks() {
    for path in ["/mcp", "/servers/new/mcp", "/servers/remote/mcp"] {
        let origin = gateway("").await;
        let url = format!("{origin}{path}");
        let (anonymous, declared) = Caller::new(&url, &[]).session().await;
        assert!(declared["tasks"]["cancel"].is_object(), "{declared}");
        assert!(declared["tasks"].get("list").is_none(), "{declared}");
        let refused = anonymous.legacy("tasks/list", json!({})).await;
        assert_eq!(refused.1[0]["error"]["code"], -32601, "{refused:?}");
        for evidence in [key("ada"), uid(7)] {
            let (caller, declared) = Caller::new(&url, &[evidence]).session().await;
            assert!(declared["tasks"]["list"].is_object(), "{declared}");
            let prefix = if path == "/mcp" { "new__" } else { "" };
            let call = json!({"name": format!("{prefix}echo"), "arguments": {"text": "hi"},
                "task": {"ttl": 60000}});
            let started = caller.legacy("tools/call", call).await;
            let task = &result(&started)["task"]["taskId"];
            let mut listed = Vec::new();
            let mut page = json!({});
            while page.is_object() {
                let answer = caller.legacy("tasks/list", page).await;
                let of_page = result(&answer)["tasks"].as_array().unwrap();
                listed.extend(of_page.iter().map(|task| task["taskId"].clone()));
                page = match &result(&answer)["nextCursor"] {
                    Value::Null => Value::Null,
                    cursor => json!({"cursor": cursor}),
                };
            }
            assert_eq!(listed, std::slice::from_ref(task), "{path}");
        }
    }
}

/// Clients of the gateway's own user, and the holders of its single token, share instances like anonymous clients. Other
/// users and holders of named tokens have their own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_user_has_one_instance() {
    let own = mcpact_transport::own_uid().unwrap_or_default();
    for (tokens, same, others) in [
        (
            "",
            vec![
                vec![],
                vec![uid(own)],
                vec![uid(own), key("k")],
                vec![key("l")],
            ],
            vec![uid(own + 1)],
        ),
        (
            TOKENS,
            vec![vec![bearer("all")], vec![bearer("all"), uid(own)]],
            vec![bearer("ada")],
        ),
    ] {
        let text = format!("{tokens}{}max_instances = 8\n", harness::MORTAL);
        let (gateway, _) = harness::gateway(&text).await;
        let origin = with_uid(Arc::clone(&gateway)).await;
        let url = format!("{origin}/mcp");
        let process = async |evidence: &[Evidence]| {
            let caller = Caller::new(&url, evidence);
            let call = json!({"name": "m__who", "arguments": {}});
            let modern = caller.modern("tools/call", call.clone()).await;
            // The declaration of a session without elicitation is another one.
            let (session, _) = caller.session().await;
            session.legacy("tools/call", call).await;
            result(&modern)["content"][0]["text"].to_string()
        };
        let instances = || {
            let status = gateway.status(None).unwrap();
            status.servers[0].instances.len()
        };
        let mut seen = Vec::new();
        for evidence in &same {
            seen.push((process(evidence).await, instances()));
        }
        seen.dedup();
        assert_eq!(seen.len(), 1, "{tokens}: {seen:?}");
        let (shared, count) = &seen[0];
        assert_ne!(process(&others).await, *shared, "{tokens}");
        assert!(instances() > *count, "{tokens}");
    }
}
