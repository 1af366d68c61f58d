//! A gateway in this process, with scripted servers and clients.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcpact_config::{Catalog, Launch, LocalHost, Severity, Source, read};
use mcpact_gateway::{Cache, Gateway, GatewayEnv, Local, Target};
use mcpact_sim::scripted::TestClient;
use mcpact_spec::{Era, Revision};
use mcpact_transport::link::Link;
use mcpact_transport::memory;
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};

use crate::scripted_server::{ReceivedMessage, Role, ScriptedServer};

pub(crate) const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

/// One revision of each era.
pub(crate) const ERAS: [Revision; 2] = [Revision::V2025_11_25, Revision::V2026_07_28];

/// Limit for each wait. The clock is virtual where it is paused.
const PATIENCE: Duration = Duration::from_secs(60);

/// Resource of every scripted server.
pub(crate) const URI: &str = "mem://r";

/// Scripted server that answers lists itself. The test receives everything else.
pub(crate) struct Server {
    pub(crate) target: Target,
    heard: mpsc::UnboundedReceiver<ReceivedMessage>,
    log: Arc<Mutex<Vec<Value>>>,
}

impl Server {
    /// Server with one tool `t`, one prompt `p` and one resource, in memory.
    pub(crate) fn lines(role: Role) -> Self {
        Self::on(ScriptedServer::lines(role))
    }

    /// Server on an existing connection.
    pub(crate) fn on(mut scripted: ScriptedServer) -> Self {
        let (tell, heard) = mpsc::unbounded_channel();
        let log = Arc::<Mutex<Vec<Value>>>::default();
        let (target, all) = (scripted.target.clone(), Arc::clone(&log));
        tokio::spawn(async move {
            while let Some(said) = scripted.recv_or_end().await {
                if !is_listed(&said) {
                    all.lock().unwrap().push(said.message.clone());
                    let _ = tell.send(said);
                }
            }
        });
        Self { target, heard, log }
    }

    /// Next message that is not about a list.
    pub(crate) async fn next(&mut self) -> ReceivedMessage {
        let next = tokio::time::timeout(PATIENCE, self.heard.recv()).await;
        next.expect("a message arrives in time").unwrap()
    }

    /// Next message, which must have this method.
    pub(crate) async fn next_of(&mut self, method: &str) -> ReceivedMessage {
        let said = self.next().await;
        assert_eq!(said.method(), method, "{}", said.message);
        said
    }

    /// Number of messages of this method so far.
    pub(crate) fn count(&self, method: &str) -> usize {
        let log = self.log.lock().unwrap();
        let of = log.iter().filter(|message| message["method"] == method);
        of.count()
    }
}

/// Answers lists, log levels, pings and subscriptions to list changes; `false` for everything else.
pub(crate) fn is_listed(said: &ReceivedMessage) -> bool {
    let mut result = match said.method() {
        "tools/list" => json!({"tools": [{"name": "t", "inputSchema": {"type": "object"},
            "execution": {"taskSupport": "optional"}}]}),
        "prompts/list" => json!({"prompts": [{"name": "p"}]}),
        "resources/list" => json!({"resources": [{"uri": URI, "name": "r"}]}),
        "resources/templates/list" => json!({"resourceTemplates": []}),
        "ping" | "logging/setLevel" => json!({}),
        "GET" => return true,
        "subscriptions/listen" => {
            let filter = &said.params()["notifications"];
            let is_of_lists = filter.get("resourceSubscriptions").is_none();
            if is_of_lists {
                acknowledge(said);
            }
            return is_of_lists;
        }
        _ => return false,
    };
    result["resultType"] = json!("complete");
    result["ttlMs"] = json!(3_600_000);
    result["cacheScope"] = json!("private");
    said.result(result);
    true
}

/// Accepts a subscription of the modern era.
pub(crate) fn acknowledge(said: &ReceivedMessage) {
    let filter = &said.params()["notifications"];
    let params = json!({"_meta": {SUBSCRIPTION: said.message["id"]}, "notifications": filter});
    said.notify("notifications/subscriptions/acknowledged", params);
}

