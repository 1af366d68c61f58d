//! Requirement T6: messages over a Unix socket.
#![cfg(unix)]
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a broken expectation is a failed test"
)]

use std::os::unix::fs::{MetadataExt, symlink};
use std::os::unix::net::UnixListener as StdListener;
use std::time::Duration;

use mcpact_transport::error::TransportError;
use mcpact_transport::link::Link;
use mcpact_transport::unix::{connect, listen};
use mcpact_wire::frame::ndjson::Line;
use tokio::time::timeout;

async fn hear(link: &mut Link) -> Option<Vec<u8>> {
    let reading = async {
        loop {
            if let Some(Line::Json(line)) = link.source.next_line() {
                return Some(line.to_vec());
            }
            if !link.source.fill().await.unwrap() {
                return None;
            }
        }
    };
    timeout(Duration::from_secs(30), reading).await.unwrap()
}

fn why(result: Result<impl Sized, TransportError>) -> &'static str {
    match result {
        Err(TransportError::Address { why, .. }) => why,
        Err(other) => panic!("{other:?}"),
        Ok(_) => panic!("it worked"),
    }
}

/// T6: messages travel both ways, and closing is EOF.
#[tokio::test]
async fn messages_travel_both_ways() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mcpact.sock");
    let listener = listen(&path).await.unwrap();
    let (client, server) = tokio::join!(connect(&path), listener.accept());
    let (mut client, mut server) = (client.unwrap(), server.unwrap());
    client.sink.push("{\"id\":1}");
    client.sink.flush().await.unwrap();
    assert_eq!(hear(&mut server).await.unwrap(), b"{\"id\":1}");
    server.sink.push("{\"id\":1,\"result\":{}}");
    server.sink.close().await.unwrap();
    assert_eq!(
        hear(&mut client).await.unwrap(),
        b"{\"id\":1,\"result\":{}}"
    );
    assert_eq!(hear(&mut client).await, None);
}

#[tokio::test]
async fn socket_is_private_and_removed_with_its_listener() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mcpact.sock");
    let listener = listen(&path).await.unwrap();
    assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
    assert_eq!(listener.path(), path);
    drop(listener);
    assert!(!path.exists());
    assert_eq!(why(connect(&path).await), "no such socket");
}

#[tokio::test]
async fn stale_socket_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mcpact.sock");
    drop(StdListener::bind(&path).unwrap());
    assert!(path.exists());
    assert_eq!(why(connect(&path).await), "no listener");
    let listener = listen(&path).await.unwrap();
    let (client, server) = tokio::join!(connect(&path), listener.accept());
    assert!(client.is_ok() && server.is_ok());
}

#[tokio::test]
async fn other_files_and_live_sockets_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mcpact.sock");
    let listener = listen(&path).await.unwrap();
    assert_eq!(why(listen(&path).await), "the socket is in use");
    assert!(connect(&path).await.is_ok());

    let file = folder.path().join("file");
    std::fs::write(&file, "precious").unwrap();
    assert_eq!(why(listen(&file).await), "it is not a socket");
    let link = folder.path().join("link");
    symlink(&path, &link).unwrap();
    assert_eq!(why(listen(&link).await), "it is not a socket");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "precious");
    assert_eq!(
        why(listen(folder.path().join("no/such.sock")).await),
        "its directory does not exist"
    );

    std::fs::remove_file(&path).unwrap();
    let _other = StdListener::bind(&path).unwrap();
    drop(listener);
    assert!(path.exists(), "the socket of another process was removed");
}

/// Of many processes that start at once on a stale socket, exactly one listens.
#[tokio::test(flavor = "multi_thread")]
async fn exactly_one_process_takes_a_stale_socket() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mcpact.sock");
    drop(StdListener::bind(&path).unwrap());
    let mut starters = tokio::task::JoinSet::new();
    for _ in 0..16 {
        let path = path.clone();
        starters.spawn(async move { listen(path).await });
    }
    let results = starters.join_all().await;
    assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 1);
    assert!(connect(&path).await.is_ok());
}
