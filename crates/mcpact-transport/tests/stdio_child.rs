//! Requirements T2 and T9: a real process on the other end of the pipe.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a broken expectation is a failed test")]

use std::time::Duration;

use mcpact_engine::shutdown::{EndStep, Grace};
use mcpact_transport::error::DoorError;
use mcpact_transport::link::LineSource;
use mcpact_transport::stdio::child::{Child, ChildCommand};
use mcpact_wire::frame::ndjson::{DEFAULT_LINE_LIMIT, Line};
use tokio::time::timeout;

const PATIENCE: Duration = Duration::from_secs(30);

#[derive(Debug, PartialEq)]
enum Heard {
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

async fn next(source: &mut LineSource) -> Option<Heard> {
    let reading = async {
        let mut is_open = true;
        loop {
            match source.next_line() {
                Some(Line::Json(line)) => return Some(Heard::Json(line.to_vec())),
                Some(Line::Noise(line)) => return Some(Heard::Noise(line.to_vec())),
                Some(Line::TooLong { .. }) => return Some(Heard::TooLong),
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

/// T2: what goes in comes back, one message per line.
#[tokio::test]
async fn messages_travel_both_ways() {
    let mut child = sh("exec cat");
    for message in ["{\"id\":1}", "{\"id\":2}", "[{\"id\":3}]"] {
        say(&mut child, message).await;
        assert_eq!(
            next(&mut child.link.source).await,
            Some(Heard::Json(message.into()))
        );
    }
    let departure = child.process.shutdown(Grace::default()).await.unwrap();
    assert!(departure.status.success());
    assert_eq!(departure.after, EndStep::CloseInput);
}

/// T9: a line of a mebibyte passes while the other side writes at the same time.
#[tokio::test]
async fn a_long_line_passes() {
    let mut child = sh("exec cat");
    let message = format!("{{\"text\":\"{}\"}}", "x".repeat(1 << 20));
    child.link.sink.push(&message);
    let (written, heard) = tokio::join!(child.link.sink.flush(), next(&mut child.link.source));
    written.unwrap();
    assert_eq!(heard, Some(Heard::Json(message.into_bytes())));
}

/// T9: a line over the limit is reported, and the next one is read.
#[tokio::test]
async fn a_line_over_the_limit_is_reported_and_the_next_one_read() {
    let mut child = python(&format!(
        "import sys; sys.stdout.write('{{' + 'x' * {DEFAULT_LINE_LIMIT} + '\\n{{\"id\":1}}\\n')"
    ));
    assert_eq!(next(&mut child.link.source).await, Some(Heard::TooLong));
    assert_eq!(
        next(&mut child.link.source).await,
        Some(Heard::Json(b"{\"id\":1}".to_vec()))
    );
    assert_eq!(next(&mut child.link.source).await, None);
}

/// T9: bytes that are no text, banners and a last line without an end do not stop the reading.
#[tokio::test]
async fn noise_does_not_stop_the_reading() {
    let mut child = sh(r#"printf 'Listening...\n\377\376\n\n{"id":1}\r\n{"id":2}'"#);
    assert_eq!(
        next(&mut child.link.source).await,
        Some(Heard::Noise(b"Listening...".to_vec()))
    );
    assert_eq!(
        next(&mut child.link.source).await,
        Some(Heard::Noise(b"\xff\xfe".to_vec()))
    );
    assert_eq!(
        next(&mut child.link.source).await,
        Some(Heard::Json(b"{\"id\":1}".to_vec()))
    );
    assert_eq!(
        next(&mut child.link.source).await,
        Some(Heard::Json(b"{\"id\":2}".to_vec()))
    );
    assert_eq!(next(&mut child.link.source).await, None);
}

/// P2, T2, T9: a flood on standard error neither blocks the child nor fills our memory, and is no failure.
#[tokio::test]
async fn a_flood_on_standard_error_blocks_nobody() {
    let mut child = python(
        "import os, sys\n\
         for _ in range(50): sys.stderr.buffer.write(b'\\xff' * 1_000_000)\n\
         sys.stderr.buffer.write(b'\\nlast words\\n'); sys.stderr.flush()\n\
         print('{\"id\":1}', flush=True)",
    );
    assert_eq!(
        next(&mut child.link.source).await,
        Some(Heard::Json(b"{\"id\":1}".to_vec()))
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
async fn the_end_of_the_log_is_kept() {
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
async fn the_first_byte_is_heard_on_either_stream() {
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

/// A secret of ours is not visible to the child, what we give it is, and nothing else.
#[tokio::test]
async fn the_environment_is_minimal() {
    // Cargo gives every test this variable; it stands for a secret.
    assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some());
    let mut child = ChildCommand::new("env")
        .with_env("GIVEN", "yes")
        .with_env("TZ", "UTC")
        .spawn()
        .unwrap();
    let mut names = Vec::new();
    while let Some(Heard::Noise(line)) = next(&mut child.link.source).await {
        names.push(String::from_utf8(line).unwrap());
    }
    assert!(names.contains(&"GIVEN=yes".to_owned()) && names.contains(&"TZ=UTC".to_owned()));
    let allowed = ["PATH=", "HOME=", "LANG=", "TZ=", "TERM=", "GIVEN="];
    let others = names
        .iter()
        .filter(|line| !allowed.iter().any(|name| line.starts_with(name)));
    assert_eq!(others.count(), 0, "{names:?}");
}

/// There is no shell between us and the program.
#[tokio::test]
async fn arguments_are_not_read_by_a_shell() {
    let folder = tempfile::tempdir().unwrap();
    let mut command =
        ChildCommand::new("printf").with_args(["%s\\n", "a && touch marker; $(touch marker)"]);
    command.cwd = Some(folder.path().to_owned());
    let mut child = command.spawn().unwrap();
    let expected = b"a && touch marker; $(touch marker)".to_vec();
    assert_eq!(
        next(&mut child.link.source).await,
        Some(Heard::Noise(expected))
    );
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn a_failed_start_names_the_program() {
    let error = ChildCommand::new("no-such-server").spawn().unwrap_err();
    assert!(matches!(&error, DoorError::Spawn { program, .. } if program == "no-such-server"));
    assert_eq!(error.to_string(), "cannot start `no-such-server`");

    let mut command = ChildCommand::new("sh");
    command.cwd = Some("/no/such/folder".into());
    let DoorError::Spawn { source, .. } = command.spawn().unwrap_err() else {
        panic!("another error")
    };
    assert!(source.to_string().contains("/no/such/folder"));
}

#[tokio::test]
async fn the_end_of_the_process_is_the_end_of_the_link() {
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
        Err(DoorError::Io(_))
    ));
}

/// T2: closing the link alone is the end of the child's input.
#[tokio::test]
async fn closing_the_link_ends_a_server_that_obeys() {
    let mut child = sh("exec cat");
    child.link.sink.close().await.unwrap();
    let status = timeout(PATIENCE, child.process.wait())
        .await
        .unwrap()
        .unwrap();
    assert!(status.success());
}
