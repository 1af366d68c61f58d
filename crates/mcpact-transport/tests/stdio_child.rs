//! Requirements T2 and T9: a real process on the other end of the pipe.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a broken expectation is a failed test")]

use std::time::Duration;

use mcpact_engine::shutdown::{EndStep, Grace};
use mcpact_transport::error::TransportError;
use mcpact_transport::link::LineSource;
use mcpact_transport::stdio::child::{Child, ChildCommand};
use mcpact_wire::frame::ndjson::{DEFAULT_LINE_LIMIT, Line};
use tokio::time::timeout;

const PATIENCE: Duration = Duration::from_secs(30);

#[derive(Debug, PartialEq)]
enum Received {
    Json(Vec<u8>),
    Noise(Vec<u8>),
    TooLong,
}

fn sh(script: &str) -> Child {
    ChildCommand::new("sh")
        .with_args(["-c", script])
        .spawn()
        .unwrap()
}

fn python(script: &str) -> Child {
    ChildCommand::new("python3")
        .with_args(["-c", script])
        .spawn()
        .unwrap()
}

async fn next(source: &mut LineSource) -> Option<Received> {
    let reading = async {
        let mut is_open = true;
        loop {
            match source.next_line() {
                Some(Line::Json(line)) => return Some(Received::Json(line.to_vec())),
                Some(Line::Noise(line)) => return Some(Received::Noise(line.to_vec())),
                Some(Line::TooLong { .. }) => return Some(Received::TooLong),
                None if !is_open => return None,
                None => is_open = source.fill().await.unwrap(),
            }
        }
    };
    timeout(PATIENCE, reading).await.unwrap()
}

async fn say(child: &mut Child, message: &str) {
    child.link.sink.push(message);
    timeout(PATIENCE, child.link.sink.flush())
        .await
        .unwrap()
        .unwrap();
}

/// T2: messages are echoed, one per line.
#[tokio::test]
async fn messages_travel_both_ways() {
    let mut child = sh("exec cat");
    for message in ["{\"id\":1}", "{\"id\":2}", "[{\"id\":3}]"] {
        say(&mut child, message).await;
        assert_eq!(
            next(&mut child.link.source).await,
            Some(Received::Json(message.into()))
        );
    }
    let departure = child.process.shutdown(Grace::default()).await.unwrap();
    assert!(departure.status.success());
    assert_eq!(departure.after, EndStep::CloseInput);
}

/// T9: a line of 1 MiB passes while the other side writes at the same time.
#[tokio::test]
async fn long_line_passes() {
    let mut child = sh("exec cat");
    let message = format!("{{\"text\":\"{}\"}}", "x".repeat(1 << 20));
    child.link.sink.push(&message);
    let (written, heard) = tokio::join!(child.link.sink.flush(), next(&mut child.link.source));
    written.unwrap();
    assert_eq!(heard, Some(Received::Json(message.into_bytes())));
}

/// T9: a line over the limit is reported, and the next one is read.
#[tokio::test]
async fn line_over_the_limit_is_reported_and_reading_continues() {
    let mut child = python(&format!(
        "import sys; sys.stdout.write('{{' + 'x' * {DEFAULT_LINE_LIMIT} + '\\n{{\"id\":1}}\\n')"
    ));
    assert_eq!(next(&mut child.link.source).await, Some(Received::TooLong));
    assert_eq!(
        next(&mut child.link.source).await,
        Some(Received::Json(b"{\"id\":1}".to_vec()))
    );
    assert_eq!(next(&mut child.link.source).await, None);
}

