//! Suspended calls: during a reload, and when their clients do not return.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use mcpact::model::ElicitResult;
use mcpact_sim::scripted::message::modern_request;
use mcpact_spec::Revision;
use serde_json::{Map, Value, json};

use crate::harness::{catalog, client, gateway, post};

/// Time limit of each wait.
const PATIENCE: Duration = Duration::from_secs(60);

const ASKS: &str = "test_input_required_result_elicitation";

/// Returns the config of a legacy server, which asks questions during a call.
fn server(era: &str, drain: &str) -> String {
    format!("[servers.s]\nbuiltin = \"everything\"\nera = \"{era}\"\ndrain_seconds = {drain}\n")
}

/// Makes a call that is suspended by a question while a reload replaces its server; returns the outcome.
async fn asked(path: &str, drain: &str, next: &'static str) -> Result<String, String> {
    let (gateway, origin) = gateway(&server("2025-06-18", drain)).await;
    let is_given_time = drain != "0";
    let able = client(Revision::V2026_07_28).on_elicitation(move |_| {
        let gateway = gateway.clone();
        async move {
            gateway.change(catalog(next)).unwrap();
            let runs = || {
                let servers = gateway.status(None).unwrap().servers;
                servers.iter().any(|server| server.in_flight > 0)
            };
            while !is_given_time && runs() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            let answer = Map::from_iter([("name".to_owned(), json!("Ann"))]);
            Ok(ElicitResult::accept(answer))
        }
    });
    let able = able.connect(format!("{origin}{path}")).await.unwrap();
    let prefix = if path == "/mcp" { "s__" } else { "" };
    let tool = format!("{prefix}{ASKS}");
    let call = able.call_tool(&tool, json!({}));
    let called = tokio::time::timeout(PATIENCE, call).await.unwrap();
    called
        .map(|result| result.all_text())
        .map_err(|error| error.to_string())
}

const RESTARTED: &str = "[servers.s]\nbuiltin = \"everything\"\nera = \"2025-11-25\"\n";

/// BB-09: a suspended call of a replaced server resumes within the drain time; afterwards the client learns that the
/// call is lost.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn suspended_calls_resume_on_a_replaced_server() {
    for path in ["/mcp", "/servers/s/mcp"] {
        let answered = asked(path, "60", RESTARTED).await;
        assert_eq!(answered, Ok(String::from("Hello, Ann!")));
        let lost = asked(path, "0", RESTARTED).await.unwrap_err();
        for word in ["config reload", "may have had its effect", "call again"] {
            assert!(lost.contains(word), "{path}: {lost}");
        }
    }
}

/// BB-09: a suspended call of a removed server resumes within the drain time; afterwards the error does not claim that
/// the tool never existed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn suspended_calls_resume_on_a_removed_server() {
    let other = "[servers.other]\nbuiltin = \"everything\"\n";
    let answered = asked("/mcp", "60", other).await;
    assert_eq!(answered, Ok(String::from("Hello, Ann!")));
    let lost = asked("/mcp", "0", other).await.unwrap_err();
    for word in ["`s`", "config reload", "may have had its effect"] {
        assert!(lost.contains(word), "{lost}");
    }
}

/// Legacy server that records what it reads. The tool `ask` asks for input and answers when it has some, but not when
/// the user dismissed the form; `who` answers at once.
const ASKING: &str = r##"
commands.shells = "warn"
[servers.m]
command = "sh"
args = ["-c", '''
answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$1" "$2"; }
while IFS= read -r line; do
  printf '%s\n' "$line" >> "$NOTES"
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\("[^"]*"\|[0-9][0-9]*\).*/\1/p')
  case "$line" in
    *'"initialize"'*) answer "$id" '{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"sh","version":"1"}}' ;;
    *'"tools/list"'*) answer "$id" '{"tools":[{"name":"ask","inputSchema":{"type":"object"}},{"name":"who","inputSchema":{"type":"object"}}]}' ;;
    *'"action":"cancel"'*) ;;
    *'"id":"q"'*) answer "$call" '{"content":[{"type":"text","text":"asked"}]}' ;;
    *'"ask"'*) call=$id; printf '{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"?","requestedSchema":{"type":"object","properties":{}}}}\n' ;;
    *'"who"'*) answer "$id" '{"content":[{"type":"text","text":"me"}]}' ;;
  esac
done
''']
era = "legacy"
"##;

