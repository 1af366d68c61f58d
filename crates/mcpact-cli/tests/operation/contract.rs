//! The contract, as a running gateway shows it: metrics, and the fields of everything that is JSON.
//! `src/contract_tests.rs` has the rest.

#[path = "../contract/pin.rs"]
mod pin;

mod shape;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use self::pin::pin;
use self::shape::Shapes;
use crate::harness::{Harness, Running, builtin, call, handshake, request, wait_until};

/// Time for a gateway to show everything that the committed files have.
const PATIENCE: Duration = Duration::from_secs(30);

/// A legacy server that sends a log message and something that is not JSON before each result. It lists what is in
/// the file `tools` beside it.
const TALKER: &str = r#"#!/bin/sh
echo "started" >&2
here=$(dirname "$0")
while read -r line; do
    id=$(printf '%s' "$line" | sed -n 's/.*"id":\("[^"]*"\|[0-9]*\).*/\1/p')
    case "$line" in
        *'"initialize"'*) result='{"protocolVersion":"2025-06-18","capabilities":{"tools":{},"logging":{}},"serverInfo":{"name":"talker","version":"1"}}' ;;
        *'"tools/list"'*) result=$(cat "$here/tools") ;;
        *'"tools/call"'*)
            printf '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"working"}}\n'
            printf 'not json\n'
            result='{"content":[{"type":"text","text":"done"}]}' ;;
        *) result='{}' ;;
    esac
    case "$line" in
        *'"id":'*) printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result" ;;
    esac
done
"#;

const CRASHING: &str = "#!/bin/sh\necho 'no key' >&2\nexit 3\n";

/// Sets the tools of the server `talker`; the last entry is invalid.
fn describe(harness: &Harness, description: &str) {
    let tools = json!({"tools": [
        {"name": "speak", "inputSchema": {"type": "object"}},
        {"name": "changing", "description": description, "inputSchema": {"type": "object"}},
        5,
    ]});
    fs::write(harness.path("tools"), tools.to_string()).unwrap();
}

/// Servers of every transport: some that work, and some that fail in different ways.
fn servers(harness: &Harness) -> String {
    let mcpact = env!("CARGO_BIN_EXE_mcpact");
    let talker = harness.program("talker", TALKER);
    let crashing = harness.program("crashing", CRASHING);
    let local = builtin("local");
    format!(
        "lenient = true\nwatch = false\n{local}\
         [servers.program]\ncommand = \"{mcpact}\"\nargs = [\"everything\"]\nenv = {{ KEY = \"value\" }}\n\
         [servers.far]\nurl = \"http://127.0.0.1:1/mcp\"\nheaders = {{ X-Key = \"value\" }}\nbackoff_seconds = 0.1\n\
         [servers.invalid]\ncomand = \"sleep\"\n\
         {crashing}backoff_seconds = 0.01\nbackoff_max_seconds = 0.1\nfailures = 1000\n\
         {talker}changed_tools = \"hide\"\n"
    )
}

/// Starts a gateway after the definition of a tool of `talker` changed.
fn gateway(harness: &Harness) -> Running {
    describe(harness, "before");
    let before = harness.serve();
    let session = before.open("/servers/talker/mcp");
    let list = request("tools/list", &json!({}));
    wait_until(|| {
        let listed = before.post("/servers/talker/mcp", Some(&session), &list);
        listed.body.contains("speak")
    });
    before.signal("-TERM");
    before.exit_code();
    describe(harness, "after");
    fs::remove_dir_all(harness.path("cache")).unwrap();
    harness.serve_with_info_log()
}

/// Requests of every outcome that is easy to have.
fn traffic(gateway: &Running, json: &mut Shapes) {
    let mut post = |path, session: Option<&str>, message: &Value| {
        let reply = gateway.post(path, session, message);
        let body: Value = serde_json::from_str(&reply.body).unwrap_or_default();
        if body["error"].is_object() {
            json.add("JSON-RPC error of the gateway", &body["error"]);
        }
    };
    post("/mcp", None, &call("local__echo"));
    post("/servers/nothing/mcp", None, &handshake());
    post("/tags/nothing/mcp", None, &handshake());
    let all = gateway.open("/mcp");
    let undeclared = json!({"jsonrpc": "2.0", "method": "notifications/roots/list_changed"});
    for message in [
        undeclared,
        request("tools/list", &json!({})),
        request("prompts/list", &json!({})),
        request("resources/list", &json!({})),
        request("resources/templates/list", &json!({})),
        call("local__echo"),
        call("program__echo"),
        call("crashing__echo"),
    ] {
        post("/mcp", Some(&all), &message);
    }
    let alone = gateway.open("/servers/talker/mcp");
    for message in [
        request("logging/setLevel", &json!({"level": "error"})),
        call("speak"),
    ] {
        post("/servers/talker/mcp", Some(&alone), &message);
    }
}

