mod recovery;

use mcpact_config::{Health, Probe, Restarts, Strategy as Keeping};
use proptest::prelude::*;

use super::super::placement::{OwnershipRelation, PermitState, SlotFacts};
use super::*;

/// Places a call among these instances.
fn chosen(set: &InstanceSet, usable: &[InstanceId], now: Moment) -> Placement {
    let slot = |id: &InstanceId| SlotFacts {
        open: Some((*id, OwnershipRelation::Common)),
        has_tasks: false,
        permit: PermitState::Free,
    };
    let pool = PoolFacts {
        slots: usable.iter().map(slot).collect(),
        sharing: InstanceSharing::Shared,
        max_slots: 1,
    };
    set.place(Purpose::Call, &pool, false, now)
}

impl InstanceSet {
    fn has_capacity(&self, now: Moment) -> bool {
        let room = Room {
            records: &self.all(),
            settings: &self.settings,
            queued: 0,
            now,
        };
        room.may_start()
    }
}

/// Cause of the end of a connection.
const CRASH: &str = "process crashed";

fn at(seconds: u64) -> Moment {
    Moment::at(Duration::from_secs(seconds))
}

fn settings() -> RunSettings {
    RunSettings {
        strategy: Keeping::Stateless,
        idle: Duration::from_secs(30),
        max_concurrent: 2,
        max_instances: 2,
        queue: 3,
        drain: Duration::from_secs(5),
        health: Health {
            probe: Probe::Auto,
            interval: Duration::from_secs(7),
            failures: 2,
            errors_fail: false,
        },
        restarts: Restarts {
            backoff: Duration::from_secs(1),
            backoff_max: Duration::from_secs(4),
            failures: 3,
            window: Duration::from_secs(100),
            suspend: Duration::from_secs(60),
        },
        ..RunSettings::default()
    }
}

fn admit_for(set: &mut InstanceSet, cause: StartCause, now: Moment) -> Admission {
    set.admit(InstanceSharing::Shared, cause, false, now)
}

fn admit(set: &mut InstanceSet, now: Moment) -> Admission {
    admit_for(set, StartCause::Request, now)
}

fn admitted(set: &mut InstanceSet, cause: StartCause, now: Moment) -> InstanceId {
    match admit_for(set, cause, now) {
        Admission::Start(id) => id,
        other => panic!("{other:?}"),
    }
}

fn ready(set: &mut InstanceSet, id: InstanceId, now: Moment) {
    set.ready(id, Revision::V2025_11_25, InstanceSharing::Shared, now);
}

fn start_call(set: &mut InstanceSet, id: InstanceId, now: Moment) -> CallAdmission {
    set.start_call(id, false, now)
}

/// Starts an instance that is ready for calls.
fn started(set: &mut InstanceSet, now: Moment) -> InstanceId {
    let id = admitted(set, StartCause::Request, now);
    set.spawned(id, 1, now);
    ready(set, id, now);
    id
}

/// Starts an instance that has answered a call.
fn used(set: &mut InstanceSet, now: Moment) -> InstanceId {
    let id = started(set, now);
    assert_eq!(start_call(set, id, now), CallAdmission::Started);
    let _ = set.end_call(id, CallOutcome::Served, now);
    id
}

fn crash(set: &mut InstanceSet, id: InstanceId, now: Moment) {
    let _ = set.remove(id, &CRASH.into(), u32::MAX, now);
}

/// Starts an instance and lets the start fail.
fn fail_start(set: &mut InstanceSet, cause: StartCause, now: Moment) {
    let id = admitted(set, cause, now);
    set.start_failed(id, "no".into(), u32::MAX, now);
    crash(set, id, now);
}

