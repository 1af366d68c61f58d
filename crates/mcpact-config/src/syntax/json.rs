//! JSON parser that accepts comments and trailing commas.

use super::broken;
use crate::problem::Problem;
use crate::source::Span;
use crate::tree::{Member, Node, Table, Value};

/// Maximum nesting depth.
const MAX_DEPTH: usize = 64;

/// Parses a JSON document.
pub(super) fn parse(text: &str) -> Result<Node, Problem> {
    let mut reader = Reader { text, at: 0 };
    let root = reader.value(0)?;
    reader.skip()?;
    match reader.peek() {
        None => Ok(root),
        Some(_) => Err(reader.unexpected("the end of the file")),
    }
}

struct Reader<'t> {
    text: &'t str,
    at: usize,
}

impl Reader<'_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn fail(&self, start: usize, message: &str) -> Problem {
        let end = self.at.max(start + 1).min(self.text.len().max(start));
        broken(Span::new(start, end), format!("invalid JSON: {message}"))
    }

    fn unexpected(&self, wanted: &str) -> Problem {
        match self.peek() {
            Some(found) => self.fail(self.at, &format!("expected {wanted}, found `{found}`")),
            None => self.fail(
                self.at,
                &format!("expected {wanted}, found the end of the file"),
            ),
        }
    }

    /// Skips whitespace and comments.
    fn skip(&mut self) -> Result<(), Problem> {
        loop {
            let rest = self.rest();
            let trimmed = rest.trim_start();
            self.at += rest.len() - trimmed.len();
            let rest = self.rest();
            let length = if rest.starts_with("//") {
                rest.find('\n').unwrap_or(rest.len())
            } else if rest.starts_with("/*") {
                let end = rest.find("*/");
                end.ok_or_else(|| self.fail(self.at, "unterminated comment"))? + 2
            } else {
                return Ok(());
            };
            self.at += length;
        }
    }

    fn eat(&mut self, wanted: char) -> bool {
        let found = self.peek() == Some(wanted);
        if found {
            self.at += wanted.len_utf8();
        }
        found
    }

    fn value(&mut self, depth: usize) -> Result<Node, Problem> {
        self.skip()?;
        let start = self.at;
        if depth > MAX_DEPTH {
            return Err(self.fail(start, "nested too deeply"));
        }
        let value = match self.peek() {
            Some('{') => Value::Table(self.table(depth)?),
            Some('[') => Value::List(self.list(depth)?),
            Some('"') => Value::from(self.string()?.as_str()),
            Some(_) | None => self.word()?,
        };
        Ok(Node::new(Span::new(start, self.at), value))
    }

    fn table(&mut self, depth: usize) -> Result<Table, Problem> {
        let mut members: Vec<Member> = Vec::new();
        self.items('}', |reader| {
            let start = reader.at;
            if reader.peek() != Some('"') {
                return Err(reader.unexpected("a quoted key or `}`"));
            }
            let key = reader.string()?;
            let key_span = Span::new(start, reader.at);
            if members.iter().any(|member| member.key == key) {
                return Err(reader.fail(start, &format!("duplicate key `{key}`")));
            }
            reader.skip()?;
            if !reader.eat(':') {
                return Err(reader.unexpected("`:`"));
            }
            let node = reader.value(depth + 1)?;
            members.push(Member::new(key, key_span, node));
            Ok(())
        })?;
        Ok(Table(members))
    }

    fn list(&mut self, depth: usize) -> Result<Vec<Node>, Problem> {
        let mut items = Vec::new();
        self.items(']', |reader| {
            items.push(reader.value(depth + 1)?);
            Ok(())
        })?;
        Ok(items)
    }

    /// Reads items separated by commas, up to the closing bracket.
    fn items(
        &mut self,
        close: char,
        mut item: impl FnMut(&mut Self) -> Result<(), Problem>,
    ) -> Result<(), Problem> {
        self.at += 1;
        loop {
            self.skip()?;
            if self.eat(close) {
                return Ok(());
            }
            item(self)?;
            self.skip()?;
            if !self.eat(',') && self.peek() != Some(close) {
                return Err(self.unexpected(&format!("`,` or `{close}`")));
            }
        }
    }

    /// Quoted string; escapes are decoded by `serde_json`.
    fn string(&mut self) -> Result<String, Problem> {
        let start = self.at;
        let mut is_escaped = false;
        let inner = self.rest().char_indices().skip(1);
        let end = inner
            .take_while(|(_, c)| *c != '\n')
            .find(|(_, c)| {
                let ends = *c == '"' && !is_escaped;
                is_escaped = *c == '\\' && !is_escaped;
                ends
            })
            .map(|(at, _)| start + at + 1);
        let Some(end) = end else {
            return Err(self.fail(start, "unterminated string"));
        };
        let text = serde_json::from_str(&self.text[start..end]);
        self.at = end;
        text.map_err(|_| self.fail(start, "invalid escape in a string"))
    }

    /// Number, boolean or null.
    fn word(&mut self) -> Result<Value, Problem> {
        let start = self.at;
        let rest = self.rest();
        let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '+' | '.')));
        let word = &rest[..end.unwrap_or(rest.len())];
        let value = match word {
            "" => return Err(self.unexpected("a value")),
            "true" => Value::Flag(true),
            "false" => Value::Flag(false),
            "null" => Value::Null,
            number => match (serde_json::from_str(number), serde_json::from_str(number)) {
                (Ok(whole), _) => Value::Whole(whole),
                (Err(_), Ok(fraction)) => Value::Fraction(fraction),
                (Err(_), Err(_)) => {
                    return Err(self.fail(start, &format!("invalid value `{number}`")));
                }
            },
        };
        self.at += word.len();
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str) -> String {
        parse(text)
            .err()
            .map(|problem| problem.message)
            .unwrap_or_default()
    }

    #[test]
    fn comments_and_trailing_commas_are_allowed() {
        let text = "// a\n{ /* b */ \"a\": [1, 2.5, true, null,], // c\n \"b\\n\": {\"c\": \"\\u00e9\",}, }\n";
        let root = parse(text).ok().unwrap();
        let table = root.table().unwrap();
        assert_eq!(table.0.len(), 2);
        assert_eq!(table.0[1].key, "b\n");
        let inner = &table.0[1].node.table().unwrap().0[0];
        assert_eq!(inner.node.text().unwrap().value(), "é");
        assert_eq!(&text[inner.key_span.start..inner.key_span.end], "\"c\"");
    }

    #[test]
    fn errors_are_precise() {
        for (text, expected) in [
            ("", "expected a value, found the end"),
            ("{", "expected a quoted key or `}`, found the end"),
            ("{\"a\" 1}", "expected `:`, found `1`"),
            ("{\"a\": 1 \"b\"}", "expected `,` or `}`, found `\""),
            ("{\"a\": 1, \"a\": 2}", "duplicate key `a`"),
            ("{\"a\": \"b}", "unterminated string"),
            ("{\"a\": \"\\x\"}", "invalid escape"),
            ("{\"a\": nul}", "invalid value `nul`"),
            ("[1 2]", "expected `,` or `]`, found `2`"),
            ("{} x", "expected the end of the file, found `x`"),
            ("/* a", "unterminated comment"),
            ("{\"a\":,}", "expected a value, found `,`"),
            ("{a: 1}", "expected a quoted key or `}`, found `a`"),
        ] {
            assert!(told(text).contains(expected), "{text}: {}", told(text));
        }
        let deep = "[".repeat(100_000);
        assert!(told(&deep).contains("nested too deeply"));
    }
}
