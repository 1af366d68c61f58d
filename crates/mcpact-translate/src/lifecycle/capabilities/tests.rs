use super::*;
use Revision::{V2024_11_05, V2025_03_26, V2025_06_18, V2025_11_25, V2026_07_28};

fn set(owner: Side, raw: &str) -> CapabilitySet {
    CapabilitySet::lenient(owner, Some(raw))
}

/// BA-24: an extension that a legacy client must not use is not declared for it either.
#[test]
fn a_server_hears_what_the_client_declared_and_can_be_asked() {
    const TASKS: &str = r#"{"extensions":{"io.modelcontextprotocol/tasks":{},"a/b":{"x":1}}}"#;
    const CORE: &str = r#"{"tasks":{"requests":{"elicitation":{"create":{}}}}}"#;
    let cells = [
        (
            "roots lose their notices",
            r#"{"roots":{"listChanged":true}}"#,
            V2025_06_18,
            V2026_07_28,
            r#"{"roots":{}}"#,
        ),
        (
            "roots keep them within the era",
            r#"{"roots":{"listChanged":true}}"#,
            V2024_11_05,
            V2025_11_25,
            r#"{"roots":{"listChanged":true}}"#,
        ),
        (
            "a modern client never tells",
            r#"{"roots":{"listChanged":true}}"#,
            V2026_07_28,
            V2025_11_25,
            r#"{"roots":{}}"#,
        ),
        (
            "sampling as it is",
            r#"{"sampling":{"tools":{},"context":{}}}"#,
            V2025_11_25,
            V2026_07_28,
            r#"{"sampling":{"tools":{},"context":{}}}"#,
        ),
        (
            "sampling before tools",
            r#"{"sampling":{"tools":{}}}"#,
            V2025_06_18,
            V2026_07_28,
            r#"{"sampling":{}}"#,
        ),
        (
            "forms stay unspelled",
            r#"{"elicitation":{}}"#,
            V2025_06_18,
            V2026_07_28,
            r#"{"elicitation":{}}"#,
        ),
        (
            "forms and URLs",
            r#"{"elicitation":{"form":{},"url":{}}}"#,
            V2025_11_25,
            V2026_07_28,
            r#"{"elicitation":{"form":{},"url":{}}}"#,
        ),
        (
            "before elicitation",
            r#"{"elicitation":{}}"#,
            V2025_03_26,
            V2026_07_28,
            "{}",
        ),
        (
            "only URLs to the newest legacy shape",
            r#"{"elicitation":{"url":{}}}"#,
            V2026_07_28,
            V2025_11_25,
            r#"{"elicitation":{"url":{}}}"#,
        ),
        (
            "only URLs where there are only forms",
            r#"{"elicitation":{"url":{}}}"#,
            V2026_07_28,
            V2025_06_18,
            "{}",
        ),
        (
            "the tasks extension of a legacy client",
            TASKS,
            V2025_11_25,
            V2026_07_28,
            r#"{"extensions":{"a/b":{"x":1}}}"#,
        ),
        (
            "the tasks extension to a legacy server",
            TASKS,
            V2026_07_28,
            V2025_11_25,
            r#"{"extensions":{"a/b":{"x":1}}}"#,
        ),
        (
            "the tasks extension among modern peers",
            TASKS,
            V2026_07_28,
            V2026_07_28,
            TASKS,
        ),
        ("tasks of the client", CORE, V2025_11_25, V2026_07_28, "{}"),
        (
            "tasks of the client, known to both",
            CORE,
            V2025_11_25,
            V2025_11_25,
            CORE,
        ),
        (
            "opaque keys to a legacy server",
            r#"{"vendor":{"a":1.50},"experimental":{"x":true},"roots":{},"extensions":{"a/b":{}}}"#,
            V2026_07_28,
            V2025_11_25,
            r#"{"roots":{},"vendor":{"a":1.50},"experimental":{"x":true},"extensions":{"a/b":{}}}"#,
        ),
        (
            "opaque keys to a modern server",
            r#"{"experimental":{"x":{}},"vendor":{}}"#,
            V2025_11_25,
            V2026_07_28,
            "{}",
        ),
        (
            "keys that declare nothing",
            r#"{"experimental":7,"vendor":null}"#,
            V2025_11_25,
            V2025_11_25,
            "{}",
        ),
    ];
    for (name, raw, from, to, expected) in cells {
        let told = client_capabilities(&set(Side::Client, raw), from, to);
        assert_eq!(told, set(Side::Client, expected), "{name}");
    }
}

