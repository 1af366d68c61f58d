//! `mcpact status` and `mcpact logs`.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};

use crate::harness::{Harness, builtin, call, handshake, mode, request, wait_until};

#[test]
fn status_shows_gateway_servers_and_instances() {
    let harness = Harness::new("");
    let broken = harness.path("broken");
    fs::write(
        &broken,
        "#!/bin/sh\necho it is >&2\necho broken >&2\nexit 1\n",
    )
    .unwrap();
    fs::set_permissions(&broken, fs::Permissions::from_mode(0o755)).unwrap();
    let broken = format!("[servers.broken]\ncommand = \"{}\"\n", broken.display());
    harness.configure(&format!("{}{}{broken}", harness.gated(), builtin("local")));
    let gateway = harness.serve();
    let session = gateway.open("/mcp");
    let listed = gateway.post("/mcp", Some(&session), &request("tools/list", &json!({})));
    assert!(listed.body.contains("gated__wait"), "{listed:?}");
    let status = harness.status();
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
    let own = fs::read_to_string(harness.path("process")).unwrap();
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

    let (code, stdout, _) = harness.run(&["status"]);
    assert_eq!(code, 0);
    // The output is wrapped.
    let stdout = stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    for words in [
        "gated",
        "2025-06-18",
        "ready",
        "exit status: 1",
        "| broken",
        gateway.origin.as_str(),
    ] {
        assert!(stdout.contains(words), "{stdout}");
    }
    let (code, stdout, _) = harness.run(&["status", "gated"]);
    assert_eq!(code, 0);
    assert!(
        stdout.contains("1 tool") && !stdout.contains("local"),
        "{stdout}"
    );
    // Clients get one line, without the log of the server.
    let welcome = gateway.post("/mcp", None, &handshake()).body;
    let message =
        "`broken` is unavailable: the server exited during startup (exit status: 1); hint: ";
    assert!(
        welcome.contains(message) && !welcome.contains("its log"),
        "{welcome}"
    );
}

#[test]
fn status_shows_omitted_list_items() {
    let harness = Harness::new("");
    harness.configure(&harness.gated());
    let tools = r#"{"tools":[{"name":"wait","inputSchema":{"type":"object"}},"nothing"]}"#;
    fs::write(harness.path("tools"), tools).unwrap();
    let gateway = harness.serve();
    let session = gateway.open("/mcp");
    let listed = gateway.post("/mcp", Some(&session), &request("tools/list", &json!({})));
    assert!(listed.body.contains("gated__wait"), "{listed:?}");
    let message = "left out of `tools/list`: 1 item that is not an object";
    let status = harness.status();
    assert_eq!(status["servers"][0]["lacking"], json!([message]));
    assert_eq!(status["servers"][0]["lists"]["tools"], 1);
    assert_eq!(status["servers"][0]["state"], "ready");
    for command in [&["status"][..], &["status", "gated"]] {
        let (_, stdout, _) = harness.run(command);
        assert!(stdout.contains(message), "{stdout}");
    }
}

