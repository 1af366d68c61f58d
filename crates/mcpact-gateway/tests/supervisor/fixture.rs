//! Upstream server with a shell script as its process.

use std::collections::BTreeSet;
use std::fs;
use std::sync::Arc;
use std::time::Duration;

use mcpact::client::{Client, ClientBuilder, ClientError};
use mcpact::model::ElicitResult;
use mcpact_config::RunSettings;
use mcpact_engine::client::EraMode;
use mcpact_gateway::{ServerStatus, Target, UpstreamServer, UpstreamSettings};
use mcpact_sim::scripted::connect;
use mcpact_sim::scripted::process::signal;
use mcpact_spec::Revision;
use mcpact_transport::stdio::child::ChildCommand;
use serde_json::{Map, json};
use tempfile::TempDir;

/// Time after which a test fails.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);

/// Records every start and every handshake. Its tools return the process id: `pid` at once, `slow` when the file `go`
/// exists. `die` exits without an answer, and `hush` answers, closes stdout and creates the file `hushed`.
///
/// Files control it: it ignores `ping` while `deaf` exists, exits at start while `broken` exists, delays the handshake while
/// `late` exists, exits on `server/discover` while `brittle` exists, and speaks 2026-07-28 if `modern` exists.
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
    *'"tools/list"'*) answer "$id" '{"tools":[{"name":"die","inputSchema":{"type":"object"}}]}' ;;
    *'"ping"'*) [ -e "$NOTES/deaf" ] || answer "$id" '{}' ;;
    *'"slow"'*) (while [ ! -e "$NOTES/go" ]; do sleep 0.02; done; said "$id") & ;;
    *'"die"'*) exit 5 ;;
    *'"hush"'*) said "$id"; exec 1>&-; sleep 0.1; echo > "$NOTES/hushed" ;;
    *'"tools/call"'*) said "$id" ;;
  esac
done
"#;

pub(crate) struct Fixture {
    notes: TempDir,
    pub(crate) bridge: Arc<UpstreamServer>,
}

impl Fixture {
    /// Creates an upstream server with these settings.
    pub(crate) fn new(run: RunSettings) -> Self {
        Self::with(run, EraMode::Legacy, &[])
    }

    /// Creates an upstream server with these settings, eras and initial files.
    pub(crate) fn with(run: RunSettings, mode: EraMode, files: &[&str]) -> Self {
        let notes = tempfile::tempdir().unwrap();
        for file in files {
            fs::write(notes.path().join(file), "").unwrap();
        }
        let command = ChildCommand::new("sh")
            .with_args(["-c", SERVER])
            .with_env("NOTES", notes.path());
        let settings = UpstreamSettings {
            mode,
            run,
            ..UpstreamSettings::default()
        };
        let bridge = UpstreamServer::new(Target::Command(Box::new(command)), settings).unwrap();
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

    /// Returns the ids of all processes ever started.
    pub(crate) fn started(&self) -> Vec<u32> {
        let lines = self.lines("starts");
        lines.iter().map(|line| line.parse().unwrap()).collect()
    }

    /// Returns the `initialize` requests that the server got.
    pub(crate) fn handshakes(&self) -> Vec<String> {
        self.lines("handshakes")
    }

    /// Returns the ids of the running processes.
    pub(crate) fn alive(&self) -> BTreeSet<u32> {
        self.started()
            .into_iter()
            .filter(|id| is_alive(*id))
            .collect()
    }

    /// Returns a client with one revision and no capabilities.
    pub(crate) fn builder(&self, revision: Revision) -> ClientBuilder {
        Client::builder("guest", "1").mode(EraMode::Pin(revision))
    }

    pub(crate) async fn try_connect(&self, builder: ClientBuilder) -> Result<Client, ClientError> {
        builder.connect(connect(&self.bridge)).await
    }

    pub(crate) async fn connect(&self, revision: Revision) -> Client {
        self.try_connect(self.builder(revision)).await.unwrap()
    }

    /// Connects a client that declares elicitation.
    pub(crate) async fn connect_with_elicitation(&self, revision: Revision) -> Client {
        let builder = self
            .builder(revision)
            .on_elicitation(|_| async { Ok(ElicitResult::accept(Map::new())) });
        self.try_connect(builder).await.unwrap()
    }

    /// Returns the state of the server, followed by those of its instances.
    pub(crate) fn state(&self) -> String {
        let status = self.bridge.status();
        let instances = status.instances.iter().map(|one| one.state.as_str());
        let words: Vec<&str> = std::iter::once(status.state.as_str())
            .chain(instances)
            .collect();
        words.join(" ")
    }

    /// Waits until a condition is true.
    pub(crate) async fn until(&self, is_true: impl Fn(&Self) -> bool) {
        let waiting = async {
            while !is_true(self) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let waited = tokio::time::timeout(TIMEOUT, waiting).await;
        assert!(waited.is_ok(), "{:#?}", self.bridge.status());
    }

    /// Waits for a [`state`](Self::state).
    pub(crate) async fn until_state(&self, expected: &str) {
        self.until(|fixture| fixture.state() == expected).await;
    }

    /// Waits for a status of the server.
    pub(crate) async fn until_status(&self, is_true: impl Fn(ServerStatus) -> bool) {
        self.until(|fixture| is_true(fixture.bridge.status())).await;
    }
}

/// Calls a tool and returns the id of the process that answered.
pub(crate) async fn call(client: &Client, tool: &str) -> Result<u32, ClientError> {
    let result = client.call_tool(tool, json!({})).await?;
    let text = result.content[0].as_text().unwrap().to_owned();
    Ok(text.parse().unwrap())
}

/// Calls a tool in the background.
pub(crate) fn spawn_call(
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

pub(crate) fn kill(id: u32) {
    signal(id, "-KILL");
}

pub(crate) fn freeze(id: u32) {
    signal(id, "-STOP");
}

pub(crate) fn thaw(id: u32) {
    signal(id, "-CONT");
}

/// Returns an error with its causes.
pub(crate) fn error_text(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text = format!("{text}: {cause}");
        next = cause.source();
    }
    text
}
