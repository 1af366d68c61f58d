//! `mcpact everything`, as a person or a client's config starts it.
#![expect(clippy::unwrap_used, reason = "a broken expectation is a failed test")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;

struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(args: &[&str]) -> Running {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mcpact"));
    command.arg("everything").args(args);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    Running(command.spawn().unwrap())
}

/// T2, P4: on standard input and output, one answer per line, and the end of input is the end.
#[test]
fn it_serves_on_standard_input_and_output() {
    let mut running = start(&[]);
    let mut input = running.0.stdin.take().unwrap();
    let mut output = BufReader::new(running.0.stdout.take().unwrap());
    writeln!(input, "{INITIALIZE}").unwrap();
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    assert!(line.contains(r#""protocolVersion":"2025-11-25""#), "{line}");
    drop(input);
    assert!(running.0.wait().unwrap().success());
}

/// T3: on HTTP, the first line on standard output is the address, and port 0 picks a free one.
#[test]
fn it_prints_its_address_first() {
    let mut running = start(&["--listen", "127.0.0.1:0"]);
    let mut line = String::new();
    BufReader::new(running.0.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    let address = line
        .trim()
        .strip_prefix("http://")
        .unwrap()
        .strip_suffix("/mcp")
        .unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    write!(
        stream,
        "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{INITIALIZE}",
        INITIALIZE.len()
    )
    .unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).unwrap();
    assert!(
        reply.starts_with("HTTP/1.1 200") && reply.contains("mcp-session-id: "),
        "{reply}"
    );
}

/// N10: restricted to some revisions, it offers no other.
#[test]
fn it_can_be_restricted_to_some_revisions() {
    let mut running = start(&["--revisions", "2024-11-05, 2025-03-26"]);
    let mut input = running.0.stdin.take().unwrap();
    writeln!(input, "{INITIALIZE}").unwrap();
    let mut line = String::new();
    BufReader::new(running.0.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    assert!(line.contains(r#""protocolVersion":"2025-03-26""#), "{line}");
}

#[test]
fn an_unknown_revision_is_named() {
    let output = Command::new(env!("CARGO_BIN_EXE_mcpact"))
        .args(["everything", "--revisions", "2025-06-17"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(
        told.contains("unknown revision `2025-06-17`") && told.contains("`2025-06-18`"),
        "{told}"
    );
}

/// What it says when it does not even start.
fn complaint(args: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_mcpact"))
        .arg("everything")
        .args(args)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2), "{args:?}");
    String::from_utf8(output.stderr).unwrap()
}

/// T8, H3: an address that others can reach needs a token or an explicit word; an empty host is none.
#[test]
fn it_listens_on_loopback_only() {
    for address in ["0.0.0.0:0", "[::]:0"] {
        let told = complaint(&["--listen", address]);
        assert!(told.contains("hint: listen on 127.0.0.1"), "{told}");
        assert!(told.contains("`--token-file FILE`"), "{told}");
    }
    let told = complaint(&["--listen", ":0"]);
    assert!(told.contains("an IP address and a port"), "{told}");
    let told = complaint(&["--listen", "127.0.0.1:0", "--allow-host", "mcp.example:443"]);
    assert!(told.contains("a name or an IP address alone"), "{told}");
    let mut running = start(&["--listen", "0.0.0.0:0", "--allow-remote"]);
    assert!(first_line(&mut running).starts_with("http://127.0.0.1:"));
}

/// T8: whoever listens beyond loopback is told what others need; the bridge tells the same.
#[test]
fn it_tells_who_is_turned_away() {
    let told = "warning: other machines can reach `0.0.0.0:0`, but get 403 without `--allow-host`\n\nhint: say by which names and \
                addresses clients call it, such as `--allow-host mcp.example`\n";
    for command in [&["everything"][..], &["bridge", "--no-cache"]] {
        for (more, expected) in [
            (&["0.0.0.0:0", "--allow-remote"][..], told),
            (&["0.0.0.0:0", "--allow-remote", "--allow-host", "a"], ""),
            (&["127.0.0.1:0"], ""),
        ] {
            let mut started = Command::new(env!("CARGO_BIN_EXE_mcpact"));
            started.args(command).arg("--listen").args(more);
            if command[0] == "bridge" {
                started.arg("http://127.0.0.1:9/mcp");
            }
            started.stdout(Stdio::piped()).stderr(Stdio::piped());
            let mut running = Running(started.spawn().unwrap());
            assert!(first_line(&mut running).starts_with("http://"));
            running.0.kill().unwrap();
            let mut said = String::new();
            let mut stderr = running.0.stderr.take().unwrap();
            stderr.read_to_string(&mut said).unwrap();
            assert_eq!(said, expected, "{command:?} {more:?}");
        }
    }
}

fn first_line(running: &mut Running) -> String {
    let mut line = String::new();
    BufReader::new(running.0.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    line
}

/// T8: the token comes from a file or a variable, and weak ones are refused.
#[test]
fn the_token_comes_from_a_file_or_a_variable() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let good = file("good", "a-token-that-nobody-guesses\n");
    let weak = file("weak", "secret");
    let told = complaint(&["--listen", "127.0.0.1:0", "--token-file", &weak]);
    assert!(
        told.contains("shorter than 16") && !told.contains("secret"),
        "{told}"
    );
    let told = complaint(&["--listen", "127.0.0.1:0", "--token-file", "absent"]);
    assert!(told.contains("cannot use the token in `absent`"), "{told}");

    let by_file = start(&["--listen", "0.0.0.0:0", "--token-file", &good]);
    let mut command = Command::new(env!("CARGO_BIN_EXE_mcpact"));
    command.args(["everything", "--listen", "0.0.0.0:0"]);
    command.env("MCPACT_TOKEN", "a-token-that-nobody-guesses");
    command.stdout(Stdio::piped());
    let by_variable = Running(command.spawn().unwrap());
    for mut running in [by_file, by_variable] {
        let url = first_line(&mut running);
        let port = url.rsplit(':').next().unwrap().split('/').next().unwrap();
        for (token, status) in [("a-token-that-nobody-guesses", 200), ("another", 401)] {
            let mut stream = TcpStream::connect(format!("127.0.0.1:{port}")).unwrap();
            write!(
                stream,
                "POST /mcp HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{INITIALIZE}",
                INITIALIZE.len()
            )
            .unwrap();
            let mut reply = String::new();
            stream.read_to_string(&mut reply).unwrap();
            assert!(reply.starts_with(&format!("HTTP/1.1 {status}")), "{reply}");
        }
    }
}

/// T8: with a certificate and its key it speaks TLS; a wrong file is named.
#[test]
fn it_speaks_tls() {
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
    assert!(first_line(&mut running).starts_with("https://127.0.0.1:"));
    let told = complaint(&tls(cert, cert));
    assert!(told.contains("no unencrypted private key"), "{told}");
    let told = complaint(&["--listen", "127.0.0.1:0", "--tls-cert", cert]);
    assert!(told.contains("--tls-key"), "{told}");
}

/// T8: of a certificate that nobody vouches for it is told what is wrong and what helps, and that helps.
#[test]
fn a_certificate_is_trusted_by_a_variable() {
    let folder = tempfile::tempdir().unwrap();
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let (cert, key) = (folder.path().join("cert"), folder.path().join("key"));
    std::fs::write(&cert, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    let (cert, key) = (cert.to_str().unwrap(), key.to_str().unwrap());
    let tls = ["--tls-cert", cert, "--tls-key", key];
    let mut running = start(&[&["--listen", "127.0.0.1:0"], &tls[..]].concat());
    let url = first_line(&mut running);
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
    let told = asked(None);
    for words in ["nobody vouches for it", "hint: ", "`SSL_CERT_FILE`"] {
        assert!(told.contains(words), "{told}");
    }
    let told = asked(Some(cert));
    assert!(told.contains("\"serverInfo\""), "{told}");
}

/// F1: a line that is not JSON is told so, and the next one is served.
#[test]
fn a_line_of_noise_is_told_so() {
    let mut running = start(&[]);
    let mut input = running.0.stdin.take().unwrap();
    let mut output = BufReader::new(running.0.stdout.take().unwrap());
    writeln!(input, "hello?\n{INITIALIZE}").unwrap();
    let mut told = String::new();
    output.read_line(&mut told).unwrap();
    assert!(told.contains("-32700"), "{told}");
    let mut served = String::new();
    output.read_line(&mut served).unwrap();
    assert!(served.contains("protocolVersion"), "{served}");
}

/// The log is on standard error, in JSON where nobody looks, and standard output stays clean.
#[test]
fn it_logs_negotiations_as_json() {
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
    let told = String::from_utf8(output.stderr).unwrap();
    let event: serde_json::Value = serde_json::from_str(told.trim()).unwrap();
    assert_eq!(event["level"], "INFO");
    assert_eq!(event["target"], "mcpact::negotiation");
    assert_eq!(event["method"], "initialize");
    assert_eq!(event["client.protocol_version"], "2025-11-25");
    assert_eq!(event["revision"], "2025-11-25");
    assert_eq!(event["status"], "ok");
}

/// Without being asked it tells only what went wrong, and a filter that is none is told as such.
#[test]
fn it_is_quiet_unless_asked() {
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
        // A command that refuses its arguments does not read.
        let _ = writeln!(child.stdin.take().unwrap(), "{INITIALIZE}");
        let output = child.wait_with_output().unwrap();
        (
            output.status.code(),
            String::from_utf8(output.stderr).unwrap(),
        )
    };
    assert_eq!(run(&[]), (Some(0), String::new()));
    assert!(run(&["-v"]).1.contains("negotiated"));
    let (code, told) = run(&["--log", "mcpact=loud"]);
    assert_eq!(code, Some(2));
    assert!(
        told.contains("`mcpact=loud` is no filter for the log"),
        "{told}"
    );
}
