//! A server that asks its clients while they share it.

use std::sync::Arc;
use std::time::Duration;

use http::Method;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::Effort;
use crate::client::{Client, Era, Stream};
use crate::error::RowError;
use crate::figure::Figures;
use crate::gateway::{GatewaySetup, path};
use crate::journal::Entry;
use crate::ledger::{Ledger, Outcome};

/// A call that the server answers with what its own client says; tells how many questions were not ours.
async fn ask(client: &Client, ledger: &Ledger) -> Result<usize, RowError> {
    let nonce = ledger.open();
    let arguments = json!({"nonce": nonce});
    let request = client.request(
        &json!(1),
        "tools/call",
        json!({"name": "ask", "arguments": arguments}),
    );
    let body = request.to_string().into();
    let (_connection, response) = client.send(Method::POST, body, &request).await?;
    let mut stream = Stream::new(response);
    let mut foreign = 0;
    while let Some(message) = stream.next().await? {
        if message["method"] != "elicitation/create" {
            ledger.close(nonce, &Ok(stream.reply(message)));
            continue;
        }
        let text = message["params"]["message"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        foreign += usize::from(!text.ends_with(&nonce.to_string()));
        let content = json!({"nonce": nonce.to_string()});
        let result = json!({"action": "accept", "content": content});
        let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
        client.post(&answer).await?;
    }
    Ok(foreign)
}

/// Counts the questions on the stream of a client that calls nothing.
async fn overhear(client: Client) -> Result<usize, RowError> {
    let (_connection, response) = client
        .send(Method::GET, bytes::Bytes::new(), &Value::Null)
        .await?;
    let mut stream = Stream::new(response);
    let mut questions = 0;
    while let Some(message) = stream.next().await? {
        questions += usize::from(message["method"] == "elicitation/create");
    }
    Ok(questions)
}

/// A server request reaches only the client of its call.
pub(super) async fn asked(effort: Effort, figures: &mut Figures) -> Result<(), RowError> {
    const CLIENTS: usize = 16;
    let keys = "max_concurrent = 64\nmax_instances = 8\n";
    let gateway = GatewaySetup::new()?
        .scripted("curious", &[], keys)?
        .serve()
        .await?;
    let ledger = Arc::new(Ledger::default());
    let able = || async {
        let client = Client::new(&gateway.address, &path("curious"), Era::Legacy)?;
        client.declaring(json!({"elicitation": {}})).greet().await
    };
    let bystander = tokio::spawn(overhear(able().await?));
    let mut workers = JoinSet::new();
    let rounds = effort.of(20, 500);
    for _ in 0..CLIENTS {
        let (client, ledger) = (able().await?, Arc::clone(&ledger));
        workers.spawn(async move {
            let mut foreign = 0;
            for _ in 0..rounds {
                foreign += ask(&client, &ledger).await?;
            }
            Ok::<usize, RowError>(foreign)
        });
    }
    // A client without the capability is not asked, and its call ends all the same.
    let unable = gateway.client("curious", Era::Legacy).await?;
    let refused = Ledger::default();
    let closed = refused.call(&unable, "ask", json!({})).await;
    figures.none(
        "calls lost of who cannot be asked",
        usize::from(closed.outcome == Outcome::Lost),
    );
    let mut foreign = 0;
    for worked in workers.join_all().await {
        foreign += worked?;
    }
    let journal = gateway.journal("curious");
    figures.shown("questions", (CLIENTS * rounds) as f64, "");
    figures.shown("starts", journal.all(Entry::Start).len() as f64, "");
    figures.none("questions of others", foreign);
    ledger.balance(&[&journal]).tell(figures);
    // The stream ends with the gateway.
    let ended = gateway.close().await?;
    figures.within("the end", ended, Duration::from_secs(10));
    figures.none(
        "questions to who calls nothing",
        bystander.await?.unwrap_or_default(),
    );
    Ok(())
}
