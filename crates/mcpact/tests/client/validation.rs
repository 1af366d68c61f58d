//! Validation of messages with small schemas in the format of the official ones. The test `official_schemas` of
//! `mcpact-everything` uses the official ones.

use std::error::Error as _;
use std::sync::Arc;

use mcpact::client::{Client, ClientError, EraMode, Link, Revision};
use mcpact::model::{Content, ElicitRequest, ElicitResult, FormRequest, Tool, ToolResult};
use mcpact::server::Server;
use mcpact::validation::{SchemaLoadError, Schemas, Validation};
use mcpact_sim::scripted::link_server::{LinkServer, result};
use mcpact_sim::scripted::message::{discover_result, initialize_result};
use mcpact_sim::scripted::serve;
use mcpact_spec::Era;
use serde_json::{Map, Value, json};

/// Maximum number of arguments in the schema of a revision; different for each.
fn max_arguments(revision: Revision) -> usize {
    1 + Revision::ALL.iter().position(|r| *r == revision).unwrap()
}

/// Minimal schema in the dialect and with the names of its revision.
fn document(revision: Revision) -> Value {
    let is_young = revision >= Revision::V2025_11_25;
    let primitive = json!({"type": ["string", "integer", "boolean"]});
    let primitive = match is_young {
        true => json!({"anyOf": [{"type": "array"}, primitive]}),
        false => primitive,
    };
    let message = |method: &str, params: Value| {
        json!({"type": "object", "required": ["method"],
            "properties": {"method": {"const": method}, "params": params}})
    };
    let required = match revision.era() {
        Era::Modern => json!(["name", "_meta"]),
        Era::Legacy => json!(["name"]),
    };
    let call = json!({"type": "object", "required": required, "properties": {
        "name": {"$ref": "#/ROOT/Name"},
        "arguments": {"type": "object", "maxProperties": max_arguments(revision)}}});
    let form = json!({"type": "object", "required": ["message"],
        "properties": {"message": {"maxLength": 3}}});
    let log = json!({"type": "object", "required": ["logger"]});
    let definitions = json!({
        "Name": {"type": "string"},
        "CallToolRequest": message("tools/call", call),
        "CallToolResult": {"type": "object", "required": ["content"],
            "properties": {"content": {"type": "array", "maxItems": 1}}},
        "InputRequiredResult": {"type": "object", "required": ["inputRequests"]},
        "ElicitRequest": message("elicitation/create", form),
        "ElicitResult": {"type": "object", "properties": {
            "content": {"type": "object", "additionalProperties": primitive}}},
        "LoggingMessageNotification": message("notifications/message", log),
    });
    let (dialect, root) = match is_young {
        true => ("https://json-schema.org/draft/2020-12/schema", "$defs"),
        false => ("http://json-schema.org/draft-07/schema#", "definitions"),
    };
    let document = json!({"$schema": dialect, root: definitions});
    let text = document.to_string().replace("/ROOT/", &format!("/{root}/"));
    serde_json::from_str(&text).unwrap()
}

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for revision in Revision::ALL {
        let below = folder.path().join(revision.as_str());
        std::fs::create_dir(&below).unwrap();
        std::fs::write(below.join("schema.json"), document(revision).to_string()).unwrap();
    }
    folder
}

fn schemas() -> Arc<Schemas> {
    Arc::new(Schemas::read(folder().path()).unwrap())
}

fn server(validation: Validation) -> Server {
    let object = || json!({"type": "object"});
    Server::new("held", "1")
        .settings(|settings| settings.validation = validation)
        .tool_with(Tool::new("echo", object()), |_: Value, _| async {
            Ok(ToolResult::text("hello"))
        })
        .tool_with(Tool::new("two", object()), |_: Value, _| async {
            Ok(ToolResult::new([Content::text("a"), Content::text("b")]))
        })
        .tool_with(Tool::new("ask", object()), |_: Value, context| async move {
            let form = json!({"type": "object", "properties": {}});
            context
                .elicit("q", ElicitRequest::form("who", form))
                .await?;
            Ok(ToolResult::text("answered"))
        })
}

async fn connect(revision: Revision, server: Server, validation: Validation) -> Client {
    Client::builder("t", "1")
        .mode(EraMode::Pin(revision))
        .validation(validation)
        .on_elicitation(|_: FormRequest| async { Ok(ElicitResult::accept(Map::new())) })
        .connect(serve(server))
        .await
        .unwrap()
}

fn arguments(count: usize) -> Value {
    let all = (0..count).map(|n| (n.to_string(), json!(n)));
    Value::Object(all.collect())
}

