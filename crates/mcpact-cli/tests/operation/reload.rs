//! Another config for a gateway that runs.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

use mcpact::client::{Change, Changes, Client, Watch};
use mcpact_engine::client::EraMode;
use mcpact_spec::Revision;
use serde_json::{Value, json};

use crate::house::{House, PATIENCE, builtin, call, request, until};

fn names(status: &Value) -> Vec<&str> {
    let servers = status["servers"].as_array().unwrap().iter();
    servers
        .map(|server| server["name"].as_str().unwrap())
        .collect()
}

/// Sessions at both kinds of addresses outlive a reload that is about other servers, and so does a call that
/// runs; what did not change keeps its process.
#[test]
fn what_did_not_change_goes_on() {
    let house = House::new("");
    let gated = house.gated();
    house.configure(&format!("{gated}{}", builtin("one")));
    let gateway = house.serve();
    let (all, alone) = (gateway.open("/mcp"), gateway.open("/servers/gated/mcp"));
    let process = |status: &Value| status["servers"][0]["instances"][0]["pid"].clone();
    std::thread::scope(|scope| {
        let calling = scope.spawn(|| gateway.post("/mcp", Some(&all), &call("gated__wait")));
        house.called();
        let before = process(&house.status());
        house.configure(&format!("{gated}{}", builtin("two")));
        let (code, printed, told) = house.run(&["reload", "--json"]);
        assert_eq!(code, 0, "{told}");
        let report: Value = serde_json::from_str(&printed).unwrap();
        assert_eq!(report["started"], json!(["two"]));
        assert_eq!(report["stopped"], json!(["one"]));
        assert_eq!(report["unchanged"], json!(["gated"]));
        house.open_the_gate();
        assert!(calling.join().unwrap().body.contains("waited"));
        let status = house.status();
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

/// A server that is not configured any more takes no new calls; the one that runs finishes, and nothing is
/// left of the server, although the client stays.
#[test]
fn what_is_gone_is_ended_when_its_calls_are() {
    let house = House::new("");
    house.configure(&house.gated());
    let gateway = house.serve();
    let session = gateway.open("/mcp");
    std::thread::scope(|scope| {
        let calling = scope.spawn(|| gateway.post("/mcp", Some(&session), &call("gated__wait")));
        house.called();
        let status = house.status();
        let process = status["servers"][0]["instances"][0]["pid"].to_string();
        house.configure(&builtin("other"));
        assert_eq!(house.run(&["reload"]).0, 0);
        let status = house.status();
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
        house.open_the_gate();
        assert!(calling.join().unwrap().body.contains("waited"));
        let lives = || {
            let asked = Command::new("kill").args(["-0", &process]).output();
            asked.unwrap().status.success()
        };
        until(|| !lives());
    });
    let mut called = call("other__echo");
    called["id"] = json!(3);
    let called = gateway.post("/mcp", Some(&session), &called);
    assert!(called.body.contains("hello"), "{called:?}");
}

/// Other names, another separator and other limits hold without a new start, and the sessions at the address of the
/// server alone outlive them. A session that is lost is not opened anew here, as a client of ours would.
#[test]
fn names_change_without_a_new_start() {
    let house = House::new(&builtin("one"));
    let gateway = house.serve();
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
        house.configure(&format!("{keys}{}{more}", builtin("one")));
        assert_eq!(house.run(&["reload"]).0, 0);
        let listed = listed();
        assert!(listed.contains(expected), "{expected}: {listed}");
        let listed = gateway.post("/servers/one/mcp", Some(&alone), &list);
        assert_eq!(listed.status, 200, "{expected}: {listed:?}");
        assert!(listed.body.contains("\"echo\""), "{listed:?}");
    }
    assert_eq!(house.status()["servers"][0]["starts"], 1);
}

/// A config that is wrong is told with its place, and changes nothing.
#[test]
fn a_wrong_config_is_told_and_changes_nothing() {
    let house = House::new(&builtin("one"));
    let gateway = house.serve();
    let session = gateway.open("/mcp");
    let mut following = house.follow();
    house.configure("[servers.two]\nbuiltni = \"everything\"\n");
    let told = following.next(Some("reload_failure"));
    assert!(
        told.contains("mcpact.toml:4:1") && told.contains("`builtin`"),
        "{told}"
    );
    let status = house.status();
    assert_eq!(status["gateway"]["last_reload"]["applied"], false);
    assert_eq!(status["gateway"]["last_reload"]["problems"][1]["line"], 4);
    assert_eq!(names(&status), ["one"]);
    let (code, printed, told) = house.run(&["reload"]);
    assert_eq!(code, 2);
    assert!(printed.contains("nothing was changed"), "{printed}");
    assert!(
        told.contains("mcpact.toml:4:1") && told.contains("`builtin`"),
        "{told}"
    );
    let called = gateway.post("/mcp", Some(&session), &call("one__echo"));
    assert!(called.body.contains("hello"), "{called:?}");
}

/// What takes effect at the next start only is named by the status and by the log, also if nobody asked
/// for the config to be read anew.
#[test]
fn what_waits_for_the_next_start_is_told() {
    let house = House::new(&builtin("one"));
    let _gateway = house.serve();
    let mut following = house.follow();
    let keys =
        "token = \"0123456789abcdef0123456789abcdef\"\nallow_origins = [\"https://a.example\"]\n";
    let filter = "[filters.f]\ncommand = \"cat\"\n";
    house.configure(&format!("{keys}{}{filter}", builtin("one")));
    let told = following.next(Some("reload_success"));
    let (code, shown, _) = house.run(&["status"]);
    assert_eq!(code, 0);
    // The page is cut into lines.
    let shown = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    for told in [told, shown] {
        let waits = "at the next start: `token`, `allow_origins`, `filters`";
        assert!(told.contains(waits), "{told}");
    }
}

/// A config that is refused is counted, whatever is wrong with it.
#[test]
fn refused_configs_are_counted() {
    let house = House::new(&builtin("one"));
    let gateway = house.serve();
    let config = house.path("mcpact.toml");
    let wrong = ["[servers", "\u{1}", "", "[servers.two]\nbuiltni = \"x\"\n"];
    for text in wrong {
        fs::write(&config, text).unwrap();
        assert_eq!(house.run(&["reload"]).0, 2, "{text}");
    }
    fs::remove_file(&config).unwrap();
    assert_eq!(house.run(&["reload"]).0, 2);
    let metrics = gateway.get("/metrics").body;
    let counted = metrics
        .lines()
        .find_map(|line| line.strip_prefix("mcpact_reloads_total{outcome=\"refused\"} "));
    let counted: u32 = counted
        .unwrap_or_else(|| panic!("{metrics}"))
        .parse()
        .unwrap();
    // The file is watched, too, so that some may have been refused twice.
    assert!(counted > 4, "{metrics}");
}

/// A dangerous command does not come by another config either: nothing of it is taken, and nothing is
/// started, even if it should always run.
#[test]
fn a_dangerous_command_does_not_come_by_a_reload() {
    let house = House::new(&builtin("one"));
    let gateway = house.serve();
    let session = gateway.open("/mcp");
    let marker = house.path("marker");
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
        house.configure(&format!("{}[servers.bad]\n{bad}", builtin("two")));
        let (code, _, told) = house.run(&["reload"]);
        assert_eq!(code, 2, "{what}: {told}");
        assert!(told.contains("mcpact.toml:"), "{what}: {told}");
        assert_eq!(names(&house.status()), ["one"], "{what}");
    }
    let called = gateway.post("/mcp", Some(&session), &call("one__echo"));
    assert!(called.body.contains("hello"), "{called:?}");
    house.configure(&builtin("two"));
    assert_eq!(house.run(&["reload"]).0, 0);
    assert_eq!(names(&house.status()), ["two"]);
    assert!(!house.path("marker").exists());
}

/// Whatever way a file changes, it is read anew: written in place, replaced by another, gone for a moment,
/// behind a link that leads elsewhere; and when a signal says so.
#[test]
fn every_way_to_change_a_file_is_noticed() {
    let house = House::new(&builtin("one"));
    let gateway = house.serve();
    let mut following = house.follow();
    let mut taken = |name: &str| {
        let told = following.next(Some("reload_success"));
        assert!(told.contains("1 started, 1 stopped"), "{told}");
        assert_eq!(names(&house.status()), [name]);
    };
    let config = house.path("mcpact.toml");
    let text = |name: &str| {
        house.configure(&builtin(name));
        fs::read_to_string(&config).unwrap()
    };
    text("two");
    taken("two");
    // As editors do.
    let next = fs::read_to_string(&config).unwrap().replace("two", "three");
    fs::write(house.path("mcpact.toml~"), &next).unwrap();
    fs::rename(house.path("mcpact.toml~"), &config).unwrap();
    taken("three");
    fs::remove_file(&config).unwrap();
    fs::write(&config, next.replace("three", "four")).unwrap();
    taken("four");
    // As volumes of a cluster do: the link to the folder is replaced.
    for name in ["five", "six"] {
        let folder = house.path(name);
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("mcpact.toml"), next.replace("three", name)).unwrap();
        symlink(name, house.path("..data_tmp")).unwrap();
        fs::rename(house.path("..data_tmp"), house.path("..data")).unwrap();
        if name == "five" {
            symlink("..data/mcpact.toml", house.path("link")).unwrap();
            fs::rename(house.path("link"), &config).unwrap();
        }
        taken(name);
    }
    gateway.signal("-HUP");
    let told = following.next(Some("reload_success"));
    assert!(
        told.contains("(signal)") && told.contains("1 unchanged"),
        "{told}"
    );
}

