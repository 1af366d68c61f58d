//! The task that owns the machine: one way of running it for each kind of carrier.

#[cfg(unix)]
pub(super) mod child;
pub(super) mod http;
mod http_sse;
pub(super) mod lines;

use super::core::{Core, Deeds, Woken};

/// How many commands are taken up before what they write is sent.
const BATCH: usize = 256;

/// Does what woke the driver, and whatever else waits by now, so that it leaves together.
fn heed(core: &mut Core, woken: Woken) -> Deeds {
    let mut deeds = core.heed(woken);
    for _ in 0..BATCH {
        let Ok(command) = core.commands.try_recv() else {
            break;
        };
        deeds.add(core.command(command));
    }
    deeds
}
