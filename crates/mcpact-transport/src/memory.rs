//! Two ends of a conversation inside one process.

use tokio::io::duplex;

use crate::link::Link;

/// How many bytes wait in each direction before the writer has to wait.
const CAPACITY: usize = 64 * 1024;

/// Two links, each of which reads what the other writes.
///
/// They behave like a pair of pipes: a full one makes its writer wait, a closed or dropped sink is the
/// end for the other side's source, and writing to a dropped source fails.
#[must_use]
pub fn pair() -> (Link, Link) {
    // One stream per direction: with one for both, a dropped sink would not be seen while its source lives.
    let (left_write, right_read) = duplex(CAPACITY);
    let (right_write, left_read) = duplex(CAPACITY);
    (
        Link::new(left_read, left_write),
        Link::new(right_read, right_write),
    )
}

#[cfg(test)]
mod tests {
    use mcpact_wire::frame::ndjson::Line;

    use super::pair;
    use crate::error::DoorError;

    /// T6: what one end writes, the other reads, in both directions.
    #[tokio::test]
    async fn each_end_reads_what_the_other_writes() {
        let (mut left, mut right) = pair();
        left.sink.push("{\"from\":\"left\"}");
        right.sink.push("{\"from\":\"right\"}");
        left.sink.flush().await.unwrap();
        right.sink.flush().await.unwrap();
        assert!(right.source.fill().await.unwrap());
        assert_eq!(
            right.source.next_line(),
            Some(Line::Json(b"{\"from\":\"left\"}"))
        );
        assert!(left.source.fill().await.unwrap());
        assert_eq!(
            left.source.next_line(),
            Some(Line::Json(b"{\"from\":\"right\"}"))
        );
    }

    #[tokio::test]
    async fn a_closed_or_dropped_sink_is_the_end() {
        let (mut left, mut right) = pair();
        left.sink.close().await.unwrap();
        assert!(!right.source.fill().await.unwrap());
        drop(right.sink);
        assert!(!left.source.fill().await.unwrap());
    }

    #[tokio::test]
    async fn writing_to_a_dropped_source_fails() {
        let (mut left, right) = pair();
        drop(right.source);
        left.sink.push("{}");
        assert!(matches!(left.sink.flush().await, Err(DoorError::Io(_))));
    }

    /// T9: a reader that does not read makes the writer wait.
    #[tokio::test]
    async fn a_full_pipe_makes_the_writer_wait() {
        let (mut left, mut right) = pair();
        left.sink.push(&"7".repeat(2 * super::CAPACITY));
        let mut flush = Box::pin(left.sink.flush());
        let waits = tokio::select! {
            biased;
            _ = &mut flush => false,
            () = tokio::task::yield_now() => true,
        };
        assert!(waits);
        let (written, ()) = tokio::join!(flush, async {
            while right.source.next_line().is_none() {
                assert!(right.source.fill().await.unwrap());
            }
        });
        written.unwrap();
    }
}