#[test]
fn status_follows_an_instance_from_start_to_idle_stop() {
    let mut set = InstanceSet::new(settings());
    let seen = |set: &InstanceSet, now| {
        let status = set.status(at(now));
        let instances = status
            .instances
            .iter()
            .map(|instance| instance.state.as_str());
        let instances: Vec<&str> = instances.collect();
        format!("{} {}", status.state.as_str(), instances.join(" "))
    };
    assert_eq!(seen(&set, 0), "asleep ");
    let admission = admit(&mut set, at(0));
    assert_eq!(admission, Admission::Start(InstanceId(1)));
    let id = InstanceId(1);
    assert_eq!(seen(&set, 0), "starting starting");
    // No call is admitted before the negotiation has finished.
    assert_eq!(start_call(&mut set, id, at(0)), CallAdmission::Retired);
    set.spawned(id, 7, at(1));
    assert_eq!(seen(&set, 1), "starting handshaking");
    assert_eq!(start_call(&mut set, id, at(1)), CallAdmission::Retired);
    ready(&mut set, id, at(2));
    assert_eq!(seen(&set, 2), "ready ready");
    assert_eq!(start_call(&mut set, id, at(3)), CallAdmission::Started);
    assert_eq!(seen(&set, 3), "busy busy");
    assert!(!set.end_call(id, CallOutcome::Served, at(4)));
    let _ = set.check_finished(id, true, 0, at(30));
    let plan = set.maintain(at(33));
    assert_eq!((plan.close, plan.next), (vec![], Some(at(34))));
    let plan = set.maintain(at(34));
    assert_eq!(plan.close, [id]);
    assert_eq!(seen(&set, 34), "asleep draining");
    assert_eq!(set.status(at(34)).busy_word(), "stopping");
    assert_eq!(start_call(&mut set, id, at(34)), CallAdmission::Retired);
    let ended = set.remove(id, &CRASH.into(), 0, at(35)).unwrap();
    let cause = StopCause::Idle;
    assert_eq!(ended.state, InstanceState::Stopped { cause });
    let status = set.status(at(36));
    assert_eq!(status.ended[0].age, Duration::from_secs(1));
    assert_eq!((status.failures, status.last_error), (0, None));
}

#[test]
fn calls_above_the_limit_wait_until_the_queue_is_full() {
    let mut set = InstanceSet::new(settings());
    let id = started(&mut set, at(0));
    let start = |set: &mut InstanceSet| start_call(set, id, at(1));
    assert_eq!(start(&mut set), CallAdmission::Started);
    assert_eq!(start(&mut set), CallAdmission::Started);
    for _ in 0..3 {
        assert_eq!(start(&mut set), CallAdmission::Wait);
        assert_eq!(set.enqueue(), Ok(()));
    }
    assert_eq!(start(&mut set), CallAdmission::Refuse);
    assert_eq!(set.enqueue(), Err(Refusal::QueueFull));
    assert_eq!(set.status(at(1)).busy_word(), "busy");
    // A queued call does not count against itself.
    assert_eq!(set.start_call(id, true, at(1)), CallAdmission::Wait);
    let _ = set.end_call(id, CallOutcome::Served, at(2));
    assert_eq!(set.start_call(id, true, at(2)), CallAdmission::Started);
}

#[test]
fn idle_instance_stops_to_free_capacity() {
    let mut set = InstanceSet::new(settings());
    let first = used(&mut set, at(0));
    let second = used(&mut set, at(1));
    let waiting = |close| Admission::Wait { until: None, close };
    assert_eq!(admit(&mut set, at(2)), waiting(Some(first)));
    assert_eq!(admit(&mut set, at(2)), waiting(None));
    let _ = set.remove(first, &CRASH.into(), 0, at(3));
    let third = started(&mut set, at(3));
    for id in [second, third] {
        assert_eq!(start_call(&mut set, id, at(4)), CallAdmission::Started);
    }
    assert_eq!(admit(&mut set, at(4)), waiting(None));
}

/// A call that waits for input is ended only for queued calls, and only if more instances wait than may.
#[test]
fn waits_for_input_are_limited_while_calls_are_queued() {
    let mut set = InstanceSet::new(RunSettings {
        max_input_waits: 1,
        ..settings()
    });
    for id in [started(&mut set, at(0)), started(&mut set, at(0))] {
        assert_eq!(start_call(&mut set, id, at(1)), CallAdmission::Started);
        set.set_suspended(id, true);
    }
    assert!(!set.has_excess_waits(), "nothing is queued");
    set.enqueue().unwrap();
    assert!(set.has_excess_waits());
    let first = set.all()[0].instance.id;
    set.set_suspended(first, false);
    assert!(!set.has_excess_waits());
}

