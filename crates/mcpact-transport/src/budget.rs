//! Budget of the memory that messages take in this process.
//!
//! Memory belongs to the process, so there is one budget per process, [`MemoryBudget::process`], for all its servers and
//! clients. Messages up to [`FREE`] bytes are not counted. A larger one is charged while it is received, and until its last
//! copy is dropped: [`Charge::hold`] attaches the charge to the bytes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use mcpact_engine::refusal::{ReasonCode, WireError};
use mcpact_wire::raw::ObjectWriter;
use tokio::time::{Instant, sleep};

#[cfg(target_os = "linux")]
mod machine;

/// Size up to which a message costs nothing.
pub const FREE: usize = 4 * 1024;

/// Copies of a request that exist at a time: the body, the translated request, and the output buffer.
pub const REQUEST_COPIES: usize = 4;

/// Copies of a result that exist at a time: the input buffer, the result and the translated result.
pub const RESULT_COPIES: usize = 3;

/// Maximum time a result waits for memory, while its server is not read.
pub const RESULT_WAIT: Duration = Duration::from_secs(10);

/// Bytes that the peer of a large unfinished message must send in a stall timeout to keep its connection while memory is
/// scarce.
pub(crate) const MIN_PROGRESS: usize = 256 * 1024;

/// Pause between two attempts of a waiting result.
pub(crate) const RETRY_PAUSE: Duration = Duration::from_millis(50);

/// Largest message of every transport.
const LARGEST: usize = mcpact_wire::frame::ndjson::DEFAULT_LINE_LIMIT;

/// JSON-RPC code of an internal error.
const INTERNAL_ERROR: i64 = -32603;

/// Minimum of the default limit.
const MIN_DEFAULT: usize = 256 << 20;

/// Memory of a machine of unknown size.
const UNKNOWN_MACHINE: usize = 4 << 30;

/// The budget has no room for a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the memory for messages is exhausted")]
pub struct MemoryExhausted;

impl MemoryExhausted {
    /// Returns the error for the sender of the message.
    #[must_use]
    pub fn on_wire(self) -> WireError {
        let data = ObjectWriter::new().text("reason", ReasonCode::MemoryExhausted.as_str());
        WireError {
            code: INTERNAL_ERROR,
            message: format!("{self}; hint: retry later, or raise `memory_mb`"),
            data: Some(data.finish()),
            http_status: 503,
        }
    }
}

/// Budget of bytes.
#[derive(Debug)]
pub struct MemoryBudget {
    /// 0 until the default is computed.
    limit: AtomicUsize,
    used: AtomicUsize,
    shortages: AtomicU64,
    refused: AtomicU64,
    cut: AtomicU64,
}

static PROCESS: MemoryBudget = MemoryBudget::new(0);

impl MemoryBudget {
    /// Creates a budget; 0 means the default of this machine.
    #[must_use]
    pub const fn new(limit: usize) -> Self {
        Self {
            limit: AtomicUsize::new(limit),
            used: AtomicUsize::new(0),
            shortages: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            cut: AtomicU64::new(0),
        }
    }

    /// Returns the budget of this process.
    #[must_use]
    pub const fn process() -> &'static Self {
        &PROCESS
    }

    /// Changes the limit; 0 means the default of this machine. Charged bytes stay charged.
    pub fn set_limit(&self, bytes: usize) {
        let bytes = if bytes == 0 { default_limit() } else { bytes };
        self.limit.store(bytes, Ordering::Relaxed);
    }

    /// Returns the limit in bytes.
    #[must_use]
    pub fn limit(&self) -> usize {
        match self.limit.load(Ordering::Relaxed) {
            0 => {
                self.set_limit(0);
                self.limit.load(Ordering::Relaxed)
            }
            limit => limit,
        }
    }

    /// Returns the charged bytes.
    #[must_use]
    pub fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// Returns the number of refused messages.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// Returns the number of connections that were closed because their peer read or sent too slowly.
    #[must_use]
    pub fn cut(&self) -> u64 {
        self.cut.load(Ordering::Relaxed)
    }

    /// Counts a refused message.
    pub fn record_refused(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a closed connection.
    pub fn record_cut(&self) {
        self.cut.fetch_add(1, Ordering::Relaxed);
    }

    /// Charges bytes that exist already, also above the limit.
    #[must_use]
    pub fn charge_existing(&'static self, bytes: usize) -> Charge {
        let mut charge = self.empty_charge();
        charge.cover(bytes);
        charge
    }

    /// Returns the bytes that one connection may hold: a quarter of the budget, but at least one message of maximum size.
    fn share_limit(&self) -> usize {
        let limit = self.limit();
        (limit / 4)
            .max(REQUEST_COPIES * LARGEST)
            .min(self.request_limit())
    }

    /// Returns an empty charge.
    #[must_use]
    pub const fn empty_charge(&'static self) -> Charge {
        Charge {
            budget: self,
            account: None,
            bytes: 0,
        }
    }

    /// Charges bytes.
    ///
    /// # Errors
    /// The budget has no room for them.
    pub fn charge(&'static self, bytes: usize) -> Result<Charge, MemoryExhausted> {
        let mut charge = self.empty_charge();
        charge.grow_to(bytes)?;
        Ok(charge)
    }

    /// Returns the bytes that requests may fill. The rest is for results. Without it a call could not read its result, so
    /// it would not end and would keep the memory of its request.
    fn request_limit(&self) -> usize {
        self.limit() / 4 * 3
    }

    fn take(&self, bytes: usize, limit: usize) -> Result<(), MemoryExhausted> {
        if add_below(&self.used, bytes, limit) {
            return Ok(());
        }
        self.shortages.fetch_add(1, Ordering::Relaxed);
        Err(MemoryExhausted)
    }
}

