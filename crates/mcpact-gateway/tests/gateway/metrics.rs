//! Metrics and readiness.

use std::time::Duration;

use futures_util::StreamExt;
use mcpact_sim::scripted::exchange;
use mcpact_spec::Revision;
use serde_json::{Value, json};

use crate::harness::{CATALOG, MORTAL, UNGUARDED, catalog, client, gateway};

/// Time limit of each wait.
const PATIENCE: Duration = Duration::from_secs(30);

/// Sends an HTTP request; returns status, headers and body.
async fn asked(origin: &str, verb: &str, path: &str, more: &str) -> (u16, String, String) {
    let answer = exchange(verb, origin, path, more, "").await;
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, head.to_lowercase(), body.to_owned())
}

pub(crate) async fn metrics(origin: &str) -> String {
    let (status, head, body) = asked(origin, "GET", "/metrics", "").await;
    assert_eq!(status, 200, "{head}");
    let kind = "content-type: text/plain; version=0.0.4; charset=utf-8";
    assert!(head.contains(kind), "{head}");
    body
}

/// Returns the value of the row that contains all of these words.
pub(crate) fn value(text: &str, words: &[&str]) -> Option<f64> {
    let mut rows = text.lines().filter(|line| !line.starts_with('#'));
    let row = rows.find(|line| words.iter().all(|word| line.contains(word)))?;
    row.rsplit(' ').next()?.parse().ok()
}

/// Waits until a row has a value.
async fn until(origin: &str, words: &[&str], expected: f64) {
    let waiting = async {
        while value(&metrics(origin).await, words) != Some(expected) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let waited = tokio::time::timeout(PATIENCE, waiting).await;
    assert!(waited.is_ok(), "{words:?}\n{}", metrics(origin).await);
}

/// Negotiations, translations, requests with their duration, instances, sessions and denials are counted, and no name
/// that a client chooses becomes a label.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn metrics_count_traffic() {
    let (_gateway, origin) = gateway(CATALOG).await;
    let url = format!("{origin}/mcp");
    let old = client(Revision::V2024_11_05)
        .connect(url.clone())
        .await
        .unwrap();
    let new = client(Revision::V2026_07_28)
        .connect(url.clone())
        .await
        .unwrap();
    for caller in [&old, &new] {
        for tool in ["old__echo", "new__echo"] {
            let echoed = caller.call_tool(tool, json!({"text": "x"})).await.unwrap();
            assert_eq!(echoed.all_text(), "x");
        }
        let unknown = caller.call_tool("canary__tool", json!({})).await;
        assert!(unknown.is_err());
        let refused = caller.read_resource("canary://nowhere").await;
        assert!(refused.is_err());
    }
    old.list_tools().await.unwrap();
    let text = metrics(&origin).await;
    let hits = value(
        &text,
        &[
            "mcpact_list_requests_total",
            "server=\"old\"",
            "cache=\"hit\"",
        ],
    );
    assert!(hits >= Some(1.0), "{text}");
    let cells: &[(&[&str], f64)] = &[
        (
            &[
                "mcpact_negotiations_total",
                "with=\"client\"",
                "client_revision=\"2024-11-05\"",
                "server_revision=\"2024-11-05\"",
                "era=\"legacy\"",
                "outcome=\"ok\"",
            ],
            1.0,
        ),
        (
            &[
                "mcpact_negotiations_total",
                "with=\"server\"",
                "server=\"new\"",
                "server_revision=\"2026-07-28\"",
                "outcome=\"ok\"",
            ],
            1.0,
        ),
        (
            &[
                "mcpact_translations_total",
                "server=\"new\"",
                "client_revision=\"2024-11-05\"",
                "server_revision=\"2026-07-28\"",
                "kind=\"raise\"",
            ],
            1.0,
        ),
        (
            &[
                "mcpact_translations_total",
                "server=\"old\"",
                "client_revision=\"2026-07-28\"",
                "server_revision=\"2025-06-18\"",
                "kind=\"lower\"",
            ],
            1.0,
        ),
        (
            &[
                "mcpact_translations_total",
                "server=\"new\"",
                "client_revision=\"2026-07-28\"",
                "kind=\"pass\"",
            ],
            1.0,
        ),
        (
            &[
                "mcpact_requests_total",
                "server=\"old\"",
                "method=\"tools/call\"",
                "outcome=\"ok\"",
            ],
            2.0,
        ),
        (
            &[
                "mcpact_request_duration_seconds_count",
                "server=\"old\"",
                "method=\"tools/call\"",
            ],
            2.0,
        ),
        (
            &[
                "mcpact_request_duration_seconds_bucket",
                "server=\"old\"",
                "method=\"tools/call\"",
                "le=\"+Inf\"",
            ],
            2.0,
        ),
        (
            &[
                "mcpact_denials_total",
                "method=\"tools/call\"",
                "reason=\"unknown_name\"",
            ],
            2.0,
        ),
        (
            &[
                "mcpact_server_info",
                "server=\"old\"",
                "revision=\"2025-06-18\"",
                "era=\"legacy\"",
            ],
            1.0,
        ),
        (
            &["mcpact_server_state", "server=\"late\"", "state=\"asleep\""],
            0.0,
        ),
        (
            &["mcpact_instances", "server=\"old\"", "state=\"busy\""],
            0.0,
        ),
        (&["mcpact_in_flight", "server=\"old\""], 0.0),
        (&["mcpact_queue_length", "server=\"old\""], 0.0),
        (&["mcpact_parked_calls", "server=\"old\""], 0.0),
        (&["mcpact_sessions", "address=\"/mcp\""], 1.0),
        (
            &[
                "mcpact_instance_starts_total",
                "server=\"new\"",
                "cause=\"request\"",
            ],
            1.0,
        ),
    ];
    for (words, expected) in cells {
        assert_eq!(value(&text, words), Some(*expected), "{words:?}\n{text}");
    }
    assert!(
        value(
            &text,
            &["mcpact_instances", "server=\"old\"", "state=\"ready\""]
        ) >= Some(1.0)
    );
    assert!(!text.contains("canary"), "{text}");
}

