//! Parts of a capability that have flags of their own.

use mcpact_spec::Revision;
use serde_json::json;

use super::{LEGACY, client_at, server_asks, server_at};
use crate::support::*;

/// L13: subscribing needs the flag, not only `resources`.
#[test]
fn subscribing_needs_its_own_flag() {
    let mut server = server_at("2025-11-25", json!({"resources": {}}), json!({}));
    assert_eq!(
        server.request(1, "resources/list", json!({})),
        [Out::Serve("resources/list".into())]
    );
    assert_eq!(
        server.request(2, "resources/subscribe", json!({"uri": "a:b"}))[0].code(),
        -32601
    );
    let mut client = client_at(
        "2025-11-25",
        json!({}),
        json!({"resources": {"subscribe": false}}),
    );
    assert!(matches!(
        &client.ask(1, "resources/subscribe", json!({"uri": "a:b"}))[..],
        [Out::Withheld(_)]
    ));
}

/// L13: tasks have a flag for each method.
#[test]
fn task_methods_have_their_own_flags() {
    let mut server = server_at("2025-11-25", json!({"tasks": {"list": {}}}), json!({}));
    assert_eq!(
        server.request(1, "tasks/get", json!({"taskId": "t"})),
        [Out::Serve("tasks/get".into())]
    );
    assert_eq!(
        server.request(2, "tasks/list", json!({})),
        [Out::Serve("tasks/list".into())]
    );
    assert_eq!(
        server.request(3, "tasks/cancel", json!({"taskId": "t"}))[0].code(),
        -32601
    );
}

/// L13: tools in sampling are refused by a client that did not declare them, and not sent to it.
#[test]
fn sampling_with_tools_needs_its_flag() {
    let params = json!({"messages": [], "maxTokens": 1, "tools": []});
    let mut client = client_at("2025-11-25", json!({"sampling": {}}), json!({}));
    let out = server_asks(&mut client, "sampling/createMessage", params.clone());
    assert_eq!(out[0].code(), -32602);
    assert_eq!(
        out[0].error()["data"]["requiredCapabilities"],
        json!({"sampling": {"tools": {}}})
    );
    let mut server = server_at("2025-11-25", json!({}), json!({"sampling": {}}));
    assert!(matches!(
        &server.ask(1, "sampling/createMessage", params.clone())[..],
        [Out::Withheld(_)]
    ));
    let mut server = server_at("2025-11-25", json!({}), json!({"sampling": {"tools": {}}}));
    assert!(matches!(
        &server.ask(1, "sampling/createMessage", params)[..],
        [Out::Write(_)]
    ));
}

/// L13: context of other servers is not asked for without its flag; a client that gets it anyway may
/// ignore it.
#[test]
fn include_context_needs_its_flag() {
    for (value, needs) in [("none", false), ("thisServer", true), ("allServers", true)] {
        let params = json!({"messages": [], "maxTokens": 1, "includeContext": value});
        let mut server = server_at("2025-11-25", json!({}), json!({"sampling": {}}));
        let out = server.ask(1, "sampling/createMessage", params.clone());
        assert_eq!(matches!(&out[..], [Out::Withheld(_)]), needs, "{value}");
        let mut client = client_at("2025-11-25", json!({"sampling": {}}), json!({}));
        let out = server_asks(&mut client, "sampling/createMessage", params);
        assert_eq!(out, [Out::Serve("sampling/createMessage".into())]);
    }
    let mut older = server_at("2025-06-18", json!({}), json!({"sampling": {}}));
    let params = json!({"messages": [], "maxTokens": 1, "includeContext": "allServers"});
    assert!(
        matches!(
            &older.ask(1, "sampling/createMessage", params)[..],
            [Out::Write(_)]
        ),
        "ungated before 2025-11-25"
    );
}

/// L13, GA-02: a mode that was not declared is `-32602`.
#[test]
fn ga_02_an_undeclared_elicitation_mode_is_refused() {
    let url =
        json!({"mode": "url", "url": "https://x.example", "elicitationId": "e", "message": "m"});
    let form = json!({"message": "m", "requestedSchema": {}});
    let mut forms = client_at(
        "2025-11-25",
        json!({"elicitation": {"form": {}}}),
        json!({}),
    );
    assert_eq!(
        server_asks(&mut forms, "elicitation/create", url.clone())[0].code(),
        -32602
    );
    let mut empty = client_at("2025-11-25", json!({"elicitation": {}}), json!({}));
    assert_eq!(
        server_asks(&mut empty, "elicitation/create", form.clone()),
        [Out::Serve("elicitation/create".into())]
    );
    let mut urls = client_at("2025-11-25", json!({"elicitation": {"url": {}}}), json!({}));
    assert_eq!(
        server_asks(&mut urls, "elicitation/create", form)[0].code(),
        -32602
    );
    assert_eq!(
        server_asks(&mut urls, "elicitation/create", url),
        [Out::Serve("elicitation/create".into())]
    );
}

