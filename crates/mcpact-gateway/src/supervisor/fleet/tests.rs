mod falling;

use mcpact_config::{Health, Probe, Restarts, Strategy as Keeping};
use proptest::prelude::*;

use super::*;
use crate::supervisor::health::{Answer, Diagnosis};

/// Why a connection ended.
const FELL: &str = "it fell";

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

fn started(fleet: &mut Fleet, now: Moment) -> InstanceId {
    let admission = fleet.admit(Tenant::Shared, StartCause::Request, Line::Arriving, now);
    let Admission::Start(id) = admission else {
        panic!("{admission:?}");
    };
    fleet.spawned(id, 1, now);
    fleet.agreed(id, Revision::V2025_11_25, now);
    id
}

/// One that has answered a call.
fn useful(fleet: &mut Fleet, now: Moment) -> InstanceId {
    let id = started(fleet, now);
    assert_eq!(fleet.enter(id, Line::Arriving, now), Entry::Entered);
    let _ = fleet.leave(id, Parting::Answered, now);
    id
}

/// From its start to its idle stop, with what a person sees meanwhile.
#[test]
fn the_life_of_an_instance() {
    let mut fleet = Fleet::new(settings());
    let seen = |fleet: &Fleet, now| {
        let status = fleet.status(at(now));
        let instances = status
            .instances
            .iter()
            .map(|instance| instance.state.as_str());
        let instances: Vec<&str> = instances.collect();
        format!("{} {}", status.state.as_str(), instances.join(" "))
    };
    assert_eq!(seen(&fleet, 0), "asleep ");
    let admission = fleet.admit(Tenant::Shared, StartCause::Request, Line::Arriving, at(0));
    assert_eq!(admission, Admission::Start(InstanceId(1)));
    let id = InstanceId(1);
    assert_eq!(seen(&fleet, 0), "starting starting");
    // No call is admitted before the negotiation has finished.
    assert_eq!(fleet.enter(id, Line::Arriving, at(0)), Entry::Retired);
    fleet.spawned(id, 7, at(1));
    assert_eq!(seen(&fleet, 1), "starting handshaking");
    assert_eq!(fleet.enter(id, Line::Arriving, at(1)), Entry::Retired);
    fleet.agreed(id, Revision::V2025_11_25, at(2));
    assert_eq!(seen(&fleet, 2), "ready ready");
    assert_eq!(fleet.enter(id, Line::Arriving, at(3)), Entry::Entered);
    assert_eq!(seen(&fleet, 3), "busy busy");
    assert_eq!(fleet.leave(id, Parting::Answered, at(4)), None);
    let _ = fleet.answered(id, Answer::Good, 0, at(30));
    let round = fleet.round(at(33));
    assert_eq!((round.close, round.next), (vec![], Some(at(34))));
    let round = fleet.round(at(34));
    assert_eq!(round.close, [id]);
    assert_eq!(seen(&fleet, 34), "asleep draining");
    assert_eq!(fleet.status(at(34)).crowded(), "stopping");
    assert_eq!(fleet.enter(id, Line::Arriving, at(34)), Entry::Retired);
    let over = fleet.gone(id, &FELL.into(), 0, at(35)).unwrap();
    let cause = StopCause::Idle;
    assert_eq!(over.state, InstanceState::Stopped { cause });
    let status = fleet.status(at(36));
    assert_eq!(status.over[0].age, Duration::from_secs(1));
    assert_eq!((status.failures, status.last_error), (0, None));
}

/// Calls beyond what an instance takes wait, as many as may, and the rest is refused.
#[test]
fn calls_wait_and_are_refused() {
    let mut fleet = Fleet::new(settings());
    let id = started(&mut fleet, at(0));
    let enter = |fleet: &mut Fleet| fleet.enter(id, Line::Arriving, at(1));
    assert_eq!(enter(&mut fleet), Entry::Entered);
    assert_eq!(enter(&mut fleet), Entry::Entered);
    for _ in 0..3 {
        assert_eq!(enter(&mut fleet), Entry::Wait);
        assert_eq!(fleet.queue(), Ok(()));
    }
    assert_eq!(enter(&mut fleet), Entry::Refuse);
    assert_eq!(fleet.queue(), Err(Refusal::Busy));
    assert_eq!(fleet.status(at(1)).crowded(), "busy");
    // Who waits already does not stand in its own way.
    assert_eq!(fleet.enter(id, Line::Waiting, at(1)), Entry::Wait);
    let _ = fleet.leave(id, Parting::Answered, at(2));
    assert_eq!(fleet.enter(id, Line::Waiting, at(2)), Entry::Entered);
}

