use super::*;
use Revision::{V2024_11_05, V2025_03_26, V2025_06_18, V2025_11_25, V2026_07_28};

/// XR-01, XR-02, XR-03: whole results, as an older client gets them.
#[test]
fn results_for_legacy_clients_depend_on_the_method() {
    let cells = [
        (
            "tools/list",
            Method::ToolsList,
            r#"{"tools":[{"name":"a","inputSchema":{"type": "object"}},{"name":"b","icons":[]}],"resultType":"complete","ttlMs":5,"cacheScope":"public","nextCursor":"c","_meta":{"io.modelcontextprotocol/serverInfo":{},"v/k":1}}"#,
            V2025_06_18,
            r#"{"tools":[{"name":"a","inputSchema":{"type": "object"}},{"name":"b"}],"nextCursor":"c","_meta":{"v/k":1}}"#,
        ),
        (
            "tools/list with the schema of an array",
            Method::ToolsList,
            r#"{"tools":[{"name":"a","outputSchema":{"type":"array"}}]}"#,
            V2025_11_25,
            r#"{"tools":[{"name":"a","outputSchema":{"type":"object","properties":{"result":{"type":"array"}},"required":["result"]}}]}"#,
        ),
        (
            "tools/call with the content of that schema",
            Method::ToolsCall,
            r#"{"content":[],"structuredContent":[1],"resultType":"complete"}"#,
            V2025_11_25,
            r#"{"content":[{"type":"text","text":"[1]"}],"structuredContent":{"result":[1]}}"#,
        ),
        (
            "tools/call",
            Method::ToolsCall,
            r#"{"content":[{"type":"resource_link","uri":"u","name":"n"}],"structuredContent":{"a":1},"isError":false}"#,
            V2025_03_26,
            r#"{"content":[{"type":"text","text":"[n](u)"},{"type":"text","text":"{\"a\":1}"}],"isError":false}"#,
        ),
        (
            "prompts/list",
            Method::PromptsList,
            r#"{"prompts":[{"name":"p","title":"P"}]}"#,
            V2025_03_26,
            r#"{"prompts":[{"name":"p"}]}"#,
        ),
        (
            "prompts/get",
            Method::PromptsGet,
            r#"{"messages":[{"role":"user","content":{"type":"text","text":"t","_meta":{}}}]}"#,
            V2024_11_05,
            r#"{"messages":[{"role":"user","content":{"type":"text","text":"t"}}]}"#,
        ),
        (
            "resources/list",
            Method::ResourcesList,
            r#"{"resources":[{"uri":"u","name":"n","title":"t"}]}"#,
            V2024_11_05,
            r#"{"resources":[{"uri":"u","name":"n"}]}"#,
        ),
        (
            "resources/templates/list",
            Method::ResourceTemplatesList,
            r#"{"resourceTemplates":[{"uriTemplate":"u","name":"n","icons":[]}]}"#,
            V2025_06_18,
            r#"{"resourceTemplates":[{"uriTemplate":"u","name":"n"}]}"#,
        ),
        (
            "resources/read",
            Method::ResourcesRead,
            r#"{"contents":[{"uri":"u","text":"t","_meta":{}}],"ttlMs":0,"cacheScope":"private"}"#,
            V2025_03_26,
            r#"{"contents":[{"uri":"u","text":"t"}]}"#,
        ),
        (
            "completion/complete",
            Method::CompletionComplete,
            r#"{"completion":{"values":[]},"resultType":"complete"}"#,
            V2025_11_25,
            r#"{"completion":{"values":[]}}"#,
        ),
        (
            "others keep even their white space",
            Method::TasksGet,
            r#"{ "resultType":"complete" }"#,
            V2025_11_25,
            r#"{ "resultType":"complete" }"#,
        ),
    ];
    for (name, method, raw, to, expected) in cells {
        assert_eq!(
            result_to_legacy(method, raw, to).unwrap(),
            expected,
            "{name}"
        );
    }
}

