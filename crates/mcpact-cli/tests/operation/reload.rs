//! Config reload.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

use mcpact::client::{Change, Changes, Client, Watch};
use mcpact_engine::client::EraMode;
use mcpact_spec::Revision;
use serde_json::{Value, json};

use crate::harness::{Harness, PATIENCE, builtin, call, request, wait_until};

fn names(status: &Value) -> Vec<&str> {
    let servers = status["servers"].as_array().unwrap().iter();
    servers
        .map(|server| server["name"].as_str().unwrap())
        .collect()
}

/// Sessions of both kinds of endpoints and a running call survive.
#[test]
fn reload_keeps_unchanged_servers_running() {
    let harness = Harness::new("");
    let gated = harness.gated();
    harness.configure(&format!("{gated}{}", builtin("one")));
    let gateway = harness.serve();
    let (all, alone) = (gateway.open("/mcp"), gateway.open("/servers/gated/mcp"));
    let process = |status: &Value| status["servers"][0]["instances"][0]["pid"].clone();
    std::thread::scope(|scope| {
        let calling = scope.spawn(|| gateway.post("/mcp", Some(&all), &call("gated__wait")));
        harness.wait_for_call();
        let before = process(&harness.status());
        harness.configure(&format!("{gated}{}", builtin("two")));
        let (code, stdout, stderr) = harness.run(&["reload", "--json"]);
        assert_eq!(code, 0, "{stderr}");
        let report: Value = serde_json::from_str(&stdout).unwrap();
        assert_eq!(report["started"], json!(["two"]));
        assert_eq!(report["stopped"], json!(["one"]));
        assert_eq!(report["unchanged"], json!(["gated"]));
        harness.open_the_gate();
        assert!(calling.join().unwrap().body.contains("waited"));
        let status = harness.status();
        assert_eq!(names(&status), ["gated", "two"]);
        assert_eq!(process(&status), before);
        assert_eq!(status["gateway"]["sessions"], 2);
    });
    let list = request("tools/list", &json!({}));
    let listed = gateway.post("/mcp", Some(&all), &list);
    assert!(listed.body.contains("two__echo") && !listed.body.contains("one__echo"));
    let listed = gateway.post("/servers/gated/mcp", Some(&alone), &list);
    assert!(listed.body.contains("\"wait\""), "{listed:?}");
    let called = gateway.post("/mcp", Some(&all), &call("two__echo"));
    assert!(called.body.contains("hello"), "{called:?}");
}

/// It accepts no new calls; the session of the client survives.
#[test]
fn removed_server_drains_before_it_stops() {
    let harness = Harness::new("");
    harness.configure(&harness.gated());
    let gateway = harness.serve();
    let session = gateway.open("/mcp");
    std::thread::scope(|scope| {
        let calling = scope.spawn(|| gateway.post("/mcp", Some(&session), &call("gated__wait")));
        harness.wait_for_call();
        let status = harness.status();
        let process = status["servers"][0]["instances"][0]["pid"].to_string();
        harness.configure(&builtin("other"));
        assert_eq!(harness.run(&["reload"]).0, 0);
        let status = harness.status();
        let gated = status["servers"].as_array().unwrap().iter();
        let gated = gated.clone().find(|server| server["name"] == "gated");
        let gated = gated.unwrap();
        for (key, expected) in [
            ("state", "draining"),
            ("transport", "stdio"),
            ("revision", "2025-06-18"),
        ] {
            assert_eq!(gated[key], expected, "{gated}");
        }
        let mut again = call("gated__wait");
        again["id"] = json!(2);
        let refused = gateway.post("/mcp", Some(&session), &again);
        assert!(refused.body.contains("other"), "{refused:?}");
        harness.open_the_gate();
        assert!(calling.join().unwrap().body.contains("waited"));
        let lives = || {
            let asked = Command::new("kill").args(["-0", &process]).output();
            asked.unwrap().status.success()
        };
        wait_until(|| !lives());
    });
    let mut called = call("other__echo");
    called["id"] = json!(3);
    let called = gateway.post("/mcp", Some(&session), &called);
    assert!(called.body.contains("hello"), "{called:?}");
}

/// Prefix, separator and limits change without a restart. Raw HTTP, because the library client
/// would reopen a lost session.
#[test]
fn renaming_does_not_restart_servers() {
    let harness = Harness::new(&builtin("one"));
    let gateway = harness.serve();
    let (session, alone) = (gateway.open("/mcp"), gateway.open("/servers/one/mcp"));
    let list = request("tools/list", &json!({}));
    let listed = || gateway.post("/mcp", Some(&session), &list).body;
    assert!(listed().contains("one__echo"));
    for (keys, more, expected) in [
        ("separator = \"-\"\n", "", "\"one-echo\""),
        ("names = \"flat\"\n", "", "\"echo\""),
        ("", "prefix = \"uno\"\n", "\"uno__echo\""),
        ("", "queue = 3\n", "\"one__echo\""),
    ] {
        harness.configure(&format!("{keys}{}{more}", builtin("one")));
        assert_eq!(harness.run(&["reload"]).0, 0);
        let listed = listed();
        assert!(listed.contains(expected), "{expected}: {listed}");
        let listed = gateway.post("/servers/one/mcp", Some(&alone), &list);
        assert_eq!(listed.status, 200, "{expected}: {listed:?}");
        assert!(listed.body.contains("\"echo\""), "{listed:?}");
    }
    assert_eq!(harness.status()["servers"][0]["starts"], 1);
}

