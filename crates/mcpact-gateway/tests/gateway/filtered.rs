//! What filters refuse.

use mcpact_spec::Revision;
use serde_json::json;

use crate::figures::{metrics, value};
use crate::place::{client, gateway};

/// A filter that refuses requests that are `early` and results that are `late`, and ends at those that are `last`.
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

/// What a filter refuses, requests as well as results, and what fails because it cannot be asked is counted, at every
/// address.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_filters_refuse_is_counted() {
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
