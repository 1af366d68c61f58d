//! Gateway in the test process.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use mcpact::client::{Client, ClientBuilder, EraCache};
use mcpact_config::{Catalog, LocalHost, Severity, Source, read};
use mcpact_engine::client::EraMode;
use mcpact_gateway::{Cache, Gateway, GatewayEnv, Local};
use mcpact_sim::scripted::message::{initialize, modern_request};
use mcpact_sim::scripted::{exchange, serve};
use mcpact_spec::{Era, Revision};
use serde_json::json;

/// Three servers of two eras, two of them with a common tag.
pub(crate) const CATALOG: &str = r#"
[servers.old]
builtin = "everything"
era = "2025-06-18"
tags = ["calm"]

[servers.late]
builtin = "everything"
era = "2025-11-25"
tags = ["calm", "wild"]

[servers.new]
builtin = "everything"
era = "2026-07-28"
"#;

/// Server that cannot be set up: it must be confined, but the gateway has no guard process.
pub(crate) const UNGUARDED: &str = "[servers.new]\ncommand = \"sleep\"\nno_new_privileges = true\n";

/// Legacy server: the tool `who` returns the process id, `die` exits, and the unlisted tool `hang` never answers.
pub(crate) const MORTAL: &str = r##"
commands.shells = "warn"
[servers.m]
command = "sh"
args = ["-c", '''
while IFS= read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\("[^"]*"\|[0-9][0-9]*\).*/\1/p')
  case "$line" in
    *'"initialize"'*) result='{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"sh","version":"1"}}' ;;
    *'"tools/list"'*) result='{"tools":[{"name":"who","inputSchema":{"type":"object"}},{"name":"die","inputSchema":{"type":"object"}}]}' ;;
    *'"die"'*) exit 5 ;;
    *'"hang"'*) continue ;;
    *'"tools/call"'*) result="{\"content\":[{\"type\":\"text\",\"text\":\"$$\"}]}" ;;
    *) continue ;;
  esac
  printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
done
''']
era = "legacy"
"##;

/// Returns the same server for 2026-07-28.
pub(crate) fn modern_mortal() -> String {
    let discovered = r#"{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private"}"#;
    let discover =
        format!("*'\"server/discover\"'*) result='{discovered}' ;;\n    *'\"tools/list\"'*)");
    MORTAL
        .replace("*'\"tools/list\"'*)", &discover)
        .replace(
            r#"{"tools":["#,
            r#"{"resultType":"complete","ttlMs":0,"cacheScope":"private","tools":["#,
        )
        .replace(
            r#"{\"content\""#,
            r#"{\"resultType\":\"complete\",\"content\""#,
        )
        .replace("era = \"legacy\"", "era = \"modern\"")
}

pub(crate) fn catalog(text: &str) -> Catalog {
    let source = Source::new(
        "mcpact.toml",
        format!("[gateway]\nlisten = \"127.0.0.1:0\"\n{text}"),
    );
    let reading = read(&source, &LocalHost::around(Path::new(".")).unwrap());
    let mut problems = reading.problems.iter();
    let is_fine = problems.all(|problem| problem.severity < Severity::Error);
    assert!(is_fine, "{:?}", reading.problems);
    reading.catalog.unwrap()
}

/// Starts a gateway for the duration of the test; returns it and its origin.
pub(crate) async fn gateway(text: &str) -> (Arc<Gateway>, String) {
    let everything = Local(Arc::new(|| {
        serve(mcpact_everything::server(&Revision::ALL))
    }));
    let env = GatewayEnv {
        builtins: BTreeMap::from([("everything", everything)]),
        verdicts: EraCache::new(),
        cache: Cache::disabled(),
        ..GatewayEnv::default()
    };
    let gateway = Gateway::new(catalog(text), env).unwrap();
    let site = gateway.listen().await.unwrap();
    let origin = site.origin();
    tokio::spawn(site.run(std::future::pending()));
    (gateway, origin)
}

pub(crate) fn client(revision: Revision) -> ClientBuilder {
    Client::builder("visitor", "1").mode(EraMode::Pin(revision))
}

pub(crate) async fn tools(client: &Client) -> Vec<String> {
    let tools = client.list_tools().await.unwrap();
    tools.iter().map(|tool| tool.name.clone()).collect()
}

/// Sends the first message of a client of this revision; returns the raw response.
pub(crate) async fn first_message(origin: &str, path: &str, revision: Revision) -> String {
    let (headers, body) = match revision.era() {
        Era::Legacy => (
            String::new(),
            initialize(1, revision.as_str(), json!({})).to_string(),
        ),
        Era::Modern => (
            format!("MCP-Protocol-Version: {revision}\r\nMcp-Method: tools/list\r\n"),
            modern_request(1, "tools/list", json!({}), &json!({})).to_string(),
        ),
    };
    post(origin, path, &headers, &body).await
}

/// Calls the greeting tool as a modern client, with one name in the header and one in the body.
pub(crate) async fn call(origin: &str, path: &str, header: &str, body: &str) -> String {
    let headers = format!(
        "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: {header}\r\n"
    );
    let params = json!({"name": body, "arguments": {"name": "Ann", "text": "Hello"}});
    let body = modern_request(1, "tools/call", params, &json!({})).to_string();
    post(origin, path, &headers, &body).await
}

pub(crate) async fn post(origin: &str, path: &str, headers: &str, body: &str) -> String {
    let headers = format!(
        "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n{headers}"
    );
    exchange("POST", origin, path, &headers, body).await
}

/// Sends a GET request; returns the raw response.
pub(crate) async fn get(origin: &str, path: &str, header: &str) -> String {
    ask("GET", origin, path, header).await
}

/// Sends a request with this verb; returns the raw response.
pub(crate) async fn ask(verb: &str, origin: &str, path: &str, header: &str) -> String {
    exchange(verb, origin, path, header, "").await
}
