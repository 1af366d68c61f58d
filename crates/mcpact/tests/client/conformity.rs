//! Validation of messages with small schemas in the form of the official ones. The test `official_schemas` of
//! `mcpact-everything` uses the official ones.

use std::error::Error as _;
use std::sync::Arc;

use mcpact::client::{Client, ClientError, EraMode, Link, Revision};
use mcpact::conformity::{Schemas, SchemasError, Validation};
use mcpact::memory;
use mcpact::model::{Content, ElicitRequest, ElicitResult, FormRequest, Tool, ToolResult};
use mcpact::server::Server;
use mcpact_spec::Era;
use serde_json::{Map, Value, json};

use crate::line_server::{Heard, legacy, result, serve};

/// How many arguments the schema of a revision lets a call have: another number in each.
fn room(revision: Revision) -> usize {
    1 + Revision::ALL.iter().position(|r| *r == revision).unwrap()
}

/// A schema as small as it can be, in the dialect and with the names of its revision.
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
        "arguments": {"type": "object", "maxProperties": room(revision)}}});
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
    let (near, far) = memory::pair();
    tokio::spawn(server.serve(far));
    Client::builder("t", "1")
        .mode(EraMode::Pin(revision))
        .validation(validation)
        .on_elicitation(|_: FormRequest| async { Ok(ElicitResult::accept(Map::new())) })
        .connect(near)
        .await
        .unwrap()
}

fn arguments(count: usize) -> Value {
    let all = (0..count).map(|n| (n.to_string(), json!(n)));
    Value::Object(all.collect())
}

/// F20: a server refuses parameters that the schema of the very revision that was agreed on does not
/// allow with -32602 and says where they are wrong; it only warns or does not look where that is
/// wanted. Members that the schema does not know pass.
#[tokio::test]
async fn a_server_holds_requests_against_the_agreed_revision() {
    let schemas = schemas();
    for revision in Revision::ALL {
        let fitting = arguments(room(revision));
        let too_many = arguments(room(revision) + 1);
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
        let named = format!("does not fit `CallToolRequest` of {revision}");
        assert!(text.contains(&named), "{text}");
        assert!(text.contains("`/params/arguments`"), "{text}");
        let extra = r#"{"name": "echo", "unheard": {"of": 1}}"#;
        client.request("tools/call", Some(extra)).await.unwrap();
        let nameless = client.request("tools/call", Some("{}")).await.unwrap_err();
        assert_eq!(nameless.code(), Some(-32602));
        assert!(nameless.to_string().contains("does not fit"), "{nameless}");
    }
}

/// F20: a result of a handler that does not fit does not leave the server.
#[tokio::test]
async fn a_server_holds_its_own_results_against_the_schema() {
    let schemas = schemas();
    for revision in Revision::ALL {
        let strict = server(Validation::Refuse(Arc::clone(&schemas)));
        let client = connect(revision, strict, Validation::Off).await;
        let error = client.call_tool("two", json!({})).await.unwrap_err();
        assert_eq!(error.code(), Some(-32603), "{error}");
        assert!(error.to_string().contains("`/result/content`"), "{error}");
    }
}

/// F20: a client gives a typed error for a result that does not fit, in every revision, and only warns
/// or does not look where that is wanted. A result that asks is held against what asks.
#[tokio::test]
async fn a_client_holds_results_against_the_agreed_revision() {
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
        let ClientError::Misfit { method, source, .. } = error else {
            panic!("{revision}: {error}");
        };
        assert_eq!(method, "tools/call");
        assert_eq!(source.revision, revision);
        assert_eq!(source.definition, "CallToolResult");
        assert_eq!(source.faults[0].path, "/result/content");
        if revision >= Revision::V2025_06_18 {
            let asked = client.call_tool("ask", json!({})).await.unwrap();
            assert_eq!(asked.all_text(), "answered", "{revision}");
        }
    }
}