/// Observer of a budget over time.
#[derive(Debug)]
pub struct ScarcityWatch {
    budget: &'static MemoryBudget,
    /// Charges that had found no room at the last look.
    shortages: AtomicU64,
}

impl ScarcityWatch {
    /// Observes a budget from now on.
    #[must_use]
    pub fn new(budget: &'static MemoryBudget) -> Self {
        let shortages = AtomicU64::new(budget.shortages.load(Ordering::Relaxed));
        Self { budget, shortages }
    }

    /// Returns the budget.
    #[must_use]
    pub(crate) const fn budget(&self) -> &'static MemoryBudget {
        self.budget
    }

    /// Returns whether most of the budget is used, or a charge has found no room since the last call.
    pub fn is_scarce(&self) -> bool {
        let shortages = self.budget.shortages.load(Ordering::Relaxed);
        let had_shortage = self.shortages.swap(shortages, Ordering::Relaxed) != shortages;
        had_shortage || self.budget.used() > self.budget.limit() / 4 * 3
    }
}

/// Adds to a counter unless the sum exceeds the limit.
fn add_below(counter: &AtomicUsize, bytes: usize, limit: usize) -> bool {
    let sum = |used: usize| used.checked_add(bytes).filter(|sum| *sum <= limit);
    let added = counter.fetch_update(Ordering::Relaxed, Ordering::Relaxed, sum);
    added.is_ok()
}

/// Resources of one connection: charged bytes, which are limited to its share of the budget, and open sessions.
#[derive(Clone, Debug, Default)]
pub struct ConnectionAccount(Arc<Counters>);

#[derive(Debug, Default)]
struct Counters {
    bytes: AtomicUsize,
    sessions: AtomicUsize,
}

impl ConnectionAccount {
    /// Returns an empty charge that counts towards the share of this connection.
    #[must_use]
    pub fn empty_charge(&self, budget: &'static MemoryBudget) -> Charge {
        Charge {
            budget,
            account: Some(self.clone()),
            bytes: 0,
        }
    }

    /// Counts a session; none if the connection has opened `limit` sessions that are still open.
    #[must_use]
    pub fn open_session(&self, limit: usize) -> Option<SessionSlot> {
        add_below(&self.0.sessions, 1, limit).then(|| SessionSlot(self.clone()))
    }

    /// Returns the number of sessions that the connection has opened and that are still open.
    #[must_use]
    pub fn open_sessions(&self) -> usize {
        self.0.sessions.load(Ordering::Relaxed)
    }
}

/// An open session in the account of a connection, until it is dropped.
#[derive(Debug)]
pub struct SessionSlot(ConnectionAccount);

