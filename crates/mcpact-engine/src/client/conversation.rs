//! The conversation itself: requests out, answers in, and whatever the server asks.

use alloc::string::String;
use alloc::sync::Arc;

use mcpact_spec::{Era, Kind, Method, Side};
use mcpact_wire::batch::Frame;
use mcpact_wire::codec;
use mcpact_wire::envelope::{Envelope, Notification, Request, Response};
use mcpact_wire::id::Id;

use super::{Client, Phase, Serving, TransportKind};
use crate::effect::{Call, DropCause, Effect, Effects, End, Severity};
use crate::gate::{check_server_notification, check_server_request, may_send};
use crate::outstanding::RequestTimeout;
use crate::pact::Pact;
use crate::policy::OnUndeclared;
use crate::refusal::{ApiMisuse, Dialect, Misbehaviour, Refusal, WireError};
use crate::server::{cancelled_id, cancelled_message, progress_token, undeclared};
use crate::time::Moment;

impl Client {
    pub(super) fn receive<'a>(
        &mut self,
        bytes: &'a [u8],
        http_status: Option<u16>,
        now: Moment,
        effects: &mut Effects<'a>,
    ) {
        self.first_byte(now);
        match Frame::parse(bytes) {
            Ok(Frame::Single(envelope)) => self.envelope(envelope, http_status, now, effects),
            Ok(Frame::Batch(all)) => {
                for member in all {
                    match member {
                        Ok(envelope) => self.envelope(envelope, http_status, now, effects),
                        Err(error) => {
                            effects.report(Misbehaviour::from(error).into(), Severity::Warning);
                        }
                    }
                }
            }
            Err(error) => effects.report(Misbehaviour::from(error).into(), Severity::Warning),
        }
    }

    fn envelope<'a>(
        &mut self,
        envelope: Envelope<'a>,
        http_status: Option<u16>,
        now: Moment,
        effects: &mut Effects<'a>,
    ) {
        match (envelope, &self.phase) {
            (Envelope::Response(response), Phase::Probing(_) | Phase::Initializing(_)) => {
                self.opening_answer(&response, http_status, now, effects);
            }
            (Envelope::Response(response), _) => self.response(response, effects),
            (Envelope::Request(request), _) => self.server_request(request, effects),
            (Envelope::Notification(note), _) => self.server_note(note, now, effects),
        }
    }

    fn response<'a>(&mut self, response: Response<'a>, effects: &mut Effects<'a>) {
        match response.id.and_then(|id| self.asked.settle(id)) {
            Some(request) => {
                effects.settle(request, End::Answered(response.outcome));
                self.hang_up_when_done(effects);
            }
            None => effects.drop_answer(response.id),
        }
    }

    fn server_request<'a>(&mut self, request: Request<'a>, effects: &mut Effects<'a>) {
        let pact = self.pact().cloned();
        if let Some(pact) = &pact
            && pact.era() == Era::Modern
        {
            // 2026-07-28: servers send no requests. Answering would break the same rule.
            let ruling = pact.rule(Side::Server, Kind::Request, &request.method);
            let refusal = Refusal::not_allowed(&request.method, ruling);
            effects.drop(&request.method, DropCause::OutOfPlace);
            return effects.report(refusal, Severity::Warning);
        }
        if request.method == Method::Ping.as_str() {
            if matches!(
                self.phase,
                Phase::Initializing(_) | Phase::Ready(_) | Phase::Closing
            ) {
                effects.push(Effect::Write(codec::result(request.id, "{}")));
            }
            return;
        }
        let Some(pact) = pact else {
            return effects.drop(&request.method, DropCause::OutOfPlace);
        };
        if let Err(refusal) = self.admit(&pact, &request) {
            let dialect = Dialect {
                revision: pact.revision(),
                errors: self.terms.policy.errors,
            };
            let error = refusal.on_wire(dialect).encode();
            return effects.push(Effect::Write(codec::error(Some(request.id), &error)));
        }
        let method = Method::parse(&request.method);
        effects.push(Effect::Serve(Call::new(request, method, pact, None)));
    }

    fn admit(&mut self, pact: &Pact, request: &Request<'_>) -> Result<(), Refusal> {
        let (method, params) = (&request.method, request.params.raw);
        check_server_request(pact, &self.terms.policy, method, params)?;
        let limit = self.terms.in_flight_limit;
        if self.serving.len() >= limit {
            let what = "requests in flight";
            return Err(Misbehaviour::TooMany { limit, what }.into());
        }
        let id = request.id.to_id();
        if self.serving.contains_key(&id) {
            return Err(Misbehaviour::DuplicateId(id.raw().into()).into());
        }
        self.serving.insert(id, Serving::default());
        Ok(())
    }

    fn server_note<'a>(&mut self, note: Notification<'a>, now: Moment, effects: &mut Effects<'a>) {
        let method = Method::parse(&note.method).or_else(|| Method::parse_alias(&note.method));
        let Some(pact) = self.pact().cloned() else {
            // Before the agreement only log messages have a meaning, and there is no reader for them.
            return effects.drop(&note.method, DropCause::OutOfPlace);
        };
        if method == Some(Method::Cancelled) {
            return self.server_cancelled(note, effects);
        }
        let policy = &self.terms.policy;
        let method = match check_server_notification(&pact, policy, &note.method) {
            Ok(method) => method,
            Err(refusal) => {
                let policy = policy.undeclared;
                undeclared(policy, &note.method, refusal, effects);
                if policy == OnUndeclared::Disconnect {
                    self.phase = Phase::Closing;
                }
                return;
            }
        };
        if method == Some(Method::Progress) {
            self.asked.note_progress(note.params.raw, now);
        }
        effects.observe(method, note);
    }

    fn server_cancelled<'a>(&mut self, note: Notification<'a>, effects: &mut Effects<'a>) {
        let id = cancelled_id(&note);
        let is_ours = id.as_ref().is_some_and(|id| self.asked.contains(id));
        if let Some(serving) = id
            .filter(|_| !is_ours)
            .and_then(|id| self.serving.get_mut(&id))
        {
            serving.cancelled = true;
        } else if !is_ours {
            return effects.drop(&note.method, DropCause::OutOfPlace);
        }
        effects.observe(Some(Method::Cancelled), note);
    }

    pub(super) fn ask(
        &mut self,
        id: i64,
        method: &str,
        params: Option<&str>,
        timeout: RequestTimeout,
        now: Moment,
        effects: &mut Effects<'_>,
    ) {
        effects.write(self.prepare(id, method, params, timeout, now));
    }

    /// Nothing is written, and no state changes, unless every check has passed.
    fn prepare(
        &mut self,
        number: i64,
        method: &str,
        params: Option<&str>,
        timeout: RequestTimeout,
        now: Moment,
    ) -> Result<String, ApiMisuse> {
        let pact = Arc::clone(self.ready(method)?);
        let id = Id::number(number);
        if self.last_id.is_some_and(|last| number <= last) {
            return Err(ApiMisuse::IdReused(id.raw().into()));
        }
        let policy = &self.terms.policy;
        may_send(&pact, policy, Side::Client, Kind::Request, method, params)?;
        let text = match pact.era() {
            Era::Legacy => codec::call(Some(id.as_ref()), method, params),
            Era::Modern => {
                let params = self.terms.stamp(pact.revision(), params)?;
                codec::call(Some(id.as_ref()), method, Some(&params))
            }
        };
        let token = progress_token(params);
        self.asked.add(id, method, token.as_deref(), timeout, now)?;
        self.last_id = Some(number);
        Ok(text)
    }

    /// The pact, if requests may be sent.
    fn ready(&self, method: &str) -> Result<&Arc<Pact>, ApiMisuse> {
        self.pact().ok_or_else(|| ApiMisuse::NotReady {
            method: method.into(),
            state: self.phase.word(),
        })
    }

    pub(super) fn notify(&mut self, method: &str, params: Option<&str>, effects: &mut Effects<'_>) {
        let (sender, kind) = (Side::Client, Kind::Notification);
        let policy = &self.terms.policy;
        let sent = self
            .ready(method)
            .and_then(|pact| may_send(pact, policy, sender, kind, method, params));
        effects.write(sent.map(|()| codec::call(None, method, params)));
    }

    pub(super) fn answer(
        &mut self,
        id: &Id,
        outcome: Result<String, WireError>,
        effects: &mut Effects<'_>,
    ) {
        match self.serving.remove(id) {
            None => effects.drop(id.raw(), DropCause::UnknownAnswer),
            Some(Serving { cancelled: true }) => effects.drop(id.raw(), DropCause::Cancelled),
            Some(Serving { cancelled: false }) => effects.push(Effect::Write(match outcome {
                Ok(result) => codec::result(id.as_ref(), &result),
                Err(error) => codec::error(Some(id.as_ref()), &error.encode()),
            })),
        }
    }

    pub(super) fn cancel(&mut self, number: i64, effects: &mut Effects<'_>) {
        if matches!(self.phase, Phase::Initializing(_)) {
            return effects.push(Effect::Withheld(ApiMisuse::CancelInitialize));
        }
        let id = Id::number(number);
        if let Some(request) = self.asked.settle(id.as_ref()) {
            self.give_up(&request.0, effects);
            effects.settle(request, End::Cancelled);
            self.hang_up_when_done(effects);
        }
    }

    /// Tells the server that a request is given up, in the way of its era.
    pub(super) fn give_up(&self, id: &Id, effects: &mut Effects<'_>) {
        let is_modern = self.era == Some(Era::Modern);
        if is_modern && self.terms.transport == TransportKind::Http {
            effects.push(Effect::Abandon(id.clone()));
        } else {
            effects.push(Effect::Write(cancelled_message(id)));
        }
    }
}
