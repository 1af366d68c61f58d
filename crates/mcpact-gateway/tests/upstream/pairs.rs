//! Upstream server between a client and a server of the library.

use mcpact::client::{Client, ClientBuilder, ClientError};
use mcpact::model::{Content, CreateMessageResult, ElicitResult, Root};
use mcpact_engine::client::EraMode;
use mcpact_gateway::Target;
use mcpact_spec::Revision;
use mcpact_transport::memory;
use serde_json::{Map, json};
use tokio::task::AbortHandle;

use crate::targets::{everything, upstream};

/// Transport of one side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transport {
    Link,
    Http,
}

impl Transport {
    pub(crate) const ALL: [Self; 2] = [Self::Link, Self::Http];
}

/// Background jobs of a pair; dropping it stops them.
#[derive(Default)]
pub(crate) struct Running {
    jobs: Vec<AbortHandle>,
}

impl Drop for Running {
    fn drop(&mut self) {
        for job in &self.jobs {
            job.abort();
        }
    }
}

/// Reference server with one revision.
async fn target(transport: Transport, revision: Revision, running: &mut Running) -> Target {
    match transport {
        Transport::Link => everything(revision),
        Transport::Http => {
            let server = mcpact_everything::server(&[revision]);
            let listening = server.listen(([127, 0, 0, 1], 0).into()).await.unwrap();
            let url = listening.url();
            let job = tokio::spawn(listening.run(std::future::pending()));
            running.jobs.push(job.abort_handle());
            Target::url(url)
        }
    }
}

/// Client with one revision that answers all questions.
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

/// Connects a client of one revision to a server of another.
pub(crate) async fn connect(
    front: Transport,
    client_revision: Revision,
    back: Transport,
    server_revision: Revision,
) -> Result<(Client, Running), ClientError> {
    connect_as(client(client_revision), front, back, server_revision).await
}

/// Connects this client to a server of a revision.
pub(crate) async fn connect_as(
    builder: ClientBuilder,
    front: Transport,
    back: Transport,
    server_revision: Revision,
) -> Result<(Client, Running), ClientError> {
    let mut running = Running::default();
    let target = target(back, server_revision, &mut running).await;
    let bridge = upstream(target);
    let connected = match front {
        Transport::Link => {
            let (ours, theirs) = memory::pair();
            let job = tokio::spawn(async move { bridge.serve(theirs).await });
            running.jobs.push(job.abort_handle());
            builder.connect(ours).await?
        }
        Transport::Http => {
            let front = bridge.listen(([127, 0, 0, 1], 0).into()).await.unwrap();
            let url = front.url();
            let job = tokio::spawn(front.run(std::future::pending()));
            running.jobs.push(job.abort_handle());
            builder.connect(url).await?
        }
    };
    Ok((connected, running))
}
