//! Steps of a manual page: files to write and commands to run.

use std::ops::Range;

/// A parsed page.
pub(crate) struct Page {
    pub(crate) steps: Vec<Step>,
}

/// One step, in the order of the page.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// A block with a file name behind its language: ```` ```toml mcpact.toml ````.
    File { name: String, text: String },
    /// A line `$ command` of a `console` block, with the position of its output in the page.
    Run {
        command: String,
        shown: Range<usize>,
    },
}

impl Page {
    pub(crate) fn parse(text: &str) -> Self {
        let mut steps = Vec::new();
        let mut rest = text;
        while let Some(start) = rest.find("\n```") {
            let offset = text.len() - rest.len() + start + 4;
            let body = &text[offset..];
            let (info, _) = body.split_once('\n').unwrap();
            let content = offset + info.len() + 1;
            let length = text[content..].find("```").unwrap();
            let block = &text[content..content + length];
            match info.split_once(' ') {
                _ if info == "console" => commands(block, content, &mut steps),
                Some((_, name)) => steps.push(Step::File {
                    name: name.to_owned(),
                    text: block.to_owned(),
                }),
                None => {}
            }
            rest = &text[content + length + 3..];
        }
        Self { steps }
    }

    /// Returns the number of commands.
    pub(crate) fn runs(&self) -> usize {
        let runs = self.steps.iter();
        runs.filter(|step| matches!(step, Step::Run { .. })).count()
    }
}

/// Adds the commands of a `console` block that begins at this position.
fn commands(block: &str, mut position: usize, steps: &mut Vec<Step>) {
    let mut is_continued = false;
    for line in block.split_inclusive('\n') {
        let end = position + line.len();
        match steps.last_mut() {
            Some(Step::Run { command, shown }) if is_continued => {
                command.push('\n');
                command.push_str(line.trim_end());
                *shown = end..end;
            }
            Some(Step::Run { shown, .. }) if !line.starts_with("$ ") && shown.end == position => {
                shown.end = end;
            }
            _ => {
                assert!(line.starts_with("$ "), "output without command: {line}");
                steps.push(Step::Run {
                    command: line[2..].trim_end().to_owned(),
                    shown: end..end,
                });
            }
        }
        is_continued = line.trim_end().ends_with('\\') && (is_continued || line.starts_with("$ "));
        position = end;
    }
}

#[test]
fn files_and_commands_are_found_with_their_output() {
    let text = "# Page\n\n```toml mcpact.toml\na = 1\n```\n\n```sh\nnot run\n```\n\n\
                ```console\n$ one \\\n    two\nout\n…\n$ three\n```\n";
    let page = Page::parse(text);
    let [
        Step::File { name, text: file },
        Step::Run { command, shown },
        Step::Run {
            command: last,
            shown: none,
        },
    ] = page.steps.as_slice()
    else {
        panic!("{:?}", page.steps);
    };
    assert_eq!((name.as_str(), file.as_str()), ("mcpact.toml", "a = 1\n"));
    assert_eq!(command, "one \\\n    two");
    assert_eq!(&text[shown.clone()], "out\n…\n");
    assert_eq!((last.as_str(), &text[none.clone()]), ("three", ""));
    assert_eq!(page.runs(), 2);
}
