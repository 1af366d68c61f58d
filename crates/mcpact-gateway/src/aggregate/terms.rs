//! On which terms a aggregator serves.

use crate::upstream::tool_filter;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcpact::server::backend::{ClientHello, ClientIdentity, ClientSetup};
use mcpact_engine::server::{Listening, ServerTerms};
use mcpact_spec::{Era, Revision};
use mcpact_wire::envelope::Params;
use mcpact_wire::model::initialize::InitializeParams;
use tokio::time::Instant;

use crate::aggregate::aggregator::ABSENT;
use crate::aggregate::aggregator::Aggregator;
use crate::aggregate::aggregator::ServerSet;
use crate::aggregate::aggregator::identity;
use crate::aggregate::server_entry::ServerEntry;
use crate::aggregate::{capabilities, instructions};
use crate::downstream::client::DownstreamClient;
use crate::downstream::{ClientKind, ClientState};
use crate::sync::lock;

/// How long a gateway that asks is kept waiting for servers that may be gateways, too: one of them may be waiting for it
/// in turn, if both are profile at the same time.
const GATEWAY_WAIT: Duration = Duration::from_secs(1);

/// Terms for clients of each revision, with the state that they were made from.
pub(crate) type TermsCache = Mutex<HashMap<TermsKey, (TermsVersion, Arc<ServerTerms>)>>;

/// Clients with the same key get the same terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct TermsKey {
    revision: Revision,
    /// True if the client is identified.
    is_named: bool,
}

/// What terms rest on.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TermsVersion {
    server_set: u64,
    known: Vec<(usize, u64, usize)>,
}

impl Aggregator {
    pub(crate) async fn admit(
        &self,
        hello: ClientHello<'_>,
        identity: &ClientIdentity,
    ) -> ClientSetup<ClientState> {
        let is_named = !identity.principal.is_empty();
        let (guest, revision, asked) = match hello {
            ClientHello::Handshake(params) => {
                let raw = params.raw.unwrap_or("{}");
                let asked = InitializeParams::parse(Some(raw)).ok();
                let version = asked.as_ref().and_then(|p| p.protocol_version.as_deref());
                let revision = version
                    .and_then(Revision::parse)
                    .filter(|revision| revision.era() == Era::Legacy)
                    .unwrap_or(Revision::newest(Era::Legacy));
                let guest = Arc::new(DownstreamClient::of_handshake(raw, identity));
                (guest, revision, None)
            }
            ClientHello::Request(params) => {
                let guest = lock(&self.visitors).client(&params.meta, identity);
                let named = params.meta.revision();
                let revision = named.unwrap_or(Revision::newest(Era::Modern));
                (guest, revision, Some(params))
            }
        };
        self.meet(&guest, asked).await;
        ClientSetup {
            terms: self.terms_for(TermsKey { revision, is_named }),
            state: Some(ClientState(ClientKind::Aggregate(guest))),
        }
    }

    /// Waits a while for servers of which nothing is known; they may have failed, too.
    async fn meet(&self, guest: &Arc<DownstreamClient>, asked: Option<&Params<'_>>) {
        let server_set = self.server_set();
        let mut strangers: Vec<&Arc<ServerEntry>> = server_set
            .entries
            .iter()
            .filter(|entry| entry.known().is_none() && entry.failure().is_none())
            .collect();
        if strangers.is_empty() {
            return;
        }
        // What names a thing of one server needs nothing of the others.
        if let Some(needed) = asked.and_then(|params| self.named_by(params)) {
            strangers.retain(|entry| entry.number == needed.number);
        }
        let longest = self.settings.introduction_wait;
        let wait = |entry: &ServerEntry| match &entry.server.route {
            Some(route) if route.serves_gateways() => longest.min(GATEWAY_WAIT),
            Some(_) | None => longest,
        };
        // The waiting time counts from the first client that waits.
        let awaited = strangers
            .into_iter()
            .map(|entry| (entry.awaited() + wait(entry), entry))
            .filter(|(until, _)| Instant::now() < *until);
        let meeting = awaited.map(|(until, entry)| {
            let (guest, entry) = (Arc::clone(guest), Arc::clone(entry));
            // A client that stops waiting does not stop the others.
            let meeting = tokio::spawn(async move { guest.introduce(&entry).await });
            tokio::time::timeout_at(until, meeting)
        });
        let profile = futures_util::future::join_all(meeting).await;
        if profile.iter().any(Result::is_err) {
            tracing::warn!("not every server has introduced itself in time");
        }
    }

    fn terms_for(&self, audience: TermsKey) -> Arc<ServerTerms> {
        let server_set = self.server_set();
        let basis = TermsVersion {
            server_set: server_set.version,
            known: server_set
                .entries
                .iter()
                .map(|entry| state(entry))
                .collect(),
        };
        let mut kept = lock(&self.terms);
        if let Some((of, terms)) = kept.get(&audience)
            && *of == basis
        {
            return Arc::clone(terms);
        }
        let terms = Arc::new(self.terms_of(&server_set, audience));
        kept.insert(audience, (basis, Arc::clone(&terms)));
        terms
    }

    fn terms_of(&self, server_set: &ServerSet, audience: TermsKey) -> ServerTerms {
        let profile: Vec<_> = server_set.entries.iter().map(|m| (m, m.known())).collect();
        let shown: Vec<_> = profile
            .iter()
            .filter_map(|(entry, _)| entry.shown_to(audience.revision, audience.is_named))
            .collect();
        let declared = capabilities::union(&shown);
        let failures: Vec<_> = profile
            .iter()
            .map(|(entry, _)| entry.failure_in_short())
            .collect();
        let lacking: Vec<_> = profile
            .iter()
            .map(|(entry, _)| shortcomings(entry))
            .collect();
        let parts = profile.iter().zip(failures.iter().zip(&lacking)).map(
            |((entry, profile), (failure, lacking))| instructions::ServerInstructions {
                server: &entry.name,
                prefix: &entry.prefix,
                instructions: profile
                    .as_ref()
                    .and_then(|profile| profile.introduction.instructions.as_deref()),
                failure: failure.as_deref(),
                lacking,
            },
        );
        let absent = server_set
            .absent
            .iter()
            .map(|name| instructions::ServerInstructions {
                server: name,
                prefix: "",
                instructions: None,
                failure: Some(ABSENT),
                lacking: &[],
            });
        let parts: Vec<_> = parts.chain(absent).collect();
        let policy = self.settings.front.policy.clone();
        let mut terms = ServerTerms::new(identity(), declared, policy);
        terms.listening = Listening::Asked;
        terms.instructions = instructions::merge(&parts, &server_set.style.separator);
        terms
    }
}

/// What its lists lack, and what is kept back of them.
fn shortcomings(entry: &ServerEntry) -> Vec<String> {
    let lacking = entry.lacking().into_iter();
    lacking
        .chain(tool_filter::withheld(&entry.server))
        .collect()
}

/// Which words of a server count, how often it was judged, and how much of it is kept back.
fn state(entry: &ServerEntry) -> (usize, u64, usize) {
    let known = entry.known();
    let words = known.map_or(0, |profile| Arc::as_ptr(&profile) as usize);
    (
        words,
        entry.judgements(),
        tool_filter::hidden_tools(&entry.server).len(),
    )
}
