//! `mcpact everything`: transports, listener options and logging.
#![expect(clippy::unwrap_used, reason = "a broken expectation is a failed test")]

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Command, Stdio};

use mcpact_sim::scripted::process::{TestProcess, exchange};

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;

const JSON: &str = "Content-Type: application/json\r\n";

fn start(args: &[&str]) -> TestProcess {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mcpact"));
    command.arg("everything").args(args);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    TestProcess::spawn(&mut command)
}

/// T2, P4: one response per line; the end of input ends the server.
#[test]
fn serves_stdio() {
    let mut running = start(&[]);
    let mut input = running.stdin.take().unwrap();
    let mut output = BufReader::new(running.stdout.take().unwrap());
    writeln!(input, "{INITIALIZE}").unwrap();
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    assert!(line.contains(r#""protocolVersion":"2025-11-25""#), "{line}");
    drop(input);
    assert!(running.wait().unwrap().success());
}

/// T3: port 0 picks a free port.
#[test]
fn first_line_of_output_is_the_url() {
    let mut running = start(&["--listen", "127.0.0.1:0"]);
    let line = running.first_line();
    let address = line
        .trim()
        .strip_prefix("http://")
        .unwrap()
        .strip_suffix("/mcp")
        .unwrap();
    let reply = exchange("POST", address, "/mcp", JSON, INITIALIZE);
    assert!(
        reply.starts_with("HTTP/1.1 200") && reply.contains("mcp-session-id: "),
        "{reply}"
    );
}

/// N10: other revisions are not offered.
#[test]
fn revisions_can_be_limited() {
    let mut running = start(&["--revisions", "2024-11-05, 2025-03-26"]);
    let mut input = running.stdin.take().unwrap();
    writeln!(input, "{INITIALIZE}").unwrap();
    let line = running.first_line();
    assert!(line.contains(r#""protocolVersion":"2025-03-26""#), "{line}");
}

#[test]
fn unknown_revision_is_rejected() {
    let output = Command::new(env!("CARGO_BIN_EXE_mcpact"))
        .args(["everything", "--revisions", "2025-06-17"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(
        stderr.contains("unknown revision `2025-06-17`") && stderr.contains("`2025-06-18`"),
        "{stderr}"
    );
}

/// Returns the usage error.
fn usage_error(args: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_mcpact"))
        .arg("everything")
        .args(args)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2), "{args:?}");
    String::from_utf8(output.stderr).unwrap()
}

/// T8, H3: an empty host is rejected.
#[test]
fn non_loopback_address_needs_a_token_or_allow_remote() {
    for address in ["0.0.0.0:0", "[::]:0"] {
        let stderr = usage_error(&["--listen", address]);
        assert!(stderr.contains("hint: listen on 127.0.0.1"), "{stderr}");
        assert!(stderr.contains("`--token-file FILE`"), "{stderr}");
    }
    let stderr = usage_error(&["--listen", ":0"]);
    assert!(stderr.contains("an IP address and a port"), "{stderr}");
    let stderr = usage_error(&["--listen", "127.0.0.1:0", "--allow-host", "mcp.example:443"]);
    assert!(stderr.contains("use a host name or IP address"), "{stderr}");
    let mut running = start(&["--listen", "0.0.0.0:0", "--allow-remote"]);
    assert!(running.first_line().starts_with("http://127.0.0.1:"));
}

/// T8: the bridge prints the same warning.
#[test]
fn non_loopback_address_without_allowed_hosts_warns() {
    let message = "warning: other hosts can reach `0.0.0.0:0`, but get 403 without `--allow-host`\n  hint: list the host names and \
                addresses that clients use, such as `--allow-host mcp.example`\n";
    for command in [&["everything"][..], &["bridge", "--no-cache"]] {
        for (more, expected) in [
            (&["0.0.0.0:0", "--allow-remote"][..], message),
            (&["0.0.0.0:0", "--allow-remote", "--allow-host", "a"], ""),
            (&["127.0.0.1:0"], ""),
        ] {
            let mut started = Command::new(env!("CARGO_BIN_EXE_mcpact"));
            started.args(command).arg("--listen").args(more);
            if command[0] == "bridge" {
                started.arg("http://127.0.0.1:9/mcp");
            }
            started.stdout(Stdio::piped()).stderr(Stdio::piped());
            let mut running = TestProcess::spawn(&mut started);
            assert!(running.first_line().starts_with("http://"));
            running.kill().unwrap();
            let mut printed = String::new();
            let mut stderr = running.stderr.take().unwrap();
            stderr.read_to_string(&mut printed).unwrap();
            assert_eq!(printed, expected, "{command:?} {more:?}");
        }
    }
}

/// T8: weak tokens are rejected.
#[test]
fn token_is_read_from_a_file_or_a_variable() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let good = file("good", "a-token-that-is-not-guessed\n");
    let weak = file("weak", "secret");
    let stderr = usage_error(&["--listen", "127.0.0.1:0", "--token-file", &weak]);
    assert!(
        stderr.contains("shorter than 16") && !stderr.contains("secret"),
        "{stderr}"
    );
    let stderr = usage_error(&["--listen", "127.0.0.1:0", "--token-file", "absent"]);
    assert!(
        stderr.contains("cannot use the token in `absent`"),
        "{stderr}"
    );

    let by_file = start(&["--listen", "0.0.0.0:0", "--token-file", &good]);
    let mut command = Command::new(env!("CARGO_BIN_EXE_mcpact"));
    command.args(["everything", "--listen", "0.0.0.0:0"]);
    command.env("MCPACT_TOKEN", "a-token-that-is-not-guessed");
    command.stdout(Stdio::piped());
    let by_variable = TestProcess::spawn(&mut command);
    for mut running in [by_file, by_variable] {
        let url = running.first_line();
        let port = url.rsplit(':').next().unwrap().split('/').next().unwrap();
        for (token, status) in [("a-token-that-is-not-guessed", 200), ("another", 401)] {
            let address = format!("127.0.0.1:{port}");
            let headers = format!("{JSON}Authorization: Bearer {token}\r\n");
            let reply = exchange("POST", &address, "/mcp", &headers, INITIALIZE);
            assert!(reply.starts_with(&format!("HTTP/1.1 {status}")), "{reply}");
        }
    }
}

/// T8: an invalid file is named.
#[test]
fn serves_tls() {
    let folder = tempfile::tempdir().unwrap();
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let (cert, key) = (folder.path().join("cert"), folder.path().join("key"));
    std::fs::write(&cert, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    let (cert, key) = (cert.to_str().unwrap(), key.to_str().unwrap());
    let tls = |cert, key| {
        [
            "--listen",
            "127.0.0.1:0",
            "--tls-cert",
            cert,
            "--tls-key",
            key,
        ]
    };
    let mut running = start(&tls(cert, key));
    assert!(running.first_line().starts_with("https://127.0.0.1:"));
    let stderr = usage_error(&tls(cert, cert));
    assert!(stderr.contains("no unencrypted private key"), "{stderr}");
    let stderr = usage_error(&["--listen", "127.0.0.1:0", "--tls-cert", cert]);
    assert!(stderr.contains("--tls-key"), "{stderr}");
}

/// T8: the error for an untrusted certificate names the variable.
#[test]
fn ssl_cert_file_adds_a_trusted_certificate() {
    let folder = tempfile::tempdir().unwrap();
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let (cert, key) = (folder.path().join("cert"), folder.path().join("key"));
    std::fs::write(&cert, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    let (cert, key) = (cert.to_str().unwrap(), key.to_str().unwrap());
    let tls = ["--tls-cert", cert, "--tls-key", key];
    let mut running = start(&[&["--listen", "127.0.0.1:0"], &tls[..]].concat());
    let url = running.first_line();
    let url = url.trim().replace("127.0.0.1", "localhost");
    let asked = |trusted: Option<&str>| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_mcpact"));
        command.args(["bridge", &url]).env_remove("SSL_CERT_FILE");
        command.envs(trusted.map(|trusted| ("SSL_CERT_FILE", trusted)));
        let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = pipes.stderr(Stdio::null()).spawn().unwrap();
        writeln!(child.stdin.take().unwrap(), "{INITIALIZE}").unwrap();
        String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap()
    };
    let message = asked(None);
    for words in [
        "it is signed by an unknown authority",
        "hint: ",
        "`SSL_CERT_FILE`",
    ] {
        assert!(message.contains(words), "{message}");
    }
    let message = asked(Some(cert));
    assert!(message.contains("\"serverInfo\""), "{message}");
}

/// F1: the next line is served.
#[test]
fn invalid_json_is_answered_with_a_parse_error() {
    let mut running = start(&[]);
    let mut input = running.stdin.take().unwrap();
    let mut output = BufReader::new(running.stdout.take().unwrap());
    writeln!(input, "hello?\n{INITIALIZE}").unwrap();
    let mut message = String::new();
    output.read_line(&mut message).unwrap();
    assert!(message.contains("-32700"), "{message}");
    let mut served = String::new();
    output.read_line(&mut served).unwrap();
    assert!(served.contains("protocolVersion"), "{served}");
}

/// The log is on stderr; stdout has only responses.
#[test]
fn negotiations_are_logged_as_json() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_mcpact"))
        .args(["everything", "--log", "mcpact::negotiation=info"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    writeln!(child.stdin.take().unwrap(), "{INITIALIZE}").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap().lines().count(), 1);
    let stderr = String::from_utf8(output.stderr).unwrap();
    let event: serde_json::Value = serde_json::from_str(stderr.trim()).unwrap();
    assert_eq!(event["level"], "INFO");
    assert_eq!(event["target"], "mcpact::negotiation");
    assert_eq!(event["method"], "initialize");
    assert_eq!(event["client.protocol_version"], "2025-11-25");
    assert_eq!(event["revision"], "2025-11-25");
    assert_eq!(event["status"], "ok");
}

/// An invalid filter is rejected.
#[test]
fn default_log_level_is_warn() {
    let run = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_mcpact"));
        command
            .arg("everything")
            .args(args)
            .env_remove("MCPACT_LOG");
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // A command with invalid arguments does not read stdin.
        let _ = writeln!(child.stdin.take().unwrap(), "{INITIALIZE}");
        let output = child.wait_with_output().unwrap();
        (
            output.status.code(),
            String::from_utf8(output.stderr).unwrap(),
        )
    };
    assert_eq!(run(&[]), (Some(0), String::new()));
    assert!(run(&["-v"]).1.contains("negotiated"));
    let (code, stderr) = run(&["--log", "mcpact=loud"]);
    assert_eq!(code, Some(2));
    assert!(
        stderr.contains("invalid log filter `mcpact=loud`"),
        "{stderr}"
    );
}
