//! Messages from the client.

use alloc::boxed::Box;
use alloc::sync::Arc;

use mcpact_spec::{Feature, Kind, Method, Revision, Side};
use mcpact_wire::batch::Frame;
use mcpact_wire::codec;
use mcpact_wire::envelope::{Envelope, EnvelopeError, Notification, Request, Response};
use mcpact_wire::id::{Id, IdRef};
use mcpact_wire::raw::Object;

use super::in_flight::{InFlight, ResponsePath};
use super::listen::ListenFilter;
use super::outgoing::level_of;
use super::{Listening, Phase, Server, is, name};
use crate::classify::{ModernCall, PactSource, Route, TransportFacts, admit, route};
use crate::effect::{Call, DropCause, Effect, Effects, End, Severity};
use crate::gate::{check_params, require_of_client};
use crate::pact::Pact;
use crate::policy::{OnEarly, OnUndeclared};
use crate::reason::Reason;
use crate::refusal::{Dialect, Misbehaviour, Refusal};
use crate::time::Moment;

impl Server {
    pub(super) fn receive<'a>(
        &mut self,
        bytes: &'a [u8],
        facts: &TransportFacts<'a>,
        now: Moment,
        effects: &mut Effects<'a>,
    ) {
        match Frame::parse(bytes) {
            Ok(frame) => self.frame(frame, facts, now, effects),
            Err(error) => self.refuse_unreadable(error, effects),
        }
    }

    pub(super) fn frame<'a>(
        &mut self,
        frame: Frame<'a>,
        facts: &TransportFacts<'a>,
        now: Moment,
        effects: &mut Effects<'a>,
    ) {
        self.received = true;
        let negotiated = self.phase.pact().map(|pact| pact.revision());
        match (
            route(Some(&frame), facts, negotiated, &self.endpoint),
            frame,
        ) {
            (Route::Batch(_), Frame::Batch(all)) => self.batch(all, now, effects),
            (Route::Refused(refusal), frame) => self.refuse_frame(&frame, &refusal, effects),
            (Route::Modern, Frame::Single(envelope)) => self.modern(envelope, facts, effects),
            (Route::LegacyOpen, Frame::Single(Envelope::Request(request))) => {
                self.initialize(&request, effects);
            }
            (
                Route::Legacy(_) | Route::Unopened | Route::StrayResponse | Route::LegacyOpen,
                Frame::Single(envelope),
            ) => {
                let answers = match facts {
                    TransportFacts::Stream => ResponsePath::Shared,
                    TransportFacts::Http(_) => ResponsePath::Own,
                };
                self.legacy(envelope, answers, now, effects);
            }
            (Route::LegacyControl | Route::NotAllowed, _)
            | (_, Frame::Batch(_) | Frame::Single(_)) => {
                effects.drop("message", DropCause::OutOfPlace);
            }
        }
    }

    fn refuse_unreadable(&mut self, error: EnvelopeError, effects: &mut Effects<'_>) {
        let id = match &error {
            EnvelopeError::Shape { id, .. } => id.clone(),
            EnvelopeError::Json(_) => None,
        };
        let refusal = Refusal::from(Misbehaviour::from(error));
        let revision = self.fallback_revision();
        self.reply_error(id.as_ref().map(Id::as_ref), &refusal, revision, effects);
    }

    fn refuse_frame(&mut self, frame: &Frame<'_>, refusal: &Refusal, effects: &mut Effects<'_>) {
        match frame {
            Frame::Batch(_) => self.reply_error(None, refusal, self.fallback_revision(), effects),
            Frame::Single(Envelope::Request(request)) => {
                self.refuse_request(request, refusal, effects);
            }
            Frame::Single(Envelope::Notification(note)) => {
                effects.drop(&note.method, DropCause::OutOfPlace);
            }
            Frame::Single(Envelope::Response(response)) => effects.drop_answer(response.id),
        }
    }

    pub(super) fn refuse_request(
        &self,
        request: &Request<'_>,
        refusal: &Refusal,
        effects: &mut Effects<'_>,
    ) {
        self.note_refusal(request, refusal, effects);
        let revision = self.revision_for(request);
        self.reply_error(Some(request.id), refusal, revision, effects);
    }

    fn reply_error(
        &self,
        id: Option<IdRef<'_>>,
        refusal: &Refusal,
        revision: Revision,
        effects: &mut Effects<'_>,
    ) {
        let errors = self.terms.policy.errors;
        let error = refusal.on_wire(Dialect { revision, errors });
        let text = match id {
            None if !revision.has(Feature::ErrorWithoutId) => {
                codec::error_with_null_id(&error.encode())
            }
            id => codec::error(id, &error.encode()),
        };
        effects.push(Effect::Reply {
            text,
            id: id.map(IdRef::to_id),
            http_status: error.http_status,
            refused: Some(refusal.into()),
        });
    }

    /// `2025-03-26 basic#batching`: requests are answered one by one, notifications not at all, and
    /// `initialize` has no place in it.
    fn batch<'a>(
        &mut self,
        all: alloc::vec::Vec<Result<Envelope<'a>, EnvelopeError>>,
        now: Moment,
        effects: &mut Effects<'a>,
    ) {
        let limit = self.terms.policy.batch_limit;
        if all.len() > limit {
            let refusal = Misbehaviour::BatchTooLarge { limit }.into();
            return self.reply_error(None, &refusal, self.fallback_revision(), effects);
        }
        for member in all {
            match member {
                Ok(Envelope::Request(request)) if is(&request.method, Method::Initialize) => {
                    let refusal = Misbehaviour::HandshakeInBatch.into();
                    self.refuse_request(&request, &refusal, effects);
                }
                Ok(envelope) => self.legacy(envelope, ResponsePath::Shared, now, effects),
                Err(error) => self.refuse_unreadable(error, effects),
            }
        }
    }

    fn modern<'a>(
        &mut self,
        envelope: Envelope<'a>,
        facts: &TransportFacts<'a>,
        effects: &mut Effects<'a>,
    ) {
        match envelope {
            Envelope::Request(request) => self.modern_request(request, facts, effects),
            Envelope::Notification(note) if is(&note.method, Method::Cancelled) => {
                self.cancelled(note, effects);
            }
            Envelope::Notification(note) => effects.drop(&note.method, DropCause::OutOfPlace),
            // 2026-07-28 basic/transports/stdio: clients write no responses.
            Envelope::Response(_) => effects.drop("response", DropCause::OutOfPlace),
        }
    }

    fn modern_request<'a>(
        &mut self,
        request: Request<'a>,
        facts: &TransportFacts<'a>,
        effects: &mut Effects<'a>,
    ) {
        let call = match admit(
            &request,
            facts,
            &self.terms.party,
            &self.terms.policy,
            &mut self.cache,
        ) {
            Ok(call) => call,
            Err(refusal) => {
                self.note_refusal(&request, &refusal, effects);
                let revision = self.modern_revision_for(&request);
                return self.reply_error(Some(request.id), &refusal, revision, effects);
            }
        };
        self.served_modern = true;
        if call.source == PactSource::New {
            self.note_agreement(&request, &call.pact, effects);
        }
        let revision = call.pact.revision();
        if call.method == Some(Method::Discover) {
            return self.discover(&request, revision, effects);
        }
        let is_listening = call.method == Some(Method::SubscriptionsListen);
        let listen = is_listening.then(|| ListenFilter::agree(request.params.raw, &call.pact));
        let listen = match listen.transpose() {
            Ok(listen) => listen,
            Err(refusal) => {
                return self.reply_error(Some(request.id), &refusal, revision, effects);
            }
        };
        let entry = InFlight {
            revision,
            log_level: call.log_level,
            listen: listen.map(Box::new),
            subscribes: None,
            cancelled: false,
        };
        let own = self.terms.listening == Listening::Declared;
        let acknowledgement = entry
            .listen
            .as_ref()
            .filter(|_| own)
            .map(|filter| super::outgoing::acknowledgement(request.id, filter));
        if let Err(refusal) = self.serving.take(request.id, entry, ResponsePath::Shared) {
            return self.reply_error(Some(request.id), &refusal, revision, effects);
        }
        // The acknowledgement must be the first message of a subscription.
        if let Some(text) = acknowledgement {
            effects.push(Effect::Write(text));
        }
        let ModernCall {
            method,
            pact,
            log_level,
            ..
        } = call;
        effects.push(Effect::Serve(Call::new(request, method, pact, log_level)));
    }

    fn legacy<'a>(
        &mut self,
        envelope: Envelope<'a>,
        answers: ResponsePath,
        now: Moment,
        effects: &mut Effects<'a>,
    ) {
        match envelope {
            Envelope::Request(request) => self.legacy_request(request, answers, effects),
            Envelope::Notification(note) => self.legacy_note(note, now, effects),
            Envelope::Response(response) => self.response(response, effects),
        }
    }

    fn legacy_request<'a>(
        &mut self,
        request: Request<'a>,
        answers: ResponsePath,
        effects: &mut Effects<'a>,
    ) {
        if is(&request.method, Method::Ping) {
            return effects.reply(request.id, "{}");
        }
        match self.admit_legacy(&request, answers) {
            Ok((method, pact)) => {
                effects.push(Effect::Serve(Call::new(request, method, pact, None)));
            }
            Err(refusal) => self.refuse_request(&request, &refusal, effects),
        }
    }

    fn admit_legacy(
        &mut self,
        request: &Request<'_>,
        answers: ResponsePath,
    ) -> Result<(Option<Method>, Arc<Pact>), Refusal> {
        let without = |missing| Misbehaviour::NotInitialized {
            method: name(&request.method),
            missing,
        };
        let pact = match (&self.phase, self.terms.policy.early) {
            (Phase::Ready(pact), _) | (Phase::AwaitInitialized(pact), OnEarly::Accept) => {
                Arc::clone(pact)
            }
            (Phase::AwaitInitialized(_), OnEarly::Refuse) => {
                return Err(without(Method::Initialized).into());
            }
            (Phase::AwaitInit | Phase::Closed, _) => {
                return Err(without(Method::Initialize).into());
            }
        };
        let method = self.gate(&pact, request)?;
        let entry = InFlight {
            revision: pact.revision(),
            log_level: None,
            listen: None,
            subscribes: self.note(method, request)?,
            cancelled: false,
        };
        self.serving.take(request.id, entry, answers)?;
        Ok((method, pact))
    }

    fn gate(&self, pact: &Pact, request: &Request<'_>) -> Result<Option<Method>, Refusal> {
        let policy = &self.terms.policy;
        let ruling = pact.rule_with(policy.unknown, Side::Client, Kind::Request, &request.method);
        if !ruling.is_open() {
            return Err(Refusal::not_allowed(&request.method, ruling));
        }
        require_of_client(pact, policy, &request.method)?;
        if let Some(method) = ruling.method {
            check_params(pact, method, request.params.raw)?;
        }
        Ok(ruling.method)
    }

    fn legacy_note<'a>(&mut self, note: Notification<'a>, now: Moment, effects: &mut Effects<'a>) {
        let method = Method::parse(&note.method).or_else(|| Method::parse_alias(&note.method));
        match (method, &self.phase) {
            (Some(Method::Initialized), Phase::AwaitInitialized(pact)) => {
                self.phase = Phase::Ready(Arc::clone(pact));
                effects.observe(method, note);
            }
            // It neither opens a connection that has no pact nor does anything twice.
            (Some(Method::Initialized), _) => effects.drop(&note.method, DropCause::OutOfPlace),
            (Some(Method::Cancelled), _) => self.cancelled(note, effects),
            (_, Phase::AwaitInit | Phase::Closed) => {
                effects.drop(&note.method, DropCause::OutOfPlace);
            }
            (_, Phase::AwaitInitialized(pact) | Phase::Ready(pact)) => {
                let pact = Arc::clone(pact);
                self.judge_note(&pact, method, note, now, effects);
            }
        }
    }

    fn judge_note<'a>(
        &mut self,
        pact: &Pact,
        method: Option<Method>,
        note: Notification<'a>,
        now: Moment,
        effects: &mut Effects<'a>,
    ) {
        let policy = &self.terms.policy;
        let ruling = match method {
            Some(method) => pact.rule_on(Side::Client, Kind::Notification, method),
            None => pact.rule_with(
                policy.unknown,
                Side::Client,
                Kind::Notification,
                &note.method,
            ),
        };
        // Some documents call `logging/setLevel` a notification; it does no harm as one.
        let is_set_level =
            method == Some(Method::LoggingSetLevel) && ruling.reason == Reason::WrongKind;
        if is_set_level && self.declares(mcpact_spec::Capability::Logging) {
            self.log_threshold = level_of(note.params.raw).or(self.log_threshold);
            return effects.observe(method, note);
        }
        if ruling.is_open() {
            if method == Some(Method::Progress) {
                self.asked.note_progress(note.params.raw, now);
            }
            return effects.observe(method, note);
        }
        let refusal = Refusal::not_allowed(&note.method, ruling);
        undeclared(policy.undeclared, &note.method, refusal, effects);
        if policy.undeclared == OnUndeclared::Disconnect {
            self.close(effects);
        }
    }

    /// A cancelled request is not answered; cancelling what is not in flight is ignored.
    fn cancelled<'a>(&mut self, note: Notification<'a>, effects: &mut Effects<'a>) {
        if cancelled_id(&note).is_some_and(|id| self.serving.cancel(&id)) {
            effects.observe(Some(Method::Cancelled), note);
        } else {
            effects.drop(&note.method, DropCause::OutOfPlace);
        }
    }

    fn response<'a>(&mut self, response: Response<'a>, effects: &mut Effects<'a>) {
        match response.id.and_then(|id| self.asked.settle(id)) {
            Some(request) => effects.settle(request, End::Answered(response.outcome)),
            None => effects.drop_answer(response.id),
        }
    }
}

/// Id of the request that a notification cancels.
pub(crate) fn cancelled_id(note: &Notification<'_>) -> Option<Id> {
    let params = Object::parse(note.params.raw?).ok()?;
    let id = params.get("requestId").and_then(IdRef::from_token)?;
    Some(id.to_id())
}

/// Applies the policy to a notification that was not negotiated.
pub(crate) fn undeclared(
    policy: OnUndeclared,
    method: &str,
    refusal: Refusal,
    effects: &mut Effects<'_>,
) {
    effects.drop(method, DropCause::Undeclared);
    match policy {
        OnUndeclared::Drop => {}
        OnUndeclared::Warn => effects.report(refusal, Severity::Warning),
        OnUndeclared::Error => effects.report(refusal, Severity::Error),
        OnUndeclared::Disconnect => {
            effects.report(refusal, Severity::Error);
            effects.push(Effect::HangUp);
        }
    }
}

/// A revision's word for whether batches exist; kept beside the code that relies on it.
const _: () = assert!(Revision::ASSUMED_WITHOUT_HEADER.has(Feature::Batching));
