//! Messages that two JSON readers understand differently.

use serde_json::Value;

use crate::harness::{gateway, post};
use crate::metrics::{metrics, value};

/// Server that ignores the case of keys, and of two equal ones uses the first or the last.
const SERVER: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/tests/gateway/folding_server.py"
);

/// Filter that denies paths below `/etc` and the word `password`; of two equal keys it uses the last one.
const FILTER: &str = r#"
[filters.f]
command = 'python3'
args = ['-c', '''
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    path = str(message.get("params", {}).get("arguments", {}).get("path"))
    texts = [block.get("text") for block in message.get("result", {}).get("content", [])]
    denied = path.startswith("/etc") or "password" in texts
    print(json.dumps({"id": message["id"], **({"deny": "no"} if denied else {})}), flush=True)
''']
methods = ['tools/call']
"#;

fn config(takes: &str, keys: &str, more: &str) -> String {
    format!(
        "commands.shells = \"warn\"\n[servers.s]\ncommand = \"python3\"\n\
         args = [\"{SERVER}\", \"{takes}\"]\nera = \"legacy\"\ntags = [\"x\"]\n{keys}\n{more}"
    )
}

/// Config of a server with more members in its tool list.
fn listing(more: &str, keys: &str) -> String {
    let args = format!("\"last\", '{more}']");
    config("last", keys, "").replace("\"last\"]", &args)
}

/// Endpoints with the prefix of their names.
const JUDGED: [(&str, &str, &str); 3] = [
    ("/mcp", "", "s__"),
    ("/tags/x/mcp", "", "s__"),
    ("/mcp", "Mcpact-Tags: x\r\n", "s__"),
];
const SINGLE: [(&str, &str, &str); 2] = [
    ("/servers/s/mcp", "", ""),
    ("/mcp", "Mcpact-Server: s\r\n", ""),
];

struct Caller<'a> {
    origin: &'a str,
    path: &'a str,
    header: &'a str,
    /// Session of a legacy client.
    session: Option<String>,
}

impl<'a> Caller<'a> {
    async fn legacy(origin: &'a str, path: &'a str, header: &'a str) -> Self {
        let hello = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"a","version":"1"}}}"#;
        let answer = post(origin, path, header, hello).await;
        let mut lines = answer.lines();
        let session = lines.find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case("mcp-session-id")
                .then(|| value.trim().to_owned())
        });
        let caller = Self {
            origin,
            path,
            header,
            session,
        };
        let ready = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        caller.post("notifications/initialized", "", ready).await;
        caller
    }

    fn modern(origin: &'a str, path: &'a str, header: &'a str) -> Self {
        Self {
            origin,
            path,
            header,
            session: None,
        }
    }

    async fn post(&self, method: &str, name: &str, body: &str) -> String {
        let own = match &self.session {
            Some(session) => {
                format!("MCP-Protocol-Version: 2025-11-25\r\nMcp-Session-Id: {session}\r\n")
            }
            None => format!(
                "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: {method}\r\nMcp-Name: {name}\r\n"
            ),
        };
        let headers = format!("{}{own}", self.header);
        post(self.origin, self.path, &headers, body).await
    }

    /// Returns the response to `tools/list`.
    async fn list(&self) -> String {
        let meta = match self.session {
            Some(_) => "{}",
            None => {
                r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#
            }
        };
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{{"_meta":{meta}}}}}"#
        );
        self.post("tools/list", "", &body).await
    }

    /// Calls a tool with raw members after its name; returns the text of the result, or the error.
    async fn call(&self, tool: &str, members: &str) -> Result<String, Value> {
        let meta = match self.session {
            Some(_) => r#""_meta":{"x/y":1}"#,
            None => {
                r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#
            }
        };
        let members = members.replace(r#""_meta":{"#, &format!(r"{},", &meta[..meta.len() - 1]));
        let meta = match members.contains("_meta") {
            true => String::new(),
            false => format!("{meta},"),
        };
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{{meta}"name":"{tool}",{members}}}}}"#
        );
        let answer = self.post("tools/call", tool, &body).await;
        let start = answer.find("{\"jsonrpc\"").unwrap();
        let mut all = serde_json::Deserializer::from_str(&answer[start..]).into_iter::<Value>();
        let message = all.next().unwrap().unwrap();
        assert_eq!(message["id"], 7, "{message}");
        match message.get("error") {
            Some(error) => Err(error.clone()),
            None => Ok(message["result"]["content"][0]["text"]
                .as_str()
                .unwrap_or_default()
                .to_owned()),
        }
    }
}

