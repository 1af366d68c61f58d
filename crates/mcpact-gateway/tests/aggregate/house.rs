//! A hub in this process.

use std::sync::Arc;

use mcpact::client::{Client, ClientBuilder};
use mcpact::model::{Content, CreateMessageResult, ElicitResult, Root};
use mcpact::server::Server;
use mcpact_engine::client::EraMode;
use mcpact_gateway::{
    Aggregator, AggregatorSettings, Local, ServerEntry, Target, UpstreamServer, UpstreamSettings,
};
use mcpact_spec::Revision;
use mcpact_transport::memory;
use mcpact_transport::stdio::child::ChildCommand;
use serde_json::{Map, json};

/// A server of the hub, made anew for every connection.
pub(crate) fn member(
    name: &str,
    make: impl Fn() -> Server + Send + Sync + 'static,
) -> Arc<ServerEntry> {
    let target = Target::Local(Local(Arc::new(move || {
        let (ours, theirs) = memory::pair();
        let server = make();
        tokio::spawn(async move { server.serve(theirs).await });
        ours
    })));
    ServerEntry::new(
        name,
        UpstreamServer::new(target, UpstreamSettings::default()).unwrap(),
    )
}

/// The reference server, speaking one revision only.
pub(crate) fn everything(name: &str, revision: Revision) -> Arc<ServerEntry> {
    member(name, move || mcpact_everything::server(&[revision]))
}

/// A server that cannot be started.
pub(crate) fn broken(name: &str) -> Arc<ServerEntry> {
    let target = Target::Command(ChildCommand::new("/nonexistent/mcp-server"));
    ServerEntry::new(
        name,
        UpstreamServer::new(target, UpstreamSettings::default()).unwrap(),
    )
}

pub(crate) fn hub(members: Vec<Arc<ServerEntry>>) -> Arc<Aggregator> {
    Aggregator::new(members, AggregatorSettings::default()).unwrap()
}

/// A client that speaks one revision only and can be asked everything.
pub(crate) fn client(revision: Revision) -> ClientBuilder {
    Client::builder("visitor", "1")
        .mode(EraMode::Pin(revision))
        .on_elicitation(|asked| async move {
            let is_signed = asked.message.starts_with('[') && asked.message.contains("] ");
            assert!(is_signed, "users see who asks: {}", asked.message);
            let name = json!("Ann");
            Ok(ElicitResult::accept(Map::from_iter([(
                "name".to_owned(),
                name,
            )])))
        })
        .on_sampling(|_| async { Ok(CreateMessageResult::new("a model", Content::text("Paris"))) })
        .roots(vec![Root::new("file:///home/ann")])
}

/// Connects a client on lines.
pub(crate) async fn on_lines(hub: &Arc<Aggregator>, builder: ClientBuilder) -> Client {
    let (ours, theirs) = memory::pair();
    let hub = Arc::clone(hub);
    tokio::spawn(async move { hub.serve(theirs).await });
    builder.connect(ours).await.unwrap()
}

/// Connects a client by HTTP.
pub(crate) async fn by_http(hub: &Arc<Aggregator>, builder: ClientBuilder) -> Client {
    let address = ([127, 0, 0, 1], 0).into();
    let front = Arc::clone(hub).listen_at(address).await.unwrap();
    let url = front.url();
    tokio::spawn(front.run(std::future::pending()));
    builder.connect(url).await.unwrap()
}
