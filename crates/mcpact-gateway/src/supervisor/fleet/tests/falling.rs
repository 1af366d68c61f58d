//! Servers that fall before anybody had anything of them.

use super::*;

fn fallen(fleet: &mut Fleet, id: InstanceId, now: Moment) {
    let _ = fleet.gone(id, &FELL.into(), u32::MAX, now);
}

/// A server that falls before it was of any use cannot be used, and is tried again after the pause that any
/// failure has, although nobody calls; one that has answered a call is started by the next one.
#[test]
fn who_falls_before_it_is_of_use_is_tried_again() {
    let mut fleet = Fleet::new(settings());
    let id = started(&mut fleet, at(0));
    fallen(&mut fleet, id, at(0));
    let status = fleet.status(at(0));
    assert_eq!(status.stands.unwrap().why.cause, FELL);
    assert_eq!(status.tried_in, Some(Duration::from_secs(1)));
    assert_eq!(fleet.round(at(0)).next, Some(at(1)));
    assert_eq!(fleet.round(at(1)).start, Some(StartCause::Recovery));

    let id = useful(&mut fleet, at(1));
    assert_eq!(fleet.status(at(1)).stands, None);
    fallen(&mut fleet, id, at(60));
    assert_eq!(
        fleet.status(at(60)).stands,
        None,
        "the next call may do better"
    );
    assert_eq!(fleet.round(at(62)).start, None);
}

/// Who was wanted while it was left alone is tried again as soon as it may be.
#[test]
fn who_was_wanted_while_it_rests_is_tried_again() {
    let mut settings = settings();
    settings.restarts.backoff = Duration::from_secs(10);
    settings.restarts.backoff_max = Duration::from_secs(10);
    let mut fleet = Fleet::new(settings);
    let id = useful(&mut fleet, at(0));
    fallen(&mut fleet, id, at(20));
    assert_eq!(fleet.round(at(20)).start, None);
    let wanted = fleet.admit(Tenant::Shared, StartCause::Request, Line::Arriving, at(25));
    assert!(matches!(wanted, Admission::Refuse(_)), "{wanted:?}");
    let stands = fleet.status(at(25)).stands.unwrap();
    assert_eq!((stands.why.cause.as_str(), stands.age.as_secs()), (FELL, 5));
    assert_eq!(fleet.round(at(25)).next, Some(at(30)));
    assert_eq!(fleet.round(at(30)).start, Some(StartCause::Recovery));
}

/// Who falls while somebody does without it is tried again, whichever is known first; who sleeps is not.
#[test]
fn who_is_done_without_is_tried_again() {
    for is_known in [true, false] {
        let mut fleet = Fleet::new(settings());
        let id = useful(&mut fleet, at(0));
        if is_known {
            fallen(&mut fleet, id, at(20));
            fleet.did_without();
        } else {
            fleet.did_without();
            fallen(&mut fleet, id, at(20));
        }
        let status = fleet.status(at(20));
        assert_eq!(status.stands.unwrap().why.cause, FELL, "{is_known}");
        assert_eq!(status.tried_in, Some(Duration::from_secs(1)));
        assert_eq!(fleet.round(at(21)).start, Some(StartCause::Recovery));
    }
    let mut fleet = Fleet::new(settings());
    let id = useful(&mut fleet, at(0));
    let _ = fleet.retire(id, StopCause::Idle, at(60));
    fallen(&mut fleet, id, at(60));
    fleet.did_without();
    assert_eq!(fleet.round(at(62)).start, None);
}

/// What failed is started once after a pause, whoever asks, and the others wait for what comes of it; what can be
/// used again is started as often as it is needed.
#[test]
fn a_pause_ends_with_one_start() {
    let mut fleet = Fleet::new(settings());
    failed(&mut fleet, StartCause::Request, at(0));
    let mut ask = |cause, now| {
        (
            fleet.admit(Tenant::Own, cause, Line::Arriving, now),
            fleet.starts(),
        )
    };
    let (first, _) = ask(StartCause::Recovery, at(1));
    let Admission::Start(id) = first else {
        panic!("{first:?}");
    };
    let wait = Admission::Wait {
        until: None,
        close: None,
    };
    assert_eq!(ask(StartCause::Request, at(1)), (wait, 2));
    fleet.agreed(id, Revision::V2025_11_25, at(2));
    let second = fleet.admit(Tenant::Own, StartCause::Request, Line::Arriving, at(2));
    assert!(matches!(second, Admission::Start(_)), "{second:?}");
}

/// What ended by itself has failed from then on, whoever lets go of it before its process is gone; it counts
/// once, and takes its place for so long.
#[test]
fn who_lets_go_of_what_fell_does_not_end_it() {
    let settings = RunSettings {
        max_instances: 1,
        ..settings()
    };
    let mut fleet = Fleet::new(settings);
    let id = useful(&mut fleet, at(0));
    assert_eq!(fleet.enter(id, Line::Arriving, at(1)), Entry::Entered);
    fleet.lost(id, &FELL.into(), 0, at(1));
    assert_eq!(fleet.enter(id, Line::Arriving, at(1)), Entry::Retired);
    assert_eq!(fleet.retire(id, StopCause::Released, at(1)), None);
    let status = fleet.status(at(1));
    assert_eq!((status.state.as_str(), status.failures), ("pausing", 1));
    assert!(!fleet.has_room(at(1)), "its process is there");
    let over = fleet
        .gone(id, &"the connection ended".into(), 0, at(2))
        .unwrap();
    let why = FELL.into();
    assert_eq!(over.state, InstanceState::Failed { why });
    assert_eq!(fleet.status(at(2)).failures, 1);
    assert!(fleet.has_room(at(2)));
}
