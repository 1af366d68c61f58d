//! Masking of secrets in the log of a child.

use std::ops::Range;
use std::sync::Arc;

use mcpact_wire::scan::quote;

use super::command::ChildCommand;

/// Shorter values are too common as words to be masked.
const SHORTEST: usize = 8;

/// Words in option names that mark their values as secret.
const SECRET_WORDS: [&str; 7] = [
    "token",
    "key",
    "secret",
    "passw",
    "auth",
    "credential",
    "cookie",
];

/// Values that are masked in texts, such as the variables that were set for a child.
#[derive(Clone, Default)]
pub struct Masks(Arc<[String]>);

impl std::fmt::Debug for Masks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Masks").field(&self.0.len()).finish()
    }
}

impl Masks {
    /// Collects the values to mask for a child: its variables, its secrets, and the values of options with
    /// secret-sounding names.
    pub(super) fn of(command: &ChildCommand) -> Self {
        let variables: Vec<_> = command
            .env
            .values()
            .map(|value| value.to_string_lossy())
            .collect();
        let passwords = variables.iter().filter_map(|value| url_password(value));
        let passwords: Vec<String> = passwords.map(str::to_owned).collect();
        let args: Vec<_> = command
            .args
            .iter()
            .map(|arg| arg.to_string_lossy())
            .collect();
        let options = secret_args(args.iter().map(AsRef::as_ref));
        Self::new(
            variables
                .into_iter()
                .map(String::from)
                .chain(passwords)
                .chain(options.into_iter().map(str::to_owned))
                .chain(command.secrets.iter().cloned()),
        )
    }

    /// Masks these values and each of their lines, also in JSON escapes. Values shorter than eight bytes are not
    /// masked.
    #[must_use]
    pub fn new(values: impl IntoIterator<Item = String>) -> Self {
        let mut all: Vec<String> = Vec::new();
        for value in values {
            let lines = value.lines().map(str::trim).filter(|line| *line != value);
            all.extend(lines.map(str::to_owned));
            all.push(value);
        }
        let escaped: Vec<String> = all.iter().flat_map(|value| escaped(value)).collect();
        all.extend(escaped);
        all.retain(|value| value.len() >= SHORTEST);
        // Longer values first, or the rest of a value that contains another one would stay visible.
        all.sort_by(|one, other| other.len().cmp(&one.len()).then_with(|| one.cmp(other)));
        all.dedup();
        Self(all.into())
    }

    /// Returns the last position where a text can be cut without splitting a value, even one that continues after the
    /// text.
    pub(super) fn last_cut(&self, text: &[u8]) -> usize {
        let begun = |value: &String| {
            let lengths = 1..=text.len().min(value.len().saturating_sub(1));
            let mut lengths = lengths.rev();
            lengths.find(|length| text.ends_with(&value.as_bytes()[..*length]))
        };
        let mut cut = text.len() - self.0.iter().filter_map(begun).max().unwrap_or(0);
        while let Some(value) = self.around(text, cut) {
            cut = value.start;
        }
        cut
    }

    /// Returns the first position where a text can be cut without splitting a value, even one that began before the
    /// text.
    pub(super) fn first_cut(&self, text: &[u8]) -> usize {
        let ended = |value: &String| {
            let lengths = 1..=text.len().min(value.len().saturating_sub(1));
            let mut lengths = lengths.rev();
            lengths.find(|length| text.starts_with(&value.as_bytes()[value.len() - *length..]))
        };
        let mut cut = self.0.iter().filter_map(ended).max().unwrap_or(0);
        while let Some(value) = self.around(text, cut) {
            cut = value.end;
        }
        cut
    }

    /// Returns the value that spans this position.
    fn around(&self, text: &[u8], at: usize) -> Option<Range<usize>> {
        self.0.iter().find_map(|value| {
            let mut starts = (at + 1).saturating_sub(value.len())..at;
            let start = starts.find(|start| text[*start..].starts_with(value.as_bytes()))?;
            Some(start..start + value.len())
        })
    }

    /// Returns the text with every value masked.
    #[must_use]
    pub fn cover(&self, text: String) -> String {
        self.0
            .iter()
            .fold(text, |text, value| match text.contains(value.as_str()) {
                true => text.replace(value.as_str(), "***"),
                false => text,
            })
    }
}

/// Returns the JSON escapes of a value, with and without non-ASCII letters, where they differ from the value.
fn escaped(value: &str) -> Vec<String> {
    let quoted = quote(value);
    let inner = quoted.strip_prefix('"');
    let usual = inner.and_then(|inner| inner.strip_suffix('"'));
    let usual = usual.unwrap_or_default();
    let mut ascii = String::new();
    for letter in usual.chars() {
        if letter.is_ascii() {
            ascii.push(letter);
            continue;
        }
        let units = &mut [0; 2];
        for unit in letter.encode_utf16(units) {
            ascii.push_str(&format!("\\u{unit:04x}"));
        }
    }
    let mut forms = vec![usual.to_owned(), ascii];
    forms.retain(|form| form != value);
    forms
}

/// Returns the values of options such as `--api-key`, of headers with such names, and passwords in URLs.
pub fn secret_args<'a>(args: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let mut is_next = false;
    let mut found = Vec::new();
    for arg in args {
        found.extend(header_secrets(arg));
        found.extend(url_password(arg));
        let (option, value) = match arg.split_once('=') {
            Some((option, value)) => (option, Some(value)),
            None => (arg, None),
        };
        let names_secret = is_secret(option);
        match value {
            Some(value) if names_secret => found.push(value),
            _ if is_next => found.push(arg),
            _ => {}
        }
        let is_whole = value.is_some() || arg.contains(':');
        is_next = names_secret && !is_whole && option.starts_with('-');
    }
    found
}

