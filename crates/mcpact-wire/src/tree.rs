//! The tree of a raw value, for those who cannot do without one.

use alloc::borrow::ToOwned;
use alloc::vec::Vec;

use serde_json::{Map, Value};

use crate::scan::{Cursor, MAX_DEPTH, ScanError, ScanFault};

/// The tree of a raw value. Most of a message is long text, which this looks through a block at a time.
///
/// # Errors
/// The text is not one well-formed value, or a string in it says what no text can.
pub fn tree(raw: &str) -> Result<Value, ScanError> {
    let mut cursor = Cursor::new(raw);
    let value = grow(&mut cursor, 0)?;
    cursor.end()?;
    Ok(value)
}

fn grow(cursor: &mut Cursor<'_>, depth: u32) -> Result<Value, ScanError> {
    match cursor.next_byte()? {
        b'{' => {
            let mut members = Map::new();
            cursor.members(depth, |cursor, key| {
                members.insert(key.into_owned(), grow(cursor, depth + 1)?);
                Ok(())
            })?;
            Ok(Value::Object(members))
        }
        b'[' => {
            if depth >= MAX_DEPTH {
                return cursor.fail(ScanFault::Depth);
            }
            let mut elements = Vec::new();
            cursor.elements(|cursor| {
                elements.push(grow(cursor, depth + 1)?);
                Ok(())
            })?;
            Ok(Value::Array(elements))
        }
        b'"' => {
            let at = cursor.at();
            match cursor.plain_string()? {
                Some(text) => Ok(Value::String(text.to_owned())),
                None => leaf(cursor, at, ScanFault::Text),
            }
        }
        _ => {
            let at = cursor.at();
            cursor.skip_value(depth)?;
            leaf(cursor, at, ScanFault::Number)
        }
    }
}

/// Text that the cursor has just stepped over.
fn leaf(cursor: &Cursor<'_>, at: usize, fault: ScanFault) -> Result<Value, ScanError> {
    serde_json::from_str(cursor.since(at)).map_err(|_| ScanError { at, fault })
}

#[cfg(test)]
mod tests {
    use alloc::string::String;

    use super::*;

    #[test]
    fn it_is_the_tree_that_serde_makes() {
        for raw in [
            "null",
            " true ",
            "-1.5e3",
            "18446744073709551615",
            r#""a \"quoted\" \u00e9 \ud83d\ude00 word""#,
            r#"{"a":[1,{"b":[]},"c",{}],"d":{"e":null,"\u0066":false},"a":2}"#,
            "[[[ ]],\"\"]",
        ] {
            let expected: Value = serde_json::from_str(raw).unwrap();
            assert_eq!(tree(raw), Ok(expected), "{raw}");
        }
    }

    #[test]
    fn what_is_no_value_or_no_text_has_none() {
        let deep: String = core::iter::repeat_n('[', 200).collect();
        for raw in ["", "{", r#"{"a":}"#, "1 2", r#""\ud800""#, "1e999", &deep] {
            let expected = serde_json::from_str::<Value>(raw);
            assert!(tree(raw).is_err() && expected.is_err(), "{raw}");
        }
    }
}
