//! Requirement T2: our own standard streams.
#![cfg(unix)]
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a broken expectation is a failed test"
)]

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{ChildStdout, Command, Stdio};

use mcpact_transport::stdio;
use mcpact_wire::frame::ndjson::Line;

/// Set in the process that acts as the server.
const ROLE: &str = "MCPACT_STDIO_ROLE";

/// Echoes messages until EOF.
fn serve() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let mut link = stdio::own().unwrap();
        println!("a stray print");
        Command::new("sh")
            .args(["-c", "cat; echo a stray child"])
            .status()
            .unwrap();
        loop {
            while let Some(Line::Json(line)) = link.source.next_line() {
                link.sink.push(str::from_utf8(line).unwrap());
            }
            link.sink.flush().await.unwrap();
            if !link.source.fill().await.unwrap() {
                break;
            }
        }
        link.sink.close().await.unwrap();
    });
}

fn line_of(output: &mut BufReader<ChildStdout>) -> String {
    let mut line = String::new();
    assert!(
        output.read_line(&mut line).unwrap() > 0,
        "the server has closed its output"
    );
    line
}

/// P1, T2: messages travel both ways, and nothing else is written to standard output.
#[test]
fn only_messages_are_written_to_stdout() {
    if std::env::var_os(ROLE).is_some() {
        return serve();
    }
    let mut server = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "only_messages_are_written_to_stdout",
            "--nocapture",
            "--test-threads=2",
        ])
        .env(ROLE, "server")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = server.stdin.take().unwrap();
    let mut output = BufReader::new(server.stdout.take().unwrap());
    let long = format!("{{\"text\":\"{}\"}}\n", "x".repeat(1 << 20));

    input.write_all(b"{\"id\":1}\n").unwrap();
    // Output of the test harness comes first.
    let mut first = line_of(&mut output);
    while first == "\n" || first.starts_with("running") {
        first = line_of(&mut output);
    }
    assert_eq!(first, "{\"id\":1}\n");
    std::thread::scope(|scope| {
        scope.spawn(|| input.write_all(long.as_bytes()).unwrap());
        assert_eq!(line_of(&mut output), long);
    });

    drop(input);
    let mut rest = String::new();
    output.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "");
    let log = server.wait_with_output().unwrap();
    assert!(log.status.success());
    let log = String::from_utf8(log.stderr).unwrap();
    assert!(
        log.contains("a stray print\n") && log.contains("a stray child\n"),
        "{log}"
    );
}
