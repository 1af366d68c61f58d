//! Tools, resources, prompts, logging and completion as every revision sees them.

use mcpact::model::{
    Annotations, Icon, Prompt, PromptResult, Resource, ResourceContents, Role, Tool, ToolResult,
};
use mcpact::server::{Context, NoArgs, Server};
use mcpact_spec::Revision;
use serde_json::{Map, Value, json};

use crate::http::{Raw, Running, modern};
use crate::peer::Peer;

const LEGACY: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

async fn opened(version: &str) -> Peer {
    let mut peer = Peer::start(&Revision::ALL);
    peer.open(version, json!({})).await;
    peer
}

/// F3: arguments are held against the schema in the dialect that it names, and in 2020-12 where it
/// names none.
#[tokio::test]
async fn schemas_are_read_in_their_dialect() {
    let tuple = |dialect: Option<&str>, keyword: &str| {
        let mut schema = json!({"type": "object", "properties": {
            "pair": {"type": "array", keyword: [{"type": "string"}, {"type": "integer"}]}}});
        if let Some(dialect) = dialect {
            schema["$schema"] = json!(dialect);
        }
        schema
    };
    let seven = Some("http://json-schema.org/draft-07/schema#");
    let newest = Some("https://json-schema.org/draft/2020-12/schema");
    let tools = [
        ("default", tuple(None, "prefixItems")),
        ("newest", tuple(newest, "prefixItems")),
        ("seven", tuple(seven, "items")),
    ];
    let mut server = Server::new("t", "1");
    for (name, schema) in tools {
        server = server.tool_with(Tool::new(name, schema), |_: Value, _| async { Ok("fits") });
    }
    let mut peer = Peer::of(server);
    peer.open("2025-11-25", json!({})).await;
    for name in ["default", "newest", "seven"] {
        let call = |pair: Value| json!({"name": name, "arguments": {"pair": pair}});
        let good = peer.ask(1, "tools/call", call(json!(["a", 1]))).await;
        assert_eq!(
            good["result"]["content"][0]["text"], "fits",
            "{name}: {good}"
        );
        let bad = peer.ask(2, "tools/call", call(json!([1, "a"]))).await;
        assert_eq!(bad["result"]["isError"], true, "{name}: {bad}");
        let no_object = peer
            .ask(3, "tools/call", json!({"name": name, "arguments": [1]}))
            .await;
        assert!(no_object["error"]["code"] == -32602 || no_object["result"]["isError"] == true);
    }
}

/// F3: everything that a tool says about itself, and everything that a call may give back.
#[tokio::test]
async fn a_tool_says_everything_about_itself() {
    let hints = serde_json::from_value(json!({"readOnlyHint": true})).unwrap();
    let mut described = Tool::new("whole", json!({"type": "object", "properties": {}}))
        .title("Whole")
        .description("Has everything")
        .output_schema(
            json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}),
        )
        .annotations(hints)
        .task_support(mcpact::model::TaskSupport::Optional);
    described.icons = Some(vec![Icon::new("https://example.com/i.png")]);
    let server = || {
        Server::new("t", "1").tool_with(described.clone(), |arguments: Value, _| async move {
            let n = if arguments["wrong"] == true {
                json!("x")
            } else {
                json!(1)
            };
            Ok(ToolResult::text("one").structured(json!({ "n": n })))
        })
    };
    let mut peer = Peer::of(server());
    peer.open("2025-11-25", json!({})).await;
    let list = peer.ask(1, "tools/list", json!({})).await;
    let tool = &list["result"]["tools"][0];
    assert_eq!(tool["title"], "Whole");
    assert_eq!(tool["icons"][0]["src"], "https://example.com/i.png");
    assert_eq!(tool["annotations"]["readOnlyHint"], true);
    assert_eq!(tool["execution"]["taskSupport"], "optional");
    assert_eq!(tool["outputSchema"]["required"], json!(["n"]));
    let good = peer.ask(2, "tools/call", json!({"name": "whole"})).await;
    assert_eq!(good["result"]["structuredContent"], json!({"n": 1}));
    let wrong = peer
        .ask(
            3,
            "tools/call",
            json!({"name": "whole", "arguments": {"wrong": true}}),
        )
        .await;
    assert_eq!(
        wrong["result"]["isError"], true,
        "a result that breaks its promise: {wrong}"
    );
}

