//! Servers that break rules: each violation is named.

use super::harness::{http_server, probe, response, run};

/// A legacy server that breaks twenty rules and can be used all the same.
const WRONG: &str = r##"
echo 'Wrong server starting'
while IFS= read -r line; do
  rest=${line#*'"id":'}; id=${rest%%[,\}]*}
  case $line in
  *'"server/discover"'*)
    echo '{"jsonrpc":"2.0","id":'"$id"',"error":{"code":"E_NOT_FOUND","message":"no"}}';;
  *'"initialize"'*)
    echo '{"jsonrpc":"2.0","id":900,"method":"roots/list"}'
    echo '{"jsonrpc":"2.0","id":'"$id"',"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"prompts":{},"resources":{"subscribe":"yes"}},"serverInfo":{"name":"wrong","version":"1"}}}';;
  *'"notifications/initialized"'*)
    echo '{"jsonrpc":"2.0","id":null,"result":{}}'
    echo '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}'
    echo '{"method":"notifications/progress","params":{"progressToken":1,"progress":1}}';;
  *'"ping"'*)
    echo '[{"jsonrpc":"2.0","id":'"$id"',"result":{"pong":true}}]';;
  *'"tools/list"'*)
    echo '{"jsonrpc":"2.0","id":"777","result":{}}'
    answer='{"jsonrpc":"2.0","id":'"$id"',"result":{"tools":[{"name":"a b","inputSchema":{"type":"object"}},{"name":"x","inputSchema":{}},{"name":"x","inputSchema":{"type":"object"}},{"inputSchema":{"type":"object"}}],"nextCursor":"again"}}'
    echo "$answer"; echo "$answer";;
  *'"prompts/list"'*)
    echo '{"jsonrpc":"2.0","id":'"$id"',"error":{"code":-32601,"message":"Method not found"}}';;
  *'"resources/list"'*)
    echo '{"jsonrpc":"2.0","id":'"$id"',"result":{"resources":{},"nextCursor":null}}';;
  *'"resources/templates/list"'*)
    echo '{"jsonrpc":"2.0","id":'"$id"',"result":{"resourceTemplates":[]},"error":{"code":1,"message":"x"}}';;
  esac
done
"##;

const BROKEN: [&str; 20] = [
    "not-json",
    "json-rpc",
    "batch",
    "response-shape",
    "error-shape",
    "response-id",
    "duplicate-response",
    "notification-answered",
    "capability-type",
    "before-initialized",
    "undeclared",
    "declared-not-found",
    "ping-result",
    "list-array",
    "list-item",
    "duplicate-name",
    "tool-name",
    "input-schema",
    "cursor-type",
    "cursor-loop",
];

#[test]
fn each_violation_of_a_wrong_server_is_named() {
    let seen = probe(&["--", "sh", "-c", WRONG]);
    assert_eq!(seen.code, 0, "{}", seen.stdout);
    let mut rules = seen.texts("violations", "rule");
    rules.dedup();
    assert_eq!(rules, BROKEN, "{}", seen.stdout);
    let sections = seen.texts("violations", "section");
    assert!(
        sections
            .iter()
            .all(|section| section.starts_with("2025-11-25 "))
    );
    assert_eq!(seen.json()["starts"], 1);
}

#[test]
fn violations_are_shown_with_their_sections() {
    let seen = run(&["probe", "--", "sh", "-c", WRONG]);
    let (_, shown) = seen
        .stdout
        .split_once("Violations of the specification")
        .unwrap();
    assert!(
        shown.lines().all(|line| line.chars().count() <= 80),
        "{shown}"
    );
    insta::assert_snapshot!("violations", shown);
}

/// The handshake fails, and the violation says why.
#[test]
fn violations_of_a_failed_handshake_are_named() {
    for (result, rule) in [
        (
            r#"{"capabilities":{},"serverInfo":{"name":"s","version":"1"}}"#,
            "protocol-version",
        ),
        (
            r#"{"protocolVersion":"3000-01-01","capabilities":{},"serverInfo":{"name":"s","version":"1"}}"#,
            "unknown-version",
        ),
        (
            r#"{"protocolVersion":"2025-11-25","capabilities":{}}"#,
            "server-info",
        ),
    ] {
        let script = format!(
            r#"while IFS= read -r line; do
                rest=${{line#*'"id":'}}; id=${{rest%%[,\}}]*}}
                case $line in
                *'"initialize"'*) echo '{{"jsonrpc":"2.0","id":'"$id"',"result":{result}}}';;
                *'"id"'*) echo '{{"jsonrpc":"2.0","id":'"$id"',"error":{{"code":-32601,"message":"no"}}}}';;
                esac
            done"#
        );
        let seen = probe(&["--", "sh", "-c", &script]);
        assert_eq!(seen.code, 6, "{}", seen.stdout);
        assert_eq!(seen.texts("violations", "rule"), [rule]);
    }
}

#[test]
fn violations_of_http_are_named() {
    let bare = http_server(|_| response("401 Unauthorized", "", ""));
    let seen = probe(&[&bare]);
    assert_eq!(seen.code, 3, "{}", seen.stdout);
    assert_eq!(seen.texts("violations", "rule"), ["challenge"]);

    let page = http_server(|_| response("200 OK", "content-type: text/html\r\n", "<html>"));
    let seen = probe(&[&page]);
    assert_eq!(seen.code, 4, "{}", seen.stdout);
    assert_eq!(seen.texts("violations", "rule")[0], "content-type");

    let session = http_server(|request| {
        let json = "content-type: application/json\r\n";
        let body = request.split("\r\n\r\n").nth(1).unwrap_or_default();
        let id = body.split("\"id\":").nth(1).unwrap_or("0");
        let id: String = id.chars().take_while(|c| !",}".contains(*c)).collect();
        if body.contains("\"initialize\"") {
            let result = r#"{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":"1"}}"#;
            let message = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#);
            response("200 OK", json, &message)
        } else if body.contains("notifications/initialized") {
            response("200 OK", "", "")
        } else if body.contains("\"ping\"") {
            let message = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#);
            response("200 OK", json, &message)
        } else {
            response("405 Method Not Allowed", "", "")
        }
    });
    let seen = probe(&[&session]);
    assert_eq!(seen.code, 0, "{}", seen.stdout);
    assert_eq!(seen.texts("violations", "rule"), ["notification-status"]);
}
