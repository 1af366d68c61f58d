//! From an open carrier to an agreement.

use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;

use mcpact_spec::{Era, ErrorCode, Method, Revision, Side};
use mcpact_wire::codec;
use mcpact_wire::codec::modern::Stamp;
use mcpact_wire::envelope::{Outcome, Response};
use mcpact_wire::id::Id;
use mcpact_wire::model::discover::DiscoverResult;
use mcpact_wire::model::error::ErrorBody;
use mcpact_wire::model::implementation::Implementation;
use mcpact_wire::model::initialize::{self, InitializeResult};

use super::probe::{Conclusion, Evidence, Observation, Question, conclude, not_evidence};
use super::{Client, EraVerdict, Failure, Phase, TransportKind};
use crate::capability::Trimmed;
use crate::effect::{DropCause, Effect, Effects};
use crate::negotiate::require;
use crate::negotiation::Negotiation;
use crate::pact::{Pact, Party};
use crate::refusal::{Dialect, Incompatible, Misbehaviour, Refusal};
use crate::revisions::{RevisionId, RevisionSet};
use crate::time::Moment;
use crate::version::Chosen;

/// Limit of probes and handshakes on one connection; more would be a loop.
const MAX_PROBES: u32 = 4;

/// A probe or an `initialize` that waits for its answer.
///
/// The wait for a probe is counted from the first sign of life, not from the start: a server that is being
/// downloaded and compiled is not silent, it is not there yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opening {
    /// Number of the attempt; late answers to earlier ones carry another one.
    number: u32,
    revision: Revision,
    pub(super) until: Moment,
    is_alive: bool,
}

/// The id of a probe or handshake: a string, so that it can never be taken for a request's number.
fn opening_id(number: u32) -> Id {
    Id::text(&alloc::format!("mcpact-open-{number}"))
}

impl Client {
    pub(super) fn connected(&mut self, now: Moment, effects: &mut Effects<'_>) {
        if !matches!(self.phase, Phase::Connecting) {
            return effects.drop("connected", DropCause::OutOfPlace);
        }
        let supported = self.terms.supported();
        let modern = supported.in_era(Era::Modern).newest();
        let is_known_legacy = self.respawned
            || self.tried_http_sse
            || matches!(
                self.terms.prior,
                Some(EraVerdict::Legacy | EraVerdict::LegacyDiesOnProbe)
            );
        let has_legacy = !supported.in_era(Era::Legacy).is_empty();
        match modern {
            Some(revision) if !(is_known_legacy && has_legacy) => {
                self.probe(revision, now, effects)
            }
            Some(_) | None => self.initialize(None, now, effects),
        }
    }

    pub(super) fn first_byte(&mut self, now: Moment) {
        if let Phase::Probing(probe) = &mut self.phase
            && !probe.is_alive
        {
            probe.is_alive = true;
            probe.until = now.after(self.terms.probe_timeout);
        }
    }

    /// Counts an attempt to open the connection.
    const fn attempt(&mut self, revision: Revision, limit: Duration, now: Moment) -> Opening {
        self.probes += 1;
        Opening {
            number: self.probes,
            revision,
            until: now.after(limit),
            is_alive: false,
        }
    }

    /// Declaration of this client in a revision: raw capabilities and raw `Implementation`.
    pub(super) fn declaration(&self, revision: Revision) -> (String, Vec<Trimmed>, Option<String>) {
        let Party { info, capabilities } = &self.terms.party;
        let (capabilities, trimmed) = capabilities.encode(revision, &self.terms.policy);
        let info = info.as_ref().map(|info| info.encode(revision));
        (capabilities, trimmed, info)
    }

    fn probe(&mut self, revision: Revision, now: Moment, effects: &mut Effects<'_>) {
        let probe = self.attempt(revision, self.terms.silence_limit, now);
        let (capabilities, trimmed, info) = self.declaration(revision);
        self.transcript.trimmed(Side::Client, trimmed);
        let stamp = Stamp {
            version: revision.as_str(),
            capabilities: &capabilities,
            client_info: info.as_deref(),
            log_level: None,
        };
        // Nothing but the stamp is in it, so there is nothing that could fail to parse.
        let params = stamp.apply(None).unwrap_or_default();
        let id = opening_id(probe.number);
        self.phase = Phase::Probing(probe);
        effects.push(Effect::Write(codec::call(
            Some(id.as_ref()),
            Method::Discover.as_str(),
            Some(&params),
        )));
    }

