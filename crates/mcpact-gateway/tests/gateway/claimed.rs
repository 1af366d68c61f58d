//! A server that clients share without knowing it, and that keeps what one of them has told it.

use std::sync::Arc;
use std::time::Duration;

use mcpact::client::Client;
use mcpact::model::Root;
use mcpact_gateway::Gateway;
use mcpact_spec::Revision;
use serde_json::json;
use tempfile::TempDir;
use tokio::sync::Notify;

use crate::place::{client, gateway};

/// Keeps the roots that it is told: outside of any call when it hears that there are others, and during its tool `learn`.
/// Its tools say which process answers and what it keeps; `slow` makes a file `slow`, and answers when there is a file `go`.
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

/// How long anything may take before the test has failed.
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

    /// A client that works in a folder of its own.
    async fn client(&self, revision: Revision, name: &str) -> Client {
        self.asked_client(revision, name).await.0
    }

    /// The same, and what tells when it is asked where that is.
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

    /// Which process answers a tool, and what that keeps.
    async fn told(&self, client: &Client, tool: &str) -> (String, String) {
        let name = format!("{}{tool}", self.prefix);
        let told = client.call_tool(&name, json!({})).await.unwrap().all_text();
        let (process, kept) = told.split_once(' ').unwrap();
        (process.to_owned(), kept.to_owned())
    }

    /// A client that has told the server outside of any call where it works; the process that knows.
    async fn confiding(&self, name: &str) -> (Client, String) {
        let (ann, asked) = self.asked_client(LEGACY, name).await;
        let (first, kept) = self.told(&ann, "says").await;
        assert_eq!(kept, "nothing");
        ann.roots_changed().await.unwrap();
        // No call runs that the question could be about.
        let waited = tokio::time::timeout(PATIENCE, asked.notified()).await;
        assert!(waited.is_ok(), "{:#?}", self.gateway.status(None));
        let kept = async {
            while self.told(&ann, "says").await != (first.clone(), format!("file:///{name}")) {
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

/// What one client has told a server that it shares with others is met by no other, whether it is still there or
/// has gone; as long as it is there, it has what it told.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_meets_what_another_has_told() {
    for address in ADDRESSES {
        for strategy in ["stateless", "persistent"] {
            for stays in [true, false] {
                let what = format!("{strategy} at {}, ann stays: {stays}", address.0);
                let more = format!("strategy = \"{strategy}\"\n");
                let scene = Scene::new(address, &more).await;
                let (ann, first) = scene.confiding("ann").await;
                let ann = match stays {
                    true => Some(ann),
                    false => {
                        ann.close().await;
                        None
                    }
                };
                let bob = scene.client(LEGACY, "bob").await;
                for _ in 0..2 {
                    let (process, kept) = scene.told(&bob, "says").await;
                    assert_ne!(process, first, "{what}");
                    assert_eq!(kept, "nothing", "{what}");
                }
                if let Some(ann) = ann {
                    let (process, kept) = scene.told(&ann, "says").await;
                    assert_eq!((process, &*kept), (first, "file:///ann"), "{what}");
                }
            }
        }
    }
}

/// Where there may be one instance only, whoever comes waits for the calls of the one whose it is, and then has
/// another one; nobody waits for ever, and no call is lost.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_there_is_no_room_one_goes_after_the_other() {
    for address in ADDRESSES {
        let scene = Scene::new(address, "max_instances = 1\n").await;
        let (ann, first) = scene.confiding("ann").await;
        let bob = scene.client(LEGACY, "bob").await;
        let slow = scene.told(&ann, "slow");
        let waiting = async {
            let slow = scene.notes.path().join("slow");
            scene.until("ann's call runs", |_| slow.exists()).await;
            scene.told(&bob, "says").await
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
            let told = scene.told(client, "says").await;
            assert_eq!(told, (second.clone(), String::from("nothing")));
        }
    }
}

/// A server on a pipe does not say what it wants to know roots for, so that it may keep those that it was told during
/// a call, too.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn roots_that_were_told_during_a_call_may_stay() {
    for address in ADDRESSES {
        for revision in [LEGACY, Revision::V2026_07_28] {
            for more in ["", "max_instances = 1\n"] {
                let what = format!("{revision} at {}, {more}", address.0);
                let scene = Scene::new(address, more).await;
                let ann = scene.client(revision, "ann").await;
                let bob = scene.client(revision, "bob").await;
                for _ in 0..2 {
                    let (first, kept) = scene.told(&ann, "learn").await;
                    assert_eq!(kept, "file:///ann", "{what}");
                    let (second, kept) = scene.told(&bob, "says").await;
                    assert_ne!(kept, "file:///ann", "{what}");
                    assert_ne!(first, second, "{what}");
                    let (_, kept) = scene.told(&bob, "learn").await;
                    assert_eq!(kept, "file:///bob", "{what}");
                    let (_, kept) = scene.told(&ann, "says").await;
                    assert_ne!(kept, "file:///bob", "{what}");
                }
            }
        }
    }
}

/// A singleton is everybody's, because its config says so.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_singleton_is_everybodys_whatever_it_was_told() {
    for address in ADDRESSES {
        let more = "strategy = \"singleton\"\ndeclare = [\"roots\"]\n";
        let scene = Scene::new(address, more).await;
        let ann = scene.client(LEGACY, "ann").await;
        let learned = scene.told(&ann, "learn").await;
        assert_eq!(learned.1, "file:///ann");
        let bob = scene.client(LEGACY, "bob").await;
        assert_eq!(scene.told(&bob, "says").await, learned);
    }
}