/// An instance that nobody uses makes room for another; one in use does not.
#[test]
fn idle_instances_make_room() {
    let mut fleet = Fleet::new(settings());
    let first = useful(&mut fleet, at(0));
    let second = useful(&mut fleet, at(1));
    let admit = |fleet: &mut Fleet, now| {
        fleet.admit(Tenant::Shared, StartCause::Request, Line::Arriving, at(now))
    };
    let waiting = |close| Admission::Wait { until: None, close };
    assert_eq!(admit(&mut fleet, 2), waiting(Some(first)));
    assert_eq!(admit(&mut fleet, 2), waiting(None));
    let _ = fleet.gone(first, &FELL.into(), 0, at(3));
    let third = started(&mut fleet, at(3));
    for id in [second, third] {
        assert_eq!(fleet.enter(id, Line::Arriving, at(4)), Entry::Entered);
    }
    assert_eq!(admit(&mut fleet, 4), waiting(None));
}

/// Who does not answer is retired, counts as a failure and is drained no longer than it may.
#[test]
fn the_unwell_are_retired() {
    let mut fleet = Fleet::new(settings());
    let id = started(&mut fleet, at(0));
    assert_eq!(fleet.round(at(6)).ask, []);
    assert_eq!(fleet.round(at(7)).ask, [id]);
    let (shaky, _) = fleet.answered(id, Answer::Bad, 0, at(7));
    assert_eq!(fleet.enter(id, Line::Arriving, at(8)), Entry::Entered);
    let (failed, effect) = fleet.answered(id, Answer::Bad, 0, at(9));
    assert_eq!((shaky, failed), (Diagnosis::Shaky, Diagnosis::Failed));
    // Its call may still end.
    assert_eq!(effect, None);
    assert_eq!(fleet.round(at(13)).close, []);
    assert_eq!(fleet.round(at(14)).close, [id]);
    assert_eq!(fleet.status(at(14)).failures, 1);
    assert!(fleet.status(at(14)).last_error.is_some());
}

/// Who has calls is asked as well. That it does not answer says nothing against it, for many do one thing at
/// a time; it is seen, and other calls go elsewhere if they can.
#[test]
fn the_busy_may_be_silent() {
    let mut fleet = Fleet::new(settings());
    let id = started(&mut fleet, at(0));
    assert_eq!(fleet.enter(id, Line::Arriving, at(1)), Entry::Entered);
    let choose = |fleet: &Fleet, mine: &[InstanceId], now| fleet.choose(mine, Line::Arriving, now);
    assert_eq!(choose(&fleet, &[id], at(1)), Choice::Use(id));
    for now in [7, 14, 21, 28] {
        assert_eq!(fleet.round(at(now)).ask, [id]);
        fleet.asked(id, at(now));
        let answered = fleet.answered(id, Answer::Bad, 0, at(now));
        assert_eq!(answered, (Diagnosis::Silent, None));
    }
    let status = fleet.status(at(30));
    assert_eq!(status.instances[0].silent, Some(Duration::from_secs(23)));
    assert_eq!((status.state.as_str(), status.failures), ("busy", 0));
    assert_eq!(choose(&fleet, &[id], at(30)), Choice::Start);
    let other = started(&mut fleet, at(30));
    let both = [id, other];
    assert_eq!(choose(&fleet, &both, at(30)), Choice::Use(other));
    for _ in 0..2 {
        assert_eq!(fleet.enter(other, Line::Arriving, at(31)), Entry::Entered);
    }
    assert_eq!(choose(&fleet, &both, at(31)), Choice::Use(id));
    assert_eq!(fleet.leave(id, Parting::Answered, at(32)), None);
    assert_eq!(fleet.status(at(32)).instances[0].silent, None);
    assert_eq!(fleet.round(at(32)).ask, [id], "it is asked at once");
}

