//! Metrics of filters.

use mcpact_spec::Revision;
use serde_json::json;

use crate::harness::{client, gateway};
use crate::metrics::{metrics, value};

/// Config with a filter that denies `early` requests and `late` results, and exits on `last` results.
const FILTERED: &str = r##"
commands.shells = "warn"
[servers.new]
builtin = "everything"
[filters.f]
command = "sh"
args = ["-c", '''
while IFS= read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/^{"id":\([0-9]*\),.*/\1/p')
  case "$line" in
    *'"stage":"request"'*early*|*'"stage":"response"'*late*) printf '{"id":%s,"deny":"no"}\n' "$id" ;;
    *'"stage":"response"'*last*) exit 3 ;;
    *) printf '{"id":%s}\n' "$id" ;;
  esac
done
''']
"##;

/// Requests and results that a filter denies, and failures of the filter, are counted at every endpoint.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn filter_refusals_are_counted() {
    for (path, tool) in [("/mcp", "new__echo"), ("/servers/new/mcp", "echo")] {
        let (_gateway, origin) = gateway(FILTERED).await;
        let connected = client(Revision::V2025_11_25)
            .connect(format!("{origin}{path}"))
            .await;
        let connected = connected.unwrap();
        for (text, is_served) in [
            ("plain", true),
            ("early", false),
            ("late", false),
            ("last", false),
        ] {
            let echoed = connected.call_tool(tool, json!({"text": text})).await;
            assert_eq!(echoed.is_ok(), is_served, "{path} {text}: {echoed:?}");
        }
        let text = metrics(&origin).await;
        for (reason, expected) in [("filter_denied", 2.0), ("filter_failed", 1.0)] {
            let reason = format!("reason=\"{reason}\"");
            let words = ["mcpact_denials_total", "method=\"tools/call\"", &reason];
            assert_eq!(value(&text, &words), Some(expected), "{path} {text}");
        }
    }
}
