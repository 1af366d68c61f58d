//! Server process that answers with the content of files.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use mcpact_config::{RunSettings, ToolFilter};
use mcpact_engine::client::EraMode;
use mcpact_gateway::{
    Aggregator, AggregatorSettings, Cache, ServerEntry, Target, UpstreamServer, UpstreamSettings,
};
use mcpact_sim::scripted::message::{handshake, text_result};
use mcpact_sim::scripted::process::signal;
use mcpact_spec::{Era, Revision};
use mcpact_transport::stdio::child::ChildCommand;
use serde_json::{Value, json};
use tempfile::TempDir;

/// Time limit of each wait.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Idle time after which a server is stopped.
pub(crate) const SHORT: Duration = Duration::from_millis(50);

/// Records every start and every line. A request is answered with the file named after its method: `tools/list` with
/// `tools-list`, and with the cursor `x` with `tools-list-x`. A content that begins with `error ` is an error; for `never`
/// there is no answer, for `silence` none until the content changes. Without a file the method is unknown. The server
/// waits while the file `hold` exists, and exits at its start while `broken` exists.
///
/// The file `news` contains notifications, which are sent before the next answer to a call; `ID` is replaced by the id of
/// the listen stream.
const SERVER: &str = r#"
echo $$ >> "$NOTES/starts"
[ -e "$NOTES/broken" ] && { echo "it is broken" >&2; exit 3; }
say() { printf '{"jsonrpc":"2.0",%s}\n' "$1"; }
while IFS= read -r line; do
  printf '%s\n' "$line" >> "$NOTES/heard"
  id=$(printf '%s' "$line" | sed -n 's/^{"jsonrpc":"2.0","id":\("[^"]*"\|[0-9][0-9]*\),.*/\1/p')
  method=$(printf '%s' "$line" | sed -n 's/.*"method":"\([^"]*\)".*/\1/p')
  [ -z "$id" ] && continue
  file="$NOTES/$(printf '%s' "$method" | tr / -)"
  cursor=$(printf '%s' "$line" | sed -n 's/.*"cursor":"\([^"]*\)".*/\1/p')
  [ -n "$cursor" ] && file="$file-$cursor"
  while [ -e "$NOTES/hold" ]; do sleep 0.02; done
  case "$method" in
    ping) say "\"id\":$id,\"result\":{}"; continue ;;
    subscriptions/listen) [ -e "$file" ] && { stream=$id; sed "s/ID/$id/g" "$file"; continue; } ;;
    tools/call) [ -e "$NOTES/news" ] && { sed "s/ID/$stream/g" "$NOTES/news"; rm "$NOTES/news"; } ;;
  esac
  if [ ! -e "$file" ]; then say "\"id\":$id,\"error\":{\"code\":-32601,\"message\":\"Method not found\"}"
  else
    while text=$(cat "$file"); [ "$text" = silence ]; do sleep 0.02; done
    case "$text" in
      never) ;;
      'error '*) say "\"id\":$id,\"error\":${text#error }" ;;
      *) say "\"id\":$id,\"result\":$text" ;;
    esac
  fi
done
"#;

/// Script with its answers and the messages that it received.
pub(crate) struct ScriptedProcess {
    notes: TempDir,
    pub(crate) era: Era,
}

impl ScriptedProcess {
    /// Creates a server with these capabilities and one tool.
    pub(crate) fn new(era: Era, capabilities: &Value) -> Self {
        let script = Self {
            notes: tempfile::tempdir().unwrap(),
            era,
        };
        script.introduce(capabilities);
        script.tools(&["one"]);
        script.answers("tools-call", &text_result("done"));
        script
    }

    /// Changes the capabilities from the next start.
    pub(crate) fn introduce(&self, capabilities: &Value) {
        let (method, result) = handshake(
            match self.era {
                Era::Legacy => Revision::V2025_11_25,
                Era::Modern => Revision::V2026_07_28,
            },
            capabilities.clone(),
        );
        self.answers(&method.replace('/', "-"), &result);
    }

    /// Changes the tools.
    pub(crate) fn tools(&self, names: &[&str]) {
        self.answers("tools-list", &self.page(names));
    }

    /// Returns a page with these tools.
    pub(crate) fn page(&self, names: &[&str]) -> Value {
        let tools = names.iter();
        let tools: Vec<Value> = tools
            .map(|name| json!({"name": name, "inputSchema": {"type": "object"}}))
            .collect();
        match self.era {
            Era::Legacy => json!({"tools": tools}),
            Era::Modern => {
                json!({"tools": tools, "resultType": "complete", "ttlMs": 0, "cacheScope": "private"})
            }
        }
    }

