//! Filters.

use std::fs;
use std::io::BufRead as _;
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use mcpact::client::Client;
use mcpact_spec::Revision;
use serde_json::json;

use crate::harness::{Harness, Running, client};

/// Test timeout.
const PATIENCE: Duration = Duration::from_secs(60);

/// Appends its argument to `mark` in a request, refuses `forbidden`, and replaces `confidential` in
/// a result.
const FILTER: &str = r#"#!/bin/sh
echo start >> "$0.starts"
while IFS= read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/^{"id":\([0-9]*\),.*/\1/p')
  case "$line" in
    *'"stage":"request"'*forbidden*) printf '{"id":%s,"deny":"not said here"}\n' "$id" ;;
    *'"stage":"request"'*mark*)
      body=$(printf '%s' "$line" | sed 's/.*"params":\(.*\)}$/\1/' | sed "s/mark[0-9]*/&$1/")
      printf '{"id":%s,"replace":%s}\n' "$id" "$body" ;;
    *'"stage":"response"'*confidential*)
      body=$(printf '%s' "$line" | sed 's/.*"result":\(.*\)}$/\1/' | sed 's/confidential/covered/g')
      printf '{"id":%s,"replace":%s}\n' "$id" "$body" ;;
    *) printf '{"id":%s}\n' "$id" ;;
  esac
done
"#;

fn program(harness: &Harness, name: &str, text: &str) -> String {
    let path = harness.path().join(name);
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
    path.display().to_string()
}

async fn echoed(client: &Client, tool: &str, text: &str) -> String {
    match client.call_tool(tool, json!({"text": text})).await {
        Ok(result) => result.all_text(),
        Err(error) => error.to_string(),
    }
}

/// In order, for requests and results, every revision and every endpoint; each filter starts once.
#[tokio::test(flavor = "multi_thread")]
async fn filters_can_inspect_change_and_refuse() {
    let harness = Harness::new();
    let filter = program(&harness, "filter", FILTER);
    harness.configure(
        "own.toml",
        &format!(
            "[servers.a]\ncommand = \"SERVER\"\n\
             [filters.alpha]\ncommand = \"{filter}\"\nargs = [\"2\"]\norder = 20\non = [\"request\"]\n\
             [filters.beta]\ncommand = \"{filter}\"\nargs = [\"1\"]\norder = 10\nmethods = [\"tools/c*\"]\n"
        ),
    );
    let running = harness.serve(&["--config", "own.toml"]);
    let alone = running.url.replace("/mcp", "/servers/a/mcp");
    for revision in Revision::ALL {
        for (url, tool) in [(&running.url, "a__echo"), (&alone, "echo")] {
            let connected = client(revision).connect(url.clone()).await.unwrap();
            for (said, heard) in [
                ("plain", "plain"),
                ("mark", "mark12"),
                ("confidential", "covered"),
            ] {
                assert_eq!(
                    echoed(&connected, tool, said).await,
                    heard,
                    "{revision} {url}"
                );
            }
            let refused = echoed(&connected, tool, "forbidden").await;
            let expected = "denied by filter `beta`: not said here";
            assert!(refused.contains(expected), "{revision} {refused}");
            assert!(!connected.list_tools().await.unwrap().is_empty());
        }
    }
    assert_eq!(
        fs::read_to_string(format!("{filter}.starts")).unwrap(),
        "start\nstart\n"
    );
}

