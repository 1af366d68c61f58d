//! One line or body: a message, or an array of them.

use alloc::vec::Vec;

use crate::envelope::{Envelope, EnvelopeError, ShapeFault};
use crate::layout::Layout;
use crate::scan::{Cursor, ScanError, ScanFault, utf8};

/// Default limit of messages in a batch.
pub const DEFAULT_BATCH_LIMIT: usize = 100;

/// Content of a line or body.
#[derive(Clone, Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "the large variant is the common one; a box would cost an allocation per message"
)]
pub enum Frame<'a> {
    /// One message.
    Single(Envelope<'a>),
    /// An array of messages, each judged on its own.
    Batch(Vec<Result<Envelope<'a>, EnvelopeError>>),
}

impl<'a> Frame<'a> {
    /// Reads a line or body.
    ///
    /// # Errors
    /// The bytes are not JSON, not a message, or an empty array.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, EnvelopeError> {
        Self::read(utf8(bytes)?)
    }

    /// The same for what is known to be text.
    ///
    /// # Errors
    /// As for [`parse`](Self::parse).
    pub fn read(text: &'a str) -> Result<Self, EnvelopeError> {
        let mut cursor = Cursor::new(text);
        if cursor.next_byte()? != b'[' {
            let layout = Layout::parse(text)?;
            return Envelope::view(text, &layout).map(Self::Single);
        }
        let mut members = Vec::new();
        cursor.elements(|cursor| {
            if cursor.next_byte()? == b'{' {
                let start = cursor.clone();
                match Layout::scan(cursor) {
                    Ok(layout) => members.push(Envelope::view(text, &layout)),
                    // A doubled member is the fault of this message alone.
                    Err(
                        error @ ScanError {
                            fault: ScanFault::Duplicate(_),
                            ..
                        },
                    ) => {
                        *cursor = start;
                        cursor.value(1)?;
                        members.push(Err(error.into()));
                    }
                    Err(error) => return Err(error),
                }
            } else {
                cursor.value(1)?;
                members.push(Err(EnvelopeError::Shape {
                    fault: ShapeFault::NotAnObject,
                    id: None,
                }));
            }
            Ok(())
        })?;
        cursor.end()?;
        if members.is_empty() {
            return Err(EnvelopeError::Shape {
                fault: ShapeFault::EmptyBatch,
                id: None,
            });
        }
        Ok(Self::Batch(members))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_judges_each_member_alone() {
        let body = br#"[{"jsonrpc":"2.0","id":1,"method":"ping"}, 7,
            {"jsonrpc":"2.0","method":"notifications/x"}]"#;
        let Frame::Batch(members) = Frame::parse(body).unwrap() else {
            panic!("a batch");
        };
        assert!(matches!(members[0], Ok(Envelope::Request(_))));
        assert!(matches!(
            members[1],
            Err(EnvelopeError::Shape {
                fault: ShapeFault::NotAnObject,
                ..
            })
        ));
        assert!(matches!(members[2], Ok(Envelope::Notification(_))));
    }

    #[test]
    fn an_empty_batch_is_one_invalid_request() {
        assert!(matches!(
            Frame::parse(b" [ ] "),
            Err(EnvelopeError::Shape {
                fault: ShapeFault::EmptyBatch,
                ..
            })
        ));
    }

    #[test]
    fn a_doubled_member_is_the_fault_of_one_message() {
        let body = br#"[{"jsonrpc":"2.0","id":1,"id":2,"method":"x"},{"jsonrpc":"2.0","id":3,"method":"y"}]"#;
        let Frame::Batch(members) = Frame::parse(body).unwrap() else {
            panic!("a batch");
        };
        assert!(matches!(members[0], Err(EnvelopeError::Json(_))));
        assert!(matches!(members[1], Ok(Envelope::Request(_))));
    }

    #[test]
    fn a_broken_member_breaks_the_whole_text() {
        assert!(matches!(
            Frame::parse(b"[{\"a\":}]"),
            Err(EnvelopeError::Json(_))
        ));
        assert!(matches!(
            Frame::parse(b"[{}] x"),
            Err(EnvelopeError::Json(_))
        ));
    }
}