    /// Sets the result of a method, by the name of the file.
    pub(crate) fn answers(&self, file: &str, result: &Value) {
        self.put(file, &result.to_string());
    }

    pub(crate) fn put(&self, file: &str, text: &str) {
        // The script may read at any time, so the file is replaced at once.
        let whole = self.path("whole");
        fs::write(&whole, format!("{text}\n")).unwrap();
        fs::rename(whole, self.path(file)).unwrap();
    }

    pub(crate) fn remove(&self, file: &str) {
        fs::remove_file(self.path(file)).unwrap();
    }

    fn path(&self, file: &str) -> std::path::PathBuf {
        self.notes.path().join(file)
    }

    fn lines(&self, file: &str) -> Vec<String> {
        let text = fs::read_to_string(self.path(file)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Kills the last process.
    pub(crate) fn kill(&self) {
        let starts = self.lines("starts");
        signal(starts.last().unwrap().parse().unwrap(), "-KILL");
    }

    /// Returns the number of starts.
    pub(crate) fn starts(&self) -> usize {
        self.lines("starts").len()
    }

    /// Returns the received messages with this method.
    pub(crate) fn received(&self, method: &str) -> Vec<Value> {
        let lines = self.lines("heard");
        let received = lines.iter().map(|line| serde_json::from_str(line).unwrap());
        received
            .filter(|message: &Value| message["method"] == method)
            .collect()
    }

    /// Returns the server as an entry with a short idle time.
    pub(crate) fn member(&self, name: &str) -> Arc<ServerEntry> {
        self.member_kept(name, &Cache::disabled())
    }

    /// As [`member`](Self::member), with a cache.
    pub(crate) fn member_kept(&self, name: &str, cache: &Cache) -> Arc<ServerEntry> {
        let run = RunSettings {
            idle: SHORT,
            ..RunSettings::default()
        };
        self.member_run(name, cache, run)
    }

    /// As [`member_kept`](Self::member_kept), with run settings.
    pub(crate) fn member_run(
        &self,
        name: &str,
        cache: &Cache,
        run: RunSettings,
    ) -> Arc<ServerEntry> {
        let server = self.upstream(name, run);
        let tools = ToolFilter::default();
        ServerEntry::with(name, name, Vec::new(), tools, server, cache)
    }

    /// Returns the server as an entry with this name prefix, which is not stopped.
    pub(crate) fn member_called(&self, name: &str, prefix: &str) -> Arc<ServerEntry> {
        let server = self.upstream(name, RunSettings::default());
        let (tools, cache) = (ToolFilter::default(), Cache::disabled());
        ServerEntry::with(name, prefix, Vec::new(), tools, server, &cache)
    }

    fn upstream(&self, name: &str, run: RunSettings) -> Arc<UpstreamServer> {
        let mut command = ChildCommand::new("sh")
            .with_args(["-c", SERVER])
            .with_env("NOTES", self.notes.path());
        // As in a catalog.
        name.clone_into(&mut command.name);
        let settings = UpstreamSettings {
            name: Some(name.to_owned()),
            mode: match self.era {
                Era::Legacy => EraMode::Legacy,
                Era::Modern => EraMode::Modern,
            },
            run,
            ..UpstreamSettings::default()
        };
        UpstreamServer::new(Target::Command(Box::new(command)), settings).unwrap()
    }
}

/// Aggregator with a short lifetime of lists.
pub(crate) fn impatient(members: Vec<Arc<ServerEntry>>) -> Arc<Aggregator> {
    let settings = AggregatorSettings {
        list_age: SHORT,
        ..AggregatorSettings::default()
    };
    Aggregator::new(members, settings).unwrap()
}

/// Waits until the condition holds.
pub(crate) async fn until(what: &str, is_so: impl Fn() -> bool) {
    let waiting = async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let waited = tokio::time::timeout(PATIENCE, waiting).await;
    assert!(waited.is_ok(), "{what}");
}

pub(crate) async fn until_asleep(member: &ServerEntry) {
    until("it sleeps", || {
        member.server().status().state.as_str() == "asleep"
    })
    .await;
}

/// Returns the number of files in a folder.
pub(crate) fn files(folder: &Path) -> usize {
    fs::read_dir(folder).map_or(0, Iterator::count)
}
