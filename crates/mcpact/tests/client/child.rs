//! Servers that are programs.

use mcpact::client::{ChildCommand, Client, ClientError, EraVerdict};

/// Reads lines and answers `initialize` and `tools/list`; `$1` says what a probe does.
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

/// T2: a child process is spoken to in lines, its other output is no message, and it ends with the
/// client.
#[tokio::test]
async fn a_child_process_is_a_server() {
    let client = Client::connect(server("answers")).await.unwrap();
    assert_eq!(client.pact().revision().as_str(), "2025-06-18");
    assert!(client.list_tools().await.unwrap().is_empty());
    client.close().await;
}

/// T2: a server that dies of the first question is started anew and not asked again.
#[tokio::test]
async fn a_server_that_dies_of_the_question_is_started_anew() {
    let client = Client::connect(server("dies")).await.unwrap();
    assert_eq!(client.pact().revision().as_str(), "2025-06-18");
    let builder = Client::builder("t", "1").prior(EraVerdict::LegacyDiesOnProbe);
    let client = builder.connect(server("dies")).await.unwrap();
    assert!(client.list_tools().await.unwrap().is_empty());
}

/// A program that cannot be started, and one that ends at once, are told apart; the second with its
/// last words.
#[tokio::test]
async fn a_program_that_is_no_server_is_told_as_such() {
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