/// F20: what a client would send and must not is not sent.
#[tokio::test]
async fn a_client_holds_its_own_requests_against_the_schema() {
    let schemas = schemas();
    for revision in Revision::ALL {
        let (link, heard) = any_server(revision);
        let client = Client::builder("t", "1")
            .mode(EraMode::Pin(revision))
            .validation(Validation::Refuse(Arc::clone(&schemas)))
            .connect(link)
            .await
            .unwrap();
        let too_many = arguments(room(revision) + 1);
        let error = client.call_tool("echo", too_many).await.unwrap_err();
        let source = error.source().unwrap().to_string();
        assert!(source.contains("`/params/arguments`"), "{error}: {source}");
        client.call_tool("echo", json!({})).await.unwrap();
        assert_eq!(heard.of("tools/call").len(), 1, "{revision}");
        assert!(heard.of("notifications/cancelled").is_empty());
    }
}

fn any_server(revision: Revision) -> (Link, Heard) {
    let tools = || json!({"tools": {}});
    serve(move |message| match message["method"].as_str() {
        Some("server/discover") => result(message, crate::line_server::discovered(tools())),
        Some("initialize") => {
            let version = revision.as_str();
            result(message, crate::line_server::initialized(version, tools()))
        }
        Some("tools/call") => result(
            message,
            json!({"resultType": "complete", "content": [{"type": "text", "text": "t"}]}),
        ),
        _ => Vec::new(),
    })
}

/// F20: what a server asks and tells is checked before a handler sees it: a question that does not fit
/// is -32602, a notification is dropped.
#[tokio::test]
async fn a_client_holds_questions_and_notes_against_the_schema() {
    let mut call = Value::Null;
    let capabilities = json!({"tools": {}, "logging": {}});
    let (link, heard) = legacy("2025-11-25", capabilities, move |message| {
        let note = |params: Value| json!({"jsonrpc": "2.0", "method": "notifications/message", "params": params});
        let ask = |id: &str, text: &str| {
            let form = json!({"type": "object", "properties": {}});
            let params = json!({"message": text, "requestedSchema": form});
            json!({"jsonrpc": "2.0", "id": id, "method": "elicitation/create", "params": params})
        };
        if message["method"] == "tools/call" {
            call = message.clone();
            let nobody = note(json!({"level": "info", "data": "of nobody"}));
            let known = note(json!({"level": "info", "data": "known", "logger": "l"}));
            return vec![nobody, known, ask("long", "too long"), ask("short", "who")];
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
    let answers = heard.all();
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

/// F20: where the published schemas are narrower than what they are generated from, what the protocol
/// allows passes.
#[test]
fn numbers_are_not_only_integers() {
    let schemas = schemas();
    let answer = |value: Value| json!({"action": "accept", "content": {"a": value}}).to_string();
    for revision in Revision::ALL {
        let check = |value| schemas.check_result(revision, "elicitation/create", &answer(value));
        check(json!(1.5)).unwrap();
        let misfit = check(json!({"nested": 1})).unwrap_err();
        assert_eq!(misfit.faults[0].path, "/result/content/a");
    }
}

/// F20: methods that the schema of a revision does not have pass; they are another one's or an
/// extension's.
#[test]
fn unknown_methods_pass() {
    let schemas = schemas();
    for method in ["tasks/get", "vendor/thing"] {
        let revision = Revision::V2026_07_28;
        schemas.check_params(revision, method, Some("7")).unwrap();
        schemas.check_result(revision, method, "7").unwrap();
    }
}

/// F20: a folder without the schema of a revision, and a file that is none, are refused by name.
#[test]
fn a_folder_must_hold_every_revision() {
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
    assert!(matches!(refused, Err(SchemasError::NoSchema { .. })));
    std::fs::remove_file(&file).unwrap();
    let missing = Schemas::read(folder.path());
    assert!(matches!(missing, Err(SchemasError::Unreadable { .. })));
}
