//! Registry of suspended calls and their background jobs.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use bytestring::ByteString;
use mcpact::server::backend::{ClientIdentity, ClientKey, Sealer};
use mcpact_spec::{Era, ErrorCode, Revision};
use mcpact_translate::input::{
    Round, SuspendLimits, SuspendedCallId, SuspendedCalls, input_required,
};
use tokio::sync::{Notify, mpsc};

use crate::error::ServeError;
use crate::exchange::refusal;
use crate::suspended::call::{CallMessage, LAST_WORDS};
use crate::sync::lock;
use crate::upstream::Clock;

/// Interval of the check for expired calls.
const ROUND: Duration = Duration::from_secs(1);

/// All suspended calls, and the handles of their background jobs.
#[derive(Debug)]
pub(crate) struct SuspendedRegistry {
    suspend_limits: Mutex<SuspendedCalls>,
    keepers: Mutex<HashMap<SuspendedCallId, SuspendedHandle>>,
    /// Notified when a background job has ended.
    released: Notify,
    pub(crate) clock: Clock,
    /// Seals the state that clients hold until they resume.
    pub(crate) sealer: Sealer,
}

/// Handle of the background job of a suspended call.
#[derive(Debug)]
pub(crate) struct SuspendedHandle {
    pub(crate) say: mpsc::UnboundedSender<CallMessage>,
    /// Client connection that ends the call when it closes; `None` if another connection may resume it.
    pub(crate) connection: Option<ClientKey>,
}

impl SuspendedRegistry {
    pub(crate) fn new(limits: SuspendLimits, clock: Clock, sealer: Sealer) -> Self {
        Self {
            suspend_limits: Mutex::new(SuspendedCalls::new(limits)),
            keepers: Mutex::default(),
            released: Notify::new(),
            clock,
            sealer,
        }
    }

    pub(crate) fn suspend_limits(&self) -> MutexGuard<'_, SuspendedCalls> {
        lock(&self.suspend_limits)
    }

    pub(crate) fn keepers(&self) -> MutexGuard<'_, HashMap<SuspendedCallId, SuspendedHandle>> {
        lock(&self.keepers)
    }

    /// Returns the number of suspended calls.
    pub(crate) fn parked(&self) -> usize {
        self.suspend_limits().len()
    }

    /// Returns the result that requests input from the client.
    pub(crate) fn asked(&self, round: &Round) -> Result<ByteString, ServeError> {
        self.sealed(&round.input_requests, &round.claims.encode())
    }

    pub(crate) fn sealed(
        &self,
        input_requests: &str,
        claims: &[u8],
    ) -> Result<ByteString, ServeError> {
        let state = self.sealer.seal(claims).ok_or_else(|| {
            let why = String::from("the operating system gave no random numbers");
            refusal(
                ErrorCode::InternalError.code(),
                why,
                None,
                Revision::newest(Era::Modern),
            )
        })?;
        Ok(input_required(input_requests, &state).into())
    }

    /// Starts the background job that expires calls; it ends with the registry.
    pub(crate) fn watch(self: &Arc<Self>) {
        let suspended = Arc::downgrade(self);
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(ROUND).await;
                let Some(suspended) = suspended.upgrade() else {
                    return;
                };
                let mut suspend_limits = suspended.suspend_limits();
                for park in suspend_limits.expire(suspended.clock.now()) {
                    tracing::info!("a client did not come back with its answers");
                    suspended.say(park.call, CallMessage::Expired(park.answers));
                }
            }
        });
    }

    /// Gives up all calls because no client can resume them, and waits briefly for their end.
    pub(crate) async fn abandon(&self) {
        let abandoned = self.give_up(|_| true);
        if !abandoned.is_empty() {
            // The background jobs have the same time limit.
            let _ = tokio::time::timeout(LAST_WORDS, self.until_released(&abandoned)).await;
        }
    }

    /// Gives up the calls that only this client could resume, after its input has closed.
    pub(crate) fn on_input_closed(&self, identity: &ClientIdentity) {
        let is_theirs = |post: &SuspendedHandle| post.connection.as_ref() == Some(&identity.key);
        let theirs: Vec<SuspendedCallId> = {
            let keepers = self.keepers();
            let theirs = keepers.iter().filter(|(_, post)| is_theirs(post));
            theirs.map(|(park, _)| *park).collect()
        };
        self.give_up(|park| theirs.contains(&park));
    }

    fn give_up(&self, is_meant: impl Fn(SuspendedCallId) -> bool) -> Vec<SuspendedCallId> {
        let mut suspend_limits = self.suspend_limits();
        let given_up = suspend_limits.abandon(is_meant, self.clock.now());
        let count = given_up.len();
        if count > 0 {
            tracing::info!(count, "dropped questions that no client can answer");
        }
        let told = given_up.into_iter().map(|park| {
            self.say(park.call, CallMessage::Expired(park.answers));
            park.call
        });
        told.collect()
    }

    async fn until_released(&self, suspend_limits: &[SuspendedCallId]) {
        loop {
            let mut released = pin!(self.released.notified());
            released.as_mut().enable();
            let are_kept = {
                let keepers = self.keepers();
                suspend_limits.iter().any(|park| keepers.contains_key(park))
            };
            if !are_kept {
                return;
            }
            released.await;
        }
    }

    /// Removes the entry of a call after its background job has ended.
    pub(crate) fn release(&self, park: SuspendedCallId) {
        self.keepers().remove(&park);
        self.released.notify_waiters();
    }

    /// Sends a decision to the job of a call. The lock on the suspended calls must be held, so that the job has all
    /// waiting requests before it decides itself.
    pub(crate) fn say(&self, park: SuspendedCallId, word: CallMessage) {
        if let Some(keeper) = self.keepers().get(&park) {
            // A job that has ended needs no message.
            let _ = keeper.say.send(word);
        }
    }
}
