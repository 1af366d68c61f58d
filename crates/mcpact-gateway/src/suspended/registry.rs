//! Registry of suspended calls and their background jobs.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use futures_util::future::join_all;
use mcpact::connection::RawResult;
use mcpact::server::backend::{ClientIdentity, ClientKey, Sealer};
use mcpact_spec::{Era, ErrorCode, Revision};
use mcpact_translate::input::{
    Round, SuspendLimits, SuspendedCallId, SuspendedCalls, input_required,
};
use tokio::sync::mpsc;

use crate::error::ServeError;
use crate::exchange::refuse;
use crate::suspended::call::{CallMessage, END_TIMEOUT};
use crate::sync::lock;
use crate::upstream::Clock;

/// All suspended calls, and the handles of their background jobs.
#[derive(Debug)]
pub(crate) struct SuspendedRegistry {
    calls: Mutex<SuspendedCalls>,
    handles: Mutex<HashMap<SuspendedCallId, SuspendedHandle>>,
    pub(crate) clock: Clock,
    /// Seals the state that clients hold until they resume.
    pub(crate) sealer: Sealer,
}

/// Handle of the background job of a suspended call.
#[derive(Debug)]
pub(crate) struct SuspendedHandle {
    pub(crate) sender: mpsc::UnboundedSender<CallMessage>,
    /// Client connection that ends the call when it closes; `None` if another connection may resume it.
    pub(crate) connection: Option<ClientKey>,
    /// Other calls that may cause questions wait for its instance.
    pub(crate) takes_turn: bool,
}

impl SuspendedRegistry {
    pub(crate) fn new(limits: SuspendLimits, clock: Clock, sealer: Sealer) -> Self {
        Self {
            calls: Mutex::new(SuspendedCalls::new(limits)),
            handles: Mutex::default(),
            clock,
            sealer,
        }
    }

    pub(crate) fn calls(&self) -> MutexGuard<'_, SuspendedCalls> {
        lock(&self.calls)
    }

    pub(crate) fn handles(&self) -> MutexGuard<'_, HashMap<SuspendedCallId, SuspendedHandle>> {
        lock(&self.handles)
    }

    /// Returns the result that requests input from the client.
    pub(crate) fn input_request(&self, round: &Round) -> Result<RawResult, ServeError> {
        self.sealed_request(&round.input_requests, &round.claims.encode())
    }

    /// Returns a result that requests input, with a state that only the gateway can read.
    pub(crate) fn sealed_request(
        &self,
        input_requests: &str,
        claims: &[u8],
    ) -> Result<RawResult, ServeError> {
        let state = self.sealer.seal(claims).ok_or_else(|| {
            let why = "the operating system returned no random numbers";
            refuse(ErrorCode::InternalError, why, Revision::newest(Era::Modern))
        })?;
        Ok(input_required(input_requests, &state).into())
    }

    pub(crate) fn expire(&self) {
        let mut calls = self.calls();
        for expired in calls.expire(self.clock.now()) {
            tracing::info!("suspended call expired: the client sent no answers");
            self.send(expired.call, CallMessage::Expired(expired.answers));
        }
    }

    /// Ends the call that has waited longest for its client, if it has waited for longer than `grace` and holds an
    /// instance that queued calls need.
    pub(crate) fn end_oldest_in_turn(&self, server: &str, grace: Duration) {
        self.end_oldest(server, grace, |call, _| {
            let handles = self.handles();
            handles.get(&call).is_some_and(|handle| handle.takes_turn)
        });
    }

    /// Like [`end_oldest_in_turn`](Self::end_oldest_in_turn), for a call whose principal has no room for another one.
    pub(crate) fn end_oldest_without_room(&self, server: &str, grace: Duration) {
        self.end_oldest(server, grace, |call, without_room| {
            without_room.contains(&call)
        });
    }

    fn end_oldest(
        &self,
        server: &str,
        grace: Duration,
        is_meant: impl Fn(SuspendedCallId, &BTreeSet<SuspendedCallId>) -> bool,
    ) {
        let mut calls = self.calls();
        let without_room = calls.without_room();
        let is_meant = |call| is_meant(call, &without_room);
        if let Some(ended) = calls.end_oldest(is_meant, grace, self.clock.now()) {
            tracing::warn!(
                server,
                "ended a call that waited for the input of its client, because other calls need its place"
            );
            self.send(ended.call, CallMessage::Expired(ended.answers));
        }
    }

    /// Gives up all calls because no client can resume them, and waits briefly for their end.
    pub(crate) async fn abandon(&self) {
        let jobs = self.give_up(|_| true);
        let ended = join_all(jobs.iter().map(mpsc::UnboundedSender::closed));
        // The background jobs have the same time limit.
        let _ = tokio::time::timeout(END_TIMEOUT, ended).await;
    }

    /// Gives up the calls that only this client could resume, after its input has closed.
    pub(crate) fn on_input_closed(&self, identity: &ClientIdentity) {
        let key = Some(&identity.key);
        self.give_up(|call| {
            let handles = self.handles();
            let handle = handles.get(&call);
            handle.is_some_and(|handle| handle.connection.as_ref() == key)
        });
    }

    /// Gives up calls. Returns the channels to their background jobs, which close with the jobs.
    fn give_up(
        &self,
        is_selected: impl Fn(SuspendedCallId) -> bool,
    ) -> Vec<mpsc::UnboundedSender<CallMessage>> {
        let mut calls = self.calls();
        let given_up = calls.abandon(is_selected, self.clock.now());
        let count = given_up.len();
        if count > 0 {
            tracing::info!(count, "dropped questions that no client can answer");
        }
        let jobs = given_up.into_iter().filter_map(|one| {
            self.send(one.call, CallMessage::Expired(one.answers));
            self.sender(one.call)
        });
        jobs.collect()
    }

    /// Returns the channel to the background job of a call.
    pub(crate) fn sender(
        &self,
        call: SuspendedCallId,
    ) -> Option<mpsc::UnboundedSender<CallMessage>> {
        let handles = self.handles();
        handles.get(&call).map(|handle| handle.sender.clone())
    }

    /// Sends a decision to the job of a call. The lock on the suspended calls must be held, so that the job has all
    /// waiting requests before it decides itself.
    pub(crate) fn send(&self, call: SuspendedCallId, message: CallMessage) {
        if let Some(sender) = self.sender(call) {
            // A job that has ended needs no message.
            let _ = sender.send(message);
        }
    }
}