/// An unhealthy instance is retired, counts as a failure and is closed after the drain timeout.
#[test]
fn unhealthy_instance_is_retired() {
    let mut set = InstanceSet::new(settings());
    let id = started(&mut set, at(0));
    assert_eq!(set.maintain(at(6)).check, []);
    assert_eq!(set.maintain(at(7)).check, [id]);
    let (suspect, _) = set.check_finished(id, false, 0, at(7));
    assert_eq!(start_call(&mut set, id, at(8)), CallAdmission::Started);
    let (failed, closes) = set.check_finished(id, false, 0, at(9));
    assert_eq!((suspect, failed), (Diagnosis::Suspect, Diagnosis::Failed));
    // Its call may still finish.
    assert!(!closes);
    assert_eq!(set.maintain(at(13)).close, []);
    assert_eq!(set.maintain(at(14)).close, [id]);
    assert_eq!(set.status(at(14)).failures, 1);
    assert!(set.status(at(14)).last_error.is_some());
}

/// A busy instance that does not answer health checks is not failed: many servers do one thing at a time. The status
/// shows it, and calls prefer other instances.
#[test]
fn busy_instance_may_be_unresponsive() {
    let mut set = InstanceSet::new(settings());
    let id = started(&mut set, at(0));
    assert_eq!(start_call(&mut set, id, at(1)), CallAdmission::Started);
    let choose = |set: &InstanceSet, mine: &[InstanceId], now| chosen(set, mine, now);
    assert_eq!(choose(&set, &[id], at(1)), Placement::Lease(0));
    for now in [7, 14, 21, 28] {
        assert_eq!(set.maintain(at(now)).check, [id]);
        let _ = set.check_started(id, at(now));
        let answered = set.check_finished(id, false, 0, at(now));
        assert_eq!(answered, (Diagnosis::Unresponsive, false));
    }
    let status = set.status(at(30));
    assert_eq!(
        status.instances[0].unresponsive,
        Some(Duration::from_secs(23))
    );
    assert_eq!((status.state.as_str(), status.failures), ("busy", 0));
    assert_eq!(choose(&set, &[id], at(30)), Placement::Open(1));
    let other = started(&mut set, at(30));
    let both = [id, other];
    assert_eq!(choose(&set, &both, at(30)), Placement::Lease(1));
    for _ in 0..2 {
        assert_eq!(start_call(&mut set, other, at(31)), CallAdmission::Started);
    }
    assert_eq!(choose(&set, &both, at(31)), Placement::Lease(0));
    assert!(!set.end_call(id, CallOutcome::Served, at(32)));
    assert_eq!(set.status(at(32)).instances[0].unresponsive, None);
    assert_eq!(set.maintain(at(32)).check, [id], "checked at once");
}

/// A busy instance gets a cheap probe instead of a call. Passing it does not reset the failures.
#[test]
fn busy_instance_gets_a_cheap_probe() {
    let probe = Probe::Tool("check".into());
    let health = Health {
        probe: probe.clone(),
        ..settings().health
    };
    let mut set = InstanceSet::new(RunSettings {
        health,
        ..settings()
    });
    let id = started(&mut set, at(0));
    let check = |set: &mut InstanceSet, result, now| {
        assert_eq!(set.maintain(at(now)).check, [id]);
        let (sent, _) = set.check_started(id, at(now)).unwrap();
        (sent, set.check_finished(id, result, 0, at(now)).0)
    };
    let suspect = check(&mut set, false, 7);
    assert_eq!(suspect, (probe.clone(), Diagnosis::Suspect));
    assert_eq!(start_call(&mut set, id, at(8)), CallAdmission::Started);
    let alive = check(&mut set, true, 14);
    assert_eq!(alive, (Probe::Auto, Diagnosis::Healthy));
    let stuck = check(&mut set, false, 21);
    assert_eq!(stuck, (Probe::Auto, Diagnosis::Unresponsive));
    assert!(!set.end_call(id, CallOutcome::Served, at(22)));
    let failed = check(&mut set, false, 29);
    assert_eq!(failed, (probe, Diagnosis::Failed));
}

