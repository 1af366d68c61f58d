use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use mcpact_spec::Method;
use proptest::prelude::*;

use super::*;

fn call(raw: &str) -> Result<(), String> {
    check(raw, Method::ToolsCall.param_keys()).map_err(|error| error.to_string())
}

fn fault(raw: &str) -> AmbiguousKey {
    check(raw, Method::ToolsCall.param_keys()).unwrap_err()
}

#[test]
fn a_key_twice_is_refused_at_any_depth() {
    for (raw, path) in [
        (r#"{"name":"a","name":"b"}"#, "name"),
        (
            r#"{"arguments":{"path":"/etc/shadow","path":"/safe"}}"#,
            "arguments.path",
        ),
        (
            r#"{"arguments":{"path":1,"p\u0061th":2}}"#,
            "arguments.path",
        ),
        (
            r#"{"arguments":{"\u0070\u0061th":1,"path":2}}"#,
            "arguments.path",
        ),
        (
            r#"{"arguments":{"files":[{"a":1},[[{"path":1,"x":[{}],"path":1}]]]}}"#,
            "arguments.files[1][0][0].path",
        ),
        (
            r#"{"arguments":[[1,2],{"é":1,"\u00e9":2}]}"#,
            "arguments[1].é",
        ),
        (r#"{"arguments":{"":1,"":2}}"#, r#"arguments."""#),
        (r#"{"arguments":{"a.b":1,"a.b":2}}"#, r#"arguments."a.b""#),
        (r#"{"a":{"😀":1,"\ud83d\ude00":2}}"#, "a.\"😀\""),
        (r#"{"a":{"\ud800":1,"\ud800":2}}"#, "a.\"\u{fffd}\""),
        (r#"{"a":{"\/":1,"/":2}}"#, "a./"),
        (r#"{"a":{"\n":1,"\u000a":2}}"#, r#"a."\n""#),
        (r#"{"_meta":{"x":{"y":0,"y":0}}}"#, "_meta.x.y"),
        (
            r#"{"a":1,"b":2,"c":3,"d":4,"e":5,"f":6,"g":7,"h":8,"i":9,"\u0061":10}"#,
            "a",
        ),
    ] {
        assert_eq!(call(raw), Err(format!("duplicate key `{path}`")), "{raw}");
    }
}

#[test]
fn another_spelling_of_a_protocol_key_is_refused() {
    for (raw, key, name) in [
        (r#"{"name":"a","Name":"b"}"#, "Name", "name"),
        (r#"{"NAME":"a"}"#, "NAME", "name"),
        (r#"{"name":"a","Arguments":{}}"#, "Arguments", "arguments"),
        (
            r#"{"name":"a","argument\u017f":{}}"#,
            "argumentſ",
            "arguments",
        ),
        (r#"{"name":"a","argumentſ":{}}"#, "argumentſ", "arguments"),
        (r#"{"name":"a","\u004eame":{}}"#, "Name", "name"),
        (r#"{"taſk":{}}"#, "taſk", "task"),
        (r#"{"tas\u212a":{}}"#, "tas\u{212a}", "task"),
        (r#"{"_Meta":{}}"#, "_Meta", "_meta"),
        (
            r#"{"_meta":{"ProgressToken":1}}"#,
            "ProgressToken",
            "progressToken",
        ),
        (
            r#"{"_meta":{"progreßToken":1}}"#,
            "progreßToken",
            "progressToken",
        ),
        (
            r#"{"_meta":{"IO.modelcontextprotocol/protocolVersion":1}}"#,
            "IO.modelcontextprotocol/protocolVersion",
            "io.modelcontextprotocol/protocolVersion",
        ),
        (r#"{"task":{"TTL":1}}"#, "TTL", "ttl"),
    ] {
        let found = fault(raw);
        assert_eq!(found.kind, AmbiguityKind::Folded(name), "{raw}");
        assert_eq!(found.key, key, "{raw}");
    }
    let read = check(
        r#"{"uri":"a","Uri":"b"}"#,
        Method::ResourcesRead.param_keys(),
    );
    let text = "key `Uri` is another spelling of `uri`";
    assert_eq!(read.unwrap_err().to_string(), text);
    let completion = r#"{"ref":{"type":"ref/prompt","name":"a","Name":"b"}}"#;
    let completion = check(completion, Method::CompletionComplete.param_keys());
    assert_eq!(completion.unwrap_err().path, "ref.Name");
}

#[test]
fn keys_of_the_tool_are_its_own() {
    for raw in [
        "{}",
        "[]",
        "7",
        r#"{"name":"a","arguments":{"name":1,"Name":2,"NAME":3,"_meta":{},"_Meta":{}}}"#,
        r#"{"n\u0061me":"a","arguments":{}}"#,
        r#"{"name":"a","names":1,"nam":2,"Nam":3,"ñame":4}"#,
        r#"{"arguments":{"\ud800":1,"\ud801":2,"\udc00":3,"\ufffd":4,"\ud800\u0041":5,"\ud800A\udc00":6}}"#,
        r#"{"arguments":[{"a":1},{"a":1},[{"a":{"a":{"a":1}}}]]}"#,
        r#"{"_meta":{"x/Name":1,"Name":2,"arguments":3,"progressToken":4}}"#,
        r#"{"arguments":{"a":"\"b\":1,\"b\":2","c":"{","d":"}"}}"#,
        r#"{"a":["x","x",{"x":"x"}],"b":"a"}"#,
    ] {
        assert_eq!(call(raw), Ok(()), "{raw}");
    }
}

/// The blocks of a result have keys of the protocol, structured content has its own.
#[test]
fn keys_of_results_are_those_of_their_kind() {
    let result = |raw: &str| check(raw, Method::ToolsCall.result_keys()).map_err(|e| e.path);
    for (raw, path) in [
        (r#"{"content":[],"Content":[]}"#, "Content"),
        (
            r#"{"content":[{"type":"text","text":"a"},{"type":"text","Text":"b"}]}"#,
            "content[1].Text",
        ),
        (
            r#"{"content":[{"type":"resource","resource":{"uri":"a","URI":"b"}}]}"#,
            "content[0].resource.URI",
        ),
        (
            r#"{"structuredContent":{"a":[{"b":1,"b":2}]}}"#,
            "structuredContent.a[0].b",
        ),
    ] {
        assert_eq!(result(raw), Err(path.to_string()), "{raw}");
    }
    let own = r#"{"content":[{"type":"text","text":"a"}],"structuredContent":{"text":1,"Text":2,"content":[{"Type":1}]}}"#;
    assert_eq!(result(own), Ok(()));
}

#[test]
fn errors_are_short_whatever_the_message_is() {
    let long = "k".repeat(10_000);
    let open = format!("{{\"{long}\":").repeat(100);
    let raw = format!("{open}{{\"a\\u0007\":1,\"a\\u0007\":2}}{}", "}".repeat(100));
    let found = fault(&raw);
    assert!(found.path.len() < 500, "{}", found.path.len());
    assert!(found.path.starts_with('…') && found.path.ends_with(r#"."a\u0007""#));
    let found = fault(&format!("{{\"{long}\":1,\"{long}\":2}}"));
    assert!(found.key.len() < 100);
}

/// Neither many keys nor keys with the same digest are compared each with each: that would take minutes here.
#[test]
fn large_objects_are_checked_in_linear_time() {
    let object = |key: &dyn Fn(usize) -> String, count: usize| {
        let keys: Vec<String> = (0..count).map(|n| format!("\"{}\":0", key(n))).collect();
        format!("{{\"arguments\":{{{}}}}}", keys.join(","))
    };
    let spellings: [&dyn Fn(usize) -> String; 3] = [
        &|n| format!("key{n}"),
        // Start, end and length are the same.
        &|n| format!("aaaaaaaa{n:09}aaaaaaaa"),
        &|n| format!("\\u0061aaaaaaa{n:09}aaaaaaaa"),
    ];
    for key in spellings {
        assert_eq!(call(&object(key, 100_000)), Ok(()));
        let again = |n| key(n % 99_999);
        assert!(call(&object(&again, 100_000)).is_err());
    }
}

#[test]
fn malformed_texts_do_not_panic() {
    for raw in [
        "",
        "{",
        "}",
        "]]]]",
        "}}{",
        "{\"",
        "{\"a",
        "{\"a\\",
        "\"\\u12",
        "{\"\\ud8",
        "{,,,",
        "[}",
        "{\"a\":{\"a\":",
        "{\"\\x\":1,\"\\x\":2}",
    ] {
        let _ = call(raw);
    }
    let deep = "[{\"a\":".repeat(1_000);
    let _ = call(&deep);
}

/// A tree of values with few different keys, so that many of them are twice in one object.
fn tree() -> impl Strategy<Value = String> {
    let key = prop_oneof![
        Just("name"),
        Just("Name"),
        Just("n\\u0061me"),
        Just("arguments"),
        Just("_meta"),
        Just("a"),
        Just("\\u0061"),
        Just("\\ud800"),
        Just("\\ud801"),
        Just("\\ud83d\\ude00"),
        Just("😀"),
        Just("progressToken"),
        Just("PROGRESSTOKEN"),
        Just("taſk"),
        Just(""),
    ];
    let leaf = prop_oneof![Just(String::from("1")), Just(String::from("\"name\""))];
    leaf.prop_recursive(4, 64, 12, move |inner| {
        let member = (key.clone(), inner.clone());
        prop_oneof![
            prop::collection::vec(member, 0..12).prop_map(|members| {
                let members = members.iter().map(|(k, v)| format!("\"{k}\": {v}"));
                format!("{{{}}}", members.collect::<Vec<_>>().join(" ,"))
            }),
            prop::collection::vec(inner, 0..4).prop_map(|all| format!("[{}]", all.join(","))),
        ]
    })
}

/// Parameters as the scan of a message sees them.
fn is_clear(raw: &str) -> bool {
    let message = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{raw}}}"#);
    let envelope = crate::envelope::Envelope::read(&message);
    envelope.is_ok_and(|envelope| envelope.params().is_some_and(|params| params.is_clear))
}

#[test]
fn ordinary_calls_are_clear_without_a_check() {
    for raw in [
        r#"{"name":"a","arguments":{"text":"b"}}"#,
        r#"{"name":"a","arguments":{"text":"b"},"_meta":{"progressToken":1}}"#,
        r#"{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}},"name":"a"}"#,
    ] {
        assert!(is_clear(raw), "{raw}");
    }
    for raw in [
        r#"{"name":"a","arguments":{"text":1,"text":2}}"#,
        r#"{"name":"a","arguments":{"text":1,"t\u0065xt":2}}"#,
        r#"{"name":"a","arguments":[{"t":1},[{"u":{"v":1,"v":1}}]]}"#,
        r#"{"name":"a","Name":"b"}"#,
        r#"{"name":"a","_meta":{"ProgressToken":1}}"#,
    ] {
        assert!(!is_clear(raw), "{raw}");
    }
}

/// The rule, written down again by recursion over members, with keys as UTF-16.
fn is_ambiguous(raw: &str, keys: Option<&'static ProtocolKeys>) -> bool {
    fn units(key: &str) -> Vec<u16> {
        let mut out = Vec::new();
        let mut rest = key;
        while let Some(first) = rest.chars().next() {
            if let Some(escape) = rest.strip_prefix("\\u") {
                out.push(u16::from_str_radix(&escape[..4], 16).unwrap());
                rest = &escape[4..];
            } else {
                out.extend(first.encode_utf16(&mut [0; 2]).iter().copied());
                rest = &rest[first.len_utf8()..];
            }
        }
        out
    }
    let mut cursor = crate::scan::Cursor::new(raw);
    match cursor.next_byte() {
        Ok(b'[') => crate::raw::elements(raw)
            .unwrap()
            .into_iter()
            .any(|element| is_ambiguous(element, keys)),
        Ok(b'{') => {
            let mut seen: Vec<Vec<u16>> = Vec::new();
            let mut result = false;
            for (token, value) in members(raw) {
                let key = units(token);
                result |= seen.contains(&key);
                let text = String::from_utf16_lossy(&key);
                let fold = |text: &str| text.replace('ſ', "s").to_lowercase();
                let named =
                    keys.and_then(|keys| keys.names().find(|name| fold(name) == fold(&text)));
                result |= named.is_some_and(|name| name != text);
                let below = keys.and_then(|keys| keys.find(&text).flatten());
                result |= is_ambiguous(value, below);
                seen.push(key);
            }
            result
        }
        _ => false,
    }
}

/// Raw keys and raw values of an object of [`tree`].
fn members(raw: &str) -> Vec<(&str, &str)> {
    let inner = raw
        .strip_prefix('{')
        .and_then(|r| r.strip_suffix('}'))
        .unwrap();
    let (mut parts, mut depth, mut start, mut in_text) = (Vec::new(), 0, 0, false);
    for (at, c) in inner.char_indices() {
        match c {
            '"' => in_text = !in_text,
            '{' | '[' if !in_text => depth += 1,
            '}' | ']' if !in_text => depth -= 1,
            ',' if !in_text && depth == 0 => {
                parts.push(&inner[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&inner[start..]);
    let parts = parts
        .into_iter()
        .map(str::trim)
        .filter(|part| !part.is_empty());
    let split = parts.map(|part| {
        let end = part[1..].find('"').unwrap() + 1;
        (
            &part[1..end],
            part[end + 1..].trim_start_matches(':').trim(),
        )
    });
    split.collect()
}

proptest! {
    #[test]
    fn agrees_with_the_rule_written_by_recursion(raw in tree()) {
        prop_assert_eq!(crate::scan::check(&raw), Ok(()));
        let keys = Method::ToolsCall.param_keys();
        let is_ambiguous = is_ambiguous(&raw, Some(keys));
        prop_assert_eq!(check(&raw, keys).is_err(), is_ambiguous, "{}", raw);
        prop_assert!(!(is_clear(&raw) && is_ambiguous), "{}", raw);
    }

    #[test]
    fn any_text_is_checked_without_panic(raw in any::<String>()) {
        let _ = call(&raw);
    }
}

/// No other character is taken for an ASCII letter by lower case, upper case or full folding.
#[test]
fn every_character_that_folds_to_ascii_is_known() {
    for c in ('\u{80}'..=char::MAX).filter(|c| !c.is_control()) {
        let upper: String = c.to_uppercase().collect();
        let lower: String = c.to_lowercase().collect();
        let folded = [upper.to_lowercase(), lower.to_uppercase(), upper, lower];
        let ascii = folded.into_iter().find(|text| text.is_ascii());
        let known = keys::FOLDED.iter().find(|(from, _)| *from == c);
        match (ascii, known) {
            (Some(ascii), Some((_, to))) => assert!(ascii.eq_ignore_ascii_case(to), "{c:?}"),
            (Some(ascii), None) => panic!("{c:?} folds to {ascii}"),
            // Readers that compare single characters take this one for `i`.
            (None, Some((from, _))) => assert_eq!(*from, '\u{130}'),
            (None, None) => {}
        }
    }
}

#[test]
fn more_keys_than_are_compared_are_refused() {
    let object = |count: usize| {
        let mut object = String::from("{");
        for key in 0..count {
            let comma = if key == 0 { "" } else { "," };
            write!(object, "{comma}\"{key}\":0").unwrap();
        }
        object + "}"
    };
    let refused = fault(&object(MAX_KEYS + 1));
    assert_eq!(refused.kind, AmbiguityKind::TooMany);
    assert_eq!(
        refused.to_string(),
        "more than 1048576 keys before `1048576`"
    );
    // Objects that have ended do not count.
    let part = object(MAX_KEYS / 4);
    let all = format!(r#"{{"a":[{part},{part},{part},{part},{part}]}}"#);
    assert_eq!(call(&all), Ok(()));
}