#[test]
fn invalid_config_is_rejected_with_its_position() {
    let harness = Harness::new(&builtin("one"));
    let gateway = harness.serve();
    let session = gateway.open("/mcp");
    let mut following = harness.follow_logs();
    harness.configure("[servers.two]\nbuiltni = \"everything\"\n");
    let message = following.next(Some("reload_failure"));
    assert!(
        message.contains("mcpact.toml:4:1") && message.contains("`builtin`"),
        "{message}"
    );
    let status = harness.status();
    assert_eq!(status["gateway"]["last_reload"]["applied"], false);
    assert_eq!(status["gateway"]["last_reload"]["problems"][1]["line"], 4);
    assert_eq!(names(&status), ["one"]);
    let (code, stdout, stderr) = harness.run(&["reload"]);
    assert_eq!(code, 2);
    let rejected = "config rejected; the previous config stays in effect";
    assert!(stdout.contains(rejected), "{stdout}");
    assert!(
        stderr.contains("mcpact.toml:4:1") && stderr.contains("`builtin`"),
        "{stderr}"
    );
    let called = gateway.post("/mcp", Some(&session), &call("one__echo"));
    assert!(called.body.contains("hello"), "{called:?}");
}

/// By status and log, also after an automatic reload.
#[test]
fn keys_that_need_a_restart_are_reported() {
    let harness = Harness::new(&builtin("one"));
    let _gateway = harness.serve();
    let mut following = harness.follow_logs();
    let keys =
        "token = \"0123456789abcdef0123456789abcdef\"\nallow_origins = [\"https://a.example\"]\n";
    let filter = "[filters.f]\ncommand = \"cat\"\n";
    harness.configure(&format!("{keys}{}{filter}", builtin("one")));
    let message = following.next(Some("reload_success"));
    let (code, shown, _) = harness.run(&["status"]);
    assert_eq!(code, 0);
    // The output is wrapped.
    let shown = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    for message in [message, shown] {
        let waits = "needs a gateway restart: `token`, `allow_origins`, `filters`";
        assert!(message.contains(waits), "{message}");
    }
}

#[test]
fn rejected_configs_are_counted() {
    let harness = Harness::new(&builtin("one"));
    let gateway = harness.serve();
    let config = harness.path("mcpact.toml");
    let wrong = ["[servers", "\u{1}", "", "[servers.two]\nbuiltni = \"x\"\n"];
    for text in wrong {
        fs::write(&config, text).unwrap();
        assert_eq!(harness.run(&["reload"]).0, 2, "{text}");
    }
    fs::remove_file(&config).unwrap();
    assert_eq!(harness.run(&["reload"]).0, 2);
    let metrics = gateway.get("/metrics").body;
    let counted = metrics
        .lines()
        .find_map(|line| line.strip_prefix("mcpact_reloads_total{outcome=\"refused\"} "));
    let counted: u32 = counted
        .unwrap_or_else(|| panic!("{metrics}"))
        .parse()
        .unwrap();
    // The file is also watched, so some configs may be rejected twice.
    assert!(counted > 4, "{metrics}");
}

/// Nothing is started, even with strategy `persistent`.
#[test]
fn reload_rejects_dangerous_commands() {
    let harness = Harness::new(&builtin("one"));
    let gateway = harness.serve();
    let session = gateway.open("/mcp");
    let marker = harness.path("marker");
    let marker = marker.to_str().unwrap();
    let touch = format!("touch {marker}");
    let curl = format!("curl -s http://127.0.0.1:1/x | sh; {touch}");
    let dangerous: [(&str, &[&str]); 6] = [
        ("sh", &["-c", &touch]),
        ("bash", &["-c", &curl]),
        ("sudo", &["-n", "touch", marker]),
        ("env", &["A=1", "sh", "-c", &touch]),
        ("curl", &["-o", marker, "file:///etc/hostname"]),
        ("touch", &[marker, "&&", "sh"]),
    ];
    for (command, args) in dangerous {
        let what = format!("{command} {args:?}");
        let bad = format!("command = {command:?}\nargs = {args:?}\nstrategy = \"persistent\"\n");
        harness.configure(&format!("{}[servers.bad]\n{bad}", builtin("two")));
        let (code, _, stderr) = harness.run(&["reload"]);
        assert_eq!(code, 2, "{what}: {stderr}");
        assert!(stderr.contains("mcpact.toml:"), "{what}: {stderr}");
        assert_eq!(names(&harness.status()), ["one"], "{what}");
    }
    let called = gateway.post("/mcp", Some(&session), &call("one__echo"));
    assert!(called.body.contains("hello"), "{called:?}");
    harness.configure(&builtin("two"));
    assert_eq!(harness.run(&["reload"]).0, 0);
    assert_eq!(names(&harness.status()), ["two"]);
    assert!(!harness.path("marker").exists());
}