/// Everything that the gateway says about itself at one moment.
fn observe(harness: &Harness, gateway: &Running, json: &mut Shapes, metrics: &mut Metrics) {
    json.add("status", &harness.status());
    let (_, stdout, _) = harness.run(&["status", "--bundle", "-"]);
    json.add_text("status --bundle", &stdout);
    let (_, stdout, _) = harness.run(&["logs", "--json", "--lines", "100000"]);
    stdout.lines().for_each(|line| json.add_text("logs", line));
    json.add_text("/readyz", &gateway.get("/readyz").body);
    metrics.add(&gateway.get("/metrics").body);
    let log = fs::read_to_string(harness.path("log")).unwrap();
    let lines = log.lines().filter(|line| line.starts_with('{'));
    for line in lines.filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
        if line["target"] == "mcpact::negotiation" {
            json.add("log mcpact::negotiation", &line);
        }
    }
}

/// Reloads that change something of every kind, and reloads that are rejected in every way.
fn reloads(harness: &Harness, json: &mut Shapes) {
    let mut reload = || {
        let (_, stdout, _) = harness.run(&["reload", "--json"]);
        json.add_text("reload", &stdout);
    };
    let before = servers(harness);
    harness.configure(&format!("{before}{}", builtin("gone")));
    reload();
    let after = before
        .replace(
            "lenient = true",
            "lenient = true\ndrain_seconds = 1\nstrict = true",
        )
        .replace("KEY = \"value\"", "KEY = \"other\"")
        .replace("backoff_seconds = 0.01", "backoff_seconds = 0.02");
    harness.configure(&format!("{after}{}", builtin("new")));
    reload();
    for wrong in ["[servers.x]\nbuiltni = \"everything\"\n", "[servers.x\n"] {
        harness.configure(wrong);
        reload();
    }
    fs::remove_file(harness.path("mcpact.toml")).unwrap();
    reload();
    harness.configure(&after);
    reload();
}

/// The status of a gateway without a config and an endpoint.
fn status_without_a_config() -> Value {
    let harness = Harness::new("");
    fs::remove_file(harness.path("mcpact.toml")).unwrap();
    let mut gateway = harness.serve_stdio_without_config();
    wait_until(|| harness.run(&["status"]).0 == 0);
    let status = harness.status();
    drop(gateway.stdin.take());
    gateway.wait().unwrap();
    status
}

#[test]
fn contract_of_metrics_and_json_of_a_running_gateway() {
    let harness = Harness::new("");
    harness.configure(&servers(&harness));
    let gateway = gateway(&harness);
    let (mut json, mut metrics) = (Shapes::default(), Metrics::default());
    observe(&harness, &gateway, &mut json, &mut metrics);
    traffic(&gateway, &mut json);
    reloads(&harness, &mut json);
    traffic(&gateway, &mut json);
    json.add("status", &status_without_a_config());
    let late = Instant::now() + PATIENCE;
    loop {
        observe(&harness, &gateway, &mut json, &mut metrics);
        let is_whole =
            is_covered("json_gateway", &json.facts()) && is_covered("metrics", &metrics.facts());
        if is_whole || Instant::now() > late {
            break;
        }
    }
    pin("metrics", metrics.facts());
    pin("json_gateway", json.facts());
}

