//! Servers that have an instance for each client, whose lists are that client's alone.

use std::fs;
use std::sync::Arc;

use mcpact_config::{RunSettings, Strategy, ToolFilter};
use mcpact_engine::client::EraMode;
use mcpact_gateway::{Aggregator, Cache, ServerEntry, Target, UpstreamServer, UpstreamSettings};
use mcpact_transport::stdio::child::ChildCommand;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::in_process::aggregator;
use crate::scripted_process::{PATIENCE, until};
use crate::wire::Wire;

/// Each process has the tool `login`, or what is in the file `names`, and what it is told to `add`, of which it tells. If the client has roots, it asks
/// for them whenever it is to list its tools, and has a tool that is called after what it is told.
const SERVER: &str = r#"
echo $$ >> "$NOTES/starts"
names=$(cat "$NOTES/names" 2>/dev/null || echo login); all=; has_roots=; asked=0
say() { printf '{"jsonrpc":"2.0",%s}\n' "$1"; }
value() { printf '%s' "$line" | sed -n "s/.*\"$1\":\"\([^\"]*\)\".*/\1/p"; }
while IFS= read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/^{"jsonrpc":"2.0","id":\("[^"]*"\|[0-9][0-9]*\),.*/\1/p')
  method=$(value method)
  [ -z "$id" ] && continue
  case "$method" in
    initialize)
      case "$line" in *'"roots"'*) has_roots=1 ;; esac
      say "\"id\":$id,\"result\":{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{\"tools\":{\"listChanged\":true}},\"serverInfo\":{\"name\":\"s\",\"version\":\"1\"}}" ;;
    tools/list)
      all="$names"
      if [ -n "$has_roots" ]; then
        asked=$((asked + 1)); say "\"id\":\"q$asked\",\"method\":\"roots/list\""
        until IFS= read -r line && case "$line" in *"\"q$asked\""*) true ;; *) false ;; esac; do :; done
        case "$line" in
          *'"error"'*) all="$all nobody" ;;
          *) all="$all in_$(value name)" ;;
        esac
      fi
      tools=
      for name in $all; do tools="$tools,{\"name\":\"$name\",\"inputSchema\":{\"type\":\"object\"}}"; done
      say "\"id\":$id,\"result\":{\"tools\":[${tools#,}]}" ;;
    tools/call)
      add=$(value add)
      [ -n "$add" ] && { names="$names $add"; say "\"method\":\"notifications/tools/list_changed\""; }
      case " $names $all " in
        *" $(value name) "*) say "\"id\":$id,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"$$\"}]}" ;;
        *) say "\"id\":$id,\"error\":{\"code\":-32602,\"message\":\"no such tool\"}" ;;
      esac ;;
    ping) say "\"id\":$id,\"result\":{}" ;;
    *) say "\"id\":$id,\"error\":{\"code\":-32601,\"message\":\"Method not found\"}" ;;
  esac
done
"#;

/// A server with a folder of its own.
struct Keeper {
    notes: TempDir,
}

impl Keeper {
    fn new() -> Self {
        Self {
            notes: tempfile::tempdir().unwrap(),
        }
    }

    fn member(&self, strategy: Strategy, cache: &Cache) -> Arc<ServerEntry> {
        let command = ChildCommand::new("sh")
            .with_args(["-c", SERVER])
            .with_env("NOTES", self.notes.path());
        let settings = UpstreamSettings {
            name: Some(String::from("s")),
            mode: EraMode::Legacy,
            run: RunSettings {
                strategy,
                ..RunSettings::default()
            },
            ..UpstreamSettings::default()
        };
        let bridge = UpstreamServer::new(Target::Command(Box::new(command)), settings).unwrap();
        ServerEntry::with("s", "s", Vec::new(), ToolFilter::default(), bridge, cache)
    }

    fn hub(&self, strategy: Strategy) -> Arc<Aggregator> {
        aggregator(vec![self.member(strategy, &Cache::disabled())])
    }

    fn starts(&self) -> usize {
        let starts = fs::read_to_string(self.notes.path().join("starts"));
        starts.unwrap_or_default().lines().count()
    }
}

/// A client of either era, on a connection of its own.
async fn come(hub: &Arc<Aggregator>, is_modern: bool, capabilities: &Value) -> Wire {
    match is_modern {
        true => Wire::modern(hub, capabilities),
        false => Wire::legacy(hub, capabilities).await,
    }
}

fn names(answer: &Value) -> Vec<&str> {
    let tools = answer["result"]["tools"].as_array();
    assert!(tools.is_some(), "{answer}");
    let tools = tools.unwrap();
    tools.iter().filter_map(|t| t["name"].as_str()).collect()
}