/// Config of a server `s` in memory, with more keys.
pub(crate) fn config(builtin: &str, more: &str) -> Catalog {
    let mut catalog = catalog(&format!(
        "[gateway]\nlisten = \"127.0.0.1:0\"\n[servers.s]\nbuiltin = \"everything\"\nhealth = \"off\"\n\
         idle_seconds = 86400\n{more}"
    ));
    for server in catalog.servers.values_mut() {
        server.launch = Launch::Builtin(builtin.to_owned());
    }
    catalog
}

pub(crate) fn catalog(text: &str) -> Catalog {
    let source = Source::new("mcpact.toml", text.to_owned());
    let reading = read(&source, &LocalHost::around(Path::new(".")).unwrap());
    let problems = reading.problems.iter();
    let errors: Vec<_> = problems
        .filter(|problem| problem.severity >= Severity::Error)
        .collect();
    assert!(errors.is_empty(), "{errors:?}");
    reading.catalog.unwrap()
}

/// Gateway with these servers as its built-in ones.
pub(crate) fn gateway(config: Catalog, servers: &[(&'static str, &Server)]) -> Arc<Gateway> {
    let targets = servers.iter().map(|(name, server)| (*name, &server.target));
    gateway_with(config, &targets.collect::<Vec<_>>())
}

/// Gateway with these targets as its built-in servers.
pub(crate) fn gateway_with(config: Catalog, targets: &[(&'static str, &Target)]) -> Arc<Gateway> {
    let builtins = targets.iter().map(|(name, target)| match target {
        Target::Local(local) => (*name, Local(Arc::clone(&local.0))),
        Target::Command(_) | Target::Url { .. } => panic!("servers are in memory"),
    });
    let surroundings = GatewayEnv {
        builtins: BTreeMap::from_iter(builtins),
        cache: Cache::disabled(),
        ..GatewayEnv::default()
    };
    Gateway::new(config, surroundings).unwrap()
}

/// Gateway with one server; `config` creates its config from the keys of its transport.
pub(crate) fn gateway_of(target: &Target, config: impl Fn(&str) -> Catalog) -> Arc<Gateway> {
    let mut surroundings = GatewayEnv {
        cache: Cache::disabled(),
        ..GatewayEnv::default()
    };
    let config = match target {
        Target::Local(local) => {
            let local = Local(Arc::clone(&local.0));
            surroundings.builtins.insert("everything", local);
            config("builtin = \"everything\"")
        }
        Target::Url { url, .. } => config(&format!("url = \"{url}\"")),
        Target::Command(_) => panic!("servers are scripted"),
    };
    Gateway::new(config, surroundings).unwrap()
}

/// Connects a link to all servers of a gateway.
pub(crate) fn link(gateway: &Arc<Gateway>) -> Link {
    let (ours, theirs) = memory::pair();
    let gateway = Arc::clone(gateway);
    tokio::spawn(async move {
        let (_stop, stopping) = watch::channel(false);
        gateway.serve(theirs, stopping).await
    });
    ours
}

/// Client of all servers of a gateway.
pub(crate) async fn client(
    gateway: &Arc<Gateway>,
    revision: Revision,
    capabilities: Value,
) -> TestClient {
    match revision.era() {
        Era::Modern => TestClient::on(link(gateway), Some(capabilities)),
        Era::Legacy => {
            let mut peer = TestClient::on(link(gateway), None);
            let opened = peer.open(revision.as_str(), capabilities).await;
            assert!(opened["result"].is_object(), "{opened}");
            peer
        }
    }
}

/// Number of in-flight and queued calls of a gateway.
pub(crate) fn load(gateway: &Gateway) -> (usize, usize) {
    let status = gateway.status(None).unwrap();
    let servers = &status.servers;
    (
        servers.iter().map(|server| server.in_flight).sum(),
        servers.iter().map(|server| server.queued).sum(),
    )
}

/// Parameters of a form elicitation with this message.
pub(crate) fn form(message: &str) -> Value {
    json!({"message": message, "requestedSchema": {"type": "object", "properties": {}}})
}

/// Parameters of a tool call.
pub(crate) fn call() -> Value {
    json!({"name": "s__t", "arguments": {}})
}
