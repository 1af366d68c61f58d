//! When a server that was lost is tried again.

use std::time::Duration;

use mcpact_bridge::input::Backoff;
use tokio::time::Instant;

use crate::error::{Trouble, UpstreamError};

/// How long to wait after a connection that did not last.
const PAUSES: Backoff = Backoff {
    first: Duration::from_millis(100),
    longest: Duration::from_secs(10),
};

/// A connection that lasted this long was a good one.
const LASTED: Duration = Duration::from_secs(10);

/// What became of the tries so far.
#[derive(Debug, Default)]
pub(super) struct Restarts {
    /// Tries in a row that brought no connection that lasted.
    tries: u32,
    last: Option<Instant>,
    why: String,
}

impl Restarts {
    /// How long the server is to be left alone.
    pub(super) fn pause(&self, now: Instant) -> Duration {
        let (Some(last), 1..) = (self.last, self.tries) else {
            return Duration::ZERO;
        };
        let since = now.saturating_duration_since(last);
        PAUSES.pause(self.tries - 1).saturating_sub(since)
    }

    /// There is no connection, and why.
    pub(super) fn failed(&mut self, now: Instant, error: &UpstreamError) {
        self.tries = self.tries.saturating_add(1);
        self.last = Some(now);
        self.why = error.kind.told();
    }

    /// There is a connection, which has to last to be a good one.
    pub(super) fn opened(&mut self, now: Instant) {
        self.last = Some(now);
    }

    /// The connection is lost.
    pub(super) fn lost(&mut self, now: Instant) {
        let lasted = self.last.map(|last| now.saturating_duration_since(last));
        self.tries = match lasted {
            Some(lasted) if lasted < LASTED => self.tries.saturating_add(1),
            Some(_) | None => 0,
        };
        self.why = String::from("it went away soon after it was reached");
    }

    pub(super) fn suspended(&self, wait: Duration) -> Trouble {
        Trouble::Suspended {
            tries: self.tries,
            wait,
            why: self.why.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused() -> UpstreamError {
        UpstreamError {
            target: String::from("`x`"),
            kind: Trouble::Misbehaved(String::from("it hangs up")),
        }
    }

    #[test]
    fn a_server_that_does_not_stay_is_tried_ever_more_slowly() {
        let start = Instant::now();
        let mut restarts = Restarts::default();
        assert_eq!(restarts.pause(start), Duration::ZERO);
        let mut pauses = Vec::new();
        for _ in 0..9 {
            restarts.failed(start, &refused());
            pauses.push(restarts.pause(start).as_millis());
        }
        let expected = [100, 200, 400, 800, 1600, 3200, 6400, 10_000, 10_000];
        assert_eq!(pauses, expected);
        let later = start + Duration::from_secs(60);
        assert_eq!(restarts.pause(later), Duration::ZERO, "it was left alone");
        restarts.opened(later);
        restarts.lost(later + Duration::from_secs(1));
        assert_eq!(restarts.pause(later).as_secs(), 10, "it did not last");
        restarts.opened(later);
        restarts.lost(later + LASTED);
        assert_eq!(restarts.pause(later), Duration::ZERO, "it was a good one");
    }
}