/// Returns the value of a header such as `Authorization: Bearer abc`, and its last word. The header may be attached to
/// its option, as in `--header=X-Api-Key: abc` and `-HX-Api-Key: abc`.
fn header_secrets(arg: &str) -> Vec<&str> {
    let Some((name, value)) = arg.split_once(':') else {
        return Vec::new();
    };
    let name = name.rsplit('=').next().unwrap_or(name);
    let is_token = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let value = value.trim();
    if !name.chars().all(is_token) || value.starts_with("//") || !is_secret(name) {
        return Vec::new();
    }
    let last = value.rsplit(char::is_whitespace).next();
    std::iter::once(value).chain(last).collect()
}

/// Returns the password in a URL such as `postgres://ada:abc@host/db`, anywhere in a text.
pub fn url_password(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once("://")?;
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let authority = &rest[..end];
    let (user, _) = authority.rsplit_once('@')?;
    let (_, password) = user.split_once(':')?;
    (!password.is_empty()).then_some(password)
}

fn is_secret(option: &str) -> bool {
    let option = option.to_ascii_lowercase();
    SECRET_WORDS.iter().any(|word| option.contains(word))
}

#[cfg(test)]
mod tests {
    use super::{ChildCommand, Masks, secret_args};

    /// The values of variables are masked in a child's log, the longest first.
    #[test]
    fn values_are_masked() {
        let command = ChildCommand::new("server")
            .with_env("TOKEN", "hunter2-hunter2")
            .with_env("SHORT", "debug")
            .with_env("DB", "postgres://ada:let-me-in-1@host/db")
            .with_env("LONG", "hunter2-hunter2-x");
        let masks = Masks::of(&command);
        let line = "debug: using hunter2-hunter2-x and hunter2-hunter2".to_owned();
        assert_eq!(masks.cover(line), "debug: using *** and ***");
        let line = "no such user ada with let-me-in-1".to_owned();
        assert_eq!(masks.cover(line), "no such user ada with ***");
        assert!(!format!("{masks:?}").contains("hunter2"));
    }

    /// A value of several lines is masked line by line; values from arguments are masked.
    #[test]
    fn lines_and_arguments_are_masked() {
        let mut command = ChildCommand::new("server")
            .with_args([
                "--api-key",
                "argument-1",
                "--token=argument-2",
                "folder-one",
            ])
            .with_env(
                "KEY",
                "-----BEGIN-----\r\nline-of-key-1\n  line-of-key-2\n--\n",
            );
        command.secrets.push(String::from("filled-in-1"));
        let masks = Masks::of(&command);
        for (text, covered) in [
            ("line-of-key-1", "***"),
            ("x line-of-key-2 y", "x *** y"),
            (
                "args --api-key argument-1 --token=argument-2 folder-one",
                "args --api-key *** --token=*** folder-one",
            ),
            ("-- filled-in-1", "-- ***"),
        ] {
            assert_eq!(masks.cover(text.to_owned()), covered);
        }
    }

    /// A value is masked in its JSON escapes.
    #[test]
    fn json_escapes_are_masked() {
        let key = "{\"key\":\"é-line-1\\nline-2\"}";
        let masks = Masks::new([key.to_owned(), String::from("\"quoted\"")]);
        for text in [
            key,
            r#"{\"key\":\"é-line-1\\nline-2\"}"#,
            r#"{\"key\":\"\u00e9-line-1\\nline-2\"}"#,
            r#"\"quoted\""#,
        ] {
            assert_eq!(masks.cover(text.to_owned()), "***", "{text}");
        }
    }

    #[test]
    fn truncated_value_is_detected() {
        let masks = Masks::new([String::from("hunter2-hunter2")]);
        for (text, last, first) in [
            ("the token is hunter2-hunter", 13, 0),
            ("the token is h", 13, 0),
            ("the token is", 12, 0),
            ("unter2 is the token", 19, 6),
            ("it is hunter2-hunter2", 6, 0),
            ("hunter2-hunter2", 0, 15),
        ] {
            let bytes = text.as_bytes();
            let found = (masks.last_cut(bytes), masks.first_cut(bytes));
            assert_eq!(found, (last, first), "{text}");
        }
    }

    /// Option names decide which values are secret.
    #[test]
    fn option_names_mark_secret_arguments() {
        for (args, expected) in [
            (&["--api-key", "abc", "x"][..], &["abc"][..]),
            (&["--api-key=abc", "x"], &["abc"]),
            (&["PASSWORD=abc"], &["abc"]),
            (
                &["--header", "Authorization: Bearer abc"],
                &["Bearer abc", "abc"],
            ),
            (&["--header=X-Api-Key: abc"], &["abc", "abc"]),
            (&["-H", "Cookie: abc"], &["abc", "abc"]),
            (&["-HX-Auth-Token: abc"], &["abc", "abc"]),
            (&["--db", "postgres://ada:abc@h/db?x=@"], &["abc"]),
            (&["DB=postgres://ada:abc@h/db"], &["abc"]),
            (&["https://h/a:b@c", "-H", "Accept: text/html"], &[]),
            (&["https://keys.example/mcp"], &[]),
            (&["-y", "server", "/key/folder", "x"], &[]),
        ] {
            assert_eq!(secret_args(args.iter().copied()), expected, "{args:?}");
        }
    }
}
