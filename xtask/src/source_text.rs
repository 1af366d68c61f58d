/// A Rust source split into what the compiler runs and what people read.
///
/// Both halves have the lines and columns of the original: what belongs to the other half, and the
/// inside of every literal, is blank. A check on `code` is therefore never fooled by a comment or
/// by a string that quotes code.
pub(crate) struct SourceText {
    pub(crate) code: String,
    pub(crate) comments: String,
}

const TEST_ATTRIBUTE: &str = "#[cfg(test)]";

impl SourceText {
    /// Splits a source file.
    pub(crate) fn split(text: &str) -> Self {
        let mut halves = Self {
            code: String::new(),
            comments: String::new(),
        };
        let mut rest = text;
        let mut before = ' ';
        while let Some(next) = rest.chars().next() {
            let (piece, after) =
                rest.split_at(piece_length(rest, before).unwrap_or(next.len_utf8()));
            halves.push(piece);
            before = piece.chars().last().unwrap_or(' ');
            rest = after;
        }
        halves
    }

    fn push(&mut self, piece: &str) {
        let is_comment = piece.starts_with("//") || piece.starts_with("/*");
        let is_literal = piece.chars().nth(1).is_some();
        self.code.push_str(&if is_comment || is_literal {
            blank(piece)
        } else {
            piece.to_owned()
        });
        self.comments.push_str(&if is_comment {
            piece.to_owned()
        } else {
            blank(piece)
        });
    }

    /// The code with every item under `#[cfg(test)]` blanked.
    pub(crate) fn code_without_tests(&self) -> String {
        let mut kept = String::new();
        let mut rest = self.code.as_str();
        while let Some(start) = rest.find(TEST_ATTRIBUTE) {
            let (before, from_attribute) = rest.split_at(start);
            let (item, after) = from_attribute.split_at(item_length(from_attribute));
            kept.push_str(before);
            kept.push_str(&blank(item));
            rest = after;
        }
        kept.push_str(rest);
        kept
    }

    /// Number of lines above the test module, or of the file if it has none.
    pub(crate) fn lines_above_tests(&self) -> usize {
        let is_module = |at: &usize| {
            self.code[at + TEST_ATTRIBUTE.len()..]
                .trim_start()
                .starts_with("mod ")
        };
        let end = self
            .code
            .match_indices(TEST_ATTRIBUTE)
            .map(|(at, _)| at)
            .find(is_module);
        self.code[..end.unwrap_or(self.code.len())].lines().count()
    }
}

/// The length of the comment or literal that starts here, if one does.
fn piece_length(rest: &str, before: char) -> Option<usize> {
    if rest.starts_with("//") {
        return Some(rest.find('\n').unwrap_or(rest.len()));
    }
    if rest.starts_with("/*") {
        return Some(block_comment_length(rest));
    }
    if rest.starts_with('"') {
        return Some(string_length(rest));
    }
    if rest.starts_with('\'') {
        return char_length(rest);
    }
    // `for"x"` cannot occur in formatted code, but `br"x"` must not be seen as `b` and `r"x"`.
    if is_word(before) {
        None
    } else {
        raw_string_length(rest)
    }
}

fn block_comment_length(rest: &str) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while at < rest.len() {
        let here = &rest.as_bytes()[at..];
        if here.starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if here.starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    rest.len()
}

fn string_length(rest: &str) -> usize {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

/// `None` for the quote of a lifetime.
fn char_length(rest: &str) -> Option<usize> {
    let mut chars = rest.char_indices().skip(1);
    let (_, first) = chars.next()?;
    if first == '\\' {
        chars.next()?;
        return chars.find(|(_, c)| *c == '\'').map(|(at, _)| at + 1);
    }
    let (at, second) = chars.next()?;
    (second == '\'').then_some(at + 1)
}

fn raw_string_length(rest: &str) -> Option<usize> {
    let after_prefix = ["r", "br", "cr"]
        .iter()
        .find_map(|prefix| rest.strip_prefix(prefix))?;
    let body = after_prefix.trim_start_matches('#');
    if !body.starts_with('"') {
        return None;
    }
    let hashes = &after_prefix[..after_prefix.len() - body.len()];
    let close = format!("\"{hashes}");
    let opening = rest.len() - body.len() + 1;
    let end = rest[opening..].find(&close);
    Some(end.map_or(rest.len(), |at| opening + at + close.len()))
}

/// The length of an item from its attribute to its closing brace or semicolon.
fn item_length(from_attribute: &str) -> usize {
    let mut depth = 0_i32;
    for (at, c) in from_attribute.char_indices() {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 && matches!(c, ';' | '}') {
            return at + 1;
        }
    }
    from_attribute.len()
}

fn blank(piece: &str) -> String {
    piece
        .chars()
        .map(|c| if c == '\n' { '\n' } else { ' ' })
        .collect()
}

/// Returns `true` for characters of an identifier.
pub(crate) fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Returns `true` if `needle` occurs in `text` as a whole word.
pub(crate) fn has_word(text: &str, needle: &str) -> bool {
    let touches = |edge: Option<char>, neighbour: Option<char>| {
        edge.is_some_and(is_word) && neighbour.is_some_and(is_word)
    };
    text.match_indices(needle).any(|(at, found)| {
        let before = text[..at].chars().next_back();
        let after = text[at + found.len()..].chars().next();
        !touches(found.chars().next(), before) && !touches(found.chars().next_back(), after)
    })
}

#[cfg(test)]
mod tests {
    use super::{SourceText, has_word};

    #[test]
    fn comments_and_literals_leave_the_code() {
        let source =
            "let a = \"std::x // no\"; // std::y\nlet b = r#\"\"std::z\"#; /* a /* b */ c */ d";
        let halves = SourceText::split(source);
        assert!(!halves.code.contains("std::"), "{}", halves.code);
        assert!(halves.code.ends_with(" d"), "{}", halves.code);
        assert!(halves.comments.contains("// std::y"));
        assert!(!halves.comments.contains("// no"));
        assert_eq!(halves.code.lines().count(), 2);
    }

    #[test]
    fn quotes_of_chars_and_lifetimes_are_distinguished() {
        let halves = SourceText::split("fn f<'a>(x: &'a str) { g('\"', '\\'', b'{', 'ß') } // end");
        assert_eq!(halves.code.matches('{').count(), 1, "{}", halves.code);
        assert!(halves.code.contains("<'a>"));
        assert!(halves.comments.contains("// end"));
    }

    #[test]
    fn test_items_are_blanked_whole() {
        let source =
            "use a;\n#[cfg(test)]\nmod tests {\n  fn f() -> [u8; 2] { std::x() }\n}\nuse b;";
        let code = SourceText::split(source).code_without_tests();
        assert!(!code.contains("std::"), "{code}");
        assert!(
            code.starts_with("use a;") && code.ends_with("use b;"),
            "{code}"
        );
    }

    #[test]
    fn lines_are_counted_up_to_the_test_module() {
        let source = "a\n#[cfg(test)]\nuse b;\nc\n#[cfg(test)]\nmod tests {}\n";
        assert_eq!(SourceText::split(source).lines_above_tests(), 4);
        assert_eq!(SourceText::split("a\nb\n").lines_above_tests(), 2);
    }

    #[test]
    fn a_word_is_not_found_inside_another() {
        assert!(has_word("cites N4, N5", "N4"));
        assert!(!has_word("cites N40", "N4"));
        assert!(!has_word("operand", "rand"));
        assert!(has_word("use std::fmt", "std::"));
        assert!(!has_word("use mystd::fmt", "std::"));
    }
}
