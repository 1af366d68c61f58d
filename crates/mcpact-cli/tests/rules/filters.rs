//! Programs that look at requests and results.

use std::fs;
use std::io::BufRead as _;
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use mcpact::client::Client;
use mcpact_spec::Revision;
use serde_json::json;

use crate::place::{Place, Running, client};

/// Nothing here takes longer.
const PATIENCE: Duration = Duration::from_secs(60);

/// Puts its own mark behind every `mark` of a request, refuses what is `forbidden`, and covers what is
/// `confidential` in a result.
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

fn program(place: &Place, name: &str, text: &str) -> String {
    let path = place.path().join(name);
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

/// Filters are asked in order about requests and results, and may change or refuse them, for clients of
/// every revision and at every address; each is started once.
#[tokio::test(flavor = "multi_thread")]
async fn filters_see_change_and_refuse() {
    let place = Place::new();
    let filter = program(&place, "filter", FILTER);
    place.configure(
        "own.toml",
        &format!(
            "[servers.a]\ncommand = \"SERVER\"\n\
             [filters.alpha]\ncommand = \"{filter}\"\nargs = [\"2\"]\norder = 20\non = [\"request\"]\n\
             [filters.beta]\ncommand = \"{filter}\"\nargs = [\"1\"]\norder = 10\nmethods = [\"tools/c*\"]\n"
        ),
    );
    let running = place.serve(&["--config", "own.toml"]);
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
            let expected = "filter `beta` refused this: not said here";
            assert!(refused.contains(expected), "{revision} {refused}");
            assert!(!connected.list_tools().await.unwrap().is_empty());
        }
    }
    assert_eq!(
        fs::read_to_string(format!("{filter}.starts")).unwrap(),
        "start\nstart\n"
    );
}

/// Nothing passes a filter that is required and cannot be asked, whether it ends, is silent or talks
/// nonsense; one that is not required is left out. A filter that died is started again.
#[tokio::test(flavor = "multi_thread")]
async fn a_filter_that_fails_lets_nothing_pass() {
    let place = Place::new();
    let ends = program(&place, "ends", "#!/bin/sh\nexit 3\n");
    let silent = program(&place, "silent", "#!/bin/sh\ncat > /dev/null\n");
    let nonsense = program(
        &place,
        "nonsense",
        "#!/bin/sh\nread -r line\necho yes\ncat > /dev/null\n",
    );
    let once = program(
        &place,
        "once",
        "#!/bin/sh\necho start >> \"$0.starts\"\nread -r line\necho '{\"id\":1}'\n",
    );
    place.configure(
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
    let running = place.serve(&["--config", "own.toml"]);
    let connected = running.client(Revision::V2026_07_28).await;
    let why = |error: &dyn std::error::Error| error.to_string();
    for (told, expected) in [
        (
            why(&connected.list_prompts().await.unwrap_err()),
            "filter `ends` cannot be asked: it ended",
        ),
        (
            why(&connected.list_resources().await.unwrap_err()),
            "filter `silent` cannot be asked: it took longer than 300ms",
        ),
        (
            why(&connected.list_resource_templates().await.unwrap_err()),
            "filter `nonsense` cannot be asked: it wrote something that is no answer",
        ),
    ] {
        assert!(told.contains(expected), "{expected}: {told}");
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

/// Who does not get a result, because a filter refuses it or cannot be asked about it, is told that the call has
/// reached its server; who is refused before is not.
#[tokio::test(flavor = "multi_thread")]
async fn a_result_that_is_withheld_was_made() {
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
    let place = Place::new();
    let filter = program(&place, "filter", script);
    let text = format!(
        "[servers.a]\ncommand = \"SERVER\"\n\
         [filters.f]\ncommand = \"{filter}\"\nmethods = [\"tools/call\"]\n"
    );
    place.configure("own.toml", &text);
    for revision in [Revision::V2025_06_18, Revision::V2026_07_28] {
        let running = place.serve(&["--config", "own.toml"]);
        let connected = client(revision).connect(running.url.clone()).await;
        let connected = connected.unwrap();
        for (said, why, is_done) in [
            ("early", "filter `f` refused this: not at all", false),
            ("refuse", "filter `f` refused this: not shown", true),
            ("end", "filter `f` cannot be asked: it ended", true),
        ] {
            let told = echoed(&connected, "a__echo", said).await;
            assert!(told.contains(why), "{revision} {told}");
            let tells = told.contains("what was asked for may have been done");
            assert_eq!(tells, is_done, "{revision} {told}");
        }
    }
}

/// A filter of a config that was merely found is not started without a yes, and nothing passes it.
#[tokio::test(flavor = "multi_thread")]
async fn filters_need_approval_like_servers() {
    let place = Place::new();
    let filter = program(&place, "filter", FILTER);
    place.configure(
        "mcpact.toml",
        &format!(
            "[servers.a]\nbuiltin = \"everything\"\n[filters.f]\ncommand = \"{filter}\"\nargs = [\"1\"]\n"
        ),
    );
    let shown = place.run(&["approve"]);
    let shown = String::from_utf8_lossy(&shown.stderr).into_owned();
    assert!(shown.contains(&filter), "{shown}");
    let mut command = place.command(&["serve", "--listen", "127.0.0.1:0"]);
    command.env("XDG_RUNTIME_DIR", place.path());
    let (running, mut said) = Running::start_heard(command);
    let connected = client(Revision::V2025_11_25)
        .connect(running.url.clone())
        .await;
    let mut told = String::new();
    while !told.contains("what it should see is refused") {
        told.clear();
        assert_ne!(said.read_line(&mut told).unwrap(), 0, "it is not told");
    }
    assert!(told.contains("filter `f` is missing"), "{told}");
    assert!(told.contains("mcpact approve"), "{told}");
    let mut logs = place.command(&["logs", "f"]);
    let logs = logs.env("XDG_RUNTIME_DIR", place.path()).output().unwrap();
    assert_eq!(logs.status.code(), Some(2));
    let told = String::from_utf8_lossy(&logs.stderr).into_owned();
    assert!(told.contains("`f` is a filter"), "{told}");
    let refused = connected
        .unwrap()
        .list_tools()
        .await
        .unwrap_err()
        .to_string();
    assert!(refused.contains("filter `f` cannot be asked"), "{refused}");
    assert!(!place.path().join("filter.starts").exists());
}

/// What is wrong with a filter is told like everything else.
#[test]
fn wrong_filters_are_told() {
    let place = Place::new();
    place.configure(
        "own.toml",
        "[filters.a]\nargs = [\"x\"]\n[filters.b]\ncommand = \"sudo\"\non = [\"reqest\"]\n",
    );
    let checked = place.run(&["check", "own.toml"]);
    let told = String::from_utf8_lossy(&checked.stdout).into_owned();
    for expected in [
        "filter `a` has no `command`",
        "did you mean `request`?",
        "sudo",
    ] {
        assert!(told.contains(expected), "{expected}: {told}");
    }
}
