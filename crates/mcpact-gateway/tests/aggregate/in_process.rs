//! Servers, an aggregator and clients in this process.

use std::sync::Arc;

use mcpact::client::{Client, ClientBuilder};
use mcpact::model::{Content, CreateMessageResult, ElicitResult, Root};
use mcpact::server::Server;
use mcpact_engine::client::EraMode;
use mcpact_gateway::{Aggregator, AggregatorSettings, ServerEntry, Target};
use mcpact_sim::scripted::{connect, listen, serve};
use mcpact_spec::Revision;
use mcpact_transport::stdio::child::ChildCommand;
use serde_json::{Map, json};

use crate::targets::{self, in_memory, upstream};

/// Server that is created for every connection.
pub(crate) fn member(
    name: &str,
    make: impl Fn() -> Server + Send + Sync + 'static,
) -> Arc<ServerEntry> {
    let target = in_memory(move || serve(make()));
    ServerEntry::new(name, upstream(target))
}

/// Reference server with one revision.
pub(crate) fn everything(name: &str, revision: Revision) -> Arc<ServerEntry> {
    ServerEntry::new(name, upstream(targets::everything(revision)))
}

/// Server that cannot be started.
pub(crate) fn broken(name: &str) -> Arc<ServerEntry> {
    let target = Target::Command(Box::new(ChildCommand::new("/nonexistent/mcp-server")));
    ServerEntry::new(name, upstream(target))
}

pub(crate) fn aggregator(members: Vec<Arc<ServerEntry>>) -> Arc<Aggregator> {
    Aggregator::new(members, AggregatorSettings::default()).unwrap()
}

/// Client with one revision that answers all questions.
pub(crate) fn client(revision: Revision) -> ClientBuilder {
    Client::builder("visitor", "1")
        .mode(EraMode::Pin(revision))
        .on_elicitation(|asked| async move {
            let is_signed = asked.message.starts_with('[') && asked.message.contains("] ");
            assert!(is_signed, "the server is named: {}", asked.message);
            let name = json!("Ann");
            Ok(ElicitResult::accept(Map::from_iter([(
                "name".to_owned(),
                name,
            )])))
        })
        .on_sampling(|_| async { Ok(CreateMessageResult::new("a model", Content::text("Paris"))) })
        .roots(vec![Root::new("file:///home/ann")])
}

/// Connects a client over a stdio-like link.
pub(crate) async fn on_stdio(aggregator: &Arc<Aggregator>, builder: ClientBuilder) -> Client {
    builder.connect(connect(aggregator)).await.unwrap()
}

/// Connects a client over HTTP.
pub(crate) async fn on_http(aggregator: &Arc<Aggregator>, builder: ClientBuilder) -> Client {
    builder.connect(listen(aggregator).await).await.unwrap()
}