/// Who has calls is asked something that is no call, whatever it is asked otherwise; that it answers that does not
/// make good what it got wrong before.
#[test]
fn the_busy_are_not_given_more_work() {
    let probe = Probe::Tool("check".into());
    let health = Health {
        probe: probe.clone(),
        ..settings().health
    };
    let mut fleet = Fleet::new(RunSettings {
        health,
        ..settings()
    });
    let id = started(&mut fleet, at(0));
    let ask = |fleet: &mut Fleet, answer, now| {
        assert_eq!(fleet.round(at(now)).ask, [id]);
        let asked = fleet.probe(id).clone();
        fleet.asked(id, at(now));
        (asked, fleet.answered(id, answer, 0, at(now)).0)
    };
    let shaky = ask(&mut fleet, Answer::Bad, 7);
    assert_eq!(shaky, (probe.clone(), Diagnosis::Shaky));
    assert_eq!(fleet.enter(id, Line::Arriving, at(8)), Entry::Entered);
    let alive = ask(&mut fleet, Answer::Good, 14);
    assert_eq!(alive, (Probe::Auto, Diagnosis::Well));
    let stuck = ask(&mut fleet, Answer::Bad, 21);
    assert_eq!(stuck, (Probe::Auto, Diagnosis::Silent));
    assert_eq!(fleet.leave(id, Parting::Answered, at(22)), None);
    let failed = ask(&mut fleet, Answer::Bad, 29);
    assert_eq!(failed, (probe, Diagnosis::Failed));
}

/// No call takes longer than it may, so that an instance which is silent for longer is not merely busy.
#[test]
fn nobody_is_silent_for_ever() {
    let mut fleet = Fleet::new(RunSettings {
        call_timeout: Duration::from_secs(20),
        ..settings()
    });
    let id = started(&mut fleet, at(0));
    let mut diagnoses = Vec::new();
    for now in [7, 14, 21, 28, 35, 42, 49] {
        assert_eq!(fleet.enter(id, Line::Arriving, at(now)), Entry::Entered);
        fleet.asked(id, at(now));
        let (diagnosis, effect) = fleet.answered(id, Answer::Bad, 0, at(now));
        assert_eq!(effect, None, "it has a call");
        diagnoses.push(diagnosis);
        let left = fleet.leave(id, Parting::GivenUp, at(now + 1));
        if diagnosis == Diagnosis::Failed {
            assert!(left.is_some(), "it is closed after the last call");
            break;
        }
        assert!(fleet.status(at(now + 1)).instances[0].silent.is_some());
    }
    use Diagnosis::{Failed, Shaky, Silent};
    assert_eq!(diagnoses, [Silent, Silent, Silent, Shaky, Failed]);
}

/// What an instance did not answer while it had a call counts for nothing; what it does not answer
/// afterwards does.
#[test]
fn the_silent_are_asked_when_they_are_idle() {
    let mut fleet = Fleet::new(settings());
    let id = started(&mut fleet, at(0));
    assert_eq!(fleet.enter(id, Line::Arriving, at(1)), Entry::Entered);
    fleet.asked(id, at(7));
    let answered = fleet.answered(id, Answer::Bad, 0, at(7));
    assert_eq!(answered, (Diagnosis::Silent, None));
    assert_eq!(fleet.leave(id, Parting::GivenUp, at(8)), None);
    let choice = fleet.choose(&[id], Line::Arriving, at(8));
    assert_eq!(choice, Choice::Start);
    for (now, expected) in [(8, Diagnosis::Shaky), (15, Diagnosis::Failed)] {
        assert_eq!(fleet.round(at(now)).ask, [id]);
        fleet.asked(id, at(now));
        let (diagnosis, effect) = fleet.answered(id, Answer::Bad, 0, at(now));
        assert_eq!(diagnosis, expected);
        assert_eq!(effect.is_some(), diagnosis == Diagnosis::Failed);
    }
}

