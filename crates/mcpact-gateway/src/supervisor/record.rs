//! Record of one running instance: its state, and the facts that decisions about it need.

use std::time::Duration;

use mcpact_config::RunSettings;
use mcpact_engine::time::Moment;

use super::health::HealthCheck;
use super::instance::{Instance, StartCause};
use super::placement::InstanceSharing;

/// Time for which an instance is reserved for the call that started it. The client may have disconnected meanwhile.
const RESERVED: Duration = Duration::from_secs(5);

/// A running instance.
#[derive(Clone, Debug)]
pub(super) struct InstanceRecord {
    pub(super) instance: Instance,
    pub(super) sharing: InstanceSharing,
    /// A client is subscribed to messages of this instance.
    pub(super) has_listeners: bool,
    pub(super) health: HealthCheck,
    /// Start of the health check in progress, if the instance had calls then.
    pub(super) checked_while_busy: Option<Moment>,
    /// Time of the first health check that went unanswered while the instance had calls.
    pub(super) unresponsive_since: Option<Moment>,
    /// Start or end of the latest call.
    pub(super) last_used: Moment,
    /// Started for a call that has not arrived yet.
    pub(super) awaits_call: bool,
    /// Number of calls that wait for the input of their clients.
    pub(super) suspended: usize,
    /// Ran long enough to reset the restart policy.
    pub(super) is_stable: bool,
    /// Has answered a call.
    pub(super) has_served: bool,
}

impl InstanceRecord {
    pub(super) fn new(
        instance: Instance,
        sharing: InstanceSharing,
        settings: &RunSettings,
        now: Moment,
    ) -> Self {
        Self {
            suspended: 0,
            awaits_call: instance.cause == StartCause::Request,
            instance,
            sharing,
            has_listeners: false,
            health: HealthCheck::new(settings.health.clone(), now),
            checked_while_busy: None,
            unresponsive_since: None,
            last_used: now,
            is_stable: false,
            has_served: false,
        }
    }

    /// Returns the end of the reservation for the call that started the instance, if it is reserved.
    pub(super) fn reserved_until(&self, now: Moment) -> Option<Moment> {
        let until = self.last_used.after(RESERVED);
        (self.awaits_call && now < until).then_some(until)
    }

    /// Returns the number of calls that keep the instance busy.
    pub(super) const fn active_calls(&self) -> usize {
        self.instance.calls().saturating_sub(self.suspended)
    }

    /// Returns true if the instance only waits for input. One of a single client stays in use after that.
    pub(super) const fn is_suspended(&self) -> bool {
        self.suspended > 0
            && self.active_calls() == 0
            && !matches!(self.sharing, InstanceSharing::Exclusive)
    }

    /// Returns true if no client would notice a stop.
    pub(super) const fn is_idle(&self) -> bool {
        self.instance.is_open() && self.instance.calls() == 0 && !self.has_listeners
    }
}