/// An instance that is unresponsive for longer than the call timeout is not merely busy.
#[test]
fn unresponsive_instance_fails_after_the_call_timeout() {
    let mut set = InstanceSet::new(RunSettings {
        call_timeout: Duration::from_secs(20),
        ..settings()
    });
    let id = started(&mut set, at(0));
    let mut diagnoses = Vec::new();
    for now in [7, 14, 21, 28, 35, 42, 49] {
        assert_eq!(start_call(&mut set, id, at(now)), CallAdmission::Started);
        let _ = set.check_started(id, at(now));
        let (diagnosis, closes) = set.check_finished(id, false, 0, at(now));
        assert!(!closes, "has a call");
        diagnoses.push(diagnosis);
        let left = set.end_call(id, CallOutcome::Unanswered, at(now + 1));
        if diagnosis == Diagnosis::Failed {
            assert!(left, "closed after the last call");
            break;
        }
        assert!(set.status(at(now + 1)).instances[0].unresponsive.is_some());
    }
    use Diagnosis::{Failed, Suspect, Unresponsive};
    assert_eq!(
        diagnoses,
        [Unresponsive, Unresponsive, Unresponsive, Suspect, Failed]
    );
}

/// Unanswered health checks count only after the call has ended.
#[test]
fn unresponsive_instance_is_checked_when_idle() {
    let mut set = InstanceSet::new(settings());
    let id = started(&mut set, at(0));
    assert_eq!(start_call(&mut set, id, at(1)), CallAdmission::Started);
    let _ = set.check_started(id, at(7));
    let answered = set.check_finished(id, false, 0, at(7));
    assert_eq!(answered, (Diagnosis::Unresponsive, false));
    assert!(!set.end_call(id, CallOutcome::Unanswered, at(8)));
    let choice = chosen(&set, &[id], at(8));
    assert_eq!(choice, Placement::Open(1));
    for (now, expected) in [(8, Diagnosis::Suspect), (15, Diagnosis::Failed)] {
        assert_eq!(set.maintain(at(now)).check, [id]);
        let _ = set.check_started(id, at(now));
        let (diagnosis, closes) = set.check_finished(id, false, 0, at(now));
        assert_eq!(diagnosis, expected);
        assert_eq!(closes, diagnosis == Diagnosis::Failed);
    }
}

#[test]
fn crash_loop_suspends_the_server() {
    let mut set = InstanceSet::new(settings());
    let mut now = 0;
    for _ in 0..3 {
        let id = started(&mut set, at(now));
        crash(&mut set, id, at(now));
        now += 5;
    }
    let admission = admit(&mut set, at(15));
    let suspended = Refusal::Suspended {
        failures: 3,
        wait: Duration::from_secs(55),
    };
    assert_eq!(admission, Admission::Refuse(suspended));
    assert_eq!(set.status(at(15)).state.as_str(), "suspended");
    set.policy.reset();
    started(&mut set, at(15));
}

/// Calls are refused at once, and only the file system is looked at, until the program can be started.
#[test]
fn missing_program_is_looked_up_but_not_started() {
    let mut set = InstanceSet::new(settings());
    fail_start(&mut set, StartCause::Request, at(0));
    set.unstartable();
    for now in [1, 60, 600] {
        let admission = admit(&mut set, at(now));
        assert_eq!(admission, Admission::Refuse(Refusal::Unstartable));
        let plan = set.maintain(at(now));
        assert_eq!((plan.start, plan.next), (None, Some(at(now + 5))));
    }
    let status = set.status(at(600));
    assert_eq!((status.state, status.retry_in), (ServerState::Asleep, None));
    assert!(status.outage.is_some());
    set.startable();
    assert_eq!(set.maintain(at(601)).start, Some(StartCause::Recovery));
    started(&mut set, at(601));
}

