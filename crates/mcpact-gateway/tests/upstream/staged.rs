//! Peers that say exactly what a test wants them to, on lines.

use std::sync::Arc;
use std::time::Duration;

use mcpact_engine::client::EraMode;
use mcpact_gateway::{Local, Target, UpstreamServer, UpstreamSettings};
use mcpact_spec::{Era, Revision};
use mcpact_transport::link::Link;
use mcpact_transport::memory;
use mcpact_wire::frame::ndjson::Line;
use serde_json::{Value, json};
use tokio::sync::mpsc;

/// A test that hears nothing for so long has failed.
const PATIENCE: Duration = Duration::from_secs(30);

/// One end of a conversation.
pub(crate) struct Peer {
    link: Link,
}

/// A bridge, and the servers that it reaches for.
pub(crate) struct Scene {
    pub(crate) bridge: Arc<UpstreamServer>,
    revision: Revision,
    arrivals: mpsc::UnboundedReceiver<Link>,
}

impl Peer {
    pub(crate) async fn say(&mut self, mut message: Value) {
        message["jsonrpc"] = json!("2.0");
        self.link.sink.push(&message.to_string());
        self.link.sink.flush().await.unwrap();
    }

    pub(crate) async fn ask(&mut self, id: u64, method: &str, params: Value) {
        let request = json!({"id": id, "method": method, "params": params});
        self.say(request).await;
    }

    pub(crate) async fn tell(&mut self, method: &str, params: Value) {
        self.say(json!({"method": method, "params": params})).await;
    }

    pub(crate) async fn answer(&mut self, request: &Value, result: Value) {
        self.say(json!({"id": request["id"], "result": result}))
            .await;
    }

    /// The next message.
    pub(crate) async fn hear(&mut self) -> Value {
        let heard = tokio::time::timeout(PATIENCE, async {
            loop {
                if let Some(Line::Json(bytes)) = self.link.source.next_line() {
                    return serde_json::from_slice(bytes).unwrap();
                }
                assert!(self.link.source.fill().await.unwrap(), "the peer has gone");
            }
        });
        heard.await.unwrap()
    }

    /// Waits until the other end has closed.
    pub(crate) async fn end(&mut self) {
        let ended = tokio::time::timeout(PATIENCE, async {
            while self.link.source.fill().await.unwrap_or_default() {
                while self.link.source.next_line().is_some() {}
            }
        });
        ended.await.unwrap();
    }

    /// The next message, which must be of this method.
    pub(crate) async fn expect(&mut self, method: &str) -> Value {
        let heard = self.hear().await;
        assert_eq!(heard["method"], method, "{heard}");
        heard
    }

    /// The result in the next message, which must answer the request of this number.
    pub(crate) async fn result(&mut self, id: u64) -> Value {
        let heard = self.hear().await;
        assert_eq!(heard["id"], id, "{heard}");
        assert!(heard.get("result").is_some(), "{heard}");
        heard["result"].clone()
    }

    /// The code of the error in the next message, which must answer the request of this number.
    pub(crate) async fn error(&mut self, id: u64) -> i64 {
        let heard = self.hear().await;
        assert_eq!(heard["id"], id, "{heard}");
        heard["error"]["code"].as_i64().unwrap()
    }

    /// Asks as a modern client does.
    pub(crate) async fn ask_modern(
        &mut self,
        id: u64,
        method: &str,
        mut params: Value,
        meta: Value,
    ) {
        params["_meta"] = modern_meta(meta);
        self.ask(id, method, params).await;
    }
}

/// What stands in the `_meta` of a modern request; `more` comes on top.
fn modern_meta(more: Value) -> Value {
    let mut meta = json!({
        "io.modelcontextprotocol/protocolVersion": Revision::V2026_07_28.as_str(),
        "io.modelcontextprotocol/clientInfo": {"name": "script", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    for (key, value) in more.as_object().into_iter().flatten() {
        meta[key] = value.clone();
    }
    meta
}

impl Scene {
    /// A bridge to a server of this revision, which the test plays.
    pub(crate) fn new(revision: Revision) -> Self {
        let (arrive, arrivals) = mpsc::unbounded_channel();
        let target = Target::Local(Local(Arc::new(move || {
            let (ours, theirs) = memory::pair();
            let _ = arrive.send(theirs);
            ours
        })));
        let settings = UpstreamSettings {
            mode: EraMode::Pin(revision),
            ..UpstreamSettings::default()
        };
        Self {
            bridge: UpstreamServer::new(target, settings).unwrap(),
            revision,
            arrivals,
        }
    }

    /// A client on lines, which the test plays as well.
    pub(crate) fn client(&self) -> Peer {
        let (ours, theirs) = memory::pair();
        tokio::spawn(Arc::clone(&self.bridge).serve(theirs));
        Peer { link: ours }
    }

    /// The server that the bridge has reached for, once they have agreed.
    pub(crate) async fn server(&mut self, capabilities: Value) -> Peer {
        let link = tokio::time::timeout(PATIENCE, self.arrivals.recv()).await;
        let mut server = Peer {
            link: link.unwrap().unwrap(),
        };
        let info = json!({"name": "script", "version": "1"});
        match self.revision.era() {
            Era::Legacy => {
                let opening = server.expect("initialize").await;
                let agreed = json!({
                    "protocolVersion": self.revision.as_str(),
                    "capabilities": capabilities,
                    "serverInfo": info,
                });
                server.answer(&opening, agreed).await;
                server.expect("notifications/initialized").await;
            }
            Era::Modern => {
                let opening = server.expect("server/discover").await;
                let agreed = json!({
                    "resultType": "complete",
                    "supportedVersions": [self.revision.as_str()],
                    "capabilities": capabilities,
                    "ttlMs": 0,
                    "cacheScope": "private",
                    "_meta": {"io.modelcontextprotocol/serverInfo": info},
                });
                server.answer(&opening, agreed).await;
            }
        }
        server
    }

    /// A legacy client and the server behind the bridge, ready to talk.
    pub(crate) async fn legacy_pair(
        &mut self,
        revision: Revision,
        client_capabilities: Value,
        server_capabilities: Value,
    ) -> (Peer, Peer) {
        let mut client = self.client();
        let opening = json!({
            "protocolVersion": revision.as_str(),
            "capabilities": client_capabilities,
            "clientInfo": {"name": "script", "version": "1"},
        });
        client.ask(1, "initialize", opening).await;
        let server = self.server(server_capabilities).await;
        client.result(1).await;
        client.tell("notifications/initialized", json!({})).await;
        (client, server)
    }

    /// A modern client that has sent this request, and the server behind the bridge.
    pub(crate) async fn modern_pair(
        &mut self,
        capabilities: Value,
        request: (u64, &str, Value),
        meta: Value,
    ) -> (Peer, Peer) {
        let mut client = self.client();
        let (id, method, params) = request;
        client.ask_modern(id, method, params, meta).await;
        let server = self.server(capabilities).await;
        (client, server)
    }
}