/// On exit, timeout or invalid output. An optional filter is skipped, and an exited one is
/// restarted.
#[tokio::test(flavor = "multi_thread")]
async fn failing_required_filter_refuses_requests() {
    let harness = Harness::new();
    let ends = program(&harness, "ends", "#!/bin/sh\nexit 3\n");
    let silent = program(&harness, "silent", "#!/bin/sh\ncat > /dev/null\n");
    let nonsense = program(
        &harness,
        "nonsense",
        "#!/bin/sh\nread -r line\necho yes\ncat > /dev/null\n",
    );
    let once = program(
        &harness,
        "once",
        "#!/bin/sh\necho start >> \"$0.starts\"\nread -r line\necho '{\"id\":1}'\n",
    );
    harness.configure(
        "own.toml",
        &format!(
            "[servers.a]\ncommand = \"SERVER\"\n\
             [filters.ends]\ncommand = \"{ends}\"\nmethods = [\"prompts/list\"]\n\
             [filters.silent]\ncommand = \"{silent}\"\nmethods = [\"resources/list\"]\nseconds = 0.3\n\
             [filters.nonsense]\ncommand = \"{nonsense}\"\nmethods = [\"resources/templates/list\"]\n\
             [filters.extra]\ncommand = \"{ends}\"\nmethods = [\"tools/list\"]\nrequired = false\n\
             [filters.once]\ncommand = \"{once}\"\nmethods = [\"tools/call\"]\non = [\"request\"]\nrequired = false\n"
        ),
    );
    let running = harness.serve(&["--config", "own.toml"]);
    let connected = running.client(Revision::V2026_07_28).await;
    let why = |error: &dyn std::error::Error| error.to_string();
    for (message, expected) in [
        (
            why(&connected.list_prompts().await.unwrap_err()),
            "filter `ends` failed: the process exited",
        ),
        (
            why(&connected.list_resources().await.unwrap_err()),
            "filter `silent` failed: no answer within 300ms",
        ),
        (
            why(&connected.list_resource_templates().await.unwrap_err()),
            "filter `nonsense` failed: its output is not a valid answer",
        ),
    ] {
        assert!(message.contains(expected), "{expected}: {message}");
    }
    assert!(!connected.list_tools().await.unwrap().is_empty());
    let starts = || fs::read_to_string(format!("{once}.starts")).unwrap_or_default();
    let again = async {
        while starts().lines().count() < 2 {
            assert_eq!(echoed(&connected, "a__echo", "hello").await, "hello");
        }
    };
    tokio::time::timeout(PATIENCE, again).await.unwrap();
}

/// A request refused before it was sent is not.
#[tokio::test(flavor = "multi_thread")]
async fn withheld_result_is_reported_as_possibly_done() {
    let script = r#"#!/bin/sh
while IFS= read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/^{"id":\([0-9]*\),.*/\1/p')
  case "$line" in
    *'"stage":"request"'*early*) printf '{"id":%s,"deny":"not at all"}\n' "$id" ;;
    *'"stage":"response"'*refuse*) printf '{"id":%s,"deny":"not shown"}\n' "$id" ;;
    *'"stage":"response"'*end*) exit 3 ;;
    *) printf '{"id":%s}\n' "$id" ;;
  esac
