//! Gate of outgoing messages.

use mcpact::client::{Client, ClientBuilder, ClientError, Era, EraMode, Link, Method, Revision};
use mcpact::model::{CreateMessageRequest, CreateMessageResult, FormRequest, Root};
use mcpact_sim::scripted::link_server::{LinkServer, result};
use mcpact_sim::scripted::message::{discover_result, initialize_result};
use mcpact_spec::{Kind, Side};
use serde_json::{Map, Value, json};

/// Server that accepts everything.
fn server(revision: Revision, capabilities: Value) -> (Link, LinkServer) {
    LinkServer::start(move |message| match message["method"].as_str() {
        Some("server/discover") => result(message, discover_result(capabilities.clone())),
        Some("initialize") => {
            let version = revision.as_str();
            result(message, initialize_result(version, capabilities.clone()))
        }
        _ if message.get("id").is_some() => result(message, json!({})),
        _ => Vec::new(),
    })
}

fn silent() -> ClientBuilder {
    Client::builder("t", "1")
}

fn declaring() -> ClientBuilder {
    silent()
        .on_sampling(|_: CreateMessageRequest| async { Ok(CreateMessageResult::new("m", "hi")) })
        .on_elicitation(
            |form: FormRequest| async move { Ok(form.accept_with_defaults(Map::new())) },
        )
        .roots(vec![Root::new("file:///work")])
        .tasks()
}

fn documents() -> Vec<Value> {
    let all = json!({
        "tools": { "listChanged": true },
        "prompts": {},
        "resources": { "subscribe": true },
        "logging": {},
        "completions": {},
        "tasks": { "list": {}, "cancel": {}, "requests": { "tools": { "call": {} } } },
        "extensions": { "io.modelcontextprotocol/tasks": {} },
    });
    let single = |(key, value): (&String, &Value)| json!({ key: value });
    let mut documents: Vec<Value> = all.as_object().unwrap().iter().map(single).collect();
    documents.extend([json!({}), json!({ "resources": {} }), all]);
    documents
}

/// L11, L15: whatever either side declares, a request or notification that the pact does not allow never leaves the
/// client, and every other one does.
#[tokio::test]
async fn nothing_undeclared_is_ever_written() {
    for revision in Revision::ALL {
        for document in documents() {
            for builder in [silent(), declaring()] {
                let (link, received) = server(revision, document.clone());
                let builder = builder.mode(EraMode::Pin(revision));
                let client = builder.connect(link).await.unwrap();
                try_everything(client, &received).await;
            }
        }
    }
}

async fn try_everything(client: Client, received: &LinkServer) {
    let pact = client.pact();
    let opening = received.all().len();
    let mut expected = Vec::new();
    for method in Method::ALL {
        let name = method.as_str();
        for kind in [Kind::Request, Kind::Notification] {
            let sent = match kind {
                Kind::Request => client.request(name, Some("{}")).await.map(drop),
                Kind::Notification => client.notify(name, Some("{}")).await,
            };
            let ruling = pact.rule_on(Side::Client, kind, *method);
            let why = format!("{name} as {kind:?} in {}: {sent:?}", pact.revision());
            match sent {
                Ok(()) => assert!(ruling.is_open(), "{why}"),
                Err(ClientError::NotNegotiated(_)) => assert!(!ruling.is_open(), "{why}"),
                Err(_) => panic!("{why}"),
            }
            if ruling.is_open() {
                expected.push((name.to_owned(), kind == Kind::Request));
            }
        }
    }
    client.close().await;
    let mut written = received.all();
    written.pop();
    let opening = match pact.era() {
        Era::Legacy => opening.max(2),
        Era::Modern => opening,
    };
    let written: Vec<(String, bool)> = written[opening..]
        .iter()
        .map(|message| {
            let name = message["method"].as_str().unwrap().to_owned();
            (name, message.get("id").is_some())
        })
        .collect();
    assert_eq!(written, expected);
}
