use proptest::prelude::*;

use super::*;

fn entry(url: &str) -> Entry {
    Entry::default().with("url", url)
}

fn json(text: &str) -> Edited {
    set_entry(
        "a.json",
        text,
        &["mcpServers"],
        "mcpact",
        &entry("http://a/mcp"),
    )
    .unwrap()
}

/// The entry is placed at the end of its table, in the style of the file, and every other byte stays.
#[test]
fn entry_is_added_in_the_style_of_the_file() {
    for (before, after) in [
        (
            "",
            "{\n  \"mcpServers\": {\n    \"mcpact\": {\n      \"url\": \"http://a/mcp\"\n    }\n  }\n}\n",
        ),
        (
            "// none yet",
            "// none yet\n{\n  \"mcpServers\": {\n    \"mcpact\": {\n      \"url\": \"http://a/mcp\"\n    }\n  }\n}\n",
        ),
        (
            "{}",
            "{\n  \"mcpServers\": {\n    \"mcpact\": {\n      \"url\": \"http://a/mcp\"\n    }\n  }\n}",
        ),
        (
            "{\"a\": 1}",
            "{\"a\": 1, \"mcpServers\": { \"mcpact\": { \"url\": \"http://a/mcp\" } }}",
        ),
        (
            "{ \"mcpServers\": { \"a\": {}, } }\n",
            "{ \"mcpServers\": { \"a\": {}, \"mcpact\": { \"url\": \"http://a/mcp\" }, } }\n",
        ),
        (
            "{\n\t\"mcpServers\": {\n\t}\n}\n",
            "{\n\t\"mcpServers\": {\n\t\t\"mcpact\": {\n\t\t\t\"url\": \"http://a/mcp\"\n\t\t}\n\t}\n}\n",
        ),
        (
            "{\n    \"mcpServers\": {\n\n        \"a\": {} // mine\n\n        // \"b\": {}\n    },\n    \"z\": 1\n}\n",
            "{\n    \"mcpServers\": {\n\n        \"a\": {}, // mine\n        \"mcpact\": {\n            \"url\": \"http://a/mcp\"\n        }\n\n        // \"b\": {}\n    },\n    \"z\": 1\n}\n",
        ),
        (
            "{\n  \"mcpServers\": {\n    \"a\": {}, /* one */ // two\n  }\n}",
            "{\n  \"mcpServers\": {\n    \"a\": {}, /* one */ // two\n    \"mcpact\": {\n      \"url\": \"http://a/mcp\"\n    },\n  }\n}",
        ),
        (
            "{\n  \"mcpServers\": { // none\n  }\n}",
            "{\n  \"mcpServers\": { // none\n    \"mcpact\": {\n      \"url\": \"http://a/mcp\"\n    }\n  }\n}",
        ),
        (
            "\u{feff}{\r\n  \"mcpServers\": {\r\n    \"a\": {}\r\n  }\r\n}\r\n",
            "\u{feff}{\r\n  \"mcpServers\": {\r\n    \"a\": {},\r\n    \"mcpact\": {\r\n      \"url\": \"http://a/mcp\"\r\n    }\r\n  }\r\n}\r\n",
        ),
        (
            "{\n  \"mcpServers\": {\n    \"a\": {}\n  , \"b\": {} }\n}",
            "{\n  \"mcpServers\": {\n    \"a\": {}\n  , \"b\": {},\n    \"mcpact\": {\n      \"url\": \"http://a/mcp\"\n    } }\n}",
        ),
    ] {
        let edited = json(before);
        assert_eq!(edited.text, after);
        assert_eq!(edited.change, EntryChange::Added, "{before}");
        let again = json(&edited.text);
        assert_eq!(
            (again.text, again.change),
            (edited.text, EntryChange::Unchanged)
        );
    }
}

/// Only the value is replaced. Members added to an entry by the user do not count as a difference.
#[test]
fn other_entry_of_the_name_is_replaced() {
    let text = "{\n  \"mcpServers\": {\n    \"mcpact\": /* old */ { \"command\": \"x\" }, // mine\n    \"b\": 1\n  }\n}";
    let edited = json(text);
    let new = "{\n      \"url\": \"http://a/mcp\"\n    }";
    assert_eq!(edited.text, text.replace("{ \"command\": \"x\" }", new));
    assert_eq!(edited.change, EntryChange::Replaced);

    let more = "{\"mcpServers\": {\"mcpact\": {\"disabled\": true, \"url\": \"http://a/mcp\"}}}";
    assert_eq!(json(more).change, EntryChange::Unchanged);
    let inline = "{\"mcpServers\": {\"mcpact\": null}}";
    assert_eq!(
        json(inline).text,
        "{\"mcpServers\": {\"mcpact\": { \"url\": \"http://a/mcp\" }}}"
    );
}

