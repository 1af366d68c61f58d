//! Answers that cannot be parsed.

use alloc::borrow::Cow;
use alloc::string::String;

use super::ndjson::KEPT_END;

/// Length of the part at either end of a line that is searched for its id. Nothing else is left of
/// an overlong line.
const REACH: usize = KEPT_END;

/// The number of the call that a line answers, although it is too deep or broken to be read as a message.
///
/// Servers write the id first or last, so nothing between is looked at: what stands there may look like an
/// id and be none.
#[must_use]
pub fn answered(line: &[u8]) -> Option<i64> {
    first(line).or_else(|| last(line))
}

const ID: &str = "\"id\":";

/// Returns whether a line looks like an answer, by the outermost names at its beginning.
#[must_use]
pub fn is_answer(line: &[u8]) -> bool {
    let start = start(line);
    let Some(members) = start.strip_prefix('{') else {
        return false;
    };
    let outermost = members.split(['{', '[']).next().unwrap_or_default();
    let names = |name| outermost.contains(name);
    (names("\"result\"") || names("\"error\"")) && !names("\"method\"")
}

/// The cut may go through a letter, which is no reason to see nothing.
fn start(line: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(line.get(..REACH).unwrap_or(line))
}

fn first(line: &[u8]) -> Option<i64> {
    let start = start(line);
    let (before, after) = start.strip_prefix('{')?.split_once(ID)?;
    let is_outermost = !before.contains(['{', '[']) && !before.contains("\"method\"");
    let (number, _) = after.split_once(',')?;
    number.trim().parse().ok().filter(|_| is_outermost)
}

fn last(line: &[u8]) -> Option<i64> {
    let end = line.get(line.len().saturating_sub(REACH)..)?;
    let end = String::from_utf8_lossy(end);
    let end = end.trim_end();
    let (before, after) = end.strip_suffix('}')?.rsplit_once(ID)?;
    // What is before it is the end of another member of the same object.
    let is_outermost = before.trim_end().ends_with(',');
    after.trim().parse().ok().filter(|_| is_outermost)
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use super::{answered, is_answer};

    #[test]
    fn the_id_is_found_at_either_end_and_nowhere_else() {
        let deep = "[".repeat(1000);
        let line = |text: &str| answered(text.replace('~', &deep).as_bytes());
        assert_eq!(line(r#"{"jsonrpc":"2.0","id":7,"result":~}"#), Some(7));
        assert_eq!(line(r#"{"result":~,"jsonrpc":"2.0","id":7}"#), Some(7));
        assert_eq!(line(r#"{"result":{"id":7,"a":~}}"#), None);
        assert_eq!(line(r#"{"result":~{"a":1,"id":7}}"#), None);
        assert_eq!(line(r#"{"method":"ping","id":7,"params":~}"#), None);
        assert_eq!(line(r#"{"jsonrpc":"2.0","id":"7","result":~}"#), None);
        assert_eq!(line(r#"{"jsonrpc":"2.0","id":7,"result":"~"#), Some(7));
        assert_eq!(line("~"), None);
        assert_eq!(line(""), None);
    }

    #[test]
    fn a_letter_that_was_cut_hides_no_id() {
        for shift in 0..4 {
            let text = format!("{}{}", "x".repeat(shift), "\u{1f642}".repeat(100));
            let first = format!(r#"{{"jsonrpc":"2.0","id":7,"result":"{text}""#);
            assert_eq!(answered(first.as_bytes()), Some(7), "{shift}");
            let last = format!(r#"{{"result":"{text}","id":7}}"#);
            assert_eq!(answered(last.as_bytes()), Some(7), "{shift}");
        }
    }

    #[test]
    fn an_answer_shows_by_its_first_names() {
        for (line, is_one) in [
            (r#"{"result":{"content":[{"method":1"#, true),
            (r#"{"jsonrpc":"2.0","error":{"message":"#, true),
            (
                r#"{"method":"notifications/message","params":{"data":"#,
                false,
            ),
            (
                r#"{"jsonrpc":"2.0","method":"x","params":{"result":1"#,
                false,
            ),
            ("xxxxxxxx", false),
            ("", false),
        ] {
            assert_eq!(is_answer(line.as_bytes()), is_one, "{line}");
        }
    }
}