done
"#;
    let harness = Harness::new();
    let filter = program(&harness, "filter", script);
    let text = format!(
        "[servers.a]\ncommand = \"SERVER\"\n\
         [filters.f]\ncommand = \"{filter}\"\nmethods = [\"tools/call\"]\n"
    );
    harness.configure("own.toml", &text);
    for revision in [Revision::V2025_06_18, Revision::V2026_07_28] {
        let running = harness.serve(&["--config", "own.toml"]);
        let connected = client(revision).connect(running.url.clone()).await;
        let connected = connected.unwrap();
        for (said, why, is_done) in [
            ("early", "denied by filter `f`: not at all", false),
            ("refuse", "denied by filter `f`: not shown", true),
            ("end", "filter `f` failed: the process exited", true),
        ] {
            let message = echoed(&connected, "a__echo", said).await;
            assert!(message.contains(why), "{revision} {message}");
            let tells = message.contains("may have had its effect");
            assert_eq!(tells, is_done, "{revision} {message}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn filters_need_approval() {
    let harness = Harness::new();
    let filter = program(&harness, "filter", FILTER);
    harness.configure(
        "mcpact.toml",
        &format!(
            "[servers.a]\nbuiltin = \"everything\"\n[filters.f]\ncommand = \"{filter}\"\nargs = [\"1\"]\n"
        ),
    );
    let shown = harness.run(&["approve"]);
    let shown = String::from_utf8_lossy(&shown.stderr).into_owned();
    assert!(shown.contains(&filter), "{shown}");
    let mut command = harness.command(&["serve", "--listen", "127.0.0.1:0"]);
    command.env("XDG_RUNTIME_DIR", harness.path());
    let (running, mut stderr) = Running::start_with_stderr(command);
    let connected = client(Revision::V2025_11_25)
        .connect(running.url.clone())
        .await;
    let mut overview = String::new();
    // The text is wrapped; the endpoints follow it.
    while !overview.contains("Endpoints:") {
        let read = stderr.read_line(&mut overview).unwrap();
        assert_ne!(read, 0, "{overview}");
    }
    let overview = overview.split_whitespace().collect::<Vec<_>>().join(" ");
    let missing = "filter `f` is not running, matching requests are refused: ";
    let (_, why) = overview.split_once(missing).unwrap();
    assert!(why.contains("mcpact approve"), "{overview}");
    let mut logs = harness.command(&["logs", "f"]);
    let logs = logs
        .env("XDG_RUNTIME_DIR", harness.path())
        .output()
        .unwrap();
    assert_eq!(logs.status.code(), Some(2));
    let message = String::from_utf8_lossy(&logs.stderr).into_owned();
    assert!(message.contains("`f` is a filter"), "{message}");
    let refused = connected
        .unwrap()
        .list_tools()
        .await
        .unwrap_err()
        .to_string();
    assert!(refused.contains("filter `f` failed"), "{refused}");
    assert!(!harness.path().join("filter.starts").exists());
}

#[test]
fn invalid_filters_are_rejected() {
    let harness = Harness::new();
    harness.configure(
        "own.toml",
        "[filters.a]\nargs = [\"x\"]\n[filters.b]\ncommand = \"sudo\"\non = [\"reqest\"]\n",
    );
    let checked = harness.run(&["check", "own.toml"]);
    let message = String::from_utf8_lossy(&checked.stdout).into_owned();
    for expected in [
        "filter `a` has no `command`",
        "did you mean `request`?",
        "sudo",
    ] {
        assert!(message.contains(expected), "{expected}: {message}");
    }
}

/// A filter sees a call by `call_tool` as a direct call.
#[tokio::test(flavor = "multi_thread")]
async fn filters_see_the_tool_of_an_indirect_call() {
    let harness = Harness::new();
    let script = r#"#!/bin/sh
while IFS= read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/^{"id":\([0-9]*\),.*/\1/p')
  case "$line" in
    *call_tool*) printf '{"id":%s}\n' "$id" ;;
    *a__echo*) printf '{"id":%s,"deny":"no echo"}\n' "$id" ;;
    *) printf '{"id":%s}\n' "$id" ;;
  esac
done
"#;
    let filter = program(&harness, "filter", script);
    let text = format!(
        "[gateway.tools]\nmode = \"search\"\n[servers.a]\ncommand = \"SERVER\"\n\
         [filters.names]\ncommand = \"{filter}\"\nmethods = [\"tools/call\"]\non = [\"request\"]\n"
    );
    harness.configure("own.toml", &text);
    let running = harness.serve(&["--config", "own.toml"]);
    for revision in Revision::ALL {
        let connected = running.client(revision).await;
        for (name, expected) in [("a__echo", "no echo"), ("a__greet", "Hello")] {
            let call = json!({"name": name, "arguments": {"text": "x", "name": "Ann"}});
            let said = match connected.call_tool("call_tool", call).await {
                Ok(result) => result.all_text(),
                Err(error) => error.to_string(),
            };
            assert!(said.contains(expected), "{revision} {name}: {said}");
        }
    }
}
