//! What is told about a gateway that runs.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};

use crate::house::{House, builtin, call, handshake, mode, request, until};

/// The gateway, the state and the revision of every server, its instances with their processes, what it
/// has, and what went wrong.
#[test]
fn people_and_machines_see_how_everything_is() {
    let house = House::new("");
    let broken = house.path("broken");
    fs::write(
        &broken,
        "#!/bin/sh\necho it is >&2\necho broken >&2\nexit 1\n",
    )
    .unwrap();
    fs::set_permissions(&broken, fs::Permissions::from_mode(0o755)).unwrap();
    let broken = format!("[servers.broken]\ncommand = \"{}\"\n", broken.display());
    house.configure(&format!("{}{}{broken}", house.gated(), builtin("local")));
    let gateway = house.serve();
    let session = gateway.open("/mcp");
    let listed = gateway.post("/mcp", Some(&session), &request("tools/list", &json!({})));
    assert!(listed.body.contains("gated__wait"), "{listed:?}");
    let status = house.status();
    let own = &status["gateway"];
    assert_eq!(own["url"], json!(format!("{}/mcp", gateway.origin)));
    assert_eq!(own["pid"], json!(gateway.id()));
    assert_eq!(own["sessions"], 1);
    assert!(own["config"].as_str().unwrap().ends_with("mcpact.toml"));
    let [broken, gated, local] = status["servers"].as_array().unwrap().as_slice() else {
        panic!("{status}");
    };
    assert_eq!(gated["revision"], "2025-06-18");
    assert_eq!(gated["era"], "legacy");
    assert_eq!(gated["transport"], "stdio");
    assert_eq!(gated["lists"]["tools"], 1);
    assert_eq!(gated["instances"][0]["state"], "ready");
    let own = fs::read_to_string(house.path("process")).unwrap();
    assert_eq!(gated["instances"][0]["pid"].to_string(), own.trim());
    assert_eq!(local["transport"], "builtin");
    assert!(local["lists"]["tools"].as_u64().unwrap() > 10);
    assert!(
        broken["last_error"]["why"]
            .as_str()
            .unwrap()
            .contains("exit status: 1")
    );
    assert!(broken["last_error"]["seconds_ago"].is_u64());

    let (code, printed, _) = house.run(&["status"]);
    assert_eq!(code, 0);
    for words in [
        "gated",
        "2025-06-18",
        "ready",
        "exit status: 1",
        "| broken",
        gateway.origin.as_str(),
    ] {
        assert!(printed.contains(words), "{printed}");
    }
    let (code, printed, _) = house.run(&["status", "gated"]);
    assert_eq!(code, 0);
    assert!(
        printed.contains("1 tool") && !printed.contains("local"),
        "{printed}"
    );
    // Clients are told in a line; the log is for the owner.
    let welcome = gateway.post("/mcp", None, &handshake()).body;
    let told = "`broken` is missing: the program ended before it agreed to anything (exit status: 1); hint: ";
    assert!(
        welcome.contains(told) && !welcome.contains("its log"),
        "{welcome}"
    );
}

/// What had to be left out of a list is told to whoever watches.
#[test]
fn what_is_left_out_of_a_list_is_seen() {
    let house = House::new("");
    house.configure(&house.gated());
    let tools = r#"{"tools":[{"name":"wait","inputSchema":{"type":"object"}},"nothing"]}"#;
    fs::write(house.path("tools"), tools).unwrap();
    let gateway = house.serve();
    let session = gateway.open("/mcp");
    let listed = gateway.post("/mcp", Some(&session), &request("tools/list", &json!({})));
    assert!(listed.body.contains("gated__wait"), "{listed:?}");
    let told = "of its `tools/list` is left out: 1 item that is no object";
    let status = house.status();
    assert_eq!(status["servers"][0]["lacking"], json!([told]));
    assert_eq!(status["servers"][0]["lists"]["tools"], 1);
    assert_eq!(status["servers"][0]["state"], "ready");
    for command in [&["status"][..], &["status", "gated"]] {
        let (_, printed, _) = house.run(command);
        assert!(printed.contains(told), "{printed}");
    }
}

/// What could drive a terminal, as JSON writes it.
const LOUD: &str = r"it is \u001b]0;x\u0007\u001b[31m\u202e\r\nFAKE  ready";

