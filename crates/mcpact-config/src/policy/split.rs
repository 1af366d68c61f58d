//! A script as commands and their words, the way a shell takes it apart.

use std::iter::Peekable;
use std::str::Chars;

/// The commands of a script, each as its words without their quotes. What stands in the place of a word, as in
/// `$(…)`, is a command, too; so deep is looked into such places.
pub(super) fn commands(script: &str, depth: usize) -> Vec<Vec<String>> {
    let mut reader = Reader {
        rest: script.chars().peekable(),
        found: Vec::new(),
    };
    reader.commands(End::Text, depth);
    reader.found
}

struct Reader<'s> {
    rest: Peekable<Chars<'s>>,
    found: Vec<Vec<String>>,
}

/// What ends the commands that are being read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Text,
    /// The end of `$(…)` or of backquotes.
    At(char),
}

/// A command that is being read.
#[derive(Default)]
struct Command {
    words: Vec<String>,
    word: Option<String>,
    /// The next word is the file of a redirection.
    awaits_file: bool,
}

impl Command {
    fn push(&mut self, c: char) {
        self.open().push(c);
    }

    fn open(&mut self) -> &mut String {
        self.word.get_or_insert_default()
    }

    fn end_word(&mut self) {
        if let Some(word) = self.word.take()
            && !std::mem::take(&mut self.awaits_file)
        {
            self.words.push(word);
        }
    }
}

impl Reader<'_> {
    fn commands(&mut self, end: End, depth: usize) {
        let mut command = Command::default();
        while let Some(c) = self.rest.next() {
            match c {
                _ if end == End::At(c) => break,
                '|' | ';' | '&' | '\n' | '(' | ')' => self.end(&mut command),
                '}' if command.word.is_none() => self.end(&mut command),
                '{' if command.word.is_none() && !self.goes_on() => self.end(&mut command),
                '#' if command.word.is_none() => {
                    while self.rest.next_if(|c| *c != '\n').is_some() {}
                }
                '<' | '>' => self.redirection(&mut command),
                c if c.is_whitespace() => command.end_word(),
                '\'' => {
                    command.open();
                    let quoted = self.rest.by_ref().take_while(|c| *c != '\'');
                    quoted.for_each(|c| command.push(c));
                }
                '"' => self.quoted(&mut command, depth),
                c => self.plain(c, &mut command, depth),
            }
        }
        self.end(&mut command);
    }

    /// Whether the word is not over: `{` alone holds commands together, `{}` does not.
    fn goes_on(&mut self) -> bool {
        self.rest.peek().is_some_and(|c| !c.is_whitespace())
    }

    fn end(&mut self, command: &mut Command) {
        let mut ended = std::mem::take(command);
        ended.end_word();
        if !ended.words.is_empty() {
            self.found.push(ended.words);
        }
    }

    /// What is written to or read from a file is no word of the command; the text of `<<<` is read as if it were.
    fn redirection(&mut self, command: &mut Command) {
        command.end_word();
        let mut marks = 1;
        while self.rest.next_if(|c| "<>&|".contains(*c)).is_some() {
            marks += 1;
        }
        command.awaits_file = marks < 3;
    }

    /// Up to the next `"`.
    fn quoted(&mut self, command: &mut Command, depth: usize) {
        command.open();
        while let Some(c) = self.rest.next() {
            match c {
                '"' => return,
                c => self.plain(c, command, depth),
            }
        }
    }

    /// What means the same with and without `"`.
    fn plain(&mut self, c: char, command: &mut Command, depth: usize) {
        let next = self.rest.peek().copied();
        match (c, next) {
            ('\\', Some('\n')) => drop(self.rest.next()),
            ('\\', Some(next)) => {
                self.rest.next();
                command.push(next);
            }
            ('`', _) => self.inner('`', command, depth),
            ('$', Some('(')) => {
                self.rest.next();
                self.inner(')', command, depth);
            }
            ('$', Some('{')) => {
                let name = self.rest.by_ref().take_while(|c| *c != '}');
                command.open().extend(name);
            }
            // A text in other quotes: `$'…'`.
            ('$', Some('\'' | '"')) if command.word.is_none() => {}
            (c, _) => command.push(c),
        }
    }

    /// A command whose output stands in the place of a word. Deeper ones are read as if they stood beside one another.
    fn inner(&mut self, end: char, command: &mut Command, depth: usize) {
        match depth.checked_sub(1) {
            Some(depth) => {
                command.open();
                self.commands(End::At(end), depth);
            }
            None => self.end(command),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_are_taken_apart_as_a_shell_does() {
        let sheet: &[(&str, &[&[&str]])] = &[
            ("a b", &[&["a", "b"]]),
            ("'a b' c\"d e\"f", &[&["a b", "cd ef"]]),
            (
                "\\a b\\ c; d|e&&f\ng",
                &[&["a", "b c"], &["d"], &["e"], &["f"], &["g"]],
            ),
            ("a \"x $(b 'c') y\" d", &[&["b", "c"], &["a", "x  y", "d"]]),
            ("a `b c` ''", &[&["b", "c"], &["a", "", ""]]),
            ("{ a; } # b", &[&["a"]]),
            ("a > f 2>&1 b", &[&["a", "2", "b"]]),
            ("a <<< 'b c'", &[&["a", "b c"]]),
            ("$'a' ${B} {}", &[&["a", "{B", "{}"]]),
            ("\"a", &[&["a"]]),
        ];
        for (script, expected) in sheet {
            assert_eq!(commands(script, 4), *expected, "{script}");
        }
        let deep = "$(".repeat(10_000);
        assert!(commands(&deep, 4).len() < 10);
    }
}
