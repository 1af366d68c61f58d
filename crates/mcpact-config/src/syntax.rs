//! Parsers of TOML, JSON and YAML.

mod json;
mod yaml;

use ::toml::Spanned;
use ::toml::de::{DeTable, DeValue};

use super::problem::{Problem, Severity};
use super::source::{Source, Span};
use super::tree::{Member, Node, Table, Value};

/// Syntax of a config.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Syntax {
    Toml,
    /// JSON, with comments and trailing commas.
    Json,
    Yaml,
}

/// Syntax by file extension.
const ENDINGS: &[(&str, Syntax)] = &[
    (".toml", Syntax::Toml),
    (".json", Syntax::Json),
    (".jsonc", Syntax::Json),
    (".json5", Syntax::Json),
    (".yaml", Syntax::Yaml),
    (".yml", Syntax::Yaml),
];

impl Syntax {
    /// Detects the syntax by file name, or else by the text.
    pub(super) fn of(source: &Source) -> Self {
        let name = source.name.to_ascii_lowercase();
        let told = ENDINGS.iter().find(|(ending, _)| name.ends_with(ending));
        told.map_or_else(|| Self::guessed(&source.text), |(_, syntax)| *syntax)
    }

    fn guessed(text: &str) -> Self {
        let mut lines = text.lines().map(str::trim);
        let first = lines.find(|line| !line.is_empty() && !line.starts_with('#'));
        let first = first.unwrap_or_default();
        if first.starts_with(['{', '/']) {
            Self::Json
        } else if first.starts_with('[')
            || first.split_once('=').is_some_and(|(key, _)| is_key(key))
        {
            Self::Toml
        } else {
            Self::Yaml
        }
    }

    /// Parses a text.
    ///
    /// # Errors
    /// The syntax is invalid.
    pub(super) fn parse(self, source: &Source) -> Result<Node, Problem> {
        let parsed = match self {
            Self::Toml => parse_toml(&source.text),
            Self::Json => json::parse(&source.text),
            Self::Yaml => yaml::parse(&source.text),
        };
        parsed.map_err(|problem| Problem {
            span: problem.span.within(&source.text),
            ..problem
        })
    }
}

fn is_key(text: &str) -> bool {
    let text = text.trim();
    !text.is_empty()
        && text
            .chars()
            .all(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | '"' | '$'))
}

/// Syntax error. Only its start is shown, because the following text may be a secret.
fn broken(span: Span, message: String) -> Problem {
    let start = Span::new(span.start, span.end.min(span.start + 1));
    Problem::new(Severity::Error, start, message, None)
}

/// Parses a TOML document.
fn parse_toml(text: &str) -> Result<Node, Problem> {
    match DeTable::parse(text) {
        Ok(table) => {
            let span = table.span().into();
            Ok(Node::new(span, Value::Table(members(table.get_ref()))))
        }
        Err(error) => {
            let span = error.span().map_or_else(Span::default, Span::from);
            Err(broken(span, format!("invalid TOML: {}", error.message())))
        }
    }
}

fn members(table: &DeTable<'_>) -> Table {
    let mut members: Vec<Member> = table
        .iter()
        .map(|(key, value)| {
            let name = key.get_ref().to_string();
            Member::new(name, key.span().into(), node(value))
        })
        .collect();
    members.sort_by_key(|member| member.key_span.start);
    Table(members)
}

fn node(value: &Spanned<DeValue<'_>>) -> Node {
    let span = value.span().into();
    let value = match value.get_ref() {
        DeValue::String(text) => Value::from(text.as_ref()),
        DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix())
            .map_or(Value::Fraction(f64::INFINITY), Value::Whole),
        DeValue::Float(number) => number
            .as_str()
            .parse()
            .map_or(Value::Fraction(f64::NAN), Value::Fraction),
        DeValue::Boolean(flag) => Value::Flag(*flag),
        DeValue::Datetime(time) => Value::from(time.to_string().as_str()),
        DeValue::Array(items) => Value::List(items.iter().map(node).collect()),
        DeValue::Table(table) => Value::Table(members(table)),
    };
    Node::new(span, value)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A parser may report a byte after the end, or one within a character.
    #[test]
    fn syntax_errors_have_a_place_in_the_text() {
        for (name, text) in [
            ("a.yaml", "a:\n \"}\n"),
            ("a.yaml", "a: [é"),
            ("a.json", "{é"),
            ("a.toml", "a = é"),
        ] {
            let source = Source::new(name, text);
            let problem = Syntax::of(&source).parse(&source).err().unwrap();
            let span = problem.span;
            assert!(text.get(span.start..span.end).is_some(), "{problem:?}");
        }
    }

    #[test]
    fn syntax_is_detected_by_name_or_text() {
        let of = |name: &str, text: &str| Syntax::of(&Source::new(name, text));
        assert_eq!(of("a.toml", "{"), Syntax::Toml);
        assert_eq!(of("A.JSON", "a: b"), Syntax::Json);
        assert_eq!(of("b.yml", "{"), Syntax::Yaml);
        assert_eq!(of("-", "\n  {"), Syntax::Json);
        assert_eq!(of("-", "// a\n{"), Syntax::Json);
        assert_eq!(of("-", "# a\n[servers.a]"), Syntax::Toml);
        assert_eq!(of("-", "model = \"x\"\n"), Syntax::Toml);
        assert_eq!(of("-", "# a\nservers:\n"), Syntax::Yaml);
        assert_eq!(of("-", "command: a=b\n"), Syntax::Yaml);
    }
}