/// L13, GA-04: from 2025-03-26 on completion has a capability of its own.
#[test]
fn ga_04_completion_needs_its_capability() {
    for version in &LEGACY[1..] {
        let mut server = server_at(version, json!({"prompts": {}, "resources": {}}), json!({}));
        assert_eq!(
            server.request(1, "completion/complete", json!({}))[0].code(),
            -32601
        );
    }
}

/// L13, GA-05: in 2024-11-05 there is no such capability; prompts or resources are enough.
#[test]
fn ga_05_completion_is_free_in_2024_11_05() {
    for declared in [json!({"prompts": {}}), json!({"resources": {}})] {
        let mut client = client_at("2024-11-05", json!({}), declared);
        let ask = client.ask(1, "completion/complete", json!({})).remove(0);
        let out = client.error_to(&ask, -32601, json!(null));
        assert!(
            matches!(&out[..], [Out::Settled(_, Ended::Error(_))]),
            "tolerated: {out:?}"
        );
    }
    let mut none = client_at("2024-11-05", json!({}), json!({"tools": {}}));
    assert!(matches!(
        &none.ask(1, "completion/complete", json!({}))[..],
        [Out::Withheld(_)]
    ));
}

/// GA-12: the error names the tasks extension that the client did not declare.
#[test]
fn ga_12_tasks_need_the_extension_on_every_request() {
    let extension = json!({"extensions": {"io.modelcontextprotocol/tasks": {}}});
    let mut server = ServerRig::new(modern_only(), extension.clone());
    let mut params = modern_params(json!({}));
    params["taskId"] = json!("t");
    let out = server.request(1, "tasks/get", params);
    assert_eq!((out[0].code(), out[0].status()), (-32021, 400));
    assert_eq!(out[0].error()["data"]["requiredCapabilities"], extension);
    let mut without = ServerRig::new(modern_only(), json!({}));
    let mut params = modern_params(extension);
    params["taskId"] = json!("t");
    assert_eq!(
        without.request(1, "tasks/get", params)[0].code(),
        -32601,
        "the server lacks it"
    );
}

/// L13, GA-14, GA-15: a `task` that cannot be honoured is ignored by the receiver and never sent.
#[test]
fn ga_14_and_15_an_unsupported_task_is_ignored() {
    let params = json!({"name": "t", "task": {"ttl": 1}});
    let mut server = server_at("2025-11-25", json!({"tools": {}}), json!({}));
    assert_eq!(
        server.request(1, "tools/call", params.clone()),
        [Out::Serve("tools/call".into())]
    );
    let mut client = client_at("2025-11-25", json!({}), json!({"tools": {}}));
    assert!(matches!(
        &client.ask(1, "tools/call", params.clone())[..],
        [Out::Withheld(_)]
    ));
    let able = json!({"tools": {}, "tasks": {"requests": {"tools": {"call": {}}}}});
    let mut client = client_at("2025-11-25", json!({}), able);
    assert!(matches!(
        &client.ask(1, "tools/call", params)[..],
        [Out::Write(_)]
    ));
    let mut modern = ServerRig::new(modern_only(), json!({"tools": {}}));
    let mut params = modern_params(json!({}));
    params["name"] = json!("t");
    params["task"] = json!({"ttl": 1});
    assert_eq!(
        modern.request(1, "tools/call", params),
        [Out::Serve("tools/call".into())]
    );
}

/// L13, GA-13: a tool that runs only as a task is not found without one; a request type that must be
/// a task is invalid without one.
#[test]
fn ga_13_task_support_is_enforced() {
    use mcpact_engine::policy::ErrorDialect;
    use mcpact_engine::refusal::Dialect;
    use mcpact_engine::task_rule::{CallMode, TaskRequirement, TaskSupport, judge};
    let able = json!({"tools": {}, "tasks": {"requests": {"tools": {"call": {}}}}});
    let able = pact(Revision::V2025_11_25, json!({}), able);
    let unable = pact(Revision::V2025_11_25, json!({}), json!({"tools": {}}));
    let dialect = Dialect {
        revision: Revision::V2025_11_25,
        errors: ErrorDialect::Spec,
    };
    let run = |pact, support, wish, demand| {
        judge(pact, TaskSupport::parse(support), wish, demand)
            .map_err(|refusal| refusal.on_wire(dialect).code)
    };
    use CallMode::{Plain, Task};
    use TaskRequirement::{Always, ByTool};
    for (support, wish, demand, expected) in [
        (Some("required"), Plain, ByTool, Err(-32601)),
        (Some("required"), Task, ByTool, Ok(Task)),
        (Some("optional"), Plain, ByTool, Ok(Plain)),
        (Some("optional"), Task, ByTool, Ok(Task)),
        (Some("forbidden"), Task, ByTool, Err(-32601)),
        (None, Task, ByTool, Err(-32601)),
        (None, Plain, ByTool, Ok(Plain)),
        (Some("optional"), Plain, Always, Err(-32600)),
        (Some("optional"), Task, Always, Ok(Task)),
    ] {
        assert_eq!(
            run(&able, support, wish, demand),
            expected,
            "{support:?} {wish:?} {demand:?}"
        );
    }
    assert_eq!(
        run(&unable, Some("optional"), Task, ByTool),
        Ok(Plain),
        "GA-14: ignored"
    );
}