/// What a server says cannot drive a terminal or look like a line of ours: not at the start, not in the log and
/// not in what is shown later.
#[test]
fn what_a_server_says_cannot_drive_a_terminal() {
    let house = House::new("");
    let named = house.refusing("named", LOUD, Some(LOUD));
    house.configure(&(named + &house.refusing("refusing", LOUD, None)));
    let gateway = house.serve_to_people();
    let session = gateway.open("/mcp");
    gateway.post("/mcp", Some(&session), &request("tools/list", &json!({})));
    let log = || fs::read_to_string(house.path("log")).unwrap();
    let words = [
        "calls itself `it is ",
        "missing: no agreement",
        "a list is not whole",
    ];
    until(|| words.iter().all(|words| log().contains(words)));
    let (_, status, _) = house.run(&["status", "named"]);
    let (_, logs, _) = house.run(&["logs"]);
    for text in [log(), status, logs] {
        assert!(text.contains("it is "), "{text}");
        let is_ours = |letter: char| letter == '\n' || !letter.is_control() && letter != '\u{202e}';
        assert!(text.chars().all(is_ours), "{text:?}");
        assert!(!text.contains("\nFAKE"), "{text}");
    }
}

/// A name that there is not, and a gateway that there is not, are told with what to do.
#[test]
fn what_is_not_there_is_told_with_a_remedy() {
    let house = House::new(&builtin("local"));
    for command in ["status", "logs", "reload"] {
        let (code, printed, told) = house.run(&[command]);
        assert_eq!((code, printed.as_str()), (4, ""), "{told}");
        assert!(
            told.contains("no gateway runs") && told.contains("mcpact serve"),
            "{told}"
        );
    }
    let gateway = house.serve();
    let told = gateway.post("/tags/calm/mcp", None, &handshake()).body;
    assert!(told.contains("calm; no server has tags"), "{told}");
    for command in ["status", "logs"] {
        let (code, _, told) = house.run(&[command, "locla"]);
        assert_eq!(code, 2);
        assert!(
            told.contains("`locla`") && told.contains("did you mean `local`"),
            "{told}"
        );
    }
}

/// Where several gateways serve one config, none is chosen: the commands name all of them, and how to say which.
#[test]
fn who_serves_the_same_config_is_told_apart() {
    let house = House::new(&builtin("local"));
    let gateways = [house.serve(), house.serve()];
    let sockets = gateways.each_ref().map(|gateway| {
        let socket = house
            .path("run/mcpact")
            .join(format!("{}.sock", gateway.id()));
        socket.to_str().unwrap().to_owned()
    });
    let config = house.path("mcpact.toml");
    let config = config.to_str().unwrap();
    for command in [&["status"][..], &["logs"], &["reload", "--config", config]] {
        let (code, printed, told) = house.run(command);
        assert_eq!((code, printed.as_str()), (2, ""), "{told}");
        assert!(
            told.contains(&format!("several gateways run that serve `{config}`")),
            "{told}"
        );
        assert!(told.contains("say which one: `--socket PATH`"), "{told}");
        assert!(sockets.iter().all(|socket| told.contains(socket)), "{told}");
    }
    for (gateway, socket) in gateways.iter().zip(&sockets) {
        let (code, printed, told) = house.run(&["status", "--json", "--socket", socket]);
        assert_eq!(code, 0, "{told}");
        let status: Value = serde_json::from_str(&printed).unwrap();
        assert_eq!(status["gateway"]["pid"], gateway.id());
    }
}

/// What a server writes to its log can be read, with the values of its variables covered, and what became
/// of its instances beside it.
#[test]
fn the_log_of_a_server_is_shown_without_its_secrets() {
    let house = House::new("");
    house.configure(&format!("{}{}", house.gated(), builtin("local")));
    let gateway = house.serve();
    gateway.open("/servers/gated/mcp");
    let mut following = house.follow();
    assert_eq!(following.next(None), "the token is ***");
    let (code, printed, told) = house.run(&["logs", "--lines", "0"]);
    assert_eq!((code, &*printed, &*told), (0, "", ""));
    let (code, printed, _) = house.run(&["logs", "gated"]);
    assert_eq!(code, 0);
    for words in [
        "gated#1",
        "| the token is ***",
        "* is ready, and speaks 2025-06-18",
    ] {
        assert!(printed.contains(words), "{printed}");
    }
    assert!(
        !printed.contains("hunter2") && !printed.contains("local"),
        "{printed}"
    );
    let (_, printed, _) = house.run(&["logs", "gated", "--lines", "1"]);
    assert_eq!(printed.lines().count(), 1);
}

