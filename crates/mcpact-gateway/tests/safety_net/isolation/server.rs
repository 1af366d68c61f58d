//! A server that includes the mark of the caller in all messages.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard};

use mcpact_spec::{Era, Revision};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::{Case, Clock, Ledger, marks};
use crate::rig::{SUBSCRIPTION, acknowledge, form};
use crate::scripted_server::{ReceivedMessage, Role, ScriptedServer};

const TASKS: &str = "io.modelcontextprotocol/tasks";

/// Server info and capabilities.
pub(super) fn role(revision: Revision) -> Role {
    let mut role = Role::new(revision).changing();
    match revision {
        Revision::V2025_11_25 => {
            let requests = json!({"tools": {"call": {}}});
            role.capabilities["tasks"] = json!({"list": {}, "cancel": {}, "requests": requests});
        }
        _ if revision.era() == Era::Modern => {
            role.capabilities["extensions"] = json!({TASKS: {}});
        }
        _ => {}
    }
    role
}

pub(super) struct Script {
    case: Case,
    ledger: Arc<Ledger>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    connections: HashMap<usize, Connection>,
    /// Subscriptions to resources.
    watched: HashMap<String, ReceivedMessage>,
    /// Unanswered requests to clients, by connection and id.
    asked: HashMap<(usize, String), oneshot::Sender<Value>>,
    questions: u64,
    /// Unanswered calls, by connection and id.
    hanging: HashMap<(usize, String), ReceivedMessage>,
}

/// State of a connection.
#[derive(Default)]
struct Connection {
    /// Marks of clients that sent data that the server keeps.
    kept: BTreeSet<String>,
    /// Marks of callers.
    callers: BTreeSet<String>,
    /// Owner of each task.
    tasks: BTreeMap<String, String>,
    /// The stream of a session on HTTP.
    stream: Option<ReceivedMessage>,
    questions: u64,
}