fn never_idle() -> RunSettings {
    RunSettings {
        idle: Duration::from_secs(1000),
        ..settings()
    }
}

/// Starts up to 20 instances that crash after calls with these outcomes, which begin when the instance has run for some
/// seconds. Returns the state and the number of starts.
fn crash_after(uptime: u64, outcomes: &[CallOutcome]) -> (&'static str, u64) {
    let mut set = InstanceSet::new(never_idle());
    let mut now = 0;
    for _ in 0..20 {
        let Admission::Start(id) = admit(&mut set, at(now)) else {
            break;
        };
        ready(&mut set, id, at(now));
        now += uptime;
        let _ = set.maintain(at(now));
        for outcome in outcomes {
            assert_eq!(start_call(&mut set, id, at(now)), CallAdmission::Started);
            let _ = set.end_call(id, *outcome, at(now));
        }
        crash(&mut set, id, at(now));
        now += 10;
    }
    (set.status(at(now)).state.as_str(), set.starts())
}

/// A server that answers calls is replaced whenever it crashes. One that crashes with every call is suspended, even if
/// it lists its tools before, and however long it ran within the time for which failures count.
#[test]
fn only_crashes_before_an_answer_suspend_the_server() {
    use CallOutcome::{Listed, Served, Unanswered};
    for uptime in [0, 12, 25] {
        for outcomes in [&[Served][..], &[Listed, Served, Unanswered]] {
            assert_eq!(crash_after(uptime, outcomes), ("asleep", 20), "{uptime}");
        }
        for outcomes in [&[][..], &[Unanswered], &[Listed, Unanswered]] {
            let seen = crash_after(uptime, outcomes);
            assert_eq!(seen, ("suspended", 3), "{uptime} {outcomes:?}");
        }
    }
    // Each failure is older than the window when the next one happens.
    assert_eq!(crash_after(100, &[Unanswered]), ("asleep", 20));
}

/// After a suspension, an answer or the time for which failures count ends the probation.
#[test]
fn probation_ends_with_an_answer_or_after_the_window() {
    use CallOutcome::{Served, Unanswered};
    for (uptime, outcome, expected) in [
        (12, Unanswered, "suspended"),
        (12, Served, "asleep"),
        (100, Unanswered, "pausing"),
    ] {
        let mut set = InstanceSet::new(never_idle());
        for now in [0, 5, 10] {
            let id = started(&mut set, at(now));
            crash(&mut set, id, at(now));
        }
        let id = started(&mut set, at(70));
        let end = at(70 + uptime);
        let _ = set.maintain(end);
        assert_eq!(start_call(&mut set, id, end), CallAdmission::Started);
        let _ = set.end_call(id, outcome, end);
        crash(&mut set, id, end);
        let state = set.status(end).state.as_str();
        assert_eq!(state, expected, "{uptime} {outcome:?}");
    }
}

/// The response may be processed after the connection has ended.
#[test]
fn answer_counts_even_if_the_connection_ended_before() {
    let mut set = InstanceSet::new(settings());
    let id = started(&mut set, at(0));
    assert_eq!(start_call(&mut set, id, at(0)), CallAdmission::Started);
    set.connection_lost(id, &CRASH.into(), u32::MAX, at(1));
    assert_eq!(set.status(at(1)).state.as_str(), "pausing");
    let _ = set.end_call(id, CallOutcome::Served, at(1));
    assert_eq!(set.status(at(1)).state.as_str(), "asleep");
}

/// Ten restarts in ten seconds; then calls wait, and the status shows it.
#[test]
fn restarts_of_a_working_server_are_limited() {
    let mut set = InstanceSet::new(settings());
    for _ in 0..11 {
        let id = used(&mut set, at(0));
        crash(&mut set, id, at(0));
    }
    let until = Some(at(10));
    let close = None;
    assert_eq!(admit(&mut set, at(1)), Admission::Wait { until, close });
    assert_eq!(set.status(at(1)).state.as_str(), "pausing");
    started(&mut set, at(10));
}

