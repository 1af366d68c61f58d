//! Every revision with every revision, on every carrier inside one process, by the library's own client.

use mcpact::client::{Client, ClientError};
use mcpact::model::ElicitResult;
use mcpact::server::Server;
use mcpact_engine::client::EraMode;
use mcpact_spec::{Era, Revision};
use mcpact_transport::link::Link;
use mcpact_transport::memory;
use serde_json::{Map, Value, json};

use crate::http::Running;

#[derive(Clone, Copy, Debug)]
enum Carrier {
    Memory,
    Unix,
    Tcp,
    WebSocket,
    Http,
}

impl Carrier {
    const ALL: [Self; 5] = [
        Self::Memory,
        Self::Unix,
        Self::Tcp,
        Self::WebSocket,
        Self::Http,
    ];
}

/// Serves one client on a socket file, which goes with the folder.
async fn unix(server: Server) -> Link {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let listener = mcpact_transport::unix::listen(&path).await.unwrap();
    let accepting = tokio::spawn(async move { listener.accept().await.unwrap() });
    let ours = mcpact_transport::unix::connect(&path).await.unwrap();
    let theirs = accepting.await.unwrap();
    tokio::spawn(async move { server.serve(theirs).await });
    ours
}

async fn connect(
    carrier: Carrier,
    client: Revision,
    server: &[Revision],
) -> Result<(Client, Option<Running>), ClientError> {
    let builder = Client::builder("pair", "1")
        .mode(EraMode::Pin(client))
        .silence_limit(std::time::Duration::from_millis(500))
        .on_elicitation(|_| async {
            Ok(ElicitResult::accept(Map::from_iter([(
                "name".to_owned(),
                json!("Ann"),
            )])))
        });
    let server = mcpact_everything::server(server);
    match carrier {
        Carrier::Memory => {
            let (ours, theirs) = memory::pair();
            tokio::spawn(async move { server.serve(theirs).await });
            Ok((builder.connect(ours).await?, None))
        }
        Carrier::Unix => Ok((builder.connect(unix(server).await).await?, None)),
        Carrier::Tcp => {
            let address = ([127, 0, 0, 1], 0).into();
            let listening = server.listen_tcp(address).await.unwrap();
            let url = listening.url();
            tokio::spawn(listening.run(std::future::pending()));
            Ok((builder.connect(url).await?, None))
        }
        Carrier::WebSocket => {
            let server = server.settings(|settings| settings.websocket = true);
            let running = Running::start(server).await;
            let url = format!("ws://{}/ws", running.address);
            Ok((builder.connect(url).await?, Some(running)))
        }
        Carrier::Http => {
            let running = Running::start(server).await;
            Ok((builder.connect(running.url.as_str()).await?, Some(running)))
        }
    }
}

fn arguments(all: &[(&str, &str)]) -> Map<String, Value> {
    all.iter()
        .map(|(key, value)| ((*key).to_owned(), json!(value)))
        .collect()
}

/// N15, T1, T6: all 5×5 pairs of single revisions end as the specification's matrix says, on every
/// carrier: the same revision works, any other pair finds out that it does not.
#[tokio::test]
async fn single_revisions_meet_only_themselves() {
    for carrier in Carrier::ALL {
        for client in Revision::ALL {
            for server in Revision::ALL {
                let connected = connect(carrier, client, &[server]).await;
                match connected {
                    Ok((connected, _running)) => {
                        assert_eq!(client, server, "must not agree");
                        assert_eq!(connected.pact().revision(), client);
                        let result = connected
                            .call_tool("echo", json!({"text": "hello"}))
                            .await
                            .unwrap();
                        assert_eq!(result.all_text(), "hello");
                    }
                    Err(error) => assert_ne!(client, server, "{client} must agree: {error}"),
                }
            }
        }
    }
}

/// N14, T1, T6: a server of all revisions serves every client in its own, with questions in its way.
#[tokio::test]
async fn a_server_of_all_revisions_serves_every_client() {
    for carrier in Carrier::ALL {
        for client in Revision::ALL {
            let (connected, _running) = connect(carrier, client, &Revision::ALL).await.unwrap();
            assert_eq!(connected.pact().revision(), client);
            assert!(connected.list_tools().await.unwrap().len() > 30);
            assert!(!connected.list_prompts().await.unwrap().is_empty());
            let read = connected.read_resource("test://static-text").await.unwrap();
            assert_eq!(read.contents.len(), 1);
            let prompt = connected
                .get_prompt(
                    "test_prompt_with_arguments",
                    arguments(&[("arg1", "x"), ("arg2", "y")]),
                )
                .await
                .unwrap();
            assert_eq!(prompt.messages.len(), 1);
            let asks = client.era() == Era::Modern || client >= Revision::V2025_06_18;
            let greeted = connected
                .call_tool("test_input_required_result_elicitation", json!({}))
                .await;
            match greeted {
                Ok(result) if asks => assert_eq!(result.all_text(), "Hello, Ann!", "{client}"),
                Ok(result) => assert!(result.failed(), "{client} has no elicitation: {result:?}"),
                Err(error) => assert!(!asks, "{client}: {error}"),
            }
            let missing = connected.call_tool("no_such_tool", Value::Null).await;
            assert!(missing.is_err());
            connected.close().await;
        }
    }
}

/// F18: a client tells for how long a list holds and for whom, where the server says so; no legacy
/// server does.
#[tokio::test]
async fn lists_carry_their_hints() {
    for carrier in Carrier::ALL {
        for revision in Revision::ALL {
            let (client, _running) = connect(carrier, revision, &Revision::ALL).await.unwrap();
            let (tools, prompts) = (client.list_tools().await, client.list_prompts().await);
            let resources = client.list_resources().await.unwrap();
            let templates = client.list_resource_templates().await.unwrap();
            let (tools, prompts) = (tools.unwrap(), prompts.unwrap());
            let read = client.read_resource("test://static-text").await.unwrap();
            for (ttl_ms, cache_scope) in [
                (tools.ttl_ms, tools.cache_scope),
                (prompts.ttl_ms, prompts.cache_scope),
                (resources.ttl_ms, resources.cache_scope),
                (templates.ttl_ms, templates.cache_scope),
                (read.ttl_ms, read.cache_scope),
            ] {
                let is_told = revision.era() == Era::Modern;
                assert_eq!(ttl_ms.is_some(), is_told, "{revision}");
                let expected = is_told.then_some("private");
                assert_eq!(cache_scope.as_deref(), expected, "{revision}");
            }
            client.close().await;
        }
    }
}
