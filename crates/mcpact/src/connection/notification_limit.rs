//! Rate limit of the notifications of a server.
//!
//! A server that exceeds the rate costs little: it is read with pauses, and its notifications are combined or dropped.
//! Responses are never dropped, and wait for a few pauses at most.

use std::collections::VecDeque;
use std::time::Duration;

use mcpact_spec::Method;
use tokio::time::Instant;

use super::inbox::ServerNotification;

/// Notifications per second, and the additional ones for each call in flight.
const RATE: (f64, f64) = (1000.0, 100.0);

/// Time without notifications that is saved up for a burst.
const BURST_SECONDS: f64 = 2.0;

/// Pause after work above the rate, as a multiple of the time that the work took.
const PAUSE_FACTOR: u32 = 9;

/// Pauses below this time are collected.
const MIN_PAUSE: Duration = Duration::from_millis(5);

/// Maximum pause: the delay of a response.
const MAX_PAUSE: Duration = Duration::from_millis(250);

/// Maximum number of notifications that wait for the rate.
const MAX_HELD: usize = 256;

/// Maximum size of the notifications that wait for the rate.
const MAX_HELD_BYTES: usize = 256 * 1024;

/// Interval of attempts to forward waiting notifications.
pub(super) const HELD_INTERVAL: Duration = Duration::from_millis(10);

/// Rate limit of one connection.
#[derive(Debug)]
pub(super) struct NotificationLimit {
    /// Messages that may be forwarded now.
    tokens: f64,
    refilled: Instant,
    held: VecDeque<ServerNotification>,
    held_bytes: usize,
    is_exceeded: bool,
    pause: Duration,
}

/// Treatment of a notification.
#[derive(Debug)]
pub(super) enum Admission {
    Forward(ServerNotification),
    /// It waits, or equals one that waits.
    Held,
    Dropped,
}

impl NotificationLimit {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            tokens: RATE.0 * BURST_SECONDS,
            refilled: now,
            held: VecDeque::new(),
            held_bytes: 0,
            is_exceeded: false,
            pause: Duration::ZERO,
        }
    }

    /// Accounts for the time that has passed.
    pub(super) fn refill(&mut self, now: Instant, calls_in_flight: usize) {
        let rate = RATE.0 + RATE.1 * calls_in_flight as f64;
        let seconds = now.duration_since(self.refilled).as_secs_f64();
        self.refilled = now;
        self.tokens = (self.tokens + seconds * rate).min(rate * BURST_SECONDS);
    }

    /// Counts a message that is no response to a call. Returns false if it exceeds the rate.
    pub(super) fn count(&mut self) -> bool {
        if self.tokens < 1.0 {
            self.is_exceeded = true;
            return false;
        }
        self.tokens -= 1.0;
        true
    }

    /// Decides about a notification. Above the rate, progress and logs are dropped, and others wait.
    pub(super) fn admit(&mut self, notification: ServerNotification) -> Admission {
        if self.count() {
            return Admission::Forward(notification);
        }
        if let Method::Progress | Method::LoggingMessage = notification.method {
            return Admission::Dropped;
        }
        let is_same = |held: &ServerNotification| {
            held.method == notification.method && held.params == notification.params
        };
        if self.held.iter().any(is_same) {
            return Admission::Held;
        }
        let bytes = self.held_bytes + notification.params.len();
        if self.held.len() >= MAX_HELD || bytes > MAX_HELD_BYTES {
            return Admission::Dropped;
        }
        self.held_bytes = bytes;
        self.held.push_back(notification);
        Admission::Held
    }

    /// Returns a notification that need not wait any longer.
    pub(super) fn release(&mut self) -> Option<ServerNotification> {
        if self.tokens < 1.0 {
            return None;
        }
        let notification = self.take_held()?;
        self.tokens -= 1.0;
        Some(notification)
    }

    /// Returns a waiting notification, also above the rate.
    pub(super) fn take_held(&mut self) -> Option<ServerNotification> {
        let notification = self.held.pop_front()?;
        self.held_bytes -= notification.params.len();
        Some(notification)
    }

    /// Returns true if notifications wait.
    pub(super) fn is_holding(&self) -> bool {
        !self.held.is_empty()
    }

    /// Returns the pause before more is read.
    pub(super) fn pause_after(&mut self, work: impl FnOnce() -> Duration) -> Option<Duration> {
        if !std::mem::take(&mut self.is_exceeded) {
            self.pause = Duration::ZERO;
            return None;
        }
        self.pause = (self.pause + work() * PAUSE_FACTOR).min(MAX_PAUSE);
        (self.pause >= MIN_PAUSE).then(|| std::mem::take(&mut self.pause))
    }
}