/// Returns the config of that server with these keys.
fn asking(notes: &Path, keys: &str) -> String {
    format!("{ASKING}env = {{ NOTES = {notes:?} }}\n{keys}")
}

/// Calls a tool as a modern client that accepts input requests; returns the response.
async fn call(origin: &str, tool: &str, extra: Value) -> Value {
    let mut params = json!({"name": tool, "arguments": {}});
    params
        .as_object_mut()
        .unwrap()
        .extend(extra.as_object().unwrap().clone());
    let body = modern_request(1, "tools/call", params, &json!({"elicitation": {}})).to_string();
    let headers = format!(
        "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: {tool}\r\n"
    );
    let posting = post(origin, "/servers/m/mcp", &headers, &body);
    let response = tokio::time::timeout(PATIENCE, posting).await.unwrap();
    let at = response.find("{\"jsonrpc\"");
    assert!(at.is_some(), "{response}");
    let mut lines = response[at.unwrap()..].lines();
    serde_json::from_str(lines.next().unwrap()).unwrap()
}

/// Makes a call that is suspended; returns its state.
async fn suspended(origin: &str) -> Value {
    let mut asked = call(origin, "ask", json!({})).await;
    assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
    asked["result"]["requestState"].take()
}

/// Returns the number of lines with this text that the server has read.
fn count(notes: &Path, text: &str) -> usize {
    let notes = fs::read_to_string(notes).unwrap();
    notes.lines().filter(|line| line.contains(text)).count()
}

fn answers(state: &Value) -> Value {
    json!({"requestState": state, "inputResponses": {"elicitation-1": {"action": "accept", "content": {}}}})
}

/// More unanswered questions than instances do not block other calls, and all of them can still be answered.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unanswered_questions_do_not_block_other_calls() {
    let folder = tempfile::tempdir().unwrap();
    let notes = folder.path().join("notes");
    let (gateway, origin) = gateway(&asking(&notes, "")).await;
    let begin = Instant::now();
    let mut states = Vec::new();
    for _ in 0..8 {
        states.push(suspended(&origin).await);
    }
    let answered = call(&origin, "who", json!({})).await;
    assert_eq!(answered["result"]["content"][0]["text"], "me", "{answered}");
    assert!(
        begin.elapsed() < Duration::from_secs(20),
        "before `queue_seconds`"
    );
    for state in &states {
        let answered = call(&origin, "ask", answers(state)).await;
        assert_eq!(
            answered["result"]["content"][0]["text"], "asked",
            "{answered}"
        );
    }
    // The instances above `max_instances` stop.
    let running = || {
        let server = gateway.status(Some("m")).unwrap().servers.remove(0);
        let running = server.instances.into_iter();
        running.filter(|one| one.state != "stopped").count()
    };
    let stopped = async {
        while running() > 4 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let stopped = tokio::time::timeout(Duration::from_secs(10), stopped).await;
    assert!(stopped.is_ok(), "{:?}", gateway.status(Some("m")));
}

/// With more unanswered questions than allowed, the oldest call is ended for a queued one: its question is cancelled,
/// then the call. It is never run again, and its client learns why.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn oldest_unanswered_call_is_ended_for_a_queued_one() {
    let folder = tempfile::tempdir().unwrap();
    let notes = folder.path().join("notes");
    let keys = "max_instances = 1\nmax_input_waits = 1\ninput_grace_seconds = 0.1\n";
    let (_gateway, origin) = gateway(&asking(&notes, keys)).await;
    let first = suspended(&origin).await;
    let second = suspended(&origin).await;
    assert_eq!(
        count(&notes, "\"action\":\"cancel\""),
        0,
        "nothing is queued"
    );
    let third = suspended(&origin).await;
    assert_eq!(count(&notes, "\"action\":\"cancel\""), 1);
    assert_eq!(count(&notes, "notifications/cancelled"), 1);
    assert_eq!(count(&notes, "\"ask\""), 3);
    let refused = call(&origin, "ask", answers(&first)).await;
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    let message = refused["error"]["message"].as_str().unwrap();
    for words in ["other calls were queued", "may have had its effect"] {
        assert!(message.contains(words), "{message}");
    }
    assert_eq!(count(&notes, "\"ask\""), 3, "not run again");
    for state in [&second, &third] {
        let answered = call(&origin, "ask", answers(state)).await;
        assert_eq!(
            answered["result"]["content"][0]["text"], "asked",
            "{answered}"
        );
    }
}
