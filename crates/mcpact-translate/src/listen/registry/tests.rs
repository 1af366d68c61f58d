use alloc::format;
use mcpact_spec::Side;

use super::*;
use Method::{PromptsListChanged, ResourcesUpdated, SubscriptionsAcknowledged, ToolsListChanged};

const LIMITS: ListenLimits = ListenLimits {
    listens: 3,
    uris: 2,
    held: 2,
};

fn server() -> CapabilitySet {
    let rows = [Capability::ToolsListChanged, Capability::ResourcesSubscribe];
    CapabilitySet::declaring(Side::Server, rows)
}

fn registry() -> ListenRegistry {
    ListenRegistry::new(&server(), ServerPush::Works, LIMITS)
}

fn key(caller: u64, id: Id) -> ListenKey {
    ListenKey { caller, id }
}

fn filter(tools: bool, uris: &[&str]) -> ListenFilter {
    ListenFilter {
        tools,
        prompts: true,
        uris: uris.iter().map(|uri| Box::from(*uri)).collect(),
        ..ListenFilter::default()
    }
}

fn open(registry: &mut ListenRegistry, listen: &ListenKey, filter: ListenFilter) -> Vec<Action> {
    registry.open(listen.clone(), filter, |_| false).unwrap()
}

fn subscribe(uri: &str) -> Action {
    Action::Subscribe { uri: uri.into() }
}

fn unsubscribe(uri: &str) -> Action {
    Action::Unsubscribe { uri: uri.into() }
}

fn notify(listen: &ListenKey, method: Method, body: &str) -> Action {
    let tag = format!(
        r#""_meta":{{"io.modelcontextprotocol/subscriptionId":{}}}"#,
        listen.id.raw()
    );
    let comma = if body.is_empty() { "" } else { "," };
    Action::Notify {
        listen: listen.clone(),
        method,
        params: format!("{{{body}{comma}{tag}}}"),
    }
}

