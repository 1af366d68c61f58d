//! Command lines of the README, the manual and the packages: clap accepts each of them.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Parser as _;
use clap::error::ErrorKind;

use crate::args::Cli;

fn root() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// Markdown files of the manual, and the README.
fn pages() -> Vec<PathBuf> {
    let mut pages = vec![root().join("README.md")];
    let mut open = vec![root().join("docs/manual")];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                pages.push(path);
            }
        }
    }
    pages
}

/// Words of a shell command up to a redirection, an operator or a comment.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut chars = line.chars().peekable();
    while let Some(one) = chars.next() {
        match (one, quote) {
            (_, Some(open)) if one == open => quote = None,
            (_, Some(_)) => word.get_or_insert_default().push(one),
            ('\'' | '"', None) => {
                quote = Some(one);
                word.get_or_insert_default();
            }
            ('\\', None) => word.get_or_insert_default().extend(chars.next()),
            (' ' | '\t' | '\n', None) => words.extend(word.take()),
            ('|' | '<' | '>' | ';' | '&' | ')', None) => break,
            ('#', None) if word.is_none() => break,
            (_, None) => word.get_or_insert_default().push(one),
        }
    }
    words.extend(word);
    words
}

/// The command `mcpact` in a line of a shell, behind variables, `cargo run … --` or an operator.
fn commands(line: &str) -> Vec<Vec<String>> {
    let line = line.replace("cargo run --release --", "mcpact");
    let parts = line.split(['|', ';', '(', '&']).map(words);
    let parts = parts.map(|words| {
        let is_variable = |word: &&String| {
            word.split_once('=').is_some_and(|(name, _)| {
                name.chars()
                    .all(|one| one.is_ascii_uppercase() || one == '_')
            })
        };
        let skipped = words.iter().take_while(is_variable).count();
        words[skipped..].to_vec()
    });
    parts
        .filter(|words| words.first().is_some_and(|word| word == "mcpact"))
        .collect()
}

/// Lines of `console` blocks behind `$ `, and all lines of `sh` blocks, with continued lines joined.
fn shown_lines(page: &str) -> Vec<String> {
    let mut lines = Vec::new();
    for block in page.split("\n```").skip(1).step_by(2) {
        let (info, block) = block.split_once('\n').unwrap_or_default();
        let block = block.replace("\\\n", " ");
        match info {
            "console" => lines.extend(
                block
                    .lines()
                    .filter_map(|line| line.strip_prefix("$ "))
                    .map(str::to_owned),
            ),
            "sh" => lines.extend(block.lines().map(str::to_owned)),
            _ => {}
        }
    }
    lines
}

fn problem(command: &[String]) -> Option<String> {
    let error = Cli::try_parse_from(command).err()?;
    let is_fine = matches!(
        error.kind(),
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion
    );
    (!is_fine).then(|| format!("{}\n{error}", command.join(" ")))
}

fn check(page: &Path, lines: impl IntoIterator<Item = String>) -> usize {
    let mut count = 0;
    for command in lines.into_iter().flat_map(|line| commands(&line)) {
        count += 1;
        if let Some(problem) = problem(&command) {
            panic!("{}: {problem}", page.display());
        }
    }
    count
}

#[test]
fn every_command_line_of_the_manual_is_accepted() {
    let mut count = 0;
    for page in pages() {
        let text = fs::read_to_string(&page).unwrap();
        count += check(&page, shown_lines(&text));
    }
    assert!(count > 60, "{count} commands found");
}

/// Commands within sentences may leave out arguments, but name no option or command that does not exist.
#[test]
fn commands_within_sentences_exist() {
    for page in pages() {
        let text = fs::read_to_string(&page).unwrap();
        let prose: Vec<&str> = text.split("\n```").step_by(2).collect();
        let prose = prose.join("\n").replace("``", "\n");
        let quoted = prose
            .lines()
            .flat_map(|line| line.split('`').skip(1).step_by(2));
        for command in quoted.flat_map(commands) {
            let Err(error) = Cli::try_parse_from(&command) else {
                continue;
            };
            let is_unknown = matches!(
                error.kind(),
                ErrorKind::UnknownArgument | ErrorKind::InvalidSubcommand
            );
            assert!(
                !is_unknown,
                "{}: {}\n{error}",
                page.display(),
                command.join(" ")
            );
        }
    }
}

#[test]
fn commands_of_the_packages_are_accepted() {
    let read = |name: &str| fs::read_to_string(root().join("packaging").join(name)).unwrap();
    let unit = read("mcpact.service");
    let start = unit
        .lines()
        .find_map(|line| line.strip_prefix("ExecStart=/usr/bin/"));
    let container = read("Containerfile");
    let default = container.lines().find_map(|line| line.strip_prefix("CMD "));
    let default: Vec<String> = serde_json::from_str(default.unwrap()).unwrap();
    let lines = [
        start.unwrap().to_owned(),
        format!("mcpact {}", default.join(" ")),
    ];
    assert_eq!(check(Path::new("packaging"), lines), 2);
}

#[test]
fn shell_lines_are_split_as_a_shell_does() {
    let split = |line: &str| {
        commands(line)
            .into_iter()
            .map(|words| words.join("|"))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        split("mcpact bridge --header 'X-Key: ${K}' URL < in > out"),
        ["mcpact|bridge|--header|X-Key: ${K}|URL"]
    );
    assert_eq!(split("A=1 B_C=2 mcpact check  # comment"), ["mcpact|check"]);
    assert_eq!(
        split("(cat a; mcpact reload; cat b) | mcpact status"),
        ["mcpact|reload", "mcpact|status"]
    );
    assert_eq!(split("cargo run --release -- serve"), ["mcpact|serve"]);
    assert_eq!(split("curl http://127.0.0.1"), Vec::<String>::new());
}
