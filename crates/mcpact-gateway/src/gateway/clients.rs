//! Clients that use a server.

use std::sync::Arc;

use mcpact_spec::{Era, Revision};
use mcpact_wire::model::implementation::Implementation;
use mcpact_wire::model::initialize::InitializeParams;

use super::{Gateway, State};
use crate::aggregate::aggregator::Aggregator;
use crate::aggregate::server_entry::ServerEntry;
use crate::control::ClientLine;
use crate::downstream::sink::ClientSink;
use crate::sync::lock;
use crate::upstream::saved_client::SavedHello;

/// Maximum number of clients in the status of a server.
const MAX_CLIENTS: usize = 100;

/// Returns the clients that use a server, at its own endpoint or another.
pub(super) fn of(state: &State, gateway: &Gateway, entry: &ServerEntry) -> Vec<ClientLine> {
    let selections = state.selections.values().map(|(aggregator, _)| aggregator);
    let mut all: Vec<ClientLine> = [&gateway.aggregator]
        .into_iter()
        .chain(selections)
        .flat_map(|aggregator| of_aggregator(aggregator, entry))
        .collect();
    let direct = entry.server.direct_clients.connected().into_iter();
    all.extend(direct.filter_map(|(sink, _)| direct_client(&sink)));
    all.truncate(MAX_CLIENTS);
    all
}

fn of_aggregator(aggregator: &Arc<Aggregator>, entry: &ServerEntry) -> Vec<ClientLine> {
    let legacy = aggregator.changes.legacy_clients().into_iter();
    let legacy = legacy.filter_map(|sink| {
        let client = sink.state()?.aggregate()?;
        let is_bound = client.is_bound_to(entry.number);
        is_bound.then(|| line(&client.saved.hello, revision(&sink)))?
    });
    let modern: Vec<_> = lock(&aggregator.modern_clients).all().collect();
    let modern = modern
        .into_iter()
        .filter(|client| client.running_binding_for(entry).is_some());
    let modern = modern.filter_map(|client| line(&client.saved.hello, None));
    legacy.chain(modern).collect()
}

fn direct_client(sink: &ClientSink) -> Option<ClientLine> {
    let state = sink.state()?;
    let bound = || Some(&state.bound()?.rebind()?.client);
    let client = state.pending().map(Arc::as_ref).or_else(bound)?;
    line(&client.hello, revision(sink))
}

fn revision(sink: &ClientSink) -> Option<Revision> {
    Some(sink.pact()?.revision())
}

fn line(hello: &SavedHello, revision: Option<Revision>) -> Option<ClientLine> {
    let info = match hello {
        SavedHello::Handshake { params } => InitializeParams::parse(Some(params)).ok()?.client_info,
        SavedHello::Request { info, .. } => {
            Implementation::parse("clientInfo", info.as_deref()).ok()?
        }
    };
    let revision = revision.unwrap_or(Revision::newest(Era::Modern));
    Some(ClientLine {
        name: info.name().to_owned(),
        version: info.version().to_owned(),
        revision: revision.to_string(),
    })
}
