//! Modern clients in front of a legacy server that asks before it answers.

use std::sync::Arc;
use std::time::Duration;

use mcpact::server::Principals;
use mcpact_gateway::{Bridge, BridgeSettings};
use mcpact_spec::Revision;
use serde_json::{Value, json};

use crate::peer::{Peer, tool};
use crate::stage::{Role, Said, Stage};
use crate::web::{Web, listen};

fn bridge(stage: &Stage) -> Arc<Bridge> {
    Bridge::new(stage.target.clone(), BridgeSettings::default()).unwrap()
}

fn scene(capabilities: Value) -> (Stage, Peer) {
    let stage = Stage::lines(Role::new(Revision::V2025_11_25));
    let peer = Peer::modern(&bridge(&stage), capabilities);
    (stage, peer)
}

fn form(message: &str) -> Value {
    json!({"mode": "form", "message": message,
        "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}}})
}

fn accept(name: &str) -> Value {
    json!({"action": "accept", "content": {"name": name}})
}

/// The parameters of a call that brings answers.
fn retry(params: &Value, asked: &Value, answers: Value) -> Value {
    let mut params = params.clone();
    params["requestState"] = asked["result"]["requestState"].clone();
    params["inputResponses"] = answers;
    params
}

/// The keys of what is asked.
fn keys(asked: &Value) -> Vec<String> {
    assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
    let requests = asked["result"]["inputRequests"].as_object().unwrap();
    requests.keys().cloned().collect()
}

/// The only question that is asked.
fn key(asked: &Value) -> String {
    let [key] = keys(asked).try_into().unwrap();
    key
}

/// A call up to its first question.
async fn parked(stage: &mut Stage, peer: &mut Peer) -> (Said, Value) {
    peer.request(1, "tools/call", tool("greet")).await;
    let said = stage.hear_of("tools/call").await;
    said.ask("q1", "elicitation/create", form("Who?"));
    (said, peer.hear().await)
}

const CODE: &str = "/error/code";

fn code(answer: &Value) -> i64 {
    let code = answer.pointer(CODE).and_then(Value::as_i64);
    code.unwrap_or_else(|| panic!("{answer}"))
}

/// BB-04, BB-05, BB-06, H13: a question of the server ends the request and keeps the call: the answer comes
/// with the next request and goes to the server, the second question gets a state of its own, the first
/// state is worth nothing from then on, and the result comes under the last id. The tool runs once.
#[tokio::test(start_paused = true)]
async fn a_call_is_kept_while_its_client_thinks() {
    let (mut stage, mut peer) = scene(json!({"elicitation": {}}));
    let (said, asked) = parked(&mut stage, &mut peer).await;
    assert_eq!(said.params().get("_meta"), None, "{}", said.message);
    let first = key(&asked);
    let request = &asked["result"]["inputRequests"][&first];
    assert_eq!(request["method"], "elicitation/create");
    assert_eq!(request["params"]["message"], "Who?");
    peer.hears_nothing().await;
    assert!(stage.heard().is_empty(), "the call stays open");

    let again = retry(&tool("greet"), &asked, json!({&first: accept("Ann")}));
    peer.request(2, "tools/call", again.clone()).await;
    let answered = stage.hear().await;
    assert_eq!(
        (&answered.message["id"], &answered.message["result"]),
        (&json!("q1"), &accept("Ann"))
    );
    said.ask("q2", "elicitation/create", form("Title?"));
    let asked_again = peer.hear().await;
    assert_eq!(asked_again["id"], 2);
    assert_ne!(
        asked_again["result"]["requestState"],
        asked["result"]["requestState"]
    );
    assert_eq!(code(&peer.ask(3, "tools/call", again).await), -32602);

    let second = key(&asked_again);
    let last = retry(&tool("greet"), &asked_again, json!({&second: accept("Dr")}));
    peer.request(4, "tools/call", last).await;
    assert_eq!(stage.hear().await.message["id"], "q2");
    said.text("Hello, Dr Ann!");
    let answer = peer.hear().await;
    assert_eq!(
        (&answer["id"], &answer["result"]["content"][0]["text"]),
        (&json!(4), &json!("Hello, Dr Ann!"))
    );
    assert_eq!(answer["result"]["resultType"], "complete");
    assert!(stage.heard().is_empty(), "the tool ran once");
}

/// BB-07: who never comes back has dismissed the form; a server that goes on all the same is told that
/// nobody waits, and the state is worth nothing.
#[tokio::test(start_paused = true)]
async fn a_client_that_never_comes_back_has_dismissed_the_form() {
    let (mut stage, mut peer) = scene(json!({"elicitation": {}}));
    let (said, asked) = parked(&mut stage, &mut peer).await;
    let dismissed = stage.hear().await;
    assert_eq!(
        (&dismissed.message["id"], &dismissed.message["result"]),
        (&json!("q1"), &json!({"action": "cancel"}))
    );
    let cancelled = stage.hear_of("notifications/cancelled").await;
    assert_eq!(cancelled.params()["requestId"], said.message["id"]);
    let late = retry(&tool("greet"), &asked, json!({key(&asked): accept("Ann")}));
    assert_eq!(code(&peer.ask(2, "tools/call", late).await), -32602);
    assert!(stage.heard().is_empty(), "the tool does not run again");
}

/// BB-07: a server that ends the call when the form is dismissed is not told more.
#[tokio::test(start_paused = true)]
async fn a_server_that_gives_up_is_left_alone() {
    let (mut stage, mut peer) = scene(json!({"elicitation": {}}));
    let (said, _) = parked(&mut stage, &mut peer).await;
    let dismissed = stage.hear().await;
    assert_eq!(dismissed.message["result"], json!({"action": "cancel"}));
    said.text("then not");
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(stage.heard().is_empty(), "the call has ended by itself");
}

/// BB-08: what the server made of a call while its client was away is told once, whatever the client
/// brings.
#[tokio::test(start_paused = true)]
async fn an_outcome_waits_for_its_client() {
    for is_error in [false, true] {
        let (mut stage, mut peer) = scene(json!({"elicitation": {}}));
        let (said, asked) = parked(&mut stage, &mut peer).await;
        if is_error {
            said.error(json!({"code": -32603, "message": "the user took too long"}));
        } else {
            said.text("done without you");
        }
        // The outcome is there before the client comes back.
        tokio::time::sleep(Duration::from_secs(1)).await;
        let back = retry(&tool("greet"), &asked, json!({key(&asked): accept("Ann")}));
        let answer = peer.ask(2, "tools/call", back.clone()).await;
        if is_error {
            assert_eq!(answer["error"]["message"], "the user took too long");
        } else {
            assert_eq!(answer["result"]["content"][0]["text"], "done without you");
            assert_eq!(answer["result"]["resultType"], "complete");
        }
        assert_eq!(
            code(&peer.ask(3, "tools/call", back).await),
            -32602,
            "told once"
        );
        assert!(stage.heard().is_empty(), "the server heard nothing of it");
    }
}

/// BB-08: a server that dies while a call waits for its client is the outcome of that call.
#[tokio::test(start_paused = true)]
async fn the_death_of_the_server_is_an_outcome() {
    let (mut stage, mut peer) = scene(json!({"elicitation": {}}));
    let (said, asked) = parked(&mut stage, &mut peer).await;
    said.hang_up();
    said.closed().await;
    let back = retry(&tool("greet"), &asked, json!({key(&asked): accept("Ann")}));
    let answer = peer.ask(2, "tools/call", back).await;
    assert_eq!(code(&answer), -32603, "{answer}");
    assert!(stage.heard().is_empty(), "the tool does not run again");
}

/// BB-09: a state of a bridge that is gone is worth nothing, and the tool does not run again.
#[tokio::test(start_paused = true)]
async fn a_state_does_not_outlive_its_bridge() {
    let (mut stage, mut peer) = scene(json!({"elicitation": {}}));
    let (_said, asked) = parked(&mut stage, &mut peer).await;
    let mut other = Stage::lines(Role::new(Revision::V2025_11_25));
    let mut later = Peer::modern(&bridge(&other), json!({"elicitation": {}}));
    let back = retry(&tool("greet"), &asked, json!({key(&asked): accept("Ann")}));
    let answer = later.ask(2, "tools/call", back).await;
    assert_eq!(code(&answer), -32602);
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(message.contains("requestState"), "{message}");
    assert!(other.heard().is_empty(), "the tool does not run");
}

/// MR-05, MR-07, BB-11: a state that was changed, or comes with another call or other arguments, is
/// worth nothing, and stays good for its own call.
#[tokio::test(start_paused = true)]
async fn a_state_is_good_for_its_own_call() {
    let (mut stage, mut peer) = scene(json!({"elicitation": {}}));
    let (_said, asked) = parked(&mut stage, &mut peer).await;
    let answers = json!({key(&asked): accept("Ann")});
    let own = retry(&tool("greet"), &asked, answers.clone());
    let mut other_arguments = own.clone();
    other_arguments["arguments"] = json!({"a": 2});
    let mut changed = own.clone();
    let mut state = changed["requestState"].as_str().unwrap().to_owned();
    let flipped = if state.ends_with('A') { "B" } else { "A" };
    state.replace_range(state.len() - 1.., flipped);
    changed["requestState"] = json!(state);
    let mut invented = own.clone();
    invented["requestState"] = json!("e30");
    let wrong = [
        retry(&tool("other"), &asked, answers.clone()),
        other_arguments,
        changed,
        invented,
    ];
    for (id, params) in (10..).zip(wrong) {
        let answer = peer.ask(id, "tools/call", params).await;
        assert_eq!(code(&answer), -32602, "{answer}");
    }
    let read = retry(&json!({"uri": "test://r"}), &asked, answers);
    assert_eq!(code(&peer.ask(20, "resources/read", read).await), -32602);
    assert!(stage.heard().is_empty(), "the server heard nothing of it");
    // The order of arguments does not matter.
    peer.request(21, "tools/call", own).await;
    assert_eq!(stage.hear().await.message["id"], "q1");
}

/// BB-11: to another principal a state is worth nothing, and it stays good for its own.
#[tokio::test]
async fn a_state_is_good_for_its_own_principal() {
    let mut stage = Stage::http(Role::new(Revision::V2025_11_25)).await;
    let mut settings = BridgeSettings::default();
    settings.front.principals =
        Principals::told_by(|headers| Some(headers.get("x-user")?.to_str().ok()?.to_owned()));
    let bridge = Bridge::new(stage.target.clone(), settings).unwrap();
    let url = listen(&bridge).await;
    let capabilities = json!({"elicitation": {}});
    let ann = Web::modern(&url, capabilities.clone()).with("x-user", "ann");
    let bob = Web::modern(&url, capabilities).with("x-user", "bob");
    let (mut reply, said) = tokio::join!(ann.request(1, "tools/call", tool("greet")), async {
        let said = after_streams(&mut stage).await;
        said.ask("q1", "elicitation/create", form("Who?"));
        said
    });
    let asked = reply.only().await;
    let back = retry(&tool("greet"), &asked, json!({key(&asked): accept("Eve")}));
    let refused = bob
        .request(1, "tools/call", back.clone())
        .await
        .only()
        .await;
    assert_eq!(code(&refused), -32602);
    let (mut reply, ()) = tokio::join!(ann.request(2, "tools/call", back), async {
        let answered = after_streams(&mut stage).await;
        assert_eq!(answered.message["id"], "q1");
        said.text("hello");
    });
    assert_eq!(reply.only().await["result"]["content"][0]["text"], "hello");
}

/// The next message that is not the stream of a session.
async fn after_streams(stage: &mut Stage) -> Said {
    loop {
        let said = stage.hear().await;
        if said.method() != "GET" {
            return said;
        }
    }
}

/// A second request with the same answers waits with the first; with others it is refused.
#[tokio::test(start_paused = true)]
async fn the_same_answers_may_come_twice() {
    let (mut stage, mut peer) = scene(json!({"elicitation": {}}));
    let (said, asked) = parked(&mut stage, &mut peer).await;
    let back = |name: &str| retry(&tool("greet"), &asked, json!({key(&asked): accept(name)}));
    peer.request(2, "tools/call", back("Ann")).await;
    assert_eq!(stage.hear().await.message["id"], "q1");
    peer.request(3, "tools/call", back("Ann")).await;
    assert_eq!(code(&peer.ask(4, "tools/call", back("Bob")).await), -32602);
    said.text("hello");
    let mut ids = Vec::new();
    for _ in 0..2 {
        let answer = peer.hear().await;
        assert_eq!(answer["result"]["content"][0]["text"], "hello");
        ids.push(answer["id"].as_i64().unwrap());
    }
    ids.sort_unstable();
    assert_eq!(ids, [2, 3]);
    assert!(stage.heard().is_empty(), "the server was answered once");
}

/// BB-31, MR-08: the answer that came goes to the server, and only what is missing is asked again.
#[tokio::test(start_paused = true)]
async fn only_what_is_missing_is_asked_again() {
    let (mut stage, mut peer) = scene(json!({"elicitation": {}, "roots": {}}));
    peer.request(1, "tools/call", tool("greet")).await;
    let said = stage.hear().await;
    said.ask(1, "elicitation/create", form("Who?"));
    said.ask(2, "roots/list", json!({}));
    let asked = peer.hear().await;
    let both = keys(&asked);
    assert_eq!(
        both.len(),
        2,
        "questions that come together are asked together: {asked}"
    );
    let requests = &asked["result"]["inputRequests"];
    let is_form = |key: &&String| requests[key.as_str()]["method"] == "elicitation/create";
    let who = both.iter().find(is_form).unwrap();
    let roots = both.iter().find(|key| !is_form(key)).unwrap();
    let some = retry(&tool("greet"), &asked, json!({who: accept("Ann")}));
    let asked = peer.ask(2, "tools/call", some).await;
    assert_eq!(&key(&asked), roots);
    let answered = stage.hear().await;
    assert_eq!(
        (&answered.message["id"], &answered.message["result"]),
        (&json!(1), &accept("Ann"))
    );
    let rest = json!({"roots": [{"uri": "file:///a"}]});
    peer.request(
        3,
        "tools/call",
        retry(&tool("greet"), &asked, json!({roots: rest.clone()})),
    )
    .await;
    let answered = stage.hear().await;
    assert_eq!(
        (&answered.message["id"], &answered.message["result"]),
        (&json!(2), &rest)
    );
    said.text("hello");
    assert_eq!(peer.hear().await["id"], 3);
}

/// BB-13: a question before any call of a client belongs to nobody.
#[tokio::test(start_paused = true)]
async fn a_question_without_a_call_belongs_to_nobody() {
    let (mut stage, mut peer) = scene(json!({"roots": {}}));
    // Something that opens the connection and cannot be asked anything.
    peer.request(1, "tools/list", json!({})).await;
    let said = stage.hear_of("tools/list").await;
    said.result(json!({"tools": []}));
    assert_eq!(peer.hear().await["id"], 1);
    said.ask("r1", "roots/list", json!({}));
    let refused = stage.hear().await;
    assert_eq!(
        (&refused.message["id"], code(&refused.message)),
        (&json!("r1"), -32602)
    );
    peer.hears_nothing().await;
}

/// BB-30: a question during a request that cannot carry one is refused, and the request goes on.
#[tokio::test(start_paused = true)]
async fn a_list_asks_nothing() {
    let (mut stage, mut peer) = scene(json!({"elicitation": {}}));
    peer.request(1, "tools/list", json!({})).await;
    let said = stage.hear_of("tools/list").await;
    said.ask("q1", "elicitation/create", form("Who?"));
    let refused = stage.hear().await;
    assert_eq!(
        (&refused.message["id"], code(&refused.message)),
        (&json!("q1"), -32602)
    );
    said.result(json!({"tools": []}));
    let answer = peer.hear().await;
    assert_eq!(answer["result"]["resultType"], "complete");
}

/// BB-29: a server that asks what the client did not declare hears that nobody can; what it makes of
/// that is passed on, and where it makes an error of it the client learns what it lacks.
#[tokio::test(start_paused = true)]
async fn a_client_learns_what_it_lacks() {
    let (mut stage, mut peer) = scene(json!({}));
    for is_error in [false, true] {
        peer.request(1, "tools/call", tool("greet")).await;
        let said = stage.hear_of("tools/call").await;
        said.ask("q1", "elicitation/create", form("Who?"));
        let refused = stage.hear().await;
        assert_eq!(
            (&refused.message["id"], code(&refused.message)),
            (&json!("q1"), -32601)
        );
        if is_error {
            said.error(json!({"code": -32603, "message": "no form, no greeting"}));
            let answer = peer.hear().await;
            assert_eq!(code(&answer), -32021, "{answer}");
            let needed = &answer["error"]["data"]["requiredCapabilities"];
            assert_eq!(needed, &json!({"elicitation": {}}));
        } else {
            said.result(json!({"content": [], "isError": true}));
            assert_eq!(peer.hear().await["result"]["isError"], true);
        }
    }
}

/// BB-15: a server that wants a URL visited first, before a client that cannot: the error names what it
/// lacks, with its status, and the server's own code is not passed on.
#[tokio::test]
async fn a_client_without_urls_learns_what_it_lacks() {
    let mut stage = Stage::http(Role::new(Revision::V2025_11_25)).await;
    let url = listen(&bridge(&stage)).await;
    let web = Web::modern(&url, json!({"elicitation": {}}));
    let (mut reply, ()) = tokio::join!(web.request(1, "tools/call", tool("pay")), async {
        let said = after_streams(&mut stage).await;
        said.error(json!({"code": -32042, "message": "visit", "data": {"elicitations": [
            {"mode": "url", "elicitationId": "e1", "url": "https://pay.example", "message": "pay"}]}}));
    });
    assert_eq!(reply.status, 400);
    let answer = reply.only().await;
    assert_eq!(code(&answer), -32021);
    let needed = &answer["error"]["data"]["requiredCapabilities"];
    assert_eq!(needed, &json!({"elicitation": {"url": {}}}));
}

/// A URL to visit becomes a question; when the server calls it visited, the call is made again.
#[tokio::test(start_paused = true)]
async fn a_visited_url_lets_the_call_be_made_again() {
    let (mut stage, mut peer) = scene(json!({"elicitation": {"url": {}}}));
    peer.request(1, "tools/call", tool("pay")).await;
    let said = stage.hear().await;
    said.error(
        json!({"code": -32042, "message": "visit", "data": {"elicitations": [
        {"mode": "url", "elicitationId": "e1", "url": "https://pay.example", "message": "pay"}]}}),
    );
    let asked = peer.hear().await;
    let request = &asked["result"]["inputRequests"][key(&asked)];
    assert_eq!(request["params"]["url"], "https://pay.example");
    assert_eq!(request["params"].get("elicitationId"), None, "{request}");
    let back = retry(
        &tool("pay"),
        &asked,
        json!({key(&asked): {"action": "accept"}}),
    );
    peer.request(2, "tools/call", back).await;
    said.note(
        "notifications/elicitation/complete",
        json!({"elicitationId": "e1"}),
    );
    let again = stage.hear_of("tools/call").await;
    assert_eq!(again.params(), &tool("pay"));
    again.text("paid");
    assert_eq!(peer.hear().await["result"]["content"][0]["text"], "paid");
}

/// BB-21: a client that closes the stream of its call has cancelled it, and the server hears so under
/// its own id of the call.
#[tokio::test]
async fn a_closed_stream_cancels_the_call() {
    for is_http in [false, true] {
        let role = Role::new(Revision::V2025_11_25);
        let mut stage = match is_http {
            true => Stage::http(role).await,
            false => Stage::lines(role),
        };
        let url = listen(&bridge(&stage)).await;
        let web = Web::modern(&url, json!({}));
        let calling =
            tokio::spawn(async move { web.request(1, "tools/call", tool("slow")).await.status });
        let said = after_streams(&mut stage).await;
        assert_eq!(said.method(), "tools/call");
        calling.abort();
        let cancelled = after_streams(&mut stage).await;
        assert_eq!(cancelled.method(), "notifications/cancelled");
        assert_eq!(cancelled.params()["requestId"], said.message["id"]);
    }
}

/// A parked call whose client comes back and then leaves for good is cancelled after a moment.
#[tokio::test(start_paused = true)]
async fn a_client_that_leaves_for_good_cancels() {
    let (mut stage, mut peer) = scene(json!({"elicitation": {}}));
    let (said, asked) = parked(&mut stage, &mut peer).await;
    let back = retry(&tool("greet"), &asked, json!({key(&asked): accept("Ann")}));
    peer.request(2, "tools/call", back.clone()).await;
    assert_eq!(stage.hear().await.message["id"], "q1");
    peer.note("notifications/cancelled", json!({"requestId": 2}))
        .await;
    let cancelled = stage.hear_of("notifications/cancelled").await;
    assert_eq!(cancelled.params()["requestId"], said.message["id"]);
    assert_eq!(code(&peer.ask(3, "tools/call", back).await), -32602);
}

/// A server that goes on for a moment with a call that was cancelled asks nobody else: the next call waits.
#[tokio::test(start_paused = true)]
async fn a_cancelled_call_asks_nobody_else() {
    let (mut stage, mut peer) = scene(json!({"elicitation": {}}));
    peer.request(1, "tools/call", tool("greet")).await;
    let first = stage.hear_of("tools/call").await;
    peer.note("notifications/cancelled", json!({"requestId": 1}))
        .await;
    stage.hear_of("notifications/cancelled").await;
    peer.request(2, "tools/call", tool("other")).await;
    first.ask("q1", "elicitation/create", form("Who?"));
    let refused = stage.hear().await;
    assert_eq!(
        (&refused.message["id"], code(&refused.message)),
        (&json!("q1"), -32602)
    );
    let second = stage.hear_of("tools/call").await;
    second.text("done");
    assert_eq!(peer.hear().await["result"]["content"][0]["text"], "done");
}

/// BB-26: a server's ping is answered by the bridge, during a call, while it is parked and without one.
#[tokio::test(start_paused = true)]
async fn pings_of_the_server_are_answered_here() {
    let (mut stage, mut peer) = scene(json!({"elicitation": {}}));
    peer.request(1, "tools/call", tool("greet")).await;
    let said = stage.hear_of("tools/call").await;
    for (number, id) in (1..).zip(["p1", "p2", "p3"]) {
        said.ask(id, "ping", json!({}));
        let pong = stage.hear().await;
        assert_eq!(
            (&pong.message["id"], &pong.message["result"]),
            (&json!(id), &json!({}))
        );
        if number == 1 {
            said.ask("q1", "elicitation/create", form("Who?"));
            assert_eq!(key(&peer.hear().await), "elicitation-1");
        }
    }
    peer.hears_nothing().await;
}

/// A question that the server takes back is not answered to it; what else it asked is.
#[tokio::test(start_paused = true)]
async fn a_question_can_be_taken_back() {
    let (mut stage, mut peer) = scene(json!({"elicitation": {}, "roots": {}}));
    peer.request(1, "tools/call", tool("greet")).await;
    let said = stage.hear().await;
    // Numbers that could be mistaken for those of calls.
    said.ask(101, "elicitation/create", form("Who?"));
    said.ask(102, "roots/list", json!({}));
    let asked = peer.hear().await;
    said.note("notifications/cancelled", json!({"requestId": 101}));
    tokio::time::sleep(Duration::from_secs(1)).await;
    let requests = asked["result"]["inputRequests"].as_object().unwrap();
    let answers: Value = requests
        .iter()
        .map(|(key, request)| {
            let answer = match request["method"].as_str() {
                Some("roots/list") => json!({"roots": []}),
                _ => accept("Ann"),
            };
            (key.clone(), answer)
        })
        .collect::<serde_json::Map<_, _>>()
        .into();
    peer.request(2, "tools/call", retry(&tool("greet"), &asked, answers))
        .await;
    let answered = stage.hear().await;
    assert_eq!(
        (&answered.message["id"], &answered.message["result"]),
        (&json!(102), &json!({"roots": []}))
    );
    said.text("hello");
    assert_eq!(peer.hear().await["id"], 2);
    assert!(stage.heard().is_empty());
}

/// Two calls that may be asked something do not share a connection on which a question does not say
/// whose it is.
#[tokio::test(start_paused = true)]
async fn questions_never_reach_another_call() {
    let (mut stage, mut peer) = scene(json!({"elicitation": {}}));
    for id in 1..=3 {
        peer.request(
            id,
            "tools/call",
            json!({"name": "greet", "arguments": {"caller": id}}),
        )
        .await;
    }
    let calls = [stage.hear().await, stage.hear().await, stage.hear().await];
    let mut connections: Vec<usize> = calls.iter().map(|said| said.connection).collect();
    connections.sort_unstable();
    connections.dedup();
    assert_eq!(connections.len(), 3);
    for said in calls.iter().rev() {
        let caller = said.params()["arguments"]["caller"].clone();
        said.ask(1, "elicitation/create", form(&caller.to_string()));
        let asked = peer.hear().await;
        assert_eq!(asked["id"], caller);
        let request = &asked["result"]["inputRequests"][key(&asked)];
        assert_eq!(request["params"]["message"], caller.to_string());
    }
}

/// BB-24: a server of 2025-06-18 would take a client that only visits URLs for one that fills in
/// forms, and meets it again as one that does not.
#[tokio::test(start_paused = true)]
async fn a_client_that_only_visits_urls_is_not_taken_for_another() {
    let mut stage = Stage::lines(Role::new(Revision::V2025_06_18));
    let mut peer = Peer::modern(&bridge(&stage), json!({"elicitation": {"url": {}}}));
    peer.request(1, "tools/call", tool("greet")).await;
    let said = stage.hear_of("tools/call").await;
    said.text("hello");
    assert_eq!(peer.hear().await["id"], 1);
    let greetings = stage.greetings();
    let openings: Vec<&Value> = greetings
        .iter()
        .filter(|message| message["method"] == "initialize")
        .map(|message| &message["params"]["capabilities"])
        .collect();
    assert_eq!(
        openings.last().unwrap().get("elicitation"),
        None,
        "{openings:?}"
    );
}

/// BB-28: one sampled block in a list is the block itself for a server that knows no lists.
#[tokio::test(start_paused = true)]
async fn one_sampled_block_is_the_block_itself() {
    let mut stage = Stage::lines(Role::new(Revision::V2025_06_18));
    let mut peer = Peer::modern(&bridge(&stage), json!({"sampling": {}}));
    peer.request(1, "tools/call", tool("think")).await;
    let said = stage.hear().await;
    said.ask(
        1,
        "sampling/createMessage",
        json!({"maxTokens": 9,
        "messages": [{"role": "user", "content": {"type": "text", "text": "capital?"}}]}),
    );
    let asked = peer.hear().await;
    let block = json!({"type": "text", "text": "Paris"});
    let answer = json!({"role": "assistant", "model": "m", "content": [block.clone()]});
    peer.request(
        2,
        "tools/call",
        retry(&tool("think"), &asked, json!({key(&asked): answer})),
    )
    .await;
    let answered = stage.hear().await;
    assert_eq!(answered.message["result"]["content"], block);
    said.text("Paris it is");
    assert_eq!(peer.hear().await["id"], 2);
}