/// F20: a server rejects parameters that violate the schema of the negotiated revision with -32602 and their
/// location; it only warns or skips validation if configured. Unknown members are allowed.
#[tokio::test]
async fn server_validates_requests_with_the_negotiated_revision() {
    let schemas = schemas();
    for revision in Revision::ALL {
        let fitting = arguments(max_arguments(revision));
        let too_many = arguments(max_arguments(revision) + 1);
        for validation in [Validation::Off, Validation::Warn(Arc::clone(&schemas))] {
            let client = connect(revision, server(validation), Validation::Off).await;
            client.call_tool("echo", too_many.clone()).await.unwrap();
        }
        let strict = server(Validation::Refuse(Arc::clone(&schemas)));
        let client = connect(revision, strict, Validation::Off).await;
        client.call_tool("echo", fitting).await.unwrap();
        let error = client.call_tool("echo", too_many).await.unwrap_err();
        assert_eq!(error.code(), Some(-32602), "{revision}: {error}");
        let text = error.to_string();
        let named = format!("violates `CallToolRequest` of {revision}");
        assert!(text.contains(&named), "{text}");
        assert!(text.contains("`/params/arguments`"), "{text}");
        let extra = r#"{"name": "echo", "unheard": {"of": 1}}"#;
        client.request("tools/call", Some(extra)).await.unwrap();
        let nameless = client.request("tools/call", Some("{}")).await.unwrap_err();
        assert_eq!(nameless.code(), Some(-32602));
        assert!(nameless.to_string().contains("violates"), "{nameless}");
    }
}

/// F20: an invalid result of a handler does not leave the server.
#[tokio::test]
async fn server_validates_its_own_results() {
    let schemas = schemas();
    for revision in Revision::ALL {
        let strict = server(Validation::Refuse(Arc::clone(&schemas)));
        let client = connect(revision, strict, Validation::Off).await;
        let error = client.call_tool("two", json!({})).await.unwrap_err();
        assert_eq!(error.code(), Some(-32603), "{error}");
        assert!(error.to_string().contains("`/result/content`"), "{error}");
    }
}

/// F20: a client returns a typed error for an invalid result, in every revision, and only warns or skips validation
/// if configured. A result that asks for input is validated as such.
#[tokio::test]
async fn client_validates_results_with_the_negotiated_revision() {
    let schemas = schemas();
    for revision in Revision::ALL {
        for validation in [Validation::Off, Validation::Warn(Arc::clone(&schemas))] {
            let client = connect(revision, server(Validation::Off), validation).await;
            client.call_tool("two", json!({})).await.unwrap();
        }
        let strict = Validation::Refuse(Arc::clone(&schemas));
        let client = connect(revision, server(Validation::Off), strict).await;
        client.call_tool("echo", json!({})).await.unwrap();
        let error = client.call_tool("two", json!({})).await.unwrap_err();
        let ClientError::SchemaViolation { method, source, .. } = error else {
            panic!("{revision}: {error}");
        };
        assert_eq!(method, "tools/call");
        assert_eq!(source.revision, revision);
        assert_eq!(source.definition, "CallToolResult");
        assert_eq!(source.violations[0].path, "/result/content");
        if revision >= Revision::V2025_06_18 {
            let asked = client.call_tool("ask", json!({})).await.unwrap();
            assert_eq!(asked.all_text(), "answered", "{revision}");
        }
    }
}

/// F20: invalid messages of a client are not sent.
#[tokio::test]
async fn client_validates_its_own_requests() {
    let schemas = schemas();
    for revision in Revision::ALL {
        let (link, received) = any_server(revision);
        let client = Client::builder("t", "1")
            .mode(EraMode::Pin(revision))
            .validation(Validation::Refuse(Arc::clone(&schemas)))
            .connect(link)
            .await
            .unwrap();
        let too_many = arguments(max_arguments(revision) + 1);
        let error = client.call_tool("echo", too_many).await.unwrap_err();
        let source = error.source().unwrap().to_string();
        assert!(source.contains("`/params/arguments`"), "{error}: {source}");
        client.call_tool("echo", json!({})).await.unwrap();
        assert_eq!(received.received("tools/call").len(), 1, "{revision}");
        assert!(received.received("notifications/cancelled").is_empty());
    }
}

fn any_server(revision: Revision) -> (Link, LinkServer) {
    let tools = || json!({"tools": {}});
    LinkServer::start(move |message| match message["method"].as_str() {
        Some("server/discover") => result(message, discover_result(tools())),
        Some("initialize") => {
            let version = revision.as_str();
            result(message, initialize_result(version, tools()))
        }
        Some("tools/call") => result(
            message,
            json!({"resultType": "complete", "content": [{"type": "text", "text": "t"}]}),
        ),
        _ => Vec::new(),
    })
}