/// Who dies again and again is suspended; who waits is told for how long.
#[test]
fn a_crash_loop_suspends() {
    let mut fleet = Fleet::new(settings());
    let mut now = 0;
    for _ in 0..3 {
        let id = started(&mut fleet, at(now));
        let _ = fleet.gone(id, &FELL.into(), u32::MAX, at(now));
        now += 5;
    }
    let admission = fleet.admit(Tenant::Shared, StartCause::Request, Line::Arriving, at(15));
    let suspended = Refusal::Suspended {
        failures: 3,
        wait: Duration::from_secs(55),
    };
    assert_eq!(admission, Admission::Refuse(suspended));
    assert_eq!(fleet.status(at(15)).state.as_str(), "suspended");
    fleet.forgive();
    started(&mut fleet, at(15));
}

/// A server that is suspended because it died cannot be used, which is known until it has been tried
/// again: without being called, when the suspension is over.
#[test]
fn who_is_suspended_is_tried_again() {
    let mut fleet = Fleet::new(settings());
    for now in [0, 5, 10] {
        assert_eq!(fleet.status(at(now)).stands, None, "it may do better");
        let id = useful(&mut fleet, at(now));
        let _ = fleet.gone(id, &FELL.into(), u32::MAX, at(now));
    }
    let stands = fleet.status(at(11)).stands.unwrap();
    assert_eq!((stands.why.cause.as_str(), stands.age.as_secs()), (FELL, 1));
    let round = fleet.round(at(11));
    assert_eq!((round.start, round.next), (None, Some(at(70))));
    assert_eq!(fleet.status(at(11)).tried_in, Some(Duration::from_secs(59)));
    assert_eq!(fleet.round(at(70)).start, Some(StartCause::Recovery));
    failed(&mut fleet, StartCause::Recovery, at(70));
    let round = fleet.round(at(70));
    assert_eq!(
        (round.start, round.next),
        (None, Some(at(190))),
        "twice as long"
    );
    let admission = fleet.admit(
        Tenant::Shared,
        StartCause::Recovery,
        Line::Arriving,
        at(190),
    );
    let Admission::Start(id) = admission else {
        panic!("{admission:?}");
    };
    fleet.agreed(id, Revision::V2025_11_25, at(190));
    assert_eq!(fleet.status(at(190)).stands, None);
    let _ = fleet.gone(id, &FELL.into(), u32::MAX, at(191));
    let status = fleet.status(at(191));
    assert_eq!(status.state.as_str(), "suspended", "it did not last");
    assert_eq!(status.tried_in, Some(Duration::from_secs(240)));
}

/// L26: calls that run at the end are given their time, unless nobody waits for them.
#[test]
fn a_call_that_nobody_waits_for_does_not_keep_an_instance() {
    for (farewell, is_closed) in [(Farewell::Long, false), (Farewell::Short, true)] {
        let mut fleet = Fleet::new(settings());
        let id = started(&mut fleet, at(0));
        assert_eq!(fleet.enter(id, Line::Arriving, at(1)), Entry::Entered);
        let closing = fleet.close(farewell, at(2));
        assert_eq!(closing == [id], is_closed, "{farewell:?}");
        assert!(fleet.retired(id).is_some(), "{farewell:?}");
    }
}

fn failed(fleet: &mut Fleet, cause: StartCause, now: Moment) {
    let admission = fleet.admit(Tenant::Shared, cause, Line::Arriving, now);
    let Admission::Start(id) = admission else {
        panic!("{admission:?}");
    };
    fleet.failed(id, "no".into(), u32::MAX, now);
    let _ = fleet.gone(id, &FELL.into(), u32::MAX, now);
}