/// L16: how a notification that was not negotiated is told is as the config says.
#[test]
fn what_was_not_negotiated_is_told_as_the_config_says() {
    let note = json!({"jsonrpc": "2.0", "method": "notifications/roots/list_changed"});
    for (undeclared, level) in [
        ("drop", None),
        ("warn", Some("WARN")),
        ("error", Some("ERROR")),
        ("disconnect", Some("ERROR")),
    ] {
        let house = House::new(&format!(
            "undeclared = \"{undeclared}\"\n{}",
            builtin("local")
        ));
        let gateway = house.serve();
        let session = gateway.open("/mcp");
        gateway.post("/mcp", Some(&session), &note);
        gateway.signal("-TERM");
        gateway.ended();
        let log = fs::read_to_string(house.path("log")).unwrap();
        let mut lines = log
            .lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let told = lines.find(|line| {
            line["message"]
                .as_str()
                .is_some_and(|text| text.contains("roots/list_changed"))
        });
        let told = told.map(|line| line["level"].clone());
        assert_eq!(told, level.map(|level| json!(level)), "{undeclared}: {log}");
    }
}

/// L16: what a client says cannot drive a terminal or look like a line of ours in the log.
#[test]
fn what_a_client_says_cannot_drive_a_terminal() {
    let house = House::new(&format!("undeclared = \"warn\"\n{}", builtin("local")));
    let gateway = house.serve_to_people();
    let session = gateway.open("/mcp");
    let method = "notifications/odd\u{1b}[31m\u{9b}\r\nFAKE  ERROR";
    let note = json!({"jsonrpc": "2.0", "method": method});
    gateway.post("/mcp", Some(&session), &note);
    gateway.signal("-TERM");
    gateway.ended();
    let log = fs::read_to_string(house.path("log")).unwrap();
    assert!(log.contains("notifications/odd"), "{log:?}");
    assert!(!log.contains(['\u{1b}', '\u{9b}', '\r']), "{log:?}");
    let forged = |line: &str| line.trim_start().starts_with("FAKE");
    assert!(!log.lines().any(forged), "{log}");
}

/// A server that nobody has asked for is not said to be started because of a request.
#[test]
fn a_start_that_nobody_asked_for_is_told_as_such() {
    let house = House::new("");
    house.configure(&house.gated());
    let _gateway = house.serve();
    let mut printed = String::new();
    until(|| {
        printed = house.run(&["logs", "gated"]).1;
        printed.contains("* is ready")
    });
    let why = "* is started, because of its introduction: nothing is known about it yet";
    assert!(printed.contains(why), "{printed}");
    assert!(!printed.contains("a request"), "{printed}");
}

/// What came into the arguments from elsewhere, values of options that are called like secrets, and single lines
/// of a value of several are covered, too.
#[test]
fn secrets_in_arguments_and_lines_are_covered() {
    let house = House::new("");
    fs::write(house.path("secret.txt"), "from-a-file").unwrap();
    let gated = house
        .gated()
        .replace("hunter2-hunter2", "first-line\\nsecond-line");
    let args =
        "args = [\"--api-key\", \"an-argument\", \"--folder=${file:secret.txt}\", \"visible\"]\n";
    house.configure(&format!("{gated}{args}"));
    let gateway = house.serve();
    gateway.open("/servers/gated/mcp");
    let mut following = house.follow();
    for expected in [
        "the token is ***",
        "***",
        "the arguments are --api-key *** --folder=*** visible",
    ] {
        assert_eq!(following.next(None), expected);
    }
}

/// Only the user can reach the socket; one that a dead gateway left is replaced, that of a living one is not,
/// and whose it is is told.
#[test]
fn the_private_socket_is_private_and_not_taken_over() {
    let house = House::new(&builtin("local"));
    let gateway = house.serve();
    let socket = house.path(&format!("run/mcpact/{}.sock", gateway.id()));
    assert_eq!(
        (mode(&socket), mode(&house.path("run/mcpact"))),
        (0o600, 0o700)
    );
    // Killed, it leaves its socket.
    gateway.signal("-KILL");
    gateway.ended();
    assert!(socket.exists());
    assert_eq!(house.run(&["status"]).0, 4);
    assert!(!socket.exists());

    let control = house.path("control.sock");
    let config = format!("control = \"{}\"\n{}", control.display(), builtin("local"));
    house.configure(&config);
    drop(std::os::unix::net::UnixListener::bind(&control).unwrap());
    let gateway = house.serve();
    assert_eq!(house.status()["gateway"]["pid"], json!(gateway.id()));
    let (code, _, told) = house.run(&["serve"]);
    assert_eq!(code, 2, "{told}");
    let holder = format!("process {}", gateway.id());
    assert!(
        told.contains(&holder) && told.contains("mcpact.toml"),
        "{told}"
    );
    assert_eq!(house.status()["gateway"]["pid"], json!(gateway.id()));
    gateway.signal("-TERM");
    assert_eq!(gateway.ended(), Some(0));
    assert!(!fs::exists(&control).unwrap());
}