#[test]
fn contract_of_json_of_check_and_explain() {
    let harness = Harness::new("");
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests");
    let mut json = Shapes::default();
    for name in ["good.toml", "wrong.toml", "broken.json", "dangerous.yaml"] {
        let file = format!("{folder}/configs/{name}");
        let (_, stdout, _) = harness.run(&["check", "--json", &file]);
        json.add_text("check", &stdout);
    }
    for args in [
        &[][..],
        &["--revision", "2024-11-05"],
        &["--client", "modern-request", "--server", "discover-result"],
        &["--client", "bare-client", "--server", "discover-result"],
        &["--server", "wrongly-typed"],
        &["--profile", "erlmcp"],
        &["--profile", "erlmcp", "--revision", "2025-06-18"],
        &["--client", "modern-only"],
        &["--client", "future"],
        &["--server", "wrongly-typed", "--strict"],
    ] {
        let files = args.iter().map(|arg| {
            let file = format!("{folder}/documents/{arg}.json");
            if fs::exists(&file).unwrap() {
                file
            } else {
                (*arg).to_owned()
            }
        });
        let files: Vec<String> = files.collect();
        let args = ["explain", "--json"].into_iter();
        let args: Vec<&str> = args.chain(files.iter().map(String::as_str)).collect();
        let (_, stdout, _) = harness.run(&args);
        json.add_text("explain", &stdout);
    }
    pin("json_documents", json.facts());
}

#[test]
fn contract_of_json_of_probe_and_doctor() {
    let harness = Harness::new("");
    let program = env!("CARGO_BIN_EXE_mcpact");
    let mut json = Shapes::default();
    let noisy = format!("echo noise; exec {program:?} everything --revisions 2025-06-18");
    for target in [
        &[program, "everything"][..],
        &["sh", "-c", &noisy],
        &["sh", "-c", "exit 3"],
    ] {
        for command in ["probe", "doctor"] {
            let args: Vec<&str> = [command, "--json", "--"]
                .iter()
                .chain(target)
                .copied()
                .collect();
            let (_, stdout, _) = harness.run(&args);
            json.add_text(command, &stdout);
        }
    }
    pin("json_inspection", json.facts());
}

/// Returns true if the facts contain everything that is committed.
fn is_covered(name: &str, facts: &[String]) -> bool {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/contract");
    let committed = fs::read_to_string(format!("{folder}/{name}.snap")).unwrap_or_default();
    let Some((_, lines)) = committed.split_once("\n---\n") else {
        return false;
    };
    let facts: BTreeSet<&str> = facts.iter().map(String::as_str).collect();
    lines.lines().all(|line| facts.contains(line))
}

/// Metrics by name, with type and label names.
#[derive(Default)]
struct Metrics {
    types: BTreeMap<String, String>,
    labels: BTreeMap<String, BTreeSet<String>>,
    bounds: BTreeMap<String, Vec<String>>,
}

impl Metrics {
    fn add(&mut self, exposition: &str) {
        let mut family = String::new();
        for line in exposition.lines() {
            if let Some(declared) = line.strip_prefix("# TYPE ") {
                let (name, kind) = declared.split_once(' ').unwrap();
                name.clone_into(&mut family);
                self.types.insert(family.clone(), kind.to_owned());
            } else if !line.starts_with('#') {
                self.add_row(&family, line);
            }
        }
    }

    fn add_row(&mut self, family: &str, row: &str) {
        let labels = row.split_once('{').map_or("", |(_, rest)| rest);
        let labels = labels.rsplit_once('}').map_or("", |(labels, _)| labels);
        // No value has a comma or a quote in it.
        let pairs = labels.split(',').filter_map(|pair| pair.split_once('='));
        let mut names = Vec::new();
        for (name, value) in pairs {
            if name == "le" {
                let bounds = self.bounds.entry(family.to_owned()).or_default();
                let bound = value.trim_matches('"').to_owned();
                if !bounds.contains(&bound) {
                    bounds.push(bound);
                }
            } else {
                names.push(name);
            }
        }
        let known = self.labels.entry(family.to_owned()).or_default();
        known.insert(names.join(", "));
    }

    fn facts(&self) -> Vec<String> {
        let families = self.types.iter();
        let facts = families.map(|(name, kind)| {
            let labels = self.labels.get(name);
            let labels = labels.map_or_else(
                || String::from("labels not seen"),
                |sets| {
                    let sets: Vec<String> = sets.iter().map(|set| format!("{{{set}}}")).collect();
                    sets.join(" ")
                },
            );
            let bounds = self.bounds.get(name);
            let bounds =
                bounds.map_or_else(String::new, |all| format!(" buckets={}", all.join("|")));
            format!("{name} {kind} {labels}{bounds}")
        });
        facts.collect()
    }
}
