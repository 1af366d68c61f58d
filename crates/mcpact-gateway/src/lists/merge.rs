//! What the lists of all servers are together.

use crate::lists::refresh;
use crate::subscriptions::list_changes;
use crate::upstream::tool_filter;
use std::sync::{Arc, Mutex};

use crate::error::ServeError;
use bytestring::ByteString;
use mcpact_engine::capability::CapabilityBits;
use mcpact_spec::{Era, ErrorCode, Revision};
use mcpact_wire::raw::Object;

use crate::aggregate::aggregator::{Aggregator, ServerSet};
use crate::aggregate::list_kind::ListKind;
use crate::aggregate::merge::{self, MergedList, ServerItems};
use crate::aggregate::name_registry::{NameRegistry, Origin};
use crate::aggregate::name_table::NameTable;
use crate::aggregate::server_entry::ServerEntry;
use crate::aggregate::uri_table::UriTable;
use crate::downstream::client::DownstreamClient;
use crate::exchange::refusal;
use crate::lists::merged::{MergeCache, MergedViewKey, Routes, Sources};
use crate::lists::scope::Audience;
use crate::lists::server_list::ServerList;
use crate::sync::lock;

/// Maximum number of replacements of the servers during one request.
pub(crate) const MAX_REPLACEMENTS: usize = 32;

/// Merged lists of clients without own lists, and the public names of all items.
#[derive(Debug, Default)]
pub(crate) struct SharedMerges {
    pub(crate) shared: MergeCache,
    /// Locked while names are assigned, until they are visible to all clients.
    tools: Mutex<NameRegistry>,
    prompts: Mutex<NameRegistry>,
}

impl SharedMerges {
    /// Takes the names back from all servers but these.
    pub(crate) fn keep_names(&self, origins: &[Origin]) {
        for given in [&self.tools, &self.prompts] {
            lock(given).keep_only(origins);
        }
    }

    const fn given(&self, kind: ListKind) -> Option<&Mutex<NameRegistry>> {
        match kind {
            ListKind::Tools => Some(&self.tools),
            ListKind::Prompts => Some(&self.prompts),
            ListKind::Resources | ListKind::Templates => None,
        }
    }

    /// Whether a name may be that of a thing of a server, as far as anybody was told.
    pub(crate) fn may_be(&self, kind: ListKind, shown: &str, origin: &Origin, name: &str) -> bool {
        let given = self.given(kind);
        given.is_some_and(|given| lock(given).may_be(shown, origin, name))
    }
}

/// Answers a request for a list.
pub(crate) async fn page(
    aggregator: &Arc<Aggregator>,
    guest: &Arc<DownstreamClient>,
    kind: ListKind,
    params: &str,
    client: Revision,
) -> Result<ByteString, ServeError> {
    let merged_list = merged_list(aggregator, guest, kind, client).await?;
    let params = Object::parse(params).unwrap_or_default();
    let cursor = params.get_str("cursor");
    // A cursor of another type is invalid; ignoring it would return the first page for ever.
    let is_none = params.get_present("cursor").is_none();
    let cursor = cursor.as_deref().or((!is_none).then_some(""));
    let size = aggregator.settings.front.page_size;
    let page = merged_list.page(kind, cursor, size);
    let page = page.ok_or_else(|| {
        let why =
            "the cursor is not known, or the list has changed since; begin again without a cursor";
        refusal(
            ErrorCode::InvalidParams.code(),
            why.to_owned(),
            None,
            client,
        )
    })?;
    Ok(match client.era() {
        Era::Legacy => format!("{{{page}}}").into(),
        Era::Modern => {
            let ttl = merged_list.ttl_ms;
            format!(
                "{{\"resultType\":\"complete\",{page},\"ttlMs\":{ttl},\"cacheScope\":\"private\"}}"
            )
            .into()
        }
    })
}

/// The merged list that a client sees.
pub(crate) async fn merged_list(
    aggregator: &Arc<Aggregator>,
    guest: &Arc<DownstreamClient>,
    kind: ListKind,
    client: Revision,
) -> Result<Arc<MergedList>, ServeError> {
    for _ in 0..MAX_REPLACEMENTS {
        let server_set = aggregator.server_set();
        // Where the servers have become others meanwhile, nothing may be made of those from before.
        if let Some(list) = merged_list_of(aggregator, &server_set, guest, kind, client).await {
            return Ok(list);
        }
    }
    let why = "the servers of the gateway have become others again and again meanwhile; try again when its config stays as it is";
    let code = ErrorCode::InternalError.code();
    Err(refusal(code, why.to_owned(), None, client))
}

