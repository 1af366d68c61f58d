use super::*;
use Machine::{Drop, Input, Listen, Ping, Refuse, SetLevel, Subscribe, TasksCore, TasksExtension};
use Plan::{Emulate, NewerServer, OlderServer, Pass};
use Revision::{V2024_11_05, V2025_06_18, V2025_11_25, V2026_07_28};

/// BA-17, BB-26: pings are answered here, and only what the other side has crosses.
#[test]
fn messages_cross_where_both_sides_have_them() {
    let call = Method::ToolsCall;
    let cells = [
        (call, V2025_06_18, V2025_06_18, Pass),
        (call, V2025_06_18, V2026_07_28, NewerServer),
        (call, V2026_07_28, V2024_11_05, OlderServer),
        (call, V2024_11_05, V2025_11_25, NewerServer),
        (Method::Ping, V2025_06_18, V2026_07_28, Emulate(Ping)),
        (Method::Ping, V2026_07_28, V2025_06_18, Emulate(Ping)),
        (Method::Ping, V2025_06_18, V2025_06_18, Emulate(Ping)),
        (
            Method::ResourcesSubscribe,
            V2024_11_05,
            V2025_11_25,
            NewerServer,
        ),
        (
            Method::ResourcesSubscribe,
            V2024_11_05,
            V2026_07_28,
            Emulate(Subscribe),
        ),
        (
            Method::ResourcesSubscribe,
            V2026_07_28,
            V2025_11_25,
            Emulate(Refuse),
        ),
        (
            Method::LoggingSetLevel,
            V2025_11_25,
            V2026_07_28,
            Emulate(SetLevel),
        ),
        (
            Method::SubscriptionsListen,
            V2026_07_28,
            V2025_11_25,
            Emulate(Listen),
        ),
        (
            Method::ElicitationCreate,
            V2025_06_18,
            V2025_11_25,
            NewerServer,
        ),
        (
            Method::ElicitationCreate,
            V2024_11_05,
            V2025_11_25,
            Emulate(Refuse),
        ),
        (
            Method::ElicitationCreate,
            V2026_07_28,
            V2025_11_25,
            Emulate(Input),
        ),
        (
            Method::ElicitationCreate,
            V2025_11_25,
            V2026_07_28,
            Emulate(Refuse),
        ),
        (Method::ElicitationComplete, V2025_11_25, V2025_11_25, Pass),
        (
            Method::ElicitationComplete,
            V2025_06_18,
            V2025_11_25,
            Emulate(Drop),
        ),
        (
            Method::ElicitationComplete,
            V2026_07_28,
            V2025_11_25,
            Emulate(Input),
        ),
        (
            Method::RootsListChanged,
            V2025_06_18,
            V2026_07_28,
            Emulate(Drop),
        ),
        (Method::TasksGet, V2025_11_25, V2025_11_25, Pass),
        (Method::TasksGet, V2026_07_28, V2026_07_28, Pass),
        (
            Method::TasksGet,
            V2025_11_25,
            V2026_07_28,
            Emulate(TasksCore),
        ),
        (
            Method::TasksGet,
            V2026_07_28,
            V2025_11_25,
            Emulate(TasksExtension),
        ),
        (Method::TasksGet, V2026_07_28, V2025_06_18, Emulate(Refuse)),
        (
            Method::TasksResult,
            V2025_11_25,
            V2025_06_18,
            Emulate(Refuse),
        ),
        (
            Method::TasksUpdate,
            V2026_07_28,
            V2025_11_25,
            Emulate(TasksExtension),
        ),
    ];
    for (method, downstream, upstream, expected) in cells {
        let planned = plan(Some(method), downstream, upstream);
        assert_eq!(planned, expected, "{method}: {downstream} to {upstream}");
    }
    assert_eq!(plan(None, V2026_07_28, V2024_11_05), OlderServer);
}

#[test]
fn nothing_crosses_to_a_side_that_does_not_have_it() {
    use mcpact_spec::Role::{Absent, EmbeddedInput};
    for method in Method::ALL {
        for downstream in Revision::ALL {
            for upstream in Revision::ALL {
                let sides = [method.role(downstream), method.role(upstream)];
                let lacks = |role: &mcpact_spec::Role| matches!(role, Absent | EmbeddedInput);
                let is_emulated = matches!(plan(Some(*method), downstream, upstream), Emulate(_));
                assert!(
                    is_emulated || !sides.iter().any(lacks),
                    "{method}: {downstream} to {upstream}"
                );
            }
        }
    }
}
