//! Recovery from dead servers.

use std::path::Path;
use std::time::Duration;

use futures_util::StreamExt as _;
use mcpact::client::{Client, Watch};
use mcpact_gateway::Gateway;
use mcpact_gateway::control::ServerLine;
use mcpact_spec::Revision;
use serde_json::json;

use crate::harness::{MORTAL, client, gateway, get, tools};

/// Time limit of each wait.
const PATIENCE: Duration = Duration::from_secs(60);

/// Connects a client and kills its server; returns once the gateway noticed.
async fn client_of_dead_server(gateway: &Gateway, origin: &str) -> Client {
    let connected = client(Revision::V2025_11_25)
        .connect(format!("{origin}/mcp"))
        .await;
    let connected = connected.unwrap();
    connected.call_tool("m__die", json!({})).await.unwrap_err();
    // The call fails before the gateway records the failure.
    let is_noted = || {
        let status = gateway.status(Some("m")).unwrap();
        status.servers[0].last_error.is_some()
    };
    let noted = async {
        while !is_noted() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, noted).await.unwrap();
    connected
}

/// G11: a stuck server is detected while it has calls, also if the health check is a tool; the stop cause is reported.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn health_checks_detect_a_stuck_server() {
    let catalog = format!(
        "{MORTAL}health = \"tool:who\"\nhealth_seconds = 0.05\nhealth_failures = 1\ncall_seconds = 1\nbackoff_seconds = 0.01\n"
    );
    let catalog = catalog.replace("*'\"hang\"'*) continue", "*'\"hang\"'*) exec sleep 3600");
    let (gateway, origin) = gateway(&catalog).await;
    let connected = client(Revision::V2025_11_25).connect(format!("{origin}/mcp"));
    let connected = connected.await.unwrap();
    let call = connected.clone();
    let call = tokio::spawn(async move { call.call_tool("m__hang", json!({})).await });
    let until = async |is_so: &dyn Fn(&ServerLine) -> bool| {
        let so = async {
            while !is_so(&gateway.status(Some("m")).unwrap().servers[0]) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let so = tokio::time::timeout(PATIENCE, so).await;
        assert!(so.is_ok(), "{:?}", gateway.status(Some("m")));
    };
    let is_silent = |line: &ServerLine| {
        let why = line.instances.first().and_then(|one| one.why.as_deref());
        why.is_some_and(|why| why.contains("no answer to health checks for"))
    };
    until(&is_silent).await;
    call.await.unwrap().unwrap_err();
    let is_told = |line: &ServerLine| {
        let last = line.last_error.as_ref();
        last.is_some_and(|last| last.why.contains("health checks failed; instance stopped"))
    };
    until(&is_told).await;
}

/// G11: an error answer to `ping` fails an instance only if `health_errors` says so.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn error_answer_to_ping_is_a_failure_if_configured() {
    for errors in ["pass", "fail"] {
        let notes = tempfile::tempdir().unwrap();
        let pings = notes.path().join("pings");
        let catalog = format!(
            "{MORTAL}health = \"ping\"\nhealth_errors = \"{errors}\"\nhealth_seconds = 0.05\n\
             health_failures = 2\nbackoff_seconds = 0.01\nenv = {{ PINGS = {pings:?} }}\n"
        );
        let error = r#"{"jsonrpc":"2.0","id":%s,"error":{"code":-32000,"message":"ill"}}"#;
        let ping =
            format!("*'\"ping\"'*) echo >> \"$PINGS\"; printf '{error}\\n' \"$id\"; continue ;;");
        let catalog = catalog.replace("*'\"die\"'*)", &format!("{ping}\n    *'\"die\"'*)"));
        let (gateway, origin) = gateway(&catalog).await;
        let connected = client(Revision::V2025_11_25).connect(format!("{origin}/mcp"));
        let connected = connected.await.unwrap();
        connected.call_tool("m__who", json!({})).await.unwrap();
        let failure = || {
            let line = gateway.status(Some("m")).unwrap().servers.remove(0);
            line.last_error.map(|last| last.why)
        };
        let was_checked = || {
            let pings = std::fs::read_to_string(&pings).unwrap_or_default();
            pings.lines().count() > 5 || failure().is_some()
        };
        let checked = async {
            while !was_checked() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(PATIENCE, checked).await.unwrap();
        match errors {
            "pass" => assert_eq!(failure(), None),
            _ => assert!(failure().unwrap().contains("health checks failed")),
        }
    }
}

/// A suspended server is named in instructions and in errors about unknown tools, with the cause.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn suspended_servers_are_named() {
    let catalog = format!(
        "{MORTAL}failures = 1\nsuspend_seconds = 600\n[servers.well]\nbuiltin = \"everything\"\n"
    );
    let (gateway, origin) = gateway(&catalog).await;
    let client_of_dead_server = client_of_dead_server(&gateway, &origin).await;
    let named = "`m` is unavailable: the server process ended (exit status: 5)";
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let next = client(revision).connect(format!("{origin}/mcp")).await;
        let next = next.unwrap();
        let told = next.instructions().unwrap_or_default().to_owned();
        assert!(told.contains(named), "{revision}: {told}");
    }
    let unknown = client_of_dead_server
        .call_tool("m__nothing", json!({}))
        .await;
    let unknown = unknown.unwrap_err().to_string();
    assert!(unknown.contains("exit status: 5"), "{unknown}");
    let ready = get(&origin, "/readyz", "").await;
    assert!(ready.contains("\"state\":\"suspended\""), "{ready}");
}