/// Another key in a file that the config names is noticed although the config says the same, also where a volume of a
/// cluster is replaced as a whole; one that is broken changes nothing until it is mended.
#[test]
fn another_key_in_a_file_is_noticed() {
    let house = House::new(&builtin("one"));
    let volume = |name: &str, key: &str| {
        fs::create_dir(house.path(name)).unwrap();
        fs::write(house.path(name).join("key"), key).unwrap();
        symlink(name, house.path("..data_tmp")).unwrap();
        fs::rename(house.path("..data_tmp"), house.path("..data")).unwrap();
    };
    volume("first", "old");
    symlink("..data/key", house.path("key")).unwrap();
    fs::write(house.path("variables"), "A=1\n").unwrap();
    let program = house.mute();
    house.configure(&format!(
        "{program}env = {{ KEY = \"${{file:key}}\" }}\nenv_file = \"variables\"\n"
    ));
    let _gateway = house.serve();
    let mut following = house.follow();
    let mut restarted = || {
        let told = following.next(Some("reload_success"));
        assert!(told.contains("(file)"), "{told}");
        assert!(told.contains("1 restarted"), "{told}");
    };
    volume("second", "new");
    restarted();
    fs::write(house.path("variables"), "A=2\n").unwrap();
    restarted();
    fs::write(house.path("variables"), "no variable\n").unwrap();
    let told = house.follow().next(Some("reload_failure"));
    assert!(told.contains("is no `NAME=value`"), "{told}");
    fs::write(house.path("variables"), "A=3\n").unwrap();
    restarted();
}

