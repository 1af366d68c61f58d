//! What happened lately: the turns in the life of every server, and the lines of its log.
//!
//! Each server has a ring of its own, so that one that talks a lot does not push out the others. Nothing
//! here waits or reads a clock; the time of an entry is an argument.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

/// How many entries of a server are kept, and how many bytes of text at most.
const ENTRIES: usize = 1000;
const BYTES: usize = 256 * 1024;

/// Of a longer line the rest is left out.
const LONGEST: usize = 8 * 1024;

/// One thing that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Counts the entries of all servers.
    pub number: u64,
    /// When, in ISO 8601.
    pub time: String,
    /// To which server; none means the gateway itself.
    pub server: Option<Arc<str>>,
    /// To which of its instances.
    pub instance: Option<u64>,
    /// What kind of thing.
    pub kind: EntryKind,
    /// In words, without control characters.
    pub text: String,
}

/// What kind of thing happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// The server wrote a line to its log.
    Log,
    /// Something became of it, such as `start_failure`.
    Event(&'static str),
}

/// The last entries of all servers of a gateway.
#[derive(Clone, Debug, Default)]
pub struct Chronicle(Arc<Book>);

#[derive(Debug, Default)]
struct Book {
    pages: Mutex<Pages>,
    /// The number of the last entry.
    written: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Pages {
    last: u64,
    rings: BTreeMap<Option<Arc<str>>, Ring>,
}

#[derive(Debug, Default)]
struct Ring {
    entries: VecDeque<Entry>,
    bytes: usize,
}

impl Ring {
    fn push(&mut self, entry: Entry) {
        self.bytes += entry.text.len();
        self.entries.push_back(entry);
        while self.entries.len() > ENTRIES || self.bytes > BYTES {
            let Some(first) = self.entries.pop_front() else {
                return;
            };
            self.bytes -= first.text.len();
        }
    }
}

impl Chronicle {
    fn pages(&self) -> MutexGuard<'_, Pages> {
        self.0.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The pen of a server.
    #[must_use]
    pub fn journal(&self, server: &str) -> Journal {
        Journal {
            chronicle: self.clone(),
            server: Some(Arc::from(server)),
        }
    }

    /// The pen of the gateway itself.
    #[must_use]
    pub fn own_journal(&self) -> Journal {
        Journal {
            chronicle: self.clone(),
            server: None,
        }
    }

    /// The entries after this number, of one server or of everybody, in order.
    #[must_use]
    pub fn since(&self, server: Option<&str>, number: u64) -> Vec<Entry> {
        let pages = self.pages();
        let rings = pages
            .rings
            .iter()
            .filter(|(of, _)| server.is_none() || of.as_deref() == server);
        let mut entries: Vec<Entry> = rings
            .flat_map(|(_, ring)| ring.entries.iter().rev())
            .filter(|entry| entry.number > number)
            .cloned()
            .collect();
        drop(pages);
        entries.sort_unstable_by_key(|entry| entry.number);
        entries
    }

    /// The last entries, in order.
    #[must_use]
    pub fn last(&self, server: Option<&str>, count: usize) -> Vec<Entry> {
        let mut entries = self.since(server, 0);
        entries.drain(..entries.len().saturating_sub(count));
        entries
    }

    /// Tells the number of the last entry whenever there is another one.
    #[must_use]
    pub fn follow(&self) -> watch::Receiver<u64> {
        self.0.written.subscribe()
    }

    /// Forgets every server but these.
    pub(crate) fn keep(&self, servers: &BTreeSet<&str>) {
        let is_kept = |of: &Option<Arc<str>>| of.as_deref().is_none_or(|of| servers.contains(of));
        self.pages().rings.retain(|of, _| is_kept(of));
    }
}

/// What one server writes its entries with.
#[derive(Clone, Debug)]
pub struct Journal {
    chronicle: Chronicle,
    server: Option<Arc<str>>,
}

impl Default for Journal {
    /// The pen of somebody whose entries nobody reads.
    fn default() -> Self {
        Chronicle::default().own_journal()
    }
}

impl Journal {
    /// Writes down what happened at this time.
    pub(crate) fn write(&self, time: String, instance: Option<u64>, kind: EntryKind, text: &str) {
        let mut pages = self.chronicle.pages();
        pages.last += 1;
        let number = pages.last;
        let entry = Entry {
            number,
            time,
            server: self.server.clone(),
            instance,
            kind,
            text: short(text),
        };
        pages
            .rings
            .entry(self.server.clone())
            .or_default()
            .push(entry);
        // While the pages are held, so that nobody is told of a number that goes back.
        self.chronicle.0.written.send_replace(number);
    }
}

/// What fits into an entry: one line that can be shown on a terminal.
fn short(text: &str) -> String {
    let mut end = text.len().min(LONGEST);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let clean = |letter: char| match letter {
        '\n' | '\r' | '\t' => ' ',
        letter if letter.is_control() => '\u{fffd}',
        letter => letter,
    };
    let mut short: String = text[..end].trim_end().chars().map(clean).collect();
    if end < text.len() {
        short.push('…');
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(journal: &Journal, text: &str) {
        journal.write(String::from("now"), Some(1), EntryKind::Log, text);
    }

    fn texts(entries: &[Entry]) -> Vec<&str> {
        entries.iter().map(|entry| entry.text.as_str()).collect()
    }

    #[test]
    fn entries_of_all_servers_are_in_one_order() {
        let chronicle = Chronicle::default();
        let (a, b) = (chronicle.journal("a"), chronicle.journal("b"));
        for (journal, text) in [(&a, "1"), (&b, "2"), (&a, "3")] {
            write(journal, text);
        }
        chronicle.own_journal().write(
            String::from("now"),
            None,
            EntryKind::Event("reload_success"),
            "4",
        );
        assert_eq!(texts(&chronicle.last(None, 10)), ["1", "2", "3", "4"]);
        assert_eq!(texts(&chronicle.last(None, 2)), ["3", "4"]);
        assert_eq!(texts(&chronicle.last(Some("a"), 10)), ["1", "3"]);
        assert_eq!(texts(&chronicle.since(None, 2)), ["3", "4"]);
        assert_eq!(*chronicle.follow().borrow(), 4);
        chronicle.keep(&BTreeSet::from(["b"]));
        assert_eq!(texts(&chronicle.last(None, 10)), ["2", "4"]);
    }

    /// A server that talks a lot neither grows nor pushes out the others.
    #[test]
    fn rings_are_bounded_each_by_itself() {
        let chronicle = Chronicle::default();
        let (quiet, loud) = (chronicle.journal("quiet"), chronicle.journal("loud"));
        write(&quiet, "here");
        for _ in 0..3 * ENTRIES {
            write(&loud, "x");
        }
        assert_eq!(chronicle.last(Some("loud"), usize::MAX).len(), ENTRIES);
        for _ in 0..100 {
            write(&loud, &"é".repeat(LONGEST));
        }
        let kept = chronicle.last(Some("loud"), usize::MAX);
        let bytes: usize = kept.iter().map(|entry| entry.text.len()).sum();
        assert!(bytes <= BYTES && kept.len() < 100);
        assert_eq!(texts(&chronicle.last(Some("quiet"), 1)), ["here"]);
    }

    /// T2: what a server writes cannot drive a terminal, and stays one line.
    #[test]
    fn an_entry_is_one_legible_line() {
        assert_eq!(short("a\nb\u{1b}[2J\r\n"), "a b\u{fffd}[2J");
    }
}
