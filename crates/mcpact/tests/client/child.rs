//! Servers as child processes.

use mcpact::client::{ChildCommand, Client, ClientError, EraVerdict};

/// Server that answers `initialize` and `tools/list`; `$1` selects its reaction to a probe.
const SERVER: &str = r#"
echo "starting" >&2
while read -r line; do
  id=$(printf '%s' "$line" | sed 's/.*"id":\("[^"]*"\|[0-9]*\).*/\1/')
  case "$line" in
    *server/discover*) [ "$1" = dies ] && { echo "what is discover?" >&2; exit 1; }
      echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"error\":{\"code\":-32601,\"message\":\"no\"}}" ;;
    *notifications/*) ;;
    *initialize*) echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"protocolVersion\":\"2025-06-18\",\"capabilities\":{\"tools\":{}},\"serverInfo\":{\"name\":\"sh\",\"version\":\"1\"}}}" ;;
    *) echo "not a message"; echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"tools\":[]}}" ;;
  esac
done
"#;

fn server(mode: &str) -> ChildCommand {
    ChildCommand::new("sh").with_args(["-c", SERVER, "server", mode])
}

/// T2: a child process is used over stdio, its other output is ignored, and it ends with the client.
#[tokio::test]
async fn child_process_is_used_over_stdio() {
    let client = Client::connect(server("answers")).await.unwrap();
    assert_eq!(client.pact().revision().as_str(), "2025-06-18");
    assert!(client.list_tools().await.unwrap().is_empty());
    client.close().await;
}

/// T2: a server that exits on the probe is restarted and not probed again.
#[tokio::test]
async fn server_that_exits_on_the_probe_is_restarted() {
    let client = Client::connect(server("dies")).await.unwrap();
    assert_eq!(client.pact().revision().as_str(), "2025-06-18");
    let builder = Client::builder("t", "1").prior(EraVerdict::LegacyDiesOnProbe);
    let client = builder.connect(server("dies")).await.unwrap();
    assert!(client.list_tools().await.unwrap().is_empty());
}

/// A program that cannot be started and one that exits at once produce different errors; the second with its stderr.
#[tokio::test]
async fn failed_start_and_early_exit_produce_different_errors() {
    let missing = ChildCommand::new("/does/not/exist");
    let failed = Client::connect(missing).await.unwrap_err();
    assert!(
        matches!(failed, ClientError::Unreachable { .. }),
        "{failed:?}"
    );
    let broken = ChildCommand::new("sh").with_args(["-c", "echo 'no config' >&2; exit 3"]);
    let failed = Client::connect(broken).await.unwrap_err();
    assert!(failed.to_string().contains("no config"), "{failed}");
}
