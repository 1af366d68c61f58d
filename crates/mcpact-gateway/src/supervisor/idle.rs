//! Idle policy: stops instances that no client has used for a while.

use std::cmp::Reverse;
use std::time::Duration;

use mcpact_config::{RunSettings, Strategy};
use mcpact_engine::time::Moment;

use super::instance::InstanceId;
use super::placement::{InstanceSharing, min_instances};
use super::record::InstanceRecord;

/// Returns the idle timeout of an instance; none means no limit.
const fn timeout(settings: &RunSettings, sharing: InstanceSharing) -> Option<Duration> {
    match (settings.strategy, sharing) {
        (Strategy::Persistent, _) => None,
        // The state of its client is lost with it.
        (_, InstanceSharing::Exclusive) if settings.session.is_zero() => None,
        (_, InstanceSharing::Exclusive) => Some(settings.session),
        (_, InstanceSharing::Shared | InstanceSharing::Internal) => Some(settings.idle),
    }
}

/// Returns the instances past their idle timeout and the time of the next check. The minimum number is kept: busy and
/// recently used ones first.
pub(super) fn plan(
    records: &[&InstanceRecord],
    settings: &RunSettings,
    now: Moment,
) -> (Vec<InstanceId>, Option<Moment>) {
    let mut open: Vec<&InstanceRecord> = records
        .iter()
        .copied()
        .filter(|record| record.instance.is_open())
        .collect();
    open.sort_by_key(|record| (record.is_idle(), Reverse(record.last_used)));
    let mut stop = Vec::new();
    let mut next: Option<Moment> = None;
    for record in open.into_iter().skip(min_instances(settings)) {
        let Some(timeout) = timeout(settings, record.sharing) else {
            continue;
        };
        // An instance in use becomes idle now at the earliest.
        let is_idle = record.is_idle();
        let idle_since = if is_idle { record.last_used } else { now };
        let due = idle_since.after(timeout);
        if due <= now && is_idle {
            stop.push(record.instance.id);
        } else {
            next = Some(next.map_or(due, |next| next.min(due)));
        }
    }
    (stop, next)
}

#[cfg(test)]
mod tests {
    use super::super::instance::{Instance, InstanceState, StartCause};
    use super::*;

    fn at(seconds: u64) -> Moment {
        Moment::at(Duration::from_secs(seconds))
    }

    /// Creates a ready, shared instance; its number is the second of its last use.
    fn record(used: u64) -> InstanceRecord {
        let mut instance = Instance::new(InstanceId(used), StartCause::MinReady, Moment::ZERO);
        instance.state = InstanceState::Ready;
        let sharing = InstanceSharing::Shared;
        InstanceRecord::new(instance, sharing, &RunSettings::default(), at(used))
    }

    fn settings(strategy: Strategy) -> RunSettings {
        RunSettings {
            strategy,
            idle: Duration::from_secs(10),
            session: Duration::from_secs(50),
            ..RunSettings::default()
        }
    }

    fn planned(
        records: &[InstanceRecord],
        settings: &RunSettings,
        now: u64,
    ) -> (Vec<u64>, Option<Moment>) {
        let records: Vec<&InstanceRecord> = records.iter().collect();
        let (stop, next) = plan(&records, settings, at(now));
        let mut stop: Vec<u64> = stop.into_iter().map(|id| id.0).collect();
        stop.sort_unstable();
        (stop, next)
    }

    #[test]
    fn idle_instances_stop_after_the_timeout() {
        let records = [record(1), record(5), record(7)];
        let settings = settings(Strategy::Stateless);
        assert_eq!(planned(&records, &settings, 10), (vec![], Some(at(11))));
        assert_eq!(planned(&records, &settings, 15), (vec![1, 5], Some(at(17))));
        assert_eq!(planned(&records, &settings, 17), (vec![1, 5, 7], None));
        assert_eq!(planned(&[], &settings, 17), (vec![], None));
    }

    #[test]
    fn instances_in_use_and_required_instances_are_kept() {
        let mut busy = record(1);
        busy.instance.state = InstanceState::Busy {
            calls: std::num::NonZeroUsize::MIN,
        };
        let mut subscribed = record(2);
        subscribed.has_listeners = true;
        let records = [busy, subscribed, record(3), record(4)];
        let stateless = settings(Strategy::Stateless);
        let later = Some(at(99 + 10));
        assert_eq!(planned(&records, &stateless, 99), (vec![3, 4], later));
        let min_ready = |min_ready| RunSettings {
            min_ready,
            ..stateless.clone()
        };
        assert_eq!(planned(&records, &min_ready(3), 99), (vec![3], None));
        assert_eq!(planned(&records, &min_ready(4), 99), (vec![], None));
        let persistent = settings(Strategy::Persistent);
        assert_eq!(planned(&records, &persistent, 99), (vec![], None));
    }

    #[test]
    fn exclusive_instances_use_the_session_timeout() {
        let mut own = record(0);
        own.sharing = InstanceSharing::Exclusive;
        let stateful = settings(Strategy::Stateful);
        assert_eq!(
            planned(&[own.clone()], &stateful, 49),
            (vec![], Some(at(50)))
        );
        assert_eq!(planned(&[own.clone()], &stateful, 50), (vec![0], None));
        let unlimited = RunSettings {
            session: Duration::ZERO,
            ..stateful
        };
        assert_eq!(planned(&[own], &unlimited, 99), (vec![], None));
    }
}