/// Returns the merged list of these servers; none if they were replaced meanwhile.
async fn merged_list_of(
    aggregator: &Arc<Aggregator>,
    server_set: &Arc<ServerSet>,
    guest: &Arc<DownstreamClient>,
    kind: ListKind,
    client: Revision,
) -> Option<Arc<MergedList>> {
    let (sources, audience) = refresh::listings(aggregator, server_set, guest, kind).await;
    let key = MergedViewKey {
        kind,
        client,
        principal: guest.principal().into(),
        fingerprint: guest.fingerprint.clone(),
    };
    let own = guest.own.merges.kept(&key, &sources, server_set);
    let shared = || aggregator.merges.shared.kept(&key, &sources, server_set);
    if let Some(list) = own.or_else(shared) {
        return Some(list);
    }
    let mut parts = parts(&sources, client);
    server_set.keep(&mut parts, |entry, name| entry.serves(kind, name));
    let (list, merges) = match aggregator.merges.given(kind) {
        Some(given) => {
            let merges = merges(aggregator, guest, audience);
            let names = assign_names(
                aggregator, server_set, kind, given, merges, &sources, &parts,
            )?;
            let able = guest.declared.under(client);
            let list = merge_named(aggregator, server_set, kind, &names.table, parts, able);
            (list, merges)
        }
        None => {
            let shown = (&sources, audience);
            merge_addressed(aggregator, server_set, guest, kind, shown, &parts, client).await?
        }
    };
    let list = Arc::new(list);
    let is_kept = merges.keep(key, sources, &list, || aggregator.is_current(server_set));
    is_kept.then_some(list)
}

/// Returns the cache for merged lists: that of the client for lists that no other client sees.
const fn merges<'a>(
    aggregator: &'a Aggregator,
    guest: &'a DownstreamClient,
    audience: Audience,
) -> &'a MergeCache {
    match audience {
        Audience::Owner => &guest.own.merges,
        Audience::All => &aggregator.merges.shared,
    }
}

/// Assigns public names to the items of these servers; none if they were replaced meanwhile.
fn assign_names(
    aggregator: &Aggregator,
    server_set: &Arc<ServerSet>,
    kind: ListKind,
    given: &Mutex<NameRegistry>,
    merges: &MergeCache,
    of: &[Option<Arc<ServerList>>],
    parts: &[ServerItems],
) -> Option<Arc<Routes<NameTable>>> {
    let mut given = lock(given);
    if !aggregator.is_current(server_set) {
        return None;
    }
    // Clients are notified of released names before these are assigned again.
    if given.take_released() {
        list_changes::notify_now(aggregator, kind.changed());
    }
    // A public name has the same server for all clients, listed for them or not.
    let besides = server_set.names_besides(kind, of);
    let (origins, style) = (server_set.origins(), &server_set.style);
    let names = merge::assign_names(parts, besides, &origins, style, &mut given);
    for conflict in names.conflicts() {
        tracing::warn!(
            server = server_set
                .entries
                .get(conflict.server)
                .map_or("", |entry| &*entry.name),
            name = &*conflict.name,
            instead = &*conflict.instead,
            "two servers would have had the same name for a thing"
        );
    }
    let named = Arc::new(Routes {
        server_set: Arc::clone(server_set),
        table: names,
    });
    merges.name(kind, Arc::clone(&named));
    Some(named)
}

fn merge_named(
    aggregator: &Aggregator,
    server_set: &ServerSet,
    kind: ListKind,
    names: &NameTable,
    mut parts: Vec<ServerItems>,
    able: CapabilityBits,
) -> MergedList {
    let known = aggregator.merges.shared.addressed();
    let none = server_set.uris();
    let uris = known.as_ref().map_or(&none, |known| &known.table);
    if kind == ListKind::Tools {
        server_set.keep(&mut parts, |entry, name| {
            tool_filter::lacking(&entry.server, name, able).is_empty()
        });
    }
    merge::merge(kind, &parts, names, uris)
}