async fn listed(wire: &mut Wire) -> Value {
    wire.ask("tools/list", json!({})).await
}

async fn call(wire: &mut Wire, name: &str, arguments: Value) -> Value {
    wire.ask("tools/call", json!({"name": name, "arguments": arguments}))
        .await
}

/// Until the client is told that the tools have changed.
async fn told(wire: &mut Wire) {
    let hearing =
        async { while wire.recv().await["method"] != "notifications/tools/list_changed" {} };
    let heard = tokio::time::timeout(PATIENCE, hearing).await;
    assert!(heard.is_ok(), "the change is not announced");
}

/// What a client's own instance lists is shown to that client and no other, and can be called by it; others are not
/// told of it in any way.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_an_instance_lists_is_its_clients_alone() {
    for is_modern in [false, true] {
        let keeper = Keeper::new();
        let hub = keeper.hub(Strategy::Stateful);
        let mut a = come(&hub, is_modern, &json!({})).await;
        let mut b = come(&hub, is_modern, &json!({})).await;
        assert_eq!(names(&listed(&mut a).await), ["s__login"]);
        assert_eq!(names(&listed(&mut b).await), ["s__login"]);
        assert!(
            keeper.starts() <= 2,
            "who came first has met it, and one list"
        );

        call(&mut a, "s__login", json!({"add": "secret_of_a"})).await;
        assert_eq!(names(&listed(&mut a).await), ["s__login", "s__secret_of_a"]);
        assert_eq!(
            names(&listed(&mut b).await),
            ["s__login"],
            "no instance yet"
        );
        call(&mut b, "s__login", json!({"add": "own_of_b"})).await;
        assert_eq!(names(&listed(&mut b).await), ["s__login", "s__own_of_b"]);
        assert_eq!(names(&listed(&mut a).await), ["s__login", "s__secret_of_a"]);

        let of_a = call(&mut a, "s__secret_of_a", json!({})).await;
        let of_b = call(&mut b, "s__own_of_b", json!({})).await;
        let by = |answer: &Value| answer["result"]["content"][0]["text"].clone();
        assert!(
            by(&of_a).is_string() && by(&of_b).is_string(),
            "{of_a} {of_b}"
        );
        assert_ne!(by(&of_a), by(&of_b), "each has an instance");

        let refused = call(&mut b, "s__secret_of_a", json!({})).await;
        let message = refused["error"]["message"].as_str().unwrap();
        assert!(message.contains("Available: `s__own_of_b`"), "{message}");
        let refused = call(&mut b, "s__secret", json!({})).await;
        let message = refused["error"]["message"].as_str().unwrap();
        assert!(!message.contains("secret_of_a"), "{message}");
        let mut c = come(&hub, is_modern, &json!({})).await;
        assert_eq!(names(&listed(&mut c).await), ["s__login"]);
    }
}

/// A client is notified that its own instance has changed, and no other client is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_its_client_is_told_of_a_change() {
    let keeper = Keeper::new();
    let hub = keeper.hub(Strategy::Stateful);
    let mut a = come(&hub, false, &json!({})).await;
    let mut b = come(&hub, false, &json!({})).await;
    let mut modern = come(&hub, true, &json!({})).await;
    let filter = json!({"notifications": {"toolsListChanged": true}});
    let stream = modern.begin("subscriptions/listen", filter).await;
    for client in [&mut a, &mut b, &mut modern] {
        listed(client).await;
        call(client, "s__login", json!({})).await;
    }
    a.begin(
        "tools/call",
        json!({"name": "s__login", "arguments": {"add": "x"}}),
    )
    .await;
    told(&mut a).await;
    let add = json!({"name": "s__login", "arguments": {"add": "y"}});
    modern.begin("tools/call", add).await;
    let heard = loop {
        let message = modern.recv().await;
        if message["method"] == "notifications/tools/list_changed" {
            break message;
        }
    };
    let of = &heard["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"];
    assert_eq!(*of, json!(stream), "{heard}");
    // What was said to it before it is answered has been heard by then.
    let id = b.begin("ping", json!({})).await;
    loop {
        let message = b.recv().await;
        assert_ne!(message["method"], "notifications/tools/list_changed");
        if message["id"] == id {
            break;
        }
    }
}