/// A suspension begins an outage. The server is started again without a call when the suspension ends.
#[test]
fn suspended_server_is_retried() {
    let mut set = InstanceSet::new(settings());
    let id = used(&mut set, at(0));
    crash(&mut set, id, at(0));
    assert_eq!(set.status(at(0)).outage, None, "the next call may succeed");
    for now in [0, 5, 10] {
        let id = started(&mut set, at(now));
        crash(&mut set, id, at(now));
    }
    let outage = set.status(at(11)).outage.unwrap();
    assert_eq!(
        (outage.why.cause.as_str(), outage.age.as_secs()),
        (CRASH, 1)
    );
    let plan = set.maintain(at(11));
    assert_eq!((plan.start, plan.next), (None, Some(at(70))));
    assert_eq!(set.status(at(11)).retry_in, Some(Duration::from_secs(59)));
    assert_eq!(set.maintain(at(70)).start, Some(StartCause::Recovery));
    fail_start(&mut set, StartCause::Recovery, at(70));
    let plan = set.maintain(at(70));
    assert_eq!(
        (plan.start, plan.next),
        (None, Some(at(190))),
        "twice as long"
    );
    let id = admitted(&mut set, StartCause::Recovery, at(190));
    ready(&mut set, id, at(190));
    assert_eq!(set.status(at(190)).outage, None);
    crash(&mut set, id, at(191));
    let status = set.status(at(191));
    assert_eq!(status.state.as_str(), "suspended", "not stable yet");
    assert_eq!(status.retry_in, Some(Duration::from_secs(240)));
}

/// L26: a graceful shutdown waits for in-flight calls, an immediate one does not.
#[test]
fn shutdown_mode_decides_about_calls_in_flight() {
    for (mode, is_closed) in [
        (ShutdownMode::Graceful, false),
        (ShutdownMode::Immediate, true),
    ] {
        let mut set = InstanceSet::new(settings());
        let id = started(&mut set, at(0));
        assert_eq!(start_call(&mut set, id, at(1)), CallAdmission::Started);
        let closing = set.close(mode, at(2));
        assert_eq!(closing == [id], is_closed, "{mode:?}");
        assert!(set.stop_cause(id).is_some(), "{mode:?}");
    }
}

/// A failed start is retried without a call, with backoff, until the server is suspended. A healthy server and one that
/// shuts down are not started.
#[test]
fn failed_start_is_retried() {
    let mut set = InstanceSet::new(settings());
    assert_eq!(set.maintain(at(0)).start, None, "no call yet");
    fail_start(&mut set, StartCause::Request, at(0));
    let plan = set.maintain(at(0));
    assert_eq!((plan.start, plan.next), (None, Some(at(1))));
    assert_eq!(set.status(at(0)).retry_in, Some(Duration::from_secs(1)));
    for (now, next, state) in [
        (1, 3, "pausing"),
        (3, 63, "suspended"),
        (63, 183, "suspended"),
    ] {
        assert_eq!(set.maintain(at(now)).start, Some(StartCause::Recovery));
        fail_start(&mut set, StartCause::Recovery, at(now));
        let plan = set.maintain(at(now));
        assert_eq!((plan.start, plan.next), (None, Some(at(next))));
        assert_eq!(set.status(at(now)).state.as_str(), state, "{now}");
    }
    assert_eq!(set.policy.failures(), 3);
    set.policy.recovery_skipped(u32::MAX, at(183));
    assert_eq!(set.maintain(at(183)).start, None, "not started");
    let id = started(&mut set, at(190));
    assert_eq!(set.maintain(at(190)).start, None);
    let _ = set.retire(id, StopCause::Idle, at(260));
    crash(&mut set, id, at(260));
    assert_eq!(set.maintain(at(260)).start, None, "asleep");
    fail_start(&mut set, StartCause::Request, at(270));
    set.close(ShutdownMode::Immediate, at(271));
    assert_eq!(set.maintain(at(290)).start, None);
}