/// F4: lists, templates, text and blobs; what is not there has the code of its revision and the
/// address in its data.
#[tokio::test]
async fn resources_are_listed_and_read() {
    for version in LEGACY {
        let mut peer = opened(version).await;
        let list = peer.ask(1, "resources/list", json!({})).await;
        assert_eq!(list["result"]["resources"][0]["uri"], "test://static-text");
        assert_eq!(list["result"]["resources"][0]["mimeType"], "text/plain");
        let templates = peer.ask(2, "resources/templates/list", json!({})).await;
        let template = &templates["result"]["resourceTemplates"][0];
        assert_eq!(template["uriTemplate"], "test://template/{id}/data");
        let text = peer
            .ask(3, "resources/read", json!({"uri": "test://static-text"}))
            .await;
        assert!(text["result"]["contents"][0]["text"].is_string());
        let blob = peer
            .ask(4, "resources/read", json!({"uri": "test://static-binary"}))
            .await;
        assert!(blob["result"]["contents"][0]["blob"].is_string());
        assert_eq!(blob["result"]["contents"][0]["mimeType"], "image/png");
        let filled = peer
            .ask(
                5,
                "resources/read",
                json!({"uri": "test://template/7/data"}),
            )
            .await;
        assert_eq!(
            filled["result"]["contents"][0]["uri"],
            "test://template/7/data"
        );
        let gone = peer
            .ask(6, "resources/read", json!({"uri": "test://gone"}))
            .await;
        assert_eq!(gone["error"]["code"], -32002, "{version}");
        assert_eq!(gone["error"]["data"]["uri"], "test://gone");
    }
    let server = Running::everything(&Revision::ALL).await;
    let read = modern(1, "resources/read", json!({"uri": "test://gone"}));
    let gone = server.send(&Raw::modern(&read)).await;
    assert_eq!(gone.code(), -32602, "{gone:?}");
    assert_eq!(gone.json()["error"]["data"]["uri"], "test://gone");
}

/// A server with tools that change lists and update resources.
fn changing() -> Server {
    Server::new("t", "1")
        .resource(Resource::new("test://a", "a"), |uri, _| async move {
            Ok(vec![ResourceContents::text(uri, "a")])
        })
        .resource(Resource::new("test://b", "b"), |uri, _| async move {
            Ok(vec![ResourceContents::text(uri, "b")])
        })
        .prompt(Prompt::new("p"), |_: Map<String, Value>, _| async {
            Ok(PromptResult::new([]))
        })
        .tool(
            "change",
            "Changes everything",
            |_: NoArgs, context: Context| async move {
                context.resource_updated("test://b");
                context.resource_updated("test://a");
                context.tools_changed();
                context.resources_changed();
                context.prompts_changed();
                Ok("changed")
            },
        )
}