#[test]
fn what_fits_is_borrowed() {
    let raw = "{ \"content\" : [ {\"type\":\"text\",\"text\":\"\\u00e9\"} ] }";
    for to in Revision::ALL {
        let adapted = result_to_legacy(Method::ToolsCall, raw, to).unwrap();
        assert!(
            matches!(adapted, Cow::Borrowed(same) if same == raw),
            "{to}"
        );
    }
}

#[test]
fn a_question_is_no_answer() {
    for kind in ["input_required", "task", "vendor"] {
        let raw = alloc::format!(r#"{{"resultType":"{kind}"}}"#);
        let adapted = result_to_legacy(Method::ToolsCall, &raw, V2025_11_25);
        assert_eq!(adapted, Err(ShapeError::Unfinished), "{kind}");
        assert!(result_to_legacy(Method::ToolsCall, &raw, V2026_07_28).is_ok());
    }
    let faulty = result_to_legacy(Method::ToolsCall, "[]", V2025_11_25);
    assert!(matches!(faulty, Err(ShapeError::Malformed(_))));
}

/// XR-10, XR-12, BB-02, BB-27: a modern client gets every member that its revision requires.
#[test]
fn results_for_modern_clients_depend_on_the_method() {
    let info = Some(r#"{"name":"s","version":"1"}"#);
    let cells = [
        (
            "cacheable",
            Method::ToolsList,
            r#"{"tools":[{"name":"a","execution":{}}]}"#,
            V2026_07_28,
            None,
            r#"{"resultType":"complete","tools":[{"name":"a"}],"ttlMs":0,"cacheScope":"private"}"#,
        ),
        (
            "not cacheable, with identity",
            Method::ToolsCall,
            r#"{"content":[],"_meta":{"v/k":1}}"#,
            V2026_07_28,
            info,
            r#"{"resultType":"complete","content":[],"_meta":{"v/k":1,"io.modelcontextprotocol/serverInfo":{"name":"s","version":"1"}}}"#,
        ),
        (
            "what is there stays",
            Method::ResourcesRead,
            r#"{"contents":[],"resultType":"complete","ttlMs":7,"cacheScope":"public"}"#,
            V2026_07_28,
            None,
            r#"{"contents":[],"resultType":"complete","ttlMs":7,"cacheScope":"public"}"#,
        ),
        (
            "a legacy server neither asks nor starts a task this way",
            Method::ToolsCall,
            r#"{"resultType":"input_required","content":[]}"#,
            V2026_07_28,
            None,
            r#"{"resultType":"complete","content":[]}"#,
        ),
        (
            "what is there but means nothing does not",
            Method::ResourcesRead,
            r#"{"contents":[],"resultType":null,"ttlMs":"7","cacheScope":1}"#,
            V2026_07_28,
            None,
            r#"{"resultType":"complete","contents":[],"ttlMs":0,"cacheScope":"private"}"#,
        ),
        (
            "tasks moved to an extension",
            Method::ToolsCall,
            r#"{"content":[],"_meta":{"io.modelcontextprotocol/related-task":{}},"resultType":"complete"}"#,
            V2026_07_28,
            None,
            r#"{"content":[],"resultType":"complete"}"#,
        ),
        (
            "a client's answer has no type",
            Method::RootsList,
            r#"{"roots":[]}"#,
            V2026_07_28,
            info,
            r#"{"roots":[]}"#,
        ),
        (
            "no revision before has types",
            Method::ToolsList,
            r#"{"tools":[]}"#,
            V2025_11_25,
            info,
            r#"{"tools":[]}"#,
        ),
    ];
    for (name, method, raw, to, server_info, expected) in cells {
        let adapted = result_to_modern(method, raw, to, server_info).unwrap();
        assert_eq!(adapted, expected, "{name}");
        let again = result_to_modern(method, &adapted, to, server_info).unwrap();
        assert!(matches!(again, Cow::Borrowed(_)), "{name}: twice is once");
    }
    assert!(result_to_modern(Method::ToolsCall, "{}", V2026_07_28, Some("{")).is_err());
}