impl Drop for SessionSlot {
    fn drop(&mut self) {
        self.0.0.sessions.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Charged bytes; dropping it returns them.
#[derive(Debug)]
pub struct Charge {
    budget: &'static MemoryBudget,
    account: Option<ConnectionAccount>,
    bytes: usize,
}

impl Charge {
    /// Returns the charged bytes.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Charges up to this number of bytes in total; does nothing if that many are charged.
    ///
    /// # Errors
    /// The budget or the share of the connection has no room. The charge is unchanged.
    pub fn grow_to(&mut self, bytes: usize) -> Result<(), MemoryExhausted> {
        let more = bytes.saturating_sub(self.bytes);
        if more == 0 {
            return Ok(());
        }
        if let Some(ConnectionAccount(account)) = &self.account
            && !add_below(&account.bytes, more, self.budget.share_limit())
        {
            return Err(MemoryExhausted);
        }
        if let Err(exhausted) = self.budget.take(more, self.budget_limit()) {
            self.release_account(more);
            return Err(exhausted);
        }
        self.bytes = bytes;
        Ok(())
    }

    /// Charges exactly this number of bytes, which exist already, also above the limit and the share of the connection.
    pub fn cover(&mut self, bytes: usize) {
        let (used, account) = (&self.budget.used, self.account.as_ref());
        match bytes.checked_sub(self.bytes) {
            Some(more) => {
                used.fetch_add(more, Ordering::Relaxed);
                if let Some(ConnectionAccount(account)) = account {
                    account.bytes.fetch_add(more, Ordering::Relaxed);
                }
            }
            None => {
                used.fetch_sub(self.bytes - bytes, Ordering::Relaxed);
                self.release_account(self.bytes - bytes);
            }
        }
        self.bytes = bytes;
    }

    /// Returns whether this number of bytes in total could be charged now.
    #[must_use]
    pub fn has_room(&self, bytes: usize) -> bool {
        let more = bytes.saturating_sub(self.bytes);
        let fits = |used: usize, limit: usize| used.saturating_add(more) <= limit;
        let account = self.account.as_ref();
        let held = account.map_or(0, |account| account.0.bytes.load(Ordering::Relaxed));
        let has_room = fits(self.budget.used(), self.budget_limit());
        if !has_room {
            self.budget.shortages.fetch_add(1, Ordering::Relaxed);
        }
        has_room && fits(held, self.budget.share_limit())
    }

    /// Takes the charged bytes out of this charge, which is empty afterwards.
    #[must_use]
    pub fn split(&mut self) -> Self {
        Self {
            budget: self.budget,
            account: self.account.clone(),
            bytes: std::mem::take(&mut self.bytes),
        }
    }

    /// Returns the bytes with this charge attached: it ends when the last part of them is dropped.
    #[must_use]
    pub fn hold(self, bytes: Bytes) -> Bytes {
        match self.bytes {
            0 => bytes,
            _ => Bytes::from_owner(ChargedBytes {
                bytes,
                _charge: self,
            }),
        }
    }

    /// Returns the limit of the budget for this charge. Only requests have an account.
    fn budget_limit(&self) -> usize {
        match self.account {
            Some(_) => self.budget.request_limit(),
            None => self.budget.limit(),
        }
    }

    fn release_account(&self, bytes: usize) {
        if let Some(ConnectionAccount(account)) = &self.account {
            account.bytes.fetch_sub(bytes, Ordering::Relaxed);
        }
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        if self.bytes > 0 {
            self.budget.used.fetch_sub(self.bytes, Ordering::Relaxed);
            self.release_account(self.bytes);
        }
    }
}

/// Wait of a message for memory.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    since: Option<Instant>,
}

impl Waiting {
    /// Grows a charge as [`Charge::grow_to`], but waits up to [`RESULT_WAIT`] for room. Cancel safe: the next call
    /// continues the wait.
    pub(crate) async fn grow(
        &mut self,
        charge: &mut Charge,
        bytes: usize,
    ) -> Result<(), MemoryExhausted> {
        while charge.grow_to(bytes).is_err() {
            let since = *self.since.get_or_insert_with(Instant::now);
            if since.elapsed() >= RESULT_WAIT {
                self.since = None;
                return Err(MemoryExhausted);
            }
            sleep(RETRY_PAUSE).await;
        }
        self.since = None;
        Ok(())
    }
}

/// Bytes with their charge.
struct ChargedBytes {
    bytes: Bytes,
    _charge: Charge,
}

impl AsRef<[u8]> for ChargedBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Returns a quarter of the memory that this process may use, at least 256 MB.
fn default_limit() -> usize {
    #[cfg(target_os = "linux")]
    let memory = machine::memory();
    #[cfg(not(target_os = "linux"))]
    let memory = None;
    (memory.unwrap_or(UNKNOWN_MACHINE) / 4).max(MIN_DEFAULT)
}

#[cfg(test)]
mod tests {
    use tokio::time::timeout;

    use super::*;

    const MEBIBYTE: usize = 1 << 20;

    fn budget(limit: usize) -> &'static MemoryBudget {
        Box::leak(Box::new(MemoryBudget::new(limit)))
    }

