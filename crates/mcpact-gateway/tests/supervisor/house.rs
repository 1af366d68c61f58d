//! A server that is a shell script, and a bridge in front of it.

use std::collections::BTreeSet;
use std::fs;
use std::sync::Arc;
use std::time::Duration;

use mcpact::client::{Client, ClientBuilder, ClientError};
use mcpact_config::RunSettings;
use mcpact_engine::client::EraMode;
use mcpact_gateway::{Bridge, BridgeSettings, Target};
use mcpact_spec::Revision;
use mcpact_transport::memory;
use mcpact_transport::stdio::child::ChildCommand;
use serde_json::json;
use tempfile::TempDir;

/// How long anything may take before the test has failed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Notes every start and every handshake. Its tools say who answered: `who` at once, `slow` when there is a
/// file `go`, `die` never, and `hush` as the last word of a process that lives on, which it notes in a file `hushed`. It hears no `ping` while there is a file `deaf`, does not start while there is a
/// file `broken`, agrees to nothing while there is a file `late`, and speaks 2026-07-28 if there is a file `modern`.
const SERVER: &str = r#"
echo $$ >> "$NOTES/starts"
[ -e "$NOTES/broken" ] && { echo "it is broken" >&2; exit 3; }
answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$1" "$2"; }
said() { answer "$1" "{\"resultType\":\"complete\",\"content\":[{\"type\":\"text\",\"text\":\"$$\"}]}"; }
while IFS= read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9][0-9]*\).*/\1/p')
  case "$line" in
    *'"server/discover"'*)
      [ -e "$NOTES/brittle" ] && exit 4
      id=$(printf '%s' "$line" | sed -n 's/.*"id":\("[^"]*"\|[0-9][0-9]*\).*/\1/p')
      [ -e "$NOTES/modern" ] && answer "$id" '{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}' ;;
    *'"initialize"'*)
      printf '%s\n' "$line" >> "$NOTES/handshakes"
      id=$(printf '%s' "$line" | sed -n 's/.*"id":\("[^"]*"\|[0-9][0-9]*\).*/\1/p')
      while [ -e "$NOTES/late" ]; do sleep 0.02; done
      answer "$id" '{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"sh","version":"1"}}' ;;
    *'"ping"'*) [ -e "$NOTES/deaf" ] || answer "$id" '{}' ;;
    *'"slow"'*) (while [ ! -e "$NOTES/go" ]; do sleep 0.02; done; said "$id") & ;;
    *'"die"'*) exit 5 ;;
    *'"hush"'*) said "$id"; exec 1>&-; sleep 0.1; echo > "$NOTES/hushed" ;;
    *'"tools/call"'*) said "$id" ;;
  esac
done
"#;

pub(crate) struct House {
    notes: TempDir,
    pub(crate) bridge: Arc<Bridge>,
}

impl House {
    /// A bridge that keeps the server so.
    pub(crate) fn new(run: RunSettings) -> Self {
        Self::with(run, EraMode::Legacy, &[])
    }

    /// As [`new`](Self::new), with the eras that are tried and the files that are there from the start.
    pub(crate) fn with(run: RunSettings, mode: EraMode, files: &[&str]) -> Self {
        let notes = tempfile::tempdir().unwrap();
        for file in files {
            fs::write(notes.path().join(file), "").unwrap();
        }
        let command = ChildCommand::new("sh")
            .with_args(["-c", SERVER])
            .with_env("NOTES", notes.path());
        let settings = BridgeSettings {
            mode,
            run,
            ..BridgeSettings::default()
        };
        let bridge = Bridge::new(Target::Command(command), settings).unwrap();
        Self { notes, bridge }
    }

    pub(crate) fn put(&self, file: &str) {
        fs::write(self.notes.path().join(file), "").unwrap();
    }

    pub(crate) fn has(&self, file: &str) -> bool {
        self.notes.path().join(file).exists()
    }

    pub(crate) fn remove(&self, file: &str) {
        fs::remove_file(self.notes.path().join(file)).unwrap();
    }

    fn lines(&self, file: &str) -> Vec<String> {
        let text = fs::read_to_string(self.notes.path().join(file)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// The processes that were ever started.
    pub(crate) fn started(&self) -> Vec<u32> {
        let lines = self.lines("starts");
        lines.iter().map(|line| line.parse().unwrap()).collect()
    }

    /// What the server was told in its handshakes.
    pub(crate) fn handshakes(&self) -> Vec<String> {
        self.lines("handshakes")
    }

    /// Those of them that are alive.
    pub(crate) fn alive(&self) -> BTreeSet<u32> {
        self.started()
            .into_iter()
            .filter(|id| is_alive(*id))
            .collect()
    }

    /// A client that speaks one revision only and declares nothing.
    pub(crate) fn builder(&self, revision: Revision) -> ClientBuilder {
        Client::builder("guest", "1").mode(EraMode::Pin(revision))
    }

    pub(crate) async fn try_connect(&self, builder: ClientBuilder) -> Result<Client, ClientError> {
        let (ours, theirs) = memory::pair();
        let bridge = Arc::clone(&self.bridge);
        tokio::spawn(async move { bridge.serve(theirs).await });
        builder.connect(ours).await
    }

    pub(crate) async fn connect(&self, revision: Revision) -> Client {
        self.try_connect(self.builder(revision)).await.unwrap()
    }

    /// How the server is, and its instances, in words.
    pub(crate) fn state(&self) -> String {
        let status = self.bridge.status();
        let instances = status.instances.iter().map(|one| one.state.as_str());
        let words: Vec<&str> = std::iter::once(status.state.as_str())
            .chain(instances)
            .collect();
        words.join(" ")
    }

    /// Waits until something is true.
    pub(crate) async fn until(&self, what: &str, is_so: impl Fn(&Self) -> bool) {
        let waiting = async {
            while !is_so(self) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let waited = tokio::time::timeout(PATIENCE, waiting).await;
        assert!(waited.is_ok(), "{what}: {:#?}", self.bridge.status());
    }
}

/// Which process answered.
pub(crate) async fn call(client: &Client, tool: &str) -> Result<u32, ClientError> {
    let result = client.call_tool(tool, json!({})).await?;
    let text = result.content[0].as_text().unwrap().to_owned();
    Ok(text.parse().unwrap())
}

/// A call that goes on beside the test.
pub(crate) fn calling(
    client: &Client,
    tool: &'static str,
) -> tokio::task::JoinHandle<Result<u32, ClientError>> {
    let client = client.clone();
    tokio::spawn(async move { call(&client, tool).await })
}

pub(crate) fn is_alive(id: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    let state = stat.rsplit(')').next().unwrap_or_default();
    !matches!(
        state.split_ascii_whitespace().next(),
        None | Some("Z" | "X")
    )
}

/// Kills a process as nobody expects it.
pub(crate) fn kill(id: u32) {
    signal("-KILL", id);
}

/// Lets a process do nothing at all.
pub(crate) fn freeze(id: u32) {
    signal("-STOP", id);
}

/// Lets it go on.
pub(crate) fn thaw(id: u32) {
    signal("-CONT", id);
}

fn signal(name: &str, id: u32) {
    let sent = std::process::Command::new("kill")
        .args([name, &id.to_string()])
        .status();
    assert!(sent.unwrap().success());
}

/// An error with its causes.
pub(crate) fn told(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text = format!("{text}: {cause}");
        next = cause.source();
    }
    text
}
