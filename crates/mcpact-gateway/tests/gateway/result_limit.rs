//! Limit for the results of calls.

use mcpact::client::Client;
use mcpact_spec::Revision;
use serde_json::json;

use crate::harness::{catalog, client, gateway};

const TEXT: &str = "[servers.a]\nbuiltin = \"everything\"\nmax_result_bytes = 2048\n\
    [servers.b]\nbuiltin = \"everything\"\ntools = [\"echo\"]\n";

/// Server without resources, whose tools return 3000 bytes of structured content or text.
const SCRIPTED: &str = r##"
commands.shells = "warn"
[servers.s]
max_result_bytes = 2048
command = "sh"
args = ["-c", '''
long=$(printf '%03000d' 0)
while IFS= read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\("[^"]*"\|[0-9][0-9]*\).*/\1/p')
  case "$line" in
    *'"initialize"'*) result='{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"sh","version":"1"}}' ;;
    *'"tools/list"'*) result='{"tools":[{"name":"one","inputSchema":{"type":"object"}},{"name":"two","inputSchema":{"type":"object"}}]}' ;;
    *'"two"'*) result="{\"content\":[{\"type\":\"text\",\"text\":\"$long\"}]}" ;;
    *'"tools/call"'*) result="{\"content\":[],\"structuredContent\":{\"x\":\"$long\"}}" ;;
    *) continue ;;
  esac
  printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
done
''']
era = "legacy"
"##;

async fn connect(revision: Revision, url: &str, key: &str) -> Client {
    let builder = client(revision).header("Mcpact-Key", key);
    builder.connect(url.to_owned()).await.unwrap()
}

/// Returns the URI in the note of a cut result.
fn uri_in(said: &str) -> &str {
    let start = said.find("mcpact://").unwrap();
    said[start..].split([']', '\n']).next().unwrap()
}

/// Long text is cut with a note; only the caller reads the whole text. Other servers and short results are unaffected.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cut_text_can_be_read_by_its_caller() {
    let (gateway, origin) = gateway(TEXT).await;
    let text = "ä\"".repeat(2000);
    for revision in Revision::ALL {
        gateway.change(catalog(TEXT)).unwrap();
        for (path, tool) in [
            ("/mcp", "a__echo"),
            ("/mcp?tools=search", "call_tool"),
            ("/servers/a/mcp", "echo"),
        ] {
            let what = format!("{revision} {path}");
            let url = format!("{origin}{path}");
            let (caller, other) = (
                connect(revision, &url, "one").await,
                connect(revision, &url, "two").await,
            );
            let arguments = json!({"text": text});
            let arguments = match tool {
                "call_tool" => json!({"name": "a__echo", "arguments": arguments}),
                _ => arguments,
            };
            let cut = caller.call_tool(tool, arguments).await.unwrap();
            let said = cut.all_text();
            assert!(
                said.starts_with("ä\"ä\"") && said.len() < 2048,
                "{what}: {said}"
            );
            assert!(said.contains(" of 6000 bytes; "), "{what}: {said}");
            let uri = uri_in(&said);
            let whole = caller.read_resource(uri).await.unwrap();
            let whole = serde_json::to_string(&whole.contents).unwrap();
            assert!(
                whole.contains(&text.replace('"', "\\\"")),
                "{what}: {whole}"
            );
            let refused = other.read_resource(uri).await;
            assert!(refused.is_err(), "{what}: read by another client");
            caller.close().await;
            other.close().await;
        }
        let all = connect(revision, &format!("{origin}/mcp"), "one").await;
        let short = all.call_tool("a__echo", json!({"text": "Hi"})).await;
        assert_eq!(short.unwrap().all_text(), "Hi", "{revision}");
        let unlimited = all.call_tool("b__echo", json!({"text": text})).await;
        assert_eq!(unlimited.unwrap().all_text(), text, "{revision}");
        gateway.change(catalog(&TEXT.replace("2048", "0"))).unwrap();
        let unlimited = all.call_tool("a__echo", json!({"text": text})).await;
        assert_eq!(unlimited.unwrap().all_text(), text, "{revision}");
        all.close().await;
    }
}

/// Structured content is never cut; the error says so.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn structured_content_is_refused() {
    let (_gateway, origin) = gateway(SCRIPTED).await;
    for (path, tool) in [("/mcp", "s__one"), ("/servers/s/mcp", "one")] {
        for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
            let client = connect(revision, &format!("{origin}{path}"), "one").await;
            let refused = client.call_tool(tool, json!({})).await.unwrap_err();
            let why = refused.to_string();
            assert!(
                why.contains("`max_result_bytes` is 2048"),
                "{revision} {path}: {why}"
            );
            client.close().await;
        }
    }
}

/// The whole text is readable at the endpoint of a server without resources, which has empty lists.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_without_resources_keep_text_as_well() {
    for revision in Revision::ALL {
        let (_gateway, origin) = gateway(SCRIPTED).await;
        let client = connect(revision, &format!("{origin}/servers/s/mcp"), "one").await;
        let cut = client.call_tool("two", json!({})).await.unwrap().all_text();
        let whole = client.read_resource(uri_in(&cut)).await.unwrap();
        let whole = serde_json::to_string(&whole.contents).unwrap();
        assert!(whole.contains(&"0".repeat(3000)), "{revision}: {whole}");
        assert!(client.list_resources().await.unwrap().is_empty());
        assert!(client.list_resource_templates().await.unwrap().is_empty());
        client.close().await;
    }
}
