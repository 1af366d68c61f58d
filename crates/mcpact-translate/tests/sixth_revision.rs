//! A revision that is added to the tables is translated without other changes.
//!
//! The feature `pretend-revision` adds a sixth, modern revision: the fifth with the method
//! `tools/describe`, without `icons` of tools, and with -32002 for missing resources.

use mcpact_engine::capability::CapabilitySet;
use mcpact_engine::policy::Reading;
use mcpact_spec::{Era, ErrorCode, Method, Revision, Side};
use mcpact_translate::lifecycle::{Emulation, client_capabilities, server_capabilities};
use mcpact_translate::plan::{Machine, Plan, plan, request_params};
use mcpact_translate::shape::{adapt_client_result, adapt_params, error, result};

const FIFTH: Revision = Revision::V2026_07_28;
const SIXTH: Revision = Revision::V2099_01_01;
const INFO: Option<&str> = Some(r#"{"name":"s","version":"1"}"#);

/// Results that look different in the revisions.
const RESULTS: [(Method, &str); 8] = [
    (
        Method::ToolsList,
        r#"{"resultType":"complete","tools":[{"name":"t","title":"T","inputSchema":{"type":"object"},"outputSchema":{"type":"array"},"annotations":{"readOnlyHint":true},"execution":{"taskSupport":"optional"},"_meta":{"x/y":1}}],"ttlMs":5,"cacheScope":"public","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"u"}}}"#,
    ),
    (
        Method::ToolsCall,
        r#"{"resultType":"complete","content":[{"type":"audio","data":"AAA=","mimeType":"audio/wav"},{"type":"resource_link","uri":"a:b","name":"n"}],"structuredContent":[1, 2],"x":1e400}"#,
    ),
    (
        Method::ToolsCall,
        r#"{"resultType":"input_required","inputRequests":{"a":{"method":"roots/list"}},"requestState":"s"}"#,
    ),
    (
        Method::PromptsList,
        r#"{"prompts":[{"name":"p","title":"P","icons":[],"arguments":[{"name":"a","title":"A"}]}]}"#,
    ),
    (
        Method::PromptsGet,
        r#"{"resultType":"complete","messages":[{"role":"user","content":{"type":"text","text":"t","_meta":{}}}]}"#,
    ),
    (
        Method::ResourcesList,
        r#"{"resources":[{"uri":"a:b","name":"n","title":"N","annotations":{"lastModified":"d"}}]}"#,
    ),
    (
        Method::ResourcesRead,
        r#"{"contents":[{"uri":"a:b","text":"t","_meta":{}}],"ttlMs":1,"cacheScope":"private"}"#,
    ),
    (
        Method::CompletionComplete,
        r#"{"resultType":"complete","completion":{"values":[]}}"#,
    ),
];

const ERRORS: [&str; 4] = [
    r#"{"code":-32602,"message":"no","data":{"name":"a"}}"#,
    r#"{"code":-32021,"message":"m","data":{"requiredCapabilities":{"sampling":{}}}}"#,
    r#"{"code":-32042,"message":"go","data":{"elicitations":[{"url":"https://a"}]}}"#,
    r#"{"code":-32050,"message":"own"}"#,
];

const PARAMS: [(Method, &str); 3] = [
    (
        Method::ToolsCall,
        r#"{"name":"t","task":{},"inputResponses":{},"requestState":"s","_meta":{"io.modelcontextprotocol/logLevel":"info","progressToken":1,"x/y":2}}"#,
    ),
    (
        Method::CompletionComplete,
        r#"{"ref":{"type":"ref/prompt","name":"p","title":"P"},"argument":{"name":"a","value":""},"context":{}}"#,
    ),
    (Method::ResourcesRead, r#"{"uri":"a:b"}"#),
];

/// Questions of a server, and answers to them.
const QUESTIONS: [(Method, &str, &str); 3] = [
    (
        Method::ElicitationCreate,
        r#"{"mode":"form","message":"m","requestedSchema":{"type":"object","properties":{"a":{"type":"string","default":"d"}}},"task":{}}"#,
        r#"{"action":"accept","content":{"a":"b"},"_meta":{}}"#,
    ),
    (
        Method::SamplingCreateMessage,
        r#"{"messages":[{"role":"user","content":{"type":"text","text":"t"}}],"maxTokens":1,"tools":[]}"#,
        r#"{"role":"assistant","model":"m","content":[{"type":"text","text":"t"}]}"#,
    ),
    (
        Method::RootsList,
        "{}",
        r#"{"roots":[{"uri":"file:///","_meta":{}}],"_meta":{}}"#,
    ),
];

/// The method that only the sixth revision has.
const NEW: Method = Method::ToolsDescribe;

fn legacy() -> impl Iterator<Item = Revision> {
    Revision::ALL.into_iter().filter(|r| r.era() == Era::Legacy)
}

#[test]
fn messages_are_routed_as_those_of_the_fifth() {
    let methods = Method::ALL.iter().copied().filter(|method| *method != NEW);
    for method in methods.map(Some).chain([None]) {
        for old in legacy() {
            assert_eq!(plan(method, old, SIXTH), plan(method, old, FIFTH));
            assert_eq!(plan(method, SIXTH, old), plan(method, FIFTH, old));
        }
        let same = plan(method, FIFTH, FIFTH);
        assert_eq!(plan(method, SIXTH, SIXTH), same);
        let expected = |changed| if same == Plan::Pass { changed } else { same };
        assert_eq!(plan(method, FIFTH, SIXTH), expected(Plan::NewerServer));
        assert_eq!(plan(method, SIXTH, FIFTH), expected(Plan::OlderServer));
    }
}

#[test]
fn bodies_of_the_sixth_are_translated_as_those_of_the_fifth() {
    for old in legacy() {
        for (method, raw) in RESULTS {
            let to_old = result(method, raw, SIXTH, old, INFO);
            assert_eq!(to_old, result(method, raw, FIFTH, old, INFO), "{method}");
            let to_new = result(method, raw, old, SIXTH, INFO);
            assert_eq!(to_new, result(method, raw, old, FIFTH, INFO), "{method}");
        }
        for raw in ERRORS {
            let method = Some(Method::ResourcesRead);
            let params = r#"{"uri":"a:b"}"#;
            let to_old = error(method, raw, params, SIXTH, old);
            assert_eq!(to_old, error(method, raw, params, FIFTH, old), "{raw}");
            let to_new = error(method, raw, params, old, SIXTH);
            assert_eq!(to_new, error(method, raw, params, old, FIFTH), "{raw}");
        }
        for (method, raw) in PARAMS {
            let method = Some(method);
            let to_old = request_params(method, raw, SIXTH, old);
            assert_eq!(to_old, request_params(method, raw, FIFTH, old), "{raw}");
            let to_new = request_params(method, raw, old, SIXTH);
            assert_eq!(to_new, request_params(method, raw, old, FIFTH), "{raw}");
        }
    }
    for (method, question, answer) in QUESTIONS {
        let asked = adapt_params(method, question, SIXTH);
        assert_eq!(asked, adapt_params(method, question, FIFTH), "{method}");
        let answered = adapt_client_result(method, answer, SIXTH);
        assert_eq!(
            answered,
            adapt_client_result(method, answer, FIFTH),
            "{method}"
        );
    }
}

#[test]
fn bodies_pass_unchanged_between_the_modern_revisions() {
    for (from, to) in [(FIFTH, SIXTH), (SIXTH, FIFTH)] {
        for (method, raw) in RESULTS
            .into_iter()
            .filter(|(_, raw)| !raw.contains("execution"))
        {
            assert_eq!(result(method, raw, from, to, INFO).unwrap(), raw);
        }
        for raw in ERRORS {
            let passed = error(Some(Method::ResourcesRead), raw, "{}", from, to);
            assert_eq!(passed.unwrap(), raw);
        }
        for (method, raw) in PARAMS.into_iter().filter(|(_, raw)| !raw.contains("task")) {
            assert_eq!(request_params(Some(method), raw, from, to).unwrap(), raw);
        }
    }
}

/// A method is refused unless both sides have it.
#[test]
fn the_new_method_is_refused_between_the_sixth_and_any_other() {
    assert_eq!(plan(Some(NEW), SIXTH, SIXTH), Plan::Pass);
    for other in Revision::ALL.into_iter().filter(|other| *other != SIXTH) {
        let refused = Plan::Emulate(Machine::Refuse);
        assert_eq!(plan(Some(NEW), SIXTH, other), refused, "{other}");
        assert_eq!(plan(Some(NEW), other, SIXTH), refused, "{other}");
    }
}

/// No client of the sixth revision gets the member that it removed; all others keep it.
#[test]
fn the_removed_member_is_dropped_for_the_sixth_only() {
    let list = r#"{"resultType":"complete","tools":[{"name":"t","icons":[{"src":"a:b"}],"inputSchema":{"type":"object"}}],"ttlMs":5,"cacheScope":"private"}"#;
    let with_icons = [Revision::V2025_11_25, FIFTH];
    for from in with_icons {
        for to in with_icons {
            let kept = result(Method::ToolsList, list, from, to, INFO).unwrap();
            assert!(kept.contains("icons"), "{from} {to}: {kept}");
        }
    }
    for from in Revision::ALL.into_iter().filter(|from| *from != SIXTH) {
        let trimmed = result(Method::ToolsList, list, from, SIXTH, INFO).unwrap();
        assert!(!trimmed.contains("icons"), "{from}: {trimmed}");
        assert!(
            trimmed.contains(r#"{"name":"t","inputSchema""#),
            "{from}: {trimmed}"
        );
    }
}

/// A missing resource has the code of the client's revision, whatever the server's is.
#[test]
fn the_changed_code_is_translated_between_all_revisions() {
    let missing = |revision: Revision| {
        let code = match ErrorCode::ResourceNotFound.emitted_in(revision) {
            true => ErrorCode::ResourceNotFound,
            false => ErrorCode::InvalidParams,
        };
        format!(
            r#"{{"code":{},"message":"no","data":{{"uri":"a:b"}}}}"#,
            code.code()
        )
    };
    assert_ne!(missing(FIFTH), missing(SIXTH));
    let params = r#"{"uri":"a:b"}"#;
    for from in Revision::ALL {
        for to in Revision::ALL {
            let raw = missing(from);
            let adapted = error(Some(Method::ResourcesRead), &raw, params, from, to);
            assert_eq!(adapted.unwrap(), missing(to), "{from} {to}");
        }
    }
}

/// The version in `_meta` is that of the server, or it would refuse the request.
#[test]
fn a_modern_request_names_the_revision_of_its_server() {
    let request = |revision: Revision| {
        format!(
            r#"{{"name":"t","arguments":{{"n": 1e400}},"_meta":{{"io.modelcontextprotocol/protocolVersion":"{revision}","io.modelcontextprotocol/clientCapabilities":{{}},"x/y":1}}}}"#
        )
    };
    for (from, to) in [(FIFTH, SIXTH), (SIXTH, FIFTH), (SIXTH, SIXTH)] {
        let raw = request(from);
        let sent = request_params(Some(Method::ToolsCall), &raw, from, to);
        assert_eq!(sent.unwrap(), request(to));
    }
}

#[test]
fn capabilities_are_declared_as_for_the_fifth() {
    let parsed = |side, raw| CapabilitySet::parse(side, Some(raw), Reading::Strict).unwrap();
    let client = parsed(
        Side::Client,
        r#"{"roots":{"listChanged":true},"sampling":{"tools":{}},"elicitation":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}"#,
    );
    let server = parsed(
        Side::Server,
        r#"{"tools":{"listChanged":true},"logging":{},"tasks":{"requests":{"tools":{"call":{}}}},"completions":{}}"#,
    );
    let emulation = Emulation {
        tasks: true,
        ..Emulation::default()
    };
    for old in legacy() {
        let shown = client_capabilities(&client, SIXTH, old);
        assert_eq!(shown, client_capabilities(&client, FIFTH, old));
        let shown = client_capabilities(&client, old, SIXTH);
        assert_eq!(shown, client_capabilities(&client, old, FIFTH));
        let shown = server_capabilities(&server, SIXTH, old, emulation);
        assert_eq!(shown, server_capabilities(&server, FIFTH, old, emulation));
        let shown = server_capabilities(&server, old, SIXTH, emulation);
        assert_eq!(shown, server_capabilities(&server, old, FIFTH, emulation));
    }
}
