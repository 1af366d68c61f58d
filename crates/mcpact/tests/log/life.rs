//! The life of a server process.

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

fn turns(log: &Log) -> Vec<Entry> {
    let mut all = log.events(CHILD);
    all.retain(|entry| !entry.get("event").is_empty());
    all
}

fn names(entries: &[Entry]) -> Vec<&str> {
    entries.iter().map(|entry| entry.get("event")).collect()
}

/// Start and stop of a process are told with server, instance, state and duration, and what it
/// writes to its log is told as coming from there.
#[tokio::test]
async fn a_process_is_told_from_start_to_stop() {
    let (log, _guard) = Log::keep();
    let command = ChildCommand::new("sh").with_args(["-c", SERVER]);
    let client = Client::connect(command).await.unwrap();
    client.close().await;
    let turns = turns(&log);
    let expected = [
        event::START_ATTEMPT,
        event::START_SUCCESS,
        event::STOP_ATTEMPT,
        event::STOP_SUCCESS,
    ];
    assert_eq!(names(&turns), expected);
    let states: Vec<&str> = turns.iter().map(|turn| turn.get("state")).collect();
    assert_eq!(states, ["starting", "running", "stopping", "stopped"]);
    for turn in &turns {
        assert_eq!(turn.get("server"), "`sh`");
        assert!(turn.get("duration_ms").parse::<u64>().is_ok(), "{turn:?}");
    }
    assert!(turns[1].get("instance").parse::<u32>().is_ok(), "{turns:?}");
    let below = log.events(CHILD);
    let below = below
        .iter()
        .find(|entry| entry.get("origin") == "downstream");
    assert_eq!(below.unwrap().get("message"), "hello from below");
}

/// A program that cannot be started and one that does not agree are told apart.
#[tokio::test]
async fn failures_are_told_apart() {
    let (log, _guard) = Log::keep();
    let missing = ChildCommand::new("/does/not/exist");
    Client::connect(missing).await.unwrap_err();
    let told = turns(&log);
    assert_eq!(names(&told), [event::START_ATTEMPT, event::START_FAILURE]);
    assert!(told[1].get("error").contains("/does/not/exist"), "{told:?}");

    let (log, _guard) = Log::keep();
    let silent = ChildCommand::new("sh").with_args(["-c", "exit 3"]);
    Client::connect(silent).await.unwrap_err();
    let told = turns(&log);
    assert!(
        names(&told).contains(&event::INITIALIZE_FAILURE),
        "{told:?}"
    );
}
