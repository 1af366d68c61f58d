//! Servers that are shell scripts and answer what the test has written down for them.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use mcpact_config::{RunSettings, ToolFilter};
use mcpact_engine::client::EraMode;
use mcpact_gateway::{
    Aggregator, AggregatorSettings, Cache, ServerEntry, Target, UpstreamServer, UpstreamSettings,
};
use mcpact_transport::stdio::child::ChildCommand;
use serde_json::{Value, json};
use tempfile::TempDir;

/// How long anything may take before the test has failed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A time after which nobody has to be idle any longer.
pub(crate) const SHORT: Duration = Duration::from_millis(50);

/// Notes every start and every line. A request is answered with what is in the file that is called after its
/// method: `tools/list` with `tools-list`, and with the cursor `x` with `tools-list-x`. What begins with
/// `error ` is an error, `never` is no answer, and `silence` none as long as it is there; without a file the method is
/// not known. It waits while there is a file `hold`, and does not start while there is a file `broken`.
///
/// It tells who listens what is in `news`: before the next answer to a call, with the id of the stream in the
/// place of `ID`.
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

/// A server of one of the eras.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Speaks {
    Handshake,
    Discover,
}

/// A script, with what it answers and what it heard.
pub(crate) struct Script {
    notes: TempDir,
    pub(crate) era: Speaks,
}

impl Script {
    /// A server that declares this and has one tool.
    pub(crate) fn new(era: Speaks, capabilities: &Value) -> Self {
        let script = Self {
            notes: tempfile::tempdir().unwrap(),
            era,
        };
        script.introduce(capabilities);
        script.tools(&["one"]);
        let said = json!({"content": [{"type": "text", "text": "done"}], "resultType": "complete"});
        script.answers("tools-call", &said);
        script
    }

    /// From its next start on it declares this.
    pub(crate) fn introduce(&self, capabilities: &Value) {
        let info = json!({"name": "script", "version": "1"});
        match self.era {
            Speaks::Handshake => self.answers(
                "initialize",
                &json!({"protocolVersion": "2025-11-25", "capabilities": capabilities, "serverInfo": info}),
            ),
            Speaks::Discover => self.answers(
                "server-discover",
                &json!({
                    "resultType": "complete",
                    "supportedVersions": ["2026-07-28"],
                    "capabilities": capabilities,
                    "ttlMs": 0,
                    "cacheScope": "private",
                    "_meta": {"io.modelcontextprotocol/serverInfo": info},
                }),
            ),
        }
    }

    /// From now on it has these tools.
    pub(crate) fn tools(&self, names: &[&str]) {
        self.answers("tools-list", &self.page(names));
    }

    /// One page with these tools.
    pub(crate) fn page(&self, names: &[&str]) -> Value {
        let tools = names.iter();
        let tools: Vec<Value> = tools
            .map(|name| json!({"name": name, "inputSchema": {"type": "object"}}))
            .collect();
        match self.era {
            Speaks::Handshake => json!({"tools": tools}),
            Speaks::Discover => {
                json!({"tools": tools, "resultType": "complete", "ttlMs": 0, "cacheScope": "private"})
            }
        }
    }

    /// What it answers to a method, by the name of the file.
    pub(crate) fn answers(&self, file: &str, result: &Value) {
        self.put(file, &result.to_string());
    }

    pub(crate) fn put(&self, file: &str, text: &str) {
        // The script may read at any time, so that there is never half of it.
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

    /// It dies at once, as it was started last.
    pub(crate) fn kill(&self) {
        let starts = self.lines("starts");
        let killed = Command::new("kill")
            .args(["-9", starts.last().unwrap()])
            .status();
        assert!(killed.unwrap().success());
    }

    /// How often it was started.
    pub(crate) fn starts(&self) -> usize {
        self.lines("starts").len()
    }

    /// The requests and notifications of this method that it heard.
    pub(crate) fn heard(&self, method: &str) -> Vec<Value> {
        let lines = self.lines("heard");
        let heard = lines.iter().map(|line| serde_json::from_str(line).unwrap());
        heard
            .filter(|message: &Value| message["method"] == method)
            .collect()
    }

    /// It as a member of a hub, stopped as soon as it is idle.
    pub(crate) fn member(&self, name: &str) -> Arc<ServerEntry> {
        self.member_kept(name, &Cache::disabled())
    }

    /// As [`member`](Self::member), with what was kept of it.
    pub(crate) fn member_kept(&self, name: &str, cache: &Cache) -> Arc<ServerEntry> {
        let run = RunSettings {
            idle: SHORT,
            ..RunSettings::default()
        };
        self.member_run(name, cache, run)
    }

    /// As [`member_kept`](Self::member_kept), run in a way of its own.
    pub(crate) fn member_run(
        &self,
        name: &str,
        cache: &Cache,
        run: RunSettings,
    ) -> Arc<ServerEntry> {
        let bridge = self.bridge(name, run);
        let tools = ToolFilter::default();
        ServerEntry::with(name, name, Vec::new(), tools, bridge, cache)
    }

    /// It as a member of a hub with this before its names, which runs on.
    pub(crate) fn member_called(&self, name: &str, prefix: &str) -> Arc<ServerEntry> {
        let bridge = self.bridge(name, RunSettings::default());
        let (tools, nowhere) = (ToolFilter::default(), Cache::disabled());
        ServerEntry::with(name, prefix, Vec::new(), tools, bridge, &nowhere)
    }

    fn bridge(&self, name: &str, run: RunSettings) -> Arc<UpstreamServer> {
        let mut command = ChildCommand::new("sh")
            .with_args(["-c", SERVER])
            .with_env("NOTES", self.notes.path());
        // As a catalog calls it.
        name.clone_into(&mut command.name);
        let settings = UpstreamSettings {
            name: Some(name.to_owned()),
            mode: match self.era {
                Speaks::Handshake => EraMode::Legacy,
                Speaks::Discover => EraMode::Modern,
            },
            run,
            ..UpstreamSettings::default()
        };
        UpstreamServer::new(Target::Command(command), settings).unwrap()
    }
}

/// A hub that looks at lists again after a while as short as possible.
pub(crate) fn impatient(members: Vec<Arc<ServerEntry>>) -> Arc<Aggregator> {
    let settings = AggregatorSettings {
        list_age: SHORT,
        ..AggregatorSettings::default()
    };
    Aggregator::new(members, settings).unwrap()
}

/// Waits until something is true.
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

/// How many files there are in a folder.
pub(crate) fn files(folder: &Path) -> usize {
    fs::read_dir(folder).map_or(0, Iterator::count)
}
