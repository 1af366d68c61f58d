//! List of all stable strings.

use std::num::NonZeroUsize;
use std::time::Duration;

use mcpact::connection::{DropReason, FailureText};
use mcpact::log;
use mcpact_engine::effect::DropCause;
use mcpact_engine::refusal::ReasonCode;

use super::ReloadCause;
use crate::metrics::{KINDS, Outcome};
use crate::reason::{GatewayState, LOG_OF_WHOM, LogEvent, Reason, ReloadOutcome, ServerWord};
use crate::supervisor::{InstanceState, ServerState, StartCause, StopCause};

/// Returns every stable string of the gateway and the crates below it, by set, for the contract test of `mcpact-cli`.
#[must_use]
pub fn stable_strings() -> Vec<(&'static str, Vec<&'static str>)> {
    macro_rules! sets {
        ($($name:literal: $set:ty),* $(,)?) => {
            vec![$(($name, <$set>::ALL.iter().map(|it| it.as_str()).collect::<Vec<_>>())),*]
        };
    }
    let mut sets = sets![
        "reason": Reason,
        "reason": ReasonCode,
        "drop reason, messages of clients": DropCause,
        "drop reason, messages of servers": DropReason,
        "request outcome": Outcome,
        "reload outcome": ReloadOutcome,
        "reload cause": ReloadCause,
        "start cause": StartCause,
        "stop cause": StopCause,
        "gateway state": GatewayState,
        "server state": ServerWord,
        "log event": LogEvent,
    ];
    sets.extend([
        (
            "server state",
            SERVER_STATES.map(ServerState::as_str).to_vec(),
        ),
        (
            "instance state",
            instance_states()
                .iter()
                .map(InstanceState::as_str)
                .collect(),
        ),
        ("drop reason, messages of servers", vec![LOG_OF_WHOM]),
        ("translation kind", KINDS.to_vec()),
        ("log event", log::event::ALL.to_vec()),
        ("log target", log::TARGETS.to_vec()),
    ]);
    sets
}

/// One server state of each kind.
pub(super) const SERVER_STATES: [ServerState; 6] = [
    ServerState::Asleep,
    ServerState::Starting,
    ServerState::Ready,
    ServerState::Busy,
    ServerState::Pausing {
        wait: Duration::ZERO,
    },
    ServerState::Suspended {
        age: Duration::ZERO,
        wait: Duration::ZERO,
    },
];

/// One instance state of each kind.
fn instance_states() -> [InstanceState; 7] {
    let cause = StopCause::Idle;
    [
        InstanceState::Starting,
        InstanceState::Handshaking,
        InstanceState::Ready,
        InstanceState::Busy {
            calls: NonZeroUsize::MIN,
        },
        InstanceState::Draining { calls: 0, cause },
        InstanceState::Stopped { cause },
        InstanceState::Failed {
            why: FailureText::default(),
        },
    ]
}
