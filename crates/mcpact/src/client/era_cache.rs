//! Cache of server eras, in memory and optionally in a file.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use mcpact_engine::client::EraVerdict;
use mcpact_engine::client::era_cache::{EraCache as EraTable, EraLookup};
use mcpact_engine::time::Moment;
use mcpact_transport::private_file;
use serde::{Deserialize, Serialize};
use tokio::runtime::Handle;
use tokio::sync::Notify;

use super::client_error::ClientError;
use crate::lock;

const LIMIT: usize = 1024;
const LIFETIME: Duration = Duration::from_secs(7 * 24 * 3600);

/// Minimum time between two writes of the file: a gateway learns the eras of all its servers at once.
const WRITE_INTERVAL: Duration = Duration::from_millis(250);

/// Server eras, shared by several clients. Concurrent connections to an unknown server wait for the first probe.
#[derive(Clone, Debug)]
pub struct EraCache {
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
    table: EraTable,
    entries: BTreeMap<String, FileEntry>,
    /// Time of the last write.
    written: Option<Instant>,
    /// True if a later write is planned.
    is_planned: bool,
}

/// Entry of the file.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct FileEntry {
    era: String,
    /// Seconds since 1970.
    learned: u64,
}

impl Default for EraCache {
    fn default() -> Self {
        Self::new()
    }
}

impl EraCache {
    /// Creates a cache in memory.
    #[must_use]
    pub fn new() -> Self {
        Self::with(BTreeMap::new(), None)
    }

    /// Creates a cache in a file. A missing or unknown file counts as empty.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn in_file(path: impl AsRef<Path>) -> Result<Self, ClientError> {
        let path = path.as_ref();
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
            Err(source) => {
                return Err(ClientError::EraCacheFile {
                    path: path.display().to_string(),
                    source,
                });
            }
        };
        let entries = serde_json::from_str(&text).unwrap_or_default();
        Ok(Self::with(entries, Some(path.to_owned())))
    }

    fn with(entries: BTreeMap<String, FileEntry>, file: Option<PathBuf>) -> Self {
        let mut table = EraTable::new(LIMIT, LIFETIME);
        for (key, entry) in &entries {
            if let Some(verdict) = parse_era(&entry.era) {
                table.learn(key, verdict, Moment::at(Duration::from_secs(entry.learned)));
            }
        }
        Self {
            inner: Arc::new(Inner {
                state: Mutex::new(State {
                    table,
                    entries,
                    written: None,
                    is_planned: false,
                }),
                learned: Notify::new(),
                file,
            }),
        }
    }

    /// Looks up a server; waits while another client probes it.
    pub async fn lookup(&self, key: &str) -> (Option<EraVerdict>, EraProbe) {
        let probe = EraProbe {
            cache: self.clone(),
            key: key.to_owned(),
            is_settled: false,
        };
        loop {
            let learned = self.inner.learned.notified();
            let advice = lock(&self.inner.state).table.lookup(key, now());
            match advice {
                EraLookup::Known(verdict) => return (Some(verdict), probe.settled()),
                EraLookup::Ask => return (None, probe),
                // The probe may be abandoned, so look again.
                EraLookup::Wait => {
                    let _ = tokio::time::timeout(Duration::from_secs(1), learned).await;
                }
            }
        }
    }

    fn learn(&self, key: &str, verdict: EraVerdict) {
        let now = now();
        let mut state = lock(&self.inner.state);
        state.table.learn(key, verdict, now);
        let learned = now.since(Moment::ZERO).as_secs();
        let era = era_name(verdict).to_owned();
        state
            .entries
            .insert(key.to_owned(), FileEntry { era, learned });
        state
            .entries
            .retain(|_, entry| learned.saturating_sub(entry.learned) < LIFETIME.as_secs());
        self.save(&mut state);
        drop(state);
        self.inner.learned.notify_waiters();
    }

    fn forget(&self, key: &str) {
        let mut state = lock(&self.inner.state);
        state.table.forget(key);
        if state.entries.remove(key).is_some() {
            self.save(&mut state);
        }
        drop(state);
        self.inner.learned.notify_waiters();
    }

    /// Writes the file, now or with the changes of the next moment. A lost write only costs a probe next time.
    fn save(&self, state: &mut State) {
        let Some(path) = &self.inner.file else {
            return;
        };
        if state.is_planned {
            return;
        }
        let early = state.written.map(|written| written.elapsed());
        let early = early.filter(|since| *since < WRITE_INTERVAL);
        if let (Some(since), Ok(runtime)) = (early, Handle::try_current()) {
            state.is_planned = true;
            let cache = self.clone();
            runtime.spawn(async move {
                tokio::time::sleep(WRITE_INTERVAL.saturating_sub(since)).await;
                let mut state = lock(&cache.inner.state);
                state.is_planned = false;
                state.written = None;
                cache.save(&mut state);
            });
            return;
        }
        state.written = Some(Instant::now());
        let text = serde_json::to_string_pretty(&state.entries).unwrap_or_default();
        // Other processes may write concurrently.
        if let Err(error) = private_file::replace(path, text.as_bytes()) {
            tracing::warn!(path = %path.display(), %error, "cannot write the era cache file");
        }
    }
}

/// Exclusive permission to probe a server. Dropping it without a result passes it on.
#[derive(Debug)]
pub struct EraProbe {
    cache: EraCache,
    key: String,
    is_settled: bool,
}

impl EraProbe {
    fn settled(mut self) -> Self {
        self.is_settled = true;
        self
    }

    /// Stores the era of the server.
    pub fn learn(&mut self, verdict: EraVerdict) {
        self.is_settled = true;
        self.cache.learn(&self.key, verdict);
    }

    /// Removes an entry that turned out wrong.
    pub fn forget(&mut self) {
        self.is_settled = true;
        self.cache.forget(&self.key);
    }
}

impl Drop for EraProbe {
    fn drop(&mut self) {
        if !self.is_settled {
            self.cache.forget(&self.key);
        }
    }
}

fn now() -> Moment {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    Moment::at(since.unwrap_or_default())
}

const fn era_name(verdict: EraVerdict) -> &'static str {
    match verdict {
        EraVerdict::Modern => "modern",
        EraVerdict::Legacy => "legacy",
        EraVerdict::LegacyDiesOnProbe => "legacy-dies-on-probe",
    }
}

fn parse_era(text: &str) -> Option<EraVerdict> {
    [
        EraVerdict::Modern,
        EraVerdict::Legacy,
        EraVerdict::LegacyDiesOnProbe,
    ]
    .into_iter()
    .find(|verdict| era_name(*verdict) == text)
}
