//! Ownership of a shared connection: a server that keeps data of one client, and the clients that may share it.

use std::sync::Arc;
use std::time::Duration;

use mcpact::client::{Client, ClientBuilder};
use mcpact::model::Root;
use mcpact_gateway::Gateway;
use mcpact_spec::Revision;
use serde_json::{Map, json};
use tempfile::TempDir;
use tokio::sync::Notify;

use crate::harness::{MORTAL, client, gateway};

/// Server that keeps the roots of a client: it asks for them outside of calls after a change notification, and during
/// its tool `learn`. Its tools return the process id and the roots; `slow` creates a file `slow` and answers once a
/// file `go` exists.
const KEEPER: &str = r##"
commands.shells = "warn"
[servers.m]
command = "sh"
args = ["-c", '''
kept=nothing
learning=
say() { printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"%s %s"}]}}\n' "$1" "$$" "$kept"; }
ask() { printf '{"jsonrpc":"2.0","id":"roots","method":"roots/list"}\n'; }
while IFS= read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\("[^"]*"\|[0-9][0-9]*\).*/\1/p')
  case "$line" in
    *'"initialize"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"sh","version":"1"}}}\n' "$id" ;;
    *'"tools/list"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"says","inputSchema":{"type":"object"}},{"name":"learn","inputSchema":{"type":"object"}},{"name":"slow","inputSchema":{"type":"object"}}]}}\n' "$id" ;;
    *'roots/list_changed"'*) ask ;;
    *'"id":"roots"'*)
      uri=$(printf '%s' "$line" | sed -n 's/.*"uri":"\([^"]*\)".*/\1/p')
      kept=$uri
      [ -n "$uri" ] || kept=refused
      [ -n "$learning" ] && say "$learning"
      learning= ;;
    *'"learn"'*) learning=$id; ask ;;
    *'"slow"'*) echo > "$NOTES/slow"; (while [ ! -e "$NOTES/go" ]; do sleep 0.02; done; say "$id") & ;;
    *'"says"'*) say "$id" ;;
  esac
done
''']
era = "legacy"
"##;

const LEGACY: Revision = Revision::V2025_11_25;

const ADDRESSES: [(&str, &str); 2] = [("/mcp", "m__"), ("/servers/m/mcp", "")];

/// Time limit of each wait.
const PATIENCE: Duration = Duration::from_secs(60);

struct Scene {
    gateway: Arc<Gateway>,
    url: String,
    prefix: &'static str,
    notes: TempDir,
}