/// F20: requests and notifications of a server are validated before handlers see them: an invalid request gets
/// -32602, an invalid notification is dropped.
#[tokio::test]
async fn client_validates_requests_and_notifications_of_the_server() {
    let mut call = Value::Null;
    let capabilities = json!({"tools": {}, "logging": {}});
    let (link, received) = LinkServer::legacy("2025-11-25", capabilities, move |message| {
        let note = |params: Value| json!({"jsonrpc": "2.0", "method": "notifications/message", "params": params});
        let ask = |id: &str, text: &str| {
            let form = json!({"type": "object", "properties": {}});
            let params = json!({"message": text, "requestedSchema": form});
            json!({"jsonrpc": "2.0", "id": id, "method": "elicitation/create", "params": params})
        };
        if message["method"] == "tools/call" {
            call = message.clone();
            let unnamed = note(json!({"level": "info", "data": "without logger"}));
            let known = note(json!({"level": "info", "data": "known", "logger": "l"}));
            return vec![unnamed, known, ask("long", "too long"), ask("short", "who")];
        }
        match message["id"] == "short" {
            true => result(&call, json!({"content": []})),
            false => Vec::new(),
        }
    });
    let (told, mut notes) = tokio::sync::mpsc::unbounded_channel();
    let client = Client::builder("t", "1")
        .validation(Validation::Refuse(schemas()))
        .on_elicitation(|_: FormRequest| async { Ok(ElicitResult::accept(Map::new())) })
        .on_notification(move |note| told.send(note.params.clone().unwrap()).unwrap())
        .connect(link)
        .await
        .unwrap();
    client.call_tool("t", json!({})).await.unwrap();
    let answers = received.all();
    let answer = |id: &str| answers.iter().find(|m| m["id"] == id).unwrap().clone();
    let refused = answer("long");
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    let text = refused["error"]["message"].as_str().unwrap();
    assert!(text.contains("`/params/message`"), "{text}");
    assert!(!text.contains("too long"), "{text} repeats the message");
    assert_eq!(answer("short")["result"]["action"], "accept");
    assert!(notes.recv().await.unwrap().contains("known"));
    assert!(notes.try_recv().is_err(), "one note only was passed on");
}

/// F20: where the published schemas are narrower than their source, the protocol applies.
#[test]
fn non_integer_numbers_are_valid() {
    let schemas = schemas();
    let answer = |value: Value| json!({"action": "accept", "content": {"a": value}}).to_string();
    for revision in Revision::ALL {
        let check = |value| schemas.check_result(revision, "elicitation/create", &answer(value));
        check(json!(1.5)).unwrap();
        let error = check(json!({"nested": 1})).unwrap_err();
        assert_eq!(error.violations[0].path, "/result/content/a");
    }
}

/// F20: methods that are missing in the schema of a revision are not validated.
#[test]
fn unknown_methods_are_not_validated() {
    let schemas = schemas();
    for method in ["tasks/get", "vendor/thing"] {
        let revision = Revision::V2026_07_28;
        schemas.check_params(revision, method, Some("7")).unwrap();
        schemas.check_result(revision, method, "7").unwrap();
    }
}

/// F20: a directory without the schema of a revision, and an invalid schema file, are rejected with their path.
#[test]
fn missing_or_invalid_schema_file_is_rejected() {
    let folder = folder();
    let file = folder.path().join("2025-06-18").join("schema.json");
    for bad in ["{", "{}", r#"{"$defs": {"A": {}}}"#] {
        std::fs::write(&file, bad).unwrap();
        let error = Schemas::read(folder.path()).unwrap_err().to_string();
        assert!(error.contains("2025-06-18"), "{bad}: {error}");
    }
    let outside = json!({"$schema": "http://json-schema.org/draft-07/schema#", "definitions": {
        "PingRequest": {"properties": {"method": {"const": "ping"},
            "params": {"$ref": "http://127.0.0.1:1/x"}}}}});
    std::fs::write(&file, outside.to_string()).unwrap();
    let refused = Schemas::read(folder.path());
    assert!(matches!(refused, Err(SchemaLoadError::NotASchema { .. })));
    std::fs::remove_file(&file).unwrap();
    let missing = Schemas::read(folder.path());
    assert!(matches!(missing, Err(SchemaLoadError::Unreadable { .. })));
}