/// A suspended server is retried without a call, so that the gateway becomes ready.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn suspended_servers_recover_without_a_call() {
    let catalog = format!("{MORTAL}failures = 1\nsuspend_seconds = 1\n");
    let (gateway, origin) = gateway(&catalog).await;
    let _bereaved = client_of_dead_server(&gateway, &origin).await;
    let ready = async {
        while !get(&origin, "/readyz", "")
            .await
            .starts_with("HTTP/1.1 200")
        {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, ready).await.unwrap();
    let starts = gateway.status(None).unwrap().servers[0].starts;
    assert!(starts > 1, "the server was retried");
}

/// Returns the config of a legacy server that exits after negotiation while this file exists, or once during
/// `tools/list` while the file with the suffix `.list` exists.
fn brittle(file: &Path) -> String {
    let server = r##"
commands.shells = "warn"
[servers.brief]
command = "sh"
args = ["-c", '''
while IFS= read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\("[^"]*"\|[0-9][0-9]*\).*/\1/p')
  case "$line" in
    *'"initialize"'*) result='{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"sh","version":"1"}}' ;;
    *'notifications/initialized'*) [ -e "$BRITTLE" ] && exit 7; continue ;;
    *'"tools/list"'*) rm "$BRITTLE.list" && exit 8; result='{"tools":[{"name":"one","inputSchema":{"type":"object"}}]}' ;;
    *'"tools/call"'*) result='{"content":[]}' ;;
    *) continue ;;
  esac
  printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
done
''']
era = "legacy"
"##;
    format!("{server}env = {{ BRITTLE = \"{}\" }}\n", file.display())
}

/// Waits until the status of the server satisfies a condition.
async fn until(gateway: &Gateway, is_so: impl Fn(&ServerLine) -> bool) {
    let so = async {
        while !is_so(&gateway.status(None).unwrap().servers[0]) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let so = tokio::time::timeout(PATIENCE, so).await;
    assert!(so.is_ok(), "{:#?}", gateway.status(None));
}

/// A server that dies before its tools were listed is named in instructions and status, with the cause and the time of
/// the next attempt.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_that_die_before_listing_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("brittle");
    std::fs::write(&file, "").unwrap();
    let (gateway, origin) = gateway(&format!(
        "{}backoff_seconds = 3000\nbackoff_max_seconds = 3000\n",
        brittle(&file)
    ))
    .await;
    let _met: Vec<_> = gateway.connect_all().collect().await;
    until(&gateway, |server| server.missing.is_some()).await;
    let status = gateway.status(None).unwrap();
    let server = &status.servers[0];
    let died = "the server process ended (exit status: 7)";
    assert_eq!(server.missing.as_deref(), Some(died));
    assert!(
        server.retry_seconds.is_some_and(|wait| wait > 60),
        "{server:?}"
    );
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let next = client(revision).connect(format!("{origin}/mcp")).await;
        let told = next.unwrap().instructions().unwrap_or_default().to_owned();
        assert!(
            told.contains(&format!("`brief` is unavailable: {died}")),
            "{revision}: {told}"
        );
    }
}

/// A server that dies before its tools were listed is retried after `backoff_seconds` without a call.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_that_die_before_listing_are_retried() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("brittle");
    std::fs::write(&file, "").unwrap();
    let (gateway, origin) = gateway(&format!(
        "{}backoff_seconds = 0.2\nfailures = 1000\n",
        brittle(&file)
    ))
    .await;
    let _met: Vec<_> = gateway.connect_all().collect().await;
    until(&gateway, |server| server.missing.is_some()).await;
    std::fs::remove_file(&file).unwrap();
    until(&gateway, |server| server.state == "ready").await;
    let came = client(Revision::V2025_11_25)
        .connect(format!("{origin}/mcp"))
        .await;
    let came = came.unwrap();
    assert_eq!(tools(&came).await, ["brief__one"]);
    assert!(
        !came
            .instructions()
            .unwrap_or_default()
            .contains("is unavailable")
    );
}

/// A server that dies while listing, after it worked before, is retried after `backoff_seconds` without a call, and
/// clients are notified.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_that_die_while_listing_are_retried() {
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("brittle");
        let (gateway, origin) =
            gateway(&format!("{}backoff_seconds = 0.2\n", brittle(&file))).await;
        let connected = client(revision).connect(format!("{origin}/mcp")).await;
        let connected = connected.unwrap();
        let mut changes = connected.watch(Watch::new().lists()).await.unwrap();
        connected.call_tool("brief__one", json!({})).await.unwrap();
        std::fs::write(folder.path().join("brittle.list"), "").unwrap();
        assert_eq!(tools(&connected).await, [""; 0], "{revision}");
        let told = tokio::time::timeout(PATIENCE, changes.next()).await;
        assert!(matches!(told, Ok(Some(_))), "{revision}: {told:?}");
        let server = &gateway.status(None).unwrap().servers[0];
        assert_eq!(server.instances[0].cause, "recovery", "{server:?}");
        assert_eq!(tools(&connected).await, ["brief__one"], "{revision}");
    }
}

/// A server that never starts is suspended after repeated attempts, even if only one call needed it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_that_never_start_are_suspended() {
    let (gateway, _origin) = gateway(
        "[servers.never]\ncommand = \"false\"\nera = \"legacy\"\nfailures = 2\nsuspend_seconds = 600\n",
    )
    .await;
    let _met: Vec<_> = gateway.connect_all().collect().await;
    until(&gateway, |server| server.state == "suspended").await;
    let server = &gateway.status(None).unwrap().servers[0];
    assert_eq!((server.starts, server.failures), (2, 2), "{server:?}");
}
