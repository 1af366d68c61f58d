//! Recording subscriber, and first messages of clients.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Debug;
use std::sync::{Arc, Mutex};

use mcpact::server::Server;
use mcpact_sim::scripted::{TestClient, serve};
use serde_json::{Value, json};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::DefaultGuard;
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::{Context, SubscriberExt};

/// Recorded span or event.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) target: &'static str,
    pub(crate) level: Level,
    pub(crate) fields: BTreeMap<&'static str, String>,
    is_span: bool,
}

impl Entry {
    fn of(metadata: &'static Metadata<'static>) -> Self {
        Self {
            target: metadata.target(),
            level: *metadata.level(),
            fields: BTreeMap::new(),
            is_span: metadata.is_span(),
        }
    }

    /// Returns the value of a field; empty if missing.
    pub(crate) fn get(&self, name: &str) -> &str {
        self.fields.get(name).map_or("", String::as_str)
    }
}

impl Visit for Entry {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.fields.insert(field.name(), format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.fields.insert(field.name(), value.to_owned());
    }
}

#[derive(Default)]
struct Records {
    all: Vec<Entry>,
    spans: HashMap<u64, usize>,
}

/// Everything logged on this thread while the guard lives.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Records>>);

impl Log {
    /// Starts recording; tests run on a single thread.
    pub(crate) fn start() -> (Self, DefaultGuard) {
        let log = Self::default();
        let subscriber = tracing_subscriber::registry().with(log.clone());
        (log, tracing::subscriber::set_default(subscriber))
    }

    pub(crate) fn all(&self) -> Vec<Entry> {
        self.0.lock().unwrap().all.clone()
    }

    fn of(&self, is_span: bool, target: &str, side: &str) -> Vec<Entry> {
        let mut all = self.all();
        all.retain(|entry| {
            entry.is_span == is_span && entry.target == target && entry.get("side") == side
        });
        all
    }

    /// Returns the results of negotiations logged by a side.
    pub(crate) fn negotiations(&self, side: &str) -> Vec<Entry> {
        self.of(false, mcpact::log::NEGOTIATION, side)
    }

    /// Returns the negotiation spans of a side.
    pub(crate) fn spans(&self, side: &str) -> Vec<Entry> {
        self.of(true, mcpact::log::NEGOTIATION, side)
    }

    pub(crate) fn events(&self, target: &str) -> Vec<Entry> {
        let mut all = self.all();
        all.retain(|entry| !entry.is_span && entry.target == target);
        all
    }
}

impl<S: Subscriber> Layer<S> for Log {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, _: Context<'_, S>) {
        let mut entry = Entry::of(attributes.metadata());
        attributes.record(&mut entry);
        let mut kept = self.0.lock().unwrap();
        let at = kept.all.len();
        kept.spans.insert(id.into_u64(), at);
        kept.all.push(entry);
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, _: Context<'_, S>) {
        let mut kept = self.0.lock().unwrap();
        let at = kept.spans[&id.into_u64()];
        values.record(&mut kept.all[at]);
    }

    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut entry = Entry::of(event.metadata());
        event.record(&mut entry);
        self.0.lock().unwrap().all.push(entry);
    }
}

/// Sends a message to a server; returns the response.
pub(crate) async fn ask(client: &mut TestClient, message: Value) -> Value {
    client.send(message).await;
    client.recv().await
}

/// Connects a client to a server.
pub(crate) fn client(server: Server) -> TestClient {
    TestClient::on(serve(server), None)
}

pub(crate) fn initialize(version: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": 7, "method": "initialize", "params": {
        "protocolVersion": version,
        "capabilities": { "roots": { "listChanged": true }, "sampling": {} },
        "clientInfo": { "name": "handmade", "version": "0.1" },
    } })
}

/// Creates a modern request of this version.
pub(crate) fn modern(id: u32, method: &str, version: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": { "_meta": {
        "io.modelcontextprotocol/protocolVersion": version,
        "io.modelcontextprotocol/clientCapabilities": { "elicitation": { "form": {} } },
        "io.modelcontextprotocol/clientInfo": { "name": "handmade", "version": "0.2" },
    } } })
}
