//! Requests of callers: sent, waited for, lost and sent again.

use std::sync::Arc;
use std::time::Duration;

use mcpact_engine::client::{Client as Machine, ClientTerms, EraVerdict, Input};
use mcpact_engine::effect::{Effect, End};
use mcpact_engine::outstanding::RequestTimeout;
use mcpact_spec::Method;
use mcpact_transport::error::TransportError;
use mcpact_wire::envelope::{Envelope, Outcome};
use mcpact_wire::frame::unreadable::{answered, is_answer};
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::answers::{number, rpc_error};
use super::{Ask, Core, Deeds};
use crate::client::client_error::ClientError;

impl Core {
    /// Sends a request and ignores the response.
    pub(super) fn tell(&mut self, method: Method, params: String) -> Deeds {
        let (reply, answer) = oneshot::channel();
        tokio::spawn(answer);
        self.ask(Ask {
            ticket: self.shared.ticket(),
            method: method.as_str().to_owned(),
            params: Some(params),
            patience: RequestTimeout::default(),
            reply,
            progress: None,
            changes: None,
            is_second: true,
        })
    }

    pub(super) fn ask(&mut self, ask: Ask) -> Deeds {
        if ask.reply.is_closed() {
            return Deeds::default();
        }
        self.last_id += 1;
        let id = self.last_id;
        let input = Input::Ask {
            id,
            method: &ask.method,
            params: ask.params.as_deref(),
            timeout: ask.patience,
        };
        let mut deeds = Deeds::default();
        let mut withheld = None;
        for effect in self.step(input) {
            match effect {
                Effect::Withheld(misuse) => withheld = Some(misuse.into()),
                Effect::Write(text) => match self.outgoing("the request", &text) {
                    Ok(()) => deeds.writes.push(text),
                    Err(misfit) => withheld = Some(misfit),
                },
                other => self.effect(other, &mut deeds),
            }
        }
        match withheld {
            Some(error @ ClientError::SchemaViolation { .. }) => {
                // The machine waits for an answer to a message that was never sent.
                let _ = self.feed(Input::Cancel { id });
                drop(ask.reply.send(Err(error)));
            }
            Some(error) => drop(ask.reply.send(Err(error))),
            None => {
                self.tickets.insert(ask.ticket, id);
                self.pending.insert(id, ask);
            }
        }
        deeds
    }

    pub(super) fn notify(
        &mut self,
        method: &str,
        params: Option<&str>,
        reply: oneshot::Sender<Result<(), ClientError>>,
    ) -> Deeds {
        let mut deeds = Deeds::default();
        let mut outcome = Ok(());
        for effect in self.step(Input::Notify { method, params }) {
            match effect {
                Effect::Withheld(misuse) => outcome = Err(misuse.into()),
                Effect::Write(text) => match self.outgoing("the notification", &text) {
                    Ok(()) => deeds.writes.push(text),
                    Err(misfit) => outcome = Err(misfit),
                },
                other => self.effect(other, &mut deeds),
            }
        }
        let _ = reply.send(outcome);
        deeds
    }

    pub(super) fn take(&mut self, id: i64) -> Option<Ask> {
        let ask = self.pending.remove(&id)?;
        self.tickets.remove(&ask.ticket);
        Some(ask)
    }

    /// Cancels the request of a dropped caller.
    pub(super) fn give_up(&mut self, ticket: u64) -> Deeds {
        self.early.retain(|ask| ask.ticket != ticket);
        match self.tickets.get(&ticket) {
            Some(id) => {
                let id = *id;
                self.orphans.remove(&id);
                self.feed(Input::Cancel { id })
            }
            None => Deeds::default(),
        }
    }

    /// Returns `true` if a request is still pending.
    pub(in crate::client) fn waits(&self, id: i64) -> bool {
        self.pending.contains_key(&id)
    }

    /// Fails a request for this reason. The server is not notified: it does not know of it, or has already forgotten.
    pub(in crate::client) fn lose(&mut self, id: i64, error: ClientError) {
        self.orphans.remove(&id);
        if let Some(ask) = self.take(id) {
            let _ = ask.reply.send(Err(error));
        }
        let _ = self.feed(Input::Cancel { id });
    }

    /// Fails the request of an oversized answer, of which these are both ends. Without an id it must be the only
    /// pending request.
    pub(in crate::client) fn missed(&mut self, ends: &[u8], limit: usize) {
        let mut waiting = self.pending.keys();
        let alone = match (waiting.next(), waiting.next()) {
            (Some(id), None) if is_answer(ends) => Some(*id),
            _ => None,
        };
        if let Some(id) = answered(ends).or(alone) {
            self.lose(
                id,
                ClientError::Transport(TransportError::TooLarge { limit }),
            );
        }
    }

    /// Fails all requests after an oversized message that ended the transport.
    pub(in crate::client) fn missed_all(&mut self, limit: usize) {
        let waiting: Vec<i64> = self.pending.keys().copied().collect();
        for id in waiting {
            self.lose(
                id,
                ClientError::Transport(TransportError::TooLarge { limit }),
            );
        }
    }

    pub(super) fn settle(&mut self, id: i64, end: End<'_>) {
        let Some(ask) = self.take(id) else {
            return;
        };
        let outcome = match end {
            End::Answered(Outcome::Result(body)) => self
                .incoming_result(&ask.method, body.raw)
                .map(|()| body.raw.to_owned()),
            End::Answered(Outcome::Error(raw)) => Err(rpc_error(raw).into()),
            End::TimedOut => Err(ClientError::Timeout {
                method: ask.method.clone(),
            }),
            End::Cancelled => Err(ClientError::Cancelled),
            End::ConnectionClosed => Err(ClientError::Closed),
        };
        let _ = ask.reply.send(outcome);
    }

    /// Returns `true` if it was the answer to a request of an earlier session.
    pub(super) fn settle_orphan(&mut self, bytes: &[u8]) -> bool {
        let Ok(Envelope::Response(response)) = Envelope::parse(bytes) else {
            return false;
        };
        let Some(id) = response.id.and_then(number) else {
            return false;
        };
        if self.orphans.remove(&id).is_none() {
            return false;
        }
        self.settle(id, End::Answered(response.outcome));
        true
    }

    /// Puts a request back that the server has refused unread, to be resent in the next session; `false` if that has
    /// happened to it before.
    pub(in crate::client) fn put_back(&mut self, id: i64) -> bool {
        let Some(mut ask) = self.take(id) else {
            return true;
        };
        self.orphans.remove(&id);
        // Settles it in the old machine, which must not send a cancellation.
        let _ = self.feed(Input::Cancel { id });
        if ask.is_second {
            let _ = ask.reply.send(Err(ClientError::SessionLost));
            return false;
        }
        ask.is_second = true;
        self.early.push(ask);
        true
    }

    /// Opens a new session after the server has forgotten the old one. Refused requests are resent; others stay
    /// pending.
    pub(in crate::client) fn reopen_session(&mut self) -> Deeds {
        let terms = ClientTerms {
            prior: Some(EraVerdict::Legacy),
            ..(*self.terms).clone()
        };
        self.machine = Machine::new(Arc::new(terms));
        self.is_open = false;
        let now = Instant::now();
        for (id, ask) in &self.pending {
            let until = now + ask.patience.timeout.min(Duration::from_secs(24 * 3600));
            self.orphans.entry(*id).or_insert(until);
        }
        for (_, task) in self.serving.drain() {
            task.abort();
        }
        self.connected()
    }
}
