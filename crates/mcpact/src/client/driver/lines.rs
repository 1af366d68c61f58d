//! Pipes, sockets and memory: one message per line.

use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use mcpact_transport::error::DoorError;
use mcpact_transport::link::Link;
use mcpact_wire::frame::ndjson::Line;

use super::heed;
use crate::client::core::{Core, Deeds, Next};

/// How many chunks are read while a write waits, so that two peers that both write do not block each
/// other.
const READ_AHEAD: usize = 64;

/// How long a peer may refuse to read.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);

/// How long a peer may take to close its side after we have closed ours.
pub(super) const GOODBYE: Duration = Duration::from_secs(2);

/// Why a conversation has stopped.
#[derive(Debug)]
pub(super) enum Ended {
    /// We want to end.
    HangUp,
    /// The machine wants the process started anew.
    Respawn,
    /// The peer has closed its side, or the carrier broke.
    Gone,
}

pub(in crate::client) async fn run(mut core: Core, mut link: Link) {
    if let Ended::Gone = converse(&mut core, &mut link, std::future::pending()).await {
        let _ = core.closed();
    }
    // The peer may be gone already, or not care.
    let _ = tokio::time::timeout(GOODBYE, say_goodbye(&mut link)).await;
    core.finish();
}

/// Closes our side and reads what the peer still has to say, so that it does not write to nobody.
pub(super) async fn say_goodbye(link: &mut Link) -> Result<(), DoorError> {
    link.sink.close().await?;
    while link.source.fill().await? {
        while link.source.next_line().is_some() {}
    }
    Ok(())
}

/// Runs the conversation on an open link.
pub(super) async fn converse(
    core: &mut Core,
    link: &mut Link,
    first_byte: impl Future<Output = ()>,
) -> Ended {
    let mut first_byte = pin!(first_byte);
    let mut is_silent = true;
    let mut is_open = true;
    let mut deeds = core.connected();
    loop {
        let mut next = perform(core, link, deeds);
        while next == Next::GoOn
            && let Some(line) = link.source.next_line()
        {
            let deeds = match line {
                Line::Json(bytes) => core.receive(bytes, None),
                Line::Noise(bytes) => {
                    // What it says may be anything, secrets of the server too.
                    tracing::debug!(length = bytes.len(), "a line that is no message");
                    continue;
                }
                Line::TooLong { limit, ends } => {
                    tracing::warn!(limit, "a line was too long and is lost");
                    core.missed(ends, limit);
                    continue;
                }
            };
            next = perform(core, link, deeds);
        }
        if let Err(error) = flush(link).await {
            tracing::debug!(%error, "the peer does not read any more");
            return Ended::Gone;
        }
        match next {
            Next::HangUp | Next::TryHttpSse => return Ended::HangUp,
            Next::Respawn => return Ended::Respawn,
            Next::GoOn if !is_open => return Ended::Gone,
            Next::GoOn => {}
        }
        deeds = tokio::select! {
            woken = core.woken() => heed(core, woken),
            more = link.source.fill() => {
                if let Err(DoorError::TooLarge { limit }) = more {
                    core.missed_all(limit);
                }
                is_open = more.unwrap_or_default();
                Deeds::default()
            }
            () = &mut first_byte, if is_silent => {
                is_silent = false;
                core.first_byte();
                Deeds::default()
            }
        };
    }
}

/// Writes what is to be written, and lets the callers in once there is an agreement.
fn perform(core: &mut Core, link: &mut Link, deeds: Deeds) -> Next {
    for text in &deeds.writes {
        link.sink.push(text);
    }
    if deeds.concluded.is_some() {
        for text in core.open().writes {
            link.sink.push(&text);
        }
    }
    deeds.next
}

async fn flush(link: &mut Link) -> Result<(), DoorError> {
    if link.sink.is_empty() {
        return Ok(());
    }
    let mut flushing = pin!(link.sink.flush());
    for _ in 0..READ_AHEAD {
        tokio::select! {
            biased;
            done = &mut flushing => return done,
            more = link.source.fill() => {
                if !more? {
                    break;
                }
            }
        }
    }
    tokio::time::timeout(WRITE_TIMEOUT, flushing)
        .await
        .map_err(|_| DoorError::Timeout("writing to a peer that does not read"))?
}
