//! Terms of the aggregator for its clients: capabilities, instructions and revision.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcpact::server::backend::{ClientHello, ClientIdentity, ClientSetup};
use mcpact_engine::policy::OnUnknown;
use mcpact_engine::server::{Listening, ServerTerms};
use mcpact_spec::{Era, Revision};
use mcpact_wire::envelope::Params;
use tokio::time::Instant;

use crate::aggregate::aggregator::{ABSENT, Aggregator, ServerSet, identity};
use crate::aggregate::capabilities;
use crate::aggregate::instructions::{self, ServerInstructions};
use crate::aggregate::server_entry::ServerEntry;
use crate::downstream::client::DownstreamClient;
use crate::downstream::{ClientKind, ClientState};
use crate::sync::lock;
use crate::upstream::accept::LegacyHello;
use crate::upstream::affinity::Evidence;
use crate::upstream::tool_filter;

/// Maximum wait of a client that is a gateway for servers that may be gateways: two gateways that start at the same time
/// may wait for each other.
const GATEWAY_WAIT: Duration = Duration::from_secs(1);

/// Cached terms by the revision of the client and what distinguishes it, with the state of the servers that they
/// were made from.
pub(crate) type TermsCache = Mutex<HashMap<(Revision, Evidence), (TermsVersion, Arc<ServerTerms>)>>;

/// State of the servers, as far as terms depend on it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TermsVersion {
    server_set: u64,
    /// Address of the profile, number of changes of the health and number of hidden tools of each server.
    servers: Vec<(usize, u64, usize)>,
}

impl TermsVersion {
    fn of(server_set: &ServerSet) -> Self {
        let servers = server_set.entries.iter().map(|entry| {
            let profile = entry.profile();
            let profile = profile.map_or(0, |profile| Arc::as_ptr(&profile) as usize);
            let hidden_tools = tool_filter::hidden_tools(&entry.server).len();
            (profile, entry.health_changes(), hidden_tools)
        });
        Self {
            server_set: server_set.version,
            servers: servers.collect(),
        }
    }
}

impl Aggregator {
    /// Accepts a client; waits for unknown servers.
    pub(crate) async fn admit(
        &self,
        hello: ClientHello<'_>,
        identity: &ClientIdentity,
    ) -> ClientSetup<ClientState> {
        let evidence = Evidence::of(identity);
        let (client, revision, request) = match hello {
            ClientHello::Handshake(params) => {
                let hello = LegacyHello::parse(params);
                let newest = Revision::newest(Era::Legacy);
                let revision = hello.map_or(newest, |hello| hello.revision);
                let raw = params.raw.unwrap_or("{}");
                let client = Arc::new(DownstreamClient::of_handshake(raw, identity));
                (client, revision, None)
            }
            ClientHello::Request(params) => {
                let client = lock(&self.modern_clients).client(&params.meta, identity);
                let named = params.meta.revision();
                let revision = named.unwrap_or(Revision::newest(Era::Modern));
                (client, revision, Some(params))
            }
        };
        self.meet(&client, request).await;
        ClientSetup {
            terms: self.terms_for(revision, evidence),
            state: Some(ClientState(ClientKind::Aggregate(client))),
        }
    }

    /// Waits for unknown servers that have not failed, for a limited time.
    async fn meet(&self, client: &Arc<DownstreamClient>, request: Option<&Params<'_>>) {
        let server_set = self.server_set();
        let entries = server_set.entries.iter();
        let unknown =
            entries.filter(|entry| entry.profile().is_none() && entry.failure().is_none());
        let mut unknown: Vec<_> = unknown.collect();
        if unknown.is_empty() {
            return;
        }
        // A request for an item of one server does not wait for the others.
        if let Some(needed) = request.and_then(|params| self.named_by(params)) {
            unknown.retain(|entry| entry.number == needed.number);
        }
        let longest = self.settings.introduction_wait;
        let wait = |entry: &ServerEntry| match &entry.server.route {
            Some(route) if route.serves_gateways() => longest.min(GATEWAY_WAIT),
            Some(_) | None => longest,
        };
        // The waiting time counts from the first client that waits.
        let awaited = unknown
            .into_iter()
            .map(|entry| (entry.awaited() + wait(entry), entry))
            .filter(|(until, _)| Instant::now() < *until);
        let meeting = awaited.map(|(until, entry)| {
            let (client, entry) = (Arc::clone(client), Arc::clone(entry));
            // The start goes on when the first client leaves.
            let meeting = tokio::spawn(async move { client.introduce(&entry).await });
            tokio::time::timeout_at(until, meeting)
        });
        let met = futures_util::future::join_all(meeting).await;
        if met.iter().any(Result::is_err) {
            tracing::warn!("some servers did not answer in time");
        }
    }

    fn terms_for(&self, revision: Revision, evidence: Evidence) -> Arc<ServerTerms> {
        let server_set = self.server_set();
        let version = TermsVersion::of(&server_set);
        let mut cached = lock(&self.terms);
        if let Some((of, terms)) = cached.get(&(revision, evidence))
            && *of == version
        {
            return Arc::clone(terms);
        }
        let terms = Arc::new(self.terms_of(&server_set, revision, evidence));
        cached.insert((revision, evidence), (version, Arc::clone(&terms)));
        terms
    }

    fn terms_of(
        &self,
        server_set: &ServerSet,
        client: Revision,
        evidence: Evidence,
    ) -> ServerTerms {
        let entries = &server_set.entries;
        let shown = entries.iter();
        let shown = shown.filter_map(|entry| entry.shown_to(client, evidence));
        let declared = capabilities::union(&shown.collect::<Vec<_>>());
        let present = entries.iter().map(|entry| {
            let profile = entry.profile();
            let withheld = tool_filter::withheld(&entry.server);
            ServerInstructions {
                server: &entry.name,
                prefix: &entry.prefix,
                instructions: profile.and_then(|of| of.introduction.instructions.clone()),
                failure: entry.failure_in_short(),
                lacking: entry.lacking().into_iter().chain(withheld).collect(),
            }
        });
        let absent = server_set.absent.iter().map(|name| ServerInstructions {
            server: name,
            failure: Some(String::from(ABSENT)),
            ..ServerInstructions::default()
        });
        let parts: Vec<_> = present.chain(absent).collect();
        let mut policy = self.settings.front.policy.clone();
        // Refused here instead, with the endpoints of the servers that may have the method.
        if entries.iter().any(|entry| entry.has_unknown_extension()) {
            policy.unknown = OnUnknown::Pass;
        }
        let mut terms = ServerTerms::new(identity(), declared, policy);
        terms.listening = Listening::Asked;
        terms.instructions = instructions::merge(&parts, &server_set.style.separator);
        terms
    }
}