/// Every family has its help and type before its rows, and no row occurs twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn metrics_page_is_valid_prometheus_text() {
    let (_gateway, origin) = gateway(CATALOG).await;
    let caller = client(Revision::V2026_07_28)
        .connect(format!("{origin}/mcp"))
        .await
        .unwrap();
    caller
        .call_tool("new__echo", json!({"text": "x"}))
        .await
        .unwrap();
    let text = metrics(&origin).await;
    let mut family = "";
    let mut rows = std::collections::BTreeSet::new();
    let mut families = std::collections::BTreeSet::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap();
            assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
            assert_eq!(kind == "counter", name.ends_with("_total"), "{line}");
            assert!(families.insert(name), "{name} is there twice");
            family = name;
        } else if !line.starts_with("# HELP ") {
            assert!(line.starts_with(family), "{line} is no row of {family}");
            let (row, number) = line.rsplit_once(' ').unwrap();
            assert!(number.parse::<f64>().is_ok(), "{line}");
            assert!(rows.insert(row), "{row} is there twice");
        }
    }
    assert!(families.len() > 20, "{families:?}");
}

/// Cancelled calls, late responses and failed starts are counted; P3: a late response is dropped and counted.
#[cfg(unix)]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn metrics_count_failures() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let script = r#"#!/bin/sh
        while IFS= read -r line; do
          id=$(printf '%s' "$line" | sed -n 's/.*"id":\("[^"]*"\|[0-9][0-9]*\).*/\1/p')
          case "$line" in
            *'"initialize"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"sh","version":"1"}}}\n' "$id" ;;
            *'"tools/list"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"slow","inputSchema":{"type":"object"}}]}}\n' "$id" ;;
            *'"tools/call"'*) late=$id ;;
            *'"notifications/cancelled"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[]}}\n{"jsonrpc":"2.0","method":"notifications/unheard_of"}\nnot json\n' "$late" ;;
          esac
        done"#;
    let program = folder.path().join("slow");
    std::fs::write(&program, script).unwrap();
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
    let catalog = format!(
        "[servers.slow]\ncommand = {}\nera = \"legacy\"\n\
         [servers.gone]\ncommand = \"false\"\nera = \"legacy\"\n",
        json!(program.to_str().unwrap())
    );
    let (_gateway, origin) = gateway(&catalog).await;
    let caller = client(Revision::V2026_07_28)
        .connect(format!("{origin}/mcp"))
        .await
        .unwrap();
    let calling = {
        let caller = caller.clone();
        tokio::spawn(async move { caller.call_tool("slow__slow", json!({})).await })
    };
    until(&origin, &["mcpact_in_flight", "server=\"slow\""], 1.0).await;
    calling.abort();
    let dropped = |reason: &'static str| {
        [
            "mcpact_dropped_total{",
            "side=\"server\"",
            "server=\"slow\"",
            reason,
        ]
    };
    until(&origin, &dropped("reason=\"late_answer\""), 1.0).await;
    until(&origin, &dropped("reason=\"unknown_method\""), 1.0).await;
    until(&origin, &dropped("reason=\"not_json\""), 1.0).await;
    let cancelled = [
        "mcpact_requests_total",
        "server=\"slow\"",
        "method=\"tools/call\"",
        "outcome=\"cancelled\"",
    ];
    until(&origin, &cancelled, 1.0).await;
    let text = metrics(&origin).await;
    let failed = [
        "mcpact_instance_failures_total",
        "server=\"gone\"",
        "cause=\"upstream_exited\"",
    ];
    assert!(value(&text, &failed) >= Some(1.0), "{text}");
}