fn notes(heard: &[Value]) -> Vec<(String, String)> {
    let notes = heard.iter().filter(|message| message.get("id").is_none());
    let about = |note: &Value| {
        note["params"]["uri"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    };
    notes
        .map(|note| (note["method"].as_str().unwrap().to_owned(), about(note)))
        .collect()
}

/// F4, F5: a client hears of changed lists, and of the resources that it subscribed to, until it
/// unsubscribes.
#[tokio::test]
async fn changes_are_told_to_those_who_asked() {
    for version in LEGACY {
        let mut peer = Peer::of(changing());
        let opened = peer.open(version, json!({})).await;
        assert_eq!(opened["capabilities"]["resources"]["subscribe"], true);
        assert_eq!(opened["capabilities"]["prompts"]["listChanged"], true);
        let lists = [
            "notifications/tools/list_changed",
            "notifications/resources/list_changed",
            "notifications/prompts/list_changed",
        ];
        let mut expected: Vec<(String, String)> = lists
            .iter()
            .map(|method| ((*method).to_owned(), String::new()))
            .collect();
        let change = json!({"name": "change"});
        assert_eq!(
            notes(&peer.follow(1, "tools/call", change.clone()).await),
            expected,
            "{version}"
        );
        peer.ask(2, "resources/subscribe", json!({"uri": "test://a"}))
            .await;
        expected.insert(
            0,
            (
                "notifications/resources/updated".to_owned(),
                "test://a".to_owned(),
            ),
        );
        assert_eq!(
            notes(&peer.follow(3, "tools/call", change.clone()).await),
            expected,
            "{version}"
        );
        peer.ask(4, "resources/unsubscribe", json!({"uri": "test://a"}))
            .await;
        expected.remove(0);
        assert_eq!(
            notes(&peer.follow(5, "tools/call", change).await),
            expected,
            "{version}"
        );
        let unknown = peer
            .ask(6, "resources/subscribe", json!({"uri": "test://none"}))
            .await;
        assert_eq!(unknown["error"]["code"], -32002);
    }
}

/// F5: prompts with their arguments; unknown names and missing arguments are -32602.
#[tokio::test]
async fn prompts_are_listed_and_filled_in() {
    for version in LEGACY {
        let mut peer = opened(version).await;
        let list = peer.ask(1, "prompts/list", json!({})).await;
        let prompts = list["result"]["prompts"].as_array().unwrap();
        let with = prompts
            .iter()
            .find(|prompt| prompt["name"] == "test_prompt_with_arguments")
            .unwrap();
        assert_eq!(with["arguments"][0]["required"], true);
        let get = |arguments: Value| json!({"name": "test_prompt_with_arguments", "arguments": arguments});
        let got = peer
            .ask(2, "prompts/get", get(json!({"arg1": "x", "arg2": "y"})))
            .await;
        let text = got["result"]["messages"][0]["content"]["text"]
            .as_str()
            .unwrap();
        assert!(text.contains("'x'") && text.contains("'y'"), "{text}");
        assert_eq!(got["result"]["messages"][0]["role"], "user");
        assert_eq!(
            peer.ask(3, "prompts/get", get(json!({"arg1": "x"}))).await["error"]["code"],
            -32602
        );
        assert_eq!(
            peer.ask(4, "prompts/get", json!({"name": "none"})).await["error"]["code"],
            -32602
        );
    }
}

/// F6: the eight levels and the word `warn`; what is below the level is not sent.
#[tokio::test]
async fn log_levels_are_heeded() {
    for version in LEGACY {
        let mut peer = opened(version).await;
        for level in [
            "debug",
            "info",
            "notice",
            "warning",
            "error",
            "critical",
            "alert",
            "emergency",
            "warn",
        ] {
            let set = peer
                .ask(1, "logging/setLevel", json!({"level": level}))
                .await;
            assert_eq!(set["result"], json!({}), "{version} {level}");
        }
        assert_eq!(
            peer.ask(2, "logging/setLevel", json!({"level": "loud"}))
                .await["error"]["code"],
            -32602
        );
        let call = json!({"name": "test_tool_with_logging"});
        let quiet = peer.follow(3, "tools/call", call.clone()).await;
        assert_eq!(
            quiet.len(),
            1,
            "{version}: the messages are below: {quiet:?}"
        );
        peer.ask(4, "logging/setLevel", json!({"level": "debug"}))
            .await;
        let loud = peer.follow(5, "tools/call", call).await;
        assert!(loud.len() > 1, "{version}");
        assert!(loud[0]["params"]["data"].is_string() && loud[0]["params"]["level"].is_string());
    }
}

/// F6, P17, GA-06, GA-07: a modern request gets messages only of the level that it names itself.
#[tokio::test]
async fn a_modern_request_names_its_level() {
    let server = Running::everything(&Revision::ALL).await;
    let call = |level: Option<&str>| {
        let mut call = modern(1, "tools/call", json!({"name": "test_tool_with_logging"}));
        if let Some(level) = level {
            call["params"]["_meta"]["io.modelcontextprotocol/logLevel"] = json!(level);
        }
        Raw::modern(&call)
    };
    let silent = server.send(&call(None)).await;
    assert_eq!(
        silent.header("content-type"),
        Some("application/json"),
        "{silent:?}"
    );
    let alert = server.send(&call(Some("alert"))).await;
    assert!(!alert.body.contains("notifications/message"));
    let loud = server.send(&call(Some("debug"))).await;
    let events = loud.events();
    assert!(
        events.len() > 1 && events[0]["method"] == "notifications/message",
        "{loud:?}"
    );
    let again = server.send(&call(None)).await;
    assert!(
        !again.body.contains("notifications/message"),
        "not remembered"
    );
    assert_eq!(server.send(&call(Some("loud"))).await.code(), -32602);
}

/// F7, GA-04: completion is served where it is registered; missing parameters are named.
#[tokio::test]
async fn completion_has_its_gate() {
    for version in LEGACY {
        let mut peer = opened(version).await;
        let ask = |value: &str| {
            json!({"ref": {"type": "ref/prompt", "name": "test_prompt_with_arguments"},
            "argument": {"name": "arg1", "value": value}})
        };
        let found = peer.ask(1, "completion/complete", ask("test")).await;
        assert_eq!(
            found["result"]["completion"]["values"],
            json!(["test1", "test2"]),
            "{version}"
        );
        for bad in [
            json!({}),
            json!({"ref": {"type": "ref/none"}, "argument": {"name": "a", "value": ""}}),
            json!({"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "a"}}),
        ] {
            assert_eq!(
                peer.ask(2, "completion/complete", bad).await["error"]["code"],
                -32602,
                "{version}"
            );
        }
        let mut without = Peer::of(changing());
        without.open(version, json!({})).await;
        assert_eq!(
            without.ask(3, "completion/complete", ask("")).await["error"]["code"],
            -32601,
            "{version}"
        );
    }
}

/// F14: every list has pages, and a cursor that it did not give is -32602, whatever is tried.
#[tokio::test]
async fn every_list_knows_its_cursors() {
    let server = mcpact_everything::server(&Revision::ALL).settings(|s| s.page_size = 1);
    let mut peer = Peer::of(server);
    peer.open("2025-11-25", json!({})).await;
    for (method, key) in [
        ("tools/list", "tools"),
        ("prompts/list", "prompts"),
        ("resources/list", "resources"),
    ] {
        let first = peer.ask(1, method, json!({})).await["result"].clone();
        assert_eq!(first[key].as_array().map(Vec::len), Some(1), "{method}");
        let second = peer
            .ask(2, method, json!({"cursor": first["nextCursor"]}))
            .await;
        assert_ne!(
            second["result"][key][0]["name"], first[key][0]["name"],
            "{method}"
        );
        for bad in [
            json!("nonsense"),
            json!(""),
            json!("LTE"),
            json!("OTk5OTk5"),
            json!("MTg0NDY3NDQwNzM3MDk1NTE2MTY"),
            json!(7),
            json!({}),
            json!("\u{0}"),
        ] {
            let refused = peer.ask(3, method, json!({"cursor": bad})).await;
            assert_eq!(refused["error"]["code"], -32602, "{method} {bad}");
        }
    }
}

/// F15: icons, annotations and metadata reach the client as they were given.
#[tokio::test]
async fn icons_annotations_and_metadata_are_kept() {
    let annotations = Annotations {
        audience: Some(vec![Role::User]),
        priority: Some(0.5),
        last_modified: Some("2025-01-12T15:00:58Z".to_owned()),
        ..Annotations::default()
    };
    let meta = Map::from_iter([("example.com/x".to_owned(), json!({"deep": [1, null]}))]);
    let mut resource = Resource::new("test://a", "a");
    resource.annotations = Some(annotations);
    resource.meta = Some(meta);
    resource.icons = Some(vec![Icon::new("https://example.com/i.png")]);
    let server = Server::new("t", "1").resource(resource, |uri, _| async move {
        Ok(vec![ResourceContents::text(uri, "a")])
    });
    let mut peer = Peer::of(server);
    peer.open("2025-11-25", json!({})).await;
    let list = peer.ask(1, "resources/list", json!({})).await;
    let seen = &list["result"]["resources"][0];
    assert_eq!(
        seen["annotations"],
        json!({"audience": ["user"], "priority": 0.5, "lastModified": "2025-01-12T15:00:58Z"})
    );
    assert_eq!(seen["_meta"], json!({"example.com/x": {"deep": [1, null]}}));
    assert_eq!(seen["icons"], json!([{"src": "https://example.com/i.png"}]));
}

/// F18: modern lists say how long they hold and for whom, and come in the same order every time.
#[tokio::test]
async fn lists_say_how_long_they_hold() {
    let server = Running::everything(&Revision::ALL).await;
    let mut before = None;
    for _ in 0..3 {
        let list = server
            .send(&Raw::modern(&modern(1, "tools/list", json!({}))))
            .await
            .json();
        assert!(list["result"]["ttlMs"].is_u64(), "{list}");
        assert_eq!(list["result"]["cacheScope"], "private");
        let tools = list["result"]["tools"].clone();
        assert_eq!(*before.get_or_insert(tools.clone()), tools);
    }
    for (method, params) in [
        ("resources/list", json!({})),
        ("prompts/list", json!({})),
        ("resources/templates/list", json!({})),
        ("resources/read", json!({"uri": "test://static-text"})),
        ("server/discover", json!({})),
    ] {
        let reply = server
            .send(&Raw::modern(&modern(1, method, params)))
            .await
            .json();
        assert!(
            reply["result"]["ttlMs"].is_u64() && reply["result"]["cacheScope"].is_string(),
            "{method}: {reply}"
        );
    }
}