/// The list of the shared instance is kept for later runs, that of a client is not. Clients that only list start one
/// process.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_nobodys_list_is_kept() {
    let (keeper, folder) = (Keeper::new(), tempfile::tempdir().unwrap());
    let cache = Cache::in_dir(folder.path());
    let first = aggregator(vec![keeper.member(Strategy::Stateful, &cache)]);
    let mut a = come(&first, false, &json!({})).await;
    listed(&mut a).await;
    call(&mut a, "s__login", json!({"add": "secret_of_a"})).await;
    assert_eq!(names(&listed(&mut a).await), ["s__login", "s__secret_of_a"]);
    for _ in 0..10 {
        let mut other = come(&first, false, &json!({})).await;
        assert_eq!(names(&listed(&mut other).await), ["s__login"]);
    }
    let starts = keeper.starts();
    assert_eq!(
        starts, 3,
        "the first, the shared one, and that of the caller"
    );
    let written = || {
        let files = fs::read_dir(folder.path()).into_iter().flatten().flatten();
        let texts = files.filter_map(|file| fs::read_to_string(file.path()).ok());
        texts.collect::<String>()
    };
    until("it is written down", || written().contains("login")).await;
    assert!(!written().contains("secret_of_a"), "{}", written());

    let later = aggregator(vec![keeper.member(Strategy::Stateful, &cache)]);
    let mut b = come(&later, false, &json!({})).await;
    assert_eq!(names(&listed(&mut b).await), ["s__login"]);
    assert_eq!(keeper.starts(), starts, "no process is started for it");
}

/// The list of the shared instance from an earlier run is read again when the instance of a client has another one. That
/// client is notified, and so are the others.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_old_list_of_nobody_is_looked_at_again() {
    let (keeper, folder) = (Keeper::new(), tempfile::tempdir().unwrap());
    let cache = Cache::in_dir(folder.path());
    let before = aggregator(vec![keeper.member(Strategy::Stateful, &cache)]);
    listed(&mut come(&before, false, &json!({})).await).await;
    let is_written = || fs::read_dir(folder.path()).is_ok_and(|files| files.count() > 0);
    until("it is written down", is_written).await;

    fs::write(keeper.notes.path().join("names"), "login new").unwrap();
    let later = aggregator(vec![keeper.member(Strategy::Stateful, &cache)]);
    let mut a = come(&later, false, &json!({})).await;
    let mut b = come(&later, false, &json!({})).await;
    for client in [&mut a, &mut b] {
        assert_eq!(names(&listed(client).await), ["s__login"], "as it was");
    }
    let params = json!({"name": "s__login", "arguments": {}});
    a.begin("tools/call", params).await;
    for client in [&mut a, &mut b] {
        told(client).await;
        assert_eq!(names(&listed(client).await), ["s__login", "s__new"]);
    }
}

/// A client that has an instance is told where that has something else than it was shown, and can call what it was
/// not shown; the answers of no client are part of what others see.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_answer_of_a_client_is_in_what_others_see() {
    let roots = json!({"roots": {}});
    let answer = |ask: &Value, name: &str| {
        let uri = format!("file:///{name}");
        json!({"jsonrpc": "2.0", "id": ask["id"], "result": {"roots": [{"uri": uri, "name": name}]}})
    };
    for strategy in [Strategy::Stateful, Strategy::Stateless] {
        let hub = Keeper::new().hub(strategy);
        for _ in 0..2 {
            let mut client = come(&hub, false, &roots).await;
            let id = client.begin("tools/list", json!({})).await;
            let shown = client.recv().await;
            assert_eq!(shown["id"], id, "it is asked nothing: {shown}");
            assert_eq!(names(&shown), ["s__login", "s__nobody"], "{strategy:?}");
        }
    }
    let keeper = Keeper::new();
    let hub = keeper.hub(Strategy::Stateful);
    let mut client = come(&hub, false, &roots).await;
    listed(&mut client).await;
    let params = json!({"name": "s__login", "arguments": {}});
    let id = client.begin("tools/call", params).await;
    let (mut is_told, mut is_answered) = (false, false);
    let hearing = async {
        while !is_told || !is_answered {
            let message = client.recv().await;
            match message["method"].as_str() {
                Some("roots/list") => client.send(&answer(&message, "home")).await,
                Some("notifications/tools/list_changed") => is_told = true,
                _ => is_answered |= message["id"] == id,
            }
        }
    };
    let heard = tokio::time::timeout(PATIENCE, hearing).await;
    assert!(heard.is_ok());
    assert_eq!(
        names(&listed(&mut client).await),
        ["s__login", "s__in_home"]
    );
    let mut other = come(&hub, false, &roots).await;
    assert_eq!(names(&listed(&mut other).await), ["s__login", "s__nobody"]);
    // It has been shown nothing of the kind, and its own instance has it.
    let params = json!({"name": "s__in_home", "arguments": {}});
    let id = other.begin("tools/call", params).await;
    let called = loop {
        let message = other.recv().await;
        if message["method"] == "roots/list" {
            other.send(&answer(&message, "home")).await;
        } else if message["id"] == id {
            break message;
        }
    };
    assert!(called["result"].is_object(), "{called}");
}