/// T9: invalid UTF-8, banners and an unterminated last line do not stop reading.
#[tokio::test]
async fn noise_does_not_stop_reading() {
    let mut child = sh(r#"printf 'Listening...\n\377\376\n\n{"id":1}\r\n{"id":2}'"#);
    assert_eq!(
        next(&mut child.link.source).await,
        Some(Received::Noise(b"Listening...".to_vec()))
    );
    assert_eq!(
        next(&mut child.link.source).await,
        Some(Received::Noise(b"\xff\xfe".to_vec()))
    );
    assert_eq!(
        next(&mut child.link.source).await,
        Some(Received::Json(b"{\"id\":1}".to_vec()))
    );
    assert_eq!(
        next(&mut child.link.source).await,
        Some(Received::Json(b"{\"id\":2}".to_vec()))
    );
    assert_eq!(next(&mut child.link.source).await, None);
}

/// P2, T2, T9: a flood on standard error neither blocks the child nor fills memory, and is not a failure.
#[tokio::test]
async fn flood_on_standard_error_does_not_block() {
    let mut child = python(
        "import os, sys\n\
         for _ in range(50): sys.stderr.buffer.write(b'\\xff' * 1_000_000)\n\
         sys.stderr.buffer.write(b'\\nlast words\\n'); sys.stderr.flush()\n\
         print('{\"id\":1}', flush=True)",
    );
    assert_eq!(
        next(&mut child.link.source).await,
        Some(Received::Json(b"{\"id\":1}".to_vec()))
    );
    let status = timeout(PATIENCE, child.process.wait())
        .await
        .unwrap()
        .unwrap();
    assert!(status.success());
    assert_eq!(child.process.stderr_tail(), "last words\n");
}

/// T2: the end of the log is kept within its limit, whole lines only.
#[tokio::test]
async fn end_of_the_log_is_kept() {
    let mut command = ChildCommand::new("sh").with_args([
        "-c",
        "i=0; while [ $i -lt 1000 ]; do i=$((i+1)); echo line $i >&2; done",
    ]);
    command.stderr_limit = 100;
    let child = command.spawn().unwrap();
    timeout(PATIENCE, child.process.wait())
        .await
        .unwrap()
        .unwrap();
    let tail = child.process.stderr_tail();
    assert!(
        tail.len() <= 100 && tail.starts_with("line 99") && tail.ends_with("\nline 1000\n"),
        "{tail}"
    );
}

#[tokio::test]
async fn first_byte_is_detected_on_both_streams() {
    let child = sh("echo hello >&2; exec cat");
    assert!(timeout(PATIENCE, child.process.first_byte()).await.unwrap());

    let mut child = sh("read line; echo '{}'; exec cat");
    let mut first = Box::pin(child.process.first_byte());
    tokio::select! {
        biased;
        _ = &mut first => panic!("nothing was said yet"),
        () = tokio::task::yield_now() => {}
    }
    say(&mut child, "{}").await;
    next(&mut child.link.source).await.unwrap();
    assert!(timeout(PATIENCE, first).await.unwrap());

    let child = sh("exit 0");
    assert!(!timeout(PATIENCE, child.process.first_byte()).await.unwrap());
}

/// The child sees only the variables that are passed to it.
#[tokio::test]
async fn environment_is_minimal() {
    // Set by cargo for every test; stands for a secret.
    assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some());
    let mut child = ChildCommand::new("env")
        .with_env("GIVEN", "yes")
        .with_env("TZ", "UTC")
        .spawn()
        .unwrap();
    let mut names = Vec::new();
    while let Some(Received::Noise(line)) = next(&mut child.link.source).await {
        names.push(String::from_utf8(line).unwrap());
    }
    assert!(names.contains(&"GIVEN=yes".to_owned()) && names.contains(&"TZ=UTC".to_owned()));
    let allowed = ["PATH=", "HOME=", "LANG=", "TZ=", "TERM=", "GIVEN="];
    let others = names
        .iter()
        .filter(|line| !allowed.iter().any(|name| line.starts_with(name)));
    assert_eq!(others.count(), 0, "{names:?}");
}

/// Arguments are not interpreted by a shell.
#[tokio::test]
async fn arguments_are_not_interpreted_by_a_shell() {
    let folder = tempfile::tempdir().unwrap();
    let mut command =
        ChildCommand::new("printf").with_args(["%s\\n", "a && touch marker; $(touch marker)"]);
    command.cwd = Some(folder.path().to_owned());
    let mut child = command.spawn().unwrap();
    let expected = b"a && touch marker; $(touch marker)".to_vec();
    assert_eq!(
        next(&mut child.link.source).await,
        Some(Received::Noise(expected))
    );
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn failed_start_names_the_program() {
    let error = ChildCommand::new("no-such-server").spawn().unwrap_err();
    assert!(matches!(&error, TransportError::Spawn { program, .. } if program == "no-such-server"));
    assert_eq!(error.to_string(), "cannot start `no-such-server`");

    let mut command = ChildCommand::new("sh");
    command.cwd = Some("/no/such/folder".into());
    let TransportError::Spawn { source, .. } = command.spawn().unwrap_err() else {
        panic!("another error")
    };
    assert!(source.to_string().contains("/no/such/folder"));
}

#[tokio::test]
async fn link_ends_with_the_process() {
    let mut child = sh("exit 7");
    assert_eq!(next(&mut child.link.source).await, None);
    let status = timeout(PATIENCE, child.process.wait())
        .await
        .unwrap()
        .unwrap();
    assert_eq!(status.code(), Some(7));
    child.link.sink.push("{}");
    assert!(matches!(
        child.link.sink.flush().await,
        Err(TransportError::Io(_))
    ));
}

/// T2: closing the link is EOF on the child's standard input.
#[tokio::test]
async fn closing_the_link_stops_the_server() {
    let mut child = sh("exec cat");
    child.link.sink.close().await.unwrap();
    let status = timeout(PATIENCE, child.process.wait())
        .await
        .unwrap()
        .unwrap();
    assert!(status.success());
}