/// A client on pipes is counted, and is not told that something has changed when everything has only begun.
#[test]
fn a_client_on_pipes_is_seen_and_hears_of_no_changes() {
    let house = House::new(&builtin("local"));
    // What is known from an earlier run makes the beginning quick.
    for _ in 0..2 {
        let mut gateway = house.serve_on_pipes();
        let mut input = gateway.stdin.take().unwrap();
        let mut lines = BufReader::new(gateway.stdout.take().unwrap()).lines();
        writeln!(input, "{}", handshake()).unwrap();
        let note = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        writeln!(input, "{note}").unwrap();
        assert!(lines.next().unwrap().unwrap().contains("serverInfo"));
        until(|| house.status()["gateway"]["sessions"] == 1);
        // Changes are told within a tenth of that.
        until(|| house.status()["gateway"]["uptime_seconds"].as_u64() > Some(0));
        writeln!(input, "{}", request("tools/list", &json!({}))).unwrap();
        let next = lines.next().unwrap().unwrap();
        assert!(next.contains("local__echo"), "{next}");
        drop(input);
        assert_eq!(gateway.wait().unwrap().code(), Some(0));
    }
}

/// Since when a server cannot be used is told, not only when that was noticed last.
#[test]
fn a_server_that_is_missing_is_shown_with_its_time() {
    let house = House::new("");
    let far = "[servers.far]\nurl = \"http://127.0.0.1:1/mcp\"\nbackoff_seconds = 0.1\n";
    house.configure(far);
    let _gateway = house.serve();
    until(|| house.status()["servers"][0]["missing_seconds"].as_u64() > Some(0));
    let (_, printed, _) = house.run(&["status"]);
    let has_time =
        |line: &str| line.starts_with("    ") && line.contains("for ") && line.contains(" s: ");
    assert!(printed.lines().any(has_time), "{printed}");
}

/// Calls are counted while they run.
#[test]
fn a_call_that_runs_is_seen() {
    let house = House::new("");
    house.configure(&house.gated());
    let gateway = house.serve();
    let session = gateway.open("/mcp");
    std::thread::scope(|scope| {
        let calling = scope.spawn(|| gateway.post("/mcp", Some(&session), &call("gated__wait")));
        house.called();
        let status = house.status();
        assert_eq!(status["gateway"]["in_flight"], 1);
        assert_eq!(status["servers"][0]["state"], "busy");
        assert_eq!(status["servers"][0]["in_flight"], 1);
        house.open_the_gate();
        assert!(calling.join().unwrap().body.contains("waited"));
    });
}

/// What is relative in a config starts at its folder, for the gateway and for whoever asks it from elsewhere; a
/// certificate that is not there is told before anything is served.
#[test]
fn relative_paths_start_at_the_folder_of_the_config() {
    let house = House::new(&builtin("local"));
    for control in ["s.sock", "./t.sock"] {
        let text = format!("[gateway]\ncontrol = \"{control}\"\n{}", builtin("local"));
        fs::create_dir_all(house.path("deep")).unwrap();
        fs::write(house.path("deep/own.toml"), text).unwrap();
        // The gateway and who asks it run in the folder above.
        let gateway = house.serve_file("deep/own.toml");
        assert!(house.path("deep").join(control).exists());
        let (code, printed, told) = house.run(&["status", "--json", "--config", "deep/own.toml"]);
        assert_eq!(code, 0, "{told}");
        let status: Value = serde_json::from_str(&printed).unwrap();
        assert_eq!(status["gateway"]["pid"], json!(gateway.id()));
    }
    let tls = "[gateway]\ntls_cert = \"cert.pem\"\ntls_key = \"key.pem\"\n";
    fs::write(house.path("deep/tls.toml"), tls).unwrap();
    let (code, printed, _) = house.run(&["check", "deep/tls.toml"]);
    assert_eq!(code, 7, "{printed}");
    for name in ["cert.pem", "key.pem"] {
        let path = house.path("deep").join(name);
        let told = format!("there is no file `{}`", path.display());
        assert!(printed.contains(&told), "{printed}");
        fs::write(path, "").unwrap();
    }
    let (code, printed, _) = house.run(&["check", "deep/tls.toml"]);
    assert_eq!(code, 0, "{printed}");
}