async fn callers<'a>(
    origin: &'a str,
    way: (&'a str, &'a str, &'a str),
) -> [(Caller<'a>, String); 2] {
    let (path, header, prefix) = way;
    let tool = format!("{prefix}open");
    [
        (Caller::legacy(origin, path, header).await, tool.clone()),
        (Caller::modern(origin, path, header), tool),
    ]
}

/// Attacks on a rule: raw members of the call, and the path of the key in the error.
const ATTACKS: [(&str, &str); 9] = [
    (r#""Name":"secret","arguments":{}"#, "Name"),
    (r#""n\u0061ME":"secret","arguments":{}"#, "naME"),
    (
        r#""arguments":{"path":"/safe"},"Arguments":{"path":"/etc/shadow"}"#,
        "Arguments",
    ),
    (
        r#""arguments":{"path":"/safe"},"argument\u017f":{"path":"/etc/shadow"}"#,
        "argumentſ",
    ),
    (
        r#""arguments":{"path":"/etc/shadow","path":"/safe"}"#,
        "arguments.path",
    ),
    (
        r#""arguments":{"p\u0061th":"/etc/shadow","path":"/safe"}"#,
        "arguments.path",
    ),
    (
        r#""arguments":{"a":[{"b":{"c":1,"c":2}}],"path":"/safe"}"#,
        "arguments.a[0].b.c",
    ),
    (
        r#""_meta":{"ProgressToken":1},"arguments":{}"#,
        "_meta.ProgressToken",
    ),
    (r#""_Meta":{},"arguments":{}"#, "_Meta"),
];

/// Calls that are unusual, and mean the same to every reader.
const INNOCENT: [&str; 4] = [
    r#""arguments":{"path":"/safe","name":"a","NAME":"b","Name":"c","Arguments":{"Uri":1}}"#,
    r#""arguments":{"path":"/safe","\ud800":"\udc00","\ud801":"x\ud83d"}"#,
    r#""\u0061rguments":{"path":"/safe","é":[{"a":1},{"a":1}]}"#,
    r#""arguments":{"path":"/safe","a":{"path":1,"b":{"path":2}}}"#,
];

/// A request that routing, a filter or an allow-list judges has one meaning; the error names the key.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ambiguous_requests_are_refused_where_they_are_judged() {
    for (keys, more, ways) in [
        ("", "", JUDGED.to_vec()),
        (
            "hidden_tools = [\"secret\"]",
            "",
            [&JUDGED[..], &SINGLE[..]].concat(),
        ),
        ("", FILTER, [&JUDGED[..], &SINGLE[..]].concat()),
    ] {
        let (_gateway, origin) = gateway(&config("first", keys, more)).await;
        let mut refused = 0;
        for way in ways {
            for (caller, tool) in callers(&origin, way).await {
                for (members, path) in ATTACKS {
                    let what = format!("{keys} {way:?} {members}");
                    let error = caller.call(&tool, members).await.unwrap_err();
                    assert_eq!(error["code"], -32602, "{what}: {error}");
                    assert_eq!(
                        error["data"]["reason"], "request_ambiguous",
                        "{what}: {error}"
                    );
                    assert_eq!(error["data"]["path"], path, "{what}: {error}");
                    refused += 1;
                }
                for members in INNOCENT {
                    let said = caller.call(&tool, members).await.unwrap();
                    assert!(said.starts_with("ran open on /safe"), "{way:?}: {said}");
                    let arguments = members.split_once(':').unwrap().1;
                    assert!(said.contains(arguments), "{way:?}: {said}");
                }
            }
        }
        let text = metrics(&origin).await;
        let words = [
            "mcpact_denials_total",
            "method=\"tools/call\"",
            "reason=\"request_ambiguous\"",
        ];
        assert_eq!(value(&text, &words), Some(f64::from(refused)), "{text}");
    }
}

/// Without a rule, one server at its own endpoint gets the parameters as they are.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unjudged_requests_pass_unchanged() {
    let (_gateway, origin) = gateway(&config("last", "", "")).await;
    for way in SINGLE {
        let caller = Caller::legacy(&origin, way.0, way.1).await;
        for (members, ran) in [
            (
                r#""Name":"secret","arguments":{"path":"/a"}"#,
                "ran secret on /a",
            ),
            (r#""arguments":{"path":"/a","path":"/b"}"#, "ran open on /b"),
        ] {
            let said = caller.call("open", members).await.unwrap();
            assert!(said.starts_with(ran) && said.contains(members), "{said}");
        }
    }
}

/// A list of tools is withheld if tools are hidden and another reader could see more tools in it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ambiguous_tool_lists_are_withheld_if_tools_are_hidden() {
    for more in [
        r#","x":1,"x":2"#,
        r#","tools":[{"name":"secret","inputSchema":{}}]"#,
        r#","Tools":[{"name":"secret","inputSchema":{}}]"#,
    ] {
        for keys in [
            "hidden_tools = [\"secret\"]",
            "changed_tools = \"hide\"",
            "needs = { open = [\"sampling\"] }",
        ] {
            let text = listing(more, keys);
            let (_gateway, origin) = gateway(&text).await;
            for way in SINGLE {
                for (caller, _) in callers(&origin, way).await {
                    let answer = caller.list().await;
                    // A client of the other era has a translated list, which knows fewer ambiguities.
                    let is_withheld = answer.contains("upstream_ambiguous")
                        || caller.session.is_none() && answer.contains("upstream_unfit");
                    assert!(is_withheld, "{more} {keys}: {answer}");
                    assert!(!answer.contains("inputSchema"), "{more} {keys}: {answer}");
                }
            }
        }
    }
    let (_gateway, origin) = gateway(&listing(r#","x":1,"x":2"#, "")).await;
    let caller = Caller::legacy(&origin, "/servers/s/mcp", "").await;
    assert!(
        caller.list().await.contains("secret"),
        "no rule judges the list"
    );
}

/// A result that a filter judges is withheld; the error names server and key.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ambiguous_results_are_withheld_from_filters() {
    let (_gateway, origin) = gateway(&config("last", "", FILTER)).await;
    for way in [&JUDGED[..], &SINGLE[..]].concat() {
        for (caller, tool) in callers(&origin, way).await {
            for (name, path) in [("twice", "content[0].text"), ("folded", "Content")] {
                let tool = tool.replace("open", name);
                let error = caller.call(&tool, r#""arguments":{}"#).await.unwrap_err();
                let message = error["message"].as_str().unwrap();
                assert!(message.starts_with("`s`: "), "{message}");
                assert!(message.contains(path), "{message}");
                assert_eq!(error["data"]["reason"], "upstream_ambiguous", "{error}");
            }
        }
    }
    let (_gateway, origin) = gateway(&config("last", "", "")).await;
    let caller = Caller::legacy(&origin, "/mcp", "").await;
    assert!(caller.call("s__twice", r#""arguments":{}"#).await.is_ok());
}

/// A key that the gateway reads itself must not occur twice at any endpoint; the error has the id of the request.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn protocol_keys_occur_once_at_every_endpoint() {
    let (_gateway, origin) = gateway(&config("first", "", "")).await;
    for way in [&JUDGED[..], &SINGLE[..]].concat() {
        for (caller, tool) in callers(&origin, way).await {
            for (members, key) in [
                (r#""name":"secret","arguments":{}"#, "name"),
                (
                    r#""arguments":{},"argument\u0073":{"path":"/etc"}"#,
                    "arguments",
                ),
            ] {
                let error = caller.call(&tool, members).await.unwrap_err();
                assert_eq!(error["code"], -32602, "{way:?} {members}: {error}");
                assert_eq!(error["data"]["key"], key, "{way:?} {members}: {error}");
            }
        }
    }
}
