//! Messages to the client.

use alloc::string::String;

use mcpact_spec::tables::meta;
use mcpact_spec::{Capability, Era, Kind, LogLevel, Method, Side};
use mcpact_wire::codec;
use mcpact_wire::id::{Id, IdRef};
use mcpact_wire::raw::{Object, ObjectWriter};

use super::listen::ListenFilter;
use super::{Listening, Phase, Scope, Server, is, name};
use crate::effect::{DropCause, Effect, Effects, End};
use crate::gate::may_send;
use crate::outstanding::RequestTimeout;
use crate::refusal::{ApiMisuse, WireError};
use crate::time::Moment;

/// The notification that gives up one of our own requests.
pub(crate) fn cancelled(id: &Id) -> String {
    let params = ObjectWriter::new().raw("requestId", id.raw()).finish();
    codec::call(None, Method::Cancelled.as_str(), Some(&params))
}

/// The first message of a subscription. Its id is the request's, in the same JSON type.
pub(super) fn acknowledgement(id: IdRef<'_>, granted: &ListenFilter) -> String {
    let tag = ObjectWriter::new()
        .raw(meta::SUBSCRIPTION_ID, id.raw())
        .finish();
    let params = ObjectWriter::new()
        .raw("_meta", &tag)
        .raw("notifications", &granted.encode())
        .finish();
    codec::call(
        None,
        Method::SubscriptionsAcknowledged.as_str(),
        Some(&params),
    )
}

/// Adds the subscription's id to the parameters of a notification.
fn tagged(id: &Id, params: Option<&str>) -> Option<String> {
    let body = Object::parse(params.unwrap_or("{}")).ok()?;
    let existing = Object::parse(body.get("_meta").unwrap_or("{}")).ok()?;
    let others = existing
        .iter()
        .filter(|(key, _)| *key != meta::SUBSCRIPTION_ID);
    let tag = ObjectWriter::new()
        .raw(meta::SUBSCRIPTION_ID, id.raw())
        .members(others)
        .finish();
    Some(body.keep(|key| key != "_meta").raw("_meta", &tag).finish())
}

impl Server {
    pub(super) fn answer(
        &mut self,
        id: &Id,
        outcome: Result<&str, WireError>,
        effects: &mut Effects<'_>,
    ) {
        let Some(entry) = self.serving.release(id) else {
            return effects.drop(id.raw(), DropCause::UnknownAnswer);
        };
        if entry.cancelled {
            return effects.drop(id.raw(), DropCause::Cancelled);
        }
        if let (Err(_), Some(uri)) = (&outcome, &entry.subscribes) {
            self.subscriptions.forget(uri);
        }
        let (text, http_status) = match outcome {
            Ok(result) => {
                let completed = match entry.revision.era() {
                    Era::Modern => codec::modern::complete(result).ok(),
                    Era::Legacy => None,
                };
                let result = completed.as_deref().unwrap_or(result);
                (codec::result(id.as_ref(), result), 200)
            }
            Err(error) => (
                codec::error(Some(id.as_ref()), &error.encode()),
                error.http_status,
            ),
        };
        effects.push(Effect::Reply {
            text,
            id: Some(id.clone()),
            http_status,
            refused: None,
        });
    }

    /// A request to the client: only in a legacy conversation, only when it is ready, and only what
    /// the client declared.
    pub(super) fn ask(
        &mut self,
        id: i64,
        method: &str,
        params: Option<&str>,
        timeout: RequestTimeout,
        now: Moment,
        effects: &mut Effects<'_>,
    ) {
        let token = progress_token(params);
        let number = Id::number(id);
        let added = self.may_ask(id, method, params).and_then(|()| {
            let id = number.clone();
            self.asked.add(id, method, token.as_deref(), timeout, now)
        });
        if added.is_ok() {
            self.last_id = Some(id);
        }
        effects.write(added.map(|()| codec::call(Some(number.as_ref()), method, params)));
    }

    fn may_ask(&self, id: i64, method: &str, params: Option<&str>) -> Result<(), ApiMisuse> {
        if self.last_id.is_some_and(|last| id <= last) {
            return Err(ApiMisuse::IdReused(alloc::format!("{id}").into()));
        }
        if params.is_some_and(|raw| Object::parse(raw).is_err()) {
            return Err(ApiMisuse::Params);
        }
        let is_ping = is(method, Method::Ping);
        let may_open = !self.endpoint.legacy.is_empty() && !self.served_modern;
        let pact = match &self.phase {
            Phase::Ready(pact) => pact,
            Phase::AwaitInitialized(pact) if is_ping => pact,
            Phase::AwaitInit if is_ping && may_open => return Ok(()),
            Phase::AwaitInit | Phase::AwaitInitialized(_) | Phase::Closed => {
                return Err(self.not_ready(method));
            }
        };
        let policy = &self.terms.policy;
        may_send(pact, policy, Side::Server, Kind::Request, method, params)
    }