/// Applied and rejected reloads are counted; metrics of removed servers are dropped.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reloads_are_counted() {
    let (gateway, origin) = gateway(CATALOG).await;
    gateway
        .change(catalog("[servers.old]\nbuiltin = \"everything\"\n"))
        .unwrap();
    assert!(gateway.change(catalog(UNGUARDED)).is_err());
    let text = metrics(&origin).await;
    let reloads = |outcome| value(&text, &["mcpact_reloads_total", outcome]);
    assert_eq!(reloads("outcome=\"ok\""), Some(1.0), "{text}");
    assert_eq!(reloads("outcome=\"refused\""), Some(1.0), "{text}");
    assert!(!text.contains("server=\"new\""), "{text}");
}

async fn readiness(origin: &str) -> (u16, Value) {
    let (status, _, body) = asked(origin, "GET", "/readyz", "").await;
    (status, serde_json::from_str(&body).unwrap())
}

/// A gateway is ready while some server is usable and none is below `min_ready`; unavailable servers are listed with
/// the cause.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readiness_names_unavailable_servers() {
    let good = "[servers.good]\nbuiltin = \"everything\"\n";
    let bad = "[servers.bad]\ncommand = \"false\"\n";
    let must = "[servers.must]\ncommand = \"false\"\nstrategy = \"persistent\"\n";
    let cells = [
        (good.to_owned(), 200, None),
        (format!("{good}{bad}"), 200, Some("bad")),
        (bad.to_owned(), 503, Some("bad")),
        (format!("{good}{must}"), 503, Some("must")),
    ];
    for (text, expected, missing) in cells {
        let (gateway, origin) = gateway(&text).await;
        gateway.connect_all().collect::<Vec<_>>().await;
        let (status, body) = readiness(&origin).await;
        assert_eq!(status, expected, "{body}");
        assert_eq!(body["ready"], json!(expected == 200), "{body}");
        if let Some(missing) = missing {
            let server = &body["servers"][missing];
            assert_eq!(server["ready"], false, "{body}");
            let why = server["why"].as_str().unwrap();
            assert!(why.contains("exited during startup"), "{body}");
        }
        if text.contains("good") {
            assert_eq!(body["servers"]["good"]["ready"], true, "{body}");
            assert_eq!(body["servers"]["good"]["revision"], "2026-07-28", "{body}");
        }
    }
}

/// The cause of a start without a call is reported.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn start_cause_is_reported() {
    let starts = |cause: &str| {
        let cause = format!("cause=\"{cause}\"");
        [String::from("instance_starts_total"), cause]
    };
    for (keys, cause) in [
        ("", "introduction"),
        ("min_ready = 1\n", "min-ready"),
        ("strategy = \"persistent\"\n", "persistent"),
    ] {
        let (gateway, origin) = gateway(&format!("{MORTAL}{keys}")).await;
        if cause == "introduction" {
            gateway.connect_all().collect::<Vec<_>>().await;
        }
        let row = starts(cause);
        until(&origin, &row.each_ref().map(String::as_str), 1.0).await;
        let said = metrics(&origin).await;
        let asked = starts("request");
        let asked = value(&said, &asked.each_ref().map(String::as_str));
        assert_eq!(asked.unwrap_or_default(), 0.0, "{said}");
    }
    let (_gateway, origin) = gateway(MORTAL).await;
    let client = client(Revision::V2025_11_25);
    let client = client.connect(format!("{origin}/mcp")).await.unwrap();
    client.call_tool("m__who", json!({})).await.unwrap();
    let row = starts("request");
    until(&origin, &row.each_ref().map(String::as_str), 1.0).await;
}