    #[test]
    fn charge_above_the_limit_is_refused_and_changes_nothing() {
        let budget = budget(10);
        let watch = ScarcityWatch::new(budget);
        let first = budget.charge(6).unwrap();
        assert!(!watch.is_scarce());
        let mut second = budget.charge(4).unwrap();
        assert_eq!(second.grow_to(5), Err(MemoryExhausted));
        assert_eq!((second.bytes(), budget.used()), (4, 10));
        assert!(watch.is_scarce());
        drop(first);
        second.grow_to(10).unwrap();
        second.grow_to(3).unwrap();
        assert_eq!((second.bytes(), budget.used()), (10, 10));
        drop(second);
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn connection_holds_at_most_its_share() {
        let budget = budget(1024 * MEBIBYTE);
        let (one, other) = (ConnectionAccount::default(), ConnectionAccount::default());
        let mut charge = one.empty_charge(budget);
        charge.grow_to(200 * MEBIBYTE).unwrap();
        let mut second = one.empty_charge(budget);
        assert_eq!(second.grow_to(57 * MEBIBYTE), Err(MemoryExhausted));
        second.grow_to(56 * MEBIBYTE).unwrap();
        let mut of_other = other.empty_charge(budget);
        of_other.grow_to(256 * MEBIBYTE).unwrap();
        drop((charge, second));
        assert_eq!(budget.used(), 256 * MEBIBYTE);
        one.empty_charge(budget).grow_to(256 * MEBIBYTE).unwrap();
    }

    /// A small budget still admits one message of maximum size.
    #[test]
    fn share_has_room_for_the_largest_message() {
        let budget = budget(100 * MEBIBYTE);
        let share = ConnectionAccount::default();
        let mut charge = share.empty_charge(budget);
        charge.grow_to(REQUEST_COPIES * LARGEST).unwrap();
    }

    #[test]
    fn existing_bytes_are_charged_above_the_limit() {
        let budget = budget(10);
        let account = ConnectionAccount::default();
        let mut charge = account.empty_charge(budget);
        charge.cover(15);
        assert_eq!((budget.used(), charge.bytes()), (15, 15));
        assert!(budget.charge(1).is_err());
        charge.cover(4);
        assert_eq!((budget.used(), budget.charge(6).is_ok()), (4, true));
        drop(charge);
        assert_eq!(budget.used(), 0);
        account.empty_charge(budget).grow_to(6).unwrap();
    }

    /// Calls that wait for their results must not keep these from being read.
    #[test]
    fn requests_leave_room_for_results() {
        let budget = budget(100);
        let mut request = ConnectionAccount::default().empty_charge(budget);
        request.grow_to(75).unwrap();
        assert_eq!(request.grow_to(76), Err(MemoryExhausted));
        assert!(!request.has_room(76));
        let result = budget.charge(25).unwrap();
        assert_eq!((result.bytes(), budget.used()), (25, 100));
    }

    #[test]
    fn charge_ends_with_the_last_part_of_its_bytes() {
        let budget = budget(100);
        let charge = budget.charge(30).unwrap();
        let mut bytes = charge.hold(Bytes::from_static(b"0123456789"));
        let part = bytes.split_to(3);
        drop(bytes);
        assert_eq!((&*part, budget.used()), (&b"012"[..], 30));
        drop(part);
        assert_eq!(budget.used(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn waiting_charge_gets_room_or_fails_in_time() {
        let budget = budget(10);
        let full = budget.charge(10).unwrap();
        let (mut charge, mut waiting) = (budget.empty_charge(), Waiting::default());
        let cancelled = timeout(RESULT_WAIT / 2, waiting.grow(&mut charge, 1)).await;
        assert!(cancelled.is_err(), "it waits");
        let rest = Instant::now();
        assert_eq!(waiting.grow(&mut charge, 1).await, Err(MemoryExhausted));
        assert!(rest.elapsed() < RESULT_WAIT, "the wait continued");
        let grown = tokio::spawn(async move { waiting.grow(&mut charge, 1).await });
        tokio::task::yield_now().await;
        drop(full);
        assert_eq!(grown.await.unwrap(), Ok(()));
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn closed_sessions_make_room_for_others() {
        let account = ConnectionAccount::default();
        let first = account.open_session(2).unwrap();
        let second = account.open_session(2).unwrap();
        assert!(account.open_session(2).is_none());
        drop(first);
        let third = account.open_session(2).unwrap();
        assert!(account.open_session(2).is_none());
        drop((second, third));
    }

    #[test]
    fn default_limit_has_a_minimum() {
        assert!(MemoryBudget::new(0).limit() >= MIN_DEFAULT);
        let budget = budget(1);
        budget.set_limit(0);
        assert!(budget.limit() >= MIN_DEFAULT);
    }
}
