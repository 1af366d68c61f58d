//! A bridge in this process, on memory or HTTP on either side.

use std::sync::Arc;

use mcpact::client::{Client, ClientBuilder, ClientError};
use mcpact::model::{Content, CreateMessageResult, ElicitResult, Root};
use mcpact_engine::client::EraMode;
use mcpact_gateway::{Local, Target, UpstreamServer, UpstreamSettings};
use mcpact_spec::Revision;
use mcpact_transport::memory;
use serde_json::{Map, json};
use tokio::task::AbortHandle;

/// How one side of a bridge is carried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Carrier {
    Lines,
    Http,
}

impl Carrier {
    pub(crate) const ALL: [Self; 2] = [Self::Lines, Self::Http];
}

/// Everything that runs for one pair; it stops when dropped.
#[derive(Default)]
pub(crate) struct Running {
    tasks: Vec<AbortHandle>,
}

impl Drop for Running {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

/// The reference server, speaking one revision only.
async fn target(carrier: Carrier, revision: Revision, running: &mut Running) -> Target {
    match carrier {
        Carrier::Lines => Target::Local(Local(Arc::new(move || {
            let (ours, theirs) = memory::pair();
            let server = mcpact_everything::server(&[revision]);
            tokio::spawn(async move { server.serve(theirs).await });
            ours
        }))),
        Carrier::Http => {
            let server = mcpact_everything::server(&[revision]);
            let listening = server.listen(([127, 0, 0, 1], 0).into()).await.unwrap();
            let url = listening.url();
            let task = tokio::spawn(listening.run(std::future::pending()));
            running.tasks.push(task.abort_handle());
            Target::url(url)
        }
    }
}

/// A client that speaks one revision only and can be asked everything.
pub(crate) fn client(revision: Revision) -> ClientBuilder {
    Client::builder("pair", "1")
        .mode(EraMode::Pin(revision))
        .on_elicitation(|_| async {
            Ok(ElicitResult::accept(Map::from_iter([(
                "name".to_owned(),
                json!("Ann"),
            )])))
        })
        .on_sampling(|_| async { Ok(CreateMessageResult::new("a model", Content::text("Paris"))) })
        .roots(vec![Root::new("file:///home/ann")])
}

/// A client of one revision in front of a server of another.
pub(crate) async fn connect(
    front: Carrier,
    client_revision: Revision,
    back: Carrier,
    server_revision: Revision,
) -> Result<(Client, Running), ClientError> {
    connect_as(client(client_revision), front, back, server_revision).await
}

/// This client in front of a server of a revision.
pub(crate) async fn connect_as(
    builder: ClientBuilder,
    front: Carrier,
    back: Carrier,
    server_revision: Revision,
) -> Result<(Client, Running), ClientError> {
    let mut running = Running::default();
    let target = target(back, server_revision, &mut running).await;
    let bridge = UpstreamServer::new(target, UpstreamSettings::default()).unwrap();
    let connected = match front {
        Carrier::Lines => {
            let (ours, theirs) = memory::pair();
            let task = tokio::spawn(async move { bridge.serve(theirs).await });
            running.tasks.push(task.abort_handle());
            builder.connect(ours).await?
        }
        Carrier::Http => {
            let front = bridge.listen(([127, 0, 0, 1], 0).into()).await.unwrap();
            let url = front.url();
            let task = tokio::spawn(front.run(std::future::pending()));
            running.tasks.push(task.abort_handle());
            builder.connect(url).await?
        }
    };
    Ok((connected, running))
}