/// A server that did not start is tried again without being called, ever more rarely, until it is suspended
/// as if it had been; one that is well is left alone, and so is one that nobody is served by any more.
#[test]
fn what_did_not_start_is_tried_again() {
    let mut fleet = Fleet::new(settings());
    assert_eq!(fleet.round(at(0)).start, None, "nobody has called");
    failed(&mut fleet, StartCause::Request, at(0));
    let round = fleet.round(at(0));
    assert_eq!((round.start, round.next), (None, Some(at(1))));
    assert_eq!(fleet.status(at(0)).tried_in, Some(Duration::from_secs(1)));
    for (now, next, state) in [
        (1, 3, "pausing"),
        (3, 63, "suspended"),
        (63, 183, "suspended"),
    ] {
        assert_eq!(fleet.round(at(now)).start, Some(StartCause::Recovery));
        failed(&mut fleet, StartCause::Recovery, at(now));
        let round = fleet.round(at(now));
        assert_eq!((round.start, round.next), (None, Some(at(next))));
        assert_eq!(fleet.status(at(now)).state.as_str(), state, "{now}");
    }
    assert_eq!(fleet.failures(), 3);
    fleet.not_begun(u32::MAX, at(183));
    assert_eq!(fleet.round(at(183)).start, None, "it could not be begun");
    let id = started(&mut fleet, at(190));
    assert_eq!(fleet.round(at(190)).start, None);
    let _ = fleet.retire(id, StopCause::Idle, at(260));
    let _ = fleet.gone(id, &FELL.into(), u32::MAX, at(260));
    assert_eq!(fleet.round(at(260)).start, None, "it sleeps");
    failed(&mut fleet, StartCause::Request, at(270));
    fleet.close(Farewell::Short, at(271));
    assert_eq!(fleet.round(at(290)).start, None);
}

/// Those that must run are missing until they are on their way.
#[test]
fn some_are_kept_ready() {
    let settings = RunSettings {
        min_ready: 2,
        ..settings()
    };
    let mut fleet = Fleet::new(settings);
    assert_eq!(fleet.round(at(0)).start, Some(StartCause::MinReady));
    let id = started(&mut fleet, at(0));
    assert_eq!(fleet.round(at(0)).start, Some(StartCause::MinReady));
    started(&mut fleet, at(0));
    assert_eq!(fleet.round(at(0)).start, None);
    let _ = fleet.gone(id, &FELL.into(), u32::MAX, at(20));
    // It fell, and gets up in a moment.
    let round = fleet.round(at(20));
    assert_eq!((round.start, round.next), (None, Some(at(21))));
    assert_eq!(fleet.round(at(21)).start, Some(StartCause::MinReady));
    fleet.close(Farewell::Long, at(22));
    assert_eq!(fleet.round(at(22)).start, None);
    let admission = fleet.admit(Tenant::Own, StartCause::Request, Line::Arriving, at(22));
    assert_eq!(admission, Admission::Refuse(Refusal::Closed));
}

#[derive(Clone, Copy, Debug)]
enum Act {
    Admit,
    Agree(u8),
    Fail(u8),
    Enter(u8),
    Leave(u8),
    Gone(u8),
    Answer(u8, bool),
    Round,
}

fn acts() -> impl Strategy<Value = Vec<(u64, Act)>> {
    let act = prop_oneof![
        3 => Just(Act::Admit),
        3 => any::<u8>().prop_map(Act::Agree),
        1 => any::<u8>().prop_map(Act::Fail),
        4 => any::<u8>().prop_map(Act::Enter),
        3 => any::<u8>().prop_map(Act::Leave),
        1 => any::<u8>().prop_map(Act::Gone),
        1 => any::<(u8, bool)>().prop_map(|(id, good)| Act::Answer(id, good)),
        2 => Just(Act::Round),
    ];
    proptest::collection::vec((0_u64..20, act), 0..150)
}