#[test]
fn minimum_number_of_instances_is_started() {
    let settings = RunSettings {
        min_ready: 2,
        ..settings()
    };
    let mut set = InstanceSet::new(settings);
    assert_eq!(set.maintain(at(0)).start, Some(StartCause::MinReady));
    let id = started(&mut set, at(0));
    assert_eq!(set.maintain(at(0)).start, Some(StartCause::MinReady));
    started(&mut set, at(0));
    assert_eq!(set.maintain(at(0)).start, None);
    crash(&mut set, id, at(20));
    // Restarted after the backoff.
    let plan = set.maintain(at(20));
    assert_eq!((plan.start, plan.next), (None, Some(at(21))));
    assert_eq!(set.maintain(at(21)).start, Some(StartCause::MinReady));
    set.close(ShutdownMode::Graceful, at(22));
    assert_eq!(set.maintain(at(22)).start, None);
    let admission = admit(&mut set, at(22));
    assert_eq!(admission, Admission::Refuse(Refusal::Closed));
}

#[derive(Clone, Copy, Debug)]
enum Act {
    Admit,
    Ready(u8),
    Fail(u8),
    StartCall(u8),
    EndCall(u8),
    Remove(u8),
    Check(u8, bool),
    Maintain,
}

fn acts() -> impl Strategy<Value = Vec<(u64, Act)>> {
    let act = prop_oneof![
        3 => Just(Act::Admit),
        3 => any::<u8>().prop_map(Act::Ready),
        1 => any::<u8>().prop_map(Act::Fail),
        4 => any::<u8>().prop_map(Act::StartCall),
        3 => any::<u8>().prop_map(Act::EndCall),
        1 => any::<u8>().prop_map(Act::Remove),
        1 => any::<(u8, bool)>().prop_map(|(id, good)| Act::Check(id, good)),
        2 => Just(Act::Maintain),
    ];
    proptest::collection::vec((0_u64..20, act), 0..150)
}

proptest! {
    /// Model that only counts: instances and calls stay within their limits, no number is used twice, every call is
    /// counted until it ends, and an empty set can start again.
    #[test]
    fn limits_hold_for_any_sequence(acts in acts()) {
        let settings = settings();
        let mut set = InstanceSet::new(settings.clone());
        let mut now = Moment::ZERO;
        // Number of the instance and its calls.
        let mut model: Vec<(InstanceId, usize)> = Vec::new();
        let mut last = InstanceId(0);
        for (wait, act) in acts {
            now = now.after(Duration::from_secs(wait));
            let of = |which: u8, model: &[(InstanceId, usize)]| {
                (!model.is_empty()).then(|| usize::from(which) % model.len())
            };
            match act {
                Act::Admit => {
                    let admission =
                        admit(&mut set, now);
                    if let Admission::Start(id) = admission {
                        prop_assert!(id > last);
                        last = id;
                        model.push((id, 0));
                    }
                }
                Act::Ready(which) => {
                    if let Some(at) = of(which, &model) {
                        ready(&mut set, model[at].0, now);
                    }
                }
                Act::Fail(which) => {
                    if let Some(at) = of(which, &model) {
                        set.start_failed(model[at].0, "".into(), 0, now);
                    }
                }
                Act::StartCall(which) => {
                    if let Some(at) = of(which, &model)
                        && start_call(&mut set, model[at].0, now) == CallAdmission::Started
                    {
                        model[at].1 += 1;
                    }
                }
                Act::EndCall(which) => {
                    if let Some(at) = of(which, &model) && model[at].1 > 0 {
                        model[at].1 -= 1;
                        let _ = set.end_call(model[at].0, CallOutcome::Served, now);
                    }
                }
                Act::Remove(which) => {
                    if let Some(at) = of(which, &model) {
                        let (id, _) = model.remove(at);
                        prop_assert!(set.remove(id, &CRASH.into(), 0, now).unwrap().is_over());
                    }
                }
                Act::Check(which, good) => {
                    if let Some(at) = of(which, &model) {
                        let _ = set.check_finished(model[at].0, good, 0, now);
                    }
                }
                Act::Maintain => {
                    if let Some(next) = set.maintain(now).next {
                        prop_assert!(next > now);
                    }
                }
            }
            let status = set.status(now);
            let running = status.instances.iter();
            let alive = running.clone().filter(|one| one.state.as_str() != "failed").count();
            prop_assert!(alive <= settings.max_instances);
            let counted: Vec<(InstanceId, usize)> =
                running.map(|one| (one.id, one.in_flight)).collect();
            prop_assert_eq!(&counted, &model);
            prop_assert!(counted.iter().all(|(_, calls)| *calls <= settings.max_concurrent));
            prop_assert!(status.ended.len() <= MAX_ENDED);
        }
        for (id, _) in model {
            let _ = set.remove(id, &CRASH.into(), 0, now);
        }
        let later = now.after(Duration::from_secs(10_000));
        let admission = admit(&mut set, later);
        prop_assert!(matches!(admission, Admission::Start(_)), "{:?}", admission);
    }
}

