//! Bodies from a seed: the same seed gives the same body.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use mcpact_spec::Method;

/// An endless row of numbers (SplitMix64).
pub(super) struct Source(u64);

impl Source {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `limit`.
    pub(super) fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() % limit as u64).unwrap()
    }

    fn word(&mut self, words: &'static str) -> &'static str {
        let words: Vec<&str> = words.split_ascii_whitespace().collect();
        self.pick(&words)
    }

    fn pick<'t>(&mut self, words: &[&'t str]) -> &'t str {
        words[self.below(words.len())]
    }
}

/// Names that the shapes look for.
const KEYS: &str = "content contents type text data mimeType resource blob uri name title \
    description annotations lastModified _meta icons execution tools toolChoice outputSchema \
    inputSchema structuredContent prompts arguments messages role resources resourceTemplates \
    roots resultType ttlMs cacheScope mode requestedSchema properties default oneOf const enum \
    enumNames $schema elicitationId url context ref message code elicitations x-unknown \
    io.modelcontextprotocol/serverInfo io.modelcontextprotocol/related-task";

/// Values on which the shapes decide.
const SCALARS: &str = r#"null true 0 -32602 -32002 -32042 -32050 1e400 "text" "image" "audio"
    "resource" "resource_link" "tool_use" "tool_result" "hologram" "complete" "form" "url"
    "object" "array" "string" "boolean" "ref/prompt" "a:b" "not\u0020found" "" "\ud800" "AAA="
    "{\t\"a\":\n1}" "é\n\"""#;

/// An object with names and values that the shapes know, in places where they may not belong.
pub(super) fn arbitrary(seed: u64) -> String {
    object(&mut Source::new(seed), 0)
}

/// A body with a piece torn out.
pub(super) fn broken(seed: u64) -> String {
    let mut source = Source::new(seed);
    let body = object(&mut source, 0);
    let chars: Vec<char> = body.chars().collect();
    let from = source.below(chars.len() + 1);
    let to = from + source.below(chars.len() - from + 1);
    chars[..from].iter().chain(&chars[to..]).collect()
}

fn value(source: &mut Source, depth: usize) -> String {
    match source.below(if depth > 5 { 2 } else { 5 }) {
        0 | 1 => source.word(SCALARS).to_owned(),
        2 => {
            let count = source.below(4);
            let values: Vec<String> = (0..count).map(|_| value(source, depth + 1)).collect();
            format!("[{}]", values.join(source.pick(&[",", " , "])))
        }
        _ => object(source, depth + 1),
    }
}

fn object(source: &mut Source, depth: usize) -> String {
    let count = source.below(7);
    let mut keys: Vec<&str> = (0..count).map(|_| source.word(KEYS)).collect();
    keys.sort_unstable();
    keys.dedup();
    let members = keys
        .into_iter()
        .map(|key| format!("\"{key}\":{}", value(source, depth)));
    let members: Vec<String> = members.collect();
    format!("{{{}}}", members.join(","))
}

/// A complete result of the newest revision, with members of all revisions and, in every object,
/// one that no revision knows.
pub(super) fn filled(method: Method, seed: u64) -> String {
    let mut filler = Filler {
        source: Source::new(seed),
        unknown: 0,
    };
    filler.result(method)
}

struct Filler {
    source: Source,
    unknown: usize,
}

impl Filler {
    #[expect(clippy::wildcard_enum_match_arm, reason = "the tests ask for no other")]
    fn result(&mut self, method: Method) -> String {
        let (list, object): (&str, fn(&mut Self) -> String) = match method {
            Method::ToolsList => ("tools", Self::tool),
            Method::ToolsCall => ("content", Self::block),
            Method::PromptsList => ("prompts", Self::prompt),
            Method::PromptsGet => ("messages", Self::message),
            Method::ResourcesList => ("resources", Self::resource),
            Method::ResourceTemplatesList => ("resourceTemplates", Self::resource),
            Method::ResourcesRead => ("contents", Self::contents),
            _ => ("completion", Self::contents),
        };
        let count = self.source.below(4);
        let elements: Vec<String> = (0..count).map(|_| object(self)).collect();
        let list = format!("\"{list}\":[{}]", elements.join(", "));
        let structured = self.maybe("structuredContent", &["{\"a\": 1}", "[1]", "null", "\"s\""]);
        let meta = r#""_meta":{"io.modelcontextprotocol/serverInfo":{},"v/k":1}"#.to_owned();
        let kind = self.maybe("resultType", &["\"complete\""]);
        let hints = self.maybe("ttlMs", &["0", "60000"]);
        self.object([list, structured, meta, kind, hints])
    }

