//! Selection of servers by path and headers.

use mcpact_spec::Revision;
use serde_json::json;

use crate::harness::{CATALOG, ask, client, gateway, get, tools};

/// All servers, one server with its own names, and the servers with a tag have their own endpoints, for clients of both
/// eras.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn paths_and_headers_select_servers() {
    let (_gateway, origin) = gateway(CATALOG).await;
    for revision in [Revision::V2025_06_18, Revision::V2026_07_28] {
        let cells: [(_, _, &[&str]); 6] = [
            ("/mcp", None, &["old__echo", "late__echo", "new__echo"]),
            ("/servers/old/mcp", None, &["echo"]),
            ("/tags/calm/mcp", None, &["old__echo", "late__echo"]),
            ("/tags/wild,calm/mcp", None, &["late__echo"]),
            ("/mcp", Some(("Mcpact-Server", "new")), &["echo"]),
            ("/mcp", Some(("Mcpact-Tags", "wild")), &["late__echo"]),
        ];
        for (path, header, expected) in cells {
            let mut builder = client(revision);
            if let Some((name, value)) = header {
                builder = builder.header(name, value);
            }
            let connected = builder.connect(format!("{origin}{path}")).await.unwrap();
            let tools = tools(&connected).await;
            let echoes = tools.iter().filter(|name| name.ends_with("echo"));
            let mut echoes: Vec<&str> = echoes.map(String::as_str).collect();
            let mut expected = expected.to_vec();
            echoes.sort_unstable();
            expected.sort_unstable();
            assert_eq!(echoes, expected, "{revision} at {path} {header:?}");
            for name in echoes {
                let echoed = connected.call_tool(name, json!({"text": name})).await;
                assert_eq!(echoed.unwrap().all_text(), name, "{revision} at {path}");
            }
        }
    }
}

/// Errors about unknown servers and tags list the known ones; contradictory selections are rejected.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unknown_servers_and_tags_list_the_known_ones() {
    let (_gateway, origin) = gateway(CATALOG).await;
    let cells: [(&str, &str, u16, &[&str]); 14] = [
        (
            "/servers/lat/mcp",
            "",
            404,
            &["did you mean `late`?", "old"],
        ),
        ("/tags/mild/mcp", "", 404, &["`wild`, `calm`"]),
        ("/", "", 404, &["/mcp", "/servers/NAME/mcp"]),
        (
            "/servers/old/mcp",
            "Mcpact-Server: new\r\n",
            400,
            &["use only one"],
        ),
        (
            "/mcp",
            "Mcpact-Server: a\r\nMcpact-Tags: b\r\n",
            400,
            &["exclude"],
        ),
        ("/mcp", "Mcpact-Server:\r\n", 400, &["`late`", "`old`"]),
        ("/mcp", "Mcpact-Server: ö\r\n", 400, &["`late`", "`old`"]),
        (
            "/mcp",
            "Mcpact-Server: old\r\nMcpact-Server: old\r\n",
            400,
            &["`late`", "`old`"],
        ),
        ("/mcp", "Mcpact-Tags: ,\r\n", 400, &["`calm`", "`wild`"]),
        ("/mcp", "Mcpact-Tags: ö\r\n", 400, &["`calm`", "`wild`"]),
        (
            "/mcp",
            "Mcpact-Tags: wild\r\nMcpact-Tags: odd\r\n",
            404,
            &["odd, wild", "`calm`"],
        ),
        (
            "/mcp",
            "Mcpact-Server: old\r\nMcpact-Tags:\r\n",
            400,
            &["exclude"],
        ),
        ("/healthz", "", 200, &["ok"]),
        ("/readyz", "", 200, &["ready"]),
    ];
    for (path, header, status, expected) in cells {
        let answer = get(&origin, path, header).await;
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status}")),
            "{path}: {answer}"
        );
        for words in expected {
            assert!(answer.contains(words), "{path}: {answer}");
        }
    }
}

/// H1: an allowed web page may select servers by header; other pages are refused.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn allowed_origins_may_select_servers_by_header() {
    let text = format!("allow_origins = [\"https://app.example\"]\n{CATALOG}");
    let (_gateway, origin) = gateway(&text).await;
    let preflight = |page: &str| {
        format!(
            "Origin: {page}\r\nAccess-Control-Request-Method: POST\r\n\
             Access-Control-Request-Headers: mcpact-server, x-evil\r\n"
        )
    };
    let answer = ask(
        "OPTIONS",
        &origin,
        "/mcp",
        &preflight("https://app.example"),
    )
    .await;
    assert!(answer.starts_with("HTTP/1.1 204"), "{answer}");
    let answer = answer.to_ascii_lowercase();
    let mut lines = answer.lines();
    let allowed = lines.find_map(|line| line.strip_prefix("access-control-allow-headers: "));
    let allowed: Vec<&str> = allowed.unwrap().split(", ").collect();
    for name in ["mcpact-server", "mcpact-tags", "mcp-session-id"] {
        assert!(allowed.contains(&name), "{name}: {answer}");
    }
    assert!(!allowed.contains(&"x-evil"), "{answer}");
    let refused = ask(
        "OPTIONS",
        &origin,
        "/mcp",
        &preflight("https://evil.example"),
    )
    .await;
    assert!(refused.starts_with("HTTP/1.1 403"), "{refused}");
}