#[test]
fn a_client_hears_what_the_server_declared_and_what_is_hosted_here() {
    const ALL: &str = r#"{"logging":{},"prompts":{"listChanged":true},"resources":{"subscribe":true},"tools":{}}"#;
    const TASKS: &str = r#"{"tools":{},"tasks":{"cancel":{},"requests":{"tools":{"call":{}}}}}"#;
    const EXTENSION: &str = r#"{"tools":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}"#;
    const LISTED: &str =
        r#"{"tools":{},"tasks":{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}}"#;
    let none = Emulation::default();
    let tasks = Emulation {
        tasks: true,
        ..none
    };
    let listed = Emulation {
        task_list: true,
        ..tasks
    };
    let completions = Emulation {
        completions: true,
        ..none
    };
    let cells = [
        ("the same", ALL, V2026_07_28, V2024_11_05, none, ALL),
        (
            "the same, upwards",
            ALL,
            V2024_11_05,
            V2026_07_28,
            none,
            ALL,
        ),
        (
            "completions are not named yet",
            r#"{"completions":{}}"#,
            V2026_07_28,
            V2024_11_05,
            none,
            "{}",
        ),
        (
            "completions are",
            r#"{"completions":{}}"#,
            V2026_07_28,
            V2025_03_26,
            none,
            r#"{"completions":{}}"#,
        ),
        (
            "completions that are known of",
            "{}",
            V2024_11_05,
            V2026_07_28,
            completions,
            r#"{"completions":{}}"#,
        ),
        (
            "completions that are not",
            "{}",
            V2024_11_05,
            V2026_07_28,
            none,
            "{}",
        ),
        (
            "hosted tasks",
            EXTENSION,
            V2026_07_28,
            V2025_11_25,
            tasks,
            r#"{"tools":{},"tasks":{"cancel":{},"requests":{"tools":{"call":{}}}}}"#,
        ),
        (
            "hosted tasks that can be listed",
            r#"{"tools":{}}"#,
            V2026_07_28,
            V2025_11_25,
            listed,
            LISTED,
        ),
        (
            "hosted without an identity",
            r#"{"tools":{}}"#,
            V2026_07_28,
            V2025_06_18,
            tasks,
            r#"{"tools":{}}"#,
        ),
        (
            "no tools, no tasks",
            "{}",
            V2026_07_28,
            V2025_11_25,
            tasks,
            "{}",
        ),
        (
            "core tasks, adapted",
            TASKS,
            V2025_11_25,
            V2026_07_28,
            tasks,
            EXTENSION,
        ),
        (
            "core tasks, hidden",
            TASKS,
            V2025_11_25,
            V2026_07_28,
            none,
            r#"{"tools":{}}"#,
        ),
        (
            "core tasks, adapted",
            TASKS,
            V2025_11_25,
            V2025_06_18,
            tasks,
            r#"{"tools":{}}"#,
        ),
        (
            "core tasks, known to both",
            TASKS,
            V2025_11_25,
            V2025_11_25,
            none,
            TASKS,
        ),
        (
            "core tasks before their time",
            TASKS,
            V2025_06_18,
            V2025_11_25,
            none,
            r#"{"tools":{}}"#,
        ),
        (
            "the extension among modern peers",
            EXTENSION,
            V2026_07_28,
            V2026_07_28,
            none,
            EXTENSION,
        ),
        (
            "what only servers say",
            r#"{"experimental":{"x":{}},"vendor":{"y":1}}"#,
            V2025_11_25,
            V2026_07_28,
            none,
            r#"{"experimental":{"x":{}},"vendor":{"y":1}}"#,
        ),
    ];
    for (name, raw, from, to, emulation, expected) in cells {
        let shown = server_capabilities(&set(Side::Server, raw), from, to, emulation);
        assert_eq!(shown, set(Side::Server, expected), "{name}");
    }
}

/// BB-24: a server that would offer forms to a client that has none meets it again without.
#[test]
fn a_misread_declaration_is_taken_back() {
    let url = r#"{"roots":{},"elicitation":{"url":{}},"extensions":{"a/b":{}}}"#;
    let both = r#"{"elicitation":{"form":{},"url":{}}}"#;
    let rest = r#"{"roots":{},"extensions":{"a/b":{}}}"#;
    let cells = [
        ("only forms are known", url, V2025_06_18, Some(rest)),
        ("both are known", url, V2025_11_25, None),
        ("nothing is known", url, V2025_03_26, None),
        ("forms are meant", both, V2025_06_18, None),
        ("nothing is declared", "{}", V2025_06_18, None),
    ];
    for (name, raw, negotiated, expected) in cells {
        let again = without_elicitation(&set(Side::Client, raw), negotiated);
        assert_eq!(again, expected.map(|raw| set(Side::Client, raw)), "{name}");
    }
}

#[test]
fn the_extension_is_added_once() {
    let told = with_tasks(&set(Side::Client, r#"{"roots":{}}"#));
    let expected = r#"{"roots":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}"#;
    assert_eq!(told, set(Side::Client, expected));
    assert_eq!(with_tasks(&told), told);
}