    fn initialize(&mut self, version: Option<Revision>, now: Moment, effects: &mut Effects<'_>) {
        let legacy = self.terms.supported().in_era(Era::Legacy);
        let Some(offered) = version.or_else(|| legacy.newest()) else {
            let ours = self.terms.supported();
            let offered = Vec::new();
            let none = Incompatible::NoCommonVersion { offered, ours };
            return self.fail(Failure::Refused(none.into()), effects);
        };
        let handshake = self.attempt(offered, self.terms.init_timeout, now);
        let (capabilities, trimmed, info) = self.declaration(offered);
        self.transcript.trimmed(Side::Client, trimmed);
        let info = info.as_deref().unwrap_or("{}");
        let params = initialize::encode_params(offered.as_str(), &capabilities, info);
        let id = opening_id(handshake.number);
        self.phase = Phase::Initializing(handshake);
        effects.push(Effect::Write(codec::call(
            Some(id.as_ref()),
            Method::Initialize.as_str(),
            Some(&params),
        )));
    }

    /// An answer while there is no agreement yet. ResponsePath to earlier questions are ignored: a slow
    /// server may still send them.
    pub(super) fn opening_answer(
        &mut self,
        response: &Response<'_>,
        http_status: Option<u16>,
        now: Moment,
        effects: &mut Effects<'_>,
    ) {
        let number = self.opening().map_or(0, |(_, opening)| opening.number);
        // Over HTTP an error without an id still belongs to the request that it answers.
        let is_ours = match response.id {
            Some(id) => id == opening_id(number).as_ref(),
            None => self.terms.transport == TransportKind::Http,
        };
        if !is_ours {
            return effects.drop_answer(response.id);
        }
        match &response.outcome {
            outcome if matches!(self.phase, Phase::Probing(_)) => {
                self.probe_answer(outcome, http_status, now, effects);
            }
            Outcome::Result(body) => self.initialized(body.raw, effects),
            Outcome::Error(raw) => self.initialize_refused(raw, now, effects),
        }
    }