    /// The given members without the empty ones, and an unknown one.
    fn object<const N: usize>(&mut self, members: [String; N]) -> String {
        self.unknown += 1;
        let unknown = format!("\"x-{}\":{{ }}", self.unknown);
        let kept = members.into_iter().filter(|member| !member.is_empty());
        let members: Vec<String> = kept.chain([unknown]).collect();
        format!("{{{}}}", members.join(","))
    }

    fn maybe(&mut self, key: &str, values: &[&str]) -> String {
        match self.source.below(2) {
            0 => String::new(),
            _ => format!("\"{key}\":{}", self.source.pick(values)),
        }
    }

    fn annotations(&mut self) -> String {
        let modified = self.maybe("lastModified", &["\"2025-01-12T15:00:58Z\""]);
        let annotations = self.object([r#""priority":0.5"#.to_owned(), modified]);
        format!("\"annotations\":{annotations}")
    }

    fn tool(&mut self) -> String {
        let title = self.maybe("title", &["\"T\""]);
        let schemas = ["{\"type\":\"object\"}", "{\"type\":\"array\"}", "{}"];
        let output = self.maybe("outputSchema", &schemas);
        let hints = self.maybe("annotations", &["{\"readOnlyHint\":true}", "null"]);
        let icons = self.maybe("icons", &["[{\"src\":\"data:,\"}]"]);
        let execution = self.maybe("execution", &["{\"taskSupport\":\"required\"}"]);
        let input = r#""inputSchema":{ "type": "object" }"#.to_owned();
        self.object([title, output, hints, icons, execution, input])
    }

    fn prompt(&mut self) -> String {
        let title = self.maybe("title", &["\"P\""]);
        let argument_title = self.maybe("title", &["\"A\""]);
        let argument = self.object([r#""name":"a""#.to_owned(), argument_title]);
        self.object([title, format!("\"arguments\":[{argument}]")])
    }

    fn message(&mut self) -> String {
        let block = self.block();
        self.object([
            r#""role":"user""#.to_owned(),
            format!("\"content\":{block}"),
        ])
    }

    fn resource(&mut self) -> String {
        let title = self.maybe("title", &["\"R\""]);
        let icons = self.maybe("icons", &["[]"]);
        let annotations = self.annotations();
        self.object([r#""uri":"a:b""#.to_owned(), title, icons, annotations])
    }

    fn contents(&mut self) -> String {
        let body = self
            .source
            .pick(&[r#""text":"t""#, r#""blob":"AAA=""#])
            .to_string();
        let meta = self.maybe("_meta", &["{}", "{\"v/k\":1}"]);
        self.object([r#""uri":"a:b""#.to_owned(), body, meta])
    }

    fn block(&mut self) -> String {
        let kinds = [
            r#""type":"text","text":"{\"a\":1}""#,
            r#""type":"image","data":"AAA=","mimeType":"image/png""#,
            r#""type":"audio","data":"AAA=","mimeType":"audio/wav""#,
            r#""type":"resource_link","uri":"a:b","name":"n""#,
            r#""type":"resource""#,
        ];
        let kind = self.source.pick(&kinds).to_owned();
        let contents = self.contents();
        let annotations = self.annotations();
        let meta = self.maybe("_meta", &["{}", "{\"v/k\":1}"]);
        self.object([kind, format!("\"resource\":{contents}"), annotations, meta])
    }
}