const WATCHED: &str = "test://watched-resource";

/// Until a client is told that the resource may have changed.
async fn is_updated(changes: &mut Changes, what: &str) {
    let uri = WATCHED.to_owned();
    let expected = Some(Change::Updated { uri });
    let told = async { while changes.next().await != expected {} };
    let told = tokio::time::timeout(PATIENCE, told).await;
    assert!(told.is_ok(), "{what}");
}

/// What clients of both eras have subscribed to waits while the config does not have its server, and is heard of
/// again as soon as it has.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn subscriptions_wait_for_a_server_that_comes_back() {
    for speaks in [Revision::V2025_11_25, Revision::V2026_07_28] {
        for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
            let what = format!("{revision} at {speaks}");
            let one = format!("[servers.one]\nbuiltin = \"everything\"\nera = \"{speaks}\"\n");
            let house = House::new(&one);
            let gateway = house.serve();
            let client = Client::builder("person", "1").mode(EraMode::Pin(revision));
            let client = client.connect(format!("{}/mcp", gateway.origin)).await;
            let client = client.unwrap();
            let watch = Watch::new().resource(WATCHED);
            let mut changes = client.watch(watch).await.unwrap();
            for config in [builtin("other"), format!("{one}{}", builtin("other"))] {
                house.configure(&config);
                assert_eq!(house.run(&["reload"]).0, 0, "{what}");
            }
            is_updated(&mut changes, &what).await;
            let trigger = "one__test_trigger_resource_update";
            client.call_tool(trigger, json!({})).await.unwrap();
            is_updated(&mut changes, &what).await;
            client.close().await;
        }
    }
}