    fn probe_answer(
        &mut self,
        outcome: &Outcome<'_>,
        http_status: Option<u16>,
        now: Moment,
        effects: &mut Effects<'_>,
    ) {
        let boxed = |all: Vec<alloc::borrow::Cow<'_, str>>| {
            all.into_iter().map(|v| Box::from(v.as_ref())).collect()
        };
        match outcome {
            Outcome::Result(body) => match DiscoverResult::parse(body.raw) {
                Ok(found) => {
                    let versions = boxed(found.supported_versions.clone());
                    let saw = Observation::Discovered { versions };
                    if let Some(revision) = self.observe_probe(&saw, now, effects) {
                        self.modern(revision, &found, effects);
                    }
                }
                Err(_) => {
                    self.observe_probe(&Observation::Unreadable, now, effects);
                }
            },
            Outcome::Error(raw) => {
                let error = ErrorBody::parse(raw);
                let saw = Observation::Error {
                    code: error.as_ref().map_or(0, |e| e.code),
                    supported: error
                        .map_or_else(Default::default, |e| boxed(e.supported_versions())),
                    http_status,
                };
                self.observe_probe(&saw, now, effects);
            }
        }
    }

    /// Draws a conclusion and acts on it; gives the revision when the server is modern.
    pub(super) fn observe_probe(
        &mut self,
        saw: &Observation,
        now: Moment,
        effects: &mut Effects<'_>,
    ) -> Option<Revision> {
        let Phase::Probing(probe) = &self.phase else {
            return None;
        };
        let question = Question {
            transport: self.terms.transport,
            supported: self.terms.supported(),
            method: Method::Discover,
            asked: probe.revision,
        };
        let conclusion = conclude(&question, saw);
        self.transcript
            .probed(alloc::format!("{saw:?}"), alloc::format!("{conclusion:?}"));
        match conclusion {
            Conclusion::Modern(revision) => return Some(revision),
            Conclusion::Retry(revision) if self.probes < MAX_PROBES => {
                self.probe(revision, now, effects);
            }
            Conclusion::Retry(_) => self.fail(super::ProbeFailure::Silence.into(), effects),
            Conclusion::Legacy(evidence) => {
                self.guessed = evidence == Evidence::Silence;
                self.initialize(None, now, effects);
            }
            Conclusion::Respawn if self.respawned => {
                self.end_in(Failure::ConnectionClosed, effects);
            }
            Conclusion::Respawn => {
                self.respawned = true;
                self.phase = Phase::Connecting;
                effects.push(Effect::Respawn);
            }
            Conclusion::Fail(failure) => self.fail(failure.into(), effects),
        }
        None
    }

    fn modern(
        &mut self,
        revision: Revision,
        found: &DiscoverResult<'_>,
        effects: &mut Effects<'_>,
    ) {
        let info = found.server_info.clone();
        match self.agree(revision, found.capabilities, info) {
            Ok(pact) => {
                self.transcript.selected(revision, Chosen::Requested);
                self.conclude(pact, EraVerdict::Modern, effects);
            }
            Err(refusal) => self.refuse(refusal, revision, effects),
        }
    }

    fn agree(
        &self,
        revision: Revision,
        capabilities: Option<&str>,
        info: Option<Implementation>,
    ) -> Result<Pact, Refusal> {
        let policy = &self.terms.policy;
        let server = Party::parse(Side::Server, info, capabilities, policy)?;
        let pact = Pact::new(revision, self.terms.party.clone(), server);
        require(&pact, Side::Server, policy)?;
        Ok(pact)
    }

    fn conclude(&mut self, pact: Pact, verdict: EraVerdict, effects: &mut Effects<'_>) {
        self.transcript
            .declared(&pact.party(Side::Client).capabilities, []);
        self.transcript
            .declared(&pact.party(Side::Server).capabilities, []);
        self.transcript.agreed(&pact);
        self.era = Some(pact.era());
        let pact = Arc::new(pact);
        self.note(Ok(Arc::clone(&pact)), effects);
        self.phase = Phase::Ready(Arc::clone(&pact));
        // Who is not asked for the modern era may have it all the same.
        let speaks_modern = !self.terms.supported().in_era(Era::Modern).is_empty();
        let was_asked = verdict == EraVerdict::Modern || speaks_modern;
        // Silence is a guess: a server that was only slow would be taken for legacy for ever.
        if self.terms.prior != Some(verdict) && was_asked && !self.guessed {
            effects.push(Effect::Remember(verdict));
        }
        effects.push(Effect::Concluded(pact));
    }

    /// Tells how the question that is open has ended.
    pub(super) fn note(&self, verdict: Result<Arc<Pact>, Failure>, effects: &mut Effects<'_>) {
        let open = self.opening();
        let (agreed, failure) = (verdict.as_ref().ok(), verdict.as_ref().err());
        effects.push(Effect::Negotiated(Box::new(Negotiation {
            request_id: open.map(|(_, opening)| opening_id(opening.number)),
            method: open.map(|(method, _)| Box::from(method.as_str())),
            requested: open.map(|(_, opening)| Box::from(opening.revision.as_str())),
            supported: failure.map(Failure::versions).unwrap_or_default(),
            client: Some(self.terms.party.clone()),
            server: agreed.map(|pact| pact.party(Side::Server).clone()),
            verdict,
        })));
    }

    fn refuse(&mut self, refusal: Refusal, revision: Revision, effects: &mut Effects<'_>) {
        let dialect = Dialect {
            revision,
            errors: self.terms.policy.errors,
        };
        self.transcript.refused(&refusal, dialect);
        self.fail(Failure::Refused(refusal), effects);
    }

    /// The result is stored before the server gets `initialized`; an unsupported version ends the
    /// connection without another word.
    fn initialized(&mut self, raw: &str, effects: &mut Effects<'_>) {
        let Phase::Initializing(Opening {
            revision: offered, ..
        }) = self.phase
        else {
            return;
        };
        let legacy = self.terms.supported().in_era(Era::Legacy);
        let result = match InitializeResult::parse(raw) {
            Ok(result) => result,
            Err(fault) => return self.refuse(Misbehaviour::Body(fault).into(), offered, effects),
        };
        let answered = RevisionId::parse(&result.protocol_version);
        let Some(revision) = answered.known().filter(|r| legacy.contains(*r)) else {
            let ours = self.terms.supported();
            let refusal = Incompatible::Answered { answered, ours };
            return self.refuse(refusal.into(), offered, effects);
        };
        match self.agree(revision, result.capabilities, Some(result.server_info)) {
            Ok(pact) => {
                let how = if revision == offered {
                    Chosen::Requested
                } else {
                    Chosen::CounterOffered
                };
                self.transcript.selected(revision, how);
                let is_fragile = self.terms.prior == Some(EraVerdict::LegacyDiesOnProbe);
                let verdict = if self.respawned || is_fragile {
                    EraVerdict::LegacyDiesOnProbe
                } else {
                    EraVerdict::Legacy
                };
                self.conclude(pact, verdict, effects);
                let text = codec::call(None, Method::Initialized.as_str(), None);
                effects.push(Effect::Write(text));
            }
            Err(refusal) => self.refuse(refusal, revision, effects),
        }
    }

    /// A server that refuses our version names its own: a modern-only one is asked again, a legacy
    /// one is offered what it listed.
    fn initialize_refused(&mut self, raw: &str, now: Moment, effects: &mut Effects<'_>) {
        let Phase::Initializing(Opening {
            revision: offered, ..
        }) = self.phase
        else {
            return;
        };
        let error = ErrorBody::parse(raw);
        let code = error.as_ref().map_or(0, |e| e.code);
        let listed = error
            .as_ref()
            .map(ErrorBody::supported_versions)
            .unwrap_or_default();
        let message = error.map(|e| e.message.to_string()).unwrap_or_default();
        let supported = self.terms.supported();
        let common = RevisionSet::of_listed(listed.iter().map(AsRef::as_ref)).and(supported);
        let is_version_error = ErrorCode::parse(code) == Some(ErrorCode::UnsupportedVersion);
        let modern = if is_version_error || self.terms.prior == Some(EraVerdict::Legacy) {
            supported.in_era(Era::Modern).newest()
        } else {
            common.in_era(Era::Modern).newest()
        };
        let other = common.in_era(Era::Legacy).iter().find(|r| *r != offered);
        match (modern, other) {
            _ if self.probes >= MAX_PROBES => self.reject(code, message, effects),
            (Some(revision), _) => self.probe(revision, now, effects),
            (None, Some(revision)) => self.initialize(Some(revision), now, effects),
            (None, None) => self.reject(code, message, effects),
        }
    }

    fn reject(&mut self, code: i64, message: String, effects: &mut Effects<'_>) {
        self.fail(Failure::Rejected { code, message }, effects);
    }

    /// An HTTP answer without a message.
    pub(super) fn status(&mut self, status: u16, now: Moment, effects: &mut Effects<'_>) {
        match &self.phase {
            Phase::Probing(_) => {
                self.observe_probe(&Observation::Status(status), now, effects);
            }
            Phase::Initializing(_) => self.initialize_status(status, effects),
            Phase::Disconnected
            | Phase::Connecting
            | Phase::Ready(_)
            | Phase::Closing
            | Phase::Closed
            | Phase::Failed(_) => effects.drop("status", DropCause::OutOfPlace),
        }
    }

    /// `2025-06-18 basic/transports#backwards-compatibility`: a POST that is refused with 4xx may be to the
    /// transport of the first revision, which begins with a GET. Servers speak later revisions over it, too.
    fn initialize_status(&mut self, status: u16, effects: &mut Effects<'_>) {
        let failure = match not_evidence(status) {
            Some(failure) => failure,
            None if (400..500).contains(&status) && !self.tried_http_sse => {
                self.tried_http_sse = true;
                self.phase = Phase::Connecting;
                return effects.push(Effect::TryHttpSse);
            }
            None => super::ProbeFailure::NotMcp(status),
        };
        self.fail(failure.into(), effects);
    }
}
