//! Driver of the state machine: one per kind of transport.

#[cfg(unix)]
pub(super) mod child;
pub(super) mod http;
mod http_sse;
pub(super) mod lines;

use super::core::{Core, Deeds, Woken};

/// Maximum number of commands handled before their messages are sent.
const BATCH: usize = 256;

/// Handles an event and all waiting commands, so that their messages leave together.
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
