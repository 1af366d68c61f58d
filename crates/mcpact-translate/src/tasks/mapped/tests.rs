use super::*;

const LIMITS: MapLimits = MapLimits {
    tasks: 3,
    per_owner: 2,
    questions: 2,
    longest: Duration::from_secs(60),
};

const fn at(seconds: u64) -> Moment {
    Moment::at(Duration::from_secs(seconds))
}

fn origin(owner: &str) -> TaskOrigin<'_> {
    TaskOrigin {
        owner: owner.into(),
        client: Revision::V2026_07_28,
        session: 7,
    }
}

fn task(status: &str) -> String {
    format!(
        r#"{{"taskId":"up","status":"{status}","createdAt":"c","lastUpdatedAt":"l","ttl":30000,"pollInterval":500,"x":1}}"#
    )
}

/// The task as a client of the extension sees it, whatever the order of its members.
fn expect(seen: &str, status: &str, more: &[(&str, &str)]) {
    let seen = Object::parse(seen).unwrap();
    let quoted = |text: &str| format!("\"{text}\"");
    let (id, status) = (quoted("t"), quoted(status));
    let kind = quoted("complete");
    let common = [
        ("resultType", kind.as_str()),
        ("taskId", &id),
        ("status", &status),
        ("createdAt", r#""c""#),
        ("lastUpdatedAt", r#""l""#),
        ("ttlMs", "30000"),
        ("pollIntervalMs", "500"),
        ("x", "1"),
    ];
    for (key, value) in common.iter().chain(more) {
        assert_eq!(seen.get(key), Some(*value), "{key}");
    }
    assert_eq!(seen.len(), common.len() + more.len());
}

fn mapped() -> MappedTasks {
    let mut mapped = MappedTasks::new(LIMITS);
    let created = format!(
        r#"{{"task":{},"_meta":{{"io.modelcontextprotocol/related-task":{{"taskId":"up"}},"k":1}}}}"#,
        task("working")
    );
    let flat = mapped
        .created("t", origin("me"), &created, None, at(0))
        .unwrap();
    let flat = Object::parse(&flat).unwrap();
    assert_eq!(flat.get("resultType"), Some(r#""task""#));
    assert_eq!(flat.get("taskId"), Some(r#""t""#));
    assert_eq!(flat.get("ttlMs"), Some("30000"));
    assert_eq!(flat.get("ttl"), None);
    assert_eq!(flat.get("_meta"), Some(r#"{"k":1}"#));
    mapped
}

fn now(seen: Option<TaskView>) -> String {
    match seen {
        Some(TaskView::Now(detailed)) => detailed,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_task_is_shown_with_its_result() {
    let mut mapped = mapped();
    assert_eq!(mapped.get("t", "me"), Ok(TaskLookup::Ask("up".into())));
    expect(
        &now(mapped.status("t", &task("working")).unwrap()),
        "working",
        &[],
    );
    let info = Some(r#"{"name":"s","version":"1"}"#);
    let signed = r#"{"resultType":"complete","content":[],"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s","version":"1"}}}"#;
    let failed = r#"{"resultType":"complete","content":[],"isError":true,"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s","version":"1"}}}"#;
    let plain =
        r#"{"content":[],"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"up"}}}"#;
    let cells = [
        (
            "completed",
            Outcome::Result(plain.into()),
            "completed",
            ("result", signed),
        ),
        (
            "failed",
            Outcome::Result(r#"{"content":[],"isError":true}"#.into()),
            "completed",
            ("result", failed),
        ),
        (
            "failed",
            Outcome::Error(r#"{"code":-32050,"message":"m"}"#.into()),
            "failed",
            (
                "error",
                r#"{"code":-32603,"message":"m","data":{"upstreamCode":-32050}}"#,
            ),
        ),
    ];
    for (said, outcome, status, member) in cells {
        let mut mapped = mapped.clone();
        assert_eq!(
            mapped.status("t", &task(said)),
            Ok(Some(TaskView::AfterResult))
        );
        let over = mapped.ended("t", &outcome, info).unwrap();
        expect(&over, status, &[member]);
        assert_eq!(
            mapped.get("t", "me"),
            Ok(TaskLookup::Known(over)),
            "for good"
        );
        assert_eq!(mapped.cancel("t", "me"), Ok(None), "nothing to cancel");
    }
}

#[test]
fn questions_are_found_in_the_task_and_answered_once() {
    let mut mapped = mapped();
    let Ok(Some(TaskView::NowAndOpen(waiting))) = mapped.status("t", &task("input_required"))
    else {
        panic!("the result was to be opened");
    };
    expect(&waiting, "working", &[]);
    assert_eq!(mapped.local_id(7, "up"), Some("t"));
    assert_eq!(mapped.local_id(8, "up"), None, "another session");
    let ask = |mapped: &mut MappedTasks, id, question: &str| {
        mapped.asked(
            "t",
            Id::number(id),
            Method::ElicitationCreate,
            question.into(),
        )
    };
    assert_eq!(ask(&mut mapped, 5, r#"{"q":1}"#).unwrap(), "question-1");
    assert_eq!(ask(&mut mapped, 6, r#"{"q":2}"#).unwrap(), "question-2");
    assert_eq!(ask(&mut mapped, 7, "{}").unwrap_err().code, -32603);
    let seen = now(mapped.status("t", &task("input_required")).unwrap());
    let questions = r#"{"question-1":{"q":1},"question-2":{"q":2}}"#;
    expect(&seen, "input_required", &[("inputRequests", questions)]);

    let bad = mapped.update("t", "me", Some(r#"{"question-1":7}"#));
    assert_eq!(bad.unwrap_err().code, -32602);
    assert_eq!(mapped.update("t", "me", None).unwrap_err().code, -32602);
    let responses = Some(r#"{"question-1":{"action":"accept"},"question-9":{}}"#);
    let answers = mapped.update("t", "me", responses).unwrap();
    let answer = ServerAnswer {
        id: Id::number(5),
        outcome: Outcome::Result(r#"{"action":"accept"}"#.into()),
    };
    assert_eq!(answers, [answer]);
    assert_eq!(mapped.update("t", "me", responses).unwrap(), [], "once");
    mapped.withdrawn("t", Id::number(6).as_ref());
    let seen = now(mapped.status("t", &task("input_required")).unwrap());
    expect(&seen, "working", &[]);
}

#[test]
fn cancelling_is_only_requested() {
    let mut mapped = mapped();
    assert_eq!(mapped.cancel("t", "me"), Ok(Some("up".into())));
    expect(
        &now(mapped.status("t", &task("working")).unwrap()),
        "working",
        &[],
    );
    expect(
        &now(mapped.status("t", &task("cancelled")).unwrap()),
        "cancelled",
        &[],
    );
    assert_eq!(mapped.cancel("t", "me"), Ok(None));
    assert!(matches!(mapped.get("t", "me"), Ok(TaskLookup::Known(_))));
}

#[test]
fn notifications_and_lost_sessions_name_the_clients_task() {
    let mut mapped = mapped();
    let (name, seen) = mapped
        .status_notification(7, &task("working"))
        .unwrap()
        .unwrap();
    assert_eq!(name, "t");
    expect(&now(Some(seen)), "working", &[]);
    assert_eq!(mapped.status_notification(8, &task("working")), Ok(None));
    assert_eq!(
        mapped.status_notification(7, r#"{"taskId":"other"}"#),
        Ok(None)
    );
    assert_eq!(mapped.session_lost(8), []);
    assert_eq!(mapped.session_lost(7), [Box::from("t")]);
    assert_eq!(mapped.session_lost(7), [], "once");
    let Ok(TaskLookup::Known(over)) = mapped.get("t", "me") else {
        panic!("not over");
    };
    assert!(over.contains(r#""status":"failed""#) && over.contains("-32603"));
}

#[test]
fn tasks_belong_to_their_owner_and_have_limits() {
    let mut mapped = mapped();
    assert_eq!(mapped.get("t", "you").unwrap_err().code, -32602);
    assert_eq!(
        mapped.update("t", "you", Some("{}")).unwrap_err().code,
        -32602
    );
    assert_eq!(mapped.cancel("t", "you").unwrap_err().code, -32602);
    assert!(mapped.owns("t", "me") && !mapped.owns("t", "you"));
    let created = format!(r#"{{"task":{}}}"#, task("working").replace("30000", "null"));
    mapped
        .created("u", origin("me"), &created, None, at(0))
        .unwrap();
    assert_eq!(mapped.room("me").unwrap_err().code, -32603);
    assert_eq!(mapped.room("you"), Ok(()));
    mapped
        .created("v", origin("you"), &created, None, at(0))
        .unwrap();
    assert_eq!(mapped.room("them").unwrap_err().code, -32603);
    assert!(
        mapped
            .created("w", origin("me"), "{}", None, at(0))
            .is_err(),
        "no task"
    );
    assert_eq!(mapped.next_deadline(), Some(at(30)));
    assert_eq!(mapped.expire(at(30)), [Box::from("t")]);
    assert_eq!(mapped.expire(at(60)).len(), 2, "the longest");
    assert_eq!(mapped.next_deadline(), None);
}