#[test]
fn broken_files_are_refused() {
    let set = |file: &str, text: &str| {
        let set = set_entry(file, text, &["mcpServers"], "mcpact", &Entry::default());
        set.map_err(|problem| problem.message)
    };
    for (file, text, expected) in [
        ("a.json", "{\"mcpServers\": {", "invalid JSON"),
        ("a.json", "[]", "the config must be a table, not a list"),
        (
            "a.json",
            "{\"mcpServers\": []}",
            "`mcpServers` must be a table, not a list",
        ),
        (
            "a.json",
            "{\"mcpServers\": null}",
            "`mcpServers` must be a table, not null",
        ),
        ("a.json", "{\"a\": 1, \"a\": 2}", "duplicate key `a`"),
        ("a.toml", "[mcpServers", "invalid TOML"),
        (
            "a.toml",
            "mcpServers = 1\n",
            "`mcpServers` must be a table, not a number",
        ),
    ] {
        let told = set(file, text).unwrap_err();
        assert!(told.contains(expected), "{text}: {told}");
    }
}

fn toml(text: &str, name: &str) -> Edited {
    let entry = Entry::default()
        .with("command", "npx")
        .with(
            "args",
            EntryValue::Texts(vec![String::from("-y"), String::from("x")]),
        )
        .with("env", EntryValue::Table(Entry::default().with("K", "${K}")));
    set_entry("mcpact.toml", text, &["servers"], name, &entry).unwrap()
}

const TABLE: &str =
    "[servers.new]\ncommand = \"npx\"\nargs = [\"-y\", \"x\"]\nenv = { K = \"${K}\" }\n";

#[test]
fn toml_table_is_added() {
    let crlf = |text: &str| text.replace('\n', "\r\n");
    for (before, after) in [
        (String::new(), TABLE.to_owned()),
        (
            String::from("# my servers\n"),
            format!("# my servers\n\n{TABLE}"),
        ),
        (
            String::from("model = 'x' # mine"),
            format!("model = 'x' # mine\n\n{TABLE}"),
        ),
        (
            String::from(
                "[servers.a] # first\ncommand   = 'a'\n\n# the gateway\n[gateway]\nsse = true\n",
            ),
            format!(
                "[servers.a] # first\ncommand   = 'a'\n\n{TABLE}\n# the gateway\n[gateway]\nsse = true\n"
            ),
        ),
        (
            String::from("[servers.a]\ncommand = 'a'\n\n# [servers.b]\n# command = 'b'\n"),
            format!("[servers.a]\ncommand = 'a'\n\n# [servers.b]\n# command = 'b'\n\n{TABLE}"),
        ),
        (
            crlf("\u{feff}[servers.a]\ncommand = 'a'\n"),
            crlf(&format!("\u{feff}[servers.a]\ncommand = 'a'\n\n{TABLE}")),
        ),
        (
            // Line ends may differ within a file.
            String::from("[servers.a]\r\ncommand = 'a'\n"),
            format!(
                "[servers.a]\r\ncommand = 'a'\n{}",
                crlf(&format!("\n{TABLE}"))
            ),
        ),
    ] {
        let edited = toml(&before, "new");
        assert_eq!(edited.text, after);
        assert_eq!(edited.change, EntryChange::Added);
        let again = toml(&edited.text, "new");
        assert_eq!(
            (again.text, again.change),
            (edited.text, EntryChange::Unchanged)
        );
    }
}

#[test]
fn toml_table_is_replaced_in_place() {
    let text = "# first\n[servers.new]\nurl = 'x'\n\n[servers.new.headers]\nA = 'b'\n\n# second\n[servers.z]\nurl = 'z'\n";
    let edited = toml(text, "new");
    assert_eq!(
        edited.text,
        format!("# first\n{TABLE}\n# second\n[servers.z]\nurl = 'z'\n")
    );
    assert_eq!(edited.change, EntryChange::Replaced);
    let inline = "servers = { a = { url = 'x' } } # all\n";
    let edited = toml(inline, "new").text;
    assert!(
        edited.starts_with("servers = { a = { url = 'x' }"),
        "{edited}"
    );
    assert!(edited.trim_end().ends_with("# all"), "{edited}");
    assert_eq!(entry_names("a.toml", &edited, &["servers"]), ["a", "new"]);
}