/// N19: a tolerated, wrongly typed capability of a server or a client is one line in the log and in the status.
#[test]
fn ignored_capabilities_are_shown() {
    let harness = Harness::new("");
    let server = harness.gated();
    let program = fs::read_to_string(harness.path("gated")).unwrap();
    let wrong = program.replace(r#""tools":{}"#, r#""tools":{"listChanged":"x"}"#);
    fs::write(harness.path("gated"), wrong).unwrap();
    harness.configure(&server);
    let gateway = harness.serve();
    let mut hello = handshake();
    hello["params"]["capabilities"] = json!({"roots": "x"});
    gateway.post("/mcp", None, &hello);
    let session = gateway.open("/mcp");
    let listed = gateway.post("/mcp", Some(&session), &request("tools/list", &json!({})));
    assert!(listed.body.contains("gated__wait"), "{listed:?}");
    let faults = [
        "`capabilities.roots` must be an object, found string",
        "`capabilities.tools.listChanged` must be a boolean, found string",
    ];
    let status = harness.status();
    let clients = &status["gateway"]["ignored_capabilities"];
    let name = &hello["params"]["clientInfo"]["name"];
    let expected = format!("{}: {}", name.as_str().unwrap(), faults[0]);
    assert_eq!(*clients, json!([expected]));
    let server = &status["servers"][0];
    assert_eq!(server["ignored_capabilities"], json!([faults[1]]));
    assert_eq!(server["state"], "ready");
    for command in [&["status"][..], &["status", "gated"]] {
        let (_, stdout, _) = harness.run(command);
        let stdout = stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(stdout.contains(faults[1]), "{stdout}");
    }
    gateway.signal("-TERM");
    gateway.exit_code();
    let log = fs::read_to_string(harness.path("log")).unwrap();
    for fault in faults {
        let lines = log.lines().filter(|line| line.contains(fault));
        assert_eq!(lines.count(), 1, "{log}");
    }
}

/// Control characters, escaped as in JSON.
const LOUD: &str = r"it is \u001b]0;x\u0007\u001b[31m\u202e\r\nFAKE  ready";

/// In the overview, the log and the status.
#[test]
fn control_characters_of_servers_are_escaped() {
    let harness = Harness::new("");
    let named = harness.refusing("named", LOUD, Some(LOUD));
    harness.configure(&(named + &harness.refusing("refusing", LOUD, None)));
    let gateway = harness.serve_with_text_log();
    let session = gateway.open("/mcp");
    gateway.post("/mcp", Some(&session), &request("tools/list", &json!({})));
    let log = || fs::read_to_string(harness.path("log")).unwrap();
    let words = [
        "(`it is ",
        "unavailable: negotiation with the server failed",
        "list incomplete",
    ];
    wait_until(|| words.iter().all(|words| log().contains(words)));
    let (_, status, _) = harness.run(&["status", "named"]);
    let (_, logs, _) = harness.run(&["logs"]);
    for text in [log(), status, logs] {
        assert!(text.contains("it is "), "{text}");
        let is_ours = |letter: char| letter == '\n' || !letter.is_control() && letter != '\u{202e}';
        assert!(text.chars().all(is_ours), "{text:?}");
        assert!(!text.contains("\nFAKE"), "{text}");
    }
}

#[test]
fn unknown_names_and_missing_gateway_have_hints() {
    let harness = Harness::new(&builtin("local"));
    for command in ["status", "logs", "reload"] {
        let (code, stdout, stderr) = harness.run(&[command]);
        assert_eq!((code, stdout.as_str()), (4, ""), "{stderr}");
        assert!(
            stderr.contains("no running gateway") && stderr.contains("mcpact serve"),
            "{stderr}"
        );
    }
    let gateway = harness.serve();
    let message = gateway.post("/tags/calm/mcp", None, &handshake()).body;
    assert!(message.contains("calm; no server has tags"), "{message}");
    for command in ["status", "logs"] {
        let (code, _, stderr) = harness.run(&[command, "locla"]);
        assert_eq!(code, 2);
        assert!(
            stderr.contains("`locla`") && stderr.contains("did you mean `local`"),
            "{stderr}"
        );
    }
}

/// The error lists their sockets.
#[test]
fn several_gateways_of_one_config_must_be_selected() {
    let harness = Harness::new(&builtin("local"));
    let gateways = [harness.serve(), harness.serve()];
    let sockets = gateways.each_ref().map(|gateway| {
        let socket = harness
            .path("run/mcpact")
            .join(format!("{}.sock", gateway.id()));
        socket.to_str().unwrap().to_owned()
    });
    let config = harness.path("mcpact.toml");
    let config = config.to_str().unwrap();
    for command in [&["status"][..], &["logs"], &["reload", "--config", config]] {
        let (code, stdout, stderr) = harness.run(command);
        assert_eq!((code, stdout.as_str()), (2, ""), "{stderr}");
        assert!(
            stderr.contains(&format!("several running gateways serve `{config}`")),
            "{stderr}"
        );
        assert!(
            stderr.contains("select one with `--socket PATH`"),
            "{stderr}"
        );
        assert!(
            sockets.iter().all(|socket| stderr.contains(socket)),
            "{stderr}"
        );
    }
    for (gateway, socket) in gateways.iter().zip(&sockets) {
        let (code, stdout, stderr) = harness.run(&["status", "--json", "--socket", socket]);
        assert_eq!(code, 0, "{stderr}");
        let status: Value = serde_json::from_str(&stdout).unwrap();
        assert_eq!(status["gateway"]["pid"], gateway.id());
    }
}

/// Between lifecycle events of its instances.
#[test]
fn server_log_is_shown_with_masked_secrets() {
    let harness = Harness::new("");
    harness.configure(&format!("{}{}", harness.gated(), builtin("local")));
    let gateway = harness.serve();
    gateway.open("/servers/gated/mcp");
    let mut following = harness.follow_logs();
    assert_eq!(following.next(None), "the token is ***");
    let (code, stdout, stderr) = harness.run(&["logs", "--lines", "0"]);
    assert_eq!((code, &*stdout, &*stderr), (0, "", ""));
    let (code, stdout, _) = harness.run(&["logs", "gated"]);
    assert_eq!(code, 0);
    for words in [
        "gated#1",
        "| the token is ***",
        "* ready: revision 2025-06-18",
    ] {
        assert!(stdout.contains(words), "{stdout}");
    }
    assert!(
        !stdout.contains("hunter2") && !stdout.contains("local"),
        "{stdout}"
    );
    let (_, stdout, _) = harness.run(&["logs", "gated", "--lines", "1"]);
    assert_eq!(stdout.lines().count(), 1);
}

/// L16, K2: the key `undeclared` sets the level.
#[test]
fn undeclared_notifications_are_logged_as_configured() {
    let note = json!({"jsonrpc": "2.0", "method": "notifications/roots/list_changed"});
    for (undeclared, level) in [
        ("drop", None),
        ("warn", Some("WARN")),
        ("error", Some("ERROR")),
        ("disconnect", Some("ERROR")),
    ] {
        let harness = Harness::new(&format!(
            "undeclared = \"{undeclared}\"\n{}",
            builtin("local")
        ));
        let gateway = harness.serve();
        let session = gateway.open("/mcp");
        gateway.post("/mcp", Some(&session), &note);
        gateway.signal("-TERM");
        gateway.exit_code();
        let log = fs::read_to_string(harness.path("log")).unwrap();
        let mut lines = log
            .lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let message = lines.find(|line| {
            line["message"]
                .as_str()
                .is_some_and(|text| text.contains("roots/list_changed"))
        });
        let message = message.map(|line| line["level"].clone());
        assert_eq!(
            message,
            level.map(|level| json!(level)),
            "{undeclared}: {log}"
        );
    }
}

/// L16: in the text log.
#[test]
fn control_characters_of_clients_are_escaped() {
    let harness = Harness::new(&format!("undeclared = \"warn\"\n{}", builtin("local")));
    let gateway = harness.serve_with_text_log();
    let session = gateway.open("/mcp");
    let method = "notifications/odd\u{1b}[31m\u{9b}\r\nFAKE  ERROR";
    let note = json!({"jsonrpc": "2.0", "method": method});
    gateway.post("/mcp", Some(&session), &note);
    gateway.signal("-TERM");
    gateway.exit_code();
    let log = fs::read_to_string(harness.path("log")).unwrap();
    assert!(log.contains("notifications/odd"), "{log:?}");
    assert!(!log.contains(['\u{1b}', '\u{9b}', '\r']), "{log:?}");
    let forged = |line: &str| line.trim_start().starts_with("FAKE");
    assert!(!log.lines().any(forged), "{log}");
}

#[test]
fn automatic_start_is_not_logged_as_a_request() {
    let harness = Harness::new("");
    harness.configure(&harness.gated());
    let _gateway = harness.serve();
    let mut stdout = String::new();
    wait_until(|| {
        stdout = harness.run(&["logs", "gated"]).1;
        stdout.contains("* ready")
    });
    let why = "* starting: first contact, no cached metadata";
    assert!(stdout.contains(why), "{stdout}");
    assert!(!stdout.contains("starting: request"), "{stdout}");
}

/// Expanded values, values of options with secret names, and single lines of a value.
#[test]
fn secrets_in_arguments_and_lines_are_masked() {
    let harness = Harness::new("");
    fs::write(harness.path("secret.txt"), "from-a-file").unwrap();
    let gated = harness
        .gated()
        .replace("hunter2-hunter2", "first-line\\nsecond-line");
    let args =
        "args = [\"--api-key\", \"an-argument\", \"--folder=${file:secret.txt}\", \"visible\"]\n";
    harness.configure(&format!("{gated}{args}"));
    let gateway = harness.serve();
    gateway.open("/servers/gated/mcp");
    let mut following = harness.follow_logs();
    for expected in [
        "the token is ***",
        "***",
        "the arguments are --api-key *** --folder=*** visible",
    ] {
        assert_eq!(following.next(None), expected);
    }
}

/// The socket of a dead gateway is replaced; for a running one the error names its process.
#[test]
fn control_socket_is_private_and_exclusive() {
    let harness = Harness::new(&builtin("local"));
    let gateway = harness.serve();
    let socket = harness.path(&format!("run/mcpact/{}.sock", gateway.id()));
    assert_eq!(
        (mode(&socket), mode(&harness.path("run/mcpact"))),
        (0o600, 0o700)
    );
    // A killed gateway leaves its socket.
    gateway.signal("-KILL");
    gateway.exit_code();
    assert!(socket.exists());
    assert_eq!(harness.run(&["status"]).0, 4);
    assert!(!socket.exists());

    let control = harness.path("control.sock");
    let config = format!("control = \"{}\"\n{}", control.display(), builtin("local"));
    harness.configure(&config);
    drop(std::os::unix::net::UnixListener::bind(&control).unwrap());
    let gateway = harness.serve();
    assert_eq!(harness.status()["gateway"]["pid"], json!(gateway.id()));
    let (code, _, stderr) = harness.run(&["serve"]);
    assert_eq!(code, 2, "{stderr}");
    let holder = format!("process {}", gateway.id());
    assert!(
        stderr.contains(&holder) && stderr.contains("mcpact.toml"),
        "{stderr}"
    );
    assert_eq!(harness.status()["gateway"]["pid"], json!(gateway.id()));
    gateway.signal("-TERM");
    assert_eq!(gateway.exit_code(), Some(0));
    assert!(!fs::exists(&control).unwrap());
}

/// At startup, with and without a cache.
#[test]
fn stdio_client_is_counted_and_gets_no_spurious_changes() {
    let harness = Harness::new(&builtin("local"));
    // The second run uses the cache.
    for _ in 0..2 {
        let mut gateway = harness.serve_stdio();
        let mut input = gateway.stdin.take().unwrap();
        let mut lines = BufReader::new(gateway.stdout.take().unwrap()).lines();
        writeln!(input, "{}", handshake()).unwrap();
        let note = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        writeln!(input, "{note}").unwrap();
        assert!(lines.next().unwrap().unwrap().contains("serverInfo"));
        wait_until(|| harness.status()["gateway"]["sessions"] == 1);
        // Notifications would arrive much earlier.
        wait_until(|| harness.status()["gateway"]["uptime_seconds"].as_u64() > Some(0));
        writeln!(input, "{}", request("tools/list", &json!({}))).unwrap();
        let next = lines.next().unwrap().unwrap();
        assert!(next.contains("local__echo"), "{next}");
        drop(input);
        assert_eq!(gateway.wait().unwrap().code(), Some(0));
    }
}

#[test]
fn unavailable_server_is_shown_with_its_duration() {
    let harness = Harness::new("");
    let far = "[servers.far]\nurl = \"http://127.0.0.1:1/mcp\"\nbackoff_seconds = 0.1\n";
    harness.configure(far);
    let _gateway = harness.serve();
    wait_until(|| harness.status()["servers"][0]["missing_seconds"].as_u64() > Some(0));
    let (_, stdout, _) = harness.run(&["status"]);
    let has_time =
        |line: &str| line.starts_with("    ") && line.contains("for ") && line.contains(" s: ");
    assert!(stdout.lines().any(has_time), "{stdout}");
}

#[test]
fn running_call_is_counted() {
    let harness = Harness::new("");
    harness.configure(&harness.gated());
    let gateway = harness.serve();
    let session = gateway.open("/mcp");
    std::thread::scope(|scope| {
        let calling = scope.spawn(|| gateway.post("/mcp", Some(&session), &call("gated__wait")));
        harness.wait_for_call();
        let status = harness.status();
        assert_eq!(status["gateway"]["in_flight"], 1);
        assert_eq!(status["servers"][0]["state"], "busy");
        assert_eq!(status["servers"][0]["in_flight"], 1);
        harness.open_the_gate();
        assert!(calling.join().unwrap().body.contains("waited"));
    });
}

/// For the gateway and for commands in another directory. A missing certificate is found by
/// `check`.
#[test]
fn relative_paths_start_at_the_config() {
    let harness = Harness::new(&builtin("local"));
    for control in ["s.sock", "./t.sock"] {
        let text = format!("[gateway]\ncontrol = \"{control}\"\n{}", builtin("local"));
        fs::create_dir_all(harness.path("deep")).unwrap();
        fs::write(harness.path("deep/own.toml"), text).unwrap();
        // Gateway and command run in the parent directory.
        let gateway = harness.serve_file("deep/own.toml");
        assert!(harness.path("deep").join(control).exists());
        let (code, stdout, stderr) =
            harness.run(&["status", "--json", "--config", "deep/own.toml"]);
        assert_eq!(code, 0, "{stderr}");
        let status: Value = serde_json::from_str(&stdout).unwrap();
        assert_eq!(status["gateway"]["pid"], json!(gateway.id()));
    }
    let tls = "[gateway]\ntls_cert = \"cert.pem\"\ntls_key = \"key.pem\"\n";
    fs::write(harness.path("deep/tls.toml"), tls).unwrap();
    let (code, stdout, _) = harness.run(&["check", "deep/tls.toml"]);
    assert_eq!(code, 7, "{stdout}");
    for name in ["cert.pem", "key.pem"] {
        let path = harness.path("deep").join(name);
        let message = format!("file `{}` not found", path.display());
        assert!(stdout.contains(&message), "{stdout}");
        fs::write(path, "").unwrap();
    }
    let (code, stdout, _) = harness.run(&["check", "deep/tls.toml"]);
    assert_eq!(code, 0, "{stdout}");
}
