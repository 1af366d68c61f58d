//! Recent events and log lines of the gateway and its servers.
//!
//! Each server has its own ring buffer, so that a chatty server does not evict the entries of others. Nothing here waits
//! or reads a clock; the time of an entry is an argument.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex};

use tokio::sync::watch;

use crate::sync::lock;

/// Maximum number of entries per server.
const ENTRIES: usize = 1000;

/// Maximum bytes of text per server.
const BYTES: usize = 256 * 1024;

/// Maximum bytes of text per entry; longer text is truncated.
const LONGEST: usize = 8 * 1024;

/// Event or log line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogEntry {
    /// Sequence number over all servers.
    pub number: u64,
    /// Time in ISO 8601.
    pub time: String,
    /// Server; none for the gateway itself.
    pub server: Option<Arc<str>>,
    /// Instance of the server.
    pub instance: Option<u64>,
    /// Kind of the entry.
    pub kind: LogEntryKind,
    /// Text without control characters.
    pub text: String,
}

/// Kind of a [`LogEntry`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogEntryKind {
    /// Line that the server logged.
    Log,
    /// Event such as `start_failure`.
    Event(&'static str),
}

/// Recent entries of a gateway and its servers.
#[derive(Clone, Debug, Default)]
pub struct EventHistory {
    rings: Arc<Mutex<Rings>>,
    /// Number of the last entry.
    last: watch::Sender<u64>,
}

type Rings = BTreeMap<Option<Arc<str>>, Ring>;

#[derive(Debug, Default)]
struct Ring {
    entries: VecDeque<LogEntry>,
    bytes: usize,
}

impl Ring {
    fn push(&mut self, entry: LogEntry) {
        self.bytes += entry.text.len();
        self.entries.push_back(entry);
        while (self.entries.len() > ENTRIES || self.bytes > BYTES)
            && let Some(first) = self.entries.pop_front()
        {
            self.bytes -= first.text.len();
        }
    }
}

impl EventHistory {
    /// Returns the log of a server.
    #[must_use]
    pub fn server_log(&self, server: &str) -> ServerLog {
        ServerLog {
            history: self.clone(),
            server: Some(Arc::from(server)),
        }
    }

    /// Returns the log of the gateway itself.
    #[must_use]
    pub fn gateway_log(&self) -> ServerLog {
        ServerLog {
            history: self.clone(),
            server: None,
        }
    }

    /// Returns the entries after this number in order, of one server or of all.
    #[must_use]
    pub fn since(&self, server: Option<&str>, number: u64) -> Vec<LogEntry> {
        let rings = lock(&self.rings);
        let selected = rings
            .iter()
            .filter(|(of, _)| server.is_none() || of.as_deref() == server);
        let mut entries: Vec<LogEntry> = selected
            .flat_map(|(_, ring)| &ring.entries)
            .filter(|entry| entry.number > number)
            .cloned()
            .collect();
        drop(rings);
        entries.sort_unstable_by_key(|entry| entry.number);
        entries
    }

    /// Returns the last entries in order, of one server or of all.
    #[must_use]
    pub fn last(&self, server: Option<&str>, count: usize) -> Vec<LogEntry> {
        let mut entries = self.since(server, 0);
        entries.drain(..entries.len().saturating_sub(count));
        entries
    }

    /// Returns a channel with the number of the last entry.
    #[must_use]
    pub fn follow(&self) -> watch::Receiver<u64> {
        self.last.subscribe()
    }

    /// Removes the entries of all servers but these.
    pub(crate) fn keep(&self, servers: &BTreeSet<&str>) {
        let is_kept = |of: &Option<Arc<str>>| of.as_deref().is_none_or(|of| servers.contains(of));
        lock(&self.rings).retain(|of, _| is_kept(of));
    }
}

/// Writer of the entries of one server. The default has no readers.
#[derive(Clone, Debug, Default)]
pub struct ServerLog {
    history: EventHistory,
    server: Option<Arc<str>>,
}

impl ServerLog {
    /// Appends an entry.
    pub(crate) fn write(
        &self,
        time: String,
        instance: Option<u64>,
        kind: LogEntryKind,
        text: &str,
    ) {
        // The lock is held until readers are notified: the number never goes back.
        let mut rings = lock(&self.history.rings);
        let number = *self.history.last.borrow() + 1;
        rings
            .entry(self.server.clone())
            .or_default()
            .push(LogEntry {
                number,
                time,
                server: self.server.clone(),
                instance,
                kind,
                text: sanitized(text),
            });
        self.history.last.send_replace(number);
    }
}

/// Returns the text as one line without control characters, truncated to [`LONGEST`].
fn sanitized(text: &str) -> String {
    let end = text.floor_char_boundary(LONGEST);
    let clean = |letter: char| match letter {
        '\n' | '\r' | '\t' => ' ',
        letter if letter.is_control() => '\u{fffd}',
        letter => letter,
    };
    let mut line: String = text[..end].trim_end().chars().map(clean).collect();
    if end < text.len() {
        line.push('…');
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(log: &ServerLog, text: &str) {
        log.write(String::from("now"), Some(1), LogEntryKind::Log, text);
    }

    fn texts(entries: &[LogEntry]) -> Vec<&str> {
        entries.iter().map(|entry| entry.text.as_str()).collect()
    }

    #[test]
    fn entries_of_all_servers_share_one_order() {
        let history = EventHistory::default();
        let (a, b) = (history.server_log("a"), history.server_log("b"));
        for (log, text) in [(&a, "1"), (&b, "2"), (&a, "3")] {
            write(log, text);
        }
        history.gateway_log().write(
            String::from("now"),
            None,
            LogEntryKind::Event("reload_success"),
            "4",
        );
        assert_eq!(texts(&history.last(None, 10)), ["1", "2", "3", "4"]);
        assert_eq!(texts(&history.last(None, 2)), ["3", "4"]);
        assert_eq!(texts(&history.last(Some("a"), 10)), ["1", "3"]);
        assert_eq!(texts(&history.since(None, 2)), ["3", "4"]);
        assert_eq!(*history.follow().borrow(), 4);
        history.keep(&BTreeSet::from(["b"]));
        assert_eq!(texts(&history.last(None, 10)), ["2", "4"]);
    }

    /// A chatty server is bounded and does not evict the entries of others.
    #[test]
    fn each_ring_is_bounded() {
        let history = EventHistory::default();
        let (quiet, loud) = (history.server_log("quiet"), history.server_log("loud"));
        write(&quiet, "here");
        for _ in 0..3 * ENTRIES {
            write(&loud, "x");
        }
        assert_eq!(history.last(Some("loud"), usize::MAX).len(), ENTRIES);
        for _ in 0..100 {
            write(&loud, &"é".repeat(LONGEST));
        }
        let kept = history.last(Some("loud"), usize::MAX);
        let bytes: usize = kept.iter().map(|entry| entry.text.len()).sum();
        assert!(bytes <= BYTES && kept.len() < 100);
        assert_eq!(texts(&history.last(Some("quiet"), 1)), ["here"]);
    }

    /// T2: the text of an entry is one line without control characters.
    #[test]
    fn entries_are_sanitized() {
        assert_eq!(sanitized("a\nb\u{1b}[2J\r\n"), "a b\u{fffd}[2J");
    }
}