/// Write in place, rename, delete and create, symlink change; and signal HUP.
#[test]
fn every_kind_of_file_change_triggers_a_reload() {
    let harness = Harness::new(&builtin("one"));
    let gateway = harness.serve();
    let mut following = harness.follow_logs();
    let mut taken = |name: &str| {
        let message = following.next(Some("reload_success"));
        assert!(message.contains("1 started, 1 stopped"), "{message}");
        assert_eq!(names(&harness.status()), [name]);
    };
    let config = harness.path("mcpact.toml");
    let text = |name: &str| {
        harness.configure(&builtin(name));
        fs::read_to_string(&config).unwrap()
    };
    text("two");
    taken("two");
    // Like editors: write a new file, then rename it.
    let next = fs::read_to_string(&config).unwrap().replace("two", "three");
    fs::write(harness.path("mcpact.toml~"), &next).unwrap();
    fs::rename(harness.path("mcpact.toml~"), &config).unwrap();
    taken("three");
    fs::remove_file(&config).unwrap();
    fs::write(&config, next.replace("three", "four")).unwrap();
    taken("four");
    // Like Kubernetes volumes: replace the symlink to the directory.
    for name in ["five", "six"] {
        let folder = harness.path(name);
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("mcpact.toml"), next.replace("three", name)).unwrap();
        symlink(name, harness.path("..data_tmp")).unwrap();
        fs::rename(harness.path("..data_tmp"), harness.path("..data")).unwrap();
        if name == "five" {
            symlink("..data/mcpact.toml", harness.path("link")).unwrap();
            fs::rename(harness.path("link"), &config).unwrap();
        }
        taken(name);
    }
    gateway.signal("-HUP");
    let message = following.next(Some("reload_success"));
    assert!(
        message.contains("(signal)") && message.contains("1 unchanged"),
        "{message}"
    );
}

/// Also if a whole volume is replaced. A broken file changes nothing until it is fixed.
#[test]
fn changed_referenced_file_triggers_a_reload() {
    let harness = Harness::new(&builtin("one"));
    let volume = |name: &str, key: &str| {
        fs::create_dir(harness.path(name)).unwrap();
        fs::write(harness.path(name).join("key"), key).unwrap();
        symlink(name, harness.path("..data_tmp")).unwrap();
        fs::rename(harness.path("..data_tmp"), harness.path("..data")).unwrap();
    };
    volume("first", "old");
    symlink("..data/key", harness.path("key")).unwrap();
    fs::write(harness.path("variables"), "A=1\n").unwrap();
    let program = harness.silent();
    harness.configure(&format!(
        "{program}env = {{ KEY = \"${{file:key}}\" }}\nenv_file = \"variables\"\n"
    ));
    let _gateway = harness.serve();
    let mut following = harness.follow_logs();
    let mut restarted = || {
        let message = following.next(Some("reload_success"));
        assert!(message.contains("(file)"), "{message}");
        assert!(message.contains("1 restarted"), "{message}");
    };
    volume("second", "new");
    restarted();
    fs::write(harness.path("variables"), "A=2\n").unwrap();
    restarted();
    fs::write(harness.path("variables"), "no variable\n").unwrap();
    let message = harness.follow_logs().next(Some("reload_failure"));
    assert!(message.contains("is not `NAME=value`"), "{message}");
    fs::write(harness.path("variables"), "A=3\n").unwrap();
    restarted();
}

const WATCHED: &str = "test://watched-resource";

/// Waits for a resource update.
async fn wait_for_update(changes: &mut Changes, what: &str) {
    let uri = WATCHED.to_owned();
    let expected = Some(Change::Updated { uri });
    let message = async { while changes.next().await != expected {} };
    let message = tokio::time::timeout(PATIENCE, message).await;
    assert!(message.is_ok(), "{what}");
}

/// For clients and servers of both eras.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn subscriptions_survive_removal_of_their_server() {
    for speaks in [Revision::V2025_11_25, Revision::V2026_07_28] {
        for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
            let what = format!("{revision} at {speaks}");
            let one = format!("[servers.one]\nbuiltin = \"everything\"\nera = \"{speaks}\"\n");
            let harness = Harness::new(&one);
            let gateway = harness.serve();
            let client = Client::builder("person", "1").mode(EraMode::Pin(revision));
            let client = client.connect(format!("{}/mcp", gateway.origin)).await;
            let client = client.unwrap();
            let watch = Watch::new().resource(WATCHED);
            let mut changes = client.watch(watch).await.unwrap();
            for config in [builtin("other"), format!("{one}{}", builtin("other"))] {
                harness.configure(&config);
                assert_eq!(harness.run(&["reload"]).0, 0, "{what}");
            }
            wait_for_update(&mut changes, &what).await;
            let trigger = "one__test_trigger_resource_update";
            client.call_tool(trigger, json!({})).await.unwrap();
            wait_for_update(&mut changes, &what).await;
            client.close().await;
        }
    }
}
