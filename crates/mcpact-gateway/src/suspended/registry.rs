//! Where parked calls are, and how their keepers are reached.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::error::ServeError;
use bytestring::ByteString;
use mcpact::server::backend::{ClientIdentity, ClientKey, Sealer};
use mcpact_spec::{Era, ErrorCode, Revision};
use mcpact_translate::input::{
    Round, SuspendLimits, SuspendedCallId, SuspendedCalls, input_required,
};
use tokio::sync::{Notify, mpsc};

use crate::exchange::refusal;
use crate::suspended::call::CallMessage;
use crate::suspended::call::LAST_WORDS;
use crate::upstream::Clock;

/// How often expired suspend_limits are looked for.
const ROUND: Duration = Duration::from_secs(1);

/// All parked calls, and who keeps them.
#[derive(Debug)]
pub(crate) struct SuspendedRegistry {
    suspend_limits: Mutex<SuspendedCalls>,
    keepers: Mutex<HashMap<SuspendedCallId, SuspendedHandle>>,
    /// DeclaredTasks whenever a keeper has ended.
    released: Notify,
    pub(crate) clock: Clock,
    /// Seals what clients carry until they come back.
    pub(crate) sealer: Sealer,
}

/// Where the keeper of a call is.
#[derive(Debug)]
pub(crate) struct SuspendedHandle {
    pub(crate) say: mpsc::UnboundedSender<CallMessage>,
    /// The connection with which the call ends; none where its client may come back by another.
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
        self.suspend_limits
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn keepers(&self) -> MutexGuard<'_, HashMap<SuspendedCallId, SuspendedHandle>> {
        self.keepers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many calls wait.
    pub(crate) fn parked(&self) -> usize {
        self.suspend_limits().len()
    }

    /// The result that asks the client.
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

    /// Frees what nobody came back for, as long as the suspended exists.
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

    /// Gives up what no client can come back to any more, and waits a while for those calls to end.
    pub(crate) async fn abandon(&self) {
        let abandoned = self.give_up(|_| true);
        if !abandoned.is_empty() {
            // Their keepers have no more time than that.
            let _ = tokio::time::timeout(LAST_WORDS, self.until_released(&abandoned)).await;
        }
    }

    /// Gives up what only somebody could come back to who says nothing any more.
    pub(crate) fn dismiss(&self, identity: &ClientIdentity) {
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
            tracing::info!(
                count,
                "questions are given up that nobody can answer any more"
            );
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

    /// The keeper of a call has ended.
    pub(crate) fn release(&self, park: SuspendedCallId) {
        self.keepers().remove(&park);
        self.released.notify_waiters();
    }

    /// Tells a keeper what was decided, while the suspend_limits are locked: so it knows of everybody who waits
    /// before it decides itself.
    pub(crate) fn say(&self, park: SuspendedCallId, word: CallMessage) {
        if let Some(keeper) = self.keepers().get(&park) {
            // A keeper that has ended has nothing left to do.
            let _ = keeper.say.send(word);
        }
    }
}
