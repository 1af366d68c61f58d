//! Outcome of a negotiation, as facts for the log.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use mcpact_spec::{Capability, Revision, Side};
use mcpact_wire::envelope::Request;
use mcpact_wire::id::Id;
use mcpact_wire::model::fault::BodyFault;
use mcpact_wire::model::implementation::Implementation;
use mcpact_wire::model::initialize::InitializeParams;
use mcpact_wire::scan::text;

use crate::capability::CapabilitySet;
use crate::client::Failure;
use crate::pact::{Pact, Party};
use crate::policy::{Policy, Reading};
use crate::refusal::{Incompatible, Refusal};

/// One negotiation that has ended: a handshake, a discovery, or the first request of a modern client.
#[derive(Clone, Debug)]
pub struct Negotiation {
    /// The id of the message that it took place in.
    pub request_id: Option<Id>,
    /// The method of that message.
    pub method: Option<Box<str>>,
    /// The version that the client asked for, as it wrote it.
    pub requested: Option<Box<str>>,
    /// The versions that the server speaks, as far as they are known.
    pub supported: Vec<Box<str>>,
    /// Offer of the client, as far as it could be read.
    pub client: Option<Party>,
    /// Offer of the server, as far as it could be read.
    pub server: Option<Party>,
    /// The pact, or the failure.
    pub verdict: Result<Arc<Pact>, Failure>,
}

impl Negotiation {
    /// A request that agreed with its server.
    pub(crate) fn agreed(request: &Request<'_>, pact: &Arc<Pact>, policy: &Policy) -> Self {
        Self {
            request_id: Some(request.id.to_id()),
            method: Some(Box::from(request.method.as_ref())),
            requested: requested(request),
            supported: supported(policy),
            client: Some(pact.party(Side::Client).clone()),
            server: Some(pact.party(Side::Server).clone()),
            verdict: Ok(Arc::clone(pact)),
        }
    }

    /// A request that its server refused. What it offered is read now, for the log alone: a refusal may
    /// come before anybody has looked at it.
    #[must_use]
    pub fn refused(
        request: &Request<'_>,
        refusal: &Refusal,
        server: &Party,
        policy: &Policy,
    ) -> Self {
        Self {
            request_id: Some(request.id.to_id()),
            method: Some(Box::from(request.method.as_ref())),
            requested: requested(request),
            supported: supported(policy),
            client: offered(request),
            server: Some(server.clone()),
            verdict: Err(Failure::Refused(refusal.clone())),
        }
    }

    /// The revision that was agreed on.
    #[must_use]
    pub fn revision(&self) -> Option<Revision> {
        self.verdict.as_ref().ok().map(|pact| pact.revision())
    }

    /// Outcome, in one word.
    #[must_use]
    pub const fn outcome(&self) -> &'static str {
        match &self.verdict {
            Ok(_) => "agreed",
            Err(_) => "refused",
        }
    }

    /// Reason as a stable word; all version mismatches share one.
    #[must_use]
    pub fn status(&self) -> &'static str {
        match &self.verdict {
            Ok(_) => "ok",
            Err(failure) => failure.status(),
        }
    }

    /// Outcome for the client's capabilities.
    #[must_use]
    pub const fn capabilities_outcome(&self) -> &'static str {
        match (&self.verdict, &self.client) {
            (Ok(_), _) => "negotiated",
            (
                Err(Failure::Refused(Refusal::PeerIncompatible(Incompatible::Capabilities {
                    ..
                }))),
                _,
            ) => "insufficient",
            (Err(_), Some(_)) => "unused",
            (Err(_), None) => "unread",
        }
    }

    /// The paths that a side declares: of an agreement those in effect, else all that could be read.
    /// Names only: their values do not belong into a log.
    #[must_use]
    pub fn capabilities(&self, side: Side) -> Vec<&str> {
        let Some(set) = self.party(side).map(|party| &party.capabilities) else {
            return Vec::new();
        };
        let declared = match &self.verdict {
            Ok(pact) => set.declared().under(pact.revision()),
            Err(_) => set.declared(),
        };
        let mut all: Vec<&str> = declared.iter().map(Capability::path).collect();
        all.extend(set.extensions().map(|(id, _)| id));
        all
    }

    /// Wrongly typed capabilities of a side, which count as absent.
    pub fn ignored(&self, side: Side) -> &[BodyFault] {
        self.party(side)
            .map_or(&[], |party| party.capabilities.findings())
    }

    /// Name and version of a side.
    #[must_use]
    pub fn info(&self, side: Side) -> Option<&Implementation> {
        self.party(side)?.info.as_deref()
    }

    const fn party(&self, side: Side) -> Option<&Party> {
        match side {
            Side::Client => self.client.as_ref(),
            Side::Server => self.server.as_ref(),
        }
    }

    /// Advice for the user.
    #[must_use]
    pub fn advice(&self) -> Option<String> {
        self.verdict.as_ref().err().map(Failure::advice)
    }
}

fn supported(policy: &Policy) -> Vec<Box<str>> {
    let announced = crate::version::announced(&policy.version);
    announced.names().into_iter().map(Box::from).collect()
}

/// The version that a request names, in the place of either era.
fn requested(request: &Request<'_>) -> Option<Box<str>> {
    let modern = request.params.meta.protocol_version.and_then(text);
    let named = match modern {
        Some(version) => Some(version.into_owned()),
        None => mcpact_wire::model::initialize::requested_version(request.params.raw)
            .ok()
            .flatten()
            .map(alloc::borrow::Cow::into_owned),
    };
    named.map(String::into_boxed_str)
}

/// Offer of a client in a request of either era.
fn offered(request: &Request<'_>) -> Option<Party> {
    let meta = &request.params.meta;
    let (info, capabilities) = if meta.client_capabilities.is_some() {
        let key = mcpact_spec::tables::meta::CLIENT_INFO;
        let info = meta.client_info;
        let info = info.and_then(|raw| Implementation::parse(key, Some(raw)).ok());
        (info, meta.client_capabilities)
    } else {
        let body = InitializeParams::parse(request.params.raw).ok()?;
        (Some(body.client_info), body.capabilities)
    };
    let capabilities = CapabilitySet::parse(Side::Client, capabilities, Reading::Lenient).ok()?;
    Some(Party::new(info, capabilities))
}
