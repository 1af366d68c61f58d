//! The conversation itself: requests out, answers in, and whatever the server asks.

use alloc::boxed::Box;
use alloc::string::String;

use mcpact_spec::{Era, Kind, Method, Side};
use mcpact_wire::batch::Frame;
use mcpact_wire::codec;
use mcpact_wire::envelope::{Envelope, Notification, Request, Response};
use mcpact_wire::id::{Id, IdRef};
use mcpact_wire::raw::Object;

use super::{Client, Phase, Serving, TransportKind};
use crate::effect::{Call, DropCause, Effect, Effects, End, IncomingNotification, Severity};
use crate::gate::{check_server_notification, check_server_request, may_send};
use crate::outstanding::{AddError, RequestTimeout};
use crate::pact::Pact;
use crate::policy::OnUndeclared;
use crate::refusal::{ApiMisuse, Dialect, Misbehaviour, Refusal, WireError};
use crate::server::{cancelled_message, progress_token, undeclared};
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
            Some((id, method)) => {
                let end = End::Answered(response.outcome);
                effects.push(Effect::Settled { id, method, end });
                self.hang_up_when_done(effects);
            }
            None => {
                effects.drop(
                    response.id.map_or("response", IdRef::raw),
                    DropCause::UnknownAnswer,
                );
            }
        }
    }

    fn server_request<'a>(&mut self, request: Request<'a>, effects: &mut Effects<'a>) {
        let pact = self.pact().cloned();
        if let Some(pact) = &pact
            && pact.era() == Era::Modern
        {
            // 2026-07-28: servers send no requests. Answering would break the same rule.
            let refusal = ruling(pact, &request.method, Kind::Request);
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
        effects.push(Effect::Serve(Call {
            id: request.id.to_id(),
            method: Method::parse(&request.method),
            name: Box::from(request.method.as_ref()),
            params: request.params,
            pact,
            log_level: None,
        }));
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
            let object = Object::parse(note.params.raw.unwrap_or("{}")).unwrap_or_default();
            if let Some(token) = object.get("progressToken") {
                self.asked.progress(token, now);
            }
        }
        effects.push(Effect::Observe(IncomingNotification {
            method,
            name: note.method.as_ref().into(),
            params: note.params,
        }));
    }

    fn server_cancelled<'a>(&mut self, note: Notification<'a>, effects: &mut Effects<'a>) {
        let object = Object::parse(note.params.raw.unwrap_or("{}")).unwrap_or_default();
        let id = object
            .get("requestId")
            .and_then(IdRef::from_token)
            .map(IdRef::to_id);
        let is_known = match id {
            Some(id) if self.asked.contains(&id) => true,
            Some(id) => match self.serving.get_mut(&id) {
                Some(entry) => {
                    entry.cancelled = true;
                    true
                }
                None => false,
            },
            None => false,
        };
        if !is_known {
            return effects.drop(&note.method, DropCause::OutOfPlace);
        }
        effects.push(Effect::Observe(IncomingNotification {
            method: Some(Method::Cancelled),
            name: note.method.as_ref().into(),
            params: note.params,
        }));
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
        match self.prepare(id, method, params, timeout, now) {
            Ok(text) => effects.push(Effect::Write(text)),
            Err(misuse) => effects.push(Effect::Withheld(misuse)),
        }
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
        let Some(pact) = self.pact().cloned() else {
            let state = self.phase.word();
            return Err(ApiMisuse::NotReady {
                method: method.into(),
                state,
            });
        };
        let id = Id::number(number);
        if self.last_id.is_some_and(|last| number <= last) {
            return Err(ApiMisuse::IdReused(id.raw().into()));
        }
        may_send(
            &pact,
            &self.terms.policy,
            Side::Client,
            Kind::Request,
            method,
            params,
        )?;
        let text = match pact.era() {
            Era::Legacy => codec::call(Some(id.as_ref()), method, params),
            Era::Modern => {
                let params = self.terms.stamp(pact.revision(), params)?;
                codec::call(Some(id.as_ref()), method, Some(&params))
            }
        };
        let token = progress_token(params);
        match self
            .asked
            .add(id.clone(), method, token.as_deref(), timeout, now)
        {
            Ok(()) => {
                self.last_id = Some(number);
                Ok(text)
            }
            Err(AddError::IdInUse) => Err(ApiMisuse::IdReused(id.raw().into())),
            Err(AddError::Limit) => Err(ApiMisuse::TooMany {
                limit: self.asked.limit(),
            }),
        }
    }

    pub(super) fn notify(&mut self, method: &str, params: Option<&str>, effects: &mut Effects<'_>) {
        let Some(pact) = self.pact() else {
            let misuse = ApiMisuse::NotReady {
                method: method.into(),
                state: self.phase.word(),
            };
            return effects.push(Effect::Withheld(misuse));
        };
        let policy = &self.terms.policy;
        match may_send(
            pact,
            policy,
            Side::Client,
            Kind::Notification,
            method,
            params,
        ) {
            Ok(()) => effects.push(Effect::Write(codec::call(None, method, params))),
            Err(misuse) => effects.push(Effect::Withheld(misuse)),
        }
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
        if let Some((id, method)) = self.asked.settle(id.as_ref()) {
            self.give_up(&id, effects);
            effects.push(Effect::Settled {
                id,
                method,
                end: End::Cancelled,
            });
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

fn ruling(pact: &Pact, method: &str, kind: Kind) -> Refusal {
    let ruling = pact.rule(Side::Server, kind, method);
    Misbehaviour::Method {
        method: method.into(),
        ruling,
    }
    .into()
}
