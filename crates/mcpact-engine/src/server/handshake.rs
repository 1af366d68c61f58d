//! `initialize` and `server/discover`, answered by the engine itself.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;

use mcpact_spec::{Era, Method, Revision, Side};
use mcpact_wire::envelope::Request;
use mcpact_wire::model::discover::DiscoverAnswer;
use mcpact_wire::model::initialize::{self, InitializeParams};

use super::{Phase, Server};
use crate::effect::{Effect, Effects};
use crate::negotiate::require;
use crate::negotiation::Negotiation;
use crate::pact::{Pact, Party};
use crate::refusal::{Dialect, Misbehaviour, Refusal, VersionForm};
use crate::revisions::RevisionId;
use crate::version::{self, Selection};

impl Server {
    /// A refused `initialize` leaves nothing behind but a line in the transcript: the client may try
    /// again on the same connection.
    pub(super) fn initialize(&mut self, request: &Request<'_>, effects: &mut Effects<'_>) {
        if !matches!(self.phase, Phase::AwaitInit) {
            return self.refuse_request(request, &Misbehaviour::AlreadyInitialized.into(), effects);
        }
        match self.agree(request) {
            Ok((selection, pact)) => self.accept(request, selection, pact, effects),
            Err(refusal) => {
                let errors = self.terms.policy.errors;
                let revision = self.endpoint.newest(Era::Legacy);
                self.transcript
                    .refused(&refusal, Dialect { revision, errors });
                self.refuse_request(request, &refusal, effects);
            }
        }
    }

    /// The version is judged before anything else is even read.
    fn agree(&self, request: &Request<'_>) -> Result<(Selection, Pact), Refusal> {
        let params = request.params.raw;
        let policy = &self.terms.policy;
        let requested = initialize::requested_version(params).map_err(|fault| {
            if fault.path == "protocolVersion" {
                Misbehaviour::Version(VersionForm::NotText)
            } else {
                Misbehaviour::Body(fault)
            }
        })?;
        let requested = requested.map(|text| RevisionId::parse(&text));
        let selection = version::select(&policy.version, requested.as_ref())?;
        let body = InitializeParams::parse(params).map_err(Misbehaviour::Body)?;
        let info = Some(body.client_info);
        let client = Party::parse(Side::Client, info, body.capabilities, policy)?;
        let pact = Pact::new(selection.revision, client, self.terms.party.clone());
        require(&pact, Side::Client, policy)?;
        Ok((selection, pact))
    }

    fn accept(
        &mut self,
        request: &Request<'_>,
        selection: Selection,
        pact: Pact,
        effects: &mut Effects<'_>,
    ) {
        let revision = selection.revision;
        let server = &self.terms.party;
        let (capabilities, trimmed) = server.capabilities.encode(revision, &self.terms.policy);
        let result = initialize::encode_result(
            revision.as_str(),
            &capabilities,
            &self.info(revision),
            self.terms.instructions.as_deref(),
        );
        let requested = initialize::requested_version(request.params.raw)
            .ok()
            .flatten();
        self.transcript
            .declared(&pact.party(Side::Client).capabilities, requested.as_deref());
        self.transcript
            .declared(&pact.party(Side::Server).capabilities, []);
        self.transcript.selected(revision, selection.how);
        self.transcript.trimmed(Side::Server, trimmed);
        self.transcript.agreed(&pact);
        let pact = Arc::new(pact);
        self.phase = Phase::AwaitInitialized(Arc::clone(&pact));
        self.note_agreement(request, &pact, effects);
        effects.reply(request.id, &result);
        effects.push(Effect::Concluded(pact));
    }

    /// Tells that a request has agreed on something new.
    pub(super) fn note_agreement(
        &self,
        request: &Request<'_>,
        pact: &Arc<Pact>,
        effects: &mut Effects<'_>,
    ) {
        let negotiation = Negotiation::agreed(request, pact, &self.terms.policy);
        effects.push(Effect::Negotiated(Box::new(negotiation)));
    }

    /// Tells that a request was refused for what it offers.
    pub(super) fn note_refusal(
        &self,
        request: &Request<'_>,
        refusal: &Refusal,
        effects: &mut Effects<'_>,
    ) {
        if refusal.is_about_agreement() || super::is(&request.method, Method::Initialize) {
            let (party, policy) = (&self.terms.party, &self.terms.policy);
            let negotiation = Negotiation::refused(request, refusal, party, policy);
            effects.push(Effect::Negotiated(Box::new(negotiation)));
        }
    }

    fn info(&self, revision: Revision) -> String {
        self.terms
            .party
            .info
            .as_ref()
            .map_or_else(|| String::from("{}"), |info| info.encode(revision))
    }

    /// The answer to `server/discover`, which is a request like any other and has passed the same
    /// ladder.
    pub(super) fn discover(
        &self,
        request: &Request<'_>,
        revision: Revision,
        effects: &mut Effects<'_>,
    ) {
        let policy = &self.terms.policy;
        let (capabilities, _) = self.terms.party.capabilities.encode(revision, policy);
        let versions = version::announced(&policy.version).names();
        let answer = DiscoverAnswer {
            supported_versions: &versions,
            capabilities: &capabilities,
            server_info: &self.info(revision),
            instructions: self.terms.instructions.as_deref(),
            ttl_ms: u64::try_from(self.terms.discover_ttl.as_millis()).unwrap_or(u64::MAX),
            cache_scope: self.terms.discover_scope,
        };
        effects.reply(request.id, &answer.encode());
    }
}
