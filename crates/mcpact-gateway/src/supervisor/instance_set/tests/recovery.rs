//! Outages, and retries without a call.

use super::*;

/// A crash before the first answer begins an outage, and the server is retried after the backoff. After a crash of a
/// server that has answered, the next call starts it.
#[test]
fn crash_before_the_first_answer_is_retried() {
    let mut set = InstanceSet::new(settings());
    let id = started(&mut set, at(0));
    crash(&mut set, id, at(0));
    let status = set.status(at(0));
    assert_eq!(status.outage.unwrap().why.cause, CRASH);
    assert_eq!(status.retry_in, Some(Duration::from_secs(1)));
    assert_eq!(set.maintain(at(0)).next, Some(at(1)));
    assert_eq!(set.maintain(at(1)).start, Some(StartCause::Recovery));

    let id = used(&mut set, at(1));
    assert_eq!(set.status(at(1)).outage, None);
    crash(&mut set, id, at(60));
    assert_eq!(set.status(at(60)).outage, None, "the next call may succeed");
    assert_eq!(set.maintain(at(62)).start, None);
}

#[test]
fn call_refused_during_backoff_causes_a_retry() {
    let mut settings = settings();
    settings.restarts.backoff = Duration::from_secs(10);
    settings.restarts.backoff_max = Duration::from_secs(10);
    settings.queue_wait = Duration::from_secs(4);
    let mut set = InstanceSet::new(settings);
    let id = used(&mut set, at(0));
    crash(&mut set, id, at(10));
    let id = started(&mut set, at(20));
    crash(&mut set, id, at(20));
    assert_eq!(set.maintain(at(20)).start, None);
    let refused = admit(&mut set, at(25));
    assert!(matches!(refused, Admission::Refuse(_)), "{refused:?}");
    let outage = set.status(at(25)).outage.unwrap();
    assert_eq!(
        (outage.why.cause.as_str(), outage.age.as_secs()),
        (CRASH, 5)
    );
    assert_eq!(set.maintain(at(25)).next, Some(at(30)));
    assert_eq!(set.maintain(at(30)).start, Some(StartCause::Recovery));
}

/// A server that was left out of a result is restarted if it has crashed, in either order; an idle one is not.
#[test]
fn server_left_out_of_a_result_is_retried() {
    for is_crash_first in [true, false] {
        let mut set = InstanceSet::new(settings());
        let id = used(&mut set, at(0));
        if is_crash_first {
            crash(&mut set, id, at(20));
            set.left_out();
        } else {
            set.left_out();
            crash(&mut set, id, at(20));
        }
        let status = set.status(at(20));
        assert_eq!(status.outage.unwrap().why.cause, CRASH, "{is_crash_first}");
        assert_eq!(status.retry_in, None, "at once");
        assert_eq!(set.maintain(at(20)).start, Some(StartCause::Recovery));
    }
    let mut set = InstanceSet::new(settings());
    let id = used(&mut set, at(0));
    let _ = set.retire(id, StopCause::Idle, at(60));
    crash(&mut set, id, at(60));
    set.left_out();
    assert_eq!(set.maintain(at(62)).start, None);
}

/// After a backoff one start is attempted and other callers wait for its outcome. Once it is ready, more may start.
#[test]
fn one_start_is_attempted_after_a_backoff() {
    let mut set = InstanceSet::new(settings());
    fail_start(&mut set, StartCause::Request, at(0));
    let id = admitted(&mut set, StartCause::Recovery, at(1));
    let wait = Admission::Wait {
        until: None,
        close: None,
    };
    assert_eq!(admit(&mut set, at(1)), wait);
    assert_eq!(set.starts(), 2);
    ready(&mut set, id, at(2));
    admitted(&mut set, StartCause::Request, at(2));
}

/// A lost connection is a failure even if the instance is released before its process exits. It counts once, and uses
/// capacity until the process has exited.
#[test]
fn releasing_a_failed_instance_does_not_hide_the_failure() {
    let settings = RunSettings {
        max_instances: 1,
        ..settings()
    };
    let mut set = InstanceSet::new(settings);
    let id = started(&mut set, at(0));
    assert_eq!(start_call(&mut set, id, at(1)), CallAdmission::Started);
    set.connection_lost(id, &CRASH.into(), 0, at(1));
    assert_eq!(start_call(&mut set, id, at(1)), CallAdmission::Retired);
    assert!(!set.retire(id, StopCause::Released, at(1)));
    let status = set.status(at(1));
    assert_eq!((status.state.as_str(), status.failures), ("pausing", 1));
    assert!(!set.has_capacity(at(1)), "the process still runs");
    let ended = set
        .remove(id, &"the connection ended".into(), 0, at(2))
        .unwrap();
    let why = CRASH.into();
    assert_eq!(ended.state, InstanceState::Failed { why });
    assert_eq!(set.status(at(2)).failures, 1);
    assert!(set.has_capacity(at(2)));
}
