//! The end of a gateway.

use serde_json::json;

use crate::house::{House, builtin, call, handshake, send, until};

/// A gateway that is told to stop takes no more requests, says when to come back, lets calls that run finish, ends
/// its programs, and is content.
#[test]
fn calls_that_run_may_finish() {
    let house = House::new("");
    house.configure(&format!("{}{}", house.gated(), builtin("local")));
    let gateway = house.serve();
    let session = gateway.open("/mcp");
    let origin = gateway.origin.clone();
    let answered = std::thread::scope(|scope| {
        let calling = scope.spawn(|| send(&origin, "/mcp", Some(&session), &call("gated__wait")));
        house.called();
        gateway.signal("-TERM");
        until(|| house.status()["gateway"]["state"] == "draining");
        // Neither for those who are there nor for those who come.
        let mut other = call("local__echo");
        other["id"] = json!(2);
        for session in [Some(session.as_str()), None] {
            let request = session.map_or_else(handshake, |_| other.clone());
            let refused = gateway.post("/mcp", session, &request);
            assert_eq!(refused.status, 503, "{refused:?}");
            assert!(refused.header("retry-after").is_some(), "{refused:?}");
            assert!(refused.body.contains("gateway_draining"), "{refused:?}");
        }
        assert!(!calling.is_finished());
        house.open_the_gate();
        calling.join().unwrap()
    });
    assert_eq!(answered.status, 200);
    assert!(answered.body.contains("waited"), "{answered:?}");
    assert_eq!(gateway.ended(), Some(0));
}

/// A call that does not end is cut off when its time is over.
#[test]
fn nobody_waits_for_ever() {
    let house = House::new("");
    house.configure(&format!(
        "drain_seconds = 0.1\n{}drain_seconds = 0.1\n",
        house.gated()
    ));
    let gateway = house.serve();
    let session = gateway.open("/mcp");
    let origin = gateway.origin.clone();
    std::thread::scope(|scope| {
        let calling = scope.spawn(|| send(&origin, "/mcp", Some(&session), &call("gated__wait")));
        house.called();
        gateway.signal("-TERM");
        assert_eq!(gateway.ended(), Some(0));
        assert!(!calling.join().unwrap().body.contains("waited"));
    });
}

/// Whoever says it twice does not want to wait.
#[test]
fn a_second_signal_ends_it_at_once() {
    let house = House::new("");
    house.configure(&format!("drain_seconds = 3600\n{}", house.gated()));
    let gateway = house.serve();
    let session = gateway.open("/mcp");
    let origin = gateway.origin.clone();
    std::thread::scope(|scope| {
        let calling = scope.spawn(|| {
            let call = call("gated__wait");
            std::panic::catch_unwind(|| send(&origin, "/mcp", Some(&session), &call))
        });
        house.called();
        gateway.signal("-TERM");
        until(|| house.status()["gateway"]["state"] == "draining");
        gateway.signal("-TERM");
        assert_eq!(gateway.ended(), Some(1));
        // Its connection was cut, or it was told.
        let _ = calling.join();
    });
}