    /// Error for a message that the state of the connection does not allow.
    fn not_ready(&self, method: &str) -> ApiMisuse {
        let state = match self.phase {
            Phase::AwaitInit => "without a handshake",
            Phase::AwaitInitialized(_) => "not confirmed by the client",
            Phase::Ready(_) => "ready",
            Phase::Closed => "closed",
        };
        let method = name(method);
        ApiMisuse::NotReady { method, state }
    }

    pub(super) fn notify(
        &mut self,
        scope: &Scope,
        method: &str,
        params: Option<&str>,
        effects: &mut Effects<'_>,
    ) {
        if params.is_some_and(|raw| Object::parse(raw).is_err()) {
            return effects.push(Effect::Withheld(ApiMisuse::Params));
        }
        let entry = match scope {
            Scope::Request(id) => self.serving.get(id).map(|entry| (id, entry)),
            Scope::Connection => None,
        };
        match entry {
            Some((id, entry)) if entry.revision.era() == Era::Modern => {
                let text = match &entry.listen {
                    Some(filter) => {
                        let may_acknowledge = self.terms.listening == Listening::Asked;
                        let is_acknowledgement =
                            is(method, Method::SubscriptionsAcknowledged) && may_acknowledge;
                        listened(id, filter, is_acknowledgement, method, params)
                    }
                    None => self.scoped(entry.log_level, method, params),
                };
                let text = text.filter(|_| !entry.cancelled);
                effects.write(text.ok_or_else(|| unwanted(method)));
            }
            Some(_) | None => {
                let may = self.may_notify(method, params);
                effects.write(may.map(|()| codec::call(None, method, params)));
            }
        }
    }

    /// `2026-07-28 server/utilities/logging`: silence unless this very request asked for messages.
    fn scoped(
        &self,
        level: Option<LogLevel>,
        method: &str,
        params: Option<&str>,
    ) -> Option<String> {
        let may = match Method::parse(method) {
            Some(Method::LoggingMessage) => {
                let threshold = level?;
                self.declares(Capability::Logging) && level_of(params)? >= threshold
            }
            Some(Method::Progress) => true,
            Some(_) | None => false,
        };
        may.then(|| codec::call(None, method, params))
    }

    fn may_notify(&self, method: &str, params: Option<&str>) -> Result<(), ApiMisuse> {
        let known = Method::parse(method);
        let pact = match &self.phase {
            Phase::Ready(pact) => pact,
            Phase::AwaitInitialized(pact)
                if matches!(known, Some(Method::LoggingMessage | Method::Progress)) =>
            {
                pact
            }
            Phase::AwaitInit | Phase::AwaitInitialized(_) | Phase::Closed => {
                return Err(self.not_ready(method));
            }
        };
        let (policy, kind) = (&self.terms.policy, Kind::Notification);
        may_send(pact, policy, Side::Server, kind, method, params)?;
        let is_below = |threshold| level_of(params).is_some_and(|level| level < threshold);
        match known {
            Some(Method::LoggingMessage) if self.log_threshold.is_some_and(is_below) => {
                Err(unwanted(method))
            }
            Some(Method::ResourcesUpdated) if !self.subscriptions.want(params) => {
                Err(unwanted(method))
            }
            Some(_) | None => Ok(()),
        }
    }

    pub(super) fn cancel(&mut self, id: i64, effects: &mut Effects<'_>) {
        let id = Id::number(id);
        if let Some(request) = self.asked.settle(id.as_ref()) {
            effects.push(Effect::Write(cancelled(&request.0)));
            effects.settle(request, End::Cancelled);
        }
    }
}

/// A notification as it goes on a listen stream; an acknowledgement passes whatever was asked for.
fn listened(
    id: &Id,
    filter: &ListenFilter,
    is_acknowledgement: bool,
    method: &str,
    params: Option<&str>,
) -> Option<String> {
    let known = Method::parse(method)?;
    let is_wanted = is_acknowledgement || filter.wants(known, params);
    let params = is_wanted.then(|| tagged(id, params)).flatten()?;
    Some(codec::call(None, method, Some(&params)))
}

/// The level in the parameters of `logging/setLevel` and of a log message.
pub(super) fn level_of(params: Option<&str>) -> Option<LogLevel> {
    let object = Object::parse(params?).ok()?;
    LogLevel::parse(&object.get_str("level")?)
}

fn unwanted(method: &str) -> ApiMisuse {
    ApiMisuse::Unwanted {
        method: name(method),
    }
}

/// The raw progress token of a request of ours.
pub(crate) fn progress_token(params: Option<&str>) -> Option<String> {
    let body = Object::parse(params?).ok()?;
    let inner = Object::parse(body.get("_meta")?).ok()?;
    inner.get(meta::PROGRESS_TOKEN).map(String::from)
}