/// Merges resources or templates. The server of a URI depends on both lists and on those of other clients, so that a
/// URI has the same server for all clients.
async fn merge_addressed<'a>(
    aggregator: &'a Arc<Aggregator>,
    server_set: &Arc<ServerSet>,
    guest: &'a Arc<DownstreamClient>,
    kind: ListKind,
    (sources, audience): (&Sources, Audience),
    parts: &[ServerItems],
    client: Revision,
) -> Option<(MergedList, &'a MergeCache)> {
    let other = match kind {
        ListKind::Resources => ListKind::Templates,
        ListKind::Templates | ListKind::Tools | ListKind::Prompts => ListKind::Resources,
    };
    let (others, other_audience) = refresh::listings(aggregator, server_set, guest, other).await;
    let merges = merges(aggregator, guest, audience.or(other_audience));
    let mut uris = server_set.uris();
    merge::register_uris(kind, parts, &mut uris);
    let other_parts = self::parts(&others, client);
    merge::register_uris(other, &other_parts, &mut uris);
    for (kind, shown) in [(kind, sources), (other, &others)] {
        let besides = server_set.parts_besides(kind, shown, client);
        merge::register_uris(kind, &besides, &mut uris);
    }
    let list = merge::merge(kind, parts, &NameTable::default(), &uris);
    let mut addressed = lock(&merges.addressed);
    if !aggregator.is_current(server_set) {
        return None;
    }
    *addressed = Some(Arc::new(Routes {
        server_set: Arc::clone(server_set),
        table: uris,
    }));
    drop(addressed);
    Some((list, merges))
}

impl ServerSet {
    /// Returns the name and prefix of each server.
    pub(crate) fn origins(&self) -> Vec<Origin> {
        self.entries.iter().map(|entry| entry.origin()).collect()
    }

    /// The addresses of these servers, while nothing of them is known.
    pub(crate) fn uris(&self) -> UriTable {
        UriTable::new(self.entries.iter().map(|entry| &*entry.name))
    }

    /// Returns the names of items that only other clients were shown.
    fn names_besides(
        &self,
        kind: ListKind,
        shown: &[Option<Arc<ServerList>>],
    ) -> Vec<(usize, String)> {
        let besides = self.lists_besides(kind, shown);
        let named = besides.flat_map(|(server, entry, listing)| {
            let names = listing.names().into_iter();
            let served = names.filter(|name| entry.serves(kind, name));
            served.map(move |name| (server, name)).collect::<Vec<_>>()
        });
        named.collect()
    }

    /// Returns the items that only other clients were shown.
    fn parts_besides(
        &self,
        kind: ListKind,
        shown: &[Option<Arc<ServerList>>],
        client: Revision,
    ) -> Vec<ServerItems> {
        let besides = self.lists_besides(kind, shown);
        besides
            .map(|(server, _, listing)| listing.part(server, client))
            .collect()
    }

    /// Returns the lists of each server that other clients were shown.
    fn lists_besides(
        &self,
        kind: ListKind,
        shown: &[Option<Arc<ServerList>>],
    ) -> impl Iterator<Item = (usize, &ServerEntry, Arc<ServerList>)> {
        let all = self.entries.iter().zip(shown).enumerate();
        all.flat_map(move |(server, (entry, shown))| {
            let besides = entry.lists_besides(kind, shown.as_ref()).into_iter();
            besides.map(move |listing| (server, &**entry, listing))
        })
    }

    /// Removes items by server and name.
    fn keep(&self, parts: &mut [ServerItems], is_kept: impl Fn(&ServerEntry, &str) -> bool) {
        for part in parts {
            let Some(entry) = self.entries.get(part.server) else {
                continue;
            };
            part.items.retain(|item| {
                let item = Object::parse(item).unwrap_or_default();
                let name = item.get_str("name");
                name.is_none_or(|name| is_kept(entry, &name))
            });
        }
    }
}

fn parts(listings: &[Option<Arc<ServerList>>], client: Revision) -> Vec<ServerItems> {
    let there = listings.iter().enumerate();
    there
        .filter_map(|(server, listing)| Some(listing.as_ref()?.part(server, client)))
        .collect()
}