impl Scene {
    async fn new((path, prefix): (&str, &'static str), more: &str) -> Self {
        let notes = tempfile::tempdir().unwrap();
        let env = format!("env = {{ NOTES = {:?} }}\n", notes.path());
        let (gateway, origin) = gateway(&format!("{KEEPER}{env}{more}")).await;
        Self {
            gateway,
            url: format!("{origin}{path}"),
            prefix,
            notes,
        }
    }

    /// Connects a client with its own root directory.
    async fn client(&self, revision: Revision, name: &str) -> Client {
        self.asked_client(revision, name).await.0
    }

    /// Connects a client with its own root directory; also returns a notification for requests of its roots.
    async fn asked_client(&self, revision: Revision, name: &str) -> (Client, Arc<Notify>) {
        let asked = Arc::<Notify>::default();
        let (tell, root) = (Arc::clone(&asked), Root::new(format!("file:///{name}")));
        let builder = client(revision).on_roots(move || {
            tell.notify_one();
            let roots = vec![root.clone()];
            async move { Ok(roots) }
        });
        (builder.connect(self.url.clone()).await.unwrap(), asked)
    }

    /// Calls a tool; returns the process that answered and what it keeps.
    async fn answer_of(&self, client: &Client, tool: &str) -> (String, String) {
        let name = format!("{}{tool}", self.prefix);
        let answer = client.call_tool(&name, json!({})).await.unwrap().all_text();
        let (process, kept) = answer.split_once(' ').unwrap();
        (process.to_owned(), kept.to_owned())
    }

    /// Connects a client that the server asked for its roots outside of a call; also returns the process that knows
    /// them.
    async fn client_with_known_roots(&self, name: &str) -> (Client, String) {
        let (ann, asked) = self.asked_client(LEGACY, name).await;
        let (first, kept) = self.answer_of(&ann, "says").await;
        assert_eq!(kept, "nothing");
        ann.roots_changed().await.unwrap();
        // No call is in flight, so the question belongs to the client.
        let waited = tokio::time::timeout(PATIENCE, asked.notified()).await;
        assert!(waited.is_ok(), "{:#?}", self.gateway.status(None));
        let kept = async {
            while self.answer_of(&ann, "says").await != (first.clone(), format!("file:///{name}")) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(PATIENCE, kept).await.unwrap();
        (ann, first)
    }

    async fn until(&self, what: &str, is_so: impl Fn(&Gateway) -> bool) {
        let waiting = async {
            while !is_so(&self.gateway) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let waited = tokio::time::timeout(PATIENCE, waiting).await;
        assert!(waited.is_ok(), "{what}: {:#?}", self.gateway.status(None));
    }
}

/// State that one client gave to a shared server is never visible to another client, even after the first one left; the
/// first one keeps it while it is connected.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn roots_of_one_client_never_reach_another() {
    for address in ADDRESSES {
        for strategy in ["stateless", "persistent"] {
            for stays in [true, false] {
                let what = format!("{strategy} at {}, ann stays: {stays}", address.0);
                let more = format!("strategy = \"{strategy}\"\n");
                let scene = Scene::new(address, &more).await;
                let (ann, first) = scene.client_with_known_roots("ann").await;
                let ann = match stays {
                    true => Some(ann),
                    false => {
                        ann.close().await;
                        None
                    }
                };
                let bob = scene.client(LEGACY, "bob").await;
                for _ in 0..2 {
                    let (process, kept) = scene.answer_of(&bob, "says").await;
                    assert_ne!(process, first, "{what}");
                    assert_eq!(kept, "nothing", "{what}");
                }
                if let Some(ann) = ann {
                    let (process, kept) = scene.answer_of(&ann, "says").await;
                    assert_eq!((process, &*kept), (first, "file:///ann"), "{what}");
                }
            }
        }
    }
}

/// With one instance, a new client waits for the calls of the owner and then gets another instance; no client waits
/// forever and no call is lost.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_take_turns_when_instances_are_limited() {
    for address in ADDRESSES {
        let scene = Scene::new(address, "max_instances = 1\n").await;
        let (ann, first) = scene.client_with_known_roots("ann").await;
        let bob = scene.client(LEGACY, "bob").await;
        let slow = scene.answer_of(&ann, "slow");
        let waiting = async {
            let slow = scene.notes.path().join("slow");
            scene.until("ann's call runs", |_| slow.exists()).await;
            scene.answer_of(&bob, "says").await
        };
        let go = async {
            let is_waiting = |gateway: &Gateway| {
                let status = gateway.status(None).unwrap();
                status.servers.iter().any(|server| server.queued > 0)
            };
            scene.until("bob waits", is_waiting).await;
            std::fs::write(scene.notes.path().join("go"), "").unwrap();
        };
        let (slow, (second, kept), ()) = tokio::join!(slow, waiting, go);
        assert_eq!(slow, (first.clone(), String::from("file:///ann")));
        assert_eq!(kept, "nothing");
        assert_ne!(second, first);
        for client in [&ann, &bob] {
            let answer = scene.answer_of(client, "says").await;
            assert_eq!(answer, (second.clone(), String::from("nothing")));
        }
    }
}

/// A stdio server does not say why it asks for roots, so it may keep those that it got during a call, too.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn roots_asked_during_a_call_claim_the_connection() {
    for address in ADDRESSES {
        for revision in [LEGACY, Revision::V2026_07_28] {
            for more in ["", "max_instances = 1\n"] {
                let what = format!("{revision} at {}, {more}", address.0);
                let scene = Scene::new(address, more).await;
                let ann = scene.client(revision, "ann").await;
                let bob = scene.client(revision, "bob").await;
                for _ in 0..2 {
                    let (first, kept) = scene.answer_of(&ann, "learn").await;
                    assert_eq!(kept, "file:///ann", "{what}");
                    let (second, kept) = scene.answer_of(&bob, "says").await;
                    assert_ne!(kept, "file:///ann", "{what}");
                    assert_ne!(first, second, "{what}");
                    let (_, kept) = scene.answer_of(&bob, "learn").await;
                    assert_eq!(kept, "file:///bob", "{what}");
                    let (_, kept) = scene.answer_of(&ann, "says").await;
                    assert_ne!(kept, "file:///bob", "{what}");
                }
            }
        }
    }
}

/// A singleton is shared by all clients, as configured.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn singletons_stay_shared() {
    for address in ADDRESSES {
        let more = "strategy = \"singleton\"\ndeclare = [\"roots\"]\n";
        let scene = Scene::new(address, more).await;
        let ann = scene.client(LEGACY, "ann").await;
        let learned = scene.answer_of(&ann, "learn").await;
        assert_eq!(learned.1, "file:///ann");
        let bob = scene.client(LEGACY, "bob").await;
        assert_eq!(scene.answer_of(&bob, "says").await, learned);
    }
}

/// N20, N22: clients share an instance of a legacy server only if they declare the same experimental and unknown
/// capabilities, at every endpoint; the instance gets exactly these.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_with_other_experimental_capabilities_do_not_share() {
    let opening = r#"*'"initialize"'*)
      seen=plain
      case "$line" in *'"magic"'*) seen=magic ;; esac
      result="#;
    let reporting = MORTAL
        .replace("*'\"initialize\"'*) result=", opening)
        .replace(r#"\"$$\""#, r#"\"$$ $seen\""#);
    for (path, tool) in [("/mcp", "m__who"), ("/servers/m/mcp", "who")] {
        for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
            let (_gateway, origin) = gateway(&reporting).await;
            let says = async |builder: ClientBuilder| {
                let connected = builder.connect(format!("{origin}{path}")).await.unwrap();
                let said = connected.call_tool(tool, json!({})).await.unwrap();
                said.all_text()
            };
            let plain = || client(revision);
            let magic = || client(revision).experimental("magic", Map::new());
            let [first, second] = [says(plain()).await, says(plain()).await];
            assert_eq!(first, second, "{revision} at {path}");
            let [third, fourth] = [says(magic()).await, says(magic()).await];
            assert_eq!(third, fourth, "{revision} at {path}");
            assert!(first.ends_with(" plain"), "{revision} at {path}: {first}");
            assert!(third.ends_with(" magic"), "{revision} at {path}: {third}");
        }
    }
}
