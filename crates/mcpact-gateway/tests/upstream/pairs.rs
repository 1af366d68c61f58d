//! Upstream server between a client and a server of the library.

use mcpact::client::{Client, ClientBuilder, ClientError};
use mcpact::model::{Content, CreateMessageResult, ElicitResult, Root};
use mcpact_engine::client::EraMode;
use mcpact_gateway::Target;
use mcpact_sim::scripted::{self, listen};
use mcpact_spec::Revision;
use serde_json::{Map, json};

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

/// Reference server with one revision.
async fn target(transport: Transport, revision: Revision) -> Target {
    match transport {
        Transport::Link => everything(revision),
        Transport::Http => {
            let server = mcpact_everything::server(&[revision]);
            let listening = server.listen(([127, 0, 0, 1], 0).into()).await.unwrap();
            let url = listening.url();
            tokio::spawn(listening.run(std::future::pending()));
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
) -> Result<Client, ClientError> {
    connect_as(client(client_revision), front, back, server_revision).await
}

/// Connects this client to a server of a revision.
pub(crate) async fn connect_as(
    builder: ClientBuilder,
    front: Transport,
    back: Transport,
    server_revision: Revision,
) -> Result<Client, ClientError> {
    let bridge = upstream(target(back, server_revision).await);
    match front {
        Transport::Link => builder.connect(scripted::connect(&bridge)).await,
        Transport::Http => builder.connect(listen(&bridge).await).await,
    }
}