#[test]
fn new_limits_apply_to_running_instances() {
    let mut set = InstanceSet::new(settings());
    let id = started(&mut set, at(0));
    for expected in [
        CallAdmission::Started,
        CallAdmission::Started,
        CallAdmission::Wait,
    ] {
        assert_eq!(start_call(&mut set, id, at(1)), expected);
    }
    let other = RunSettings {
        max_concurrent: 3,
        idle: Duration::from_secs(5),
        min_ready: 0,
        ..settings()
    };
    set.update_settings(&other, at(1));
    assert_eq!(start_call(&mut set, id, at(2)), CallAdmission::Started);
    assert_eq!(set.status(at(2)).starts, 1);
    for _ in 0..3 {
        assert!(!set.end_call(id, CallOutcome::Served, at(3)));
    }
    let _ = set.check_finished(id, true, 0, at(4));
    assert_eq!(set.maintain(at(7)).close, []);
    assert_eq!(set.maintain(at(8)).close, [id]);
}

/// Instances above a lowered limit get no calls and stop when idle.
#[test]
fn surplus_instances_stop() {
    let mut set = InstanceSet::new(RunSettings {
        max_instances: 3,
        ..settings()
    });
    let [first, second, third] = [0, 1, 2].map(|now| used(&mut set, at(now)));
    let all = [first, second, third];
    assert_eq!(start_call(&mut set, first, at(3)), CallAdmission::Started);
    assert_eq!(start_call(&mut set, third, at(3)), CallAdmission::Started);
    let one = RunSettings {
        max_instances: 1,
        ..settings()
    };
    set.update_settings(&one, at(3));
    assert_eq!(set.maintain(at(3)).close, [second]);
    assert_eq!(set.stop_cause(second), Some(StopCause::Room));
    let choose = |set: &InstanceSet| chosen(set, &all, at(4));
    assert_eq!(choose(&set), Placement::Lease(0));
    assert_eq!(start_call(&mut set, first, at(4)), CallAdmission::Started);
    assert_eq!(
        choose(&set),
        Placement::Wait(None),
        "the third gets no calls"
    );
    let left = set.end_call(third, CallOutcome::Served, at(5));
    assert!(left);
    for _ in 0..2 {
        assert!(!set.end_call(first, CallOutcome::Served, at(6)));
    }
    assert_eq!(set.maintain(at(6)).close, []);
}

#[test]
fn queued_call_gets_the_place_of_a_persistent_instance() {
    let mut set = InstanceSet::new(RunSettings {
        strategy: Keeping::Persistent,
        max_instances: 1,
        ..settings()
    });
    let kept = admitted(&mut set, StartCause::Persistent, at(0));
    ready(&mut set, kept, at(0));
    let Admission::Wait { close, .. } = admit(&mut set, at(0)) else {
        panic!("a second instance was started");
    };
    assert_eq!(close, Some(kept));
    assert_eq!(set.enqueue(), Ok(()));
    crash(&mut set, kept, at(0));
    assert_eq!(set.maintain(at(10)).start, None, "the call goes first");
    assert!(matches!(admit(&mut set, at(10)), Admission::Start(_)));
}