/// Interval of log lines about dropped messages.
const LOG_INTERVAL: Duration = Duration::from_secs(60);

/// Messages that were dropped since the last log line.
#[derive(Debug, Default)]
pub(super) struct DropCount {
    dropped: u64,
    logged: Option<Instant>,
}

impl DropCount {
    /// Counts a message. Returns the number to log if a log line is due.
    pub(super) fn add(&mut self, now: Instant) -> Option<u64> {
        self.dropped += 1;
        let is_due = self
            .logged
            .is_none_or(|logged| now.duration_since(logged) >= LOG_INTERVAL);
        is_due.then(|| {
            self.logged = Some(now);
            std::mem::take(&mut self.dropped)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(method: Method, params: &'static str) -> ServerNotification {
        ServerNotification {
            method,
            params: params.into(),
        }
    }

    fn exceeded(now: Instant) -> NotificationLimit {
        let mut limit = NotificationLimit::new(now);
        while limit.count() {}
        limit
    }

    #[test]
    fn normal_rate_is_neither_delayed_nor_dropped() {
        let start = Instant::now();
        let mut limit = NotificationLimit::new(start);
        for step in 0..10_000 {
            let now = start + Duration::from_millis(2) * step;
            limit.refill(now, 1);
            let progress = note(Method::Progress, "{}");
            assert!(matches!(limit.admit(progress), Admission::Forward(_)));
            assert_eq!(limit.pause_after(|| Duration::from_secs(1)), None);
        }
    }

    #[test]
    fn rate_grows_with_the_calls_in_flight() {
        let start = Instant::now();
        let mut limit = exceeded(start);
        limit.refill(start + Duration::from_secs(1), 90);
        assert_eq!((0..20_000).filter(|_| limit.count()).count(), 10_000);
    }

    #[test]
    fn changes_above_the_rate_are_combined_and_forwarded_later() {
        let start = Instant::now();
        let mut limit = exceeded(start);
        for _ in 0..3 {
            for change in [
                note(Method::ToolsListChanged, "{}"),
                note(Method::ResourcesUpdated, r#"{"uri":"a:b"}"#),
            ] {
                assert!(matches!(limit.admit(change), Admission::Held));
            }
            for lossy in [Method::Progress, Method::LoggingMessage] {
                let lossy = limit.admit(note(lossy, "{}"));
                assert!(matches!(lossy, Admission::Dropped));
            }
        }
        assert!(limit.is_holding() && limit.release().is_none());
        limit.refill(start + HELD_INTERVAL, 0);
        let released: Vec<_> = std::iter::from_fn(|| limit.release())
            .map(|held| held.method)
            .collect();
        assert_eq!(
            released,
            [Method::ToolsListChanged, Method::ResourcesUpdated]
        );
        assert!(!limit.is_holding() && limit.held_bytes == 0);
    }

    #[test]
    fn waiting_notifications_are_limited() {
        let mut limit = exceeded(Instant::now());
        let long = ServerNotification {
            method: Method::ResourcesUpdated,
            params: "x".repeat(MAX_HELD_BYTES + 1).into(),
        };
        assert!(matches!(limit.admit(long), Admission::Dropped));
        for number in 0..MAX_HELD + 1 {
            let update = ServerNotification {
                method: Method::ResourcesUpdated,
                params: number.to_string().into(),
            };
            let is_held = matches!(limit.admit(update), Admission::Held);
            assert_eq!(is_held, number < MAX_HELD);
        }
    }

    /// Nine tenths of the time above the rate are pauses.
    #[test]
    fn work_above_the_rate_is_followed_by_pauses() {
        let mut limit = exceeded(Instant::now());
        let mut paused = Duration::ZERO;
        for _ in 0..1000 {
            assert!(!limit.count());
            let pause = limit.pause_after(|| Duration::from_micros(100));
            paused += pause.unwrap_or_default();
        }
        assert!(paused > Duration::from_millis(890) && paused <= Duration::from_millis(900));
        assert!(!limit.count());
        let longest = limit.pause_after(|| Duration::from_secs(10));
        assert_eq!(longest, Some(MAX_PAUSE));
    }

    #[test]
    fn one_log_line_per_minute() {
        let start = Instant::now();
        let mut count = DropCount::default();
        assert_eq!(count.add(start), Some(1));
        assert_eq!(count.add(start), None);
        assert_eq!(count.add(start + LOG_INTERVAL), Some(2));
    }
}
