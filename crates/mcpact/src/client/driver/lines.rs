//! Line-based connections: stdio, sockets and memory.

use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use mcpact_transport::error::TransportError;
use mcpact_transport::link::Link;
use mcpact_wire::frame::ndjson::Line;

use super::heed;
use crate::client::core::{Core, Deeds, Next};

/// Maximum number of chunks read while a write waits, so that two writing peers do not block each other.
const READ_AHEAD: usize = 64;

/// Timeout for a peer that does not read.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);

/// Time for the peer to close its side after we have closed ours.
pub(super) const GOODBYE: Duration = Duration::from_secs(2);

/// End of a conversation.
#[derive(Debug)]
pub(super) enum Ended {
    /// The client ends it.
    HangUp,
    /// The process must be restarted.
    Respawn,
    /// The peer has closed its side, or the transport broke.
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

/// Closes our side and reads the rest of the peer's output, so that it does not block.
pub(super) async fn say_goodbye(link: &mut Link) -> Result<(), TransportError> {
    link.sink.close().await?;
    while link.source.fill().await? {
        while link.source.next_line().is_some() {}
    }
    Ok(())
}

/// Runs the state machine on an open link.
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
                    // Its content may contain secrets.
                    tracing::debug!(length = bytes.len(), "ignored a line that is not a message");
                    continue;
                }
                Line::TooLong { limit, ends } => {
                    tracing::warn!(limit, "dropped a line that is too long");
                    core.missed(ends, limit);
                    continue;
                }
            };
            next = perform(core, link, deeds);
        }
        if let Err(error) = flush(link).await {
            tracing::debug!(%error, "the peer does not read");
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
                if let Err(TransportError::TooLarge { limit }) = more {
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

/// Writes messages, and starts waiting requests once the negotiation is complete.
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

async fn flush(link: &mut Link) -> Result<(), TransportError> {
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
        .map_err(|_| TransportError::Timeout("writing to a peer that does not read"))?
}