proptest! {
    /// Against a model that only counts: instances and calls stay below their limits, no number is used
    /// twice, every call that entered is counted until it leaves, and an empty fleet can be started again.
    #[test]
    fn limits_hold_whatever_happens(acts in acts()) {
        let settings = settings();
        let mut fleet = Fleet::new(settings.clone());
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
                        fleet.admit(Tenant::Shared, StartCause::Request, Line::Arriving, now);
                    if let Admission::Start(id) = admission {
                        prop_assert!(id > last);
                        last = id;
                        model.push((id, 0));
                    }
                }
                Act::Agree(which) => {
                    if let Some(at) = of(which, &model) {
                        fleet.agreed(model[at].0, Revision::V2025_11_25, now);
                    }
                }
                Act::Fail(which) => {
                    if let Some(at) = of(which, &model) {
                        fleet.failed(model[at].0, "".into(), 0, now);
                    }
                }
                Act::Enter(which) => {
                    if let Some(at) = of(which, &model)
                        && fleet.enter(model[at].0, Line::Arriving, now) == Entry::Entered
                    {
                        model[at].1 += 1;
                    }
                }
                Act::Leave(which) => {
                    if let Some(at) = of(which, &model) && model[at].1 > 0 {
                        model[at].1 -= 1;
                        let _ = fleet.leave(model[at].0, Parting::Answered, now);
                    }
                }
                Act::Gone(which) => {
                    if let Some(at) = of(which, &model) {
                        let (id, _) = model.remove(at);
                        prop_assert!(fleet.gone(id, &FELL.into(), 0, now).unwrap().is_over());
                    }
                }
                Act::Answer(which, good) => {
                    if let Some(at) = of(which, &model) {
                        let answer = if good { Answer::Good } else { Answer::Bad };
                        let _ = fleet.answered(model[at].0, answer, 0, now);
                    }
                }
                Act::Round => {
                    let round = fleet.round(now);
                    if let Some(next) = round.next {
                        prop_assert!(next > now);
                    }
                }
            }
            let status = fleet.status(now);
            let running = status.instances.iter();
            let alive = running.clone().filter(|one| one.state.as_str() != "failed").count();
            prop_assert!(alive <= settings.max_instances);
            let counted: Vec<(InstanceId, usize)> =
                running.map(|one| (one.id, one.in_flight)).collect();
            prop_assert_eq!(&counted, &model);
            prop_assert!(counted.iter().all(|(_, calls)| *calls <= settings.max_concurrent));
            prop_assert!(status.over.len() <= REMEMBERED);
        }
        for (id, _) in model {
            let _ = fleet.gone(id, &FELL.into(), 0, now);
        }
        let later = now.after(Duration::from_secs(10_000));
        let admission = fleet.admit(Tenant::Shared, StartCause::Request, Line::Arriving, later);
        prop_assert!(matches!(admission, Admission::Start(_)), "{:?}", admission);
    }
}

/// Other limits hold for an instance that runs, which goes on.
#[test]
fn limits_change_while_instances_run() {
    let mut fleet = Fleet::new(settings());
    let id = started(&mut fleet, at(0));
    for expected in [Entry::Entered, Entry::Entered, Entry::Wait] {
        assert_eq!(fleet.enter(id, Line::Arriving, at(1)), expected);
    }
    let other = RunSettings {
        max_concurrent: 3,
        idle: Duration::from_secs(5),
        min_ready: 0,
        ..settings()
    };
    fleet.retune(&other, at(1));
    assert_eq!(fleet.enter(id, Line::Arriving, at(2)), Entry::Entered);
    assert_eq!(fleet.status(at(2)).starts, 1);
    for _ in 0..3 {
        assert_eq!(fleet.leave(id, Parting::Answered, at(3)), None);
    }
    let _ = fleet.answered(id, Answer::Good, 0, at(4));
    assert_eq!(fleet.round(at(7)).close, []);
    assert_eq!(fleet.round(at(8)).close, [id]);
}

/// Where fewer instances may run than do, those beyond get no calls, and go when they have none.
#[test]
fn there_may_be_fewer_instances() {
    let mut fleet = Fleet::new(RunSettings {
        max_instances: 3,
        ..settings()
    });
    let [first, second, third] = [0, 1, 2].map(|now| useful(&mut fleet, at(now)));
    let all = [first, second, third];
    assert_eq!(fleet.enter(first, Line::Arriving, at(3)), Entry::Entered);
    assert_eq!(fleet.enter(third, Line::Arriving, at(3)), Entry::Entered);
    let one = RunSettings {
        max_instances: 1,
        ..settings()
    };
    fleet.retune(&one, at(3));
    assert_eq!(fleet.round(at(3)).close, [second]);
    assert_eq!(fleet.retired(second), Some(StopCause::Room));
    let choose = |fleet: &Fleet| fleet.choose(&all, Line::Arriving, at(4));
    assert_eq!(choose(&fleet), Choice::Use(first));
    assert_eq!(fleet.enter(first, Line::Arriving, at(4)), Entry::Entered);
    assert_eq!(choose(&fleet), Choice::Wait(None), "the third gets none");
    let left = fleet.leave(third, Parting::Answered, at(5));
    assert_eq!(left, Some(Effect::Close));
    for _ in 0..2 {
        assert_eq!(fleet.leave(first, Parting::Answered, at(6)), None);
    }
    assert_eq!(fleet.round(at(6)).close, []);
}