#[test]
fn toml_table_is_removed_with_its_comment() {
    let removed =
        |text: &str, name: &str| remove_entry("mcpact.toml", text, "servers", name).unwrap();
    let first =
        "# my config\n\n# about a\n[servers.a]\ncommand = 'a'\n\n[servers.a.env]\nK = 'v'\n";
    let second = "\n# about b\n[servers.b]\r\nurl   = 'b'\n";
    let both = format!("{first}{second}");
    assert_eq!(
        removed(&both, "a").unwrap(),
        format!("# my config\n{second}")
    );
    assert_eq!(removed(&both, "b").unwrap(), first);
    assert_eq!(removed(&both, "c"), None);
    assert_eq!(removed("", "c"), None);
    let dotted = "servers.a.url = 'a'\nservers.b.url = 'b'\n";
    assert_eq!(removed(dotted, "a").unwrap(), "servers.b.url = 'b'\n");
}

#[test]
fn names_of_entries_are_listed() {
    let text = "{ // mine\n \"mcp\": {\"servers\": {\"a\": {}, \"b\": {},}}}";
    assert_eq!(entry_names("a.json", text, &["mcp", "servers"]), ["a", "b"]);
    assert!(entry_names("a.json", text, &["mcpServers"]).is_empty());
    assert!(entry_names("a.json", "{", &["mcpServers"]).is_empty());
}

/// JSON with comments and varied whitespace.
fn document() -> impl Strategy<Value = String> {
    let gap = prop_oneof![
        Just(""),
        Just(" "),
        Just("\n"),
        Just("\r\n  "),
        Just("\t"),
        Just(" // \"a\": {},\n"),
        Just("/* } */"),
        Just("\n\n  /* , */ // x\r\n"),
    ];
    let leaf = prop_oneof![
        Just(String::from("1")),
        Just(String::from("null")),
        Just(String::from("\"a // b\"")),
        Just(String::from("\"\\\"}\"")),
    ];
    let object = leaf.prop_recursive(3, 24, 4, {
        let gap = gap.clone();
        move |inner| {
            let gaps = proptest::collection::vec(gap.clone(), 5);
            let members = proptest::collection::vec((gaps, inner), 0..4);
            (members, gap.clone(), any::<bool>()).prop_map(|(members, last, has_comma)| {
                let mut text = String::from("{");
                let count = members.len();
                for (at, (gaps, value)) in members.into_iter().enumerate() {
                    // The names are unique; the second one is the table of servers.
                    let key = ["a", "mcpServers", "mcpact", "\\u0062"][at];
                    let [one, two, three, four, five] = gaps[..] else {
                        return text;
                    };
                    text += &format!("{one}\"{key}\"{two}:{three}{value}{four}");
                    if at + 1 < count || has_comma {
                        text += &format!(",{five}");
                    }
                }
                text + last + "}"
            })
        }
    });
    (gap.clone(), object, gap)
        .prop_map(|(before, object, after)| format!("{before}{object}{after}"))
}

/// Returns whether the characters of a text appear in another one in this order.
fn is_subsequence(text: &str, of: &str) -> bool {
    let mut rest = of.chars();
    text.chars().all(|wanted| rest.any(|c| c == wanted))
}

proptest! {
    /// An added entry is the only difference: no byte is lost, all other values stay, and a second edit changes nothing.
    #[test]
    fn every_document_keeps_its_bytes(text in document()) {
        let new = entry("http://a/mcp");
        let set = |text: &str| set_entry("a.json", text, &["mcpServers"], "mcpact", &new);
        // Values other than tables are refused.
        if let Ok(edited) = set(&text) {
            if edited.change == EntryChange::Added {
                prop_assert!(is_subsequence(&text, &edited.text), "{}\n---\n{}", text, edited.text);
            }
            let names = entry_names("a.json", &edited.text, &["mcpServers"]);
            prop_assert!(names.iter().any(|name| name == "mcpact"), "{}", edited.text);
            let again = set(&edited.text).map_err(|problem| TestCaseError::fail(problem.message))?;
            prop_assert_eq!(again.change, EntryChange::Unchanged);
            for path in [&[][..], &["mcpServers"]] {
                let after = entry_names("a.json", &edited.text, path);
                let before = entry_names("a.json", &text, path);
                prop_assert!(before.iter().all(|name| after.contains(name)));
            }
        }
    }
}