fn acknowledge(listen: &ListenKey, accepted: &str) -> Action {
    let body = format!(r#""notifications":{accepted}"#);
    notify(listen, SubscriptionsAcknowledged, &body)
}

fn update(registry: &mut ListenRegistry, uri: &str) -> Vec<Action> {
    registry.notification(ResourcesUpdated, Some(&format!(r#"{{"uri":"{uri}"}}"#)))
}

#[test]
fn one_subscription_serves_many_streams() {
    let mut registry = registry();
    let (text, number) = (key(1, Id::text("9")), key(1, Id::number(9)));
    let acts = open(&mut registry, &text, filter(true, &["a:1"]));
    assert_eq!(acts, [subscribe("a:1")], "acknowledged when it is answered");
    let accepted = r#"{"toolsListChanged":true,"resourceSubscriptions":["a:1"]}"#;
    assert_eq!(registry.subscribed("a:1"), [acknowledge(&text, accepted)]);
    let acts = open(&mut registry, &number, filter(false, &["a:1"]));
    let accepted = r#"{"resourceSubscriptions":["a:1"]}"#;
    assert_eq!(acts, [acknowledge(&number, accepted)]);

    let body = r#""uri":"a:1""#;
    let both = [
        notify(&number, ResourcesUpdated, body),
        notify(&text, ResourcesUpdated, body),
    ];
    assert_eq!(update(&mut registry, "a:1"), both);
    assert_eq!(update(&mut registry, "a:1/part").len(), 2, "sub-resource");
    assert_eq!(update(&mut registry, "a:12"), [], "another resource");
    let acts = registry.notification(ToolsListChanged, None);
    assert_eq!(acts, [notify(&text, ToolsListChanged, "")]);
    assert_eq!(
        registry.notification(PromptsListChanged, None),
        [],
        "not granted"
    );

    assert_eq!(registry.close(&text), []);
    assert_eq!(registry.close(&number), [unsubscribe("a:1")]);
    assert_eq!(registry.close(&number), []);
    assert!(registry.is_idle());
}

#[test]
fn what_the_server_refuses_is_left_out_of_the_acknowledgement() {
    let mut registry = registry();
    let listen = key(1, Id::number(1));
    let acts = open(&mut registry, &listen, filter(true, &["a:1", "a:2", "a:3"]));
    assert_eq!(
        acts,
        [subscribe("a:1"), subscribe("a:2")],
        "no room for more"
    );
    assert_eq!(registry.refused("a:1"), []);
    let accepted = r#"{"toolsListChanged":true,"resourceSubscriptions":["a:2"]}"#;
    assert_eq!(registry.subscribed("a:2"), [acknowledge(&listen, accepted)]);
}

/// BB-19: a server that cannot push is not expected to.
#[test]
fn nothing_is_promised_that_cannot_arrive() {
    let mut registry = ListenRegistry::new(&server(), ServerPush::Missing, LIMITS);
    let listen = key(1, Id::number(1));
    let acts = open(&mut registry, &listen, filter(true, &["a:1"]));
    assert_eq!(acts, [acknowledge(&listen, "{}")]);
}

#[test]
fn nothing_goes_out_before_the_acknowledgement() {
    let mut registry = registry();
    let listen = key(1, Id::number(1));
    let _ = open(&mut registry, &listen, filter(true, &["a:1"]));
    for _ in 0..3 {
        assert_eq!(registry.notification(ToolsListChanged, None), []);
        assert_eq!(update(&mut registry, "a:1/x"), []);
        assert_eq!(update(&mut registry, "a:1/y"), [], "beyond the limit");
    }
    let acts = registry.subscribed("a:1");
    let expected = [
        notify(&listen, ToolsListChanged, ""),
        notify(&listen, ResourcesUpdated, r#""uri":"a:1/x""#),
    ];
    assert_eq!(acts[1..], expected);
}

/// After another handshake everything is subscribed to again and counts as changed.
#[test]
fn a_lost_session_is_made_up_for() {
    let mut registry = registry();
    let (first, second) = (key(1, Id::number(1)), key(2, Id::number(1)));
    let _ = open(&mut registry, &first, filter(true, &["a:1"]));
    let _ = registry.subscribed("a:1");
    registry.session_lost();
    let acts = open(&mut registry, &second, filter(false, &["a:1", "a:2"]));
    assert_eq!(acts, [], "the session is lost");
    assert_eq!(
        registry.session_restored(&server(), ServerPush::Works),
        [
            subscribe("a:1"),
            subscribe("a:2"),
            notify(&first, ToolsListChanged, ""),
        ]
    );
    let updated = notify(&first, ResourcesUpdated, r#""uri":"a:1""#);
    assert_eq!(registry.subscribed("a:1"), [updated]);
    let acts = registry.refused("a:2");
    let accepted = r#"{"resourceSubscriptions":["a:1"]}"#;
    assert_eq!(acts[0], acknowledge(&second, accepted));
    registry.session_lost();
    assert_eq!(registry.close(&first), []);
    assert_eq!(registry.close(&second), [], "no stream is left");
    assert!(registry.is_idle());
}

#[test]
fn a_subscription_under_way_is_given_up_when_it_is_answered() {
    let mut registry = registry();
    let listen = key(1, Id::number(1));
    let _ = open(&mut registry, &listen, filter(true, &["a:1"]));
    assert_eq!(registry.close(&listen), []);
    assert_eq!(registry.subscribed("a:1"), [unsubscribe("a:1")]);
    assert_eq!(registry.subscribed("a:1"), []);
    assert!(registry.is_idle());
}

#[test]
fn streams_have_ids_and_limits_of_their_own() {
    let mut registry = registry();
    let first = key(1, Id::text("x"));
    let _ = open(&mut registry, &first, filter(true, &[]));
    let again = registry.open(first.clone(), filter(true, &[]), |_| false);
    assert_eq!(again.unwrap_err().code, -32600);
    let _ = open(&mut registry, &key(2, Id::text("x")), filter(true, &[]));
    let _ = open(&mut registry, &key(3, Id::text("x")), filter(true, &[]));
    let more = registry.open(key(4, Id::text("x")), filter(true, &[]), |_| false);
    assert_eq!(more.unwrap_err().code, -32603);
    assert_eq!(registry.close(&key(2, Id::text("x"))), []);
    let tasks = ListenFilter {
        tasks: ["mine", "another's"].map(Box::from).to_vec(),
        ..ListenFilter::default()
    };
    let fourth = key(4, Id::text("x"));
    let acts = registry.open(fourth.clone(), tasks, |task| task == "mine");
    assert_eq!(
        acts,
        Ok(Vec::from([acknowledge(&fourth, r#"{"taskIds":["mine"]}"#)]))
    );
    let acts = registry.notification(Method::TasksChanged, Some(r#"{"taskId":"mine"}"#));
    assert_eq!(
        acts,
        [notify(&fourth, Method::TasksChanged, r#""taskId":"mine""#)]
    );
    assert_eq!(
        registry.end()[0],
        Action::End {
            listen: first,
            result: String::from(
                r#"{"resultType":"complete","_meta":{"io.modelcontextprotocol/subscriptionId":"x"}}"#
            ),
        }
    );
    assert!(registry.is_idle());
}
