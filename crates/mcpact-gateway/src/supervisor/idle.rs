//! When an instance that nobody uses is stopped, although its clients stay.

use std::cmp::Reverse;
use std::time::Duration;

use mcpact_config::{RunSettings, Strategy};
use mcpact_engine::time::Moment;

use super::instance::InstanceId;
use super::placement::{Seat, Tenant, least};

/// Who is stopped, and when to look again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) stop: Vec<InstanceId>,
    pub(crate) next: Option<Moment>,
}

/// How long an instance may be idle; none means for ever.
const fn patience(settings: &RunSettings, tenant: Tenant) -> Option<Duration> {
    match (settings.strategy, tenant) {
        (Strategy::Persistent, _) => None,
        // What a client has in it is lost with it.
        (_, Tenant::Own) => Some(settings.session),
        (
            Strategy::Stateless | Strategy::Stateful | Strategy::Singleton,
            Tenant::Shared | Tenant::Nobody,
        ) => Some(settings.idle),
    }
}

/// Looks for instances that nobody has used for long; of those that must be kept, the most recently used
/// ones are.
pub(crate) fn plan(seats: &[&Seat], settings: &RunSettings, now: Moment) -> Plan {
    let mut open: Vec<&Seat> = seats
        .iter()
        .copied()
        .filter(|seat| seat.instance.is_open())
        .collect();
    open.sort_by_key(|seat| (seat.is_idle(), Reverse(seat.used)));
    let mut plan = Plan::default();
    for seat in open.into_iter().skip(least(settings)) {
        let Some(patience) = patience(settings, seat.tenant) else {
            continue;
        };
        // Who is in use now cannot be due sooner than if that ended at once.
        let idle_since = if seat.is_idle() { seat.used } else { now };
        let due = idle_since.after(patience);
        if due <= now && seat.is_idle() {
            plan.stop.push(seat.instance.id);
        } else {
            plan.next = Some(plan.next.map_or(due, |next| next.min(due)));
        }
    }
    plan
}

#[cfg(test)]
mod tests {
    use super::super::instance::{Instance, InstanceState, StartCause};
    use super::*;

    fn at(seconds: u64) -> Moment {
        Moment::at(Duration::from_secs(seconds))
    }

    /// Ready, shared, last used at this second, which is also its number.
    fn seat(used: u64) -> Seat {
        let mut instance = Instance::new(InstanceId(used), StartCause::Request, Moment::ZERO);
        instance.state = InstanceState::Ready;
        Seat {
            instance,
            tenant: Tenant::Shared,
            is_held: false,
            silent: None,
            used: at(used),
            is_awaited: false,
        }
    }

    fn settings(strategy: Strategy) -> RunSettings {
        RunSettings {
            strategy,
            idle: Duration::from_secs(10),
            session: Duration::from_secs(50),
            ..RunSettings::default()
        }
    }

    fn planned(seats: &[Seat], settings: &RunSettings, now: u64) -> (Vec<u64>, Option<Moment>) {
        let seats: Vec<&Seat> = seats.iter().collect();
        let Plan { stop, next } = plan(&seats, settings, at(now));
        let mut stop: Vec<u64> = stop.into_iter().map(|id| id.0).collect();
        stop.sort_unstable();
        (stop, next)
    }

    /// Who was not used for long is stopped, and the next look is when the next one is due.
    #[test]
    fn the_idle_are_stopped() {
        let seats = [seat(1), seat(5), seat(7)];
        let settings = settings(Strategy::Stateless);
        assert_eq!(planned(&seats, &settings, 10), (vec![], Some(at(11))));
        assert_eq!(planned(&seats, &settings, 15), (vec![1, 5], Some(at(17))));
        assert_eq!(planned(&seats, &settings, 17), (vec![1, 5, 7], None));
        assert_eq!(planned(&[], &settings, 17), (vec![], None));
    }

    /// Who is in use or held awake is not stopped, nor who must be kept running.
    #[test]
    fn some_are_kept() {
        let mut busy = seat(1);
        busy.instance.state = InstanceState::Busy {
            calls: std::num::NonZeroUsize::MIN,
        };
        let mut held = seat(2);
        held.is_held = true;
        let seats = [busy, held, seat(3), seat(4)];
        let stateless = settings(Strategy::Stateless);
        let later = Some(at(99 + 10));
        assert_eq!(planned(&seats, &stateless, 99), (vec![3, 4], later));
        let min_ready = |min_ready| RunSettings {
            min_ready,
            ..stateless.clone()
        };
        assert_eq!(planned(&seats, &min_ready(3), 99), (vec![3], None));
        assert_eq!(planned(&seats, &min_ready(4), 99), (vec![], None));
        let persistent = settings(Strategy::Persistent);
        assert_eq!(planned(&seats, &persistent, 99), (vec![], None));
    }

    /// A client's own instance waits longer.
    #[test]
    fn an_own_instance_waits_for_its_client() {
        let mut own = seat(0);
        own.tenant = Tenant::Own;
        let stateful = settings(Strategy::Stateful);
        assert_eq!(
            planned(&[own.clone()], &stateful, 49),
            (vec![], Some(at(50)))
        );
        assert_eq!(planned(&[own], &stateful, 50), (vec![0], None));
    }
}
