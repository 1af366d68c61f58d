//! Finding test functions, and what their doc comments say, in the text of a source file.

use crate::checkout::SourceFile;
use crate::source_text::{SourceText, has_word};

/// A test function with its doc comment.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TestFn {
    /// The path of its file.
    pub(super) file: String,
    /// The name of the function.
    pub(super) function: String,
    /// The lines of its doc comment.
    doc: String,
}

impl TestFn {
    /// Path and name of the test.
    pub(super) fn name(&self) -> String {
        format!("{}::{}", self.file, self.function)
    }

    /// Returns the ids before the first colon of the doc comment: `N4, BB-09: …`.
    pub(super) fn leading_ids(&self) -> Vec<String> {
        let Some((head, _)) = self.doc.split_once(':') else {
            return Vec::new();
        };
        let words: Vec<&str> = head
            .split([',', ' '])
            .filter(|word| !word.is_empty())
            .collect();
        if words.iter().all(|word| is_id(word)) {
            words.into_iter().map(str::to_owned).collect()
        } else {
            Vec::new()
        }
    }

    /// Returns true if the doc comment names the id as a whole word.
    pub(super) fn cites(&self, id: &str) -> bool {
        has_word(&self.doc, id)
    }
}

/// Returns true for `N4`, `BB-09` and the like: one or two capitals, an optional hyphen, digits.
fn is_id(word: &str) -> bool {
    let number = word.trim_start_matches(|c: char| c.is_ascii_uppercase());
    let letters = word.len() - number.len();
    let number = number.strip_prefix('-').unwrap_or(number);
    (1..=2).contains(&letters) && !number.is_empty() && number.chars().all(|c| c.is_ascii_digit())
}

/// Doc comment and attributes read above a function.
#[derive(Default)]
struct Above {
    doc: String,
    attributes: String,
}

/// Every test function of a file, at any depth of modules and inside `proptest!`.
pub(super) fn tests_in(file: &SourceFile) -> Vec<TestFn> {
    let source = SourceText::split(&file.text);
    let mut tests = Vec::new();
    let mut above = Above::default();
    for (code, comment) in source.code.lines().zip(source.comments.lines()) {
        if let Some(doc) = comment.trim_start().strip_prefix("///") {
            above.doc.push_str(doc);
            above.doc.push('\n');
        }
        let Some(rest) = above.take_attributes(code) else {
            continue;
        };
        if let Some(function) = function_name(&rest).filter(|_| above.marks_a_test()) {
            let doc = std::mem::take(&mut above.doc);
            tests.push(TestFn {
                file: file.path.clone(),
                function,
                doc,
            });
        }
        above = Above::default();
    }
    tests
}

impl Above {
    /// Take the attributes at the start of a line; `None` if nothing else stands on it.
    fn take_attributes(&mut self, line: &str) -> Option<String> {
        let mut rest = line.trim();
        while self.is_open() || rest.starts_with("#[") {
            let end = self.closing(rest);
            self.attributes.push_str(&rest[..end]);
            rest = rest[end..].trim_start();
            if self.is_open() {
                return None;
            }
        }
        (!rest.is_empty()).then(|| rest.to_owned())
    }

    /// Whether an attribute goes on in the next line.
    fn is_open(&self) -> bool {
        depth(&self.attributes) > 0
    }

    /// Where the attribute ends that starts, or goes on, here.
    fn closing(&self, text: &str) -> usize {
        let mut open = depth(&self.attributes);
        for (at, c) in text.char_indices() {
            open += step(c);
            if open == 0 && c == ']' {
                return at + 1;
            }
        }
        text.len()
    }

    /// Whether an attribute is `#[test]`, `#[tokio::test]` or the like.
    fn marks_a_test(&self) -> bool {
        let attributes = self.attributes.split("#[").map(str::trim_start);
        let mut paths = attributes.map(|attribute| attribute.split([']', '(', ' ']).next());
        paths.any(|path| path.is_some_and(|path| path.rsplit("::").next() == Some("test")))
    }
}

fn depth(text: &str) -> i32 {
    text.chars().map(step).sum()
}

fn step(c: char) -> i32 {
    match c {
        '[' => 1,
        ']' => -1,
        _ => 0,
    }
}

/// The name in `fn name`, `async fn name` or `pub fn name`.
fn function_name(line: &str) -> Option<String> {
    let mut words = line.split_whitespace().skip_while(|word| {
        [
            "pub",
            "pub(crate)",
            "pub(super)",
            "const",
            "async",
            "unsafe",
        ]
        .contains(word)
    });
    words.next().filter(|word| *word == "fn")?;
    let name = words.next()?.split(['(', '<']).next()?;
    Some(name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::{TestFn, tests_in};
    use crate::checkout::SourceFile;

    fn scan(text: &str) -> Vec<TestFn> {
        tests_in(&SourceFile {
            path: "a.rs".to_owned(),
            text: text.to_owned(),
        })
    }

    #[test]
    fn tests_are_found_with_their_doc_comment() {
        let text = "/// N4, L2: first.\n/// And L3.\n#[test]\n#[should_panic(expected = \"]\")]\nfn a() {}\n\n/// N5\nfn b() {}\n\n#[test]\nfn c() {}\n";
        let found = scan(text);
        let names: Vec<_> = found.iter().map(TestFn::name).collect();
        assert_eq!(names, ["a.rs::a", "a.rs::c"]);
        assert!(found[0].cites("N4") && found[0].cites("L2") && found[0].cites("L3"));
        assert!(!found[0].cites("N5") && !found[1].cites("N5"));
    }

    #[test]
    fn nested_modules_properties_and_async_tests_are_found() {
        let text = "mod tests {\n    mod inner {\n        /// N1\n        #[test]\n        fn a() {}\n    }\n}\nproptest! {\n    #![proptest_config(x)]\n    /// N2\n    #[test]\n    fn b(x in 0..3) {}\n}\n/// N3\n#[tokio::test(start_paused = true)]\nasync fn c() {}\n/// N6\n#[test] fn d() {}\n";
        let found = scan(text);
        let cited: Vec<_> = ["N1", "N2", "N3", "N6"]
            .iter()
            .zip(&found)
            .map(|(id, t)| t.cites(id))
            .collect();
        assert_eq!(cited, [true; 4], "{found:?}");
    }

    #[test]
    fn attributes_over_several_lines_are_followed() {
        let text =
            "/// N7\n#[test]\n#[expect(\n    clippy::x,\n    reason = \"y\"\n)]\nfn a() {}\n";
        let found = scan(text);
        assert_eq!(found.len(), 1);
        assert!(found[0].cites("N7"));
    }

    #[test]
    fn quoted_sources_and_commented_tests_are_no_tests() {
        let text = "const A: &str = \"\n/// N1\n#[test]\nfn a() {}\n\";\n// #[test]\nfn b() {}\n#[cfg(test)]\nfn c() {}\n";
        assert!(scan(text).is_empty());
    }
}
