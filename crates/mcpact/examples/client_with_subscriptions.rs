//! A client that subscribes to changes of one resource and of the list of tools. The revision decides between a
//! request per resource and one stream.
//!
//! `cargo run --example client_with_subscriptions -- http://127.0.0.1:6273/mcp some://resource`

use mcpact::client::{Change, Client, ClientError, Watch};

/// Returns the text of the resource, now and after its next change.
pub(crate) async fn before_and_after(
    client: &Client,
    uri: &str,
    change: impl Future<Output = Result<(), ClientError>>,
) -> Result<[String; 2], ClientError> {
    let mut changes = client.watch(Watch::new().tools().resource(uri)).await?;
    let before = text(client, uri).await?;
    change.await?;
    while let Some(change) = changes.next().await {
        if matches!(&change, Change::Updated { uri: changed } if changed == uri) {
            break;
        }
    }
    Ok([before, text(client, uri).await?])
}

async fn text(client: &Client, uri: &str) -> Result<String, ClientError> {
    let read = client.read_resource(uri).await?;
    let texts = read.contents.into_iter().filter_map(|part| part.text);
    Ok(texts.collect())
}

#[tokio::main]
#[expect(clippy::print_stdout, reason = "prints its result")]
async fn main() -> Result<(), ClientError> {
    let mut args = std::env::args().skip(1);
    let (url, uri) = (
        args.next().unwrap_or_default(),
        args.next().unwrap_or_default(),
    );
    let client = Client::connect(url).await?;
    let [before, after] = before_and_after(&client, &uri, async { Ok(()) }).await?;
    println!("before: {before}\nafter: {after}");
    Ok(())
}