impl Script {
    pub(super) fn start(case: Case, mut stage: ScriptedServer, ledger: &Arc<Ledger>) {
        let script = Arc::new(Self {
            case,
            ledger: Arc::clone(ledger),
            state: Mutex::default(),
        });
        tokio::spawn(async move {
            while let Some(said) = stage.recv_or_end().await {
                script
                    .ledger
                    .note(format!("  server {} <- {}", said.connection, said.message));
                script.hear(said);
            }
        });
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    fn era(&self) -> Era {
        self.case.server.era()
    }

    fn hear(self: &Arc<Self>, said: ReceivedMessage) {
        let key = |id: &Value| (said.connection, id.to_string());
        match said.method() {
            "GET" => {
                let mut state = self.state();
                let connection = state.connections.entry(said.connection).or_default();
                connection.stream = Some(said);
            }
            "tools/call" | "tools/list" => {
                let script = Arc::clone(self);
                tokio::spawn(async move {
                    match said.method() {
                        "tools/list" => script.list(&said).await,
                        _ => script.call(said).await,
                    }
                });
            }
            "resources/list" => complete(&said, json!({"resources": []})),
            "resources/templates/list" => complete(&said, json!({"resourceTemplates": []})),
            "prompts/list" => complete(&said, json!({"prompts": []})),
            "ping" | "logging/setLevel" => said.result(json!({})),
            "resources/subscribe" => {
                let uri = said.params()["uri"].as_str().unwrap().to_owned();
                said.result(json!({}));
                self.state().watched.insert(uri, said);
            }
            "resources/unsubscribe" => {
                let uri = said.params()["uri"].as_str().unwrap();
                self.state().watched.remove(uri);
                said.result(json!({}));
            }
            "subscriptions/listen" => {
                acknowledge(&said);
                let uris = &said.params()["notifications"]["resourceSubscriptions"];
                for uri in uris.as_array().into_iter().flatten() {
                    let uri = uri.as_str().unwrap().to_owned();
                    self.state().watched.insert(uri, said.clone());
                }
            }
            "notifications/cancelled" => {
                let id = &said.params()["requestId"];
                let hanging = self.state().hanging.remove(&key(id));
                if let Some(call) = hanging {
                    self.ledger.count("cancelled");
                    self.ask_late(&call);
                }
            }
            // Requests the roots outside of any call, and keeps them.
            "notifications/roots/list_changed" => {
                let script = Arc::clone(self);
                tokio::spawn(async move { script.ask_outside(&said).await });
            }
            method if method.starts_with("tasks/") => self.about_task(&said),
            "" => {
                let asked = self.state().asked.remove(&key(&said.message["id"]));
                if let Some(asked) = asked {
                    let _ = asked.send(said.message);
                }
            }
            method if method.starts_with("notifications/") => {}
            other => panic!("{other}"),
        }
    }

    /// Executes the actions of a call, and answers it.
    async fn call(&self, said: ReceivedMessage) {
        let arguments = said.params()["arguments"].clone();
        let who = arguments["who"].as_str().unwrap().to_owned();
        let connection = said.connection;
        {
            let mut state = self.state();
            let connection = state.connections.entry(connection).or_default();
            connection.callers.insert(who.clone());
        }
        let deeds = arguments["do"].as_array().unwrap();
        let deeds: Vec<&str> = deeds.iter().map(|deed| deed.as_str().unwrap()).collect();
        if self.era() == Era::Modern && !self.is_answered(&said, &who, &deeds) {
            return;
        }
        for deed in deeds {
            match deed {
                "progress" => {
                    let token = &said.params()["_meta"]["progressToken"];
                    if !token.is_null() {
                        let params = json!({"progressToken": token, "progress": 1, "message": who});
                        said.notify("notifications/progress", params);
                    }
                }
                "log" => {
                    let params = json!({"level": "error", "logger": "l", "data": who});
                    said.notify("notifications/message", params);
                }
                "elicit" | "sample" | "roots" if self.era() == Era::Legacy => {
                    self.ask(&said, &who, deed).await;
                }
                "update" => self.update(arguments["uri"].as_str().unwrap()),
                "die" => return said.hang_up(),
                "hang" => {
                    let key = (connection, said.message["id"].to_string());
                    self.state().hanging.insert(key, said);
                    return;
                }
                _ => {}
            }
        }
        if self.makes_task(&said, &who) {
            return;
        }
        let text = format!("{who} {:?}", self.shown(connection));
        said.text(&text);
    }

    /// Returns the marks that clients of a connection may see.
    fn shown(&self, connection: usize) -> BTreeSet<String> {
        let state = self.state();
        let Some(connection) = state.connections.get(&connection) else {
            return BTreeSet::new();
        };
        let mut shown = BTreeSet::new();
        if !self.case.is_common() {
            shown.extend(connection.kept.iter().cloned());
        }
        if self.case.is_apart() {
            shown.extend(connection.callers.iter().cloned());
        }
        if !connection.kept.is_empty() {
            self.ledger.count("kept");
        }
        shown
    }

    /// Lists a tool. Requests the roots first, and the tool names who answered.
    async fn list(&self, said: &ReceivedMessage) {
        let mut shown = BTreeSet::new();
        // On stdio a question during a client's own list looks like one of another client's call.
        let is_common_list = self.case.is_http || self.case.clock == Clock::Paused;
        if self.era() == Era::Legacy && !self.case.is_common() && is_common_list {
            let answer = self.put(said, "roots/list", json!({})).await;
            self.keep_unclear(said, "roots/list", &answer);
            shown = marks(&answer.to_string());
        }
        // Lists of shared instances and of modern servers are common, and come from any connection.
        if self.case.is_apart() && self.era() == Era::Legacy {
            shown.extend(self.shown(said.connection));
        }
        let shown = format!("{shown:?}");
        let schema = json!({"type": "object"});
        let tools = json!([{"name": "t", "description": shown, "inputSchema": schema},
            {"name": "job", "inputSchema": schema, "execution": {"taskSupport": "required"}}]);
        complete(said, json!({"tools": tools}));
    }

    /// Sends a request during a call, and checks who answers.
    async fn ask(&self, said: &ReceivedMessage, who: &str, deed: &str) {
        let (method, params) = question(deed, who);
        let answer = self.put(said, method, params).await;
        self.answered(who, &answer);
        self.keep_unclear(said, method, &answer);
    }

    /// Checks that an answer comes from the right client.
    fn answered(&self, who: &str, answer: &Value) {
        if marks(&answer.to_string()).iter().any(|mark| mark != who) {
            self.ledger
                .leak(format!("the question for {who} was answered with {answer}"));
        }
    }

    /// Keeps the roots received during a request. On HTTP they belong to that request, because of its stream.
    fn keep_unclear(&self, said: &ReceivedMessage, method: &str, answer: &Value) {
        if method == "roots/list" && !self.case.is_http {
            self.keep(said.connection, answer);
        }
    }

    /// Keeps the mark of an answer.
    fn keep(&self, connection: usize, answer: &Value) {
        let mut state = self.state();
        let connection = state.connections.entry(connection).or_default();
        connection.kept.extend(marks(&answer.to_string()));
    }

    /// Sends a request and waits for the answer.
    async fn put(&self, said: &ReceivedMessage, method: &str, params: Value) -> Value {
        let (tell, told) = oneshot::channel();
        let id = {
            let mut state = self.state();
            // Connections use the same ids where that is allowed.
            let id = match self.case.is_http {
                true => {
                    state.questions += 1;
                    state.questions
                }
                false => {
                    let connection = state.connections.entry(said.connection).or_default();
                    connection.questions += 1;
                    connection.questions
                }
            };
            state.asked.insert((said.connection, id.to_string()), tell);
            id
        };
        said.ask(id, method, params);
        told.await.unwrap_or_default()
    }

    /// Requests roots outside of any call.
    async fn ask_outside(&self, said: &ReceivedMessage) {
        let stream = match self.case.is_http {
            true => {
                let state = self.state();
                let connection = state.connections.get(&said.connection);
                connection.and_then(|connection| connection.stream.clone())
            }
            false => Some(said.clone()),
        };
        if let Some(stream) = stream {
            let answer = self.put(&stream, "roots/list", json!({})).await;
            self.keep(said.connection, &answer);
        }
    }

    /// Sends a request for a cancelled call, on connections that do not name the call.
    fn ask_late(&self, call: &ReceivedMessage) {
        let who = call.params()["arguments"]["who"].as_str().unwrap();
        if self.era() == Era::Legacy && !self.case.is_http {
            call.ask("late", "elicitation/create", form(who));
        }
    }

    /// Modern servers request input with a result; `false` in that case.
    fn is_answered(&self, said: &ReceivedMessage, who: &str, deeds: &[&str]) -> bool {
        let asks = deeds
            .iter()
            .filter(|deed| matches!(**deed, "elicit" | "sample" | "roots"));
        let asks: Vec<&str> = asks.copied().collect();
        let declared = &said.params()["_meta"]["io.modelcontextprotocol/clientCapabilities"];
        let can = |deed: &&&str| declared.get(capability(deed)).is_some();
        let questions: Vec<&&str> = asks.iter().filter(can).collect();
        if questions.is_empty() {
            return true;
        }
        if let Some(responses) = said.params().get("inputResponses") {
            self.answered(who, responses);
            self.answered(who, &said.params()["requestState"]);
            return true;
        }
        let mut requests = json!({});
        for deed in questions {
            let (method, params) = question(deed, who);
            requests[*deed] = json!({"method": method, "params": params});
        }
        said.result(
            json!({"resultType": "input_required", "inputRequests": requests,
            "requestState": who}),
        );
        false
    }

    /// Notifies subscribers of a resource.
    fn update(&self, uri: &str) {
        let state = self.state();
        let Some(said) = state.watched.get(uri) else {
            return;
        };
        let stream = || state.connections.get(&said.connection)?.stream.as_ref();
        let method = "notifications/resources/updated";
        match said.method() {
            "subscriptions/listen" => {
                let meta = json!({SUBSCRIPTION: said.message["id"]});
                said.notify(method, json!({"uri": uri, "_meta": meta}));
            }
            _ if !self.case.is_http => said.notify(method, json!({"uri": uri})),
            _ => {
                if let Some(stream) = stream() {
                    stream.notify(method, json!({"uri": uri}));
                }
            }
        }
    }

    /// Runs a call as a task, if its client wants one.
    fn makes_task(&self, said: &ReceivedMessage, who: &str) -> bool {
        let declared = &said.params()["_meta"]["io.modelcontextprotocol/clientCapabilities"];
        let is_wanted = match self.era() {
            Era::Legacy => said.params().get("task").is_some(),
            Era::Modern => {
                said.params()["name"] == "job" && declared["extensions"].get(TASKS).is_some()
            }
        };
        if !is_wanted {
            return false;
        }
        let id = {
            let mut state = self.state();
            let connection = state.connections.entry(said.connection).or_default();
            let id = format!("T{}", connection.tasks.len());
            connection.tasks.insert(id.clone(), who.to_owned());
            id
        };
        let task = self.task(&id, who);
        match self.era() {
            Era::Legacy => {
                said.result(json!({"task": task}));
                let mut status = task;
                status["status"] = json!("completed");
                if !self.case.is_http {
                    said.notify("notifications/tasks/status", status);
                }
            }
            Era::Modern => said.result(task),
        }
        true
    }

    fn task(&self, id: &str, who: &str) -> Value {
        let date = "2026-07-28T10:30:00Z";
        let mut task = json!({"taskId": id, "status": "working", "statusMessage": who,
            "createdAt": date, "lastUpdatedAt": date});
        match self.era() {
            Era::Legacy => task["ttl"] = json!(600_000),
            Era::Modern => {
                task["ttlMs"] = json!(600_000);
                task["resultType"] = json!("task");
            }
        }
        task
    }

    fn about_task(&self, said: &ReceivedMessage) {
        let owner = |id: &Value| {
            let state = self.state();
            let connection = state.connections.get(&said.connection)?;
            connection.tasks.get(id.as_str()?).cloned()
        };
        let id = &said.params()["taskId"];
        if said.method() == "tasks/list" {
            let tasks: Vec<(String, String)> = {
                let state = self.state();
                let connection = state.connections.get(&said.connection);
                let tasks = connection.map(|connection| connection.tasks.clone());
                tasks.unwrap_or_default().into_iter().collect()
            };
            let tasks = tasks.iter().map(|(id, who)| self.task(id, who));
            return said.result(json!({"tasks": tasks.collect::<Vec<_>>()}));
        }
        let Some(who) = owner(id) else {
            return said.error(json!({"code": -32602, "message": "no such task"}));
        };
        let mut task = self.task(id.as_str().unwrap(), &who);
        task["status"] = json!("completed");
        let text = json!({"content": [{"type": "text", "text": who}]});
        match (said.method(), self.era()) {
            ("tasks/result", _) => said.result(text),
            (_, Era::Legacy) => said.result(task),
            (_, Era::Modern) => {
                task["resultType"] = json!("complete");
                task["result"] = text;
                said.result(task);
            }
        }
    }
}

fn complete(said: &ReceivedMessage, mut result: Value) {
    result["resultType"] = json!("complete");
    result["ttlMs"] = json!(0);
    result["cacheScope"] = json!("private");
    said.result(result);
}

fn capability(deed: &str) -> &'static str {
    match deed {
        "elicit" => "elicitation",
        "sample" => "sampling",
        _ => "roots",
    }
}

/// A request with the mark of its client.
fn question(deed: &str, who: &str) -> (&'static str, Value) {
    match deed {
        "elicit" => ("elicitation/create", form(who)),
        "sample" => {
            let content = json!({"type": "text", "text": who});
            let messages = json!([{"role": "user", "content": content}]);
            (
                "sampling/createMessage",
                json!({"messages": messages, "maxTokens": 9}),
            )
        }
        _ => ("roots/list", json!({"_meta": {"who": who}})),
    }
}
