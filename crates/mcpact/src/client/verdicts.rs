//! What is known about servers from earlier connections, in memory and, on request, in a file.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use mcpact_engine::client::EraVerdict;
use mcpact_engine::client::era_cache::{EraCache, EraLookup};
use mcpact_engine::time::Moment;
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;

use super::error::ClientError;

const LIMIT: usize = 1024;
const HOLDS_FOR: Duration = Duration::from_secs(7 * 24 * 3600);

/// Verdicts that several clients share. Whoever comes while another asks the same server waits for
/// what that one learns.
#[derive(Clone, Debug)]
pub struct Verdicts {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    state: Mutex<State>,
    learned: Notify,
    file: Option<PathBuf>,
}

#[derive(Debug)]
struct State {
    book: EraCache,
    dated: BTreeMap<String, Dated>,
}

/// One line of the file.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Dated {
    era: String,
    /// Seconds since 1970.
    learned: u64,
}

impl Default for Verdicts {
    fn default() -> Self {
        Self::new()
    }
}

impl Verdicts {
    /// Verdicts that live as long as the program.
    #[must_use]
    pub fn new() -> Self {
        Self::with(BTreeMap::new(), None)
    }

    /// Verdicts that are also kept in a file. A file that is not there yet, or that another version
    /// has written, counts as empty.
    ///
    /// # Errors
    /// The file is there and cannot be read.
    pub fn in_file(path: impl AsRef<Path>) -> Result<Self, ClientError> {
        let path = path.as_ref();
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
            Err(source) => {
                return Err(ClientError::VerdictFile {
                    path: path.display().to_string(),
                    source,
                });
            }
        };
        let dated = serde_json::from_str(&text).unwrap_or_default();
        Ok(Self::with(dated, Some(path.to_owned())))
    }

    fn with(dated: BTreeMap<String, Dated>, file: Option<PathBuf>) -> Self {
        let mut book = EraCache::new(LIMIT, HOLDS_FOR);
        for (key, entry) in &dated {
            if let Some(verdict) = parse(&entry.era) {
                book.learn(key, verdict, Moment::at(Duration::from_secs(entry.learned)));
            }
        }
        Self {
            inner: Arc::new(Inner {
                state: Mutex::new(State { book, dated }),
                learned: Notify::new(),
                file,
            }),
        }
    }

    /// What is known about a server; waits while another asks.
    pub async fn consult(&self, key: &str) -> (Option<EraVerdict>, Inquiry) {
        let asking = Inquiry {
            verdicts: self.clone(),
            key: key.to_owned(),
            is_settled: false,
        };
        loop {
            let learned = self.inner.learned.notified();
            let advice = self.lock().book.lookup(key, now());
            match advice {
                EraLookup::Known(verdict) => return (Some(verdict), asking.settled()),
                EraLookup::Ask => return (None, asking),
                // The book lets somebody else ask after a while, so this must look again.
                EraLookup::Wait => {
                    let _ = tokio::time::timeout(Duration::from_secs(1), learned).await;
                }
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.inner
            .state
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn learn(&self, key: &str, verdict: EraVerdict) {
        let now = now();
        let mut state = self.lock();
        state.book.learn(key, verdict, now);
        let learned = now.since(Moment::ZERO).as_secs();
        let era = write(verdict).to_owned();
        state.dated.insert(key.to_owned(), Dated { era, learned });
        state
            .dated
            .retain(|_, entry| learned.saturating_sub(entry.learned) < HOLDS_FOR.as_secs());
        self.save(&state);
        drop(state);
        self.inner.learned.notify_waiters();
    }

    fn forget(&self, key: &str) {
        let mut state = self.lock();
        state.book.forget(key);
        if state.dated.remove(key).is_some() {
            self.save(&state);
        }
        drop(state);
        self.inner.learned.notify_waiters();
    }

    /// A file that cannot be written costs a probe next time and nothing else.
    fn save(&self, state: &State) {
        let Some(path) = &self.inner.file else {
            return;
        };
        let text = serde_json::to_string_pretty(&state.dated).unwrap_or_default();
        // Others may write at the same time; each has a file of its own until it is whole.
        let temporary = path.with_extension(format!("{}.tmp", std::process::id()));
        let written = std::fs::write(&temporary, text);
        if let Err(error) = written.and_then(|()| std::fs::rename(&temporary, path)) {
            tracing::warn!(path = %path.display(), %error, "the verdict file cannot be written");
        }
    }
}

/// The right to ask a server; given back without a verdict, the next one may ask.
#[derive(Debug)]
pub struct Inquiry {
    verdicts: Verdicts,
    key: String,
    is_settled: bool,
}

impl Inquiry {
    fn settled(mut self) -> Self {
        self.is_settled = true;
        self
    }

    /// Writes down what the server turned out to be.
    pub fn learn(&mut self, verdict: EraVerdict) {
        self.is_settled = true;
        self.verdicts.learn(&self.key, verdict);
    }

    /// What was known has been contradicted.
    pub fn forget(&mut self) {
        self.is_settled = true;
        self.verdicts.forget(&self.key);
    }
}

impl Drop for Inquiry {
    fn drop(&mut self) {
        if !self.is_settled {
            self.verdicts.forget(&self.key);
        }
    }
}

fn now() -> Moment {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    Moment::at(since.unwrap_or_default())
}

const fn write(verdict: EraVerdict) -> &'static str {
    match verdict {
        EraVerdict::Modern => "modern",
        EraVerdict::Legacy => "legacy",
        EraVerdict::LegacyDiesOnProbe => "legacy-dies-on-probe",
    }
}

fn parse(text: &str) -> Option<EraVerdict> {
    [
        EraVerdict::Modern,
        EraVerdict::Legacy,
        EraVerdict::LegacyDiesOnProbe,
    ]
    .into_iter()
    .find(|verdict| write(*verdict) == text)
}