/// Monitoring endpoints accept only GET and HEAD, and only from allowed hosts.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn monitoring_endpoints_are_read_only() {
    let (_gateway, origin) = gateway(CATALOG).await;
    for path in ["/healthz", "/readyz", "/metrics"] {
        let (status, head, body) = asked(&origin, "HEAD", path, "").await;
        assert_eq!((status, body.as_str()), (200, ""), "{path}: {head}");
        let (status, head, _) = asked(&origin, "DELETE", path, "").await;
        assert_eq!(status, 405, "{path}: {head}");
        assert!(head.contains("allow: get, head"), "{head}");
        let (status, ..) = asked(&origin, "GET", path, "Host: evil.example\r\n").await;
        assert_eq!(status, 403, "{path}");
    }
    let (_gateway, origin) = gateway("[servers.a]\nbuiltin = \"everything\"\n").await;
    let (status, _, body) = asked(&origin, "GET", "/healthz", "").await;
    assert_eq!((status, body.as_str()), (200, "ok\n"));
}

/// An empty server name counts as missing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn empty_server_names_are_ignored() {
    for (name, expected) in [("sh", Some("sh")), ("", None)] {
        let server = MORTAL.replace(r#""name":"sh""#, &format!(r#""name":"{name}""#));
        let (gateway, origin) = gateway(&server).await;
        let connected = client(Revision::V2025_11_25).connect(format!("{origin}/mcp"));
        let connected = connected.await.unwrap();
        connected.call_tool("m__who", json!({})).await.unwrap();
        let status = gateway.status(Some("m")).unwrap();
        assert_eq!(status.servers[0].calls_itself.as_deref(), expected);
    }
    let (gateway, origin) = gateway(&garbled()).await;
    let connected = client(Revision::V2026_07_28).connect(format!("{origin}/servers/g/mcp"));
    connected.await.unwrap();
    let status = gateway.status(Some("g")).unwrap();
    assert_eq!(status.servers[0].revision.as_deref(), Some("2026-07-28"));
    assert_eq!(status.servers[0].calls_itself, None);
}

/// Returns the config of a modern server that answers everything but discovery with invalid HTTP.
fn garbled() -> String {
    use std::io::{BufRead, BufReader, Read, Write};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let serve = move |stream: std::net::TcpStream| -> std::io::Result<()> {
        let mut reader = BufReader::new(stream);
        let (mut line, mut length) = (String::new(), 0);
        while reader.read_line(&mut line)? > 2 {
            let named = line.to_lowercase();
            let value = named.strip_prefix("content-length:").map(str::trim);
            length = value.map_or(length, |value| value.parse().unwrap());
            line.clear();
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;
        let request: Value = serde_json::from_slice(&body).unwrap();
        let answer = match request["method"].as_str() {
            Some("server/discover") => {
                let result = json!({"resultType": "complete", "ttlMs": 0, "cacheScope": "private",
                    "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}});
                let answer = json!({"jsonrpc": "2.0", "id": request["id"], "result": result});
                let answer = answer.to_string();
                let length = answer.len();
                format!(
                    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{answer}"
                )
            }
            _ => String::from("this is not HTTP\r\n\r\n"),
        };
        reader.get_mut().write_all(answer.as_bytes())
    };
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            // The peer may have disconnected.
            let _ = serve(stream.unwrap());
        }
    });
    format!("[servers.g]\nurl = \"http://{address}/mcp\"\n")
}

/// An unreadable response is reported as such: the call reached its server.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unreadable_responses_are_reported() {
    let (gateway, origin) = gateway(&garbled()).await;
    let connected = client(Revision::V2026_07_28).connect(format!("{origin}/servers/g/mcp"));
    let connected = connected.await.unwrap();
    let failed = connected.call_tool("x", json!({})).await.unwrap_err();
    let words = "invalid HTTP response";
    assert!(failed.to_string().contains(words), "{failed}");
    let status = gateway.status(Some("g")).unwrap();
    let last = status.servers[0].last_error.as_ref().unwrap();
    assert!(last.why.contains(words), "{last:?}");
    let row = ["instance_failures_total", "upstream_misbehaved"];
    assert_eq!(value(&metrics(&origin).await, &row), Some(1.0));
}
