//! Answers that cannot be read.

/// How far from either end of a line its id is looked for.
const REACH: usize = 128;

/// The number of the call that a line answers, although it is too deep or broken to be read as a message.
///
/// Servers write the id first or last, so nothing between is looked at: what stands there may look like an
/// id and be none.
pub(super) fn answered(line: &[u8]) -> Option<i64> {
    first(line).or_else(|| last(line))
}

const ID: &str = "\"id\":";

fn first(line: &[u8]) -> Option<i64> {
    let start = std::str::from_utf8(line.get(..REACH).unwrap_or(line)).ok()?;
    let (before, after) = start.strip_prefix('{')?.split_once(ID)?;
    let is_outermost = !before.contains(['{', '[']) && !before.contains("\"method\"");
    let (number, _) = after.split_once(',')?;
    number.trim().parse().ok().filter(|_| is_outermost)
}

fn last(line: &[u8]) -> Option<i64> {
    let end = line.get(line.len().saturating_sub(REACH)..)?;
    let end = std::str::from_utf8(end).ok()?.trim_end();
    let (before, after) = end.strip_suffix('}')?.rsplit_once(ID)?;
    // What is before it is the end of another member of the same object.
    let is_outermost = before.trim_end().ends_with(',');
    after.trim().parse().ok().filter(|_| is_outermost)
}

#[cfg(test)]
mod tests {
    use super::answered;

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
        assert_eq!(line("~"), None);
        assert_eq!(line(""), None);
    }
}
