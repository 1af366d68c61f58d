//! Lifecycle log of a server process.

use mcpact::client::{ChildCommand, Client};
use mcpact::log::{CHILD, event};

use crate::record::{Entry, Log};

const SERVER: &str = r#"
echo "hello from below" >&2
while read -r line; do
  id=$(printf '%s' "$line" | sed 's/.*"id":\("[^"]*"\|[0-9]*\).*/\1/')
  case "$line" in
    *server/discover*) echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"error\":{\"code\":-32601,\"message\":\"no\"}}" ;;
    *notifications/*) ;;
    *) echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"protocolVersion\":\"2025-06-18\",\"capabilities\":{},\"serverInfo\":{\"name\":\"sh\",\"version\":\"1\"}}}" ;;
  esac
done
"#;

fn events(log: &Log) -> Vec<Entry> {
    let mut all = log.events(CHILD);
    all.retain(|entry| !entry.get("event").is_empty());
    all
}

fn names(entries: &[Entry]) -> Vec<&str> {
    entries.iter().map(|entry| entry.get("event")).collect()
}

/// Start and stop of a process are logged with server, instance, state and duration, and its stderr under its own
/// target.
#[tokio::test]
async fn process_lifecycle_is_logged() {
    let (log, _guard) = Log::start();
    let command = ChildCommand::new("sh").with_args(["-c", SERVER]);
    let client = Client::connect(command).await.unwrap();
    client.close().await;
    let events = events(&log);
    let expected = [
        event::START_ATTEMPT,
        event::START_SUCCESS,
        event::STOP_ATTEMPT,
        event::STOP_SUCCESS,
    ];
    assert_eq!(names(&events), expected);
    let states: Vec<&str> = events.iter().map(|turn| turn.get("state")).collect();
    assert_eq!(states, ["starting", "running", "stopping", "stopped"]);
    for turn in &events {
        assert_eq!(turn.get("server"), "`sh`");
        assert!(turn.get("duration_ms").parse::<u64>().is_ok(), "{turn:?}");
    }
    assert!(
        events[1].get("instance").parse::<u32>().is_ok(),
        "{events:?}"
    );
    let below = log.events(CHILD);
    let below = below
        .iter()
        .find(|entry| entry.get("origin") == "downstream");
    assert_eq!(below.unwrap().get("message"), "hello from below");
}

/// A program that cannot be started and one that does not negotiate produce different events.
#[tokio::test]
async fn start_and_negotiation_failures_differ() {
    let (log, _guard) = Log::start();
    let missing = ChildCommand::new("/does/not/exist");
    Client::connect(missing).await.unwrap_err();
    let logged = events(&log);
    assert_eq!(names(&logged), [event::START_ATTEMPT, event::START_FAILURE]);
    assert!(
        logged[1].get("error").contains("/does/not/exist"),
        "{logged:?}"
    );

    let (log, _guard) = Log::start();
    let silent = ChildCommand::new("sh").with_args(["-c", "exit 3"]);
    Client::connect(silent).await.unwrap_err();
    let logged = events(&log);
    assert!(
        names(&logged).contains(&event::INITIALIZE_FAILURE),
        "{logged:?}"
    );
}
